//! The sending end of a flow: what it puts into the network, and what it makes of what comes back.

use super::ends::SenderEnd;
use crate::base::units::{Bytes, Time};
use crate::breakdown::pool::BreakdownRef;
use crate::model::packet::{FlowNumber, Format, Kind, Packet};
use crate::network::Network;
use crate::schedule::{Event, Scheduler};
use crate::simulation::Simulation;
use crate::transport::endpoint::sender::NextPacket;
use crate::transport::{Allowance, Mechanism, OutgoingPacket};

impl SenderEnd {
    /// Arranges for the sender to be woken at `deadline`, unless it will be before.
    pub(in crate::simulation) fn wake_by(&mut self, deadline: Time, scheduler: &mut Scheduler) {
        if deadline < self.wakes {
            self.wakes = deadline.max(scheduler.now());
            scheduler.push(self.wakes, Event::Wake(self.number));
        }
    }

    /// What to send now: what the controller wants beside its rate, or else what the rate lets go.
    fn next_output(
        &mut self,
        now: Time,
        allowance: Allowance,
        mechanism: &Mechanism,
    ) -> Option<NextPacket> {
        if mechanism.sends_trains
            && self.sender.has_data(allowance)
            && let Some(train_packet) = self.controller.next_train_packet(now)
        {
            return self.sender.train_packet(now, train_packet, allowance);
        }
        self.sender.next_packet(now, allowance)
    }

    /// The packet that takes what is to be sent, whose way is still to be filled in.
    fn packet(&self, output: NextPacket, now: Time, mechanism: &Mechanism, format: &Format) -> Packet {
        let number = self.number;
        match output {
            NextPacket::Syn => format.control(Kind::Syn, number, now),
            // It asks for the first segment that is not acknowledged.
            NextPacket::RouterProbe => Packet {
                sequence: self.sender.cumulative(),
                ..format.control(Kind::Probe, number, now)
            },
            NextPacket::Padding(bytes) => {
                Packet { bytes: bytes.0 as u16, ..format.control(Kind::Probe, number, now) }
            }
            NextPacket::Fin => format.control(Kind::Fin, number, now),
            NextPacket::Segment(segment) => mechanism.data(format, number, now, segment),
        }
    }

    /// Notes for its account what may be sent now, and what has come that may have let it. Apart, as what
    /// follows, because senders without account should not pay for it.
    #[inline(never)]
    fn look(&mut self, now: Time, allowance: Allowance, network: &mut Network) {
        let Some(ledger) = &mut self.ledger else { return };
        let paused = network.paused(ledger.port(), self.number, now);
        let came = if ledger.asks(&self.sender, allowance) { network.take_record() } else { None };
        if let Some(records) = network.records_mut() {
            ledger.look(now, &self.sender, allowance, came, paused, &mut records.accounts);
        }
    }

    /// The account of what is sent: none, but of data.
    #[inline(never)]
    fn account(
        &mut self,
        output: NextPacket,
        now: Time,
        packet: &Packet,
        network: &mut Network,
    ) -> BreakdownRef {
        let link = network.routes().link(packet.next_hop);
        let port = (link, network.paused(link, self.number, now));
        let (NextPacket::Segment(segment), Some(ledger), Some(records)) =
            (output, &mut self.ledger, network.records_mut())
        else {
            return BreakdownRef::default();
        };
        let timed_out = self.sender.has_timed_out();
        ledger.send(now, segment, timed_out, port, &mut records.accounts)
    }

    /// Notes for its account what holds back what is next.
    #[inline(never)]
    fn close_account(&mut self, allowance: Allowance) {
        if let Some(ledger) = &mut self.ledger {
            ledger.close(&self.sender, allowance);
        }
    }
}

impl Simulation<'_> {
    /// A sender's deadline has come.
    pub(in crate::simulation) fn wake(&mut self, number: FlowNumber) {
        let Some(place) = self.network.slot(number) else { return };
        let (place, now) = (place as usize, self.scheduler.now());
        let Some(sending) =
            self.flows.senders[place].as_mut().filter(|sending| sending.wakes == now)
        else {
            return;
        };
        sending.wakes = Time::NEVER;
        if sending.stack.is_some() {
            return self.wake_stack(place);
        }
        if sending.stops <= now {
            sending.stops = Time::NEVER;
            sending.sender.stop();
        }
        if sending.controller.next_timer() <= now {
            sending.controller.on_timer(now);
        }
        sending.sender.on_timer(now, &mut *sending.controller);
        self.try_send(place);
    }

    /// Tells a sender what its receiver says.
    pub(in crate::simulation) fn hear(&mut self, packet: &Packet, place: usize) {
        let now = self.scheduler.now();
        let Some(sending) = &mut self.flows.senders[place] else { return };
        sending.tally.hear(now);
        let host = || self.flows.shared[place].as_ref().map_or(0, |shared| shared.spec.source);
        let rtt = self.clocks.measure(host, packet.sent_at, now);
        let mut marked = false;
        match packet.kind {
            Kind::Cnp => sending.controller.on_notification(now),
            Kind::SynAck => sending.sender.on_syn_ack(now, packet, rtt, &mut *sending.controller),
            _ => marked = sending.sender.on_ack(now, packet, rtt, &mut *sending.controller),
        }
        // Only what acknowledges data can have opened the window, or the flow.
        let is_cause = matches!(packet.kind, Kind::Ack | Kind::Nack | Kind::SynAck);
        if !is_cause && let Some(records) = self.network.records_mut() {
            records.clear();
        }
        if self.recorder.wants_rtts() && packet.kind.is_acknowledgement() {
            self.note_rtt(packet, place, rtt, marked);
        }
        self.try_send(place);
    }

    /// Tells senders that their packets have left their hosts.
    pub(in crate::simulation) fn process_departures(&mut self) {
        while let Some(departure) = self.network.pop_departure() {
            let Some(place) = self.network.slot(departure.flow) else { continue };
            if let Some(sending) = &mut self.flows.senders[place as usize]
                && sending.sender.pacer.on_departure(departure.ends)
            {
                self.try_send(place as usize);
            }
        }
    }

    /// Sends what a flow may send now, and arranges for its sender to be woken; or closes the sender that has
    /// nothing left to do.
    pub(in crate::simulation) fn try_send(&mut self, place: usize) {
        let now = self.scheduler.now();
        let Some(sending) = &mut self.flows.senders[place] else { return };
        let mechanism = &self.stacks.of(sending.class).mechanism;
        let mut allowance = sending.controller.allowance();
        if allowance.is_terminated {
            sending.sender.terminate();
        }
        let keeps_account = self.network.records().is_some();
        if keeps_account {
            sending.look(now, allowance, &mut self.network);
        }
        while let Some(output) = sending.next_output(now, allowance, mechanism) {
            let mut packet = sending.packet(output, now, mechanism, &self.format);
            packet.next_hop = sending.there.start();
            if mechanism.signalling.has_header() {
                let leaving = OutgoingPacket {
                    now,
                    kind: packet.kind,
                    remaining: sending.sender.remaining(),
                    offset: Bytes(u64::from(packet.sequence) * self.format.payload.0),
                };
                packet = packet.with_header(sending.controller.header(&leaving));
            }
            if keeps_account {
                let account = sending.account(output, now, &packet, &mut self.network);
                self.network.record_send(&mut packet, account);
            }
            sending.tally.sent += 1;
            let ends = self.network.send(packet, &mut self.scheduler);
            if let NextPacket::Segment(_) = output {
                sending.sender.pacer.on_enqueued(ends);
                sending.controller.on_sent(now, Bytes(u64::from(packet.bytes)));
                allowance = sending.controller.allowance();
            }
        }
        if keeps_account {
            sending.close_account(allowance);
        }
        let deadline = sending
            .sender
            .next_timer(allowance)
            .min(sending.controller.next_timer())
            .min(sending.stops);
        sending.wake_by(deadline, &mut self.scheduler);
        if sending.sender.is_done() {
            self.close_sender(place);
        }
    }
}
