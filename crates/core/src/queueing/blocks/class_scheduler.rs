//! Traffic classes at a port: a queue for each. They take turns, and pause frames hold some of them back.
//!
//! Source: [stfq96] (start-time fair queueing). Turns are counted in bytes, of which every class is due as
//! many: the class whose next packet is due to begin first goes first. That needs no look at a queue's first
//! packet, which a queue that drops as it serves could not tell; and what two classes with packets waiting
//! get over any time differs by less than two packets.

use crate::model::packet::{FlowNumber, Packet};
use crate::queueing::{Backlog, Context, Fifo, PortQueue, Queue};

/// One class.
struct Class {
    queue: Box<dyn Queue>,
    is_paused: bool,
    /// When its next packet is due to begin, as a number of bytes.
    due: u64,
}

impl Class {
    fn may_go(&self) -> bool {
        !self.is_paused && self.queue.backlog().packets > 0
    }
}

/// A queue for each traffic class.
pub struct ClassScheduler {
    classes: Vec<Class>,
    /// When the packet being sent was due to begin.
    round: u64,
}

impl ClassScheduler {
    /// Empty queues that behave so, one for each class.
    pub fn new(behaviours: Vec<PortQueue>) -> Self {
        let class = |behaviour| {
            let queue: Box<dyn Queue> = match behaviour {
                PortQueue::OnArrival(rule) => Box::new(Fifo::new(rule)),
                PortQueue::OnDeparture(queue) => queue,
            };
            Class { queue, is_paused: false, due: 0 }
        };
        Self { classes: behaviours.into_iter().map(class).collect(), round: 0 }
    }

    /// Takes a packet of a class in, or drops it or others.
    pub fn enqueue(&mut self, packet: Packet, class: u8, context: &mut Context<'_>) {
        let class = &mut self.classes[usize::from(class)];
        // Turns that it had no use for are gone.
        if class.queue.backlog().packets == 0 {
            class.due = class.due.max(self.round);
        }
        class.queue.enqueue(packet, context);
    }

    /// Gives up the packet to transmit next, if one may go.
    pub fn dequeue(&mut self, context: &mut Context<'_>) -> Option<Packet> {
        loop {
            let ready = self.classes.iter_mut().filter(|class| class.may_go());
            let class = ready.min_by_key(|class| class.due)?;
            self.round = class.due;
            // A queue that drops as it serves may have nothing left to give.
            if let Some(packet) = class.queue.dequeue(context) {
                class.due += u64::from(packet.bytes);
                return Some(packet);
            }
        }
    }

    /// Whether something that waits may go.
    pub fn may_go(&self) -> bool {
        self.classes.iter().any(Class::may_go)
    }

    /// Holds a class back, or lets it go on.
    pub fn pause(&mut self, class: u8, is_paused: bool) {
        let class = &mut self.classes[usize::from(class)];
        class.is_paused = is_paused;
        // Turns that it could not take are gone.
        class.due = class.due.max(self.round);
    }

    /// What waits of a class.
    pub fn backlog(&self, class: u8) -> Backlog {
        self.classes[usize::from(class)].queue.backlog()
    }

    /// Shows every packet that waits, in no particular order.
    pub fn for_each_packet(&self, visit: &mut dyn FnMut(&Packet)) {
        self.classes.iter().for_each(|class| class.queue.for_each_packet(visit));
    }

    /// Whether the queues weigh flows.
    pub fn uses_flow_weights(&self) -> bool {
        self.classes.iter().any(|class| class.queue.uses_flow_weights())
    }

    /// Tells the queues of a flow that starts.
    pub fn register_flow(&mut self, flow: FlowNumber, class: &str) {
        self.classes.iter_mut().for_each(|own| own.queue.register_flow(flow, class));
    }

    /// Tells the queues of a flow that has ended.
    pub fn unregister_flow(&mut self, flow: FlowNumber) {
        self.classes.iter_mut().for_each(|own| own.queue.unregister_flow(flow));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::Random;
    use crate::base::units::{Rate, Time};
    use crate::queueing::blocks::fixture::packet;
    use crate::queueing::disciplines::QueueKind;
    use proptest::prelude::*;

    const LARGEST: u16 = 1500;

    /// The classes with all that they may use. A packet's flow is its class.
    struct Bench {
        classes: ClassScheduler,
        random: Random,
        dropped: Vec<Packet>,
        marks: u64,
    }

    impl Bench {
        fn new(discipline: &impl QueueKind, classes: usize) -> Self {
            let behaviours = (0..classes).map(|_| discipline.build(Rate::from_gbps(10)));
            Self {
                classes: ClassScheduler::new(behaviours.collect()),
                random: Random::new(1, "classes"),
                dropped: Vec::new(),
                marks: 0,
            }
        }

        fn push(&mut self, class: u8, sequence: u32, bytes: u16) {
            let Self { classes, random, dropped, marks } = self;
            let packet = packet(u32::from(class), sequence, bytes);
            classes.enqueue(
                packet,
                class,
                &mut Context { now: Time::ZERO, random, dropped, marks },
            );
        }

        fn pop_at(&mut self, now: Time) -> Option<Packet> {
            let Self { classes, random, dropped, marks } = self;
            classes.dequeue(&mut Context { now, random, dropped, marks })
        }

        fn pop(&mut self) -> Option<(u32, u32)> {
            self.pop_at(Time::ZERO).map(|packet| (packet.flow, packet.sequence))
        }
    }

    fn lines(classes: usize) -> Bench {
        let config: crate::queueing::disciplines::drop_tail::Config =
            crate::base::schema::defaults();
        Bench::new(&config, classes)
    }

    #[test]
    fn who_was_empty_or_paused_does_not_catch_up() {
        let mut bench = lines(2);
        (0..12).for_each(|i| bench.push(0, i, 1000));
        (0..4).for_each(|i| assert_eq!(bench.pop(), Some((0, i))));
        (0..4).for_each(|i| bench.push(1, i, 1000));
        // They take turns from now on.
        let turns: Vec<_> = (0..4).map(|_| bench.pop().unwrap().0).collect();
        assert_eq!(turns, [1, 0, 1, 0]);
        bench.classes.pause(1, true);
        (6..9).for_each(|i| assert_eq!(bench.pop(), Some((0, i))));
        bench.classes.pause(1, false);
        let turns: Vec<_> = (0..4).map(|_| bench.pop().unwrap().0).collect();
        assert_eq!(turns, [1, 0, 1, 0]);
    }

    #[test]
    fn nothing_may_go_if_all_that_waits_is_paused() {
        let mut bench = lines(2);
        assert!(!bench.classes.may_go());
        bench.push(0, 0, 1000);
        bench.classes.pause(0, true);
        assert!(!bench.classes.may_go());
        assert_eq!(bench.pop(), None);
        bench.push(1, 0, 1000);
        assert!(bench.classes.may_go());
        assert_eq!((bench.pop(), bench.pop()), (Some((1, 0)), None));
        bench.classes.pause(0, false);
        assert_eq!(bench.pop(), Some((0, 0)));
    }

    #[test]
    fn a_class_whose_queue_drops_all_it_holds_leaves_its_turn_to_the_next() {
        let config: crate::queueing::disciplines::codel::Config = crate::base::schema::defaults();
        let mut bench = Bench::new(&config, 2);
        (0..40).for_each(|i| bench.push(0, i, 1000));
        bench.push(1, 0, 1000);
        let mut popped = Vec::new();
        for second in 1..=42 {
            popped.extend(bench.pop_at(Time(second * crate::base::units::PICOSECONDS)));
        }
        let dropped = bench.dropped.len();
        assert!(dropped > 0, "it stood for seconds");
        assert_eq!(popped.len() + dropped, 41);
        assert_eq!(popped.iter().filter(|packet| packet.flow == 1).count(), 1);
    }

    proptest! {
        #[test]
        fn what_two_waiting_classes_get_differs_by_less_than_two_packets(
            sizes in prop::collection::vec(prop::collection::vec(40_u16..=LARGEST, 60), 2..8),
        ) {
            let mut bench = lines(sizes.len());
            for (class, sizes) in (0..).zip(&sizes) {
                (0..).zip(sizes).for_each(|(sequence, bytes)| bench.push(class, sequence, *bytes));
            }
            let mut sent = vec![0_i64; sizes.len()];
            while let Some(popped) = bench.pop_at(Time::ZERO) {
                sent[popped.flow as usize] += i64::from(popped.bytes);
                if popped.sequence == 59 {
                    break;
                }
                let (least, most) = (sent.iter().min().unwrap(), sent.iter().max().unwrap());
                prop_assert!(most - least < 2 * i64::from(LARGEST));
            }
        }
    }
}
