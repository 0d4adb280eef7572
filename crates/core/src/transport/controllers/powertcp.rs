//! PowerTCP: a rate and a window by the power of the path's fullest link, the product of the rate at which
//! bytes arrive there and of the bytes in flight ([powertcp22] Algorithm 1).
//!
//! The telemetry, its average and the reference of the last RTT are those of HPCC, on which the authors'
//! simulator builds. Deviation: the first ACK of a flow is only stored, as in HPCC; the simulator takes the
//! difference to an empty list.

use super::{Ack, Allowance, Controller, Mechanism, Path, Reliability, Transport};
use crate::base::schema::{Problem, positive, positive_fraction, positive_if_given};
use crate::base::units::Duration;
use crate::model::packet::Format;
use crate::model::telemetry::TelemetryStack;
use crate::transport::blocks::path_scaled::FlowRate;
use crate::transport::blocks::power::{Form, PowerLaw};
use crate::transport::blocks::telemetry::{self, Interval, Reaction, ReferenceRate, Utilisation};

/// Target power of the authors' simulator.
const TARGET: f64 = 0.95;

crate::parameters! {
    /// PowerTCP: rate and window by the product of the arrival rate and of the bytes in flight at the path's
    /// fullest link, which switches report in the packets ([powertcp22]). Telemetry adds no bytes:
    /// include its size in `packet.header` and `packet.ack` ([hpcc19]: 42 B for 5 hops).
    pub struct Config {
        /// gamma, the weight of a new window in its moving average ([powertcp22]: 0.9).
        pub gamma: f64 = 0.9, where positive_fraction;
        /// Additive increase; times the base RTT it is beta ([powertcp22]: the line rate divided by the flows
        /// of a host; authors' simulator: 150 Mb/s).
        pub additive_increase: FlowRate = FlowRate::from_mbps(150), where positive;
        /// Form of the law.
        pub form: Form = Form::Paper;
        /// Minimum rate ([powertcp22] gives none; authors' simulator: 100 Mb/s at 25 Gb/s).
        pub min_rate: FlowRate = FlowRate::from_mbps(100), where positive;
        /// tau, the base RTT; none for that of the flow's path ([powertcp22], authors' simulator: the longest
        /// of the network).
        pub base_rtt: Option<Duration> = None, where positive_if_given;
        /// If true, counters have the units of HPCC's simulator: 1 ns, and 128 B and 80 B times the line rate
        /// in whole multiples of 25 Gb/s, at least one; otherwise they are exact.
        pub quantised: bool = false;
        /// Loss recovery and retransmission timeouts.
        pub reliability: Reliability = Reliability::go_back_n();
    }
    check Config::check
}

impl Config {
    fn check(&self) -> Result<(), Problem> {
        telemetry::check(&self.reliability)
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        let base_rtt = self.base_rtt.unwrap_or(path.base_rtt);
        Box::new(PowerTcp {
            law: PowerLaw::new(self.form, self.gamma, self.additive_increase, TARGET, path),
            rate: ReferenceRate::new(self.min_rate, Reaction::Combined, path),
            power: Utilisation::new(base_rtt, self.quantised, path),
            base_rtt: base_rtt.seconds(),
        })
    }

    fn takes_initial_rate(&self) -> bool {
        true
    }

    fn min_rate(&self) -> Option<(&'static str, FlowRate)> {
        Some(("min_rate", self.min_rate))
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        telemetry::mechanism(&self.reliability)
    }

    fn needs_lossless_network(&self) -> bool {
        true
    }

    /// Counters of one port are compared.
    fn needs_one_path(&self) -> bool {
        true
    }
}

/// State of one flow.
struct PowerTcp {
    law: PowerLaw,
    rate: ReferenceRate,
    power: Utilisation,
    /// In seconds.
    base_rtt: f64,
}

/// Returns the power of a link relative to that of a full link without a queue ([powertcp22] eq. 2).
fn power(form: Form, base_rtt: f64) -> impl Fn(&Interval) -> f64 {
    move |hop| {
        let [before, after] = hop.queueing;
        let arrivals = hop.transmission + (after - before) / hop.length;
        form.power(arrivals, 1.0 + after / base_rtt)
    }
}

impl Controller for PowerTcp {
    fn on_telemetry(&mut self, path: &TelemetryStack) {
        self.power.receive(path);
    }

    fn on_ack(&mut self, ack: &Ack) {
        if self.rate.is_first() {
            self.rate.start(ack);
            return self.power.start();
        }
        if self.power.has_no_hops() {
            return;
        }
        self.power.update(power(self.law.form, self.base_rtt));
        self.rate.set(self.law.rate(self.power.average, &self.rate, ack), ack);
    }

    fn allowance(&self) -> Allowance {
        self.rate.allowance(self.base_rtt)
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        self.rate.gauges(self.base_rtt, ("power", self.power.average))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10 us at 25 Gb/s: a bandwidth-delay product of 31 250 B, which lasts as long as the base RTT.
    const TAU: f64 = 10e-6;

    #[test]
    fn power_is_the_product_of_arrivals_and_bytes_in_flight() {
        let of = |transmission, queueing| {
            power(Form::Paper, TAU)(&Interval { length: TAU, transmission, queueing })
        };
        for (transmission, queueing, expected) in [
            // Arrivals at the line rate, and a queue of a bandwidth-delay product.
            (1.0, [TAU, TAU], 2.0),
            // The same queue grows at the line rate.
            (1.0, [0.0, TAU], 4.0),
            // Twice the line rate arrives at an empty queue, which is seen only when it has grown.
            (1.0, [TAU, 0.0], f64::MIN_POSITIVE),
            // The queue drains at half the line rate.
            (1.0, [1.5 * TAU, TAU], 1.0),
        ] {
            assert!((of(transmission, queueing) - expected).abs() < 1e-12, "{queueing:?}");
        }
        let drained = Interval { length: TAU, transmission: 1.0, queueing: [TAU, 0.0] };
        assert!((power(Form::Simulator, TAU)(&drained) - 0.5).abs() < 1e-12);
    }
}
