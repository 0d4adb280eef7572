//! Arrivals of a whole window, and packets between the partitions of a run.

use super::Network;
use super::breakdown::packet_records::ExportedRecord;
use super::link::transmitter::Flight;
use super::overlay::OverlayRow;
use super::routes::END;
use crate::base::units::Time;
use crate::model::graph::{Graph, LinkId, NodeId};
use crate::model::packet::AckOptions;
use crate::model::telemetry::TelemetryStack;
use crate::schedule::Scheduler;

/// Packets in flight from one partition to another. Its memory is reused.
#[derive(Default)]
pub struct Shipment {
    flights: Vec<(LinkId, Flight)>,
    /// Records of these packets in the same order, without pause frames, if records are kept.
    records: Vec<ExportedRecord>,
    /// Options of the ACKs that have any beyond their headers, in the same order.
    options: Vec<AckOptions>,
    /// Telemetry of the packets that have any, in the same order.
    telemetry: Vec<TelemetryStack>,
    /// Overlay headers of the packets that have one, in the same order.
    overlays: Vec<OverlayRow>,
}

impl Network {
    /// Visits the arrivals at the end of a link before `ends`, when a window begins at `begins`, and reads
    /// ahead what they need. The transmitting node may be behind or ahead by a window: every packet that
    /// arrives before the window ends has been started when it begins.
    #[inline]
    pub fn visit_arrivals(
        &mut self,
        link: LinkId,
        begins: Time,
        ends: Time,
        mut visit: impl FnMut(Time),
    ) {
        let Self { ports, routes, records, .. } = self;
        let arrivals = ports[link as usize].arrivals(begins, ends);
        // Two loops, so that runs without records do not pay for them.
        let Some(records) = records else {
            for flight in arrivals {
                visit(flight.arrives);
                routes.read_ahead(flight.packet.next_hop);
            }
            return;
        };
        for Flight { arrives, packet } in arrivals {
            visit(*arrives);
            records.read_ahead(packet, routes.link(packet.next_hop) == END);
        }
    }

    /// Hands the packets in flight on a link to another partition from now on
    /// ([`export`](Self::export)).
    pub fn cut(&mut self, link: LinkId) {
        self.ports[link as usize].cut();
    }

    /// Moves all packets whose transmission has started by `now` from a link into `shipment`. Returns
    /// the earliest of their arrivals and of the next overdue transmission.
    pub fn export(&mut self, link: LinkId, now: Time, shipment: &mut Shipment) -> Time {
        let Self { ports, records, ack_options, telemetry, load_balancers, .. } = self;
        let mut overlays = load_balancers.as_mut().and_then(|it| it.overlays.as_mut());
        let mut first = Time::NEVER;
        let starts = ports[link as usize].export(now, |flight, hop, port_telemetry| {
            first = flight.arrives.min(first);
            let records = records.as_mut().filter(|_| !flight.packet.kind.is_frame());
            if let (Some(records), Some(hop)) = (records, hop) {
                shipment.records.push(records.export(&flight.packet, &hop));
            }
            shipment.options.extend(ack_options.take(&flight.packet));
            Self::record_telemetry(port_telemetry, telemetry, &flight.packet, link);
            if let Some(row) = flight.packet.telemetry_row() {
                shipment.telemetry.push(telemetry[row]);
                telemetry.release(row);
            }
            let overlay = overlays.as_mut().and_then(|it| it.take(&flight.packet, link));
            shipment.overlays.extend(overlay);
            shipment.flights.push((link, flight));
        });
        starts.min(first)
    }

    /// Puts the packets of `shipment` on their links, and schedules the first arrivals.
    pub fn import(&mut self, shipment: &mut Shipment, scheduler: &mut Scheduler) {
        let mut exported = shipment.records.drain(..);
        let mut options = shipment.options.drain(..);
        let mut stacks = shipment.telemetry.drain(..);
        let mut rows = shipment.overlays.drain(..);
        for (link, mut flight) in shipment.flights.drain(..) {
            let mut starts = Time::ZERO;
            if let Some(records) = &mut self.records
                && !flight.packet.kind.is_frame()
                && let Some(record) = exported.next()
            {
                starts = record.starts;
                records.import(&mut flight.packet, record);
            }
            let packet = &mut flight.packet;
            let has_telemetry = packet.telemetry_row().is_some();
            if packet.options_row().is_some()
                && let Some(options) = options.next()
            {
                *packet = self.ack_options.attach(*packet, options, packet.header().feedback());
            }
            if has_telemetry && let Some(stack) = stacks.next() {
                let row = self.telemetry.allocate(|_, _| ());
                self.telemetry[row] = stack;
                *packet = packet.with_telemetry(row as u32);
            }
            if let Some(overlays) = self.overlays()
                && overlays.covers(&flight.packet, link)
                && let Some(row) = rows.next()
            {
                overlays.import(&mut flight.packet, row);
            }
            if self.ports[link as usize].import(flight, starts) {
                scheduler.push_arrival(link, flight.arrives);
            }
        }
    }

    /// Exchanges the ports and buffers of the nodes that `is_other` selects with another partition.
    pub fn swap(&mut self, other: &mut Self, graph: &Graph, is_other: impl Fn(NodeId) -> bool) {
        let links = graph.links.iter().enumerate();
        for (id, _) in links.filter(|(_, link)| is_other(link.from)) {
            std::mem::swap(&mut self.ports[id], &mut other.ports[id]);
        }
        if let (Some(buffers), Some(others)) = (&mut self.buffers, &mut other.buffers) {
            buffers.swap(others, is_other);
        }
    }

    /// Takes over the nodes that `is_other` selects from another partition that has ended.
    pub fn absorb(&mut self, other: &mut Self, graph: &Graph, is_other: impl Fn(NodeId) -> bool) {
        self.swap(other, graph, &is_other);
        for (id, link) in graph.links.iter().enumerate() {
            // The packets in flight on a link are in the partition of its receiving node.
            if is_other(link.from) || is_other(link.to) {
                self.ports[id].absorb(&mut other.ports[id]);
            }
        }
        if let Some(log) = self.records.as_mut().and_then(|records| records.log.as_mut())
            && let Some(other) = other.take_log()
        {
            log.absorb(other);
        }
        self.ack_options.absorb(&other.ack_options);
        self.telemetry.absorb(&other.telemetry);
        self.absorb_overlays(other);
        self.returned += other.returned;
        self.pause_frames = self.pause_frames.wrapping_add(other.pause_frames);
        self.last_frame = self.last_frame.max(other.last_frame);
        if let (Some(timers), Some(others)) = (&mut self.pause_timers, &other.pause_timers) {
            timers.absorb(others);
        }
    }
}
