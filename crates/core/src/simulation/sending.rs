//! What a flow puts into the network at one moment.

use super::{Flow, Simulation};
use crate::endpoint::sender::Output;
use crate::endpoint::{Allowance, Leaving, Mechanism};
use crate::packet::{FlowSlot, Format, Kind, Packet};
use crate::units::{Bytes, Time};

impl Flow {
    /// What to send now: what the controller wants beside its rate, or else what the rate lets go.
    fn next_output(
        &mut self,
        now: Time,
        allowance: Allowance,
        mechanism: &Mechanism,
    ) -> Option<Output> {
        if mechanism.sends_trains
            && self.sender.has_data(allowance)
            && let Some(beside) = self.controller.beside(now)
        {
            return self.sender.beside(now, beside, allowance);
        }
        self.sender.next(now, allowance)
    }

    /// The packet that takes what is to be sent, whose way is still to be filled in.
    fn packet(
        &self,
        output: Output,
        slot: FlowSlot,
        now: Time,
        mechanism: &Mechanism,
        format: &Format,
    ) -> Packet {
        match output {
            Output::Syn => format.control(Kind::Syn, slot, now),
            // It asks for the first segment that is not acknowledged.
            Output::Probe => Packet {
                sequence: self.sender.cumulative(),
                ..format.control(Kind::Probe, slot, now)
            },
            Output::Padding(bytes) => {
                Packet { bytes: bytes.0 as u16, ..format.control(Kind::Probe, slot, now) }
            }
            Output::Fin => format.control(Kind::Fin, slot, now),
            Output::Segment(segment) => mechanism.data(format, slot, now, segment),
        }
    }
}

impl Simulation<'_> {
    /// Sends what a flow may send now, and arranges for it to be woken.
    pub(super) fn pump(&mut self, slot: FlowSlot) {
        let now = self.agenda.now();
        let Some(flow) = &mut self.flows[slot as usize] else { return };
        let mechanism = &self.stacks.of(flow.spec.class).mechanism;
        let mut allowance = flow.controller.allowance();
        if allowance.gives_up {
            flow.sender.give_up();
        }
        while let Some(output) = flow.next_output(now, allowance, mechanism) {
            let mut packet = flow.packet(output, slot, now, mechanism, &self.format);
            packet.next_hop = flow.there.start(&mut self.spray);
            if mechanism.speaks {
                let leaving = Leaving {
                    now,
                    kind: packet.kind,
                    remaining: flow.sender.remaining(),
                    offset: Bytes(u64::from(packet.sequence) * self.format.payload.0),
                };
                packet = packet.saying(flow.controller.header(&leaving));
            }
            flow.packets.sent += 1;
            let ends = self.network.send(packet, &mut self.agenda);
            if let Output::Segment(_) = output {
                flow.sender.on_handed(ends);
                flow.controller.on_sent(now, Bytes(u64::from(packet.bytes)));
                allowance = flow.controller.allowance();
            }
        }
        let deadline = flow
            .sender
            .deadline(allowance)
            .min(flow.controller.next_timer())
            .min(flow.receiver.deadline())
            .min(flow.stops);
        flow.wake_by(deadline, slot, &mut self.agenda);
    }
}
