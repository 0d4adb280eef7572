//! Whom a port tells what leaves it: its router, and who keeps account of waits.

use super::{Observer, Port};
use crate::base::units::{Duration, Time};
use crate::model::packet::Packet;
use crate::network::breakdown::packet_records;
use crate::network::breakdown::port_activity::Totals;
use crate::network::switch::traffic_classes::Class;
use crate::router::PortView;

/// How a packet came over a link.
#[derive(Clone, Copy, Debug)]
pub struct Hop {
    /// When its transmission started.
    pub starts: Time,
    /// What the transmitter had done by then, if the packet had to wait.
    pub totals: Option<Totals>,
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
    pub(super) fn tell(&mut self, starts: Time, has_waited: bool) {
        let view = PortView { now: starts, backlog: self.transmitter.waiting.bytes };
        let ends = self.transmitter.busy_until;
        let Some(packet) = self.transmitter.last() else { return };
        if self.told == Observer::Router
            && let Some(router) = &mut self.router
        {
            router.on_departure(packet, view);
        }
        if let Some(activity) = &mut self.activity {
            activity.start(packet, has_waited, starts, ends);
            if self.transmitter.changes() {
                activity.note_start(starts);
            }
        }
    }

    /// A packet of a class waits from now on: what the transmitter has done so far, if account is kept.
    #[inline]
    pub fn enter(&mut self, packet: &Packet, class: Class, now: Time) -> Option<Totals> {
        self.activity.as_mut().map(|activity| activity.enter(packet, class, now))
    }

    /// How long the transmitter has been idle for pauses of a class, if account is kept. A port that is
    /// paused is prompt if senders await their turn there, so that nothing is still to be caught up with.
    pub fn idle_for(&self, class: Class, now: Time) -> Duration {
        self.activity.as_ref().map_or(Duration::ZERO, |activity| activity.idle_for(class, now))
    }

    /// The queue has dropped a packet that waited.
    pub fn note_reject(&mut self, packet: &Packet) {
        if let Some(activity) = &mut self.activity {
            activity.reject(packet);
        }
    }

    /// How the packet came over the link that has come to its end now, if account is kept.
    pub fn hop(&mut self, packet: &Packet, now: Time) -> Option<Hop> {
        let activity = self.activity.as_mut()?;
        let (starts, ends) = self.transmitter.crossed(packet.bytes, now).unwrap_or_else(|| {
            let starts = activity.take_start();
            (starts, self.transmitter.end(packet.bytes, starts))
        });
        Some(Hop {
            starts,
            totals: packet_records::has_waited(packet).then(|| activity.exit()),
            transmission: ends - starts,
            propagation: now - ends,
            stamps: self.transmitter.stamps_aside,
        })
    }
}
