//! Packets of recorded flows: when each was sent and arrived, or where it was lost.
//!
//! Only at its end is it known if a flow is kept (`record::flow_selection`), so all packets of the candidates
//! are logged. A log is bounded: when it is full, every second ordinary packet goes.

use rustc_hash::FxHashMap;

use super::hop_log::{HopBegin, HopLog, LoggedHop};
use crate::base::random::mix;
use crate::base::units::Time;
use crate::model::graph::LinkId;
use crate::model::packet::{Flags, FlowNumber, Kind, Packet};
use crate::network::side_table::SideTable;

/// Flows whose packets are logged while they are in progress.
#[derive(Clone, Debug, Default)]
pub struct Candidates {
    /// Flows that are always recorded, in order.
    named: Vec<u64>,
    /// Upper bound of the hashes of other candidates; 0 for none.
    below: u64,
}

impl Candidates {
    /// Returns the candidates: the `named` flows, and a share of all others.
    pub fn new(named: &[u64], share: f64) -> Self {
        let mut named = named.to_vec();
        named.sort_unstable();
        Self { named, below: (share * u64::MAX as f64) as u64 }
    }

    /// Returns true if the scenario names the flow.
    pub fn is_named(&self, flow: u64) -> bool {
        self.named.binary_search(&flow).is_ok()
    }

    /// Returns true for a candidate.
    pub fn contains(&self, flow: u64) -> bool {
        mix(flow) < self.below || self.is_named(flow)
    }
}

/// Reason of a sending besides the first one of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SendReason {
    /// None: new data, or no data.
    #[default]
    None,
    /// A sequence gap that ACKs report.
    SequenceGap,
    /// A timeout.
    Timeout,
    /// A tail loss probe.
    Probe,
}

impl SendReason {
    /// Names, in order.
    pub const NAMES: [&str; 4] = ["none", "gap", "timeout", "probe"];
}

/// Cause of the loss of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossCause {
    /// A queue dropped it.
    Queue,
    /// The shared buffer of a switch was full.
    Buffer,
    /// The link lost it.
    Link,
    /// The link had failed.
    Failure,
    /// A queue cut off its payload. The header goes on, and is not logged.
    Trimmed,
}

impl LossCause {
    /// Names, in order.
    pub const NAMES: [&str; 5] = ["queue", "buffer", "link", "failure", "trimmed"];
}

/// Fate of a logged packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is in the network.
    InNetwork,
    /// It arrived at this time.
    Arrived(Time),
    /// It was lost.
    Lost(Time, LinkId, LossCause),
}

/// A logged packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedPacket {
    /// The packet; of its header only the first SACK block is read, from `block`.
    pub flow: FlowNumber,
    /// Number of the packet in its flow and direction.
    pub index: u32,
    /// Segment, or the number that an ACK acknowledges.
    pub sequence: u32,
    /// First SACK block of an ACK; may be empty.
    pub block: (u32, u32),
    /// Size with headers.
    pub bytes: u16,
    /// Number of sendings of the segment so far.
    pub copy: u16,
    /// Kind of the packet.
    pub kind: Kind,
    /// Reason of the sending.
    pub reason: SendReason,
    /// True if routers may mark the packet.
    pub is_ecn_capable: bool,
    /// True if the packet is marked, or reports a mark.
    pub is_marked: bool,
    /// True if the packet is of a candidate, and not only on a link whose packets are logged.
    pub is_of_candidate: bool,
    /// Time of the sending.
    pub sent: Time,
    /// Fate.
    pub fate: Fate,
}

/// Circumstances of a sending that the packet does not show.
#[derive(Clone, Copy, Debug)]
pub struct Sending {
    /// Reason.
    pub reason: SendReason,
    /// True if the packet is of a persistent connection, whose flows share its packets: these are not logged.
    pub is_of_connection: bool,
    /// Time.
    pub now: Time,
}

const _: () = assert!(size_of::<LoggedPacket>() <= 64);

impl LoggedPacket {
    /// Returns true unless the packet was lost or is a retransmission.
    pub fn is_ordinary(&self) -> bool {
        self.copy == 1 && matches!(self.fate, Fate::Arrived(_))
    }

    /// Returns the packet as it is now.
    fn with(self, packet: &Packet, fate: Fate) -> Self {
        Self { is_marked: packet.is_marked(), fate, ..self }
    }
}

/// Packets of a flow and direction that have arrived. Which of them are kept depends only on their order.
#[derive(Clone, Debug)]
pub struct ArrivalLog {
    /// The packets in order of arrival.
    pub packets: Vec<LoggedPacket>,
    /// Distance of the numbers of ordinary packets that are kept.
    pub every: u32,
    ordinary: usize,
}

impl Default for ArrivalLog {
    fn default() -> Self {
        Self { packets: Vec::new(), every: 1, ordinary: 0 }
    }
}

impl ArrivalLog {
    /// Appends a packet, unless it is ordinary and between two that are kept. Keeps up to `most` ordinary
    /// packets.
    fn push(&mut self, packet: LoggedPacket, most: usize) {
        if !packet.is_ordinary() {
            self.packets.push(packet);
        } else if packet.index.is_multiple_of(self.every) {
            self.packets.push(packet);
            self.ordinary += 1;
            if self.ordinary > most {
                self.thin();
            }
        }
    }

    /// Drops every second ordinary packet.
    pub fn thin(&mut self) {
        self.every = self.every.saturating_mul(2);
        let every = self.every;
        self.packets.retain(|packet| !packet.is_ordinary() || packet.index.is_multiple_of(every));
        self.ordinary = self.packets.iter().filter(|packet| packet.is_ordinary()).count();
    }
}

/// Packets of a recorded flow, as far as they were sent, arrived or were lost in this partition.
#[derive(Clone, Debug, Default)]
pub struct FlowLog {
    /// Packets sent on the forward and on the reverse path.
    pub sent: [u32; 2],
    /// True if these are packets of a persistent connection, counted for the log of links only.
    is_of_connection: bool,
    /// First segment that was never sent.
    next: u32,
    /// Number of SYNs sent.
    syns: u16,
    /// Sendings of the segments that were retransmitted.
    copies: FxHashMap<u32, u16>,
    /// Packets that arrived, on the forward and on the reverse path.
    pub arrived: [ArrivalLog; 2],
    /// Packets that were lost, or are in the network at the end of the run.
    pub others: Vec<LoggedPacket>,
}

impl FlowLog {
    /// Counts a packet that is sent. Returns its number and which copy of its segment it is.
    fn count(&mut self, packet: &Packet) -> (u32, u16) {
        let sent = &mut self.sent[usize::from(packet.kind.is_answer())];
        let index = *sent;
        *sent += 1;
        let copy = match packet.kind {
            Kind::Syn => {
                self.syns = self.syns.saturating_add(1);
                self.syns
            }
            Kind::Data if packet.sequence < self.next => {
                let copy = self.copies.entry(packet.sequence).or_insert(1);
                *copy = copy.saturating_add(1);
                *copy
            }
            Kind::Data => {
                self.next = packet.sequence + 1;
                1
            }
            _ => 1,
        };
        (index, copy)
    }

    /// Returns the number of packets.
    pub fn packet_count(&self) -> usize {
        self.others.len() + self.arrived.iter().map(|log| log.packets.len()).sum::<usize>()
    }

    /// Returns the packets, in any order.
    pub fn packets(&self) -> impl Iterator<Item = &LoggedPacket> {
        self.arrived.iter().flat_map(|log| &log.packets).chain(&self.others)
    }

    /// Returns the distance of the numbers of ordinary packets, which is that of both paths once they are
    /// [aligned](Self::align).
    pub fn every(&self) -> u32 {
        self.arrived.iter().map(|log| log.every).max().unwrap_or(1)
    }

    /// Thins the packets of both paths alike.
    pub fn align(&mut self) {
        let every = self.every();
        for log in &mut self.arrived {
            while log.every < every {
                log.thin();
            }
        }
    }

    /// Returns the number of ordinary packets.
    pub fn ordinary(&self) -> usize {
        self.arrived.iter().map(|log| log.ordinary).sum()
    }

    /// Drops every second ordinary packet.
    pub fn thin(&mut self) {
        self.arrived.iter_mut().for_each(ArrivalLog::thin);
    }

    /// Adds the log of another partition.
    fn absorb(&mut self, mut other: Self) {
        for (own, other) in self.sent.iter_mut().zip(other.sent) {
            *own += other;
        }
        for (own, other) in self.arrived.iter_mut().zip(other.arrived) {
            // A path ends in one partition.
            if own.packets.is_empty() {
                *own = other;
            }
        }
        self.others.append(&mut other.others);
    }
}

/// Log of the packets of recorded flows.
#[derive(Default)]
pub struct PacketLog {
    candidates: Candidates,
    /// Most ordinary packets of a direction of a flow: of one that is named, and of others.
    most: [usize; 2],
    /// Packets in the network.
    in_network: SideTable<Option<LoggedPacket>>,
    flows: FxHashMap<FlowNumber, FlowLog>,
    /// Log of the packets on selected links, if there are any.
    hops: Option<Box<HopLog>>,
}

impl PacketLog {
    /// Returns the log of these flows. A named flow has up to `most[0]` ordinary packets in each direction,
    /// another up to `most[1]`.
    /// The packets of all flows on the links of `hops` are logged.
    pub fn new(candidates: Candidates, most: [usize; 2], hops: Option<HopLog>) -> Self {
        Self { candidates, most, hops: hops.map(Box::new), ..Self::default() }
    }

    /// Logs a packet that is sent, if its flow is a candidate or links are logged. `block` is the first SACK
    /// block of an ACK. Returns its row, counted from 1, or 0.
    pub fn send(&mut self, packet: &Packet, block: (u32, u32), sending: Sending) -> u32 {
        let Sending { reason, is_of_connection, now } = sending;
        let is_of_candidate = !is_of_connection && self.candidates.contains(u64::from(packet.flow));
        if !is_of_candidate && self.hops.is_none() {
            return 0;
        }
        let flow = self.flows.entry(packet.flow).or_default();
        flow.is_of_connection = is_of_connection;
        let (index, copy) = flow.count(packet);
        let is_syn_again = packet.kind == Kind::Syn && copy > 1;
        self.insert(LoggedPacket {
            flow: packet.flow,
            index,
            sequence: packet.sequence,
            block,
            bytes: packet.bytes,
            copy,
            kind: packet.kind,
            reason: if is_syn_again { SendReason::Timeout } else { reason },
            is_ecn_capable: packet.flags.has(Flags::ECN_CAPABLE),
            is_marked: packet.is_marked(),
            is_of_candidate,
            sent: now,
            fate: Fate::InNetwork,
        })
    }

    /// Inserts a packet in the network. Returns its row, counted from 1.
    pub fn insert(&mut self, packet: LoggedPacket) -> u32 {
        let row = self.in_network.allocate(|_, _| ());
        self.in_network[row] = Some(packet);
        row as u32 + 1
    }

    /// Takes a packet out of the network.
    pub fn take(&mut self, row: u32) -> Option<LoggedPacket> {
        let row = (row as usize).checked_sub(1)?;
        self.in_network.release(row);
        self.in_network[row].take()
    }

    /// Logs the fate of the packet of a row.
    pub fn end(&mut self, row: u32, packet: &Packet, fate: Fate) {
        let Some(logged) = self.take(row).filter(|logged| logged.is_of_candidate) else { return };
        let most = self.most[usize::from(!self.candidates.is_named(u64::from(logged.flow)))];
        let flow = self.flows.entry(logged.flow).or_default();
        let logged = logged.with(packet, fate);
        match fate {
            Fate::Arrived(_) => {
                flow.arrived[usize::from(logged.kind.is_answer())].push(logged, most);
            }
            _ => flow.others.push(logged),
        }
    }

    /// Returns true if the packets on a link are logged.
    pub fn follows(&self, link: LinkId) -> bool {
        self.hops.as_ref().is_some_and(|hops| hops.contains(link))
    }

    /// Returns true if packets of all flows are logged.
    pub fn follows_all(&self) -> bool {
        self.hops.is_some()
    }

    /// Logs that the packet of a record starts to wait at a link whose packets are logged.
    pub fn wait(&mut self, record: u32, begin: HopBegin) {
        if let Some(hops) = &mut self.hops {
            hops.wait(record, begin);
        }
    }

    /// Takes the begin of the wait of a record's packet, if it is logged.
    pub fn take_wait(&mut self, record: u32) -> Option<HopBegin> {
        self.hops.as_mut()?.take(record)
    }

    /// Logs that the packet of a row and a record has passed a link whose packets are logged, or was dropped
    /// there. `begin` holds if it did not wait.
    pub fn pass(
        &mut self,
        [row, record]: [u32; 2],
        packet: &Packet,
        link: LinkId,
        begin: HopBegin,
        starts: Option<Time>,
    ) {
        let begin = self.take_wait(record).unwrap_or(begin);
        let logged = (row as usize).checked_sub(1).and_then(|row| self.in_network[row]);
        if let (Some(hops), Some(logged)) = (&mut self.hops, logged) {
            let packet = logged.with(packet, logged.fate);
            hops.pass(LoggedHop { link, packet, begin, starts });
        }
    }

    /// Drops the log of a flow that has ended and is not kept.
    pub fn forget(&mut self, flow: FlowNumber) {
        if self.flows.get(&flow).is_some_and(|log| !log.is_of_connection) {
            self.flows.remove(&flow);
        }
    }

    /// Takes over the log of a partition that has ended.
    pub fn absorb(&mut self, mut other: Self) {
        if let (Some(own), Some(other)) = (&mut self.hops, other.hops.take()) {
            own.absorb(*other);
        }
        let mut logs: Vec<_> = other.into_parts().0.into_iter().collect();
        logs.sort_unstable_by_key(|(flow, _)| *flow);
        for (flow, log) in logs {
            self.flows.entry(flow).or_default().absorb(log);
        }
    }

    /// Ends the log. Returns the packets by flow, and those on links.
    pub fn into_parts(mut self) -> (FxHashMap<FlowNumber, FlowLog>, Vec<LoggedHop>) {
        for row in 0..self.in_network.capacity() {
            if let Some(packet) = self.in_network[row].filter(|packet| packet.is_of_candidate) {
                self.flows.entry(packet.flow).or_default().others.push(packet);
            }
        }
        self.flows.retain(|_, log| !log.is_of_connection);
        let hops = self.hops.map(|hops| hops.into_hops()).unwrap_or_default();
        (self.flows, hops)
    }
}
