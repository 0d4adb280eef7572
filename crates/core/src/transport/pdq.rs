//! PDQ's host: sends at the rate that routers grant, or waits and asks again.
//!
//! Source: [pdq12] §3. A SYN asks before any data is sent, which costs a round trip.

use super::{Ack, Allowance, Controller, Leaving, Mechanism, Opened, Path, Reliability, Transport};
use crate::packet::{Format, Grant, Header};
use crate::router;
use crate::units::{Bytes, Duration, Rate, Time};

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
        let on_wire = |size| path.format.on_wire(size).bits() / 8.0;
        Box::new(Pdq {
            most: path.line_rate.bps() / 8.0,
            // Until routers have spoken, or where nobody asks them, the line's rate.
            grant: Grant::Rate((path.line_rate.bps() / 8.0) as f32),
            rtt: Duration::ZERO,
            base_rtt: path.base_rtt,
            unsent: path.size.map_or(f64::INFINITY, on_wire),
            deadline: path
                .size
                .filter(|_| self.early_termination)
                .map_or(Time::NEVER, |_| path.deadline),
            gives_up: false,
        })
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        Mechanism { speaks: true, says_goodbye: true, ..Mechanism::paced(&self.reliability) }
    }

    fn router(&self) -> Option<router::Config> {
        Some(router::Config::pdq(crate::parameters::defaults()))
    }

    fn needs_one_path(&self) -> bool {
        true
    }
}

/// The state of one flow; rates in bytes a second.
struct Pdq {
    most: f64,
    grant: Grant,
    /// Smoothed; zero before the first sample.
    rtt: Duration,
    base_rtt: Duration,
    /// Bytes on the wire that have never been sent, if nothing is sent twice.
    unsent: f64,
    /// The deadline that decides whether to give up.
    deadline: Time,
    gives_up: bool,
}

impl Pdq {
    fn take_in(&mut self, now: Time, rtt: Duration, feedback: f32) {
        // As the time-out's (RFC 6298 §2.3).
        self.rtt = if self.rtt == Duration::ZERO { rtt } else { (self.rtt * 7 + rtt) / 8 };
        // Zero is what nobody has written.
        if feedback != 0.0 {
            self.grant = Grant::of(feedback);
        }
        self.consider(now);
    }

    fn is_paused(&self) -> bool {
        matches!(self.grant, Grant::Pause { .. })
    }

    /// How long what is left takes at the best: the rest of the data, or an answer to a probe.
    fn least_left(&self) -> Duration {
        let rest = if self.unsent > 0.0 { self.unsent / self.most } else { 0.0 };
        let rest = Duration::from_seconds(rest);
        if self.is_paused() { rest.max(self.rtt) } else { rest }
    }

    /// Gives up if the deadline cannot be met ([pdq12] §3, early termination).
    fn consider(&mut self, now: Time) {
        self.gives_up |= self.deadline != Time::NEVER && now + self.least_left() > self.deadline;
    }
}

impl Controller for Pdq {
    fn on_open(&mut self, opened: &Opened) {
        self.take_in(opened.now, opened.rtt, opened.feedback);
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.take_in(ack.now, ack.rtt, ack.feedback);
    }

    fn on_sent(&mut self, _now: Time, bytes: Bytes) {
        self.unsent -= bytes.bits() / 8.0;
    }

    fn on_timer(&mut self, now: Time) {
        self.consider(now);
    }

    fn next_timer(&self) -> Time {
        if self.deadline == Time::NEVER || self.gives_up {
            return Time::NEVER;
        }
        // A picosecond after the last moment at which it could still be met.
        Time((self.deadline.0 + 1).saturating_sub(self.least_left().0))
    }

    fn allowance(&self) -> Allowance {
        let rate = match self.grant {
            Grant::Rate(rate) => f64::from(rate).min(self.most) * 8.0,
            Grant::Pause { .. } => 0.0,
        };
        let rtt = self.rtt.max(self.base_rtt);
        let probe = match self.grant {
            Grant::Rate(_) => None,
            // Once a round trip, or less often if routers say so.
            Grant::Pause { probe_after, .. } => Some(rtt.max(rtt * u64::from(probe_after) / 5)),
        };
        let rate = Some(if rate > 0.0 { Rate::from_bps(rate).max(Rate(1)) } else { Rate(0) });
        Allowance { window: Bytes(u64::MAX), rate, probe, gives_up: self.gives_up }
    }

    fn header(&self, leaving: &Leaving) -> Header {
        Header::Pdq {
            grant: match self.grant {
                Grant::Rate(_) => Grant::Rate(self.most as f32),
                Grant::Pause { by, .. } => Grant::Pause { by, probe_after: 0 },
            },
            // What is in flight counts until it is acknowledged: flows that follow then start a little
            // later, and meet less of a queue.
            remaining: (leaving.remaining.bits() / 8.0 / self.most) as f32,
            rtt: self.rtt.seconds() as f32,
        }
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![("rate_bps", self.allowance().rate.map_or(0.0, Rate::bps))]
    }
}
