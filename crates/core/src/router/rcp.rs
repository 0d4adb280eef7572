//! RCP's router: one rate for all flows, such that the link is full and the queue empty.
//!
//! Sources: [rcp06] eq. 2; where the paper is silent, the authors' ns-2 module (their "v4"). Packets are
//! stamped as their transmission starts, so that they carry the newest rate.

use super::{FlowInfo, PortInfo, PortView, Router, RouterKind};
use crate::base::random::Random;
use crate::base::schema::{not_negative_if_given, positive, positive_fraction};
use crate::base::units::{Duration, PICOSECONDS, Time};
use crate::model::packet::{Header, Packet};

crate::choices! {
    /// A published pair of gains.
    pub enum Preset {
        /// alpha = 0.1, beta = 1: the authors' script for Pareto flow sizes ([rcp06] Fig. 12).
        FlowSizes = "flow_sizes",
        /// alpha = 0.4, beta = 1: the authors' scripts for long-lived flows and flash crowds.
        LongLived = "long_lived",
        /// alpha = 0.4, beta = 0.226: XCP's choice, inside the linear region of stability.
        AsXcp = "as_xcp",
    }
}

impl Preset {
    fn gains(self) -> (f64, f64) {
        match self {
            Self::FlowSizes => (0.1, 1.0),
            Self::LongLived => (0.4, 1.0),
            Self::AsXcp => (0.4, 0.226),
        }
    }
}

crate::parameters! {
    /// RCP's router: offers all flows one rate, which grows with spare capacity and shrinks with the
    /// queue ([rcp06] eq. 2). The defaults are for wide-area networks: where round trips are short, give
    /// `initial_rtt` and perhaps `initial_share`, since the average falls slowly.
    pub struct Config {
        /// The gains, unless they are given one by one.
        pub preset: Preset = Preset::FlowSizes;
        /// Gain of the spare capacity; none takes the preset's.
        pub alpha: Option<f64> = None, where not_negative_if_given;
        /// Gain of the queue; none takes the preset's.
        pub beta: Option<f64> = None, where not_negative_if_given;
        /// Share of the link's rate that it aims to use (authors' module: 1).
        pub target_utilisation: f64 = 1.0, where positive_fraction;
        /// Most time between two updates of the rate; less if the round-trip time is less (authors'
        /// module: 10 ms).
        pub interval: Duration = Duration::from_millis(10), where positive;
        /// Average round-trip time before the first sample (authors' module: 200 ms).
        pub initial_rtt: Duration = Duration::from_millis(200), where positive;
        /// The first rate, as a share of the link's (authors' module: 5 %).
        pub initial_share: f64 = 0.05, where positive_fraction;
        /// The least rate, in packets of 1000 B a round trip (authors' module: 0.01).
        pub min_packets: f64 = 0.01, where positive;
    }
}

/// The largest beta that is stable for an alpha: in between, straight lines. Numerical integration of
/// equation 1 with its delay, from two initial states, with 10 and with 100 flows; beyond beta = 3 was
/// not tried. The linear analysis allows less, because it lets the queue be negative.
const STABLE: [(f64, f64); 6] = [
    (0.6, 3.0),
    (0.8, 1.5),
    (1.0, 0.8),
    (1.2, 0.5),
    (1.4, 0.2),
    (std::f64::consts::FRAC_PI_2, 0.0),
];

/// The largest stable beta.
fn stable_below(alpha: f64) -> f64 {
    if alpha <= STABLE[0].0 {
        return STABLE[0].1;
    }
    let pair = STABLE.windows(2).find(|pair| alpha <= pair[1].0);
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
        // The authors' module starts each router's clock at a time of its own.
        let first = random.normal(slot, 0.2 * slot).max(0.1 * slot);
        Box::new(Rcp {
            alpha,
            beta,
            capacity,
            target: self.target_utilisation * capacity,
            interval: self.interval.seconds(),
            least: self.min_packets * 1000.0,
            rate: self.initial_share * capacity,
            rtt: self.initial_rtt.seconds(),
            sample: self.initial_rtt.seconds(),
            slot: first,
            slot_ends: Time::ZERO + Duration::from_seconds(first),
            arrived: 0.0,
            early: 0.0,
            rtt_bytes: 0.0,
            bytes_with_rtt: 0.0,
        })
    }

    fn warning(&self) -> Option<String> {
        let (alpha, beta) = self.gains();
        let most = stable_below(alpha);
        (alpha >= STABLE[5].0 || beta > most).then(|| {
            format!(
                "router: alpha = {alpha}, beta = {beta} is outside the region in which RCP is known to \
                 be stable (beta up to {most:.2} for this alpha): its rate may oscillate"
            )
        })
    }
}

/// The state of one port; bytes and seconds.
struct Rcp {
    alpha: f64,
    beta: f64,
    capacity: f64,
    target: f64,
    interval: f64,
    /// The least rate times the round-trip time.
    least: f64,
    /// R, offered to every flow.
    rate: f64,
    /// d0, the average round-trip time.
    rtt: f64,
    /// The mean round-trip time that the last packets carried.
    sample: f64,
    /// How long this slot lasts, and when it ends.
    slot: f64,
    slot_ends: Time,
    /// What has come in this slot, and what of it belongs to the next.
    arrived: f64,
    early: f64,
    /// Round-trip times that packets carried in this slot, weighted by their bytes.
    rtt_bytes: f64,
    bytes_with_rtt: f64,
}

impl Router for Rcp {
    fn on_arrival(&mut self, packet: &mut Packet, _flow_info: &FlowInfo, now: Time) {
        let bytes = f64::from(packet.bytes);
        // What of the packet's transmission would fall past the slot counts in the next.
        let left = self.slot_ends.since(now).0 as f64 / PICOSECONDS as f64;
        let now_bytes = bytes.min(left * self.capacity);
        self.arrived += now_bytes;
        self.early += bytes - now_bytes;
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
        self.average_rtt();
        let input = self.arrived / self.slot;
        let wanted =
            self.alpha * (self.target - input) - self.beta * view.backlog as f64 / self.rtt;
        let change = 1.0 + self.slot / self.rtt * wanted / self.capacity;
        self.rate = (self.rate * change).min(self.target).max(self.least / self.rtt);
        self.arrived = std::mem::take(&mut self.early);
        self.slot = self.interval.min(self.rtt);
        self.slot_ends = view.now + Duration::from_seconds(self.slot);
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![("rate_bps", self.rate * 8.0)]
    }
}

impl Rcp {
    /// Moves the average towards what packets carried: quickly up, slowly down, since a short sample
    /// speaks for few flows (authors' module).
    fn average_rtt(&mut self) {
        if self.bytes_with_rtt > 0.0 {
            self.sample = self.rtt_bytes / self.bytes_with_rtt;
        }
        (self.rtt_bytes, self.bytes_with_rtt) = (0.0, 0.0);
        let slow = if self.sample >= self.rtt {
            1.0
        } else {
            self.rate / self.capacity * self.sample / self.rtt
        };
        let gain = (slow * self.slot / self.rtt).min(1.0);
        self.rtt += gain * (self.sample - self.rtt);
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
    fn an_update_is_equation_2_and_packets_carry_the_least_rate() {
        let mut router = router(&json!({ "preset": "as_xcp", "initial_rtt": "100 ms" }));
        let start = router.next_tick();
        router.on_tick(PortView { now: start, backlog: 0 });
        let before = rate(&*router);
        // Half the capacity for one slot of 10 ms, and 50 KB waiting, at a round-trip time of 100 ms.
        for _ in 0..625 {
            router.on_arrival(&mut data(0.1), &FLOW, start);
        }
        router.on_tick(PortView { now: router.next_tick(), backlog: 50_000 });
        let wanted = 0.4 * 62.5e6 - 0.226 * 50_000.0 / 0.1;
        let expected = before * (1.0 + 0.1 * wanted / 125e6);
        assert!((rate(&*router) / expected - 1.0).abs() < 1e-6);
        let mut packet = data(0.1);
        router.on_departure(&mut packet, PortView { now: start, backlog: 0 });
        let carried = f64::from(packet.header().feedback());
        assert!((carried / (expected / 8.0) - 1.0).abs() < 1e-6);
        packet = packet.with_header(Header::Rcp { rtt: 0.1, rate: 1.0 });
        router.on_departure(&mut packet, PortView { now: start, backlog: 0 });
        assert!(
            (packet.header().feedback() - 1.0).abs() < f32::EPSILON,
            "another router offers less"
        );
    }

    #[test]
    fn an_idle_link_offers_all_it_has_and_a_flooded_one_the_least() {
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
    fn unstable_gains_are_warned_of_and_published_ones_are_not() {
        let warning = |config| Config::read(&config).unwrap().warning();
        for preset in ["flow_sizes", "long_lived", "as_xcp"] {
            assert_eq!(warning(json!({ "preset": preset })), None);
        }
        assert!(warning(json!({ "alpha": 1.0, "beta": 0.9 })).unwrap().contains("up to 0.80"));
        assert!(warning(json!({ "alpha": 1.6, "beta": 0.0 })).is_some());
    }
}
