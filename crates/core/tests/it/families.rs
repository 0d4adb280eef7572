//! Properties of every component of a family, under random inputs. The tests iterate over the lists
//! of components; only a few components need explicit parameters here.

use std::collections::VecDeque;

use proptest::prelude::*;
use serde_json::{Value, json};
use sojourn_core::base::random::Random;
use sojourn_core::base::schema::Parameter;
use sojourn_core::base::units::{Bytes, Duration, Rate, Time};
use sojourn_core::ideal::models;
use sojourn_core::model::packet::{Flags, Format, Kind, Packed, Packet};
use sojourn_core::queueing::Fifo;
use sojourn_core::queueing::disciplines::{
    self, Backlog, Context, Limit, LinkScale, PortQueue, Queue, QueueState, Verdict,
};
use sojourn_core::run::catalogue::catalogue;
use sojourn_core::traffic::generators;
use sojourn_core::transport::controllers::{self, Ack, CongestionSignal, Controller, Loss, Path};
use sojourn_core::transport::{Restart, TrimmedAt, WindowReduction};
use sojourn_core::{router, topology, traffic};

const FORMAT: Format = Format {
    payload: Bytes(1000),
    header: Bytes(40),
    ack: Bytes(40),
    syn: None,
    credit: None,
    sack: false,
    time_unit: Duration::ZERO,
};

// Controllers.

/// An acknowledgement of packets in flight, with an RTT in microseconds.
#[derive(Clone, Debug)]
struct AckEvent {
    packets: u8,
    rtt_us: u32,
    marked: bool,
    feedback: f32,
    is_recovering: bool,
    is_window_limited: bool,
}

/// An event of a controller; a delay in microseconds precedes each.
#[derive(Clone, Debug)]
enum ControllerEvent {
    /// Packets are sent.
    Sent(u8),
    /// Packets in flight are acknowledged, with this RTT.
    Ack(AckEvent),
    /// Loss of a packet.
    Loss(CongestionSignal),
    /// A congestion notification.
    Notification,
    /// The end of an idle time, if all packets are acknowledged.
    Restart(WindowReduction),
    /// No more data to send.
    AppLimited,
    /// No event.
    Nothing,
}

fn controller_event() -> impl Strategy<Value = (u32, ControllerEvent)> {
    let signal = prop_oneof![
        Just(CongestionSignal::DetectedLoss),
        Just(CongestionSignal::Timeout),
        Just(CongestionSignal::EcnMark)
    ];
    let feedback = prop_oneof![Just(0.0), -1e9_f32..1e9];
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    let ack = (0_u8..40, 1_u32..20_000, feedback, flags).prop_map(
        |(packets, rtt_us, feedback, (marked, is_recovering, is_window_limited))| {
            ControllerEvent::Ack(AckEvent {
                packets,
                rtt_us,
                marked,
                feedback,
                is_recovering,
                is_window_limited,
            })
        },
    );
    let restart = prop_oneof![
        Just(WindowReduction::None),
        (0_u32..100).prop_map(WindowReduction::Halvings),
        Just(WindowReduction::Initial),
    ];
    let controller_event = prop_oneof![
        4 => (1_u8..30).prop_map(ControllerEvent::Sent),
        4 => ack,
        1 => signal.prop_map(ControllerEvent::Loss),
        1 => Just(ControllerEvent::Notification),
        1 => restart.prop_map(ControllerEvent::Restart),
        1 => Just(ControllerEvent::AppLimited),
        1 => Just(ControllerEvent::Nothing),
    ];
    (prop_oneof![0_u32..100, 0_u32..5_000], controller_event)
}

fn path() -> impl Strategy<Value = Path> {
    let rate = (1_000_000_u64..400_000_000_000).prop_map(Rate);
    let size = prop::option::of((1_u64..10_000_000).prop_map(Bytes));
    let deadline = prop_oneof![Just(Time::NEVER), (0_u64..10_u64.pow(12)).prop_map(Time)];
    (rate.clone(), 1_u64..10_000, 0_u32..50, prop::option::of(rate), size, deadline).prop_map(
        |(line_rate, rtt_us, other_flows, initial_rate, size, deadline)| Path {
            other_flows,
            initial_rate,
            size,
            deadline,
            ..Path::new(line_rate, Duration::from_micros(rtt_us), FORMAT)
        },
    )
}

/// The state of a flow as its controller sees it, which restricts the possible events.
struct Flow<'a> {
    controller: &'a mut dyn Controller,
    now: Time,
    sent: u32,
    acknowledged: u32,
    /// Time of the last packet or ACK.
    idle_since: Time,
}

impl Flow<'_> {
    fn in_flight(&self) -> u32 {
        self.sent - self.acknowledged
    }

    /// Advances the time; timers expire when they are due.
    fn advance(&mut self, span: Duration) {
        let until = self.now + span;
        while self.controller.next_timer() <= until {
            self.now = self.now.max(self.controller.next_timer());
            self.controller.on_timer(self.now);
            assert!(self.controller.next_timer() > self.now, "the timer lies in the past");
        }
        self.now = until;
    }

    fn apply(&mut self, controller_event: &ControllerEvent) {
        let now = self.now;
        if let ControllerEvent::Sent(_) | ControllerEvent::Ack(_) = controller_event {
            self.idle_since = now;
        }
        match *controller_event {
            ControllerEvent::Sent(packets) => {
                for _ in 0..packets {
                    self.sent += 1;
                    self.controller.on_sent(now, Bytes(1040));
                }
            }
            ControllerEvent::Ack(ref ack) => {
                let used = u64::from(self.in_flight()) * 1000;
                let packets = u32::from(ack.packets).min(self.in_flight());
                let rtt_us = u64::from(ack.rtt_us);
                self.acknowledged += packets;
                self.controller.on_ack(&Ack {
                    now,
                    bytes: Bytes(1000 * u64::from(packets)),
                    advanced: packets,
                    delivered: packets,
                    rtt: Duration::from_micros(rtt_us),
                    marked: ack.marked,
                    feedback: ack.feedback,
                    sent_at: Time(now.0.saturating_sub(1_000_000 * rtt_us)),
                    is_probe_ack: packets == 0,
                    cumulative: self.acknowledged,
                    next: self.sent,
                    is_recovering: ack.is_recovering,
                    lost: u32::from(ack.is_recovering),
                    trimmed: (packets == 0 && ack.is_recovering).then_some(TrimmedAt::EarlierHop),
                    in_flight: Bytes(1000 * u64::from(self.sent - self.acknowledged)),
                    used_window: (!ack.is_window_limited).then_some(Bytes(used)),
                });
            }
            ControllerEvent::Loss(signal) => {
                let flight = Bytes(1000 * u64::from(self.in_flight()));
                self.controller.on_loss(&Loss {
                    now,
                    flight,
                    lost: Bytes::ZERO,
                    signal,
                    cumulative: self.acknowledged,
                    is_repeated: false,
                });
            }
            ControllerEvent::Notification => self.controller.on_notification(now),
            ControllerEvent::Restart(reduction) if self.in_flight() == 0 => {
                let idle = now - self.idle_since;
                self.controller.on_restart(&Restart { now, idle, reduction });
            }
            ControllerEvent::AppLimited => self.controller.on_app_limited(),
            ControllerEvent::Restart(_) | ControllerEvent::Nothing => {}
        }
    }
}

fn names(controller: &dyn Controller) -> Vec<&'static str> {
    controller.gauges().into_iter().map(|(name, _)| name).collect()
}

proptest! {
    #[test]
    fn controllers_allow_at_least_one_packet_and_at_most_line_rate(
        path in path(), events in prop::collection::vec(controller_event(), 0..200),
    ) {
        for name in controllers::Config::built_in() {
            let config = controllers::Config::read(&json!(name)).unwrap();
            let mut controller = config.controller(&path);
            let mechanism = config.mechanism(&FORMAT);
            let is_paced = mechanism.pacing.is_some();
            let gauges = names(&*controller);
            let mut flow = Flow {
                controller: &mut *controller,
                now: Time::ZERO,
                sent: 0,
                acknowledged: 0,
                idle_since: Time::ZERO,
            };
            for (pause, controller_event) in &events {
                flow.advance(Duration::from_micros(u64::from(*pause)));
                flow.apply(controller_event);
                let allowance = flow.controller.allowance();
                // A packet needs a part of a window that counts bytes.
                let least = if allowance.counts_bytes { Bytes(1) } else { FORMAT.payload };
                prop_assert!(allowance.window >= least, "{name}: {allowance:?}");
                if let Some(rate) = allowance.rate {
                    prop_assert!(rate <= path.line_rate, "{name}: {allowance:?}");
                    let probes = allowance.probe_interval.is_some() || mechanism.sends_trains;
                    let goes_on = rate.0 > 0 || probes;
                    prop_assert!(goes_on, "{name} is paused and sends no probes: {allowance:?}");
                    prop_assert!(rate.0 == 0 || is_paced, "{name} returns a rate but does not pace");
                }
                prop_assert_eq!(names(flow.controller), gauges.clone(), "{}", name);
                for (gauge, value) in flow.controller.gauges() {
                    prop_assert!(value.is_finite(), "{name}: {gauge} is {value}");
                }
            }
        }
    }
}

// Queues.

/// An event at a queue: a packet of this size arrives, or the transmitter dequeues one.
#[derive(Clone, Debug)]
enum QueueEvent {
    Push { bytes: u16, ecn_capable: bool },
    Pop,
}

fn queue_event() -> impl Strategy<Value = QueueEvent> {
    prop_oneof![
        3 => (40_u16..1500, any::<bool>())
            .prop_map(|(bytes, ecn_capable)| QueueEvent::Push { bytes, ecn_capable }),
        2 => Just(QueueEvent::Pop),
    ]
}

/// Every queue discipline, with thresholds of a few packets, marking on enqueue and on dequeue.
fn disciplines(capacity: &str) -> Vec<disciplines::Config> {
    let variants = |name: &&str| {
        let marking = |rest: Value| {
            ["arrival", "departure"].map(|mark_at| {
                let mut value = rest.clone();
                value["mark_at"] = json!(mark_at);
                value
            })
        };
        match *name {
            // All packets of these tests have one priority and belong to one flow, and none waits
            // for long.
            "codel" | "credit_shaper" | "drop_tail" | "drr" | "fair_queueing" | "fq_codel"
            | "pfabric" | "round_robin" | "sfq" => vec![json!({ "kind": name })],
            // Without trimming, so that all data that is not dropped keeps its size and order.
            "composite" => {
                vec![json!({ "kind": name, "trimming": false, "kmin": "1 KB", "kmax": "5 KB" })]
            }
            "ecn_threshold" => marking(json!({ "kind": name, "threshold": "3 packets" })).to_vec(),
            "dcqcn_red" => {
                marking(json!({ "kind": name, "kmin": "1 KB", "kmax": "5 KB", "pmax": 0.5 }))
                    .to_vec()
            }
            "red" => ["packets", "bytes"]
                .map(|unit| {
                    json!({
                        "kind": name, "count_in": unit, "min_threshold": "0.5 packets",
                        "max_threshold": "4 KB", "weight": 0.5, "ecn": unit == "bytes",
                        "wait": unit == "bytes",
                    })
                })
                .to_vec(),
            // Packets without a priority belong to one class.
            "strict_priority" => ["port", "class"]
                .map(|by| json!({ "kind": name, "threshold": "3 packets", "mark_by": by }))
                .to_vec(),
            other => panic!("add a small `{other}` here, and its ordering property"),
        }
    };
    let build = |mut value: Value| {
        value["capacity"] = json!(capacity);
        disciplines::Config::read(&value).unwrap()
    };
    disciplines::Config::NAMES.iter().flat_map(variants).map(build).collect()
}

fn data(sequence: u32, bytes: u16, ecn_capable: bool) -> Packet {
    Packet {
        sent_at: Time::ZERO,
        flow: 0,
        next_hop: 1,
        sequence,
        packed: Packed::default(),
        bytes,
        kind: Kind::Data,
        flags: Flags::NONE.with_if(Flags::ECN_CAPABLE, ecn_capable),
    }
}

const SCALE: LinkScale = LinkScale {
    rate: Rate::from_gbps(10),
    opposite_rate: Rate::from_gbps(10),
    base_rtt: Duration::from_micros(10),
    packet: Bytes(1500),
    is_last_hop: false,
};

/// Runs `visits` through a queue and drains it, in parallel with a FIFO of the expected packets.
fn run_queue(config: &disciplines::Config, capacity: Limit, events: &[QueueEvent]) {
    let drops_early = matches!(config, disciplines::Config::red(_));
    let drops_first = matches!(config, disciplines::Config::fq_codel(_));
    let draws_victim = matches!(config, disciplines::Config::composite(_));
    let mut queue: Box<dyn Queue> = match config.build(SCALE) {
        PortQueue::OnArrival(admission) => Box::new(Fifo::new(admission)),
        PortQueue::OnDeparture(queue) => queue,
    };
    let (mut random, mut dropped, mut trimmed) = (Random::new(1, "queue"), Vec::new(), Vec::new());
    let (mut line, mut marks, mut seen): (VecDeque<Packet>, u64, u64) = (VecDeque::new(), 0, 0);
    let events = events.iter().chain(std::iter::repeat_n(&QueueEvent::Pop, events.len()));
    for (sequence, queue_event) in (0..).zip(events) {
        let before = queue.backlog();
        let (random, dropped, trimmed) = (&mut random, &mut dropped, &mut trimmed);
        let mut context = Context { now: Time::ZERO, random, dropped, trimmed, marks: &mut marks };
        match *queue_event {
            QueueEvent::Push { bytes, ecn_capable } => {
                let packet = data(sequence, bytes, ecn_capable);
                queue.enqueue(packet, &mut context);
                line.push_back(packet);
                if dropped.is_empty() || !drops_early {
                    assert_eq!(dropped.is_empty(), capacity.fits(before, bytes), "only if it fits");
                }
                for gone in dropped.drain(..) {
                    let is_second = draws_victim && line.back() != Some(&gone);
                    let next = match () {
                        () if drops_first => line.pop_front(),
                        () if is_second => line.remove(line.len() - 2),
                        () => line.pop_back(),
                    };
                    assert_eq!(Some(gone), next, "the last is dropped, or else the first");
                }
            }
            QueueEvent::Pop => {
                let popped = queue.dequeue(&mut context);
                let name = |packet: Packet| (packet.sequence, packet.bytes);
                assert_eq!(popped.map(name), line.pop_front().map(name), "first in, first out");
                let is_marked = popped.is_some_and(|packet| packet.is_marked());
                let can_be = popped.is_some_and(|packet| packet.flags.has(Flags::ECN_CAPABLE));
                assert!(can_be || !is_marked, "only what can be marked is");
                seen += u64::from(is_marked);
            }
        }
        assert_eq!(*dropped, [], "nothing is dropped as it leaves");
        let backlog = queue.backlog();
        let bytes: u64 = line.iter().map(|packet| u64::from(packet.bytes)).sum();
        assert_eq!((backlog.packets as usize, backlog.bytes), (line.len(), bytes));
        assert!(!capacity.exceeded_by(backlog));
        let mut shown = Vec::new();
        queue.for_each_packet(&mut |packet| shown.push(packet.sequence));
        shown.sort_unstable();
        let waiting: Vec<u32> = line.iter().map(|packet| packet.sequence).collect();
        assert_eq!(shown, waiting, "a visit covers the backlog");
    }
    assert_eq!((queue.backlog(), marks), (Backlog::default(), seen), "every mark is counted once");
}

proptest! {
    #[test]
    fn queues_conserve_and_order_packets_and_respect_their_capacity(
        events in prop::collection::vec(queue_event(), 0..300),
    ) {
        for (text, capacity) in
            [("5 packets", Limit::Packets(5)), ("7777 B", Limit::Bytes(7777))]
        {
            for config in disciplines(text) {
                run_queue(&config, capacity, &events);
            }
        }
    }
}

#[test]
fn queues_below_their_quiet_threshold_accept_every_packet_unmarked() {
    for (text, config) in ["5 packets", "7777 B", "none"]
        .map(|text| disciplines(text).into_iter().map(move |d| (text, d)))
        .into_iter()
        .flatten()
    {
        let PortQueue::OnArrival(mut admission) = config.build(SCALE) else {
            continue;
        };
        let mut random = Random::new(1, "quiet");
        let quiet_below = admission.accepts_all_below().min(20_000);
        for waiting in 0..quiet_below {
            // The largest number of packets for this backlog, and the smallest possible arriving
            // packet.
            let bytes = 40_u16.min((quiet_below - waiting).saturating_sub(1) as u16);
            let backlog = Backlog { bytes: waiting, packets: (waiting / 40) as u32 };
            let found = QueueState { now: Time::ZERO, backlog, last_departure: Time::ZERO };
            let verdict = admission.admit(&data(0, bytes, true), &found, &mut random);
            assert_eq!(verdict, Verdict::Accept, "{config:?} {text}, {waiting} waiting");
        }
    }
}

// The catalogue.

/// Required parameters of a component.
fn required(part: &str) -> Value {
    match part {
        "graph" => json!({ "file": {
            "name": "g.csv", "text": "from,to,rate,delay\na,s,1 Gbps,1 us\ns,b,1 Gbps,1 us\n",
        } }),
        "rpc" => json!({
            "request": { "kind": "fixed", "size": "1 KB" },
            "response": { "kind": "fixed", "size": "1 KB" },
            "pattern": { "load": 0.5 },
        }),
        "storage" => json!({
            "blocks": { "kind": "fixed", "size": "64 KB" }, "pattern": { "outstanding": 1 },
        }),
        "poisson" => json!({ "load": 0.5, "sizes": { "kind": "fixed", "size": "1 KB" } }),
        "incast" => json!({ "fan_in": 2, "size": "1 KB", "interval": "1 ms" }),
        "synchronised" | "fixed" => json!({ "size": "1 KB" }),
        "flows" => json!({ "flows": [{ "source": 0, "target": 1 }] }),
        "trace" => json!({ "file": {
            "name": "t.csv", "text": "start_s,source,target,size_bytes\n0,0,1,1\n",
        } }),
        "mixed" => json!({ "parts": ["long_lived"] }),
        "collective" => json!({ "algorithm": "ring", "ranks": 2, "size": "1 KB" }),
        "exponential" | "pareto" => json!({ "mean": "10 KB" }),
        "bounded_pareto" | "uniform" => json!({ "min": "1 KB", "max": "2 KB" }),
        "empirical" => json!({ "table": "web_search" }),
        "python" => json!({ "controller": { "name": "gentle.py:Gentle", "text": "" } }),
        _ => json!({}),
    }
}

/// Checks that every component of a family is unchanged by show and read, and that show gives the
/// defaults of the catalogue.
fn check_family<T: Parameter + PartialEq + std::fmt::Debug>(parts: &Value) {
    for part in parts.as_array().unwrap() {
        let name = part["name"].as_str().unwrap();
        let given = required(name);
        let mut value = given.clone();
        value["kind"] = json!(name);
        let config = T::read(&value).unwrap_or_else(|problem| panic!("{name}: {problem}"));
        let shown = config.show();
        assert_eq!(T::read(&shown).as_ref(), Ok(&config), "{name} does not read back");
        for parameter in part["parameters"].as_array().unwrap() {
            let field = parameter["name"].as_str().unwrap();
            let default = &parameter["default"];
            let pointer = format!("/{}", field.replace('.', "/"));
            let is_given = given.pointer(&pointer).is_some();
            match shown.pointer(&pointer) {
                Some(value) if !default.is_null() && default != "see below" && !is_given => {
                    assert_eq!(value, default, "{name}.{field}");
                }
                // A given parameter, a table, or a parameter inside a table or list that is absent.
                _ => {}
            }
        }
    }
}

#[test]
fn the_transports_that_take_an_initial_rate_begin_at_it() {
    let fast_with_segments = json!({ "kind": "fast", "segments": {} });
    let names = controllers::Config::NAMES.iter().filter(|name| !["python", "quic"].contains(name));
    for transport in names.map(|name| json!(name)).chain([fast_with_segments]) {
        let config = controllers::Config::read(&transport).unwrap();
        let [default, given] = [None, Some(Rate::from_mbps(100))].map(|initial_rate| {
            let rtt = Duration::from_micros(20);
            let path = Path::new(Rate::from_gbps(10), rtt, FORMAT);
            config.controller(&Path { initial_rate, ..path }).allowance()
        });
        let begins = format!("{default:?}") != format!("{given:?}");
        assert_eq!(begins, config.takes_initial_rate(), "{transport}");
    }
}

#[test]
fn every_component_and_parameter_is_documented_and_defaults_round_trip() {
    let catalogue = catalogue();
    for (family, parts) in catalogue.as_object().unwrap() {
        for part in parts.as_array().unwrap() {
            let is_sentence = |about: &Value| about.as_str().is_some_and(|text| text.contains('.'));
            assert!(is_sentence(&part["about"]), "{family}: {}", part["name"]);
            for parameter in part["parameters"].as_array().unwrap() {
                let what = format!("{family}: {}.{}", part["name"], parameter["name"]);
                assert!(is_sentence(&parameter["about"]), "{what} is not documented");
                assert!(!parameter["allowed"].as_str().unwrap().is_empty(), "{what}");
            }
        }
    }
    check_family::<topology::Config>(&catalogue["topology"]);
    check_family::<generators::Config>(&catalogue["workload"]);
    check_family::<traffic::collectives::Config>(&catalogue["algorithm"]);
    check_family::<traffic::sizes::Config>(&catalogue["sizes"]);
    check_family::<controllers::Config>(&catalogue["transport"]);
    check_family::<disciplines::Config>(&catalogue["queue"]);
    check_family::<router::Config>(&catalogue["router"]);
    check_family::<models::Config>(&catalogue["model"]);
}
