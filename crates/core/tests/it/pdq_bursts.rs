//! PDQ under bursts of flows to one host.

use crate::common::{assert_near, count, mean, run, with};
use serde_json::{Value, json};

/// Flows of equal size that start together.
#[derive(Clone, Copy)]
struct Burst {
    gbps: f64,
    kilobytes: f64,
    flows: u32,
}

impl Burst {
    /// Time of a flow alone on the link, in microseconds.
    fn turn_us(self) -> f64 {
        // Packets of 1448 B of data and 52 B of headers.
        self.kilobytes * 1e3 / 1448.0 * self.packet_us()
    }

    fn packet_us(self) -> f64 {
        12.0 / self.gbps
    }

    fn scenario(self, start: &str) -> Value {
        let size = format!("{} KB", self.kilobytes);
        let flow = |i| json!({ "source": i, "target": 0, "size": size, "start": start });
        json!({
            "topology": {
                "kind": "star", "hosts": self.flows + 1, "rate": format!("{} Gbps", self.gbps),
                "delay": "2 us",
            },
            "transport": "pdq",
            "workload": { "kind": "flows", "flows": (1..=self.flows).map(flow).collect::<Vec<_>>() },
        })
    }
}

/// Returns the FCTs in microseconds, of flows that all finish.
fn fcts(scenario: &Value) -> Vec<f64> {
    let results = run(scenario);
    assert_eq!(count(&results, "finished"), count(&results, "flows"));
    results.flows.fct_s.iter().map(|seconds| seconds * 1e6).collect()
}

#[test]
fn equal_flows_take_little_longer_than_their_link_needs() {
    // The more flows wait, the less often each probes, so they must not count twice.
    for (gbps, kilobytes) in [(1.0, 1e3), (10.0, 10e3), (100.0, 1e3)] {
        for flows in [8, 12, 16, 20, 24, 32, 48, 64] {
            let burst = Burst { gbps, kilobytes, flows };
            let last = fcts(&burst.scenario("0 us")).into_iter().fold(0.0, f64::max);
            let round_trip = 8.0 + 2.0 * burst.packet_us();
            let times = last / (f64::from(flows) * burst.turn_us() + round_trip);
            assert!(times < 1.15, "{flows} flows at {gbps} Gb/s take {times:.2} times as long");
        }
    }
}

#[test]
fn equal_flows_are_served_one_after_the_other_at_any_start() {
    // Flows of 20 KB end within a fraction of the RTT that they wait for a rate.
    for (gbps, kilobytes, flows, most) in [
        (1.0, 200.0, 50, 1.15),
        (10.0, 1e3, 64, 1.15),
        (100.0, 1e3, 50, 1.15),
        (100.0, 20.0, 64, 3.0),
    ] {
        let burst = Burst { gbps, kilobytes, flows };
        let router = json!({ "router": { "kind": "pdq", "initial_rtt": "10 us" } });
        let means = ["0 us", "10 ms"]
            .map(|start| mean(fcts(&with(&burst.scenario(start), router.clone()))));
        let mean_turn = burst.turn_us() * f64::from(flows + 1) / 2.0;
        for mean in means {
            let times = mean / mean_turn;
            assert!(times < most, "{flows} flows at {gbps} Gb/s: {times:.2} times their mean turn");
        }
        assert_near(means[1], means[0], 0.05, &format!("a later start at {gbps} Gb/s"));
    }
}

#[test]
fn flows_with_near_deadlines_meet_them_among_many_others() {
    // Every other of 32 flows has until 40 ms; these 16 take 27 ms.
    let burst = Burst { gbps: 1.0, kilobytes: 200.0, flows: 32 };
    let mut scenario = burst.scenario("10 ms");
    scenario["topology"]["delay"] = json!("36 us");
    for (i, flow) in scenario["workload"]["flows"].as_array_mut().unwrap().iter_mut().enumerate() {
        flow["deadline"] = json!(if i % 2 == 0 { "100 ms" } else { "40 ms" });
    }
    let latest = fcts(&scenario).into_iter().skip(1).step_by(2).fold(0.0, f64::max);
    assert!(latest < 40e3, "{latest} us");
}
