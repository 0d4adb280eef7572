//! Progress of a sender: acknowledged, sent and remaining data.

use super::{Sender, UNBOUNDED};
use crate::base::units::Bytes;

impl Sender {
    /// Returns the payload that is not known to be delivered; `u64::MAX` for an unbounded flow.
    pub fn remaining(&self) -> Bytes {
        if self.scoreboard.total() == UNBOUNDED {
            return Bytes(u64::MAX);
        }
        // Assumes that the last segment is delivered last; otherwise off by less than a packet.
        let segments = self.scoreboard.remaining();
        Bytes(
            self.bytes(segments).0
                - u64::from(if segments > 0 { self.full_payload - self.last_payload } else { 0 }),
        )
    }

    /// Returns the first segment that is not acknowledged.
    pub fn cumulative(&self) -> u32 {
        self.scoreboard.cumulative()
    }

    /// Returns the end of the segments sent so far.
    pub fn highest(&self) -> u32 {
        self.scoreboard.highest()
    }
}
