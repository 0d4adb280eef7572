//! Recorder of a run: flow records, FCT breakdowns, samples over time and RTTs.

use super::breakdown::Breakdowns;
use super::chains::Chains;
use super::flow_columns::{FlowColumns, reorder};
use super::recording::{Record, Recording};
use super::rtts::{Histogram, RttComponents, RttProbes, RttTrace};
use crate::base::schema::{Problem, positive};
use crate::base::units::{Duration, Time};
use crate::breakdown::chain::ChainInterval;
use crate::breakdown::{BreakdownRow, Completion};
use crate::model::flow::FlowSpec;
use crate::model::graph::{Graph, LinkId, LinkNames};
use crate::model::ideal_fct::IdealFct;
use crate::network::breakdown::packet_log::PacketLog;
use crate::network::port::Port;
use crate::transport::endpoint::breakdown::SenderBreakdown;

crate::parameters! {
    /// Quantities to sample over time, besides the number of flows in progress.
    pub struct Config {
        /// Time between samples.
        pub interval: Duration, where positive;
        /// Links whose queue to sample, in bytes, and their routers, by name: `left->right`.
        pub queues: Vec<String> = Vec::new();
        /// Links whose transmitted bytes to sample, by name.
        pub links: Vec<String> = Vec::new();
        /// Flows whose delivered bytes and controller to sample, by number.
        pub flows: Vec<u64> = Vec::new();
        /// Count every RTT measured after the warm-up, by class.
        pub rtts: bool = false;
        /// Flows of which to record every RTT and its components, by number.
        pub rtt_flows: Vec<u64> = Vec::new();
    }
}

/// Samples in long form: a row per probe and time.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// Names of the probes.
    pub probes: Vec<String>,
    /// Time in seconds.
    pub time_s: Vec<f64>,
    /// Index of the probe.
    pub probe: Vec<u32>,
    /// Sampled value.
    pub value: Vec<f64>,
}

impl Samples {
    /// Returns the index of the probe with this name, which is added if it is new.
    pub fn probe(&mut self, name: String) -> u32 {
        let index = self.probes.iter().position(|other| *other == name);
        index.unwrap_or_else(|| {
            self.probes.push(name);
            self.probes.len() - 1
        }) as u32
    }

    /// Returns true if the delivered bytes of a flow were sampled.
    pub fn has_flow(&self, flow: u64) -> bool {
        self.probes.contains(&Self::delivered(flow))
    }

    /// Returns the name of the probe of a flow's delivered bytes.
    pub fn delivered(flow: u64) -> String {
        format!("delivered_bytes flow {flow}")
    }

    /// Sorts the probes by name and the rows by time and probe, so that the order does not depend
    /// on the number of partitions.
    fn sort(&mut self) {
        let mut names: Vec<u32> = (0..self.probes.len() as u32).collect();
        names.sort_unstable_by_key(|probe| &self.probes[*probe as usize]);
        let mut renumbered = vec![0; names.len()];
        for (number, probe) in (0..).zip(&names) {
            renumbered[*probe as usize] = number;
        }
        self.probes = names.iter().map(|probe| self.probes[*probe as usize].clone()).collect();
        self.probe.iter_mut().for_each(|probe| *probe = renumbered[*probe as usize]);
        let mut order: Vec<u32> = (0..self.time_s.len() as u32).collect();
        // A stable sort, because one probe may have several samples at one time.
        order.sort_by(|one, other| {
            let key = |row: &u32| (self.time_s[*row as usize], self.probe[*row as usize]);
            let ((time, probe), (later, next)) = (key(one), key(other));
            time.total_cmp(&later).then(probe.cmp(&next))
        });
        reorder(&mut self.time_s, &order);
        reorder(&mut self.probe, &order);
        reorder(&mut self.value, &order);
    }

    /// Merges the samples of another partition, which were taken at the same times. Adds the values of the
    /// probe `summed`.
    fn merge(&mut self, other: Self, summed: u32) {
        let probes: Vec<u32> = other.probes.into_iter().map(|name| self.probe(name)).collect();
        let summed = probes.get(summed as usize).copied();
        let own = (0..self.value.len()).filter(|row| Some(self.probe[*row]) == summed);
        let mut own: std::collections::VecDeque<usize> = own.collect();
        for ((time, probe), value) in other.time_s.into_iter().zip(other.probe).zip(other.value) {
            let probe = probes[probe as usize];
            if Some(probe) == summed
                && let Some(row) = own.pop_front()
            {
                self.value[row] += value;
            } else {
                self.time_s.push(time);
                self.probe.push(probe);
                self.value.push(value);
            }
        }
    }

    /// Appends a sample.
    pub fn push(&mut self, time: Time, probe: u32, value: f64) {
        self.time_s.push(time.seconds());
        self.probe.push(probe);
        self.value.push(value);
    }
}

/// Recorder of flow records, FCT breakdowns, samples and RTTs.
pub struct Recorder {
    /// Records of the flows that have ended.
    pub records: FlowColumns,
    /// FCT breakdowns of completed flows, if they are kept.
    pub breakdowns: Breakdowns,
    /// Chains of causes of the flows in `chained_flows`.
    pub chains: Chains,
    /// Samples over time.
    pub samples: Samples,
    interval: Option<Duration>,
    /// Links whose queues are sampled, and their probes.
    pub queue_probes: Vec<(LinkId, u32)>,
    /// Links whose transmitted bytes are sampled, and their probes.
    pub link_probes: Vec<(LinkId, u32)>,
    /// Flows that are sampled.
    pub sampled_flows: Vec<u64>,
    /// Flows whose chains of causes are kept.
    pub chained_flows: Vec<u64>,
    /// Selection of the flows whose packets are recorded, if they are.
    pub recording: Option<Box<Recording>>,
    /// Recorded tables at the end of the run.
    pub record: Option<Record>,
    /// Flows whose RTTs are recorded.
    pub rtt_flows: Vec<u64>,
    /// RTTs after the warm-up, by class; `None` if they are not counted.
    pub rtts: Option<Vec<Histogram>>,
    warm_up: Time,
    /// Probe of the number of flows in progress.
    pub active_probe: u32,
}

impl Recorder {
    /// Returns a recorder for `graph` of a run whose warm-up ends at `warm_up`.
    pub fn new(config: Option<&Config>, warm_up: Time, graph: &Graph) -> Result<Self, Problem> {
        let mut recorder = Self {
            records: FlowColumns::default(),
            breakdowns: Breakdowns::default(),
            chains: Chains::default(),
            chained_flows: Vec::new(),
            recording: None,
            record: None,
            samples: Samples::default(),
            interval: config.map(|config| config.interval),
            queue_probes: Vec::new(),
            link_probes: Vec::new(),
            sampled_flows: config.map_or_else(Vec::new, |config| config.flows.clone()),
            rtt_flows: config.map_or_else(Vec::new, |config| config.rtt_flows.clone()),
            rtts: config.is_some_and(|config| config.rtts).then(Vec::new),
            warm_up,
            active_probe: 0,
        };
        recorder.sampled_flows.sort_unstable();
        recorder.sampled_flows.dedup();
        let Some(config) = config else { return Ok(recorder) };
        recorder.active_probe = recorder.samples.probe("active_flows".to_owned());
        if config.queues.is_empty() && config.links.is_empty() {
            return Ok(recorder);
        }
        let names = LinkNames::new(graph);
        for (i, name) in config.queues.iter().enumerate() {
            let link =
                names.link(name).map_err(|problem| problem.within(&format!("queues[{i}]")))?;
            let probe = recorder.samples.probe(format!("queue_bytes {name}"));
            recorder.queue_probes.push((link, probe));
        }
        for (i, name) in config.links.iter().enumerate() {
            let link =
                names.link(name).map_err(|problem| problem.within(&format!("links[{i}]")))?;
            let probe = recorder.samples.probe(format!("transmitted_bytes {name}"));
            recorder.link_probes.push((link, probe));
        }
        Ok(recorder)
    }

    /// Returns the time of the next sample.
    pub fn next_sample(&self, now: Time) -> Option<Time> {
        self.interval.map(|interval| now + interval)
    }

    /// Returns true if RTTs are counted or recorded.
    pub fn wants_rtts(&self) -> bool {
        self.rtts.is_some() || !self.rtt_flows.is_empty()
    }

    /// Counts an RTT of a flow of this class, unless the warm-up is in progress.
    pub fn count_rtt(&mut self, now: Time, class: u16, rtt: Duration) {
        let Some(rtts) = &mut self.rtts else { return };
        if now < self.warm_up {
            return;
        }
        if usize::from(class) >= rtts.len() {
            rtts.resize_with(usize::from(class) + 1, Histogram::default);
        }
        rtts[usize::from(class)].count(rtt);
    }

    /// Returns an RTT trace for a flow whose RTTs are recorded.
    pub fn trace(&mut self, flow: u64) -> Option<Box<RttTrace>> {
        let names = [
            "measured_rtt_s",
            "rtt_true_s",
            "rtt_forward_queueing_s",
            "rtt_reverse_queueing_s",
            "rtt_fixed_s",
            "rtt_marked",
        ];
        let probes =
            |samples: &mut Samples| names.map(|name| samples.probe(format!("{name} flow {flow}")));
        let is_recorded = self.rtt_flows.contains(&flow);
        is_recorded.then(|| Box::new(RttTrace::new(probes(&mut self.samples))))
    }

    /// Records an RTT that a flow's transport measured, and its components.
    pub fn record_rtt(
        &mut self,
        now: Time,
        probes: RttProbes,
        measured: Duration,
        marked: bool,
        components: &RttComponents,
    ) {
        let RttComponents { exact, forward, reverse, fixed } = *components;
        let [measured, exact, forward, reverse, fixed] =
            [measured, exact, forward, reverse, fixed].map(Duration::seconds);
        let values = [measured, exact, forward, reverse, fixed, f64::from(u8::from(marked))];
        for (probe, value) in probes.into_iter().zip(values) {
            self.samples.push(now, probe, value);
        }
    }

    /// Returns the bound of the intervals in the chain of causes of a flow; 0 if it is not kept.
    pub fn chain_bound(&self, flow: u64) -> usize {
        if self.chained_flows.contains(&flow) {
            return usize::MAX;
        }
        self.recording.as_ref().map_or(0, |recording| recording.most_of(flow))
    }

    /// Returns true if a flow is recorded while it is in progress.
    pub fn is_candidate(&self, flow: u64) -> bool {
        self.recording.as_ref().is_some_and(|recording| recording.is_candidate(flow))
    }

    /// Records the FCT breakdown of a completed flow, and its chain of causes if that is kept. Returns the
    /// FCT and the chain if only the end of the recording decides if it is kept.
    pub fn record_breakdown(
        &mut self,
        spec: &FlowSpec,
        completed: Time,
        breakdown: &SenderBreakdown,
        completion: &Completion,
        ideal: &IdealFct,
    ) -> Option<(Duration, Vec<ChainInterval>)> {
        let fct = completed - spec.start;
        let row = BreakdownRow::new(&breakdown.handshake(completion), completion);
        if self.records.kept.includes(spec) {
            self.breakdowns.push(spec.id, fct, &row, ideal);
        }
        if self.chain_bound(spec.id) == 0 {
            return None;
        }
        let chain = breakdown.chain(completion)?;
        if self.chained_flows.contains(&spec.id) {
            self.chains.push(spec.id, fct, &chain);
            return None;
        }
        Some((fct, chain))
    }

    /// Merges the records of another partition.
    pub fn merge(&mut self, other: Self) {
        self.records.append(other.records);
        self.breakdowns.append(other.breakdowns);
        self.chains.append(other.chains);
        self.samples.merge(other.samples, other.active_probe);
        if let (Some(recording), Some(other)) = (&mut self.recording, other.recording) {
            recording.merge(*other);
        }
        if let (Some(rtts), Some(others)) = (&mut self.rtts, other.rtts) {
            rtts.resize_with(rtts.len().max(others.len()), Histogram::default);
            rtts.iter_mut().zip(&others).for_each(|(own, other)| own.merge(other));
        }
    }

    /// Ends the recording with this log of packets, and sorts all tables.
    pub fn close(&mut self, log: Option<PacketLog>, ports: &mut [Port], ended: Time) {
        let recording = self.recording.take();
        self.record =
            recording.map(|recording| recording.finish(log, &mut self.chains, ports, ended));
        self.records.sort();
        self.breakdowns.sort();
        self.chains.sort();
        self.samples.sort();
    }

    /// Returns true if samples are taken.
    pub fn is_sampling(&self) -> bool {
        self.interval.is_some()
    }
}
