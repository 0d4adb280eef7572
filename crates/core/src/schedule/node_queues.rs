//! Event queues by group of nodes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::{Event, Partition, WindowPlan};
use crate::base::prefetch::prefetch_at;
use crate::base::units::Time;
use crate::model::graph::{Graph, LinkId};

/// Event queues by group. Arrivals from other groups are not events: the time of the first arrival is stored
/// for each link between groups.
pub struct NodeQueues {
    /// Groups of nodes.
    pub plan: WindowPlan,
    /// Group in which pushed events take place.
    current_group: usize,
    /// Times of events, above their [codes](Event::code).
    timers: Vec<BinaryHeap<Reverse<u128>>>,
    /// Lower bounds of the time of the next event, by group and by row of groups. Rows make windows with few
    /// events cheap.
    next: Vec<Time>,
    row_next: Vec<Time>,
    /// By link: true if its end is in another partition.
    is_remote: Vec<bool>,
    /// By link between groups: time of the next arrival.
    next_arrival: Vec<Time>,
}

/// Groups per row.
const ROW: usize = 32;

fn key(time: Time, event: Event) -> u128 {
    u128::from(time.0) << 64 | u128::from(event.code())
}

fn time_of(key: u128) -> Time {
    Time((key >> 64) as u64)
}

impl NodeQueues {
    /// Returns empty queues for the groups of `plan`, some of which are in `partition`.
    pub(super) fn new(plan: WindowPlan, partition: &Partition, graph: &Graph) -> Self {
        Self {
            current_group: 0,
            timers: (0..plan.groups()).map(|_| BinaryHeap::new()).collect(),
            next: vec![Time::NEVER; plan.groups()],
            row_next: vec![Time::NEVER; plan.groups().div_ceil(ROW)],
            is_remote: graph.links.iter().map(|link| !partition.owns(link.to)).collect(),
            next_arrival: vec![Time::NEVER; plan.links()],
            plan,
        }
    }

    /// Makes a group the location of events that are pushed from now on.
    pub(super) fn enter(&mut self, group: usize) {
        self.current_group = group;
    }

    /// Schedules an event.
    pub(super) fn push(&mut self, time: Time, event: Event) {
        self.timers[self.current_group].push(Reverse(key(time, event)));
        self.lower_next(self.current_group, time);
    }

    /// Sets the next arrival on a link. Ignores links to other partitions, which receive their packets in
    /// messages.
    #[inline]
    pub(super) fn push_arrival(&mut self, link: LinkId, time: Time) {
        match self.plan.end(link) {
            None => self.push(time, Event::Arrive(link)),
            Some(_) if self.is_remote[link as usize] => {}
            Some(group) => {
                self.next_arrival[link as usize] = time;
                self.lower_next(group, time);
            }
        }
    }

    /// Takes the next event of the current group, if it precedes `event` at `time`.
    #[inline]
    pub(super) fn pop_before(&mut self, time: Time, event: Event) -> Option<(Time, Event)> {
        let timers = &mut self.timers[self.current_group];
        let Reverse(first) = timers.peek()?;
        if *first >= key(time, event) {
            return None;
        }
        timers.pop().map(|Reverse(first)| (time_of(first), Event::from_code(first as u64)))
    }

    /// Sets the next arrival on a link, after all earlier ones have been handled.
    pub(super) fn set_next_arrival(&mut self, link: LinkId, next: Time) {
        self.next_arrival[link as usize] = next;
    }

    /// Updates the time of the next event of the current group at the end of a window.
    #[inline]
    pub(super) fn end_window(&mut self) {
        let timers = &self.timers[self.current_group];
        let timer = timers.peek().map_or(Time::NEVER, |Reverse(first)| time_of(*first));
        let inbound = self.plan.inbound(self.current_group..self.current_group + 1).iter();
        let arrivals = inbound.map(|link| self.next_arrival[*link as usize]);
        self.next[self.current_group] = arrivals.fold(timer, Time::min);
    }

    /// Lowers the time of the next event of a group.
    fn lower_next(&mut self, group: usize, time: Time) {
        self.next[group] = self.next[group].min(time);
        let row = &mut self.row_next[group / ROW];
        *row = time.min(*row);
    }

    /// Time of the next event.
    pub fn next_time(&self) -> Time {
        self.row_next.iter().copied().fold(Time::NEVER, Time::min)
    }

    /// Returns the first group from `group` on with an event before `end`. All earlier groups in its row have
    /// been handled.
    pub fn next_due_group(&mut self, group: usize, end: Time) -> Option<usize> {
        // The first row is that of the previous group. If all its groups have been handled, its time is
        // computed again.
        let mut row = group.saturating_sub(1) / ROW;
        let mut first = group;
        while row < self.row_next.len() {
            if self.row_next[row] < end {
                let row_end = self.next.len().min((row + 1) * ROW);
                if let Some(group) = (first..row_end).find(|group| self.next[*group] < end) {
                    return Some(group);
                }
                let times = self.next[row * ROW..row_end].iter().copied();
                self.row_next[row] = times.fold(Time::NEVER, Time::min);
            }
            row += 1;
            first = row * ROW;
        }
        None
    }

    /// Links from other groups with an arrival before `end`.
    pub fn links_due(&self, group: usize, end: Time) -> impl Iterator<Item = LinkId> {
        self.links_of_groups_due(group..group + 1, end)
    }

    /// Reads ahead the time of the next arrival on a link.
    pub fn read_ahead(&self, link: LinkId) {
        prefetch_at(&self.next_arrival, link as usize);
    }

    /// Links to these groups from other groups with an arrival before `end`.
    pub fn links_of_groups_due(
        &self,
        groups: Range<usize>,
        end: Time,
    ) -> impl Iterator<Item = LinkId> {
        let links = self.plan.inbound(groups).iter().copied();
        links.filter(move |link| self.next_arrival[*link as usize] < end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::{Duration, Rate};
    use crate::model::graph::LoadReference;

    /// A star of hosts in which each node is a group.
    fn star(hosts: usize) -> NodeQueues {
        let rate = Rate::from_gbps(1);
        let mut graph = Graph::new(LoadReference { rate, what: "a host".to_owned() });
        let switch = graph.add_switch("switch");
        for i in 0..hosts {
            let host = graph.add_host(format!("host{i}"));
            graph.connect(host, switch, rate, Duration::from_micros(1));
        }
        NodeQueues::new(WindowPlan::finest(&graph), &Partition::whole(&graph), &graph)
    }

    #[test]
    fn due_groups_are_returned_in_order_and_once() {
        let mut groups = star(3 * ROW);
        for (group, time) in [(0, 5), (ROW - 1, 7), (ROW, 9), (2 * ROW + 1, 30), (3 * ROW, 8)] {
            groups.enter(group);
            groups.push(Time(time), Event::SenderTimer(1));
        }
        let serve = |groups: &mut NodeQueues, end| {
            let (mut served, mut first) = (Vec::new(), 0);
            while let Some(group) = groups.next_due_group(first, Time(end)) {
                groups.enter(group);
                while groups.pop_before(Time(end), Event::FIRST).is_some() {}
                groups.end_window();
                served.push(group);
                first = group + 1;
            }
            served
        };
        assert_eq!(groups.next_time(), Time(5));
        assert_eq!(serve(&mut groups, 9), [0, ROW - 1, 3 * ROW]);
        assert_eq!(groups.next_time(), Time(9));
        assert_eq!(serve(&mut groups, 40), [ROW, 2 * ROW + 1]);
        assert_eq!(groups.next_time(), Time::NEVER);
    }

    #[test]
    fn events_of_a_group_are_sorted_by_time_and_then_by_kind() {
        let mut groups = star(2);
        let events = [
            (3, Event::FlowStart(1)),
            (2, Event::SenderTimer(9)),
            (3, Event::Ready(4)),
            (3, Event::SenderTimer(2)),
        ];
        for (time, event) in events {
            groups.push(Time(time), event);
        }
        let before = (Time(3), Event::Arrive(0));
        assert_eq!(groups.pop_before(before.0, before.1), Some((Time(2), Event::SenderTimer(9))));
        assert_eq!(groups.pop_before(before.0, before.1), Some((Time(3), Event::Ready(4))));
        assert_eq!(
            groups.pop_before(before.0, before.1),
            None,
            "packets arrive before timers fire"
        );
        let remaining: Vec<_> =
            std::iter::from_fn(|| groups.pop_before(Time(4), Event::FIRST)).collect();
        assert_eq!(remaining, [(Time(3), Event::SenderTimer(2)), (Time(3), Event::FlowStart(1))]);
    }
}
