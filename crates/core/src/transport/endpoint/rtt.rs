//! The retransmission time-out (RFC 6298).

use crate::base::units::{Duration, Time};
use crate::transport::Reliability;

/// The smoothed round-trip time after a new sample (RFC 6298 §2.3, alpha = 1/8).
pub fn smooth(smoothed: Option<Duration>, rtt: Duration) -> Duration {
    smoothed.map_or(rtt, |smoothed| (smoothed * 7 + rtt) / 8)
}

/// Smoothed round-trip time and what follows from it.
#[derive(Clone, Debug, Default)]
pub struct Rtt {
    smoothed: Option<(Duration, Duration)>,
    backoff: u32,
}

impl Rtt {
    /// Takes in that what was sent at one time was acknowledged at another, as a clock with ticks sees
    /// it.
    pub fn sample(&mut self, sent: Time, now: Time, clock_granularity: Duration) {
        let rtt = match clock_granularity {
            Duration::ZERO => now.since(sent),
            Duration(tick) => Duration((now.0 / tick - sent.0 / tick).max(1) * tick),
        };
        // RFC 6298 §2.2 and §2.3, beta = 1/4.
        self.smoothed = Some(match self.smoothed {
            None => (rtt, rtt / 2),
            Some((smoothed, variation)) => {
                let error = Duration(smoothed.0.abs_diff(rtt.0));
                (smooth(Some(smoothed), rtt), (variation * 3 + error) / 4)
            }
        });
        self.backoff = 0;
    }

    /// The smoothed round-trip time, once there was a sample.
    pub fn smoothed(&self) -> Option<Duration> {
        self.smoothed.map(|(smoothed, _)| smoothed)
    }

    /// Doubles the time-out until the next sample (RFC 6298 §5.5).
    pub fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(16);
    }

    /// The time-out now in force.
    pub fn timeout(&self, reliability: &Reliability) -> Duration {
        let Reliability { initial_rto, min_rto, max_rto, clock_granularity, .. } = *reliability;
        if let Some(fixed) = reliability.fixed_rto {
            return fixed;
        }
        let plain = match self.smoothed {
            None => initial_rto,
            Some((smoothed, variation)) => {
                // Without a least margin the time-out of a steady path would run out as the very ACK comes.
                let least = reliability.timer_granularity;
                let margin = (variation * 4).max(clock_granularity).max(least);
                (smoothed + margin).max(min_rto)
            }
        };
        Duration((plain.0 << self.backoff).min(max_rto.0.max(plain.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::defaults;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// As a sender has it.
    struct Timed {
        rtt: Rtt,
        reliability: Reliability,
    }

    impl Timed {
        fn sample(&mut self, sent: Time, now: Time) {
            self.rtt.sample(sent, now, self.reliability.clock_granularity);
        }

        fn timeout(&self) -> Duration {
            self.rtt.timeout(&self.reliability)
        }
    }

    fn timed(reliability: Reliability) -> Timed {
        Timed { rtt: Rtt::default(), reliability }
    }

    fn rtt(clock_granularity: Duration) -> Timed {
        timed(Reliability {
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
    fn it_follows_rfc_6298() {
        let mut rtt = rtt(Duration::ZERO);
        assert_eq!(rtt.timeout(), MS(1000));
        rtt.sample(at(0), at(80));
        assert_eq!(rtt.timeout(), MS(80 + 4 * 40));
        rtt.sample(at(3), at(163));
        assert_eq!(rtt.timeout(), MS(90 + 4 * 50));
        rtt.rtt.back_off();
        assert_eq!(rtt.timeout(), MS(2 * 290));
        (0..20).for_each(|_| rtt.rtt.back_off());
        assert_eq!(rtt.timeout(), MS(4000));
        (0..200).for_each(|_| rtt.sample(at(5), at(6)));
        assert_eq!(rtt.timeout(), MS(10));
    }

    #[test]
    fn the_time_out_of_a_steady_path_is_later_than_its_acks() {
        let mut rtt = rtt(Duration::ZERO);
        (0..200).for_each(|_| rtt.sample(at(0), at(300)));
        assert_eq!(rtt.timeout(), MS(300 + 1));
    }

    #[test]
    fn a_fixed_time_out_follows_nothing() {
        let mut rtt = timed(Reliability { fixed_rto: Some(MS(7)), ..defaults() });
        rtt.sample(at(0), at(300));
        rtt.rtt.back_off();
        assert_eq!(rtt.timeout(), MS(7));
    }

    #[test]
    fn a_coarse_clock_sees_whole_ticks_and_adds_one() {
        let mut rtt = rtt(MS(100));
        // From tick 0 to tick 2; then, however short, a tick.
        rtt.sample(at(90), at(210));
        assert_eq!(rtt.timeout(), MS(200 + 4 * 100));
        let mut rtt = tests::rtt(MS(100));
        (0..200).for_each(|_| rtt.sample(at(5), at(6)));
        assert_eq!(rtt.timeout(), MS(100 + 100));
    }
}
