//! The whole input of a run as one value: parsed from plain data, complete and checked.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::base::schema::json_schema::{self, Definitions};
use crate::base::schema::{
    CatalogueEntry, Parameter, ParameterInfo, Problem, Text, defaults, did_you_mean, parse,
    with_texts, wrong,
};
use crate::base::units::{Duration, Time};
use crate::ideal::models;
use crate::model::graph::Failure;
use crate::model::host_clock;
use crate::model::host_clock::Stamps;
use crate::model::packet::Format;
use crate::network::routes::Routing;
use crate::network::switch::{shared_buffer, traffic_classes};
use crate::queueing::disciplines;
use crate::run::linux_defaults;
use crate::traffic::generators;
use crate::transport::controllers;
use crate::transport::Priorities;
use crate::transport::controllers::{python, quic};
use crate::{record, router, topology, traffic};

crate::choices! {
    /// How the packet simulator goes through time.
    pub enum Engine {
        /// Event by event, from one queue for the whole network.
        Events = "events",
        /// In windows no longer than links delay, in each of which every node is served by itself.
        Windows = "windows",
    }
}

/// What turns flows into completion times.
#[derive(Clone, Debug, PartialEq)]
pub enum Model {
    /// The packet simulator.
    Packet,
    /// An allocation of rates, without packets.
    Ideal(models::Config),
}

const PACKET: &str = "packet";

impl Parameter for Model {
    fn allowed() -> String {
        format!("one of {PACKET}, {}", models::Config::NAMES.join(", "))
    }
    fn read(value: &Value) -> Result<Self, Problem> {
        let kind = value.as_str().or(value["kind"].as_str()).ok_or_else(|| wrong::<Self>(value))?;
        if kind == PACKET {
            return Ok(Self::Packet);
        }
        if models::Config::NAMES.contains(&kind) {
            return models::Config::read(value).map(Self::Ideal);
        }
        let names = models::Config::NAMES.iter().copied().chain([PACKET]);
        let hint = did_you_mean(kind, names);
        Err(Problem::new("", format!("there is no `{kind}`{hint} ({})", Self::allowed())))
    }
    fn show(&self) -> Value {
        match self {
            Self::Packet => json!(PACKET),
            Self::Ideal(config) => config.show(),
        }
    }
    fn schema(_default: Option<&Self>, definitions: &mut Definitions) -> Value {
        let packet = json_schema::word(&[(PACKET, "The packet simulator.")]);
        let table = json!({
            "type": "object",
            "properties": { "kind": packet },
            "required": ["kind"],
            "additionalProperties": false,
        });
        json_schema::either([packet, table, models::Config::schema(None, definitions)])
    }
}

crate::parameters! {
    /// A run: a network, a workload and a model.
    pub struct Scenario {
        /// What it is, for people.
        pub name: String = String::new();
        /// Seed of all random streams.
        pub seed: u64 = 1;
        /// What turns flows into completion times: the packet simulator or an ideal.
        pub model: Model = Model::Packet;
        /// The run ends here at the latest; flows in progress are then recorded as unfinished.
        pub time_limit: Time = Time(10 * crate::base::units::PICOSECONDS);
        /// Flows that start before this are left out of statistics; their records are kept.
        pub warm_up: Time = Time::ZERO;
        /// The network.
        pub topology: topology::Config;
        /// Which flows start when, between whom.
        pub workload: generators::Config;
        /// The transport of all flows; the packet model needs one.
        pub transport: Option<controllers::Config> = None;
        /// Transports of the flows of some classes in place of it, by the class's name: so that two
        /// share a network. Queues are those of `transport`, unless given.
        pub transports: BTreeMap<String, controllers::Config> = BTreeMap::new();
        /// Traffic classes (IEEE 802.1Q) of flows, from 0 to 7, by the name of their class; other flows are
        /// in 0. At every port each has a queue for itself: they take turns byte by byte, and are paused
        /// one by one. If there are several and all flows of one have the same transport, its queues are
        /// those that this was designed for, unless given.
        pub traffic_classes: BTreeMap<String, traffic_classes::Number> = BTreeMap::new(), where |given| {
            let is_allowed = |number: &traffic_classes::Number| *number < traffic_classes::MOST;
            if given.values().all(is_allowed) { Ok(()) } else { Err("from 0 to 7") }
        };
        /// The queue at switches; none takes the one that the transport was designed for.
        pub queue: Option<disciplines::Config> = None;
        /// The queue at hosts' own ports; none takes the one that the transport was designed for.
        pub host_queue: Option<disciplines::Config> = None;
        /// The controller at every port; none takes the one that the transport needs.
        pub router: Option<router::Config> = None;
        /// How switches buffer, and whether they pause their neighbours.
        pub switch: shared_buffer::Config = defaults();
        /// How hosts measure round-trip times.
        pub host: host_clock::Config = defaults();
        /// How packets spread over paths of equal cost.
        pub routing: Routing = Routing::FlowHash;
        /// Cables that fail, and when they are back.
        pub failures: Vec<Failure> = Vec::new();
        /// How long after a cable has failed routes avoid it, and after its return take it again. The
        /// default is what protection switching may take (ITU-T G.841).
        pub convergence: Duration = Duration::from_millis(50);
        /// Sizes of packets on the wire.
        pub packet: Format = defaults();
        /// What to sample over time; none samples nothing.
        pub samples: Option<record::Config> = None;
        /// Whether to keep account of where the time of every flow goes: costs time and memory, and changes
        /// nothing else. An ideal has no packets: what is known of it is what a flow would take alone.
        pub account: bool = false;
        /// Flows of which the chain of causes is kept as well, piece by piece: takes memory for each of
        /// their packets.
        pub account_flows: Vec<u64> = Vec::new();
        /// How the packet simulator goes through time; none chooses what is faster, by the network's rates
        /// and delays. The results are the same to the bit.
        pub engine: Option<Engine> = None;
    }
    check |scenario: &Scenario| {
        if scenario.model == Model::Packet && scenario.transport.is_none() {
            let names = controllers::Config::NAMES.join(", ");
            let message = format!("missing; the packet model needs one of {names}");
            return Err(Problem::new("transport", message));
        }
        if !scenario.account_flows.is_empty() && !scenario.account {
            return Err(Problem::new("account_flows", "must be empty unless account = true"));
        }
        if matches!(scenario.model, Model::Ideal(_)) && !scenario.failures.is_empty() {
            let message = "must be empty: an ideal shares out rates that do not change";
            return Err(Problem::new("failures", message));
        }
        check_router(scenario)?;
        check_mixture(scenario)?;
        for (field, transport) in scenario.all_transports() {
            check_transport(scenario, &field, transport)?;
        }
        let packet = scenario.packet.full();
        for (field, queue) in [("queue", &scenario.queue), ("host_queue", &scenario.host_queue)] {
            let capacity = queue.as_ref().and_then(|queue| queue.capacity());
            if capacity.is_some_and(|most| !most.holds(packet)) {
                let message =
                    format!("must hold at least one packet, which is {packet} on the wire");
                return Err(Problem::new(format!("{field}.capacity"), message));
            }
            let quantum = queue.as_ref().and_then(|queue| queue.quantum());
            if quantum.is_some_and(|quantum| quantum < packet) {
                let message = format!("must be at least a packet, which is {packet} on the wire");
                return Err(Problem::new(format!("{field}.quantum"), message));
            }
        }
        let sizes = [
            ("packet.payload", packet),
            ("packet.ack", scenario.packet.longest_ack()),
            ("packet.syn", scenario.packet.syn.unwrap_or(scenario.packet.ack)),
        ];
        for (field, bytes) in sizes {
            if bytes.0 > u64::from(u16::MAX) {
                let most = u16::MAX;
                let message = format!("must keep a packet within {most} B on the wire, not {bytes}");
                return Err(Problem::new(field, message));
            }
        }
        if scenario.warm_up >= scenario.time_limit {
            let limit = scenario.time_limit;
            let message = format!("must end before time_limit, which is {limit}");
            return Err(Problem::new("warm_up", message));
        }
        Ok(())
    }
}

/// A router serves the transport that reads what it writes.
fn check_router(scenario: &Scenario) -> Result<(), Problem> {
    let (Some(transport), Some(router)) = (&scenario.transport, &scenario.router) else {
        return Ok(());
    };
    let message = match transport.router() {
        Some(needed) if needed.name() == router.name() => return Ok(()),
        Some(needed) => format!("must be `{}` for this transport", needed.name()),
        None => format!("must be left out: `{}` asks nothing of routers", transport.name()),
    };
    Err(Problem::new("router", format!("{message}, not `{}`", router.name())))
}

/// Those that ask routers have them for themselves.
fn check_mixture(scenario: &Scenario) -> Result<(), Problem> {
    if scenario.transport.is_none() && !scenario.transports.is_empty() {
        return Err(Problem::new("transport", "missing; `transports` are beside it"));
    }
    let mut transports = scenario.all_transports();
    let asking = transports.find(|(_, transport)| transport.router().is_some());
    match asking {
        Some((field, transport)) if !scenario.transports.is_empty() => {
            let name = transport.name();
            let message = format!("`{name}` asks routers, which know no other transport beside it");
            Err(Problem::new(field, message))
        }
        _ => Ok(()),
    }
}

/// What a transport asks of queues and routes.
fn check_transport(
    scenario: &Scenario,
    field: &str,
    transport: &controllers::Config,
) -> Result<(), Problem> {
    let Some(most) = &scenario.transport else { return Ok(()) };
    let name = transport.name();
    if transport.has_own_stack() {
        check_own_stack(scenario, name)?;
    }
    let (full, least) = (scenario.packet.full(), transport.min_packet_size());
    if full < least {
        let message =
            format!("must make a full packet of {least} at least for `{name}`, not {full}");
        return Err(Problem::new("packet.payload", message));
    }
    if transport.needs_one_path() && scenario.routing != Routing::FlowHash {
        let message =
            format!("must be \"flow_hash\": `{name}` needs all packets of a flow on one path");
        return Err(Problem::new("routing", message));
    }
    if let (Some(segment), Some(buffer)) = (transport.segment_size(), scenario.switch.shared_buffer)
        && segment > buffer
    {
        let message = format!("must fit into switch.shared_buffer, which is {buffer}");
        return Err(Problem::new(format!("{field}.segments.size"), message));
    }
    let fields = ["queue", "host_queue"];
    for (field, queue) in fields.into_iter().zip(scenario.queues(most)) {
        let Some(classes) = queue.priorities() else { continue };
        let message = match transport.priorities() {
            Priorities::Classes(used) if used <= classes => continue,
            Priorities::Classes(used) => format!("`{name}` uses {used} priorities"),
            Priorities::Numbers => format!("`{name}` uses any number as a priority"),
        };
        let message = format!("tells only {classes} priorities apart, but {message}");
        return Err(Problem::new(format!("{field}.classes"), message));
    }
    Ok(())
}

/// What nobody can be told of a stack that comes from elsewhere.
fn check_own_stack(scenario: &Scenario, name: &str) -> Result<(), Problem> {
    let refuse = |field, message| {
        Err(Problem::new(field, format!("{message}: `{name}` is a stack of its own")))
    };
    let host = &scenario.host;
    if scenario.account {
        return refuse("account", "must be false");
    }
    if scenario
        .samples
        .as_ref()
        .is_some_and(|samples| samples.rtts || !samples.rtt_flows.is_empty())
    {
        return refuse("samples", "must ask for no round-trip times");
    }
    if host.stamps != Stamps::Handed
        || host.clock_granularity > Duration::ZERO
        || host.rtt_noise.is_some()
    {
        return refuse("host", "must measure round-trip times exactly");
    }
    Ok(())
}

impl Scenario {
    /// The controller in force at every port.
    pub(crate) fn router_in_force(&self) -> Option<router::Config> {
        self.router.clone().or_else(|| self.transport.as_ref()?.router())
    }

    /// Every transport, with the field that names it; that of most flows first.
    pub(crate) fn all_transports(&self) -> impl Iterator<Item = (String, &controllers::Config)> {
        let most = self.transport.iter().map(|transport| ("transport".to_owned(), transport));
        let of_class = |(class, transport)| (format!("transports.{class}"), transport);
        most.chain(self.transports.iter().map(of_class))
    }

    /// The transports whose controllers are written in Python, and need a maker before a run; each with the
    /// field that names it.
    pub fn written_in_python(&mut self) -> impl Iterator<Item = (String, &mut python::Config)> {
        let most = self.transport.iter_mut().map(|transport| ("transport".to_owned(), transport));
        let of_class = |(class, transport)| (format!("transports.{class}"), transport);
        let all = most.chain(self.transports.iter_mut().map(of_class));
        all.filter_map(|(field, transport)| match transport {
            controllers::Config::python(config) => Some((field, config)),
            _ => None,
        })
    }

    /// The transports that need a library before a run.
    pub fn of_libraries(&mut self) -> impl Iterator<Item = &mut quic::Config> {
        let all = self.transport.iter_mut().chain(self.transports.values_mut());
        all.filter_map(|transport| match transport {
            controllers::Config::quic(config) => Some(config),
            _ => None,
        })
    }

    /// Reads a scenario from JSON.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        Self::parse_with(text, Vec::new())
    }

    /// Reads a scenario from JSON in which the texts of files may be numbers, which count these `texts`.
    pub fn parse_with(text: &str, texts: Vec<Text>) -> Result<Self, Problem> {
        static SCHEMA: LazyLock<Value> = LazyLock::new(json_schema);
        let mut value = parse(text)?;
        linux_defaults::apply(&mut value)?;
        with_texts(texts, || Self::read(&value)).map_err(|problem| problem.with_places(|| &SCHEMA))
    }

    /// The queues in force at switches and at hosts, if most flows have this transport.
    pub(crate) fn queues(&self, transport: &controllers::Config) -> [disciplines::Config; 2] {
        [
            self.queue.clone().unwrap_or_else(|| transport.queue()),
            self.host_queue.clone().unwrap_or_else(|| transport.host_queue()),
        ]
    }
}

/// What may be written in a scenario's file, as a JSON schema.
pub fn json_schema() -> Value {
    let title = format!("A scenario of Sojourn {}", crate::VERSION);
    json_schema::document::<Scenario>(&title, Scenario::ABOUT)
}

/// The parts and parameters that a scenario or a fluid model may name, as plain data: a list of
/// families, each with its parts, each with its parameters.
pub fn catalogue() -> Value {
    let table = |name, about: &str, entries| CatalogueEntry {
        name,
        about: crate::base::schema::paragraph(about),
        entries,
    };
    let alone = |part| vec![part];
    let own_fields = |entries: Vec<ParameterInfo>| -> Vec<ParameterInfo> {
        entries.into_iter().filter(|entry| !entry.name.contains('.')).collect()
    };
    let mut fluids = alone(table(
        "fluid",
        crate::fluid::models::Setup::ABOUT,
        own_fields(crate::fluid::models::Setup::entries()),
    ));
    fluids.extend(crate::fluid::models::Config::catalogue());
    let families = [
        ("scenario", alone(table("scenario", Scenario::ABOUT, own_fields(Scenario::entries())))),
        ("topology", topology::Config::catalogue()),
        ("workload", generators::Config::catalogue()),
        ("sizes", traffic::sizes::Config::catalogue()),
        ("transport", controllers::Config::catalogue()),
        ("queue", disciplines::Config::catalogue()),
        ("router", router::Config::catalogue()),
        (
            "switch",
            alone(table("switch", shared_buffer::Config::ABOUT, shared_buffer::Config::entries())),
        ),
        ("host", alone(table("host", host_clock::Config::ABOUT, host_clock::Config::entries()))),
        ("rtt_noise", host_clock::noise::Config::catalogue()),
        ("failures", alone(table("failures", Failure::ABOUT, Failure::entries()))),
        ("packet", alone(table("packet", Format::ABOUT, Format::entries()))),
        ("samples", alone(table("samples", record::Config::ABOUT, record::Config::entries()))),
        ("model", models::Config::catalogue()),
        ("fluid", fluids),
    ];
    let of_entry = |entry: ParameterInfo| {
        json!({
            "name": entry.name,
            "allowed": entry.allowed,
            "default": entry.default,
            "about": entry.about,
        })
    };
    let of_part = |part: CatalogueEntry| {
        let parameters: Vec<Value> = part.entries.into_iter().map(of_entry).collect();
        json!({ "name": part.name, "about": part.about, "parameters": parameters })
    };
    let of_family = |(name, parts): (&str, Vec<CatalogueEntry>)| {
        let parts: Vec<Value> = parts.into_iter().map(of_part).collect();
        (name.to_owned(), Value::Array(parts))
    };
    Value::Object(families.into_iter().map(of_family).collect())
}
