//! A switch's shared buffer: dynamic thresholds for its ports, and pause frames (PFC) for its
//! neighbours.
//!
//! The accounting of PFC follows the common implementation ([hpcc19], its simulator): every lane, which
//! is a traffic class of an ingress link, has a small reserve, then draws on the shared pool up to a
//! threshold that shrinks as the pool fills, and beyond it on headroom of its own, which is for what is
//! still on its way when the pause frame leaves. A packet that comes may pause its lane, and one that
//! leaves may resume it.

use super::traffic_classes::{LaneId, Lanes, Number, TrafficClasses};
use crate::base::schema::{Problem, positive};
use crate::base::units::{Bytes, Duration};
use crate::model::graph::{Graph, Link, LinkId, NodeId};

crate::parameters! {
    /// How switches buffer and whether they pause their neighbours.
    pub struct Config {
        /// Whether ACKs and other control packets pass data in strict priority. Always so with
        /// `pause`.
        pub control_priority: bool = false;
        /// Memory that all ports of a switch share; none leaves each port to its queue's own
        /// capacity.
        pub shared_buffer: Option<Bytes> = None;
        /// A port's queue may hold this times what is free of the shared buffer (Choudhury and
        /// Hahne 1998); none lets any port take all of it.
        pub alpha: Option<f64> = None;
        /// Pause frames (PFC, IEEE 802.1Qbb) instead of drops; needs a shared buffer.
        pub pause: Option<Pause> = None;
    }
    check |switch| {
        if switch.pause.is_some() && switch.shared_buffer.is_none() {
            return Err(Problem::new("shared_buffer", "missing; pause frames need a shared buffer"));
        }
        if switch.alpha.is_some() && switch.pause.is_some() {
            return Err(Problem::new("alpha", "does not go with `pause`, which has an alpha of its own"));
        }
        if switch.alpha.is_some() && switch.shared_buffer.is_none() {
            return Err(Problem::new("shared_buffer", "missing; `alpha` is a share of it"));
        }
        if switch.alpha.is_some_and(|alpha| alpha <= 0.0) {
            return Err(Problem::new("alpha", "must be above zero"));
        }
        if let (Some(size), Some(pause)) = (switch.shared_buffer, &switch.pause) {
            let parts =
                [("pause.headroom", pause.headroom), ("pause.reserve", Some(pause.reserve))];
            for (field, part) in parts {
                if let Some(part) = part.filter(|part| *part > size) {
                    let message = format!("must be below shared_buffer, which is {size}, not {part}");
                    return Err(Problem::new(field, message));
                }
            }
        }
        Ok(())
    }
}

crate::parameters! {
    /// Pause frames (PFC).
    pub struct Pause {
        /// An ingress link is paused when it holds this times what is free of the shared pool
        /// ([hpcc19]: 1/8). With several `traffic_classes` this goes for each class of a link, as do
        /// `reserve` and `headroom`.
        pub alpha: f64 = 0.125, where positive;
        /// Set aside for each ingress link before it draws on the pool ([hpcc19]: 4 KB).
        pub reserve: Bytes = Bytes(4_096);
        /// Set aside for each ingress link after it is paused. None computes what can arrive at line
        /// rate: the packet that finds no room, what comes while the frame waits for the packet before
        /// it and for a frame of each other class, is transmitted, travels and is obeyed, what is on its
        /// way then, and the packet that the neighbour has just begun.
        pub headroom: Option<Bytes> = None;
        /// The link goes on when it is this far below the threshold ([hpcc19]: 3 KB).
        pub resume_offset: Bytes = Bytes(3_072);
        /// The traffic classes that are paused; of others is dropped what finds no room below the
        /// threshold. None: all.
        pub classes: Option<Vec<Number>> = None, where |classes| {
            let is_empty = classes.as_ref().is_some_and(Vec::is_empty);
            if is_empty { Err("at least one traffic class, or left out") } else { Ok(()) }
        };
        /// How long the neighbour takes to obey a pause frame, for the computed headroom only.
        pub reaction: Duration = Duration::ZERO;
        /// A run ends when it finds a deadlock among links of which one has been paused for this long
        /// without a break, and the summary warns of pauses that took longer; none neither looks for
        /// deadlocks before the end nor warns.
        pub watchdog: Option<Duration> = Some(Duration::from_millis(10)), where |watchdog| {
            // Switches look as often as this lasts, which must not be all the time.
            let is_long = watchdog.is_none_or(|watchdog| watchdog >= Duration::from_micros(1));
            if is_long { Ok(()) } else { Err("1 us or more") }
        };
    }
}

/// Length of a pause frame on the wire (IEEE 802.3).
pub const PAUSE_FRAME: Bytes = Bytes(64);

impl Pause {
    /// Headroom of one of so many lossless lanes of a link, whose cable leads back by `back`, for packets of
    /// up to `packet`.
    fn headroom(&self, lanes: usize, link: &Link, back: &Link, packet: Bytes) -> u64 {
        let computed = || {
            let frames = lanes as u64 * PAUSE_FRAME.0;
            let frame = back.rate.transmit(Bytes(packet.0 + frames));
            let spans = [frame, back.longest_delay(), self.reaction, link.longest_delay()];
            let late = spans.iter().fold(0, |sum: u64, span| sum.saturating_add(span.0));
            link.rate.carries(Duration(late)).0.saturating_add(2 * packet.0)
        };
        self.headroom.map_or_else(computed, |headroom| headroom.0)
    }
}

/// The account of one lane.
#[derive(Clone, Debug, Default)]
struct Ingress {
    /// Index of the switch that receives from the lane.
    switch: u32,
    /// Whether it is lossless: paused before it is full.
    may_pause: bool,
    is_paused: bool,
    /// All bytes that came by the lane and have not left the switch.
    held: u64,
    /// Those of them in headroom.
    in_headroom: u64,
    headroom: u64,
}

const _: () = assert!(size_of::<Ingress>() <= 32, "two fit a cache line (docs/performance.md)");

impl Ingress {
    /// Bytes in the shared pool.
    fn pooled(&self, reserve: u64) -> u64 {
        (self.held - self.in_headroom).saturating_sub(reserve)
    }
}

/// The account of one switch.
#[derive(Clone, Debug, Default)]
struct Switch {
    /// What ports or lanes share: the buffer less reserves and headrooms.
    pool: u64,
    /// How much of it is taken.
    taken: u64,
    /// What a lane may hold, or a port queue, while half of the pool is free.
    fair: u64,
    /// Whether what leaves is taken off the accounts at once.
    is_watched: bool,
    /// A watched switch is looked at again when no more than this is taken.
    look_below: u64,
    /// The links that lead away from it.
    ports: Vec<LinkId>,
}

/// The buffers of all switches of a network.
///
/// While half of a switch's pool is free and no lane or port has more than it may have then, nothing is
/// dropped or paused there, and nobody needs to know what is in the buffer exactly. So what comes is put on
/// the accounts of such a switch, and what leaves stays there: they say the most that there can be. Only when
/// that would be too much, what really waits is counted; and if it is much, the switch is *watched*, with
/// accounts that are exact, until little is left. That spares an event for each packet that waits
/// (docs/performance.md).
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
    /// Empty buffers for the switches of `graph`, for packets of up to `packet` on the wire in the classes
    /// of `traffic`; `None` if they share nothing.
    pub fn new(
        config: &Config,
        graph: &Graph,
        packet: Bytes,
        traffic: &TrafficClasses,
    ) -> Result<Option<Self>, Problem> {
        let Some(size) = config.shared_buffer else { return Ok(None) };
        let pause = config.pause.as_ref();
        let reserve = pause.map_or(0, |pause| pause.reserve.0);
        let is_paused = |number: &Number| {
            pause.is_some_and(|pause| pause.classes.as_ref().is_none_or(|c| c.contains(number)))
        };
        let mut named = pause.iter().flat_map(|pause| pause.classes.iter().flatten());
        if let Some(number) = named.find(|number| !traffic.numbers.contains(number)) {
            let used: Vec<String> = traffic.numbers.iter().map(Number::to_string).collect();
            let message = format!("no flow is in traffic class {number} ({})", used.join(", "));
            return Err(Problem::new("pause.classes", message));
        }
        let may_pause: Vec<bool> = traffic.numbers.iter().map(is_paused).collect();
        let lossless = may_pause.iter().filter(|may_pause| **may_pause).count();
        // What is set aside at each node.
        let mut aside = vec![0_u64; graph.nodes.len()];
        let mut ingress = Vec::with_capacity(graph.links.len() * may_pause.len());
        for (id, link) in graph.links.iter().enumerate() {
            let (switch, back) = (link.to as usize, &graph.links[id ^ 1]);
            let most = pause.map_or(0, |pause| pause.headroom(lossless, link, back, packet));
            for may_pause in &may_pause {
                let headroom = if *may_pause { most } else { 0 };
                if !graph.nodes[switch].is_host {
                    aside[switch] = aside[switch].saturating_add(headroom).saturating_add(reserve);
                }
                let (switch, may_pause) = (link.to, *may_pause);
                ingress.push(Ingress { switch, may_pause, headroom, ..Ingress::default() });
            }
        }
        let most = (0..aside.len()).rev().max_by_key(|switch| aside[*switch]).unwrap_or_default();
        if size.0.checked_sub(aside[most]).is_none_or(|left| left < packet.0) {
            let (name, taken) = (&graph.nodes[most].name, Bytes(aside[most]));
            let message = if pause.is_some() {
                format!(
                    "{size} is too small for switch `{name}`: the reserves and headrooms of its \
                     ports take {taken}, which must leave room for a packet of {packet}"
                )
            } else {
                format!("must hold at least one packet, which is {packet} on the wire")
            };
            return Err(Problem::new("shared_buffer", message));
        }
        let alpha = pause.map(|pause| pause.alpha).or(config.alpha);
        let switch = |aside: &u64| {
            let pool = size.0 - aside;
            let fair = alpha.map_or(u64::MAX, |alpha| threshold(alpha, pool / 2));
            Switch { pool, fair, ..Switch::default() }
        };
        let mut switches: Vec<Switch> = aside.iter().map(switch).collect();
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

    /// Index of the switch at the end of `lane`.
    fn switch(&self, lane: LaneId) -> usize {
        self.ingress[lane as usize].switch as usize
    }

    /// The lanes that lead to a switch.
    fn lanes_to(&self, switch: &Switch) -> impl Iterator<Item = LaneId> {
        let lanes = self.lanes;
        switch.ports.iter().flat_map(move |port| lanes.of(*port ^ 1))
    }

    /// Whether the switch at the end of `lane` is watched.
    pub fn is_watched(&self, lane: LaneId) -> bool {
        self.switches[self.switch(lane)].is_watched
    }

    /// The links that lead away from the switch at the end of `lane`.
    pub fn ports(&self, lane: LaneId) -> &[LinkId] {
        &self.switches[self.switch(lane)].ports
    }

    /// Whether half of the pool would be free, and nobody have more than its share then, with a packet of
    /// `bytes` that came by `lane` and goes to a port where `queued` bytes wait, and `times` what is there.
    fn is_at_ease(
        &self,
        lane: LaneId,
        bytes: u16,
        queued: impl FnOnce() -> u64,
        times: u64,
    ) -> bool {
        let (ingress, bytes) = (&self.ingress[lane as usize], u64::from(bytes));
        let switch = &self.switches[ingress.switch as usize];
        let has = if self.pause.is_some() {
            (times * ingress.held + bytes).saturating_sub(self.reserve)
        } else if self.alpha.is_some() {
            queued() + bytes
        } else {
            0
        };
        2 * (times * switch.taken + bytes) <= switch.pool && has < switch.fair
    }

    /// Finds room at a switch that is not watched; `false` if nobody can tell without counting.
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

    /// Forgets what the switch at the end of `lane` holds, to count it anew.
    pub fn forget(&mut self, lane: LaneId) {
        let number = self.switch(lane);
        let switch = &mut self.switches[number];
        switch.taken = 0;
        for lane in switch.ports.iter().flat_map(|port| self.lanes.of(*port ^ 1)) {
            self.ingress[lane as usize].held = 0;
        }
    }

    /// Puts a packet of `bytes` that came by `lane` on the accounts, outside of headroom.
    pub fn hold(&mut self, lane: LaneId, bytes: u16) {
        let ingress = &mut self.ingress[lane as usize];
        let before = ingress.pooled(self.reserve);
        ingress.held += u64::from(bytes);
        self.switches[ingress.switch as usize].taken += ingress.pooled(self.reserve) - before;
    }

    /// After the switch at the end of `lane` was counted: whether it is to be watched, because a packet of
    /// `bytes` that came by it would find less than half of the room left.
    pub fn watch(&mut self, lane: LaneId, bytes: u16, queued: u64) -> bool {
        let is_watched = !self.is_at_ease(lane, bytes, || queued, 2);
        let number = self.switch(lane);
        let switch = &mut self.switches[number];
        switch.is_watched = is_watched;
        switch.look_below = switch.taken / 2;
        is_watched
    }

    /// After a packet that came by `lane` has left its watched switch: whether the switch needs no watching
    /// any more.
    pub fn relax(&mut self, lane: LaneId) -> bool {
        let number = self.switch(lane);
        let switch = &self.switches[number];
        if switch.taken > switch.look_below {
            return false;
        }
        let is_calm = |lane: LaneId| {
            let ingress = &self.ingress[lane as usize];
            !ingress.is_paused && ingress.in_headroom == 0 && self.is_at_ease(lane, 0, || 0, 2)
        };
        let is_calm = self.lanes_to(switch).all(is_calm);
        let switch = &mut self.switches[number];
        switch.look_below = switch.taken / 2;
        switch.is_watched = !is_calm;
        is_calm
    }

    /// Finds room at a watched switch for a packet of `bytes` that came by `lane` and goes to a port where
    /// `queued` bytes wait; `false` if there is none.
    pub fn admit(&mut self, lane: LaneId, bytes: u16, queued: impl FnOnce() -> u64) -> bool {
        let ingress = &mut self.ingress[lane as usize];
        let switch = &self.switches[ingress.switch as usize];
        let (free, size) = (switch.pool - switch.taken, u64::from(bytes));
        if let Some(pause) = &self.pause {
            let before = ingress.pooled(self.reserve);
            let more =
                (ingress.held - ingress.in_headroom + size).saturating_sub(self.reserve) - before;
            if more > 0 && (before + more > threshold(pause.alpha, free) || more > free) {
                if ingress.in_headroom + size > ingress.headroom {
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

    /// Frees the room of a packet that has left a watched switch; headroom first.
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

    /// Whether to tell the neighbour at the other end of `lane` to pause, after a packet has come by it.
    pub fn pauses(&mut self, lane: LaneId) -> bool {
        let Some((pooled, threshold)) = self.pooled(lane) else { return false };
        let ingress = &mut self.ingress[lane as usize];
        let is_full = ingress.in_headroom > 0 || (pooled > 0 && pooled >= threshold);
        let begins = is_full && ingress.may_pause && !ingress.is_paused;
        ingress.is_paused |= begins;
        begins
    }

    /// Whether to tell the neighbour at the other end of `lane` to go on, after a packet that came by it has
    /// left.
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

    /// The neighbour at the other end of `lane` may go on without being told: their link has failed.
    pub fn forget_pause(&mut self, lane: LaneId) {
        self.ingress[lane as usize].is_paused = false;
    }

    /// What `lane` has in the shared pool, and from where on it is paused; `None` without pause frames.
    fn pooled(&self, lane: LaneId) -> Option<(u64, u64)> {
        let pause = self.pause.as_ref()?;
        let ingress = &self.ingress[lane as usize];
        let switch = &self.switches[ingress.switch as usize];
        let threshold = threshold(pause.alpha, switch.pool - switch.taken);
        Some((ingress.pooled(self.reserve), threshold))
    }

    /// Whether the neighbour at the other end of `lane` has been told to pause.
    pub fn is_paused(&self, lane: LaneId) -> bool {
        self.ingress[lane as usize].is_paused
    }

    /// How long pauses may last without being looked at, if there are any and they are ever looked at.
    pub fn watchdog(&self) -> Option<Duration> {
        self.pause.as_ref()?.watchdog
    }

    /// The paused lanes that would go on if everything left but `kept` bytes of what came by each lane.
    /// Lanes of which nothing leaves stay as they are.
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

    /// Swaps the accounts of the switches that `is_other` with those that another has of them.
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

    /// Checks the accounts against what waits of each lane: they are exact at watched switches, and the
    /// most that there can be at the others.
    pub fn assert_hold(&self, waiting: &[u64]) {
        for (ingress, waiting) in self.ingress.iter().zip(waiting) {
            let is_exact = self.switches[ingress.switch as usize].is_watched;
            let adds_up =
                if is_exact { *waiting == ingress.held } else { *waiting <= ingress.held };
            assert!(adds_up, "a buffer's accounts and its queues disagree: {ingress:?}, {waiting}");
        }
        for switch in &self.switches {
            let lanes = self.lanes_to(switch).map(|lane| &self.ingress[lane as usize]);
            let pooled: u64 = lanes.map(|ingress| ingress.pooled(self.reserve)).sum();
            assert_eq!(pooled, switch.taken, "a shared pool leaks bytes");
        }
    }
}

fn threshold(alpha: f64, free: u64) -> u64 {
    (alpha * free as f64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::Parameter;
    use crate::topology;
    use serde_json::json;
    use std::collections::BTreeMap;

    #[test]
    fn a_paused_link_would_resume_if_enough_of_its_bytes_left_and_not_if_none_did() {
        let star = json!({ "kind": "star", "hosts": 2 });
        let graph = topology::Config::read(&star).unwrap().graph(1).unwrap();
        let config = json!({ "shared_buffer": "100 KB", "pause": {} });
        let config = Config::read(&config).unwrap();
        let traffic = TrafficClasses::new(&BTreeMap::new(), &["all".to_owned()]);
        let mut buffers = Buffers::new(&config, &graph, Bytes(1_000), &traffic).unwrap().unwrap();
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
        assert!(buffers.is_paused(link as LaneId), "nothing has happened");
    }
}
