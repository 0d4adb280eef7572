//! The input of a run as one value: parsed from plain data, complete and checked.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::base::schema::json_schema::{self, Definitions};
use crate::base::schema::{
    Parameter, Problem, Text, defaults, did_you_mean, parse, positive, with_texts, wrong,
};
use crate::base::units::{Duration, Time};
use crate::ideal::models;
use crate::model::graph::{DegradedLinks, Extent, Failure, LinkTrace};
use crate::model::host_clock::{self, Service};
use crate::model::packet::Format;
use crate::network::forwarding::Forwarding;
use crate::network::routes::Routing;
use crate::network::switch::{config as switch_config, traffic_classes};
use crate::queueing::disciplines;
use crate::run::checks::check_scenario;
use crate::run::environment::{self, Environment, SharedReliability};
use crate::traffic::generators;
use crate::transport::controllers::{python, quic};
use crate::transport::{controllers, selectors};
use crate::{record, router, topology};

crate::choices! {
    /// Engine of the packet simulator.
    pub enum Engine {
        /// Event by event, from one queue for the whole network.
        Events = "events",
        /// In windows no longer than links' delays, in each of which nodes are served independently.
        Windows = "windows",
    }
}

/// The model of a run, which computes flow completion times.
#[derive(Clone, Debug, PartialEq)]
pub enum Model {
    /// The packet simulator.
    Packet,
    /// An ideal allocation of rates, without packets.
    Ideal(models::Config),
}

const PACKET: &str = "packet";

/// Default of `convergence`.
pub(super) const DEFAULT_CONVERGENCE: Duration = Duration::from_millis(50);

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
        /// Description for readers.
        pub name: String = String::new();
        /// Seed of all random streams.
        pub seed: u64 = 1;
        /// Model that computes flow completion times: the packet simulator or an ideal.
        pub model: Model = Model::Packet;
        /// Latest end of the run; flows in progress are then recorded as unfinished.
        pub time_limit: Time = Time(10 * crate::base::units::PICOSECONDS);
        /// Flows that start before this time are excluded from statistics; their records are kept.
        pub warm_up: Time = Time::ZERO;
        /// Environment of all schemes: defaults for hosts, loss recovery, switches and packets, shown in a
        /// complete scenario; explicit values stay. `paper`: every component as its source had it.
        /// `internet`: Linux hosts with RACK-TLP, PRR and a handshake, and queues of one bandwidth-delay
        /// product of their link over the longest path; `codel` has 1000 packets and `red` no capacity.
        /// `lossy_datacentre`: Linux hosts with a minimum RTO of 10 ms on open connections, and a shared
        /// buffer of 12 MB (above 40 Gb/s 32 MB).
        /// `lossless_datacentre`: RDMA NICs with go-back-N on open connections, and the same buffer with
        /// pause frames; transports whose traffic classes are not paused recover as in `lossy_datacentre`.
        /// `automatic`: `internet` for a base RTT of 1 ms or more; otherwise lossless for all if a transport
        /// was designed for that (DCQCN, TIMELY, patched TIMELY, HPCC, PowerTCP, theta-PowerTCP), or else
        /// lossy.
        pub environment: Environment = Environment::Automatic;
        /// The network.
        pub topology: topology::Config;
        /// Workload: source, target, size and start of every flow.
        pub workload: generators::Config;
        /// The transport of all flows; required by the packet model.
        pub transport: Option<controllers::Config> = None;
        /// Transports of some classes of flows instead of `transport`, by name of the class, so that several
        /// transports share a network. Queues are those of `transport`, unless given.
        pub transports: BTreeMap<String, controllers::Config> = BTreeMap::new();
        /// Handshake, loss recovery, timers and acknowledgements of all transports: the parameters that each
        /// has under `reliability`, which go before these.
        pub reliability: SharedReliability = SharedReliability::default();
        /// Traffic classes (IEEE 802.1Q) of flows, from 0 to 7, by name of the flows' class; other flows are
        /// in 0. At every port each traffic class has its own queue: the port serves them in turn, byte by
        /// byte, and each is paused separately. If there are several, and all flows of one have the same
        /// transport, the queues of this traffic class are those of that transport, unless given.
        pub traffic_classes: BTreeMap<String, traffic_classes::Number> = BTreeMap::new(), where |given| {
            let is_allowed = |number: &traffic_classes::Number| *number < traffic_classes::MOST;
            if given.values().all(is_allowed) { Ok(()) } else { Err("from 0 to 7") }
        };
        /// Weights of traffic classes at ports, by their number: the bytes that the port serves of each in
        /// proportion to the others (ETS, IEEE 802.1Qaz). The others have a weight of 1.
        pub class_weights: BTreeMap<String, u32> = BTreeMap::new(), where |given| {
            let is_allowed = |weight: &u32| (1..=100).contains(weight);
            if given.values().all(is_allowed) { Ok(()) } else { Err("from 1 to 100") }
        };
        /// The queue at switches; by default the one that the transport was designed for, whose parameters
        /// a table without `kind` changes.
        pub queue: Option<disciplines::Config> = None;
        /// The queue at hosts' own ports; by default the one that the transport was designed for.
        pub host_queue: Option<disciplines::Config> = None;
        /// The controller at every port; by default the one that the transport needs.
        pub router: Option<router::Config> = None;
        /// Switch buffers, and pause frames to neighbours.
        pub switch: switch_config::Config = defaults();
        /// Hosts' measurement of round-trip times.
        pub host: host_clock::Config = defaults();
        /// Choice among equal-cost paths: by hosts, for each flow or packet, or by load balancers of
        /// switches. Environments but `paper` choose `entropy` if all transports were designed for packet
        /// spraying (NDP, UET).
        pub routing: Forwarding = Forwarding::FromHost(Routing::FlowHash);
        /// Choice of the entropy value of each packet by its sending host, with `routing = "entropy"`; by
        /// default `mixed`.
        pub entropy: Option<selectors::Config> = None;
        /// Rates of links over time, in any topology and direction.
        /// Telemetry reports the first rate of a link's trace.
        pub rate_traces: Vec<LinkTrace> = Vec::new();
        /// Links with less than their rate in the topology.
        pub degraded_links: Vec<DegradedLinks> = Vec::new();
        /// Failures of cables, and their repair.
        pub failures: Vec<Failure> = Vec::new();
        /// Delay after which routes avoid a failed cable, and use a repaired one again. The default is the
        /// limit for protection switching (ITU-T G.841).
        pub convergence: Duration = DEFAULT_CONVERGENCE;
        /// Sizes of packets on the link.
        pub packet: Format = defaults();
        /// Quantities to sample over time; by default nothing is sampled.
        pub samples: Option<record::Config> = None;
        /// If true, the FCT of every flow is broken down by cause. Costs time and memory, and changes no
        /// other result. An ideal has no packets, so its breakdown has only the ideal FCT.
        pub account: bool = false;
        /// Flows whose chain of causes is recorded as well. Takes memory for each of their packets.
        pub account_flows: Vec<u64> = Vec::new();
        /// Number of flows for each record that is kept, where all records do not fit into the memory. The
        /// flows with records are chosen by a hash of their number, the same for all schemes; long-lived
        /// flows always have one. Totals in the summary are of all flows, tables of those with records.
        pub flows_per_record: u32 = 1, where positive;
        /// Records of packets, controllers and links over time, for `sojourn view` and exports; by default
        /// nothing is recorded. Changes no other result. An ideal records nothing.
        pub record: Option<record::recording::Config> = None;
        /// Engine of the packet simulator; by default the faster way, chosen by the network's rates
        /// and delays. The results are identical to the bit.
        pub engine: Option<Engine> = None;
    }
    check |scenario| check_scenario(scenario)
}

impl Scenario {
    /// Parses a scenario from JSON.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        Self::parse_with(text, Vec::new())
    }

    /// Parses a scenario from JSON in which the texts of files may be indices into `texts`.
    pub fn parse_with(text: &str, texts: Vec<Text>) -> Result<Self, Problem> {
        static SCHEMA: LazyLock<Value> = LazyLock::new(json_schema);
        let mut value = parse(text)?;
        let read = || {
            environment::apply(&mut value)?;
            Self::read(&value)
        };
        with_texts(texts, read).map_err(|problem| problem.with_places(|| &SCHEMA))
    }

    /// Returns the controller at every port: the given one, or else the one that the transport needs.
    pub(super) fn effective_router(&self) -> Option<router::Config> {
        self.router.clone().or_else(|| self.transport.as_ref()?.router())
    }

    /// Returns the selector of entropy values, if hosts choose paths: the given one, or else the default.
    pub(super) fn effective_entropy(&self) -> Option<&selectors::Config> {
        static DEFAULT: LazyLock<selectors::Config> =
            LazyLock::new(|| selectors::Config::mixed(defaults()));
        self.routing.uses_entropy().then(|| self.entropy.as_ref().unwrap_or(&DEFAULT))
    }

    /// Returns the queues at switches and at hosts: the given ones, or else those of this transport in the
    /// environment.
    pub(super) fn queues(&self, transport: &controllers::Config) -> [disciplines::Config; 2] {
        let [switch, host] = self.environment.queues(transport, &self.packet, || self.extent());
        let host = match self.host.service {
            Service::Fifo | Service::Fair => host,
            Service::RoundRobin => disciplines::Config::round_robin(defaults()),
        };
        [self.queue.clone().unwrap_or(switch), self.host_queue.clone().unwrap_or(host)]
    }

    /// Returns the extent of the network, with the rates of its degraded links and rate traces.
    pub(super) fn extent(&self) -> Result<Extent, Problem> {
        environment::extent(&self.topology, &self.degraded_links, &self.rate_traces)
    }

    /// Returns every transport with the field that names it, `transport` first.
    pub(super) fn all_transports(&self) -> impl Iterator<Item = (String, &controllers::Config)> {
        let main = self.transport.iter().map(|transport| ("transport".to_owned(), transport));
        let by_class = |(class, transport)| (format!("transports.{class}"), transport);
        main.chain(self.transports.iter().map(by_class))
    }

    /// Returns the transports whose controllers are written in Python, each with the field that names it.
    /// Each needs a maker before a run.
    pub fn written_in_python(&mut self) -> impl Iterator<Item = (String, &mut python::Config)> {
        let main = self.transport.iter_mut().map(|transport| ("transport".to_owned(), transport));
        let by_class = |(class, transport)| (format!("transports.{class}"), transport);
        let all = main.chain(self.transports.iter_mut().map(by_class));
        all.filter_map(|(field, transport)| match transport {
            controllers::Config::python(config) => Some((field, config)),
            _ => None,
        })
    }

    /// Returns the transports that need a library's stack before a run.
    pub fn of_libraries(&mut self) -> impl Iterator<Item = &mut quic::Config> {
        let all = self.transport.iter_mut().chain(self.transports.values_mut());
        all.filter_map(|transport| match transport {
            controllers::Config::quic(config) => Some(config),
            _ => None,
        })
    }
}

/// Returns a JSON schema of scenario files.
pub fn json_schema() -> Value {
    let title = format!("A scenario of Sojourn {}", crate::VERSION);
    json_schema::document::<Scenario>(&title, Scenario::ABOUT)
}
