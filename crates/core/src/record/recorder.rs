//! What is kept of a run: flow records, and samples over time.

use super::breakdown::Breakdowns;
use super::chains::Chains;
use super::flow_columns::{FlowColumns, reorder};
use super::rtts::{Histogram, Parts, Probes, Trace};
use crate::base::schema::{Problem, did_you_mean, positive};
use crate::base::units::{Duration, Time};
use crate::model::graph::{Graph, LinkId};

crate::parameters! {
    /// What to sample over time, besides the number of flows in progress.
    pub struct Config {
        /// Time between samples.
        pub interval: Duration, where positive;
        /// Links whose queue to sample, in bytes, and their routers, by name: `left->right`.
        pub queues: Vec<String> = Vec::new();
        /// Links whose transmitted bytes to sample, by name.
        pub links: Vec<String> = Vec::new();
        /// Flows whose delivered bytes and controller to sample, by number.
        pub flows: Vec<u64> = Vec::new();
        /// Whether to count, by class, every round-trip time that a transport is told after the
        /// warm-up.
        pub rtts: bool = false;
        /// Flows of which to keep every round-trip time, and what it is made of, by number.
        pub rtt_flows: Vec<u64> = Vec::new();
    }
}

/// Samples in long form: one row a probe and time.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// Names of the probes.
    pub probes: Vec<String>,
    /// Seconds since the start, a row each.
    pub time_s: Vec<f64>,
    /// Index of the probe, a row each.
    pub probe: Vec<u32>,
    /// The value, a row each.
    pub value: Vec<f64>,
}

impl Samples {
    /// The probe of this name, made if it is new.
    pub fn probe(&mut self, name: String) -> u32 {
        let known = self.probes.iter().position(|known| *known == name);
        known.unwrap_or_else(|| {
            self.probes.push(name);
            self.probes.len() - 1
        }) as u32
    }

    /// Puts the rows in order of time, and at the same time of the names of their probes, which are numbered
    /// so: who took a sample first does not matter.
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
        // Stable: of one probe at one time the order is that in which they were taken.
        order.sort_by(|one, other| {
            let key = |row: &u32| (self.time_s[*row as usize], self.probe[*row as usize]);
            let ((time, probe), (later, next)) = (key(one), key(other));
            time.total_cmp(&later).then(probe.cmp(&next))
        });
        reorder(&mut self.time_s, &order);
        reorder(&mut self.probe, &order);
        reorder(&mut self.value, &order);
    }

    /// Takes over the samples of another part of the run, which were taken at the same times; what the probe
    /// `counts` has counted there is added.
    fn absorb(&mut self, other: Self, counts: u32) {
        let probes: Vec<u32> = other.probes.into_iter().map(|name| self.probe(name)).collect();
        let counting = probes.get(counts as usize).copied();
        let own = (0..self.value.len()).filter(|row| Some(self.probe[*row]) == counting);
        let mut own: std::collections::VecDeque<usize> = own.collect();
        for ((time, probe), value) in other.time_s.into_iter().zip(other.probe).zip(other.value) {
            let probe = probes[probe as usize];
            if Some(probe) == counting
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

    /// Takes one value.
    pub fn push(&mut self, time: Time, probe: u32, value: f64) {
        self.time_s.push(time.seconds());
        self.probe.push(probe);
        self.value.push(value);
    }
}

/// Collects records and samples.
pub struct Recorder {
    /// The flows that have ended.
    pub records: FlowColumns,
    /// The accounts of those that have finished, if they are kept.
    pub accounts: Breakdowns,
    /// The chains of causes of those of them that were asked about.
    pub chains: Chains,
    /// The samples taken.
    pub samples: Samples,
    interval: Option<Duration>,
    /// Links whose queues are sampled, and their probes.
    pub queues: Vec<(LinkId, u32)>,
    /// Links whose bytes are sampled, and their probes.
    pub links: Vec<(LinkId, u32)>,
    /// Flows that are sampled.
    pub flows: Vec<u64>,
    /// Flows whose chains of causes are kept.
    pub chained: Vec<u64>,
    /// Flows whose round-trip times are kept.
    pub rtt_flows: Vec<u64>,
    /// All round-trip times after the warm-up, by class; none if they are not counted.
    pub rtts: Option<Vec<Histogram>>,
    warm_up: Time,
    /// The number of flows in progress.
    pub active: u32,
}

impl Recorder {
    /// A recorder for `graph`, of a run whose warm-up ends at `warm_up`.
    pub fn new(config: Option<&Config>, warm_up: Time, graph: &Graph) -> Result<Self, Problem> {
        let mut recorder = Self {
            records: FlowColumns::default(),
            accounts: Breakdowns::default(),
            chains: Chains::default(),
            chained: Vec::new(),
            samples: Samples::default(),
            interval: config.map(|config| config.interval),
            queues: Vec::new(),
            links: Vec::new(),
            flows: config.map_or_else(Vec::new, |config| config.flows.clone()),
            rtt_flows: config.map_or_else(Vec::new, |config| config.rtt_flows.clone()),
            rtts: config.is_some_and(|config| config.rtts).then(Vec::new),
            warm_up,
            active: 0,
        };
        recorder.flows.sort_unstable();
        recorder.flows.dedup();
        let Some(config) = config else { return Ok(recorder) };
        recorder.active = recorder.samples.probe("active_flows".to_owned());
        for (i, name) in config.queues.iter().enumerate() {
            let link =
                find(graph, name).map_err(|problem| problem.within(&format!("queues[{i}]")))?;
            let probe = recorder.samples.probe(format!("queue_bytes {name}"));
            recorder.queues.push((link, probe));
        }
        for (i, name) in config.links.iter().enumerate() {
            let link =
                find(graph, name).map_err(|problem| problem.within(&format!("links[{i}]")))?;
            let probe = recorder.samples.probe(format!("transmitted_bytes {name}"));
            recorder.links.push((link, probe));
        }
        Ok(recorder)
    }

    /// When to sample next.
    pub fn next(&self, now: Time) -> Option<Time> {
        self.interval.map(|interval| now + interval)
    }

    /// Whether round-trip times are counted or kept.
    pub fn wants_rtts(&self) -> bool {
        self.rtts.is_some() || !self.rtt_flows.is_empty()
    }

    /// Counts a round-trip time of a flow of this class, unless it is of the warm-up.
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

    /// What follows a flow's packets, if its round-trip times are to be kept.
    pub fn trace(&mut self, flow: u64) -> Option<Box<Trace>> {
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
        let is_kept = self.rtt_flows.contains(&flow);
        is_kept.then(|| Box::new(Trace::new(probes(&mut self.samples))))
    }

    /// Keeps a round-trip time that a flow's transport was told, and what it is made of.
    pub fn keep_rtt(
        &mut self,
        now: Time,
        probes: Probes,
        told: Duration,
        marked: bool,
        parts: &Parts,
    ) {
        let Parts { exact, forward, reverse, fixed } = *parts;
        let [told, exact, forward, reverse, fixed] =
            [told, exact, forward, reverse, fixed].map(Duration::seconds);
        let values = [told, exact, forward, reverse, fixed, f64::from(u8::from(marked))];
        for (probe, value) in probes.into_iter().zip(values) {
            self.samples.push(now, probe, value);
        }
    }

    /// Takes over what was recorded in another part of the run.
    pub fn absorb(&mut self, other: Self) {
        self.records.append(other.records);
        self.accounts.append(other.accounts);
        self.chains.append(other.chains);
        self.samples.absorb(other.samples, other.active);
        if let (Some(rtts), Some(others)) = (&mut self.rtts, other.rtts) {
            rtts.resize_with(rtts.len().max(others.len()), Histogram::default);
            rtts.iter_mut().zip(&others).for_each(|(own, other)| own.absorb(other));
        }
    }

    /// Nothing more is recorded: puts all in order.
    pub fn close(&mut self) {
        self.records.sort();
        self.accounts.sort();
        self.chains.sort();
        self.samples.sort();
    }

    /// Whether anything is sampled.
    pub fn is_sampling(&self) -> bool {
        self.interval.is_some()
    }
}

fn find(graph: &Graph, name: &str) -> Result<LinkId, Problem> {
    let names: Vec<String> =
        (0..graph.links.len()).map(|link| graph.link_name(link as u32)).collect();
    names.iter().position(|known| known == name).map(|link| link as LinkId).ok_or_else(|| {
        let hint = did_you_mean(name, names.iter().map(String::as_str));
        Problem::new("", format!("there is no link `{name}`{hint} (links are named `from->to`)"))
    })
}
