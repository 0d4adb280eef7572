//! A flow by itself: packets back to back at line rate, stored and forwarded at every hop.

use crate::packet::Format;
use crate::units::{Bytes, Duration, Rate};

/// TEMP
pub fn alone(
    hops: impl Iterator<Item = (Rate, Duration)>,
    format: &Format,
    size: Bytes,
) -> Duration {
    let _ = (format, size);
    hops.fold(Duration::ZERO, |a, b| a + b.1)
}
