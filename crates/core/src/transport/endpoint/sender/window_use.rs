//! Use of the congestion window: whether it limits a flow, and not the application, the receive window, a
//! rate or the host (congestion window validation, RFC 7661; RFC 9438 §5.8). The rules are those of Linux
//! (`tcp_cwnd_validate`): a window that was full once counts as the limit for a window of data; otherwise
//! the largest flight of a window of data counts. A window that the application has not filled for an RTO
//! falls half way to the largest flight in that time.

use super::Sender;
use crate::base::units::{Bytes, Duration, Time};
use crate::transport::{Allowance, IdleRestart, Restart, WindowReduction};

/// Use of a flow's congestion window, in segments.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WindowUse {
    /// True if the window was full in the current window of data.
    is_limited: bool,
    /// Largest number of unacknowledged segments in the current window of data.
    max_flight: u32,
    /// The current window of data ends when all segments before this one are acknowledged.
    end: u32,
    /// Time when the window was full, or reduced, last; none before the first transmission.
    checked_at: Option<Time>,
    /// Largest number of unacknowledged segments since then.
    largest_use: u32,
}

impl WindowUse {
    /// Updates the use after transmissions. With `is_full`, the window permits no further segment. The
    /// segments from `cumulative` to `next` are unacknowledged.
    fn update(&mut self, is_full: bool, cumulative: u32, next: u32) {
        let flight = next - cumulative;
        let is_over = cumulative >= self.end;
        if is_over || is_full || !self.is_limited && flight > self.max_flight {
            *self = Self { is_limited: is_full, max_flight: flight, end: next, ..*self };
        }
    }

    /// Starts the time without a full window.
    pub(super) fn restart(&mut self, now: Time) {
        (self.checked_at, self.largest_use) = (Some(now), 0);
    }

    /// Returns the largest number of unacknowledged segments if the window has not been full for an RTO, once
    /// per RTO.
    fn largest_use_without_limit(
        &mut self,
        now: Time,
        is_full: bool,
        flight: u32,
        rto: Duration,
    ) -> Option<u32> {
        let checked_at = *self.checked_at.get_or_insert(now);
        self.largest_use = self.largest_use.max(flight);
        if !is_full && now.since(checked_at) < rto {
            return None;
        }
        let used = self.largest_use;
        self.restart(now);
        (!is_full).then_some(used)
    }

    /// Returns the largest flight of the current window of data, with segments of `payload` bytes, unless
    /// the window limits the flow.
    pub(super) fn used(&self, payload: u32) -> Option<Bytes> {
        let flight = Bytes(u64::from(self.max_flight) * u64::from(payload));
        (!self.is_limited).then_some(flight)
    }
}

impl Sender {
    /// Notes how much of the window the flow uses, after the sender has sent all that it may. Returns the
    /// reduction of a window that the application has not filled for an RTO.
    #[inline]
    pub fn note_window_use(
        &mut self,
        now: Time,
        allowance: Allowance,
        has_sent: bool,
    ) -> Option<Restart> {
        self.window_use.as_ref()?;
        let is_full = self.is_window_full(allowance);
        if !has_sent && !is_full {
            return None;
        }
        let (cumulative, next) = (self.scoreboard.cumulative(), self.scoreboard.highest());
        let rto = if is_full { Duration::ZERO } else { self.timeout() };
        let window_use = self.window_use.as_mut()?;
        window_use.update(is_full, cumulative, next);
        let used = window_use.largest_use_without_limit(now, is_full, next - cumulative, rto)?;
        let is_reduced = self.mechanism.reliability.idle_restart == IdleRestart::Halving
            && self.is_app_limited(allowance)
            && !self.scoreboard.is_recovering();
        let reduction = WindowReduction::HalfwayTo { used };
        is_reduced.then_some(Restart { now, idle: Duration::ZERO, reduction })
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
    fn the_largest_use_counts_if_the_window_is_not_full_for_an_rto() {
        let mut window_use = WindowUse::default();
        let ms = |ms: u64| Time::ZERO + Duration::from_millis(ms);
        let mut largest_use = |at, is_full, flight| {
            window_use.largest_use_without_limit(
                ms(at),
                is_full,
                flight,
                Duration::from_millis(200),
            )
        };
        assert_eq!(largest_use(1_000, false, 5), None);
        assert_eq!(largest_use(1_100, false, 7), None);
        assert_eq!(largest_use(1_200, false, 3), Some(7));
        assert_eq!(largest_use(1_300, true, 20), None);
        assert_eq!(largest_use(1_499, false, 3), None, "the window was full at 1300 ms");
        assert_eq!(largest_use(1_500, false, 2), Some(3));
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
