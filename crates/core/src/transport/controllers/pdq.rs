//! PDQ's host: sends at the rate that routers grant, or waits and asks again.
//!
//! Source: [pdq12] §3. A SYN asks before any data is sent, which costs a round trip.

use super::{
    Ack, Allowance, Controller, Mechanism, Opened, OutgoingPacket, Path, Reliability, Transport,
};
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::packet::{Format, Grant, Header};
use crate::router;
use crate::transport::blocks::deadline::Deadline;
use crate::transport::endpoint::rtt::smooth;

crate::parameters! {
    /// PDQ: routers let the most critical flows send, one after the other, and pause the rest
    /// ([pdq12]). Its variant "Basic" has neither early termination nor the router's `early_start` (0)
    /// and `suppressed_probing`; the defaults are "Full". It counts on round trips of many packets:
    /// where they hold one or two, as with microseconds at 1 Gb/s, its rate controller overshoots.
    pub struct Config {
        /// Whether a flow is given up as soon as it cannot meet its deadline any more ([pdq12] §3).
        pub early_termination: bool = true;
        /// How data is made reliable; without the handshake it would not be PDQ.
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
            most: path.line_rate.bps() / 8.0,
            // Until routers have spoken, or where nobody asks them, the line's rate.
            grant: Grant::Rate((path.line_rate.bps() / 8.0) as f32),
            rtt: None,
            base_rtt: path.base_rtt,
            deadline: Deadline::new(path, self.early_termination),
        })
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        Mechanism { has_header: true, sends_fin: true, ..Mechanism::paced(&self.reliability) }
    }

    fn router(&self) -> Option<router::Config> {
        Some(router::Config::pdq(crate::base::schema::defaults()))
    }

    fn needs_one_path(&self) -> bool {
        true
    }
}

/// The state of one flow; rates in bytes a second.
struct Pdq {
    most: f64,
    grant: Grant,
    /// Smoothed round-trip time, once there is a sample.
    rtt: Option<Duration>,
    base_rtt: Duration,
    deadline: Deadline,
}

impl Pdq {
    fn take_in(&mut self, rtt: Duration, feedback: f32) {
        let rtt = smooth(self.rtt, rtt);
        self.rtt = Some(rtt);
        // Zero is what nobody has written.
        if feedback != 0.0 {
            self.grant = Grant::of(feedback);
        }
        // [pdq12] §3, early termination: a paused flow has to ask and be answered before it sends.
        self.deadline.hold(match self.grant {
            Grant::Rate(_) => Duration::ZERO,
            Grant::Pause { .. } => rtt,
        });
    }
}

impl Controller for Pdq {
    fn on_open(&mut self, opened: &Opened) {
        self.take_in(opened.rtt, opened.feedback);
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.deadline.on_ack(ack);
        self.take_in(ack.rtt, ack.feedback);
    }

    fn on_sent(&mut self, _now: Time, _bytes: Bytes) {
        self.deadline.on_sent();
    }

    fn on_timer(&mut self, now: Time) {
        self.deadline.on_timer(now);
    }

    fn next_timer(&self) -> Time {
        self.deadline.next_timer()
    }

    fn allowance(&self) -> Allowance {
        let rate = match self.grant {
            Grant::Rate(rate) => f64::from(rate).min(self.most) * 8.0,
            Grant::Pause { .. } => 0.0,
        };
        let rtt = self.rtt.map_or(self.base_rtt, |rtt| rtt.max(self.base_rtt));
        let probe = match self.grant {
            Grant::Rate(_) => None,
            // Once a round trip, or less often if routers say so.
            Grant::Pause { probe_after, .. } => Some(rtt.max(rtt * u64::from(probe_after) / 5)),
        };
        let rate = Some(if rate > 0.0 { Rate::from_bps(rate).max(Rate(1)) } else { Rate(0) });
        Allowance { window: Bytes(u64::MAX), rate, probe, gives_up: self.deadline.is_given_up() }
    }

    fn header(&self, leaving: &OutgoingPacket) -> Header {
        Header::Pdq {
            grant: match self.grant {
                Grant::Rate(_) => Grant::Rate(self.most as f32),
                Grant::Pause { by, .. } => Grant::Pause { by, probe_after: 0 },
            },
            // What is in flight counts until it is acknowledged: flows that follow then start a little
            // later, and meet less of a queue.
            remaining: (leaving.remaining.bits() / 8.0 / self.most) as f32,
            rtt: self.rtt.map_or(0.0, Duration::seconds) as f32,
        }
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![("rate_bps", self.allowance().rate.map_or(0.0, Rate::bps))]
    }
}
