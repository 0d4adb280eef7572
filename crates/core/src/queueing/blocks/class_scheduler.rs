//! Scheduler of the traffic classes at a port: one queue per class, served by start-time fair
//! queueing ([stfq96]). Pause frames stop single classes.
//!
//! The eligible class with the smallest start tag is served. Start tags count bytes over weights and
//! do not depend on the size of the first packet, which a queue that drops on departure cannot predict.
//! Over any interval, the service of two backlogged classes of one weight differs by less than two
//! packets.

use crate::base::units::Time;
use crate::model::packet::{FlowNumber, Packet};
use crate::queueing::{Backlog, Context, Fifo, PortQueue, Queue};

/// Increase of a tag per byte of a class with a weight of 1. Large, so that divisions by weights are precise.
const COST: u64 = 1 << 20;

/// Traffic class.
struct Class {
    queue: Box<dyn Queue>,
    is_paused: bool,
    /// Time until which the queue holds back its packets.
    held_until: Time,
    /// Start tag of its next packet.
    start_tag: u64,
    /// Increase of the tag per byte.
    cost: u64,
}

impl Class {
    fn may_go(&self) -> bool {
        !self.is_paused && self.queue.backlog().packets > 0
    }
}

/// Queues of all traffic classes.
pub struct ClassScheduler {
    classes: Vec<Class>,
    /// Virtual time: the start tag of the packet in transmission.
    virtual_time: u64,
}

impl ClassScheduler {
    /// Creates the scheduler from one queue and one weight per class.
    pub fn new(port_queues: Vec<PortQueue>, weights: &[u32]) -> Self {
        let class = |(port_queue, weight): (PortQueue, &u32)| {
            let queue: Box<dyn Queue> = match port_queue {
                PortQueue::OnArrival(rule) => Box::new(Fifo::new(rule)),
                PortQueue::OnDeparture(queue) => queue,
            };
            Class {
                queue,
                is_paused: false,
                held_until: Time::ZERO,
                start_tag: 0,
                cost: COST / u64::from(*weight),
            }
        };
        Self { classes: port_queues.into_iter().zip(weights).map(class).collect(), virtual_time: 0 }
    }

    /// Enqueues a packet of a class. May drop this packet or queued ones.
    pub fn enqueue(&mut self, packet: Packet, class: u8, context: &mut Context<'_>) {
        let class = &mut self.classes[usize::from(class)];
        // An idle class accumulates no credit, nor one whose packets are held back.
        if class.queue.backlog().packets == 0 || class.held_until > context.now {
            class.start_tag = class.start_tag.max(self.virtual_time);
        }
        class.held_until = Time::ZERO;
        class.queue.enqueue(packet, context);
    }

    /// Removes and returns the packet to transmit next, if a class is eligible.
    pub fn dequeue(&mut self, context: &mut Context<'_>) -> Option<Packet> {
        loop {
            let eligible = self.classes.iter_mut();
            let eligible =
                eligible.filter(|class| class.held_until <= context.now && class.may_go());
            let class = eligible.min_by_key(|class| class.start_tag)?;
            self.virtual_time = class.start_tag;
            // A queue that drops on departure may be empty now.
            if let Some(packet) = class.queue.dequeue(context) {
                class.start_tag += u64::from(packet.bytes) * class.cost;
                return Some(packet);
            }
            class.held_until = class.queue.held_until();
        }
    }

    /// Returns true if a packet may be transmitted, unless it is held back.
    pub fn may_go(&self) -> bool {
        self.classes.iter().any(Class::may_go)
    }

    /// Returns the time until which all packets that are not paused are held back.
    pub fn held_until(&self) -> Time {
        let waiting = self.classes.iter().filter(|class| class.may_go());
        waiting.map(|class| class.held_until).min().unwrap_or(Time::ZERO)
    }

    /// Pauses or resumes a class.
    pub fn pause(&mut self, class: u8, is_paused: bool) {
        let class = &mut self.classes[usize::from(class)];
        class.is_paused = is_paused;
        // A paused class accumulates no credit.
        class.start_tag = class.start_tag.max(self.virtual_time);
    }

    /// Returns the backlog of a class.
    pub fn backlog(&self, class: u8) -> Backlog {
        self.classes[usize::from(class)].queue.backlog()
    }

    /// Calls `visit` for every queued packet, in unspecified order.
    pub fn for_each_packet(&self, visit: &mut dyn FnMut(&Packet)) {
        self.classes.iter().for_each(|class| class.queue.for_each_packet(visit));
    }

    /// Returns true if a queue uses flow weights.
    pub fn uses_flow_weights(&self) -> bool {
        self.classes.iter().any(|class| class.queue.uses_flow_weights())
    }

    /// True if a queue returns headers to their senders ([`Queue::returns_headers`]).
    pub fn returns_headers(&self) -> bool {
        self.classes.iter().any(|class| class.queue.returns_headers())
    }

    /// Notifies the queues of the start of a flow.
    pub fn register_flow(&mut self, flow: FlowNumber, class: &str) {
        self.classes.iter_mut().for_each(|member| member.queue.register_flow(flow, class));
    }

    /// Notifies the queues of the end of a flow.
    pub fn unregister_flow(&mut self, flow: FlowNumber) {
        self.classes.iter_mut().for_each(|member| member.queue.unregister_flow(flow));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::Random;
    use crate::model::packet::Kind;
    use crate::queueing::blocks::fixture::{SCALE, packet};
    use crate::queueing::disciplines::QueueKind;
    use proptest::prelude::*;

    const LARGEST: u16 = 1500;

    /// Scheduler and its context. The flow number of a packet is its class.
    struct Fixture {
        classes: ClassScheduler,
        random: Random,
        dropped: Vec<Packet>,
        marks: u64,
    }

    impl Fixture {
        fn new(discipline: &impl QueueKind, classes: usize) -> Self {
            Self::weighted(discipline, &vec![1; classes])
        }

        fn weighted(discipline: &impl QueueKind, weights: &[u32]) -> Self {
            let port_queues = weights.iter().map(|_| discipline.build(SCALE));
            Self {
                classes: ClassScheduler::new(port_queues.collect(), weights),
                random: Random::new(1, "classes"),
                dropped: Vec::new(),
                marks: 0,
            }
        }

        fn enqueue(&mut self, class: u8, sequence: u32, bytes: u16) {
            self.enqueue_packet(class, packet(u32::from(class), sequence, bytes));
        }

        fn enqueue_packet(&mut self, class: u8, packet: Packet) {
            let Self { classes, random, dropped, marks } = self;
            classes.enqueue(
                packet,
                class,
                &mut Context { now: Time::ZERO, random, dropped, trimmed: &mut Vec::new(), marks },
            );
        }

        fn dequeue_at(&mut self, now: Time) -> Option<Packet> {
            let Self { classes, random, dropped, marks } = self;
            classes.dequeue(&mut Context { now, random, dropped, trimmed: &mut Vec::new(), marks })
        }

        fn dequeue(&mut self) -> Option<(u32, u32)> {
            self.dequeue_at(Time::ZERO).map(|packet| (packet.flow, packet.sequence))
        }
    }

    fn fifo_classes(classes: usize) -> Fixture {
        let config: crate::queueing::disciplines::drop_tail::Config =
            crate::base::schema::defaults();
        Fixture::new(&config, classes)
    }

    #[test]
    fn an_idle_or_paused_class_gets_no_compensation() {
        let mut fixture = fifo_classes(2);
        (0..12).for_each(|i| fixture.enqueue(0, i, 1000));
        (0..4).for_each(|i| assert_eq!(fixture.dequeue(), Some((0, i))));
        (0..4).for_each(|i| fixture.enqueue(1, i, 1000));
        // Both are backlogged now and alternate.
        let order: Vec<_> = (0..4).map(|_| fixture.dequeue().unwrap().0).collect();
        assert_eq!(order, [1, 0, 1, 0]);
        fixture.classes.pause(1, true);
        (6..9).for_each(|i| assert_eq!(fixture.dequeue(), Some((0, i))));
        fixture.classes.pause(1, false);
        let order: Vec<_> = (0..4).map(|_| fixture.dequeue().unwrap().0).collect();
        assert_eq!(order, [1, 0, 1, 0]);
    }

    #[test]
    fn classes_are_served_by_weight() {
        let config: crate::queueing::disciplines::drop_tail::Config =
            crate::base::schema::defaults();
        let mut fixture = Fixture::weighted(&config, &[1, 3, 2]);
        for class in 0..3 {
            (0..100).for_each(|i| fixture.enqueue(class, i, 1000));
        }
        let mut served = [0; 3];
        (0..120).for_each(|_| served[fixture.dequeue().unwrap().0 as usize] += 1);
        assert_eq!(served, [20, 60, 40]);
        // Weights apply to the classes that are not paused.
        fixture.classes.pause(1, true);
        let mut served = [0; 3];
        (0..60).for_each(|_| served[fixture.dequeue().unwrap().0 as usize] += 1);
        assert_eq!(served, [20, 0, 40]);
    }

    #[test]
    fn no_packet_is_eligible_if_all_backlogged_classes_are_paused() {
        let mut fixture = fifo_classes(2);
        assert!(!fixture.classes.may_go());
        fixture.enqueue(0, 0, 1000);
        fixture.classes.pause(0, true);
        assert!(!fixture.classes.may_go());
        assert_eq!(fixture.dequeue(), None);
        fixture.enqueue(1, 0, 1000);
        assert!(fixture.classes.may_go());
        assert_eq!((fixture.dequeue(), fixture.dequeue()), (Some((1, 0)), None));
        fixture.classes.pause(0, false);
        assert_eq!(fixture.dequeue(), Some((0, 0)));
    }

    #[test]
    fn a_class_whose_queue_drops_everything_yields_to_the_next_class() {
        let config: crate::queueing::disciplines::codel::Config = crate::base::schema::defaults();
        let mut fixture = Fixture::new(&config, 2);
        (0..40).for_each(|i| fixture.enqueue(0, i, 1000));
        fixture.enqueue(1, 0, 1000);
        let mut popped = Vec::new();
        for second in 1..=42 {
            popped.extend(fixture.dequeue_at(Time(second * crate::base::units::PICOSECONDS)));
        }
        let dropped = fixture.dropped.len();
        assert!(dropped > 0, "CoDel drops after seconds of queueing");
        assert_eq!(popped.len() + dropped, 41);
        assert_eq!(popped.iter().filter(|packet| packet.flow == 1).count(), 1);
    }

    #[test]
    fn a_class_whose_credits_are_held_back_yields_to_the_next_class() {
        let config = crate::queueing::disciplines::credit_shaper::Config {
            jitter: 0.0,
            ..crate::base::schema::defaults()
        };
        let mut fixture = Fixture::new(&config, 2);
        let credit = |flow| Packet { kind: Kind::Credit, ..packet(flow, 0, 84) };
        (0..4).for_each(|_| fixture.enqueue_packet(0, credit(0)));
        fixture.enqueue(1, 0, 1538);
        let order = [(); 4].map(|()| fixture.dequeue());
        assert_eq!(order, [Some((0, 0)), Some((1, 0)), Some((0, 0)), None]);
        // A credit of 84 B and its packet of 1538 B take this time.
        assert_eq!(fixture.classes.held_until(), Time(1_297_600));
        fixture.enqueue(0, 1, 1538);
        assert_eq!(fixture.dequeue(), Some((0, 1)));
        assert!(fixture.dequeue_at(Time(1_297_600)).is_some());
        assert_eq!((fixture.dequeue_at(Time(1_297_600)), fixture.classes.may_go()), (None, true));
    }

    proptest! {
        #[test]
        fn service_of_two_backlogged_classes_differs_by_less_than_two_packets(
            sizes in prop::collection::vec(prop::collection::vec(40_u16..=LARGEST, 60), 2..8),
        ) {
            let mut fixture = fifo_classes(sizes.len());
            for (class, sizes) in (0..).zip(&sizes) {
                (0..).zip(sizes).for_each(|(sequence, bytes)| fixture.enqueue(class, sequence, *bytes));
            }
            let mut sent = vec![0_i64; sizes.len()];
            while let Some(popped) = fixture.dequeue_at(Time::ZERO) {
                sent[popped.flow as usize] += i64::from(popped.bytes);
                if popped.sequence == 59 {
                    break;
                }
                let (min, max) = (sent.iter().min().unwrap(), sent.iter().max().unwrap());
                prop_assert!(max - min < 2 * i64::from(LARGEST));
            }
        }
    }
}
