//! Records of packets in the network for the FCT breakdown, if it is recorded.
//!
//! Packets have no spare byte, but no component of the network reads their timestamps. So the record
//! holds the timestamp, and the packet carries in its place the number of its record and a few flags,
//! until it arrives at the end of its route.

use super::hop_log::HopBegin;
use super::packet_log::{Fate, LoggedPacket, LossCause, PacketLog, Sending};
use super::port_activity::{Totals, WaitSums};
use crate::base::prefetch::prefetch;
use crate::base::units::{Duration, Time};
use crate::breakdown::pool::{BreakdownPool, BreakdownRef};
use crate::breakdown::{Breakdown, Completion, PacketRecord, PathDelays};
use crate::model::graph::LinkId;
use crate::model::packet::{FlowNumber, Packet};
use crate::network::Network;
use crate::network::port::Hop;
use crate::network::side_table::SideTable;
use crate::network::switch::traffic_classes::Class;

/// Part of a record that every hop updates: one line of memory. The sums are over the forward and the
/// reverse path; they are split by path only when the breakdown needs them.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
struct HopSums {
    /// Timestamp of the packet.
    stamp: Time,
    waited: WaitSums,
    transmission: Duration,
    propagation: Duration,
}

const _: () = assert!(size_of::<HopSums>() == 64);

/// Part of a record that only the ends of a path access.
#[derive(Debug, Default)]
#[repr(C, align(32))]
struct LegSums {
    /// Breakdown up to the transmission of the packet, or of the packet that it answers. Empty, if that
    /// was sent when the flow was opened.
    account: BreakdownRef,
    /// Row of the packet in the log of recorded flows; 0 for none.
    row: u32,
    /// Time that the receiver delayed the answer.
    receiver: Duration,
    /// Waits up to the first link.
    left: WaitSums,
    /// Waits up to the receiver.
    arrived: WaitSums,
}

/// Record of a packet in transfer to another partition.
#[derive(Debug)]
pub struct ExportedRecord {
    hops: HopSums,
    legs: LegSums,
    /// Breakdown of `legs`, whose reference is valid in one partition only.
    account: Breakdown,
    /// Packet in the log, if its flow is recorded.
    logged: Option<LoggedPacket>,
    /// Begin of its wait, if the packets on the link are logged.
    begin: Option<HopBegin>,
    /// Start of the transmission on the link that the packet is on.
    pub starts: Time,
}

/// Records of the packets in the network, and of packets that receivers have yet to acknowledge.
#[derive(Default)]
pub struct PacketRecords {
    hops: SideTable<HopSums>,
    /// By the same numbers.
    legs: Vec<LegSums>,
    /// Breakdowns of packets and senders.
    pub accounts: BreakdownPool,
    /// Log of the packets of recorded flows, if there are any.
    pub log: Option<Box<PacketLog>>,
    /// Record of the packet that is being delivered, until it is taken.
    delivered: Option<u32>,
}

// Flags that a packet carries with the number of its record.

/// The packet is on its first link.
const IS_FIRST: u64 = 1 << 32;
/// The packet is on the reverse path.
const IS_BACK: u64 = 1 << 33;
/// The packet waited for the link that it is on.
const HAS_WAITED: u64 = 1 << 34;

/// Returns the number of a packet's record.
fn number(packet: &Packet) -> usize {
    packet.sent_at.0 as u32 as usize
}

fn has(packet: &Packet, flag: u64) -> bool {
    packet.sent_at.0 & flag != 0
}

/// True if a packet with a record waited for the link that it is on.
pub fn has_waited(packet: &Packet) -> bool {
    has(packet, HAS_WAITED) && !packet.kind.is_frame()
}

/// Sets the flag that [`has_waited`] reads.
pub fn set_waited(packet: &mut Packet, has_waited: bool) {
    let others = packet.sent_at.0 & !HAS_WAITED;
    packet.sent_at = Time(others | if has_waited { HAS_WAITED } else { 0 });
}

impl PacketRecords {
    /// Returns an empty table, which logs packets in `log`, if there is one.
    pub fn new(log: Option<PacketLog>) -> Self {
        Self { log: log.map(Box::new), ..Self::default() }
    }

    /// Creates the record of a packet that is sent, with the breakdown up to its transmission.
    pub fn send(&mut self, packet: &mut Packet, account: BreakdownRef) {
        let number = self.allocate();
        self.hops[number] = HopSums { stamp: packet.sent_at, ..HopSums::default() };
        let legs = &mut self.legs[number];
        (legs.account, legs.row, legs.receiver) = (account, 0, Duration::ZERO);
        packet.sent_at = Time(number as u64 | IS_FIRST);
    }

    /// Logs a packet that was [sent](Self::send) or [answers](Self::answer), if its flow is recorded. `block`
    /// is the first SACK block of an ACK.
    pub fn log(&mut self, packet: &Packet, block: (u32, u32), sending: Sending) {
        if let Some(log) = &mut self.log {
            self.legs[number(packet)].row = log.send(packet, block, sending);
        }
    }

    /// Returns true if the packets on a link are logged.
    pub fn follows(&self, link: LinkId) -> bool {
        self.log.as_ref().is_some_and(|log| log.follows(link))
    }

    /// Logs that a packet starts to wait at a link whose packets are logged.
    fn log_wait(&mut self, packet: &Packet, begin: HopBegin) {
        if let Some(log) = &mut self.log {
            log.wait(number(packet) as u32, begin);
        }
    }

    /// Logs that a packet has passed a link whose packets are logged, or was dropped there. `begin` holds if
    /// it did not wait.
    pub fn log_pass(
        &mut self,
        packet: &Packet,
        link: LinkId,
        begin: HopBegin,
        starts: Option<Time>,
    ) {
        let number = number(packet);
        if let Some(log) = &mut self.log {
            log.pass([self.legs[number].row, number as u32], packet, link, begin, starts);
        }
    }

    /// Creates the record of a packet from another partition.
    pub fn import(&mut self, packet: &mut Packet, exported: ExportedRecord) {
        let number = self.allocate();
        let ExportedRecord { hops, legs, account, logged, begin, .. } = exported;
        let account = self.accounts.add(account);
        let row = logged.zip(self.log.as_mut()).map_or(0, |(logged, log)| log.insert(logged));
        (self.hops[number], self.legs[number]) = (hops, LegSums { account, row, ..legs });
        packet.sent_at = Time(packet.sent_at.0 & (IS_FIRST | IS_BACK) | number as u64);
        if let Some(begin) = begin {
            self.log_wait(packet, begin);
        }
    }

    /// Returns the number of a free record.
    fn allocate(&mut self) -> usize {
        let Self { hops, legs, .. } = self;
        let number = hops.allocate(|hops, numbers| {
            hops.iter().for_each(HopSums::read_ahead);
            legs.get(numbers).unwrap_or_default().iter().for_each(LegSums::read_ahead);
        });
        if number >= self.legs.len() {
            self.legs.resize_with(self.hops.capacity(), LegSums::default);
        }
        number
    }

    /// Moves the record of the packet that is being delivered to its answer.
    pub fn answer(&mut self, packet: &mut Packet) {
        let Some(number) = self.delivered.take() else {
            self.send(packet, BreakdownRef::default());
            return;
        };
        self.hops[number as usize].stamp = packet.sent_at;
        packet.sent_at = Time(u64::from(number) | IS_BACK);
    }

    /// Records that a packet starts to wait at a port, whose transmitter has this activity.
    #[inline]
    pub fn enter(&mut self, packet: &Packet, now: Time, totals: &Totals) {
        self.hops[number(packet)].waited.begin(now, totals);
    }

    /// Reads ahead the record for the next hop of a packet, as [`Routes::read_ahead`] does for its link;
    /// for the last hop, also the record for its delivery.
    ///
    /// [`Routes::read_ahead`]: crate::network::routes::Routes::read_ahead
    pub fn read_ahead(&self, packet: &Packet, is_last: bool) {
        let number = number(packet);
        self.hops.get(number).map(HopSums::read_ahead);
        if is_last && let Some(legs) = self.legs.get(number) {
            legs.read_ahead();
            if has(packet, IS_BACK) {
                self.accounts.read_ahead(&legs.account);
            }
        }
    }

    /// Adds the passage of a packet over a link.
    #[inline]
    pub fn hop(&mut self, packet: &mut Packet, hop: &Hop) {
        let number = number(packet);
        let sums = &mut self.hops[number];
        sums.pass(hop);
        if hop.stamps && !packet.kind.is_answer() {
            sums.stamp = hop.starts;
        }
        if has(packet, IS_FIRST) {
            self.legs[number].left = sums.waited;
            packet.sent_at = Time(packet.sent_at.0 & !IS_FIRST);
        }
    }

    /// Takes the record of a packet in flight that goes to another partition.
    pub fn export(&mut self, packet: &Packet, hop: &Hop) -> ExportedRecord {
        let number = number(packet);
        let mut hops = self.hops[number];
        hops.pass_port(hop);
        self.hops.release(number);
        let mut legs = std::mem::take(&mut self.legs[number]);
        let reference = std::mem::take(&mut legs.account);
        let account = *self.accounts.get(&reference);
        self.accounts.release(reference);
        let logged = self.log.as_mut().and_then(|log| log.take(legs.row));
        let begin = self.log.as_mut().and_then(|log| log.take_wait(number as u32));
        ExportedRecord { hops, legs, account, logged, begin, starts: hop.starts }
    }

    /// Starts the delivery of a packet at the end of its route, and restores its timestamp.
    pub fn deliver(&mut self, packet: &mut Packet, now: Time) {
        let number = number(packet);
        self.end_log(number, packet, Fate::Arrived(now));
        let sums = &self.hops[number];
        if !has(packet, IS_BACK) {
            self.legs[number].arrived = sums.waited;
        }
        packet.sent_at = sums.stamp;
        self.delivered = Some(number as u32);
    }

    /// Takes the content of the record of the packet that is being delivered.
    pub fn take(&mut self) -> Option<PacketRecord> {
        let number = self.delivered? as usize;
        let delays = self.delays(number);
        let LegSums { account, receiver, .. } = &mut self.legs[number];
        Some(PacketRecord { breakdown: std::mem::take(account), delays, receiver: *receiver })
    }

    /// Returns the breakdown of a flow that the packet that is being delivered completes.
    pub fn finish(&self) -> Option<Completion> {
        let number = self.delivered? as usize;
        let breakdown = *self.accounts.get(&self.legs[number].account);
        let connection = Duration::ZERO;
        Some(Completion { breakdown, delays: self.delays(number), connection })
    }

    fn delays(&self, number: usize) -> PathDelays {
        let HopSums { waited, transmission, propagation, .. } = &self.hops[number];
        let LegSums { left, arrived, .. } = &self.legs[number];
        let legs = [*left, arrived.since(left), waited.since(arrived)].map(|leg| leg.divided());
        PathDelays::new(&legs, *transmission, *propagation)
    }

    /// Detaches the record of the packet that is being delivered, for a later answer.
    pub fn keep(&mut self) -> Option<u32> {
        self.delivered.take()
    }

    /// Attaches a record that was [kept](Self::keep) while the answer was delayed by `delay`.
    pub fn resume(&mut self, kept: u32, delay: Duration) {
        self.legs[kept as usize].receiver += delay;
        self.delivered = Some(kept);
    }

    /// Frees a record.
    pub fn free(&mut self, number: u32) {
        let account = std::mem::take(&mut self.legs[number as usize].account);
        self.accounts.release(account);
        self.hops.release(number as usize);
    }

    /// Ends the delivery of a packet, and frees its record unless it was moved or kept.
    pub fn clear(&mut self) {
        if let Some(number) = self.delivered.take() {
            self.free(number);
        }
    }

    /// Asserts that all records and breakdowns have been freed.
    pub fn assert_empty(&self) {
        let left = (self.hops.in_use(), self.accounts.used());
        assert_eq!(left, (0, 0), "packet records and breakdowns that were not freed");
    }

    /// Continues the record of a header that returns to its sender on the reverse path, even if it waited.
    pub fn turn_back(&mut self, header: &mut Packet) {
        let number = number(header);
        if let Some(log) = &mut self.log {
            log.take_wait(number as u32);
        }
        self.legs[number].arrived = self.hops[number].waited;
        header.sent_at = Time(number as u64 | IS_BACK);
    }

    /// Logs that a packet is trimmed.
    pub fn trim(&mut self, packet: &Packet, link: LinkId, now: Time) {
        self.end_log(number(packet), packet, Fate::Lost(now, link, LossCause::Trimmed));
    }

    /// Frees the record of a packet that is lost.
    pub fn lose(&mut self, packet: &Packet, fate: Fate) {
        self.end_log(number(packet), packet, fate);
        self.free(number(packet) as u32);
    }

    /// Logs the fate of the packet of a record, if its flow is recorded.
    fn end_log(&mut self, number: usize, packet: &Packet, fate: Fate) {
        let row = std::mem::take(&mut self.legs[number].row);
        if row > 0
            && let Some(log) = &mut self.log
        {
            log.end(row, packet, fate);
        }
    }
}

impl LegSums {
    /// Reads both lines of memory ahead.
    fn read_ahead(&self) {
        prefetch(&self.receiver);
        prefetch(&self.arrived);
    }
}

impl HopSums {
    /// Reads the line of memory ahead.
    fn read_ahead(&self) {
        prefetch(self);
    }

    /// Adds the departure from a port.
    fn pass_port(&mut self, hop: &Hop) {
        if let Some(totals) = &hop.totals {
            self.waited.end(hop.starts, totals);
        }
    }

    /// Adds the arrival at the end of a link.
    fn pass(&mut self, hop: &Hop) {
        self.pass_port(hop);
        self.transmission += hop.transmission;
        self.propagation += hop.propagation;
    }
}

/// Packet records. Not inlined, since runs without records should not pay for them.
impl Network {
    /// Starts the delivery of a packet with a record.
    #[inline(never)]
    pub fn begin_delivery(&mut self, packet: &mut Packet, now: Time) {
        if let Some(records) = &mut self.records {
            records.deliver(packet, now);
        }
    }

    /// Takes the content of the record of the packet that is being delivered.
    pub fn take_record(&mut self) -> Option<PacketRecord> {
        self.records.as_mut().and_then(|records| records.take())
    }

    /// Creates the record of a packet that is sent, with the breakdown up to its transmission.
    #[inline(never)]
    pub fn record_send(&mut self, packet: &mut Packet, account: BreakdownRef, sending: Sending) {
        if let Some(records) = &mut self.records {
            records.send(packet, account);
            records.log(packet, (0, 0), sending);
        }
    }

    /// Moves the record of the packet that is being delivered to its answer.
    #[inline(never)]
    pub fn record_answer(&mut self, packet: &mut Packet, is_of_connection: bool, now: Time) {
        let block = self.ack_options.first_block(packet);
        if let Some(records) = &mut self.records {
            records.answer(packet);
            let sending = Sending { is_of_connection, ..Sending::of_control(now) };
            records.log(packet, block, sending);
        }
    }

    /// Takes the log of packets.
    pub fn take_log(&mut self) -> Option<PacketLog> {
        self.records.as_mut()?.log.take().map(|log| *log)
    }

    /// Returns true if packets of all flows are logged.
    pub fn logs_all_flows(&self) -> bool {
        self.records
            .as_ref()
            .and_then(|records| records.log.as_ref())
            .is_some_and(|log| log.follows_all())
    }

    /// Drops the log of a flow that has ended.
    pub fn forget_packets(&mut self, flow: FlowNumber) {
        if let Some(log) = self.records.as_mut().and_then(|records| records.log.as_mut()) {
            log.forget(flow);
        }
    }

    /// Returns the time that a host's port has been idle because of pauses of a flow's class, if the
    /// breakdown is recorded and senders wait for the port.
    pub fn paused(&self, link: LinkId, flow: FlowNumber, now: Time) -> Duration {
        let is_relevant = self.is_awaited && self.buffers.is_some();
        let port = self.ports.get(link as usize).filter(|_| is_relevant);
        port.map_or(Duration::ZERO, |port| port.idle_for(self.traffic.of(flow), now))
    }

    /// Ends the delivery of a packet with a record.
    #[inline(never)]
    pub fn end_delivery(&mut self) {
        if let Some(records) = &mut self.records {
            records.clear();
        }
    }

    /// Records that a packet of a class starts to wait at a port.
    pub(in crate::network) fn record_enqueue(
        &mut self,
        packet: &Packet,
        class: Class,
        link: LinkId,
        now: Time,
    ) {
        if let Some(records) = &mut self.records
            && !packet.kind.is_frame()
            && let Some(totals) = self.ports[link as usize].enter(packet, class, now)
        {
            records.enter(packet, now, &totals);
            if records.follows(link) {
                let backlog = self.ports[link as usize].backlog(now).bytes;
                let queue = backlog.saturating_sub(u64::from(packet.bytes));
                records.log_wait(packet, HopBegin { came: now, queue });
            }
        }
    }
}

#[cfg(test)]
mod tests;
