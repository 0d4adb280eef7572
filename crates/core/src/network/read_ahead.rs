//! Reading of state ahead, in networks that outgrow the cache.
//!
//! A hop in such a network waits for a dozen lines of memory, one after the other. All arrivals of a window
//! are known when it begins: loops without dependencies read the state that they need, so that the processor
//! waits for many lines together (docs/performance.md).

use super::Network;
use super::flow_table::Slot;
use super::link::transmitter::Flight;
use super::routes::END;
use super::routes::tree::BRANCH;
use crate::base::units::Time;
use crate::model::graph::LinkId;
use crate::model::packet::FlowNumber;

/// Links, packets and flows whose state is read ahead together. Its memory is reused.
#[derive(Default)]
pub struct ReadAhead {
    /// Links on which packets arrive.
    links: Vec<LinkId>,
    /// Link, flow, direction and position on its route of each packet that arrives.
    packets: Vec<(LinkId, FlowNumber, bool, u32)>,
    /// Links on which packets go on, and those of hosts that may answer packets.
    pub next_links: Vec<LinkId>,
    /// Flow of each packet that is delivered, and true for an answer.
    pub deliveries: Vec<(Slot, bool)>,
}

impl Network {
    /// Reads ahead the ports of links on which packets arrive in the window from `begins` to `ends`, and of
    /// those on which these packets go on, or on which hosts answer them.
    pub fn read_ahead(
        &mut self,
        arriving: impl Iterator<Item = LinkId>,
        begins: Time,
        ends: Time,
        ReadAhead { links, packets, next_links, deliveries }: &mut ReadAhead,
    ) {
        links.clear();
        packets.clear();
        next_links.clear();
        deliveries.clear();
        links.extend(arriving);
        if let Some(buffers) = &self.buffers {
            for link in &*links {
                buffers.read_ahead(self.traffic.lanes.lane(*link, 0));
            }
        }
        self.read_ahead_ports(links);
        for link in &*links {
            let flights = self.ports[*link as usize].arrivals(begins, ends);
            packets.extend(flights.map(|Flight { packet, .. }| {
                self.routes.read_ahead(packet.next_hop);
                (*link, packet.flow, packet.kind.is_answer(), packet.next_hop)
            }));
        }
        for (link, flow, is_answer, position) in &*packets {
            match self.routes.find(*position) {
                Some(END) => {
                    next_links.push(*link ^ 1);
                    deliveries.extend(self.flow_table.slot(*flow).map(|slot| (slot, *is_answer)));
                }
                Some(link) if link < BRANCH => next_links.push(link),
                _ => {}
            }
        }
        self.read_ahead_ports(next_links);
    }

    /// Reads ahead the ports of links, and then the packets to which they point.
    fn read_ahead_ports(&self, links: &[LinkId]) {
        for link in links {
            self.ports[*link as usize].read_ahead();
        }
        for link in links {
            self.ports[*link as usize].read_ahead_packets();
        }
    }
}
