//! Properties that hold for every ideal.

use super::*;
use crate::base::run_control::RunControl;
use crate::base::schema::{Parameter, defaults};
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::ideal::fixture::{
    ALWAYS, NO_HEADERS, empty_graph, fcts_on_link, flows_from_gaps, long_lived, one_link,
    run_on_link, sized_flow,
};
use crate::ideal::{IdealSetup, run};
use crate::model::flow::{self, FlowSpec};
use crate::model::flow_totals::KeptRecords;
use crate::model::graph::Graph;
use crate::model::graph::LinkId;
use crate::model::packet::Format;
use proptest::prelude::*;

/// Every ideal with its defaults.
fn ideals() -> impl Iterator<Item = Config> {
    Config::NAMES.iter().map(|name| Config::read(&(*name).into()).unwrap())
}

/// The ideals under which flows share links.
fn sharing_ideals() -> impl Iterator<Item = Config> {
    ideals().filter(|ideal| ideal.name() != "alone")
}

/// A chain of links, each with a rate and a delay in picoseconds; forward links are 0, 2, 4 …
fn chain(hops: &[(u64, u64)]) -> Graph {
    let mut graph = empty_graph();
    let mut node = graph.add_host("source");
    for (i, (rate, delay)) in hops.iter().enumerate() {
        let next = graph.add_switch(i.to_string());
        graph.connect(node, next, Rate(*rate), Duration(*delay));
        node = next;
    }
    graph
}

#[test]
fn alone_ignores_other_flows() {
    let flows = [sized_flow(0, 0, 2000), sized_flow(1, 0, 2000), sized_flow(2, 500_000, 1000)];
    let fcts = fcts_on_link(&alone::Config {}, &one_link(), &flows);
    assert_eq!(fcts, [2000, 2000, 1000].map(Duration::from_nanos));
}

#[test]
fn flows_at_the_limit_count_the_data_that_has_arrived() {
    // The delay is 1 us, a byte takes 1 ns, and each flow has half the rate: at 4 us 1500 B of each
    // flow have arrived.
    let graph = chain(&[(8_000_000_000, 1_000_000)]);
    let flows = [sized_flow(0, 0, 2000), sized_flow(1, 0, 9000), sized_flow(2, 4_000_000, 1)];
    let outcome = run_on_link(&max_min::Config {}, &graph, &flows, Time(4_000_000));
    let results: Vec<_> = outcome.records.iter().map(|r| (r.outcome, r.delivered.0)).collect();
    // Time lost within the last microsecond counts as lost before.
    assert_eq!(results, [(flow::Outcome::Unfinished, 1000), (flow::Outcome::Unfinished, 1000)]);
    assert_eq!((outcome.link_bytes[0] as u64, outcome.end), (4000, Time(4_000_000)));

    let outcome = run_on_link(&max_min::Config {}, &graph, &flows, Time(5_000_000));
    assert_eq!(outcome.records[0].fct, Some(Duration::from_micros(5)));
    assert_eq!(outcome.records[0].outcome, flow::Outcome::Finished);
}

#[test]
fn long_lived_flows_share_until_their_stop() {
    let flows = [long_lived(0, 0, Some(Time(3_000_000))), sized_flow(1, 1_000_000, 2000)];
    // The long-lived flow has half the rate for 2 us, then the other flow has the full rate.
    let outcome = run_on_link(&max_min::Config {}, &one_link(), &flows, Time::NEVER);
    let [long, short] = &outcome.records[..] else { panic!("expected two flows") };
    assert_eq!((long.outcome, long.delivered.0, long.fct), (flow::Outcome::LongLived, 2000, None));
    assert_eq!(short.fct, Some(Duration::from_nanos(3000)));
    assert_eq!((outcome.link_bytes[0] as u64, outcome.end), (4000, Time(4_000_000)));
}

#[test]
fn flows_with_a_size_stop_before_their_end_or_end_before_their_stop() {
    for ideal in sharing_ideals() {
        // At 1 ns a byte: flow 0 would end at 4 us, and flow 1 ends after 1 us.
        let stop = Some(Time(3_000_000));
        let flows = [
            FlowSpec { stop, ..sized_flow(0, 0, 4000) },
            FlowSpec { stop: Some(Time(9_000_000)), ..sized_flow(1, 4_000_000, 1000) },
        ];
        let outcome = run_on_link(&*ideal, &one_link(), &flows, Time::NEVER);
        let [first, second] = &outcome.records[..] else { panic!("expected two flows") };
        let found = (first.outcome, first.delivered.0, first.fct);
        assert_eq!(found, (flow::Outcome::Unfinished, 3000, None), "{}", ideal.name());
        assert_eq!(second.fct, Some(Duration::from_micros(1)), "{}", ideal.name());
        assert_eq!(outcome.end, Time(5_000_000), "{}", ideal.name());
    }
}

#[test]
fn bytes_in_the_measured_interval_are_those_sent_in_it() {
    // At 1 ns a byte: alone, flow 0 sends 1000 B until 1 us. From then on each ideal either shares the link
    // or serves flow 1 first, which sends its 2000 B until 3 or 5 us.
    let flows = [sized_flow(0, 0, 4000), sized_flow(1, 1_000_000, 2000)];
    let graph = one_link();
    let watch = &RunControl::default();
    for (measured, bytes) in [([0, 6], 6000), ([2, 4], 2000), ([0, 1], 1000), ([5, 9], 1000)] {
        let measured = measured.map(|us| Time(us * 1_000_000));
        let limit = Time::NEVER;
        let kept = KeptRecords::default();
        let setup = IdealSetup {
            graph: &graph,
            format: &NO_HEADERS,
            limit,
            kept,
            measured,
            common: None,
            watch,
            threads: 1,
        };
        for ideal in sharing_ideals() {
            let outcome = run(&*ideal, setup, flows, |_, links| links.push(0));
            let counted = outcome.measured_bytes[0];
            assert!((counted - f64::from(bytes)).abs() < 1e-6, "{}: {counted}", ideal.name());
            assert_eq!(outcome.link_bytes[0].round() as u64, 6000, "{}", ideal.name());
        }
    }
}

#[test]
fn run_without_limit_ends_when_only_long_lived_flows_are_left() {
    for ideal in sharing_ideals() {
        let flows = [long_lived(0, 0, None), sized_flow(1, 0, 1000)];
        let outcome = run_on_link(&*ideal, &one_link(), &flows, Time::NEVER);
        let fct = outcome.records[1].fct.unwrap();
        assert_eq!(outcome.end, Time(fct.0), "{}", ideal.name());
        assert_eq!(outcome.link_bytes[0] as u64, fct.0 / 1000, "{}", ideal.name());
    }
}

proptest! {
    #[test]
    fn single_flow_takes_exactly_its_ideal_fct(
        hops in prop::collection::vec((1_000_000_u64..400_000_000_000, 0_u64..1_000_000), 1..6),
        size in 0_u64..10_000_000,
        start in 0_u64..1_000_000_000_000,
        header in 0_u64..60,
    ) {
        let graph = chain(&hops);
        let (payload, header, ack) = (Bytes(1460), Bytes(header), Bytes(40));
        let format = Format { payload, header, ack, ..defaults() };
        let watch = RunControl::default();
        let (graph, format, limit) = (&graph, &format, Time::NEVER);
        let kept = KeptRecords::default();
        let (measured, common, watch) = (ALWAYS, None, &watch);
        let setup = IdealSetup { graph, format, limit, kept, measured, common, watch, threads: 1 };
        let route = |_: &FlowSpec, links: &mut Vec<LinkId>| {
            links.extend((0..hops.len() as LinkId).map(|i| 2 * i));
        };
        for ideal in ideals() {
            let outcome = run(&*ideal, setup, [sized_flow(0, start, size)], route);
            prop_assert_eq!(outcome.records[0].fct, Some(outcome.records[0].ideal_fct));
            let wire = format.on_wire(Bytes(size)).0 as f64;
            prop_assert!((outcome.link_bytes[0] - wire).abs() <= 1e-9 * wire);
        }
    }

    #[test]
    fn no_fct_is_below_the_ideal_fct_and_every_byte_is_carried(
        hops in prop::collection::vec((1_000_000_000_u64..9_000_000_000, 0_u64..1_000_000), 6),
        flows in prop::collection::vec(
            (0_u64..3_000_000, 0_u64..30_000, 0_usize..6, 1_usize..6),
            1..60,
        ),
    ) {
        let graph = chain(&hops);
        let watch = RunControl::default();
        let (graph, format, limit) = (&graph, &NO_HEADERS, Time::NEVER);
        let kept = KeptRecords::default();
        let (measured, common, watch) = (ALWAYS, None, &watch);
        let setup = IdealSetup { graph, format, limit, kept, measured, common, watch, threads: 1 };
        let specs = flows_from_gaps(flows.iter().map(|(gap, size, ..)| (*gap, *size)));
        let on = |i: usize| flows[i].2..(flows[i].2 + flows[i].3).min(hops.len());
        let carried = |hop| -> u64 {
            (0..flows.len()).filter(|i| on(*i).contains(&hop)).map(|i| flows[i].1).sum()
        };
        for ideal in ideals() {
            let outcome = run(&*ideal, setup, specs.iter().copied(), |spec, links| {
                links.extend(on(spec.id as usize).map(|hop| 2 * hop as LinkId));
            });
            for record in &outcome.records {
                prop_assert!(record.fct.unwrap() >= record.ideal_fct, "{}", ideal.name());
            }
            for hop in 0..hops.len() {
                let (carried, counted) = (carried(hop) as f64, outcome.link_bytes[2 * hop]);
                prop_assert!((counted - carried).abs() <= 1e-9 * carried, "{}", ideal.name());
                let measured = outcome.measured_bytes[2 * hop];
                prop_assert!((measured - carried).abs() <= 1e-6 * carried, "{}", ideal.name());
            }
        }
    }

    #[test]
    fn one_link_is_work_conserving(
        flows in prop::collection::vec((0_u64..2_000_000, 1_u64..3_000), 1..60),
    ) {
        let specs = flows_from_gaps(flows);
        let idle_at = specs.iter().fold(0, |idle_at, spec| {
            spec.start.0.max(idle_at) + spec.size.unwrap().0 * 1000
        });
        for ideal in sharing_ideals() {
            let end = run_on_link(&*ideal, &one_link(), &specs, Time::NEVER).end;
            prop_assert!(end.0.abs_diff(idle_at) <= 1, "{}: {end:?}, {idle_at}", ideal.name());
        }
    }
}
