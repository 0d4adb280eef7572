//! Records of selected flows and of all links over time.
//!
//! All candidates are logged while they are in progress. Which of them are kept depends on other flows, but
//! not on the order in which they end, so a run in partitions keeps the same.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::chains::Chains;
use super::gauges::{GaugeLog, Gauges};
use super::hops::Hops;
use super::packets::Packets;
use super::series::{LinkSeries, Series};
use crate::base::random::mix;
use crate::base::schema::{Problem, fraction_if_given, positive};
use crate::base::units::{Bytes, Duration, Time};
use crate::breakdown::chain::ChainInterval;
use crate::model::graph::{Graph, LinkId, LinkNames};
use crate::model::packet::FlowNumber;
use crate::network::breakdown::hop_log::HopLog;
use crate::network::breakdown::packet_log::{Candidates, PacketLog};
use crate::network::port::Port;

crate::parameters! {
    /// Records of the packets of some flows. Needs `account = true`.
    pub struct Config {
        /// Flows that are always recorded, by number.
        pub flows: Vec<u64> = Vec::new();
        /// Share of the other flows that are candidates, chosen by a hash of their number. `none`: all of a
        /// workload of up to 100 flows, otherwise 0.1.
        pub share: Option<f64> = None, where fraction_if_given;
        /// Candidates that are kept in each half decade of size because they took longest beyond their ideal
        /// FCT; flows that have not finished count with their time so far.
        pub slowest: u32 = 8;
        /// Candidates that are kept in each half decade of size by a hash of their number.
        pub random: u32 = 2;
        /// Packets that are kept in all. Beyond, the flows that have most keep every second, fourth, … of
        /// those that arrived when sent first; and of all others, if they are more than half. As many
        /// intervals of causal chains are kept; beyond, the longest chains are left out.
        pub packets: u32 = 400_000, where positive;
        /// Bins of time for the counters of links, at most; an even number.
        pub bins: u32 = 512, where |bins| {
            if *bins > 0 && bins.is_multiple_of(2) { Ok(()) } else { Err("even, and 2 or more") }
        };
        /// Links on which all packets are recorded, by name: `left->right`. Up to `packets` in all, the first
        /// ones.
        pub hops: Vec<String> = Vec::new();
    }
}

impl Config {
    /// Returns the share of other flows that are candidates, of a workload of about `flows`.
    pub fn share(&self, flows: f64) -> f64 {
        const FEW: f64 = 100.0;
        self.share.unwrap_or(if flows <= FEW { 1.0 } else { 0.1 })
    }

    /// Returns the flows whose packets are logged while they are in progress, of about `flows`.
    fn candidates(&self, flows: f64) -> Candidates {
        let keeps_others = self.slowest > 0 || self.random > 0;
        let share = if keeps_others { self.share(flows) } else { 0.0 };
        Candidates::new(&self.flows, share, self.bounds())
    }

    /// Returns the bound of the packets of a named flow, and of another: twice its part of all packets, since
    /// other flows may need less.
    pub fn bounds(&self) -> [usize; 2] {
        let most = self.packets as usize;
        let kept = self.slowest.saturating_add(self.random) as usize;
        [self.flows.len(), kept].map(|flows| (2 * most).div_ceil(flows.max(1)).min(most))
    }

    /// Returns an empty log of packets of about `flows` flows.
    pub fn packet_log(&self, graph: &Graph, flows: f64) -> Result<PacketLog, Problem> {
        if self.hops.is_empty() {
            return Ok(PacketLog::new(self.candidates(flows), None));
        }
        let names = LinkNames::new(graph);
        let mut links = Vec::new();
        for (i, name) in self.hops.iter().enumerate() {
            links.push(names.link(name).map_err(|problem| problem.within(&format!("hops[{i}]")))?);
        }
        let hops = HopLog::new(&links, self.packets as usize);
        Ok(PacketLog::new(self.candidates(flows), Some(hops)))
    }
}

/// A flow that has ended, or the run, while its packets were logged.
#[derive(Clone, Debug)]
pub struct RecordedFlow {
    /// Number of the flow.
    pub flow: u64,
    /// Payload, unless it is long-lived.
    pub size: Option<Bytes>,
    /// Time beyond the ideal FCT.
    pub excess: Duration,
    /// Links of the forward and of the reverse path.
    pub paths: [Vec<LinkId>; 2],
    /// FCT and causal chain of a finished flow.
    pub chain: Option<(Duration, Vec<ChainInterval>)>,
    /// Gauges of its sender.
    pub gauges: GaugeLog,
}

/// Number of the half decade of a size.
fn half_decade(size: Bytes) -> u32 {
    let decade = size.0.max(1).ilog10();
    let square = u128::from(size.0) * u128::from(size.0);
    let middle = 10_u128.checked_pow(2 * decade + 1);
    2 * decade + u32::from(middle.is_some_and(|middle| square >= middle))
}

/// Order in which flows are kept at random.
fn random_rank(flow: u64) -> (u64, u64) {
    // The candidates are those with small hashes, so their order needs another hash.
    (mix(!flow), flow)
}

/// Selection of the recorded flows that are kept, and the counters of links over time.
pub struct Recording {
    candidates: Candidates,
    slowest: usize,
    random: usize,
    packets: usize,
    /// Counters of links.
    pub series: LinkSeries,
    named: Vec<RecordedFlow>,
    /// By half decade of size, the slowest first.
    others: BTreeMap<u32, Vec<RecordedFlow>>,
}

/// Reason to keep a flow.
const NAMED: &str = "named";
const SLOWEST: &str = "slowest";
const RANDOM: &str = "random";

/// A kept flow.
#[derive(Clone, Debug)]
pub struct KeptFlow {
    /// Number of the flow.
    pub flow: u64,
    /// Reason to keep it.
    pub why: &'static str,
    /// Links of the forward and of the reverse path.
    pub paths: [Vec<LinkId>; 2],
    /// Packets that it sent on both paths.
    pub packets: u64,
    /// Number of these in the table.
    pub rows: usize,
    /// Of the packets that arrived when sent first, one in this number is in the table.
    pub every: u32,
    /// Of the packets that were lost or sent again, or were in the network at the end, one in this number.
    pub every_lost: u32,
    /// True if the causal chain is in its table.
    pub has_chain: bool,
}

/// Recorded tables.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// Kept flows by number.
    pub flows: Vec<KeptFlow>,
    /// Packets of these flows.
    pub packets: Packets,
    /// Gauges of these flows.
    pub gauges: Gauges,
    /// Counters of links over time.
    pub series: Series,
    /// Packets on selected links.
    pub hops: Hops,
}

impl Recording {
    /// Returns an empty selection of about `flows` flows, in a network of `links` links.
    pub fn new(config: &Config, links: usize, flows: f64) -> Self {
        Self {
            candidates: config.candidates(flows),
            slowest: config.slowest as usize,
            random: config.random as usize,
            packets: config.packets as usize,
            series: LinkSeries::new(links, config.bins),
            named: Vec::new(),
            others: BTreeMap::new(),
        }
    }

    /// Returns true if a flow is recorded while it is in progress.
    pub fn is_candidate(&self, flow: u64) -> bool {
        self.candidates.contains(flow)
    }

    /// Returns the bound of the packets of a flow, and of the intervals in its chain; 0 if it is not
    /// recorded.
    pub fn most_of(&self, flow: u64) -> usize {
        self.candidates.most_of(flow)
    }

    /// Adds a flow that has ended. Returns the flows that are not kept any more, which may include it.
    pub fn add(&mut self, flow: RecordedFlow) -> Vec<u64> {
        if self.candidates.is_named(flow.flow) {
            self.named.push(flow);
            return Vec::new();
        }
        let Some(size) = flow.size else { return vec![flow.flow] };
        let half_decade = half_decade(size);
        self.others.entry(half_decade).or_default().push(flow);
        self.prune(half_decade)
    }

    /// Drops the flows of a half decade of size that are not kept. Returns their numbers.
    fn prune(&mut self, half_decade: u32) -> Vec<u64> {
        let Some(flows) = self.others.get_mut(&half_decade) else { return Vec::new() };
        flows.sort_unstable_by_key(|flow| (Reverse(flow.excess), flow.flow));
        let mut ranks: Vec<_> = flows.iter().map(|flow| random_rank(flow.flow)).collect();
        ranks.sort_unstable();
        ranks.truncate(self.random);
        let (mut index, mut dropped) = (0, Vec::new());
        flows.retain(|flow| {
            index += 1;
            let is_kept = index <= self.slowest || ranks.contains(&random_rank(flow.flow));
            if !is_kept {
                dropped.push(flow.flow);
            }
            is_kept
        });
        dropped
    }

    /// Merges the selection of another partition.
    pub fn merge(&mut self, other: Self) {
        self.series.absorb(other.series);
        self.named.extend(other.named);
        for (half_decade, flows) in other.others {
            self.others.entry(half_decade).or_default().extend(flows);
            self.prune(half_decade);
        }
    }

    /// Ends the recording: adds the chains of the kept flows to `chains`, and returns their tables.
    pub fn finish(
        self,
        log: Option<PacketLog>,
        chains: &mut Chains,
        ports: &mut [Port],
        ended: Time,
    ) -> Record {
        let (mut logs, hops) = log.map(PacketLog::into_parts).unwrap_or_default();
        let series = self.series.finish(ports, ended);
        let slowest = self.slowest;
        let with_reason = |flows: Vec<RecordedFlow>| {
            let reason = move |index| if index < slowest { SLOWEST } else { RANDOM };
            flows.into_iter().enumerate().map(move |(index, flow)| (flow, reason(index)))
        };
        let others = self.others.into_values().flat_map(with_reason);
        let mut kept: Vec<_> =
            self.named.into_iter().map(|flow| (flow, NAMED)).chain(others).collect();
        kept.sort_unstable_by_key(|(flow, _)| flow.flow);
        leave_out_chains(&mut kept, self.packets);
        let mut kept_logs: Vec<_> = kept
            .iter()
            .map(|(flow, _)| logs.remove(&(flow.flow as FlowNumber)).unwrap_or_default())
            .collect();
        let packets = Packets::new(&mut kept_logs, self.packets);
        let mut gauges = Gauges::default();
        let flows = kept.into_iter().zip(&kept_logs).map(|((flow, why), log)| {
            gauges.append(flow.flow, flow.gauges, ended);
            if let Some((fct, chain)) = &flow.chain {
                chains.push(flow.flow, *fct, chain);
            }
            let has_chain = flow.chain.is_some() || chains.flow.contains(&flow.flow);
            KeptFlow {
                flow: flow.flow,
                why,
                paths: flow.paths,
                packets: log.sent.iter().map(|sent| u64::from(*sent)).sum(),
                rows: log.packets().count(),
                every: log.ordinary.every,
                every_lost: log.others.every,
                has_chain,
            }
        });
        let flows = flows.collect();
        Record { flows, packets, gauges, series, hops: Hops::new(&hops) }
    }
}

/// Leaves out the longest chains, until all others together have no more than `most` intervals.
fn leave_out_chains(flows: &mut [(RecordedFlow, &str)], most: usize) {
    let length = |flow: &RecordedFlow| flow.chain.as_ref().map_or(0, |(_, chain)| chain.len());
    let mut total: usize = flows.iter().map(|(flow, _)| length(flow)).sum();
    while total > most
        && let Some((longest, _)) = flows.iter_mut().max_by_key(|(flow, _)| length(flow))
    {
        total -= length(longest);
        longest.chain = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::defaults;

    fn flow(flow: u64, size: u64, excess: u64) -> RecordedFlow {
        RecordedFlow {
            flow,
            size: Some(Bytes(size)),
            excess: Duration(excess),
            paths: [vec![], vec![]],
            chain: None,
            gauges: GaugeLog::default(),
        }
    }

    fn recording(named: &[u64], slowest: u32, random: u32) -> Recording {
        let flows = named.to_vec();
        let config = Config { flows, slowest, random, ..defaults() };
        Recording::new(&config, 0, 1.0)
    }

    /// Numbers of the kept flows, with the reasons.
    fn kept(recording: Recording) -> Vec<(u64, &'static str)> {
        let record = recording.finish(None, &mut Chains::default(), &mut [], Time::ZERO);
        record.flows.iter().map(|flow| (flow.flow, flow.why)).collect()
    }

    #[test]
    fn half_decades_begin_at_powers_of_the_root_of_ten() {
        let sizes = [0, 1, 3, 4, 10, 31, 32, 99, 100, 316, 317, u64::MAX];
        let expected = [0, 0, 0, 1, 2, 2, 3, 3, 4, 4, 5, 38];
        assert_eq!(sizes.map(|size| half_decade(Bytes(size))), expected);
    }

    #[test]
    fn the_slowest_of_each_size_and_named_flows_are_kept() {
        let mut recording = recording(&[7], 2, 0);
        for (number, size, excess) in
            [(1, 1_000, 5), (2, 1_000, 9), (3, 1_500, 9), (4, 50_000, 1), (7, 1_000, 0)]
        {
            recording.add(flow(number, size, excess));
        }
        let expected = [(2, SLOWEST), (3, SLOWEST), (4, SLOWEST), (7, NAMED)];
        assert_eq!(kept(recording), expected);
    }

    #[test]
    fn the_selection_does_not_depend_on_order_or_partitions() {
        let flows: Vec<_> = (0..200).map(|i| flow(i, 10 + i * 7, mix(i) % 50)).collect();
        let select = |flows: &mut dyn Iterator<Item = &RecordedFlow>| {
            let mut recording = recording(&[], 3, 2);
            let mut count = 0;
            for flow in flows {
                count += 1;
                count -= recording.add(flow.clone()).len();
            }
            (recording, count)
        };
        let (whole, count) = select(&mut flows.iter());
        let (backwards, _) = select(&mut flows.iter().rev());
        let (mut first, _) = select(&mut flows.iter().step_by(2));
        first.merge(select(&mut flows.iter().skip(1).step_by(2)).0);
        let whole = kept(whole);
        assert_eq!(whole.len(), count, "dropped flows are reported");
        assert!(whole.iter().any(|(_, why)| *why == RANDOM), "{whole:?}");
        assert_eq!(kept(backwards), whole);
        assert_eq!(kept(first), whole);
    }
}
