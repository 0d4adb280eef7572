//! Environments: named defaults for everything that surrounds a congestion control law.
//!
//! An environment specifies hosts, loss recovery, switches and packets once per scenario, for every
//! transport, so that schemes differ in their law alone. Its defaults are added to the plain data before the
//! scenario is read: explicit values stay, and the complete scenario contains all of them.

pub mod catalogue;
mod internet;
pub mod linux;
mod lossless_datacentre;
mod lossy_datacentre;
mod scaling;

use serde_json::{Map, Value, json};

use self::scaling::Scale;
use crate::base::schema::json_schema::Definitions;
use crate::base::schema::{Parameter, Problem, defaults, table};
use crate::base::units::{Duration, Rate};
use crate::model::graph::{DegradedLinks, LinkTrace};
use crate::model::packet::Format;
use crate::network::forwarding::Forwarding;
use crate::network::routes::Routing;
use crate::queueing::disciplines;
use crate::topology::{self, Extent};
use crate::transport::{Recovery, Reliability, controllers};

crate::choices! {
    /// Environment of all schemes of a scenario.
    pub enum Environment {
        /// `internet` if the base RTT of the network's longest path is 1 ms or more; otherwise
        /// `lossless_datacentre` if a transport was designed for that (DCQCN, TIMELY), or else
        /// `lossy_datacentre`.
        Automatic = "automatic",
        /// Every component as its source had it: the defaults in this catalogue.
        Paper = "paper",
        /// Today's Internet: Linux hosts with RACK-TLP and PRR, a handshake, packets of 1500 B, and
        /// queues of one bandwidth-delay product.
        Internet = "internet",
        /// Data centre whose switches drop: Linux hosts with RACK-TLP, PRR and a minimum RTO of 10 ms,
        /// open connections, packets of 1500 B, a shared buffer, and ECMP hop by hop.
        LossyDatacentre = "lossy_datacentre",
        /// Data centre whose switches pause (PFC): RDMA NICs with go-back-N (selective repeat if packets
        /// are sprayed), open connections, packets of RoCEv2, a shared buffer, and ECMP hop by hop.
        /// Transports whose traffic classes are all outside `switch.pause.classes` have the law and loss
        /// recovery of `lossy_datacentre`.
        LosslessDatacentre = "lossless_datacentre",
    }
}

/// Base RTT at and above which a network is the Internet, unless the scenario names an environment.
const INTERNET_RTT: Duration = Duration::from_millis(1);

/// Defaults of an environment.
struct Defaults {
    /// Fields of the scenario.
    scenario: Value,
    /// Handshake, kind of loss recovery and timers of every transport.
    reliability: Value,
    /// The same if packets of a flow take several paths; these values go before `reliability`.
    spraying: Value,
    /// Returns the parameters of a transport's law by its name, in a network with this base RTT.
    law: fn(&str, &Scale) -> Value,
    /// Returns the parameters of a router by its name, in a network with this base RTT.
    router: fn(&str, &Scale) -> Value,
    /// Returns the parameters of a queue by its discipline, if a scenario gives none of them.
    queue: fn(&str, &Scale) -> Value,
    /// Returns further parameters of the queue at switches that a transport was designed for, by the name of
    /// the transport.
    designed_queue: fn(&str) -> Value,
    /// Capacity of queues at switches that have none of their own.
    capacity: Option<Value>,
    /// The same for disciplines that manage the length of their queue, by name.
    managed: &'static [(&'static str, &'static str)],
}

impl Defaults {
    /// Returns the capacity of a queue of a discipline at a switch, if the queue has none of its own.
    fn capacity_of(&self, discipline: &str) -> Option<Value> {
        let managed = self.managed.iter().find(|(name, _)| *name == discipline);
        managed.map_or_else(|| self.capacity.clone(), |(_, capacity)| Some((*capacity).into()))
    }
}

/// Adds the defaults of the scenario's environment. An invalid scenario keeps its fields, so that the reader
/// reports the error.
pub(super) fn apply(scenario: &mut Value) -> Result<(), Problem> {
    if !scenario.is_object() {
        return Ok(());
    }
    if let Some(shared) = scenario.get("reliability") {
        SharedReliability::read(shared).map_err(|problem| problem.within("reliability"))?;
        let reliability = json!({ "reliability": shared });
        for_each_transport(scenario, |_, transport| {
            add_defaults(endpoint(transport), &reliability);
        });
    }
    linux::apply(scenario)?;
    let designed = designed_queues(scenario)?;
    let given = match scenario.get("environment") {
        Some(given) => Environment::read(given).map_err(|problem| problem.within("environment"))?,
        None => Environment::Automatic,
    };
    if given == Environment::Paper {
        for (field, (_, queue)) in &designed {
            add_defaults(&mut scenario[*field], queue);
        }
        return Ok(());
    }
    let Ok(extent) = extent_of(scenario) else { return Ok(()) };
    let environment =
        if given == Environment::Automatic { chosen(scenario, &extent) } else { given };
    scenario["environment"] = environment.show();
    let Some(mut defaults) = environment.defaults(&extent) else { return Ok(()) };
    leave_out_contradictions(&mut defaults.scenario, scenario);
    if extent.has_switches && needs_spraying(scenario) {
        defaults.scenario["routing"] = Routing::Entropy.show();
    }
    add_defaults(scenario, &defaults.scenario);
    let format = Format::read(&scenario["packet"]);
    let scale = format.map(|format| Scale::new(&extent, &format)).unwrap_or_default();
    let sprays = Forwarding::read(&scenario["routing"]).is_ok_and(|routing| routing.sprays());
    let adapt = |defaults: &mut Defaults| {
        if sprays {
            add_defaults(&mut defaults.spraying, &defaults.reliability);
            defaults.reliability = std::mem::take(&mut defaults.spraying);
        }
        if environment != Environment::Internet {
            scaling::raise_initial_rto(&mut defaults.reliability, &scale);
        }
    };
    adapt(&mut defaults);
    let has_pauses = environment == Environment::LosslessDatacentre;
    let dropped = if has_pauses { dropped_transports(scenario) } else { Vec::new() };
    let mut of_dropped = lossy_datacentre::defaults(&extent);
    adapt(&mut of_dropped);
    for_each_transport(scenario, |class, transport| {
        let is_dropped = dropped.iter().any(|dropped| dropped.as_deref() == class);
        let defaults = if is_dropped { &of_dropped } else { &defaults };
        add_to_transport(transport, defaults, &scale);
    });
    add_to_router(scenario, &defaults, &scale);
    for field in ["queue", "host_queue"] {
        let Some(queue) = scenario.get_mut(field) else { continue };
        let design = designed.iter().find(|(name, _)| *name == field).map(|(_, design)| design);
        // Strict priority marks only by request, or if a transport was designed for it.
        if kind(queue) != Some(STRICT_PRIORITY) || design.is_some() {
            add_thresholds(queue, &defaults, &scale);
        }
        if let Some((transport, design)) = design {
            if field == "queue" {
                add_defaults(queue, &(defaults.designed_queue)(transport));
            }
            add_defaults(queue, design);
        }
        let capacity = kind(queue).and_then(|discipline| defaults.capacity_of(discipline));
        if let ("queue", Some(capacity)) = (field, capacity) {
            add_capacity(queue, &capacity);
        }
    }
    Ok(())
}

/// Name of a transport, and parameters of the queue that it was designed for.
type Design = (&'static str, Value);

/// Names the kind of queues that have parameters alone: that of the queue that the transports were designed
/// for. Returns that transport and the other parameters of its queue, with the field of the queue.
fn designed_queues(scenario: &mut Value) -> Result<Vec<(&'static str, Design)>, Problem> {
    type QueueOf = fn(&controllers::Config) -> disciplines::Config;
    let queue_of: [(_, QueueOf); 2] =
        [("queue", |law| law.queue()), ("host_queue", |law| law.host_queue())];
    let mut designed = Vec::new();
    for (field, queue_of) in queue_of {
        if scenario[field].as_object().is_none_or(|table| table.contains_key("kind")) {
            continue;
        }
        let queues: Vec<_> = transports(scenario)
            .filter_map(|given| {
                let law = given_law(given)?;
                Some((law.name(), queue_of(&law)))
            })
            .collect();
        let Some((transport, queue)) = queues.first() else { continue };
        if queues.iter().any(|(_, other)| other.name() != queue.name()) {
            let each = |(law, queue): &(_, disciplines::Config)| {
                format!("that of {law} is `{}`", queue.name())
            };
            let each = queues.iter().map(each).collect::<Vec<_>>().join(", ");
            let message = format!("missing; of the default queues, {each}: give `{field}.kind`");
            return Err(Problem::new(format!("{field}.kind"), message));
        }
        let mut design = queue.show();
        scenario[field]["kind"] = queue.name().into();
        if let Some(design) = design.as_object_mut().filter(|design| design["capacity"] == NO_LIMIT)
        {
            // The environment may limit it.
            design.remove("capacity");
        }
        designed.push((field, (*transport, design)));
    }
    Ok(designed)
}

/// Returns the extent of a scenario's network.
fn extent_of(scenario: &Value) -> Result<Extent, Problem> {
    fn entries<T: Parameter>(given: &Value) -> Result<Vec<T>, Problem> {
        if given.is_null() { Ok(Vec::new()) } else { Vec::read(given) }
    }
    let degraded = entries(&scenario["degraded_links"])?;
    let traces = entries(&scenario["rate_traces"])?;
    extent(&topology::Config::read(&scenario["topology"])?, &degraded, &traces)
}

/// Returns the extent of a network some of whose links are degraded or follow rate traces.
pub(super) fn extent(
    topology: &topology::Config,
    degraded: &[DegradedLinks],
    traces: &[LinkTrace],
) -> Result<Extent, Problem> {
    let extent = topology.extent()?;
    if degraded.is_empty() && traces.is_empty() {
        return Ok(extent);
    }
    // Rates do not depend on the seed.
    let mut graph = topology.graph(0)?;
    graph.degrade(degraded)?;
    graph.follow_all(traces)?;
    Ok(Extent { longest_delay: extent.longest_delay, ..graph.extent() })
}

/// Removes defaults that contradict explicit values: a switch drops or pauses, and QUIC measures exactly.
fn leave_out_contradictions(defaults: &mut Value, scenario: &Value) {
    let given = &scenario["switch"];
    let mut remove = |table: &str, fields: &[&str]| {
        if let Some(table) = defaults.get_mut(table).and_then(Value::as_object_mut) {
            table.retain(|field, _| !fields.contains(&field.as_str()));
        }
    };
    if given["shared_buffer"] == "none" {
        remove("switch", &["alpha", "pause"]);
    }
    if given.get("alpha").is_some_and(|alpha| *alpha != "none") {
        remove("switch", &["pause"]);
    }
    if given.get("pause").is_some_and(|pause| *pause != "none") {
        remove("switch", &["alpha"]);
    }
    if transports(scenario).any(|transport| kind(transport) == Some("quic")) {
        remove("host", &["stamps"]);
    }
}

/// Returns true if all transports were designed for packet spraying.
fn needs_spraying(scenario: &Value) -> bool {
    transports(scenario).all(|given| law(given).is_some_and(|law| law.needs_spraying()))
}

/// Returns the environment of a scenario that leaves the choice to the network: its RTT separates the
/// Internet from data centres, and a transport that was designed for a lossless network needs one.
fn chosen(scenario: &Value, extent: &Extent) -> Environment {
    if extent.base_rtt(&Environment::Internet.format(extent)) >= INTERNET_RTT {
        return Environment::Internet;
    }
    let needs = |transport| law(transport).is_some_and(|law| law.needs_lossless_network());
    if transports(scenario).any(needs) {
        Environment::LosslessDatacentre
    } else {
        Environment::LossyDatacentre
    }
}

/// Returns `transport` and all of `transports`.
fn transports(scenario: &Value) -> impl Iterator<Item = &Value> {
    let by_class = scenario["transports"].as_object().into_iter().flat_map(Map::values);
    std::iter::once(&scenario["transport"]).chain(by_class)
}

/// Returns the transport that `given` names with its declared defaults, if its parameters are optional.
fn law(given: &Value) -> Option<controllers::Config> {
    controllers::Config::read(&json!({ "kind": kind(given)? })).ok()
}

/// Returns the transport that `given` names with its parameters, or with its declared defaults if these are
/// invalid.
fn given_law(given: &Value) -> Option<controllers::Config> {
    controllers::Config::read(given).ok().or_else(|| law(given))
}

/// Returns the name of a component.
fn kind(given: &Value) -> Option<&str> {
    given.as_str().or(given["kind"].as_str()).filter(|kind| *kind != "none")
}

/// Returns the transports of `transports`, by their class, and `transport`, without one, all of whose traffic
/// classes are dropped while switches pause others. Those of `transport` are the ones that
/// `traffic_classes` gives to classes without a transport of their own, or else 0.
fn dropped_transports(scenario: &Value) -> Vec<Option<String>> {
    let Some(paused) = scenario["switch"]["pause"]["classes"].as_array() else {
        return Vec::new();
    };
    let own = |class: &String| scenario["transports"].get(class).is_some();
    let others = scenario["traffic_classes"].as_object().into_iter().flatten();
    let mut main = others.filter(|(class, _)| !own(class)).map(|(_, number)| number).peekable();
    let zero = json!(0);
    let is_main_dropped = match main.peek() {
        Some(_) => main.all(|number| !paused.contains(number)),
        None => !paused.contains(&zero),
    };
    let classes = scenario["transports"].as_object().into_iter().flat_map(Map::keys);
    let number = |class: &str| scenario["traffic_classes"].get(class).unwrap_or(&zero);
    let is_dropped = |class: &&String| !paused.contains(number(class));
    let main = is_main_dropped.then_some(None);
    main.into_iter().chain(classes.filter(is_dropped).cloned().map(Some)).collect()
}

/// Calls `change` for `transport` and for each of `transports`, as tables, with the class of the latter.
fn for_each_transport(scenario: &mut Value, mut change: impl FnMut(Option<&str>, &mut Value)) {
    let mut visit = |class: Option<&str>, transport: &mut Value| {
        // The reader reports unknown names; QUIC brings its own recovery.
        let is_known = |kind| kind != "quic" && controllers::Config::NAMES.contains(&kind);
        if kind(transport).is_some_and(is_known) {
            as_table(transport);
            change(class, transport);
        }
    };
    if let Some(transport) = scenario.get_mut("transport") {
        visit(None, transport);
    }
    let by_class = scenario.get_mut("transports").and_then(Value::as_object_mut);
    by_class.into_iter().flatten().for_each(|(class, transport)| visit(Some(class), transport));
}

/// Replaces the name of a component by a table with its `kind`.
fn as_table(component: &mut Value) {
    if component.is_string() {
        *component = json!({ "kind": component });
    }
}

/// Adds an environment's defaults to a transport, except those that belong to its law.
fn add_to_transport(transport: &mut Value, defaults: &Defaults, scale: &Scale) {
    let own = given_law(transport).map_or(&[][..], |law| law.own_reliability());
    let mut reliability = defaults.reliability.clone();
    let mut sack_blocks = None;
    if let Some(table) = reliability.as_object_mut() {
        table.retain(|field, _| !own.contains(&field.as_str()));
        sack_blocks = table.remove(SACK_BLOCKS);
    }
    // An invalid value is an error when the parameters are read.
    let given_rto = Some(endpoint(transport)["reliability"]["min_rto"].clone());
    let given_rto = given_rto.filter(|min_rto| Duration::read(min_rto).is_ok());
    let min_rto = given_rto.unwrap_or_else(|| defaults.reliability["min_rto"].clone());
    let parameters = kind(transport).map(|kind| (defaults.law)(kind, scale));
    let mut parameters = parameters.unwrap_or_default();
    scaling::keep_given(&mut parameters, transport);
    add_defaults(transport, &parameters);
    let endpoint = endpoint(transport);
    limit_margin(&mut reliability, &min_rto);
    add_defaults(endpoint, &json!({ "reliability": reliability }));
    if !own.contains(&RECOVERY)
        && let Ok(recovery) = Recovery::read(&endpoint["reliability"][RECOVERY])
    {
        let mut options = linux::recovery_options(recovery, &min_rto);
        if let Some(sack_blocks) = sack_blocks.filter(|_| recovery.has_sack()) {
            options[SACK_BLOCKS] = sack_blocks;
        }
        add_defaults(endpoint, &json!({ "reliability": options }));
    }
}

/// Limits the margin between the RTT and the RTO to the minimum RTO: Linux's `rto_min` is both, and a smaller
/// minimum would have no effect.
fn limit_margin(reliability: &mut Value, min_rto: &Value) {
    if let Some(margin) = reliability.get_mut("timer_granularity")
        && let (Ok(least), Ok(default)) = (Duration::read(min_rto), Duration::read(margin))
        && least < default
    {
        *margin = min_rto.clone();
    }
}

/// Adds an environment's defaults to the router: the given one, or else the one that the transport needs.
fn add_to_router(scenario: &mut Value, defaults: &Defaults, scale: &Scale) {
    let needed = || law(&scenario["transport"])?.router().map(|router| router.name());
    let given = &scenario["router"];
    let Some(name) = (if given.is_null() { needed() } else { kind(given) }) else { return };
    let parameters = (defaults.router)(name, scale);
    if parameters == json!({}) {
        return;
    }
    if given.is_null() {
        scenario["router"] = json!(name);
    }
    let router = &mut scenario["router"];
    as_table(router);
    add_defaults(router, &parameters);
}

/// Returns the table of a transport that contains `reliability`: a transport that extends another, such as
/// `d2tcp`, contains it in the table of the other.
fn endpoint(transport: &mut Value) -> &mut Value {
    let declared = law(transport).map(|law| law.show()).unwrap_or_default();
    let fields = declared.as_object().into_iter().flatten();
    let mut extended = fields.filter(|(_, value)| value.get("reliability").is_some());
    match extended.next() {
        Some((field, _)) if transport.is_object() => {
            if transport.get(field).is_none() {
                transport[field] = json!({});
            }
            &mut transport[field]
        }
        _ => transport,
    }
}

/// Name of the field of [`Reliability`] that decides which others apply.
const RECOVERY: &str = "recovery";
/// Name of a field that applies only if receivers send SACKs.
const SACK_BLOCKS: &str = "sack_blocks";

/// Adds the missing fields of `defaults` to a table, recursively.
fn add_defaults(given: &mut Value, defaults: &Value) {
    let (Some(given), Some(defaults)) = (given.as_object_mut(), defaults.as_object()) else {
        return;
    };
    for (key, default) in defaults {
        match given.get_mut(key) {
            Some(value) => add_defaults(value, default),
            None => drop(given.insert(key.clone(), default.clone())),
        }
    }
}

/// Adds an environment's thresholds to a queue in plain data that has none of its own.
fn add_thresholds(queue: &mut Value, defaults: &Defaults, scale: &Scale) {
    let Some(discipline) = kind(queue) else { return };
    let thresholds = (defaults.queue)(discipline, scale);
    let fields = thresholds.as_object().into_iter().flatten();
    if fields.clone().count() > 0 && fields.clone().all(|(field, _)| queue.get(field).is_none()) {
        as_table(queue);
        add_defaults(queue, &thresholds);
    }
}

const STRICT_PRIORITY: &str = "strict_priority";

/// Adds a capacity to a queue in plain data, if its discipline has one and the queue has none.
fn add_capacity(queue: &mut Value, capacity: &Value) {
    let declared = disciplines::Config::read(&json!({ "kind": kind(queue) }));
    if declared.is_ok_and(|queue| queue.show()["capacity"] == NO_LIMIT) {
        as_table(queue);
        add_defaults(queue, &json!({ "capacity": capacity }));
    }
}

/// Value of a capacity that limits nothing.
const NO_LIMIT: &str = "none";

impl Environment {
    /// Returns the defaults on a network of this extent; `None` for those of the declarations.
    fn defaults(self, extent: &Extent) -> Option<Defaults> {
        match self {
            Self::Paper | Self::Automatic => None,
            Self::Internet => Some(internet::defaults()),
            Self::LossyDatacentre => Some(lossy_datacentre::defaults(extent)),
            Self::LosslessDatacentre => Some(lossless_datacentre::defaults(extent)),
        }
    }

    /// Returns the sizes of packets on a network of this extent.
    pub(super) fn format(self, extent: &Extent) -> Format {
        let given = self.defaults(extent).map(|defaults| defaults.scenario["packet"].clone());
        given.and_then(|given| Format::read(&given).ok()).unwrap_or_else(defaults)
    }

    /// Returns the queues at switches and at hosts that a transport was designed for, with the environment's
    /// thresholds, and at switches with its capacity if they have none of their own.
    pub(super) fn queues(
        self,
        transport: &controllers::Config,
        format: &Format,
        extent: impl FnOnce() -> Result<Extent, Problem>,
    ) -> [disciplines::Config; 2] {
        let queues = [transport.queue(), transport.host_queue()];
        if self == Self::Paper {
            return queues;
        }
        let Ok(extent) = extent() else { return queues };
        let Some(defaults) = self.defaults(&extent) else { return queues };
        let scale = Scale::new(&extent, format);
        let adapt = |queue: disciplines::Config, designed: Value, capacity: Option<Value>| {
            let mut table = (defaults.queue)(queue.name(), &scale);
            add_defaults(&mut table, &designed);
            add_defaults(&mut table, &queue.show());
            if let (Some(capacity), true) = (capacity, table["capacity"] == NO_LIMIT) {
                table["capacity"] = capacity;
            }
            disciplines::Config::read(&table).unwrap_or(queue)
        };
        let [switch, host] = queues;
        let capacity = defaults.capacity_of(switch.name());
        let designed = (defaults.designed_queue)(transport.name());
        [adapt(switch, designed, capacity), adapt(host, json!({}), None)]
    }
}

/// Reliability parameters that all transports of a scenario share; those of a transport go before them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SharedReliability(Map<String, Value>);

impl Parameter for SharedReliability {
    fn allowed() -> String {
        Reliability::allowed()
    }
    fn read(value: &Value) -> Result<Self, Problem> {
        let fields = Reliability::entries();
        let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        table::<Self>(value, &names).cloned().map(Self)
    }
    fn show(&self) -> Value {
        Value::Object(self.0.clone())
    }
    fn schema(_default: Option<&Self>, definitions: &mut Definitions) -> Value {
        Reliability::schema(None, definitions)
    }
}

/// Returns the buffer that all ports of a switch share, by its fastest port: that of the 40 Gb/s switches of
/// [dcqcn15] (12 MB), and above that of the simulator of [hpcc19] for hosts of 100 Gb/s (32 MB).
fn switch_buffer(fastest: Rate) -> &'static str {
    if fastest <= Rate::from_gbps(40) { "12 MB" } else { "32 MB" }
}

#[cfg(test)]
mod tests;
