//! Fair-share router: notifies each flow of its max-min fair share of the link and of its backlog.
//!
//! Source: [pcp06] §4.1, "router-based control", which serves there as the best possible control.
//! The paper has a single link. With several links, a router counts a flow that is limited
//! elsewhere at its rate there, and the other flows share the rest. Packets carry the rates
//! allocated upstream. Answers carry the rates allocated downstream; routers write the feedback on
//! the reverse path, so that it is as recent as possible.

use rustc_hash::FxBuildHasher;

use super::{FlowInfo, PortInfo, PortView, Router, RouterKind};
use crate::base::random::Random;
use crate::base::schema::{positive, positive_fraction};
use crate::base::units::{Duration, Time};
use crate::model::packet::{FlowNumber, Header, Kind, Packet, Share};

crate::parameters! {
    /// Fair-share router: tracks active flows, and notifies each of its max-min fair share of the
    /// link and of its backlog at the port ([pcp06] §4.1, "router-based control").
    pub struct Config {
        /// Fraction of the link rate that is divided among flows.
        pub target_utilisation: f64 = 1.0, where positive_fraction;
        /// Time without packets after which a flow is removed, since its last packets may be lost.
        /// Must exceed the RTT; each flow sends a request per RTT.
        pub forget_after: Duration = Duration::from_millis(1_000), where positive;
    }
}

impl Config {
    /// Builds the router of a link of `link_rate` in bytes per second.
    fn build_for(&self, link_rate: f64) -> FairShare {
        FairShare {
            capacity: self.target_utilisation * link_rate,
            forget_after: self.forget_after,
            flows: Flows::default(),
            sums: RateSums::default(),
            next_tick: Time::ZERO + self.forget_after,
        }
    }
}

impl RouterKind for Config {
    fn build(&self, port: PortInfo, _random: Random) -> Box<dyn Router> {
        Box::new(self.build_for(port.rate.bps() / 8.0))
    }
}

/// State of a flow in the max-min allocation.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ShareState {
    /// The flow has no share.
    Inactive,
    /// This link is the bottleneck: the flow has an equal share of the rate that limited flows
    /// leave.
    Bottlenecked,
    /// The flow is limited elsewhere to this rate, which is below the equal share.
    Limited(f64),
}

/// Flow that is active or backlogged here. Rates are in bytes per second.
#[derive(Clone, Copy, Debug)]
struct FlowState {
    number: FlowNumber,
    share_state: ShareState,
    /// Smallest rates allocated by upstream and by downstream routers.
    upstream: f64,
    downstream: f64,
    /// Backlog in bytes.
    queued: u64,
    last_seen: Time,
}

/// Flows in unspecified order, found by number. No memory is allocated once the largest number of
/// flows has been present.
#[derive(Default)]
struct Flows {
    states: Vec<FlowState>,
    /// Accessed by key only, so the iteration order does not matter.
    #[expect(clippy::disallowed_types, reason = "its hash is the same in every run")]
    indices: std::collections::HashMap<FlowNumber, u32, FxBuildHasher>,
}

impl Flows {
    fn get_mut(&mut self, number: FlowNumber) -> Option<&mut FlowState> {
        let index = *self.indices.get(&number)?;
        Some(&mut self.states[index as usize])
    }

    /// Returns the state of a flow, which may be new.
    fn get_or_insert(&mut self, number: FlowNumber, now: Time) -> &mut FlowState {
        let index = *self.indices.entry(number).or_insert_with(|| {
            let (upstream, downstream) = (f64::INFINITY, f64::INFINITY);
            let share_state = ShareState::Inactive;
            self.states.push(FlowState {
                number,
                share_state,
                upstream,
                downstream,
                queued: 0,
                last_seen: now,
            });
            self.states.len() as u32 - 1
        });
        &mut self.states[index as usize]
    }

    fn remove(&mut self, number: FlowNumber) {
        let Some(index) = self.indices.remove(&number) else { return };
        self.states.swap_remove(index as usize);
        if let Some(moved) = self.states.get(index as usize) {
            self.indices.insert(moved.number, index);
        }
    }
}

/// Sums over active flows.
#[derive(Clone, Copy, Debug, Default)]
struct RateSums {
    /// Number of flows with an equal share.
    bottlenecked: u32,
    /// Total rate and number of the flows that are limited elsewhere.
    limited_rate: f64,
    limited: u32,
}

impl RateSums {
    fn add(&mut self, state: ShareState) {
        match state {
            ShareState::Inactive => {}
            ShareState::Bottlenecked => self.bottlenecked += 1,
            ShareState::Limited(rate) => {
                self.limited_rate += rate;
                self.limited += 1;
            }
        }
    }

    fn remove(&mut self, state: ShareState) {
        match state {
            ShareState::Inactive => {}
            ShareState::Bottlenecked => self.bottlenecked -= 1,
            ShareState::Limited(rate) => {
                self.limited -= 1;
                // Removes rounding errors when no limited flow is left.
                self.limited_rate = if self.limited > 0 { self.limited_rate - rate } else { 0.0 };
            }
        }
    }
}

/// State of one port.
struct FairShare {
    capacity: f64,
    forget_after: Duration,
    flows: Flows,
    sums: RateSums,
    next_tick: Time,
}

impl FairShare {
    /// Returns the share of an additional flow with an equal share.
    fn share(&self) -> f64 {
        (self.capacity - self.sums.limited_rate).max(0.0)
            / (f64::from(self.sums.bottlenecked) + 1.0)
    }

    /// Updates the state of a flow from its rates elsewhere. Returns its share without a limit
    /// elsewhere.
    ///
    /// Other flows are updated when their next packets arrive. A flow that becomes limited gets
    /// less than the equal share and leaves more to bottlenecked flows. So does a limited flow that
    /// becomes bottlenecked, since its rate elsewhere exceeds the share. Shares therefore grow
    /// monotonically to those of the water-filling algorithm and never add up to more than the
    /// capacity.
    fn update_share(&mut self, number: FlowNumber, is_active: bool) -> f64 {
        let Some(state) = self.flows.get_mut(number) else { return self.share() };
        let (old, elsewhere) = (state.share_state, state.upstream.min(state.downstream));
        self.sums.remove(old);
        let share = self.share();
        let new = match is_active {
            false => ShareState::Inactive,
            true if elsewhere < share => ShareState::Limited(elsewhere),
            true => ShareState::Bottlenecked,
        };
        self.sums.add(new);
        if let Some(state) = self.flows.get_mut(number) {
            state.share_state = new;
        }
        share
    }

    /// Removes a packet that departed or was dropped from the backlog of its flow.
    fn release(&mut self, packet: &Packet) {
        if packet.kind.is_answer() {
            return;
        }
        let Some(state) = self.flows.get_mut(packet.flow) else { return };
        state.queued -= u64::from(packet.bytes);
        if state.queued == 0 && state.share_state == ShareState::Inactive {
            self.flows.remove(packet.flow);
        }
    }
}

impl Router for FairShare {
    fn on_arrival(&mut self, packet: &mut Packet, _flow_info: &FlowInfo, now: Time) {
        if packet.kind.is_answer() {
            return;
        }
        let state = self.flows.get_or_insert(packet.flow, now);
        state.queued += u64::from(packet.bytes);
        state.last_seen = now;
        if packet.kind == Kind::Syn {
            // A repeated SYN starts the flow again.
            state.downstream = f64::INFINITY;
        }
        if packet.kind == Kind::Fin {
            self.update_share(packet.flow, false);
        } else if let Header::FairShare { limit, leaves } = packet.header() {
            state.upstream = f64::from(limit);
            let share = self.update_share(packet.flow, !leaves) as f32;
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
        let downstream = Share::of(feedback);
        let (mut is_active, mut queued) = (false, 0);
        if let Some(state) = self.flows.get_mut(packet.flow) {
            state.downstream = downstream.rate;
            (is_active, queued) = (state.share_state != ShareState::Inactive, state.queued);
        }
        let rate = self.update_share(packet.flow, is_active).min(downstream.rate);
        packet.write_feedback(Share { rate, queued: downstream.queued + queued as f64 }.number());
    }

    fn next_tick(&self) -> Time {
        self.next_tick
    }

    /// Removes silent flows, and recomputes the sums to remove rounding errors.
    fn on_tick(&mut self, view: PortView) {
        self.sums = RateSums::default();
        for index in (0..self.flows.states.len()).rev() {
            let state = &mut self.flows.states[index];
            if view.now.since(state.last_seen) > self.forget_after {
                state.share_state = ShareState::Inactive;
            }
            self.sums.add(state.share_state);
            if state.share_state == ShareState::Inactive && state.queued == 0 {
                let number = state.number;
                self.flows.remove(number);
            }
        }
        self.next_tick = view.now + self.forget_after;
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        let RateSums { bottlenecked, limited, .. } = self.sums;
        vec![("share_bps", self.share() * 8.0), ("flows", f64::from(bottlenecked + limited))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::defaults;
    use crate::model::packet::Format;
    use crate::router::tests::FLOW;
    use proptest::prelude::*;

    /// Rate of the tested link in bytes per second.
    const LINK_RATE: f64 = 1e6;

    fn router() -> FairShare {
        let config: Config = defaults();
        config.build_for(LINK_RATE)
    }

    fn packet(kind: Kind, flow: FlowNumber) -> Packet {
        let format: Format = defaults();
        format.control(kind, flow, Time::ZERO)
    }

    /// Sends a probe of a flow with the given rates upstream and downstream. Returns the feedback
    /// of its answer.
    fn request(router: &mut FairShare, flow: FlowNumber, upstream: f64, downstream: f64) -> Share {
        let header = Header::FairShare { limit: upstream as f32, leaves: false };
        let mut probe = packet(Kind::Probe, flow).with_header(header);
        router.on_arrival(&mut probe, &FLOW, Time::ZERO);
        router.on_departure(&mut probe, PortView { now: Time::ZERO, backlog: 0 });
        let feedback = Share { rate: downstream, queued: 0.0 }.number();
        let mut ack =
            packet(Kind::ProbeAck, flow).with_header(Header::Ack { block: (0, 0), feedback });
        router.on_ack_return(&mut ack, &FLOW, Time::ZERO);
        Share::of(ack.header().feedback())
    }

    /// Returns the water-filling level: the rate of the flows that are not limited elsewhere.
    fn level(limits: &[f64]) -> f64 {
        let mut sorted = limits.to_vec();
        sorted.sort_by(f64::total_cmp);
        let mut left = LINK_RATE;
        for (number, limit) in sorted.iter().enumerate() {
            let level = left / (sorted.len() - number) as f64;
            if *limit >= level {
                return level;
            }
            left -= limit;
        }
        f64::INFINITY
    }

    fn assert_near(value: f64, expected: f64) {
        assert!(
            value <= expected * 1.000_1 && value >= expected * 0.999,
            "{value}, not {expected}"
        );
    }

    #[test]
    fn flows_limited_elsewhere_leave_the_rest_to_others() {
        let mut router = router();
        assert_near(request(&mut router, 0, 1e9, 1e9).rate, LINK_RATE);
        assert_near(request(&mut router, 1, 1e9, 1e9).rate, LINK_RATE / 2.0);
        // An upstream router limits the flow.
        assert_near(request(&mut router, 2, 1e5, 1e9).rate, LINK_RATE / 3.0);
        assert_near(request(&mut router, 0, 1e9, 1e9).rate, 0.45 * LINK_RATE);
        assert_near(request(&mut router, 1, 1e9, 2e5).rate, 2e5);
        assert_near(request(&mut router, 0, 1e9, 1e9).rate, 0.7 * LINK_RATE);
    }

    #[test]
    fn feedback_contains_the_backlog_of_the_flow() {
        let mut router = router();
        request(&mut router, 0, 1e9, 1e9);
        for flow in [0, 0, 0, 1] {
            let mut data = Packet { bytes: 1000, ..packet(Kind::Data, flow) };
            router.on_arrival(&mut data, &FLOW, Time::ZERO);
        }
        let mut data = Packet { bytes: 1000, ..packet(Kind::Data, 0) };
        for expected in [3000.0, 2000.0, 1000.0] {
            let share = request(&mut router, 0, 1e9, 1e9);
            assert!((share.queued / expected - 1.0).abs() < 1e-3, "{share:?}");
            if expected > 2000.0 {
                router.on_drop(&data);
            } else {
                router.on_departure(&mut data, PortView { now: Time::ZERO, backlog: 0 });
            }
        }
        // ACKs do not count.
        let mut ack = packet(Kind::Ack, 0);
        router.on_arrival(&mut ack, &FLOW, Time::ZERO);
        assert!(request(&mut router, 0, 1e9, 1e9).queued < 1.0);
    }

    #[test]
    fn a_leaving_flow_releases_its_share_and_is_removed_when_its_backlog_is_empty() {
        let mut router = router();
        request(&mut router, 0, 1e9, 1e9);
        request(&mut router, 1, 1e9, 1e9);
        let last = Header::FairShare { limit: 1e9, leaves: true };
        let mut last = packet(Kind::Data, 0).with_header(last);
        router.on_arrival(&mut last, &FLOW, Time::ZERO);
        assert_near(request(&mut router, 1, 1e9, 1e9).rate, LINK_RATE);
        assert_eq!(router.flows.states.len(), 2, "its packet is queued");
        router.on_departure(&mut last, PortView { now: Time::ZERO, backlog: 0 });
        assert_eq!(router.flows.states.len(), 1);
        router.on_arrival(&mut packet(Kind::Fin, 1), &FLOW, Time::ZERO);
        router.on_drop(&packet(Kind::Fin, 1));
        assert_eq!((router.flows.states.len(), router.flows.indices.len()), (0, 0));
        assert_near(router.share(), LINK_RATE);
    }

    #[test]
    fn silent_flows_are_removed() {
        let mut router = router();
        request(&mut router, 0, 1e9, 1e9);
        let at = |ms| Time::ZERO + Duration::from_millis(ms);
        let mut data =
            packet(Kind::Data, 1).with_header(Header::FairShare { limit: 1e5, leaves: false });
        router.on_arrival(&mut data, &FLOW, at(900));
        router.on_departure(&mut data, PortView { now: at(900), backlog: 0 });
        router.on_tick(PortView { now: at(1_000), backlog: 0 });
        assert_eq!(router.sums.bottlenecked, 1);
        assert_eq!(router.next_tick(), at(2_000));
        router.on_tick(PortView { now: at(1_899), backlog: 0 });
        assert_eq!((router.sums.bottlenecked, router.sums.limited), (0, 1));
        assert_near(router.share(), LINK_RATE - 1e5);
        router.on_tick(PortView { now: at(2_000), backlog: 0 });
        assert_eq!((router.sums.limited, router.flows.states.len()), (0, 0));
    }

    proptest! {
        #[test]
        fn shares_converge_from_below_to_water_filling(
            limits in prop::collection::vec((1e3..2e6_f64, 1e3..2e6_f64), 1..12),
            changed in prop::collection::vec((1e3..2e6_f64, 1e3..2e6_f64), 1..12),
            leaving in prop::collection::vec(any::<bool>(), 12),
        ) {
            let mut router = router();
            let mut limits = limits;
            for round in 0..30 {
                if round == 15 {
                    limits = changed.clone();
                    (0..12).filter(|flow| leaving[*flow]).for_each(|flow| {
                        router.update_share(flow as FlowNumber, false);
                    });
                    (changed.len()..12).for_each(|flow| {
                        router.update_share(flow as FlowNumber, false);
                    });
                }
                for (flow, (upstream, downstream)) in limits.iter().enumerate() {
                    request(&mut router, flow as FlowNumber, *upstream, *downstream);
                    let RateSums { bottlenecked, limited_rate, .. } = router.sums;
                    let is_bottlenecked =
                        |state: &&FlowState| state.share_state == ShareState::Bottlenecked;
                    let bottlenecked_states = router.flows.states.iter().filter(is_bottlenecked);
                    prop_assert_eq!(bottlenecked_states.count(), bottlenecked as usize);
                    let limited_rate_of = |state: &FlowState| match state.share_state {
                        ShareState::Limited(rate) => rate,
                        ShareState::Inactive | ShareState::Bottlenecked => 0.0,
                    };
                    let sum: f64 = router.flows.states.iter().map(limited_rate_of).sum();
                    prop_assert!((sum - limited_rate).abs() < 1.0);
                }
                if round % 15 == 14 {
                    // Rates as rounded in packets.
                    let rounded = |rate: f64| Share::of(Share { rate, queued: 0.0 }.number()).rate;
                    let limits_elsewhere: Vec<f64> =
                        limits.iter().map(|limit| limit.0.min(rounded(limit.1))).collect();
                    let level = level(&limits_elsewhere);
                    for (flow, limit) in limits_elsewhere.iter().enumerate() {
                        let share = request(&mut router, flow as FlowNumber, 1e9, limits[flow].1);
                        let (upstream, downstream) = limits[flow];
                        request(&mut router, flow as FlowNumber, upstream, downstream);
                        if *limit >= level {
                            assert_near(share.rate, level);
                        } else {
                            prop_assert!(share.rate >= limit * 0.999, "{share:?} {limit}");
                        }
                    }
                }
            }
        }
    }
}
