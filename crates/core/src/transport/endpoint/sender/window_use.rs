//! Use of the congestion window: whether it limits a flow, and not the application, the receive window, a
//! rate or the host (congestion window validation, RFC 7661; RFC 9438 §5.8). The rule is that of Linux
//! (`tcp_cwnd_validate`): a window that was full once counts as the limit for a window of data; otherwise
//! the largest flight of a window of data counts.

use super::Sender;
use crate::base::units::Bytes;
use crate::transport::Allowance;

/// Use of a flow's congestion window, in segments.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WindowUse {
    /// True if the window was full in the current window of data.
    is_limited: bool,
    /// Largest number of unacknowledged segments in the current window of data.
    max_flight: u32,
    /// The current window of data ends when all segments before this one are acknowledged.
    end: u32,
}

impl WindowUse {
    /// Updates the use after transmissions. With `is_full`, the window permits no further segment. The
    /// segments from `cumulative` to `next` are unacknowledged.
    fn update(&mut self, is_full: bool, cumulative: u32, next: u32) {
        let flight = next - cumulative;
        let is_over = cumulative >= self.end;
        if is_over || is_full || !self.is_limited && flight > self.max_flight {
            *self = Self { is_limited: is_full, max_flight: flight, end: next };
        }
    }

    /// Returns the largest flight of the current window of data, with segments of `payload` bytes, unless
    /// the window limits the flow.
    pub(super) fn used(&self, payload: u32) -> Option<Bytes> {
        let flight = Bytes(u64::from(self.max_flight) * u64::from(payload));
        (!self.is_limited).then_some(flight)
    }
}

impl Sender {
    /// Notes how much of the window the flow uses, after the sender has sent all that it may.
    #[inline]
    pub fn note_window_use(&mut self, allowance: Allowance, has_sent: bool) {
        if self.window_use.is_some() {
            let is_full = self.is_window_full(allowance);
            let (cumulative, next) = (self.scoreboard.cumulative(), self.scoreboard.highest());
            if let Some(window_use) = self.window_use.as_mut().filter(|_| has_sent || is_full) {
                window_use.update(is_full, cumulative, next);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_window_counts_for_a_window_of_data() {
        let mut window_use = WindowUse::default();
        window_use.update(true, 0, 10);
        assert_eq!(window_use.used(100), None);
        // The flow has less to send, but the segments from its full window are not acknowledged yet.
        window_use.update(false, 9, 12);
        assert_eq!(window_use.used(100), None);
        window_use.update(false, 10, 14);
        assert_eq!(window_use.used(100), Some(Bytes(400)));
    }

    #[test]
    fn the_largest_flight_of_a_window_of_data_counts() {
        let mut window_use = WindowUse::default();
        for (cumulative, next, used) in [(0, 5, 500), (4, 8, 500), (5, 9, 400), (7, 13, 600)] {
            window_use.update(false, cumulative, next);
            assert_eq!(window_use.used(100), Some(Bytes(used)), "{cumulative} to {next}");
        }
        window_use.update(true, 8, 13);
        assert_eq!(window_use.used(100), None);
    }
}
