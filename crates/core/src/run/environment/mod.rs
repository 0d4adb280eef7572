//! Environments: named defaults for everything that surrounds a congestion control law.
//!
//! An environment specifies hosts, loss recovery, switches and packets once per scenario, for every
//! transport, so that schemes differ in their law alone. Its defaults are added to the plain data before the
//! scenario is read: explicit values stay, and the complete scenario contains all of them.

mod internet;
pub mod linux;
mod lossless_datacentre;
mod lossy_datacentre;

use serde_json::{Map, Value, json};

use crate::base::schema::json_schema::Definitions;
use crate::base::schema::{Parameter, Problem, table};
use crate::base::units::{Duration, Rate};
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
        /// Hosts of today's Internet: Linux with RACK-TLP, PRR, HyStart, TCP small queues and fair
        /// queueing, and queues of one bandwidth-delay product.
        Internet = "internet",
        /// Data centre whose switches drop: Linux hosts, open connections, and a shared buffer.
        LossyDatacentre = "lossy_datacentre",
        /// Data centre whose switches pause (PFC): RDMA NICs, open connections, and a shared buffer.
        LosslessDatacentre = "lossless_datacentre",
    }
}

/// Name of the environment without defaults of its own.
const PAPER: &str = "paper";

/// Name of the choice by network and transports, which a complete scenario replaces by the environment.
const AUTOMATIC: &str = "automatic";

/// Base RTT at and above which a network is the Internet, unless the scenario names an environment.
const INTERNET_RTT: Duration = Duration::from_millis(1);

/// Defaults of an environment.
struct Defaults {
    /// Fields of the scenario.
    scenario: Value,
    /// Handshake, timers and acknowledgements of every transport.
    reliability: Value,
    /// Parameters of transports, by name.
    transports: Value,
    /// Parameters of queues, by name.
    queues: Value,
    /// Capacity of queues that have none of their own.
    capacity: Option<Value>,
}

/// Adds the defaults of the scenario's environment. An invalid scenario keeps its fields, so that the reader
/// reports the error.
pub(super) fn apply(scenario: &mut Value) -> Result<(), Problem> {
    if !scenario.is_object() {
        return Ok(());
    }
    if let Some(shared) = scenario.get("reliability") {
        SharedReliability::read(shared).map_err(|problem| problem.within("reliability"))?;
    }
    for_each_transport(scenario, share_reliability);
    linux::apply(scenario)?;
    let given = scenario.get("environment").filter(|given| *given != PAPER);
    let (Some(given), Some(extent)) = (given.cloned(), extent(scenario)) else { return Ok(()) };
    let environment = if given == AUTOMATIC {
        chosen(scenario, &extent)
    } else {
        Environment::read(&given).map_err(|problem| problem.within("environment"))?
    };
    scenario["environment"] = environment.show();
    let Some(mut defaults) = environment.defaults(&extent) else { return Ok(()) };
    let sprays = scenario["routing"].as_str().is_some_and(|routing| routing.starts_with("spray"));
    for_each_transport(scenario, |_, transport| add_to_transport(transport, &defaults, sprays));
    for (field, needs_capacity) in [("queue", true), ("host_queue", false)] {
        if let Some(queue) = scenario.get_mut(field) {
            defaults.add_to_queue(queue, needs_capacity);
        }
    }
    leave_out_conflicts(&mut defaults.scenario, scenario);
    add_defaults(scenario, &defaults.scenario);
    Ok(())
}

/// Removes defaults that contradict explicit values: a switch drops or pauses, and QUIC measures exactly.
fn leave_out_conflicts(defaults: &mut Value, scenario: &Value) {
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
    let by_class = scenario["transports"].as_object().into_iter().flat_map(Map::values);
    if std::iter::once(&scenario["transport"]).chain(by_class).any(|it| kind(it) == Some("quic")) {
        remove("host", &["stamps"]);
    }
}

/// Returns the environment of a scenario that leaves the choice to the network: its RTT separates the
/// Internet from data centres, and a transport that was designed for a lossless network needs one.
fn chosen(scenario: &Value, extent: &Extent) -> Environment {
    if extent.longest_delay * 2 >= INTERNET_RTT {
        return Environment::Internet;
    }
    let by_class = scenario["transports"].as_object().into_iter().flat_map(Map::values);
    let mut all = std::iter::once(&scenario["transport"]).chain(by_class);
    if all.any(|transport| law(transport).is_some_and(|law| law.needs_lossless_network())) {
        Environment::LosslessDatacentre
    } else {
        Environment::LossyDatacentre
    }
}

/// Returns the extent of the scenario's network, if its topology is valid.
fn extent(scenario: &Value) -> Option<Extent> {
    topology::Config::read(scenario.get("topology")?).ok()?.extent().ok()
}

/// Returns the transport that `given` names with its declared defaults, if its parameters are optional.
fn law(given: &Value) -> Option<controllers::Config> {
    controllers::Config::read(&json!({ "kind": kind(given)? })).ok()
}

/// Returns the name of a component.
fn kind(given: &Value) -> Option<&str> {
    given.as_str().or(given["kind"].as_str()).filter(|kind| *kind != "none")
}

/// Calls `change` for `transport` and for each of `transports`, as tables, with the scenario's shared
/// reliability.
fn for_each_transport(scenario: &mut Value, mut change: impl FnMut(&Value, &mut Value)) {
    let shared = scenario["reliability"].clone();
    let mut visit = |transport: &mut Value| {
        // The reader reports unknown names; QUIC brings its own recovery.
        let is_known = |kind: &&str| *kind != "quic" && controllers::Config::NAMES.contains(kind);
        let Some(kind) = kind(transport).filter(is_known) else { return };
        if transport.is_string() {
            *transport = json!({ "kind": kind });
        }
        change(&shared, transport);
    };
    if let Some(transport) = scenario.get_mut("transport") {
        visit(transport);
    }
    let by_class = scenario.get_mut("transports").and_then(Value::as_object_mut);
    by_class.into_iter().flatten().for_each(|(_, transport)| visit(transport));
}

/// Adds the scenario's shared reliability to a transport.
fn share_reliability(shared: &Value, transport: &mut Value) {
    if shared.is_object() {
        add_defaults(endpoint(transport), &json!({ "reliability": shared }));
    }
}

/// Adds an environment's defaults to a transport, except those that belong to its law.
fn add_to_transport(transport: &mut Value, defaults: &Defaults, sprays: bool) {
    let law = law(transport);
    let own = law.as_ref().map_or(&[][..], |law| law.own_reliability());
    let mut reliability = defaults.reliability.clone();
    if sprays {
        // Packets that overtake each other are no sign of a loss.
        reliability["duplicate_acks"] = "none".into();
    }
    if let Some(table) = reliability.as_object_mut() {
        table.retain(|field, _| !own.contains(&field.as_str()));
    }
    if let Some(parameters) = kind(transport).and_then(|kind| defaults.transports.get(kind)) {
        add_defaults(transport, parameters);
    }
    let endpoint = endpoint(transport);
    add_defaults(endpoint, &json!({ "reliability": reliability }));
    if !own.contains(&RECOVERY) {
        let recovery = Recovery::read(&endpoint["reliability"][RECOVERY]);
        let options = recovery.map_or(Value::Null, linux::recovery_options);
        add_defaults(endpoint, &json!({ "reliability": options }));
    }
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

impl Defaults {
    /// Adds the defaults to a queue in plain data, with a capacity for a queue that would have none.
    fn add_to_queue(&self, queue: &mut Value, needs_capacity: bool) {
        let Some(name) = kind(queue).map(str::to_owned) else { return };
        if queue.is_string() {
            *queue = json!({ "kind": name });
        }
        if let Some(parameters) = self.queues.get(&name) {
            add_defaults(queue, parameters);
        }
        let declared = disciplines::Config::read(&json!({ "kind": name }));
        if needs_capacity && declared.is_ok_and(|queue| queue.show()["capacity"] == "none") {
            add_defaults(queue, &json!({ "capacity": self.capacity }));
        }
    }
}

impl Environment {
    /// Returns the defaults on a network of this extent; `None` for those of the declarations.
    fn defaults(self, extent: &Extent) -> Option<Defaults> {
        match self {
            Self::Paper | Self::Automatic => None,
            Self::Internet => Some(internet::defaults(extent)),
            Self::LossyDatacentre => Some(lossy_datacentre::defaults(extent)),
            Self::LosslessDatacentre => Some(lossless_datacentre::defaults(extent)),
        }
    }

    /// Returns the queues at switches and hosts that a transport was designed for, with the environment's
    /// defaults.
    pub(super) fn queues(
        self,
        transport: &controllers::Config,
        extent: Option<&Extent>,
    ) -> [disciplines::Config; 2] {
        let own = [transport.queue(), transport.host_queue()];
        let Some(defaults) = extent.and_then(|extent| self.defaults(extent)) else { return own };
        let [mut switch, mut host] = own.each_ref().map(changed_fields);
        defaults.add_to_queue(&mut switch, true);
        defaults.add_to_queue(&mut host, false);
        let read = |queue: &Value| disciplines::Config::read(queue);
        match [read(&switch), read(&host)] {
            [Ok(switch), Ok(host)] => [switch, host],
            _ => own,
        }
    }
}

/// Returns a queue without the fields that have their declared defaults.
fn changed_fields(queue: &disciplines::Config) -> Value {
    let name = queue.name();
    let declared = disciplines::Config::read(&json!({ "kind": name }));
    let declared = declared.map_or(Value::Null, |queue| queue.show());
    let mut table = queue.show();
    if let Some(table) = table.as_object_mut() {
        table.retain(|field, value| field == "kind" || *value != declared[field]);
    }
    table
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
        table(value, &names).cloned().map(Self)
    }
    fn show(&self) -> Value {
        Value::Object(self.0.clone())
    }
    fn schema(_default: Option<&Self>, definitions: &mut Definitions) -> Value {
        Reliability::schema(None, definitions)
    }
}

/// Returns the buffer that all ports of a switch share, for switches whose fastest port has this rate:
/// Trident II (12 MB, [dcqcn15] §6), the 100 Gb/s switches of [hpcc19] §5.1 (32 MB), and Tomahawk 3
/// (64 MB).
fn switch_buffer(fastest: Rate) -> &'static str {
    match fastest {
        rate if rate <= Rate::from_gbps(40) => "12 MB",
        rate if rate <= Rate::from_gbps(100) => "32 MB",
        _ => "64 MB",
    }
}

#[cfg(test)]
mod tests;
