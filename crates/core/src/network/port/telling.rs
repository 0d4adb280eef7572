//! Whom a port tells what leaves it: its router, and who keeps account of waits.

use super::Port;
use crate::network::doings::{Entry, Exit, Totals};
use crate::network::traffic::Class;
use crate::packet::Packet;
use crate::router::View;
use crate::units::{Duration, Time};

/// How a packet came over a link.
#[derive(Clone, Copy, Debug)]
pub struct Hop {
    /// What the transmitter had done when it turned to the packet.
    pub totals: Totals,
    /// When that was.
    pub starts: Time,
    /// How long the transmission took.
    pub transmission: Duration,
    /// How long the wire delays.
    pub propagation: Duration,
    /// Whether the packet got its time stamp when its transmission started, if it is no answer.
    pub stamps: bool,
}

impl Port {
    /// Shows the packet whose transmission starts to the router, and to who keeps account. Apart, because
    /// other ports should not pay for it.
    #[cold]
    pub(super) fn tell(&mut self, starts: Time) {
        let view = View { now: starts, waiting: self.transmitter.waiting.bytes };
        let ends = self.transmitter.busy_until;
        let Some(packet) = self.transmitter.last() else { return };
        if let Some(router) = &mut self.router {
            router.on_depart(packet, view);
        }
        if let Some(doings) = &mut self.doings {
            doings.start(packet, starts, ends, &self.pauses);
        }
    }

    /// Notes for the account of a packet of a class that it waits from now on.
    #[cold]
    pub(super) fn note_entry(&mut self, packet: &Packet, class: Class, now: Time) {
        if let Some(doings) = &mut self.doings {
            doings.enter(packet, class, now, &self.pauses);
        }
    }

    /// The queue has dropped a packet that waited.
    pub fn note_reject(&mut self, packet: &Packet) {
        if let Some(doings) = &mut self.doings {
            doings.reject(packet);
        }
    }

    /// The packets that were let wait since this was last asked.
    pub fn entries(&mut self) -> impl Iterator<Item = Entry> {
        self.doings.as_mut().map(|doings| doings.entries.drain(..)).into_iter().flatten()
    }

    /// How the packet of `bytes` came over the link that has come to its end now, if account is kept of it.
    pub fn hop(&mut self, bytes: u16, now: Time) -> Option<Hop> {
        let doings = self.doings.as_mut()?;
        let Exit { starts, totals } = doings.exit();
        let ends = self.transmitter.end(bytes, starts);
        let (transmission, propagation) = (ends - starts, now - ends);
        Some(Hop { totals, starts, transmission, propagation, stamps: doings.stamps })
    }
}
