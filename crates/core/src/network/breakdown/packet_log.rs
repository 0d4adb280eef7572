//! Packets of recorded flows: when each was sent and arrived, or where it was lost.
//!
//! Only at its end is it known if a flow is kept (`record::flow_selection`), so all packets of the candidates
//! are logged. The log of a flow is bounded: it is a sample of the packets if there are too many.

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
    /// Bound of the packets of a named flow, and of another.
    most: [usize; 2],
}

impl Candidates {
    /// Returns the candidates: the `named` flows, and a share of all others. The log of a named flow has up
    /// to `most[0]` packets, that of another up to `most[1]`.
    pub fn new(named: &[u64], share: f64, most: [usize; 2]) -> Self {
        let mut named = named.to_vec();
        named.sort_unstable();
        Self { named, below: (share * u64::MAX as f64) as u64, most }
    }

    /// Returns true if the scenario names the flow.
    pub fn is_named(&self, flow: u64) -> bool {
        self.named.binary_search(&flow).is_ok()
    }

    /// Returns true for a candidate.
    pub fn contains(&self, flow: u64) -> bool {
        self.most_of(flow) > 0
    }

    /// Returns the bound of the packets of a flow; 0 if it is not a candidate.
    pub fn most_of(&self, flow: u64) -> usize {
        if self.is_named(flow) {
            self.most[0]
        } else if mix(flow) < self.below {
            self.most[1]
        } else {
            0
        }
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
    /// First segment that is not acknowledged.
    pub acknowledged: u32,
    /// True if the packet is of a persistent connection, whose flows share its packets: these are not logged.
    pub is_of_connection: bool,
    /// Time.
    pub now: Time,
}

impl Sending {
    /// Returns the circumstances of a packet without data that belongs to one flow.
    pub fn of_control(now: Time) -> Self {
        Self { reason: SendReason::None, acknowledged: 0, is_of_connection: false, now }
    }
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

/// Bounded sample of a flow's packets in both directions: those whose numbers are multiples of `every`, which
/// doubles until they are few enough. So the sample does not depend on the order in which packets are added,
/// or on partitions.
#[derive(Clone, Debug)]
pub struct PacketSample {
    /// The packets, in any order.
    pub packets: Vec<LoggedPacket>,
    /// Distance of their numbers.
    pub every: u32,
}

impl Default for PacketSample {
    fn default() -> Self {
        Self { packets: Vec::new(), every: 1 }
    }
}

impl PacketSample {
    /// Adds a packet, if its number is one of the sample. Keeps up to `most` packets.
    fn push(&mut self, packet: LoggedPacket, most: usize) {
        if packet.index.is_multiple_of(self.every) {
            self.packets.push(packet);
            self.shrink(most);
        }
    }

    /// Adds the packets of another sample of the same flow.
    fn absorb(&mut self, mut other: Self, most: usize) {
        self.packets.append(&mut other.packets);
        self.keep(self.every.max(other.every));
        self.shrink(most);
    }

    fn shrink(&mut self, most: usize) {
        // The first packet of either direction is always in the sample.
        while self.packets.len() > most.max(2) {
            self.thin();
        }
    }

    /// Drops every second packet.
    pub fn thin(&mut self) {
        self.keep(self.every.saturating_mul(2));
    }

    fn keep(&mut self, every: u32) {
        self.every = every;
        self.packets.retain(|packet| packet.index.is_multiple_of(every));
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
    /// Packets that arrived when they were sent first.
    pub ordinary: PacketSample,
    /// Packets that were lost or sent again, or are in the network at the end of the run.
    pub others: PacketSample,
}

impl FlowLog {
    /// Counts a packet that is sent. Returns its number and which copy of its segment it is.
    /// Segments before `acknowledged` are not sent again.
    fn count(&mut self, packet: &Packet, acknowledged: u32) -> (u32, u16) {
        let sent = &mut self.sent[usize::from(packet.kind.is_answer())];
        let index = *sent;
        *sent += 1;
        let copy = match packet.kind {
            Kind::Syn => {
                self.syns = self.syns.saturating_add(1);
                self.syns
            }
            Kind::Data if packet.sequence < self.next => {
                if self.copies.len() == self.copies.capacity() {
                    self.copies.retain(|segment, _| *segment >= acknowledged);
                    self.copies.reserve(self.copies.len());
                }
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

    /// Adds a packet that has arrived, was lost, or is in the network at the end of the run. Keeps up to
    /// `most` ordinary packets, and half as many others.
    fn push(&mut self, packet: LoggedPacket, most: usize) {
        if packet.is_ordinary() {
            self.ordinary.push(packet, most);
        } else {
            self.others.push(packet, most / 2);
        }
    }

    /// Returns the packets, in any order.
    pub fn packets(&self) -> impl Iterator<Item = &LoggedPacket> {
        self.ordinary.packets.iter().chain(&self.others.packets)
    }

    /// Adds the log of another partition.
    fn absorb(&mut self, other: Self, most: usize) {
        for (own, other) in self.sent.iter_mut().zip(other.sent) {
            *own += other;
        }
        self.ordinary.absorb(other.ordinary, most);
        self.others.absorb(other.others, most / 2);
    }
}

/// Log of the packets of recorded flows.
#[derive(Default)]
pub struct PacketLog {
    candidates: Candidates,
    /// Packets in the network.
    in_network: SideTable<Option<LoggedPacket>>,
    flows: FxHashMap<FlowNumber, FlowLog>,
    /// Log of the packets on selected links, if there are any.
    hops: Option<Box<HopLog>>,
}

impl PacketLog {
    /// Returns the log of these flows, and of the packets of all flows on the links of `hops`.
    pub fn new(candidates: Candidates, hops: Option<HopLog>) -> Self {
        Self { candidates, hops: hops.map(Box::new), ..Self::default() }
    }

    /// Logs a packet that is sent, if its flow is a candidate or links are logged. `block` is the first SACK
    /// block of an ACK. Returns its row, counted from 1, or 0.
    pub fn send(&mut self, packet: &Packet, block: (u32, u32), sending: Sending) -> u32 {
        let Sending { reason, acknowledged, is_of_connection, now } = sending;
        let is_of_candidate = !is_of_connection && self.candidates.contains(u64::from(packet.flow));
        if !is_of_candidate && self.hops.is_none() {
            return 0;
        }
        let flow = self.flows.entry(packet.flow).or_default();
        flow.is_of_connection = is_of_connection;
        let (index, copy) = flow.count(packet, acknowledged);
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
        self.add(logged.with(packet, fate));
    }

    /// Adds a packet to the log of its flow.
    fn add(&mut self, packet: LoggedPacket) {
        let most = self.candidates.most_of(u64::from(packet.flow));
        self.flows.entry(packet.flow).or_default().push(packet, most);
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
            let most = self.candidates.most_of(u64::from(flow));
            self.flows.entry(flow).or_default().absorb(log, most);
        }
    }

    /// Ends the log. Returns the packets by flow, and those on links.
    pub fn into_parts(mut self) -> (FxHashMap<FlowNumber, FlowLog>, Vec<LoggedHop>) {
        for row in 0..self.in_network.capacity() {
            if let Some(packet) = self.in_network[row].filter(|packet| packet.is_of_candidate) {
                self.add(packet);
            }
        }
        self.flows.retain(|_, log| !log.is_of_connection);
        let hops = self.hops.map(|hops| hops.into_hops()).unwrap_or_default();
        (self.flows, hops)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(index: u32) -> LoggedPacket {
        LoggedPacket {
            flow: 0,
            index,
            sequence: index,
            block: (0, 0),
            bytes: 1_500,
            copy: 1,
            kind: Kind::Data,
            reason: SendReason::None,
            is_ecn_capable: false,
            is_marked: false,
            is_of_candidate: true,
            sent: Time::ZERO,
            fate: Fate::InNetwork,
        }
    }

    /// Distance and numbers of the packets in a sample of up to ten.
    fn sample(indices: impl Iterator<Item = u32>) -> PacketSample {
        let mut sample = PacketSample::default();
        indices.for_each(|index| sample.push(packet(index), 10));
        sample
    }

    #[test]
    fn a_sample_does_not_depend_on_order_or_partitions() {
        let numbers = |sample: &PacketSample| {
            let mut numbers: Vec<u32> = sample.packets.iter().map(|packet| packet.index).collect();
            numbers.sort_unstable();
            (sample.every, numbers)
        };
        // Those with multiples of 3 were lost.
        let lost = || (0..61).step_by(3);
        let whole = numbers(&sample(lost()));
        assert_eq!(whole, (4, vec![0, 12, 24, 36, 48, 60]));
        assert_eq!(numbers(&sample(lost().rev())), whole);
        let mut parts = sample(lost().filter(|index| index % 5 < 2));
        parts.absorb(sample(lost().filter(|index| index % 5 >= 2)), 10);
        assert_eq!(numbers(&parts), whole);
        parts.absorb(sample(lost()), 0);
        assert_eq!(numbers(&parts), (32, vec![0, 0]), "the first of either direction stays");
    }

    #[test]
    fn copies_of_a_segment_are_counted_until_it_is_acknowledged() {
        let format: crate::model::packet::Format = crate::base::schema::defaults();
        let mut flow = FlowLog::default();
        let mut send = |sequence: u32, acknowledged: u32| {
            let data = format.control(Kind::Data, 0, Time::ZERO);
            let copy = flow.count(&Packet { sequence, ..data }, acknowledged).1;
            (copy, flow.copies.len())
        };
        for sequence in 0..10_000 {
            assert_eq!(send(sequence, sequence).0, 1);
            assert_eq!(send(sequence, sequence).0, 2);
            let (copy, counted) = send(sequence, sequence);
            assert!(copy == 3 && counted < 20, "copy {copy} of {sequence}, {counted} counted");
        }
    }
}
