//! Flows whose stacks come from elsewhere: what carries their datagrams and wakes their ends.
//!
//! Packets have no place for what a datagram holds: it is kept beside the flow, under the number of the
//! packet. Both ends of such a flow are served by the same part of a run.

use std::collections::BTreeMap;

use super::Simulation;
use crate::base::schema::Problem;
use crate::base::units::Time;
use crate::model::packet::{Flags, FlowNumber, Format, Kind, Packet};
use crate::transport::{Ecn, OutgoingDatagram, StackEndpoint};

/// The datagrams of a flow that are in the network, from its source and from its target.
#[derive(Default)]
pub(super) struct Datagrams {
    there: OneWay,
    back: OneWay,
}

/// The datagrams of one end.
#[derive(Default)]
struct OneWay {
    /// How many were sent.
    sent: u32,
    /// By number, what is not known to have come: also what was lost, until the flow is over.
    out: BTreeMap<u32, Vec<u8>>,
    /// Memory to be used again.
    spare: Vec<Vec<u8>>,
}

impl OneWay {
    /// The next packet of an end, whose way is still to be filled in, if it has something to send.
    fn next(&mut self, end: &mut dyn StackEndpoint, now: Time, frame: &Frame<'_>) -> Option<Packet> {
        let mut datagram = self.spare.pop().unwrap_or_default();
        datagram.clear();
        let Some(OutgoingDatagram { bytes, ecn_capable }) = end.next_datagram(now, &mut datagram) else {
            self.spare.push(datagram);
            return None;
        };
        let Frame { kind, flow, format } = *frame;
        assert!(bytes <= format.full(), "flow {flow}: a datagram of {bytes} on the wire");
        let sequence = self.sent;
        self.sent += 1;
        self.out.insert(sequence, datagram);
        let flags = Flags::NONE.with_if(Flags::ECN_CAPABLE, ecn_capable);
        let packet = format.control(kind, flow, now);
        Some(Packet { sequence, flags, bytes: bytes.0 as u16, ..packet })
    }

    /// Hands over to an end what a packet has brought.
    fn deliver(&mut self, packet: &Packet, end: &mut dyn StackEndpoint, now: Time) {
        let Some(datagram) = self.out.remove(&packet.sequence) else {
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

/// What all packets of an end have in common.
struct Frame<'a> {
    kind: Kind,
    flow: FlowNumber,
    format: &'a Format,
}

impl Simulation<'_> {
    /// Gives the receiver in a place an end of a stack from elsewhere.
    pub(super) fn give(&mut self, place: usize, target: Option<Box<dyn StackEndpoint>>) {
        if let (Some(receiving), Some(shared)) =
            (&mut self.flows.receivers[place], &mut self.flows.shared[place])
        {
            receiving.stack = target;
            shared.datagrams = Some(Box::default());
        }
    }

    /// A datagram has come to its flow's source.
    pub(super) fn receive_return_datagram(&mut self, packet: &Packet, place: usize) {
        let now = self.scheduler.now();
        if let (Some(sending), Some(shared)) =
            (&mut self.flows.senders[place], &mut self.flows.shared[place])
            && let (Some(end), Some(datagrams)) = (&mut sending.stack, &mut shared.datagrams)
        {
            sending.tally.hear(now);
            datagrams.back.deliver(packet, &mut **end, now);
        }
        self.send_datagrams(place);
    }

    /// A datagram has come to its flow's target.
    pub(super) fn receive_datagram(
        &mut self,
        packet: &Packet,
        place: usize,
    ) -> Result<(), Problem> {
        let now = self.scheduler.now();
        let mut is_complete = false;
        if let (Some(receiving), Some(shared)) =
            (&mut self.flows.receivers[place], &mut self.flows.shared[place])
            && let (Some(end), Some(datagrams)) = (&mut receiving.stack, &mut shared.datagrams)
        {
            receiving.tally.hear(now);
            datagrams.there.deliver(packet, &mut **end, now);
            receiving.delivered = end.delivered().0;
            let has_size = shared.spec.size.is_some();
            is_complete = has_size && end.is_done() && receiving.completed == Time::NEVER;
            if is_complete {
                receiving.completed = now;
            }
        }
        if is_complete {
            self.complete(place)?;
        }
        self.return_datagrams(place);
        self.release_if_closed(place, Time::ZERO);
        Ok(())
    }

    /// The deadline of a stack at its flow's source has come, or the time when the flow stops.
    pub(super) fn wake_stack(&mut self, place: usize) {
        let now = self.scheduler.now();
        let Some(sending) = &mut self.flows.senders[place] else { return };
        let Some(end) = &mut sending.stack else { return };
        if sending.stops <= now {
            sending.stops = Time::NEVER;
            end.stop(now);
        }
        end.on_timer(now);
        self.send_datagrams(place);
    }

    /// The deadline of a stack at its flow's target has come.
    pub(super) fn respond_by_stack(&mut self, place: usize) {
        let now = self.scheduler.now();
        let Some(receiving) = &mut self.flows.receivers[place] else { return };
        let Some(end) = &mut receiving.stack else { return };
        end.on_timer(now);
        self.return_datagrams(place);
        self.release_if_closed(place, Time::ZERO);
    }

    /// Sends what the stack at a flow's source has to send, and arranges for it to be woken; or closes the
    /// sender that knows that all has come.
    pub(super) fn send_datagrams(&mut self, place: usize) {
        let Self { flows, network, scheduler, format, .. } = self;
        let (Some(sending), Some(shared)) = (&mut flows.senders[place], &mut flows.shared[place])
        else {
            return;
        };
        let (Some(end), Some(datagrams)) = (&mut sending.stack, &mut shared.datagrams) else {
            return;
        };
        let frame = Frame { kind: Kind::Datagram, flow: sending.number, format };
        while let Some(packet) = datagrams.there.next(&mut **end, scheduler.now(), &frame) {
            sending.tally.sent += 1;
            network.send(Packet { next_hop: sending.there.start(), ..packet }, scheduler);
        }
        if end.is_done() {
            self.close_sender(place);
        } else {
            let deadline = end.next_timer().min(sending.stops);
            sending.wake_by(deadline, scheduler);
        }
    }

    /// Sends what the stack at a flow's target has to send, and arranges for it to be woken.
    fn return_datagrams(&mut self, place: usize) {
        let Self { flows, network, scheduler, format, .. } = self;
        let (Some(receiving), Some(shared)) =
            (&mut flows.receivers[place], &mut flows.shared[place])
        else {
            return;
        };
        let (Some(end), Some(datagrams)) = (&mut receiving.stack, &mut shared.datagrams) else {
            return;
        };
        let frame = Frame { kind: Kind::Return, flow: receiving.number, format };
        while let Some(packet) = datagrams.back.next(&mut **end, scheduler.now(), &frame) {
            receiving.tally.sent += 1;
            network.send(Packet { next_hop: receiving.back.start(), ..packet }, scheduler);
        }
        let deadline = end.next_timer();
        receiving.respond_by(deadline, scheduler);
    }
}
