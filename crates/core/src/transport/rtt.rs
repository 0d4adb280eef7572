//! The retransmission time-out (RFC 6298).

use crate::units::Duration;

/// Smoothed round-trip time and what follows from it.
#[derive(Clone, Debug)]
pub struct Rtt {
    smoothed: Option<(Duration, Duration)>,
    initial: Duration,
    least: Duration,
    most: Duration,
    backoff: u32,
}

impl Rtt {
    /// No samples yet: the time-out is `initial`; later it stays from `least` to `most`.
    pub fn new(initial: Duration, least: Duration, most: Duration) -> Self {
        Self { smoothed: None, initial, least, most, backoff: 0 }
    }

    /// Takes a sample in. Samples come from echoed time stamps, so those of retransmitted segments
    /// are as good as any (RFC 7323 §4) and Karn's rule has nothing to do.
    pub fn sample(&mut self, rtt: Duration) {
        // RFC 6298 §2.2 and §2.3, alpha = 1/8 and beta = 1/4.
        self.smoothed = Some(match self.smoothed {
            None => (rtt, rtt / 2),
            Some((smoothed, variation)) => {
                let error = Duration(smoothed.0.abs_diff(rtt.0));
                ((smoothed * 7 + rtt) / 8, (variation * 3 + error) / 4)
            }
        });
        self.backoff = 0;
    }

    /// Doubles the time-out until the next sample (RFC 6298 §5.5).
    pub fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(16);
    }

    /// The time-out now in force.
    pub fn timeout(&self) -> Duration {
        let plain = match self.smoothed {
            None => self.initial,
            Some((smoothed, variation)) => (smoothed + variation * 4).max(self.least),
        };
        Duration((plain.0 << self.backoff).min(self.most.0.max(plain.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_rfc_6298() {
        let ms = Duration::from_millis;
        let mut rtt = Rtt::new(ms(1000), ms(10), ms(4000));
        assert_eq!(rtt.timeout(), ms(1000));
        rtt.sample(ms(80));
        assert_eq!(rtt.timeout(), ms(80 + 4 * 40));
        rtt.sample(ms(160));
        assert_eq!(rtt.timeout(), ms(90 + 4 * 50));
        rtt.back_off();
        assert_eq!(rtt.timeout(), ms(2 * 290));
        (0..20).for_each(|_| rtt.back_off());
        assert_eq!(rtt.timeout(), ms(4000));
        (0..200).for_each(|_| rtt.sample(ms(1)));
        assert_eq!(rtt.timeout(), ms(10));
    }
}
