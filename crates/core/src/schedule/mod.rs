//! What is pending, and what time it is.

pub mod event;
pub mod event_queue;
pub mod node_queues;
pub mod partition;
pub mod window_plan;

pub use self::event::Event;
pub use self::event_queue::EventQueue;
pub use self::node_queues::NodeQueues;
pub use self::partition::Partition;
pub use self::window_plan::WindowPlan;

use crate::base::units::{Duration, Time};
use crate::model::graph::{Graph, LinkId, NodeId};

/// The pending events of a simulation: those of the whole network in one queue, or those of each group of
/// nodes apart.
#[derive(Default)]
pub struct Scheduler {
    now: Time,
    schedule: EventQueue<Event>,
    groups: Option<NodeQueues>,
}

impl Scheduler {
    /// Nothing is pending; with a cut, events of each group are kept apart, of those that `part` has.
    pub fn new(cut: Option<WindowPlan>, part: &Partition, graph: &Graph) -> Self {
        Self { groups: cut.map(|cut| NodeQueues::new(cut, part, graph)), ..Self::default() }
    }

    /// The present.
    pub fn now(&self) -> Time {
        self.now
    }

    /// What is pending at each group, if that is kept apart.
    pub fn groups(&self) -> Option<&NodeQueues> {
        self.groups.as_ref()
    }

    /// When something happens next, where events of each group are kept apart.
    pub fn begins(&self) -> Time {
        self.groups.as_ref().map_or(Time::NEVER, NodeQueues::begins)
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
            groups.enter(groups.cut.group(node));
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
        match &mut self.groups {
            None => self.schedule.push(time, Event::Arrive(link)),
            Some(groups) => groups.push_arrival(link, time),
        }
    }

    /// Takes the next event of the one queue; the present is then its time.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, Event)> {
        let (time, event) = self.schedule.pop()?;
        self.now = time;
        Some((time, event))
    }

    /// Begins a window at a group.
    pub fn begin(&mut self, group: usize, now: Time) {
        self.now = now;
        if let Some(groups) = &mut self.groups {
            groups.enter(group);
        }
    }

    /// Takes the next event of the group that is served, if it comes before `event` at `time`; the present is
    /// then its time.
    pub fn pop_before(&mut self, time: Time, event: Event) -> Option<Event> {
        let (time, event) = self.groups.as_mut()?.pop_before(time, event)?;
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
            groups.taken(link, next.unwrap_or(Time::NEVER));
        }
    }

    /// Ends the window at the group that is served.
    #[inline]
    pub fn end(&mut self) {
        if let Some(groups) = &mut self.groups {
            groups.end();
        }
    }
}
