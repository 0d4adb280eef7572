//! A switch's shared buffer: dynamic thresholds for its ports, and pause frames (PFC) for its
//! neighbours.
//!
//! The accounting of PFC follows the common implementation ([hpcc19], its simulator): every ingress
//! link has a small reserve, then draws on the shared pool up to a threshold that shrinks as the
//! pool fills, and beyond it on headroom of its own, which is for what is still on its way when the
//! pause frame leaves.

use crate::parameters::{Problem, positive};
use crate::topology::{Graph, Link, LinkId};
use crate::units::{Bytes, Duration};

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
        /// ([hpcc19]: 1/8).
        pub alpha: f64 = 0.125, where positive;
        /// Set aside for each ingress link before it draws on the pool ([hpcc19]: 4 KB).
        pub reserve: Bytes = Bytes(4_096);
        /// Set aside for each ingress link after it is paused. None computes what can arrive at line
        /// rate: the packet that finds no room, what comes while the frame waits for the packet before
        /// it, is transmitted, travels and is obeyed, what is on its way then, and the packet that the
        /// neighbour has just begun.
        pub headroom: Option<Bytes> = None;
        /// The link goes on when it is this far below the threshold ([hpcc19]: 3 KB).
        pub resume_offset: Bytes = Bytes(3_072);
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
    /// Headroom of an ingress link, whose cable leads back by `back`, for packets of up to `packet`.
    fn headroom(&self, link: &Link, back: &Link, packet: Bytes) -> u64 {
        let computed = || {
            let frame = back.rate.transmit(Bytes(packet.0 + PAUSE_FRAME.0));
            let spans = [frame, back.delay, self.reaction, link.delay];
            let late = spans.iter().fold(0, |sum: u64, span| sum.saturating_add(span.0));
            link.rate.carries(Duration(late)).0.saturating_add(2 * packet.0)
        };
        self.headroom.map_or_else(computed, |headroom| headroom.0)
    }
}

/// What a change of an ingress link's account asks of the neighbour at its other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Stop sending data.
    Pause,
    /// Go on.
    Resume,
}

/// The account of one ingress link.
#[derive(Clone, Debug, Default)]
struct Ingress {
    /// Index of the switch that receives from the link.
    switch: usize,
    /// All bytes that came by the link and have not left the switch.
    held: u64,
    /// Those of them in headroom.
    in_headroom: u64,
    headroom: u64,
    is_paused: bool,
}

impl Ingress {
    /// Bytes in the shared pool.
    fn pooled(&self, reserve: u64) -> u64 {
        (self.held - self.in_headroom).saturating_sub(reserve)
    }
}

/// The account of one switch.
#[derive(Clone, Debug, Default)]
struct Switch {
    /// What ports or ingress links share: the buffer less reserves and headrooms.
    pool: u64,
    /// How much of it is taken.
    taken: u64,
}

/// The buffers of all switches of a network.
#[derive(Clone)]
pub struct Buffers {
    alpha: Option<f64>,
    pause: Option<Pause>,
    reserve: u64,
    switches: Vec<Switch>,
    /// By [`LinkId`].
    ingress: Vec<Ingress>,
}

impl Buffers {
    /// Empty buffers for the switches of `graph`, for packets of up to `packet` on the wire; `None`
    /// if they share nothing.
    pub fn new(config: &Config, graph: &Graph, packet: Bytes) -> Result<Option<Self>, Problem> {
        let Some(size) = config.shared_buffer else { return Ok(None) };
        let pause = config.pause.as_ref();
        let reserve = pause.map_or(0, |pause| pause.reserve.0);
        // What is set aside at each node.
        let mut aside = vec![0_u64; graph.nodes.len()];
        let mut ingress = Vec::with_capacity(graph.links.len());
        for (id, link) in graph.links.iter().enumerate() {
            let (switch, back) = (link.to as usize, &graph.links[id ^ 1]);
            let headroom = pause.map_or(0, |pause| pause.headroom(link, back, packet));
            if !graph.nodes[switch].is_host {
                aside[switch] = aside[switch].saturating_add(headroom).saturating_add(reserve);
            }
            ingress.push(Ingress { switch, headroom, ..Ingress::default() });
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
        let switches =
            aside.iter().map(|aside| Switch { pool: size.0 - aside, taken: 0 }).collect();
        Ok(Some(Self {
            alpha: config.alpha,
            pause: config.pause.clone(),
            reserve,
            switches,
            ingress,
        }))
    }

    /// Finds room for a packet of `bytes` that came by `link` and goes to a port where `queued`
    /// bytes wait;
    /// `false` if there is none.
    pub fn admit(&mut self, link: LinkId, bytes: u16, queued: impl FnOnce() -> u64) -> bool {
        let bytes = u64::from(bytes);
        let ingress = &mut self.ingress[link as usize];
        let switch = &mut self.switches[ingress.switch];
        let free = switch.pool - switch.taken;
        if let Some(pause) = &self.pause {
            let before = ingress.pooled(self.reserve);
            let more =
                (ingress.held - ingress.in_headroom + bytes).saturating_sub(self.reserve) - before;
            if more > 0 && (before + more > threshold(pause.alpha, free) || more > free) {
                if ingress.in_headroom + bytes > ingress.headroom {
                    return false;
                }
                ingress.in_headroom += bytes;
            } else {
                switch.taken += more;
            }
        } else {
            if bytes > free
                || self.alpha.is_some_and(|alpha| queued() + bytes > threshold(alpha, free))
            {
                return false;
            }
            switch.taken += bytes;
        }
        ingress.held += bytes;
        true
    }

    /// Frees the room of a packet that has left; headroom first.
    pub fn release(&mut self, link: LinkId, bytes: impl Into<u64>) {
        let bytes = bytes.into();
        let ingress = &mut self.ingress[link as usize];
        let switch = &mut self.switches[ingress.switch];
        let before = ingress.pooled(self.reserve);
        let from_headroom = ingress.in_headroom.min(bytes);
        ingress.in_headroom -= from_headroom;
        ingress.held -= bytes;
        switch.taken -= before - ingress.pooled(self.reserve);
    }

    /// What to tell the neighbour at the other end of `link`, after its account has changed.
    pub fn order(&mut self, link: LinkId) -> Option<Order> {
        let pause = self.pause.as_ref()?;
        let ingress = &mut self.ingress[link as usize];
        let switch = &self.switches[ingress.switch];
        let threshold = threshold(pause.alpha, switch.pool - switch.taken);
        let pooled = ingress.pooled(self.reserve);
        let is_full = ingress.in_headroom > 0 || (pooled > 0 && pooled >= threshold);
        let is_low = ingress.in_headroom == 0
            && (pooled == 0 || pooled.saturating_add(pause.resume_offset.0) <= threshold);
        match ingress.is_paused {
            false if is_full => {
                ingress.is_paused = true;
                Some(Order::Pause)
            }
            true if is_low => {
                ingress.is_paused = false;
                Some(Order::Resume)
            }
            _ => None,
        }
    }

    /// Whether the neighbour at the other end of `link` has been told to pause.
    pub fn is_paused(&self, link: LinkId) -> bool {
        self.ingress[link as usize].is_paused
    }

    /// How long pauses may last without being looked at, if there are any and they are ever looked at.
    pub fn watchdog(&self) -> Option<Duration> {
        self.pause.as_ref()?.watchdog
    }

    /// The paused links that would go on if everything left but `kept` bytes of what came by each link.
    /// Links of which nothing leaves stay as they are.
    pub fn would_resume(&self, kept: &[u64]) -> Vec<LinkId> {
        let mut rest = self.clone();
        let leaves = self.ingress.iter().zip(kept).map(|(ingress, kept)| ingress.held - kept);
        let leaves: Vec<(LinkId, u64)> =
            (0..).zip(leaves).filter(|(_, bytes)| *bytes > 0).collect();
        for (link, bytes) in &leaves {
            rest.release(*link, *bytes);
        }
        let links = leaves.into_iter().map(|(link, _)| link);
        links.filter(|link| rest.order(*link) == Some(Order::Resume)).collect()
    }

    /// Checks that nothing is held once nothing waits.
    pub fn assert_empty(&self) {
        assert!(self.ingress.iter().all(|ingress| ingress.held == 0), "a buffer leaks bytes");
        assert!(self.switches.iter().all(|switch| switch.taken == 0), "a shared pool leaks bytes");
    }
}

fn threshold(alpha: f64, free: u64) -> u64 {
    (alpha * free as f64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::Parameter;
    use crate::topology;
    use serde_json::json;

    #[test]
    fn a_paused_link_would_resume_if_enough_of_its_bytes_left_and_not_if_none_did() {
        let star = json!({ "kind": "star", "hosts": 2 });
        let graph = topology::Config::read(&star).unwrap().graph(1).unwrap();
        let config = json!({ "shared_buffer": "100 KB", "pause": {} });
        let config = Config::read(&config).unwrap();
        let mut buffers = Buffers::new(&config, &graph, Bytes(1_000)).unwrap().unwrap();
        let link =
            (0..4).find(|link| !graph.nodes[graph.links[*link].to as usize].is_host).unwrap();
        let (mut held, none) = (0, Vec::<LinkId>::new());
        while buffers.order(link as LinkId).is_none() {
            assert!(buffers.admit(link as LinkId, 1_000, || 0));
            held += 1_000;
        }
        let kept = |bytes: u64| {
            let mut kept = [0; 4];
            kept[link] = bytes;
            kept
        };
        assert!(buffers.is_paused(link as LinkId));
        assert_eq!(buffers.would_resume(&kept(held)), none);
        assert_eq!(buffers.would_resume(&kept(held - 1_000)), none);
        assert_eq!(buffers.would_resume(&kept(held - 5_000)), [link as LinkId]);
        assert_eq!(buffers.would_resume(&kept(0)), [link as LinkId]);
        assert!(buffers.is_paused(link as LinkId), "nothing has happened");
    }
}
