//! The wire behind a port: what comes to the end of its link.
//!
//! The node there takes packets off it, and is not told when the port starts a transmission: all that comes
//! within a window has been started when it begins (docs/design.md).

use super::{Hop, Port};
use crate::base::units::Time;
use crate::model::packet::Packet;
use crate::network::link::transmitter::Flight;

impl Port {
    /// Takes the packet that has come to the end of the link.
    pub fn take(&mut self) -> Packet {
        self.transmitter.arrive()
    }

    /// What comes to the end of the link before `ends`, of what has been started by `now`.
    pub fn arrivals(&mut self, now: Time, ends: Time) -> impl Iterator<Item = &Flight> {
        self.advance_to(now);
        self.transmitter.flights().take_while(move |flight| flight.arrives < ends)
    }

    /// The end of the link is served elsewhere.
    pub fn cut(&mut self) {
        self.is_cut = true;
    }

    /// Hands over all packets whose transmission has started by `now`, to go on elsewhere, with how they come
    /// over the link, if account is kept of it; says when the next transmission starts that nobody calls for,
    /// if one does.
    pub fn unload(&mut self, now: Time, mut take: impl FnMut(Flight, Option<Hop>)) -> Time {
        self.advance_to(now);
        while let Some(flight) = self.transmitter.unload() {
            let hop = self.hop(&flight.packet, flight.arrives);
            take(flight, hop);
        }
        let starts = self.transmitter.waiting.packets > 0 && !self.is_eager() && self.may_go();
        if starts { self.transmitter.busy_until } else { Time::NEVER }
    }

    /// Takes in a packet whose transmission has started elsewhere, which matters to accounts; says whether it
    /// is the first on the wire.
    pub fn load(&mut self, flight: Flight, starts: Time) -> bool {
        self.transmitter.load(flight);
        if let Some(activity) = &mut self.activity
            && self.transmitter.changes()
        {
            activity.note_start(starts);
        }
        self.transmitter.on_wire() == 1
    }

    /// Takes over what came to the end of its link elsewhere.
    pub fn absorb(&mut self, other: &mut Self) {
        while let Some(flight) = other.transmitter.unload() {
            self.transmitter.load(flight);
        }
        self.counters.lost += other.counters.lost;
        self.counters.cut_off += other.counters.cut_off;
    }

    /// When the first packet on the wire comes to its end, if there is one.
    pub fn next_arrival(&self) -> Option<Time> {
        self.transmitter.next_arrival()
    }

    /// Whether it matters who comes to the end of the link.
    pub fn is_watched(&self) -> bool {
        self.transmitter.is_watched
    }

    /// The link may fail.
    pub fn may_fail(&mut self) {
        self.transmitter.is_watched = true;
        self.transmitter.may_lose = true;
    }

    /// The link fails, or is back: all on it is lost.
    pub fn set_link_state(&mut self, is_down: bool, now: Time) {
        self.advance_to(now);
        self.outage.set_link_state(is_down, self.transmitter.on_wire());
    }

    /// Whether the packet that has just come to the end of the link is lost. Pause frames are only if the
    /// link has failed, which ends its pauses: another lost one would stop the link for ever.
    pub fn loses(&mut self, packet: &Packet) -> bool {
        if !self.transmitter.may_lose {
            return false;
        }
        let is_cut_off = self.outage.take();
        let is_lost = is_cut_off || self.losses.take(packet);
        self.counters.lost += u64::from(is_lost);
        self.counters.cut_off += u64::from(is_cut_off);
        is_lost
    }
}
