//! Packets on selected links: when each came, how much waited before it, and when its transmission started.

use rustc_hash::FxHashMap;

use super::packet_log::LoggedPacket;
use crate::base::units::Time;
use crate::model::graph::LinkId;

/// Begin of a packet's stay at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HopBegin {
    /// Arrival at the port.
    pub came: Time,
    /// Bytes that waited before it.
    pub queue: u64,
}

/// Packet on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedHop {
    /// The link.
    pub link: LinkId,
    /// The packet, as it left.
    pub packet: LoggedPacket,
    /// Begin of its stay.
    pub begin: HopBegin,
    /// Start of the transmission; `None` if the packet was dropped.
    pub starts: Option<Time>,
}

/// Hops of a link that have ended in this partition: transmissions at the end of the link, drops at its port.
#[derive(Clone, Debug, Default)]
struct LinkLog {
    transmitted: Vec<LoggedHop>,
    dropped: Vec<LoggedHop>,
}

/// Log of the packets on selected links.
#[derive(Debug, Default)]
pub struct HopLog {
    links: FxHashMap<LinkId, LinkLog>,
    /// Packets that wait at these links, by the number of their record.
    waiting: FxHashMap<u32, HopBegin>,
    /// Most transmissions and most drops of a link.
    most: usize,
}

impl HopLog {
    /// Returns the empty log of these links.
    pub fn new(links: &[LinkId], most: usize) -> Self {
        let links = links.iter().map(|link| (*link, LinkLog::default())).collect();
        Self { links, waiting: FxHashMap::default(), most }
    }

    /// Returns true if the packets on a link are logged.
    pub fn contains(&self, link: LinkId) -> bool {
        self.links.contains_key(&link)
    }

    /// Logs that the packet of a record starts to wait.
    pub fn wait(&mut self, record: u32, begin: HopBegin) {
        self.waiting.insert(record, begin);
    }

    /// Takes the begin of a packet's stay, if it waited at a logged link.
    pub fn take(&mut self, record: u32) -> Option<HopBegin> {
        if self.waiting.is_empty() { None } else { self.waiting.remove(&record) }
    }

    /// Logs the passage of a packet over a link.
    pub fn pass(&mut self, hop: LoggedHop) {
        let Some(log) = self.links.get_mut(&hop.link) else { return };
        let hops = if hop.starts.is_some() { &mut log.transmitted } else { &mut log.dropped };
        if hops.len() < self.most {
            hops.push(hop);
        }
    }

    /// Takes over the log of a partition that has ended.
    pub fn absorb(&mut self, mut other: Self) {
        let mut links: Vec<LinkId> = self.links.keys().copied().collect();
        links.sort_unstable();
        for link in links {
            if let (Some(own), Some(other)) =
                (self.links.get_mut(&link), other.links.get_mut(&link))
            {
                own.transmitted.append(&mut other.transmitted);
                own.dropped.append(&mut other.dropped);
            }
        }
    }

    /// Ends the log. Returns the first packets that came to each link and all links together up to `most`, by
    /// link and time.
    pub fn into_hops(self) -> Vec<LoggedHop> {
        let all = |log: LinkLog| log.transmitted.into_iter().chain(log.dropped);
        let mut hops: Vec<LoggedHop> = self.links.into_values().flat_map(all).collect();
        hops.sort_unstable_by_key(|hop| {
            let packet = &hop.packet;
            let identity = (packet.flow, packet.kind.is_answer(), packet.index);
            (hop.begin.came, hop.link, hop.starts, identity)
        });
        hops.truncate(self.most);
        hops.sort_by_key(|hop| hop.link);
        hops
    }
}
