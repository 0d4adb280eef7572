//! What the tests of ideals share: one link, flows on it, and their completion times.

use super::{Outcome, Setting};
use crate::base::random::Random;
use crate::base::run_control::RunControl;
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::ideal::models::{Ideal, run};
use crate::model::flow::FlowSpec;
use crate::model::graph::{Graph, LoadReference};
use crate::model::packet::Format;
use crate::traffic::plain;

/// Packets without headers: the wire carries payload alone.
pub(crate) const BARE: Format =
    Format { payload: Bytes(1000), header: Bytes(0), ack: Bytes(40), syn: None, sack: false };

/// An empty network.
pub(crate) fn no_network() -> Graph {
    Graph::new(LoadReference { rate: Rate::from_gbps(8), what: "the link".to_owned() })
}

/// Two hosts and a link of a byte a nanosecond without delay.
pub(crate) fn one_link() -> Graph {
    let mut graph = no_network();
    let (a, b) = (graph.add_host("a"), graph.add_host("b"));
    graph.connect(a, b, Rate::from_gbps(8), Duration::ZERO);
    graph
}

/// A flow of `size` bytes that starts at `start` picoseconds.
pub(crate) fn sized(id: u64, start: u64, size: u64) -> FlowSpec {
    FlowSpec { id, size: Some(Bytes(size)), ..plain(0, 1, Time(start)) }
}

/// Flows by the gap in picoseconds from the start of the one before, and by size.
pub(crate) fn in_turn(drawn: impl IntoIterator<Item = (u64, u64)>) -> Vec<FlowSpec> {
    let mut start = 0;
    let next = |(id, (gap, size))| {
        start += gap;
        sized(id, start, size)
    };
    (0..).zip(drawn).map(next).collect()
}

/// A flow without end that starts at `start` picoseconds.
pub(crate) fn long_lived(id: u64, start: u64, stop: Option<Time>) -> FlowSpec {
    FlowSpec { size: None, stop, ..sized(id, start, 0) }
}

/// Poisson arrivals of flows with exponential sizes of mean 100 KB at a load of [`one_link`].
pub(crate) fn poisson(seed: u64, load: f64, count: u64) -> Vec<FlowSpec> {
    let (mut gaps, mut sizes) = (Random::new(seed, "gaps"), Random::new(seed, "sizes"));
    let mut start = 0.0;
    let next = |id| {
        start += gaps.exponential(1e8 / load);
        sized(id, start as u64, sizes.exponential(1e5).ceil().max(1.0) as u64)
    };
    (0..count).map(next).collect()
}

/// Runs `flows` over link 0 without headers.
pub(crate) fn run_on_link(
    ideal: &dyn Ideal,
    graph: &Graph,
    flows: &[FlowSpec],
    limit: Time,
) -> Outcome {
    let setting = Setting { graph, format: &BARE, limit, watch: &RunControl::default() };
    run(ideal, setting, flows.iter().copied(), |_, links| links.push(0))
}

/// Completion times of `flows` over link 0 without headers.
pub(crate) fn completions(ideal: &dyn Ideal, graph: &Graph, flows: &[FlowSpec]) -> Vec<Duration> {
    let outcome = run_on_link(ideal, graph, flows, Time::NEVER);
    outcome.records.iter().map(|record| record.fct.expect("no limit")).collect()
}
