//! Controllers written in Python.
//!
//! The core does not run Python: a scenario names the source of a class, and the caller of the core makes a
//! [`Maker`] of it. The sender and the receiver are configured as for any other transport.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{
    AckPolicy, Controller, CreditHost, CreditScheduler, CreditUse, MarkFeedback, Mechanism,
    PacingPolicy, Path, Priorities, Reliability, Signalling, Transport, unlimited,
};
use crate::base::schema::json_schema::Definitions;
use crate::base::schema::{Bounds, File, Parameter, Problem, positive, positive_if_given, wrong};
use crate::base::units::Duration;
use crate::model::packet::Format;
use crate::queueing::disciplines;

crate::choices! {
    /// Feedback of marks by the receiver.
    pub enum Marks {
        /// Every ACK echoes the mark of the packet that it acknowledges.
        Echo = "echo",
        /// ACKs echo a mark until the sender signals that it reduced its window (RFC 3168).
        EchoUntilReduced = "echo_until_reduced",
        /// A notification at once, but at most one per `notification_interval` (DCQCN).
        Notify = "notify",
    }
}

crate::parameters! {
    /// User-defined controller in Python: a class derived from `sojourn.Controller`. Besides its own
    /// parameters it has these, for which the class may give other defaults.
    pub struct Config {
        /// File and class, as in `my_file.py:Gentle`.
        pub controller: Class;
        /// Files next to the controller's file: modules that it imports, and files that its class lists.
        pub files: Vec<File> = Vec::new();
        /// Parameters of the class; they may also be given next to the others.
        pub parameters: Arguments = Arguments::default();
        /// If true, packets are ECN-capable: routers may mark instead of drop.
        pub ecn: bool = false;
        /// Feedback of marks by the receiver.
        pub marks: Marks = Marks::Echo;
        /// Minimum time between notifications ([dcqcn15]: 50 us).
        pub notification_interval: Duration = Duration::from_micros(50), where positive;
        /// Number of packets sent back to back if the controller sets a rate (none: only a window).
        pub burst: Option<u32> = None, where positive_if_given;
        /// Number of packets per ACK.
        pub ack_every: u32 = 1, where positive;
        /// If true, ACKs carry the one-way delay of the packet that they acknowledge.
        pub tells_delay: bool = false;
        /// If true, packets collect telemetry at switches, and ACKs return it.
        pub telemetry: bool = false;
        /// Class in the file, derived from `sojourn.CreditScheduler`, that issues the credits of a receiving
        /// host (none: no credits).
        pub credit_scheduler: Option<String> = None;
        /// If true, a sender by credit requests credit before its first data; otherwise the first data
        /// announces the flow.
        pub announces: bool = true;
        /// Number of priority classes of data packets, of which 0 is the highest.
        pub priorities: u32 = 1, where classes;
        /// Queue at switches, unless the scenario gives a `queue`.
        pub queue: Box<disciplines::Config> = Box::new(unlimited());
        /// Queue at the hosts' ports, unless the scenario gives one.
        pub host_queue: Box<disciplines::Config> = Box::new(unlimited());
        /// Loss recovery and retransmission timeouts.
        pub reliability: Reliability = Reliability::selective_repeat();
    }
    check |config| {
        let uses_header = config.credit_scheduler.is_some() || config.priorities > 1;
        if config.telemetry && config.tells_delay {
            return Err(Problem::new("tells_delay", "must be false with telemetry = true"));
        }
        if config.telemetry && uses_header {
            let message = "must be false: packets with telemetry have no room for priorities or credits";
            return Err(Problem::new("telemetry", message));
        }
        if config.credit_scheduler.is_none() {
            return Ok(());
        }
        let others = [
            ("ecn", config.ecn, "false"),
            ("marks", config.marks != Marks::Echo, "\"echo\""),
            ("burst", config.burst.is_some(), "\"none\""),
            ("ack_every", config.ack_every != 1, "1"),
            ("tells_delay", config.tells_delay, "false"),
        ];
        match others.into_iter().find(|(_, is_set, _)| *is_set) {
            Some((field, _, only)) => Err(Problem::new(
                field,
                format!("must be {only}: a sender by credit has no ACKs but that of all data"),
            )),
            None => Ok(()),
        }
    }
}

fn classes() -> Bounds {
    Bounds::at_least(1.0).to(8.0)
}

/// Factory of the controllers of one class, and of its credit schedulers.
pub trait Maker: Send + Sync {
    /// Returns the controller of a flow that starts on `path`.
    fn controller(&self, path: &Path) -> Box<dyn Controller>;

    /// Returns the credit scheduler of a receiving host; called only with a `credit_scheduler`.
    fn credit_scheduler(&self, host: &CreditHost) -> Box<dyn CreditScheduler>;
}

/// A class in a file, and the factory of its controllers.
#[derive(Clone)]
pub struct Class {
    /// The file; its name ends with a colon and the name of the class.
    pub file: File,
    /// Factory of controllers; required to run.
    pub maker: Option<Arc<dyn Maker>>,
}

impl Class {
    /// Returns the name of the class.
    pub fn name(&self) -> &str {
        self.file.name.rsplit(':').next().unwrap_or_default()
    }
}

impl std::fmt::Debug for Class {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.file.fmt(f)
    }
}

impl PartialEq for Class {
    fn eq(&self, other: &Self) -> bool {
        self.file == other.file
    }
}

impl Parameter for Class {
    fn allowed() -> String {
        "the name of a file, relative to the scenario, a colon, and the name of a class".to_owned()
    }
    fn read(value: &Value) -> Result<Self, Problem> {
        // The invalid part of a file value is its name.
        let file = File::read(value).map_err(|_| wrong::<Self>(value))?;
        let has_class = file.name.contains(':');
        has_class.then_some(Self { maker: None, file }).ok_or_else(|| wrong::<Self>(&value["name"]))
    }
    fn show(&self) -> Value {
        self.file.show()
    }
    fn schema(default: Option<&Self>, definitions: &mut Definitions) -> Value {
        File::schema(default.map(|class| &class.file), definitions)
    }
}

/// Parameters of a class, passed on unchanged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arguments(pub Map<String, Value>);

impl Parameter for Arguments {
    fn allowed() -> String {
        "a table".to_owned()
    }
    fn read(value: &Value) -> Result<Self, Problem> {
        value.as_object().cloned().map(Self).ok_or_else(|| wrong::<Self>(value))
    }
    fn show(&self) -> Value {
        Value::Object(self.0.clone())
    }
    fn schema(_default: Option<&Self>, _definitions: &mut Definitions) -> Value {
        serde_json::json!({ "type": "object" })
    }
}

impl Config {
    fn maker(&self) -> &dyn Maker {
        let Some(maker) = &self.controller.maker else {
            unreachable!("the caller sets the maker before a run")
        };
        &**maker
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        self.maker().controller(path)
    }

    fn credit_scheduler(&self, host: &CreditHost) -> Option<Box<dyn CreditScheduler>> {
        self.credit_scheduler.as_ref().map(|_| self.maker().credit_scheduler(host))
    }

    fn priorities(&self) -> Priorities {
        Priorities::Classes(self.priorities)
    }

    fn own_reliability(&self) -> &'static [&'static str] {
        if self.credit_scheduler.is_some() { Mechanism::SET_BY_CREDIT } else { &[] }
    }

    fn needs_own_connection(&self) -> bool {
        self.credit_scheduler.is_some()
    }

    /// Packets of one class stay in order.
    fn keeps_order(&self) -> bool {
        self.priorities == 1
    }

    fn takes_initial_rate(&self) -> bool {
        true
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        if self.credit_scheduler.is_some() {
            let credit = if self.announces { CreditUse::Announced } else { CreditUse::Unannounced };
            return Mechanism::credited(&self.reliability, credit);
        }
        let interval = self.notification_interval;
        Mechanism {
            ecn_capable: self.ecn,
            pacing: self.burst.map(PacingPolicy::bursts),
            acks: AckPolicy {
                every: self.ack_every,
                feedback: match self.marks {
                    Marks::Echo => MarkFeedback::Echo,
                    Marks::EchoUntilReduced if self.ecn && self.reliability.accurate_ecn => {
                        MarkFeedback::AccurateEcn
                    }
                    Marks::EchoUntilReduced => MarkFeedback::EchoUntilCwr,
                    Marks::Notify => MarkFeedback::Cnp { interval },
                },
                echoes_one_way_delay: self.tells_delay,
                ..AckPolicy::default()
            },
            signalling: match self.telemetry {
                true => Signalling::Telemetry,
                false if self.priorities > 1 => Signalling::Header,
                false => Signalling::None,
            },
            uses_prr: self.reliability.proportional_reduction && self.burst.is_none(),
            ..Mechanism::plain(&self.reliability)
        }
    }

    fn queue(&self) -> disciplines::Config {
        (*self.queue).clone()
    }

    fn host_queue(&self) -> disciplines::Config {
        (*self.host_queue).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_name_without_a_class_is_rejected() {
        let read = |name: &str| {
            let controller = json!({ "name": name, "text": "" });
            Config::read(&json!({ "controller": controller, "parameters": { "gain": 0.5 } }))
        };
        let config = read("gentle.py:Gentle").unwrap();
        assert_eq!(config.show()["parameters"], json!({ "gain": 0.5 }));
        assert_eq!(Config::read(&config.show()).unwrap(), config);
        let problem = read("gentle.py").unwrap_err().to_string();
        assert!(problem.starts_with("controller: expected the name of a file"), "{problem}");
    }

    #[test]
    fn options_without_a_place_or_a_meaning_are_rejected() {
        let error = |mut options: Value| {
            options["controller"] = json!({ "name": "gentle.py:Gentle", "text": "" });
            Config::read(&options).map(|_| ()).map_err(|problem| problem.to_string())
        };
        assert_eq!(error(json!({ "telemetry": true })), Ok(()));
        for header in [json!({ "priorities": 2 }), json!({ "credit_scheduler": "Tokens" })] {
            assert_eq!(error(header.clone()), Ok(()));
            let mut both = header;
            both["telemetry"] = json!(true);
            let problem = error(both).unwrap_err();
            assert!(problem.starts_with("telemetry: must be false: packets"), "{problem}");
        }
        let problem = error(json!({ "credit_scheduler": "Tokens", "burst": 1 })).unwrap_err();
        assert!(problem.starts_with("burst: must be \"none\": a sender by credit"), "{problem}");
        let problem = error(json!({ "priorities": 9 })).unwrap_err();
        assert!(problem.starts_with("priorities: must be from 1 to 8"), "{problem}");
    }
}
