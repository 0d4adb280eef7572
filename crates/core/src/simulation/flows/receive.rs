//! The receiving end of a flow: what comes, and what it answers.

use super::ends::ReceiverEnd;
use crate::base::schema::Problem;
use crate::base::units::Time;
use crate::model::packet::{FlowNumber, Header, Kind, Packet};
use crate::network::breakdown::packet_records::PacketRecords;
use crate::schedule::{Event, Scheduler};
use crate::simulation::Simulation;
use crate::transport::endpoint::receiver::{Acknowledgement, ReceiverOutput};

impl ReceiverEnd {
    /// Arranges for a deadline, unless another comes before.
    pub(in crate::simulation) fn respond_by(&mut self, deadline: Time, scheduler: &mut Scheduler) {
        if deadline < self.responds {
            self.responds = deadline.max(scheduler.now());
            scheduler.push(self.responds, Event::Respond(self.number));
        }
    }

    /// Notes for the account that data has come: what completes the flow, and what is answered later.
    fn note(&mut self, is_complete: bool, now: Time, records: &mut PacketRecords) {
        let Some(receipt) = &mut self.receipt else { return };
        if is_complete {
            receipt.finish = records.finish().map(Box::new);
        }
        match (receipt.kept, self.receiver.has_delayed_ack()) {
            (None, true) => receipt.kept = records.keep().map(|number| (number, now)),
            (Some((number, _)), false) => {
                records.free(number);
                receipt.kept = None;
            }
            _ => {}
        }
    }
}

impl Simulation<'_> {
    /// Takes in a data packet that has reached its receiver.
    pub(in crate::simulation) fn receive(
        &mut self,
        packet: &Packet,
        place: usize,
    ) -> Result<(), Problem> {
        let now = self.scheduler.now();
        let Some(receiving) = &mut self.flows.receivers[place] else { return Ok(()) };
        receiving.tally.hear(now);
        let reply = receiving.receiver.on_data(now, packet);
        receiving.respond_by(receiving.receiver.next_timer(), &mut self.scheduler);
        let mut is_complete = false;
        if reply.is_new {
            receiving.delivered += u64::from(packet.bytes) - self.format.header.0;
            is_complete = receiving.delivered == receiving.awaited;
        }
        if is_complete {
            receiving.completed = now;
        }
        if let Some(records) = self.network.records_mut() {
            receiving.note(is_complete, now, records);
        }
        if receiving.is_traced
            && let Some(answer) = &reply.ack
            && let Some(trace) = self.flows.shared[place].as_mut().and_then(|of| of.trace.as_mut())
        {
            trace.on_answer(answer.sent_at, now, packet.bytes, answer.cumulative);
        }
        if is_complete {
            self.complete(place)?;
        }
        if reply.ack.is_none() && !reply.notification {
            // A sender that has given up awaits no answer.
            self.release_if_closed(place, Time::ZERO);
        }
        self.reply(packet.flow, place, reply);
        Ok(())
    }

    /// Takes in the news that a flow is over, which nobody answers.
    pub(in crate::simulation) fn take_leave(&mut self, place: usize) {
        let Some(receiving) = &mut self.flows.receivers[place] else { return };
        receiving.tally.hear(self.scheduler.now());
        self.release_if_closed(place, Time::ZERO);
    }

    /// A receiver's deadline has come.
    pub(in crate::simulation) fn respond(&mut self, number: FlowNumber) {
        let Some(place) = self.network.slot(number) else { return };
        let (place, now) = (place as usize, self.scheduler.now());
        let Some(receiving) =
            self.flows.receivers[place].as_mut().filter(|receiving| receiving.responds == now)
        else {
            return;
        };
        receiving.responds = Time::NEVER;
        if receiving.stack.is_some() {
            return self.respond_by_stack(place);
        }
        let reply = receiving.receiver.on_timer(now);
        if reply.ack.is_some()
            && let (Some(receipt), Some(records)) =
                (&mut receiving.receipt, self.network.records_mut())
            && let Some((kept, came)) = receipt.kept.take()
        {
            records.resume(kept, now - came);
        }
        receiving.respond_by(receiving.receiver.next_timer(), &mut self.scheduler);
        self.reply(number, place, reply);
        self.release_if_closed(place, Time::ZERO);
    }

    /// Sends what a flow's receiver has to say.
    fn reply(&mut self, number: FlowNumber, place: usize, reply: ReceiverOutput) {
        if let Some(answer) = reply.ack {
            let Acknowledgement { kind, cumulative, block, sack_blocks, sent_at, flags, feedback } = answer;
            let control = self.format.control(kind, number, sent_at);
            let plain = Packet {
                sequence: cumulative,
                bytes: control.bytes + self.format.sack_options(sack_blocks),
                flags,
                ..control
            };
            let feedback = self.feedback(place, sent_at, feedback);
            self.send_back(place, plain.with_header(Header::Ack { block, feedback }));
        }
        if reply.notification {
            self.send_back(place, self.format.control(Kind::Cnp, number, self.scheduler.now()));
        }
    }

    /// Sends back what routers wrote into a packet without payload, or how long it took.
    pub(in crate::simulation) fn echo(&mut self, packet: &Packet, place: usize, kind: Kind) {
        if let Some(receiving) = &mut self.flows.receivers[place] {
            receiving.tally.hear(self.scheduler.now());
        }
        let feedback = self.feedback(place, packet.sent_at, packet.header().feedback());
        let header = Header::Ack { block: (0, 0), feedback };
        let answer = self.format.control(kind, packet.flow, packet.sent_at);
        self.send_back(place, answer.with_header(header));
    }

    /// What an answer tells of a flow's packet: how long it took, or what routers wrote into it.
    fn feedback(&self, place: usize, sent_at: Time, written: f32) -> f32 {
        let Some(receiving) = &self.flows.receivers[place] else { return written };
        if self.stacks.of(receiving.class).mechanism.acks.echoes_one_way_delay {
            self.clocks.delay(sent_at, self.scheduler.now())
        } else {
            written
        }
    }

    /// Sends a packet back from its flow's receiver.
    fn send_back(&mut self, place: usize, mut packet: Packet) {
        let Some(receiving) = &mut self.flows.receivers[place] else { return };
        receiving.tally.sent += 1;
        let next_hop = receiving.back.start();
        if let Some(records) = self.network.records_mut() {
            records.answer(&mut packet);
        }
        self.network.send(Packet { next_hop, ..packet }, &mut self.scheduler);
    }
}
