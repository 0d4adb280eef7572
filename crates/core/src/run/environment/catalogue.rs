//! Catalogue of environments: the value that each gives to a parameter, beside its declared default.

use serde_json::{Value, json};

use super::{Environment, add_defaults};
use crate::base::schema::json_schema::Definitions;
use crate::base::schema::{CatalogueEntry, Parameter, ParameterInfo};
use crate::base::units::{Duration, Rate};
use crate::run::scenario::Scenario;
use crate::topology::Extent;
use crate::transport::{Reliability, controllers};

/// Networks whose values the catalogue shows, with names; the second only where its values differ.
const NETWORKS: [(&str, Rate, Duration); 2] = [
    ("10 Gb/s", Rate::from_gbps(10), Duration::from_micros(20)),
    ("100 Gb/s", Rate::from_gbps(100), Duration::from_micros(20)),
];

/// Environments with values of their own.
const NAMED: [(&str, Environment); 3] = [
    ("internet", Environment::Internet),
    ("lossy_datacentre", Environment::LossyDatacentre),
    ("lossless_datacentre", Environment::LosslessDatacentre),
];

/// Returns the environments with the parameters that they set.
pub fn catalogue() -> Vec<CatalogueEntry> {
    let declared = declared();
    NAMED
        .into_iter()
        .map(|(name, environment)| {
            let mut rows = leaves(&values(environment, &extent(0)));
            let fast = leaves(&values(environment, &extent(1)));
            for ((_, value), (_, other)) in rows.iter_mut().zip(&fast) {
                if value != other {
                    let [slow, fast] = NETWORKS.map(|(name, ..)| name);
                    let texts = [&*value, other].map(|it| it.as_str().unwrap_or("none").to_owned());
                    *value = format!("{} ({slow}), {} ({fast})", texts[0], texts[1]).into();
                }
            }
            let entries = rows.into_iter().map(|(path, value)| entry(&declared, path, value));
            CatalogueEntry { name, about: about(environment), entries: entries.collect() }
        })
        .collect()
}

fn extent(network: usize) -> Extent {
    let (_, rate, delay) = NETWORKS[network];
    Extent::new(delay, [rate])
}

/// Returns an environment's values: fields of the scenario, and the parameters of laws by transport.
fn values(environment: Environment, extent: &Extent) -> Value {
    let Some(defaults) = environment.defaults(extent) else { return json!({}) };
    let mut values = defaults.scenario.clone();
    add_defaults(&mut values, &json!({ "reliability": defaults.reliability }));
    if let Some(capacity) = &defaults.capacity {
        values["queue"] = json!({ "capacity": capacity });
    }
    for kind in controllers::Config::built_in() {
        add_defaults(&mut values, &json!({ kind: (defaults.law)(kind) }));
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
        Value::Object(_) if name != "pause" => vec![],
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
    all
}

/// Returns a parameter with its value in an environment as the default.
fn entry(declared: &[ParameterInfo], name: String, value: Value) -> ParameterInfo {
    let default = Some(value);
    match declared.iter().find(|entry| entry.name == name) {
        Some(entry) => {
            let paper = entry.default.as_ref().map_or("required".into(), text);
            let about = format!("In `paper`: {paper}. {}", entry.about);
            ParameterInfo { default, about, ..entry.clone() }
        }
        None => ParameterInfo {
            about: "Capacity of the queue that a transport was designed for, if it has none of its own; \
                    for `internet` the bandwidth-delay product of the slowest link over the longest path."
                .into(),
            allowed: "a number of bytes".into(),
            bounds: None,
            default,
            name,
        },
    }
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
