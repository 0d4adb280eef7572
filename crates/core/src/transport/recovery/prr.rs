//! How much leaves while a gap is repaired: proportional rate reduction (RFC 6937, and its revision in
//! Linux).
//!
//! The window shrinks from what it was to what it shall be in proportion to what comes, instead of halting
//! until half of it has come; and it grows by at most a packet more than has come if more was lost.

/// The window during one repair; all in segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProportionalRateReduction {
    /// The window before, and that which the controller wants.
    before: u32,
    target: u32,
    delivered: u32,
    sent: u32,
    window: u32,
}

impl ProportionalRateReduction {
    /// From one window to another.
    pub fn new(before: u32, target: u32) -> Self {
        Self { before: before.max(1), target, delivered: 0, sent: 0, window: 0 }
    }

    /// What may be in flight.
    pub fn window(&self) -> u32 {
        self.window
    }

    /// A segment leaves.
    pub fn on_sent(&mut self) {
        self.sent += 1;
    }

    /// An ACK tells of so many segments that they have come, and leaves so many in flight; `is_good` if it
    /// acknowledges something in order and shows no further loss (RFC 6937 §3: then slow start, and
    /// otherwise packet conservation).
    pub fn on_ack(&mut self, delivered: u32, in_flight: u32, is_good: bool) {
        self.delivered += delivered;
        let may_send = if in_flight > self.target {
            let due = u64::from(self.delivered) * u64::from(self.target);
            (due.div_ceil(u64::from(self.before)) as u32).saturating_sub(self.sent)
        } else {
            let owed = self.delivered.saturating_sub(self.sent).max(delivered);
            (owed + u32::from(is_good)).min(self.target - in_flight)
        };
        // The first repair leaves whatever is in flight.
        self.window = in_flight + may_send.max(u32::from(self.sent == 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_as_much_leaves_as_comes_until_the_window_is_reached() {
        // RFC 6937 §4, first example: twenty in flight, one lost, ssthresh ten.
        let mut reduction = ProportionalRateReduction::new(20, 10);
        let mut in_flight = 19;
        let mut sent = Vec::new();
        for _ in 0..19 {
            in_flight -= 1;
            reduction.on_ack(1, in_flight, false);
            let may = reduction.window() - in_flight;
            (0..may).for_each(|_| reduction.on_sent());
            in_flight += may;
            sent.push(may);
        }
        // The repair at once, and from then on every other ACK lets one go; then each does.
        assert_eq!(sent, [1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1]);
        assert_eq!(in_flight, 10);
    }

    #[test]
    fn below_its_aim_it_grows_by_a_packet_an_ack_and_only_if_nothing_more_is_lost() {
        let mut reduction = ProportionalRateReduction::new(20, 10);
        for (is_good, window) in [(false, 5), (true, 6)] {
            reduction = ProportionalRateReduction { delivered: 3, sent: 3, ..reduction };
            reduction.on_ack(1, 4, is_good);
            assert_eq!(reduction.window(), window);
        }
        reduction.on_ack(9, 8, true);
        assert_eq!(reduction.window(), 10, "and never beyond it");
    }
}
