//! What a run samples over time, and what it keeps of round-trip times.

use super::{Flow, Simulation};
use crate::agenda::Event;
use crate::packet::Packet;
use crate::record::Recorder;
use crate::units::Duration;

impl Simulation<'_> {
    /// Takes all samples that are due, and arranges for the next.
    pub(super) fn sample(&mut self) {
        let now = self.agenda.now();
        let Self { graph, recorder, network, flows, .. } = self;
        let Recorder { samples, queues, links, flows: watched, active, .. } = recorder;
        let in_progress = flows.iter().flatten().filter(|flow| flow.closed.is_none()).count();
        samples.push(now, *active, in_progress as f64);
        for (link, probe) in queues {
            let port = &mut network.ports[*link as usize];
            samples.push(now, *probe, port.backlog(now).bytes as f64);
            for (name, value) in port.gauges() {
                let probe = samples.probe(format!("{name} {}", graph.link_name(*link)));
                samples.push(now, probe, value);
            }
        }
        for (link, probe) in links {
            let bytes = network.ports[*link as usize].transmitted(now);
            samples.push(now, *probe, bytes as f64);
        }
        for flow in flows.iter().flatten().filter(|flow| watched.contains(&flow.spec.id)) {
            let id = flow.spec.id;
            let delivered = samples.probe(format!("delivered_bytes flow {id}"));
            samples.push(now, delivered, flow.delivered as f64);
            for (name, value) in flow.controller.gauges() {
                let probe = samples.probe(format!("{name} flow {id}"));
                samples.push(now, probe, value);
            }
        }
        if let Some(time) = self.recorder.next(now) {
            self.agenda.push(time, Event::Sample);
        }
    }

    /// Counts a round-trip time that a transport is about to be told, and takes it apart if that is asked
    /// for.
    pub(super) fn note_rtt(&mut self, packet: &Packet, rtt: Duration) {
        let Self { graph, agenda, network, format, recorder, flows, .. } = self;
        let Some(flow) = &mut flows[packet.flow as usize] else { return };
        recorder.count_rtt(agenda.now(), flow.spec.class, rtt);
        let Flow { trace: Some(trace), there, back, .. } = flow else { return };
        let alone = |bytes| {
            let one_way = |way, bytes| network.routes.packet_time(graph, way, bytes);
            (one_way(*there, bytes), one_way(*back, format.ack))
        };
        let now = agenda.now();
        if let Some(parts) = trace.on_return(packet.sent_at, now, packet.sequence, alone) {
            recorder.keep_rtt(now, trace.probes, rtt, packet.is_marked(), &parts);
        }
    }
}
