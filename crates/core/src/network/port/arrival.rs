//! The end of a port's link: packets in flight, their arrival and their loss.
//!
//! The receiving node takes packets off the link and is not notified of transmissions: every packet
//! that arrives within a window was started before the window begins (docs/design/engine.md).

use super::{Hop, Port, may_go};
use crate::base::prefetch::prefetch;
use crate::base::units::Time;
use crate::model::packet::Packet;
use crate::network::link::transmitter::Flight;
use crate::network::telemetry::PortTelemetry;

impl Port {
    /// Takes the packet that has arrived at the end of the link.
    pub fn take(&mut self) -> Packet {
        self.transmitter.arrive()
    }

    /// Returns the packets that arrive before `ends`, of those whose transmission has started by
    /// `now`.
    pub fn arrivals(&mut self, now: Time, ends: Time) -> impl Iterator<Item = &Flight> {
        self.advance_to(now);
        self.transmitter.flights().take_while(move |flight| flight.arrives < ends)
    }

    /// Reads ahead the lines of memory that a hop needs, without the packets.
    pub fn read_ahead(&self) {
        prefetch(&self.transmitter.busy_until);
        prefetch(&self.quiet_below);
        prefetch(&self.counters.arrived);
        prefetch(&self.data);
    }

    /// Reads ahead the packets that a hop needs.
    pub fn read_ahead_packets(&self) {
        self.transmitter.read_ahead();
    }

    /// Hands the packets in flight to another partition from now on (`export`).
    pub fn cut(&mut self) {
        self.service.cut();
    }

    /// Takes all packets whose transmission has started by `now` off the link, with their passage if
    /// it is recorded, and the port's telemetry. Returns the start of the next overdue transmission, if
    /// there will be one.
    pub(in crate::network) fn export(
        &mut self,
        now: Time,
        mut take: impl FnMut(Flight, Option<Hop>, Option<&mut PortTelemetry>),
    ) -> Time {
        self.advance_to(now);
        while let Some(flight) = self.transmitter.unload() {
            let hop = self.hop(&flight.packet, flight.arrives);
            take(flight, hop, self.telemetry());
        }
        let starts = self.transmitter.waiting.packets > 0
            && !self.is_eager()
            && may_go(self.control, &self.data, self.is_paused);
        if starts { self.transmitter.busy_until } else { Time::NEVER }
    }

    /// Puts a packet on the link whose transmission started at `starts` in another partition. Returns
    /// true if it is the first packet in flight.
    pub fn import(&mut self, flight: Flight, starts: Time) -> bool {
        self.transmitter.load(flight);
        if let Some(activity) = &mut self.activity
            && self.transmitter.changes()
        {
            activity.record_start(starts);
        }
        self.transmitter.in_flight() == 1
    }

    /// Takes over the packets in flight and the losses of this link from another partition.
    pub fn absorb(&mut self, other: &mut Self) {
        while let Some(flight) = other.transmitter.unload() {
            self.transmitter.load(flight);
        }
        self.counters.lost += other.counters.lost;
        self.counters.cut_off += other.counters.cut_off;
    }

    /// Returns the arrival time of the first packet in flight.
    pub fn next_arrival(&self) -> Option<Time> {
        self.transmitter.next_arrival()
    }

    /// True if arrivals can be losses, or are recorded.
    pub fn is_watched(&self) -> bool {
        self.transmitter.is_watched
    }

    /// Prepares the port for failures of its link.
    pub fn may_fail(&mut self) {
        self.transmitter.is_watched = true;
        self.transmitter.may_lose = true;
    }

    /// Takes the link down, or up again. All packets in flight are lost.
    pub fn set_link_state(&mut self, is_down: bool, now: Time) {
        self.advance_to(now);
        self.outage.set_link_state(is_down, self.transmitter.in_flight());
    }

    /// Decides if the packet that has arrived at the end of the link is lost. Unless `loses_frames`, a pause
    /// frame is lost only with a failed link, which ends its pauses: otherwise a lost resume frame
    /// would stop the link for ever.
    pub fn loses(&mut self, packet: &Packet, loses_frames: bool) -> bool {
        if !self.transmitter.may_lose {
            return false;
        }
        let is_cut_off = self.outage.take();
        let is_lost = is_cut_off || self.losses.take(packet, loses_frames);
        self.counters.lost += u64::from(is_lost);
        self.counters.cut_off += u32::from(is_cut_off);
        is_lost
    }
}
