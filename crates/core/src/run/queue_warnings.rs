//! Warnings about queues: limits, marks, trimming and pauses.

use std::collections::BTreeMap;

use super::scenario::Scenario;
use crate::base::units::{Bytes, Duration};
use crate::model::graph::{Graph, Link, LinkId};
use crate::model::host_clock::Service;
use crate::network::port::Port;
use crate::queueing::{Limit, LinkScale, Priorities, disciplines};
use crate::simulation::Simulation;
use crate::transport::{Recovery, controllers};

/// Queue above which a queue without a limit and a host's queue are worth a warning.
const LONG_QUEUE: Bytes = Bytes(1_000_000);

/// Queueing delay above which they are.
const LONG_WAIT: Duration = Duration::from_millis(100);

/// Largest number of long-lived flows that are few.
const MANY_FLOWS: f64 = 64.0;

/// Number of drops above which go-back-N is worth a warning.
const MANY_DROPS: u64 = 100;

/// Number of pauses above which a lack of marks is worth a warning.
const MANY_PAUSES: u64 = 100;

impl Scenario {
    /// Warns of queues without a limit that grew, and of hosts whose flows wait long for their own port.
    pub(super) fn queue_warnings(
        &self,
        graph: &Graph,
        simulation: &Simulation<'_>,
        queues: &[[disciplines::Config; 2]],
    ) -> impl Iterator<Item = String> {
        let ports = simulation.network.ports();
        let longest = |at_host: bool| {
            let is_there = |id: &usize| graph.is_from_host(&graph.links[*id]) == at_host;
            let queue = |id: &usize| ports[*id].counters.queue_max;
            let id = (0..ports.len()).filter(is_there).max_by_key(queue)?;
            let (bytes, name) = (Bytes(queue(&id)), graph.link_name(id as LinkId));
            let wait = graph.links[id].rate.transmit(bytes);
            let is_long = bytes > LONG_QUEUE || wait > LONG_WAIT;
            is_long.then(|| format!("{bytes} at {name}, {wait} at its rate"))
        };
        let is_unlimited = self.switch.shared_buffer.is_none()
            && queues.iter().any(|[switch, _]| switch.capacity().is_none());
        let switch = longest(false).filter(|_| is_unlimited).map(|queue| {
            format!(
                "queues have no limit, and the longest reached {queue}; give `queue.capacity` or \
                 `switch.shared_buffer`"
            )
        });
        let host = longest(true).map(|queue| {
            let hint = match self.host.service {
                Service::Fifo => "; give `host.service = \"fair\"`",
                Service::Fair | Service::RoundRobin => "",
            };
            format!(
                "a host's own queue reached {queue}: other flows of the host wait behind it{hint}"
            )
        });
        switch.into_iter().chain(host)
    }

    /// Warns of a few long-lived flows in a drop-tail queue, where packets arrive in a fixed rhythm.
    pub(super) fn phase_warning(
        &self,
        graph: &Graph,
        simulation: &Simulation<'_>,
        queues: &[[disciplines::Config; 2]],
    ) -> Option<String> {
        let is_drop_tail = |[switch, _]: &[disciplines::Config; 2]| {
            matches!(switch, disciplines::Config::drop_tail(_))
        };
        let may_jitter = self.host.jitter == Duration::ZERO && self.switch.pause.is_none();
        if !may_jitter || !queues.iter().any(is_drop_tail) {
            return None;
        }
        let mut ports = graph.links.iter().zip(simulation.network.ports());
        let drops =
            |(link, port): &(&Link, &Port)| port.counters.dropped > 0 && !graph.is_from_host(link);
        let (link, _) = ports.find(drops)?;
        let estimate = self.workload.estimate(&self.workload_context(graph)).ok()?;
        let are_few = (2.0..=MANY_FLOWS).contains(&estimate.concurrent);
        let packet_time = link.rate.transmit(self.packet.full());
        let hosts = if graph.hosts_are_routers {
            "use `dumbbell`, which has links from hosts, and give"
        } else {
            "give"
        };
        (are_few && estimate.long_lived_end.is_some()).then(|| {
            format!(
                "a few long-lived flows fill a drop-tail queue: their shares depend on the exact times of \
                 their packets (phase effects); {hosts} `host.jitter = \"{packet_time}\"`, the time of a \
                 packet on this link"
            )
        })
    }

    /// Warns of transports that rely on trimming if queues drop packets and trim none, and of those that do
    /// not read the headers of trimmed packets.
    pub(super) fn trimming_warnings(
        &self,
        simulation: &Simulation<'_>,
    ) -> impl Iterator<Item = String> {
        let ports = simulation.network.ports();
        let drops: u64 = ports.iter().map(|port| port.counters.dropped).sum();
        let trims: u64 = ports.iter().map(|port| port.counters.trimmed).sum();
        self.all_transports().filter_map(move |(field, transport)| {
            let mechanism = transport.mechanism(&self.packet);
            let relies = mechanism.acks.answers_trimmed && !mechanism.sleek;
            if trims > 0 && !mechanism.acks.answers_trimmed && !transport.has_own_stack() {
                return Some(format!(
                    "{field}: queues trimmed {trims} packets, and `{}` takes them for lost, since it does \
                     not read their headers; give a queue that does not trim, or a transport that reads \
                     them (`ndp`, `uet`)",
                    transport.title()
                ));
            }
            (relies && trims == 0 && drops > 0).then(|| {
                format!(
                    "{field}: queues dropped {drops} packets and trimmed none, so that only timeouts \
                     detect losses; give a queue that trims (`composite`)"
                )
            })
        })
    }

    /// Warns of queues that lack what their transports were designed for or use, and of mixtures of
    /// transports.
    pub(super) fn queue_kind_warnings(
        &self,
        simulation: &Simulation<'_>,
        queues: &[[disciplines::Config; 2]],
    ) -> impl Iterator<Item = String> {
        let ports = simulation.network.ports();
        let has_marks = ports.iter().any(|port| port.counters.marked > 0);
        let pauses: u64 = ports.iter().flat_map(Port::pauses).map(|pauses| pauses.count).sum();
        let transports = self.transport.as_ref().map(|main| {
            let traffic = simulation.network.traffic();
            self.transports_by_traffic_class(main, traffic, simulation.classes())
        });
        let both = transports.into_iter().flatten().zip(queues);
        both.flat_map(move |(transports, [queue, host])| {
            let marks_none = !queue.marks() && !host.marks();
            let lacks = transports.iter().filter_map(|(field, transport)| {
                let (name, designed) = (transport.title(), transport.queue());
                let lack = if designed.limits_credits() && !queue.limits_credits() {
                    "limit the rate of credits"
                } else if designed.marks() && !queue.marks() {
                    "mark packets"
                } else if transport.priorities() != Priorities::Classes(1)
                    && queue.priorities().is_none()
                {
                    return Some(format!(
                        "{field}: `{name}` gives packets priorities, but these queues ignore them; give a \
                         queue with priorities (`strict_priority`)"
                    ));
                } else if !transport.mechanism(&self.packet).ecn_capable {
                    return None;
                } else if pauses > MANY_PAUSES && !has_marks && queue.marks() {
                    return Some(format!(
                        "{field}: links were paused {pauses} times, and no packet was marked: switches pause \
                         before their queues mark packets, so `{name}` never slows down; give a larger \
                         `switch.shared_buffer`, or a queue that marks earlier"
                    ));
                } else if marks_none {
                    return Some(format!(
                        "{field}: `{name}` uses ECN, but these queues do not mark packets; give a queue that \
                         marks (`ecn_threshold`, `red`, `fq_codel`, or `codel` with `law = {{ ecn = true }}`)"
                    ));
                } else {
                    return None;
                };
                let designed = designed.name();
                Some(format!(
                    "{field}: `{name}` was designed for queues that {lack}, and these do not; give such a \
                     queue (`{designed}`)"
                ))
            });
            let mixed = Some(queue).filter(|_| has_marks);
            let mixed = mixed.and_then(|queue| self.mixed_warning(&transports, queue));
            lacks.chain(mixed).collect::<Vec<_>>()
        })
    }

    /// Warns of queues that drop packets before their marking threshold.
    pub(super) fn marking_warning(
        &self,
        graph: &Graph,
        simulation: &Simulation<'_>,
        queues: &[[disciplines::Config; 2]],
    ) -> Option<String> {
        let is_capable = |transport: &controllers::Config| {
            !transport.has_own_stack() && transport.mechanism(&self.packet).ecn_capable
        };
        let mut transports = self.all_transports();
        let (field, transport) = transports.find(|(_, transport)| is_capable(transport))?;
        let (base_rtt, packet) = (self.extent().ok()?.base_rtt(&self.packet), self.packet.full());
        let lowest = |id: LinkId| {
            let rate = graph.nominal_rate(id);
            let opposite_rate = rate;
            let scale = LinkScale { rate, opposite_rate, base_rtt, packet, is_last_hop: false };
            let thresholds = queues.iter().flat_map(|[switch, _]| switch.thresholds(scale));
            let in_bytes = |limit| match limit {
                Limit::Bytes(bytes) => Bytes(bytes),
                Limit::Packets(packets) => Bytes(packet.0 * u64::from(packets)),
            };
            thresholds.map(|(name, limit)| (in_bytes(limit), name)).min()
        };
        let unmarked = |(id, port): (usize, &Port)| {
            let (id, counters) = (id as LinkId, &port.counters);
            let at_switch = !graph.is_from_host(&graph.links[id as usize]);
            if !at_switch || counters.dropped == 0 || counters.marked > 0 {
                return None;
            }
            let (threshold, name) = lowest(id)?;
            let longest = Bytes(counters.queue_max);
            (longest <= threshold + packet).then(|| {
                format!(
                    "{field}: `{}` uses ECN, but {} dropped {} packets and marked none: its queue was full \
                     at {longest}, and marks from {threshold} on; give a lower `queue.{name}`, or a larger \
                     `queue.capacity` or `switch.shared_buffer`",
                    transport.title(),
                    graph.link_name(id),
                    counters.dropped
                )
            })
        };
        simulation.network.ports().iter().enumerate().find_map(unmarked)
    }

    /// Warns of go-back-N in traffic classes that are dropped while switches pause others.
    pub(super) fn go_back_n_warnings(
        &self,
        simulation: &Simulation<'_>,
    ) -> impl Iterator<Item = String> {
        let ports = simulation.network.ports();
        let drops: u64 = ports.iter().map(|port| port.counters.dropped_others()).sum();
        let paused = self.switch.pause.as_ref().and_then(|pause| pause.classes.as_ref());
        let both = self.transport.as_ref().zip(paused).filter(|_| drops > MANY_DROPS);
        both.into_iter().flat_map(move |(main, paused)| {
            let traffic = simulation.network.traffic();
            let transports = self.transports_by_traffic_class(main, traffic, simulation.classes());
            let numbers = traffic.numbers.iter().zip(transports);
            let dropped = numbers.filter(|(number, _)| !paused.contains(number));
            let warn = |(number, transports): (_, BTreeMap<String, &controllers::Config>)| {
                let repeats = |(_, transport): &(_, &controllers::Config)| {
                    let recovery = || transport.mechanism(&self.packet).reliability.recovery;
                    !transport.has_own_stack() && recovery() == Recovery::GoBackN
                };
                let (field, _) = transports.into_iter().find(repeats)?;
                Some(format!(
                    "{field}: go-back-N sends all data again from a loss on, and traffic class {number} is \
                     not in `switch.pause.classes`: {drops} packets were dropped; give \
                     `reliability.recovery = \"rack\"`"
                ))
            };
            dropped.filter_map(warn).collect::<Vec<_>>()
        })
    }

    /// Warns of drops of packets whose links are paused: the headroom is too small for the packets that
    /// arrive before a pause takes effect.
    pub(super) fn headroom_warning(
        &self,
        graph: &Graph,
        simulation: &Simulation<'_>,
    ) -> Option<String> {
        let pause = self.switch.pause.as_ref()?;
        let (switch, drops) = simulation.network.most_overruns()?;
        let numbers = &simulation.network.traffic().numbers;
        let lanes = pause.classes.as_ref().map_or(numbers.len(), Vec::len);
        let incoming = graph.links.iter().enumerate().filter(|(_, link)| link.to == switch);
        let needed = incoming
            .map(|(id, link)| {
                pause.needed_headroom(lanes, link, &graph.links[id ^ 1], &self.packet)
            })
            .max()?;
        let (name, needed) = (&graph.nodes[switch as usize].name, Bytes(needed));
        let cause = match (pause.headroom, pause.quanta) {
            (Some(headroom), _) => format!(
                "`switch.pause.headroom` is {headroom}, and up to {needed} arrive by a link before it \
                 pauses; leave `headroom` out"
            ),
            (None, Some(quanta)) => format!(
                "`switch.pause.quanta` is {quanta}, and pauses ended before their frames were repeated; \
                 give more"
            ),
            (None, None) => format!(
                "the computed headroom of up to {needed} a link does not contain slower frames of links \
                 with rate traces; give more as `headroom`"
            ),
        };
        Some(format!("switch `{name}` dropped {drops} packets of paused traffic classes: {cause}"))
    }

    /// Warns of a queue that marks ECN-capable packets, and accepts the others beyond that.
    fn mixed_warning(
        &self,
        transports: &BTreeMap<String, &controllers::Config>,
        queue: &disciplines::Config,
    ) -> Option<String> {
        let disciplines::Config::ecn_threshold(queue) = queue else { return None };
        let transports = transports.iter().filter(|(_, other)| !other.has_own_stack());
        let (capable, others): (Vec<_>, Vec<_>) =
            transports.partition(|(_, transport)| transport.mechanism(&self.packet).ecn_capable);
        let (capable, other) = (capable.first()?.1.title(), others.first()?.1.title());
        (!queue.drops_non_ect).then(|| {
            format!(
                "queues mark packets of {capable} above the threshold, but accept those of {other}, which \
                 are not ECN-capable: most switches drop them; give `queue.drops_non_ect = true`"
            )
        })
    }
}
