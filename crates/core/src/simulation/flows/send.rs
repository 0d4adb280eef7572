//! Sender end of a flow: transmissions and answers.

use super::ends::SenderEnd;
use crate::base::units::{Bytes, Time};
use crate::breakdown::pool::BreakdownRef;
use crate::model::packet::{AckOptions, Flags, FlowNumber, Format, Header, Kind, Packet};
use crate::network::Network;
use crate::network::breakdown::packet_log::{SendReason, Sending};
use crate::network::outbox::Departure;
use crate::record::gauges::GaugeLog;
use crate::schedule::{Event, Scheduler};
use crate::simulation::Simulation;
use crate::simulation::host_turns::HostTurn;
use crate::transport::endpoint::sender::NextPacket;
use crate::transport::selector::PathFeedback;
use crate::transport::{Allowance, Credit, Mechanism, OutgoingPacket};

impl SenderEnd {
    /// Schedules the timer, unless it is due earlier.
    pub(in crate::simulation) fn wake_by(&mut self, deadline: Time, scheduler: &mut Scheduler) {
        if deadline < self.wake_at {
            self.wake_at = deadline.max(scheduler.now());
            scheduler.push(self.wake_at, Event::SenderTimer(self.number));
        }
    }

    /// Handles a credit.
    fn on_credit(&mut self, now: Time, packet: &Packet) {
        if let Header::Credit { number, class, .. } = packet.header() {
            let missed_request = packet.flags.has(Flags::AFTER_TIMEOUT);
            let is_lost = self.sender.on_credit(now, packet.sequence, missed_request);
            let credit = Credit { number, segment: packet.sequence, class };
            if self.controller.on_credit(now, &credit, is_lost) {
                self.sender.owe_request();
            }
        }
    }

    /// Returns what to send now: a packet of a probe train, or else what the allowance permits.
    fn next_output(
        &mut self,
        now: Time,
        allowance: Allowance,
        mechanism: &Mechanism,
    ) -> Option<NextPacket> {
        if mechanism.sends_trains
            && self.sender.pacer.may_hand_over(now)
            && self.sender.has_data(allowance)
            && let Some(train_packet) = self.controller.next_train_packet(now)
        {
            return self.sender.train_packet(now, train_packet, allowance);
        }
        self.sender.next_packet(now, allowance)
    }

    /// Chooses the path of a packet. Returns its entropy value, if the host chooses paths by such values.
    #[inline]
    fn choose_path(
        &mut self,
        packet: &mut Packet,
        now: Time,
        allowance: Allowance,
        format: &Format,
    ) -> Option<u16> {
        let Some(selector) = &mut self.entropy else {
            packet.next_hop = self.forward.start();
            return None;
        };
        let entropy = selector.next(now, allowance.packets(format.payload));
        packet.next_hop = self.forward.start_at(entropy);
        Some(entropy)
    }

    /// Notifies the controller of a data packet before it is sent, and requests an ACK if nothing may follow
    /// it, or if the turns of the flow at its host are so far apart that the packet may time out before an
    /// ACK of several packets. Returns the allowance without the turn if that has changed.
    fn request_ack(
        &mut self,
        packet: &mut Packet,
        now: Time,
        allowance: Allowance,
        turn: Option<&(&mut HostTurn, Allowance)>,
        mechanism: &Mechanism,
    ) -> Option<Allowance> {
        let changed = self.controller.on_sent(now, Bytes(u64::from(packet.bytes)));
        let allowance = changed.or(turn.map(|turn| turn.1)).unwrap_or(allowance);
        let acknowledged = mechanism.acks.coalesced.unwrap_or_default();
        let turns = acknowledged.0.div_ceil(u64::from(packet.bytes));
        let is_late = turn
            .is_some_and(|(host_turn, _)| host_turn.until_next() * turns > self.sender.timeout());
        let wants_ack = is_late || !self.sender.has_data(allowance);
        packet.flags = packet.flags.with_if(Flags::WANTS_ACK, wants_ack);
        changed
    }

    /// Handles the feedback of an answer on the path of a packet, if the host chooses paths. A packet that
    /// was trimmed at the last hop, which all paths share, reveals nothing else.
    fn on_path_feedback(
        &mut self,
        now: Time,
        packet: &Packet,
        options: Option<&AckOptions>,
        marked: bool,
    ) {
        let Some(selector) = &mut self.entropy else { return };
        let feedback = match packet.kind {
            Kind::Nack if !packet.flags.has(Flags::LAST_HOP) => PathFeedback::Trimmed,
            Kind::Ack | Kind::Nack if marked => PathFeedback::Marked,
            Kind::Ack | Kind::Nack => PathFeedback::Good,
            Kind::Returned => PathFeedback::Returned,
            _ => return,
        };
        if let Some(entropy) = options.map_or(packet.entropy(), |options| options.entropy) {
            selector.on_feedback(now, entropy, feedback);
        }
        selector.on_progress(now, self.sender.cumulative(), self.sender.highest());
    }

    /// Builds a packet without a route.
    fn packet(
        &self,
        output: NextPacket,
        now: Time,
        mechanism: &Mechanism,
        format: &Format,
    ) -> Packet {
        let number = self.number;
        match output {
            NextPacket::Syn => format.control(Kind::Syn, number, now),
            NextPacket::Request if mechanism.sleek => Packet {
                flags: Flags::NONE.with_if(Flags::ECN_CAPABLE, mechanism.ecn_capable),
                ..format.control(Kind::LossProbe, number, now)
            },
            NextPacket::Request => {
                let is_repeated = self.sender.repeats_first_request();
                let flags = Flags::NONE.with_if(Flags::AFTER_TIMEOUT, is_repeated);
                Packet { flags, ..format.control(Kind::Request, number, now) }
            }
            // A probe requests the first unacknowledged segment.
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

    /// Updates the FCT breakdown before transmissions. Not inlined, like the two functions below, so that
    /// senders without breakdown do not pay for it.
    #[inline(never)]
    fn update_breakdown(&mut self, now: Time, allowance: Allowance, network: &mut Network) {
        let Some(breakdown) = &mut self.breakdown else { return };
        let paused = network.paused(breakdown.port(), self.number, now);
        let record = if breakdown.needs_record(&self.sender, allowance) {
            network.take_record()
        } else {
            None
        };
        if let Some(records) = network.records_mut() {
            breakdown.update(now, &self.sender, allowance, record, paused, &mut records.accounts);
        }
    }

    /// Returns the breakdown of a transmission, which is empty unless it carries data.
    #[inline(never)]
    fn breakdown_of(
        &mut self,
        output: NextPacket,
        now: Time,
        packet: &Packet,
        network: &mut Network,
    ) -> BreakdownRef {
        let link = network.routes().link(packet.next_hop);
        let port = (link, network.paused(link, self.number, now));
        let (NextPacket::Segment(segment), Some(breakdown), Some(records)) =
            (output, &mut self.breakdown, network.records_mut())
        else {
            return BreakdownRef::default();
        };
        breakdown.on_send(now, segment, port, &mut records.accounts)
    }

    /// Returns the circumstances of a transmission, for the log of packets.
    fn sending(&self, output: NextPacket, now: Time) -> Sending {
        let reason = match output {
            NextPacket::Segment(segment) if segment.is_probe => SendReason::Probe,
            NextPacket::Segment(segment) if segment.is_retransmit => {
                if segment.is_timed_out {
                    SendReason::Timeout
                } else {
                    SendReason::SequenceGap
                }
            }
            _ => SendReason::None,
        };
        let acknowledged = self.sender.cumulative();
        Sending { reason, acknowledged, is_of_connection: self.is_stream, now }
    }

    /// Adds the gauges of the sender and of its controller to a log.
    #[inline(never)]
    fn log_gauges(&self, now: Time, allowance: Allowance, gauges: &mut GaugeLog) {
        for (name, value) in self.sender.gauges(allowance) {
            gauges.push(now, name, value);
        }
        for (name, value) in self.controller.gauges() {
            if name != "window_bytes" && name != "rate_bps" {
                gauges.push(now, name, value);
            }
        }
    }

    /// Notes in the breakdown what delays the next segment.
    #[inline(never)]
    fn note_constraint(&mut self, allowance: Allowance) {
        if let Some(breakdown) = &mut self.breakdown {
            breakdown.note_constraint(&self.sender, allowance);
        }
    }
}

/// Writes the entropy value of its path into a packet whose answer returns it.
fn with_entropy(packet: Packet, entropy: Option<u16>) -> Packet {
    match (packet.kind, entropy) {
        (Kind::Data | Kind::Request | Kind::LossProbe, Some(entropy)) => {
            packet.with_entropy(entropy, 0)
        }
        _ => packet,
    }
}

impl Simulation<'_> {
    /// Handles the sender's timer.
    pub(in crate::simulation) fn on_sender_timer(&mut self, number: FlowNumber) {
        let Some(slot) = self.network.slot(number) else { return };
        let (slot, now) = (slot as usize, self.scheduler.now());
        let Some(sender_end) =
            self.flows.senders[slot].as_mut().filter(|sender_end| sender_end.wake_at == now)
        else {
            return;
        };
        sender_end.wake_at = Time::NEVER;
        if sender_end.external_stack.is_some() {
            return self.on_stack_sender_timer(slot);
        }
        if sender_end.stop_at <= now {
            sender_end.stop_at = Time::NEVER;
            sender_end.sender.stop();
        }
        if sender_end.controller.next_timer() <= now {
            sender_end.controller.on_timer(now);
        }
        let timeouts = sender_end.sender.timeouts;
        sender_end.sender.on_timer(now, &mut *sender_end.controller);
        if let Some(selector) = &mut sender_end.entropy
            && sender_end.sender.timeouts > timeouts
        {
            // htsim: the values of lost packets are not known.
            selector.on_feedback(now, 0, PathFeedback::Timeout);
        }
        self.try_send(slot);
    }

    /// Receives a packet from the flow's receiver.
    pub(in crate::simulation) fn on_answer(&mut self, packet: &Packet, slot: usize) {
        let now = self.scheduler.now();
        let options = self.network.take_options(packet);
        let telemetry = self.network.take_telemetry(packet);
        let Some(sender_end) = &mut self.flows.senders[slot] else { return };
        sender_end.packets.on_received(now);
        let host = || self.flows.shared[slot].as_ref().map_or(0, |shared| shared.spec.source);
        let rtt = self.clocks.measure(host, packet.sent_at, now);
        let acks = &self.transports.of_class(sender_end.class).mechanism.acks;
        let answers_request = acks.coalesced.is_some() && packet.flags.has(Flags::ANSWERS_REQUEST);
        let mut marked = false;
        match packet.kind {
            Kind::Cnp => sender_end.controller.on_notification(now),
            Kind::Credit => sender_end.on_credit(now, packet),
            Kind::ProbeAck if sender_end.sender.uses_credit() => {
                sender_end.sender.on_fin_confirmed();
            }
            Kind::SynAck => {
                sender_end.sender.on_syn_ack(now, packet, rtt, &mut *sender_end.controller);
            }
            _ => {
                let controller = &mut *sender_end.controller;
                if let Some(telemetry) = telemetry {
                    controller.on_telemetry(telemetry);
                }
                marked = sender_end.sender.on_ack(now, packet, options.as_ref(), rtt, controller);
                sender_end.on_path_feedback(now, packet, options.as_ref(), marked);
            }
        }
        if sender_end.is_stream {
            self.record_acknowledged_flows(slot);
        }
        // Only acknowledgements of data or of the SYN can open the window or the flow; the answer to a
        // request belongs to the timeout before it.
        let may_open_window = matches!(packet.kind, Kind::Ack | Kind::Nack | Kind::SynAck)
            && (packet.kind != Kind::Ack || !answers_request);
        if !may_open_window && let Some(records) = self.network.records_mut() {
            records.clear();
        }
        if self.recorder.wants_rtts() && packet.kind.is_acknowledgement() {
            self.record_rtt(packet, slot, rtt, marked);
        }
        self.try_send(slot);
    }

    /// Receives the header of a packet that found no room on the forward path. If the transport has
    /// answers to trimmed packets, the packet is to be sent again; otherwise it counts as lost.
    pub(in crate::simulation) fn on_returned(&mut self, packet: &Packet, slot: usize) {
        let now = self.scheduler.now();
        self.network.take_telemetry(packet);
        if let Some(records) = self.network.records_mut() {
            records.clear();
        }
        let Some(sender_end) = &mut self.flows.senders[slot] else { return };
        sender_end.packets.on_received(now);
        sender_end.on_path_feedback(now, packet, None, false);
        if self.transports.of_class(sender_end.class).mechanism.acks.answers_trimmed {
            sender_end.sender.on_returned(packet.sequence);
            sender_end.controller.on_returned();
        }
        self.try_send(slot);
    }

    /// Notifies senders of the departures of their packets from their hosts.
    #[inline]
    pub(in crate::simulation) fn process_departures(&mut self) {
        while let Some(departure) = self.network.pop_departure() {
            self.process_departure(departure);
        }
    }

    // Not inlined, so that packets without a pending departure do not pay for it.
    #[inline(never)]
    fn process_departure(&mut self, departure: Departure) {
        let Some(slot) = self.network.slot(departure.flow) else { return };
        let (slot, now) = (slot as usize, self.scheduler.now());
        let Some(sender_end) = &mut self.flows.senders[slot] else { return };
        if sender_end.sender.takes_turns() {
            self.end_turn(slot, departure.ends);
        } else if !sender_end.sender.pacer.on_departure(now, departure.ends) {
            // The flow waits for further departures.
        } else if sender_end.external_stack.is_some() {
            self.send_datagrams(slot);
        } else {
            self.try_send(slot);
        }
    }

    /// Sends what a flow may send now and schedules the sender's timer. Closes a sender that has nothing left
    /// to do.
    pub(in crate::simulation) fn try_send(&mut self, slot: usize) {
        let now = self.scheduler.now();
        let Some(sender_end) = &mut self.flows.senders[slot] else { return };
        let mechanism = &self.transports.of_class(sender_end.class).mechanism;
        let mut allowance = sender_end.controller.allowance();
        if allowance.is_terminated {
            sender_end.sender.terminate();
        }
        let keeps_breakdown = self.network.records().is_some();
        if keeps_breakdown {
            sender_end.update_breakdown(now, allowance, &mut self.network);
        }
        let sent_before = sender_end.packets.sent;
        // The turn of the flow at its host, and the allowance without it.
        let mut turn = None;
        if mechanism.turns.is_some()
            && let Some(shared) = &self.flows.shared[slot]
        {
            let host_turn = self.host_turns.of(shared.spec.source);
            let limited = host_turn.limit(allowance);
            turn = Some((host_turn, std::mem::replace(&mut allowance, limited)));
        }
        while let Some(output) = sender_end.next_output(now, allowance, mechanism) {
            let mut packet = sender_end.packet(output, now, mechanism, &self.format);
            let entropy = sender_end.choose_path(&mut packet, now, allowance, &self.format);
            let mut changed = None;
            if mechanism.acks.coalesced.is_some() && packet.kind == Kind::Data {
                let turn = turn.as_ref();
                changed = sender_end.request_ack(&mut packet, now, allowance, turn, mechanism);
            }
            if mechanism.signalling.has_header() {
                let outgoing = OutgoingPacket {
                    now,
                    kind: packet.kind,
                    remaining: sender_end.sender.remaining(),
                    offset: Bytes(u64::from(packet.sequence) * self.format.payload.0),
                    is_retransmit: matches!(output, NextPacket::Segment(segment) if segment.is_retransmit),
                    unsent: sender_end.sender.unsent(),
                    flows: turn.as_ref().map_or(1, |(host_turn, _)| host_turn.flows()),
                };
                packet = packet.with_header(sender_end.controller.header(&outgoing));
            } else if mechanism.signalling.collects_telemetry() && packet.kind == Kind::Data {
                packet = self.network.collect_telemetry(packet);
            }
            packet = with_entropy(packet, entropy);
            if keeps_breakdown {
                let breakdown = sender_end.breakdown_of(output, now, &packet, &mut self.network);
                let sending = sender_end.sending(output, now);
                self.network.record_send(&mut packet, breakdown, sending);
            }
            sender_end.packets.sent += 1;
            let ends = self.network.send(packet, &mut self.scheduler);
            if let NextPacket::Segment(_) = output {
                if mechanism.acks.coalesced.is_none() {
                    changed = sender_end.controller.on_sent(now, Bytes(u64::from(packet.bytes)));
                }
                if let Some((host_turn, full)) = &mut turn {
                    host_turn.begin(ends, &mut self.scheduler);
                    *full = changed.unwrap_or(*full);
                    allowance = host_turn.limit(*full);
                } else {
                    sender_end.sender.pacer.on_enqueued(now, ends);
                    allowance = changed.unwrap_or(allowance);
                }
            } else if let NextPacket::Padding(_) | NextPacket::RouterProbe = output {
                sender_end.sender.pacer.on_probe_enqueued(now, ends);
            }
        }
        if let Some((host_turn, full)) = turn {
            allowance = full;
            if sender_end.sender.has_data(full)
                && !std::mem::replace(&mut sender_end.awaits_turn, true)
            {
                host_turn.wait(sender_end.number);
            }
        }
        if keeps_breakdown {
            sender_end.note_constraint(allowance);
            // How often the timer of a closed sender expires depends on the engine.
            if sender_end.closed_at == Time::NEVER
                && let Some(gauges) =
                    self.flows.shared[slot].as_mut().and_then(|shared| shared.gauges.as_mut())
            {
                sender_end.log_gauges(now, allowance, gauges);
            }
        }
        if sender_end.is_stream && sender_end.sender.is_app_limited(allowance) {
            sender_end.controller.on_app_limited();
        }
        let has_sent = sender_end.packets.sent > sent_before;
        if let Some(restart) = sender_end.sender.note_window_use(now, allowance, has_sent) {
            sender_end.controller.on_restart(&restart);
        }
        let deadline = sender_end
            .sender
            .next_timer(allowance)
            .min(sender_end.controller.next_timer())
            .min(sender_end.stop_at);
        sender_end.wake_by(deadline, &mut self.scheduler);
        if sender_end.sender.is_done() {
            self.close_sender(slot);
        }
    }
}
