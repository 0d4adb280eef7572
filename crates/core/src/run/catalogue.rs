//! Catalogue of the components and parameters that a scenario may name.

use serde_json::Value;

use crate::base::schema::{CatalogueEntry, Parameter, own_fields, table_entry};
use crate::ideal::models;
use crate::load_balancing::policies;
use crate::model::graph::{DegradedLinks, Failure};
use crate::model::host_clock;
use crate::model::packet::Format;
use crate::network::switch::config as switch_config;
use crate::queueing::disciplines;
use crate::record::recording::Config as Recording;
use crate::run::environment;
use crate::run::scenario::Scenario;
use crate::traffic::{collectives, generators, sizes};
use crate::transport::{controllers, selectors};
use crate::{record, router, topology};

/// Returns the catalogue as plain data: families by name, each with its components and their parameters.
pub fn catalogue() -> Value {
    let scenario = own_fields(Scenario::entries());
    let families = [
        ("scenario", vec![table_entry("scenario", Scenario::ABOUT, scenario)]),
        ("environment", environment::catalogue::catalogue()),
        ("topology", topology::Config::catalogue()),
        ("workload", generators::Config::catalogue()),
        ("algorithm", collectives::Config::catalogue()),
        ("sizes", sizes::Config::catalogue()),
        ("transport", controllers::Config::catalogue()),
        ("entropy", selectors::Config::catalogue()),
        ("queue", disciplines::Config::catalogue()),
        ("router", router::Config::catalogue()),
        ("load_balancer", policies::Config::catalogue()),
        (
            "switch",
            vec![whole_table::<switch_config::Config>("switch", switch_config::Config::ABOUT)],
        ),
        ("host", vec![whole_table::<host_clock::Config>("host", host_clock::Config::ABOUT)]),
        ("rtt_noise", host_clock::noise::Config::catalogue()),
        (
            "degraded_links",
            vec![whole_table::<DegradedLinks>("degraded_links", DegradedLinks::ABOUT)],
        ),
        ("failures", vec![whole_table::<Failure>("failures", Failure::ABOUT)]),
        ("packet", vec![whole_table::<Format>("packet", Format::ABOUT)]),
        ("samples", vec![whole_table::<record::Config>("samples", record::Config::ABOUT)]),
        ("record", vec![whole_table::<Recording>("record", Recording::ABOUT)]),
        ("model", models::Config::catalogue()),
    ];
    families.into_iter().map(|(name, entries)| (name.to_owned(), show(&entries))).collect()
}

/// Returns a family of the catalogue as plain data.
pub fn show(entries: &[CatalogueEntry]) -> Value {
    entries.iter().map(CatalogueEntry::show).collect()
}

fn whole_table<T: Parameter>(name: &'static str, about: &str) -> CatalogueEntry {
    table_entry(name, about, T::entries())
}
