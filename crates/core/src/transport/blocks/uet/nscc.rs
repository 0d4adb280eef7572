//! NSCC: network-signalled congestion control, the window of Ultra Ethernet Transport.
//!
//! Source: `uec.cpp` of uet-htsim (August 2025), whose authors are among those of UEC 1.0 §3.6.13, with
//! integers that are truncated at each assignment. ECN marks and the queueing delay are the two signals of an
//! ACK. Without a mark the window grows: in proportion to what the delay lacks to its target, or by a fair
//! increase above it. With a mark it shrinks by the average delay, once per base RTT. If little arrives in a
//! period with losses or long delays, quick adapt sets the window to what has arrived.
//!
//! Deviation: the ACK of a request gives no RTT sample.

use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::transport::recovery::sleek::Bounds;

/// Network in which the law's constants of bytes and times are those of its authors: 100 Gb/s and 12 us.
const REFERENCE_RTT: f64 = 12e6;
const REFERENCE_BDP: f64 = 150_000.0;
/// Largest window, in bandwidth-delay products.
pub const LARGEST: f64 = 1.5;
/// Weight of a sample in the average delay.
const WEIGHT: f64 = 0.0125;
/// Increases are added to the window after this number of packets, or after a base RTT.
const ADJUSTED_PACKETS: u64 = 8;
/// Delay below which a window without marks grows fast.
const NO_DELAY: Duration = Duration::from_micros(1);
/// Share of the excess delay by which a window shrinks, and the largest decrease.
const GAMMA: f64 = 0.8;
const LARGEST_DECREASE: f64 = 0.5;
/// Targets of delay above which quick adapt acts, and the share of the largest window below which it does.
const QUICK_ADAPT_DELAY: u64 = 4;
const QUICK_ADAPT_SHARE: u64 = 8;

/// SLEEK: windows of segments beyond a gap that reveal a loss, and the least number of segments.
const REORDERED_WINDOWS: f64 = 1.5;
const LEAST_REORDERED: u64 = 5;

/// Network and packets of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Line rate of the sending host.
    pub line_rate: Rate,
    /// Base RTT from which the constants follow.
    pub base_rtt: Duration,
    /// Target of the queueing delay.
    pub target_delay: Duration,
    /// Payload of a full packet.
    pub payload: Bytes,
    /// Size of a full packet.
    pub packet: Bytes,
}

impl Scale {
    /// Returns the largest window at a base RTT, a packet at least.
    pub fn largest_window(&self, base_rtt: Duration) -> u64 {
        ((LARGEST * self.line_rate.carries(base_rtt).0 as f64) as u64).max(self.packet.0)
    }
}

/// Window of a flow.
#[derive(Debug)]
pub struct Nscc {
    scale: Scale,
    /// Proportional increase, in bytes per picosecond and acknowledged byte; fair increase, in bytes; fast
    /// increase, in bytes per acknowledged byte; and what is added once per base RTT, in bytes.
    proportional: f64,
    fair: f64,
    fast: f64,
    eta: f64,

    window: u64,
    base_rtt: Duration,
    max_window: u64,
    average_delay: u64,
    /// Increase to add to the window, in bytes times the window, and the bytes acknowledged meanwhile.
    increase: u32,
    received: u64,
    /// Bytes acknowledged without a delay, and true once the window grows fast.
    undelayed: u32,
    is_fast: bool,
    last_decrease: Time,
    last_adjustment: Time,
    /// Quick adapt: bytes that arrived in the period, its end, and true if a packet was trimmed.
    achieved: u64,
    period_end: Time,
    has_trimmed: bool,
    /// Bytes after quick adapt whose marks are ignored, and those that were.
    to_ignore: u64,
    ignored: u64,
}

impl Nscc {
    /// Returns the largest window.
    pub fn new(scale: Scale) -> Self {
        let payload = scale.payload.0 as f64;
        let of_reference = scale.line_rate.carries(scale.base_rtt).0 as f64 / REFERENCE_BDP;
        let target = scale.target_delay.0.max(1) as f64;
        let max_window = scale.largest_window(scale.base_rtt);
        Self {
            proportional: 4.0 * payload * of_reference * (target / REFERENCE_RTT) / target,
            fair: 5.0 * payload * of_reference,
            fast: 0.25 * of_reference,
            eta: 0.15 * payload * of_reference,
            window: max_window,
            base_rtt: scale.base_rtt,
            max_window,
            average_delay: 0,
            increase: 0,
            received: 0,
            undelayed: 0,
            is_fast: false,
            last_decrease: Time::ZERO,
            last_adjustment: Time::ZERO,
            achieved: 0,
            period_end: Time::ZERO,
            has_trimmed: false,
            to_ignore: 0,
            ignored: 0,
            scale,
        }
    }

    /// Returns the window in bytes, headers included.
    pub fn window(&self) -> u64 {
        self.window
    }

    /// Returns the base RTT, the smallest of all RTTs and the configured one.
    pub fn base_rtt(&self) -> Duration {
        self.base_rtt
    }

    /// Returns the bounds by which SLEEK detects losses.
    pub fn loss_bounds(&self) -> Bounds {
        let payload = self.scale.payload.0;
        // An inaccurate clock may measure an RTT of zero.
        let least_rtt = self.scale.line_rate.transmit(self.scale.packet);
        let reordered = ((REORDERED_WINDOWS * self.window as f64) as u64).min(self.max_window);
        Bounds {
            reordered: (reordered / payload).max(LEAST_REORDERED) as u32,
            window: (self.window / payload) as u32,
            base_rtt: self.base_rtt.max(least_rtt),
            delay: self.scale.target_delay,
        }
    }

    /// Returns the average queueing delay.
    pub fn average_delay(&self) -> Duration {
        Duration(self.average_delay)
    }

    /// Handles an ACK of `bytes`, after which `in_flight` are in flight. `rtt` is that of the packet that it
    /// answers, if it has payload.
    pub fn on_ack(
        &mut self,
        now: Time,
        rtt: Option<Duration>,
        marked: bool,
        bytes: u64,
        in_flight: u64,
    ) {
        let delay = match rtt {
            Some(rtt) => {
                self.lower_base_rtt(rtt);
                let delay = rtt.0 - self.base_rtt.0;
                self.average(delay, marked);
                delay
            }
            None => self.average_delay,
        };
        self.achieved += bytes;
        self.received += bytes;
        self.ignored += bytes;
        if self.quick_adapt(now, marked, delay, in_flight) {
            return;
        }
        let target = self.scale.target_delay.0;
        match (marked, delay >= target) {
            (false, true) => self.add_increase(self.fair * bytes as f64),
            (false, false) => self.increase_in_proportion(bytes, delay),
            (true, true) => self.decrease(now),
            (true, false) => {}
        }
        self.clamp();
        let since = now - self.last_adjustment;
        let rtt = self.scale.base_rtt;
        if self.received > ADJUSTED_PACKETS * self.scale.packet.0 || since > rtt {
            self.window += u64::from(self.increase) / self.window;
            if since >= rtt {
                self.window = (self.window as f64 + self.eta) as u64;
                self.last_adjustment = now;
            }
            (self.increase, self.received) = (0, 0);
        }
        self.clamp();
    }

    /// Handles the NACK of a packet of `bytes`, when `in_flight` are in flight with it. The window shrinks
    /// unless `is_blameless`.
    pub fn on_nack(
        &mut self,
        now: Time,
        rtt: Duration,
        bytes: u64,
        in_flight: u64,
        is_blameless: bool,
    ) {
        self.lower_base_rtt(rtt);
        self.ignored += bytes;
        self.average(self.scale.base_rtt.0, true);
        self.has_trimmed = true;
        if !self.quick_adapt(now, true, 0, in_flight) && !is_blameless {
            self.window = self.window.saturating_sub(bytes);
            self.clamp();
        }
    }

    /// Handles the timeout of a packet of `bytes`.
    pub fn on_timeout(&mut self, bytes: u64) {
        self.window = self.window.saturating_sub(bytes).max(self.scale.packet.0);
    }

    fn lower_base_rtt(&mut self, rtt: Duration) {
        if rtt < self.base_rtt {
            self.base_rtt = rtt;
            self.max_window = self.scale.largest_window(rtt);
        }
    }

    /// Updates the average delay. A long delay without a mark is that of a queue that has just drained, and
    /// counts as a quarter of the base RTT.
    fn average(&mut self, delay: u64, marked: bool) {
        let is_drained = !marked && delay > self.scale.target_delay.0;
        let sample = if is_drained { self.base_rtt.0 / 4 } else { delay };
        self.average_delay =
            (WEIGHT * sample as f64 + (1.0 - WEIGHT) * self.average_delay as f64) as u64;
    }

    fn add_increase(&mut self, bytes: f64) {
        self.increase = (f64::from(self.increase) + bytes) as u32;
    }

    fn increase_in_proportion(&mut self, bytes: u64, delay: u64) {
        if delay < NO_DELAY.0 {
            self.undelayed = self.undelayed.saturating_add(bytes as u32);
            if u64::from(self.undelayed) > self.window || self.is_fast {
                self.window = (self.window as f64 + self.fast * bytes as f64) as u64;
                self.is_fast = true;
                return;
            }
        } else {
            self.undelayed = 0;
        }
        self.is_fast = false;
        let lacking = (self.scale.target_delay.0 - delay) as f64;
        self.add_increase(self.proportional * bytes as f64 * lacking);
    }

    fn decrease(&mut self, now: Time) {
        (self.is_fast, self.undelayed) = (false, 0);
        let (average, target) = (self.average_delay, self.scale.target_delay.0);
        if average > target && now - self.last_decrease > self.base_rtt {
            let excess = (average - target) as f64 / average as f64;
            let kept = (1.0 - GAMMA * excess).max(1.0 - LARGEST_DECREASE);
            self.window = ((self.window as f64 * kept) as u64).max(self.scale.packet.0);
            self.last_decrease = now;
        }
    }

    /// Sets the window to what arrived in the last period, if that was little. Returns true if it did, or if
    /// the mark is of a packet sent before.
    fn quick_adapt(&mut self, now: Time, marked: bool, delay: u64, in_flight: u64) -> bool {
        let mut is_handled = false;
        if self.ignored < self.to_ignore && marked {
            is_handled = true;
        } else if now > self.period_end {
            let is_long = delay > QUICK_ADAPT_DELAY * self.scale.target_delay.0;
            if self.period_end != Time::ZERO
                && (self.has_trimmed || is_long)
                && self.achieved < self.max_window / QUICK_ADAPT_SHARE
            {
                self.window = self.achieved.max(self.scale.packet.0);
                (self.to_ignore, self.ignored) = (in_flight, 0);
                self.has_trimmed = false;
                is_handled = true;
            }
            self.achieved = 0;
            self.period_end = now + self.base_rtt + self.scale.target_delay;
        }
        if is_handled {
            (self.increase, self.received) = (0, 0);
        }
        is_handled
    }

    fn clamp(&mut self) {
        self.window = self.window.clamp(self.scale.packet.0, self.max_window);
    }
}

#[cfg(test)]
mod tests;
