//! Controllers that are written in Python.
//!
//! The core knows none: a scenario brings the source of a class, whoever runs the scenario makes a
//! [`Maker`] of it, and what its controllers ask of the sender and the receiver that all transports share
//! is configuration as any other's.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Controller, Feedback, Mechanism, Path, Reliability, Transport, unlimited};
use crate::base::schema::json_schema::Definitions;
use crate::base::schema::{File, Parameter, Problem, positive, positive_if_given, wrong};
use crate::base::units::Duration;
use crate::model::packet::Format;
use crate::queueing::disciplines;

crate::choices! {
    /// What the receiver makes of marks.
    pub enum Marks {
        /// Every ACK says whether the packet that it answers was marked.
        Echo = "echo",
        /// ACKs tell of a mark until the sender says that it has slowed down (RFC 3168).
        EchoUntilReduced = "echo_until_reduced",
        /// A notification at once, but not within `notification_interval` of the last one (DCQCN).
        Notify = "notify",
    }
}

crate::parameters! {
    /// A controller of one's own, written in Python: a class derived from `sojourn.Controller`. Beside its
    /// own parameters it has these, of which the class says what they are if they are not given.
    pub struct Config {
        /// The file and the class, as in `my_file.py:Gentle`.
        pub controller: Class;
        /// The class's own parameters; they may be given beside the others too.
        pub parameters: Arguments = Arguments::default();
        /// Whether routers may mark its data.
        pub ecn: bool = false;
        /// What the receiver makes of marks.
        pub marks: Marks = Marks::Echo;
        /// Least time between notifications ([dcqcn15]: 50 us).
        pub notification_interval: Duration = Duration::from_micros(50), where positive;
        /// How many packets leave at once, if it sends at a rate; none if a window alone rules.
        pub burst: Option<u32> = None, where positive_if_given;
        /// The receiver acknowledges every so many packets.
        pub ack_every: u32 = 1, where positive;
        /// Whether ACKs tell the one-way delay of the packet that they answer.
        pub echoes_one_way_delay: bool = false;
        /// The queue at switches that it was designed for; a scenario's own `queue` goes before it.
        pub designed_queue: Box<disciplines::Config> = Box::new(unlimited());
        /// The same at hosts' own ports.
        pub designed_host_queue: Box<disciplines::Config> = Box::new(unlimited());
        /// How data is made reliable.
        pub reliability: Reliability = Reliability::selective_repeat();
    }
}

/// Makes the controllers of one class.
pub trait Maker: Send + Sync {
    /// The controller of a flow that starts on `path`.
    fn controller(&self, path: &Path) -> Box<dyn Controller>;
}

/// A class in a file, and who makes its controllers.
#[derive(Clone)]
pub struct Class {
    /// The file; its name is followed by a colon and the class's.
    pub file: File,
    /// Who makes controllers of it; without one nothing runs.
    pub maker: Option<Arc<dyn Maker>>,
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
        // What is wrong with a whole file is its name.
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

/// Parameters of a class, which the core only hands on.
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

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        let Some(maker) = &self.controller.maker else {
            unreachable!("a run begins when every class has its maker")
        };
        maker.controller(path)
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        let interval = self.notification_interval;
        Mechanism {
            ecn_capable: self.ecn,
            feedback: match self.marks {
                Marks::Echo => Feedback::Echo,
                Marks::EchoUntilReduced if self.reliability.accurate_ecn => Feedback::Count,
                Marks::EchoUntilReduced => Feedback::EchoUntilReduced,
                Marks::Notify => Feedback::Notify { interval },
            },
            burst: self.burst,
            ack_every: self.ack_every,
            echoes_one_way_delay: self.echoes_one_way_delay,
            shrinks_in_proportion: self.reliability.proportional_reduction && self.burst.is_none(),
            ..Mechanism::plain(&self.reliability)
        }
    }

    fn queue(&self) -> disciplines::Config {
        (*self.designed_queue).clone()
    }

    fn host_queue(&self) -> disciplines::Config {
        (*self.designed_host_queue).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_names_no_class_is_refused() {
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
}
