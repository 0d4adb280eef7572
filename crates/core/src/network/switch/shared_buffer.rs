//! Shared buffer of a switch: dynamic thresholds for its ports, and pause frames (PFC) for its neighbours.
//!
//! PFC counts packets as the common implementation does ([hpcc19], its simulator): every lane, which is a
//! traffic class of an ingress link, has a small reserve, then draws on the shared pool up to a threshold
//! that shrinks as the pool fills, and beyond the threshold on headroom of its own, for packets that arrive
//! after the pause frame is sent. A packet that arrives may pause its lane, and a packet that departs may
//! resume it.

use super::config::{Config, Pause};
use super::traffic_classes::{LaneId, Lanes, Number, TrafficClasses};
use crate::base::prefetch::prefetch_at;
use crate::base::schema::Problem;
use crate::base::units::{Bytes, Duration};
use crate::model::graph::{Graph, LinkId, NodeId};
use crate::model::packet::Format;

/// Counters of one lane.
#[derive(Clone, Debug, Default)]
struct Ingress {
    /// Index of the receiving switch.
    switch: u32,
    /// If true, the lane is lossless: paused before it is full.
    may_pause: bool,
    is_paused: bool,
    /// Binary logarithm of the lane's alpha over that of the configuration.
    alpha_shift: u8,
    /// Bytes that arrived by the lane and have not left the switch.
    held: u64,
    /// Bytes of `held` in headroom.
    in_headroom: u64,
    headroom: u64,
}

const _: () = assert!(size_of::<Ingress>() <= 32, "two fit a cache line (docs/performance.md)");

impl Ingress {
    /// Returns the bytes in the shared pool.
    fn pooled(&self, reserve: u64) -> u64 {
        (self.held - self.in_headroom).saturating_sub(reserve)
    }
}

/// Counters of one switch.
#[derive(Clone, Debug, Default)]
struct Switch {
    /// Memory that ports or lanes share: the buffer less reserves and headrooms.
    pool: u64,
    /// Bytes in the pool.
    taken: u64,
    /// Threshold of a lane or a port while half of the pool is free.
    fair: u64,
    /// If true, departures are counted at once.
    is_watched: bool,
    /// Value of `taken` at which a watched switch is checked again.
    check_below: u64,
    /// Packets of lossless lanes that did not fit their headroom.
    overruns: u64,
    /// Links that the switch transmits on.
    ports: Vec<LinkId>,
}

/// Shared buffers of all switches of a network.
///
/// While half of a switch's pool is free and each lane or port is below its threshold then, the switch drops
/// and pauses nothing, and exact counters are not needed. So the counters of such a switch include arrivals
/// but not departures: they are upper bounds. When the upper bounds exceed these limits, the waiting packets
/// are counted. If they fill enough of the buffer, the switch is *watched*, with exact counters, until it has
/// drained. That avoids an event for each waiting packet (docs/performance.md).
#[derive(Clone)]
pub struct Buffers {
    alpha: Option<f64>,
    pause: Option<Pause>,
    reserve: u64,
    switches: Vec<Switch>,
    lanes: Lanes,
    /// By [`LaneId`].
    ingress: Vec<Ingress>,
}

impl Buffers {
    /// Returns empty buffers for the switches of `graph`, for packets of `format` in the classes of
    /// `traffic`; `None` without a shared buffer.
    pub fn new(
        config: &Config,
        graph: &Graph,
        format: &Format,
        traffic: &TrafficClasses,
    ) -> Result<Option<Self>, Problem> {
        let Some(size) = config.shared_buffer else { return Ok(None) };
        let packet = format.longest();
        let pause = config.pause.as_ref();
        let reserve = pause.map_or(0, |pause| pause.reserve.0);
        let is_paused = |number: &Number| {
            pause.is_some_and(|pause| pause.classes.as_ref().is_none_or(|c| c.contains(number)))
        };
        let mut named = pause.iter().flat_map(|pause| pause.classes.iter().flatten());
        if let Some(number) = named.find(|number| !traffic.numbers.contains(number)) {
            let message = format!("no flow is in traffic class {number} ({})", traffic.list());
            return Err(Problem::new("pause.classes", message));
        }
        let may_pause: Vec<bool> = traffic.numbers.iter().map(is_paused).collect();
        let links = 0..graph.links.len() as LinkId;
        let from_hosts = links.filter(|link| graph.is_from_host(&graph.links[*link as usize]));
        let host_rate = from_hosts.map(|link| graph.nominal_rate(link)).min().unwrap_or_default();
        let lossless = may_pause.iter().filter(|may_pause| **may_pause).count();
        // Reserves and headrooms of each node.
        let mut reserved = vec![0_u64; graph.nodes.len()];
        let mut ingress = Vec::with_capacity(graph.links.len() * may_pause.len());
        for (id, link) in graph.links.iter().enumerate() {
            let (switch, back) = (link.to as usize, &graph.links[id ^ 1]);
            let longest = pause.map_or(0, |pause| pause.headroom(lossless, link, back, format));
            let between_switches = pause.filter(|_| !graph.is_from_host(link));
            let alpha_shift = between_switches
                .map_or(0, |pause| pause.alpha_shift(graph.nominal_rate(id as LinkId), host_rate));
            for may_pause in &may_pause {
                let headroom = if *may_pause { longest } else { 0 };
                if !graph.nodes[switch].is_host {
                    reserved[switch] =
                        reserved[switch].saturating_add(headroom).saturating_add(reserve);
                }
                let (switch, may_pause) = (link.to, *may_pause);
                let lane = Ingress::default();
                ingress.push(Ingress { switch, may_pause, alpha_shift, headroom, ..lane });
            }
        }
        let fullest =
            (0..reserved.len()).rev().max_by_key(|switch| reserved[*switch]).unwrap_or_default();
        if size.0.checked_sub(reserved[fullest]).is_none_or(|left| left < packet.0) {
            let (name, taken) = (&graph.nodes[fullest].name, Bytes(reserved[fullest]));
            let message = if pause.is_some() {
                format!(
                    "{size} is too small for switch `{name}`: the reserves and headrooms of its \
                     ports take {taken}, which must leave room for a packet of {packet}"
                )
            } else {
                format!("must hold at least one packet, which is {packet} with headers")
            };
            return Err(Problem::new("shared_buffer", message));
        }
        let alpha = pause.map(|pause| pause.alpha).or(config.alpha);
        let switch = |reserved: &u64| {
            let pool = size.0 - reserved;
            let fair = alpha.map_or(u64::MAX, |alpha| threshold(alpha, pool / 2));
            Switch { pool, fair, ..Switch::default() }
        };
        let mut switches: Vec<Switch> = reserved.iter().map(switch).collect();
        for (id, link) in (0..).zip(&graph.links) {
            switches[link.from as usize].ports.push(id);
        }
        Ok(Some(Self {
            alpha: config.alpha,
            pause: config.pause.clone(),
            reserve,
            switches,
            lanes: traffic.lanes,
            ingress,
        }))
    }

    /// Returns the index of the switch at the end of `lane`.
    fn switch(&self, lane: LaneId) -> usize {
        self.ingress[lane as usize].switch as usize
    }

    /// Returns the lanes that lead to a switch.
    fn lanes_to(&self, switch: &Switch) -> impl Iterator<Item = LaneId> {
        let lanes = self.lanes;
        switch.ports.iter().flat_map(move |port| lanes.of(*port ^ 1))
    }

    /// True if the switch at the end of `lane` is watched.
    pub fn is_watched(&self, lane: LaneId) -> bool {
        self.switches[self.switch(lane)].is_watched
    }

    /// Returns the links on which the switch at the end of `lane` transmits.
    pub fn ports(&self, lane: LaneId) -> &[LinkId] {
        &self.switches[self.switch(lane)].ports
    }

    /// True if half of the pool would be free and no threshold be exceeded with a packet of `bytes` that
    /// arrived by `lane` and goes to a port where `queued` bytes wait, on top of the counters multiplied by
    /// `times`.
    fn is_at_ease(
        &self,
        lane: LaneId,
        bytes: u16,
        queued: impl FnOnce() -> u64,
        times: u64,
    ) -> bool {
        let (ingress, bytes) = (&self.ingress[lane as usize], u64::from(bytes));
        let switch = &self.switches[ingress.switch as usize];
        let load = if self.pause.is_some() {
            (times * ingress.held + bytes).saturating_sub(self.reserve)
        } else if self.alpha.is_some() {
            queued() + bytes
        } else {
            0
        };
        let fair = switch.fair.saturating_mul(1 << ingress.alpha_shift);
        2 * (times * switch.taken + bytes) <= switch.pool && load < fair
    }

    /// Reads the counters of a lane ahead.
    pub fn read_ahead(&self, lane: LaneId) {
        prefetch_at(&self.ingress, lane as usize);
    }

    /// Admits a packet to a switch that is not watched; `false` if that needs exact counters.
    #[inline]
    pub fn admit_unwatched(
        &mut self,
        lane: LaneId,
        bytes: u16,
        queued: impl FnOnce() -> u64,
    ) -> bool {
        let is_at_ease = self.is_at_ease(lane, bytes, queued, 1);
        if is_at_ease {
            self.hold(lane, bytes);
        }
        is_at_ease
    }

    /// Resets the counters of the switch at the end of `lane`, to count its packets.
    pub fn forget(&mut self, lane: LaneId) {
        let number = self.switch(lane);
        let switch = &mut self.switches[number];
        switch.taken = 0;
        for lane in switch.ports.iter().flat_map(|port| self.lanes.of(*port ^ 1)) {
            self.ingress[lane as usize].held = 0;
        }
    }

    /// Counts a packet of `bytes` that arrived by `lane`, outside of headroom.
    pub fn hold(&mut self, lane: LaneId, bytes: u16) {
        let ingress = &mut self.ingress[lane as usize];
        let before = ingress.pooled(self.reserve);
        ingress.held += u64::from(bytes);
        self.switches[ingress.switch as usize].taken += ingress.pooled(self.reserve) - before;
    }

    /// Decides, after the packets of the switch at the end of `lane` were counted, if the switch must be
    /// watched: if it would not be at ease with twice its packets and a packet of `bytes`.
    pub fn watch(&mut self, lane: LaneId, bytes: u16, queued: u64) -> bool {
        let is_watched = !self.is_at_ease(lane, bytes, || queued, 2);
        let number = self.switch(lane);
        let switch = &mut self.switches[number];
        switch.is_watched = is_watched;
        switch.check_below = switch.taken / 2;
        is_watched
    }

    /// Decides, after a packet that arrived by `lane` has left its watched switch, if the switch need not be
    /// watched any more.
    pub fn relax(&mut self, lane: LaneId) -> bool {
        let number = self.switch(lane);
        let switch = &self.switches[number];
        if switch.taken > switch.check_below {
            return false;
        }
        let is_calm = |lane: LaneId| {
            let ingress = &self.ingress[lane as usize];
            !ingress.is_paused && ingress.in_headroom == 0 && self.is_at_ease(lane, 0, || 0, 2)
        };
        let is_calm = self.lanes_to(switch).all(is_calm);
        let switch = &mut self.switches[number];
        switch.check_below = switch.taken / 2;
        switch.is_watched = !is_calm;
        is_calm
    }

    /// Admits a packet of `bytes` that arrived by `lane` and goes to a port where `queued` bytes wait to a
    /// watched switch; `false` if it must be dropped.
    pub fn admit(&mut self, lane: LaneId, bytes: u16, queued: impl FnOnce() -> u64) -> bool {
        let ingress = &mut self.ingress[lane as usize];
        let switch = &mut self.switches[ingress.switch as usize];
        let (free, size) = (switch.pool - switch.taken, u64::from(bytes));
        if let Some(pause) = &self.pause {
            let before = ingress.pooled(self.reserve);
            let more =
                (ingress.held - ingress.in_headroom + size).saturating_sub(self.reserve) - before;
            let threshold = threshold(pause.lane_alpha(ingress.alpha_shift), free);
            if more > 0 && (before + more > threshold || more > free) {
                if ingress.in_headroom + size > ingress.headroom {
                    switch.overruns += u64::from(ingress.may_pause);
                    return false;
                }
                ingress.in_headroom += size;
                ingress.held += size;
                return true;
            }
        } else if size > free
            || self.alpha.is_some_and(|alpha| queued() + size > threshold(alpha, free))
        {
            return false;
        }
        self.hold(lane, bytes);
        true
    }

    /// Releases the memory of a packet that has left a watched switch; headroom first.
    pub fn release(&mut self, lane: LaneId, bytes: impl Into<u64>) {
        let bytes = bytes.into();
        let ingress = &mut self.ingress[lane as usize];
        let switch = &mut self.switches[ingress.switch as usize];
        let before = ingress.pooled(self.reserve);
        let from_headroom = ingress.in_headroom.min(bytes);
        ingress.in_headroom -= from_headroom;
        ingress.held -= bytes;
        switch.taken -= before - ingress.pooled(self.reserve);
    }

    /// Decides, after a packet has arrived by `lane`, if the lane must be paused.
    pub fn pauses(&mut self, lane: LaneId) -> bool {
        let Some((pooled, threshold)) = self.pooled(lane) else { return false };
        let ingress = &mut self.ingress[lane as usize];
        let is_full = ingress.in_headroom > 0 || (pooled > 0 && pooled >= threshold);
        let begins = is_full && ingress.may_pause && !ingress.is_paused;
        ingress.is_paused |= begins;
        begins
    }

    /// Decides, after a packet that arrived by `lane` has left, if the lane must be resumed.
    pub fn resumes(&mut self, lane: LaneId) -> bool {
        let Some((pooled, threshold)) = self.pooled(lane) else { return false };
        let offset = self.pause.as_ref().map_or(0, |pause| pause.resume_offset.0);
        let ingress = &mut self.ingress[lane as usize];
        let is_low =
            ingress.in_headroom == 0 && (pooled == 0 || pooled.saturating_add(offset) <= threshold);
        let ends = is_low && ingress.is_paused;
        ingress.is_paused &= !ends;
        ends
    }

    /// Ends the pause of `lane` without a resume frame, since its link has failed.
    pub fn forget_pause(&mut self, lane: LaneId) {
        self.ingress[lane as usize].is_paused = false;
    }

    /// Returns the bytes of `lane` in the shared pool and its pause threshold; `None` without pause frames.
    fn pooled(&self, lane: LaneId) -> Option<(u64, u64)> {
        let pause = self.pause.as_ref()?;
        let ingress = &self.ingress[lane as usize];
        let switch = &self.switches[ingress.switch as usize];
        let alpha = pause.lane_alpha(ingress.alpha_shift);
        let threshold = threshold(alpha, switch.pool - switch.taken);
        Some((ingress.pooled(self.reserve), threshold))
    }

    /// True if the last frame for `lane` was a pause frame.
    pub fn is_paused(&self, lane: LaneId) -> bool {
        self.ingress[lane as usize].is_paused
    }

    /// Returns the duration of a pause after which the watchdog looks for deadlocks, if it is on.
    pub fn watchdog(&self) -> Option<Duration> {
        self.pause.as_ref()?.watchdog
    }

    /// Returns the paused lanes that would be resumed if all packets left but `kept` bytes of each
    /// lane. Lanes of which no packet leaves stay paused.
    pub fn would_resume(&self, kept: &[u64]) -> Vec<LaneId> {
        let mut rest = self.clone();
        let leaves = self.ingress.iter().zip(kept).map(|(ingress, kept)| ingress.held - kept);
        let leaves: Vec<(LaneId, u64)> =
            (0..).zip(leaves).filter(|(_, bytes)| *bytes > 0).collect();
        for (lane, bytes) in &leaves {
            rest.release(*lane, *bytes);
        }
        let lanes = leaves.into_iter().map(|(lane, _)| lane);
        lanes.filter(|lane| rest.resumes(*lane)).collect()
    }

    /// Returns the switch that has dropped the most packets of lossless lanes, and their number.
    pub fn most_overruns(&self) -> Option<(NodeId, u64)> {
        let overruns = self.switches.iter().map(|switch| switch.overruns);
        (0..).zip(overruns).filter(|(_, count)| *count > 0).max_by_key(|(_, count)| *count)
    }

    /// Exchanges the counters of the switches that `is_other` selects with another partition.
    pub fn swap(&mut self, other: &mut Self, is_other: impl Fn(NodeId) -> bool) {
        for (own, other) in self.ingress.iter_mut().zip(&mut other.ingress) {
            if is_other(own.switch) {
                std::mem::swap(own, other);
            }
        }
        for (node, (own, other)) in (0..).zip(self.switches.iter_mut().zip(&mut other.switches)) {
            if is_other(node) {
                std::mem::swap(own, other);
            }
        }
    }

    /// Asserts that the counters equal the waiting bytes of each lane at watched switches, and are upper
    /// bounds at the others.
    pub fn assert_hold(&self, waiting: &[u64]) {
        for (ingress, waiting) in self.ingress.iter().zip(waiting) {
            let is_exact = self.switches[ingress.switch as usize].is_watched;
            let adds_up =
                if is_exact { *waiting == ingress.held } else { *waiting <= ingress.held };
            assert!(adds_up, "a buffer's counters differ from its queues: {ingress:?}, {waiting}");
        }
        for switch in &self.switches {
            let lanes = self.lanes_to(switch).map(|lane| &self.ingress[lane as usize]);
            let pooled: u64 = lanes.map(|ingress| ingress.pooled(self.reserve)).sum();
            assert_eq!(pooled, switch.taken, "the lanes of a shared pool do not add up");
        }
    }
}

fn threshold(alpha: f64, free: u64) -> u64 {
    (alpha * free as f64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::{Parameter, defaults};
    use crate::topology;
    use serde_json::json;
    use std::collections::BTreeMap;

    #[test]
    fn a_paused_lane_would_resume_only_if_enough_of_its_bytes_left() {
        let star = json!({ "kind": "star", "hosts": 2 });
        let graph = topology::Config::read(&star).unwrap().graph(1).unwrap();
        let config = json!({ "shared_buffer": "100 KB", "pause": {} });
        let config = Config::read(&config).unwrap();
        let traffic = TrafficClasses::new(&BTreeMap::new(), &["all".to_owned()]);
        let format = Format { payload: Bytes(960), ..defaults() };
        let mut buffers = Buffers::new(&config, &graph, &format, &traffic).unwrap().unwrap();
        let link =
            (0..4).find(|link| !graph.nodes[graph.links[*link].to as usize].is_host).unwrap();
        let (mut held, none) = (0, Vec::<LaneId>::new());
        while !buffers.pauses(link as LaneId) {
            assert!(buffers.admit(link as LaneId, 1_000, || 0));
            held += 1_000;
        }
        let kept = |bytes: u64| {
            let mut kept = [0; 4];
            kept[link] = bytes;
            kept
        };
        assert!(buffers.is_paused(link as LaneId));
        assert_eq!(buffers.would_resume(&kept(held)), none);
        assert_eq!(buffers.would_resume(&kept(held - 1_000)), none);
        assert_eq!(buffers.would_resume(&kept(held - 5_000)), [link as LaneId]);
        assert_eq!(buffers.would_resume(&kept(0)), [link as LaneId]);
        assert!(buffers.is_paused(link as LaneId), "the buffer itself is unchanged");
    }

    #[test]
    fn a_faster_link_is_paused_later_if_alpha_follows_the_rate() {
        // A host's link of 10 Gb/s, and one of 40 Gb/s between switches. A lane is paused with x bytes if x
        // reaches alpha times the rest of the pool: with alpha / (1 + alpha) of 80 KB.
        let dumbbell = json!({
            "kind": "dumbbell", "senders": 1, "receivers": 1, "bottleneck_rate": "40 Gbps",
        });
        let paused_at = |by_rate: bool, link: &str| paused_at(&dumbbell, by_rate, link);
        assert_eq!(paused_at(false, "sender0->left"), 8_890);
        assert_eq!(paused_at(false, "right->left"), 8_890);
        assert_eq!(paused_at(true, "sender0->left"), 8_890);
        // 1/2 instead of 1/8.
        assert_eq!(paused_at(true, "right->left"), 26_670);
    }

    #[test]
    fn links_of_hosts_are_paused_alike_beside_a_slower_host() {
        let text = "from,to,rate,delay\nfast,s,40 Gbps,1 us\nslow,s,10 Gbps,1 us\n";
        let star = json!({ "kind": "graph", "file": { "name": "star.csv", "text": text } });
        assert_eq!(paused_at(&star, true, "fast->s"), paused_at(&star, true, "slow->s"));
    }

    /// Returns the bytes that arrive by a link of a topology until its switch pauses it.
    fn paused_at(topology: &serde_json::Value, by_rate: bool, link: &str) -> u64 {
        let graph = topology::Config::read(topology).unwrap().graph(1).unwrap();
        let traffic = TrafficClasses::new(&BTreeMap::new(), &["all".to_owned()]);
        let pause = json!({ "alpha_by_rate": by_rate, "reserve": "0 B", "headroom": "10 KB" });
        let config = json!({ "shared_buffer": "100 KB", "pause": pause });
        let config = Config::read(&config).unwrap();
        let format = Format { payload: Bytes(960), ..defaults() };
        let mut buffers = Buffers::new(&config, &graph, &format, &traffic).unwrap().unwrap();
        let mut ids = 0..graph.links.len() as LinkId;
        let link = ids.find(|id| graph.link_name(*id) == link).unwrap();
        let mut held = 0;
        while !buffers.pauses(link as LaneId) {
            assert!(buffers.admit(link as LaneId, 10, || 0));
            held += 10;
        }
        held
    }
}
