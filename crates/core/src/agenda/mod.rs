//! What is pending, and what time it is.

pub mod cut;
pub mod event;
pub mod part;
pub mod schedule;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

pub use cut::Cut;
pub use event::Event;
pub use part::Part;
pub use schedule::Schedule;

use crate::graph::{Graph, LinkId, NodeId};
use crate::units::{Duration, Time};

/// The pending events of a simulation: those of the whole network in one queue, or those of each group of
/// nodes apart.
#[derive(Default)]
pub struct Agenda {
    now: Time,
    schedule: Schedule<Event>,
    groups: Option<Groups>,
}

/// What is pending at each group of nodes. Arrivals from other groups are no events: of each link between
/// groups it is known when the first packet on it comes.
pub struct Groups {
    /// Which there are.
    pub cut: Cut,
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

impl Agenda {
    /// Nothing is pending; with a cut, events of each group are kept apart, of those that `part` has.
    pub fn new(cut: Option<Cut>, part: &Part, graph: &Graph) -> Self {
        let groups = cut.map(|cut| Groups {
            here: 0,
            timers: (0..cut.groups()).map(|_| BinaryHeap::new()).collect(),
            next: vec![Time::NEVER; cut.groups()],
            of_row: vec![Time::NEVER; cut.groups().div_ceil(ROW)],
            due: vec![Time::NEVER; cut.links()],
            is_foreign: graph.links.iter().map(|link| !part.owns(link.to)).collect(),
            cut,
        });
        Self { groups, ..Self::default() }
    }

    /// The present.
    pub fn now(&self) -> Time {
        self.now
    }

    /// What is pending at each group, if that is kept apart.
    pub fn groups(&self) -> Option<&Groups> {
        self.groups.as_ref()
    }

    /// When something happens next, where events of each group are kept apart.
    pub fn begins(&self) -> Time {
        self.groups.as_ref().map_or(Time::NEVER, Groups::begins)
    }

    /// How long windows last at most.
    pub fn window(&self) -> Duration {
        self.groups.as_ref().map_or(Duration::ZERO, |groups| groups.cut.window)
    }

    /// The next group to serve in a window that ends at `ends`, of this number or a higher one.
    pub fn due_from(&mut self, group: usize, ends: Time) -> Option<usize> {
        self.groups.as_mut()?.due_from(group, ends)
    }

    /// What is pushed from now on happens at this node.
    pub fn enter(&mut self, node: NodeId) {
        if let Some(groups) = &mut self.groups {
            groups.here = groups.cut.group(node);
        }
    }

    /// Schedules `event` for `time`, which must not lie in the past.
    pub fn push(&mut self, time: Time, event: Event) {
        match &mut self.groups {
            None => self.schedule.push(time, event),
            Some(groups) => groups.push(time, event),
        }
    }

    /// The first packet on a link comes to its end at `time`.
    pub fn push_arrival(&mut self, link: LinkId, time: Time) {
        let Some(groups) = &mut self.groups else {
            return self.schedule.push(time, Event::Arrive(link));
        };
        match groups.cut.end(link) {
            None => groups.push(time, Event::Arrive(link)),
            Some(_) if groups.is_foreign[link as usize] => {}
            Some(end) => {
                groups.due[link as usize] = time;
                groups.expect(end, time);
            }
        }
    }

    /// Takes the next event of the one queue; the present is then its time.
    pub fn pop(&mut self) -> Option<(Time, Event)> {
        let (time, event) = self.schedule.pop()?;
        self.now = time;
        Some((time, event))
    }

    /// Begins a window at a group.
    pub fn begin(&mut self, group: usize, now: Time) {
        self.now = now;
        if let Some(groups) = &mut self.groups {
            groups.here = group;
        }
    }

    /// Takes the next event of the group that is served, if it comes before `event` at `time`; the present is
    /// then its time.
    pub fn pop_before(&mut self, time: Time, event: Event) -> Option<Event> {
        let timers = self.groups.as_mut().map(|groups| &mut groups.timers[groups.here])?;
        let Reverse(first) = timers.peek()?;
        if *first >= (time, event) {
            return None;
        }
        let Reverse((time, event)) = timers.pop()?;
        self.now = time;
        Some(event)
    }

    /// The present is `now`: a packet has come from another group, or all groups have got there.
    pub fn set_now(&mut self, now: Time) {
        self.now = now;
    }

    /// Of a link into the group that is served all packets have been taken that come before the window ends:
    /// the next comes at `next`, if one is on its way.
    pub fn taken(&mut self, link: LinkId, next: Option<Time>) {
        if let Some(groups) = &mut self.groups {
            groups.due[link as usize] = next.unwrap_or(Time::NEVER);
        }
    }

    /// Ends the window at the group that is served.
    pub fn end(&mut self) {
        if let Some(Groups { cut, here, timers, next, due, .. }) = &mut self.groups {
            let timer = timers[*here].peek().map_or(Time::NEVER, |Reverse((time, _))| *time);
            let arrivals = cut.inbound(*here).iter().map(|link| due[*link as usize]);
            next[*here] = arrivals.fold(timer, Time::min);
        }
    }
}

impl Groups {
    fn push(&mut self, time: Time, event: Event) {
        self.timers[self.here].push(Reverse((time, event)));
        self.expect(self.here, time);
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

/// So many groups are a row.
const ROW: usize = 32;
