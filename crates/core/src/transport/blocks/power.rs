//! PowerTCP's law: a rate in inverse proportion to the power of the path's fullest link ([powertcp22] §3).

use super::path_scaled::FlowRate;
use super::telemetry::ReferenceRate;
use crate::transport::{Ack, Path};

crate::choices! {
    /// Form of PowerTCP's law.
    pub enum Form {
        /// As published: an ACK divides the window that the flow had when it sent the acknowledged packet,
        /// remembered once per RTT; the moving average continues from the present window, and power has no
        /// floor.
        Paper = "paper",
        /// As in the authors' simulator: an ACK divides the window of the last RTT, from which the moving
        /// average also continues; a link receives at least half its rate; and power has a target other than
        /// 1: 0.95 under `powertcp`, so that a lone flow leaves some 5 % of a link unused, and 1.05 under
        /// `theta_powertcp`.
        Simulator = "simulator",
    }
}

impl Form {
    /// Returns the power to compute with, of a link that receives `arrivals` and has `voltage`, both relative
    /// to a full link without a queue.
    pub fn power(self, arrivals: f64, voltage: f64) -> f64 {
        let floor = match self {
            Self::Paper => f64::MIN_POSITIVE,
            Self::Simulator => 0.5,
        };
        arrivals.max(floor) * voltage
    }
}

/// Law of one flow.
pub struct PowerLaw {
    /// Form of the law.
    pub form: Form,
    gamma: f64,
    /// In bits per second.
    additive_increase: f64,
    /// Power at which the rate only changes by the additive increase.
    pub target: f64,
}

impl PowerLaw {
    /// Returns the law of a flow; the authors' simulator has this `target`.
    pub fn new(
        form: Form,
        gamma: f64,
        additive_increase: FlowRate,
        target: f64,
        path: &Path,
    ) -> Self {
        let additive_increase = additive_increase.bps(path.line_rate.bps());
        let target = if form == Form::Paper { 1.0 } else { target };
        Self { form, gamma, additive_increase, target }
    }

    /// Returns the next rate at this power, which the ACK reports.
    pub fn rate(&self, power: f64, rate: &ReferenceRate, ack: &Ack) -> f64 {
        let (present, former) = match self.form {
            Form::Paper => (rate.rate, rate.when_sent(ack)),
            Form::Simulator => (rate.reference, rate.reference),
        };
        let fair = former * self.target / power + self.additive_increase;
        self.gamma * fair + (1.0 - self.gamma) * present
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::blocks::telemetry::Reaction;
    use crate::transport::fixture::{ack, path};

    /// Returns the rate after two ACKs at power 2, relative to the line rate. The first one ends an RTT; the
    /// packet of the second was sent before.
    fn after_two_acks(form: Form) -> f64 {
        let path = path();
        let law = PowerLaw::new(form, 1.0, FlowRate::from_mbps(0), 1.0, &path);
        let mut rate = ReferenceRate::new(FlowRate::from_mbps(0), Reaction::Combined, &path);
        rate.start(&ack(0, 10));
        for cumulative in [11, 12] {
            let ack = ack(cumulative, 20);
            rate.set(law.rate(2.0, &rate, &ack), &ack);
        }
        rate.rate / path.line_rate.bps()
    }

    #[test]
    fn an_ack_divides_the_rate_at_which_its_packet_was_sent() {
        assert!((after_two_acks(Form::Paper) - 0.5).abs() < 1e-12);
        assert!((after_two_acks(Form::Simulator) - 0.25).abs() < 1e-12);
    }
}
