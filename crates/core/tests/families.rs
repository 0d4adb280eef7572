//! What every member of a family promises, whatever it is asked: no list of parts to keep but here and
//! there a word on how to build one.

use std::collections::VecDeque;

use proptest::prelude::*;
use serde_json::{Value, json};
use sojourn_core::packet::{Format, Kind, Packet, PacketId, Packets};
use sojourn_core::parameters::Parameter;
use sojourn_core::queue::{self, Behaviour, Capacity, Context, Fifo, Queue};
use sojourn_core::random::Random;
use sojourn_core::transport::{self, Ack, Controller, Loss, Path, Sign};
use sojourn_core::units::{Bytes, Duration, Rate, Time};
use sojourn_core::{ideal, scenario, topology, workload};

const FORMAT: Format = Format { payload: Bytes(1000), header: Bytes(40), ack: Bytes(40) };

// Controllers.

/// Something that a controller is told, after some microseconds.
#[derive(Clone, Debug)]
enum Told {
    /// So many packets have been sent.
    Sent(u8),
    /// So many of those in flight are acknowledged, after so many microseconds.
    Ack { packets: u8, rtt_us: u32, marked: bool, is_recovering: bool },
    /// A loss.
    Loss(Sign),
    /// A congestion notification.
    Notification,
    /// Nothing.
    Nothing,
}

fn told() -> impl Strategy<Value = (u32, Told)> {
    let sign = prop_oneof![Just(Sign::Gap), Just(Sign::Timeout)];
    let ack = (0_u8..40, 1_u32..20_000, any::<bool>(), any::<bool>()).prop_map(
        |(packets, rtt_us, marked, is_recovering)| Told::Ack {
            packets,
            rtt_us,
            marked,
            is_recovering,
        },
    );
    let told = prop_oneof![
        4 => (1_u8..30).prop_map(Told::Sent),
        4 => ack,
        1 => sign.prop_map(Told::Loss),
        1 => Just(Told::Notification),
        1 => Just(Told::Nothing),
    ];
    (prop_oneof![0_u32..100, 0_u32..5_000], told)
}

fn path() -> impl Strategy<Value = Path> {
    let rate = (1_000_000_u64..400_000_000_000).prop_map(Rate);
    (rate.clone(), 1_u64..10_000, 0_u32..50, prop::option::of(rate)).prop_map(
        |(line_rate, rtt_us, others, initial_rate)| Path {
            line_rate,
            base_rtt: Duration::from_micros(rtt_us),
            format: FORMAT,
            others,
            initial_rate,
        },
    )
}

/// A flow as its controller sees it: what it was told so far decides what it may be told next.
struct Flow<'a> {
    controller: &'a mut dyn Controller,
    now: Time,
    sent: u32,
    acknowledged: u32,
}

impl Flow<'_> {
    fn in_flight(&self) -> u32 {
        self.sent - self.acknowledged
    }

    /// Lets time pass: the timer goes off whenever it is due.
    fn pass(&mut self, span: Duration) {
        let until = self.now + span;
        while self.controller.next_timer() <= until {
            self.now = self.now.max(self.controller.next_timer());
            self.controller.on_timer(self.now);
            assert!(self.controller.next_timer() > self.now, "the timer lies in the past");
        }
        self.now = until;
    }

    fn tell(&mut self, told: &Told) {
        let now = self.now;
        match *told {
            Told::Sent(packets) => {
                for _ in 0..packets {
                    self.sent += 1;
                    self.controller.on_sent(now, Bytes(1040));
                }
            }
            Told::Ack { packets, rtt_us, marked, is_recovering } => {
                let packets = u32::from(packets).min(self.in_flight());
                self.acknowledged += packets;
                self.controller.on_ack(&Ack {
                    now,
                    bytes: Bytes(1000 * u64::from(packets)),
                    rtt: Duration::from_micros(u64::from(rtt_us)),
                    marked,
                    cumulative: self.acknowledged,
                    next: self.sent,
                    is_recovering,
                });
            }
            Told::Loss(sign) => {
                let in_flight = Bytes(1000 * u64::from(self.in_flight()));
                self.controller.on_loss(&Loss { now, in_flight, sign });
            }
            Told::Notification => self.controller.on_notification(now),
            Told::Nothing => {}
        }
    }
}

fn names(controller: &dyn Controller) -> Vec<&'static str> {
    controller.gauges().into_iter().map(|(name, _)| name).collect()
}

proptest! {
    #[test]
    fn whatever_a_controller_is_told_it_allows_a_packet_and_no_more_than_the_line(
        path in path(), story in prop::collection::vec(told(), 0..200),
    ) {
        for name in transport::Config::NAMES {
            let config = transport::Config::read(&json!(name)).unwrap();
            let mut controller = config.controller(&path);
            let gauges = names(&*controller);
            let mut flow =
                Flow { controller: &mut *controller, now: Time::ZERO, sent: 0, acknowledged: 0 };
            for (pause, told) in &story {
                flow.pass(Duration::from_micros(u64::from(*pause)));
                flow.tell(told);
                let allowance = flow.controller.allowance();
                prop_assert!(allowance.window >= FORMAT.payload, "{name}: {allowance:?}");
                if let Some(rate) = allowance.rate {
                    prop_assert!(rate.0 > 0 && rate <= path.line_rate, "{name}: {allowance:?}");
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

/// What happens at a queue: a packet of this size comes, or the transmitter takes one.
#[derive(Clone, Debug)]
enum Visit {
    Push { bytes: u16, ecn_capable: bool },
    Pop,
}

fn visit() -> impl Strategy<Value = Visit> {
    prop_oneof![
        3 => (40_u16..1500, any::<bool>())
            .prop_map(|(bytes, ecn_capable)| Visit::Push { bytes, ecn_capable }),
        2 => Just(Visit::Pop),
    ]
}

/// Every queue discipline with thresholds that a few packets reach, marking at either moment.
fn disciplines(capacity: &str) -> Vec<queue::Config> {
    let variants = |name: &&str| {
        let marking = |rest: Value| {
            ["arrival", "departure"].map(|mark_at| {
                let mut value = rest.clone();
                value["mark_at"] = json!(mark_at);
                value
            })
        };
        match *name {
            "drop_tail" => vec![json!({ "kind": name })],
            "ecn_threshold" => marking(json!({ "kind": name, "threshold": "3 packets" })).to_vec(),
            "red" => marking(json!({ "kind": name, "kmin": "1 KB", "kmax": "5 KB", "pmax": 0.5 }))
                .to_vec(),
            other => panic!("say here how to build a small `{other}`, and whether it keeps order"),
        }
    };
    let build = |mut value: Value| {
        value["capacity"] = json!(capacity);
        queue::Config::read(&value).unwrap()
    };
    queue::Config::NAMES.iter().flat_map(variants).map(build).collect()
}

fn data(bytes: u16, ecn_capable: bool) -> Packet {
    Packet {
        sent_at: Time::ZERO,
        flow: 0,
        route: 1,
        sequence: 0,
        block: (0, 0),
        wire_bytes: bytes,
        payload_bytes: 0,
        kind: Kind::Data,
        ecn_capable,
        marked: false,
        wants_ack: false,
    }
}

/// Runs `visits` through one queue, beside a plain line of the packets that should be in it.
fn visit_queue(config: &queue::Config, capacity: Capacity, visits: &[Visit]) {
    let mut queue: Box<dyn Queue> = match config.build(Rate::from_gbps(10)) {
        Behaviour::OnArrival(admission) => Box::new(Fifo::new(admission)),
        Behaviour::OnDeparture(queue) => queue,
    };
    let (mut packets, mut random) = (Packets::default(), Random::new(1, "queue"));
    let (mut line, mut marks): (VecDeque<PacketId>, u64) = (VecDeque::new(), 0);
    let (mut came, mut left, mut lost, mut counted) = (0, 0, 0, 0);
    for visit in visits {
        let mut dropped = Vec::new();
        let before = queue.backlog();
        let arriving = match *visit {
            Visit::Push { bytes, ecn_capable } => {
                let id = packets.insert(data(bytes, ecn_capable));
                Some(packets.tag(id))
            }
            Visit::Pop => None,
        };
        let (packets_now, now) = (&mut packets, Time::ZERO);
        let (random, dropped_now, marks) = (&mut random, &mut dropped, &mut marks);
        let mut context =
            Context { packets: packets_now, now, random, dropped: dropped_now, marks };
        if let Some(tag) = arriving {
            queue.push(tag, &mut context);
            (came, lost) = (came + 1, lost + dropped.len());
            if capacity.fits(before, tag.bytes) {
                assert_eq!(dropped, [], "there was room");
                line.push_back(tag.id);
            } else {
                assert_eq!(dropped, [tag], "there was no room");
            }
        } else {
            let popped = queue.pop(&mut context);
            assert_eq!(dropped, []);
            assert_eq!(popped.map(|tag| tag.id), line.pop_front(), "first in, first out");
            if let Some(tag) = popped {
                let packet = packets.remove(tag.id);
                assert!(packet.ecn_capable || !packet.marked, "only what can be marked is");
                (left, counted) = (left + 1, counted + u64::from(packet.marked));
            }
        }
        let backlog = queue.backlog();
        let bytes: u64 = line.iter().map(|id| u64::from(packets[*id].wire_bytes)).sum();
        assert_eq!((backlog.packets as usize, backlog.bytes), (line.len(), bytes));
        assert_eq!(came, left + lost + line.len(), "packets are conserved");
        assert!(!capacity.exceeded_by(backlog));
    }
    let waiting = line.iter().filter(|id| packets[**id].marked).count() as u64;
    assert_eq!(marks, counted + waiting, "every mark is counted once");
}

proptest! {
    #[test]
    fn queues_conserve_packets_keep_their_order_and_respect_their_capacity(
        visits in prop::collection::vec(visit(), 0..300),
    ) {
        for (text, capacity) in
            [("5 packets", Capacity::Packets(5)), ("7777 B", Capacity::Bytes(7777))]
        {
            for config in disciplines(text) {
                visit_queue(&config, capacity, &visits);
            }
        }
    }
}

// The catalogue.

/// What a part must be given, where it has no default.
fn required(part: &str) -> Value {
    match part {
        "graph" => json!({ "file": {
            "name": "g.csv", "text": "from,to,rate,delay\na,s,1 Gbps,1 us\ns,b,1 Gbps,1 us\n",
        } }),
        "poisson" => json!({ "load": 0.5, "sizes": { "kind": "fixed", "size": "1 KB" } }),
        "incast" => json!({ "fan_in": 2, "size": "1 KB", "interval": "1 ms" }),
        "synchronised" | "fixed" => json!({ "size": "1 KB" }),
        "flows" => json!({ "flows": [{ "source": 0, "target": 1 }] }),
        "trace" => json!({ "file": {
            "name": "t.csv", "text": "start_s,source,target,size_bytes\n0,0,1,1\n",
        } }),
        "mixed" => json!({ "parts": ["long_lived"] }),
        "exponential" | "pareto" => json!({ "mean": "10 KB" }),
        "bounded_pareto" | "uniform" => json!({ "min": "1 KB", "max": "2 KB" }),
        "empirical" => json!({ "table": "web_search" }),
        _ => json!({}),
    }
}

/// Checks that every part of a family reads back what it shows, and shows the defaults of the catalogue.
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
            let is_given = given.get(field).is_some();
            let pointer = format!("/{}", field.replace('.', "/"));
            match shown.pointer(&pointer) {
                Some(value) if !default.is_null() && default != "see below" && !is_given => {
                    assert_eq!(value, default, "{name}.{field}");
                }
                // Given, or a table, or inside a table or list that is not there.
                _ => {}
            }
        }
    }
}

#[test]
fn every_part_and_parameter_is_documented_and_its_default_reads_back() {
    let catalogue = scenario::catalogue();
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
    check_family::<workload::Config>(&catalogue["workload"]);
    check_family::<workload::sizes::Config>(&catalogue["sizes"]);
    check_family::<transport::Config>(&catalogue["transport"]);
    check_family::<queue::Config>(&catalogue["queue"]);
    check_family::<ideal::Config>(&catalogue["model"]);
}
