//! PDQ (host): sends at the rate that routers grant, or pauses and sends probes ([pdq12] §3).
//!
//! The SYN requests a rate before any data is sent, which takes one RTT.

use super::{
    Ack, Allowance, Controller, Mechanism, Opened, OutgoingPacket, Path, Reliability, Signalling,
    Transport,
};
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::packet::{Format, Grant, Header};
use crate::router;
use crate::transport::blocks::deadline::Deadline;
use crate::transport::endpoint::rtt::smooth;

crate::parameters! {
    /// PDQ: routers let the most critical flows send, one after the other, and pause the rest
    /// ([pdq12]). The defaults are its variant "Full". "Basic" has neither early termination nor the
    /// router's `early_start` (0) and `suppressed_probing`. PDQ assumes RTTs of many packets: with one
    /// or two packets per RTT, as with microseconds at 1 Gb/s, its rate controller overshoots.
    pub struct Config {
        /// If true, a flow is given up as soon as it cannot meet its deadline ([pdq12] §3).
        pub early_termination: bool = true;
        /// Loss recovery and retransmission timeouts; PDQ needs the handshake.
        pub reliability: Reliability = Reliability {
            handshake: true,
            initial_rto: Duration::from_millis(1),
            min_rto: Duration::from_millis(1),
            ..Reliability::selective_repeat()
        };
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        Box::new(Pdq {
            line_rate: path.line_rate.bps() / 8.0,
            // Line rate before the first grant, or if no router grants rates.
            grant: Grant::Rate((path.line_rate.bps() / 8.0) as f32),
            srtt: None,
            base_rtt: path.base_rtt,
            deadline: Deadline::new(path, self.early_termination),
        })
    }

    fn own_reliability(&self) -> &'static [&'static str] {
        &["handshake"]
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        Mechanism { signalling: Signalling::HeaderAndFin, ..Mechanism::paced(&self.reliability) }
    }

    fn router(&self) -> Option<router::Config> {
        Some(router::Config::pdq(crate::base::schema::defaults()))
    }

    fn needs_one_path(&self) -> bool {
        true
    }
}

/// State of one flow; rates in bytes per second.
struct Pdq {
    line_rate: f64,
    grant: Grant,
    /// Smoothed RTT; none before the first sample.
    srtt: Option<Duration>,
    base_rtt: Duration,
    deadline: Deadline,
}

impl Pdq {
    fn handle_feedback(&mut self, rtt: Duration, feedback: f32) {
        let rtt = smooth(self.srtt, rtt);
        self.srtt = Some(rtt);
        // Zero: no router wrote a grant.
        if feedback != 0.0 {
            self.grant = Grant::of(feedback);
        }
        // [pdq12] §3, early termination: a paused flow needs one RTT for a grant before it can send.
        self.deadline.set_pause(match self.grant {
            Grant::Rate(_) => Duration::ZERO,
            Grant::Pause { .. } => rtt,
        });
    }
}

impl Controller for Pdq {
    fn on_open(&mut self, opened: &Opened) {
        self.handle_feedback(opened.rtt, opened.feedback);
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.deadline.on_ack(ack);
        self.handle_feedback(ack.rtt, ack.feedback);
    }

    fn on_sent(&mut self, _now: Time, _bytes: Bytes) -> Option<Allowance> {
        self.deadline.on_sent();
        Some(self.allowance())
    }

    fn on_timer(&mut self, now: Time) {
        self.deadline.on_timer(now);
    }

    fn next_timer(&self) -> Time {
        self.deadline.next_timer()
    }

    fn allowance(&self) -> Allowance {
        let rate = match self.grant {
            Grant::Rate(rate) => f64::from(rate).min(self.line_rate) * 8.0,
            Grant::Pause { .. } => 0.0,
        };
        let rtt = self.srtt.map_or(self.base_rtt, |rtt| rtt.max(self.base_rtt));
        let probe_interval = match self.grant {
            Grant::Rate(_) => None,
            Grant::Pause { probe_after: Grant::UNCONFIRMED, .. } => Some(rtt),
            // Once per RTT, or less often if routers require (suppressed probing).
            Grant::Pause { probe_after, .. } => Some(rtt.max(rtt * u64::from(probe_after) / 5)),
        };
        let rate = Some(if rate > 0.0 { Rate::from_bps(rate).max(Rate(1)) } else { Rate(0) });
        Allowance {
            rate,
            probe_interval,
            is_terminated: self.deadline.is_given_up(),
            ..Allowance::rate(0.0)
        }
    }

    fn header(&self, leaving: &OutgoingPacket) -> Header {
        Header::Pdq {
            grant: match self.grant {
                // After a failure the router that paused the flow may be on another path, where it keeps
                // the other routers from listing the flow.
                Grant::Rate(_) | Grant::Pause { probe_after: Grant::UNCONFIRMED, .. } => {
                    Grant::Rate(self.line_rate as f32)
                }
                Grant::Pause { by, .. } => Grant::Pause { by, probe_after: Grant::UNCONFIRMED },
            },
            // Data in flight counts until it is acknowledged: the flows that follow then start a little
            // later, with less queueing.
            remaining: (leaving.remaining.bits() / 8.0 / self.line_rate) as f32,
            rtt: self.srtt.map_or(0.0, Duration::seconds) as f32,
        }
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![("rate_bps", self.allowance().rate.map_or(0.0, Rate::bps))]
    }
}
