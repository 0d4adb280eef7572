//! RTT estimation and the retransmission timeout (RTO; RFC 6298).

use crate::base::units::{Duration, Time};
use crate::transport::{CachedRtt, Reliability};

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
    /// SRTT that finished flows between the same hosts cached; zero for none.
    cached: Duration,
    /// RTO of the first data, until it gives a sample; zero for that of the estimate.
    first_rto: Duration,
}

/// Returns the RTO of an SRTT and an RTTVAR (RFC 6298 §2.3).
fn rto((smoothed, variation): (Duration, Duration), reliability: &Reliability) -> Duration {
    // With a constant RTT and no minimum margin, the RTO would expire when the ACK arrives.
    let min_margin = reliability.clock_granularity.max(reliability.timer_granularity);
    (smoothed + (variation * 4).max(min_margin)).max(reliability.min_rto)
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
        self.first_rto = Duration::ZERO;
    }

    /// Starts with the SRTT and RTTVAR that finished flows between the same hosts cached.
    pub fn start_with(&mut self, cached: (Duration, Duration), reliability: &Reliability) {
        match reliability.cached_rtt {
            CachedRtt::None => {}
            CachedRtt::Linux => self.cached = cached.0,
            CachedRtt::Rfc9040 => self.estimate = Some(cached),
        }
    }

    /// Updates the SRTT and RTTVAR to cache at the end of a flow.
    pub fn update_cached(
        &self,
        cached: &mut Option<(Duration, Duration)>,
        reliability: &Reliability,
    ) {
        *cached = match (reliability.cached_rtt, self.estimate) {
            (CachedRtt::None, _) => return,
            // The last RTO has had no sample since.
            _ if self.backoff > 0 => None,
            (CachedRtt::Linux, Some((smoothed, variation))) => {
                let excess = cached.map_or(0, |(cached, _)| cached.0.saturating_sub(smoothed.0));
                Some((smoothed + Duration(excess - excess / 8), variation))
            }
            (_, estimate) => estimate,
        };
    }

    /// Returns the smoothed RTT, after the first sample.
    pub fn smoothed(&self) -> Option<Duration> {
        self.estimate.map(|(smoothed, _)| smoothed)
    }

    /// Sets the RTO of the first data at the end of the handshake: that of a cached SRTT (Linux,
    /// `tcp_init_metrics`), or, if lost SYNs left the handshake without a sample, one of its own (RFC 6298
    /// §5.7).
    pub fn on_established(&mut self, reliability: &Reliability) {
        let first_rto = match reliability.syn_fallback_rto {
            _ if self.cached > self.smoothed().unwrap_or_default() => {
                rto((self.cached, self.cached / 2), reliability)
            }
            Some(fallback) if self.estimate.is_none() => reliability.initial_rto.max(fallback),
            _ => return,
        };
        (self.first_rto, self.backoff) = (first_rto, 0);
    }

    /// Doubles the RTO until the next sample (RFC 6298 §5.5).
    pub fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(16);
    }

    /// Ends the back-off: the peer answers, without an RTT sample.
    pub fn end_back_off(&mut self) {
        self.backoff = 0;
    }

    /// Returns the current RTO.
    pub fn timeout(&self, reliability: &Reliability) -> Duration {
        let Reliability { initial_rto, max_rto, .. } = *reliability;
        if let Some(fixed) = reliability.fixed_rto {
            return fixed;
        }
        let base = match self.estimate {
            None if self.first_rto > Duration::ZERO => self.first_rto,
            None => initial_rto,
            Some(estimate) => rto(estimate, reliability).max(self.first_rto),
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

    #[test]
    fn a_cached_rtt_sets_the_rto_of_the_first_data_as_in_linux() {
        // The RTO of an SRTT of 300 ms after its first sample, until data gives a sample.
        let cached = |cached_rtt, cached_ms| {
            let mut rtt = bench(Reliability {
                cached_rtt,
                syn_fallback_rto: Some(MS(3000)),
                ..rtt(Duration::ZERO).reliability
            });
            rtt.estimator.start_with((MS(cached_ms), MS(cached_ms / 4)), &rtt.reliability);
            rtt
        };
        let mut larger = cached(CachedRtt::Linux, 300);
        assert_eq!(larger.timeout(), MS(1000));
        larger.sample(at(0), at(100));
        larger.estimator.on_established(&larger.reliability);
        assert_eq!(larger.timeout(), MS(300 + 4 * 150));
        larger.estimator.back_off();
        assert_eq!(larger.timeout(), MS(2 * 900));
        larger.sample(at(100), at(180));
        // RTTVAR is (3 * 50 + 20) / 4 ms, and SRTT (7 * 100 + 80) / 8 ms.
        assert_eq!(larger.timeout(), Duration::from_micros(97_500 + 4 * 42_500));
        // A smaller one does not count after a sample, but replaces the fallback without one.
        let mut smaller = cached(CachedRtt::Linux, 80);
        smaller.estimator.on_established(&smaller.reliability);
        assert_eq!(smaller.timeout(), MS(80 + 4 * 40));
        smaller.sample(at(0), at(100));
        smaller.estimator.on_established(&smaller.reliability);
        assert_eq!(smaller.timeout(), MS(100 + 4 * 50));
        // RFC 9040: SRTT and RTTVAR are those of the last flow from the SYN on, whether it gives a sample.
        let mut whole = cached(CachedRtt::Rfc9040, 80);
        assert_eq!(whole.timeout(), MS(80 + 4 * 20));
        whole.estimator.on_established(&whole.reliability);
        assert_eq!(whole.timeout(), MS(80 + 4 * 20));
        assert_eq!(cached(CachedRtt::None, 80).timeout(), MS(1000));
    }

    #[test]
    fn flows_update_the_cached_rtt_at_their_end() {
        let update = |cached_rtt, cached_ms: Option<u64>, backoffs: u32| {
            let mut rtt = bench(Reliability { cached_rtt, ..rtt(Duration::ZERO).reliability });
            rtt.sample(at(0), at(80));
            (0..backoffs).for_each(|_| rtt.estimator.back_off());
            let mut cached = cached_ms.map(|ms| (MS(ms), MS(1)));
            rtt.estimator.update_cached(&mut cached, &rtt.reliability);
            cached
        };
        for (cached_rtt, cached_ms, expected) in [
            (CachedRtt::None, Some(160), Some((MS(160), MS(1)))),
            (CachedRtt::Linux, None, Some((MS(80), MS(40)))),
            (CachedRtt::Linux, Some(40), Some((MS(80), MS(40)))),
            // An eighth of the difference.
            (CachedRtt::Linux, Some(160), Some((MS(150), MS(40)))),
            (CachedRtt::Rfc9040, Some(160), Some((MS(80), MS(40)))),
        ] {
            assert_eq!(update(cached_rtt, cached_ms, 0), expected, "{cached_rtt:?} {cached_ms:?}");
        }
        assert_eq!(update(CachedRtt::Linux, Some(160), 1), None);
        let mut cached = Some((MS(160), MS(1)));
        let linux = Reliability { cached_rtt: CachedRtt::Linux, ..defaults() };
        RttEstimator::default().update_cached(&mut cached, &linux);
        assert_eq!(cached, None);
    }
}
