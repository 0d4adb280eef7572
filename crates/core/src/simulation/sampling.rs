//! Samples and counters over time, and RTT records.

use super::Simulation;
use super::flows::ends::SenderEnd;
use crate::base::units::{Bytes, Duration, Time};
use crate::model::graph::LinkId;
use crate::model::packet::{FlowNumber, Packet};
use crate::record::{Recorder, Samples};

impl Simulation<'_> {
    /// Returns the end of the present bin of the counters of links, if these are recorded.
    pub(super) fn next_bin_end(&self) -> Option<Time> {
        self.recorder.recording.as_ref().map(|recording| recording.series.next_end())
    }

    /// Ends a bin of the counters of links. Returns the end of the next.
    pub(super) fn end_bin(&mut self) -> Option<Time> {
        let (now, ports) = (self.scheduler.now(), self.network.ports_mut());
        if let Some(recording) = &mut self.recorder.recording {
            recording.series.read(ports, now);
        }
        self.next_bin_end()
    }

    /// Takes all samples that are due. Returns the time of the next samples.
    pub(super) fn take_samples(&mut self) -> Option<Time> {
        let now = self.scheduler.now();
        let active = self.flows.active();
        let Self { graph, recorder, network, flows, partition, .. } = self;
        let Recorder { samples, queue_probes, link_probes, sampled_flows, active_probe, .. } =
            recorder;
        samples.push(now, *active_probe, active as f64);
        let is_local = |link: LinkId| partition.owns(graph.links[link as usize].from);
        for (link, probe) in queue_probes.iter().filter(|(link, _)| is_local(*link)) {
            let port = network.port_mut(*link);
            samples.push(now, *probe, port.backlog(now).bytes as f64);
            for (name, value) in port.gauges() {
                let probe = samples.probe(format!("{name} {}", graph.link_name(*link)));
                samples.push(now, probe, value);
            }
        }
        for (link, probe) in link_probes.iter().filter(|(link, _)| is_local(*link)) {
            let bytes = network.port_mut(*link).transmitted(now);
            samples.push(now, *probe, bytes as f64);
        }
        for id in sampled_flows {
            let number = FlowNumber::try_from(*id).ok();
            let slot = number.and_then(|number| network.slot(number));
            let Some(slot) = slot.map(|slot| slot as usize) else { continue };
            if let Some(receiver_end) = &flows.receivers[slot] {
                let delivered = samples.probe(Samples::delivered(*id));
                samples.push(now, delivered, receiver_end.delivered as f64);
            }
            let gauges = flows.senders[slot].as_ref().map(SenderEnd::gauges);
            for (name, value) in gauges.into_iter().flatten() {
                let probe = samples.probe(format!("{name} flow {id}"));
                samples.push(now, probe, value);
            }
        }
        self.recorder.next_sample(now)
    }

    /// Counts an RTT that a transport measured, and records its components if the flow is traced.
    pub(super) fn record_rtt(&mut self, packet: &Packet, slot: usize, rtt: Duration, marked: bool) {
        let Self { graph, format, scheduler, network, recorder, flows, .. } = self;
        let Some(shared) = &mut flows.shared[slot] else { return };
        recorder.count_rtt(scheduler.now(), shared.spec.class, rtt);
        let Some(trace) = &mut shared.trace else { return };
        let [forward, reverse] = shared.route.both();
        let delay = |route, bytes: Bytes| {
            let path = network.routes().links(route).next().unwrap_or_default();
            graph.packet_time(path, format, bytes)
        };
        let reverse = delay(reverse, Bytes(u64::from(packet.bytes)));
        let now = scheduler.now();
        let forward = |bytes| delay(forward, bytes);
        if let Some(components) =
            trace.on_ack(packet.sent_at, now, packet.sequence, reverse, forward)
        {
            recorder.record_rtt(now, trace.probes, rtt, marked, &components);
        }
    }
}
