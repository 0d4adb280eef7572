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
            doings.start(packet, starts, ends);
        }
    }

    /// Notes for the account of a packet of a class that it waits from now on.
    #[cold]
    pub(super) fn note_entry(&mut self, packet: &Packet, class: Class, now: Time) {
        if let Some(doings) = &mut self.doings {
            doings.enter(packet, class, now);
        }
    }

    /// How long the transmitter has been idle for pauses of a class, if account is kept. A port that is
    /// paused is prompt if senders await their turn there, so that nothing is still to be caught up with.
    pub fn idle_for(&self, class: Class, now: Time) -> Duration {
        self.doings.as_ref().map_or(Duration::ZERO, |doings| doings.idle_for(class, now))
    }

    /// The queue has dropped a packet that waited.
    pub fn note_reject(&mut self, packet: &Packet) {
        if let Some(doings) = &mut self.doings {
            doings.reject(packet);
        }
    }

    /// The packet that has just been let wait, if account is kept of it.
    pub fn entry(&mut self) -> Option<Entry> {
        self.doings.as_mut()?.entry.take()
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
