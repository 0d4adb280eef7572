//! SLEEK: loss detection of Ultra Ethernet Transport (UET) where switches do not trim packets.
//!
//! Source: `uec.cpp` of uet-htsim (August 2025). Packets take many paths, so only a number of segments
//! beyond the first gap that grows with the window reveals losses. If ACKs cease, a probe without payload
//! follows the data. Its receiver answers with an ACK, and if the probe found a short queue, the segments
//! before it are lost.
//!
//! Deviations: in recovery the timers of segments restart, where htsim drops them, so that no segment is
//! left without one. Every answer to a probe gives an RTT sample, in htsim only that to the newest.

use crate::base::units::{Duration, Time};

/// Base RTTs without an ACK after which a probe follows while there is unsent data, and until the next probe.
const FIRST_PROBE: u64 = 3;
const NEXT_PROBE: u64 = 5;

/// Bounds on order and delay, which follow from the controller's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Segments beyond the first gap that reveal losses.
    pub reordered: u32,
    /// Segments from the first gap on that an ACK may declare lost.
    pub window: u32,
    /// RTT without queueing.
    pub base_rtt: Duration,
    /// Queueing delay of a probe below which the segments before it are lost.
    pub delay: Duration,
}

/// Timer of probes of one sender.
#[derive(Clone, Copy, Debug)]
pub struct Sleek {
    /// Time when the next probe is due; [`Time::NEVER`] before the first ACK, and without data.
    expires: Time,
    base_rtt: Duration,
}

impl Sleek {
    /// Returns a timer that is not armed.
    pub fn unarmed() -> Self {
        Self { expires: Time::NEVER, base_rtt: Duration::ZERO }
    }

    /// Returns when the next probe is due.
    pub fn next_timer(&self) -> Time {
        self.expires
    }

    /// Handles an ACK, after which data is unsent or unacknowledged or neither.
    pub fn on_ack(&mut self, now: Time, bounds: &Bounds, is_unsent: bool, is_unacknowledged: bool) {
        self.base_rtt = bounds.base_rtt;
        self.expires = if is_unsent {
            now + bounds.base_rtt * FIRST_PROBE
        } else if is_unacknowledged {
            now + bounds.base_rtt + bounds.delay
        } else {
            Time::NEVER
        };
    }

    /// Handles the transmission of a probe.
    pub fn on_sent(&mut self, now: Time) {
        if self.expires < Time::NEVER {
            self.expires = now + self.base_rtt * NEXT_PROBE;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_follow_the_last_ack_sooner_if_all_data_is_sent() {
        let us = |us| Time::ZERO + Duration::from_micros(us);
        let bounds = Bounds {
            reordered: 5,
            window: 1,
            base_rtt: Duration::from_micros(10),
            delay: Duration::from_micros(7),
        };
        let mut sleek = Sleek::unarmed();
        assert_eq!(sleek.next_timer(), Time::NEVER, "not before the first ACK");
        for (is_unsent, is_unacknowledged, due) in
            [(true, true, us(130)), (false, true, us(117)), (false, false, Time::NEVER)]
        {
            sleek.on_ack(us(100), &bounds, is_unsent, is_unacknowledged);
            assert_eq!(sleek.next_timer(), due);
        }
        sleek.on_ack(us(100), &bounds, false, true);
        sleek.on_sent(us(117));
        assert_eq!(sleek.next_timer(), us(167));
    }
}
