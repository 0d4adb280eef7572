//! BBR, version 1: a model of the path, of its bandwidth and its round-trip time, instead of losses.
//!
//! Sources: [bbr16], and Linux's `tcp_bbr.c` for what the article leaves open. A flow sends at the largest
//! rate at which data has come through of late, and once in eight round trips a quarter more, to see
//! whether there is more. Its window is twice what the model says the path holds; so several flows, of
//! which each has overestimated the bandwidth, keep about as much in the queue as on the wire.
//!
//! Left out: windows of an even number of packets, which are for receivers that acknowledge every other one.

use super::{
    Ack, Allowance, CongestionSignal, Controller, Loss, Mechanism, Opened, Path, Reliability,
    Transport,
};
use crate::base::random::Random;
use crate::base::schema::{
    above_one, at_least_one, below_one, not_negative, positive, proper_fraction,
};
use crate::base::units::{Bytes, Duration, Time};
use crate::model::packet::Format;
use crate::transport::blocks::bbr::ack_aggregation::AckAggregation;
use crate::transport::blocks::bbr::delivery_rate::{FullPipe, Sample};
use crate::transport::blocks::bbr::path_model::{LeastRtt, PathModel};
use crate::transport::blocks::bbr::policer::{Policer, PolicerVerdict};
use crate::transport::blocks::bbr::window::{BbrWindow, Stay};

/// Phases of a cycle; the first probes, the second drains what that has queued.
const PHASES: u64 = 8;

crate::parameters! {
    /// BBR, version 1: paces at the largest delivery rate of the last ten round trips, with at most twice
    /// the bandwidth-delay product in flight, whatever is lost ([bbr16]).
    pub struct Config {
        /// Initial window, in packets (RFC 6928: 10).
        pub initial_window: u32 = 10, where positive;
        /// Gain of pace and window in Startup, which doubles what is sent in a round trip ([bbr16]:
        /// 2/ln 2); Drain paces at its inverse.
        pub startup_gain: f64 = 2.885, where above_one;
        /// The pipe is full if the bandwidth does not grow by this factor ([bbr16]: 1.25) ...
        pub full_growth: f64 = 1.25, where above_one;
        /// ... in so many round trips ([bbr16]: 3).
        pub full_rounds: u32 = 3, where positive;
        /// Gain of the pace while more is tried ([bbr16]: 1.25).
        pub probe_gain: f64 = 1.25, where above_one;
        /// Gain of the pace afterwards, to drain the queue ([bbr16]: 0.75).
        pub drain_gain: f64 = 0.75, where proper_fraction;
        /// Gain of the window outside Startup ([bbr16]: 2).
        pub window_gain: f64 = 2.0, where at_least_one;
        /// By how much less than the bandwidth a flow paces (Linux: 1 %).
        pub margin: f64 = 0.01, where below_one;
        /// Packets that a window has beyond its share of the bandwidth-delay product (Linux: 3 quanta;
        /// here a quantum is a packet).
        pub quanta: f64 = 3.0, where not_negative;
        /// Round trips of which the largest bandwidth counts ([bbr16]: 10).
        pub bandwidth_rounds: u32 = 10, where positive;
        /// How long a least round-trip time counts before a new one is looked for ([bbr16]: 10 s).
        pub min_rtt_window: Duration = Duration::from_millis(10_000), where positive;
        /// How long the window is least to find it ([bbr16]: 200 ms).
        pub probe_rtt_duration: Duration = Duration::from_millis(200), where positive;
        /// Least window, in packets, which is that of the search for the round-trip time ([bbr16]: 4).
        pub min_window: u32 = 4, where positive;
        /// Whether a rate that comes through twice while a fifth is lost is taken for a policer's, and held
        /// for 48 round trips (Linux: it is; own choice: not, as [bbr16] does not tell of it).
        pub policer: bool = false;
        /// Whether the window is larger by what ACKs have told at once of late beyond the bandwidth, of at
        /// most 100 ms, once the pipe has been full (Linux: it is; own choice: not, as [bbr16] does not tell
        /// of it).
        pub aggregation: bool = false;
        /// How many packets leave without a pace at first (Linux: 10; own choice: 0).
        pub unpaced: u32 = 0;
        /// How many packets leave at once (own choice: 1).
        pub burst: u32 = 1, where positive;
        /// How data is made reliable.
        pub reliability: Reliability = Reliability::internet();
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        Box::new(self.open(path))
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        Mechanism {
            burst: Some(self.burst),
            unpaced: self.unpaced,
            ..Mechanism::paced_window(&self.reliability)
        }
    }
}

impl Config {
    /// The state of a flow that starts on `path`.
    fn open(&self, path: &Path) -> Bbr {
        let throttle =
            BbrWindow::new(path, self.initial_window, self.min_window, self.startup_gain);
        let plateau = FullPipe::new(self.full_growth, self.full_rounds);
        Bbr {
            config: self.clone(),
            model: PathModel::new(path, throttle, plateau, self.bandwidth_rounds),
            mode: Mode::Startup,
            phase_from: path.start,
            conserves: false,
            policer: Policer::default(),
            aggregation: self
                .aggregation
                .then(|| Box::new(AckAggregation::new(path.format.payload.0 as f64, path.start))),
            random: Random::new(path.seed, "transport/bbr"),
        }
    }
}

/// What a flow is at.
#[derive(Clone, Copy, Debug)]
enum Mode {
    /// Looking for the bandwidth by doubling the rate.
    Startup,
    /// Draining the queue that this has left.
    Drain,
    /// In this phase of the cycle.
    ProbeBw(u64),
    /// Looking for the round-trip time.
    ProbeRtt(Stay),
}

/// The state of one flow; payload in bytes.
struct Bbr {
    config: Config,
    /// Its clock counts round trips.
    model: PathModel,
    mode: Mode,
    phase_from: Time,
    /// In the first round trip of a repair no more leaves than has come.
    conserves: bool,
    /// If one is looked for.
    policer: Policer,
    /// If it is allowed for. Apart, since most flows have none.
    aggregation: Option<Box<AckAggregation>>,
    random: Random,
}

impl Bbr {
    /// The gains of pace and window.
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

    /// The bandwidth to send at: what a policer lets through, or else the model's.
    fn bandwidth(&self) -> f64 {
        self.policer.rate().unwrap_or_else(|| self.model.bandwidth())
    }

    /// So many bandwidth-delay products of the model, and what hosts hold.
    fn in_flight(&self, gain: f64) -> f64 {
        self.in_flight_at(self.model.bandwidth(), gain)
    }

    /// The same at another bandwidth.
    fn in_flight_at(&self, bandwidth: f64, gain: f64) -> f64 {
        let rtt = self.model.rtt().seconds();
        // More packets, so that small windows grow at all while more is tried (Linux).
        let more = if matches!(self.mode, Mode::ProbeBw(0)) { 2.0 } else { 0.0 };
        gain * bandwidth * rtt + (self.config.quanta + more) * self.model.packet
    }

    fn learn(&mut self, sample: &Sample) {
        let model = &mut self.model;
        model.learn(sample, model.delivery.rounds());
        if sample.starts_round {
            self.conserves = false;
            if !model.has_been_full && !sample.is_limited {
                model.plateau.on_round(model.bandwidth());
                model.has_been_full = model.plateau.is_reached();
            }
        }
    }

    /// Looks for a policer, in what an ACK or a time-out tells.
    fn police(&mut self, told: &PolicerVerdict) {
        let may_end = matches!(self.mode, Mode::ProbeBw(_));
        if self.config.policer && self.policer.learn(told, may_end) {
            self.enter_cycle(told.now);
        }
    }

    /// Counts what an ACK tells beyond the bandwidth.
    fn count_excess(&mut self, ack: &Ack, sample: &Sample) {
        let (bandwidth, window) = (self.bandwidth(), self.model.throttle.window());
        if let Some(aggregation) = self.aggregation.as_mut().filter(|_| sample.rate.is_some()) {
            aggregation.learn(ack.now, ack.bytes, sample.starts_round, bandwidth, window);
        }
    }

    /// What the window allows for ACKs that come at once.
    fn excess(&self) -> f64 {
        match &self.aggregation {
            Some(aggregation) if self.model.has_been_full => {
                aggregation.allowance(self.bandwidth())
            }
            _ => 0.0,
        }
    }

    /// Goes on in Startup, Drain and the cycle.
    fn advance(&mut self, ack: &Ack) {
        if matches!(self.mode, Mode::Startup) && self.model.has_been_full {
            self.mode = Mode::Drain;
        }
        match self.mode {
            Mode::Drain if self.model.delivery.in_flight() <= self.in_flight(1.0) => {
                self.enter_cycle(ack.now);
            }
            Mode::ProbeBw(phase) if self.is_phase_over(phase, ack) => {
                self.mode = Mode::ProbeBw((phase + 1) % PHASES);
                self.phase_from = ack.now;
            }
            Mode::Startup | Mode::Drain | Mode::ProbeBw(_) | Mode::ProbeRtt(_) => {}
        }
    }

    /// At a random phase, but not at that which drains.
    fn enter_cycle(&mut self, now: Time) {
        let phase = self.random.below(PHASES - 1);
        self.mode = Mode::ProbeBw(if phase == 0 { 0 } else { phase + 1 });
        self.phase_from = now;
    }

    fn is_phase_over(&self, phase: u64, ack: &Ack) -> bool {
        let has_lasted = ack.now.since(self.phase_from) > self.model.rtt();
        let in_flight = self.model.delivery.was_in_flight();
        match phase {
            // Until more has really been tried, or was too much.
            0 => {
                let is_tried = in_flight >= self.in_flight(self.config.probe_gain);
                has_lasted && (ack.lost > 0 || is_tried)
            }
            1 => has_lasted || in_flight <= self.in_flight(1.0),
            _ => has_lasted,
        }
    }

    /// Notes the least round-trip time, and looks for it if it has not been seen for long.
    fn watch_rtt(&mut self, ack: &Ack, starts_round: bool) {
        let seen = LeastRtt::seen(ack.rtt, ack.now);
        let is_old = self.model.least_rtt.give_way(seen, ack.now, self.config.min_rtt_window);
        if is_old && !self.is_paused() {
            self.model.throttle.save(false);
            self.mode = Mode::ProbeRtt(Stay::default());
        }
        let Mode::ProbeRtt(stay) = &mut self.mode else { return };
        let most = (self.model.throttle.least(), self.config.probe_rtt_duration);
        if stay.is_over(ack.now, starts_round, most, &mut self.model.delivery) {
            self.model.least_rtt.renew(ack.now);
            self.model.throttle.restore();
            if self.model.has_been_full {
                self.enter_cycle(ack.now);
            } else {
                self.mode = Mode::Startup;
            }
        }
    }

    fn is_paused(&self) -> bool {
        matches!(self.mode, Mode::ProbeRtt(_))
    }
}

impl Controller for Bbr {
    fn on_open(&mut self, opened: &Opened) {
        self.model.on_open(opened, self.config.startup_gain);
    }

    fn on_sent(&mut self, now: Time, bytes: Bytes) {
        self.model.delivery.on_sent(now, bytes);
    }

    fn on_ack(&mut self, ack: &Ack) {
        if ack.bytes == Bytes::ZERO {
            return;
        }
        let sample = self.model.on_ack(ack);
        self.police(&PolicerVerdict {
            now: ack.now,
            came: ack.bytes,
            lost: Bytes(u64::from(ack.lost) * self.model.packet as u64),
            starts_round: sample.is_some_and(|sample| sample.starts_round),
            is_limited: sample.is_some_and(|sample| sample.is_limited),
        });
        if let Some(sample) = &sample {
            self.learn(sample);
            self.count_excess(ack, sample);
        }
        self.advance(ack);
        self.watch_rtt(ack, sample.is_some_and(|sample| sample.starts_round));
        let (pace, window) = self.gains();
        self.model.pace(ack, pace * self.bandwidth(), self.config.margin);
        self.model.throttle.lose(ack);
        if self.conserves && self.model.throttle.is_repairing() {
            self.model.throttle.conserve(ack);
        } else {
            let aim = self.in_flight_at(self.bandwidth(), window) + self.excess();
            self.model.open(ack, aim);
        }
        if self.is_paused() {
            self.model.throttle.bound(0.0);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.model.on_loss(loss, self.is_paused());
        match loss.sign {
            CongestionSignal::Gap => {
                self.conserves = true;
                self.model.delivery.start_round();
            }
            CongestionSignal::Timeout => {
                self.model.plateau.restart(0.0);
                self.police(&PolicerVerdict {
                    now: loss.now,
                    came: Bytes::ZERO,
                    lost: loss.lost,
                    starts_round: true,
                    is_limited: false,
                });
            }
            CongestionSignal::Mark => {}
        }
    }

    fn on_spurious_loss(&mut self, _now: Time) {
        // As Linux does it: what was held against the path is forgotten, and the window is back.
        self.model.plateau.restart(0.0);
        self.policer = Policer::default();
        self.model.throttle.on_spurious_loss();
    }

    fn allowance(&self) -> Allowance {
        self.model.throttle.allowance()
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
    use crate::transport::fixture::{SAMPLE, ack, path};

    /// A flow that has found 100 Mb/s of payload and a round trip of 7.68 ms, which are 100 packets.
    fn bbr(seed: u64) -> Bbr {
        with(&defaults(), seed)
    }

    fn with(config: &Config, seed: u64) -> Bbr {
        let mut bbr = config.open(&Path { seed, ..path() });
        bbr.mode = Mode::Drain;
        bbr.model.has_been_full = true;
        bbr.model.least_rtt = LeastRtt::seen(Duration::from_micros(7680), Time::ZERO);
        bbr.model.learn(&Sample { rate: Some(100e6 / 8.0), ..SAMPLE }, 0);
        bbr
    }

    fn at(us: u64) -> Time {
        Time::ZERO + Duration::from_micros(us)
    }

    #[test]
    fn the_cycle_starts_anywhere_but_where_it_drains() {
        let starts = |seed| {
            let mut bbr = bbr(seed);
            bbr.enter_cycle(at(0));
            let Mode::ProbeBw(phase) = bbr.mode else { panic!("{:?}", bbr.mode) };
            phase
        };
        let mut seen: Vec<_> = (0..200).map(starts).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, [0, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn the_gains_of_a_cycle_are_a_quarter_more_a_quarter_less_and_six_times_one() {
        let mut bbr = bbr(1);
        let mut paces = Vec::new();
        for phase in 0..PHASES {
            bbr.mode = Mode::ProbeBw(phase);
            paces.push(bbr.gains());
        }
        assert_eq!(paces[..3], [(1.25, 2.0), (0.75, 2.0), (1.0, 2.0)]);
        assert!(paces[3..].iter().all(|gains| *gains == (1.0, 2.0)));
        // Two of 100 packets and three for the hosts; five while it probes.
        assert_eq!(bbr.in_flight(2.0), 203.0 * 960.0);
        bbr.mode = Mode::ProbeBw(0);
        assert_eq!(bbr.in_flight(1.25), 130.0 * 960.0);
    }

    #[test]
    fn a_phase_lasts_a_round_trip_but_a_probe_until_it_has_tried_and_draining_until_it_is_done() {
        let mut bbr = bbr(1);
        let (early, late) =
            (Ack { now: at(7000), ..ack(1, 2) }, Ack { now: at(8000), ..ack(1, 2) });
        assert!(!bbr.is_phase_over(3, &early) && bbr.is_phase_over(3, &late));
        // Nothing is in flight here.
        assert!(!bbr.is_phase_over(0, &late));
        assert!(bbr.is_phase_over(0, &Ack { lost: 1, ..late }));
        assert!(bbr.is_phase_over(1, &early));
        // 130 packets, and an ACK that finds them in flight.
        bbr.mode = Mode::ProbeBw(0);
        (0..130).for_each(|_| bbr.model.delivery.on_sent(at(0), Bytes(1000)));
        bbr.model.delivery.on_ack(&late, Duration::ZERO);
        assert!(bbr.is_phase_over(0, &late));
    }

    #[test]
    fn a_loss_leaves_the_bandwidth_as_it_is() {
        let mut bbr = bbr(1);
        bbr.mode = Mode::ProbeBw(3);
        let rate = |bbr: &mut Bbr| {
            bbr.on_ack(&Ack { now: at(9000), rtt: Duration::from_micros(7680), ..ack(1, 2) });
            bbr.allowance().rate
        };
        let before = rate(&mut bbr);
        // 99 Mb/s of payload in packets of 960 B, which are 1000 B on the wire.
        assert_eq!(before, Some(Rate(103_125_000)));
        for sign in [CongestionSignal::Gap, CongestionSignal::Timeout, CongestionSignal::Mark] {
            bbr.on_loss(&Loss { now: at(9000), flight: Bytes(9600), lost: Bytes::ZERO, sign });
            assert_eq!(rate(&mut bbr), before);
        }
    }

    #[test]
    fn acks_that_come_at_once_make_the_window_larger() {
        let window = |aggregation| {
            let config = Config { aggregation, initial_window: 1000, ..defaults() };
            let mut bbr = Bbr { mode: Mode::ProbeBw(3), ..with(&config, 1) };
            bbr.model.has_been_full = true;
            for tenth in 0..100 {
                let now = at(768 * tenth);
                if tenth >= 10 {
                    let (sent_at, rtt) = (at(768 * (tenth - 10)), Duration::from_micros(7680));
                    bbr.on_ack(&Ack { now, bytes: Bytes(9600), sent_at, rtt, ..ack(1, 2) });
                }
                bbr.on_sent(now, Bytes(1000));
            }
            bbr.model.throttle.window() / 960.0
        };
        // Ten packets with each ACK.
        let more = window(true) - window(false);
        assert!((more - 10.0).abs() < 1e-6, "{more}");
    }

    #[test]
    fn of_what_is_in_flight_at_a_time_out_only_what_it_takes_for_lost_tells_of_a_policer() {
        // Ten packets come through between time-outs, and a hundred are in flight.
        let held = |lost: u64| {
            let mut bbr = bbr(1);
            bbr.config.policer = true;
            for round in 1..30 {
                let now = at(10_000 * round);
                bbr.on_ack(&Ack { now, bytes: Bytes(9600), ..ack(1, 2) });
                let (flight, lost, sign) =
                    (Bytes(96_000), Bytes(960 * lost), CongestionSignal::Timeout);
                bbr.on_loss(&Loss { now, flight, lost, sign });
            }
            bbr.policer.rate()
        };
        assert_eq!(held(1), None);
        assert_eq!(held(5), Some(960e3), "ten packets in 10 ms");
    }

    #[test]
    fn parameters_that_make_no_sense_are_explained() {
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
