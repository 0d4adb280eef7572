//! What packets in the network carry beside them, if accounts are kept.
//!
//! Packets have no byte to spare. But nobody in the network reads their time stamps: so a stamp is put aside,
//! and in its place the packet has the number of its parcel until it comes to the end of its way.

use std::hint::black_box;
use std::sync::Arc;

use super::Network;
use super::doings::{Entry, Waited};
use super::port::Hop;
use crate::account::{Account, Arrival, Journey, Leg};
use crate::graph::LinkId;
use crate::packet::{FlowNumber, Packet};
use crate::units::{Duration, Time};

/// What hops look at of a parcel: one line of memory.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
struct Tag {
    /// On this leg, since the packet set out or was answered.
    waited: Waited,
    transmission: Duration,
    propagation: Duration,
    leg: Leg,
    waits: bool,
}

const _: () = assert!(size_of::<Tag>() == 64);

/// The rest of a parcel, for the ends of legs.
#[derive(Clone, Debug, Default)]
struct Load {
    /// The time stamp of the packet, which meanwhile carries the number of this.
    stamp: Time,
    /// How long the receiver held back the answer.
    receiver: Duration,
    /// Of its sending, or of that which it answers; with none, it was sent as the flow was opened.
    account: Option<Arc<Account>>,
    /// Where it has been on former legs.
    journey: Journey,
}

/// What a packet carries from part to part of a run.
#[derive(Debug)]
pub struct Parcel {
    tag: Tag,
    load: Load,
    /// When the packet's transmission started on the link that it is on.
    pub starts: Time,
}

/// The parcels of the packets in the network, and of those that receivers have yet to answer.
#[derive(Default)]
pub struct Journeys {
    tags: Vec<Tag>,
    loads: Vec<Load>,
    free: Vec<u32>,
    /// The parcel of the packet that has just come to the end of its way, while nobody has taken it.
    came: Option<u32>,
}

impl Journeys {
    /// A packet sets out, with the account of its sending, if it has one.
    pub fn send(&mut self, packet: &mut Packet, account: Option<Arc<Account>>) {
        let load = Load { stamp: packet.sent_at, account, ..Load::default() };
        self.add(packet, Tag::default(), load);
    }

    /// A packet comes from another part of the run with its parcel.
    pub fn put(&mut self, packet: &mut Packet, parcel: Parcel) {
        self.add(packet, parcel.tag, parcel.load);
    }

    fn add(&mut self, packet: &mut Packet, tag: Tag, load: Load) {
        let number = if let Some(number) = self.free.pop() {
            self.tags[number as usize] = tag;
            self.loads[number as usize] = load;
            number
        } else {
            self.tags.push(tag);
            self.loads.push(load);
            (self.tags.len() - 1) as u32
        };
        packet.sent_at = Time(u64::from(number));
    }

    /// An answer sets out, with the parcel of the packet that has come and caused it.
    pub fn answer(&mut self, packet: &mut Packet) {
        let Some(number) = self.came.take() else {
            self.send(packet, None);
            return;
        };
        self.tags[number as usize].leg = Leg::Back;
        self.loads[number as usize].stamp = packet.sent_at;
        packet.sent_at = Time(u64::from(number));
    }

    /// A packet has come to a port and waits there.
    pub fn enter(&mut self, entry: &Entry) {
        let tag = &mut self.tags[entry.number as usize];
        tag.waited.begin(entry.came, &entry.totals);
        tag.waits = true;
    }

    /// Brings what the next hop of a packet looks at into a near cache, as [`Routes::read_ahead`] does.
    ///
    /// [`Routes::read_ahead`]: super::routes::Routes::read_ahead
    pub fn read_ahead(&self, packet: &Packet) {
        black_box(self.tags.get(number(packet)).map(|tag| tag.waits));
    }

    /// A packet has come to the end of a link.
    pub fn hop(&mut self, packet: &Packet, hop: &Hop) {
        let number = number(packet);
        let tag = &mut self.tags[number];
        tag.leave(hop);
        tag.transmission += hop.transmission;
        tag.propagation += hop.propagation;
        if tag.leg == Leg::Host {
            tag.end_leg(&mut self.loads[number].journey);
            tag.leg = Leg::There;
        }
        if hop.stamps && !packet.kind.is_answer() {
            self.loads[number].stamp = hop.starts;
        }
    }

    /// A packet on the wire goes on elsewhere, with what is returned.
    pub fn ship(&mut self, packet: &Packet, hop: &Hop) -> Parcel {
        let number = number(packet);
        self.tags[number].leave(hop);
        self.free.push(number as u32);
        let load = std::mem::take(&mut self.loads[number]);
        Parcel { tag: self.tags[number], load, starts: hop.starts }
    }

    /// A packet has come to the end of its way, and gets its time stamp back.
    pub fn land(&mut self, packet: &mut Packet) {
        let number = number(packet);
        let load = &mut self.loads[number];
        self.tags[number].end_leg(&mut load.journey);
        packet.sent_at = load.stamp;
        self.came = Some(number as u32);
    }

    /// What the packet carried that has just come, while nobody has taken it.
    pub fn came(&self) -> Option<Arrival<'_>> {
        self.came.map(|number| {
            let Load { account, journey, receiver, .. } = &self.loads[number as usize];
            let account = account.as_deref().unwrap_or(&Account::NONE);
            Arrival { account, journey, receiver: *receiver }
        })
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
        self.loads[kept as usize].account = None;
        self.free.push(kept);
    }

    /// The packet that came last has been dealt with.
    pub fn clear(&mut self) {
        if let Some(number) = self.came.take() {
            self.give_up(number);
        }
    }

    /// A packet is lost, and what it carried.
    pub fn lose(&mut self, packet: &Packet) {
        self.give_up(number(packet) as u32);
    }
}

impl Tag {
    /// Its packet has left the port where it may have waited.
    fn leave(&mut self, hop: &Hop) {
        if self.waits {
            self.waited.end(hop.starts, &hop.totals);
            self.waits = false;
        }
    }

    /// Its packet has come to the end of a leg: puts that to the journey.
    fn end_leg(&mut self, journey: &mut Journey) {
        journey.wait(self.leg, &self.waited.divided());
        journey.pass(self.transmission, self.propagation);
        *self = Self { leg: self.leg, ..Self::default() };
    }
}

/// The number of a packet's parcel.
pub fn number(packet: &Packet) -> usize {
    packet.sent_at.0 as usize
}

/// What the network does for accounts, if they are kept. Apart, because others should not pay for it.
impl Network {
    /// A packet that carries an account has come to the end of its way.
    #[inline(never)]
    pub fn land(&mut self, packet: &mut Packet) {
        if let Some(journeys) = &mut self.journeys {
            journeys.land(packet);
        }
    }

    /// What the packet carried that has landed last, if it may tell what lets go.
    pub fn came(&self) -> Option<Arrival<'_>> {
        self.journeys.as_ref().and_then(|journeys| journeys.came())
    }

    /// A packet is to carry the account of its sending, if it has one.
    #[inline(never)]
    pub fn load(&mut self, packet: &mut Packet, account: Option<Arc<Account>>) {
        if let Some(journeys) = &mut self.journeys {
            journeys.send(packet, account);
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
        if let Some(journeys) = &mut self.journeys {
            journeys.clear();
        }
    }

    /// Notes for its account that a packet waits from now on at a port.
    pub(super) fn note_entry(&mut self, link: LinkId) {
        if let Some(journeys) = &mut self.journeys
            && let Some(entry) = self.ports[link as usize].entry()
        {
            journeys.enter(&entry);
        }
    }
}
