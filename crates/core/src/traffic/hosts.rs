//! Hosts in scenarios and files, by number or by name.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::base::schema::json_schema::{Definitions, either};
use crate::base::schema::{Parameter, Problem, did_you_mean};
use crate::model::flow::HostId;
use crate::model::graph::Graph;

/// A host in a scenario.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Host {
    /// Its number.
    Number(HostId),
    /// Its name in the network.
    Name(String),
}

impl Parameter for Host {
    fn allowed() -> String {
        "the number or the name of a host".to_owned()
    }
    fn read(value: &Value) -> Result<Self, Problem> {
        match value {
            Value::String(name) => Ok(Self::Name(name.clone())),
            Value::Number(_) => HostId::read(value).map(Self::Number),
            _ => Err(Problem::new("", format!("expected {}, not {value}", Self::allowed()))),
        }
    }
    fn show(&self) -> Value {
        match self {
            Self::Number(number) => json!(number),
            Self::Name(name) => json!(name),
        }
    }
    fn schema(_default: Option<&Self>, definitions: &mut Definitions) -> Value {
        either([HostId::schema(None, definitions), String::schema(None, definitions)])
    }
}

/// Numbers of the hosts of a network by name.
pub struct HostNames(BTreeMap<String, HostId>);

impl HostNames {
    /// Returns the numbers of all hosts.
    pub fn new(graph: &Graph) -> Self {
        let hosts = 0..graph.host_count();
        Self(hosts.map(|host| (graph.host_name(host).to_owned(), host)).collect())
    }

    /// Returns the number of a host that a scenario gives. A number may be too large.
    pub fn number(&self, host: &Host) -> Result<HostId, Problem> {
        match host {
            Host::Number(number) => Ok(*number),
            Host::Name(name) => self.named(name),
        }
    }

    /// Returns the number of the host with this name.
    pub fn named(&self, name: &str) -> Result<HostId, Problem> {
        self.0.get(name).copied().ok_or_else(|| {
            let mut hint = did_you_mean(name, self.0.keys().map(String::as_str));
            if hint.is_empty() {
                hint = format!("; give 0 to {}, or a name", self.0.len() - 1);
            }
            Problem::new("", format!("unknown host `{name}`{hint}"))
        })
    }

    /// Checks that the source and the target of a flow exist and differ.
    pub fn check(&self, source: HostId, target: HostId) -> Result<(), Problem> {
        for (field, host) in [("source", source), ("target", target)] {
            let last = self.0.len() - 1;
            if host as usize > last {
                let message = format!("unknown host {host}; hosts are 0 to {last}");
                return Err(Problem::new(field, message));
            }
        }
        if source == target {
            let message = format!("must differ from `source`, which is {source} too");
            return Err(Problem::new("target", message));
        }
        Ok(())
    }
}
