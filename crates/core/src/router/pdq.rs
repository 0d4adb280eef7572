//! PDQ's router: keeps the most critical flows in order, and lets them send one after the other.
//!
//! Source: [pdq12] §3, restated where the paper leaves things open. It reads and writes what
//! packets say on their way there, and takes decisions over into its list when their ACKs come back, so
//! that all routers of a way agree.

use super::{FlowInfo, PortInfo, PortView, Router, RouterKind};
use crate::base::random::Random;
use crate::base::schema::{not_negative, positive};
use crate::base::units::{Duration, Time};
use crate::model::packet::{FlowNumber, Grant, Header, Kind, Packet};

crate::parameters! {
    /// PDQ's router: lets the most critical flows send and pauses the others; the earlier deadline is the
    /// more critical, then the shorter rest ([pdq12]).
    pub struct Config {
        /// K: flows that are over within so many round trips no longer hold back the next ones, up to
        /// that many round trips of them together ([pdq12] §3: 2); 0 for no early start.
        pub early_start: f64 = 2.0, where not_negative;
        /// Whether paused flows further down the list ask less often ([pdq12] §3).
        pub suppressed_probing: bool = true;
        /// After it has let a paused flow go, a router lets no other go for this long ([pdq12] §3
        /// says a small time).
        pub dampening: Duration = Duration::from_micros(10);
        /// Round-trip time before a flow has told one.
        pub initial_rtt: Duration = Duration::from_micros(100), where positive;
        /// Most flows that it remembers; others share what these leave ([pdq12] §3).
        pub most_flows: u32 = 4096, where positive;
    }
}

impl RouterKind for Config {
    /// Packets name a router in sixteen bits.
    fn max_links(&self) -> usize {
        1 << 16
    }

    fn build(&self, port: PortInfo, _random: Random) -> Box<dyn Router> {
        let line = port.rate.bps() / 8.0;
        Box::new(Pdq {
            config: self.clone(),
            me: port.link as u16,
            line,
            capacity: line,
            list: Vec::new(),
            rtt: self.initial_rtt.seconds(),
            let_go: None,
            unlisted: Vec::new(),
            share: 0.0,
            next_tick: Time::ZERO + self.initial_rtt * 2,
        })
    }
}

/// Less than this share of the line is not worth a flow's while. Deviation: the paper knows no bound, but
/// rates that differ by rounding would else let the next flow go with next to nothing.
const LEAST_SHARE: f64 = 0.01;

/// A flow that has not been heard of for so many round trips is forgotten: its last packet may be lost.
const SILENT_ROUND_TRIPS: f64 = 50.0;

/// A paused flow's interval between probes grows by this many fifths of a round trip with each place in
/// the list ([pdq12] §3: 0.2).
const FIFTHS_A_PLACE: usize = 1;

/// A flow in the list.
#[derive(Clone, Copy, Debug)]
struct Entry {
    flow: FlowNumber,
    deadline: Time,
    /// What it has left to send, in seconds at its line rate.
    remaining: f32,
    /// Its round-trip time in seconds; 0 while unknown.
    rtt: f32,
    /// What it sends, as its last ACK said, in bytes a second.
    rate: f64,
    /// The router that pauses it.
    paused_by: Option<u16>,
    heard: Time,
}

impl Entry {
    /// Whether it goes before `other`.
    fn is_before(&self, other: &Self) -> bool {
        let by_rest = || self.remaining.total_cmp(&other.remaining);
        let by_number = || self.flow.cmp(&other.flow);
        self.deadline.cmp(&other.deadline).then_with(by_rest).then_with(by_number).is_lt()
    }
}

/// The state of one port; rates in bytes a second.
struct Pdq {
    config: Config,
    me: u16,
    line: f64,
    /// C: what flows may send together.
    capacity: f64,
    /// The flows it knows, the most critical first.
    list: Vec<Entry>,
    /// Mean round-trip time of the listed flows, in seconds.
    rtt: f64,
    /// The paused flow that was let go last, and when.
    let_go: Option<(FlowNumber, Time)>,
    /// Flows that found no place in the list since the last tick.
    unlisted: Vec<FlowNumber>,
    /// What each of them may send.
    share: f64,
    next_tick: Time,
}

impl Router for Pdq {
    fn on_arrival(&mut self, packet: &mut Packet, flow_info: &FlowInfo, now: Time) {
        if packet.kind == Kind::Fin {
            self.forget(packet.flow);
            return;
        }
        let Header::Pdq { grant, remaining, rtt } = packet.header() else { return };
        let (wanted, paused_by) = match grant {
            Grant::Rate(rate) => (f64::from(rate), None),
            Grant::Pause { by, .. } if by != self.me => {
                self.forget(packet.flow);
                return;
            }
            Grant::Pause { by, .. } => (flow_info.line_rate.bps() / 8.0, Some(by)),
        };
        let known = self.place(packet.flow).map(|place| self.list.remove(place));
        let entry = Entry {
            flow: packet.flow,
            deadline: flow_info.deadline,
            remaining,
            rtt,
            rate: known.map_or(0.0, |known| known.rate),
            paused_by: known.map_or(paused_by, |known| known.paused_by),
            heard: now,
        };
        let granted = match self.enter(entry, known.is_some()) {
            Some(place) => self.judge(place, wanted, now),
            None => self.share_with(packet.flow).min(wanted),
        };
        let grant = if granted > 0.0 {
            Grant::Rate(granted as f32)
        } else {
            Grant::Pause { by: self.me, probe_after: 0 }
        };
        packet.write_feedback(grant.number());
    }

    fn reads_acks(&self) -> bool {
        true
    }

    fn on_ack_return(&mut self, packet: &mut Packet, _flow_info: &FlowInfo, _now: Time) {
        let grant = match packet.header() {
            Header::Ack { feedback, .. } if feedback != 0.0 => Grant::of(feedback),
            _ => return,
        };
        let Some(place) = self.place(packet.flow) else { return };
        let entry = &mut self.list[place];
        match grant {
            Grant::Rate(rate) => (entry.rate, entry.paused_by) = (f64::from(rate), None),
            Grant::Pause { by, .. } if by != self.me => {
                self.list.remove(place);
            }
            Grant::Pause { by, probe_after } => {
                (entry.rate, entry.paused_by) = (0.0, Some(by));
                if self.config.suppressed_probing {
                    let fifths = u8::try_from(FIFTHS_A_PLACE * place).unwrap_or(u8::MAX);
                    let probe_after = probe_after.max(fifths);
                    packet.write_feedback(Grant::Pause { by, probe_after }.number());
                }
            }
        }
    }

    fn next_tick(&self) -> Time {
        self.next_tick
    }

    /// The rate controller ([pdq12] §3), every two round trips.
    fn on_tick(&mut self, view: PortView) {
        let silent = Duration::from_seconds(SILENT_ROUND_TRIPS * self.rtt);
        self.list.retain(|entry| view.now.since(entry.heard) <= silent);
        let told = self.list.iter().filter(|entry| entry.rtt > 0.0);
        let (sum, count) =
            told.fold((0.0, 0.0), |(sum, count), entry| (sum + f64::from(entry.rtt), count + 1.0));
        if count > 0.0 {
            self.rtt = sum / count;
        }
        let span = 2.0 * self.rtt;
        self.capacity = (self.line - view.backlog as f64 / span).max(0.0);
        self.unlisted.sort_unstable();
        self.unlisted.dedup();
        let left = self.capacity - self.list.iter().map(|entry| entry.rate).sum::<f64>();
        self.share = self.worth(left / self.unlisted.len().max(1) as f64);
        self.unlisted.clear();
        self.next_tick = view.now + Duration::from_seconds(span);
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        let sending = self.list.iter().filter(|entry| entry.rate > 0.0).count();
        vec![
            ("capacity_bps", self.capacity * 8.0),
            ("listed_flows", self.list.len() as f64),
            ("sending_flows", sending as f64),
        ]
    }
}

impl Pdq {
    fn place(&self, flow: FlowNumber) -> Option<usize> {
        self.list.iter().position(|entry| entry.flow == flow)
    }

    fn forget(&mut self, flow: FlowNumber) {
        if let Some(place) = self.place(flow) {
            self.list.remove(place);
        }
    }

    /// The rate, or nothing if that is not worth having.
    fn worth(&self, rate: f64) -> f64 {
        if rate < LEAST_SHARE * self.line { 0.0 } else { rate }
    }

    /// Puts a flow in its place; none if the list is full of more critical ones. It holds twice as many
    /// as are sending ([pdq12] §3).
    fn enter(&mut self, entry: Entry, was_listed: bool) -> Option<usize> {
        let sending = self.list.iter().filter(|other| other.rate > 0.0).count();
        let room = (2 * sending.max(1)).min(self.config.most_flows as usize);
        let place = self.list.partition_point(|other| other.is_before(&entry));
        if !was_listed && place >= room {
            return None;
        }
        self.list.insert(place, entry);
        if !was_listed {
            self.list.truncate(room);
        }
        Some(place)
    }

    /// What the flow at a place may send; 0 pauses it.
    fn judge(&mut self, place: usize, wanted: f64, now: Time) -> f64 {
        let rate = self.worth(self.available(place)).min(wanted);
        let Entry { flow, paused_by, .. } = self.list[place];
        let window = self.config.dampening;
        let is_dampened = paused_by.is_some()
            && self.let_go.is_some_and(|(other, when)| other != flow && now.since(when) < window);
        if rate > 0.0 && !is_dampened {
            if paused_by.is_some() {
                self.let_go = Some((flow, now));
            }
            return rate;
        }
        self.list[place].paused_by = Some(self.me);
        0.0
    }

    /// What the flows before a place leave, but for those that are about to end ([pdq12] algorithm 2).
    fn available(&self, place: usize) -> f64 {
        let most = self.config.early_start;
        let (mut ending, mut taken) = (0.0, 0.0);
        for entry in &self.list[..place] {
            let rtt = if entry.rtt > 0.0 { f64::from(entry.rtt) } else { self.rtt };
            let rest = f64::from(entry.remaining) / rtt;
            if rest < most && ending < most {
                ending += rest;
            } else {
                taken += entry.rate;
            }
        }
        (self.capacity - taken).max(0.0)
    }

    /// What a flow outside the list may send ([pdq12] §3: as RCP shares out what is left).
    fn share_with(&mut self, flow: FlowNumber) -> f64 {
        self.unlisted.push(flow);
        self.share
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::{Parameter, defaults};
    use crate::model::packet::Format;
    use crate::router::tests::{FLOW, PORT};
    use serde_json::json;

    /// The line's rate in bytes a second, and a round trip in seconds.
    const LINE: f32 = 125e6;
    const RTT: f32 = 1e-4;

    fn router(config: &serde_json::Value) -> Box<dyn Router> {
        Config::read(config).unwrap().build(PORT, Random::new(1, "router"))
    }

    fn at(us: u64) -> Time {
        Time::ZERO + Duration::from_micros(us)
    }

    /// Sends a packet of a flow with so many seconds left and a grant to a router at a time, and its ACK
    /// back; says what the ACK brings.
    fn ask_with(router: &mut dyn Router, flow: u32, rest: f32, grant: Grant, now: Time) -> Grant {
        let format: Format = defaults();
        let flow_info = FlowInfo { flow: u64::from(flow), ..FLOW };
        let header = Header::Pdq { grant, remaining: rest, rtt: RTT };
        let mut packet = format.control(Kind::Data, flow, now).with_header(header);
        router.on_arrival(&mut packet, &flow_info, now);
        let feedback = packet.header().feedback();
        let ack = Header::Ack { block: (0, 0), feedback };
        let mut ack = format.control(Kind::Ack, flow, now).with_header(ack);
        router.on_ack_return(&mut ack, &flow_info, now);
        Grant::of(ack.header().feedback())
    }

    fn ask(router: &mut dyn Router, flow: u32, rest: f32, us: u64) -> Grant {
        ask_with(router, flow, rest, Grant::Rate(LINE), at(us))
    }

    const PAUSED: Grant = Grant::Pause { by: 7, probe_after: 1 };

    #[test]
    fn the_shorter_flow_sends_and_the_longer_waits() {
        let mut router = router(&json!({}));
        assert_eq!(ask(&mut *router, 0, 0.1, 0), Grant::Rate(LINE));
        assert_eq!(ask(&mut *router, 1, 0.2, 1), PAUSED);
        // A shorter one preempts, and the first learns of it with its next packet.
        assert_eq!(ask(&mut *router, 2, 0.05, 2), Grant::Rate(LINE));
        assert_eq!(ask(&mut *router, 0, 0.09, 3), PAUSED);
    }

    #[test]
    fn a_deadline_goes_before_none_and_the_earlier_before_the_later() {
        let mut router = router(&json!({}));
        let format: Format = defaults();
        let mut grants = Vec::new();
        for (flow, deadline) in [(0, Time::NEVER), (1, at(900)), (2, at(500))] {
            let flow_info = FlowInfo { flow: u64::from(flow), deadline, ..FLOW };
            let header = Header::Pdq { grant: Grant::Rate(LINE), remaining: 0.1, rtt: RTT };
            let mut packet = format.control(Kind::Data, flow, at(0)).with_header(header);
            router.on_arrival(&mut packet, &flow_info, at(0));
            grants.push(Grant::of(packet.header().feedback()));
            let ack = Header::Ack { block: (0, 0), feedback: packet.header().feedback() };
            router.on_ack_return(
                &mut format.control(Kind::Ack, flow, at(0)).with_header(ack),
                &flow_info,
                at(0),
            );
        }
        assert_eq!(grants, [Grant::Rate(LINE); 3], "each is more critical than those before");
    }

    #[test]
    fn the_next_starts_early_when_the_one_before_is_about_to_end() {
        for (early_start, rest, expected) in [
            (2.0, 1.9 * RTT, Grant::Rate(LINE)),
            (2.0, 2.1 * RTT, PAUSED),
            (0.0, 1.9 * RTT, PAUSED),
        ] {
            let mut router = router(&json!({ "early_start": early_start }));
            ask(&mut *router, 0, rest, 0);
            assert_eq!(ask(&mut *router, 1, 0.2, 1), expected, "{early_start}, {rest}");
        }
    }

    #[test]
    fn the_end_of_a_flow_lets_one_paused_flow_go_at_a_time() {
        let mut router = router(&json!({}));
        ask(&mut *router, 0, 0.1, 0);
        for flow in [1, 2] {
            ask(&mut *router, flow, 0.1 + 0.01 * flow as f32, 1);
        }
        let format: Format = defaults();
        router.on_arrival(&mut format.control(Kind::Fin, 0, at(2)), &FLOW, at(2));
        let probe = |router: &mut dyn Router, flow: u32, us| {
            let pause = Grant::Pause { by: 7, probe_after: 0 };
            ask_with(router, flow, 0.1 + 0.01 * flow as f32, pause, at(us))
        };
        assert_eq!(probe(&mut *router, 2, 3), Grant::Rate(LINE), "it asks first");
        assert!(matches!(probe(&mut *router, 1, 5), Grant::Pause { .. }), "dampened");
        assert_eq!(probe(&mut *router, 1, 20), Grant::Rate(LINE), "it is the more critical");
        assert!(matches!(ask(&mut *router, 2, 0.12, 21), Grant::Pause { .. }));
    }

    #[test]
    fn a_flow_that_another_router_pauses_holds_nobody_back() {
        let mut router = router(&json!({}));
        ask(&mut *router, 0, 0.1, 0);
        let elsewhere = Grant::Pause { by: 3, probe_after: 0 };
        assert_eq!(ask_with(&mut *router, 0, 0.1, elsewhere, at(1)), elsewhere);
        assert_eq!(ask(&mut *router, 1, 0.2, 2), Grant::Rate(LINE));
    }

    #[test]
    fn a_flow_that_falls_silent_is_forgotten() {
        let mut router = router(&json!({ "initial_rtt": "100 us" }));
        ask(&mut *router, 0, 0.1, 0);
        while router.next_tick() < at(4_900) {
            let now = router.next_tick();
            router.on_tick(PortView { now, backlog: 0 });
        }
        assert_eq!(ask(&mut *router, 1, 0.2, 4_900), PAUSED);
        while router.next_tick() < at(5_500) {
            let now = router.next_tick();
            router.on_tick(PortView { now, backlog: 0 });
        }
        assert_eq!(ask(&mut *router, 1, 0.2, 5_500), Grant::Rate(LINE));
    }

    #[test]
    fn what_waits_is_taken_off_the_capacity_over_two_round_trips() {
        let mut router = router(&json!({ "initial_rtt": "100 us" }));
        router.on_tick(PortView { now: at(200), backlog: 5_000 });
        // 5 KB in 200 us are 25 MB/s.
        assert_eq!(ask(&mut *router, 0, 0.1, 201), Grant::Rate(100e6));
        let gauges: Vec<_> = router.gauges().into_iter().map(|gauge| gauge.1).collect();
        assert_eq!(gauges, [8e8, 1.0, 1.0]);
    }
}
