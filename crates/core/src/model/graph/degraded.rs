//! Links with less than their rate in the topology.

use std::sync::Arc;

use super::{Graph, Link, LinkId, LinkNames};
use crate::base::random::Random;
use crate::base::schema::{Problem, positive_fraction};

crate::parameters! {
    /// Lower rate of a link, or of all links of a switch, during the whole run.
    ///
    /// Routes do not change, and loads refer to the rates in the topology. Of a link with a rate trace all
    /// rates are lower. Queues whose capacities and thresholds are times or bandwidth-delay products shrink
    /// with the rate.
    pub struct DegradedLinks {
        /// Link, by name: `leaf0->spine1`. The other direction is a link of its own. If several links join
        /// the two nodes in this direction, each has the lower rate; `a->b (cable 2)` is one of them.
        pub link: Option<String> = None;
        /// Switch, by name, all of whose links have the lower rate, in both directions; instead of `link`.
        pub switch: Option<String> = None;
        /// Share of the rate that is left.
        pub share: f64, where positive_fraction;
    }
    check |degraded| {
        match (&degraded.link, &degraded.switch) {
            (Some(_), Some(_)) => {
                Err(Problem::new("switch", "must be omitted: `link` already names the links"))
            }
            (None, None) => Err(Problem::new("link", "missing; give a `link` or a `switch`")),
            _ => Ok(()),
        }
    }
}

impl DegradedLinks {
    /// Returns the links that have the lower rate.
    fn links(&self, names: &LinkNames) -> Result<Vec<LinkId>, Problem> {
        match (&self.link, &self.switch) {
            (None, Some(name)) => {
                let links = names.of_switch(name).map_err(|problem| problem.within("switch"))?;
                Ok(links.iter().flat_map(|link| [*link, link ^ 1]).collect())
            }
            (Some(name), _) => {
                names.links(name).map(<[_]>::to_vec).map_err(|problem| problem.within("link"))
            }
            (None, None) => unreachable!("an entry is checked when it is read"),
        }
    }
}

impl Link {
    /// Lowers the rate to a share of it, at all times.
    fn slow_to(&mut self, share: f64) {
        self.rate = self.rate.share(share);
        if let Some(trace) = &mut self.trace {
            *trace = Arc::new(trace.slowed_to(share));
        }
    }
}

impl Graph {
    /// Lowers the rates of links. A link that several entries name has the product of their shares.
    pub(crate) fn degrade(&mut self, degraded: &[DegradedLinks]) -> Result<(), Problem> {
        if degraded.is_empty() {
            return Ok(());
        }
        let names = LinkNames::new(self);
        for (number, entry) in degraded.iter().enumerate() {
            let links = entry.links(&names);
            let links = links.map_err(|problem| problem.within(&format!("[{number}]")))?;
            for id in links {
                self.links[id as usize].slow_to(entry.share);
            }
        }
        Ok(())
    }

    /// Lowers the rate of each link from a host by a random share of up to `tolerance`, which belongs to the
    /// network: it is the same with every seed, so that seeds without other random numbers have equal runs.
    pub(crate) fn slow_hosts(&mut self, tolerance: f64) {
        if tolerance == 0.0 {
            return;
        }
        let random = &mut Random::new(1, "hosts/rate");
        for id in 0..self.links.len() {
            if self.is_from_host(&self.links[id]) {
                let link = &mut self.links[id];
                self.nominal_rates.insert(id as LinkId, link.rate);
                link.slow_to(1.0 - tolerance * random.uniform());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::{File, Parameter};
    use crate::base::units::{Bytes, Rate, Time};
    use crate::model::graph::RateTrace;
    use crate::topology;
    use serde_json::{Value, json};

    fn degrade(degraded: &Value) -> Result<Graph, Problem> {
        let topology = json!({ "kind": "leaf_spine", "leaves": 2, "spines": 2 });
        let mut graph = topology::Config::read(&topology).unwrap().graph(1).unwrap();
        graph.degrade(&Vec::<DegradedLinks>::read(degraded)?)?;
        Ok(graph)
    }

    /// Returns the links between leaves and spines at 10 Gb/s; their rate in the topology is 40 Gb/s.
    fn slow(degraded: &Value) -> Vec<String> {
        let graph = degrade(degraded).unwrap();
        let ids = 0..graph.links.len() as LinkId;
        let names = ids.map(|id| (graph.links[id as usize].rate, graph.link_name(id)));
        let is_slow =
            |(rate, name): &(Rate, String)| *rate == Rate::from_gbps(10) && name.contains("spine");
        names.filter(is_slow).map(|(_, name)| name).collect()
    }

    #[test]
    fn a_link_is_one_direction_and_a_switch_has_all_its_links() {
        assert_eq!(slow(&json!([{ "link": "leaf1->spine0", "share": 0.25 }])), ["leaf1->spine0"]);
        let of_spine = ["leaf0->spine1", "spine1->leaf0", "leaf1->spine1", "spine1->leaf1"];
        assert_eq!(slow(&json!([{ "switch": "spine1", "share": 0.25 }])), of_spine);
        let half = json!({ "link": "leaf0->spine1", "share": 0.5 });
        assert_eq!(slow(&json!([half, half])), ["leaf0->spine1"], "the product of both");
    }

    #[test]
    fn errors_name_the_entry_and_what_is_allowed() {
        let error = |degraded: Value| degrade(&degraded).unwrap_err().to_string();
        insta::assert_snapshot!(
            [
                error(json!([{ "share": 0.5 }])),
                error(json!([{ "switch": "spine0", "link": "leaf0->spine0", "share": 0.5 }])),
                error(json!([{ "switch": "spine0", "share": 1.5 }])),
                error(json!([{ "switch": "spine0", "share": 0.5 }, { "switch": "spin1", "share": 0.5 }])),
                error(json!([{ "link": "leaf0-spine0", "share": 0.5 }])),
            ]
            .join("\n")
        );
    }

    #[test]
    fn a_link_with_a_rate_trace_is_slower_at_all_times() {
        let mut graph = topology::Config::read(&json!("link")).unwrap().graph(1).unwrap();
        let file = File::of("rates", "time_s,rate_bps\n0,8e6\n10e-6,0\n15e-6,8e7\n".to_owned());
        graph.follow(0, RateTrace::read("rate_trace", &file).unwrap());
        let half = json!([{ "link": "left->right", "share": 0.5 }]);
        graph.degrade(&Vec::<DegradedLinks>::read(&half).unwrap()).unwrap();
        let link = &graph.links[0];
        assert_eq!(link.rate, Rate(40_000_000));
        // 5 bytes in the first 10 us at 4 Mb/s, the other 5 at 40 Mb/s from 15 us on.
        let trace = link.trace.as_ref().unwrap();
        assert_eq!(trace.transmit(Bytes(10), Time::ZERO), Time(16_000_000));
    }

    #[test]
    fn ports_of_hosts_differ_within_their_tolerance() {
        let rates = |tolerance| {
            let mut graph = degrade(&json!([])).unwrap();
            graph.slow_hosts(tolerance);
            let of = |at_host: bool| -> Vec<f64> {
                let links = graph.links.iter();
                let links = links.filter(|link| graph.is_from_host(link) == at_host);
                links.map(|link| link.rate.bps()).collect()
            };
            [of(true), of(false)]
        };
        let [nominal, of_switches] = rates(0.0);
        let [hosts, switches] = rates(0.0001);
        assert_eq!(switches, of_switches);
        let mut shares = hosts.iter().zip(nominal).map(|(rate, nominal)| rate / nominal);
        assert!(shares.all(|share| (0.9999..1.0).contains(&share)), "{hosts:?}");
        let mut distinct = hosts.clone();
        distinct.dedup();
        assert_eq!(distinct.len(), hosts.len());
        assert_eq!(rates(0.0001)[0], hosts);
    }
}
