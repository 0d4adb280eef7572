//! PowerTCP's law: a rate in inverse proportion to the power of the path's fullest link ([powertcp22] §3).

use super::path_scaled::FlowRate;
use super::telemetry::ReferenceRate;
use crate::transport::Path;

crate::choices! {
    /// Form of PowerTCP's law.
    pub enum Form {
        /// As published: the moving average continues from the present window, and power has no floor.
        Paper = "paper",
        /// As in the authors' simulator: the moving average continues from the window of the last RTT, a link
        /// receives at least half its rate, and power has a target other than 1: 0.95 under `powertcp`, so
        /// that a lone flow leaves some 5 % of a link unused, and 1.05 under `theta_powertcp`.
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

    /// Returns the next rate at this power.
    pub fn rate(&self, power: f64, rate: &ReferenceRate) -> f64 {
        let present = match self.form {
            Form::Paper => rate.rate,
            Form::Simulator => rate.reference,
        };
        let fair = rate.reference * self.target / power + self.additive_increase;
        self.gamma * fair + (1.0 - self.gamma) * present
    }
}
