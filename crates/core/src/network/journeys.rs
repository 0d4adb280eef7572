//! What packets in the network carry beside them, if accounts are kept.
//!
//! Packets have no byte to spare. But nobody in the network reads their time stamps: so a stamp is put aside,
//! and in its place the packet has the number of its parcel until it comes to the end of its way.

use std::hint::black_box;

use super::doings::{Entry, Totals};
use super::port::Hop;
use crate::account::{Account, Arrival, Journey, Leg, Parcel};
use crate::packet::Packet;
use crate::units::{Duration, Time};

/// What hops look at of a parcel, in the order in which they do: few lines of memory each.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Tag {
    /// When its packet came to the port where it waits, if it does; else never.
    came: Time,
    /// What the port's transmitter had done by then.
    totals: Totals,
    leg: Leg,
    journey: Journey,
    stamp: Time,
    receiver: Duration,
}

/// The parcels of the packets in the network, and of those that receivers have yet to answer.
#[derive(Default)]
pub struct Journeys {
    tags: Vec<Tag>,
    accounts: Vec<Account>,
    free: Vec<u32>,
    /// The parcel of the packet that has just come to the end of its way, while nobody has taken it.
    came: Option<u32>,
}

impl Journeys {
    /// A packet sets out, with the account of its sending.
    pub fn send(&mut self, packet: &mut Packet, account: &Account) {
        self.load(packet, account, &Journey::NONE, Duration::ZERO, Leg::Host);
    }

    /// A packet comes from another part of the run with its parcel.
    pub fn put(&mut self, packet: &mut Packet, parcel: &Parcel) {
        let Parcel { stamp, account, journey, receiver, leg, .. } = parcel;
        packet.sent_at = *stamp;
        self.load(packet, account, journey, *receiver, *leg);
    }

    fn load(
        &mut self,
        packet: &mut Packet,
        account: &Account,
        journey: &Journey,
        receiver: Duration,
        leg: Leg,
    ) {
        let (stamp, journey) = (packet.sent_at, *journey);
        let tag =
            Tag { came: Time::NEVER, totals: Totals::default(), leg, journey, stamp, receiver };
        let number = if let Some(number) = self.free.pop() {
            self.tags[number as usize] = tag;
            self.accounts[number as usize] = *account;
            number
        } else {
            self.tags.push(tag);
            self.accounts.push(*account);
            (self.tags.len() - 1) as u32
        };
        packet.sent_at = Time(u64::from(number));
    }

    /// An answer sets out, with the parcel of the packet that has come and caused it.
    pub fn answer(&mut self, packet: &mut Packet) {
        let Some(number) = self.came.take() else {
            self.send(packet, &Account::NONE);
            return;
        };
        let tag = &mut self.tags[number as usize];
        tag.stamp = packet.sent_at;
        tag.leg = Leg::Back;
        packet.sent_at = Time(u64::from(number));
    }

    /// These packets have come to ports and wait there.
    pub fn enter(&mut self, entries: impl Iterator<Item = Entry>) {
        for Entry { number, came, totals } in entries {
            let tag = &mut self.tags[number as usize];
            (tag.came, tag.totals) = (came, totals);
        }
    }

    /// Brings what the next hop of a packet looks at into a near cache, as [`Routes::read_ahead`] does.
    ///
    /// [`Routes::read_ahead`]: super::routes::Routes::read_ahead
    pub fn read_ahead(&self, packet: &Packet) {
        if let Some(tag) = self.tags.get(number(packet)) {
            black_box((tag.came, tag.journey.queue_own_there(), tag.receiver));
        }
    }

    /// A packet has come to the end of a link.
    pub fn hop(&mut self, packet: &Packet, hop: &Hop) {
        let tag = &mut self.tags[number(packet)];
        tag.leave(hop);
        tag.journey.pass(hop.transmission, hop.propagation);
        if tag.leg == Leg::Host {
            tag.leg = Leg::There;
        }
        if hop.stamps && !packet.kind.is_answer() {
            tag.stamp = hop.starts;
        }
    }

    /// A packet on the wire goes on elsewhere, with what is returned.
    pub fn ship(&mut self, packet: &Packet, hop: &Hop) -> Parcel {
        self.tags[number(packet)].leave(hop);
        self.take(packet, hop.starts)
    }

    /// A packet has come to the end of its way, and gets its time stamp back.
    pub fn land(&mut self, packet: &mut Packet) {
        let number = number(packet);
        packet.sent_at = self.tags[number].stamp;
        self.came = Some(number as u32);
    }

    /// What the packet carried that has just come, while nobody has taken it.
    pub fn came(&self) -> Option<Arrival<'_>> {
        self.came.map(|number| {
            let Tag { journey, receiver, .. } = &self.tags[number as usize];
            Arrival { account: &self.accounts[number as usize], journey, receiver: *receiver }
        })
    }

    /// Keeps it for later; says where.
    pub fn keep(&mut self) -> Option<u32> {
        self.came.take()
    }

    /// Takes up what was kept, while its packet waited so long to be answered.
    pub fn take_up(&mut self, kept: u32, waited: Duration) {
        self.tags[kept as usize].receiver += waited;
        self.came = Some(kept);
    }

    /// Gives up what was kept.
    pub fn give_up(&mut self, kept: u32) {
        self.free.push(kept);
    }

    /// The packet that came last has been dealt with.
    pub fn clear(&mut self) {
        self.free.extend(self.came.take());
    }

    /// Takes what a packet carries whose last transmission started then.
    fn take(&mut self, packet: &Packet, starts: Time) -> Parcel {
        let number = number(packet);
        self.free.push(number as u32);
        let Tag { stamp, journey, receiver, leg, .. } = self.tags[number];
        Parcel { stamp, account: self.accounts[number], journey, receiver, leg, starts }
    }

    /// A packet is lost, and what it carried.
    pub fn lose(&mut self, packet: &Packet) {
        self.free.push(number(packet) as u32);
    }
}

impl Tag {
    /// Its packet has left the port where it may have waited.
    fn leave(&mut self, hop: &Hop) {
        if self.came < Time::NEVER {
            self.journey.wait(self.leg, &hop.totals.since(&self.totals, hop.starts - self.came));
            self.came = Time::NEVER;
        }
    }
}

/// The number of a packet's parcel.
pub fn number(packet: &Packet) -> usize {
    packet.sent_at.0 as usize
}
