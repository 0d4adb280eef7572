//! What packets in the network carry beside them, if accounts are kept.
//!
//! Packets have no byte to spare. But nobody in the network reads their time stamps: so a stamp is put aside,
//! and in its place the packet has the number of its parcel until it comes to the end of its way.

use super::doings::{Entry, Totals};
use super::port::Hop;
use crate::account::{Account, Leg, Parcel};
use crate::packet::Packet;
use crate::units::{Duration, Time};

/// The parcels of the packets in the network, and of those that receivers have yet to answer.
#[derive(Default)]
pub struct Journeys {
    parcels: Vec<Parcel>,
    /// When each packet came to the port where it waits, and what its transmitter had done by then; none if
    /// it did not wait at the last one.
    entries: Vec<Option<(Time, Totals)>>,
    free: Vec<u32>,
    /// The parcel of the packet that has just come to the end of its way, while nobody has taken it.
    came: Option<u32>,
}

impl Journeys {
    /// A packet sets out, with the account of its sending.
    pub fn send(&mut self, packet: &mut Packet, account: Account) {
        self.put(packet, Parcel { stamp: packet.sent_at, account, ..Parcel::default() });
    }

    /// A packet has to carry a parcel from now on.
    pub fn put(&mut self, packet: &mut Packet, parcel: Parcel) {
        let number = self.free.pop().unwrap_or_else(|| {
            self.parcels.push(Parcel::default());
            self.entries.push(None);
            (self.parcels.len() - 1) as u32
        });
        self.parcels[number as usize] = parcel;
        self.entries[number as usize] = None;
        packet.sent_at = Time(u64::from(number));
    }

    /// An answer sets out, with the parcel of the packet that has come and caused it.
    pub fn answer(&mut self, packet: &mut Packet) {
        let Some(number) = self.came.take() else {
            self.send(packet, Account::default());
            return;
        };
        let parcel = &mut self.parcels[number as usize];
        parcel.stamp = packet.sent_at;
        parcel.leg = Leg::Back;
        packet.sent_at = Time(u64::from(number));
    }

    /// These packets have come to ports and wait there.
    pub fn enter(&mut self, entries: impl Iterator<Item = Entry>) {
        for Entry { packet, came, totals } in entries {
            self.entries[number(&packet)] = Some((came, totals));
        }
    }

    /// A packet has come to the end of a link.
    pub fn hop(&mut self, packet: &Packet, hop: &Hop) {
        self.leave(packet, hop);
        let parcel = &mut self.parcels[number(packet)];
        parcel.journey.pass(hop.transmission, hop.propagation);
        if parcel.leg == Leg::Host {
            parcel.leg = Leg::There;
        }
        if hop.stamps && !packet.kind.is_answer() {
            parcel.stamp = hop.starts;
        }
    }

    /// A packet on the wire goes on elsewhere, with what is returned.
    pub fn ship(&mut self, packet: &Packet, hop: &Hop) -> Parcel {
        self.leave(packet, hop);
        self.take(packet)
    }

    /// A packet has left the port where it may have waited.
    fn leave(&mut self, packet: &Packet, hop: &Hop) {
        let number = number(packet);
        if let Some((came, totals)) = self.entries[number].take() {
            let parcel = &mut self.parcels[number];
            parcel.journey.wait(parcel.leg, &hop.exit.since(&totals, hop.starts - came));
        }
    }

    /// A packet has come to the end of its way, and gets its time stamp back.
    pub fn land(&mut self, packet: &mut Packet) {
        let number = number(packet);
        packet.sent_at = self.parcels[number].stamp;
        self.came = Some(number as u32);
    }

    /// The parcel of the packet that has just come, while nobody has taken it.
    pub fn came(&self) -> Option<&Parcel> {
        self.came.map(|number| &self.parcels[number as usize])
    }

    /// Keeps it for later; says where.
    pub fn keep(&mut self) -> Option<u32> {
        self.came.take()
    }

    /// Takes up what was kept, while its packet waited so long to be answered.
    pub fn take_up(&mut self, kept: u32, waited: Duration) {
        self.parcels[kept as usize].receiver += waited;
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

    /// A packet is lost, and what it carried.
    pub fn take(&mut self, packet: &Packet) -> Parcel {
        let number = number(packet);
        self.free.push(number as u32);
        self.parcels[number]
    }
}

/// The number of a packet's parcel.
fn number(packet: &Packet) -> usize {
    packet.sent_at.0 as usize
}
