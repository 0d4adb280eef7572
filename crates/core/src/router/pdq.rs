//! PDQ's router: keeps a list of flows in order of criticality and lets the most critical send one
//! after the other.
//!
//! Source: [pdq12] §3, with open details filled in. The router reads and writes headers on the
//! forward path, and copies decisions into its list when ACKs return, so that all routers of a path
//! agree.

use super::{FlowInfo, PortInfo, PortView, Router, RouterKind};
use crate::base::random::Random;
use crate::base::schema::{not_negative, positive};
use crate::base::units::{Duration, Time};
use crate::model::packet::{FlowNumber, Grant, Header, Kind, Packet};

crate::parameters! {
    /// PDQ's router: lets the most critical flows send and pauses the others. The flow with the
    /// earlier deadline is more critical, then the one with less remaining data ([pdq12]).
    pub struct Config {
        /// K: flows that end within this many RTTs do not block the following flows, up to a total
        /// of K RTTs of such flows ([pdq12] §3: 2). 0: no Early Start.
        pub early_start: f64 = 2.0, where not_negative;
        /// If true, paused flows send fewer probes the lower they are in the list ([pdq12] §3).
        pub suppressed_probing: bool = true;
        /// Time after resuming a flow during which the router resumes no other flow ([pdq12] §3: a
        /// small time).
        pub dampening: Duration = Duration::from_micros(10);
        /// RTT before a flow has reported one.
        pub initial_rtt: Duration = Duration::from_micros(100), where positive;
        /// Maximum length of the list. Other flows share the remaining capacity ([pdq12] §3).
        pub most_flows: u32 = 4096, where positive;
    }
}

impl RouterKind for Config {
    /// Headers identify a router by sixteen bits.
    fn max_links(&self) -> usize {
        1 << 16
    }

    fn build(&self, port: PortInfo, _random: Random) -> Box<dyn Router> {
        let link_rate = port.rate.bps() / 8.0;
        Box::new(Pdq {
            config: self.clone(),
            router_id: port.link as u16,
            link_rate,
            capacity: link_rate,
            list: Vec::new(),
            rtt: self.initial_rtt.seconds(),
            last_resumed: None,
            unlisted: Vec::new(),
            seen: [0; 2],
            share: link_rate,
            next_tick: Time::ZERO + self.initial_rtt * 2,
        })
    }
}

/// Smallest rate that is granted, as a fraction of the link rate. Deviation: the paper has no
/// bound, but rates that differ by rounding would let the next flow start at a negligible rate.
const MIN_SHARE: f64 = 0.01;

/// Number of RTTs without packets after which a flow is removed, since its last packet may be lost.
const TIMEOUT_RTTS: f64 = 50.0;

/// Increase of a paused flow's probing interval per position in the list, in fifths of an RTT
/// ([pdq12] §3: 0.2).
const PROBE_STEP_FIFTHS: usize = 1;

/// Flow in the list.
#[derive(Clone, Copy, Debug)]
struct ListedFlow {
    flow: FlowNumber,
    deadline: Time,
    /// Remaining transmission time at the sender's link rate, in seconds.
    remaining: f32,
    /// RTT in seconds; 0 if unknown.
    rtt: f32,
    /// Rate granted by its last ACK, in bytes per second.
    rate: f64,
    /// Rate that this router granted last, which an ACK may not have confirmed yet.
    granted: f64,
    /// Router that pauses the flow.
    paused_by: Option<u16>,
    last_seen: Time,
}

impl ListedFlow {
    /// Returns true if the flow is more critical than `other`.
    fn is_before(&self, other: &Self) -> bool {
        let by_remaining = || self.remaining.total_cmp(&other.remaining);
        let by_number = || self.flow.cmp(&other.flow);
        self.deadline.cmp(&other.deadline).then_with(by_remaining).then_with(by_number).is_lt()
    }
}

/// State of one port; rates in bytes per second.
struct Pdq {
    config: Config,
    router_id: u16,
    link_rate: f64,
    /// C: total rate that flows may send at.
    capacity: f64,
    /// Listed flows, the most critical first.
    list: Vec<ListedFlow>,
    /// Mean RTT of the listed flows, in seconds.
    rtt: f64,
    /// Flow that was resumed last, and the time.
    last_resumed: Option<(FlowNumber, Time)>,
    /// Flows that do not fit into the list and were seen since the last tick, in order of their numbers, with
    /// the rates that they were granted.
    unlisted: Vec<(FlowNumber, f64)>,
    /// Number of times that a flow joined these since the last tick, and before it. A flow that was listed
    /// meanwhile counts again: with each flow once, 48 flows of 1 MB at 1 Gb/s took 1.4 times as long.
    seen: [usize; 2],
    /// Largest rate of an unlisted flow.
    share: f64,
    next_tick: Time,
}

impl Router for Pdq {
    fn on_arrival(&mut self, packet: &mut Packet, flow_info: &FlowInfo, now: Time) {
        if packet.kind == Kind::Fin {
            self.remove(packet.flow);
            return;
        }
        let Header::Pdq { grant, remaining, rtt } = packet.header() else { return };
        let (requested, paused_by) = match grant {
            Grant::Rate(rate) => (f64::from(rate), None),
            Grant::Pause { by, .. } if by != self.router_id => {
                self.remove(packet.flow);
                return;
            }
            Grant::Pause { by, .. } => (flow_info.line_rate.bps() / 8.0, Some(by)),
        };
        let previous = self.position(packet.flow).map(|position| self.list.remove(position));
        let entry = ListedFlow {
            flow: packet.flow,
            deadline: flow_info.deadline,
            remaining,
            rtt,
            rate: previous.map_or(0.0, |previous| previous.rate),
            granted: 0.0,
            paused_by: previous.map_or(paused_by, |previous| previous.paused_by),
            last_seen: now,
        };
        let (granted, probe_after) = match self.insert(entry, previous.is_some()) {
            Some(position) => {
                let rate = self.allocate(position, requested, now);
                self.list[position].granted = rate;
                (rate, 0)
            }
            None => (
                self.grant_unlisted(packet.flow, requested),
                self.probe_after(self.last_position()),
            ),
        };
        let grant = if granted > 0.0 {
            Grant::Rate(granted as f32)
        } else {
            Grant::Pause { by: self.router_id, probe_after }
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
        let Some(position) = self.position(packet.flow) else {
            // The flow left the list after it was granted a rate.
            if let Grant::Pause { by, probe_after: 0 } = grant
                && by == self.router_id
            {
                self.suppress_probes(packet, self.last_position(), 0);
            }
            return;
        };
        let entry = &mut self.list[position];
        match grant {
            Grant::Rate(rate) => {
                (entry.rate, entry.paused_by) = (f64::from(rate), None);
                entry.granted = entry.rate;
            }
            Grant::Pause { by, .. } if by != self.router_id => {
                self.list.remove(position);
            }
            Grant::Pause { by, probe_after } => {
                (entry.rate, entry.granted, entry.paused_by) = (0.0, 0.0, Some(by));
                self.suppress_probes(packet, position, probe_after);
            }
        }
    }

    fn next_tick(&self) -> Time {
        self.next_tick
    }

    /// Rate controller ([pdq12] §3), every two RTTs.
    fn on_tick(&mut self, view: PortView) {
        let timeout = Duration::from_seconds(TIMEOUT_RTTS * self.rtt);
        self.list.retain(|entry| view.now.since(entry.last_seen) <= timeout);
        let with_rtt = self.list.iter().filter(|entry| entry.rtt > 0.0);
        let (sum, count) = with_rtt
            .fold((0.0, 0.0), |(sum, count), entry| (sum + f64::from(entry.rtt), count + 1.0));
        if count > 0.0 {
            self.rtt = sum / count;
        }
        let span = 2.0 * self.rtt;
        self.capacity = (self.link_rate - view.backlog as f64 / span).max(0.0);
        self.unlisted.clear();
        let share = self.ungranted() / self.unlisted_count().max(1) as f64;
        self.share = share.max(MIN_SHARE * self.link_rate);
        self.seen = [0, self.seen[0]];
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
    fn position(&self, flow: FlowNumber) -> Option<usize> {
        self.list.iter().position(|entry| entry.flow == flow)
    }

    fn remove(&mut self, flow: FlowNumber) {
        if let Some(position) = self.position(flow) {
            self.list.remove(position);
        } else if let Ok(place) = self.unlisted_place(flow) {
            self.unlisted.remove(place);
        }
    }

    /// Returns the place of a flow among those outside the list, or the place at which to insert it.
    fn unlisted_place(&self, flow: FlowNumber) -> Result<usize, usize> {
        self.unlisted.binary_search_by_key(&flow, |other| other.0)
    }

    /// Returns the position behind the listed and the other flows. The paper leaves open how often flows
    /// probe that are not in the list: once per RTT, the probes of hundreds would leave data no room.
    fn last_position(&self) -> usize {
        self.list.len() + self.unlisted_count()
    }

    /// Number of flows outside the list: those of the time between two ticks.
    fn unlisted_count(&self) -> usize {
        self.seen[0].max(self.seen[1])
    }

    /// Lets a flow that this router pauses probe later the lower it is, unless another router defers its
    /// probes further.
    fn suppress_probes(&self, packet: &mut Packet, position: usize, probe_after: u8) {
        let probe_after = probe_after.max(self.probe_after(position));
        packet.write_feedback(Grant::Pause { by: self.router_id, probe_after }.number());
    }

    /// Returns the time to the next probe of a flow at this position, in fifths of an RTT.
    fn probe_after(&self, position: usize) -> u8 {
        let longest = Grant::UNCONFIRMED - 1;
        let fifths = u8::try_from(PROBE_STEP_FIFTHS * position).unwrap_or(longest).min(longest);
        if self.config.suppressed_probing { fifths } else { 0 }
    }

    /// Returns the rate, or 0 if it is too small to be granted.
    fn zero_if_small(&self, rate: f64) -> f64 {
        if rate < MIN_SHARE * self.link_rate { 0.0 } else { rate }
    }

    /// Inserts a flow by criticality. Returns its position, or `None` if the list is full of more
    /// critical flows. The list holds twice the number of sending flows ([pdq12] §3).
    fn insert(&mut self, entry: ListedFlow, was_listed: bool) -> Option<usize> {
        let sending = self.list.iter().filter(|other| other.rate > 0.0).count();
        let limit = (2 * sending.max(1)).min(self.config.most_flows as usize);
        let position = self.list.partition_point(|other| other.is_before(&entry));
        if !was_listed && position >= limit {
            return None;
        }
        if !was_listed {
            self.remove(entry.flow);
        }
        self.list.insert(position, entry);
        if !was_listed {
            self.list.truncate(limit);
        }
        Some(position)
    }

    /// Returns the rate of the flow at a position; 0 pauses it.
    fn allocate(&mut self, position: usize, requested: f64, now: Time) -> f64 {
        let left = self.left_by(&self.list[..position], |entry| entry.rate);
        let rate = self.zero_if_small(left.max(0.0)).min(requested);
        let ListedFlow { flow, paused_by, .. } = self.list[position];
        let dampening = self.config.dampening;
        let is_dampened = paused_by.is_some()
            && self
                .last_resumed
                .is_some_and(|(other, when)| other != flow && now.since(when) < dampening);
        if rate > 0.0 && !is_dampened {
            if paused_by.is_some() {
                self.last_resumed = Some((flow, now));
            }
            return rate;
        }
        self.list[position].paused_by = Some(self.router_id);
        0.0
    }

    /// Returns the capacity that flows of the list leave at these rates, except those that are about to end
    /// ([pdq12] algorithm 2).
    fn left_by(&self, flows: &[ListedFlow], rate: impl Fn(&ListedFlow) -> f64) -> f64 {
        let early_start = self.config.early_start;
        let (mut ending_rtts, mut taken) = (0.0, 0.0);
        for entry in flows {
            let rtt = if entry.rtt > 0.0 { f64::from(entry.rtt) } else { self.rtt };
            let remaining_rtts = f64::from(entry.remaining) / rtt;
            if remaining_rtts < early_start && ending_rtts < early_start {
                ending_rtts += remaining_rtts;
            } else {
                taken += rate(entry);
            }
        }
        self.capacity - taken
    }

    /// Returns the capacity that is left for flows outside the list.
    fn ungranted(&self) -> f64 {
        let unlisted: f64 = self.unlisted.iter().map(|other| other.1).sum();
        self.left_by(&self.list, |entry| entry.granted) - unlisted
    }

    /// Returns the rate of a flow outside the list ([pdq12] §3: RCP with the remaining capacity). It is taken
    /// from the capacity that no flow has been granted, since more flows than were counted may arrive before
    /// the next tick.
    fn grant_unlisted(&mut self, flow: FlowNumber, requested: f64) -> f64 {
        let place = self.unlisted_place(flow).unwrap_or_else(|place| {
            self.unlisted.insert(place, (flow, 0.0));
            self.seen[0] += 1;
            place
        });
        self.unlisted[place].1 = 0.0;
        let rate = self.zero_if_small(self.share.min(self.ungranted())).min(requested);
        self.unlisted[place].1 = rate;
        rate
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::float_cmp, reason = "rates are requested and granted exactly")]

    use super::*;
    use crate::base::schema::{Parameter, defaults};
    use crate::model::packet::Format;
    use crate::router::tests::{FLOW, PORT};
    use serde_json::json;

    /// Link rate in bytes per second, and an RTT in seconds.
    const LINK_RATE: f32 = 125e6;
    const RTT: f32 = 1e-4;

    fn router(config: &serde_json::Value) -> Box<dyn Router> {
        Config::read(config).unwrap().build(PORT, Random::new(1, "router"))
    }

    fn at(us: u64) -> Time {
        Time::ZERO + Duration::from_micros(us)
    }

    /// Sends a packet with `remaining` seconds and a grant through a router, and its ACK back.
    /// Returns the grant in the ACK.
    fn request_with(
        router: &mut dyn Router,
        flow: u32,
        remaining: f32,
        grant: Grant,
        now: Time,
    ) -> Grant {
        let format: Format = defaults();
        let flow_info = FlowInfo { flow: u64::from(flow), ..FLOW };
        let header = Header::Pdq { grant, remaining, rtt: RTT };
        let mut packet = format.control(Kind::Data, flow, now).with_header(header);
        router.on_arrival(&mut packet, &flow_info, now);
        let feedback = packet.header().feedback();
        let ack = Header::Ack { block: (0, 0), feedback };
        let mut ack = format.control(Kind::Ack, flow, now).with_header(ack);
        router.on_ack_return(&mut ack, &flow_info, now);
        Grant::of(ack.header().feedback())
    }

    fn request(router: &mut dyn Router, flow: u32, remaining: f32, us: u64) -> Grant {
        request_with(router, flow, remaining, Grant::Rate(LINK_RATE), at(us))
    }

    const PAUSED: Grant = Grant::Pause { by: 7, probe_after: 1 };

    #[test]
    fn the_shorter_flow_sends_and_the_longer_is_paused() {
        let mut router = router(&json!({}));
        assert_eq!(request(&mut *router, 0, 0.1, 0), Grant::Rate(LINK_RATE));
        assert_eq!(request(&mut *router, 1, 0.2, 1), PAUSED);
        // A shorter flow preempts the first, which is paused at its next packet.
        assert_eq!(request(&mut *router, 2, 0.05, 2), Grant::Rate(LINK_RATE));
        assert_eq!(request(&mut *router, 0, 0.09, 3), PAUSED);
    }

    #[test]
    fn flows_with_deadlines_precede_others_in_order_of_deadlines() {
        let mut router = router(&json!({}));
        let format: Format = defaults();
        let mut grants = Vec::new();
        for (flow, deadline) in [(0, Time::NEVER), (1, at(900)), (2, at(500))] {
            let flow_info = FlowInfo { flow: u64::from(flow), deadline, ..FLOW };
            let header = Header::Pdq { grant: Grant::Rate(LINK_RATE), remaining: 0.1, rtt: RTT };
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
        assert_eq!(
            grants,
            [Grant::Rate(LINK_RATE); 3],
            "each flow is more critical than the previous ones"
        );
    }

    #[test]
    fn the_next_flow_starts_early_when_the_previous_is_about_to_end() {
        for (early_start, remaining, expected) in [
            (2.0, 1.9 * RTT, Grant::Rate(LINK_RATE)),
            (2.0, 2.1 * RTT, PAUSED),
            (0.0, 1.9 * RTT, PAUSED),
        ] {
            let mut router = router(&json!({ "early_start": early_start }));
            request(&mut *router, 0, remaining, 0);
            assert_eq!(request(&mut *router, 1, 0.2, 1), expected, "{early_start}, {remaining}");
        }
    }

    #[test]
    fn the_end_of_a_flow_resumes_paused_flows_one_at_a_time() {
        let mut router = router(&json!({}));
        request(&mut *router, 0, 0.1, 0);
        for flow in [1, 2] {
            request(&mut *router, flow, 0.1 + 0.01 * flow as f32, 1);
        }
        let format: Format = defaults();
        router.on_arrival(&mut format.control(Kind::Fin, 0, at(2)), &FLOW, at(2));
        let probe = |router: &mut dyn Router, flow: u32, us| {
            let pause = Grant::Pause { by: 7, probe_after: 0 };
            request_with(router, flow, 0.1 + 0.01 * flow as f32, pause, at(us))
        };
        assert_eq!(probe(&mut *router, 2, 3), Grant::Rate(LINK_RATE), "the first probe");
        assert!(matches!(probe(&mut *router, 1, 5), Grant::Pause { .. }), "dampened");
        assert_eq!(probe(&mut *router, 1, 20), Grant::Rate(LINK_RATE), "the more critical flow");
        assert!(matches!(request(&mut *router, 2, 0.12, 21), Grant::Pause { .. }));
    }

    #[test]
    fn a_flow_paused_by_another_router_does_not_block_others() {
        let mut router = router(&json!({}));
        request(&mut *router, 0, 0.1, 0);
        let elsewhere = Grant::Pause { by: 3, probe_after: 0 };
        assert_eq!(request_with(&mut *router, 0, 0.1, elsewhere, at(1)), elsewhere);
        assert_eq!(request(&mut *router, 1, 0.2, 2), Grant::Rate(LINK_RATE));
    }

    #[test]
    fn an_unlisted_flow_has_the_position_behind_all_others_however_often_they_send() {
        let mut router = router(&json!({ "initial_rtt": "100 us" }));
        request(&mut *router, 0, 0.1, 0);
        let waiting = |router: &mut dyn Router, flow: u32, us| {
            request(router, flow, 0.1 + 0.01 * flow as f32, us)
        };
        let at_position = |fifths| Grant::Pause { by: 7, probe_after: fifths };
        // The list has room for one of them.
        for us in 1..4 {
            (1..=11).for_each(|flow| _ = waiting(&mut *router, flow, us));
        }
        assert_eq!(waiting(&mut *router, 1, 5), at_position(1));
        assert_eq!(waiting(&mut *router, 2, 5), at_position(12));
    }

    #[test]
    fn a_burst_on_an_idle_port_pauses_all_flows_outside_the_list_and_spreads_their_probes() {
        let mut router = router(&json!({ "initial_rtt": "100 us" }));
        for us in [200, 400, 600] {
            router.on_tick(PortView { now: at(us), backlog: 0 });
        }
        // Two flows are listed before an ACK confirms the rate of the first.
        let format: Format = defaults();
        let grants: Vec<_> = (0..40)
            .map(|flow| {
                let header =
                    Header::Pdq { grant: Grant::Rate(LINK_RATE), remaining: 0.1, rtt: RTT };
                let mut syn = format.control(Kind::Syn, flow, at(700)).with_header(header);
                router.on_arrival(&mut syn, &FLOW, at(700));
                Grant::of(syn.header().feedback())
            })
            .collect();
        assert_eq!(grants[..2], [Grant::Rate(LINK_RATE); 2]);
        let waiting: Vec<_> =
            (3..=40).map(|position| Grant::Pause { by: 7, probe_after: position }).collect();
        assert_eq!(grants[2..], waiting);
    }

    #[test]
    fn unlisted_flows_share_what_is_left_and_lose_it_to_listed_flows() {
        let mut router = router(&json!({ "initial_rtt": "100 us", "most_flows": 1 }));
        let mut request = |flow: u32, remaining: f32, rate: f32| match request_with(
            &mut *router,
            flow,
            remaining,
            Grant::Rate(rate),
            at(1),
        ) {
            Grant::Rate(rate) => rate,
            Grant::Pause { .. } => 0.0,
        };
        // The listed flow leaves 60 MB/s.
        assert_eq!(request(0, 0.1, 65e6), 65e6);
        for _packet in 0..3 {
            let rates = [1, 2, 3, 4].map(|flow| request(flow, 0.2, 25e6));
            assert_eq!(rates, [25e6, 25e6, 10e6, 0.0]);
        }
        // A more critical flow takes the list's place and the whole link.
        assert_eq!(request(5, 0.05, LINK_RATE), LINK_RATE);
        assert_eq!([0, 1, 2, 3, 4].map(|flow| request(flow, 0.2, 25e6)), [0.0; 5]);
    }

    #[test]
    fn silent_flows_are_removed() {
        let mut router = router(&json!({ "initial_rtt": "100 us" }));
        request(&mut *router, 0, 0.1, 0);
        while router.next_tick() < at(4_900) {
            let now = router.next_tick();
            router.on_tick(PortView { now, backlog: 0 });
        }
        assert_eq!(request(&mut *router, 1, 0.2, 4_900), PAUSED);
        while router.next_tick() < at(5_500) {
            let now = router.next_tick();
            router.on_tick(PortView { now, backlog: 0 });
        }
        assert_eq!(request(&mut *router, 1, 0.2, 5_500), Grant::Rate(LINK_RATE));
    }

    #[test]
    fn the_backlog_reduces_the_capacity_over_two_rtts() {
        let mut router = router(&json!({ "initial_rtt": "100 us" }));
        router.on_tick(PortView { now: at(200), backlog: 5_000 });
        // 5 KB in 200 us are 25 MB/s.
        assert_eq!(request(&mut *router, 0, 0.1, 201), Grant::Rate(100e6));
        let gauges: Vec<_> = router.gauges().into_iter().map(|gauge| gauge.1).collect();
        assert_eq!(gauges, [8e8, 1.0, 1.0]);
    }
}
