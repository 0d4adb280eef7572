//! Catalogue of environments: the value that each gives to a parameter, beside its declared default.

use serde_json::{Value, json};

use super::scaling::Scale;
use super::{Environment, add_defaults};
use crate::base::schema::json_schema::Definitions;
use crate::base::schema::{CatalogueEntry, Parameter, ParameterInfo};
use crate::base::units::{Duration, Rate};
use crate::model::packet::Format;
use crate::queueing::disciplines;
use crate::router;
use crate::run::scenario::Scenario;
use crate::topology::Extent;
use crate::transport::{Reliability, controllers};

/// Example of a network: its name in the catalogue, the rate of its links, and its longest delay.
type Network = (&'static str, Rate, Duration);

const DATACENTRES: [Network; 2] = [
    ("10 Gb/s", Rate::from_gbps(10), Duration::from_micros(20)),
    ("100 Gb/s", Rate::from_gbps(100), Duration::from_micros(20)),
];
const WIDE_AREA: [Network; 2] = [
    ("1 Gb/s and an RTT of 40 ms", Rate::from_gbps(1), Duration::from_millis(20)),
    ("10 Gb/s and an RTT of 40 ms", Rate::from_gbps(10), Duration::from_millis(20)),
];

/// Environments with values of their own, and the networks for which the catalogue shows these.
const NAMED: [(&str, Environment, [Network; 2]); 3] = [
    ("internet", Environment::Internet, WIDE_AREA),
    ("lossy_datacentre", Environment::LossyDatacentre, DATACENTRES),
    ("lossless_datacentre", Environment::LosslessDatacentre, DATACENTRES),
];

/// Name of the capacity that an environment gives to the queue that a transport was designed for.
const CAPACITY: &str = "queue.capacity";

/// Returns the environments with the parameters that they set.
pub fn catalogue() -> Vec<CatalogueEntry> {
    let declared = declared();
    let one = |(name, environment, networks): (&'static str, Environment, [Network; 2])| {
        let rows = networks
            .map(|(_, rate, delay)| leaves(&values(environment, &Extent::new(delay, [(rate, 2)]))));
        let [first, second] = rows;
        let entries = first.into_iter().zip(second).map(|((path, value), (_, other))| {
            let value = if value == other { value } else { both(networks, [&value, &other]) };
            entry(&declared, path, value)
        });
        CatalogueEntry { name, about: about(environment), entries: entries.collect() }
    };
    NAMED.into_iter().map(one).collect()
}

/// Returns the values for both networks as a text.
fn both(networks: [Network; 2], values: [&Value; 2]) -> Value {
    let each =
        networks.iter().zip(values).map(|((name, ..), value)| format!("{} ({name})", text(value)));
    each.collect::<Vec<_>>().join(", ").into()
}

/// Returns an environment's values: fields of the scenario, the parameters of laws by transport, and those of
/// routers and queues by name.
fn values(environment: Environment, extent: &Extent) -> Value {
    let Some(defaults) = environment.defaults(extent) else { return json!({}) };
    let mut values = defaults.scenario.clone();
    add_defaults(&mut values, &json!({ "reliability": defaults.reliability }));
    if let Some(capacity) = &defaults.capacity {
        add_defaults(&mut values, &json!({ "queue": { "capacity": capacity } }));
    }
    for (discipline, capacity) in defaults.managed {
        add_defaults(&mut values, &json!({ "queue": { *discipline: { "capacity": capacity } } }));
    }
    let format = Format::read(&values["packet"]);
    let scale = format.map(|format| Scale::new(extent, &format)).unwrap_or_default();
    for kind in controllers::Config::built_in() {
        let law = (defaults.law)(kind, &scale);
        if law != json!({}) {
            values[kind] = law;
        }
    }
    for router in router::Config::NAMES {
        let router_values = (defaults.router)(router, &scale);
        if router_values != json!({}) {
            add_defaults(&mut values, &json!({ "router": { *router: router_values } }));
        }
    }
    for discipline in disciplines::Config::NAMES {
        let queue = (defaults.queue)(discipline, &scale);
        if queue != json!({}) {
            add_defaults(&mut values, &json!({ "queue": { *discipline: queue } }));
        }
    }
    values
}

/// Returns the values in a table with their dotted names.
fn leaves(table: &Value) -> Vec<(String, Value)> {
    let fields = table.as_object().into_iter().flatten();
    let rows = fields.flat_map(|(name, value)| match value {
        Value::Object(inner) if !inner.is_empty() => leaves(value)
            .into_iter()
            .map(|(path, value)| (format!("{name}.{path}"), value))
            .collect(),
        _ => vec![(name.clone(), value.clone())],
    });
    rows.collect()
}

/// Returns the declarations of all parameters that an environment may set.
fn declared() -> Vec<ParameterInfo> {
    let within = |table: &str, entries: Vec<ParameterInfo>| {
        let name = |entry: ParameterInfo| ParameterInfo {
            name: format!("{table}.{}", entry.name),
            ..entry
        };
        entries.into_iter().map(name).collect::<Vec<_>>()
    };
    let mut all = Scenario::entries();
    all.extend(within("reliability", Reliability::entries()));
    all.extend(
        controllers::Config::catalogue().into_iter().flat_map(|it| within(it.name, it.entries)),
    );
    let queues = disciplines::Config::catalogue().into_iter();
    all.extend(queues.flat_map(|it| within(&format!("queue.{}", it.name), it.entries)));
    let routers = router::Config::catalogue().into_iter();
    all.extend(routers.flat_map(|it| within(&format!("router.{}", it.name), it.entries)));
    all
}

/// Returns a parameter with its value in an environment as the default, and with the meaning of this value.
///
/// # Panics
/// If no parameter has this name. This is an error in an environment.
fn entry(declared: &[ParameterInfo], name: String, value: Value) -> ParameterInfo {
    let default = Some(value);
    if name == CAPACITY {
        let about = "Capacity of other queues at switches that have none of their own: the bandwidth-delay \
                     product of their link over the longest path, or the buffer of a switch.";
        let allowed = "a capacity, as in queues".to_owned();
        let about = about.to_owned();
        return ParameterInfo { name, allowed, bounds: None, default, about, values: Vec::new() };
    }
    let declared = declared.iter().find(|entry| entry.name == name);
    let declared = declared.unwrap_or_else(|| panic!("an environment sets the unknown `{name}`"));
    let paper = declared.default.as_ref().map_or("required".into(), text);
    let about = format!("In `paper`: {paper}. {}", declared.about);
    let mut values = declared.values.clone();
    values.retain(|(word, _)| default.as_ref().is_some_and(|value| value == word));
    ParameterInfo { default, about, values, ..declared.clone() }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns the documentation of an environment.
fn about(environment: Environment) -> String {
    let schema = Environment::schema(None, &mut Definitions::default());
    let choices = schema["anyOf"].as_array().into_iter().flatten();
    let mut own = choices.filter(|choice| choice["const"] == environment.show());
    own.next().and_then(|choice| choice["description"].as_str()).unwrap_or_default().to_owned()
}
