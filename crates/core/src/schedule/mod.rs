//! Event queue and simulation clock.

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

/// Pending events of a simulation: in one queue for the whole network, or in a queue per group of nodes.
#[derive(Default)]
pub struct Scheduler {
    now: Time,
    /// Codes of events, in one queue.
    queue: EventQueue<u64>,
    node_queues: Option<NodeQueues>,
}

impl Scheduler {
    /// Returns a scheduler without events. With a window plan, each group in `partition` has its own queue.
    pub fn new(plan: Option<WindowPlan>, partition: &Partition, graph: &Graph) -> Self {
        Self {
            node_queues: plan.map(|plan| NodeQueues::new(plan, partition, graph)),
            ..Self::default()
        }
    }

    /// Current time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Queues by group, if there are any.
    pub fn node_queues(&self) -> Option<&NodeQueues> {
        self.node_queues.as_ref()
    }

    /// Time of the next event in any group, or [`Time::NEVER`] without groups.
    pub fn next_time(&self) -> Time {
        self.node_queues.as_ref().map_or(Time::NEVER, NodeQueues::next_time)
    }

    /// Maximum length of a window.
    pub fn window(&self) -> Duration {
        self.node_queues.as_ref().map_or(Duration::ZERO, |queues| queues.plan.window)
    }

    /// Returns the first group from `group` on with an event in a window that ends at `end`.
    pub fn next_due_group(&mut self, group: usize, end: Time) -> Option<usize> {
        self.node_queues.as_mut()?.next_due_group(group, end)
    }

    /// Makes a node the location of events that are pushed from now on.
    pub fn enter(&mut self, node: NodeId) {
        if let Some(queues) = &mut self.node_queues {
            queues.enter(queues.plan.group(node));
        }
    }

    /// Schedules `event` at `time`, which must not be in the past.
    pub fn push(&mut self, time: Time, event: Event) {
        match &mut self.node_queues {
            None => self.queue.push(time, event.code()),
            Some(queues) => queues.push(time, event),
        }
    }

    /// Schedules the arrival of the first packet in flight on a link.
    pub fn push_arrival(&mut self, link: LinkId, time: Time) {
        match &mut self.node_queues {
            None => self.queue.push(time, Event::Arrive(link).code()),
            Some(queues) => queues.push_arrival(link, time),
        }
    }

    /// Takes the next event of the single queue and sets the clock to its time.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, Event)> {
        let (time, code) = self.queue.pop()?;
        self.now = time;
        Some((time, Event::from_code(code)))
    }

    /// Starts a window at a group.
    pub fn begin_window(&mut self, group: usize, now: Time) {
        self.now = now;
        if let Some(queues) = &mut self.node_queues {
            queues.enter(group);
        }
    }

    /// Takes the next event of the current group, if it precedes `event` at `time`, and sets the clock to its
    /// time.
    #[inline]
    pub fn pop_before(&mut self, time: Time, event: Event) -> Option<Event> {
        let (time, event) = self.node_queues.as_mut()?.pop_before(time, event)?;
        self.now = time;
        Some(event)
    }

    /// Sets the clock.
    pub fn set_now(&mut self, now: Time) {
        self.now = now;
    }

    /// Sets the next arrival on a link into the current group, after all arrivals in the window have been
    /// handled.
    pub fn set_next_arrival(&mut self, link: LinkId, next: Option<Time>) {
        if let Some(queues) = &mut self.node_queues {
            queues.set_next_arrival(link, next.unwrap_or(Time::NEVER));
        }
    }

    /// Ends the window at the current group.
    #[inline]
    pub fn end_window(&mut self) {
        if let Some(queues) = &mut self.node_queues {
            queues.end_window();
        }
    }
}
