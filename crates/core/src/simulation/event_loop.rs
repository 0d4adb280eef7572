//! Event loop: handles the events of one queue in order of time.

use super::{Simulation, window_loop};
use crate::base::run_control::{Progress, RunControl};
use crate::base::schema::Problem;
use crate::base::units::Time;
use crate::model::graph::LinkId;
use crate::model::packet::{Kind, Packet};
use crate::schedule::Event;

impl Simulation<'_> {
    /// Runs until every flow has finished, `limit` is reached or `control` requests a stop.
    pub(super) fn run_by_events(
        &mut self,
        limit: Time,
        control: &RunControl,
    ) -> Result<(), Problem> {
        self.pending_flows.announce_next(&mut self.scheduler)?;
        if let Some(first) = self.next_bound() {
            self.scheduler.push(first, Event::ReadCounters);
        }
        if let Some(first) = self.next_bin_end() {
            self.scheduler.push(first, Event::EndBin);
        }
        if self.recorder.is_sampling() {
            self.scheduler.push(Time::ZERO, Event::Sample);
        }
        if let Some(period) = self.network.watchdog() {
            self.scheduler.push(Time::ZERO + period, Event::Watchdog);
        }
        if let Some(first) = self.next_link_change() {
            self.scheduler.push(first, Event::LinkChange);
        }
        let mut instant = Time::ZERO;
        while let Some((now, event)) = self.scheduler.pop() {
            if now > instant {
                self.record_ended_flows();
                self.live_flow_count.update();
                instant = now;
                if now > limit || self.is_over() {
                    break;
                }
            }
            self.handle(event)?;
            if !self.deadlocks.is_empty() {
                break;
            }
            if self.totals.events.is_multiple_of(65_536) {
                control.poll(|| self.progress())?;
            }
        }
        Ok(())
    }

    /// Progress of this partition.
    pub(super) fn progress(&self) -> Progress {
        let ended = &self.recorder.records.totals;
        let mut progress = Progress {
            now: self.scheduler.now(),
            started: ended.flows() + self.local_flows as u64,
            ended: ended.flows(),
            hops: self.network.ports().iter().map(|port| port.counters.departed).sum(),
            started_bytes: ended.size_bytes,
            delivered_bytes: ended.delivered_bytes,
        };
        let live = self.flows.receivers.iter().map(|end| (end.expected, end.delivered));
        for (size, delivered) in live.filter(|(expected, _)| *expected < u64::MAX) {
            progress.started_bytes += size;
            progress.delivered_bytes += delivered;
        }
        progress
    }

    pub(super) fn handle(&mut self, event: Event) -> Result<(), Problem> {
        self.totals.events += 1;
        match event {
            Event::FlowStart(number) => self.on_flow_start(number)?,
            Event::Arrive(link) => {
                let packet = self.network.arrive(link, &mut self.scheduler);
                self.on_arrival(packet, link)?;
            }
            Event::Ready(link) => self.network.ready(link, &mut self.scheduler),
            Event::HoldEnd(link) => self.network.end_hold(link, &mut self.scheduler),
            Event::Tick(link) => self.network.tick(link, &mut self.scheduler),
            Event::PauseEnd(lane) => self.network.on_pause_end(lane, &mut self.scheduler),
            Event::PauseFrame(lane) => self.network.on_pause_frame_due(lane, &mut self.scheduler),
            Event::ReceiverTimer(number) => self.on_receiver_timer(number),
            Event::Credit(number) => self.on_credit_timer(number),
            Event::Turn(host) => self.on_turn(host),
            Event::SenderTimer(number) => self.on_sender_timer(number),
            Event::ReadCounters => {
                if let Some(next) = self.read_counters() {
                    self.scheduler.push(next, Event::ReadCounters);
                }
            }
            Event::EndBin => {
                if let Some(next) = self.end_bin() {
                    self.scheduler.push(next, Event::EndBin);
                }
            }
            Event::Sample => {
                if let Some(next) = self.take_samples() {
                    self.scheduler.push(next, Event::Sample);
                }
            }
            Event::Watchdog => {
                if let Some(next) = window_loop::check_deadlocks(&mut [&mut *self]) {
                    self.scheduler.push(next, Event::Watchdog);
                }
            }
            Event::LinkChange => {
                self.apply_link_changes();
                if let Some(next) = self.next_link_change() {
                    self.scheduler.push(next, Event::LinkChange);
                }
            }
        }
        self.process_departures();
        Ok(())
    }

    /// Forwards or delivers a packet that has arrived at the end of a link.
    pub(super) fn on_arrival(&mut self, packet: Packet, link: LinkId) -> Result<(), Problem> {
        if let Some(mut packet) = self.network.forward(packet, link, &mut self.scheduler) {
            let keeps_breakdown = self.network.records().is_some();
            if keeps_breakdown {
                self.network.begin_delivery(&mut packet, self.scheduler.now());
            }
            self.deliver(&packet)?;
            if keeps_breakdown {
                self.network.end_delivery();
            }
        }
        Ok(())
    }

    /// Delivers a packet to its flow at the end of its path.
    fn deliver(&mut self, packet: &Packet) -> Result<(), Problem> {
        let Some(slot) = self.network.slot(packet.flow) else {
            unreachable!("a flow stays until its last packet has left the network")
        };
        let slot = slot as usize;
        match packet.kind {
            Kind::Data => self.on_data(packet, slot)?,
            Kind::Datagram => self.on_datagram(packet, slot)?,
            Kind::Return => self.on_return_datagram(packet, slot),
            Kind::Fin => self.on_fin(packet, slot),
            Kind::Trimmed => self.on_trimmed(packet, slot),
            Kind::Request | Kind::LossProbe => self.on_request(packet, slot),
            Kind::Syn => self.echo(packet, slot, Kind::SynAck),
            Kind::Probe => self.echo(packet, slot, Kind::ProbeAck),
            Kind::Returned => self.on_returned(packet, slot),
            Kind::SynAck | Kind::ProbeAck | Kind::Credit | Kind::Ack | Kind::Nack | Kind::Cnp => {
                self.on_answer(packet, slot);
            }
            Kind::Pause | Kind::Resume => unreachable!("the network keeps pause frames to itself"),
        }
        Ok(())
    }
}
