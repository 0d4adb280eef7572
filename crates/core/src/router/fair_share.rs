//! Fair-share router: tells each flow its max-min share of the link and what waits of it.
//!
//! Source: [pcp06] §4.1, the "router-based control" that it takes for the best that can be had. The paper
//! knows one link. On several, a router counts a flow that gets less elsewhere with what it gets there,
//! and the others share the rest. What a flow gets at the routers before, packets say on their way there;
//! what it gets at those behind, their answers say on the way back, where routers write the feedback, so
//! that it is as new as it can be.

use rustc_hash::FxBuildHasher;

use super::{FlowInfo, PortInfo, PortView, Router, RouterKind};
use crate::base::random::Random;
use crate::base::schema::{positive, positive_fraction};
use crate::base::units::{Duration, Time};
use crate::model::packet::{FlowNumber, Header, Kind, Packet, Share};

crate::parameters! {
    /// Fair-share router: knows the flows in progress, and tells each its max-min share of the link and
    /// what waits of it here ([pcp06] §4.1, "router-based control").
    pub struct Config {
        /// Share of the link's rate that flows divide among them.
        pub target_utilisation: f64 = 1.0, where positive_fraction;
        /// A flow that has not been heard of for so long is forgotten: its last packets may be lost. To be
        /// longer than round trips, in each of which a flow says something.
        pub forget_after: Duration = Duration::from_millis(1_000), where positive;
    }
}

impl Config {
    /// The router of a link that carries so many bytes a second.
    fn open(&self, line: f64) -> FairShare {
        FairShare {
            capacity: self.target_utilisation * line,
            forget_after: self.forget_after,
            flows: Flows::default(),
            totals: Totals::default(),
            next_tick: Time::ZERO + self.forget_after,
        }
    }
}

impl RouterKind for Config {
    fn build(&self, port: PortInfo, _random: Random) -> Box<dyn Router> {
        Box::new(self.open(port.rate.bps() / 8.0))
    }
}

/// How a flow counts where shares are made.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Claim {
    /// Not at all: it is not in progress.
    None,
    /// With an equal share of what the limited leave.
    Open,
    /// With what it gets elsewhere, which is less than that.
    Limited(f64),
}

/// A flow that is in progress or of which something waits; rates in bytes a second.
#[derive(Clone, Copy, Debug)]
struct Entry {
    number: FlowNumber,
    claim: Claim,
    /// The least that it gets at the routers before this one, and at those behind.
    before: f64,
    behind: f64,
    /// What waits of it.
    queued: u64,
    heard: Time,
}

/// The flows in no order, each found by its number. Nothing is allocated once as many were here as ever will
/// be.
#[derive(Default)]
struct Flows {
    entries: Vec<Entry>,
    /// Looked up, never walked, so that its order does not matter.
    #[expect(clippy::disallowed_types, reason = "its hash is the same in every run")]
    places: std::collections::HashMap<FlowNumber, u32, FxBuildHasher>,
}

impl Flows {
    fn get_mut(&mut self, number: FlowNumber) -> Option<&mut Entry> {
        let place = *self.places.get(&number)?;
        Some(&mut self.entries[place as usize])
    }

    /// The flow of a number, which may be new.
    fn join(&mut self, number: FlowNumber, now: Time) -> &mut Entry {
        let place = *self.places.entry(number).or_insert_with(|| {
            let (before, behind) = (f64::INFINITY, f64::INFINITY);
            let claim = Claim::None;
            self.entries.push(Entry { number, claim, before, behind, queued: 0, heard: now });
            self.entries.len() as u32 - 1
        });
        &mut self.entries[place as usize]
    }

    fn remove(&mut self, number: FlowNumber) {
        let Some(place) = self.places.remove(&number) else { return };
        self.entries.swap_remove(place as usize);
        if let Some(moved) = self.entries.get(place as usize) {
            self.places.insert(moved.number, place);
        }
    }
}

/// Sums over the flows in progress.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    /// Those with an equal share.
    open: u32,
    /// What those have that are limited elsewhere, and how many they are.
    taken: f64,
    limited: u32,
}

impl Totals {
    fn add(&mut self, claim: Claim) {
        match claim {
            Claim::None => {}
            Claim::Open => self.open += 1,
            Claim::Limited(rate) => {
                self.taken += rate;
                self.limited += 1;
            }
        }
    }

    fn take(&mut self, claim: Claim) {
        match claim {
            Claim::None => {}
            Claim::Open => self.open -= 1,
            Claim::Limited(rate) => {
                self.limited -= 1;
                // Without rounding once nobody is left.
                self.taken = if self.limited > 0 { self.taken - rate } else { 0.0 };
            }
        }
    }
}

/// The state of one port.
struct FairShare {
    capacity: f64,
    forget_after: Duration,
    flows: Flows,
    totals: Totals,
    next_tick: Time,
}

impl FairShare {
    /// The share of one flow more with an equal share.
    fn share(&self) -> f64 {
        (self.capacity - self.totals.taken).max(0.0) / (f64::from(self.totals.open) + 1.0)
    }

    /// Lets a flow count anew, by what it gets elsewhere; says what it would get here if that were without
    /// limit.
    ///
    /// Others are left as they were until they are heard of again. A flow that becomes limited, because it
    /// gets less than the share, leaves more to the open ones, and so does a limited one that becomes open
    /// because it gets more: shares only grow from here to those of the water-filling algorithm, and never
    /// add up to more than there is.
    fn claim(&mut self, number: FlowNumber, counts: bool) -> f64 {
        let Some(entry) = self.flows.get_mut(number) else { return self.share() };
        let (old, elsewhere) = (entry.claim, entry.before.min(entry.behind));
        self.totals.take(old);
        let share = self.share();
        let claim = match counts {
            false => Claim::None,
            true if elsewhere < share => Claim::Limited(elsewhere),
            true => Claim::Open,
        };
        self.totals.add(claim);
        if let Some(entry) = self.flows.get_mut(number) {
            entry.claim = claim;
        }
        share
    }

    /// A packet that came has left in one way or another.
    fn release(&mut self, packet: &Packet) {
        if packet.kind.is_answer() {
            return;
        }
        let Some(entry) = self.flows.get_mut(packet.flow) else { return };
        entry.queued -= u64::from(packet.bytes);
        if entry.queued == 0 && entry.claim == Claim::None {
            self.flows.remove(packet.flow);
        }
    }
}

impl Router for FairShare {
    fn on_arrival(&mut self, packet: &mut Packet, _flow_info: &FlowInfo, now: Time) {
        if packet.kind.is_answer() {
            return;
        }
        let entry = self.flows.join(packet.flow, now);
        entry.queued += u64::from(packet.bytes);
        entry.heard = now;
        if packet.kind == Kind::Syn {
            // Slots are used again.
            entry.behind = f64::INFINITY;
        }
        if packet.kind == Kind::Fin {
            self.claim(packet.flow, false);
        } else if let Header::FairShare { limit, leaves } = packet.header() {
            entry.before = f64::from(limit);
            let share = self.claim(packet.flow, !leaves) as f32;
            *packet = packet.with_header(Header::FairShare { limit: limit.min(share), leaves });
        }
    }

    fn on_departure(&mut self, packet: &mut Packet, _view: PortView) {
        self.release(packet);
    }

    fn on_drop(&mut self, packet: &Packet) {
        self.release(packet);
    }

    fn reads_acks(&self) -> bool {
        true
    }

    fn on_ack_return(&mut self, packet: &mut Packet, _flow_info: &FlowInfo, _now: Time) {
        let feedback = packet.header().feedback();
        if feedback == 0.0 {
            return;
        }
        let told = Share::of(feedback);
        let (mut counts, mut queued) = (false, 0);
        if let Some(entry) = self.flows.get_mut(packet.flow) {
            entry.behind = told.rate;
            (counts, queued) = (entry.claim != Claim::None, entry.queued);
        }
        let rate = self.claim(packet.flow, counts).min(told.rate);
        packet.write_feedback(Share { rate, queued: told.queued + queued as f64 }.number());
    }

    fn next_tick(&self) -> Time {
        self.next_tick
    }

    /// Forgets the flows that are silent, and adds up the others anew, lest rounding grow.
    fn on_tick(&mut self, view: PortView) {
        self.totals = Totals::default();
        for place in (0..self.flows.entries.len()).rev() {
            let entry = &mut self.flows.entries[place];
            if view.now.since(entry.heard) > self.forget_after {
                entry.claim = Claim::None;
            }
            self.totals.add(entry.claim);
            if entry.claim == Claim::None && entry.queued == 0 {
                let number = entry.number;
                self.flows.remove(number);
            }
        }
        self.next_tick = view.now + self.forget_after;
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        let Totals { open, limited, .. } = self.totals;
        vec![("share_bps", self.share() * 8.0), ("flows", f64::from(open + limited))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::defaults;
    use crate::model::packet::Format;
    use crate::router::tests::FLOW;
    use proptest::prelude::*;

    /// What the tested link carries, in bytes a second.
    const LINE: f64 = 1e6;

    fn router() -> FairShare {
        let config: Config = defaults();
        config.open(LINE)
    }

    fn packet(kind: Kind, flow: FlowNumber) -> Packet {
        let format: Format = defaults();
        format.control(kind, flow, Time::ZERO)
    }

    /// A flow that gets so much before this router and behind it asks and is answered; says what the answer
    /// brings.
    fn ask(router: &mut FairShare, flow: FlowNumber, before: f64, behind: f64) -> Share {
        let header = Header::FairShare { limit: before as f32, leaves: false };
        let mut question = packet(Kind::Probe, flow).with_header(header);
        router.on_arrival(&mut question, &FLOW, Time::ZERO);
        router.on_departure(&mut question, PortView { now: Time::ZERO, backlog: 0 });
        let feedback = Share { rate: behind, queued: 0.0 }.number();
        let mut answer =
            packet(Kind::ProbeAck, flow).with_header(Header::Ack { block: (0, 0), feedback });
        router.on_ack_return(&mut answer, &FLOW, Time::ZERO);
        Share::of(answer.header().feedback())
    }

    /// The level of water that fills the link: what those get who get no less elsewhere.
    fn level(limits: &[f64]) -> f64 {
        let mut sorted = limits.to_vec();
        sorted.sort_by(f64::total_cmp);
        let mut left = LINE;
        for (number, limit) in sorted.iter().enumerate() {
            let level = left / (sorted.len() - number) as f64;
            if *limit >= level {
                return level;
            }
            left -= limit;
        }
        f64::INFINITY
    }

    fn near(found: f64, expected: f64) {
        assert!(
            found <= expected * 1.000_1 && found >= expected * 0.999,
            "{found}, not {expected}"
        );
    }

    #[test]
    fn who_gets_less_elsewhere_leaves_the_rest_to_the_others() {
        let mut router = router();
        near(ask(&mut router, 0, 1e9, 1e9).rate, LINE);
        near(ask(&mut router, 1, 1e9, 1e9).rate, LINE / 2.0);
        // It is told less by the one before.
        near(ask(&mut router, 2, 1e5, 1e9).rate, LINE / 3.0);
        near(ask(&mut router, 0, 1e9, 1e9).rate, 0.45 * LINE);
        near(ask(&mut router, 1, 1e9, 2e5).rate, 2e5);
        near(ask(&mut router, 0, 1e9, 1e9).rate, 0.7 * LINE);
    }

    #[test]
    fn a_flow_hears_of_its_own_queue_whatever_becomes_of_it() {
        let mut router = router();
        ask(&mut router, 0, 1e9, 1e9);
        for flow in [0, 0, 0, 1] {
            let mut data = Packet { bytes: 1000, ..packet(Kind::Data, flow) };
            router.on_arrival(&mut data, &FLOW, Time::ZERO);
        }
        let mut data = Packet { bytes: 1000, ..packet(Kind::Data, 0) };
        for expected in [3000.0, 2000.0, 1000.0] {
            let told = ask(&mut router, 0, 1e9, 1e9);
            assert!((told.queued / expected - 1.0).abs() < 1e-3, "{told:?}");
            if expected > 2000.0 {
                router.on_drop(&data);
            } else {
                router.on_departure(&mut data, PortView { now: Time::ZERO, backlog: 0 });
            }
        }
        // Its own ACKs and those of others do not count.
        let mut ack = packet(Kind::Ack, 0);
        router.on_arrival(&mut ack, &FLOW, Time::ZERO);
        assert!(ask(&mut router, 0, 1e9, 1e9).queued < 1.0);
    }

    #[test]
    fn who_leaves_gives_up_its_share_and_is_forgotten_when_nothing_waits() {
        let mut router = router();
        ask(&mut router, 0, 1e9, 1e9);
        ask(&mut router, 1, 1e9, 1e9);
        let last = Header::FairShare { limit: 1e9, leaves: true };
        let mut last = packet(Kind::Data, 0).with_header(last);
        router.on_arrival(&mut last, &FLOW, Time::ZERO);
        near(ask(&mut router, 1, 1e9, 1e9).rate, LINE);
        assert_eq!(router.flows.entries.len(), 2, "its packet waits");
        router.on_departure(&mut last, PortView { now: Time::ZERO, backlog: 0 });
        assert_eq!(router.flows.entries.len(), 1);
        router.on_arrival(&mut packet(Kind::Fin, 1), &FLOW, Time::ZERO);
        router.on_drop(&packet(Kind::Fin, 1));
        assert_eq!((router.flows.entries.len(), router.flows.places.len()), (0, 0));
        near(router.share(), LINE);
    }

    #[test]
    fn who_falls_silent_is_forgotten() {
        let mut router = router();
        ask(&mut router, 0, 1e9, 1e9);
        let at = |ms| Time::ZERO + Duration::from_millis(ms);
        let mut data =
            packet(Kind::Data, 1).with_header(Header::FairShare { limit: 1e5, leaves: false });
        router.on_arrival(&mut data, &FLOW, at(900));
        router.on_departure(&mut data, PortView { now: at(900), backlog: 0 });
        router.on_tick(PortView { now: at(1_000), backlog: 0 });
        assert_eq!(router.totals.open, 1);
        assert_eq!(router.next_tick(), at(2_000));
        router.on_tick(PortView { now: at(1_899), backlog: 0 });
        assert_eq!((router.totals.open, router.totals.limited), (0, 1));
        near(router.share(), LINE - 1e5);
        router.on_tick(PortView { now: at(2_000), backlog: 0 });
        assert_eq!((router.totals.limited, router.flows.entries.len()), (0, 0));
    }

    proptest! {
        #[test]
        fn shares_become_those_of_water_filling_and_are_no_more_before(
            limits in prop::collection::vec((1e3..2e6_f64, 1e3..2e6_f64), 1..12),
            changed in prop::collection::vec((1e3..2e6_f64, 1e3..2e6_f64), 1..12),
            gone in prop::collection::vec(any::<bool>(), 12),
        ) {
            let mut router = router();
            let mut limits = limits;
            for round in 0..30 {
                if round == 15 {
                    limits = changed.clone();
                    (0..12).filter(|flow| gone[*flow]).for_each(|flow| {
                        router.claim(flow as FlowNumber, false);
                    });
                    (changed.len()..12).for_each(|flow| {
                        router.claim(flow as FlowNumber, false);
                    });
                }
                for (flow, (before, behind)) in limits.iter().enumerate() {
                    ask(&mut router, flow as FlowNumber, *before, *behind);
                    let Totals { open, taken, .. } = router.totals;
                    let kept = router.flows.entries.iter().filter(|entry| entry.claim == Claim::Open);
                    prop_assert_eq!(kept.count(), open as usize);
                    let taken_of = |entry: &Entry| match entry.claim {
                        Claim::Limited(rate) => rate,
                        Claim::None | Claim::Open => 0.0,
                    };
                    let sum: f64 = router.flows.entries.iter().map(taken_of).sum();
                    prop_assert!((sum - taken).abs() < 1.0);
                }
                if round % 15 == 14 {
                    // As they are told, rounded.
                    let rounded = |rate: f64| Share::of(Share { rate, queued: 0.0 }.number()).rate;
                    let least: Vec<f64> =
                        limits.iter().map(|(before, behind)| before.min(rounded(*behind))).collect();
                    let level = level(&least);
                    for (flow, limit) in least.iter().enumerate() {
                        let told = ask(&mut router, flow as FlowNumber, 1e9, limits[flow].1);
                        let (before, behind) = limits[flow];
                        ask(&mut router, flow as FlowNumber, before, behind);
                        if *limit >= level {
                            near(told.rate, level);
                        } else {
                            prop_assert!(told.rate >= limit * 0.999, "{told:?} {limit}");
                        }
                    }
                }
            }
        }
    }
}
