//! Flows whose transport stack is external: transfer of their datagrams and timers of their endpoints.
//!
//! A packet has no room for the payload of a datagram. The flow stores the payload under the packet's
//! sequence number. Both endpoints of such a flow are in the same partition.

use std::collections::BTreeMap;

use super::Simulation;
use crate::base::schema::Problem;
use crate::base::units::Time;
use crate::model::packet::{Flags, FlowNumber, Format, Kind, Packet};
use crate::transport::{Ecn, OutgoingDatagram, StackEndpoint};

/// Datagrams of a flow in the network, from its source and from its target.
#[derive(Default)]
pub(super) struct Datagrams {
    forward: DatagramsInFlight,
    reverse: DatagramsInFlight,
}

/// Datagrams sent by one endpoint.
#[derive(Default)]
struct DatagramsInFlight {
    /// Number of datagrams sent.
    sent: u32,
    /// Datagrams that have not been delivered, by sequence number. Lost datagrams stay until the flow ends.
    in_flight: BTreeMap<u32, Vec<u8>>,
    /// Buffers for reuse.
    spare: Vec<Vec<u8>>,
}

impl DatagramsInFlight {
    /// Returns the next packet of an endpoint, without a route, if the endpoint has a datagram to send.
    fn next(
        &mut self,
        end: &mut dyn StackEndpoint,
        now: Time,
        template: &PacketTemplate<'_>,
    ) -> Option<Packet> {
        let mut datagram = self.spare.pop().unwrap_or_default();
        datagram.clear();
        let Some(OutgoingDatagram { bytes, ecn_capable }) = end.next_datagram(now, &mut datagram)
        else {
            self.spare.push(datagram);
            return None;
        };
        let PacketTemplate { kind, flow, format } = *template;
        assert!(bytes <= format.full(), "flow {flow}: a datagram of {bytes} with headers");
        let sequence = self.sent;
        self.sent += 1;
        self.in_flight.insert(sequence, datagram);
        let flags = Flags::NONE.with_if(Flags::ECN_CAPABLE, ecn_capable);
        let packet = format.control(kind, flow, now);
        Some(Packet { sequence, flags, bytes: bytes.0 as u16, ..packet })
    }

    /// Passes the datagram of a packet to an endpoint.
    fn deliver(&mut self, packet: &Packet, end: &mut dyn StackEndpoint, now: Time) {
        let Some(datagram) = self.in_flight.remove(&packet.sequence) else {
            unreachable!("a packet arrives once")
        };
        let ecn = match packet.flags {
            flags if flags.has(Flags::MARKED) => Ecn::Ce,
            flags if flags.has(Flags::ECN_CAPABLE) => Ecn::Ect,
            _ => Ecn::NotEct,
        };
        end.on_datagram(now, &datagram, ecn);
        self.spare.push(datagram);
    }
}

/// Fields common to all packets of an endpoint.
struct PacketTemplate<'a> {
    kind: Kind,
    flow: FlowNumber,
    format: &'a Format,
}

impl Simulation<'_> {
    /// Attaches an endpoint of an external stack to a receiver.
    pub(super) fn attach_stack(&mut self, slot: usize, target: Option<Box<dyn StackEndpoint>>) {
        if let (Some(receiver_end), Some(shared)) =
            (&mut self.flows.receivers[slot], &mut self.flows.shared[slot])
        {
            receiver_end.external_stack = target;
            shared.datagrams = Some(Box::default());
        }
    }

    /// Receives a datagram at the source of its flow.
    pub(super) fn on_return_datagram(&mut self, packet: &Packet, slot: usize) {
        let now = self.scheduler.now();
        if let (Some(sender_end), Some(shared)) =
            (&mut self.flows.senders[slot], &mut self.flows.shared[slot])
            && let (Some(end), Some(datagrams)) =
                (&mut sender_end.external_stack, &mut shared.datagrams)
        {
            sender_end.packets.on_received(now);
            datagrams.reverse.deliver(packet, &mut **end, now);
        }
        self.send_datagrams(slot);
    }

    /// Receives a datagram at the target of its flow.
    pub(super) fn on_datagram(&mut self, packet: &Packet, slot: usize) -> Result<(), Problem> {
        let now = self.scheduler.now();
        let mut is_complete = false;
        if let (Some(receiver_end), Some(shared)) =
            (&mut self.flows.receivers[slot], &mut self.flows.shared[slot])
            && let (Some(end), Some(datagrams)) =
                (&mut receiver_end.external_stack, &mut shared.datagrams)
        {
            receiver_end.packets.on_received(now);
            datagrams.forward.deliver(packet, &mut **end, now);
            receiver_end.delivered = end.delivered().0;
            let has_size = shared.spec.size.is_some();
            is_complete = has_size && end.is_done() && receiver_end.completed_at == Time::NEVER;
            if is_complete {
                receiver_end.completed_at = now;
            }
        }
        if is_complete {
            self.on_complete(slot)?;
        }
        self.return_datagrams(slot);
        self.note_possible_end(slot, Time::ZERO);
        Ok(())
    }

    /// Handles the timer of the endpoint at a flow's source, or the time at which the flow stops.
    pub(super) fn on_stack_sender_timer(&mut self, slot: usize) {
        let now = self.scheduler.now();
        let Some(sender_end) = &mut self.flows.senders[slot] else { return };
        let Some(end) = &mut sender_end.external_stack else { return };
        if sender_end.stop_at <= now {
            sender_end.stop_at = Time::NEVER;
            end.stop(now);
        }
        end.on_timer(now);
        self.send_datagrams(slot);
    }

    /// Handles the timer of the endpoint at a flow's target.
    pub(super) fn on_stack_receiver_timer(&mut self, slot: usize) {
        let now = self.scheduler.now();
        let Some(receiver_end) = &mut self.flows.receivers[slot] else { return };
        let Some(end) = &mut receiver_end.external_stack else { return };
        end.on_timer(now);
        self.return_datagrams(slot);
        self.note_possible_end(slot, Time::ZERO);
    }

    /// Sends the datagrams of the endpoint at a flow's source that its host admits, and schedules its
    /// timer. Closes the sender if the endpoint is done.
    pub(super) fn send_datagrams(&mut self, slot: usize) {
        let Self { flows, network, scheduler, format, .. } = self;
        let (Some(sender_end), Some(shared)) = (&mut flows.senders[slot], &mut flows.shared[slot])
        else {
            return;
        };
        let (Some(end), Some(datagrams)) = (&mut sender_end.external_stack, &mut shared.datagrams)
        else {
            return;
        };
        let template = PacketTemplate { kind: Kind::Datagram, flow: sender_end.number, format };
        let (now, pacer) = (scheduler.now(), &mut sender_end.sender.pacer);
        while pacer.may_hand_over(now)
            && let Some(packet) = datagrams.forward.next(&mut **end, now, &template)
        {
            sender_end.packets.sent += 1;
            let packet = Packet { next_hop: sender_end.forward.start(), ..packet };
            pacer.on_enqueued(now, network.send(packet, scheduler));
        }
        if end.is_done() {
            self.close_sender(slot);
        } else {
            let nic_free = if pacer.may_hand_over(now) { Time::NEVER } else { pacer.nic_free() };
            let deadline = end.next_timer().min(sender_end.stop_at).min(nic_free);
            sender_end.wake_by(deadline, scheduler);
        }
    }

    /// Sends all datagrams of the endpoint at a flow's target and schedules its timer.
    fn return_datagrams(&mut self, slot: usize) {
        let Self { flows, network, scheduler, format, .. } = self;
        let (Some(receiver_end), Some(shared)) =
            (&mut flows.receivers[slot], &mut flows.shared[slot])
        else {
            return;
        };
        let (Some(end), Some(datagrams)) =
            (&mut receiver_end.external_stack, &mut shared.datagrams)
        else {
            return;
        };
        let template = PacketTemplate { kind: Kind::Return, flow: receiver_end.number, format };
        while let Some(packet) = datagrams.reverse.next(&mut **end, scheduler.now(), &template) {
            receiver_end.packets.sent += 1;
            network.send(Packet { next_hop: receiver_end.reverse.start(), ..packet }, scheduler);
        }
        let deadline = end.next_timer();
        receiver_end.respond_by(deadline, scheduler);
    }
}
