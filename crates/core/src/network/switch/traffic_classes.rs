//! Traffic classes: which of them a flow is in, and what they make of links.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::model::graph::{Graph, LinkId};
use crate::model::packet::FlowNumber;

/// Number of a traffic class, as the scenario has it.
pub type Number = u32;

/// How many traffic classes Ethernet tells apart (IEEE 802.1Q).
pub const MOST: Number = 8;

/// Index of a traffic class among those in use.
pub type Class = u8;

/// A traffic class of a link: what pause frames stop and shared buffers have an account of. With one
/// class a lane has its link's number.
pub type LaneId = u32;

/// How lanes are numbered: those of a link follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lanes {
    /// How many a link has.
    pub per_link: u32,
}

impl Lanes {
    /// The lane of a class on a link.
    pub fn lane(self, link: LinkId, class: Class) -> LaneId {
        link * self.per_link + u32::from(class)
    }

    /// The link that a lane is of.
    pub fn link(self, lane: LaneId) -> LinkId {
        lane / self.per_link
    }

    /// The class of a lane.
    pub fn class(self, lane: LaneId) -> Class {
        (lane % self.per_link) as Class
    }

    /// All lanes of a link.
    pub fn of(self, link: LinkId) -> Range<LaneId> {
        link * self.per_link..(link + 1) * self.per_link
    }
}

/// The traffic classes of a run.
#[derive(Clone, Debug)]
pub struct TrafficClasses {
    /// The numbers of those in use, ascending.
    pub numbers: Vec<Number>,
    /// How their lanes are numbered.
    pub lanes: Lanes,
    /// By class of flows.
    of_flows: Vec<Class>,
    /// By number of a flow; of none if there is only one traffic class.
    of_flow: Vec<Class>,
}

impl TrafficClasses {
    /// Flows whose class is among `given` are in the traffic class that it says, others in 0.
    pub fn new(given: &BTreeMap<String, Number>, classes: &[String]) -> Self {
        let number = |class: &String| given.get(class).copied().unwrap_or_default();
        let mut used: BTreeSet<Number> = classes.iter().map(number).collect();
        if used.is_empty() {
            used.insert(0);
        }
        let numbers: Vec<Number> = used.into_iter().collect();
        let place = |class| numbers.partition_point(|other| *other < number(class)) as Class;
        let of_flows = classes.iter().map(place).collect();
        let lanes = Lanes { per_link: numbers.len() as u32 };
        Self { numbers, lanes, of_flows, of_flow: Vec::new() }
    }

    /// A flow is of this class.
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

    /// The traffic class of a class of flows.
    pub fn of_flows(&self, class: usize) -> Class {
        self.of_flows[class]
    }

    /// The traffic class of a flow.
    pub fn of(&self, flow: FlowNumber) -> Class {
        self.of_flow.get(flow as usize).copied().unwrap_or_default()
    }

    /// The lane of a flow on a link.
    pub fn lane(&self, link: LinkId, flow: FlowNumber) -> LaneId {
        self.lanes.lane(link, self.of(flow))
    }

    /// A lane's name: its link's, and its class if there are several.
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
    fn only_classes_in_use_have_lanes_and_flows_find_theirs() {
        let given = [("storage".to_owned(), 5), ("nobody".to_owned(), 3)].into();
        let classes = ["rpc", "storage"].map(str::to_owned);
        let mut traffic = TrafficClasses::new(&given, &classes);
        assert_eq!(traffic.numbers, [0, 5]);
        traffic.classify(7, 1);
        traffic.classify(2, 0);
        assert_eq!([2, 7, 8].map(|flow| traffic.of(flow)), [0, 1, 0]);
        let lanes = traffic.lanes;
        for link in 0..3 {
            let of: Vec<LaneId> = (0..2).map(|class| lanes.lane(link, class)).collect();
            assert_eq!(of, lanes.of(link).collect::<Vec<_>>());
            for (class, lane) in (0..).zip(of) {
                assert_eq!((lanes.link(lane), lanes.class(lane)), (link, class));
            }
        }
    }

    #[test]
    fn one_class_makes_a_lane_of_each_link() {
        let mut traffic = TrafficClasses::new(&BTreeMap::new(), &["rpc".to_owned()]);
        traffic.classify(3, 0);
        assert_eq!((traffic.of(3), traffic.lanes.lane(9, 0)), (0, 9));
    }
}
