//! Shared code of the tests of ideals: one link, flows over it, and their FCTs.

use super::{Ideal, IdealOutcome, IdealSetup, run};
use crate::base::random::Random;
use crate::base::run_control::RunControl;
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::flow::FlowSpec;
use crate::model::flow_totals::KeptRecords;
use crate::model::graph::{Graph, LinkId, LoadReference};
use crate::model::packet::Format;
use crate::traffic::flow_between;

/// Packets without headers: the link carries payload only.
pub(crate) const NO_HEADERS: Format = Format {
    payload: Bytes(1000),
    header: Bytes(0),
    ack: Bytes(40),
    syn: None,
    credit: None,
    sack: false,
    time_unit: Duration::ZERO,
};

/// Measured interval that contains every run.
pub(crate) const ALWAYS: [Time; 2] = [Time::ZERO, Time::NEVER];

/// An empty network.
pub(crate) fn empty_graph() -> Graph {
    Graph::new(LoadReference { rate: Rate::from_gbps(8), what: "the link".to_owned() })
}

/// Two hosts and a link of 8 Gb/s (one byte per nanosecond) without delay.
pub(crate) fn one_link() -> Graph {
    let mut graph = empty_graph();
    let (a, b) = (graph.add_host("a"), graph.add_host("b"));
    graph.connect(a, b, Rate::from_gbps(8), Duration::ZERO);
    graph
}

/// A flow of `size` bytes that starts at `start` picoseconds.
pub(crate) fn sized_flow(id: u64, start: u64, size: u64) -> FlowSpec {
    FlowSpec { id, size: Some(Bytes(size)), ..flow_between(0, 1, Time(start)) }
}

/// Flows given by inter-arrival time in picoseconds and size in bytes.
pub(crate) fn flows_from_gaps(drawn: impl IntoIterator<Item = (u64, u64)>) -> Vec<FlowSpec> {
    let mut start = 0;
    let next = |(id, (gap, size))| {
        start += gap;
        sized_flow(id, start, size)
    };
    (0..).zip(drawn).map(next).collect()
}

/// A long-lived flow that starts at `start` picoseconds.
pub(crate) fn long_lived(id: u64, start: u64, stop: Option<Time>) -> FlowSpec {
    FlowSpec { size: None, stop, ..sized_flow(id, start, 0) }
}

/// Poisson arrivals of flows with exponential sizes of mean 100 KB, at a load of [`one_link`].
pub(crate) fn poisson(seed: u64, load: f64, count: u64) -> Vec<FlowSpec> {
    let (mut gaps, mut sizes) = (Random::new(seed, "gaps"), Random::new(seed, "sizes"));
    let mut start = 0.0;
    let next = |id| {
        start += gaps.exponential(1e8 / load);
        sized_flow(id, start as u64, sizes.exponential(1e5).ceil().max(1.0) as u64)
    };
    (0..count).map(next).collect()
}

/// Runs `flows` over link 0 without headers.
pub(crate) fn run_on_link(
    ideal: &dyn Ideal,
    graph: &Graph,
    flows: &[FlowSpec],
    limit: Time,
) -> IdealOutcome {
    run_over(ideal, graph, flows, limit, |_, links| links.push(0))
}

/// Runs `flows` without headers over the links that `append_route` appends.
pub(crate) fn run_over(
    ideal: &dyn Ideal,
    graph: &Graph,
    flows: &[FlowSpec],
    limit: Time,
    append_route: impl FnMut(&FlowSpec, &mut Vec<LinkId>) + Send,
) -> IdealOutcome {
    let watch = &RunControl::default();
    let kept = KeptRecords::default();
    let setup = IdealSetup {
        graph,
        format: &NO_HEADERS,
        limit,
        kept,
        measured: ALWAYS,
        common: None,
        watch,
        threads: 1,
    };
    run(ideal, setup, flows.iter().copied(), append_route)
}

/// FCTs of `flows` over link 0 without headers.
pub(crate) fn fcts_on_link(ideal: &dyn Ideal, graph: &Graph, flows: &[FlowSpec]) -> Vec<Duration> {
    let outcome = run_on_link(ideal, graph, flows, Time::NEVER);
    outcome.records.iter().map(|record| record.fct.expect("no limit")).collect()
}
