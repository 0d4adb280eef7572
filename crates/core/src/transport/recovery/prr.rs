//! Proportional rate reduction during loss recovery (PRR; RFC 9937, as in Linux).
//!
//! The window shrinks from the flight size at the loss to ssthresh in proportion to the delivered
//! data, instead of a pause until half of the window has been delivered. If more was lost, the window
//! grows by at most one packet more than was delivered.

/// State of one window reduction, in segments. The fields are those of RFC 9937.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProportionalRateReduction {
    /// `RecoverFS`. Deviation: the window before the reduction, which differs from the data in flight by the
    /// segments that SACKs reported.
    recover_flight_size: u32,
    /// The window that the controller set.
    ssthresh: u32,
    /// `prr_delivered` and `prr_out`.
    delivered: u32,
    sent: u32,
    window: u32,
}

impl ProportionalRateReduction {
    /// Creates the state for a reduction from one window to another.
    pub fn new(recover_flight_size: u32, ssthresh: u32) -> Self {
        Self {
            recover_flight_size: recover_flight_size.max(1),
            ssthresh,
            delivered: 0,
            sent: 0,
            window: 0,
        }
    }

    /// Returns the number of segments that may be in flight.
    pub fn window(&self) -> u32 {
        self.window
    }

    /// Counts a transmitted segment.
    pub fn on_sent(&mut self) {
        self.sent += 1;
    }

    /// Updates the window for an ACK that newly delivers `delivered` segments and leaves
    /// `in_flight`. `is_safe` (`SafeACK`) is true if the ACK advances the cumulative
    /// acknowledgement and shows no further loss: slow start then applies, otherwise packet
    /// conservation.
    pub fn on_ack(&mut self, delivered: u32, in_flight: u32, is_safe: bool) {
        self.delivered += delivered;
        let may_send = if in_flight > self.ssthresh {
            let due = u64::from(self.delivered) * u64::from(self.ssthresh);
            (due.div_ceil(u64::from(self.recover_flight_size)) as u32).saturating_sub(self.sent)
        } else {
            let credit = self.delivered.saturating_sub(self.sent).max(delivered);
            (credit + u32::from(is_safe)).min(self.ssthresh - in_flight)
        };
        // The first retransmission does not depend on the segments in flight.
        self.window = in_flight + may_send.max(u32::from(self.sent == 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sends_one_segment_per_two_delivered_until_the_flight_reaches_ssthresh() {
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
        // The retransmission at once, then a segment for every other ACK, and at ssthresh one for
        // every ACK.
        assert_eq!(sent, [1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1]);
        assert_eq!(in_flight, 10);
    }

    #[test]
    fn below_ssthresh_the_window_grows_by_a_packet_per_safe_ack() {
        let mut reduction = ProportionalRateReduction::new(20, 10);
        for (is_safe, window) in [(false, 5), (true, 6)] {
            reduction = ProportionalRateReduction { delivered: 3, sent: 3, ..reduction };
            reduction.on_ack(1, 4, is_safe);
            assert_eq!(reduction.window(), window);
        }
        reduction.on_ack(9, 8, true);
        assert_eq!(reduction.window(), 10, "at most ssthresh");
    }
}
