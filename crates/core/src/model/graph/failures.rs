//! Failures of cables at given times.

use std::collections::{BTreeMap, BTreeSet};

use super::{Graph, Link, LinkId, LinkNames, Paths};
use crate::base::schema::Problem;
use crate::base::units::{Duration, Time};
use crate::model::flow::HostId;

crate::parameters! {
    /// Failure of a cable, or of all cables of a switch.
    ///
    /// Both directions fail together. Packets in flight on a failed cable, and packets sent into it, are
    /// lost. Routes avoid the cable from `convergence` after the failure until `convergence` after the
    /// recovery.
    pub struct Failure {
        /// Cable, by the name of one of its directions: `leaf0->spine1`. If several cables connect the two
        /// nodes, all of them fail; `a->b (cable 2)` is one of them.
        pub link: Option<String> = None;
        /// Switch, by name, all of whose cables fail; instead of `link`.
        pub switch: Option<String> = None;
        /// Time of the failure.
        pub fails: Time;
        /// Time of the recovery; none for a permanent failure. Flows that need the cable then do not finish.
        pub returns: Option<Time> = None;
    }
    check |failure| {
        if failure.link.is_some() && failure.switch.is_some() {
            return Err(Problem::new("switch", "must be omitted: `link` already names the failing cable"));
        }
        if failure.link.is_none() && failure.switch.is_none() {
            return Err(Problem::new("link", "missing; a `link` fails, or a `switch`"));
        }
        let fails = failure.fails;
        if let Some(returns) = failure.returns.filter(|returns| *returns <= fails) {
            let message = format!("must be later than `fails`, which is {fails}, not {returns}");
            return Err(Problem::new("returns", message));
        }
        Ok(())
    }
}

/// Change of the state of a cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinkState {
    /// The cable fails.
    Fails,
    /// The cable recovers.
    Returns,
    /// Routes avoid the cable from now on.
    IsAvoided,
    /// Routes use the cable again.
    IsTaken,
}

/// Change of a cable at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// Time of the change.
    pub at: Time,
    /// First of the two links of the cable.
    pub cable: LinkId,
    /// New state.
    pub turn: LinkState,
}

impl Change {
    /// Returns all changes of the cables of `graph` in order of time. Routes follow after `convergence`.
    pub fn all(
        failures: &[Failure],
        convergence: Duration,
        graph: &Graph,
    ) -> Result<Vec<Self>, Problem> {
        let mut changes = Vec::new();
        if failures.is_empty() {
            return Ok(changes);
        }
        let names = LinkNames::new(graph);
        // Failures by cable.
        let mut spans: Vec<(LinkId, &Failure, usize)> = Vec::new();
        for (number, failure) in failures.iter().enumerate() {
            let links = failure.links(&names);
            let links = links.map_err(|problem| problem.within(&format!("[{number}]")))?;
            for link in links {
                let cable = link & !1;
                spans.push((cable, failure, number));
                let mut add = |at, turn| changes.push(Self { at, cable, turn });
                add(failure.fails, LinkState::Fails);
                add(failure.fails + convergence, LinkState::IsAvoided);
                if let Some(returns) = failure.returns {
                    add(returns, LinkState::Returns);
                    add(returns + convergence, LinkState::IsTaken);
                }
            }
        }
        spans.sort_by_key(|(cable, failure, _)| (*cable, failure.fails));
        for pair in spans.windows(2) {
            let [(cable, first, _), (other, second, number)] = pair else { continue };
            let is_back = first.returns.is_some_and(|returns| returns < second.fails);
            if cable == other && !is_back {
                let name = graph.link_name(*cable);
                let message = format!(
                    "`{name}` is down then: it fails at {} and {}",
                    first.fails,
                    first.returns.map_or("stays down".to_owned(), |at| format!("is back at {at}"))
                );
                return Err(Problem::new(format!("[{number}].fails"), message));
            }
        }
        changes.sort_unstable();
        Ok(changes)
    }

    /// Returns the number of links of the longest path between hosts while routes avoid failed cables, and
    /// the time of the change that leads there; none without failures.
    pub fn longest_detour(changes: &[Self], graph: &Graph) -> Option<(u16, Time)> {
        // One host at each switch stands for all.
        let number: BTreeMap<_, _> = graph.hosts.iter().zip(0..).collect();
        let neighbour = |link: &Link| Some((link.to, *number.get(&link.from)?));
        let hosts: BTreeMap<_, HostId> = graph.links.iter().filter_map(neighbour).collect();
        let mut avoided = BTreeSet::new();
        let mut longest = None;
        for now in changes.chunk_by(|a, b| a.at == b.at) {
            let mut differs = false;
            for change in now {
                differs |= match change.turn {
                    LinkState::IsAvoided => avoided.insert(change.cable),
                    LinkState::IsTaken => avoided.remove(&change.cable),
                    LinkState::Fails | LinkState::Returns => false,
                };
            }
            if !differs {
                continue;
            }
            let mut paths = Paths::over(graph, |link| !avoided.contains(&(link & !1)));
            let pairs = hosts.values().flat_map(|a| hosts.values().map(move |b| (*a, *b)));
            let hops = pairs.filter(|(a, b)| a != b).filter_map(|(a, b)| paths.hops(a, b)).max();
            longest = longest.max(hops.map(|hops| (hops, now[0].at)));
        }
        longest
    }
}

impl Failure {
    /// Returns the links that fail, in one direction of each cable.
    fn links<'a>(&self, names: &'a LinkNames) -> Result<&'a [LinkId], Problem> {
        match (&self.link, &self.switch) {
            (None, Some(name)) => names.of_switch(name).map_err(|problem| problem.within("switch")),
            (Some(name), _) => names.links(name).map_err(|problem| problem.within("link")),
            (None, None) => unreachable!("a failure is checked when it is read"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::Parameter;
    use crate::base::units::Rate;
    use crate::model::graph::LoadReference;
    use serde_json::{Value, json};

    /// Two hosts, each at a switch, and two cables between the switches.
    fn graph() -> Graph {
        let (rate, delay) = (Rate::from_gbps(1), Duration::from_micros(1));
        let mut graph = Graph::new(LoadReference { rate, what: "a host".to_owned() });
        let (a, b) = (graph.add_host("a"), graph.add_host("b"));
        let (s, t) = (graph.add_switch("left"), graph.add_switch("right"));
        for (from, to) in [(a, s), (s, t), (s, t), (t, b)] {
            graph.connect(from, to, rate, delay);
        }
        graph.number_parallel_cables();
        graph
    }

    fn all(failures: &Value) -> Result<Vec<Change>, Problem> {
        let failures = Vec::<Failure>::read(failures)?;
        Change::all(&failures, Duration::from_millis(5), &graph())
    }

    #[test]
    fn a_failure_covers_all_cables_between_two_nodes_or_of_a_switch() {
        let cables = |failures| {
            let fails = |change: &Change| (change.turn == LinkState::Fails).then_some(change.cable);
            all(&failures).unwrap().iter().filter_map(fails).collect::<Vec<_>>()
        };
        assert_eq!(cables(json!([{ "link": "b->right", "fails": "1 s" }])), [6]);
        assert_eq!(cables(json!([{ "link": "left->right", "fails": "1 s" }])), [2, 4]);
        let second = json!([{ "link": "right->left (cable 2)", "fails": "1 s" }]);
        assert_eq!(cables(second), [4]);
        assert_eq!(cables(json!([{ "switch": "left", "fails": "1 s" }])), [0, 2, 4]);
    }

    #[test]
    fn routes_change_after_the_convergence_time() {
        let failures = json!([
            { "link": "a->left", "fails": "10 ms", "returns": "12 ms" },
            { "link": "b->right", "fails": "15 ms" },
        ]);
        let ms = |ms| Time::ZERO + Duration::from_millis(ms);
        let shown: Vec<_> =
            all(&failures).unwrap().iter().map(|c| (c.at, c.cable, c.turn)).collect();
        let expected = [
            (ms(10), 0, LinkState::Fails),
            (ms(12), 0, LinkState::Returns),
            (ms(15), 0, LinkState::IsAvoided),
            (ms(15), 6, LinkState::Fails),
            (ms(17), 0, LinkState::IsTaken),
            (ms(20), 6, LinkState::IsAvoided),
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn errors_name_the_failure_and_what_is_allowed() {
        let error = |failures: Value| all(&failures).unwrap_err().to_string();
        insta::assert_snapshot!(
            [
                error(json!([{ "fails": "1 s" }])),
                error(json!([{ "link": "a->left" }])),
                error(json!([{ "link": "a->left", "switch": "left", "fails": "1 s" }])),
                error(json!([{ "link": "a->left", "fails": "1 s", "returns": "1 s" }])),
                error(json!([{ "link": "a->lefty", "fails": "1 s" }])),
                error(json!([{ "switch": "lefty", "fails": "1 s" }])),
                error(json!([{ "switch": "a", "fails": "1 s" }])),
                error(json!([
                    { "link": "a->left", "fails": "3 s" },
                    { "switch": "left", "fails": "1 s", "returns": "4 s" },
                ])),
                error(json!([
                    { "link": "a->left", "fails": "1 s" },
                    { "link": "left->a", "fails": "2 s" },
                ])),
            ]
            .join("\n")
        );
    }
}
