//! Links by the names that scenarios give them and their switches.

use std::collections::BTreeMap;

use super::{Graph, LinkId};
use crate::base::schema::{Problem, did_you_mean};

/// Index of the links of a graph by name.
#[derive(Default)]
pub(crate) struct LinkNames {
    /// Links by name, and by `from->to`: several, if they join the same two nodes.
    links: BTreeMap<String, Vec<LinkId>>,
    /// Links that leave a switch.
    switches: BTreeMap<String, Vec<LinkId>>,
}

impl LinkNames {
    pub(crate) fn new(graph: &Graph) -> Self {
        let mut names = Self::default();
        for (id, link) in (0..).zip(&graph.links) {
            if graph.parallel.contains_key(&(id & !1)) {
                names.links.entry(graph.link_ends(id).join("->")).or_default().push(id);
            }
            names.links.entry(graph.link_name(id)).or_default().push(id);
            let node = &graph.nodes[link.from as usize];
            if !node.is_host {
                names.switches.entry(node.name.clone()).or_default().push(id);
            }
        }
        names
    }

    /// Returns the links with this name. The problem has no field.
    pub(crate) fn links(&self, name: &str) -> Result<&[LinkId], Problem> {
        find(&self.links, name, "link", " (links are named `from->to`)")
    }

    /// Returns the only link with this name. The problem has no field.
    pub(crate) fn link(&self, name: &str) -> Result<LinkId, Problem> {
        match *self.links(name)? {
            [link] => Ok(link),
            ref links => {
                let message =
                    format!("`{name}` is {} cables; name one: `{name} (cable 1)`", links.len());
                Err(Problem::new("", message))
            }
        }
    }

    /// Returns the links that leave the switch with this name. The problem has no field.
    pub(crate) fn of_switch(&self, name: &str) -> Result<&[LinkId], Problem> {
        find(&self.switches, name, "switch", "")
    }
}

fn find<'a>(
    all: &'a BTreeMap<String, Vec<LinkId>>,
    name: &str,
    what: &str,
    note: &str,
) -> Result<&'a [LinkId], Problem> {
    all.get(name).map(Vec::as_slice).ok_or_else(|| {
        let hint = did_you_mean(name, all.keys().map(String::as_str));
        Problem::new("", format!("there is no {what} `{name}`{hint}{note}"))
    })
}
