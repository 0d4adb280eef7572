//! Store of packets ordered by priority, with access to the best and the worst packet.
//!
//! The smaller number is the better priority. Among equals, the packet that arrived later is the
//! worse. Few packets are searched linearly, which is fast in contiguous memory. Many packets are
//! indexed, so that the cost of an operation grows with the logarithm of their number.

use std::collections::hash_map::Entry;

use rustc_hash::FxBuildHasher;

use super::linked_lists::{LinkedLists, List};
use super::winner_tree::{WinnerTree, key};
use crate::model::packet::{FlowNumber, Packet};

/// Largest number of packets that are searched linearly.
const LINEAR_SEARCH_LIMIT: usize = 48;

/// Store of packets.
pub struct PriorityStore {
    /// If true, the earliest packet of the best flow is returned instead of its best packet.
    in_order: bool,
    /// Packets in order of arrival. Empty while the packets are indexed.
    linear: Vec<Packet>,
    indexed: IndexedPackets,
}

impl PriorityStore {
    /// Creates an empty store. `in_order`: return the earliest packet of the best flow instead of
    /// its best packet.
    pub fn new(in_order: bool) -> Self {
        Self {
            in_order,
            linear: Vec::with_capacity(LINEAR_SEARCH_LIMIT),
            indexed: IndexedPackets::default(),
        }
    }

    /// Adds a packet.
    #[inline]
    pub fn push(&mut self, packet: Packet) {
        if self.indexed.count == 0 {
            if self.linear.len() < LINEAR_SEARCH_LIMIT {
                return self.linear.push(packet);
            }
            self.linear.drain(..).for_each(|packet| self.indexed.push(packet));
        }
        self.indexed.push(packet);
    }

    /// Removes and returns the packet to transmit next.
    #[inline]
    pub fn pop_best(&mut self) -> Option<Packet> {
        if self.indexed.count > 0 {
            return self.indexed.pop_best(self.in_order);
        }
        let best = (0..self.linear.len()).min_by_key(|slot| self.linear[*slot].priority())?;
        let flow = self.linear[best].flow;
        let first = self.linear.iter().position(|packet| packet.flow == flow);
        Some(self.linear.remove(first.filter(|_| self.in_order).unwrap_or(best)))
    }

    /// Removes and returns the worst packet.
    pub fn pop_worst(&mut self) -> Option<Packet> {
        if self.indexed.count > 0 {
            return self.indexed.ranks.max().map(|worst| self.indexed.remove(worst));
        }
        let worst = (0..self.linear.len()).max_by_key(|slot| self.linear[*slot].priority())?;
        Some(self.linear.remove(worst))
    }

    /// Calls `visit` for every packet, in unspecified order.
    pub fn for_each_packet(&self, visit: &mut dyn FnMut(&Packet)) {
        self.linear.iter().for_each(&mut *visit);
        self.indexed.for_each_packet(visit);
    }
}

/// Packets in numbered slots, indexed by priority and flow.
#[derive(Default)]
struct IndexedPackets {
    count: usize,
    /// Number of packets that have been added.
    arrivals: u64,
    ranks: WinnerTree,
    flow_lists: FlowLists,
    /// Packets by slot.
    packets: Vec<Packet>,
    /// Empty slots.
    free: Vec<u32>,
}

impl IndexedPackets {
    fn push(&mut self, packet: Packet) {
        let slot = if let Some(slot) = self.free.pop() {
            self.packets[slot as usize] = packet;
            slot
        } else {
            self.packets.push(packet);
            self.packets.len() as u32 - 1
        };
        self.count += 1;
        self.arrivals += 1;
        self.ranks.insert(slot, key(packet.priority(), self.arrivals));
        self.flow_lists.append(packet.flow, slot);
    }

    fn pop_best(&mut self, in_order: bool) -> Option<Packet> {
        let best = self.ranks.min()?;
        let first = self.flow_lists.first(self.packets[best as usize].flow);
        Some(self.remove(first.filter(|_| in_order).unwrap_or(best)))
    }

    fn remove(&mut self, slot: u32) -> Packet {
        let packet = self.packets[slot as usize];
        self.count -= 1;
        self.ranks.remove(slot);
        self.free.push(slot);
        self.flow_lists.remove(packet.flow, slot);
        packet
    }

    fn for_each_packet(&self, visit: &mut dyn FnMut(&Packet)) {
        let mut is_used = vec![true; self.packets.len()];
        self.free.iter().for_each(|slot| is_used[*slot as usize] = false);
        let used = self.packets.iter().zip(is_used).filter(|(_, is_used)| *is_used);
        used.map(|(packet, _)| packet).for_each(visit);
    }
}

/// Slots of each flow's packets, in order of arrival.
#[derive(Default)]
struct FlowLists {
    /// Accessed by key only, so the iteration order does not matter.
    #[expect(clippy::disallowed_types, reason = "its hash is the same in every run")]
    flows: std::collections::HashMap<FlowNumber, List, FxBuildHasher>,
    lists: LinkedLists,
}

impl FlowLists {
    /// Returns the slot of a flow's earliest packet.
    fn first(&self, flow: FlowNumber) -> Option<u32> {
        self.flows.get(&flow).map(|list| list.head)
    }

    fn append(&mut self, flow: FlowNumber, slot: u32) {
        self.lists.append(self.flows.entry(flow).or_insert(List::EMPTY), slot);
    }

    fn remove(&mut self, flow: FlowNumber, slot: u32) {
        // Most dropped packets are inner ones, which need no lookup of the flow.
        if !self.lists.is_end(slot) {
            return self.lists.remove_inner(slot);
        }
        if let Entry::Occupied(mut list) = self.flows.entry(flow) {
            self.lists.remove(list.get_mut(), slot);
            if *list.get() == List::EMPTY {
                list.remove();
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
    fn linear_and_indexed_storage_agree_as_packets_come_and_go() {
        let format: Format = defaults();
        let packet = |sequence: u32| {
            let priority = Header::Priority(u64::from(sequence * 37 % 101));
            let control = format.control(Kind::Data, sequence % 7, Time::ZERO);
            Packet { sequence, ..control }.with_header(priority)
        };
        for (in_order, count) in [
            (true, LINEAR_SEARCH_LIMIT),
            (true, 3 * LINEAR_SEARCH_LIMIT),
            (false, LINEAR_SEARCH_LIMIT),
            (false, 3 * LINEAR_SEARCH_LIMIT),
        ] {
            let mut store = PriorityStore::new(in_order);
            for _ in 0..2 {
                let mut expected: Vec<Packet> = (0..count as u32).map(packet).collect();
                for packet in &expected {
                    store.push(*packet);
                }
                let mut visited = 0;
                store.for_each_packet(&mut |_| visited += 1);
                assert_eq!(visited, count);
                let worst = expected.iter().max_by_key(|packet| packet.priority()).copied();
                assert_eq!(store.pop_worst(), worst);
                expected.retain(|packet| Some(*packet) != worst);
                while let Some(best) =
                    expected.iter().min_by_key(|packet| packet.priority()).copied()
                {
                    let is_next = |packet: &&Packet| packet.flow == best.flow;
                    let first = expected.iter().find(is_next).filter(|_| in_order).copied();
                    let next = first.unwrap_or(best);
                    assert_eq!(store.pop_best(), Some(next));
                    expected.retain(|packet| *packet != next);
                }
                assert_eq!((store.pop_best(), store.pop_worst()), (None, None));
            }
        }
    }
}
