//! Delivery-rate samples: how fast data sent a round trip ago has come through the network.
//!
//! Source: [bbr26], its sections on delivery-rate samples, round counting and the estimate of a full pipe,
//! which [bbr16] has in common with it. A sample counts what was acknowledged between two ACKs: the last
//! one before a packet left, and the one that answers it. Flows here have data as long as they live, so
//! samples are limited by something other than the network only where a controller says so.
//!
//! Left out: samples of packets that were overtaken by a later one.

use std::collections::VecDeque;

use crate::base::units::{Bytes, Duration, Time};
use crate::transport::{Ack, Path};

/// What was known when a packet left.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Time,
    delivered: u64,
    delivered_at: Time,
    /// When the packet left whose ACK was the last before.
    first_at: Time,
    lost: u64,
    /// Payload in flight, its own included.
    in_flight: u64,
    is_limited: bool,
}

/// What an ACK tells of the way that its packet has taken; payload in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Payload delivered in a second; none if it took less than a round trip can take.
    pub rate: Option<f64>,
    /// Payload delivered since the packet left.
    pub delivered: f64,
    /// All that had been delivered when it left.
    pub delivered_before: u64,
    /// What was in flight when it left, its own included.
    pub in_flight: f64,
    /// Payload lost since it left.
    pub lost: f64,
    /// Whether it left while the sender held back for a reason of its own.
    pub is_limited: bool,
    /// Whether it is the first packet sent since the last round trip ended to be acknowledged.
    pub starts_round: bool,
}

/// What a sender remembers of its packets on the way.
#[derive(Clone, Debug)]
pub struct DeliveryRate {
    header: u64,
    packet: u64,
    sent: VecDeque<Sent>,
    delivered: u64,
    delivered_at: Time,
    first_at: Time,
    lost: u64,
    in_flight: u64,
    /// What was in flight before the last ACK.
    was_in_flight: u64,
    /// Samples are limited until more than this is delivered.
    limited_until: Option<u64>,
    /// The round ends with the ACK of a packet that left after so much had been delivered.
    round_ends: u64,
    rounds: u32,
}

impl DeliveryRate {
    /// Nothing has been sent.
    pub fn new(path: &Path) -> Self {
        Self {
            header: path.format.header.0,
            packet: path.format.payload.0,
            sent: VecDeque::new(),
            delivered: 0,
            delivered_at: path.start,
            first_at: path.start,
            lost: 0,
            in_flight: 0,
            was_in_flight: 0,
            limited_until: None,
            round_ends: 0,
            rounds: 0,
        }
    }

    /// A packet of this size on the wire leaves.
    pub fn on_sent(&mut self, now: Time, bytes: Bytes) {
        if self.in_flight == 0 {
            (self.first_at, self.delivered_at) = (now, now);
        }
        self.in_flight += bytes.0 - self.header;
        self.sent.push_back(Sent {
            at: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_at: self.first_at,
            lost: self.lost,
            in_flight: self.in_flight,
            is_limited: self.limited_until.is_some(),
        });
    }

    /// New data has been acknowledged; `least` is what a round trip takes at least. Tells nothing if a
    /// packet that left later has been acknowledged before.
    pub fn on_ack(&mut self, ack: &Ack, least: Duration) -> Option<Sample> {
        self.delivered += ack.bytes.0;
        self.delivered_at = ack.now;
        self.limited_until = self.limited_until.filter(|until| self.delivered <= *until);
        self.lost += u64::from(ack.lost) * self.packet;
        self.was_in_flight = self.in_flight;
        self.in_flight = ack.in_flight.0;
        let mut found = None;
        while let Some(sent) = self.sent.front().filter(|sent| sent.at <= ack.sent_at) {
            found = Some(*sent);
            self.sent.pop_front();
        }
        let sent = found?;
        self.first_at = sent.at;
        let starts_round = sent.delivered >= self.round_ends;
        if starts_round {
            self.start_round();
            self.rounds += 1;
        }
        // What left faster than it came cannot have come faster than it left.
        let interval = sent.at.since(sent.first_at).max(ack.now.since(sent.delivered_at));
        let delivered = (self.delivered - sent.delivered) as f64;
        let is_sound = interval >= least && interval > Duration::ZERO;
        Some(Sample {
            rate: is_sound.then(|| delivered / interval.seconds()),
            delivered,
            delivered_before: sent.delivered,
            in_flight: sent.in_flight as f64,
            lost: (self.lost - sent.lost) as f64,
            is_limited: sent.is_limited,
            starts_round,
        })
    }

    /// All that was in flight is given up for lost.
    pub fn on_timeout(&mut self) {
        self.in_flight = 0;
    }

    /// Counts a new round trip from here.
    pub fn start_round(&mut self) {
        self.round_ends = self.delivered;
    }

    /// Samples of what leaves from now on are limited, until something of it is delivered.
    pub fn limit(&mut self) {
        self.limited_until = Some(self.delivered + self.in_flight);
    }

    /// All payload that has been delivered.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Payload in flight.
    pub fn in_flight(&self) -> f64 {
        self.in_flight as f64
    }

    /// Payload that was in flight before the last ACK.
    pub fn was_in_flight(&self) -> f64 {
        self.was_in_flight as f64
    }

    /// Round trips that have ended.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }
}

/// Whether a rate has stopped growing although more was sent: then the pipe is full.
#[derive(Clone, Copy, Debug)]
pub struct FullPipe {
    growth: f64,
    rounds: u32,
    baseline: f64,
    count: u32,
}

impl FullPipe {
    /// After so many rounds in which the rate has not grown by this factor.
    pub fn new(growth: f64, rounds: u32) -> Self {
        Self { growth, rounds, baseline: 0.0, count: 0 }
    }

    /// Begins anew from a rate.
    pub fn restart(&mut self, baseline: f64) {
        (self.baseline, self.count) = (baseline, 0);
    }

    /// Takes in the rate at the end of a round.
    pub fn on_round(&mut self, rate: f64) {
        if rate >= self.baseline * self.growth {
            self.restart(rate);
        } else {
            self.count += 1;
        }
    }

    /// Whether the pipe is full.
    pub fn is_reached(&self) -> bool {
        self.count >= self.rounds
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::float_cmp, reason = "whole numbers of bytes are exact")]

    use super::*;
    use crate::transport::fixture::{ack, path};

    fn at(us: u64) -> Time {
        Time::ZERO + Duration::from_micros(us)
    }

    /// The ACK, at `us`, of a packet of 960 B sent at `sent_us`, after which so many are in flight.
    fn answer(us: u64, sent_us: u64, in_flight: u64) -> Ack {
        Ack { now: at(us), sent_at: at(sent_us), in_flight: Bytes(960 * in_flight), ..ack(1, 1) }
    }

    const LEAST: Duration = Duration::from_micros(100);

    #[test]
    fn the_rate_is_what_came_over_the_time_from_the_last_ack_before_the_packet_left() {
        let mut delivery = DeliveryRate::new(&path());
        for us in [0, 10, 20] {
            delivery.on_sent(at(us), Bytes(1000));
        }
        assert_eq!(delivery.in_flight(), 2880.0);
        // Nothing had come when these left, and the clock ran from the first of them.
        for (us, sent, packets) in [(100, 0, 1.0), (130, 10, 2.0), (160, 20, 3.0)] {
            let left = 2 - sent / 10;
            let sample = delivery.on_ack(&answer(us, sent, left), LEAST).unwrap();
            assert_eq!(sample.delivered, packets * 960.0);
            let rate = packets * 960.0 / (us as f64 * 1e-6);
            assert!((sample.rate.unwrap() / rate - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn a_packet_that_leaves_after_an_ack_counts_from_it_and_none_faster_than_it_left() {
        let mut delivery = DeliveryRate::new(&path());
        for us in [0, 50] {
            delivery.on_sent(at(us), Bytes(1000));
        }
        delivery.on_ack(&answer(100, 0, 1), LEAST);
        delivery.on_sent(at(110), Bytes(1000));
        delivery.on_ack(&answer(150, 50, 1), LEAST);
        // From the ACK at 100 us to that at 210 us came two packets.
        let sample = delivery.on_ack(&answer(210, 110, 0), LEAST).unwrap();
        assert!((sample.rate.unwrap() - 1920.0 / 110e-6).abs() < 1e-3);
        assert_eq!(sample.in_flight, 1920.0);
        // Sent 200 us apart, acknowledged at once: the time that sending took counts.
        let mut delivery = DeliveryRate::new(&path());
        delivery.on_sent(at(0), Bytes(1000));
        delivery.on_sent(at(200), Bytes(1000));
        delivery.on_ack(&answer(290, 0, 1), LEAST);
        let sample = delivery.on_ack(&answer(290, 200, 0), LEAST).unwrap();
        assert!((sample.rate.unwrap() - 1920.0 / 290e-6).abs() < 1e-3);
    }

    #[test]
    fn rounds_end_with_what_left_after_the_last_one_ended() {
        let mut delivery = DeliveryRate::new(&path());
        let mut starts = Vec::new();
        for us in 0..30_u64 {
            delivery.on_sent(at(us), Bytes(1000));
            if us >= 10 {
                let sample = delivery.on_ack(&answer(us, us - 10, 10), Duration::ZERO).unwrap();
                starts.push(sample.starts_round);
            }
        }
        // What leaves in the same instant as an ACK comes has left before it.
        let rounds: Vec<_> = (0..20).filter(|i| starts[*i]).collect();
        assert_eq!((rounds, delivery.rounds()), (vec![0, 11], 2));
    }

    #[test]
    fn losses_and_limits_are_told_with_the_packets_that_left_before() {
        let mut delivery = DeliveryRate::new(&path());
        delivery.on_sent(at(0), Bytes(1000));
        delivery.on_sent(at(1), Bytes(1000));
        delivery.limit();
        delivery.on_sent(at(2), Bytes(1000));
        let first = delivery.on_ack(&answer(100, 0, 2), LEAST).unwrap();
        assert!(!first.is_limited);
        // The one sent at 1 us is lost, and its record goes with it.
        let third = delivery.on_ack(&Ack { lost: 1, ..answer(102, 2, 0) }, LEAST).unwrap();
        assert!(third.is_limited);
        assert_eq!(third.lost, 960.0);
        assert!(delivery.on_ack(&answer(103, 1, 0), LEAST).is_none(), "it was overtaken");
    }

    #[test]
    fn a_limit_lasts_until_something_is_delivered_that_left_after_it() {
        let mut delivery = DeliveryRate::new(&path());
        delivery.on_sent(at(0), Bytes(1000));
        delivery.limit();
        // All is delivered that was in flight, but nothing that left later.
        for (us, is_limited) in [(0, false), (110, true), (220, false)] {
            let sample = delivery.on_ack(&answer(us + 100, us, 0), LEAST).unwrap();
            assert_eq!(sample.is_limited, is_limited, "sent at {us} us");
            delivery.on_sent(at(us + 110), Bytes(1000));
        }
    }

    #[test]
    fn a_pipe_is_full_after_three_rounds_of_little_growth() {
        let mut plateau = FullPipe::new(1.25, 3);
        for (rate, is_full) in
            [(1.0, false), (2.0, false), (2.4, false), (2.5, false), (2.6, false), (3.0, false)]
        {
            plateau.on_round(rate);
            assert_eq!(plateau.is_reached(), is_full, "{rate}");
        }
        plateau.on_round(3.1);
        assert!(plateau.is_reached(), "three rounds below 1.25 times 2.5");
        plateau.restart(3.1);
        assert!(!plateau.is_reached());
    }
}
