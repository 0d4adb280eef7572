//! Load that the workload of a scenario offers to each link in the mean.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::base::schema::Problem;
use crate::base::units::Rate;
use crate::model::graph::{Graph, LinkId};
use crate::run::scenario::Scenario;
use crate::traffic::demand::{Demand, highest_loads, mean_rate};

/// Share of its rate above which a link is offered more than it carries: 1, with room for rounding.
const OVERLOAD: f64 = 1.0 + 1e-9;

/// Mean rate offered to a link.
pub(super) struct Offer {
    pub(super) link: LinkId,
    bps: f64,
    /// Rate of the link.
    rate: f64,
}

impl Offer {
    /// Rate offered, as a share of the rate of the link.
    pub(super) fn share(&self) -> f64 {
        self.bps / self.rate
    }

    /// Returns what is wrong with it: a predicate of which the workload is the subject.
    fn message(&self, graph: &Graph) -> String {
        format!(
            "offers {} to {} in the mean, which carries only {}: {:.2} times its rate",
            Rate::from_bps(self.bps),
            graph.link_name(self.link),
            Rate::from_bps(self.rate),
            self.share(),
        )
    }
}

impl Scenario {
    /// Checks that the parts of the workload that state a load, unless they allow an overload, offer no
    /// link more than it carries in the mean.
    pub(super) fn check_link_loads(&self, graph: &Graph) -> Result<(), Problem> {
        let mut demands = self.demands(graph)?;
        demands.retain(|demand| !demand.may_exceed);
        let Some(offer) = self.overload(&demands, graph) else { return Ok(()) };
        let message = format!("{}; give less, or `allow_overload = true`", offer.message(graph));
        let field = match &demands[..] {
            [first, others @ ..] if others.iter().all(|other| other.field == first.field) => {
                format!("workload.{}", first.field)
            }
            _ => "workload.parts".to_owned(),
        };
        Err(Problem::new(field, message))
    }

    /// Warns of the link that is offered most in proportion to its rate, if that is more than it carries:
    /// the scenario allows it, or arrivals are periodic.
    pub(super) fn overload_warning(&self, graph: &Graph) -> Option<String> {
        let demands = self.demands(graph).ok()?;
        if demands.iter().all(|demand| !demand.may_exceed) {
            return None;
        }
        let message = self.overload(&demands, graph)?.message(graph);
        Some(format!("the workload {message}; completion times grow with the number of flows"))
    }

    /// Returns what the demands offer to the busiest link, if that is more than it carries.
    pub(super) fn overload(&self, demands: &[Demand], graph: &Graph) -> Option<Offer> {
        let offer = |(link, bps)| Offer { link, bps, rate: mean_rate(graph, link) };
        let offers = (0..).zip(self.loads(demands, graph)).map(offer);
        let busier =
            |one: Offer, other: Offer| if other.share() > one.share() { other } else { one };
        offers.reduce(busier).filter(|offer| offer.share() > OVERLOAD)
    }

    /// Returns the mean load of the links of each tier, at the time at which the workload offers most;
    /// null without a defined load. The links of a tier join nodes whose names differ in numbers only.
    pub(super) fn load_by_tier(&self, graph: &Graph) -> Value {
        let demands = self.demands(graph).unwrap_or_default();
        if demands.is_empty() {
            return Value::Null;
        }
        let mut tiers: BTreeMap<String, Tier> = BTreeMap::new();
        for (id, bps) in (0..).zip(self.loads(&demands, graph)) {
            let tier = graph.link_ends(id).map(without_numbers).join("->");
            let rate = mean_rate(graph, id);
            let tier = tiers.entry(tier).or_insert(Tier { first: id, ..Tier::default() });
            tier.links += 1;
            tier.bps += bps;
            tier.rate += rate;
            if bps / rate > tier.load_max {
                tier.load_max = bps / rate;
                tier.busiest = graph.link_name(id);
            }
        }
        let mut tiers: Vec<_> = tiers.into_iter().collect();
        tiers.sort_by_key(|(_, tier)| tier.first);
        let row = |(name, tier): (String, Tier)| {
            json!({
                "tier": name,
                "links": tier.links,
                "load": tier.bps / tier.rate,
                "load_max": tier.load_max,
                "busiest": tier.busiest,
            })
        };
        tiers.into_iter().map(row).collect()
    }

    fn demands(&self, graph: &Graph) -> Result<Vec<Demand>, Problem> {
        let context = self.workload_context(graph);
        self.workload.demands(&context).map_err(|problem| problem.within("workload"))
    }

    fn loads(&self, demands: &[Demand], graph: &Graph) -> Vec<f64> {
        highest_loads(demands, graph, self.routing.split())
    }
}

/// Links between two kinds of nodes.
#[derive(Default)]
struct Tier {
    /// First link, for the order.
    first: LinkId,
    links: u64,
    /// Sum of the rates offered.
    bps: f64,
    /// Sum of the rates.
    rate: f64,
    load_max: f64,
    /// Name of the link with the highest load; empty without load.
    busiest: String,
}

/// Returns the name of a node without the numbers at its end: `aggregation` for `aggregation0_1`.
fn without_numbers(name: &str) -> &str {
    let kind = name.trim_end_matches(|symbol: char| symbol.is_ascii_digit() || symbol == '_');
    if kind.is_empty() { name } else { kind }
}
