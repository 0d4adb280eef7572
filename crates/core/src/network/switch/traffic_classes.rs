//! Traffic classes of flows, and the lanes that they make of links.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::model::graph::{Graph, LinkId};
use crate::model::packet::FlowNumber;

/// Number of a traffic class in the scenario.
pub type Number = u32;

/// Number of traffic classes of Ethernet (IEEE 802.1Q).
pub const MOST: Number = 8;

/// Index of a traffic class among the classes in use.
pub type Class = u8;

/// Lane: one traffic class of one link. Pause frames stop lanes, and shared buffers count packets by lane.
/// With one class, a lane has the number of its link.
pub type LaneId = u32;

/// Numbering of lanes: the lanes of a link have consecutive numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lanes {
    /// Number of lanes of a link.
    pub per_link: u32,
}

impl Lanes {
    /// Returns the lane of a class on a link.
    pub fn lane(self, link: LinkId, class: Class) -> LaneId {
        link * self.per_link + u32::from(class)
    }

    /// Returns the link of a lane.
    pub fn link(self, lane: LaneId) -> LinkId {
        lane / self.per_link
    }

    /// Returns the class of a lane.
    pub fn class(self, lane: LaneId) -> Class {
        (lane % self.per_link) as Class
    }

    /// Returns all lanes of a link.
    pub fn of(self, link: LinkId) -> Range<LaneId> {
        link * self.per_link..(link + 1) * self.per_link
    }
}

/// Traffic classes of a run.
#[derive(Clone, Debug)]
pub struct TrafficClasses {
    /// Numbers of the classes in use, ascending.
    pub numbers: Vec<Number>,
    /// Weights of these classes at ports.
    pub weights: Vec<u32>,
    /// Numbering of lanes.
    pub lanes: Lanes,
    /// Traffic class, by class of flows.
    of_flows: Vec<Class>,
    /// Traffic class, by number of a flow. Empty with a single traffic class.
    of_flow: Vec<Class>,
}

impl TrafficClasses {
    /// Returns the traffic classes of flows of these classes: `assigned` maps their names to numbers, and
    /// the others are in 0.
    pub fn new(assigned: &BTreeMap<String, Number>, classes: &[String]) -> Self {
        let number = |class: &String| assigned.get(class).copied().unwrap_or_default();
        let mut used: BTreeSet<Number> = classes.iter().map(number).collect();
        if used.is_empty() {
            used.insert(0);
        }
        let numbers: Vec<Number> = used.into_iter().collect();
        let index = |class| numbers.partition_point(|other| *other < number(class)) as Class;
        let of_flows = classes.iter().map(index).collect();
        let lanes = Lanes { per_link: numbers.len() as u32 };
        let weights = vec![1; numbers.len()];
        Self { numbers, weights, lanes, of_flows, of_flow: Vec::new() }
    }

    /// Sets the weights of classes by their numbers; the others have a weight of 1. Returns the first class
    /// that is not in use, if there is one.
    pub fn set_weights(&mut self, weights: &BTreeMap<String, u32>) -> Option<String> {
        let mut unused = None;
        for (class, weight) in weights {
            match self.numbers.iter().position(|number| number.to_string() == *class) {
                Some(index) => self.weights[index] = *weight,
                None => unused = unused.or(Some(class.clone())),
            }
        }
        unused
    }

    /// Returns the classes in use as a list, for error messages.
    pub fn list(&self) -> String {
        let used: Vec<String> = self.numbers.iter().map(Number::to_string).collect();
        used.join(", ")
    }

    /// Assigns a flow of this class to its traffic class.
    pub fn classify(&mut self, flow: FlowNumber, class: u16) {
        if self.numbers.len() < 2 {
            return;
        }
        let flow = flow as usize;
        if flow >= self.of_flow.len() {
            self.of_flow.resize(flow + 1, 0);
        }
        self.of_flow[flow] = self.of_flows(usize::from(class));
    }

    /// Returns the traffic class of a class of flows.
    pub fn of_flows(&self, class: usize) -> Class {
        self.of_flows[class]
    }

    /// Returns the traffic class of a flow.
    pub fn of(&self, flow: FlowNumber) -> Class {
        self.of_flow.get(flow as usize).copied().unwrap_or_default()
    }

    /// Returns the lane of a flow on a link.
    pub fn lane(&self, link: LinkId, flow: FlowNumber) -> LaneId {
        self.lanes.lane(link, self.of(flow))
    }

    /// Returns the name of a lane: the name of its link, and its class if there are several.
    pub fn name(&self, lane: LaneId, graph: &Graph) -> String {
        let link = graph.link_name(self.lanes.link(lane));
        if self.numbers.len() == 1 {
            return link;
        }
        format!("{link} (class {})", self.numbers[usize::from(self.lanes.class(lane))])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_classes_in_use_have_lanes() {
        let assigned = [("storage".to_owned(), 5), ("unused".to_owned(), 3)].into();
        let classes = ["rpc", "storage"].map(str::to_owned);
        let mut traffic = TrafficClasses::new(&assigned, &classes);
        assert_eq!(traffic.numbers, [0, 5]);
        traffic.classify(7, 1);
        traffic.classify(2, 0);
        assert_eq!([2, 7, 8].map(|flow| traffic.of(flow)), [0, 1, 0]);
        let lanes = traffic.lanes;
        for link in 0..3 {
            let all: Vec<LaneId> = (0..2).map(|class| lanes.lane(link, class)).collect();
            assert_eq!(all, lanes.of(link).collect::<Vec<_>>());
            for (class, lane) in (0..).zip(all) {
                assert_eq!((lanes.link(lane), lanes.class(lane)), (link, class));
            }
        }
    }

    #[test]
    fn with_one_class_lanes_are_links() {
        let mut traffic = TrafficClasses::new(&BTreeMap::new(), &["rpc".to_owned()]);
        traffic.classify(3, 0);
        assert_eq!((traffic.of(3), traffic.lanes.lane(9, 0)), (0, 9));
    }
}
