//! Theta-PowerTCP: PowerTCP's law by the RTT and its gradient, without telemetry ([powertcp22] §3.5).
//!
//! Deviation: the first ACK of a flow is only stored.

use super::{Ack, Allowance, Controller, Mechanism, Path, Reliability, Transport};
use crate::base::schema::{positive, positive_fraction_if_given, positive_if_given};
use crate::base::units::{Duration, Time};
use crate::model::packet::Format;
use crate::transport::blocks::path_scaled::FlowRate;
use crate::transport::blocks::power::{Form, PowerLaw};
use crate::transport::blocks::telemetry::{Reaction, ReferenceRate};

/// RTT, relative to the base RTT, at which the authors' simulator holds the rate.
const TARGET: f64 = 1.05;

crate::parameters! {
    /// Theta-PowerTCP: PowerTCP by the RTT and its gradient instead of telemetry ([powertcp22]).
    pub struct Config {
        /// gamma, the weight of a new window in its moving average; none for that of the form: 0.9 in that of
        /// the paper ([powertcp22]), 0.7 in that of the simulator.
        pub gamma: Option<f64> = None, where positive_fraction_if_given;
        /// Additive increase; times the base RTT it is beta ([powertcp22]: the line rate divided by the flows
        /// of a host; authors' simulator: 150 Mb/s).
        pub additive_increase: FlowRate = FlowRate::from_mbps(150), where positive;
        /// Form of the law; in that of the simulator every ACK changes the rate, otherwise one per RTT. In
        /// the form of the paper power is near 0 while a queue drains without arrivals, and the next window
        /// is that of the line rate: many flows that start together (16 at 100 Gb/s) keep a long queue.
        pub form: Form = Form::Paper;
        /// Minimum rate ([powertcp22] gives none; authors' simulator: 100 Mb/s at 25 Gb/s).
        pub min_rate: FlowRate = FlowRate::from_mbps(100), where positive;
        /// tau, the base RTT; none for that of the flow's path ([powertcp22], authors' simulator: the longest
        /// of the network).
        pub base_rtt: Option<Duration> = None, where positive_if_given;
        /// Loss recovery and retransmission timeouts.
        pub reliability: Reliability = Reliability::go_back_n();
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        let (reaction, gamma) = match self.form {
            Form::Paper => (Reaction::PerRtt, 0.9),
            Form::Simulator => (Reaction::Combined, 0.7),
        };
        let gamma = self.gamma.unwrap_or(gamma);
        let law = PowerLaw::new(self.form, gamma, self.additive_increase, TARGET, path);
        Box::new(ThetaPowerTcp {
            power: law.target,
            law,
            rate: ReferenceRate::new(self.min_rate, reaction, path),
            base_rtt: self.base_rtt.unwrap_or(path.base_rtt).seconds(),
            last: None,
        })
    }

    fn takes_initial_rate(&self) -> bool {
        true
    }

    fn min_rate(&self) -> Option<(&'static str, FlowRate)> {
        Some(("min_rate", self.min_rate))
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        Mechanism::paced_window(&self.reliability)
    }

    fn needs_lossless_network(&self) -> bool {
        true
    }
}

/// State of one flow.
struct ThetaPowerTcp {
    law: PowerLaw,
    rate: ReferenceRate,
    /// In seconds; at most the smallest RTT.
    base_rtt: f64,
    /// Average over an RTT, relative to a full link without a queue.
    power: f64,
    /// Time of the last ACK and its RTT in seconds; none before the first.
    last: Option<(Time, f64)>,
}

impl Controller for ThetaPowerTcp {
    fn on_ack(&mut self, ack: &Ack) {
        let rtt = ack.rtt.seconds();
        // Hosts with coarse or noisy clocks may measure 0, which is not a sample.
        if rtt == 0.0 {
            return;
        }
        self.base_rtt = self.base_rtt.min(rtt);
        let Some((last_time, last_rtt)) = self.last.replace((ack.now, rtt)) else {
            return self.rate.start(ack);
        };
        let length = ack.now.since(last_time).seconds();
        if length > 0.0 {
            let power = self.law.form.power(1.0 + (rtt - last_rtt) / length, rtt / self.base_rtt);
            let weight = length.min(self.base_rtt) / self.base_rtt;
            self.power += weight * (power - self.power);
        }
        if self.rate.reacts(ack) {
            self.rate.set(self.law.rate(self.power, &self.rate, ack), ack);
        }
    }

    fn allowance(&self) -> Allowance {
        self.rate.allowance(self.base_rtt)
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        self.rate.gauges(self.base_rtt, ("power", self.power))
    }
}
