//! RCP's router: one rate for all flows, which keeps the link fully used and the queue empty.
//!
//! Sources: [rcp06] eq. 2, and the authors' ns-2 module ("v4") for open details. The rate is
//! written into packets at the start of transmission, so that it is the newest.

use super::{FlowInfo, PortInfo, PortView, Router, RouterKind};
use crate::base::random::Random;
use crate::base::schema::{not_negative_if_given, positive, positive_fraction};
use crate::base::units::{Duration, PICOSECONDS, Time};
use crate::model::packet::{Header, Packet};

crate::choices! {
    /// Published pair of gains.
    pub enum GainPreset {
        /// alpha = 0.1, beta = 1: the authors' script for Pareto flow sizes ([rcp06] Fig. 12).
        FlowSizes = "flow_sizes",
        /// alpha = 0.4, beta = 1: the authors' scripts for long-lived flows and flash crowds.
        LongLived = "long_lived",
        /// alpha = 0.4, beta = 0.226: XCP's gains, in the linear stability region.
        AsXcp = "as_xcp",
    }
}

impl GainPreset {
    fn gains(self) -> (f64, f64) {
        match self {
            Self::FlowSizes => (0.1, 1.0),
            Self::LongLived => (0.4, 1.0),
            Self::AsXcp => (0.4, 0.226),
        }
    }
}

crate::parameters! {
    /// RCP's router: offers one rate to all flows. It grows with the spare capacity and decreases
    /// with the queue ([rcp06] eq. 2). The defaults suit wide-area networks. Environments of data centres set
    /// `initial_rtt`, since the average RTT decreases slowly, and `preset`.
    pub struct Config {
        /// Gains, unless `alpha` or `beta` is given.
        pub preset: GainPreset = GainPreset::FlowSizes;
        /// Gain of the spare capacity. `none`: that of `preset`.
        pub alpha: Option<f64> = None, where not_negative_if_given;
        /// Gain of the queue. `none`: that of `preset`.
        pub beta: Option<f64> = None, where not_negative_if_given;
        /// Target utilisation of the link (authors' module: 1).
        pub target_utilisation: f64 = 1.0, where positive_fraction;
        /// Maximum time between rate updates; the RTT if that is shorter (authors' module: 10 ms).
        pub interval: Duration = Duration::from_millis(10), where positive;
        /// Average RTT before the first sample (authors' module: 200 ms).
        pub initial_rtt: Duration = Duration::from_millis(200), where positive;
        /// Initial rate as a fraction of the link rate (authors' module: 5 %).
        pub initial_share: f64 = 0.05, where positive_fraction;
        /// Minimum rate, in packets of 1000 B per RTT (authors' module: 0.01).
        pub min_packets: f64 = 0.01, where positive;
    }
}

/// Pairs of alpha and the largest stable beta, interpolated linearly. Obtained by numerical
/// integration of equation 1 with its delay, from two initial states, with 10 and with 100 flows;
/// beta above 3 was not tested. The linear analysis permits less, because it allows negative
/// queues.
const STABLE_GAINS: [(f64, f64); 6] = [
    (0.6, 3.0),
    (0.8, 1.5),
    (1.0, 0.8),
    (1.2, 0.5),
    (1.4, 0.2),
    (std::f64::consts::FRAC_PI_2, 0.0),
];

/// Returns the largest stable beta for `alpha`.
fn max_stable_beta(alpha: f64) -> f64 {
    if alpha <= STABLE_GAINS[0].0 {
        return STABLE_GAINS[0].1;
    }
    let pair = STABLE_GAINS.windows(2).find(|pair| alpha <= pair[1].0);
    pair.map_or(0.0, |pair| {
        let [(from, high), (to, low)] = [pair[0], pair[1]];
        high + (low - high) * (alpha - from) / (to - from)
    })
}

impl Config {
    fn gains(&self) -> (f64, f64) {
        let (alpha, beta) = self.preset.gains();
        (self.alpha.unwrap_or(alpha), self.beta.unwrap_or(beta))
    }
}

impl RouterKind for Config {
    fn build(&self, port: PortInfo, mut random: Random) -> Box<dyn Router> {
        let (alpha, beta) = self.gains();
        let capacity = port.rate.bps() / 8.0;
        let slot = self.interval.seconds().min(self.initial_rtt.seconds());
        // The authors' module starts the clock of each router at a random time.
        let first = random.normal(slot, 0.2 * slot).max(0.1 * slot);
        Box::new(Rcp {
            alpha,
            beta,
            capacity,
            target_rate: self.target_utilisation * capacity,
            interval: self.interval.seconds(),
            min_bytes_per_rtt: self.min_packets * 1000.0,
            rate: self.initial_share * capacity,
            rtt: self.initial_rtt.seconds(),
            rtt_sample: self.initial_rtt.seconds(),
            slot: first,
            slot_ends: Time::ZERO + Duration::from_seconds(first),
            arrived: 0.0,
            next_slot_bytes: 0.0,
            rtt_bytes: 0.0,
            bytes_with_rtt: 0.0,
        })
    }

    fn warning(&self) -> Option<String> {
        let (alpha, beta) = self.gains();
        let max_beta = max_stable_beta(alpha);
        (alpha >= STABLE_GAINS[5].0 || beta > max_beta).then(|| {
            format!(
                "router: alpha = {alpha}, beta = {beta} is outside the region in which RCP is known to \
                 be stable (beta up to {max_beta:.2} for this alpha): its rate may oscillate"
            )
        })
    }
}

/// State of one port, in bytes and seconds.
struct Rcp {
    alpha: f64,
    beta: f64,
    capacity: f64,
    target_rate: f64,
    interval: f64,
    /// Minimum rate times RTT.
    min_bytes_per_rtt: f64,
    /// R, the rate offered to every flow.
    rate: f64,
    /// d0, the average RTT.
    rtt: f64,
    /// Mean RTT carried by the last packets.
    rtt_sample: f64,
    /// Length and end of this slot.
    slot: f64,
    slot_ends: Time,
    /// Bytes that arrived in this slot, and those of them that count in the next slot.
    arrived: f64,
    next_slot_bytes: f64,
    /// RTTs carried by packets in this slot, weighted by their bytes, and the sum of these bytes.
    rtt_bytes: f64,
    bytes_with_rtt: f64,
}

impl Router for Rcp {
    fn on_arrival(&mut self, packet: &mut Packet, _flow_info: &FlowInfo, now: Time) {
        let bytes = f64::from(packet.bytes);
        // Bytes whose transmission would extend past the slot count in the next slot.
        let slot_seconds_left = self.slot_ends.since(now).0 as f64 / PICOSECONDS as f64;
        let slot_bytes = bytes.min(slot_seconds_left * self.capacity);
        self.arrived += slot_bytes;
        self.next_slot_bytes += bytes - slot_bytes;
        if let Header::Rcp { rtt, .. } = packet.header()
            && rtt > 0.0
        {
            self.rtt_bytes += f64::from(rtt) * bytes;
            self.bytes_with_rtt += bytes;
        }
    }

    fn on_departure(&mut self, packet: &mut Packet, _view: PortView) {
        if let Header::Rcp { rate, .. } = packet.header() {
            packet.write_feedback(rate.min(self.rate as f32));
        }
    }

    fn next_tick(&self) -> Time {
        self.slot_ends
    }

    fn on_tick(&mut self, view: PortView) {
        self.update_rtt();
        let input = self.arrived / self.slot;
        let aggregate_change =
            self.alpha * (self.target_rate - input) - self.beta * view.backlog as f64 / self.rtt;
        let factor = 1.0 + self.slot / self.rtt * aggregate_change / self.target_rate;
        self.rate =
            (self.rate * factor).min(self.target_rate).max(self.min_bytes_per_rtt / self.rtt);
        self.arrived = std::mem::take(&mut self.next_slot_bytes);
        self.slot = self.interval.min(self.rtt);
        self.slot_ends = view.now + Duration::from_seconds(self.slot);
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![("rate_bps", self.rate * 8.0)]
    }
}

impl Rcp {
    /// Updates the average RTT: quickly upwards, slowly downwards, since short samples represent
    /// few flows (authors' module).
    fn update_rtt(&mut self) {
        if self.bytes_with_rtt > 0.0 {
            self.rtt_sample = self.rtt_bytes / self.bytes_with_rtt;
        }
        (self.rtt_bytes, self.bytes_with_rtt) = (0.0, 0.0);
        let speed = if self.rtt_sample >= self.rtt {
            1.0
        } else {
            self.rate / self.capacity * self.rtt_sample / self.rtt
        };
        let gain = (speed * self.slot / self.rtt).min(1.0);
        self.rtt += gain * (self.rtt_sample - self.rtt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::{Parameter, defaults};
    use crate::model::packet::{Format, Kind};
    use crate::router::tests::{FLOW, PORT};
    use serde_json::json;

    fn router(config: &serde_json::Value) -> Box<dyn Router> {
        Config::read(config).unwrap().build(PORT, Random::new(1, "router"))
    }

    fn data(rtt: f32) -> Packet {
        let format: Format = defaults();
        Packet { bytes: 1000, ..format.control(Kind::Data, 0, Time::ZERO) }
            .with_header(Header::Rcp { rtt, rate: f32::INFINITY })
    }

    fn rate(router: &dyn Router) -> f64 {
        router.gauges()[0].1
    }

    #[test]
    fn an_update_follows_equation_2_and_packets_carry_the_smallest_rate() {
        let mut router = router(&json!({ "preset": "as_xcp", "initial_rtt": "100 ms" }));
        let start = router.next_tick();
        router.on_tick(PortView { now: start, backlog: 0 });
        let before = rate(&*router);
        // Arrivals at half the capacity for one slot of 10 ms, and a queue of 50 KB, at an RTT of
        // 100 ms.
        for _ in 0..625 {
            router.on_arrival(&mut data(0.1), &FLOW, start);
        }
        router.on_tick(PortView { now: router.next_tick(), backlog: 50_000 });
        let aggregate_change = 0.4 * 62.5e6 - 0.226 * 50_000.0 / 0.1;
        let expected = before * (1.0 + 0.1 * aggregate_change / 125e6);
        assert!((rate(&*router) / expected - 1.0).abs() < 1e-6);
        let mut packet = data(0.1);
        router.on_departure(&mut packet, PortView { now: start, backlog: 0 });
        let carried = f64::from(packet.header().feedback());
        assert!((carried / (expected / 8.0) - 1.0).abs() < 1e-6);
        packet = packet.with_header(Header::Rcp { rtt: 0.1, rate: 1.0 });
        router.on_departure(&mut packet, PortView { now: start, backlog: 0 });
        assert!(
            (packet.header().feedback() - 1.0).abs() < f32::EPSILON,
            "another router offers a lower rate"
        );
    }

    #[test]
    fn an_idle_link_has_the_same_gain_at_any_target_utilisation() {
        for target_utilisation in [1.0, 0.5, 0.25] {
            let config = json!({
                "preset": "long_lived", "initial_rtt": "100 ms", "initial_share": 0.01,
                "target_utilisation": target_utilisation,
            });
            let mut router = router(&config);
            router.on_tick(PortView { now: router.next_tick(), backlog: 0 });
            let before = rate(&*router);
            router.on_tick(PortView { now: router.next_tick(), backlog: 0 });
            // The slot is a tenth of the RTT.
            assert!((rate(&*router) / before - (1.0 + 0.1 * 0.4)).abs() < 1e-6);
        }
    }

    #[test]
    fn an_idle_link_offers_its_capacity_and_an_overloaded_link_the_minimum() {
        let mut router = router(&json!({}));
        for _ in 0..2_000 {
            router.on_tick(PortView { now: router.next_tick(), backlog: 0 });
        }
        assert!((rate(&*router) - 1e9).abs() < 1.0);
        for _ in 0..20_000 {
            router.on_tick(PortView { now: router.next_tick(), backlog: 1_000_000_000 });
        }
        assert!((rate(&*router) - 8.0 * 10.0 / 0.2).abs() < 1.0);
    }

    #[test]
    fn unstable_gains_give_a_warning_and_published_gains_do_not() {
        let warning = |config| Config::read(&config).unwrap().warning();
        for preset in ["flow_sizes", "long_lived", "as_xcp"] {
            assert_eq!(warning(json!({ "preset": preset })), None);
        }
        assert!(warning(json!({ "alpha": 1.0, "beta": 0.9 })).unwrap().contains("up to 0.80"));
        assert!(warning(json!({ "alpha": 1.6, "beta": 0.0 })).is_some());
    }
}
