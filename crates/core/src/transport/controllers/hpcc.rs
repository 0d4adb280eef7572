//! HPCC: a rate and a window that keep the fullest link of the path at a target utilisation, from the
//! telemetry in every ACK ([hpcc19] Algorithm 1).
//!
//! Deviation: as in the authors' simulator, the law sets the rate, and the window follows from it, which is
//! the same with `W_AI = additive_increase * base_rtt`. Another path costs one sample.

use super::{Ack, Allowance, Controller, Mechanism, Path, Reliability, Transport};
use crate::base::random::mix;
use crate::base::schema::{Bounds, Problem, positive, positive_fraction, positive_if_given};
use crate::base::units::{Bytes, Duration};
use crate::model::packet::Format;
use crate::model::telemetry::{Digest, LEAST_BASE, TelemetryStack};
use crate::transport::blocks::path_scaled::FlowRate;
use crate::transport::blocks::telemetry::{self, Interval, Reaction, ReferenceRate, Utilisation};

crate::parameters! {
    /// HPCC: rate and window by the utilisation of the path's fullest link, which switches report in the
    /// packets ([hpcc19]). Telemetry adds no bytes: include its size in `packet.header` and `packet.ack`
    /// ([hpcc19]: 42 B for 5 hops).
    pub struct Config {
        /// eta, the target utilisation ([hpcc19]: 0.95; its public curves: 0.99).
        pub eta: f64 = 0.95, where positive_fraction;
        /// `maxStage`, the number of additive increases below the target before a multiplicative one
        /// ([hpcc19]: 5; its simulations: 0).
        pub max_stage: u32 = 0;
        /// Additive increase; times the base RTT it is `W_AI` ([hpcc19], authors' simulations: 50 Mb/s at
        /// 100 Gb/s).
        pub additive_increase: FlowRate = FlowRate::from_mbps(50), where positive;
        /// Minimum of `W_AI`, the additive increase per base RTT ([hpcc19]: 80 B; own choice: 0 B).
        pub least_increase: Bytes = Bytes::ZERO;
        /// Minimum rate ([hpcc19] gives none; authors' simulations: 1 Gb/s at 100 Gb/s).
        pub min_rate: FlowRate = FlowRate::from_mbps(1_000), where positive;
        /// T, the base RTT; none for that of the flow's path ([hpcc19]: the longest of the network).
        pub base_rtt: Option<Duration> = None, where positive_if_given;
        /// ACKs that change the rate.
        pub reaction: Reaction = Reaction::Combined;
        /// One number of the fullest link's average utilisation instead of telemetry of all hops (PINT); none
        /// for telemetry. Its size is part of `packet.header` and `packet.ack`, too (authors' simulator: 2 B
        /// instead of 42 B).
        pub pint: Option<Pint> = None;
        /// If true, counters have the units of the authors' simulator: 1 ns, and 128 B and 80 B times the
        /// line rate in whole multiples of 25 Gb/s, at least one; otherwise they are exact.
        pub quantised: bool = false;
        /// Loss recovery and retransmission timeouts.
        pub reliability: Reliability = Reliability::go_back_n();
    }
    check Config::check
}

crate::parameters! {
    /// PINT, probabilistic telemetry ([pint20], as in [hpcc19]'s simulator).
    pub struct Pint {
        /// Ratio of the utilisations of consecutive codes (authors' simulator: 1.05, for codes of 8 bits, or
        /// 1.01, for 11 bits).
        pub base: f64 = 1.05, where base_of_codes;
        /// Share of the ACKs whose number is used; a hash of the packet chooses them (authors' simulator: 1).
        pub probability: f64 = 1.0, where positive_fraction;
        /// If true, ports average over all packets; otherwise they update the average only at data packets,
        /// so that data which an ACK follows is not counted (authors' simulator: false).
        pub counts_all: bool = true;
    }
}

fn base_of_codes() -> Bounds {
    Bounds::at_least(LEAST_BASE).because("codes have 16 bits")
}

impl Pint {
    /// Returns true if the ACK is used.
    fn uses(&self, ack: &Ack) -> bool {
        let hash = mix(u64::from(ack.cumulative) << 32 | u64::from(ack.next));
        (hash >> 11) as f64 / ((1_u64 << 53) as f64) < self.probability
    }
}

impl Config {
    fn check(&self) -> Result<(), Problem> {
        if self.pint.is_some() && self.quantised {
            let message = "goes without `pint`, whose codes have units of their own";
            return Err(Problem::new("quantised", message));
        }
        telemetry::check(&self.reliability)
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        let base_rtt = self.base_rtt.unwrap_or(path.base_rtt);
        let increase = self.additive_increase.bps(path.line_rate.bps());
        Box::new(Hpcc {
            config: self.clone(),
            additive_increase: increase.max(self.least_increase.bits() / base_rtt.seconds()),
            rate: ReferenceRate::new(self.min_rate, self.reaction, path),
            utilisation: Utilisation::new(base_rtt, self.quantised, path),
            base_rtt: base_rtt.seconds(),
            stage: 0,
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

    fn digest(&self, base_rtt: Duration) -> Option<Digest> {
        let period = self.base_rtt.unwrap_or(base_rtt);
        let digest = |pint: &Pint| Digest { base: pint.base, period, counts_all: pint.counts_all };
        self.pint.as_ref().map(digest)
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
struct Hpcc {
    config: Config,
    additive_increase: f64,
    rate: ReferenceRate,
    utilisation: Utilisation,
    /// In seconds.
    base_rtt: f64,
    /// `incStage`: additive increases since the last multiplicative change of the reference.
    stage: u32,
}

impl Hpcc {
    /// Returns the bytes in flight over a link relative to its bandwidth-delay product ([hpcc19] eq. 2). The
    /// smaller of two queues filters bursts.
    fn load(base_rtt: f64) -> impl Fn(&Interval) -> f64 {
        move |hop| hop.transmission + hop.queueing[0].min(hop.queueing[1]) / base_rtt
    }
}

impl Controller for Hpcc {
    fn on_telemetry(&mut self, path: &TelemetryStack) {
        match &self.config.pint {
            Some(pint) => self.utilisation.average = Digest::decode(pint.base, path.code()),
            None => self.utilisation.receive(path),
        }
    }

    fn on_ack(&mut self, ack: &Ack) {
        if self.rate.is_first() {
            self.rate.start(ack);
            return self.utilisation.start();
        }
        if !self.rate.reacts(ack) {
            return;
        }
        match &self.config.pint {
            Some(pint) if !pint.uses(ack) => return,
            Some(_) => {}
            None if self.utilisation.has_no_hops() => return,
            None => self.utilisation.update(Self::load(self.base_rtt)),
        }
        let excess = self.utilisation.average / self.config.eta;
        let is_multiplicative = excess >= 1.0 || self.stage >= self.config.max_stage;
        let (factor, stage) =
            if is_multiplicative { (1.0 / excess, 0) } else { (1.0, self.stage + 1) };
        if self.rate.set(self.rate.reference * factor + self.additive_increase, ack) {
            self.stage = stage;
        }
    }

    fn allowance(&self) -> Allowance {
        self.rate.allowance(self.base_rtt)
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        self.rate.gauges(self.base_rtt, ("utilisation", self.utilisation.average))
    }
}

#[cfg(test)]
mod tests;
