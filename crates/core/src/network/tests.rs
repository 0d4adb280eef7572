//! Tests of the network as a whole.

use super::*;
use crate::base::random::Random;
use crate::base::schema::{Parameter, defaults};
use crate::base::units::{Bytes, Rate};
use crate::breakdown::PathDelays;
use crate::breakdown::pool::BreakdownRef;
use crate::model::graph::{Graph, LoadReference, Loss};
use crate::model::packet::{AckOptions, Format, Kind};
use crate::model::telemetry::TelemetryStack;
use crate::network::breakdown::packet_log::Sending;
use crate::network::link::loss::Losses;
use crate::network::port::PortConfig;
use crate::network::routes::Routing;
use crate::network::switch::config;
use crate::queueing::blocks::tail_drop::TailDrop;
use crate::queueing::{Limit, PortQueue};
use crate::schedule::Partition;
use serde_json::json;
use std::collections::BTreeMap;

/// Ports of a test network.
#[derive(Clone, Copy)]
struct Ports {
    is_awaited: bool,
    keeps_records: bool,
    has_telemetry: bool,
    loss: fn(LinkId) -> Loss,
    capacity: Option<Limit>,
}

const PORTS: Ports = Ports {
    is_awaited: false,
    keeps_records: false,
    has_telemetry: false,
    loss: |_| Loss::None,
    capacity: None,
};

/// Two hosts that send, one that receives, and a switch. Links transmit a byte in a nanosecond, with a
/// delay of 500 ns.
fn graph() -> Graph {
    let rate = Rate::from_gbps(8);
    let mut graph = Graph::new(LoadReference { rate, what: "a host".to_owned() });
    let switch = graph.add_switch("switch");
    for i in 0..3 {
        let host = graph.add_host(format!("host{i}"));
        graph.connect(host, switch, rate, Duration::from_nanos(500));
    }
    graph
}

/// A network, its event queue, and the packets that it has delivered.
struct Bench {
    network: Network,
    scheduler: Scheduler,
    delivered: Vec<(Time, Packet)>,
}

impl Bench {
    fn new(ports: Ports, switch: &serde_json::Value) -> Self {
        let graph = graph();
        let Ports { is_awaited, keeps_records, has_telemetry, loss, capacity } = ports;
        let config = config::Config::read(switch).unwrap();
        let passing = config.passing(config.control_priority);
        let from_host: Vec<bool> =
            graph.links.iter().map(|link| graph.is_from_host(link)).collect();
        let port = |id: usize| {
            let config = PortConfig {
                passing,
                is_awaited: is_awaited && from_host[id],
                stamps: false,
                keeps_account: keeps_records,
                has_telemetry: has_telemetry && !from_host[id],
                time_unit: Duration::ZERO,
            };
            let queue = PortQueue::OnArrival(Box::new(TailDrop(capacity)));
            let random = Random::new(1, "port");
            let losses = Losses::new(&loss(id as LinkId), || unreachable!("it does not draw"));
            Port::new(&graph.links[id], vec![queue], &[1], None, config, random, losses)
        };
        let ports = (0..graph.links.len()).map(port).collect();
        let traffic = TrafficClasses::new(&BTreeMap::new(), &["all".to_owned()]);
        let format = Format { payload: Bytes(960), ..defaults() };
        let buffers = Buffers::new(&config, &graph, &format, &traffic).unwrap();
        let routes = Routes::new(&graph, Routing::FlowHash, 1, (0, 1));
        let scheduler = Scheduler::new(None, &Partition::whole(&graph), &graph);
        let mut network =
            Network::new(ports, from_host, routes, buffers, traffic, passing, is_awaited);
        let timers = PauseTimers::new(&config, &graph, Bytes(1_000), network.traffic());
        network.set_pause_timers(timers);
        if keeps_records {
            network.keep_records(None);
        }
        Self { network, scheduler, delivered: Vec::new() }
    }

    /// Starts flow `number` from host `source` to host 2. Returns its packets of 1000 B without a
    /// sequence number.
    fn start(&mut self, number: FlowNumber, source: u32) -> Packet {
        self.start_between(number, source, 2)
    }

    fn start_between(&mut self, number: FlowNumber, source: u32, target: u32) -> Packet {
        let route = self.network.routes_mut().allocate(source, target, u64::from(number));
        let info = FlowInfo { flow: u64::from(number), deadline: Time::NEVER, line_rate: Rate(1) };
        self.network.register_flow(number, info, 0, "all", route);
        let next_hop = self.network.routes().selectors(route, 0)[0].start();
        let format: Format = defaults();
        let packet = format.control(Kind::Data, number, self.scheduler.now());
        Packet { next_hop, bytes: 1_000, ..packet }
    }

    fn send(&mut self, packet: Packet) -> Option<Time> {
        let mut packet = packet;
        if self.network.records().is_some() {
            let now = self.scheduler.now();
            let sending = Sending::of_control(now);
            self.network.record_send(&mut packet, BreakdownRef::default(), sending);
        }
        self.network.send(packet, &mut self.scheduler)
    }

    /// Handles the next event.
    fn step(&mut self) -> bool {
        let Some((now, event)) = self.scheduler.pop() else { return false };
        match event {
            Event::Arrive(link) => {
                let packet = self.network.arrive(link, &mut self.scheduler);
                let end = self.network.forward(packet, link, &mut self.scheduler);
                self.delivered.extend(end.map(|packet| (now, packet)));
            }
            Event::Ready(link) => self.network.ready(link, &mut self.scheduler),
            Event::HoldEnd(link) => self.network.end_hold(link, &mut self.scheduler),
            Event::PauseEnd(lane) => self.network.on_pause_end(lane, &mut self.scheduler),
            Event::PauseFrame(lane) => {
                self.network.on_pause_frame_due(lane, &mut self.scheduler);
            }
            other => panic!("{other:?}"),
        }
        true
    }

    fn run(&mut self) -> Vec<(Time, u32)> {
        while self.step() {}
        assert_eq!(self.network.close(self.scheduler.now()), self.network.pause_frames());
        self.delivered.iter().map(|(time, packet)| (*time, packet.sequence)).collect()
    }
}

fn at(ns: u64) -> Time {
    Time::ZERO + Duration::from_nanos(ns)
}

/// Link from the switch to the receiving host, and from the first host to the switch.
const LAST: LinkId = 5;
const FIRST: LinkId = 0;

#[test]
fn packets_take_their_route_hop_by_hop() {
    let mut bench = Bench::new(PORTS, &json!({}));
    let packet = bench.start(7, 0);
    assert_eq!(bench.send(packet), Some(at(0)), "without pacing the port does not delay flows");
    bench.send(Packet { sequence: 1, ..packet });
    // A transmission of 1000 ns and a delay of 500 ns on each of two links.
    assert_eq!(bench.run(), [(at(3_000), 0), (at(4_000), 1)]);
    let departed: Vec<u64> =
        bench.network.ports().iter().map(|port| port.counters.departed).collect();
    assert_eq!(departed, [2, 0, 0, 0, 0, 2]);
}

#[test]
fn paced_senders_receive_departures_on_arrival_as_long_as_they_are_predicted() {
    let mut bench = Bench::new(Ports { is_awaited: true, ..PORTS }, &json!({}));
    let packet = bench.start(0, 0);
    let departs: Vec<_> = (0..3).map(|_| bench.send(packet)).collect();
    assert_eq!(departs, [1_000, 2_000, 3_000].map(|ns| Some(at(ns))));
    bench.run();
    assert_eq!(bench.network.pop_departure(), None);
}

#[test]
fn a_drop_in_a_paced_host_is_reported_as_departure_and_loss() {
    let capacity = Some(Limit::Packets(1));
    let mut bench = Bench::new(Ports { is_awaited: true, capacity, ..PORTS }, &json!({}));
    let packet = bench.start(4, 0);
    let departs: Vec<_> = (0..3).map(|_| bench.send(packet)).collect();
    assert_eq!(departs, [Some(at(1_000)), Some(at(2_000)), None]);
    let departure = Departure { flow: 4, ends: at(0) };
    assert_eq!(bench.network.pop_departure(), Some(departure));
    assert_eq!(bench.network.losses(), [PacketLoss { flow: 4, time: at(0) }]);
    assert_eq!(bench.run().len(), 2);
}

#[test]
fn losses_on_a_link_are_reported_when_the_packet_would_arrive() {
    let loss = |link| if link == LAST { Loss::Every(2) } else { Loss::None };
    let mut bench = Bench::new(Ports { loss, ..PORTS }, &json!({}));
    let packet = bench.start(4, 0);
    for sequence in 0..4 {
        bench.send(Packet { sequence, ..packet });
    }
    assert_eq!(bench.run(), [(at(3_000), 0), (at(5_000), 2)]);
    let lost: Vec<_> = std::iter::from_fn(|| bench.network.pop_loss()).collect();
    assert_eq!(lost, [6_000, 4_000].map(|ns| PacketLoss { flow: 4, time: at(ns) }));
}

#[test]
fn a_shared_buffer_drops_the_packets_that_exceed_it() {
    let mut bench = Bench::new(PORTS, &json!({ "shared_buffer": "3 KB" }));
    let [first, second] = [bench.start(0, 0), bench.start(1, 1)];
    for _ in 0..10 {
        bench.send(first);
        bench.send(second);
    }
    // Of 20 packets the switch transmits 10 while they arrive, and holds 3.
    let delivered = bench.run().len();
    assert_eq!(bench.network.losses().len(), 20 - delivered);
    assert!((12..=14).contains(&delivered), "{delivered}");
    let dropped: u64 = bench.network.ports().iter().map(|port| port.counters.dropped).sum();
    assert_eq!(dropped, 20 - delivered as u64);
}

#[test]
fn pause_frames_replace_drops_and_all_of_them_arrive() {
    let switch = json!({ "shared_buffer": "40 KB", "pause": {} });
    for is_awaited in [false, true] {
        let mut bench = Bench::new(Ports { is_awaited, ..PORTS }, &switch);
        let [first, second] = [bench.start(0, 0), bench.start(1, 1)];
        for _ in 0..60 {
            bench.send(first);
            bench.send(second);
        }
        let delivered = bench.run();
        assert_eq!((delivered.len(), bench.network.losses().len()), (120, 0));
        // The bottleneck is never idle.
        assert_eq!(delivered.last().unwrap().0, at(1_500 + 120_000 + 500));
        assert_eq!(bench.network.pause_frames(), 0);
        assert!(bench.network.last_frame() > at(0));
        let pauses: u64 = bench.network.ports().iter().map(|port| port.pauses()[0].count).sum();
        assert!(pauses > 1, "{pauses}");
        assert_eq!(bench.network.pop_departure(), None, "all were predicted before the pauses");
    }
}

#[test]
fn a_failed_link_ends_its_pauses() {
    let mut bench = Bench::new(PORTS, &json!({ "shared_buffer": "40 KB", "pause": {} }));
    for link in [FIRST, FIRST ^ 1] {
        bench.network.may_fail(link);
    }
    let [first, second] = [bench.start(0, 0), bench.start(1, 1)];
    for _ in 0..60 {
        bench.send(first);
        bench.send(second);
    }
    while !bench.network.ports()[FIRST as usize].pauses()[0].is_on() {
        assert!(bench.step(), "the first host is paused at some time");
    }
    for link in [FIRST, FIRST ^ 1] {
        bench.network.set_link_state(link, true, &mut bench.scheduler);
    }
    assert!(!bench.network.ports()[FIRST as usize].pauses()[0].is_on());
    let delivered = bench.run().len();
    assert_eq!(delivered + bench.network.losses().len(), 120);
    assert_eq!(bench.network.pause_frames(), 0);
}

/// Two hosts send `packets` packets each to a third through a switch that pauses them for `quanta` times
/// 64 ns, until the first host is paused.
fn lossy_pauses(quanta: u32, loss: fn(LinkId) -> Loss, pause: &serde_json::Value) -> Bench {
    let mut pause = pause.clone();
    pause["quanta"] = quanta.into();
    let switch = json!({ "shared_buffer": "100 KB", "pause": pause });
    let mut bench = Bench::new(Ports { loss, ..PORTS }, &switch);
    let [first, second] = [bench.start(0, 0), bench.start(1, 1)];
    for _ in 0..200 {
        bench.send(first);
        bench.send(second);
    }
    while !bench.network.is_paused(FIRST) {
        assert!(bench.step(), "the first host is paused at some time");
    }
    bench
}

#[test]
fn a_pause_expires_if_the_resume_frame_is_lost() {
    // The first frame pauses, and the second resumes, before the pause frame would be repeated.
    let loss = |link| if link == FIRST ^ 1 { Loss::Every(2) } else { Loss::None };
    let mut bench = lossy_pauses(1_000, loss, &json!({}));
    let begins = bench.scheduler.now();
    while bench.network.is_paused(FIRST) {
        assert!(bench.network.open_pauses() > bench.network.pause_frames(), "a run goes on");
        assert!(bench.step());
    }
    let ends = bench.scheduler.now();
    assert_eq!((ends - begins, bench.network.last_frame()), (Duration::from_nanos(64_000), ends));
    let frames = &bench.network.ports()[FIRST as usize ^ 1].counters;
    assert_eq!((frames.departed, frames.lost), (2, 1));
    let delivered = bench.run();
    assert_eq!((delivered.len(), bench.network.losses().len()), (400, 0));
    assert_eq!((bench.network.open_pauses(), bench.network.pause_frames()), (0, 0));
}

#[test]
fn a_pause_does_not_expire_if_every_other_frame_is_lost() {
    // Pauses of 3.84 us, and frames each 1.388 us: half of the time that remains without the wait of
    // 1064 ns for a packet and the frame itself.
    let loss = |link| if link == FIRST ^ 1 { Loss::Every(2) } else { Loss::None };
    let mut bench = lossy_pauses(60, loss, &json!({ "alpha": 0.25, "resume_offset": "15 KB" }));
    let begins = bench.scheduler.now();
    let is_paused = |bench: &Bench| bench.network.buffers.as_ref().unwrap().is_paused(FIRST);
    while is_paused(&bench) {
        assert!(bench.network.is_paused(FIRST), "at {:?}", bench.scheduler.now());
        assert!(bench.step());
    }
    let lasted = bench.scheduler.now() - begins;
    assert!(lasted > Duration::from_nanos(15_000), "{lasted}");
    let frames = bench.network.ports()[FIRST as usize ^ 1].counters.departed;
    assert_eq!(frames, 1 + lasted.0.div_ceil(1_388_000), "and the one that resumes");
    assert_eq!(
        bench.network.ports()[FIRST as usize].pauses()[0].count,
        1,
        "frames are not counted"
    );
    let delivered = bench.run();
    assert_eq!((delivered.len(), bench.network.losses().len()), (400, 0));
}

#[test]
fn a_resume_frame_replaces_a_repeated_frame_that_waits() {
    // Frames wait for packets of 1000 ns to the first host, and pauses would last 2560 ns.
    let mut bench = lossy_pauses(40, |_| Loss::None, &json!({}));
    let back = bench.start_between(2, 2, 0);
    for _ in 0..400 {
        bench.send(back);
    }
    let mut resumed_at = None;
    while bench.step() {
        let now = bench.scheduler.now();
        let is_paused = bench.network.buffers.as_ref().unwrap().is_paused(FIRST);
        let is_stopped = bench.network.is_paused(FIRST);
        resumed_at = if is_stopped && !is_paused { resumed_at.or(Some(now)) } else { None };
        // A packet, two frames, and the delay.
        let longest = Duration::from_nanos(1_000 + 64 + 64 + 500);
        assert!(resumed_at.is_none_or(|since| now - since <= longest), "at {now:?}");
    }
    assert!(bench.network.ports()[FIRST as usize].pauses()[0].count > 10);
    assert_eq!((bench.run().len(), bench.network.losses().len()), (800, 0));
}

#[test]
fn headroom_overflows_if_all_pause_frames_are_lost() {
    // Of the second host, over link 2.
    let loss = |link| if link == 3 { Loss::Every(1) } else { Loss::None };
    let mut bench = lossy_pauses(100, loss, &json!({}));
    let delivered = bench.run().len() as u64;
    let dropped = bench.network.ports()[LAST as usize].counters.dropped;
    assert!(dropped > 0);
    assert_eq!((delivered + dropped, bench.network.losses().len() as u64), (400, dropped));
    assert_eq!(bench.network.ports()[2].pauses()[0].count, 0);
    let frames = &bench.network.ports()[3].counters;
    assert!(frames.lost > 1 && frames.lost == frames.departed, "{frames:?}");
}

#[test]
fn slots_outlive_packets_and_are_reused() {
    let mut bench = Bench::new(PORTS, &json!({}));
    bench.start(3, 0);
    bench.start(5, 1);
    bench.network.unregister_flow(3, std::iter::empty());
    assert_eq!((bench.network.slot(3), bench.network.slot_or_join(8)), (None, 0));
    assert_eq!(bench.network.slot_or_join(5), 1);
    assert_eq!(bench.network.flows().collect::<Vec<_>>(), [(5, 1), (8, 0)]);
}

/// Time of packets in the network: propagation, transmission, and waits behind packets of the same
/// flow and of others at the host and further on, in ns.
fn journey(
    propagation: u64,
    transmission: u64,
    [own_host, others_host, own, others]: [u64; 4],
) -> PathDelays {
    let ns = Duration::from_nanos;
    let waits = |own, others| [ns(own), ns(others), ns(0), ns(0), ns(0)];
    let legs = [waits(own_host, others_host), waits(own, others), waits(0, 0)];
    PathDelays::new(&legs, ns(transmission), ns(propagation))
}

/// Takes the journeys of all packets that are delivered, in order.
fn journeys(bench: &mut Bench) -> Vec<(FlowNumber, PathDelays)> {
    let mut journeys = Vec::new();
    while bench.step() {
        while let Some((_, mut packet)) = bench.delivered.pop() {
            bench.network.begin_delivery(&mut packet, Time::ZERO);
            assert_eq!(packet.sent_at, at(0), "the timestamp is restored");
            let arrival = bench.network.take_record().unwrap();
            bench.network.records_mut().unwrap().accounts.release(arrival.breakdown);
            journeys.push((packet.flow, arrival.delays));
            bench.network.end_delivery();
        }
    }
    bench.network.records().unwrap().assert_empty();
    journeys
}

#[test]
fn records_split_the_time_of_packets_by_cause() {
    let mut bench = Bench::new(Ports { keeps_records: true, ..PORTS }, &json!({}));
    let [first, second] = [bench.start(0, 0), bench.start(1, 1)];
    bench.send(first);
    bench.send(first);
    bench.send(second);
    let expected = [
        (0, journey(1_000, 2_000, [0; 4])),
        // Arrives at the switch with the first packet, and waits for it.
        (1, journey(1_000, 2_000, [0, 0, 0, 1_000])),
        // Waits at its host for its own flow, and at the switch for the other.
        (0, journey(1_000, 2_000, [1_000, 0, 0, 1_000])),
    ];
    assert_eq!(journeys(&mut bench), expected);
}

#[test]
fn lost_packets_free_their_records() {
    let loss = |link| if link == LAST { Loss::Every(2) } else { Loss::None };
    let capacity = Some(Limit::Packets(2));
    let ports = Ports { keeps_records: true, loss, capacity, ..PORTS };
    let mut bench = Bench::new(ports, &json!({}));
    let packet = bench.start(0, 0);
    for _ in 0..6 {
        bench.send(packet);
    }
    assert_eq!(journeys(&mut bench).len(), 2, "three pass the host, and one of those is lost");
    assert_eq!(bench.network.losses().len(), 4);
}

#[test]
fn packets_of_another_partition_arrive_with_their_record() {
    let ports = Ports { keeps_records: true, ..PORTS };
    let mut whole = Bench::new(ports, &json!({}));
    let [mut near, mut far] = [(); 2].map(|()| Bench::new(ports, &json!({})));
    near.network.cut(FIRST);
    for bench in [&mut whole, &mut near, &mut far] {
        bench.start(3, 1);
    }
    let packets = [&mut whole, &mut near, &mut far].map(|bench| bench.start(0, 0));
    for _ in 0..2 {
        whole.send(packets[0]);
        near.send(packets[1]);
    }
    let mut shipment = Shipment::default();
    let next = near.network.export(FIRST, at(900), &mut shipment);
    assert_eq!(next, at(1_000), "the second transmission");
    far.network.import(&mut shipment, &mut far.scheduler);
    assert_eq!(near.network.export(FIRST, at(1_000), &mut shipment), at(2_500));
    far.network.import(&mut shipment, &mut far.scheduler);
    assert_eq!(journeys(&mut far), journeys(&mut whole));
    near.network.records().unwrap().assert_empty();
}

#[test]
fn windows_visit_the_arrivals_before_their_end() {
    let mut bench = Bench::new(PORTS, &json!({}));
    let packet = bench.start(0, 0);
    for _ in 0..3 {
        bench.send(packet);
    }
    let mut arrivals = Vec::new();
    bench.network.visit_arrivals(FIRST, at(1_000), at(2_600), |time| arrivals.push(time));
    assert_eq!(arrivals, [at(1_500), at(2_500)]);
    assert_eq!(bench.network.take_arrival(FIRST).1, Some(at(2_500)));
}

/// Sends an ACK with options, which go back with it.
fn send_options(bench: &mut Bench, packet: Packet, options: AckOptions) {
    let ack = Packet { kind: Kind::Ack, ..packet };
    let ack = bench.network.with_options(ack, options, 0.5);
    bench.send(ack);
}

const OPTIONS: AckOptions =
    AckOptions { blocks: [(5, 7), (2, 3), (0, 0)], marks: 9, entropy: None };

#[test]
fn lost_acks_free_their_options() {
    let loss = |link| if link == LAST { Loss::Every(2) } else { Loss::None };
    let ports = Ports { loss, capacity: Some(Limit::Packets(2)), ..PORTS };
    let mut bench = Bench::new(ports, &json!({}));
    let packet = bench.start(0, 0);
    (0..6).for_each(|_| send_options(&mut bench, packet, OPTIONS));
    while bench.step() {}
    assert_eq!(bench.network.losses().len(), 4, "three pass the host, and one of those is lost");
    for (_, ack) in std::mem::take(&mut bench.delivered) {
        assert_eq!(ack.header().feedback().to_bits(), 0.5_f32.to_bits());
        assert_eq!(bench.network.take_options(&ack), Some(OPTIONS));
    }
    bench.network.assert_no_options();
}

#[test]
fn acks_of_another_partition_arrive_with_their_options() {
    let [mut near, mut far] = [(); 2].map(|()| Bench::new(PORTS, &json!({})));
    near.network.cut(FIRST);
    let packet = near.start(0, 0);
    far.start(0, 0);
    send_options(&mut near, packet, OPTIONS);
    let mut shipment = Shipment::default();
    near.network.export(FIRST, at(900), &mut shipment);
    near.network.assert_no_options();
    far.network.import(&mut shipment, &mut far.scheduler);
    while far.step() {}
    let (_, ack) = far.delivered[0];
    assert_eq!(far.network.take_options(&ack), Some(OPTIONS));
    far.network.assert_no_options();
}

const TELEMETRY: Ports = Ports { has_telemetry: true, ..PORTS };

/// Telemetry of the switch: time in ns, bytes transmitted, bytes waiting.
fn hops(telemetry: Option<&TelemetryStack>) -> Vec<(u64, u64, u64)> {
    let hops = telemetry.unwrap().hops().iter();
    hops.map(|hop| (hop.time.0 / 1_000, hop.transmitted.0, hop.queued.0)).collect()
}

#[test]
fn switches_write_telemetry_at_departure() {
    let mut bench = Bench::new(TELEMETRY, &json!({}));
    let packets = [bench.start(0, 0), bench.start(1, 1)];
    // A packet without telemetry counts in the telemetry of others.
    bench.send(Packet { kind: Kind::Fin, ..packets[1] });
    for packet in [packets[0], packets[1], packets[0]] {
        let packet = bench.network.collect_telemetry(packet);
        bench.send(packet);
    }
    while bench.step() {}
    let delivered: Vec<Packet> = bench.delivered.iter().map(|(_, packet)| *packet).collect();
    let telemetry = |packet: &Packet| hops(bench.network.take_telemetry(packet));
    assert_eq!(delivered[1].kind, Kind::Fin);
    let all: Vec<_> = [delivered[0], delivered[2], delivered[3]].iter().map(telemetry).collect();
    // The FIN and the first packet arrive at 1500, the others while the FIN is transmitted.
    assert_eq!(all, [[(1_500, 0, 0)], [(3_500, 2_000, 1_000)], [(4_500, 3_000, 0)]]);
    bench.network.assert_no_telemetry();
}

#[test]
fn lost_packets_free_their_telemetry() {
    let loss = |link| if link == LAST { Loss::Every(2) } else { Loss::None };
    let mut bench = Bench::new(Ports { loss, ..TELEMETRY }, &json!({}));
    let packet = bench.start(0, 0);
    for _ in 0..4 {
        let packet = bench.network.collect_telemetry(packet);
        bench.send(packet);
    }
    while bench.step() {}
    let delivered = std::mem::take(&mut bench.delivered);
    let telemetry = delivered.iter().map(|(_, packet)| hops(bench.network.take_telemetry(packet)));
    assert_eq!(telemetry.collect::<Vec<_>>(), [[(1_500, 0, 0)], [(3_500, 2_000, 0)]]);
    bench.network.assert_no_telemetry();
}

#[test]
fn packets_of_another_partition_arrive_with_their_telemetry() {
    for keeps_records in [false, true] {
        let ports = Ports { keeps_records, ..TELEMETRY };
        let [mut near, mut far] = [(); 2].map(|()| Bench::new(ports, &json!({})));
        near.network.cut(LAST);
        let packet = near.start(0, 0);
        far.start(0, 0);
        let mut packet = near.network.collect_telemetry(packet);
        if keeps_records {
            let sending = Sending::of_control(at(0));
            near.network.record_send(&mut packet, BreakdownRef::default(), sending);
        }
        near.send(packet);
        near.step();
        let mut shipment = Shipment::default();
        near.network.export(LAST, at(2_000), &mut shipment);
        near.network.assert_no_telemetry();
        far.network.import(&mut shipment, &mut far.scheduler);
        while far.step() {}
        let (_, packet) = far.delivered[0];
        assert_eq!(hops(far.network.take_telemetry(&packet)), [(1_500, 0, 0)]);
        far.network.assert_no_telemetry();
    }
}
