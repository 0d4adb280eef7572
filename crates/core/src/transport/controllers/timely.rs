//! TIMELY: controls the rate by the gradient of the RTT ([timely15] Algorithm 1).
//!
//! The initial rate and the meaning of the parameters follow [ecndelay16]. The paper does not give the
//! weight of the moving average: the authors' code fragment has 0.02, [ecndelay16] 0.875, marked as unsure.

use super::{
    Ack, AckPolicy, Allowance, CachedRate, Controller, DesignRates, Mechanism, PacingPolicy, Path,
    Reliability, Transport,
};
use crate::base::schema::{
    Problem, defaults, not_negative, positive, positive_fraction, positive_if_given,
};
use crate::base::units::{Bytes, Duration, Rate};
use crate::model::graph::Extent;
use crate::model::host_clock::Stamps;
use crate::model::packet::Format;
use crate::transport::blocks::path_scaled::{FlowRate, RateWindow, WindowSize};

crate::choices! {
    /// Transmission of a segment's packets.
    pub enum Pacing {
        /// Evenly spaced at the flow's rate.
        PerPacket = "per_packet",
        /// Back to back, followed by the pause that the rate requires.
        PerBurst = "per_burst",
    }
}

crate::choices! {
    /// Serialisation delay subtracted from an RTT sample.
    pub enum Excludes {
        /// Of all packets handed to the NIC and stamped together: the segment's for back-to-back
        /// bursts, else one packet's ([timely15]).
        Burst = "burst",
        /// One packet's, even with bursts ([ecndelay16], authors' code).
        Packet = "packet",
    }
}

crate::choices! {
    /// Initial rate of a flow.
    pub enum Start {
        /// Equal share of the line rate among the active flows of the sending host ([ecndelay16]:
        /// C / (N + 1)).
        FairShare = "fair_share",
        /// The line rate.
        LineRate = "line_rate",
        /// Final rate of the last flow between the same hosts, as if flows were messages over
        /// persistent connections ([timely15]). The first flow starts at an equal share.
        Remembered = "remembered",
    }
}

crate::choices! {
    /// ACKs that give an RTT sample.
    pub enum Sampling {
        /// The ACK of each segment.
        PerSegment = "per_segment",
        /// One ACK per RTT; segments have one packet (simulator of [hpcc19]).
        PerRtt = "per_rtt",
    }
}

crate::choices! {
    /// Consecutive samples that lead to hyperactive increase.
    pub enum HyperCounts {
        /// Negative gradients ([timely15]). Below `t_low` the increase stays `delta`.
        NegativeGradients = "negative_gradients",
        /// Increases, also those below `t_low` (simulator of [hpcc19]).
        Increases = "increases",
    }
}

/// Checks the order of the thresholds.
pub(super) fn check_thresholds(t_low: Duration, t_high: Duration) -> Result<(), Problem> {
    if t_low > t_high {
        return Err(Problem::new("t_low", format!("must not be above t_high, which is {t_high}")));
    }
    Ok(())
}

crate::parameters! {
    /// Segments of TIMELY and related schemes, and their pacing. Each segment gives one RTT sample.
    pub struct Segments {
        /// Segment size ([timely15]: 16 to 64 KB; [ecndelay16]: 16 KB).
        pub size: Bytes = Bytes(16_000), where positive;
        /// Transmission of a segment's packets ([ecndelay16]: figures per packet, simulator per
        /// burst).
        pub pacing: Pacing = Pacing::PerPacket;
        /// Rate of the packets within a burst, headers included ([timely15] §6.1: best at 700 Mb/s for
        /// bursts of 64 KB at a fair share of 500 Mb/s; none: back to back).
        pub spacing: Option<Rate> = None, where positive_if_given;
        /// Serialisation delay subtracted from an RTT sample.
        pub rtt_excludes: Excludes = Excludes::Burst;
        /// Initial rate of a flow.
        pub start: Start = Start::FairShare;
        /// Minimum rate ([timely15] gives none; [ecndelay16], authors' code: 1 % of the line rate).
        pub min_rate: FlowRate = FlowRate::from_mbps(10), where positive;
        /// ACKs that give an RTT sample.
        pub sampling: Sampling = Sampling::PerSegment;
        /// Window at line rate, which shrinks with the rate (TIMELY+w of [hpcc19]: 1 BDP; none: no window).
        /// Every packet is then acknowledged.
        pub window: Option<WindowSize> = None, where positive_if_given;
    }
    check |segments| {
        if segments.spacing.is_some() && segments.pacing == Pacing::PerPacket {
            let message = "is for bursts only: add `pacing = \"per_burst\"`, or remove spacing";
            return Err(Problem::new("spacing", message));
        }
        Ok(())
    }
}

crate::parameters! {
    /// Integral term for TIMELY. Own addition, to test if it would help; not part of [timely15].
    ///
    /// Between the thresholds each segment multiplies the rate by `1 - beta gradient - gain error`. The
    /// error is the relative deviation of the RTT from the reference. The rate accumulates these steps:
    /// the gradients sum to a proportional term of the RTT, the errors to an integral term.
    pub struct Integral {
        /// Target RTT without a segment's serialisation delay; from `t_low` to `t_high`.
        pub reference: Duration = Duration::from_micros(100), where positive;
        /// Fraction of the rate subtracted per segment at an error of 1.
        pub gain: f64 = 0.004, where positive_fraction;
        /// Limit of the absolute error. With the limits of the rate it prevents integral windup.
        pub bound: f64 = 1.0, where positive;
    }
}

impl Integral {
    /// Returns the fraction by which to reduce the rate at this RTT, in seconds.
    fn reduction(&self, rtt: f64) -> f64 {
        let reference = self.reference.seconds();
        self.gain * ((rtt - reference) / reference).clamp(-self.bound, self.bound)
    }
}

crate::parameters! {
    /// TIMELY: rate control by the gradient of the RTT ([timely15]).
    pub struct Config {
        /// Weight of the newest difference in the moving average of RTT differences (authors' code
        /// fragment: 0.02; [ecndelay16]: 0.875; [timely15] gives none).
        pub ewma_weight: f64 = 0.02, where positive_fraction;
        /// beta, the multiplicative decrease factor ([timely15]: 0.8).
        pub beta: f64 = 0.8, where positive_fraction;
        /// delta, the additive increase per segment ([timely15]: 10 Mb/s).
        pub delta: FlowRate = FlowRate::from_mbps(10), where positive;
        /// `T_low`: the rate only rises below this RTT ([timely15]: 50 us). If equal to `t_high` the
        /// gradient is not used.
        pub t_low: Duration = Duration::from_micros(50);
        /// `T_high`: the rate only falls above this RTT ([timely15]: 500 us).
        pub t_high: Duration = Duration::from_micros(500), where positive;
        /// Minimum RTT, which normalises the gradient ([ecndelay16]: 20 us).
        pub min_rtt: Duration = Duration::from_micros(20), where positive;
        /// If true, the distances of `t_low` and `t_high` from `min_rtt` count from the base RTT of the
        /// flow's path instead, and `min_rtt` is at least that base RTT (own choice: false).
        pub above_base_rtt: bool = false;
        /// Hyperactive increase starts at this number of consecutive negative gradients ([timely15]: 5)
        /// or increases.
        pub hyper_after: u32 = 5, where positive;
        /// Consecutive samples that lead to hyperactive increase.
        pub hyper_counts: HyperCounts = HyperCounts::NegativeGradients;
        /// Factor of delta in hyperactive increase ([timely15]: 5); 1 disables it.
        pub hyper_factor: f64 = 5.0, where positive;
        /// Minimum factor of the rate in one step (authors' code fragment: 0.5).
        pub least_factor: f64 = 0.0, where not_negative;
        /// Integral term, which replaces delta between the thresholds (none: TIMELY as published).
        pub integral: Option<Integral> = None;
        /// Segments and their pacing.
        pub segments: Segments = defaults();
        /// Loss recovery and retransmission timeouts.
        pub reliability: Reliability = Reliability::with_long_rto();
    }
    check Config::check
}

impl Config {
    fn check(&self) -> Result<(), Problem> {
        let Self { t_low, t_high, integral, .. } = self;
        check_thresholds(*t_low, *t_high)?;
        if let Some(Integral { reference, .. }) = integral
            && !(t_low..=t_high).contains(&reference)
        {
            let message = format!("must be from t_low to t_high: {t_low} to {t_high}");
            return Err(Problem::new("integral.reference", message));
        }
        Ok(())
    }
}

/// Returns the RTT of an empty network without a segment's serialisation delay.
pub(super) fn segment_base_rtt(path: &Path) -> Duration {
    let packet = path.line_rate.transmit(path.format.on_wire(path.format.payload));
    path.base_rtt.saturating_sub(packet)
}

/// Returns an RTT as far above the base RTT of a path as `rtt` is above `min_rtt`.
pub(super) fn above_base_rtt(rtt: Duration, min_rtt: Duration, path: &Path) -> Duration {
    segment_base_rtt(path) + rtt.saturating_sub(min_rtt)
}

/// Returns a warning if the threshold `name` is below the base RTT of the longest path.
pub(super) fn threshold_warning(
    (name, threshold): (&str, Duration),
    extent: &Extent,
    format: &Format,
) -> Option<String> {
    let base_rtt = extent.base_rtt(format);
    (threshold < base_rtt).then(|| {
        format!(
            "{name} is {threshold}, below the base RTT of the longest path, {base_rtt}: rates fall although \
             queues are empty; give `above_base_rtt = true`"
        )
    })
}

/// Returns the line rate of [timely15] if delta has its value.
pub(super) fn published_delta(delta: FlowRate) -> Option<DesignRates> {
    let is_published = delta == FlowRate::from_mbps(10);
    is_published.then(|| DesignRates::one("delta", Rate::from_gbps(10)))
}

impl Segments {
    /// Returns the packets of a segment.
    fn packets(&self, format: &Format) -> u32 {
        format.packets(self.size) as u32
    }

    /// Returns the mechanism of TIMELY and related schemes: one ACK per segment, without a window.
    pub(super) fn mechanism(&self, reliability: &Reliability, format: &Format) -> Mechanism {
        let packets = self.packets(format);
        let is_acked_whole = self.window.is_none() && self.sampling == Sampling::PerSegment;
        let endpoint = match self.window {
            None => Mechanism::paced(reliability),
            Some(_) => Mechanism::paced_window(reliability),
        };
        Mechanism {
            pacing: Some(PacingPolicy {
                burst: if self.pacing == Pacing::PerBurst { packets } else { 1 },
                spacing: self.spacing,
                unpaced: 0,
            }),
            acks: AckPolicy {
                every: if is_acked_whole { packets } else { 1 },
                ..AckPolicy::default()
            },
            ..endpoint
        }
    }
}

/// Rate and RTT measurement per segment, shared by TIMELY and related schemes.
pub(super) struct SegmentRate {
    /// Rate in bits per second.
    pub(super) rate: f64,
    min_rate: f64,
    pub(super) line_rate: f64,
    window: RateWindow,
    /// If true, the next flow between the same hosts starts at this flow's final rate.
    shares_rate: bool,
    ewma_weight: f64,
    min_rtt: f64,
    /// Subtracted from every RTT sample.
    serialisation: Duration,
    segment: u64,
    /// Payload acknowledged since the last completed segment.
    acked: u64,
    /// First segment of the sender that was not sent at the last sample, with one sample per RTT.
    round_end: Option<u32>,
    prev_rtt: Option<f64>,
    /// Moving average of RTT differences, in seconds.
    rtt_diff: f64,
}

/// RTT sample of one completed segment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SegmentSample {
    /// RTT without the segment's serialisation delay, in seconds.
    pub(super) rtt: f64,
    /// RTT gradient, normalised by the minimum RTT.
    pub(super) gradient: f64,
}

impl SegmentRate {
    pub(super) fn new(
        segments: &Segments,
        ewma_weight: f64,
        min_rtt: Duration,
        path: &Path,
    ) -> Self {
        let line_rate = path.line_rate.bps();
        let fair_share = line_rate / f64::from(path.other_flows + 1);
        let initial_rate = match segments.start {
            Start::FairShare => fair_share,
            Start::LineRate => line_rate,
            Start::Remembered => {
                path.cached_state.rate.map_or(fair_share, |state| state.rate * state.share)
            }
        };
        // The last packet of a burst queues behind the others only if packets are stamped when handed over.
        let is_stamped_together = segments.pacing == Pacing::PerBurst
            && segments.spacing.is_none()
            && path.stamps == Stamps::Handed
            && segments.rtt_excludes == Excludes::Burst;
        let excluded = if is_stamped_together { segments.size } else { path.format.payload };
        let packets = match segments.sampling {
            Sampling::PerSegment => segments.packets(&path.format),
            Sampling::PerRtt => 1,
        };
        Self {
            rate: path.initial_rate.map_or(initial_rate, |rate| rate.bps().min(line_rate)),
            min_rate: segments.min_rate.bps(line_rate).min(line_rate),
            line_rate,
            window: RateWindow::new(segments.window, path),
            shares_rate: segments.start == Start::Remembered,
            ewma_weight,
            min_rtt: min_rtt.seconds(),
            serialisation: path.line_rate.transmit(path.format.on_wire(excluded)),
            segment: u64::from(packets) * path.format.payload.0,
            acked: 0,
            round_end: (segments.sampling == Sampling::PerRtt).then_some(0),
            prev_rtt: None,
            rtt_diff: 0.0,
        }
    }

    /// Handles an ACK. Returns the sample of the segment that the ACK completes.
    pub(super) fn on_ack(&mut self, ack: &Ack) -> Option<SegmentSample> {
        self.acked += ack.bytes.0;
        if self.acked < self.segment {
            return None;
        }
        self.acked -= self.segment;
        if let Some(round_end) = &mut self.round_end {
            if ack.cumulative <= *round_end {
                return None;
            }
            *round_end = ack.next;
        }
        let rtt = ack.rtt.saturating_sub(self.serialisation).seconds();
        let new_rtt_diff = rtt - self.prev_rtt.replace(rtt).unwrap_or(rtt);
        self.rtt_diff += self.ewma_weight * (new_rtt_diff - self.rtt_diff);
        Some(SegmentSample { rtt, gradient: self.rtt_diff / self.min_rtt })
    }

    pub(super) fn set_rate(&mut self, rate: f64) {
        self.rate = rate.clamp(self.min_rate, self.line_rate);
    }

    /// Returns the rate, within the window.
    pub(super) fn allowance(&self) -> Allowance {
        self.window.allowance(self.rate)
    }

    /// Rate that the next flow between the same hosts may start at.
    pub(super) fn cached_rate(&self) -> Option<CachedRate> {
        self.shares_rate.then_some(CachedRate::new(self.rate))
    }

    pub(super) fn gauges(&self) -> Vec<(&'static str, f64)> {
        let rtt = self.prev_rtt.unwrap_or(0.0);
        vec![("rate_bps", self.rate), ("rtt_s", rtt), ("gradient", self.rtt_diff / self.min_rtt)]
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        let mut config = self.clone();
        if self.above_base_rtt {
            let shift = |rtt: Duration| above_base_rtt(rtt, self.min_rtt, path);
            (config.t_low, config.t_high) = (shift(self.t_low), shift(self.t_high));
            if let Some(integral) = &mut config.integral {
                integral.reference = shift(integral.reference);
            }
            config.min_rtt = self.min_rtt.max(segment_base_rtt(path));
        }
        let control = SegmentRate::new(&self.segments, self.ewma_weight, config.min_rtt, path);
        Box::new(Timely { config, control, consecutive: 0 })
    }

    fn design_rates(&self) -> Option<DesignRates> {
        published_delta(self.delta)
    }

    fn needs_lossless_network(&self) -> bool {
        true
    }

    fn takes_initial_rate(&self) -> bool {
        true
    }

    fn min_rate(&self) -> Option<(&'static str, FlowRate)> {
        Some(("segments.min_rate", self.segments.min_rate))
    }

    fn mechanism(&self, format: &Format) -> Mechanism {
        self.segments.mechanism(&self.reliability, format)
    }

    fn segment_size(&self) -> Option<Bytes> {
        Some(self.segments.size)
    }

    fn warnings(&self, extent: &Extent, format: &Format) -> Vec<String> {
        let warning = || threshold_warning(("t_high", self.t_high), extent, format);
        if self.above_base_rtt { Vec::new() } else { warning().into_iter().collect() }
    }
}

/// State of one flow.
struct Timely {
    config: Config,
    control: SegmentRate,
    /// Consecutive negative gradients, or increases.
    consecutive: u32,
}

impl Controller for Timely {
    fn on_ack(&mut self, ack: &Ack) {
        let Some(SegmentSample { rtt, gradient }) = self.control.on_ack(ack) else { return };
        let Config { beta, delta, .. } = self.config;
        let (t_low, t_high) = (self.config.t_low.seconds(), self.config.t_high.seconds());
        let (rate, delta) = (self.control.rate, delta.bps(self.control.line_rate));
        let counts = match self.config.hyper_counts {
            HyperCounts::NegativeGradients => gradient < 0.0,
            HyperCounts::Increases => rtt < t_low || (rtt <= t_high && gradient <= 0.0),
        };
        self.consecutive = if counts { self.consecutive + 1 } else { 0 };
        let is_hyper = self.consecutive >= self.config.hyper_after
            && (rtt >= t_low || self.config.hyper_counts == HyperCounts::Increases);
        let increase = if is_hyper { self.config.hyper_factor * delta } else { delta };
        // [timely15] Algorithm 1.
        let new_rate = if rtt < t_low {
            rate + increase
        } else if rtt > t_high || self.config.t_low == self.config.t_high {
            // With equal thresholds only the RTT counts, also at the threshold itself.
            rate * (1.0 - beta * (1.0 - t_high / rtt))
        } else if let Some(integral) = &self.config.integral {
            rate * (1.0 - beta * gradient - integral.reduction(rtt))
        } else if gradient <= 0.0 {
            rate + increase
        } else {
            rate * (1.0 - beta * gradient)
        };
        self.control.set_rate(new_rate.max(rate * self.config.least_factor));
    }

    fn allowance(&self) -> Allowance {
        self.control.allowance()
    }

    fn cached_rate(&self) -> Option<CachedRate> {
        self.control.cached_rate()
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        self.control.gauges()
    }
}

#[cfg(test)]
pub(super) mod tests;
