//! PCP: asks the network for a rate by a short probe, and then sends at it.
//!
//! Source: [pcp06]. What its text leaves open is a parameter each, and where not even memory helps the
//! default is what came nearest to the paper's claims (docs/design.md). There is no window: a rate only
//! rises by a probe that passed, only falls as queues grow, and losses change nothing.

use super::{
    Ack, Allowance, CachedPathState, Controller, Mechanism, Opened, Path, Reliability, TrainPacket,
    Transport,
};
use crate::base::random::Random;
use crate::base::schema::{
    Problem, at_least_one, defaults, not_negative, positive, positive_fraction, positive_if_given,
};
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::packet::Format;
use crate::transport::blocks::pcp::probe_train::{Acceptance, Ended, ProbeTrain, Shape};
use crate::transport::blocks::pcp::rate_compensation::{self, RateCompensation};
use crate::transport::endpoint::rtt::smooth;

crate::choices! {
    /// What probes are made of.
    pub enum Content {
        /// Packets without payload.
        Padding = "padding",
        /// Segments of the flow, where a probe's packets are as large as those.
        Data = "data",
    }
}

crate::choices! {
    /// Which of its rates a flow leaves for the next one between the same hosts.
    pub enum History {
        /// The largest.
        Largest = "largest",
        /// The last, which on a busy link has just been cut.
        Last = "last",
        /// None: every flow starts anew.
        Off = "off",
    }
}

crate::choices! {
    /// When history has told the truth.
    pub enum Accuracy {
        /// The first probe has passed.
        FirstProbe = "first_probe",
        /// The flow's largest rate is within a factor of two of what history said.
        WithinTwo = "within_two",
    }
}

crate::parameters! {
    /// Probes: how large they are, how they are judged and when they go.
    pub struct Probes {
        /// Least number of packets in a probe.
        pub packets: u32 = 5, where |n| if *n < 3 { Err("3 or more") } else { Ok(()) };
        /// Data in a probe, in full packets. Those slower than the least increment, as without history
        /// the first ones are, have what their rate carries in half a round trip.
        pub amount: f64 = 5.0, where positive;
        /// What they are made of.
        pub content: Content = Content::Data;
        /// How the slope of their delays is judged.
        pub acceptance: Acceptance = Acceptance::Careful;
        /// The slope that still passes: the share by which a link may be overloaded.
        pub tolerance: f64 = 0.06, where not_negative;
        /// What the first probe asks for without history, in full packets a round trip ([pcp06] §3.3:
        /// a packet in half a round trip).
        pub first: f64 = 2.0, where positive;
        /// Least increment asked for otherwise, in full packets a round trip.
        pub floor: f64 = 5.0, where positive;
        /// Mean wait after a probe that has passed until the next, in round trips.
        pub pause: f64 = 0.0, where not_negative;
        /// Mean wait after a probe that has failed until the next, in round trips.
        pub spacing: f64 = 0.5, where not_negative;
        /// After failures at the least increment the mean wait doubles from one round trip up to so
        /// many; waits are spread by half of themselves, so that probes do not meet.
        pub longest_wait: f64 = 4.0, where at_least_one;
    }
}

crate::parameters! {
    /// PCP: paced senders that test with a short train of packets whether the path has a rate to
    /// spare, take it at once if so, and slow down together when a queue grows ([pcp06]). Plain
    /// first-in-first-out queues will do; a switch that serves control packets first lets probes
    /// without payload pass the queue that they are to measure.
    pub struct Config {
        /// How the network is asked.
        pub probes: Probes = defaults();
        /// How queues are answered.
        pub compensation: rate_compensation::Config = defaults();
        /// What is remembered of earlier flows between the same hosts.
        pub history: History = History::Largest;
        /// Most that the first probe asks for, as a share of the remembered rate ([pcp06] §3.4: a
        /// third). The share halves when history was wrong and doubles when it was right.
        pub share: f64 = 1.0 / 3.0, where positive_fraction;
        /// When history was right.
        pub accuracy: Accuracy = Accuracy::FirstProbe;
        /// Whether the least delay is remembered as well; otherwise a flow that starts behind a queue
        /// takes it for the way's length until it has drained once.
        pub remembers_delay: bool = true;
        /// A rate that every flow believes to be remembered, whatever was ([pcp06] figure 7).
        pub rigged: Option<Rate> = None, where positive_if_given;
        /// How data is made reliable. Lost packets are sent again in the next paced slot.
        pub reliability: Reliability = Reliability {
            min_rto: Duration::from_millis(10),
            timer_granularity: Duration::from_millis(10),
            ..Reliability::internet()
        };
    }
    check |config| {
        if !config.reliability.handshake {
            let message = "must be true: the SYN gives the round-trip time";
            return Err(Problem::new("reliability.handshake", message));
        }
        config.reliability.must_answer_each("every packet's delay is wanted")
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        let told = match self.history {
            History::Largest | History::Last => path.memo,
            History::Off => None,
        };
        let least_delay = match told {
            Some(memo) if self.remembers_delay => memo.least_delay,
            _ => f64::INFINITY,
        };
        let rigged = self.rigged.map(|rate| CachedPathState {
            rate: rate.bps(),
            share: self.share,
            least_delay,
        });
        let packet = path.format.payload + path.format.header;
        Box::new(Pcp {
            config: self.clone(),
            packet,
            least_packet: path.format.ack.min(packet),
            most: path.line_rate.bps(),
            told: rigged.or(told),
            rtt: path.base_rtt,
            floor: 0.0,
            base: 0.0,
            largest: 0.0,
            increment: 0.0,
            probing: Probing::Closed,
            has_asked: false,
            wait: 1.0,
            first_passed: None,
            compensation: RateCompensation::new(&self.compensation, least_delay),
            random: Random::new(path.seed, "transport/pcp"),
        })
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        Mechanism {
            sends_trains: true,
            echoes_one_way_delay: true,
            ..Mechanism::paced(&self.reliability)
        }
    }
}

/// What the search for more is at.
#[derive(Clone, Debug)]
enum Probing {
    /// The handshake is not over.
    Closed,
    /// The next probe goes at this time.
    Waiting(Time),
    /// A probe is on its way.
    Asking(ProbeTrain),
}

/// The state of one flow; rates in bits a second.
struct Pcp {
    config: Config,
    /// A full packet on the wire, and the smallest there is.
    packet: Bytes,
    least_packet: Bytes,
    most: f64,
    told: Option<CachedPathState>,
    /// Smoothed round-trip time.
    rtt: Duration,
    /// Least increment.
    floor: f64,
    /// The rate that has been granted.
    base: f64,
    largest: f64,
    /// The increment to ask for next.
    increment: f64,
    probing: Probing,
    /// Whether the first probe is over; nothing but it is sent before.
    has_asked: bool,
    /// Mean wait after the next failure at the floor, in round trips.
    wait: f64,
    first_passed: Option<bool>,
    compensation: RateCompensation,
    random: Random,
}

impl Pcp {
    /// A full packet a round trip.
    fn least(&self) -> f64 {
        (self.packet.bits() / self.rtt.seconds()).min(self.most)
    }

    /// The probe for the present increment. The time it takes is what sets its rate, up to where it
    /// would be too short to tell anything.
    fn shape(&self) -> Shape {
        let Probes { packets, amount, content, .. } = self.config.probes;
        let full = self.packet.bits();
        let bits = if self.increment < self.floor {
            (self.increment * self.rtt.seconds() / 2.0)
                .clamp(full.min(amount * full), amount * full)
        } else {
            amount * full
        };
        let packets = packets.max((bits / full).ceil() as u32);
        let bytes = Bytes((bits / 8.0 / f64::from(packets)).ceil() as u64);
        let bytes = bytes.clamp(self.least_packet, self.packet);
        let each = match content {
            Content::Data if bytes == self.packet => TrainPacket::Segment,
            Content::Data | Content::Padding => TrainPacket::Padding(bytes),
        };
        let gap = Duration(Rate::from_bps(self.increment).transmit(bytes).0.max(1));
        Shape { packets, each, gap, patience: self.rtt * 2 }
    }

    fn ask(&mut self, now: Time) {
        self.probing = Probing::Asking(ProbeTrain::new(self.shape(), now));
    }

    /// Asks again after this many round trips on average.
    fn ask_after(&mut self, now: Time, round_trips: f64) {
        if round_trips > 0.0 {
            let spread = 0.5 + self.random.uniform();
            let wait = Duration::from_seconds(round_trips * spread * self.rtt.seconds());
            self.probing = Probing::Waiting(now + wait.max(Duration(1)));
        } else {
            self.ask(now);
        }
    }

    fn conclude(&mut self, now: Time, ended: Ended) {
        self.has_asked = true;
        let Probes { acceptance, tolerance, spacing, pause, longest_wait, .. } = self.config.probes;
        let passed = match ended {
            Ended::Answered(slope) => slope.is_flat(acceptance, tolerance, &mut self.random),
            Ended::Lost => false,
            Ended::CutShort => return self.ask_after(now, 1.0),
        };
        self.first_passed.get_or_insert(passed);
        if passed {
            self.base = (self.base + self.increment).min(self.most);
            self.largest = self.largest.max(self.base);
            self.increment = (self.increment * 2.0).min(self.most);
            self.wait = 1.0;
            self.ask_after(now, pause);
        } else if self.increment > self.floor {
            self.increment = (self.increment / 2.0).max(self.floor);
            self.ask_after(now, spacing);
        } else {
            self.ask_after(now, self.wait.max(spacing));
            self.wait = (self.wait * 2.0).min(longest_wait);
        }
    }

    /// Whether history was right, if the flow has tried it.
    fn was_right(&self, told: CachedPathState) -> Option<bool> {
        let first_passed = self.first_passed?;
        Some(match self.config.accuracy {
            Accuracy::FirstProbe => first_passed,
            Accuracy::WithinTwo => (0.5..=2.0).contains(&(self.largest / told.rate)),
        })
    }
}

impl Controller for Pcp {
    fn on_open(&mut self, opened: &Opened) {
        self.rtt = opened.rtt.max(Duration(1));
        self.floor = (self.config.probes.floor * self.least()).min(self.most);
        let first = (self.config.probes.first * self.least()).min(self.most);
        self.increment = match self.told {
            None => first,
            Some(memo) => (memo.rate * memo.share).clamp(self.floor, self.most),
        };
        self.ask(opened.now);
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.rtt = smooth(Some(self.rtt), ack.rtt).max(Duration(1));
        let delay = f64::from(ack.feedback);
        if !ack.is_of_probe
            && let Some(factor) = self.compensation.on_delay(ack.now, ack.sent_at, delay, self.rtt)
        {
            self.base = if self.base > 0.0 { (self.base * factor).max(self.least()) } else { 0.0 };
        }
        if let Probing::Asking(train) = &mut self.probing
            && let Some(ended) = train.on_answer(ack.sent_at, delay, ack.is_of_probe)
        {
            self.conclude(ack.now, ended);
        }
    }

    fn on_sent(&mut self, now: Time, _bytes: Bytes) {
        if let Probing::Asking(train) = &mut self.probing {
            train.on_sent(now);
        }
    }

    fn beside(&mut self, now: Time) -> Option<TrainPacket> {
        match &mut self.probing {
            Probing::Asking(train) => train.beside(now),
            Probing::Closed | Probing::Waiting(_) => None,
        }
    }

    fn on_timer(&mut self, now: Time) {
        match &mut self.probing {
            Probing::Waiting(until) if *until <= now => self.ask(now),
            Probing::Closed | Probing::Waiting(_) => {}
            Probing::Asking(train) => {
                if let Some(ended) = train.on_timer(now) {
                    self.conclude(now, ended);
                }
            }
        }
    }

    fn next_timer(&self) -> Time {
        match &self.probing {
            Probing::Closed => Time::NEVER,
            Probing::Waiting(until) => *until,
            Probing::Asking(train) => train.next_timer(),
        }
    }

    fn allowance(&self) -> Allowance {
        if self.has_asked {
            Allowance::rate(self.base.max(self.least()).min(self.most))
        } else {
            Allowance { rate: Some(Rate(0)), ..Allowance::rate(0.0) }
        }
    }

    fn memo(&self) -> Option<CachedPathState> {
        let rate = match self.config.history {
            History::Largest => self.largest,
            History::Last => self.base,
            History::Off => return None,
        };
        let share = match self.told.and_then(|told| self.was_right(told)) {
            None => self.told.map_or(self.config.share, |told| told.share),
            Some(true) => (self.told?.share * 2.0).min(self.config.share),
            Some(false) => self.told?.share / 2.0,
        };
        let least_delay = self.compensation.least();
        if rate > 0.0 {
            Some(CachedPathState { rate, share, least_delay })
        } else {
            self.told.map(|told| CachedPathState { share, least_delay, ..told })
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
