//! How many more acknowledgements come at a time than a bandwidth explains, as Linux's BBR tells
//! (`tcp_bbr.c`).
//!
//! A receiver or a link that collects ACKs sends many at once and then none for a while; a window of the
//! bandwidth-delay product would leave the sender idle meanwhile. So what has come beyond the bandwidth since
//! the ACKs were last no faster than it is added to the window.

use crate::base::units::{Bytes, Duration, Time};

/// The largest excess of each of two spans of so many round trips counts, so that it is of the last five to
/// ten.
const ROUNDS: u32 = 5;
/// It is no more than comes in so long a time.
const MOST: Duration = Duration::from_millis(100);
/// Counting begins anew after so many packets.
const RESET: f64 = (1 << 20) as f64;

/// What is known of the aggregation of ACKs; payload in bytes.
#[derive(Clone, Copy, Debug)]
pub struct AckAggregation {
    reset: f64,
    /// Since when ACKs have come faster than the bandwidth, and how much.
    from: Time,
    acked: f64,
    /// The largest excess in the present span, and in that before.
    most: [f64; 2],
    /// Round trips of the present span.
    rounds: u32,
}

impl AckAggregation {
    /// Nothing is known of a flow of packets of so much payload, which starts now.
    pub fn new(packet: f64, start: Time) -> Self {
        Self { reset: RESET * packet, from: start, acked: 0.0, most: [0.0; 2], rounds: 0 }
    }

    /// Takes in an ACK that tells of so much payload. `bandwidth` is in bytes a second, and no more counts
    /// than the window.
    pub fn learn(
        &mut self,
        now: Time,
        came: Bytes,
        starts_round: bool,
        bandwidth: f64,
        window: f64,
    ) {
        self.rounds += u32::from(starts_round);
        if self.rounds >= ROUNDS {
            self.rounds = 0;
            self.most = [0.0, self.most[0]];
        }
        let mut expected = bandwidth * (now - self.from).seconds();
        let came = came.0 as f64;
        if self.acked <= expected || self.acked + came >= self.reset {
            (self.from, self.acked, expected) = (now, 0.0, 0.0);
        }
        self.acked += came;
        self.most[0] = self.most[0].max((self.acked - expected).min(window));
    }

    /// How much more to let be in flight.
    pub fn allowance(&self, bandwidth: f64) -> f64 {
        self.most[0].max(self.most[1]).min(bandwidth * MOST.seconds())
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::float_cmp, reason = "whole numbers of bytes are exact")]

    use super::*;

    /// A packet of 1000 B in a millisecond.
    const BANDWIDTH: f64 = 1e6;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    /// ACKs for so many packets every so many milliseconds until then, within a window of 50 packets.
    fn heard(packets: u64, every_ms: u64, until_ms: u64) -> AckAggregation {
        let mut aggregation = AckAggregation::new(1000.0, at(0));
        for ms in (every_ms..=until_ms).step_by(every_ms as usize) {
            aggregation.learn(at(ms), Bytes(1000 * packets), false, BANDWIDTH, 50e3);
        }
        aggregation
    }

    #[test]
    fn acks_at_the_bandwidth_one_by_one_allow_a_packet() {
        assert_eq!(heard(1, 1, 300).allowance(BANDWIDTH), 1000.0);
    }

    #[test]
    fn what_comes_at_once_is_allowed_up_to_the_window_and_what_comes_in_a_tenth_of_a_second() {
        assert_eq!(heard(20, 20, 300).allowance(BANDWIDTH), 20e3);
        assert_eq!(heard(80, 80, 300).allowance(BANDWIDTH), 50e3, "the window");
        assert_eq!(heard(20, 20, 300).allowance(1e5), 10e3, "100 ms of a tenth of the bandwidth");
    }

    #[test]
    fn acks_that_are_faster_than_the_bandwidth_add_up() {
        // Twice as fast for 10 ms: ten more than that one.
        let mut aggregation = heard(1, 1, 100);
        for half_ms in 201..221 {
            let now = Time::ZERO + Duration::from_micros(500 * half_ms);
            aggregation.learn(now, Bytes(1000), false, BANDWIDTH, 50e3);
        }
        assert_eq!(aggregation.allowance(BANDWIDTH), 11e3);
    }

    #[test]
    fn an_excess_counts_for_five_to_ten_round_trips() {
        let mut aggregation = heard(20, 20, 20);
        let mut counts = 0;
        while aggregation.allowance(BANDWIDTH) > 1000.0 {
            aggregation.learn(at(100 + counts), Bytes(1000), true, BANDWIDTH, 50e3);
            counts += 1;
        }
        assert_eq!(counts, 10);
    }
}
