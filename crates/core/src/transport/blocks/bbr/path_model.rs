//! BBR's model of the path, with its maximum bandwidth and minimum RTT, and the resulting pacing rate and
//! window.
//!
//! Sources: [bbr16] and [bbr26], as far as they agree. Each version of BBR has its own state machine for
//! probing, and its own limits on inflight.

use super::delivery_rate::{DeliveryRate, FullPipe, RateSample};
use super::max_filter::MaxFilter;
use super::window::BbrWindow;
use crate::base::units::{Duration, Rate, Time};
use crate::transport::{Ack, CongestionSignal, Loss, Opened, Path};

/// Bounds of a send quantum ([bbr26], `SetSendQuantum`): its time at the pacing rate, and its size.
const QUANTUM_TIME: Duration = Duration::from_millis(1);
const MAX_QUANTUM: f64 = 65_536.0;
const MIN_QUANTUM_PACKETS: f64 = 2.0;

/// Windowed minimum RTT.
#[derive(Clone, Copy, Debug)]
pub struct MinRtt {
    rtt: Option<Duration>,
    /// Time of the sample; before the first sample, the time from which its age counts.
    stamp: Time,
}

impl MinRtt {
    /// No sample yet; the age counts from `since`.
    pub fn unknown_since(since: Time) -> Self {
        Self { rtt: None, stamp: since }
    }

    /// RTT sample taken at this time.
    pub fn sample(rtt: Duration, at: Time) -> Self {
        Self { rtt: Some(rtt), stamp: at }
    }

    /// The minimum RTT; zero before the first sample.
    pub fn rtt(&self) -> Duration {
        self.rtt.unwrap_or_default()
    }

    /// Replaces the minimum if the sample is lower or the minimum expired. Returns true if it expired.
    pub fn update(&mut self, sample: Self, now: Time, window: Duration) -> bool {
        let is_expired = now.since(self.stamp) > window;
        if is_expired || self.rtt.is_none_or(|min_rtt| sample.rtt() < min_rtt) {
            *self = sample;
        }
        is_expired
    }

    /// Restarts the age of the minimum.
    pub fn refresh(&mut self, now: Time) {
        self.stamp = now;
    }
}

/// Path model of a flow, with its window and pacing rate; payload in bytes.
pub struct PathModel {
    /// Payload of a packet.
    pub packet: f64,
    /// Delivery-rate estimator.
    pub delivery: DeliveryRate,
    /// Congestion window and pacing rate.
    pub window: BbrWindow,
    /// Maximum filter of delivery rates, in bytes per second, and its length in steps of the version's clock.
    max_bw_filter: MaxFilter<u32, f64>,
    filter_len: u32,
    /// Full-pipe estimator.
    pub full_pipe: FullPipe,
    /// True once the pipe has been full.
    pub full_bw_reached: bool,
    /// Estimate of the path's RTT without queueing.
    pub min_rtt: MinRtt,
}

impl PathModel {
    /// Model of a new flow. The bandwidth is the maximum over `filter_len` steps of the version's clock.
    pub fn new(path: &Path, window: BbrWindow, full_pipe: FullPipe, filter_len: u32) -> Self {
        Self {
            packet: path.format.payload.0 as f64,
            delivery: DeliveryRate::new(path),
            window,
            max_bw_filter: MaxFilter::default(),
            filter_len,
            full_pipe,
            full_bw_reached: false,
            min_rtt: MinRtt::unknown_since(path.start),
        }
    }

    /// Bandwidth in bytes per second; 0 before the first sample.
    pub fn bandwidth(&self) -> f64 {
        self.max_bw_filter.max().unwrap_or(0.0)
    }

    /// Estimate of the path's RTT without queueing.
    pub fn rtt(&self) -> Duration {
        self.min_rtt.rtt()
    }

    /// Sets the pacing rate to `gain` initial windows per RTT of the handshake.
    pub fn on_open(&mut self, opened: &Opened, gain: f64) {
        self.window.init_pacing_rate(gain, opened.rtt);
        self.min_rtt = MinRtt::sample(opened.rtt, opened.now);
        if opened.syn_was_lost {
            self.window.set_one_packet();
        }
    }

    /// Handles an ACK of new data.
    pub fn on_ack(&mut self, ack: &Ack) -> Option<RateSample> {
        let min_rtt = self.rtt().min(ack.rtt);
        self.delivery.on_ack(ack, min_rtt)
    }

    /// Adds the rate of a sample to the maximum filter, at a step of the version's clock. An
    /// application-limited sample counts only if it does not lower the bandwidth.
    pub fn update_max_bw(&mut self, sample: &RateSample, step: u32) {
        if let Some(rate) = sample.rate
            && (!sample.is_app_limited || rate >= self.bandwidth())
        {
            self.max_bw_filter.add(step, rate, |time| step - time >= self.filter_len);
        }
    }

    /// Sets the pacing rate to `rate` bytes per second less the margin, and restores the window if this ACK
    /// ends loss recovery.
    pub fn set_pacing_rate(&mut self, ack: &Ack, rate: f64, margin: f64) {
        self.window.set_pacing_rate(rate * (1.0 - margin), self.full_bw_reached);
        self.window.on_ack(ack);
    }

    /// Moves the window towards `target`.
    pub fn set_cwnd(&mut self, ack: &Ack, target: f64) {
        self.window.update_cwnd(ack, target, self.full_bw_reached, &self.delivery);
    }

    /// Returns the data in flight that fill the send and receive offload of both hosts, as a number of send
    /// quanta.
    pub fn offload_budget(&self, quanta: u32) -> f64 {
        let quantum = (self.window.pacing_rate() * QUANTUM_TIME.seconds()).min(MAX_QUANTUM);
        f64::from(quanta) * quantum.max(MIN_QUANTUM_PACKETS * self.packet)
    }

    /// Handles a loss.
    pub fn on_loss(&mut self, loss: &Loss, is_probing_rtt: bool) {
        self.window.on_loss(loss, is_probing_rtt);
        if loss.signal == CongestionSignal::Timeout {
            self.delivery.on_timeout();
        }
    }

    /// Values for traces.
    pub fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("window_bytes", self.window.cwnd()),
            ("rate_bps", self.window.allowance().rate.map_or(0.0, Rate::bps)),
            ("bandwidth_bps", self.bandwidth() * 8.0),
            ("min_rtt_s", self.rtt().seconds()),
        ]
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::float_cmp, reason = "stored values are returned unchanged")]

    use super::*;
    use crate::transport::fixture::{SAMPLE, path};

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn the_minimum_rtt_changes_to_a_lower_sample_and_to_any_sample_once_expired() {
        let window = Duration::from_millis(100);
        let mut min_rtt = MinRtt::unknown_since(at(0));
        assert_eq!(min_rtt.rtt(), Duration::ZERO);
        for (now, rtt, expected, is_expired) in [
            (10, 7, 7, false),
            (20, 9, 7, false),
            (110, 8, 7, false),
            (111, 9, 9, true),
            (211, 8, 8, false),
            (311, 8, 8, false),
        ] {
            let (now, rtt) = (at(now), Duration::from_millis(rtt));
            assert_eq!(
                min_rtt.update(MinRtt::sample(rtt, now), now, window),
                is_expired,
                "{now:?}"
            );
            assert_eq!(min_rtt.rtt(), Duration::from_millis(expected));
        }
        min_rtt.refresh(at(311));
        let later = MinRtt::sample(Duration::from_millis(9), at(400));
        assert!(!min_rtt.update(later, at(400), window), "the age was reset");
        assert!(MinRtt::unknown_since(at(0)).update(later, at(101), window), "unknown for longer");
    }

    #[test]
    fn an_app_limited_sample_does_not_lower_the_bandwidth() {
        let window = BbrWindow::new(&path(), 10, 4, 2.0);
        let mut model = PathModel::new(&path(), window, FullPipe::new(1.25, 3), 2);
        let sample =
            |rate, is_app_limited| RateSample { rate: Some(rate), is_app_limited, ..SAMPLE };
        for (step, rate, is_app_limited, expected) in [
            (0, 5.0, false, 5.0),
            (1, 3.0, true, 5.0),
            (2, 7.0, true, 7.0),
            (3, 4.0, false, 7.0),
            (4, 2.0, false, 4.0),
        ] {
            model.update_max_bw(&sample(rate, is_app_limited), step);
            assert_eq!(model.bandwidth(), expected, "in step {step}");
        }
    }
}
