//! What packets in the network carry beside them, if accounts are kept.
//!
//! Packets have no byte to spare. But nobody in the network reads their time stamps: so a stamp is put aside,
//! and in its place the packet has the number of its parcel until it comes to the end of its way, and with it
//! what differs from hop to hop.

use std::hint::black_box;

use super::port_activity::{Totals, Waited};
use crate::base::units::{Duration, Time};
use crate::breakdown::next_fit::NextFit;
use crate::breakdown::pool::{BreakdownRef, Pool};
use crate::breakdown::{Arrival, Breakdown, Finish, Journey};
use crate::model::graph::LinkId;
use crate::model::packet::{FlowNumber, Packet};
use crate::network::Network;
use crate::network::port::Hop;
use crate::network::switch::traffic_classes::Class;

/// What hops look at of a parcel: one line of memory. Its sums are over the way there and back: nothing is
/// taken out of them before an account asks.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
struct HopSums {
    /// The time stamp of the packet, which meanwhile carries the number of this.
    stamp: Time,
    waited: Waited,
    transmission: Duration,
    propagation: Duration,
}

const _: () = assert!(size_of::<HopSums>() == 64);

/// The rest of a parcel, for the ends of legs. On its way nothing of it is read.
#[derive(Debug, Default)]
#[repr(C, align(32))]
struct LegSums {
    /// Of its sending, or of that which it answers; empty, if it was sent as the flow was opened.
    account: BreakdownRef,
    /// How long the receiver held back the answer.
    receiver: Duration,
    /// How long it had waited when it left its host, and when it came to the other.
    left: Waited,
    came: Waited,
}

/// What a packet carries from part to part of a run.
#[derive(Debug)]
pub struct Parcel {
    tag: HopSums,
    load: LegSums,
    /// That of its load, which other parts know nothing of.
    account: Breakdown,
    /// When the packet's transmission started on the link that it is on.
    pub starts: Time,
}

/// The parcels of the packets in the network, and of those that receivers have yet to answer.
#[derive(Default)]
pub struct PacketRecords {
    tags: Vec<HopSums>,
    loads: Vec<LegSums>,
    places: NextFit,
    /// Those that they, and senders, have.
    pub accounts: Pool,
    /// The parcel of the packet that has just come to the end of its way, while nobody has taken it.
    came: Option<u32>,
}

/// What a packet has beside the number of its parcel: whether it is on its first link, whether it is an
/// answer, and whether it waited for the link that it is on.
const IS_FIRST: u64 = 1 << 32;
const IS_BACK: u64 = 1 << 33;
const HAS_WAITED: u64 = 1 << 34;

/// The number of a packet's parcel.
fn number(packet: &Packet) -> usize {
    packet.sent_at.0 as u32 as usize
}

fn is(packet: &Packet, what: u64) -> bool {
    packet.sent_at.0 & what != 0
}

/// Whether a packet waited for the link that it is on, if it has a parcel.
pub fn has_waited(packet: &Packet) -> bool {
    is(packet, HAS_WAITED) && !packet.kind.is_frame()
}

/// A packet that has a parcel waited for its link, or did not.
pub fn set_waited(packet: &mut Packet, has_waited: bool) {
    let others = packet.sent_at.0 & !HAS_WAITED;
    packet.sent_at = Time(others | if has_waited { HAS_WAITED } else { 0 });
}

impl PacketRecords {
    /// A packet sets out, with the account of its sending.
    pub fn send(&mut self, packet: &mut Packet, account: BreakdownRef) {
        let number = self.place();
        self.tags[number] = HopSums { stamp: packet.sent_at, ..HopSums::default() };
        let load = &mut self.loads[number];
        (load.account, load.receiver) = (account, Duration::ZERO);
        packet.sent_at = Time(number as u64 | IS_FIRST);
    }

    /// A packet comes from another part of the run with its parcel.
    pub fn put(&mut self, packet: &mut Packet, parcel: Parcel) {
        let number = self.place();
        let Parcel { tag, load, account, .. } = parcel;
        let account = self.accounts.add(account);
        (self.tags[number], self.loads[number]) = (tag, LegSums { account, ..load });
        packet.sent_at = Time(packet.sent_at.0 & (IS_FIRST | IS_BACK) | number as u64);
    }

    /// The number of a parcel that nobody has.
    fn place(&mut self) -> usize {
        let Self { places, tags, loads, .. } = self;
        let number = places.take(|numbers| {
            tags.get(numbers.clone()).unwrap_or_default().iter().for_each(HopSums::read_ahead);
            loads.get(numbers).unwrap_or_default().iter().for_each(LegSums::read_ahead);
        });
        if number >= self.tags.len() {
            self.tags.resize_with(self.places.end(), HopSums::default);
            self.loads.resize_with(self.places.end(), LegSums::default);
        }
        number
    }

    /// An answer sets out, with the parcel of the packet that has come and caused it.
    pub fn answer(&mut self, packet: &mut Packet) {
        let Some(number) = self.came.take() else {
            self.send(packet, BreakdownRef::default());
            return;
        };
        self.tags[number as usize].stamp = packet.sent_at;
        packet.sent_at = Time(u64::from(number) | IS_BACK);
    }

    /// A packet has come to a port and waits there, whose transmitter has done so much by then.
    pub fn enter(&mut self, packet: &Packet, now: Time, totals: &Totals) {
        self.tags[number(packet)].waited.begin(now, totals);
    }

    /// Brings what the next hop of a packet looks at into a near cache, as [`Routes::read_ahead`] does; and
    /// what its arrival looks at, if it is the last.
    ///
    /// [`Routes::read_ahead`]: crate::network::routes::Routes::read_ahead
    pub fn read_ahead(&self, packet: &Packet, is_last: bool) {
        let number = number(packet);
        self.tags.get(number).map(HopSums::read_ahead);
        if is_last && let Some(load) = self.loads.get(number) {
            load.read_ahead();
            if is(packet, IS_BACK) {
                self.accounts.read_ahead(&load.account);
            }
        }
    }

    /// A packet has come to the end of a link.
    pub fn hop(&mut self, packet: &mut Packet, hop: &Hop) {
        let number = number(packet);
        let tag = &mut self.tags[number];
        tag.pass(hop);
        if hop.stamps && !packet.kind.is_answer() {
            tag.stamp = hop.starts;
        }
        if is(packet, IS_FIRST) {
            self.loads[number].left = tag.waited;
            packet.sent_at = Time(packet.sent_at.0 & !IS_FIRST);
        }
    }

    /// A packet on the wire goes on elsewhere, with what is returned.
    pub fn ship(&mut self, packet: &Packet, hop: &Hop) -> Parcel {
        let number = number(packet);
        let mut tag = self.tags[number];
        tag.pass_port(hop);
        self.places.release(number);
        let mut load = std::mem::take(&mut self.loads[number]);
        let share = std::mem::take(&mut load.account);
        let account = *self.accounts.get(&share);
        self.accounts.release(share);
        Parcel { tag, load, account, starts: hop.starts }
    }

    /// A packet has come to the end of its way, and gets its time stamp back.
    pub fn land(&mut self, packet: &mut Packet) {
        let number = number(packet);
        let tag = &self.tags[number];
        if !is(packet, IS_BACK) {
            self.loads[number].came = tag.waited;
        }
        packet.sent_at = tag.stamp;
        self.came = Some(number as u32);
    }

    /// What the packet carried that has just come, and carries no more.
    pub fn take(&mut self) -> Option<Arrival> {
        let number = self.came? as usize;
        let journey = self.journey(number);
        let LegSums { account, receiver, .. } = &mut self.loads[number];
        Some(Arrival { account: std::mem::take(account), journey, receiver: *receiver })
    }

    /// How a flow was completed by the packet that has just come.
    pub fn finish(&self) -> Option<Finish> {
        let number = self.came? as usize;
        let account = *self.accounts.get(&self.loads[number].account);
        Some(Finish { account, journey: self.journey(number) })
    }

    fn journey(&self, number: usize) -> Journey {
        let HopSums { waited, transmission, propagation, .. } = &self.tags[number];
        let LegSums { left, came, .. } = &self.loads[number];
        let legs = [*left, came.since(left), waited.since(came)].map(|leg| leg.divided());
        Journey::new(&legs, *transmission, *propagation)
    }

    /// Keeps it for later; says where.
    pub fn keep(&mut self) -> Option<u32> {
        self.came.take()
    }

    /// Takes up what was kept, while its packet waited so long to be answered.
    pub fn take_up(&mut self, kept: u32, waited: Duration) {
        self.loads[kept as usize].receiver += waited;
        self.came = Some(kept);
    }

    /// Gives up what was kept.
    pub fn give_up(&mut self, kept: u32) {
        let share = std::mem::take(&mut self.loads[kept as usize].account);
        self.accounts.release(share);
        self.places.release(kept as usize);
    }

    /// The packet that came last has been dealt with.
    pub fn clear(&mut self) {
        if let Some(number) = self.came.take() {
            self.give_up(number);
        }
    }

    /// Checks that no packet has anything any more, and no sender.
    pub fn assert_empty(&self) {
        let left = (self.places.taken(), self.accounts.held());
        assert_eq!(left, (0, 0), "parcels and accounts that nobody gave back");
    }

    /// A packet is lost, and what it carried.
    pub fn lose(&mut self, packet: &Packet) {
        self.give_up(number(packet) as u32);
    }
}

impl LegSums {
    /// Brings it into a near cache: both of its lines.
    fn read_ahead(&self) {
        black_box((self.receiver, self.came));
    }
}

impl HopSums {
    /// Brings it into a near cache.
    fn read_ahead(&self) {
        black_box(self.stamp);
    }

    /// Its packet has left the port where it may have waited.
    fn pass_port(&mut self, hop: &Hop) {
        if let Some(totals) = &hop.totals {
            self.waited.end(hop.starts, totals);
        }
    }

    /// Its packet has come to the end of a link.
    fn pass(&mut self, hop: &Hop) {
        self.pass_port(hop);
        self.transmission += hop.transmission;
        self.propagation += hop.propagation;
    }
}

/// What the network does for accounts, if they are kept. Apart, because others should not pay for it.
impl Network {
    /// A packet that carries an account has come to the end of its way.
    #[inline(never)]
    pub fn land(&mut self, packet: &mut Packet) {
        if let Some(records) = &mut self.records {
            records.land(packet);
        }
    }

    /// What the packet carried that has landed last, if it may tell what lets go.
    pub fn take(&mut self) -> Option<Arrival> {
        self.records.as_mut().and_then(|records| records.take())
    }

    /// A packet is to carry the account of its sending.
    #[inline(never)]
    pub fn load(&mut self, packet: &mut Packet, account: BreakdownRef) {
        if let Some(records) = &mut self.records {
            records.send(packet, account);
        }
    }

    /// How long a host's port has been idle for pauses of a flow's class, if senders wait for their turn
    /// there, and account is kept.
    pub fn paused(&self, link: LinkId, flow: FlowNumber, now: Time) -> Duration {
        let is_asked = self.is_paced && self.buffers.is_some();
        let port = self.ports.get(link as usize).filter(|_| is_asked);
        port.map_or(Duration::ZERO, |port| port.idle_for(self.traffic.of(flow), now))
    }

    /// The packet that has landed last has been dealt with.
    #[inline(never)]
    pub fn clear(&mut self) {
        if let Some(records) = &mut self.records {
            records.clear();
        }
    }

    /// Notes for its account that a packet of a class waits from now on at a port.
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
        }
    }
}
