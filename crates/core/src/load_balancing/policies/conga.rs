//! CONGA: flowlets on the least congested path between two leaves.
//!
//! Source: [conga14] §3. Every port between switches estimates its utilisation. A packet collects the
//! highest of them on its path, the leaf of its target stores that by leaf of the source and uplink, and
//! returns one of its values with each packet of the other direction.

use rustc_hash::FxHashMap;

use crate::base::random::{Random, index_below};
use crate::base::schema::{positive, proper_fraction};
use crate::base::units::{Duration, Time};
use crate::load_balancing::flowlet_table::FlowletTable;
use crate::load_balancing::{
    Feedback, LoadBalancer, LoadBalancerKind, NextHops, Overlay, SwitchInfo, flow_hash,
};
use crate::model::graph::{Graph, Link, LinkId, NodeId};
use crate::model::packet::Packet;

crate::parameters! {
    /// Flowlets on the least congested of all paths between two leaves, CONGA ([conga14]); for networks of
    /// leaves and spines. A spine divides flows among its cables to a leaf by a hash.
    pub struct Config {
        /// Longest gap between packets of a flowlet; 13 ms is CONGA-Flow, in which few flows have gaps.
        pub gap: Duration = Duration::from_micros(500), where positive;
        /// Time constant of the estimated utilisation of a link.
        pub time_constant: Duration = Duration::from_micros(160), where positive;
        /// Share of the estimate that is subtracted at a time, in intervals of this share of
        /// `time_constant`.
        pub decay: f64 = 0.2, where proper_fraction;
        /// Time after which a value that has not been refreshed is forgotten.
        pub ageing: Duration = Duration::from_millis(10), where positive;
    }
}

/// Bits of a congestion metric ([conga14] §3.6).
const BITS: u32 = 3;

impl LoadBalancerKind for Config {
    fn build(&self, switch: &SwitchInfo<'_>, mut random: Random) -> Box<dyn LoadBalancer> {
        let SwitchInfo { graph, links, .. } = *switch;
        let links = links.iter().map(|id| (*id, &graph.links[*id as usize]));
        let to_switches = links.filter(|(_, link)| !graph.nodes[link.to as usize].is_host);
        let estimator = |(id, link): (LinkId, &Link)| {
            let bytes_per_second = link.rate.bps() / 8.0;
            let full = bytes_per_second * self.time_constant.seconds();
            (id, Utilisation { full, bytes: 0.0, decayed_at: Time::ZERO })
        };
        Box::new(Conga {
            config: self.clone(),
            interval: Duration((self.time_constant.0 as f64 * self.decay) as u64).max(Duration(1)),
            flowlets: FlowletTable::with_last_links(self.gap),
            uplinks: to_switches.map(estimator).collect(),
            to_leaf: FxHashMap::default(),
            from_leaf: FxHashMap::default(),
            seed: random.below(u64::MAX),
            random,
        })
    }

    fn uses_overlay(&self) -> bool {
        true
    }

    fn check(&self, graph: &Graph) -> Result<(), String> {
        let is_host = |node: NodeId| graph.nodes[node as usize].is_host;
        let mut has_hosts = vec![false; graph.nodes.len()];
        let mut leaves = FxHashMap::default();
        for link in graph.links.iter().filter(|link| is_host(link.from)) {
            has_hosts[link.to as usize] = true;
            if *leaves.entry(link.from).or_insert(link.to) != link.to {
                let name = &graph.nodes[link.from as usize].name;
                return Err(format!("is for hosts at one leaf each, but `{name}` has several"));
            }
        }
        let between_switches = |link: &&Link| !is_host(link.from) && !is_host(link.to);
        let mut links = graph.links.iter().filter(between_switches);
        if links.any(|link| has_hosts[link.from as usize] == has_hosts[link.to as usize]) {
            return Err("is for networks of leaves with hosts and spines without".to_owned());
        }
        Ok(())
    }
}

/// Estimate of the utilisation of a link ([conga14] §3.2, DRE). As in the simulators of others it counts
/// packets when they are forwarded to the link.
struct Utilisation {
    /// Estimate at full utilisation, in bytes.
    full: f64,
    bytes: f64,
    decayed_at: Time,
}

impl Utilisation {
    /// Applies the decay up to the present.
    fn decay(&mut self, now: Time, interval: Duration, decay: f64) {
        let intervals = now.since(self.decayed_at).0 / interval.0;
        if intervals > 0 {
            self.bytes *= (1.0 - decay).powf(intervals as f64);
            self.decayed_at = self.decayed_at + Duration(intervals * interval.0);
        }
    }

    /// Returns the congestion metric: the utilisation in steps of an eighth.
    fn metric(&self) -> u8 {
        let steps = f64::from(1 << BITS) * self.bytes / self.full;
        steps.min(f64::from((1 << BITS) - 1)) as u8
    }
}

/// Congestion metric of the paths over one uplink.
#[derive(Clone, Copy, Default)]
struct Metric {
    value: u8,
    /// Time of the last refresh; `None` before the first.
    refreshed: Option<Time>,
    /// True if the value has changed since it was last returned.
    is_changed: bool,
}

impl Metric {
    fn is_fresh(&self, now: Time, ageing: Duration) -> bool {
        self.refreshed.is_some_and(|at| now.since(at) <= ageing)
    }

    fn refresh(&mut self, value: u8, now: Time) {
        let is_changed = self.is_changed || self.refreshed.is_none() || self.value != value;
        *self = Self { value, refreshed: Some(now), is_changed };
    }
}

/// Metrics by uplink of another leaf, and the one that was returned last.
#[derive(Default)]
struct FromLeaf {
    metrics: Vec<Metric>,
    returned: usize,
}

/// Returns the element at `index` of a table that grows on demand.
fn entry(table: &mut Vec<Metric>, index: u16) -> &mut Metric {
    let index = usize::from(index);
    if index >= table.len() {
        table.resize(index + 1, Metric::default());
    }
    &mut table[index]
}

/// State of one switch, leaf or spine.
struct Conga {
    config: Config,
    /// Interval of the decay.
    interval: Duration,
    flowlets: FlowletTable,
    /// Links to other switches; the index of an uplink is its tag in overlay headers.
    uplinks: Vec<(LinkId, Utilisation)>,
    /// Metrics of the paths to other leaves, by leaf and own uplink.
    to_leaf: FxHashMap<u32, Vec<Metric>>,
    /// Metrics of the paths from other leaves, by leaf and its uplink.
    from_leaf: FxHashMap<u32, FromLeaf>,
    /// Hash seed, by the seed of the run and the switch.
    seed: u64,
    random: Random,
}

impl Conga {
    fn uplink(&self, link: LinkId) -> usize {
        let found = self.uplinks.iter().position(|(other, _)| *other == link);
        found.unwrap_or_else(|| unreachable!("only switches stand between two leaves"))
    }

    /// Counts a packet that is forwarded to a link. Returns the metric of the link before it.
    fn count(&mut self, uplink: usize, packet: &Packet, now: Time) -> u8 {
        let utilisation = &mut self.uplinks[uplink].1;
        utilisation.decay(now, self.interval, self.config.decay);
        let metric = utilisation.metric();
        utilisation.bytes += f64::from(packet.bytes);
        metric
    }

    /// Chooses the uplink of a packet to another leaf.
    fn choose_uplink(
        &mut self,
        packet: &Packet,
        target: u32,
        now: Time,
        links: &[LinkId],
    ) -> LinkId {
        let Self { config, interval, flowlets, uplinks, to_leaf, random, .. } = self;
        let remote = to_leaf.get(&target).map(Vec::as_slice).unwrap_or_default();
        let mut metric = |link: &LinkId| {
            let index = uplinks.iter().position(|(other, _)| other == link).unwrap_or_default();
            let utilisation = &mut uplinks[index].1;
            utilisation.decay(now, *interval, config.decay);
            let remote = remote.get(index).filter(|metric| metric.is_fresh(now, config.ageing));
            utilisation.metric().max(remote.map_or(0, |metric| metric.value))
        };
        flowlets.link(packet, now, links, |last| {
            let least = links.iter().map(&mut metric).min().unwrap_or_default();
            if let Some(last) = last.filter(|last| metric(last) == least) {
                return last;
            }
            let best = links.iter().filter(|link| metric(link) == least).count();
            let choice = random.below(best as u64) as usize;
            let chosen = links.iter().filter(|link| metric(link) == least).nth(choice);
            chosen.copied().unwrap_or(links[0])
        })
    }

    /// Returns the metric for `leaf` that is to be returned next: of those that have changed, if there are
    /// any, the next in turn.
    fn feedback(&mut self, leaf: u32, now: Time) -> Option<Feedback> {
        let ageing = self.config.ageing;
        let FromLeaf { metrics, returned } = self.from_leaf.get_mut(&leaf)?;
        let turn = || (1..=metrics.len()).map(|step| (*returned + step) % metrics.len());
        let is_fresh = |index: &usize| metrics[*index].is_fresh(now, ageing);
        let changed = turn().filter(is_fresh).find(|index| metrics[*index].is_changed);
        let index = changed.or_else(|| turn().find(is_fresh))?;
        *returned = index;
        metrics[index].is_changed = false;
        Some(Feedback { uplink: index as u16, metric: metrics[index].value })
    }

    /// Stores what a packet from another leaf reports.
    fn learn(&mut self, overlay: &Overlay, now: Time) {
        let from = self.from_leaf.entry(overlay.source).or_default();
        entry(&mut from.metrics, overlay.uplink).refresh(overlay.congestion, now);
        if let Some(Feedback { uplink, metric }) = overlay.feedback {
            let to = self.to_leaf.entry(overlay.source).or_default();
            entry(to, uplink).refresh(metric, now);
        }
    }
}

impl LoadBalancer for Conga {
    fn choose(&mut self, packet: &Packet, next_hops: &mut NextHops<'_>) -> usize {
        let (now, links) = (next_hops.now, next_hops.links);
        let Some(overlay) = &mut next_hops.overlay else { return 0 };
        if next_hops.is_last {
            self.learn(overlay, now);
            return 0;
        }
        if next_hops.is_first {
            let link = self.choose_uplink(packet, overlay.target, now, links);
            let uplink = self.uplink(link);
            self.count(uplink, packet, now);
            overlay.uplink = uplink as u16;
            overlay.feedback = self.feedback(overlay.target, now);
            return links.iter().position(|other| *other == link).unwrap_or_default();
        }
        let hash = flow_hash(packet, self.seed);
        let choice = index_below(hash, links.len() as u64) as usize;
        let metric = self.count(self.uplink(links[choice]), packet, now);
        overlay.congestion = overlay.congestion.max(metric);
        choice
    }
}
