//! Delivery-rate samples: the rate at which the network delivered data over about one RTT.
//!
//! Source: [bbr26], sections on delivery-rate samples, round counting and the full-pipe estimator, as in
//! [bbr16]. A sample counts the data acknowledged between two ACKs: the last ACK before a packet was sent,
//! and the ACK of that packet. Samples are application-limited where a controller marks them: on persistent
//! connections that have no data to send.
//!
//! Left out: samples of packets that a later packet overtook.

use std::collections::VecDeque;

use crate::base::units::{Bytes, Duration, Time};
use crate::transport::{Ack, Path};

/// State recorded when a packet is sent (`P` of [bbr26]).
#[derive(Clone, Copy, Debug)]
struct PacketState {
    sent_at: Time,
    delivered: u64,
    delivered_at: Time,
    /// Send time of the packet whose ACK was the last before.
    first_sent_at: Time,
    lost: u64,
    /// Payload in flight, including this packet.
    in_flight: u64,
    is_app_limited: bool,
}

/// Rate sample of an ACK (`RS` of [bbr26]); payload in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateSample {
    /// Delivery rate, in bytes per second; none if the interval is shorter than the minimum RTT.
    pub rate: Option<f64>,
    /// Payload delivered since the packet was sent.
    pub delivered: f64,
    /// Total payload delivered when the packet was sent.
    pub prior_delivered: u64,
    /// Payload in flight when the packet was sent, including the packet.
    pub in_flight: f64,
    /// Payload lost since the packet was sent.
    pub lost: f64,
    /// True if the sender, not the network, limited the rate when the packet was sent.
    pub is_app_limited: bool,
    /// True if the ACK starts a new round.
    pub starts_round: bool,
}

/// Delivery-rate estimator of one flow.
#[derive(Clone, Debug)]
pub struct DeliveryRate {
    header: u64,
    packet: u64,
    sent: VecDeque<PacketState>,
    delivered: u64,
    delivered_at: Time,
    first_sent_at: Time,
    lost: u64,
    in_flight: u64,
    /// Payload in flight before the last ACK.
    was_in_flight: u64,
    /// Samples are application-limited until more than this is delivered.
    app_limited_until: Option<u64>,
    /// The round ends with the ACK of a packet that was sent after this total had been delivered.
    next_round_delivered: u64,
    rounds: u32,
}

impl DeliveryRate {
    /// State of a new flow.
    pub fn new(path: &Path) -> Self {
        Self {
            header: path.format.header.0,
            packet: path.format.payload.0,
            sent: VecDeque::new(),
            delivered: 0,
            delivered_at: path.start,
            first_sent_at: path.start,
            lost: 0,
            in_flight: 0,
            was_in_flight: 0,
            app_limited_until: None,
            next_round_delivered: 0,
            rounds: 0,
        }
    }

    /// Records a sent packet; `bytes` includes the header.
    pub fn on_sent(&mut self, now: Time, bytes: Bytes) {
        if self.in_flight == 0 {
            (self.first_sent_at, self.delivered_at) = (now, now);
        }
        self.in_flight += bytes.0 - self.header;
        self.sent.push_back(PacketState {
            sent_at: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            lost: self.lost,
            in_flight: self.in_flight,
            is_app_limited: self.app_limited_until.is_some(),
        });
    }

    /// Handles an ACK of new data; `min_rtt` is the shortest valid interval. Returns none if a packet sent
    /// later has been acknowledged before.
    pub fn on_ack(&mut self, ack: &Ack, min_rtt: Duration) -> Option<RateSample> {
        self.delivered += ack.bytes.0;
        self.delivered_at = ack.now;
        self.app_limited_until = self.app_limited_until.filter(|until| self.delivered <= *until);
        self.lost += u64::from(ack.lost) * self.packet;
        self.was_in_flight = self.in_flight;
        self.in_flight = ack.in_flight.0;
        let mut packet = None;
        while let Some(sent) = self.sent.front().filter(|sent| sent.sent_at <= ack.sent_at) {
            packet = Some(*sent);
            self.sent.pop_front();
        }
        let sent = packet?;
        self.first_sent_at = sent.sent_at;
        let starts_round = sent.delivered >= self.next_round_delivered;
        if starts_round {
            self.start_round();
            self.rounds += 1;
        }
        // Neither the send rate nor the ACK rate alone: ACKs may be compressed, sends may be bursts.
        let interval = sent.sent_at.since(sent.first_sent_at).max(ack.now.since(sent.delivered_at));
        let delivered = (self.delivered - sent.delivered) as f64;
        let is_valid = interval >= min_rtt && interval > Duration::ZERO;
        Some(RateSample {
            rate: is_valid.then(|| delivered / interval.seconds()),
            delivered,
            prior_delivered: sent.delivered,
            in_flight: sent.in_flight as f64,
            lost: (self.lost - sent.lost) as f64,
            is_app_limited: sent.is_app_limited,
            starts_round,
        })
    }

    /// Handles a timeout, which takes all packets in flight for lost.
    pub fn on_timeout(&mut self) {
        self.in_flight = 0;
    }

    /// Starts a new round now.
    pub fn start_round(&mut self) {
        self.next_round_delivered = self.delivered;
    }

    /// Marks samples as application-limited until data sent after this call is delivered.
    pub fn mark_app_limited(&mut self) {
        self.app_limited_until = Some(self.delivered + self.in_flight);
    }

    /// Total payload delivered.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Payload in flight.
    pub fn in_flight(&self) -> f64 {
        self.in_flight as f64
    }

    /// Payload in flight before the last ACK.
    pub fn was_in_flight(&self) -> f64 {
        self.was_in_flight as f64
    }

    /// Number of rounds that have ended.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }
}

/// Full-pipe estimator: detects that the delivery rate no longer grows.
#[derive(Clone, Copy, Debug)]
pub struct FullPipe {
    growth: f64,
    rounds: u32,
    full_bw: f64,
    full_bw_count: u32,
}

impl FullPipe {
    /// Creates an estimator that needs `rounds` rounds with less growth than the factor `growth`.
    pub fn new(growth: f64, rounds: u32) -> Self {
        Self { growth, rounds, full_bw: 0.0, full_bw_count: 0 }
    }

    /// Restarts from a baseline rate.
    pub fn restart(&mut self, full_bw: f64) {
        (self.full_bw, self.full_bw_count) = (full_bw, 0);
    }

    /// Handles the delivery rate at the end of a round.
    pub fn on_round(&mut self, rate: f64) {
        if rate >= self.full_bw * self.growth {
            self.restart(rate);
        } else {
            self.full_bw_count += 1;
        }
    }

    /// True if the pipe is full.
    pub fn is_full(&self) -> bool {
        self.full_bw_count >= self.rounds
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

    /// ACK, at `us`, of a packet of 960 B sent at `sent_us`, which leaves `in_flight` packets in flight.
    fn answer(us: u64, sent_us: u64, in_flight: u64) -> Ack {
        Ack { now: at(us), sent_at: at(sent_us), in_flight: Bytes(960 * in_flight), ..ack(1, 1) }
    }

    const MIN_RTT: Duration = Duration::from_micros(100);

    #[test]
    fn the_rate_is_the_data_delivered_since_the_last_ack_before_the_packet_was_sent() {
        let mut delivery = DeliveryRate::new(&path());
        for us in [0, 10, 20] {
            delivery.on_sent(at(us), Bytes(1000));
        }
        assert_eq!(delivery.in_flight(), 2880.0);
        // Nothing had been delivered when these were sent: the interval starts with the first of them.
        for (us, sent, packets) in [(100, 0, 1.0), (130, 10, 2.0), (160, 20, 3.0)] {
            let in_flight = 2 - sent / 10;
            let sample = delivery.on_ack(&answer(us, sent, in_flight), MIN_RTT).unwrap();
            assert_eq!(sample.delivered, packets * 960.0);
            let rate = packets * 960.0 / (us as f64 * 1e-6);
            assert!((sample.rate.unwrap() / rate - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn the_interval_starts_at_the_last_ack_and_the_rate_is_at_most_the_send_rate() {
        let mut delivery = DeliveryRate::new(&path());
        for us in [0, 50] {
            delivery.on_sent(at(us), Bytes(1000));
        }
        delivery.on_ack(&answer(100, 0, 1), MIN_RTT);
        delivery.on_sent(at(110), Bytes(1000));
        delivery.on_ack(&answer(150, 50, 1), MIN_RTT);
        // Two packets were delivered between the ACKs at 100 us and 210 us.
        let sample = delivery.on_ack(&answer(210, 110, 0), MIN_RTT).unwrap();
        assert!((sample.rate.unwrap() - 1920.0 / 110e-6).abs() < 1e-3);
        assert_eq!(sample.in_flight, 1920.0);
        // Sent 200 us apart, acknowledged at once: the time that sending took counts.
        let mut delivery = DeliveryRate::new(&path());
        delivery.on_sent(at(0), Bytes(1000));
        delivery.on_sent(at(200), Bytes(1000));
        delivery.on_ack(&answer(290, 0, 1), MIN_RTT);
        let sample = delivery.on_ack(&answer(290, 200, 0), MIN_RTT).unwrap();
        assert!((sample.rate.unwrap() - 1920.0 / 290e-6).abs() < 1e-3);
    }

    #[test]
    fn a_round_ends_with_a_packet_sent_after_the_last_round_ended() {
        let mut delivery = DeliveryRate::new(&path());
        let mut starts = Vec::new();
        for us in 0..30_u64 {
            delivery.on_sent(at(us), Bytes(1000));
            if us >= 10 {
                let sample = delivery.on_ack(&answer(us, us - 10, 10), Duration::ZERO).unwrap();
                starts.push(sample.starts_round);
            }
        }
        // A packet sent at the instant of an ACK is sent before the ACK.
        let rounds: Vec<_> = (0..20).filter(|i| starts[*i]).collect();
        assert_eq!((rounds, delivery.rounds()), (vec![0, 11], 2));
    }

    #[test]
    fn a_sample_counts_losses_and_limits_since_its_packet_was_sent() {
        let mut delivery = DeliveryRate::new(&path());
        delivery.on_sent(at(0), Bytes(1000));
        delivery.on_sent(at(1), Bytes(1000));
        delivery.mark_app_limited();
        delivery.on_sent(at(2), Bytes(1000));
        let first = delivery.on_ack(&answer(100, 0, 2), MIN_RTT).unwrap();
        assert!(!first.is_app_limited);
        // The packet sent at 1 us is lost, and its state is removed with it.
        let third = delivery.on_ack(&Ack { lost: 1, ..answer(102, 2, 0) }, MIN_RTT).unwrap();
        assert!(third.is_app_limited);
        assert_eq!(third.lost, 960.0);
        assert!(
            delivery.on_ack(&answer(103, 1, 0), MIN_RTT).is_none(),
            "a later packet overtook it"
        );
    }

    #[test]
    fn samples_are_limited_until_data_sent_after_the_limit_is_delivered() {
        let mut delivery = DeliveryRate::new(&path());
        delivery.on_sent(at(0), Bytes(1000));
        delivery.mark_app_limited();
        // All data in flight is delivered, but nothing sent later.
        for (us, is_app_limited) in [(0, false), (110, true), (220, false)] {
            let sample = delivery.on_ack(&answer(us + 100, us, 0), MIN_RTT).unwrap();
            assert_eq!(sample.is_app_limited, is_app_limited, "sent at {us} us");
            delivery.on_sent(at(us + 110), Bytes(1000));
        }
    }

    #[test]
    fn a_pipe_is_full_after_three_rounds_of_little_growth() {
        let mut full_pipe = FullPipe::new(1.25, 3);
        for (rate, expected) in
            [(1.0, false), (2.0, false), (2.4, false), (2.5, false), (2.6, false), (3.0, false)]
        {
            full_pipe.on_round(rate);
            assert_eq!(full_pipe.is_full(), expected, "{rate}");
        }
        full_pipe.on_round(3.1);
        assert!(full_pipe.is_full(), "three rounds below 1.25 times 2.5");
        full_pipe.restart(3.1);
        assert!(!full_pipe.is_full());
    }
}
