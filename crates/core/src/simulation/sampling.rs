//! What a run samples over time, and what it keeps of round-trip times.

use super::Simulation;
use super::flows::ends::SenderEnd;
use crate::base::units::{Bytes, Duration, Time};
use crate::model::graph::LinkId;
use crate::model::packet::{FlowNumber, Packet};
use crate::record::Recorder;

impl Simulation<'_> {
    /// Takes all samples that are due; says when to take the next.
    pub(super) fn sample(&mut self) -> Option<Time> {
        let now = self.scheduler.now();
        let Self { graph, recorder, network, flows, part, .. } = self;
        let Recorder { samples, queues, links, flows: watched, active, .. } = recorder;
        let senders = flows.senders.iter();
        let in_progress = senders.filter(|sending| sending.closed == Time::NEVER).count();
        samples.push(now, *active, in_progress as f64);
        let is_own = |link: LinkId| part.owns(graph.links[link as usize].from);
        for (link, probe) in queues.iter().filter(|(link, _)| is_own(*link)) {
            let port = network.port_mut(*link);
            samples.push(now, *probe, port.backlog(now).bytes as f64);
            for (name, value) in port.gauges() {
                let probe = samples.probe(format!("{name} {}", graph.link_name(*link)));
                samples.push(now, probe, value);
            }
        }
        for (link, probe) in links.iter().filter(|(link, _)| is_own(*link)) {
            let bytes = network.port_mut(*link).transmitted(now);
            samples.push(now, *probe, bytes as f64);
        }
        for id in watched {
            let number = FlowNumber::try_from(*id).ok();
            let place = number.and_then(|number| network.slot(number));
            let Some(place) = place.map(|place| place as usize) else { continue };
            if let Some(receiving) = &flows.receivers[place] {
                let delivered = samples.probe(format!("delivered_bytes flow {id}"));
                samples.push(now, delivered, receiving.delivered as f64);
            }
            let gauges = flows.senders[place].as_ref().map(SenderEnd::gauges);
            for (name, value) in gauges.into_iter().flatten() {
                let probe = samples.probe(format!("{name} flow {id}"));
                samples.push(now, probe, value);
            }
        }
        self.recorder.next(now)
    }

    /// Counts a round-trip time that a transport was told, and takes it apart if that is asked for.
    pub(super) fn note_rtt(&mut self, packet: &Packet, place: usize, rtt: Duration, marked: bool) {
        let Self { graph, scheduler, network, recorder, flows, .. } = self;
        let Some(shared) = &mut flows.shared[place] else { return };
        recorder.count_rtt(scheduler.now(), shared.spec.class, rtt);
        let Some(trace) = &mut shared.trace else { return };
        let [there, back] = shared.there.both();
        let alone = |bytes| {
            let one_way = |way, bytes| network.routes().packet_time(graph, way, bytes);
            (one_way(there, bytes), one_way(back, Bytes(u64::from(packet.bytes))))
        };
        let now = scheduler.now();
        if let Some(parts) = trace.on_return(packet.sent_at, now, packet.sequence, alone) {
            recorder.keep_rtt(now, trace.probes, rtt, marked, &parts);
        }
    }
}
