//! ACK aggregation: estimates the data acknowledged beyond the bandwidth, as Linux's BBR (`tcp_bbr.c`) and
//! [bbr26].
//!
//! A receiver or link that aggregates ACKs sends many at once and then none for a while. With a window of
//! one bandwidth-delay product the sender idles meanwhile. So `extra_acked`, the data acknowledged beyond
//! the bandwidth in an ACK epoch, is added to the window.

use super::max_filter::MaxFilter;
use crate::base::units::{Bytes, Duration, Time};

/// Rounds per slot of the two-slot maximum filter, which so covers five to ten rounds
/// (`bbr_extra_acked_win_rtts`).
const WINDOW_ROUNDS: u32 = 5;
/// Limit of `extra_acked`, as time at the bandwidth (`bbr_extra_acked_max_us`).
const MAX_EXTRA: Duration = Duration::from_millis(100);
/// Packets after which an epoch is reset (`bbr_ack_epoch_acked_reset_thresh`).
const EPOCH_RESET: f64 = (1 << 20) as f64;

/// ACK epoch, in which ACKs are faster than the bandwidth; payload in bytes.
#[derive(Clone, Copy, Debug)]
struct AckEpoch {
    start: Time,
    /// Data acknowledged in the epoch, and the amount that ends it.
    acked: f64,
    reset: f64,
}

impl AckEpoch {
    /// Returns the data acknowledged beyond the bandwidth in the epoch, which is a new one if ACKs have
    /// become slower than the bandwidth. `cwnd` limits the excess.
    fn excess(&mut self, now: Time, acked: Bytes, bandwidth: f64, cwnd: f64) -> f64 {
        let mut expected = bandwidth * (now - self.start).seconds();
        let acked = acked.0 as f64;
        if self.acked <= expected || self.acked + acked >= self.reset {
            (self.start, self.acked, expected) = (now, 0.0, 0.0);
        }
        self.acked += acked;
        (self.acked - expected).min(cwnd)
    }
}

/// Rounds of the maximum filter of [bbr26], in Startup and later (`BBR.ExtraAckedFilterLen`).
const STARTUP_ROUNDS: u32 = 1;
const FILTER_ROUNDS: u32 = 10;

/// Estimator of ACK aggregation of [bbr26]; payload in bytes.
#[derive(Clone, Debug)]
pub struct ExtraAcked {
    epoch: AckEpoch,
    filter: MaxFilter<u32, f64>,
}

impl ExtraAcked {
    /// State of a new flow.
    pub fn new(start: Time) -> Self {
        let epoch = AckEpoch { start, acked: 0.0, reset: f64::INFINITY };
        Self { epoch, filter: MaxFilter::default() }
    }

    /// Handles an ACK for `acked` payload in round `round`. `bandwidth` is in bytes per second; `cwnd` limits
    /// the excess.
    pub fn update(
        &mut self,
        (now, acked): (Time, Bytes),
        (round, full_bw_reached): (u32, bool),
        bandwidth: f64,
        cwnd: f64,
    ) {
        let excess = self.epoch.excess(now, acked, bandwidth, cwnd);
        let rounds = if full_bw_reached { FILTER_ROUNDS } else { STARTUP_ROUNDS };
        self.filter.add(round, excess, |time| round - time >= rounds);
    }

    /// Returns the bytes to add to the window.
    pub fn allowance(&self) -> f64 {
        self.filter.max().unwrap_or(0.0)
    }
}

/// Estimator of ACK aggregation of Linux; payload in bytes.
#[derive(Clone, Copy, Debug)]
pub struct AckAggregation {
    epoch: AckEpoch,
    /// Maximum excess in the current slot of the filter, and in the slot before.
    extra_acked: [f64; 2],
    /// Rounds of the current slot.
    rounds: u32,
}

impl AckAggregation {
    /// State of a new flow with `packet` bytes of payload per packet.
    pub fn new(packet: f64, start: Time) -> Self {
        Self {
            epoch: AckEpoch { start, acked: 0.0, reset: EPOCH_RESET * packet },
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
        let excess = self.epoch.excess(now, acked, bandwidth, cwnd);
        self.extra_acked[0] = self.extra_acked[0].max(excess);
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

    #[test]
    fn the_filter_of_the_draft_covers_one_round_in_startup_and_ten_later() {
        for (full_bw_reached, rounds) in [(false, 1), (true, 10)] {
            let mut extra = ExtraAcked::new(at(0));
            extra.update((at(20), Bytes(20_000)), (0, full_bw_reached), BANDWIDTH, 50e3);
            assert_eq!(extra.allowance(), 20e3);
            let mut round = 0;
            while extra.allowance() > 1000.0 {
                round += 1;
                let acked = (at(100 + u64::from(round)), Bytes(1000));
                extra.update(acked, (round, full_bw_reached), BANDWIDTH, 50e3);
            }
            assert_eq!(round, rounds);
        }
    }
}
