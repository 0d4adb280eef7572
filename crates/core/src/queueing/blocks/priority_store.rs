//! Packets that wait by rank: the best is asked for, and the worst.
//!
//! The smaller number is the better priority; of equals, whoever came later is the worse. Few packets are
//! searched one by one, as they lie side by side; many are found at a cost that does not grow with them.

use std::collections::hash_map::Entry;

use rustc_hash::FxBuildHasher;

use super::linked_lists::{Chain, Links};
use super::winner_tree::{WinnerTree, key};
use crate::model::packet::{FlowNumber, Packet};

/// The most that are searched one by one.
const FEW: usize = 48;

/// Packets that wait.
pub struct PriorityStore {
    /// Whether the earliest packet of the best flow goes instead of its best.
    in_order: bool,
    /// In the order in which they came. None is here while there are many.
    few: Vec<Packet>,
    many: Many,
}

impl PriorityStore {
    /// Without packets; says whether the earliest packet of the best flow is to go instead of its best.
    pub fn new(in_order: bool) -> Self {
        Self { in_order, few: Vec::with_capacity(FEW), many: Many::default() }
    }

    /// Adds a packet.
    #[inline]
    pub fn push(&mut self, packet: Packet) {
        if self.many.count == 0 {
            if self.few.len() < FEW {
                return self.few.push(packet);
            }
            self.few.drain(..).for_each(|packet| self.many.push(packet));
        }
        self.many.push(packet);
    }

    /// Takes out the packet that goes next.
    #[inline]
    pub fn take_best(&mut self) -> Option<Packet> {
        if self.many.count > 0 {
            return self.many.take_best(self.in_order);
        }
        let best = (0..self.few.len()).min_by_key(|place| self.few[*place].priority())?;
        let flow = self.few[best].flow;
        let first = self.few.iter().position(|packet| packet.flow == flow);
        Some(self.few.remove(first.filter(|_| self.in_order).unwrap_or(best)))
    }

    /// Takes out the worst packet.
    pub fn take_worst(&mut self) -> Option<Packet> {
        if self.many.count > 0 {
            return self.many.ranks.greatest().map(|worst| self.many.take(worst));
        }
        let worst = (0..self.few.len()).max_by_key(|place| self.few[*place].priority())?;
        Some(self.few.remove(worst))
    }

    /// Shows every packet.
    pub fn for_each_packet(&self, visit: &mut dyn FnMut(&Packet)) {
        self.few.iter().for_each(&mut *visit);
        self.many.for_each_packet(visit);
    }
}

/// Many packets, in numbered places.
#[derive(Default)]
struct Many {
    count: usize,
    /// How many have come.
    arrivals: u64,
    ranks: WinnerTree,
    chains: Chains,
    /// By place.
    packets: Vec<Packet>,
    /// Places that are empty.
    free: Vec<u32>,
}

impl Many {
    fn push(&mut self, packet: Packet) {
        let place = if let Some(place) = self.free.pop() {
            self.packets[place as usize] = packet;
            place
        } else {
            self.packets.push(packet);
            self.packets.len() as u32 - 1
        };
        self.count += 1;
        self.arrivals += 1;
        self.ranks.put(place, key(packet.priority(), self.arrivals));
        self.chains.append(packet.flow, place);
    }

    fn take_best(&mut self, in_order: bool) -> Option<Packet> {
        let best = self.ranks.least()?;
        let first = self.chains.first(self.packets[best as usize].flow);
        Some(self.take(first.filter(|_| in_order).unwrap_or(best)))
    }

    fn take(&mut self, place: u32) -> Packet {
        let packet = self.packets[place as usize];
        self.count -= 1;
        self.ranks.clear(place);
        self.free.push(place);
        self.chains.remove(packet.flow, place);
        packet
    }

    fn for_each_packet(&self, visit: &mut dyn FnMut(&Packet)) {
        let mut is_taken = vec![true; self.packets.len()];
        self.free.iter().for_each(|place| is_taken[*place as usize] = false);
        let placed = self.packets.iter().zip(is_taken).filter(|(_, is_taken)| *is_taken);
        placed.map(|(packet, _)| packet).for_each(visit);
    }
}

/// The packets of each flow as a chain of places, in the order in which they came.
#[derive(Default)]
struct Chains {
    /// Looked up, never walked, so that its order does not matter.
    #[expect(clippy::disallowed_types, reason = "its hash is the same in every run")]
    flows: std::collections::HashMap<FlowNumber, Chain, FxBuildHasher>,
    links: Links,
}

impl Chains {
    /// The place of a flow's earliest packet.
    fn first(&self, flow: FlowNumber) -> Option<u32> {
        self.flows.get(&flow).map(|chain| chain.first)
    }

    fn append(&mut self, flow: FlowNumber, place: u32) {
        self.links.append(self.flows.entry(flow).or_insert(Chain::EMPTY), place);
    }

    fn remove(&mut self, flow: FlowNumber, place: u32) {
        // Most of those that are dropped stand inside, which spares looking the flow up.
        if !self.links.is_at_end(place) {
            return self.links.remove_inside(place);
        }
        if let Entry::Occupied(mut chain) = self.flows.entry(flow) {
            self.links.remove(chain.get_mut(), place);
            if *chain.get() == Chain::EMPTY {
                chain.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::defaults;
    use crate::base::units::Time;
    use crate::model::packet::{Format, Header, Kind};

    #[test]
    fn few_become_many_and_few_again_in_the_same_order() {
        let format: Format = defaults();
        let packet = |sequence: u32| {
            let priority = Header::Priority(u64::from(sequence * 37 % 101));
            let control = format.control(Kind::Data, sequence % 7, Time::ZERO);
            Packet { sequence, ..control }.with_header(priority)
        };
        for (in_order, most) in [(true, FEW), (true, 3 * FEW), (false, FEW), (false, 3 * FEW)] {
            let mut ranked = PriorityStore::new(in_order);
            for _ in 0..2 {
                let mut plain: Vec<Packet> = (0..most as u32).map(packet).collect();
                for packet in &plain {
                    ranked.push(*packet);
                }
                let mut seen = 0;
                ranked.for_each_packet(&mut |_| seen += 1);
                assert_eq!(seen, most);
                let worst = plain.iter().max_by_key(|packet| packet.priority()).copied();
                assert_eq!(ranked.take_worst(), worst);
                plain.retain(|packet| Some(*packet) != worst);
                while let Some(best) = plain.iter().min_by_key(|packet| packet.priority()).copied()
                {
                    let is_next = |packet: &&Packet| packet.flow == best.flow;
                    let first = plain.iter().find(is_next).filter(|_| in_order).copied();
                    let next = first.unwrap_or(best);
                    assert_eq!(ranked.take_best(), Some(next));
                    plain.retain(|packet| *packet != next);
                }
                assert_eq!((ranked.take_best(), ranked.take_worst()), (None, None));
            }
        }
    }
}
