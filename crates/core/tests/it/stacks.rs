//! External stacks, tested with a minimal stop-and-wait protocol: it sends a datagram, waits for
//! its answer, and sends the next; or retransmits after one second.

use std::sync::Arc;

use crate::common::{as_in_papers, count, flows, with};
use serde_json::{Value, json};
use sojourn_core::base::run_control::RunControl;
use sojourn_core::base::units::{Bytes, Duration, Time};
use sojourn_core::run::Results;
use sojourn_core::run::scenario::Scenario;
use sojourn_core::transport::{Ecn, ExternalStack, OutgoingDatagram, Path, StackEndpoint};

const PAYLOAD: u64 = 1_400;
const DATA: Bytes = Bytes(1_500);
const ANSWER: Bytes = Bytes(50);
const TIMEOUT: Duration = Duration::from_millis(1_000);

struct StopAndWait {
    /// Times that the source sends each datagram at once.
    repeats: u32,
}

impl ExternalStack for StopAndWait {
    fn connect(&self, path: &Path) -> [Box<dyn StackEndpoint>; 2] {
        let left = path.size.map_or(u64::MAX, |size| size.0);
        let source = Source {
            left,
            number: 0,
            sent: None,
            repeats: self.repeats,
            unsent: 0,
            deadline: Time::NEVER,
            copies: 0,
        };
        let target = Target { size: left, got: 0, next: 0, answers: Vec::new(), marks: 0 };
        [Box::new(source), Box::new(target)]
    }
}

/// Sender. A datagram carries its number and its payload.
struct Source {
    left: u64,
    number: u64,
    sent: Option<u64>,
    repeats: u32,
    /// Repeats of the current datagram that are not sent.
    unsent: u32,
    deadline: Time,
    copies: u32,
}

impl StackEndpoint for Source {
    fn on_datagram(&mut self, _now: Time, datagram: &[u8], _ecn: Ecn) {
        if datagram == self.number.to_le_bytes()
            && let Some(bytes) = self.sent.take()
        {
            self.left -= bytes;
            self.number += 1;
            self.deadline = Time::NEVER;
        }
    }

    fn on_timer(&mut self, now: Time) {
        if self.deadline <= now && self.sent.take().is_some() {
            self.copies += 1;
        }
    }

    fn next_datagram(&mut self, now: Time, datagram: &mut Vec<u8>) -> Option<OutgoingDatagram> {
        if self.sent.is_none() {
            self.unsent = self.repeats;
        }
        if self.unsent == 0 || self.left == 0 {
            return None;
        }
        self.unsent -= 1;
        let bytes = self.left.min(PAYLOAD);
        self.sent = Some(bytes);
        self.deadline = now + TIMEOUT;
        datagram.extend(self.number.to_le_bytes());
        datagram.extend(bytes.to_le_bytes());
        Some(OutgoingDatagram { bytes: Bytes(DATA.0 - PAYLOAD + bytes), ecn_capable: true })
    }

    fn next_timer(&self) -> Time {
        self.deadline
    }

    fn stop(&mut self, _now: Time) {
        self.left = self.sent.unwrap_or(0);
    }

    fn is_done(&self) -> bool {
        self.left == 0
    }

    fn delivered(&self) -> Bytes {
        Bytes::ZERO
    }

    fn retransmits_and_timeouts(&self) -> (u32, u32) {
        (self.copies, self.copies)
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![("left_bytes", self.left as f64)]
    }
}

/// Receiver, which answers each datagram.
struct Target {
    size: u64,
    got: u64,
    next: u64,
    answers: Vec<u64>,
    marks: u32,
}

impl StackEndpoint for Target {
    fn on_datagram(&mut self, _now: Time, datagram: &[u8], ecn: Ecn) {
        assert_ne!(ecn, Ecn::NotEct);
        let number = |at: usize| u64::from_le_bytes(datagram[at..at + 8].try_into().unwrap());
        if number(0) == self.next {
            self.next += 1;
            self.got += number(8);
        }
        self.marks += u32::from(ecn == Ecn::Ce);
        self.answers.push(number(0));
    }

    fn on_timer(&mut self, _now: Time) {}

    fn next_datagram(&mut self, _now: Time, datagram: &mut Vec<u8>) -> Option<OutgoingDatagram> {
        datagram.extend(self.answers.pop()?.to_le_bytes());
        Some(OutgoingDatagram { bytes: ANSWER, ecn_capable: false })
    }

    fn next_timer(&self) -> Time {
        Time::NEVER
    }

    fn stop(&mut self, _now: Time) {}

    fn is_done(&self) -> bool {
        self.got == self.size
    }

    fn delivered(&self) -> Bytes {
        Bytes(self.got)
    }

    fn retransmits_and_timeouts(&self) -> (u32, u32) {
        (0, 0)
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
}

/// Runs a scenario with this stack in `parts` partitions.
fn run_in_partitions(parts: u32, scenario: &Value) -> Results {
    run_repeating(1, parts, scenario)
}

/// Runs a scenario with a stack that repeats each datagram.
fn run_repeating(repeats: u32, parts: u32, scenario: &Value) -> Results {
    let mut scenario = Scenario::parse(&as_in_papers(scenario).to_string()).unwrap();
    for config in scenario.of_libraries() {
        config.implementation.stack = Some(Arc::new(StopAndWait { repeats }));
    }
    scenario.run_in_parts(parts, parts, &RunControl::default()).unwrap()
}

/// A link of 120 Mb/s and 5 ms: full packets take 100 us, and answers a thirtieth of that.
fn link(workload: &Value) -> Value {
    json!({
        "topology": { "kind": "link", "rate": "120 Mbps", "delay": "5 ms" },
        "packet": { "payload": "1460 B", "header": "40 B" },
        "transport": "quic",
        "workload": workload,
        "time_limit": "10 s",
    })
}

/// A dumbbell with a queue of three packets, with TCP cross-traffic that causes losses.
fn dumbbell_with_cross_traffic() -> Value {
    let rows: Vec<_> = (0..12)
        .map(|i| (f64::from(i) * 0.001, i % 3, 3 + i % 2, 10_000 + 7_000 * u64::from(i)))
        .collect();
    let parts = json!([
        flows(&rows), { "kind": "long_lived", "flows": 2, "stop": "2 s" },
    ]);
    with(
        &link(&json!({ "kind": "mixed", "parts": parts })),
        json!({
            "topology": {
                "kind": "dumbbell", "rate": "120 Mbps", "delay": "1 ms", "senders": 3, "receivers": 2,
                "loss": 0.02,
            },
            "queue": { "kind": "drop_tail", "capacity": "3 packets" },
            "time_limit": "60 s",
        }),
    )
}

#[test]
fn fct_is_determined_by_the_stack() {
    let results = run_in_partitions(1, &link(&flows(&[(0.0, 0, 1, 5 * PAYLOAD), (0.5, 0, 1, 1)])));
    let (there, back) = (0.0051, 0.005 + 50.0 * 8.0 / 120e6);
    let one = 0.005 + 101.0 * 8.0 / 120e6;
    let near = |of: f64, expected: f64| assert!((of - expected).abs() < 1e-11, "{of} {expected}");
    near(results.flows.fct_s[0], 5.0 * there + 4.0 * back);
    near(results.flows.acked_s[0], 5.0 * (there + back));
    near(results.flows.fct_s[1], one);
    assert_eq!((count(&results, "packets"), count(&results, "finished")), (12, 2));
}

#[test]
fn stack_recovers_lost_datagrams() {
    let losses = json!({ "name": "l.csv", "text": "flow,segment,time\n0,2,1\n" });
    let whole = link(&flows(&[(0.0, 0, 1, 5 * PAYLOAD)]));
    let lossy = run_in_partitions(1, &with(&whole, json!({ "topology": { "losses": losses } })));
    let later = lossy.flows.fct_s[0] - run_in_partitions(1, &whole).flows.fct_s[0];
    // No answer arrives for one second.
    assert!((later - 1.0).abs() < 1e-11, "{later}");
    assert_eq!((lossy.flows.retransmits[0], lossy.flows.timeouts[0]), (1, 1));
    assert_eq!(count(&lossy, "losses"), 1);
}

#[test]
fn all_engines_agree_and_deliver_everything_with_cross_traffic() {
    let mixed = with(
        &dumbbell_with_cross_traffic(),
        json!({ "transport": "cubic", "transports": { "trace": "quic" } }),
    );
    let fair = |scenario: &Value| with(scenario, json!({ "host": { "service": "fair" } }));
    for scenario in [dumbbell_with_cross_traffic(), fair(&mixed), mixed] {
        let fingerprint = |engine: &str, parts| {
            let results = run_in_partitions(parts, &with(&scenario, json!({ "engine": engine })));
            let counts = (count(&results, "finished"), count(&results, "long_lived"));
            assert_eq!(counts, (12, 2));
            assert!(count(&results, "drops") + count(&results, "losses") > 0);
            format!("{:?} {:?}", results.flows, results.links)
        };
        let by_events = fingerprint("events", 1);
        for parts in [1, 3] {
            assert!(fingerprint("windows", parts) == by_events, "{parts}");
        }
    }
}

#[test]
fn datagrams_of_two_flows_share_their_host_in_turn() {
    let scenario = with(
        &link(&flows(&[(0.0, 0, 1, PAYLOAD), (0.0, 0, 1, PAYLOAD)])),
        json!({ "topology": { "kind": "star", "hosts": 2, "delay": "2.5 ms" } }),
    );
    let second = |host: Value| {
        let results = run_repeating(5, 1, &with(&scenario, host));
        results.flows.fct_s[1]
    };
    // Two links.
    let packets = |ahead: f64| 0.005 + (ahead + 2.0) * 1e-4;
    let near = |of: f64, expected: f64| assert!((of - expected).abs() < 1e-11, "{of} {expected}");
    near(second(json!({})), packets(5.0));
    for flow_limit in [1, 2, 4] {
        let fair = json!({ "service": "fair", "flow_limit": flow_limit });
        near(second(json!({ "host": fair })), packets(f64::from(flow_limit)));
        // A queue that does not predict departures.
        let drr = with(&json!({ "host": fair }), json!({ "host_queue": "drr" }));
        assert!(second(drr) < packets(f64::from(flow_limit)) + 1e-11);
    }
}

#[test]
fn unsupported_options_are_rejected_in_one_line() {
    let refusal = |change: Value| {
        let scenario = with(&link(&flows(&[(0.0, 0, 1, 1)])), change);
        crate::common::try_run(&scenario).unwrap_err()
    };
    let errors = [
        refusal(json!({})),
        refusal(json!({ "packet": { "payload": "1 KB" } })),
        refusal(json!({ "account": true })),
        refusal(json!({ "samples": { "interval": "1 ms", "rtts": true } })),
        refusal(json!({ "host": { "stamps": "wire" } })),
        refusal(json!({ "transport": { "kind": "quic", "law": "bbr" } })),
    ];
    insta::assert_snapshot!(errors.join("\n"));
}
