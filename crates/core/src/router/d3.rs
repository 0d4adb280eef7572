//! D3's router: first come, first served; who has a deadline gets the rate that it needs, and what is left
//! is for all.
//!
//! Source: [d311] §4, its first snippet. Once a round trip a flow gives back what it was allotted and asks
//! for the rate that it needs now. It gets that and an equal share of what all needs together leave, as
//! far as others have not taken it.
//!
//! Deviations. The paper's routers keep sums and no flows: requests carry what each router on the way said
//! last time. Here routers remember it instead, and forget flows that they have not heard of for some round
//! trips, as if those had said goodbye. A flow never takes more than others leave, whereas by the snippet
//! all together may have too much when needs grow. The paper makes up for rates that flows cannot use,
//! because they get less elsewhere, by capacity beyond the link's; here routers see what flows get as
//! answers pass, and share the rest among the others. (Should such a flow be freed elsewhere, all together
//! have too much for a round trip.) And the queue that counts is what is left of it all the while, as XCP's:
//! packets of several flows meet, and that is no sign of too much.

use std::collections::BTreeMap;

use super::{FlowInfo, PortInfo, PortView, Router, RouterKind};
use crate::base::random::Random;
use crate::base::schema::{not_negative, positive};
use crate::base::units::{Bytes, Duration, Time};
use crate::model::packet::{Header, Kind, Packet};

crate::parameters! {
    /// D3's router: allots rates in the order in which flows ask for them, first what their deadlines
    /// need ([d311]).
    pub struct Config {
        /// Gain of the spare capacity, by which the capacity to allot recovers, each round trip ([d311]
        /// follows RCP; XCP's 0.4 is inside RCP's region of stability).
        pub alpha: f64 = 0.4, where not_negative;
        /// Gain of the queue, by which it shrinks (as above: 0.226).
        pub beta: f64 = 0.226, where not_negative;
        /// What a flow may always send in a round trip, whatever others have taken: a packet without
        /// payload.
        pub base: Bytes = Bytes(40), where positive;
        /// Average round-trip time before flows have asked twice ([d311]: some 300 us in its testbed).
        pub initial_rtt: Duration = Duration::from_micros(300), where positive;
        /// After so many average round trips without a word of a flow, it is forgotten.
        pub forget_after: u32 = 10, where positive;
    }
}

impl Config {
    fn open(&self, line: f64) -> D3 {
        let rtt = self.initial_rtt.seconds();
        D3 {
            config: self.clone(),
            line,
            capacity: line,
            flows: BTreeMap::new(),
            totals: Totals::default(),
            rtt,
            arrived: 0.0,
            slot: rtt,
            slot_ends: Time::ZERO + self.initial_rtt,
            queue: 0,
        }
    }
}

impl RouterKind for Config {
    fn build(&self, port: PortInfo, _random: Random) -> Box<dyn Router> {
        Box::new(self.open(port.rate.bps() / 8.0))
    }
}

/// What a flow asked for last, and what it got.
#[derive(Clone, Copy, Debug)]
struct Entry {
    desired: f64,
    /// What this router offered.
    offered: f64,
    /// What all on the way allotted, as far as is known.
    allotted: f64,
    asked: Time,
}

impl Entry {
    /// Whether it gets less elsewhere.
    fn is_limited(&self) -> bool {
        self.allotted < self.offered
    }
}

/// Sums over flows.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    allotted: f64,
    /// What flows have before equal shares: what they need or, if they are limited, all that they get.
    claimed: f64,
    /// Flows that are not limited.
    open: f64,
}

impl Totals {
    fn add(&mut self, entry: &Entry) {
        let Entry { desired, allotted, .. } = *entry;
        self.allotted += allotted;
        self.claimed += if entry.is_limited() { allotted } else { desired };
        self.open += if entry.is_limited() { 0.0 } else { 1.0 };
    }

    fn take(&mut self, entry: &Entry) {
        let Entry { desired, allotted, .. } = *entry;
        self.allotted -= allotted;
        self.claimed -= if entry.is_limited() { allotted } else { desired };
        self.open -= if entry.is_limited() { 0.0 } else { 1.0 };
    }
}

/// Gaps between a flow's requests count for no more than so many round trips: it may have paused.
const MOST_GAP: f64 = 4.0;

/// The weight of the newest gap in the average round-trip time, as hosts have it (RFC 6298).
const WEIGHT: f64 = 1.0 / 8.0;

/// The least slot, in seconds, where links have no delay.
const LEAST_SLOT: f64 = 1e-6;

/// The state of one port; bytes and seconds.
struct D3 {
    config: Config,
    /// What the link carries, and what of it may be allotted.
    line: f64,
    capacity: f64,
    flows: BTreeMap<u64, Entry>,
    totals: Totals,
    /// Average time between a flow's requests, which is a round trip.
    rtt: f64,
    /// What has come in this slot; how long the slot lasts, and when it ends.
    arrived: f64,
    slot: f64,
    slot_ends: Time,
    /// The least that has waited in it.
    queue: u64,
}

impl D3 {
    /// What a flow may have that desires some rate and has got no more than `most` from the routers before.
    fn offer(&mut self, flow: u64, desired: f64, most: f64, now: Time) -> f64 {
        let mut limit = None;
        if let Some(old) = self.forget(flow) {
            let gap = now.since(old.asked).seconds().min(MOST_GAP * self.rtt);
            self.rtt += WEIGHT * (gap - self.rtt);
            limit = old.is_limited().then_some(old.allotted);
        }
        let share = (self.capacity - self.totals.claimed - desired) / (self.totals.open + 1.0);
        let wanted = desired + share.max(0.0);
        // What a limited flow leaves of its share others have. It is offered all the same, lest the flow be
        // limited for ever.
        let left = limit.map_or(self.capacity - self.totals.allotted, |_| wanted);
        let base = self.config.base.0 as f64 / self.rtt;
        let offered = wanted.min(left).max(base).min(most);
        // As packets carry it, lest what comes back seem less.
        let offered = f64::from(offered as f32);
        // The answer may come no sooner than the next request.
        let allotted = limit.map_or(offered, |limit| limit.min(offered));
        let entry = Entry { desired, offered, allotted, asked: now };
        self.totals.add(&entry);
        self.flows.insert(flow, entry);
        offered
    }

    /// Takes back what a flow has.
    fn forget(&mut self, flow: u64) -> Option<Entry> {
        let entry = self.flows.remove(&flow)?;
        self.totals.take(&entry);
        Some(entry)
    }

    /// Forgets the flows not heard of for long. The sums are made anew, lest their rounding grow.
    fn forget_silent(&mut self, now: Time) {
        let patience = Duration::from_seconds(f64::from(self.config.forget_after) * self.rtt);
        self.flows.retain(|_, entry| now.since(entry.asked) <= patience);
        self.totals = Totals::default();
        self.flows.values().for_each(|entry| self.totals.add(entry));
    }
}

impl Router for D3 {
    fn on_arrival(&mut self, packet: &mut Packet, flow_info: &FlowInfo, now: Time) {
        self.arrived += f64::from(packet.bytes);
        if packet.kind == Kind::Fin {
            self.forget(flow_info.flow);
        } else if let Header::D3 { desired, allotted } = packet.header() {
            let rate = self.offer(flow_info.flow, f64::from(desired), f64::from(allotted), now);
            packet.write_feedback(rate as f32);
        }
    }

    fn on_departure(&mut self, _packet: &mut Packet, view: PortView) {
        self.queue = self.queue.min(view.backlog);
    }

    fn reads_acks(&self) -> bool {
        true
    }

    fn on_ack_return(&mut self, packet: &mut Packet, flow_info: &FlowInfo, _now: Time) {
        let allotted = f64::from(packet.header().feedback());
        if allotted > 0.0
            && let Some(entry) = self.flows.get_mut(&flow_info.flow)
        {
            self.totals.take(entry);
            entry.allotted = allotted.min(entry.offered);
            self.totals.add(entry);
        }
    }

    fn next_tick(&self) -> Time {
        self.slot_ends
    }

    fn on_tick(&mut self, view: PortView) {
        // As RCP's rate ([rcp06] eq. 2), but added, since it is to be the link's in the end; and what comes
        // beyond the link's rate counts once, in the queue: slots may hold few packets, now one more, now
        // one less.
        let Config { alpha, beta, .. } = self.config;
        let spare = (self.line - self.arrived / self.slot).max(0.0);
        let queue = self.queue.min(view.backlog) as f64;
        let change = alpha * spare - beta * queue / self.slot;
        self.capacity = (self.capacity + change).clamp(0.0, self.line);
        self.forget_silent(view.now);
        self.arrived = 0.0;
        self.queue = view.backlog;
        self.slot = self.rtt.max(LEAST_SLOT);
        self.slot_ends = view.now + Duration::from_seconds(self.slot);
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![("capacity_bps", self.capacity * 8.0), ("allotted_bps", self.totals.allotted * 8.0)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::defaults;
    use crate::model::packet::Format;
    use crate::router::tests::FLOW;
    use proptest::prelude::*;

    /// A router of a link of 1 MB/s, whose flows may always send 100 KB/s.
    fn router() -> D3 {
        let config: Config = defaults();
        Config { base: Bytes(30), ..config }.open(1e6)
    }

    fn at(us: u64) -> Time {
        Time::ZERO + Duration::from_micros(us)
    }

    /// What a flow gets that asks each round trip of 300 us, in KB/s.
    fn ask(router: &mut D3, flow: u64, desired: f64, round: u64) -> f64 {
        router.offer(flow, desired * 1e3, f64::INFINITY, at(300 * round)) / 1e3
    }

    fn near(found: f64, expected: f64) {
        // Packets carry floats of 32 bits.
        assert!(
            (found - expected).abs() <= 1e-7 * expected.abs().max(1.0),
            "{found} is not {expected}"
        );
    }

    #[test]
    fn a_flow_gets_what_it_desires_and_an_equal_share_of_what_needs_leave() {
        let mut router = router();
        // Alone it gets all, and who comes next has to wait.
        near(ask(&mut router, 1, 400.0, 0), 1000.0);
        near(ask(&mut router, 2, 200.0, 0), 100.0);
        // 400 KB/s are left by their needs, 200 for each.
        near(ask(&mut router, 1, 400.0, 1), 600.0);
        near(ask(&mut router, 2, 200.0, 1), 400.0);
        near(router.totals.allotted, 1e6);
        // A third without deadline has to wait too, and then has a share. The base that it waits with is
        // taken from who asks next.
        near(ask(&mut router, 3, 0.0, 1), 100.0);
        near(ask(&mut router, 1, 400.0, 2), 500.0);
        for round in 2..4 {
            near(ask(&mut router, 2, 200.0, round), 1_000.0 / 3.0);
            near(ask(&mut router, 3, 0.0, round), 400.0 / 3.0);
            near(ask(&mut router, 1, 400.0, round + 1), 1_600.0 / 3.0);
        }
    }

    #[test]
    fn who_asks_first_is_served_first_and_the_others_keep_the_base() {
        let mut router = router();
        for round in 0..5 {
            near(ask(&mut router, 1, 700.0, round), if round == 0 { 1000.0 } else { 700.0 });
            near(ask(&mut router, 2, 600.0, round), if round == 0 { 100.0 } else { 200.0 });
            // Nothing is left, however much it needs.
            near(ask(&mut router, 3, 900.0, round), 100.0);
        }
    }

    fn packet(kind: Kind, header: Header) -> Packet {
        let format: Format = defaults();
        format.control(kind, 0, Time::ZERO).with_header(header)
    }

    #[test]
    fn packets_carry_the_least_allotment_and_only_requests_are_answered() {
        let mut router = router();
        let request = |allotted| Header::D3 { desired: 0.0, allotted };
        let mut syn = packet(Kind::Syn, request(f32::INFINITY));
        router.on_arrival(&mut syn, &FLOW, at(0));
        assert_eq!(syn.header(), request(1e6));
        let mut syn = packet(Kind::Syn, request(300e3));
        router.on_arrival(&mut syn, &FLOW, at(0));
        assert_eq!(syn.header(), request(300e3), "another router allots less");
        near(router.totals.allotted, 300e3);
        let mut data = packet(Kind::Data, Header::NONE);
        router.on_arrival(&mut data, &FLOW, at(0));
        assert_eq!(data.header(), Header::NONE);
        router.on_arrival(&mut packet(Kind::Fin, Header::NONE), &FLOW, at(0));
        near(router.totals.allotted, 0.0);
        assert!(router.flows.is_empty());
    }

    #[test]
    fn flows_that_are_silent_for_long_are_forgotten() {
        let mut router = router();
        ask(&mut router, 1, 0.0, 0);
        let tick = |router: &mut D3, us| router.on_tick(PortView { now: at(us), backlog: 0 });
        tick(&mut router, 3_000);
        assert_eq!(router.flows.len(), 1);
        tick(&mut router, 3_001);
        assert_eq!(router.flows.len(), 0);
        near(router.totals.allotted, 0.0);
    }

    #[test]
    fn capacity_shrinks_with_the_queue_and_comes_back_with_room() {
        let mut router = router();
        router.arrived = 300.0;
        router.queue = 150;
        // A full link with a queue of half a round trip.
        router.on_tick(PortView { now: at(300), backlog: 400 });
        near(router.capacity, 1e6 - 0.226 * 0.5e6);
        // Three quarters in use, and now and then no queue.
        router.on_departure(
            &mut packet(Kind::Data, Header::NONE),
            PortView { now: at(400), backlog: 0 },
        );
        router.arrived = 225.0;
        router.on_tick(PortView { now: at(600), backlog: 300 });
        near(router.capacity, 1e6 - 0.226 * 0.5e6 + 0.4 * 0.25e6);
        // An idle link has all that it carries, and no more.
        router.queue = 0;
        router.on_tick(PortView { now: at(900), backlog: 0 });
        near(router.capacity, 1e6);
    }

    #[test]
    fn what_a_flow_cannot_use_is_shared_by_the_others() {
        let mut router = router();
        let answer = |feedback| packet(Kind::Ack, Header::Ack { block: (0, 0), feedback });
        for round in 0..4 {
            ask(&mut router, FLOW.flow, 100.0, round);
            for (flow, desired) in [(1, 200.0), (2, 0.0)] {
                ask(&mut router, flow, desired, round);
            }
            // Elsewhere the first gets no more than 150 KB/s.
            router.on_ack_return(&mut answer(150e3), &FLOW, at(0));
            near(router.flows[&FLOW.flow].allotted, 150e3);
        }
        near(router.flows[&1].allotted / 1e3, 200.0 + 650.0 / 2.0);
        near(router.flows[&2].allotted / 1e3, 650.0 / 2.0);
        // It is offered its share of all, and once it can use that, so it is.
        let offered = ask(&mut router, FLOW.flow, 100.0, 4);
        near(offered, 100.0 + 700.0 / 3.0);
        near(router.flows[&FLOW.flow].allotted, 150e3);
        router.on_ack_return(&mut answer(offered as f32 * 1e3), &FLOW, at(0));
        near(router.flows[&FLOW.flow].allotted / 1e3, offered);
        near(ask(&mut router, 1, 200.0, 5), 1000.0 - offered - 325.0);
        near(ask(&mut router, 2, 0.0, 5), 700.0 / 3.0);
        near(ask(&mut router, 1, 200.0, 6), 200.0 + 700.0 / 3.0);
    }

    #[test]
    fn the_time_between_requests_is_the_round_trip() {
        let mut router = router();
        for i in 0..100 {
            router.offer(i % 3, 0.0, f64::INFINITY, at(50 * (i / 3)));
        }
        assert!((router.rtt - 50e-6).abs() < 1e-6, "{}", router.rtt);
    }

    proptest! {
        #[test]
        fn no_more_is_allotted_than_there_is_but_for_the_base_of_each_flow(
            requests in prop::collection::vec((0_u64..8, 0.0..2e6_f64, any::<bool>()), 0..200),
        ) {
            let mut router = router();
            for (flow, desired, leaves) in requests {
                if leaves {
                    router.forget(flow);
                } else {
                    let before = router.capacity - router.totals.allotted
                        + router.flows.get(&flow).map_or(0.0, |entry| entry.allotted);
                    // All ask at once, so that the average round trip, and with it the base, stays.
                    router.rtt = 300e-6;
                    let got = router.offer(flow, desired, f64::INFINITY, at(0));
                    let base = 30.0 / router.rtt;
                    // Packets carry floats of 32 bits.
                    prop_assert!(got >= base - 0.1 && got <= before.max(base) + 0.1);
                    prop_assert!(got >= desired.min(before) - 0.1, "first come, first served");
                }
                let kept: f64 = router.flows.values().map(|entry| entry.allotted).sum();
                prop_assert!((kept - router.totals.allotted).abs() < 1e-3, "the sum is that of the flows");
                let slack = router.flows.len() as f64 * 30.0 / 200e-6;
                prop_assert!(router.totals.allotted <= router.capacity + slack);
            }
        }
    }
}
