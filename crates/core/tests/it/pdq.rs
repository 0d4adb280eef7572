//! PDQ with many flows: all of them together take about the time that their link needs.

use crate::common::{assert_near, count, run};
use crate::priorities::fcts;
use serde_json::json;

#[test]
fn equal_pdq_flows_take_little_longer_than_their_link_needs() {
    // The more flows wait, the less often each probes, so they must not count twice.
    for (gbps, megabytes) in [(1.0, 1.0), (10.0, 10.0), (100.0, 1.0)] {
        for count in [8, 12, 16, 20, 24, 32, 48, 64] {
            let flow = |i| json!({ "source": i, "target": 0, "size": format!("{megabytes} MB") });
            let results = run(&json!({
                "topology": {
                    "kind": "star", "hosts": count + 1, "rate": format!("{gbps} Gbps"),
                    "delay": "2 us",
                },
                "transport": "pdq",
                "workload": { "kind": "flows", "flows": (1..=count).map(flow).collect::<Vec<_>>() },
            }));
            let last = fcts(&results).into_iter().fold(0.0, f64::max);
            // Packets of 1448 B of data and 52 B of headers.
            let packet_us = 12.0 / gbps;
            let all = f64::from(count) * megabytes * 1e6 / 1448.0 * packet_us;
            let round_trip = 8.0 + 2.0 * packet_us;
            let times = last / (all + round_trip);
            // Two RTTs, in which the rate controller counts flows, are less than the probes' intervals there.
            let most = if gbps > 10.0 { 2.0 } else { 1.15 };
            assert!(times < most, "{count} flows at {gbps} Gb/s take {times:.2} times as long");
        }
    }
}

#[test]
fn equal_pdq_flows_are_served_one_after_the_other_at_any_start() {
    // Flows of 20 KB end within a fraction of the RTT that they wait for a rate.
    for (gbps, kilobytes, count, most) in [
        (1.0, 200.0, 50, 1.15),
        (10.0, 1000.0, 64, 1.15),
        (100.0, 1000.0, 50, 1.15),
        (100.0, 20.0, 64, 3.0),
    ] {
        let mean_us = |start: &str| {
            let size = format!("{kilobytes} KB");
            let flow = |i| json!({ "source": i, "target": 0, "size": size, "start": start });
            let results = run(&json!({
                "topology": {
                    "kind": "star", "hosts": count + 1, "rate": format!("{gbps} Gbps"),
                    "delay": "2 us",
                },
                "transport": "pdq",
                "router": { "kind": "pdq", "initial_rtt": "10 us" },
                "workload": { "kind": "flows", "flows": (1..=count).map(flow).collect::<Vec<_>>() },
            }));
            fcts(&results).into_iter().sum::<f64>() / f64::from(count)
        };
        // Packets of 1448 B of data and 52 B of headers.
        let each = kilobytes * 1e3 / 1448.0 * 12.0 / gbps;
        let one_by_one = each * f64::from(count + 1) / 2.0;
        let means = ["0 us", "10 ms"].map(mean_us);
        for mean in means {
            let times = mean / one_by_one;
            assert!(times < most, "{count} flows at {gbps} Gb/s: {times:.2} times their mean turn");
        }
        assert_near(means[1], means[0], 0.05, &format!("a later start at {gbps} Gb/s"));
    }
}

#[test]
fn pdq_flows_with_near_deadlines_meet_them_among_many_others() {
    // 32 flows of 1.66 ms; every other one has until 40 ms, of which these take 27 ms.
    let flow = |i: u32| {
        let deadline = if i.is_multiple_of(2) { "40 ms" } else { "100 ms" };
        json!({ "source": i, "target": 0, "size": "200 KB", "deadline": deadline })
    };
    let results = run(&json!({
        "topology": { "kind": "star", "hosts": 33, "rate": "1 Gbps", "delay": "36 us" },
        "transport": "pdq",
        "workload": { "kind": "flows", "flows": (1..=32).map(flow).collect::<Vec<_>>() },
    }));
    assert_eq!(count(&results, "finished"), 32);
    let near = fcts(&results).into_iter().skip(1).step_by(2);
    let latest = near.fold(0.0, f64::max);
    assert!(latest < 40e3, "{latest} us");
}
