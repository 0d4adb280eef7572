//! Arbitrary topology from a table of links.

use std::collections::{BTreeMap, BTreeSet};

use super::{Bursts, Extent, Graph, Link, LoadReference, Loss, NodeId, Paths, Topology};
use crate::base::schema::table::{Row, Table};
use crate::base::schema::{File, Problem, did_you_mean, fraction, positive, positive_if_given};
use crate::base::units::{Duration, Rate};
use crate::model::flow::HostId;

crate::parameters! {
    /// An arbitrary topology from a CSV file with one row per full-duplex link.
    ///
    /// Columns: `from`, `to` (names of nodes), `rate`, `delay` (with units), and optionally `loss`
    /// (0 to 1), or instead, for bursty losses, `enter`, `leave`, `loss_good` and `loss_bad`, with
    /// the same meaning as in `bursts` of the topology `link`. Both directions are equal, except
    /// where columns with the prefix `reverse_`, such as `reverse_rate`, give values for the
    /// direction from `to` to `from`; a loss column with the prefix replaces all loss values of
    /// that direction. Nodes may have several parallel links, which are named `a->b (cable 1)` and
    /// so on, in the order of rows. Lines that start with `#` are comments.
    pub struct Config {
        /// The table of links.
        pub file: File;
        /// Names of the hosts, in the order of their numbers; if not given, all nodes with exactly
        /// one link, in the order of their first use in the file.
        pub hosts: Option<Vec<String>> = None;
        /// Number of senders: the first `senders` hosts send and the others receive; if not given,
        /// all hosts do both.
        pub senders: Option<u32> = None;
        /// Rate that a load of 1 offers; if not given, the total rate of the access links.
        pub load_reference: Option<Rate> = None, where positive_if_given;
    }
}

/// Optional columns. The prefix `reverse_` stands for the direction from `to` to `from`.
const OPTIONAL: [&str; 12] = [
    "loss",
    "enter",
    "leave",
    "loss_good",
    "loss_bad",
    "reverse_rate",
    "reverse_delay",
    "reverse_loss",
    "reverse_enter",
    "reverse_leave",
    "reverse_loss_good",
    "reverse_loss_bad",
];

/// Largest number of nodes.
const MAX_NODES: usize = 1 << 20;

/// Largest number of hops from the first host to any other. Any two hosts then have at most twice as many
/// between them, which tables of [`Paths`] can express.
const MAX_HOPS: u16 = 1 << 14;

impl Topology for Config {
    fn graph(&self, _seed: u64) -> Result<Graph, Problem> {
        let mut graph = Graph::new(LoadReference::pending());
        let mut ids = BTreeMap::new();
        Table::open(&self.file, &["from", "to", "rate", "delay"], &OPTIONAL)?
            .rows(|row| add_duplex_link(&mut graph, &mut ids, row))?;
        graph.number_parallel_cables();
        graph.hosts = match &self.hosts {
            Some(names) => named_hosts(names, &ids)?,
            None => degree_one_nodes(&graph),
        };
        for &host in &graph.hosts {
            graph.nodes[host as usize].is_host = true;
        }
        self.check(&graph)?;
        graph.senders = self.senders;
        let mut graph = graph.loaded_by_hosts();
        if let Some(rate) = self.load_reference {
            graph.load = LoadReference { rate, what: "the given `load_reference`".to_owned() };
        }
        Ok(graph)
    }

    fn extent(&self) -> Result<Extent, Problem> {
        Ok(self.graph(0)?.extent())
    }
}

impl Config {
    fn check(&self, graph: &Graph) -> Result<(), Problem> {
        let file = |message: String| Problem::new("file", format!("{}: {message}", self.file.name));
        let hosts = graph.host_count();
        if hosts < 2 {
            return Err(file(format!(
                "{hosts} hosts; at least two are required (nodes with exactly one link, or the \
                 nodes in `hosts`)"
            )));
        }
        if graph.nodes.len() > MAX_NODES {
            return Err(file(format!("{} nodes; at most {MAX_NODES}", graph.nodes.len())));
        }
        if self.senders.is_some_and(|senders| senders == 0 || senders >= hosts) {
            let message = format!("must be from 1 to {}: there are {hosts} hosts", hosts - 1);
            return Err(Problem::new("senders", message));
        }
        let mut paths = Paths::new(graph);
        if switches_join_all_hosts(graph) {
            let is_far = |host: &HostId| paths.hops(0, *host).is_none_or(|hops| hops > MAX_HOPS);
            return (1..hosts).find(is_far).map_or(Ok(()), |host| {
                let (from, to) = (graph.host_name(0), graph.host_name(host));
                let message =
                    format!("more than {MAX_HOPS} hops between the hosts `{from}` and `{to}`");
                Err(file(message))
            });
        }
        for target in 0..hosts {
            if let Some(source) = (0..target).find(|&source| paths.count(source, target) == 0) {
                let (from, to) = (graph.host_name(source), graph.host_name(target));
                return Err(file(format!(
                    "no path between the hosts `{from}` and `{to}` (hosts do not forward)"
                )));
            }
        }
        Ok(())
    }
}

/// Returns true if every host has a link to one connected set of switches. Then paths join all
/// hosts, and a check of every pair, of which there may be a billion, is not needed.
fn switches_join_all_hosts(graph: &Graph) -> bool {
    let mut neighbours = vec![Vec::new(); graph.nodes.len()];
    for link in &graph.links {
        neighbours[link.from as usize].push(link.to);
    }
    let is_switch = |node: &NodeId| !graph.nodes[*node as usize].is_host;
    let first = neighbours[graph.hosts[0] as usize].iter().copied().find(is_switch);
    let mut joined = vec![false; graph.nodes.len()];
    let mut frontier: Vec<NodeId> = first.into_iter().collect();
    while let Some(node) = frontier.pop() {
        if !std::mem::replace(&mut joined[node as usize], true) {
            frontier.extend(neighbours[node as usize].iter().copied().filter(is_switch));
        }
    }
    let has_joined =
        |host: &NodeId| neighbours[*host as usize].iter().any(|node| joined[*node as usize]);
    graph.hosts.iter().all(has_joined)
}

fn add_duplex_link(
    graph: &mut Graph,
    ids: &mut BTreeMap<String, NodeId>,
    row: &Row<'_>,
) -> Result<(), Problem> {
    let (from, to) = (row.text("from")?, row.text("to")?);
    if from == to {
        return Err(row.problem(
            "to",
            &format!("a link must join two different nodes, not `{to}` to itself"),
        ));
    }
    let mut id = |name: &str| *ids.entry(name.to_owned()).or_insert_with(|| graph.add_switch(name));
    let (from, to) = (id(from), id(to));
    let positive_rate = |column, rate: Rate| match positive().check(&rate) {
        Ok(()) => Ok(rate),
        Err(must) => Err(row.problem(column, &format!("must be {must}, not {rate}"))),
    };
    let rate = positive_rate("rate", row.required("rate")?)?;
    let delay: Duration = row.required("delay")?;
    let loss = loss(row, "")?.unwrap_or(Loss::None);
    graph.links.push(Link { from, to, rate, trace: None, delay, delays: None, loss: loss.clone() });
    graph.links.push(Link {
        from: to,
        to: from,
        rate: positive_rate("reverse_rate", row.value("reverse_rate")?.unwrap_or(rate))?,
        trace: None,
        delay: row.value("reverse_delay")?.unwrap_or(delay),
        delays: None,
        loss: self::loss(row, "reverse_")?.unwrap_or(loss),
    });
    Ok(())
}

/// Parses the losses of one direction, in columns with this prefix.
fn loss(row: &Row<'_>, prefix: &str) -> Result<Option<Loss>, Problem> {
    let [loss, enter] = ["loss", "enter"].map(|name| format!("{prefix}{name}"));
    let probability = row.value(&loss)?;
    if let Some(Err(must)) = probability.as_ref().map(|share| fraction().check(share)) {
        return Err(
            row.problem(&loss, &format!("must be {must}, not {}", probability.unwrap_or(0.0)))
        );
    }
    let bursts = Bursts::of_row(row, prefix)?;
    if probability.is_none() && bursts.is_none() {
        return Ok(None);
    }
    let model = Loss::one_of([
        (&*loss, probability.map_or(Loss::None, Loss::random)),
        (&*enter, bursts.map_or(Loss::None, Loss::Bursts)),
    ]);
    model.map(Some).map_err(|problem| row.problem(&problem.field, &problem.message))
}

fn named_hosts(names: &[String], ids: &BTreeMap<String, NodeId>) -> Result<Vec<NodeId>, Problem> {
    let (mut hosts, mut seen): (Vec<NodeId>, _) = (Vec::new(), BTreeSet::new());
    for (i, name) in names.iter().enumerate() {
        let field = format!("hosts[{i}]");
        let Some(&node) = ids.get(name) else {
            let hint = did_you_mean(name, ids.keys().map(String::as_str));
            return Err(Problem::new(field, format!("no link leads to `{name}`{hint}")));
        };
        if !seen.insert(node) {
            return Err(Problem::new(field, format!("`{name}` is listed twice")));
        }
        hosts.push(node);
    }
    Ok(hosts)
}

/// Returns the nodes with exactly one link.
fn degree_one_nodes(graph: &Graph) -> Vec<NodeId> {
    let mut degree = vec![0; graph.nodes.len()];
    for link in &graph.links {
        degree[link.from as usize] += 1;
    }
    (0..graph.nodes.len() as HostId).filter(|&node| degree[node as usize] == 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::Parameter;
    use serde_json::{Value, json};

    const TWO: &str = "# A note.\nfrom, to, rate, delay, loss, reverse_rate\n\
                       a, s, 10 Gbps, 1 us, 0.5, 1 Gbps\n b, s, 10 Gbps, 1 us,,\n";

    fn graph(text: &str, rest: &Value) -> Result<Graph, Problem> {
        let mut table = json!({"file": {"name": "net.csv", "text": text}});
        for (key, value) in rest.as_object().unwrap() {
            table[key] = value.clone();
        }
        Config::read(&table)?.graph(1)
    }

    #[test]
    fn hosts_that_are_too_far_apart_are_rejected() {
        let cable = |i| format!("s{i},s{},1 Gbps,1 us\n", i + 1);
        let row = (0..MAX_HOPS).map(cable).collect::<Vec<_>>().concat();
        let text =
            format!("from,to,rate,delay\na,s0,1 Gbps,1 us\n{row}s{MAX_HOPS},b,1 Gbps,1 us\n");
        let problem = graph(&text, &json!({})).unwrap_err();
        let message = "net.csv: more than 16384 hops between the hosts `a` and `b`";
        assert_eq!((&*problem.field, &*problem.message), ("file", message));
    }

    #[test]
    fn links_are_symmetric_by_default() {
        let graph = graph(TWO, &json!({})).unwrap();
        assert_eq!((graph.host_name(0), graph.host_name(1)), ("a", "b"));
        assert_eq!(graph.links[1].rate, Rate::from_gbps(1));
        assert_eq!(graph.links[1].loss, Loss::Random(0.5));
        assert_eq!(graph.links[3].rate, Rate::from_gbps(10));
        assert_eq!(graph.load.rate, Rate::from_gbps(20));
    }

    #[test]
    fn bursty_losses_can_differ_by_direction() {
        let text = "from,to,rate,delay,loss,enter,leave,loss_bad,reverse_loss,reverse_enter,\
                    reverse_leave\n\
                    a,s,1 Gbps,1 us,,0.1,0.5,0.9,,,\nb,s,1 Gbps,1 us,0.2,,,,,0.3,1\n\
                    c,s,1 Gbps,1 us,,1,1,,0,,\n";
        let graph = graph(text, &json!({})).unwrap();
        let bursts = |enter, leave, loss_bad| {
            Loss::Bursts(Bursts { enter, leave, loss_good: 0.0, loss_bad })
        };
        let losses: Vec<_> = graph.links.iter().map(|link| link.loss.clone()).collect();
        let one = bursts(0.1, 0.5, 0.9);
        let other = bursts(0.3, 1.0, 1.0);
        let reverse = Loss::None;
        let forward = bursts(1.0, 1.0, 1.0);
        assert_eq!(losses, [one.clone(), one, Loss::Random(0.2), other, forward, reverse]);
    }

    #[test]
    fn listed_hosts_may_have_several_links() {
        let text =
            format!("{TWO}b, t, 1 Gbps, 1 us,,\nc, t, 1 Gbps, 1 us,,\na, t, 1 Gbps, 1 us,,\n");
        let hosts = graph(&text, &json!({"hosts": ["c", "b", "a"]})).unwrap().hosts;
        assert_eq!(hosts.len(), 3);
    }

    #[test]
    fn errors_name_line_column_and_allowed_values() {
        let error = |text: &str, rest| graph(text, &rest).unwrap_err().to_string();
        let defaults = json!({});
        let row = |row| format!("from,to,rate,delay,loss\na,s,1 Gbps,1 us,\n{row}\n");
        let bursts = |cells| {
            let header = "from,to,rate,delay,reverse_enter,reverse_leave,reverse_loss";
            format!("{header}\na,s,1 Gbps,1 us,{cells}\n")
        };
        insta::assert_snapshot!(
            [
                error("", defaults.clone()),
                error("from,to,rate\n", defaults.clone()),
                error("from,to,rate,dealy\n", defaults.clone()),
                error("from,to,from,rate,delay\n", defaults.clone()),
                error(&row("b,s,1 Gb,1 us,"), defaults.clone()),
                error(&row("b,s,0 bps,1 us,"), defaults.clone()),
                error(&row("b,s,1 Gbps,,"), defaults.clone()),
                error(&row("b,s,1 Gbps,1 us,2"), defaults.clone()),
                error(&row("b,s,1 Gbps,1 us"), defaults.clone()),
                error(&row("b,b,1 Gbps,1 us,"), defaults.clone()),
                error(&bursts("0.1,,"), defaults.clone()),
                error(&bursts("0,0.1,"), defaults.clone()),
                error(&bursts(",,2"), defaults.clone()),
                error(&bursts("0.1,0.1,0.5"), defaults.clone()),
                error(&row(",b,1 Gbps,1 us,"), defaults.clone()),
                error(&row("b,t,1 Gbps,1 us,"), defaults.clone()),
                error(&row("s,a,1 Gbps,1 us,"), defaults.clone()),
                error(TWO, json!({"hosts": ["a", "bb"]})),
                error(TWO, json!({"hosts": ["a", "a"]})),
                error(TWO, json!({"senders": 2})),
            ]
            .join("\n")
        );
    }
}
