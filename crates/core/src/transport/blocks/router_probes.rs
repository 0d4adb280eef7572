//! Probes that a slow flow sends to routers between its packets.

use crate::base::units::{Bytes, Duration, Rate};

/// Part of a flow's rate that its probes take at most: those of many slow flows would displace their data.
const SHARE: u64 = 4;

/// Number of RTTs between probes at most, so that a flow learns of a higher rate; as many as a flow at the
/// end of PDQ's list waits.
const MOST_RTTS: u64 = 50;

/// Returns the interval of probes of `bytes` from a flow with a rate and an RTT: one RTT, or longer if probes
/// would take more than a quarter of the rate.
pub fn probe_interval(rate: Rate, rtt: Duration, bytes: Bytes) -> Duration {
    let shortest = rate.max(Rate(1)).transmit(Bytes(SHARE * bytes.0));
    rtt.max(shortest.min(rtt * MOST_RTTS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_take_a_quarter_of_the_rate_and_follow_each_other_after_1_to_50_rtts() {
        let rtt = Duration::from_micros(10);
        // 40 B take 0.32 us at 1 Gb/s.
        for (mbps, us) in
            [(1000, 10.0), (128, 10.0), (100, 12.8), (10, 128.0), (1, 500.0), (0, 500.0)]
        {
            let rate = Rate::from_bps(f64::from(mbps) * 1e6);
            assert_eq!(probe_interval(rate, rtt, Bytes(40)), Duration::from_seconds(us * 1e-6));
        }
    }
}
