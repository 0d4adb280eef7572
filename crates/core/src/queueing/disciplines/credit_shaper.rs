//! Credit shaper: credits depart no faster than the link in the opposite direction carries the data that they
//! permit.
//!
//! Source: [expresspass17] and its authors' simulator. A token bucket limits the rate of credits, whose queue
//! is short: credits for whose data a link has no room are dropped, and not the data. A credit precedes other
//! packets when the bucket permits it; all others are a FIFO.
//!
//! Credits at exactly the limited rate, as a shaper makes them, would keep their phase at the next port, and
//! find room there that the credits of other flows do not. So the gap after a credit varies at random.
//!
//! Deviation: credits have one size. In the authors' fat-tree they have 76 to 92 B at random, and the bucket
//! counts bytes, so that gaps vary by as much.

use super::{
    Backlog, Capacity, Context, Limit, LinkScale, PacketFifo, PortQueue, Queue, QueueKind,
};
use crate::base::schema::{fraction, positive};
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::packet::{Kind, Packet};

crate::parameters! {
    /// Credit shaper: limits the rate of credits to that of the data that they permit, one full packet each,
    /// and drops excess credits; a FIFO for all other packets ([expresspass17]).
    pub struct Config {
        /// Capacity of the FIFO of other packets, in bytes or packets (authors' simulator: 250 packets).
        /// `none`: no limit of its own.
        pub capacity: Option<Capacity> = Some(Capacity::Packets(250));
        /// Number of credits that may wait (authors' simulator, fat-tree: 8). Others are dropped.
        pub credits: u32 = 8, where positive;
        /// Number of credits that may depart at once after a pause (authors' simulator, fat-tree: 2).
        pub burst: u32 = 2, where positive;
        /// Largest random change of the gap after a credit, relative to it (authors' fat-tree: 8 B of 84 B).
        pub jitter: f64 = 0.095, where fraction;
    }
}

impl QueueKind for Config {
    fn build(&self, scale: LinkScale) -> PortQueue {
        PortQueue::OnDeparture(Box::new(CreditShaper {
            capacity: scale.limit(self.capacity),
            credit_limit: self.credits,
            burst: self.burst,
            jitter: self.jitter,
            opposite_rate: scale.opposite_rate,
            packet: scale.packet,
            credits: PacketFifo::default(),
            others: PacketFifo::default(),
            full_at: Time::ZERO,
        }))
    }

    fn capacity(&self) -> Option<Capacity> {
        self.capacity
    }
}

struct CreditShaper {
    capacity: Option<Limit>,
    credit_limit: u32,
    /// Size of the bucket, in credits.
    burst: u32,
    jitter: f64,
    /// Rate of the link that carries the data.
    opposite_rate: Rate,
    /// Size of the packet that a credit permits.
    packet: Bytes,
    credits: PacketFifo,
    others: PacketFifo,
    /// Time when the bucket is full, if no credit departs before.
    full_at: Time,
}

impl CreditShaper {
    /// Returns the interval of credits of this size at the limited rate.
    fn interval(&self, credit: &Packet) -> Duration {
        self.opposite_rate.transmit(Bytes(u64::from(credit.bytes)) + self.packet)
    }

    /// Returns the time from which the bucket permits the first credit.
    fn credit_departure(&self) -> Option<Time> {
        let others_of_bucket = self.interval(self.credits.first()?) * u64::from(self.burst - 1);
        Some(Time(self.full_at.0.saturating_sub(others_of_bucket.0)))
    }
}

impl Queue for CreditShaper {
    fn enqueue(&mut self, packet: Packet, context: &mut Context<'_>) {
        let Self { capacity, credit_limit, credits, others, .. } = self;
        let (queue, fits) = if packet.kind == Kind::Credit {
            let fits = credits.backlog().packets < *credit_limit;
            (credits, fits)
        } else {
            let fits = capacity.is_none_or(|limit| limit.fits(others.backlog(), packet.bytes));
            (others, fits)
        };
        if fits {
            queue.push(packet);
        } else {
            context.dropped.push(packet);
        }
    }

    fn dequeue(&mut self, context: &mut Context<'_>) -> Option<Packet> {
        if self.credit_departure().is_none_or(|departure| departure > context.now) {
            return self.others.pop();
        }
        let credit = self.credits.pop()?;
        let change = 1.0 + self.jitter * (2.0 * context.random.uniform() - 1.0);
        let gap = Duration((self.interval(&credit).0 as f64 * change).round() as u64);
        self.full_at = self.full_at.max(context.now) + gap;
        Some(credit)
    }

    fn held_until(&self) -> Time {
        match self.credit_departure() {
            Some(departure) if self.others.first().is_none() => departure,
            _ => Time::ZERO,
        }
    }

    fn backlog(&self) -> Backlog {
        let (credits, others) = (self.credits.backlog(), self.others.backlog());
        Backlog { bytes: credits.bytes + others.bytes, packets: credits.packets + others.packets }
    }

    fn for_each_packet(&self, visit: &mut dyn FnMut(&Packet)) {
        self.credits.for_each_packet(visit);
        self.others.for_each_packet(visit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::defaults;
    use crate::queueing::blocks::fixture::{QueueFixture, fixture, packet};

    /// Time of a credit of 84 B and a packet of 1538 B at 10 Gb/s.
    const INTERVAL: u64 = 1_297_600;

    fn shaper() -> QueueFixture<dyn Queue> {
        fixture(&Config { jitter: 0.0, ..defaults() })
    }

    fn credit(sequence: u32) -> Packet {
        Packet { kind: Kind::Credit, ..packet(0, sequence, 84) }
    }

    #[test]
    fn credits_depart_at_the_rate_of_the_packets_that_they_permit_after_a_burst_of_two() {
        let mut shaper = shaper();
        (0..5).for_each(|number| assert!(shaper.enqueue(credit(number)).is_empty()));
        for (number, departure) in [(0, 0), (1, 0), (2, INTERVAL), (3, 2 * INTERVAL)] {
            assert_eq!(shaper.queue.held_until(), Time(departure));
            if departure > 0 {
                shaper.now = Time(departure - 1);
                assert_eq!(shaper.dequeue().0, None);
            }
            shaper.now = Time(departure);
            assert_eq!(shaper.dequeue().0.map(|credit| credit.sequence), Some(number));
        }
        assert_eq!(shaper.queue.backlog(), Backlog { bytes: 84, packets: 1 });
    }

    #[test]
    fn other_packets_depart_while_credits_are_held_back_and_after_them_otherwise() {
        let mut shaper = shaper();
        (0..4).for_each(|number| assert!(shaper.enqueue(packet(0, number, 1538)).is_empty()));
        (10..13).for_each(|number| assert!(shaper.enqueue(credit(number)).is_empty()));
        let mut sequences = || shaper.dequeue().0.map(|packet| packet.sequence);
        assert_eq!([(); 4].map(|()| sequences()), [10, 11, 0, 1].map(Some));
        assert_eq!(shaper.queue.held_until(), Time::ZERO);
        shaper.now = Time(INTERVAL);
        let mut sequences = || shaper.dequeue().0.map(|packet| packet.sequence);
        assert_eq!([(); 3].map(|()| sequences()), [12, 2, 3].map(Some));
    }

    #[test]
    fn credits_beyond_the_limit_are_dropped_and_data_is_not() {
        let mut shaper = shaper();
        let dropped: usize = (0..20).map(|number| shaper.enqueue(credit(number)).len()).sum();
        assert_eq!(dropped, 12);
        let dropped: usize =
            (0..251).map(|number| shaper.enqueue(packet(0, number, 1538)).len()).sum();
        assert_eq!(dropped, 1);
    }

    #[test]
    fn gaps_vary_by_the_jitter_and_keep_their_mean() {
        let mut shaper = fixture(&Config { burst: 1, ..defaults() });
        let departures: Vec<u64> = (0..2001)
            .map(|number| {
                assert!(shaper.enqueue(credit(number)).is_empty());
                shaper.now = shaper.queue.held_until();
                assert!(shaper.dequeue().0.is_some());
                shaper.now.0
            })
            .collect();
        let gap = |pair: &[u64]| (pair[1] - pair[0]) as f64 / INTERVAL as f64;
        assert!(departures.windows(2).map(gap).all(|gap| (0.904..1.096).contains(&gap)));
        let mean = departures[2000] as f64 / (2000.0 * INTERVAL as f64);
        assert!((mean - 1.0).abs() < 0.005, "{mean}");
    }
}
