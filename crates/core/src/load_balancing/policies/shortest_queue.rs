//! Next hop with the shortest queue of the switch.
//!
//! Source: [drill17] §3 for samples and memory.

use crate::base::random::Random;
use crate::base::schema::{Problem, positive_if_given};
use crate::load_balancing::{LoadBalancer, LoadBalancerKind, NextHops, SwitchInfo};
use crate::model::graph::LinkId;
use crate::model::packet::Packet;

crate::parameters! {
    /// Next hop with the shortest queue of the switch, for every packet: adaptive routing. DRILL(d, m)
    /// ([drill17]) compares `samples` = d random next hops and the `memory` = m best of the previous packet.
    pub struct Config {
        /// Number of random next hops that are compared; none for all.
        pub samples: Option<u32> = None, where positive_if_given;
        /// Number of the best next hops that are compared for the following packet, too.
        pub memory: u32 = 0;
    }
    check |config| {
        if config.memory > 0 && config.samples.is_none() {
            return Err(Problem::new("memory", "goes with `samples`: without, all next hops are compared"));
        }
        Ok(())
    }
}

impl LoadBalancerKind for Config {
    fn build(&self, _switch: &SwitchInfo<'_>, random: Random) -> Box<dyn LoadBalancer> {
        let Self { samples, memory } = *self;
        Box::new(ShortestQueue { samples, memory: memory as usize, best: Vec::new(), random })
    }

    fn splits_bursts(&self) -> bool {
        true
    }
}

/// State of one switch.
struct ShortestQueue {
    samples: Option<u32>,
    memory: usize,
    /// Links that are compared, with their backlog and a random number that breaks ties. Between packets,
    /// those that are remembered.
    best: Vec<(u64, u64, LinkId)>,
    random: Random,
}

impl LoadBalancer for ShortestQueue {
    fn choose(&mut self, _packet: &Packet, next_hops: &mut NextHops<'_>) -> usize {
        let Self { samples, memory, best, random } = self;
        let links = next_hops.links;
        best.retain(|(_, _, link)| links.contains(link));
        match *samples {
            Some(samples) => {
                let draw = |_| links[random.below(links.len() as u64) as usize];
                best.extend((0..samples).map(draw).map(|link| (0, 0, link)));
            }
            None => *best = links.iter().map(|link| (0, 0, *link)).collect(),
        }
        for (backlog, tie, link) in &mut *best {
            (*backlog, *tie) = ((next_hops.backlog)(*link), random.below(u64::MAX));
        }
        best.sort_unstable();
        let (_, _, chosen) = best[0];
        best.truncate(*memory);
        links.iter().position(|link| *link == chosen).unwrap_or_default()
    }
}
