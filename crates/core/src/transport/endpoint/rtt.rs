//! RTT estimation and the retransmission timeout (RTO; RFC 6298).

use crate::base::units::{Duration, Time};
use crate::transport::Reliability;

/// Returns the smoothed RTT after a new sample (RFC 6298 §2.3, alpha = 1/8).
pub fn smooth(smoothed: Option<Duration>, rtt: Duration) -> Duration {
    smoothed.map_or(rtt, |smoothed| (smoothed * 7 + rtt) / 8)
}

/// RTT estimator of one sender.
#[derive(Clone, Debug, Default)]
pub struct RttEstimator {
    /// SRTT and RTTVAR.
    estimate: Option<(Duration, Duration)>,
    /// Doublings of the RTO since the last sample.
    backoff: u32,
    /// True if SYNs were lost and the handshake gave no sample.
    has_syn_fallback: bool,
}

impl RttEstimator {
    /// Adds the sample of a segment sent at `sent` and acknowledged at `now`, measured by a clock with
    /// the given granularity.
    pub fn add_sample(&mut self, sent: Time, now: Time, clock_granularity: Duration) {
        let rtt = match clock_granularity {
            Duration::ZERO => now.since(sent),
            Duration(tick) => Duration((now.0 / tick - sent.0 / tick).max(1) * tick),
        };
        // RFC 6298 §2.2 and §2.3, beta = 1/4.
        self.estimate = Some(match self.estimate {
            None => (rtt, rtt / 2),
            Some((smoothed, variation)) => {
                let error = Duration(smoothed.0.abs_diff(rtt.0));
                (smooth(Some(smoothed), rtt), (variation * 3 + error) / 4)
            }
        });
        self.backoff = 0;
    }

    /// Returns the smoothed RTT, after the first sample.
    pub fn smoothed(&self) -> Option<Duration> {
        self.estimate.map(|(smoothed, _)| smoothed)
    }

    /// Records the end of a handshake without a sample. RFC 6298 §5.7: data starts with an RTO of its own.
    pub fn fall_back(&mut self, reliability: &Reliability) {
        if reliability.syn_fallback_rto.is_some() {
            (self.has_syn_fallback, self.backoff) = (true, 0);
        }
    }

    /// Doubles the RTO until the next sample (RFC 6298 §5.5).
    pub fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(16);
    }

    /// Returns the current RTO.
    pub fn timeout(&self, reliability: &Reliability) -> Duration {
        let Reliability { initial_rto, min_rto, max_rto, clock_granularity, .. } = *reliability;
        if let Some(fixed) = reliability.fixed_rto {
            return fixed;
        }
        let base = match self.estimate {
            None if self.has_syn_fallback => {
                initial_rto.max(reliability.syn_fallback_rto.unwrap_or_default())
            }
            None => initial_rto,
            Some((smoothed, variation)) => {
                // With a constant RTT and no minimum margin, the RTO would expire when the ACK
                // arrives.
                let min_margin = reliability.timer_granularity;
                let margin = (variation * 4).max(clock_granularity).max(min_margin);
                (smoothed + margin).max(min_rto)
            }
        };
        Duration((base.0 << self.backoff).min(max_rto.0.max(base.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::defaults;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// Estimator with the parameters of a sender.
    struct Bench {
        estimator: RttEstimator,
        reliability: Reliability,
    }

    impl Bench {
        fn sample(&mut self, sent: Time, now: Time) {
            self.estimator.add_sample(sent, now, self.reliability.clock_granularity);
        }

        fn timeout(&self) -> Duration {
            self.estimator.timeout(&self.reliability)
        }
    }

    fn bench(reliability: Reliability) -> Bench {
        Bench { estimator: RttEstimator::default(), reliability }
    }

    fn rtt(clock_granularity: Duration) -> Bench {
        bench(Reliability {
            initial_rto: MS(1000),
            min_rto: MS(10),
            max_rto: MS(4000),
            clock_granularity,
            ..defaults()
        })
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + MS(ms)
    }

    #[test]
    fn follows_rfc_6298() {
        let mut rtt = rtt(Duration::ZERO);
        assert_eq!(rtt.timeout(), MS(1000));
        rtt.sample(at(0), at(80));
        assert_eq!(rtt.timeout(), MS(80 + 4 * 40));
        rtt.sample(at(3), at(163));
        assert_eq!(rtt.timeout(), MS(90 + 4 * 50));
        rtt.estimator.back_off();
        assert_eq!(rtt.timeout(), MS(2 * 290));
        (0..20).for_each(|_| rtt.estimator.back_off());
        assert_eq!(rtt.timeout(), MS(4000));
        (0..200).for_each(|_| rtt.sample(at(5), at(6)));
        assert_eq!(rtt.timeout(), MS(10));
    }

    #[test]
    fn the_rto_exceeds_a_constant_rtt() {
        let mut rtt = rtt(Duration::ZERO);
        (0..200).for_each(|_| rtt.sample(at(0), at(300)));
        assert_eq!(rtt.timeout(), MS(300 + 1));
    }

    #[test]
    fn a_fixed_rto_ignores_samples_and_backoff() {
        let mut rtt = bench(Reliability { fixed_rto: Some(MS(7)), ..defaults() });
        rtt.sample(at(0), at(300));
        rtt.estimator.back_off();
        assert_eq!(rtt.timeout(), MS(7));
    }

    #[test]
    fn a_coarse_clock_measures_whole_ticks_and_at_least_one() {
        let mut rtt = rtt(MS(100));
        // From tick 0 to tick 2. Shorter RTTs below count as one tick.
        rtt.sample(at(90), at(210));
        assert_eq!(rtt.timeout(), MS(200 + 4 * 100));
        let mut rtt = tests::rtt(MS(100));
        (0..200).for_each(|_| rtt.sample(at(5), at(6)));
        assert_eq!(rtt.timeout(), MS(100 + 100));
    }
}
