//! TIMELY: a rate steered by the gradient of the round-trip time.
//!
//! Source: [timely15] Algorithm 1; the starting rate and the meaning of its parameters as
//! [ecndelay16] restates them. The paper leaves the weight of the moving average open; [ecndelay16]
//! uses 0.875, the authors' own code fragment 0.02, and the choice matters (docs/design.md).

use super::{Ack, Allowance, CachedPathState, Controller, Mechanism, Path, Reliability, Transport};
use crate::base::schema::{
    Problem, defaults, not_negative, positive, positive_fraction, positive_if_given,
};
use crate::base::units::{Bytes, Duration, Rate};
use crate::model::host_clock::Stamps;
use crate::model::packet::Format;

crate::choices! {
    /// How a segment's packets leave.
    pub enum Pacing {
        /// Evenly spaced at the flow's rate.
        PerPacket = "per_packet",
        /// The segment at once, and then the pause that the rate asks for.
        PerBurst = "per_burst",
    }
}

crate::choices! {
    /// Which serialisation is taken off a measured round-trip time.
    pub enum Excludes {
        /// That of all packets that are handed over and stamped together: the segment's with bursts
        /// that leave at once, else one packet's ([timely15]).
        Burst = "burst",
        /// One packet's, even with bursts ([ecndelay16], authors' code).
        Packet = "packet",
    }
}

crate::choices! {
    /// The rate that a flow starts at.
    pub enum Start {
        /// An equal share of the line rate among the flows in progress at the sending host
        /// ([ecndelay16]: C / (N + 1)).
        FairShare = "fair_share",
        /// The line rate.
        LineRate = "line_rate",
        /// That of the last flow to end between the same hosts, as it was then: as if flows were messages
        /// over connections that last ([timely15]). The first starts at an equal share.
        Remembered = "remembered",
    }
}

/// Refuses thresholds out of order.
pub(super) fn check_thresholds(t_low: Duration, t_high: Duration) -> Result<(), Problem> {
    if t_low > t_high {
        return Err(Problem::new("t_low", format!("must not be above t_high, which is {t_high}")));
    }
    Ok(())
}

crate::parameters! {
    /// How TIMELY and its kin cut data into segments, each of which gives one round-trip time.
    pub struct Segments {
        /// Length of a segment ([timely15]: 16 to 64 KB; [ecndelay16]: 16 KB).
        pub size: Bytes = Bytes(16_000), where positive;
        /// How its packets leave ([ecndelay16]: its figures space packets, its simulator sends
        /// bursts).
        pub pacing: Pacing = Pacing::PerPacket;
        /// The rate, headers included, at which the packets of a burst follow one another ([timely15]
        /// §6.1: best at 700 Mb/s for bursts of 64 KB at a fair share of 500 Mb/s); none for at once.
        pub spacing: Option<Rate> = None, where positive_if_given;
        /// Which serialisation is taken off a measured round-trip time.
        pub rtt_excludes: Excludes = Excludes::Burst;
        /// The rate that a flow starts at.
        pub start: Start = Start::FairShare;
        /// Least rate ([timely15] gives none; [ecndelay16], authors' code: 1 % of the line rate).
        pub min_rate: Rate = Rate::from_mbps(10), where positive;
    }
    check |segments| {
        if segments.spacing.is_some() && segments.pacing == Pacing::PerPacket {
            let message = "is for bursts: give `pacing = \"per_burst\"` too, or leave it out";
            return Err(Problem::new("spacing", message));
        }
        Ok(())
    }
}

crate::parameters! {
    /// An integral term for TIMELY: our own answer to whether one would help, not of [timely15].
    ///
    /// Between the thresholds each segment multiplies the rate by `1 - beta gradient - gain error`, where
    /// the error is how far the round-trip time is above the reference, as a share of that. The rate
    /// itself adds up these steps, and so the differences to a part in proportion to the round-trip
    /// time, and the errors to an integral.
    pub struct Integral {
        /// The round-trip time, without a segment's serialisation, that the queue is to settle at; from
        /// `t_low` to `t_high`.
        pub reference: Duration = Duration::from_micros(100), where positive;
        /// Share of the rate that one segment with an error of 1 takes.
        pub gain: f64 = 0.004, where positive_fraction;
        /// Most that an error counts for, either way. Together with the bounds of the rate it keeps
        /// the integral from winding up.
        pub bound: f64 = 1.0, where positive;
    }
}

impl Integral {
    /// The share of the rate to give up after a round-trip time in seconds.
    fn cut(&self, rtt: f64) -> f64 {
        let reference = self.reference.seconds();
        self.gain * ((rtt - reference) / reference).clamp(-self.bound, self.bound)
    }
}

crate::parameters! {
    /// TIMELY: rate control by the gradient of the round-trip time ([timely15]).
    pub struct Config {
        /// Weight of the newest difference in the moving average of round-trip differences
        /// ([ecndelay16]: 0.875; [timely15] does not say).
        pub ewma_weight: f64 = 0.875, where positive_fraction;
        /// beta, how strongly a rising round-trip time cuts the rate ([timely15]: 0.8).
        pub beta: f64 = 0.8, where positive_fraction;
        /// delta, the additive increase of a step ([timely15]: 10 Mb/s).
        pub delta: Rate = Rate::from_mbps(10), where positive;
        /// Below this the rate only rises ([timely15]: 50 us); equal to `t_high` it leaves the gradient no
        /// say.
        pub t_low: Duration = Duration::from_micros(50);
        /// Above this the rate only falls ([timely15]: 500 us).
        pub t_high: Duration = Duration::from_micros(500), where positive;
        /// The round-trip time that normalises the gradient ([ecndelay16]: 20 us).
        pub min_rtt: Duration = Duration::from_micros(20), where positive;
        /// Hyper increase sets in after so many negative gradients in a row ([timely15]: 5).
        pub hyper_after: u32 = 5, where positive;
        /// It multiplies delta by this ([timely15]: 5); 1 switches it off.
        pub hyper_factor: f64 = 5.0, where positive;
        /// A step never cuts the rate below this share of itself (authors' code fragment: 0.5).
        pub least_factor: f64 = 0.0, where not_negative;
        /// An integral term, which between the thresholds takes the place of delta; none for TIMELY as
        /// published.
        pub integral: Option<Integral> = None;
        /// Segments and their pacing.
        pub segments: Segments = defaults();
        /// How data is made reliable.
        pub reliability: Reliability = Reliability::patient();
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

impl Segments {
    fn packets(&self, format: &Format) -> u32 {
        format.packets(self.size) as u32
    }

    /// The mechanism under TIMELY's kin: one ACK a segment.
    pub(super) fn mechanism(&self, reliability: &Reliability, format: &Format) -> Mechanism {
        let packets = self.packets(format);
        Mechanism {
            burst: Some(if self.pacing == Pacing::PerBurst { packets } else { 1 }),
            spacing: self.spacing,
            ack_every: packets,
            ..Mechanism::paced(reliability)
        }
    }
}

/// A rate and the measurements that steer it: what TIMELY and its kin share.
pub(super) struct Engine {
    /// The rate in bits a second.
    pub(super) rate: f64,
    least: f64,
    most: f64,
    /// Whether the next flow between the same hosts starts at the rate that this ends at.
    remembers: bool,
    ewma_weight: f64,
    min_rtt: f64,
    /// Taken off every measured round-trip time.
    serialisation: Duration,
    segment: u64,
    /// Payload acknowledged since the last completed segment.
    acked: u64,
    previous_rtt: Option<f64>,
    /// Moving average of round-trip differences, in seconds.
    difference: f64,
}

/// What one completed segment tells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Completion {
    /// Round-trip time without the segment's own serialisation, in seconds.
    pub(super) rtt: f64,
    /// Normalised gradient.
    pub(super) gradient: f64,
}

impl Engine {
    pub(super) fn new(
        segments: &Segments,
        ewma_weight: f64,
        min_rtt: Duration,
        path: &Path,
    ) -> Self {
        let line = path.line_rate.bps();
        let fair_share = line / f64::from(path.others + 1);
        let own_choice = match segments.start {
            Start::FairShare => fair_share,
            Start::LineRate => line,
            Start::Remembered => path.memo.map_or(fair_share, |memo| memo.rate * memo.share),
        };
        // The last packet of a burst waits for the others only if it is stamped when all are handed over.
        let is_behind = segments.pacing == Pacing::PerBurst
            && segments.spacing.is_none()
            && path.stamps == Stamps::Handed
            && segments.rtt_excludes == Excludes::Burst;
        let together = if is_behind { segments.size } else { path.format.payload };
        let payload = path.format.payload.0;
        Self {
            rate: path.initial_rate.map_or(own_choice, |rate| rate.bps().min(line)),
            least: segments.min_rate.bps().min(line),
            most: line,
            remembers: segments.start == Start::Remembered,
            ewma_weight,
            min_rtt: min_rtt.seconds(),
            serialisation: path.line_rate.transmit(path.format.on_wire(together)),
            segment: u64::from(segments.packets(&path.format)) * payload,
            acked: 0,
            previous_rtt: None,
            difference: 0.0,
        }
    }

    /// Takes an ACK in; if it completes a segment, says what that tells.
    pub(super) fn complete(&mut self, ack: &Ack) -> Option<Completion> {
        self.acked += ack.bytes.0;
        if self.acked < self.segment {
            return None;
        }
        self.acked -= self.segment;
        let rtt = ack.rtt.saturating_sub(self.serialisation).seconds();
        let newest = rtt - self.previous_rtt.replace(rtt).unwrap_or(rtt);
        self.difference += self.ewma_weight * (newest - self.difference);
        Some(Completion { rtt, gradient: self.difference / self.min_rtt })
    }

    pub(super) fn set_rate(&mut self, rate: f64) {
        self.rate = rate.clamp(self.least, self.most);
    }

    /// What the next flow between the same hosts may remember.
    pub(super) fn memo(&self) -> Option<CachedPathState> {
        self.remembers.then_some(CachedPathState::of_rate(self.rate))
    }

    pub(super) fn gauges(&self) -> Vec<(&'static str, f64)> {
        let rtt = self.previous_rtt.unwrap_or(0.0);
        vec![("rate_bps", self.rate), ("rtt_s", rtt), ("gradient", self.difference / self.min_rtt)]
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        let engine = Engine::new(&self.segments, self.ewma_weight, self.min_rtt, path);
        Box::new(Timely { config: self.clone(), engine, negative_in_a_row: 0 })
    }

    fn mechanism(&self, format: &Format) -> Mechanism {
        self.segments.mechanism(&self.reliability, format)
    }

    fn segment(&self) -> Option<Bytes> {
        Some(self.segments.size)
    }
}

/// The state of one flow.
struct Timely {
    config: Config,
    engine: Engine,
    negative_in_a_row: u32,
}

impl Controller for Timely {
    fn on_ack(&mut self, ack: &Ack) {
        let Some(Completion { rtt, gradient }) = self.engine.complete(ack) else { return };
        let Config { beta, delta, .. } = self.config;
        let (t_low, t_high) = (self.config.t_low.seconds(), self.config.t_high.seconds());
        let (rate, delta) = (self.engine.rate, delta.bps());
        self.negative_in_a_row = if gradient < 0.0 { self.negative_in_a_row + 1 } else { 0 };
        // [timely15] Algorithm 1.
        let wanted = if rtt < t_low {
            rate + delta
        } else if rtt > t_high || self.config.t_low == self.config.t_high {
            // With equal thresholds only the queue's size counts, at the threshold itself too.
            rate * (1.0 - beta * (1.0 - t_high / rtt))
        } else if let Some(integral) = &self.config.integral {
            rate * (1.0 - beta * gradient - integral.cut(rtt))
        } else if gradient <= 0.0 {
            let is_hyper = self.negative_in_a_row >= self.config.hyper_after;
            rate + if is_hyper { self.config.hyper_factor * delta } else { delta }
        } else {
            rate * (1.0 - beta * gradient)
        };
        self.engine.set_rate(wanted.max(rate * self.config.least_factor));
    }

    fn allowance(&self) -> Allowance {
        Allowance::rate(self.engine.rate)
    }

    fn memo(&self) -> Option<CachedPathState> {
        self.engine.memo()
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        self.engine.gauges()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::base::schema::Parameter;
    use crate::transport::fixture::ACK;
    use serde_json::{Value, json};

    /// A flow with 7 others at its host, over 10 Gb/s.
    pub(in crate::transport::controllers) fn path() -> Path {
        Path {
            others: 7,
            ..Path::new(
                Rate::from_gbps(10),
                Duration::from_micros(10),
                Format { header: Bytes(0), ack: Bytes(64), ..defaults() },
            )
        }
    }

    /// The rate in Mb/s after each completed segment with these round-trip times in microseconds,
    /// each without the serialisation of 0.8 us.
    pub(in crate::transport::controllers) fn rates(
        flow: &mut dyn Controller,
        rtts_us: &[f64],
    ) -> Vec<f64> {
        let mut rates = Vec::new();
        for rtt in rtts_us {
            let rtt = Duration::from_seconds((rtt + 0.8) * 1e-6);
            flow.on_ack(&Ack { bytes: Bytes(16_000), rtt, ..ACK });
            rates.push((flow.gauges()[0].1 / 1e3).round() / 1e3);
        }
        rates
    }

    fn timely(config: &Value) -> Box<dyn Controller> {
        Config::read(config).unwrap().controller(&path())
    }

    #[test]
    fn each_branch_of_algorithm_1() {
        // Starts at 10 Gb/s / 8, and below T_low rises by 10 Mb/s. At 60 us the average difference
        // is 0.875 * 20 us, the gradient 0.875; at 55 us the average is negative; at 1 ms the raw
        // value counts.
        let mut flow = timely(&json!({}));
        let cut = 378.0; // 1260 * (1 - 0.8 * 0.875)
        assert_eq!(rates(&mut *flow, &[40.0, 60.0, 55.0]), [1260.0, cut, cut + 10.0]);
        assert_eq!(rates(&mut *flow, &[1000.0]), [232.8]);
    }

    #[test]
    fn hyper_increase_sets_in_at_the_fifth_negative_gradient_in_a_row() {
        let mut flow = timely(&json!({}));
        let rtts = [100.0, 99.0, 98.0, 97.0, 96.0, 95.0, 94.0];
        let steps = rates(&mut *flow, &rtts);
        assert_eq!(steps, [1260.0, 1270.0, 1280.0, 1290.0, 1300.0, 1350.0, 1400.0]);
    }

    #[test]
    fn a_steep_rise_cuts_to_the_least_rate_or_by_the_bound_on_one_step() {
        let mut flow = timely(&json!({}));
        assert_eq!(rates(&mut *flow, &[60.0, 160.0]).pop(), Some(10.0));
        let mut flow = timely(&json!({"least_factor": 0.5}));
        assert_eq!(rates(&mut *flow, &[60.0, 160.0]).pop(), Some(630.0));
    }

    #[test]
    fn with_equal_thresholds_the_gradient_is_never_used() {
        // Steep falls and rises on both sides of the threshold, and the threshold itself.
        let rtts = [90.0, 40.0, 60.0, 99.0, 200.0, 150.0, 125.0, 100.0];
        let steps = |beta: f64, ewma_weight: f64| {
            let config = json!({
                "t_low": "100 us", "t_high": "100 us", "beta": beta, "ewma_weight": ewma_weight,
            });
            rates(&mut *timely(&config), &rtts)
        };
        let expected = [1260.0, 1270.0, 1280.0, 1290.0, 774.0, 567.6, 476.784, 476.784];
        assert_eq!(steps(0.8, 0.875), expected);
        assert_eq!(steps(0.8, 0.02), expected);
    }

    #[test]
    fn the_integral_term_adds_the_distance_from_its_reference() {
        let integral = json!({ "reference": "100 us", "gain": 0.1, "bound": 0.5 });
        let mut flow = timely(&json!({ "beta": 0.2, "integral": integral, "ewma_weight": 1 }));
        // 1250 Mb/s less a tenth of a fifth; then a rise by 20 us is a gradient of 1; the error of 3
        // at 400 us counts as 0.5; and below T_low it is TIMELY.
        let first = 1250.0 * (1.0 - 0.02);
        let second = first * (1.0 - 0.2 - 0.1 * 0.4);
        assert_eq!(rates(&mut *flow, &[120.0, 140.0]), [first, second]);
        let mut flow = timely(&json!({ "beta": 1e-9, "integral": integral }));
        assert_eq!(rates(&mut *flow, &[400.0, 400.0, 40.0]), [1187.5, 1128.125, 1138.125]);
    }

    #[test]
    fn a_flow_starts_where_the_last_one_ended_if_it_is_to_remember() {
        let starts = |start: &str, memo: Option<CachedPathState>| {
            let segments = json!({ "segments": { "start": start } });
            let mut flow = Config::read(&segments).unwrap().controller(&Path { memo, ..path() });
            rates(&mut *flow, &[40.0]);
            (flow.gauges()[0].1 / 1e6, flow.memo().map(|memo| memo.rate / 1e6))
        };
        let memo = Some(CachedPathState::of_rate(70e6));
        // An equal share of 10 Gb/s, or what is remembered; and 10 Mb/s more.
        assert_eq!(starts("remembered", None), (1260.0, Some(1260.0)));
        assert_eq!(starts("remembered", memo), (80.0, Some(80.0)));
        assert_eq!(starts("fair_share", memo), (1260.0, None));
        assert_eq!(starts("line_rate", memo), (10_000.0, None));
    }

    #[test]
    fn thresholds_out_of_order_are_an_error() {
        let error = Config::read(&json!({"t_low": "600 us"})).unwrap_err();
        assert_eq!(error.to_string(), "t_low: must not be above t_high, which is 500 us");
    }
}
