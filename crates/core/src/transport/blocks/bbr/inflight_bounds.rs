//! BBRv3's bounds on bandwidth and inflight, which it derives from losses.
//!
//! Source: [bbr26], section on updating the model upon loss. The short-term bounds `bw_lo` and `inflight_lo`
//! follow the data delivered in a round with losses, and are reset before the next probe. The long-term
//! bound `inflight_hi` is the data in flight when a probe lost too much; probes with little loss raise it.

use super::delivery_rate::RateSample;

/// Loss rate tolerated while a flow probes.
#[derive(Clone, Copy, Debug)]
pub struct LossTolerance {
    /// Tolerated share of the data in flight (`BBR.LossThresh`).
    pub loss_thresh: f64,
    /// True if recovery detects more than one loss per round. If not, any loss is too much.
    pub counts_losses: bool,
}

impl LossTolerance {
    /// True if more data was lost since the packet was sent.
    pub fn is_exceeded(&self, sample: &RateSample) -> bool {
        let allowed = if self.counts_losses { self.loss_thresh * sample.in_flight } else { 0.0 };
        sample.lost > allowed
    }

    /// Returns the data in flight when losses exceeded the share; `newly_lost` is what the ACK reports lost.
    pub fn inflight_at_threshold(&self, sample: &RateSample, newly_lost: f64) -> f64 {
        let before = (sample.in_flight - newly_lost).max(0.0);
        let more = (self.loss_thresh * before - (sample.lost - newly_lost)).max(0.0)
            / (1.0 - self.loss_thresh);
        before + more
    }
}

/// Maximum delivery rate, maximum data delivered, and losses of a loss round.
#[derive(Clone, Copy, Debug, Default)]
pub struct LossRound {
    /// The round ends with the ACK of a packet that was sent after this total had been delivered.
    round_end: u64,
    has_loss: bool,
    /// Number of ACKs that reported losses.
    pub loss_events: u32,
    /// Maximum delivery rate, in bytes per second.
    pub bw_latest: f64,
    /// Maximum data delivered in one RTT, in bytes.
    pub inflight_latest: f64,
}

impl LossRound {
    /// Handles an ACK that reports losses, after `delivered` bytes in all.
    pub fn on_loss(&mut self, delivered: u64) {
        if !self.has_loss {
            (self.has_loss, self.round_end) = (true, delivered);
        }
        self.loss_events += 1;
    }

    /// Handles a sample. Returns true if the round is over.
    pub fn on_sample(&mut self, sample: &RateSample, delivered: u64) -> bool {
        self.bw_latest = self.bw_latest.max(sample.rate.unwrap_or(0.0));
        self.inflight_latest = self.inflight_latest.max(sample.delivered);
        let is_over = sample.prior_delivered >= self.round_end;
        if is_over {
            self.round_end = delivered;
        }
        is_over
    }

    /// True if there were losses in the round.
    pub fn has_loss(&self) -> bool {
        self.has_loss
    }

    /// Forgets the losses of the round.
    pub fn forget_losses(&mut self) {
        self.has_loss = false;
    }

    /// Resets all but the end of the round.
    pub fn reset(&mut self) {
        *self = Self { round_end: self.round_end, ..Self::default() };
    }

    /// Starts the next round with this sample.
    pub fn start_next(&mut self, sample: &RateSample) {
        self.reset();
        (self.bw_latest, self.inflight_latest) = (sample.rate.unwrap_or(0.0), sample.delivered);
    }
}

/// Bounds on bandwidth, in bytes per second, and on inflight, in bytes; infinite if unset.
#[derive(Clone, Copy, Debug)]
pub struct InflightBounds {
    packet: f64,
    min_cwnd: f64,
    bw_lo: f64,
    inflight_lo: f64,
    inflight_hi: f64,
    /// Packets by which `inflight_hi` grows in this round of a probe.
    packets_per_round: f64,
    /// Payload acknowledged since `inflight_hi` last grew, and the payload per packet of growth.
    probe_up_acked: f64,
    acked_per_packet: f64,
}

/// Bounds before a loss that may turn out to be spurious.
#[derive(Clone, Copy, Debug, Default)]
pub struct SavedBounds {
    bw_lo: f64,
    inflight_lo: f64,
    inflight_hi: f64,
}

impl InflightBounds {
    /// Bounds that are all unset; `min_cwnd` is the minimum of `inflight_hi` with headroom.
    pub fn new(packet: f64, min_cwnd: f64) -> Self {
        Self {
            packet,
            min_cwnd,
            bw_lo: f64::INFINITY,
            inflight_lo: f64::INFINITY,
            inflight_hi: f64::INFINITY,
            packets_per_round: 1.0,
            probe_up_acked: 0.0,
            acked_per_packet: f64::INFINITY,
        }
    }

    /// Short-term bound on the bandwidth.
    pub fn bw_lo(&self) -> f64 {
        self.bw_lo
    }

    /// Short-term bound on inflight.
    pub fn inflight_lo(&self) -> f64 {
        self.inflight_lo
    }

    /// Long-term bound on inflight.
    pub fn inflight_hi(&self) -> f64 {
        self.inflight_hi
    }

    /// Long-term bound less the headroom left to other flows.
    pub fn with_headroom(&self, share: f64) -> f64 {
        if self.inflight_hi.is_finite() {
            (self.inflight_hi - (share * self.inflight_hi).max(self.packet)).max(self.min_cwnd)
        } else {
            f64::INFINITY
        }
    }

    /// Sets the long-term bound.
    pub fn set_inflight_hi(&mut self, in_flight: f64) {
        self.inflight_hi = in_flight;
    }

    /// Raises the long-term bound to data in flight that did not lose too much.
    pub fn raise_inflight_hi(&mut self, in_flight: f64) {
        self.inflight_hi = self.inflight_hi.max(in_flight);
    }

    /// Lowers the short-term bounds after a round with losses, to the data delivered in it but at most by the
    /// factor `beta`. Unset bounds start from the bandwidth and the window.
    pub fn lower_short_term(&mut self, round: &LossRound, beta: f64, bandwidth: f64, cwnd: f64) {
        let bound_or = |bound: f64, other| if bound.is_finite() { bound } else { other };
        self.bw_lo = round.bw_latest.max(beta * bound_or(self.bw_lo, bandwidth));
        self.inflight_lo = round.inflight_latest.max(beta * bound_or(self.inflight_lo, cwnd));
    }

    /// Resets the short-term bounds.
    pub fn reset_short_term(&mut self) {
        (self.bw_lo, self.inflight_lo) = (f64::INFINITY, f64::INFINITY);
    }

    /// Returns the bounds to restore if a loss turns out to be spurious.
    pub fn save(&self) -> SavedBounds {
        let Self { bw_lo, inflight_lo, inflight_hi, .. } = *self;
        SavedBounds { bw_lo, inflight_lo, inflight_hi }
    }

    /// Raises the bounds to the saved ones.
    pub fn restore(&mut self, saved: SavedBounds) {
        self.bw_lo = self.bw_lo.max(saved.bw_lo);
        self.inflight_lo = self.inflight_lo.max(saved.inflight_lo);
        self.inflight_hi = self.inflight_hi.max(saved.inflight_hi);
    }

    /// Starts the growth of `inflight_hi` in a new probe.
    pub fn begin_probe_up(&mut self, cwnd: f64) {
        (self.packets_per_round, self.probe_up_acked) = (1.0, 0.0);
        self.acked_per_packet = cwnd.max(self.packet);
    }

    /// Raises `inflight_hi` for data acknowledged while a probe used it fully. The increase is 1, 2, 4, …
    /// packets per round.
    pub fn probe_inflight_hi_upward(&mut self, acked: f64, cwnd: f64, starts_round: bool) {
        self.probe_up_acked += acked;
        let packets = (self.probe_up_acked / self.acked_per_packet).floor();
        self.probe_up_acked -= packets * self.acked_per_packet;
        self.inflight_hi += packets * self.packet;
        if starts_round {
            self.packets_per_round = (self.packets_per_round * 2.0).min(f64::from(1 << 30));
            self.acked_per_packet = (cwnd / self.packets_per_round).max(self.packet);
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::float_cmp, reason = "whole numbers of bytes are exact")]

    use super::*;
    use crate::transport::fixture::SAMPLE;

    const PACKET: f64 = 1000.0;

    fn sample(rate: f64, packets: f64) -> RateSample {
        RateSample { rate: Some(rate), delivered: packets * PACKET, prior_delivered: 500, ..SAMPLE }
    }

    #[test]
    fn a_round_with_losses_sets_the_short_term_bounds_to_the_data_delivered_or_to_beta() {
        let mut bounds = InflightBounds::new(PACKET, 4.0 * PACKET);
        let mut round = LossRound::default();
        round.start_next(&sample(11e6, 80.0));
        bounds.lower_short_term(&round, 0.7, 12.5e6, 200.0 * PACKET);
        assert_eq!((bounds.bw_lo(), bounds.inflight_lo()), (11e6, 140.0 * PACKET));
        round.start_next(&sample(1e6, 120.0));
        bounds.lower_short_term(&round, 0.7, 12.5e6, 50.0 * PACKET);
        assert_eq!((bounds.bw_lo(), bounds.inflight_lo()), (0.7 * 11e6, 120.0 * PACKET));
        bounds.reset_short_term();
        assert!(bounds.bw_lo().is_infinite() && bounds.inflight_lo().is_infinite());
    }

    #[test]
    fn a_loss_round_starts_at_its_first_loss() {
        let mut round = LossRound::default();
        assert!(round.on_sample(&sample(1e6, 1.0), 100));
        round.on_loss(600);
        round.on_loss(700);
        assert!(!round.on_sample(&sample(3e6, 1.0), 800), "sent before the loss");
        assert!(round.on_sample(&RateSample { prior_delivered: 600, ..sample(2e6, 4.0) }, 900));
        assert_eq!((round.has_loss(), round.loss_events), (true, 2));
        assert_eq!((round.bw_latest, round.inflight_latest), (3e6, 4000.0));
        round.start_next(&sample(2e6, 4.0));
        assert_eq!((round.has_loss(), round.loss_events, round.bw_latest), (false, 0, 2e6));
    }

    #[test]
    fn headroom_is_a_share_of_inflight_hi_or_one_packet() {
        let mut bounds = InflightBounds::new(PACKET, 4.0 * PACKET);
        assert!(bounds.with_headroom(0.15).is_infinite());
        for (inflight_hi, expected) in [(100.0, 85.0), (6.0, 5.0), (4.0, 4.0)] {
            bounds.set_inflight_hi(inflight_hi * PACKET);
            assert_eq!(bounds.with_headroom(0.15), expected * PACKET);
        }
    }

    #[test]
    fn a_probe_raises_inflight_hi_by_one_two_and_four_packets_per_round() {
        let mut bounds = InflightBounds::new(PACKET, 4.0 * PACKET);
        bounds.set_inflight_hi(128.0 * PACKET);
        bounds.begin_probe_up(128.0 * PACKET);
        for packets in [129.0, 131.0, 135.0] {
            (1..=128)
                .for_each(|i| bounds.probe_inflight_hi_upward(PACKET, 128.0 * PACKET, i == 128));
            assert_eq!(bounds.inflight_hi(), packets * PACKET);
        }
    }
}
