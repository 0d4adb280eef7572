//! Checks of a scenario's fields against each other.

use crate::base::schema::{Parameter, Problem};
use crate::base::units::{Duration, Time};
use crate::model::graph::{Change, Extent, Graph};
use crate::model::host_clock::Stamps;
use crate::model::telemetry::TelemetryStack;
use crate::network::routes::Routing;
use crate::queueing::{Priorities, disciplines};
use crate::run::scenario::{Model, Scenario};
use crate::transport::controllers;

/// Checks a scenario whose fields are valid one by one.
pub(super) fn check_scenario(scenario: &Scenario) -> Result<(), Problem> {
    if scenario.model == Model::Packet && scenario.transport.is_none() {
        let names = controllers::Config::NAMES.join(", ");
        let message = format!("missing; the packet model needs one of {names}");
        return Err(Problem::new("transport", message));
    }
    if !scenario.account_flows.is_empty() && !scenario.account {
        return Err(Problem::new("account_flows", "needs `account = true`"));
    }
    if scenario.record.is_some() && !scenario.account {
        return Err(Problem::new("record", "needs `account = true`"));
    }
    if scenario.flows_per_record > 1 && scenario.record.is_some() {
        let message = "must be 1 with `record`, which selects flows among all records";
        return Err(Problem::new("flows_per_record", message));
    }
    if matches!(scenario.model, Model::Ideal(_)) && !scenario.failures.is_empty() {
        let message = "must be empty: an ideal shares out rates that do not change";
        return Err(Problem::new("failures", message));
    }
    if scenario.entropy.is_some() && !scenario.routing.uses_entropy() {
        return Err(Problem::new("entropy", "needs `routing = \"entropy\"`"));
    }
    if scenario.host.jitter > Duration::ZERO && scenario.switch.pause.is_some() {
        let message = "must be zero with `switch.pause`, whose headroom does not contain it";
        return Err(Problem::new("host.jitter", message));
    }
    check_router(scenario)?;
    check_mixture(scenario)?;
    for (field, transport) in scenario.all_transports() {
        check_transport(scenario, &field, transport)?;
    }
    check_queues(scenario)?;
    check_packet_sizes(scenario)?;
    if scenario.time_limit == Time::ZERO {
        return Err(Problem::new("time_limit", "must be above zero"));
    }
    if scenario.warm_up >= scenario.time_limit {
        let limit = scenario.time_limit;
        let message = format!("must end before time_limit, which is {limit}");
        return Err(Problem::new("warm_up", message));
    }
    Ok(())
}

/// Checks that a full packet fits into every given queue and into every quantum.
fn check_queues(scenario: &Scenario) -> Result<(), Problem> {
    let packet = scenario.packet.full();
    for (field, queue) in [("queue", &scenario.queue), ("host_queue", &scenario.host_queue)] {
        let capacity = queue.as_ref().and_then(|queue| queue.capacity());
        if capacity.is_some_and(|capacity| !capacity.may_hold(packet)) {
            let message = format!("must hold at least one packet, which is {packet} on the link");
            return Err(Problem::new(format!("{field}.capacity"), message));
        }
        let quantum = queue.as_ref().and_then(|queue| queue.quantum());
        if quantum.is_some_and(|quantum| quantum < packet) {
            let message = format!("must be at least a packet, which is {packet} on the link");
            return Err(Problem::new(format!("{field}.quantum"), message));
        }
    }
    Ok(())
}

/// Checks that sizes of packets fit into 16 bits.
fn check_packet_sizes(scenario: &Scenario) -> Result<(), Problem> {
    let format = &scenario.packet;
    let sizes = [
        ("packet.payload", format.full()),
        ("packet.ack", format.longest_ack()),
        ("packet.syn", format.syn.unwrap_or(format.ack)),
        ("packet.credit", format.credit.unwrap_or(format.ack)),
    ];
    match sizes.into_iter().find(|(_, bytes)| bytes.0 > u64::from(u16::MAX)) {
        Some((field, bytes)) => {
            let most = u16::MAX;
            let message = format!("must keep a packet within {most} B on the link, not {bytes}");
            Err(Problem::new(field, message))
        }
        None => Ok(()),
    }
}

/// Checks that the routers are those of the transport, which reads the headers that they write.
fn check_router(scenario: &Scenario) -> Result<(), Problem> {
    let (Some(transport), Some(router)) = (&scenario.transport, &scenario.router) else {
        return Ok(());
    };
    let message = match transport.router() {
        Some(needed) if needed.name() == router.name() => return Ok(()),
        Some(needed) => format!("must be `{}` for this transport", needed.name()),
        None => format!("must be left out: `{}` does not use routers", transport.title()),
    };
    Err(Problem::new("router", format!("{message}, not `{}`", router.name())))
}

/// Checks that a transport that uses routers is the only transport.
fn check_mixture(scenario: &Scenario) -> Result<(), Problem> {
    if scenario.transport.is_none() && !scenario.transports.is_empty() {
        return Err(Problem::new("transport", "missing; needed in addition to `transports`"));
    }
    let mut transports = scenario.all_transports();
    let router_based = transports.find(|(_, transport)| transport.router().is_some());
    match router_based {
        Some((field, transport)) if !scenario.transports.is_empty() => {
            let name = transport.title();
            let message = format!(
                "`{name}` uses routers, which serve no other transport in the same network"
            );
            Err(Problem::new(field, message))
        }
        _ => Ok(()),
    }
}

/// Describes a receive window that the transport ignores, or that holds fewer packets than an ACK
/// acknowledges: the sender would wait for a timeout in each window.
fn receive_window_problem(scenario: &Scenario, transport: &controllers::Config) -> Option<String> {
    let mechanism = (!transport.has_own_stack()).then(|| transport.mechanism(&scenario.packet))?;
    let name = transport.title();
    let Some(window) = mechanism.reliability.receive_window else {
        let given = &transport.show()["reliability"]["receive_window"];
        return given.is_u64().then(|| format!("must be left out: `{name}` has no receive window"));
    };
    let every = mechanism.acks.every;
    let waits = window < every && mechanism.reliability.delayed_ack.is_none();
    waits.then(|| format!("must be at least {every}, the number of packets per ACK of `{name}`"))
}

/// Returns true if packets of the transport collect telemetry of each switch, and not only a digest.
fn collects_stack(scenario: &Scenario, transport: &controllers::Config) -> bool {
    transport.mechanism(&scenario.packet).signalling.collects_telemetry()
        && transport.digest(Duration::ZERO).is_none()
}

impl Scenario {
    /// Checks failures, and that telemetry covers the paths on which packets avoid failed cables.
    pub(super) fn check_detours(&self, graph: &Graph) -> Result<(), Problem> {
        let changes = self.changes(graph)?;
        let mut transports = self.all_transports();
        let Some((_, transport)) = transports.find(|(_, law)| collects_stack(self, law)) else {
            return Ok(());
        };
        match Change::longest_detour(&changes, graph) {
            Some((links, from)) if usize::from(links) > TelemetryStack::CAPACITY + 1 => {
                let (most, name, switches) =
                    (TelemetryStack::CAPACITY, transport.title(), links - 1);
                let message = format!(
                    "must leave paths of up to {most} switches, not {switches} from {from} on: telemetry \
                     of `{name}`"
                );
                Err(Problem::new("failures", message))
            }
            _ => Ok(()),
        }
    }
}

/// Checks the requirements of a transport: packets, routes, buffers and priorities.
fn check_transport(
    scenario: &Scenario,
    field: &str,
    transport: &controllers::Config,
) -> Result<(), Problem> {
    let Some(main) = &scenario.transport else { return Ok(()) };
    let name = transport.title();
    if transport.has_own_stack() {
        check_own_stack(scenario, name)?;
    }
    let (full, least) = (scenario.packet.full(), transport.min_packet_size());
    if full < least {
        let message =
            format!("must make a full packet of {least} at least for `{name}`, not {full}");
        return Err(Problem::new("packet.payload", message));
    }
    if collects_stack(scenario, transport)
        && let Ok(Extent { links, .. }) = scenario.topology.extent()
        && links as usize > TelemetryStack::CAPACITY + 1
    {
        let (most, switches) = (TelemetryStack::CAPACITY, links - 1);
        let message = format!(
            "must have paths of up to {most} switches, not {switches}: telemetry of `{name}`"
        );
        return Err(Problem::new("topology", message));
    }
    if let Some(message) = receive_window_problem(scenario, transport) {
        return Err(Problem::new(format!("{field}.reliability.receive_window"), message));
    }
    if transport.needs_one_path() && !scenario.routing.takes_one_path() {
        let paths = Routing::ONE_PATH;
        let message = format!("must be {paths}: `{name}` needs all packets of a flow on one path");
        return Err(Problem::new("routing", message));
    }
    let has_room = || transport.mechanism(&scenario.packet).has_room_for_entropy();
    if scenario.routing.uses_entropy() && (transport.has_own_stack() || !has_room()) {
        let message = format!("must not be \"entropy\": packets of `{name}` have no room for it");
        return Err(Problem::new("routing", message));
    }
    if let (Some(segment), Some(buffer)) = (transport.segment_size(), scenario.switch.shared_buffer)
        && segment > buffer
    {
        let message = format!("must fit into switch.shared_buffer, which is {buffer}");
        return Err(Problem::new(format!("{field}.segments.size"), message));
    }
    let is_limited = scenario.queues(transport).iter().any(disciplines::Config::limits_credits);
    for (field, passes) in [
        ("switch.control_priority", scenario.switch.control_priority),
        ("host.control_priority", scenario.host.control_priority),
    ] {
        if is_limited && passes == Some(true) {
            let message = "must be false: credits would pass the `credit_shaper` that limits them";
            return Err(Problem::new(field, message));
        }
    }
    let fields = ["queue", "host_queue"];
    for (field, queue) in fields.into_iter().zip(scenario.queues(main)) {
        let Some(Priorities::Classes(classes)) = queue.priorities() else { continue };
        let message = match transport.priorities() {
            Priorities::Classes(used) if used <= classes => continue,
            Priorities::Classes(used) => format!("`{name}` uses {used} priorities"),
            Priorities::Numbers => format!("`{name}` uses any number as a priority"),
        };
        let message = format!("has only {classes} priorities, but {message}");
        return Err(Problem::new(format!("{field}.classes"), message));
    }
    Ok(())
}

/// Checks that nothing is requested that an external stack cannot provide.
fn check_own_stack(scenario: &Scenario, name: &str) -> Result<(), Problem> {
    let problem = |field, message| {
        Err(Problem::new(field, format!("{message}: `{name}` is an external stack")))
    };
    let host = &scenario.host;
    if scenario.account {
        return problem("account", "must be false");
    }
    if scenario
        .samples
        .as_ref()
        .is_some_and(|samples| samples.rtts || !samples.rtt_flows.is_empty())
    {
        return problem("samples", "must not request round-trip times");
    }
    if host.stamps != Stamps::Handed
        || host.clock_granularity > Duration::ZERO
        || host.rtt_noise.is_some()
    {
        return problem("host", "must measure round-trip times exactly");
    }
    Ok(())
}
