//! Receiver end of a flow: received packets and answers.

use super::ends::ReceiverEnd;
use crate::base::schema::Problem;
use crate::base::units::Time;
use crate::model::packet::{FlowNumber, Header, Kind, Packet};
use crate::network::breakdown::packet_records::PacketRecords;
use crate::schedule::{Event, Scheduler};
use crate::simulation::Simulation;
use crate::simulation::credit::credit_number;
use crate::transport::Arrival;
use crate::transport::endpoint::receiver::{Acknowledgement, ReceiverOutput};

impl ReceiverEnd {
    /// Schedules the timer, unless it is due earlier.
    pub(in crate::simulation) fn respond_by(&mut self, deadline: Time, scheduler: &mut Scheduler) {
        if deadline < self.respond_at {
            self.respond_at = deadline.max(scheduler.now());
            scheduler.push(self.respond_at, Event::ReceiverTimer(self.number));
        }
    }

    /// Updates the FCT breakdown on data: stores the record of the packet that completes the flow or is
    /// answered later.
    fn update_breakdown(&mut self, is_complete: bool, now: Time, records: &mut PacketRecords) {
        let Some(breakdown) = &mut self.breakdown else { return };
        if is_complete {
            breakdown.completion = records.finish().map(Box::new);
        }
        match (breakdown.pending_answer, self.receiver.has_delayed_ack()) {
            (None, true) => breakdown.pending_answer = records.keep().map(|number| (number, now)),
            (Some((number, _)), false) => {
                records.free(number);
                breakdown.pending_answer = None;
            }
            _ => {}
        }
    }
}

impl Simulation<'_> {
    /// Receives a data packet.
    pub(in crate::simulation) fn on_data(
        &mut self,
        packet: &Packet,
        slot: usize,
    ) -> Result<(), Problem> {
        let now = self.scheduler.now();
        let Some(receiver_end) = &mut self.flows.receivers[slot] else { return Ok(()) };
        receiver_end.packets.on_received(now);
        let mut reply = receiver_end.receiver.on_data(now, packet);
        receiver_end.respond_by(receiver_end.receiver.next_timer(), &mut self.scheduler);
        let completes_flows = receiver_end.is_stream && reply.is_new;
        let has_options = receiver_end.receiver.has_options;
        let mut is_complete = false;
        if reply.is_new {
            receiver_end.delivered += u64::from(packet.bytes) - self.format.header.0;
            is_complete = receiver_end.delivered == receiver_end.expected;
        }
        if is_complete {
            receiver_end.completed_at = now;
        }
        let uses_credit = receiver_end.credit_scheduler.is_some();
        if uses_credit && !receiver_end.answers_packets() && receiver_end.lacks_data() {
            reply.ack = None;
        }
        if let Some(records) = self.network.records_mut() {
            if completes_flows
                && let Some(shared) = &mut self.flows.shared[slot]
                && let Some(stream) = &mut shared.stream
            {
                stream.on_segment(now, packet.sequence, || records.finish());
            }
            receiver_end.update_breakdown(is_complete, now, records);
        }
        if receiver_end.is_traced {
            self.trace_answer(packet, slot, &reply);
        }
        if is_complete {
            self.on_complete(slot)?;
        }
        if completes_flows {
            self.complete_stream_flows(slot)?;
        }
        if uses_credit {
            self.on_credited_data(packet, slot, reply.is_new);
        }
        if reply.ack.is_none() {
            self.network.take_telemetry(packet);
            if !reply.notification {
                // A sender that has given up awaits no answer.
                self.note_possible_end(slot, Time::ZERO);
            }
        }
        self.reply(packet.flow, slot, reply, has_options, packet.telemetry_row());
        Ok(())
    }

    /// Receives the header of a trimmed packet, and refuses the packet (NACK) if the transport has such an
    /// answer. Otherwise the packet counts as lost.
    pub(in crate::simulation) fn on_trimmed(&mut self, packet: &Packet, slot: usize) {
        let Some(receiver_end) = &mut self.flows.receivers[slot] else { return };
        receiver_end.packets.on_received(self.scheduler.now());
        if self.transports.of_class(receiver_end.class).mechanism.acks.answers_trimmed {
            let reply = receiver_end.receiver.on_trimmed(packet);
            if receiver_end.is_traced {
                self.trace_answer(packet, slot, &reply);
            }
            let number = credit_number(packet);
            self.update_scheduler(packet.flow, slot, Arrival::Trimmed { number });
            self.reply(packet.flow, slot, reply, false, None);
        } else {
            self.network.take_telemetry(packet);
            self.note_possible_end(slot, Time::ZERO);
        }
    }

    /// Adds the answer to a packet to the RTT trace of its flow.
    fn trace_answer(&mut self, packet: &Packet, slot: usize, reply: &ReceiverOutput) {
        if let Some(answer) = &reply.ack
            && let Some(trace) =
                self.flows.shared[slot].as_mut().and_then(|shared| shared.trace.as_mut())
        {
            let now = self.scheduler.now();
            trace.on_answer(answer.sent_at, now, packet.bytes, answer.cumulative);
        }
    }

    /// Receives a FIN: one that ends the credit of the flow is confirmed, one to routers is not.
    pub(in crate::simulation) fn on_fin(&mut self, packet: &Packet, slot: usize) {
        let now = self.scheduler.now();
        let Some(receiver_end) = &mut self.flows.receivers[slot] else { return };
        if receiver_end.credit_scheduler.is_some() {
            self.end_credit(packet.flow, slot);
            self.echo(packet, slot, Kind::ProbeAck);
        } else {
            receiver_end.packets.on_received(now);
            self.note_possible_end(slot, Time::ZERO);
        }
    }

    /// Handles the receiver's timer.
    pub(in crate::simulation) fn on_receiver_timer(&mut self, number: FlowNumber) {
        let Some(slot) = self.network.slot(number) else { return };
        let (slot, now) = (slot as usize, self.scheduler.now());
        let Some(receiver_end) = self.flows.receivers[slot]
            .as_mut()
            .filter(|receiver_end| receiver_end.respond_at == now)
        else {
            return;
        };
        receiver_end.respond_at = Time::NEVER;
        if receiver_end.external_stack.is_some() {
            return self.on_stack_receiver_timer(slot);
        }
        let reply = receiver_end.receiver.on_timer(now);
        if reply.ack.is_some()
            && let (Some(breakdown), Some(records)) =
                (&mut receiver_end.breakdown, self.network.records_mut())
            && let Some((record, received_at)) = breakdown.pending_answer.take()
        {
            records.resume(record, now - received_at);
        }
        receiver_end.respond_by(receiver_end.receiver.next_timer(), &mut self.scheduler);
        let has_options = receiver_end.receiver.has_options;
        self.reply(number, slot, reply, has_options, None);
        self.note_possible_end(slot, Time::ZERO);
    }

    /// Sends the answers of a flow's receiver, whose ACKs may have options beyond their headers if
    /// `has_options`. An ACK returns the telemetry in row `telemetry`.
    pub(in crate::simulation) fn reply(
        &mut self,
        number: FlowNumber,
        slot: usize,
        reply: ReceiverOutput,
        has_options: bool,
        telemetry: Option<usize>,
    ) {
        if let Some(mut answer) = reply.ack {
            let mut options = None;
            if has_options && let Some(receiver_end) = &mut self.flows.receivers[slot] {
                options = receiver_end.receiver.options(&mut answer);
            }
            let Acknowledgement { kind, cumulative, block, sack_blocks, sent_at, flags, .. } =
                answer;
            let control = self.format.control(kind, number, sent_at);
            let plain = Packet {
                sequence: cumulative,
                bytes: control.bytes + self.format.sack_options(sack_blocks),
                flags,
                ..control
            };
            let feedback = self.feedback(slot, sent_at, answer.feedback);
            let mut packet = match options {
                Some(options) => self.network.with_options(plain, options, feedback),
                None => plain.with_header(Header::Ack { block, feedback }),
            };
            if let Some((entropy, received)) = answer.entropy.filter(|_| options.is_none()) {
                packet = packet.with_entropy(entropy, received);
            }
            if let Some(row) = telemetry {
                packet = packet.with_telemetry(row as u32);
            }
            self.send_back(slot, packet);
        }
        if reply.notification {
            self.send_back(slot, self.format.control(Kind::Cnp, number, self.scheduler.now()));
        }
    }

    /// Answers a packet without payload, with the feedback of routers or the one-way delay.
    pub(in crate::simulation) fn echo(&mut self, packet: &Packet, slot: usize, kind: Kind) {
        if let Some(receiver_end) = &mut self.flows.receivers[slot] {
            receiver_end.packets.on_received(self.scheduler.now());
        }
        let feedback = self.feedback(slot, packet.sent_at, packet.header().feedback());
        let header = Header::Ack { block: (0, 0), feedback };
        let answer = self.format.control(kind, packet.flow, packet.sent_at);
        self.send_back(slot, answer.with_header(header));
    }

    /// Feedback in an answer: the one-way delay of the packet, or what routers wrote into its header.
    #[inline]
    fn feedback(&self, slot: usize, sent_at: Time, written: f32) -> f32 {
        let Some(receiver_end) = &self.flows.receivers[slot] else { return written };
        if self.transports.of_class(receiver_end.class).mechanism.acks.echoes_one_way_delay {
            self.clocks.delay(sent_at, self.scheduler.now())
        } else {
            written
        }
    }

    /// Sends a packet on the reverse path.
    #[inline]
    fn send_back(&mut self, slot: usize, mut packet: Packet) {
        let Some(receiver_end) = &mut self.flows.receivers[slot] else { return };
        receiver_end.packets.sent += 1;
        let next_hop = receiver_end.reverse.start();
        if self.network.records().is_some() {
            let is_of_connection = receiver_end.is_stream;
            self.network.record_answer(&mut packet, is_of_connection, self.scheduler.now());
        }
        self.network.send(Packet { next_hop, ..packet }, &mut self.scheduler);
    }
}
