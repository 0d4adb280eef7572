//! PCP: probes the network for a rate with a short packet train, and then sends at that rate ([pcp06]).
//!
//! Where the paper is silent there is a parameter, whose default comes closest to the paper's claims
//! (docs/design/transports.md). PCP has no window: the rate rises only by a probe that passes, falls only
//! as queues grow, and does not react to losses.

use super::{
    Ack, AckPolicy, Allowance, CachedRate, Controller, Mechanism, Opened, Path, Reliability,
    TrainPacket, Transport,
};
use crate::base::random::Random;
use crate::base::schema::{
    Problem, at_least_one, defaults, not_negative, positive, positive_fraction, positive_if_given,
};
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::packet::Format;
use crate::transport::blocks::pcp::probe_train::{Acceptance, ProbeTrain, TrainResult, TrainShape};
use crate::transport::blocks::pcp::rate_compensation::{self, RateCompensation};
use crate::transport::endpoint::rtt::smooth;

crate::choices! {
    /// Packets of probes.
    pub enum Content {
        /// Packets without payload.
        Padding = "padding",
        /// Segments of the flow, if the probe's packets have their size.
        Data = "data",
    }
}

crate::choices! {
    /// Rate that a flow leaves for the next flow between the same hosts.
    pub enum History {
        /// The largest.
        Largest = "largest",
        /// The last, which on a busy link was just reduced.
        Last = "last",
        /// None: flows do not use history.
        Off = "off",
    }
}

crate::choices! {
    /// Condition on which history was right.
    pub enum Accuracy {
        /// The first probe passed.
        FirstProbe = "first_probe",
        /// The flow's largest rate is within a factor of two of the rate in history.
        WithinTwo = "within_two",
    }
}

crate::parameters! {
    /// Probes: size, acceptance and timing.
    pub struct Probes {
        /// Minimum number of packets in a probe.
        pub packets: u32 = 5, where |n| if *n < 3 { Err("3 or more") } else { Ok(()) };
        /// Size of a probe, in full packets. A probe below the minimum increment, as the first without
        /// history, has the data of half an RTT at its rate.
        pub amount: f64 = 5.0, where positive;
        /// Packets of probes.
        pub content: Content = Content::Data;
        /// Acceptance test of the slope of one-way delays.
        pub acceptance: Acceptance = Acceptance::Careful;
        /// Maximum slope that passes: the fraction by which a link may be overloaded.
        pub tolerance: f64 = 0.06, where not_negative;
        /// Increment of the first probe without history, in full packets per RTT ([pcp06] §3.3: one
        /// packet per half RTT).
        pub first: f64 = 2.0, where positive;
        /// Minimum increment otherwise, in full packets per RTT.
        pub floor: f64 = 5.0, where positive;
        /// Mean wait after a probe that passed, in RTTs.
        pub pause: f64 = 0.0, where not_negative;
        /// Mean wait after a probe that failed, in RTTs.
        pub spacing: f64 = 0.5, where not_negative;
        /// Maximum mean wait after failures at the minimum increment, in RTTs. The mean starts at one
        /// RTT and doubles; waits vary by half of the mean, so that probes do not synchronise.
        pub longest_wait: f64 = 4.0, where at_least_one;
    }
}

crate::parameters! {
    /// PCP: paced senders that test with a short packet train if the path has a rate to spare, take it
    /// at once if so, and slow down together when a queue grows ([pcp06]). FIFO queues suffice; a
    /// switch that serves control packets first lets probes without payload bypass the queue that they
    /// are to measure.
    pub struct Config {
        /// Probes: size, acceptance and timing.
        pub probes: Probes = defaults();
        /// Rate compensation: reaction to queues.
        pub compensation: rate_compensation::Config = defaults();
        /// Rate that a flow leaves for the next flow between the same hosts.
        pub history: History = History::Largest;
        /// Limit of the first probe, as a fraction of the rate in history ([pcp06] §3.4: a third). The
        /// fraction halves when history was wrong and doubles when it was right.
        pub share: f64 = 1.0 / 3.0, where positive_fraction;
        /// Condition on which history was right.
        pub accuracy: Accuracy = Accuracy::FirstProbe;
        /// If true, history includes the minimum delay; if false, a flow that starts behind a queue
        /// overestimates the minimum delay until the queue has drained once.
        pub remembers_delay: bool = true;
        /// Rate in history that every flow is given instead of the true one ([pcp06] figure 7).
        pub rigged: Option<Rate> = None, where positive_if_given;
        /// Loss recovery and retransmission timeouts. Retransmissions use the next paced slot.
        pub reliability: Reliability = Reliability {
            min_rto: Duration::from_millis(10),
            timer_granularity: Duration::from_millis(10),
            ..Reliability::internet()
        };
    }
    check |config| {
        if !config.reliability.handshake {
            let message = "must be true: the SYN measures the RTT";
            return Err(Problem::new("reliability.handshake", message));
        }
        config.reliability.require_ack_per_packet("every packet's one-way delay is needed")
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        let history = match self.history {
            History::Largest | History::Last => path.cached_state.rate,
            History::Off => None,
        };
        let min_one_way_delay = match history {
            Some(state) if self.remembers_delay => state.min_one_way_delay,
            _ => f64::INFINITY,
        };
        let rigged = self.rigged.map(|rate| CachedRate {
            rate: rate.bps(),
            share: self.share,
            min_one_way_delay,
        });
        let packet = path.format.payload + path.format.header;
        Box::new(Pcp {
            config: self.clone(),
            packet,
            min_packet: path.format.ack.min(packet),
            max_rate: path.max_pacing_rate.bps(),
            history: rigged.or(history),
            srtt: path.base_rtt,
            min_increment: 0.0,
            base_rate: 0.0,
            largest_rate: 0.0,
            increment: 0.0,
            probing: ProbeState::Closed,
            has_probed: false,
            mean_wait: 1.0,
            first_passed: None,
            compensation: RateCompensation::new(&self.compensation, min_one_way_delay),
            random: Random::new(path.seed, "transport/pcp"),
        })
    }

    fn own_reliability(&self) -> &'static [&'static str] {
        &["handshake"]
    }

    fn needs_own_connection(&self) -> bool {
        true
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        Mechanism {
            sends_trains: true,
            acks: AckPolicy { echoes_one_way_delay: true, ..AckPolicy::default() },
            ..Mechanism::paced(&self.reliability)
        }
    }
}

/// State of probing.
#[derive(Clone, Debug)]
enum ProbeState {
    /// The handshake is not complete.
    Closed,
    /// The next probe starts at this time.
    Waiting(Time),
    /// A probe is in progress.
    Active(ProbeTrain),
}

/// State of one flow; rates in bits per second.
struct Pcp {
    config: Config,
    /// Size of a full packet on the link, and minimum packet size.
    packet: Bytes,
    min_packet: Bytes,
    max_rate: f64,
    history: Option<CachedRate>,
    /// Smoothed RTT.
    srtt: Duration,
    /// Minimum increment.
    min_increment: f64,
    /// Rate acquired by probes.
    base_rate: f64,
    largest_rate: f64,
    /// Increment of the next probe.
    increment: f64,
    probing: ProbeState,
    /// True if the first probe is over; no data is sent before.
    has_probed: bool,
    /// Mean wait after the next failure at the minimum increment, in RTTs.
    mean_wait: f64,
    first_passed: Option<bool>,
    compensation: RateCompensation,
    random: Random,
}

impl Pcp {
    /// One full packet per RTT.
    fn min_rate(&self) -> f64 {
        (self.packet.bits() / self.srtt.seconds()).min(self.max_rate)
    }

    /// Returns the probe for the present increment. At low rates the duration determines its size, with a
    /// minimum that still gives a slope.
    fn train_shape(&self) -> TrainShape {
        let Probes { packets, amount, content, .. } = self.config.probes;
        let full = self.packet.bits();
        let bits = if self.increment < self.min_increment {
            (self.increment * self.srtt.seconds() / 2.0)
                .clamp(full.min(amount * full), amount * full)
        } else {
            amount * full
        };
        let packets = packets.max((bits / full).ceil() as u32);
        let bytes = Bytes((bits / 8.0 / f64::from(packets)).ceil() as u64);
        let bytes = bytes.clamp(self.min_packet, self.packet);
        let each = match content {
            Content::Data if bytes == self.packet => TrainPacket::Segment,
            Content::Data | Content::Padding => TrainPacket::Padding(bytes),
        };
        let spacing = Duration(Rate::from_bps(self.increment).transmit(bytes).0.max(1));
        TrainShape { packets, each, spacing, timeout: self.srtt * 2 }
    }

    fn start_probe(&mut self, now: Time) {
        self.probing = ProbeState::Active(ProbeTrain::new(self.train_shape(), now));
    }

    /// Schedules the next probe after this number of RTTs, on average.
    fn schedule_probe(&mut self, now: Time, rtts: f64) {
        if rtts > 0.0 {
            let spread = 0.5 + self.random.uniform();
            let wait = Duration::from_seconds(rtts * spread * self.srtt.seconds());
            self.probing = ProbeState::Waiting(now + wait.max(Duration(1)));
        } else {
            self.start_probe(now);
        }
    }

    fn conclude(&mut self, now: Time, result: TrainResult) {
        self.has_probed = true;
        let Probes { acceptance, tolerance, spacing, pause, longest_wait, .. } = self.config.probes;
        let passed = match result {
            TrainResult::Answered(slope) => slope.is_flat(acceptance, tolerance, &mut self.random),
            TrainResult::Lost => false,
            TrainResult::CutShort => return self.schedule_probe(now, 1.0),
        };
        self.first_passed.get_or_insert(passed);
        if passed {
            self.base_rate = (self.base_rate + self.increment).min(self.max_rate);
            self.largest_rate = self.largest_rate.max(self.base_rate);
            self.increment = (self.increment * 2.0).min(self.max_rate);
            self.mean_wait = 1.0;
            self.schedule_probe(now, pause);
        } else if self.increment > self.min_increment {
            self.increment = (self.increment / 2.0).max(self.min_increment);
            self.schedule_probe(now, spacing);
        } else {
            self.schedule_probe(now, self.mean_wait.max(spacing));
            self.mean_wait = (self.mean_wait * 2.0).min(longest_wait);
        }
    }

    /// True if history was right; none if the flow has not tried it.
    fn was_right(&self, history: CachedRate) -> Option<bool> {
        let first_passed = self.first_passed?;
        Some(match self.config.accuracy {
            Accuracy::FirstProbe => first_passed,
            Accuracy::WithinTwo => (0.5..=2.0).contains(&(self.largest_rate / history.rate)),
        })
    }
}

impl Controller for Pcp {
    fn on_open(&mut self, opened: &Opened) {
        self.srtt = opened.rtt.max(Duration(1));
        self.min_increment = (self.config.probes.floor * self.min_rate()).min(self.max_rate);
        let first = (self.config.probes.first * self.min_rate()).min(self.max_rate);
        self.increment = match self.history {
            None => first,
            Some(state) => (state.rate * state.share).clamp(self.min_increment, self.max_rate),
        };
        self.start_probe(opened.now);
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.srtt = smooth(Some(self.srtt), ack.rtt).max(Duration(1));
        let delay = f64::from(ack.feedback);
        if !ack.is_probe_ack
            && let Some(factor) = self.compensation.on_delay(ack.now, ack.sent_at, delay, self.srtt)
        {
            self.base_rate = if self.base_rate > 0.0 {
                (self.base_rate * factor).max(self.min_rate())
            } else {
                0.0
            };
        }
        if let ProbeState::Active(train) = &mut self.probing
            && let Some(result) = train.on_answer(ack.sent_at, delay, ack.is_probe_ack)
        {
            self.conclude(ack.now, result);
        }
    }

    fn on_sent(&mut self, now: Time, _bytes: Bytes) -> Option<Allowance> {
        if let ProbeState::Active(train) = &mut self.probing {
            train.on_sent(now);
        }
        Some(self.allowance())
    }

    fn next_train_packet(&mut self, now: Time) -> Option<TrainPacket> {
        match &mut self.probing {
            ProbeState::Active(train) => train.next_packet(now),
            ProbeState::Closed | ProbeState::Waiting(_) => None,
        }
    }

    fn on_timer(&mut self, now: Time) {
        match &mut self.probing {
            ProbeState::Waiting(until) if *until <= now => self.start_probe(now),
            ProbeState::Closed | ProbeState::Waiting(_) => {}
            ProbeState::Active(train) => {
                if let Some(result) = train.on_timer(now) {
                    self.conclude(now, result);
                }
            }
        }
    }

    fn next_timer(&self) -> Time {
        match &self.probing {
            ProbeState::Closed => Time::NEVER,
            ProbeState::Waiting(until) => *until,
            ProbeState::Active(train) => train.next_timer(),
        }
    }

    fn allowance(&self) -> Allowance {
        if self.has_probed {
            Allowance::rate(self.base_rate.max(self.min_rate()).min(self.max_rate))
        } else {
            Allowance { rate: Some(Rate(0)), ..Allowance::rate(0.0) }
        }
    }

    fn cached_rate(&self) -> Option<CachedRate> {
        let rate = match self.config.history {
            History::Largest => self.largest_rate,
            History::Last => self.base_rate,
            History::Off => return None,
        };
        let share = match self.history.and_then(|history| self.was_right(history)) {
            None => self.history.map_or(self.config.share, |history| history.share),
            Some(true) => (self.history?.share * 2.0).min(self.config.share),
            Some(false) => self.history?.share / 2.0,
        };
        let min_one_way_delay = self.compensation.min_delay();
        if rate > 0.0 {
            Some(CachedRate { rate, share, min_one_way_delay })
        } else {
            self.history.map(|history| CachedRate { share, min_one_way_delay, ..history })
        }
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("rate_bps", self.allowance().rate.map_or(0.0, Rate::bps)),
            ("increment_bps", self.increment),
            ("compensation", self.compensation.strength()),
        ]
    }
}
