//! BBR version 1: paces at a model of the path's bandwidth and minimum RTT, not at losses ([bbr16]).
//!
//! Details that [bbr16] leaves open follow Linux's `tcp_bbr.c`. The pacing rate is the maximum delivery rate
//! of recent rounds; one RTT in eight is paced at 1.25 times that rate, to probe for more bandwidth. The
//! window is two bandwidth-delay products. So several flows, each of which overestimates the bandwidth, keep
//! about one bandwidth-delay product in the queue.
//!
//! Left out: windows of an even number of packets, which serve receivers that delay ACKs; and restarts from
//! idle at the bandwidth, without the gain of the cycle.

use super::{
    Ack, Allowance, CongestionSignal, Controller, Loss, Mechanism, Opened, PacingPolicy, Path,
    Reliability, Transport,
};
use crate::base::random::Random;
use crate::base::schema::{
    above_one, at_least_one, below_one, not_negative, positive, proper_fraction,
};
use crate::base::units::{Bytes, Duration, Time};
use crate::model::packet::Format;
use crate::transport::blocks::bbr::ack_aggregation::AckAggregation;
use crate::transport::blocks::bbr::delivery_rate::{FullPipe, RateSample};
use crate::transport::blocks::bbr::path_model::{MinRtt, PathModel};
use crate::transport::blocks::bbr::policer::{Policer, PolicerSample};
use crate::transport::blocks::bbr::window::{BbrWindow, ProbeRtt};

/// Phases of the `ProbeBW` gain cycle: the first probes, the second drains the queue of the probe.
const CYCLE_LEN: u64 = 8;

crate::parameters! {
    /// BBR version 1: paces at the maximum delivery rate of the last ten rounds, with at most two
    /// bandwidth-delay products in flight, and does not react to losses ([bbr16]).
    pub struct Config {
        /// Initial window, in packets (RFC 6928: 10).
        pub initial_window: u32 = 10, where positive;
        /// Pacing and window gain in Startup ([bbr16]: 2/ln 2). Drain paces at the inverse.
        pub startup_gain: f64 = 2.885, where above_one;
        /// The pipe is full if the bandwidth grows by less than this factor ([bbr16]: 1.25) ...
        pub full_growth: f64 = 1.25, where above_one;
        /// ... in this number of rounds ([bbr16]: 3).
        pub full_rounds: u32 = 3, where positive;
        /// Pacing gain while probing for bandwidth ([bbr16]: 1.25).
        pub probe_gain: f64 = 1.25, where above_one;
        /// Pacing gain after a probe, to drain its queue ([bbr16]: 0.75).
        pub drain_gain: f64 = 0.75, where proper_fraction;
        /// Window gain outside Startup ([bbr16]: 2).
        pub window_gain: f64 = 2.0, where at_least_one;
        /// Pacing margin: fraction by which the pacing rate is below the bandwidth (Linux: 1 %).
        pub margin: f64 = 0.01, where below_one;
        /// Packets added to the window beyond the bandwidth-delay product (Linux: 3 send quanta; here
        /// a quantum is one packet).
        pub quanta: f64 = 3.0, where not_negative;
        /// Length of the bandwidth's maximum filter, in rounds ([bbr16]: 10).
        pub bandwidth_rounds: u32 = 10, where positive;
        /// Lifetime of a minimum RTT sample; then `ProbeRTT` measures a new one ([bbr16]: 10 s).
        pub min_rtt_window: Duration = Duration::from_millis(10_000), where positive;
        /// If true, an RTT sample equal to the minimum renews its age (Linux before 5.10: true; [bbr16] and
        /// Linux since then: false, only a lower sample does).
        pub renew_min_rtt: bool = false;
        /// Duration of `ProbeRTT`, in which the window is `min_window` ([bbr16]: 200 ms).
        pub probe_rtt_duration: Duration = Duration::from_millis(200), where positive;
        /// Minimum window, and window in `ProbeRTT`, in packets ([bbr16]: 4).
        pub min_window: u32 = 4, where positive;
        /// If true, detects policers: a rate seen twice with 20 % loss is used for 48 rounds (Linux:
        /// true; own choice: false, since [bbr16] does not describe it).
        pub policer: bool = false;
        /// If true, adds `extra_acked` to the window once the pipe was full: the data recently
        /// acknowledged beyond the bandwidth, at most 100 ms of it (Linux: true; own choice: false,
        /// since [bbr16] does not describe it).
        pub aggregation: bool = false;
        /// Number of packets sent without pacing at the start (Linux: 10; own choice: 0).
        pub unpaced: u32 = 0;
        /// Number of packets sent back to back (own choice: 1).
        pub burst: u32 = 1, where positive;
        /// Loss recovery and retransmission timeouts.
        pub reliability: Reliability = Reliability::internet();
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        Box::new(self.open(path))
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        Mechanism {
            pacing: Some(PacingPolicy { burst: self.burst, spacing: None, unpaced: self.unpaced }),
            ..Mechanism::paced_window(&self.reliability)
        }
    }
}

impl Config {
    /// State of a flow that starts on `path`.
    fn open(&self, path: &Path) -> Bbr {
        let window = BbrWindow::new(path, self.initial_window, self.min_window, self.startup_gain);
        let full_pipe = FullPipe::new(self.full_growth, self.full_rounds);
        Bbr {
            config: self.clone(),
            model: PathModel::new(path, window, full_pipe, self.bandwidth_rounds),
            mode: Mode::Startup,
            cycle_start: path.start,
            packet_conservation: false,
            policer: Policer::default(),
            aggregation: self
                .aggregation
                .then(|| Box::new(AckAggregation::new(path.format.payload.0 as f64, path.start))),
            random: Random::new(path.seed, "transport/bbr"),
        }
    }
}

/// State of BBR's state machine.
#[derive(Clone, Copy, Debug)]
enum Mode {
    /// Probes for bandwidth by doubling the rate every round.
    Startup,
    /// Drains the queue of Startup.
    Drain,
    /// Phase of the gain cycle.
    ProbeBw(u64),
    /// Measures the minimum RTT.
    ProbeRtt(ProbeRtt),
}

/// State of one flow; payload in bytes.
struct Bbr {
    config: Config,
    /// Its clock counts rounds.
    model: PathModel,
    mode: Mode,
    cycle_start: Time,
    /// True in the first round of loss recovery.
    packet_conservation: bool,
    /// Used only if configured.
    policer: Policer,
    /// Boxed, since most flows do not use it.
    aggregation: Option<Box<AckAggregation>>,
    random: Random,
}

impl Bbr {
    /// Pacing gain and window gain.
    fn gains(&self) -> (f64, f64) {
        let Config { startup_gain, probe_gain, drain_gain, window_gain, .. } = self.config;
        match self.mode {
            Mode::Startup => (startup_gain, startup_gain),
            Mode::Drain => (1.0 / startup_gain, startup_gain),
            Mode::ProbeBw(_) if self.policer.rate().is_some() => (1.0, window_gain),
            Mode::ProbeBw(0) => (probe_gain, window_gain),
            Mode::ProbeBw(1) => (drain_gain, window_gain),
            Mode::ProbeBw(_) => (1.0, window_gain),
            Mode::ProbeRtt(_) => (1.0, 1.0),
        }
    }

    /// Bandwidth to pace at: a policer's rate, or else the model's.
    fn bandwidth(&self) -> f64 {
        self.policer.rate().unwrap_or_else(|| self.model.bandwidth())
    }

    /// Target inflight: `gain` bandwidth-delay products and the quanta.
    fn inflight(&self, gain: f64) -> f64 {
        self.inflight_at(self.model.bandwidth(), gain)
    }

    /// Target inflight at another bandwidth.
    fn inflight_at(&self, bandwidth: f64, gain: f64) -> f64 {
        let rtt = self.model.rtt().seconds();
        // Two more packets while probing, so that small windows grow (Linux).
        let probe_packets = if matches!(self.mode, Mode::ProbeBw(0)) { 2.0 } else { 0.0 };
        gain * bandwidth * rtt + (self.config.quanta + probe_packets) * self.model.packet
    }

    /// Updates the bandwidth and the full-pipe estimator.
    fn update_model(&mut self, sample: &RateSample) {
        let model = &mut self.model;
        model.update_max_bw(sample, model.delivery.rounds());
        if sample.starts_round {
            self.packet_conservation = false;
            if !model.full_bw_reached && !sample.is_app_limited {
                model.full_pipe.on_round(model.bandwidth());
                model.full_bw_reached = model.full_pipe.is_full();
            }
        }
    }

    /// Updates policer detection.
    fn update_policer(&mut self, sample: &PolicerSample) {
        let may_end = matches!(self.mode, Mode::ProbeBw(_));
        if self.config.policer && self.policer.update(sample, may_end) {
            self.enter_probe_bw(sample.now);
        }
    }

    /// Updates the estimate of `extra_acked`.
    fn update_extra_acked(&mut self, ack: &Ack, sample: &RateSample) {
        let (bandwidth, window) = (self.bandwidth(), self.model.window.cwnd());
        if let Some(aggregation) = self.aggregation.as_mut().filter(|_| sample.rate.is_some()) {
            aggregation.update(ack.now, ack.bytes, sample.starts_round, bandwidth, window);
        }
    }

    /// Bytes that the window adds for aggregated ACKs.
    fn extra_acked(&self) -> f64 {
        match &self.aggregation {
            Some(aggregation) if self.model.full_bw_reached => {
                aggregation.allowance(self.bandwidth())
            }
            _ => 0.0,
        }
    }

    /// Handles transitions of Startup, Drain and `ProbeBW`.
    fn update_mode(&mut self, ack: &Ack) {
        if matches!(self.mode, Mode::Startup) && self.model.full_bw_reached {
            self.mode = Mode::Drain;
        }
        match self.mode {
            Mode::Drain if self.model.delivery.in_flight() <= self.inflight(1.0) => {
                self.enter_probe_bw(ack.now);
            }
            Mode::ProbeBw(phase) if self.is_phase_over(phase, ack) => {
                self.mode = Mode::ProbeBw((phase + 1) % CYCLE_LEN);
                self.cycle_start = ack.now;
            }
            Mode::Startup | Mode::Drain | Mode::ProbeBw(_) | Mode::ProbeRtt(_) => {}
        }
    }

    /// Enters `ProbeBW` at a random phase other than the draining one.
    fn enter_probe_bw(&mut self, now: Time) {
        let phase = self.random.below(CYCLE_LEN - 1);
        self.mode = Mode::ProbeBw(if phase == 0 { 0 } else { phase + 1 });
        self.cycle_start = now;
    }

    fn is_phase_over(&self, phase: u64, ack: &Ack) -> bool {
        let is_full_rtt = ack.now.since(self.cycle_start) > self.model.rtt();
        let in_flight = self.model.delivery.was_in_flight();
        match phase {
            // Until the probe reached its inflight, or lost packets.
            0 => {
                let is_probe_full = in_flight >= self.inflight(self.config.probe_gain);
                is_full_rtt && (ack.lost > 0 || is_probe_full)
            }
            1 => is_full_rtt || in_flight <= self.inflight(1.0),
            _ => is_full_rtt,
        }
    }

    /// Updates the minimum RTT, and enters or leaves `ProbeRTT`.
    fn update_min_rtt(&mut self, ack: &Ack, starts_round: bool) {
        let sample = MinRtt::sample(ack.rtt, ack.now);
        let is_expired = self.model.min_rtt.update(sample, ack.now, self.config.min_rtt_window);
        if self.config.renew_min_rtt && ack.rtt == self.model.rtt() {
            self.model.min_rtt.refresh(ack.now);
        }
        if is_expired && !self.is_probing_rtt() {
            self.model.window.save_cwnd(false);
            self.mode = Mode::ProbeRtt(ProbeRtt::default());
        }
        let Mode::ProbeRtt(probe_rtt) = &mut self.mode else { return };
        let limits = (self.model.window.min_cwnd(), self.config.probe_rtt_duration);
        if probe_rtt.is_over(ack.now, starts_round, limits, &mut self.model.delivery) {
            self.model.min_rtt.refresh(ack.now);
            self.model.window.restore_cwnd();
            if self.model.full_bw_reached {
                self.enter_probe_bw(ack.now);
            } else {
                self.mode = Mode::Startup;
            }
        }
    }

    fn is_probing_rtt(&self) -> bool {
        matches!(self.mode, Mode::ProbeRtt(_))
    }
}

impl Controller for Bbr {
    fn on_open(&mut self, opened: &Opened) {
        self.model.on_open(opened, self.config.startup_gain);
    }

    fn on_sent(&mut self, now: Time, bytes: Bytes) -> Option<Allowance> {
        self.model.delivery.on_sent(now, bytes);
        None
    }

    fn on_app_limited(&mut self) {
        self.model.delivery.mark_app_limited();
    }

    fn on_ack(&mut self, ack: &Ack) {
        if ack.bytes == Bytes::ZERO {
            return;
        }
        let sample = self.model.on_ack(ack);
        self.update_policer(&PolicerSample {
            now: ack.now,
            delivered: ack.bytes,
            lost: Bytes(u64::from(ack.lost) * self.model.packet as u64),
            starts_round: sample.is_some_and(|sample| sample.starts_round),
            is_app_limited: sample.is_some_and(|sample| sample.is_app_limited),
        });
        if let Some(sample) = &sample {
            self.update_model(sample);
            self.update_extra_acked(ack, sample);
        }
        self.update_mode(ack);
        self.update_min_rtt(ack, sample.is_some_and(|sample| sample.starts_round));
        let (pacing_gain, cwnd_gain) = self.gains();
        self.model.set_pacing_rate(ack, pacing_gain * self.bandwidth(), self.config.margin);
        self.model.window.subtract_losses(ack);
        if self.packet_conservation && self.model.window.is_in_recovery() {
            self.model.window.conserve_packets(ack);
        } else {
            let target = self.inflight_at(self.bandwidth(), cwnd_gain) + self.extra_acked();
            self.model.set_cwnd(ack, target);
        }
        if self.is_probing_rtt() {
            self.model.window.bound_cwnd(0.0);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.model.on_loss(loss, self.is_probing_rtt());
        match loss.signal {
            CongestionSignal::DetectedLoss => {
                self.packet_conservation = true;
                self.model.delivery.start_round();
            }
            CongestionSignal::Timeout => {
                self.model.full_pipe.restart(0.0);
                self.update_policer(&PolicerSample {
                    now: loss.now,
                    delivered: Bytes::ZERO,
                    lost: loss.lost,
                    starts_round: true,
                    is_app_limited: false,
                });
            }
            CongestionSignal::EcnMark => {}
        }
    }

    fn on_spurious_loss(&mut self, _now: Time) {
        // As in Linux: reset the full-pipe estimator and policer detection, and restore the window.
        self.model.full_pipe.restart(0.0);
        self.policer = Policer::default();
        self.model.window.on_spurious_loss();
    }

    fn allowance(&self) -> Allowance {
        self.model.window.allowance()
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        self.model.gauges()
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::float_cmp, reason = "whole numbers of bytes are exact")]

    use serde_json::json;

    use super::*;
    use crate::base::schema::{Parameter, defaults};
    use crate::base::units::Rate;
    use crate::transport::fixture::{SAMPLE, ack, loss, path};

    /// Flow with a bandwidth of 100 Mb/s of payload and a minimum RTT of 7.68 ms: 100 packets.
    fn bbr(seed: u64) -> Bbr {
        with(&defaults(), seed)
    }

    fn with(config: &Config, seed: u64) -> Bbr {
        let mut bbr = config.open(&Path { seed, ..path() });
        bbr.mode = Mode::Drain;
        bbr.model.full_bw_reached = true;
        bbr.model.min_rtt = MinRtt::sample(Duration::from_micros(7680), Time::ZERO);
        bbr.model.update_max_bw(&RateSample { rate: Some(100e6 / 8.0), ..SAMPLE }, 0);
        bbr
    }

    fn at(us: u64) -> Time {
        Time::ZERO + Duration::from_micros(us)
    }

    #[test]
    fn probe_bw_starts_in_any_phase_but_the_draining_one() {
        let starts = |seed| {
            let mut bbr = bbr(seed);
            bbr.enter_probe_bw(at(0));
            let Mode::ProbeBw(phase) = bbr.mode else { panic!("{:?}", bbr.mode) };
            phase
        };
        let mut phases: Vec<_> = (0..200).map(starts).collect();
        phases.sort_unstable();
        phases.dedup();
        assert_eq!(phases, [0, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn the_gain_cycle_probes_drains_and_cruises() {
        let mut bbr = bbr(1);
        let mut gains = Vec::new();
        for phase in 0..CYCLE_LEN {
            bbr.mode = Mode::ProbeBw(phase);
            gains.push(bbr.gains());
        }
        assert_eq!(gains[..3], [(1.25, 2.0), (0.75, 2.0), (1.0, 2.0)]);
        assert!(gains[3..].iter().all(|pair| *pair == (1.0, 2.0)));
        // Two of 100 packets and three quanta; five while probing.
        assert_eq!(bbr.inflight(2.0), 203.0 * 960.0);
        bbr.mode = Mode::ProbeBw(0);
        assert_eq!(bbr.inflight(1.25), 130.0 * 960.0);
    }

    #[test]
    fn a_phase_lasts_one_rtt_but_probing_and_draining_depend_on_inflight() {
        let mut bbr = bbr(1);
        let (early, late) =
            (Ack { now: at(7000), ..ack(1, 2) }, Ack { now: at(8000), ..ack(1, 2) });
        assert!(!bbr.is_phase_over(3, &early) && bbr.is_phase_over(3, &late));
        // Nothing is in flight here.
        assert!(!bbr.is_phase_over(0, &late));
        assert!(bbr.is_phase_over(0, &Ack { lost: 1, ..late }));
        assert!(bbr.is_phase_over(1, &early));
        // 130 packets in flight before the ACK.
        bbr.mode = Mode::ProbeBw(0);
        (0..130).for_each(|_| bbr.model.delivery.on_sent(at(0), Bytes(1000)));
        bbr.model.delivery.on_ack(&late, Duration::ZERO);
        assert!(bbr.is_phase_over(0, &late));
    }

    #[test]
    fn a_loss_does_not_change_the_rate() {
        let mut bbr = bbr(1);
        bbr.mode = Mode::ProbeBw(3);
        let rate = |bbr: &mut Bbr| {
            bbr.on_ack(&Ack { now: at(9000), rtt: Duration::from_micros(7680), ..ack(1, 2) });
            bbr.allowance().rate
        };
        let before = rate(&mut bbr);
        // 99 Mb/s of payload in packets of 960 B, 1000 B on the link.
        assert_eq!(before, Some(Rate(103_125_000)));
        for signal in
            [CongestionSignal::DetectedLoss, CongestionSignal::Timeout, CongestionSignal::EcnMark]
        {
            bbr.on_loss(&Loss { now: at(9000), ..loss(signal, Bytes(9600)) });
            assert_eq!(rate(&mut bbr), before);
        }
    }

    #[test]
    fn aggregated_acks_enlarge_the_window() {
        let window = |aggregation| {
            let config = Config { aggregation, initial_window: 1000, ..defaults() };
            let mut bbr = Bbr { mode: Mode::ProbeBw(3), ..with(&config, 1) };
            bbr.model.full_bw_reached = true;
            for tenth in 0..100 {
                let now = at(768 * tenth);
                if tenth >= 10 {
                    let (sent_at, rtt) = (at(768 * (tenth - 10)), Duration::from_micros(7680));
                    bbr.on_ack(&Ack { now, bytes: Bytes(9600), sent_at, rtt, ..ack(1, 2) });
                }
                bbr.on_sent(now, Bytes(1000));
            }
            bbr.model.window.cwnd() / 960.0
        };
        // Ten packets with each ACK.
        let more = window(true) - window(false);
        assert!((more - 10.0).abs() < 1e-6, "{more}");
    }

    #[test]
    fn policer_detection_counts_only_the_data_that_a_timeout_takes_for_lost() {
        // Ten packets are delivered between timeouts, and a hundred are in flight.
        let policer_rate = |lost: u64| {
            let mut bbr = bbr(1);
            bbr.config.policer = true;
            for round in 1..30 {
                let now = at(10_000 * round);
                bbr.on_ack(&Ack { now, bytes: Bytes(9600), ..ack(1, 2) });
                let (flight, lost, signal) =
                    (Bytes(96_000), Bytes(960 * lost), CongestionSignal::Timeout);
                bbr.on_loss(&Loss { now, lost, ..loss(signal, flight) });
            }
            bbr.policer.rate()
        };
        assert_eq!(policer_rate(1), None);
        assert_eq!(policer_rate(5), Some(960e3), "ten packets in 10 ms");
    }

    #[test]
    fn invalid_parameters_are_reported() {
        for (field, value, must) in [
            ("startup_gain", json!(1.0), "must be above 1, not 1.0"),
            ("probe_gain", json!(0.9), "must be above 1, not 0.9"),
            ("drain_gain", json!(1.2), "must be above 0 and below 1, not 1.2"),
            ("window_gain", json!(0.5), "must be 1 or more, not 0.5"),
            ("margin", json!(1.0), "must be from 0 to below 1, not 1.0"),
            ("bandwidth_rounds", json!(0), "must be above zero, not 0"),
            ("min_window", json!(0), "must be above zero, not 0"),
        ] {
            let problem = Config::read(&json!({ field: value })).unwrap_err();
            assert_eq!(problem.to_string(), format!("{field}: {must}"));
        }
    }
}
