//! A model of a path's bottleneck, of its bandwidth and its round-trip time, and the throttle that obeys it.
//!
//! Sources: [bbr16] and [bbr26], as far as they agree. When a flow looks for more bandwidth, and how much it
//! lets be in flight, each version decides for itself.

use super::delivery_rate::{DeliveryRate, FullPipe, Sample};
use super::max_filter::MaxFilter;
use super::window::BbrWindow;
use crate::base::units::{Duration, Rate, Time};
use crate::transport::{Ack, CongestionSignal, Loss, Opened, Path};

/// The least round-trip time of late.
#[derive(Clone, Copy, Debug)]
pub struct LeastRtt {
    rtt: Option<Duration>,
    /// When it was seen; until then, since when it is missed.
    at: Time,
}

impl LeastRtt {
    /// None has been seen, and it is missed from this time on.
    pub fn missed(from: Time) -> Self {
        Self { rtt: None, at: from }
    }

    /// This one has been seen.
    pub fn seen(rtt: Duration, at: Time) -> Self {
        Self { rtt: Some(rtt), at }
    }

    /// The round-trip time, or nothing if none has been seen.
    pub fn rtt(&self) -> Duration {
        self.rtt.unwrap_or_default()
    }

    /// Gives way to one that is less, and to any after so long a time; says whether it was as old as that.
    pub fn give_way(&mut self, other: Self, now: Time, lasts: Duration) -> bool {
        let is_old = now.since(self.at) > lasts;
        if is_old || self.rtt.is_none_or(|least| other.rtt() < least) {
            *self = other;
        }
        is_old
    }

    /// Counts as if it were seen now.
    pub fn renew(&mut self, now: Time) {
        self.at = now;
    }
}

/// What a flow knows of the bottleneck, and what it sends accordingly; payload in bytes.
pub struct PathModel {
    /// Payload of a packet.
    pub packet: f64,
    /// How data comes through.
    pub delivery: DeliveryRate,
    /// The window and the pace.
    pub throttle: BbrWindow,
    /// Delivery rates in bytes a second, by a clock of the version, and over how many of its steps.
    bandwidth: MaxFilter<u32, f64>,
    steps: u32,
    /// Whether the bandwidth has stopped growing.
    pub plateau: FullPipe,
    /// Whether it has ever done so.
    pub has_been_full: bool,
    /// The round-trip time of the path itself.
    pub least_rtt: LeastRtt,
}

impl PathModel {
    /// Nothing is known. Of the delivery rates of so many steps of the version's clock the largest counts.
    pub fn new(path: &Path, throttle: BbrWindow, plateau: FullPipe, steps: u32) -> Self {
        Self {
            packet: path.format.payload.0 as f64,
            delivery: DeliveryRate::new(path),
            throttle,
            bandwidth: MaxFilter::default(),
            steps,
            plateau,
            has_been_full: false,
            least_rtt: LeastRtt::missed(path.start),
        }
    }

    /// The bandwidth in bytes a second; 0 until it is known.
    pub fn bandwidth(&self) -> f64 {
        self.bandwidth.largest().unwrap_or(0.0)
    }

    /// The round-trip time of the path itself.
    pub fn rtt(&self) -> Duration {
        self.least_rtt.rtt()
    }

    /// Begins with a pace of `gain` initial windows in the round trip of the handshake.
    pub fn on_open(&mut self, opened: &Opened, gain: f64) {
        self.throttle.begin(gain, opened.rtt);
        self.least_rtt = LeastRtt::seen(opened.rtt, opened.now);
        if opened.syn_was_lost {
            self.throttle.shrink();
        }
    }

    /// New data has been acknowledged.
    pub fn on_ack(&mut self, ack: &Ack) -> Option<Sample> {
        let least = self.rtt().min(ack.rtt);
        self.delivery.on_ack(ack, least)
    }

    /// Takes in the rate of a sample, at a step of the version's clock. What the sender has limited itself
    /// shows no more than that there is at least so much.
    pub fn learn(&mut self, sample: &Sample, step: u32) {
        if let Some(rate) = sample.rate
            && (!sample.is_limited || rate >= self.bandwidth())
        {
            self.bandwidth.add(step, rate, |then| step - then >= self.steps);
        }
    }

    /// Paces at a rate in bytes a second, less a margin, and restores the window if a repair waited for this
    /// ACK.
    pub fn pace(&mut self, ack: &Ack, rate: f64, margin: f64) {
        self.throttle.pace(rate * (1.0 - margin), self.has_been_full);
        self.throttle.on_ack(ack);
    }

    /// Opens the window towards its aim.
    pub fn open(&mut self, ack: &Ack, aim: f64) {
        self.throttle.open(ack, aim, self.has_been_full, &self.delivery);
    }

    /// Something was lost.
    pub fn on_loss(&mut self, loss: &Loss, is_paused: bool) {
        self.throttle.on_loss(loss, is_paused);
        if loss.sign == CongestionSignal::Timeout {
            self.delivery.on_timeout();
        }
    }

    /// Numbers for traces.
    pub fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("window_bytes", self.throttle.window()),
            ("rate_bps", self.throttle.allowance().rate.map_or(0.0, Rate::bps)),
            ("bandwidth_bps", self.bandwidth() * 8.0),
            ("min_rtt_s", self.rtt().seconds()),
        ]
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::float_cmp, reason = "what goes in comes out")]

    use super::*;
    use crate::transport::fixture::{SAMPLE, path};

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn the_least_round_trip_time_gives_way_to_a_lesser_and_to_any_when_it_is_old() {
        let lasts = Duration::from_millis(100);
        let mut least = LeastRtt::missed(at(0));
        assert_eq!(least.rtt(), Duration::ZERO);
        for (now, rtt, kept, is_old) in [
            (10, 7, 7, false),
            (20, 9, 7, false),
            (110, 8, 7, false),
            (111, 9, 9, true),
            (211, 8, 8, false),
            (311, 8, 8, false),
        ] {
            let (now, rtt) = (at(now), Duration::from_millis(rtt));
            assert_eq!(least.give_way(LeastRtt::seen(rtt, now), now, lasts), is_old, "{now:?}");
            assert_eq!(least.rtt(), Duration::from_millis(kept));
        }
        least.renew(at(311));
        let later = LeastRtt::seen(Duration::from_millis(9), at(400));
        assert!(!least.give_way(later, at(400), lasts), "it was renewed");
        assert!(LeastRtt::missed(at(0)).give_way(later, at(101), lasts), "missed for so long");
    }

    #[test]
    fn a_sender_that_held_back_shows_no_less_bandwidth_than_is_known() {
        let throttle = BbrWindow::new(&path(), 10, 4, 2.0);
        let mut model = PathModel::new(&path(), throttle, FullPipe::new(1.25, 3), 2);
        let sample = |rate, is_limited| Sample { rate: Some(rate), is_limited, ..SAMPLE };
        for (step, rate, is_limited, known) in [
            (0, 5.0, false, 5.0),
            (1, 3.0, true, 5.0),
            (2, 7.0, true, 7.0),
            (3, 4.0, false, 7.0),
            (4, 2.0, false, 4.0),
        ] {
            model.learn(&sample(rate, is_limited), step);
            assert_eq!(model.bandwidth(), known, "in step {step}");
        }
    }
}
