//! Packets on selected links: when each came, how much waited before it, and when its transmission started.

use rustc_hash::{FxHashMap, FxHashSet};

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

/// Log of the packets on selected links: of all links together the first `most` that came.
#[derive(Debug, Default)]
pub struct HopLog {
    links: FxHashSet<LinkId>,
    /// Packets that wait at these links, by the number of their record.
    waiting: FxHashMap<u32, HopBegin>,
    /// Packets that have passed their link or were dropped there, up to twice as many as are kept.
    hops: Vec<LoggedHop>,
    most: usize,
    /// Latest arrival among the first `most`, once there are more.
    latest: Time,
}

impl HopLog {
    /// Returns the empty log of these links.
    pub fn new(links: &[LinkId], most: usize) -> Self {
        let links = links.iter().copied().collect();
        Self { links, most, latest: Time::NEVER, ..Self::default() }
    }

    /// Returns true if the packets on a link are logged.
    pub fn contains(&self, link: LinkId) -> bool {
        self.links.contains(&link)
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
        if self.links.contains(&hop.link) && hop.begin.came <= self.latest {
            self.hops.push(hop);
            if self.hops.len() >= 2 * self.most {
                self.keep_first();
            }
        }
    }

    /// Drops all but the first packets.
    fn keep_first(&mut self) {
        if self.hops.len() > self.most {
            let (_, last, _) = self.hops.select_nth_unstable_by_key(self.most - 1, order);
            self.latest = last.begin.came;
            self.hops.truncate(self.most);
        }
    }

    /// Takes over the log of a partition that has ended.
    pub fn absorb(&mut self, mut other: Self) {
        self.hops.append(&mut other.hops);
        self.keep_first();
    }

    /// Ends the log. Returns its packets by link and time.
    pub fn into_hops(mut self) -> Vec<LoggedHop> {
        self.keep_first();
        self.hops.sort_unstable_by_key(|hop| (hop.link, order(hop)));
        self.hops
    }
}

/// Order of hops in time.
fn order(hop: &LoggedHop) -> impl Ord + use<> {
    let packet = &hop.packet;
    let identity = (packet.flow, packet.kind.is_answer(), packet.index);
    (hop.begin.came, hop.link, hop.starts, identity)
}
