//! D3's router: allocates rates in order of requests. Flows with deadlines get the rate that they
//! need; all flows share the rest.
//!
//! Source: [d311] §4, first snippet. Once per RTT a flow returns its allocation and requests the
//! rate that it needs now. It is allocated this rate plus an equal share of the capacity that all
//! desired rates leave, as far as other flows have not taken it.
//!
//! Deviations. In the paper routers keep sums but no flows, and requests carry the last allocation
//! of each router on the path. Here routers store the allocations per flow, and remove flows
//! without requests for some RTTs as if they had ended. A flow never takes more than others leave,
//! whereas in the snippet the total allocation may exceed the capacity when desired rates grow. The
//! paper compensates rates that flows cannot use, because they are limited elsewhere, by capacity
//! beyond the link rate. Here routers read the allocations of flows from passing answers and share
//! the rest among the others. (If such a flow is no longer limited elsewhere, the total allocation
//! is too large for one RTT.) The queue in the control law is the persistent queue, as in XCP: a
//! short queue due to simultaneous packets of several flows is not a sign of overload.

use std::collections::BTreeMap;

use super::{FlowInfo, PortInfo, PortView, Router, RouterKind};
use crate::base::random::Random;
use crate::base::schema::{not_negative, positive};
use crate::base::units::{Bytes, Duration, Time};
use crate::model::packet::{Header, Kind, Packet};

crate::parameters! {
    /// D3's router: allocates rates in order of requests, first the rates that deadlines require
    /// ([d311]).
    pub struct Config {
        /// Gain of the spare capacity in the update of the capacity to allocate, per RTT ([d311]
        /// follows RCP; XCP's 0.4 is in RCP's stability region).
        pub alpha: f64 = 0.4, where not_negative;
        /// Gain of the queue in this update (likewise 0.226).
        pub beta: f64 = 0.226, where not_negative;
        /// Bytes that a flow may send per RTT at any allocation to others: a packet without
        /// payload.
        pub base: Bytes = Bytes(40), where positive;
        /// Average RTT before flows have sent two requests ([d311]: about 300 us in its testbed).
        pub initial_rtt: Duration = Duration::from_micros(300), where positive;
        /// Number of average RTTs without a request after which a flow is removed.
        pub forget_after: u32 = 10, where positive;
    }
}

impl Config {
    fn build_for(&self, link_rate: f64) -> D3 {
        let rtt = self.initial_rtt.seconds();
        D3 {
            config: self.clone(),
            link_rate,
            capacity: link_rate,
            flows: BTreeMap::new(),
            sums: AllocationSums::default(),
            rtt,
            arrived: 0.0,
            slot: rtt,
            slot_ends: Time::ZERO + self.initial_rtt,
            min_queue: 0,
        }
    }
}

impl RouterKind for Config {
    fn build(&self, port: PortInfo, _random: Random) -> Box<dyn Router> {
        Box::new(self.build_for(port.rate.bps() / 8.0))
    }
}

/// Last request of a flow and its allocation.
#[derive(Clone, Copy, Debug)]
struct FlowAllocation {
    desired: f64,
    /// Rate that this router offered, and the rate in its answers to the last request and to that before.
    offered: f64,
    granted: f64,
    granted_before: f64,
    /// Smallest rate that a router of the path allotted, as far as known.
    allotted: f64,
    requested_at: Time,
}

impl FlowAllocation {
    /// Returns true if another router limits the flow.
    fn is_limited(&self) -> bool {
        self.allotted < self.offered
    }
}

/// Sums over flows.
#[derive(Clone, Copy, Debug, Default)]
struct AllocationSums {
    allotted: f64,
    /// Rates before equal shares: the desired rate or, for limited flows, the allotted rate.
    reserved: f64,
    /// Number of flows that are not limited elsewhere.
    unlimited_flows: f64,
}

impl AllocationSums {
    fn add(&mut self, entry: &FlowAllocation) {
        self.count(entry, 1.0);
    }

    fn remove(&mut self, entry: &FlowAllocation) {
        self.count(entry, -1.0);
    }

    /// Adds this multiple of an allocation.
    fn count(&mut self, entry: &FlowAllocation, times: f64) {
        let FlowAllocation { desired, allotted, .. } = *entry;
        self.allotted += times * allotted;
        self.reserved += times * if entry.is_limited() { allotted } else { desired };
        self.unlimited_flows += times * if entry.is_limited() { 0.0 } else { 1.0 };
    }
}

/// Upper bound on the time between requests in the RTT estimate, in RTTs: the flow may have paused.
const MAX_GAP_RTTS: f64 = 4.0;

/// Weight of the newest sample in the average RTT, as at hosts (RFC 6298).
const RTT_WEIGHT: f64 = 1.0 / 8.0;

/// Minimum slot in seconds, for links without delay.
const MIN_SLOT_SECONDS: f64 = 1e-6;

/// State of one port, in bytes and seconds.
struct D3 {
    config: Config,
    /// Rate of the link, and the part of it that may be allocated.
    link_rate: f64,
    capacity: f64,
    flows: BTreeMap<u64, FlowAllocation>,
    sums: AllocationSums,
    /// Average time between requests of a flow, which is an RTT.
    rtt: f64,
    /// Bytes that arrived in this slot, its length and its end.
    arrived: f64,
    slot: f64,
    slot_ends: Time,
    /// Minimum queue in this slot.
    min_queue: u64,
}

impl D3 {
    /// Returns the rate of a flow that desires `desired` and was allotted `upstream` by previous
    /// routers.
    fn allocate(&mut self, flow: u64, desired: f64, upstream: f64, now: Time) -> f64 {
        let (mut limit, mut granted_before) = (None, f64::INFINITY);
        if let Some(old) = self.remove_flow(flow) {
            granted_before = old.granted;
            let gap = now.since(old.requested_at).seconds().min(MAX_GAP_RTTS * self.rtt);
            self.rtt += RTT_WEIGHT * (gap - self.rtt);
            limit = old.is_limited().then_some(old.allotted);
        }
        let share =
            (self.capacity - self.sums.reserved - desired) / (self.sums.unlimited_flows + 1.0);
        let entitled = desired + share.max(0.0);
        // Other flows use the rest of a limited flow's share. The flow is nevertheless offered its
        // full share, so that it does not stay limited forever.
        let available = limit.map_or(self.capacity - self.sums.allotted, |_| entitled);
        let base = self.config.base.0 as f64 / self.rtt;
        // Rounded as in packets, so that the returned rate does not seem smaller.
        let offered = f64::from(entitled.min(available).max(base) as f32);
        let granted = offered.min(upstream);
        // The answer may arrive after the next request.
        let allotted = limit.map_or(granted, |limit| limit.min(granted));
        let entry = FlowAllocation {
            desired,
            offered,
            granted,
            granted_before,
            allotted,
            requested_at: now,
        };
        self.sums.add(&entry);
        self.flows.insert(flow, entry);
        granted
    }

    /// Removes a flow and its allocation.
    fn remove_flow(&mut self, flow: u64) -> Option<FlowAllocation> {
        let entry = self.flows.remove(&flow)?;
        self.sums.remove(&entry);
        Some(entry)
    }

    /// Removes silent flows, and recomputes the sums to remove rounding errors.
    fn remove_silent_flows(&mut self, now: Time) {
        let timeout = Duration::from_seconds(f64::from(self.config.forget_after) * self.rtt);
        self.flows.retain(|_, entry| now.since(entry.requested_at) <= timeout);
        self.sums = AllocationSums::default();
        self.flows.values().for_each(|entry| self.sums.add(entry));
    }
}

impl Router for D3 {
    fn on_arrival(&mut self, packet: &mut Packet, flow_info: &FlowInfo, now: Time) {
        self.arrived += f64::from(packet.bytes);
        if packet.kind == Kind::Fin {
            self.remove_flow(flow_info.flow);
        } else if let Header::D3 { desired, allotted } = packet.header() {
            let rate = self.allocate(flow_info.flow, f64::from(desired), f64::from(allotted), now);
            packet.write_feedback(rate as f32);
        }
    }

    fn on_departure(&mut self, _packet: &mut Packet, view: PortView) {
        self.min_queue = self.min_queue.min(view.backlog);
    }

    fn reads_acks(&self) -> bool {
        true
    }

    fn on_ack_return(&mut self, packet: &mut Packet, flow_info: &FlowInfo, _now: Time) {
        let allotted = f64::from(packet.header().feedback());
        // The answer to the request before the last may pass after the last one, and does not limit that.
        if allotted > 0.0
            && let Some(entry) = self.flows.get_mut(&flow_info.flow)
            && (allotted < entry.granted_before || allotted >= entry.granted)
        {
            self.sums.remove(entry);
            entry.allotted = allotted.min(entry.offered);
            self.sums.add(entry);
        }
    }

    fn next_tick(&self) -> Time {
        self.slot_ends
    }

    fn on_tick(&mut self, view: PortView) {
        // RCP's rate update ([rcp06] eq. 2) as a sum, since the capacity is to converge to the link
        // rate. Arrivals beyond the link rate count only in the queue: a slot may hold few packets,
        // and their number varies by one.
        let Config { alpha, beta, .. } = self.config;
        let spare = (self.link_rate - self.arrived / self.slot).max(0.0);
        let queue = self.min_queue.min(view.backlog) as f64;
        let change = alpha * spare - beta * queue / self.slot;
        self.capacity = (self.capacity + change).clamp(0.0, self.link_rate);
        self.remove_silent_flows(view.now);
        self.arrived = 0.0;
        self.min_queue = view.backlog;
        self.slot = self.rtt.max(MIN_SLOT_SECONDS);
        self.slot_ends = view.now + Duration::from_seconds(self.slot);
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![("capacity_bps", self.capacity * 8.0), ("allotted_bps", self.sums.allotted * 8.0)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::defaults;
    use crate::model::packet::Format;
    use crate::router::tests::FLOW;
    use proptest::prelude::*;

    /// Router of a link of 1 MB/s with a base rate of 100 KB/s per flow.
    fn router() -> D3 {
        let config: Config = defaults();
        Config { base: Bytes(30), ..config }.build_for(1e6)
    }

    fn at(us: u64) -> Time {
        Time::ZERO + Duration::from_micros(us)
    }

    /// Returns the rate in KB/s of a flow that requests once per RTT of 300 us.
    fn request(router: &mut D3, flow: u64, desired: f64, round: u64) -> f64 {
        router.allocate(flow, desired * 1e3, f64::INFINITY, at(300 * round)) / 1e3
    }

    fn assert_near(value: f64, expected: f64) {
        // Rates in packets are 32-bit floats.
        assert!(
            (value - expected).abs() <= 1e-7 * expected.abs().max(1.0),
            "{value} is not {expected}"
        );
    }

    #[test]
    fn a_flow_gets_its_desired_rate_plus_an_equal_share_of_the_rest() {
        let mut router = router();
        // A single flow gets the whole capacity. The next flow gets the base rate at first.
        assert_near(request(&mut router, 1, 400.0, 0), 1000.0);
        assert_near(request(&mut router, 2, 200.0, 0), 100.0);
        // The desired rates leave 400 KB/s, 200 KB/s for each flow.
        assert_near(request(&mut router, 1, 400.0, 1), 600.0);
        assert_near(request(&mut router, 2, 200.0, 1), 400.0);
        assert_near(router.sums.allotted, 1e6);
        // A third flow, without a deadline, also gets the base rate at first and then its share. The
        // base rate reduces the allocation of the next request.
        assert_near(request(&mut router, 3, 0.0, 1), 100.0);
        assert_near(request(&mut router, 1, 400.0, 2), 500.0);
        for round in 2..4 {
            assert_near(request(&mut router, 2, 200.0, round), 1_000.0 / 3.0);
            assert_near(request(&mut router, 3, 0.0, round), 400.0 / 3.0);
            assert_near(request(&mut router, 1, 400.0, round + 1), 1_600.0 / 3.0);
        }
    }

    #[test]
    fn requests_are_served_in_order_and_every_flow_keeps_the_base_rate() {
        let mut router = router();
        for round in 0..5 {
            assert_near(
                request(&mut router, 1, 700.0, round),
                if round == 0 { 1000.0 } else { 700.0 },
            );
            assert_near(
                request(&mut router, 2, 600.0, round),
                if round == 0 { 100.0 } else { 200.0 },
            );
            // No capacity is left for any desired rate.
            assert_near(request(&mut router, 3, 900.0, round), 100.0);
        }
    }

    /// Answer with this rate in bytes per second.
    fn answer(feedback: f32) -> Packet {
        packet(Kind::Ack, Header::Ack { block: (0, 0), feedback })
    }

    fn packet(kind: Kind, header: Header) -> Packet {
        let format: Format = defaults();
        format.control(kind, 0, Time::ZERO).with_header(header)
    }

    #[test]
    fn requests_carry_the_smallest_allocation_of_the_path() {
        let mut router = router();
        let request = |allotted| Header::D3 { desired: 0.0, allotted };
        let mut syn = packet(Kind::Syn, request(f32::INFINITY));
        router.on_arrival(&mut syn, &FLOW, at(0));
        assert_eq!(syn.header(), request(1e6));
        let mut syn = packet(Kind::Syn, request(300e3));
        router.on_arrival(&mut syn, &FLOW, at(0));
        assert_eq!(syn.header(), request(300e3), "an upstream router allots less");
        assert_near(router.sums.allotted, 300e3);
        let mut data = packet(Kind::Data, Header::NONE);
        router.on_arrival(&mut data, &FLOW, at(0));
        assert_eq!(data.header(), Header::NONE);
        router.on_arrival(&mut packet(Kind::Fin, Header::NONE), &FLOW, at(0));
        assert_near(router.sums.allotted, 0.0);
        assert!(router.flows.is_empty());
    }

    #[test]
    fn silent_flows_are_removed() {
        let mut router = router();
        request(&mut router, 1, 0.0, 0);
        let tick = |router: &mut D3, us| router.on_tick(PortView { now: at(us), backlog: 0 });
        tick(&mut router, 3_000);
        assert_eq!(router.flows.len(), 1);
        tick(&mut router, 3_001);
        assert_eq!(router.flows.len(), 0);
        assert_near(router.sums.allotted, 0.0);
    }

    #[test]
    fn capacity_decreases_with_the_queue_and_recovers_with_spare_capacity() {
        let mut router = router();
        router.arrived = 300.0;
        router.min_queue = 150;
        // Fully used link with a queue of half an RTT.
        router.on_tick(PortView { now: at(300), backlog: 400 });
        assert_near(router.capacity, 1e6 - 0.226 * 0.5e6);
        // Utilisation of 75 %, and a minimum queue of 0.
        router.on_departure(
            &mut packet(Kind::Data, Header::NONE),
            PortView { now: at(400), backlog: 0 },
        );
        router.arrived = 225.0;
        router.on_tick(PortView { now: at(600), backlog: 300 });
        assert_near(router.capacity, 1e6 - 0.226 * 0.5e6 + 0.4 * 0.25e6);
        // On an idle link the capacity is the link rate.
        router.min_queue = 0;
        router.on_tick(PortView { now: at(900), backlog: 0 });
        assert_near(router.capacity, 1e6);
    }

    #[test]
    fn unused_shares_go_to_other_flows() {
        let mut router = router();
        for round in 0..4 {
            request(&mut router, FLOW.flow, 100.0, round);
            for (flow, desired) in [(1, 200.0), (2, 0.0)] {
                request(&mut router, flow, desired, round);
            }
            // Another router limits the first flow to 150 KB/s.
            router.on_ack_return(&mut answer(150e3), &FLOW, at(0));
            assert_near(router.flows[&FLOW.flow].allotted, 150e3);
        }
        assert_near(router.flows[&1].allotted / 1e3, 200.0 + 650.0 / 2.0);
        assert_near(router.flows[&2].allotted / 1e3, 650.0 / 2.0);
        // It is offered its full share, and gets it once it is no longer limited elsewhere.
        let offered = request(&mut router, FLOW.flow, 100.0, 4);
        assert_near(offered, 100.0 + 700.0 / 3.0);
        assert_near(router.flows[&FLOW.flow].allotted, 150e3);
        router.on_ack_return(&mut answer(offered as f32 * 1e3), &FLOW, at(0));
        assert_near(router.flows[&FLOW.flow].allotted / 1e3, offered);
        assert_near(request(&mut router, 1, 200.0, 5), 1000.0 - offered - 325.0);
        assert_near(request(&mut router, 2, 0.0, 5), 700.0 / 3.0);
        assert_near(request(&mut router, 1, 200.0, 6), 200.0 + 700.0 / 3.0);
    }

    #[test]
    fn the_answer_to_an_earlier_request_does_not_limit_the_last_one() {
        let mut router = router();
        assert_near(request(&mut router, 1, 900.0, 0), 1000.0);
        assert_near(request(&mut router, FLOW.flow, 800.0, 0), 100.0);
        router.remove_flow(1);
        let offered = request(&mut router, FLOW.flow, 800.0, 1);
        assert_near(offered, 1000.0);
        for (answered, allotted) in [(100.0, offered), (50.0, 50.0), (offered, offered)] {
            router.on_ack_return(&mut answer(answered as f32 * 1e3), &FLOW, at(400));
            assert_near(router.flows[&FLOW.flow].allotted / 1e3, allotted);
        }
    }

    #[test]
    fn shares_that_an_earlier_router_denies_go_to_other_flows() {
        let mut router = router();
        let limited = |router: &mut D3, upstream: f64, round| {
            router.allocate(FLOW.flow, 100e3, upstream, at(300 * round)) / 1e3
        };
        for round in 0..4 {
            assert_near(limited(&mut router, 150e3, round), 150.0);
            for (flow, desired) in [(1, 200.0), (2, 0.0)] {
                request(&mut router, flow, desired, round);
            }
        }
        assert_near(router.flows[&1].allotted / 1e3, 200.0 + 650.0 / 2.0);
        assert_near(router.flows[&2].allotted / 1e3, 650.0 / 2.0);
        // It gets its full share once the earlier router allots more.
        assert_near(limited(&mut router, f64::INFINITY, 4), 100.0 + 700.0 / 3.0);
    }

    #[test]
    fn the_time_between_requests_estimates_the_rtt() {
        let mut router = router();
        for i in 0..100 {
            router.allocate(i % 3, 0.0, f64::INFINITY, at(50 * (i / 3)));
        }
        assert!((router.rtt - 50e-6).abs() < 1e-6, "{}", router.rtt);
    }

    proptest! {
        #[test]
        fn allocations_exceed_the_capacity_by_at_most_the_base_rates(
            requests in prop::collection::vec((0_u64..8, 0.0..2e6_f64, any::<bool>()), 0..200),
        ) {
            let mut router = router();
            for (flow, desired, leaves) in requests {
                if leaves {
                    router.remove_flow(flow);
                } else {
                    let available = router.capacity - router.sums.allotted
                        + router.flows.get(&flow).map_or(0.0, |entry| entry.allotted);
                    // A constant RTT keeps the base rate constant.
                    router.rtt = 300e-6;
                    let offered = router.allocate(flow, desired, f64::INFINITY, at(0));
                    let base = 30.0 / router.rtt;
                    // Rates in packets are 32-bit floats.
                    prop_assert!(offered >= base - 0.1 && offered <= available.max(base) + 0.1);
                    prop_assert!(offered >= desired.min(available) - 0.1, "first come, first served");
                }
                let sum: f64 = router.flows.values().map(|entry| entry.allotted).sum();
                prop_assert!((sum - router.sums.allotted).abs() < 1e-3, "the sum equals that of the flows");
                let slack = router.flows.len() as f64 * 30.0 / 200e-6;
                prop_assert!(router.sums.allotted <= router.capacity + slack);
            }
        }
    }
}
