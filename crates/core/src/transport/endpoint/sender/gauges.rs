//! RTO and gauges of a sender.

use super::Sender;
use crate::base::units::{Duration, Rate};
use crate::transport::Allowance;

impl Sender {
    /// Returns the current RTO.
    pub fn timeout(&self) -> Duration {
        self.rtt.timeout(&self.mechanism.reliability)
    }

    /// Returns the payload in flight, what the controller permits, and the smoothed RTT (SRTT in RFC 6298),
    /// as far as they are known.
    pub fn gauges(&self, allowance: Allowance) -> impl Iterator<Item = (&'static str, f64)> {
        let in_flight = self.bytes(self.scoreboard.in_flight()).0 as f64;
        let window = Some(allowance.window.0).filter(|window| *window < u64::MAX);
        let gauges = [
            ("in_flight_bytes", Some(in_flight)),
            ("window_bytes", window.map(|window| window as f64)),
            ("rate_bps", allowance.rate.map(Rate::bps)),
            ("smoothed_rtt_s", self.rtt.smoothed().map(Duration::seconds)),
        ];
        gauges.into_iter().filter_map(|(name, value)| Some((name, value?)))
    }
}
