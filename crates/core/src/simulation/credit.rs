//! Credit schedulers of the receiving hosts: arrivals, timers and credits.

use super::Simulation;
use crate::base::random::Random;
use crate::base::units::Time;
use crate::breakdown::pool::BreakdownRef;
use crate::model::flow::FlowSpec;
use crate::model::packet::{Flags, FlowNumber, Header, Kind, Packet};
use crate::network::breakdown::packet_log::Sending;
use crate::schedule::Event;
use crate::transport::{Arrival, Credit, CreditHost, CreditScheduler, CreditUse, InboundFlow};

/// Credit schedulers by number: one for each receiving host and transport. Created by the first arrival.
#[derive(Default)]
pub(super) struct CreditSchedulers(Vec<Option<HostScheduler>>);

/// Credit scheduler of a host.
struct HostScheduler {
    scheduler: Box<dyn CreditScheduler>,
    /// Time of the valid timer event.
    wake_at: Time,
}

/// Progress of a flow at a credit scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The scheduler does not know the flow.
    New,
    Active,
    /// All data has arrived, or the sender has nothing more to send.
    Ended,
}

/// Reference of a receiver to the credit scheduler of its host.
#[derive(Clone, Copy, Debug)]
pub(super) struct SchedulerRef {
    number: u32,
    stage: Stage,
    /// True if the first request for credit was lost.
    missed_request: bool,
    /// True if the receiver answers every packet.
    pub(super) answers_packets: bool,
}

/// Returns the number in the header of credit of a packet; 0 without one.
pub(super) fn credit_number(packet: &Packet) -> u32 {
    if let Header::Credit { number, .. } = packet.header() { number } else { 0 }
}

impl Simulation<'_> {
    /// Returns the credit scheduler of a flow, if its transport has one.
    pub(super) fn scheduler_of(&self, spec: &FlowSpec) -> Option<SchedulerRef> {
        let transport = self.transports.of_class(spec.class);
        let (index, transports) = self.transports.index_of(spec.class);
        let number = spec.target * transports as u32 + index as u32;
        let credit = transport.mechanism.credit;
        let answers_packets = matches!(credit, CreditUse::PerPacket | CreditUse::WithAcks);
        (credit != CreditUse::None).then_some(SchedulerRef {
            number,
            stage: Stage::New,
            missed_request: false,
            answers_packets,
        })
    }

    /// Receives a request for credit: repeats the ACK if all data has arrived, as it may have if the flow has
    /// no size and this is not its first request, or if ACKs detect losses.
    pub(super) fn on_request(&mut self, packet: &Packet, slot: usize) {
        let now = self.scheduler.now();
        let Some(receiver_end) = &mut self.flows.receivers[slot] else { return };
        receiver_end.packets.on_received(now);
        let is_complete = receiver_end.completed_at < Time::NEVER;
        let transport = self.transports.of_class(receiver_end.class);
        let has_begun =
            receiver_end.credit_scheduler.is_some_and(|reference| reference.stage != Stage::New);
        let is_unbounded =
            self.flows.shared[slot].as_ref().is_some_and(|flow| flow.spec.size.is_none());
        let is_answered = is_complete
            || has_begun && is_unbounded
            || transport.mechanism.acks.coalesced.is_some();
        let reply = is_answered.then(|| receiver_end.receiver.repeat_ack(packet));
        if !is_complete {
            if let Some(reference) = &mut receiver_end.credit_scheduler
                && reference.stage == Stage::New
            {
                reference.missed_request = packet.flags.has(Flags::AFTER_TIMEOUT);
            }
            let number = credit_number(packet);
            self.update_scheduler(packet.flow, slot, Arrival::Request { number });
        }
        if let Some(reply) = reply {
            self.reply(packet.flow, slot, reply, false, None);
        } else {
            // A sender that has given up awaits no answer.
            self.note_possible_end(slot, Time::ZERO);
        }
    }

    /// Notifies the scheduler of a data packet.
    pub(super) fn on_credited_data(&mut self, packet: &Packet, slot: usize, is_new: bool) {
        if let Header::Credit { number, .. } = packet.header() {
            self.update_scheduler(packet.flow, slot, Arrival::Data { number, is_new });
        }
    }

    /// Notifies the scheduler of an arrival, and sends the credits that follow.
    pub(super) fn update_scheduler(&mut self, flow: FlowNumber, slot: usize, arrival: Arrival) {
        let now = self.scheduler.now();
        let (Some(receiver_end), Some(shared)) =
            (&mut self.flows.receivers[slot], &self.flows.shared[slot])
        else {
            return;
        };
        let is_complete = receiver_end.completed_at < Time::NEVER;
        let scheduler = &mut receiver_end.credit_scheduler;
        let Some(SchedulerRef { number, stage, .. }) = scheduler else { return };
        if *stage == Stage::Ended || is_complete && *stage == Stage::New {
            return;
        }
        let schedulers = &mut self.credit_schedulers.0;
        if *number as usize >= schedulers.len() {
            schedulers.resize_with(*number as usize + 1, || None);
        }
        let host = || CreditHost {
            host: shared.spec.target,
            now,
            line_rate: self.network.routes().arrival_rate(self.graph, shared.route.both()[1]),
            format: self.format.clone(),
            random: Random::new(self.seed, &format!("credit/{number}")),
            base_rtt: self.transports.base_rtt,
        };
        let transport = self.transports.of_class(shared.spec.class).config;
        let entry = &mut schedulers[*number as usize];
        if entry.is_none() {
            *entry = transport
                .credit_scheduler(&host())
                .map(|scheduler| HostScheduler { scheduler, wake_at: Time::NEVER });
        }
        let Some(HostScheduler { scheduler, .. }) = entry else { return };
        if *stage == Stage::New {
            let size = shared.spec.size;
            let segments = size.map_or(u32::MAX, |size| self.format.packets(size) as u32);
            let line_rate = self.network.routes().line_rate(self.graph, shared.route.both()[0]);
            let source = shared.spec.source;
            scheduler.on_start(now, &InboundFlow { flow, source, line_rate, segments, size });
        }
        scheduler.on_arrival(now, flow, arrival);
        if is_complete {
            scheduler.on_end(now, flow);
        }
        *stage = if is_complete { Stage::Ended } else { Stage::Active };
        let number = *number;
        self.send_credits(number);
    }

    /// Ends the credit of a flow whose sender has nothing more to send; other flows may get it.
    pub(super) fn end_credit(&mut self, flow: FlowNumber, slot: usize) {
        let now = self.scheduler.now();
        let Some(receiver_end) = &mut self.flows.receivers[slot] else { return };
        let Some(reference) = &mut receiver_end.credit_scheduler else { return };
        let number = reference.number;
        let was_active = std::mem::replace(&mut reference.stage, Stage::Ended) == Stage::Active;
        if was_active && let Some(entry) = &mut self.credit_schedulers.0[number as usize] {
            entry.scheduler.on_end(now, flow);
            self.send_credits(number);
        }
    }

    /// Handles the timer of a credit scheduler.
    pub(super) fn on_credit_timer(&mut self, number: u32) {
        let now = self.scheduler.now();
        let entry = self.credit_schedulers.0.get_mut(number as usize).and_then(Option::as_mut);
        if let Some(entry) = entry.filter(|entry| entry.wake_at == now) {
            entry.wake_at = Time::NEVER;
            self.send_credits(number);
        }
    }

    /// Sends all credits that a scheduler issues now, and schedules its timer.
    fn send_credits(&mut self, number: u32) {
        let now = self.scheduler.now();
        loop {
            let Self { credit_schedulers, flows, network, format, .. } = self;
            let Some(entry) = &mut credit_schedulers.0[number as usize] else { return };
            let missing = |flow: FlowNumber, from: u32| {
                let slot = network.slot(flow).map(|slot| slot as usize);
                let ends = slot.and_then(|slot| {
                    flows.receivers[slot].as_ref().zip(flows.shared[slot].as_ref())
                });
                let Some((receiver_end, shared)) = ends else { return u32::MAX };
                let segment = receiver_end.receiver.first_missing(from);
                let is_beyond = |size| u64::from(segment) >= format.packets(size);
                if shared.spec.size.is_some_and(is_beyond) { u32::MAX } else { segment }
            };
            let Some((flow, credit)) = entry.scheduler.next_credit(now, &missing) else {
                let timer = entry.scheduler.next_timer();
                if timer < entry.wake_at {
                    entry.wake_at = timer.max(now);
                    self.scheduler.push(entry.wake_at, Event::Credit(number));
                }
                return;
            };
            match self.network.slot(flow) {
                Some(slot) => self.send_credit(flow, slot as usize, credit),
                // It has ended.
                None => entry.scheduler.on_end(now, flow),
            }
        }
    }

    /// Sends a credit. It answers no packet, so that the FCT breakdown attributes the wait for it as a whole.
    fn send_credit(&mut self, flow: FlowNumber, slot: usize, credit: Credit) {
        let Some(receiver_end) = &mut self.flows.receivers[slot] else { return };
        let Credit { number, segment, class } = credit;
        let now = self.scheduler.now();
        let control = self.format.control(Kind::Credit, flow, now);
        let next_hop = receiver_end.reverse.start();
        let scheduler = receiver_end.credit_scheduler;
        let missed_request = scheduler.is_some_and(|reference| reference.missed_request);
        let flags = Flags::NONE.with_if(Flags::AFTER_TIMEOUT, missed_request);
        let mut packet = Packet { sequence: segment, next_hop, flags, ..control }
            .with_header(Header::Credit { number, class });
        receiver_end.packets.sent += 1;
        let sending = Sending::of_control(now);
        self.network.record_send(&mut packet, BreakdownRef::default(), sending);
        self.network.send(packet, &mut self.scheduler);
    }
}
