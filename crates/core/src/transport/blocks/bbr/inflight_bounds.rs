//! What losses teach: bounds on what is in flight, for the next round trips and in the long run.
//!
//! Source: [bbr26], its section on updating the model upon loss. Short-term bounds follow what came through
//! in a round trip with losses, and are forgotten before the next probe; the long-term bound is what was in
//! flight when a probe lost too much, and probes that lose little raise it.

use super::delivery_rate::Sample;

/// How much may be lost while a flow probes.
#[derive(Clone, Copy, Debug)]
pub struct Tolerance {
    /// Share of what is in flight.
    pub share: f64,
    /// Whether more than one loss a round trip can be seen; if not, any is too much.
    pub tells_each_loss: bool,
}

impl Tolerance {
    /// Whether more has been lost since a packet left.
    pub fn is_exceeded(&self, sample: &Sample) -> bool {
        let allowed = if self.tells_each_loss { self.share * sample.in_flight } else { 0.0 };
        sample.lost > allowed
    }

    /// What was in flight when losses crossed the share; the last ACK told of so much of them.
    pub fn crossing(&self, sample: &Sample, now_lost: f64) -> f64 {
        let before = (sample.in_flight - now_lost).max(0.0);
        let left = (self.share * before - (sample.lost - now_lost)).max(0.0) / (1.0 - self.share);
        before + left
    }
}

/// The largest rate and the most data that came through, and what was lost, in a round trip.
#[derive(Clone, Copy, Debug, Default)]
pub struct LossRound {
    /// It ends with the ACK of a packet that left after so much had been delivered.
    ends: u64,
    has_loss: bool,
    /// ACKs that told of losses.
    pub events: u32,
    /// The largest rate, in bytes a second.
    pub rate: f64,
    /// The most that came between two ACKs a round trip apart, in bytes.
    pub delivered: f64,
}

impl LossRound {
    /// An ACK tells of losses, after so much has been delivered in all.
    pub fn on_loss(&mut self, delivered: u64) {
        if !self.has_loss {
            (self.has_loss, self.ends) = (true, delivered);
        }
        self.events += 1;
    }

    /// Takes a sample in; says whether the round trip is over.
    pub fn on_sample(&mut self, sample: &Sample, delivered: u64) -> bool {
        self.rate = self.rate.max(sample.rate.unwrap_or(0.0));
        self.delivered = self.delivered.max(sample.delivered);
        let is_over = sample.delivered_before >= self.ends;
        if is_over {
            self.ends = delivered;
        }
        is_over
    }

    /// Whether something was lost.
    pub fn has_loss(&self) -> bool {
        self.has_loss
    }

    /// Forgets all but when it ends.
    pub fn forget(&mut self) {
        *self = Self { ends: self.ends, ..Self::default() };
    }

    /// The next round trip, which this sample begins.
    pub fn go_on(&mut self, sample: &Sample) {
        self.forget();
        (self.rate, self.delivered) = (sample.rate.unwrap_or(0.0), sample.delivered);
    }
}

/// Bounds on the bandwidth, in bytes a second, and on what is in flight, in bytes; infinite for none.
#[derive(Clone, Copy, Debug)]
pub struct InflightBounds {
    packet: f64,
    least: f64,
    rate: f64,
    in_flight: f64,
    long: f64,
    /// By how many packets the long-term bound grows in this round trip of a probe.
    growth: f64,
    /// Payload acknowledged since it last grew, and how much that takes for a packet more.
    acked: f64,
    per_packet: f64,
}

impl InflightBounds {
    /// None yet; what is in flight may always be `least`.
    pub fn new(packet: f64, least: f64) -> Self {
        Self {
            packet,
            least,
            rate: f64::INFINITY,
            in_flight: f64::INFINITY,
            long: f64::INFINITY,
            growth: 1.0,
            acked: 0.0,
            per_packet: f64::INFINITY,
        }
    }

    /// The short-term bound on the bandwidth.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// The short-term bound on what is in flight.
    pub fn in_flight(&self) -> f64 {
        self.in_flight
    }

    /// The long-term bound on what is in flight.
    pub fn long(&self) -> f64 {
        self.long
    }

    /// The long-term bound less a share of it, which is left to others.
    pub fn with_headroom(&self, share: f64) -> f64 {
        if self.long.is_finite() {
            (self.long - (share * self.long).max(self.packet)).max(self.least)
        } else {
            f64::INFINITY
        }
    }

    /// Sets the long-term bound.
    pub fn set_long(&mut self, in_flight: f64) {
        self.long = in_flight;
    }

    /// So much was in flight without harm.
    pub fn raise(&mut self, in_flight: f64) {
        self.long = self.long.max(in_flight);
    }

    /// After a round trip with losses: what came through in it, but at least `beta` of the bounds before.
    /// Where there are none yet, the bandwidth and the window stand for them.
    pub fn shorten(&mut self, round: &LossRound, beta: f64, bandwidth: f64, window: f64) {
        let before = |bound: f64, other| if bound.is_finite() { bound } else { other };
        self.rate = round.rate.max(beta * before(self.rate, bandwidth));
        self.in_flight = round.delivered.max(beta * before(self.in_flight, window));
    }

    /// Forgets the short-term bounds.
    pub fn forget_short(&mut self) {
        (self.rate, self.in_flight) = (f64::INFINITY, f64::INFINITY);
    }

    /// A probe begins.
    pub fn begin_climb(&mut self, window: f64) {
        (self.growth, self.acked) = (1.0, 0.0);
        self.per_packet = window.max(self.packet);
    }

    /// So much has been acknowledged while a probe filled the long-term bound, which is its window. It grows
    /// by 1, 2, 4, ... packets a round trip.
    pub fn climb(&mut self, acked: f64, window: f64, starts_round: bool) {
        self.acked += acked;
        let packets = (self.acked / self.per_packet).floor();
        self.acked -= packets * self.per_packet;
        self.long += packets * self.packet;
        if starts_round {
            self.growth = (self.growth * 2.0).min(f64::from(1 << 30));
            self.per_packet = (window / self.growth).max(self.packet);
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::float_cmp, reason = "whole numbers of bytes are exact")]

    use super::*;
    use crate::transport::fixture::SAMPLE;

    const PACKET: f64 = 1000.0;

    fn came(rate: f64, packets: f64) -> Sample {
        Sample { rate: Some(rate), delivered: packets * PACKET, delivered_before: 500, ..SAMPLE }
    }

    #[test]
    fn a_round_trip_with_losses_leaves_what_came_through_but_seven_tenths_at_least() {
        let mut bounds = InflightBounds::new(PACKET, 4.0 * PACKET);
        let mut round = LossRound::default();
        round.go_on(&came(11e6, 80.0));
        bounds.shorten(&round, 0.7, 12.5e6, 200.0 * PACKET);
        assert_eq!((bounds.rate(), bounds.in_flight()), (11e6, 140.0 * PACKET));
        round.go_on(&came(1e6, 120.0));
        bounds.shorten(&round, 0.7, 12.5e6, 50.0 * PACKET);
        assert_eq!((bounds.rate(), bounds.in_flight()), (0.7 * 11e6, 120.0 * PACKET));
        bounds.forget_short();
        assert!(bounds.rate().is_infinite() && bounds.in_flight().is_infinite());
    }

    #[test]
    fn a_round_trip_counts_from_its_first_loss() {
        let mut round = LossRound::default();
        assert!(round.on_sample(&came(1e6, 1.0), 100));
        round.on_loss(600);
        round.on_loss(700);
        assert!(!round.on_sample(&came(3e6, 1.0), 800), "the packet left before the loss");
        assert!(round.on_sample(&Sample { delivered_before: 600, ..came(2e6, 4.0) }, 900));
        assert_eq!((round.has_loss(), round.events), (true, 2));
        assert_eq!((round.rate, round.delivered), (3e6, 4000.0));
        round.go_on(&came(2e6, 4.0));
        assert_eq!((round.has_loss(), round.events, round.rate), (false, 0, 2e6));
    }

    #[test]
    fn a_share_of_the_long_term_bound_is_left_to_others_but_a_packet_at_least() {
        let mut bounds = InflightBounds::new(PACKET, 4.0 * PACKET);
        assert!(bounds.with_headroom(0.15).is_infinite());
        for (long, left) in [(100.0, 85.0), (6.0, 5.0), (4.0, 4.0)] {
            bounds.set_long(long * PACKET);
            assert_eq!(bounds.with_headroom(0.15), left * PACKET);
        }
    }

    #[test]
    fn a_probe_raises_its_bound_by_one_two_and_four_packets_in_a_round_trip() {
        let mut bounds = InflightBounds::new(PACKET, 4.0 * PACKET);
        bounds.set_long(128.0 * PACKET);
        bounds.begin_climb(128.0 * PACKET);
        for packets in [129.0, 131.0, 135.0] {
            (1..=128).for_each(|i| bounds.climb(PACKET, 128.0 * PACKET, i == 128));
            assert_eq!(bounds.long(), packets * PACKET);
        }
    }
}
