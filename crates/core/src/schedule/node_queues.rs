//! What is pending at each group of nodes of a cut network.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Event, Partition, WindowPlan};
use crate::base::units::Time;
use crate::model::graph::{Graph, LinkId};

/// What is pending at each group of nodes. Arrivals from other groups are no events: of each link between
/// groups it is known when the first packet on it comes.
pub struct NodeQueues {
    /// Which there are.
    pub cut: WindowPlan,
    /// The group where what is pushed happens.
    here: usize,
    timers: Vec<BinaryHeap<Reverse<(Time, Event)>>>,
    /// Nothing happens at a group before; and at none of a row of groups, so that windows in which little
    /// happens cost little.
    next: Vec<Time>,
    of_row: Vec<Time>,
    /// By link: whether another part of the run has its end.
    is_foreign: Vec<bool>,
    /// By link between groups: when the first packet on it comes to its end.
    due: Vec<Time>,
}

/// So many groups are a row.
const ROW: usize = 32;

impl NodeQueues {
    /// Nothing is pending at the groups of `cut`, of which `part` has some.
    pub(super) fn new(cut: WindowPlan, part: &Partition, graph: &Graph) -> Self {
        Self {
            here: 0,
            timers: (0..cut.groups()).map(|_| BinaryHeap::new()).collect(),
            next: vec![Time::NEVER; cut.groups()],
            of_row: vec![Time::NEVER; cut.groups().div_ceil(ROW)],
            is_foreign: graph.links.iter().map(|link| !part.owns(link.to)).collect(),
            due: vec![Time::NEVER; cut.links()],
            cut,
        }
    }

    /// What is pushed from now on happens at this group.
    pub(super) fn enter(&mut self, group: usize) {
        self.here = group;
    }

    /// Schedules an event.
    pub(super) fn push(&mut self, time: Time, event: Event) {
        self.timers[self.here].push(Reverse((time, event)));
        self.expect(self.here, time);
    }

    /// The first packet on a link comes to its end at `time`. If another part has that, it will be told.
    #[inline]
    pub(super) fn push_arrival(&mut self, link: LinkId, time: Time) {
        match self.cut.end(link) {
            None => self.push(time, Event::Arrive(link)),
            Some(_) if self.is_foreign[link as usize] => {}
            Some(end) => {
                self.due[link as usize] = time;
                self.expect(end, time);
            }
        }
    }

    /// Takes the next event of the group that is served, if it comes before `event` at `time`.
    #[inline]
    pub(super) fn pop_before(&mut self, time: Time, event: Event) -> Option<(Time, Event)> {
        let timers = &mut self.timers[self.here];
        let Reverse(first) = timers.peek()?;
        if *first >= (time, event) {
            return None;
        }
        timers.pop().map(|Reverse(first)| first)
    }

    /// The next packet on a link comes at `next`: all before have been taken.
    pub(super) fn taken(&mut self, link: LinkId, next: Time) {
        self.due[link as usize] = next;
    }

    /// The group that is served has been served to the window's end.
    #[inline]
    pub(super) fn end(&mut self) {
        let timer = self.timers[self.here].peek().map_or(Time::NEVER, |Reverse((time, _))| *time);
        let inbound = self.cut.inbound(self.here).iter();
        let arrivals = inbound.map(|link| self.due[*link as usize]);
        self.next[self.here] = arrivals.fold(timer, Time::min);
    }

    /// Something happens at a group then.
    fn expect(&mut self, group: usize, time: Time) {
        self.next[group] = self.next[group].min(time);
        let row = &mut self.of_row[group / ROW];
        *row = time.min(*row);
    }

    /// When something happens next.
    pub fn begins(&self) -> Time {
        self.of_row.iter().copied().fold(Time::NEVER, Time::min)
    }

    /// The first group of this number or a higher one where something happens before `ends`. Those before it
    /// in its row have been served.
    pub fn due_from(&mut self, group: usize, ends: Time) -> Option<usize> {
        // The row of the one before, which was served last: when all of it are, it is known anew when it has
        // something to do.
        let mut row = group.saturating_sub(1) / ROW;
        let mut first = group;
        while row < self.of_row.len() {
            if self.of_row[row] < ends {
                let end = self.next.len().min((row + 1) * ROW);
                if let Some(group) = (first..end).find(|group| self.next[*group] < ends) {
                    return Some(group);
                }
                let row_of = self.next[row * ROW..end].iter().copied();
                self.of_row[row] = row_of.fold(Time::NEVER, Time::min);
            }
            row += 1;
            first = row * ROW;
        }
        None
    }

    /// The links from other groups by which packets come to a group before `ends`.
    pub fn due(&self, group: usize, ends: Time) -> impl Iterator<Item = LinkId> {
        let links = self.cut.inbound(group).iter().copied();
        links.filter(move |link| self.due[*link as usize] < ends)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::{Duration, Rate};
    use crate::model::graph::LoadReference;

    /// A star of so many hosts, each of its nodes a group.
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
    fn groups_with_something_to_do_are_served_in_turn_and_once() {
        let mut groups = star(3 * ROW);
        for (group, time) in [(0, 5), (ROW - 1, 7), (ROW, 9), (2 * ROW + 1, 30), (3 * ROW, 8)] {
            groups.enter(group);
            groups.push(Time(time), Event::Wake(1));
        }
        let serve = |groups: &mut NodeQueues, ends| {
            let (mut served, mut first) = (Vec::new(), 0);
            while let Some(group) = groups.due_from(first, Time(ends)) {
                groups.enter(group);
                while groups.pop_before(Time(ends), Event::FIRST).is_some() {}
                groups.end();
                served.push(group);
                first = group + 1;
            }
            served
        };
        assert_eq!(groups.begins(), Time(5));
        assert_eq!(serve(&mut groups, 9), [0, ROW - 1, 3 * ROW]);
        assert_eq!(groups.begins(), Time(9));
        assert_eq!(serve(&mut groups, 40), [ROW, 2 * ROW + 1]);
        assert_eq!(groups.begins(), Time::NEVER);
    }

    #[test]
    fn events_of_a_group_come_by_time_and_then_by_what_happens() {
        let mut groups = star(2);
        let events =
            [(3, Event::Start(1)), (2, Event::Wake(9)), (3, Event::Ready(4)), (3, Event::Wake(2))];
        for (time, event) in events {
            groups.push(Time(time), event);
        }
        let before = (Time(3), Event::Arrive(0));
        assert_eq!(groups.pop_before(before.0, before.1), Some((Time(2), Event::Wake(9))));
        assert_eq!(groups.pop_before(before.0, before.1), Some((Time(3), Event::Ready(4))));
        assert_eq!(groups.pop_before(before.0, before.1), None, "packets come before flows act");
        let left: Vec<_> =
            std::iter::from_fn(|| groups.pop_before(Time(4), Event::FIRST)).collect();
        assert_eq!(left, [(Time(3), Event::Wake(2)), (Time(3), Event::Start(1))]);
    }
}
