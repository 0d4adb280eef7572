//! ACK aggregation: estimates the data acknowledged beyond the bandwidth, as Linux's BBR (`tcp_bbr.c`).
//!
//! A receiver or link that aggregates ACKs sends many at once and then none for a while. With a window of
//! one bandwidth-delay product the sender idles meanwhile. So `extra_acked`, the data acknowledged beyond
//! the bandwidth in an ACK epoch, is added to the window.

use crate::base::units::{Bytes, Duration, Time};

/// Rounds per slot of the two-slot maximum filter, which so covers five to ten rounds
/// (`bbr_extra_acked_win_rtts`).
const WINDOW_ROUNDS: u32 = 5;
/// Limit of `extra_acked`, as time at the bandwidth (`bbr_extra_acked_max_us`).
const MAX_EXTRA: Duration = Duration::from_millis(100);
/// Packets after which an epoch is reset (`bbr_ack_epoch_acked_reset_thresh`).
const EPOCH_RESET: f64 = (1 << 20) as f64;

/// Estimator of ACK aggregation; payload in bytes.
#[derive(Clone, Copy, Debug)]
pub struct AckAggregation {
    reset: f64,
    /// Start of the ACK epoch, in which ACKs are faster than the bandwidth, and the data acknowledged in it.
    epoch_start: Time,
    epoch_acked: f64,
    /// Maximum excess in the current slot of the filter, and in the slot before.
    extra_acked: [f64; 2],
    /// Rounds of the current slot.
    rounds: u32,
}

impl AckAggregation {
    /// State of a new flow with `packet` bytes of payload per packet.
    pub fn new(packet: f64, start: Time) -> Self {
        Self {
            reset: EPOCH_RESET * packet,
            epoch_start: start,
            epoch_acked: 0.0,
            extra_acked: [0.0; 2],
            rounds: 0,
        }
    }

    /// Handles an ACK for `acked` payload. `bandwidth` is in bytes per second; `cwnd` limits the excess.
    pub fn update(
        &mut self,
        now: Time,
        acked: Bytes,
        starts_round: bool,
        bandwidth: f64,
        cwnd: f64,
    ) {
        self.rounds += u32::from(starts_round);
        if self.rounds >= WINDOW_ROUNDS {
            self.rounds = 0;
            self.extra_acked = [0.0, self.extra_acked[0]];
        }
        let mut expected = bandwidth * (now - self.epoch_start).seconds();
        let acked = acked.0 as f64;
        if self.epoch_acked <= expected || self.epoch_acked + acked >= self.reset {
            (self.epoch_start, self.epoch_acked, expected) = (now, 0.0, 0.0);
        }
        self.epoch_acked += acked;
        self.extra_acked[0] = self.extra_acked[0].max((self.epoch_acked - expected).min(cwnd));
    }

    /// Returns the bytes to add to the window.
    pub fn allowance(&self, bandwidth: f64) -> f64 {
        self.extra_acked[0].max(self.extra_acked[1]).min(bandwidth * MAX_EXTRA.seconds())
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::float_cmp, reason = "whole numbers of bytes are exact")]

    use super::*;

    /// One packet of 1000 B per millisecond.
    const BANDWIDTH: f64 = 1e6;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    /// Plays ACKs for `packets` packets every `every_ms` until `until_ms`, with a window of 50 packets.
    fn after_acks(packets: u64, every_ms: u64, until_ms: u64) -> AckAggregation {
        let mut aggregation = AckAggregation::new(1000.0, at(0));
        for ms in (every_ms..=until_ms).step_by(every_ms as usize) {
            aggregation.update(at(ms), Bytes(1000 * packets), false, BANDWIDTH, 50e3);
        }
        aggregation
    }

    #[test]
    fn single_acks_at_the_bandwidth_give_one_packet() {
        assert_eq!(after_acks(1, 1, 300).allowance(BANDWIDTH), 1000.0);
    }

    #[test]
    fn aggregated_acks_count_up_to_the_window_and_to_100_ms_at_the_bandwidth() {
        assert_eq!(after_acks(20, 20, 300).allowance(BANDWIDTH), 20e3);
        assert_eq!(after_acks(80, 80, 300).allowance(BANDWIDTH), 50e3, "the window");
        assert_eq!(
            after_acks(20, 20, 300).allowance(1e5),
            10e3,
            "100 ms of a tenth of the bandwidth"
        );
    }

    #[test]
    fn acks_that_are_faster_than_the_bandwidth_add_up() {
        // Twice as fast for 10 ms: ten packets, besides the one of single ACKs.
        let mut aggregation = after_acks(1, 1, 100);
        for half_ms in 201..221 {
            let now = Time::ZERO + Duration::from_micros(500 * half_ms);
            aggregation.update(now, Bytes(1000), false, BANDWIDTH, 50e3);
        }
        assert_eq!(aggregation.allowance(BANDWIDTH), 11e3);
    }

    #[test]
    fn the_maximum_filter_covers_five_to_ten_rounds() {
        let mut aggregation = after_acks(20, 20, 20);
        let mut rounds = 0;
        while aggregation.allowance(BANDWIDTH) > 1000.0 {
            aggregation.update(at(100 + rounds), Bytes(1000), true, BANDWIDTH, 50e3);
            rounds += 1;
        }
        assert_eq!(rounds, 10);
    }
}
