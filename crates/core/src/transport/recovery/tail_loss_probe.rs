//! Probes for what is lost at the end of a flight, of which nothing that comes later can tell: TLP (RFC 8985
//! §7).
//!
//! The receiver here reports no duplicates, so whether the probe or what it repeats was lost is told as the
//! RFC tells it without them: by an ACK that says nothing new (§7.4.2).

use crate::base::units::{Duration, Time};
use crate::transport::endpoint::timer_ticks;

/// What timers are late by (Linux: 2 ms).
const MARGIN: Duration = Duration::from_millis(2);

/// A probe on its way.
#[derive(Clone, Copy, Debug)]
struct Probe {
    /// All that had been sent lies before this.
    end: u32,
    is_copy: bool,
}

/// The probes of one sender.
#[derive(Clone, Copy, Debug)]
pub struct TailLossProbe {
    /// How much longer a segment that is alone waits: as long as its ACK may be delayed.
    alone: Duration,
    timer_tick: Duration,
    due: Time,
    /// Whether a probe is to leave now.
    is_wanted: bool,
    probe: Option<Probe>,
}

impl TailLossProbe {
    /// No probe is due yet.
    pub fn new(alone: Duration, timer_tick: Duration) -> Self {
        Self { alone, timer_tick, due: Time::NEVER, is_wanted: false, probe: None }
    }

    /// When to probe.
    pub fn due(&self) -> Time {
        self.due
    }

    /// Whether a probe is to leave now.
    pub fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// Waits from now on: two round trips, but no longer than until the time-out.
    pub fn wait(&mut self, now: Time, smoothed: Duration, flight: u32, timeout: Time) {
        let margin = if flight == 1 { self.alone } else { MARGIN };
        self.due = timer_ticks::end(now, smoothed * 2 + margin, self.timer_tick).min(timeout);
        self.is_wanted = false;
    }

    /// Nothing is to be probed.
    pub fn rest(&mut self) {
        self.due = Time::NEVER;
        self.is_wanted = false;
    }

    /// Lets time pass: wants a probe from now on if it is due, and none is on its way; says whether it does.
    pub fn on_time(&mut self, now: Time) -> bool {
        let is_due = self.due <= now;
        if is_due {
            self.due = Time::NEVER;
            self.is_wanted = self.probe.is_none();
        }
        is_due && self.is_wanted
    }

    /// The probe leaves.
    pub fn on_sent(&mut self, end: u32, is_copy: bool) {
        self.is_wanted = false;
        self.probe = Some(Probe { end, is_copy });
    }

    /// All is lost that was on its way, and the probe with it.
    pub fn on_timeout(&mut self) {
        self.rest();
        self.probe = None;
    }

    /// An ACK has come, which says something new or not. Says whether the probe has repaired a loss, which
    /// is to be answered as any other.
    pub fn on_ack(&mut self, cumulative: u32, is_new: bool) -> bool {
        let Some(probe) = self.probe.filter(|probe| cumulative >= probe.end) else { return false };
        if probe.is_copy && cumulative == probe.end && is_new {
            // Either copy may have come; if both, an ACK is still to follow that says nothing new.
            return false;
        }
        self.probe = None;
        probe.is_copy && cumulative > probe.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    fn waiting(flight: u32, timeout: u64) -> TailLossProbe {
        let mut tail = TailLossProbe::new(Duration::from_millis(200), Duration::ZERO);
        tail.wait(at(0), Duration::from_millis(100), flight, at(timeout));
        tail
    }

    #[test]
    fn it_waits_two_round_trips_and_for_a_delayed_ack_but_no_longer_than_the_time_out() {
        assert_eq!(waiting(2, 1000).due(), at(202));
        assert_eq!(waiting(1, 1000).due(), at(400));
        assert_eq!(waiting(1, 300).due(), at(300));
    }

    #[test]
    fn there_is_one_probe_at_a_time() {
        let mut tail = waiting(2, 1000);
        assert!(!tail.on_time(at(201)));
        assert!(tail.on_time(at(202)) && tail.is_wanted());
        tail.on_sent(10, true);
        tail.wait(at(202), Duration::from_millis(100), 2, at(1000));
        assert!(!tail.on_time(at(404)), "the first has not been answered");
        tail.on_timeout();
        tail.wait(at(1000), Duration::from_millis(100), 2, at(2000));
        assert!(tail.on_time(at(1202)));
    }

    #[test]
    fn a_copy_that_was_needed_is_a_loss_and_one_that_was_not_is_none() {
        let probed = |is_copy| {
            let mut tail = waiting(2, 1000);
            tail.on_sent(10, is_copy);
            assert!(!tail.on_ack(9, true));
            tail
        };
        let mut needed = probed(true);
        assert!(!needed.on_ack(10, true), "nothing tells yet");
        assert!(needed.on_ack(11, true), "one copy came");
        let mut idle = probed(true);
        assert!(!idle.on_ack(10, true));
        assert!(!idle.on_ack(10, false), "and so did the other");
        assert!(!idle.on_ack(11, true));
        assert!(!probed(false).on_ack(11, true), "it was new");
    }
}
