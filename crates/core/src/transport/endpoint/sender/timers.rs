//! Timers of a sender: the retransmission timer, the probe timer, and when to call the sender next.

use super::{Sender, SenderState};
use crate::base::units::Time;
use crate::transport::endpoint::timer_ticks;
use crate::transport::{Allowance, RtoRestart};

impl Sender {
    /// Restarts the retransmission timer, unless a recovery without SACK has had further partial ACKs
    /// (RFC 6582 §3.2): a flow with many losses would otherwise retransmit one segment per RTT without
    /// end.
    pub(super) fn restart_rto(&mut self, now: Time) {
        if !self.scoreboard.has_further_partial_acks() {
            self.rto_start = now;
        }
    }

    /// Returns true if a tail loss probe is to be sent, regardless of the window.
    #[inline]
    pub fn is_tail_probe_due(&self) -> bool {
        self.tail_probe.as_ref().is_some_and(|probe| probe.is_due())
    }

    /// Arms the probe timer, or disarms it if all data is acknowledged or SACKs reveal losses (RFC
    /// 8985 §7.2).
    #[inline]
    pub(super) fn arm_probe_timer(&mut self, now: Time) {
        if self.tail_probe.is_some() {
            self.update_probe_timer(now);
        }
    }

    // Not inlined, so that senders without probes do not pay for it.
    #[inline(never)]
    fn update_probe_timer(&mut self, now: Time) {
        let timeout = self.rto_expiry();
        let Some(probe) = &mut self.tail_probe else { return };
        match self.rtt.smoothed() {
            Some(smoothed)
                if self.scoreboard.is_in_order() && self.scoreboard.has_unacknowledged() =>
            {
                probe.arm(now, smoothed, self.scoreboard.flight_size(), timeout);
            }
            _ => probe.disarm(),
        }
    }

    /// Notes that the segment sent last is a tail loss probe.
    pub(super) fn on_probe_sent(&mut self, is_retransmit: bool) {
        if let Some(probe) = &mut self.tail_probe {
            probe.on_sent(self.scoreboard.highest(), is_retransmit);
        }
    }

    pub(super) fn has_unacknowledged(&self) -> bool {
        // With credit, the timer of requests always runs.
        self.scoreboard.has_unacknowledged()
            || self.state == SenderState::SynSent
            || self.requests_lost_data()
            || self.has_segment_timers()
    }

    #[inline]
    pub(super) fn has_segment_timers(&self) -> bool {
        self.mechanism.rto_restart == RtoRestart::PerSegment
    }

    /// Returns when to call [`on_timer`](Self::on_timer) and to poll for packets: the earliest of
    /// pacing, probes, the reordering timer and the RTO.
    #[inline]
    pub fn next_timer(&self, allowance: Allowance) -> Time {
        if self.is_finished() {
            return self.fin_expiry();
        }
        let timeout = if self.has_unacknowledged() { self.rto_expiry() } else { Time::NEVER };
        let is_open = self.state == SenderState::Established;
        let timeout =
            if is_open { timeout.min(self.next_router_probe(allowance)) } else { timeout };
        let timeout = timeout.min(self.scoreboard.next_timer());
        let timeout =
            self.tail_probe.as_ref().map_or(timeout, |probe| timeout.min(probe.next_timer()));
        if is_open && self.may_wait_for_departure(allowance) && self.candidate(allowance).is_some()
        {
            timeout.min(self.next_departure(allowance))
        } else {
            timeout
        }
    }

    /// Returns when to probe routers next, while there is data to send.
    #[inline]
    pub(super) fn next_router_probe(&self, allowance: Allowance) -> Time {
        match allowance.probe_interval {
            Some(interval) if self.scoreboard.candidate().is_some() => {
                let due = self.probed_at.max(self.pacer.burst_start()) + interval;
                due.max(self.pacer.earliest_departure(self.pacer.unpaced_limit()))
            }
            _ => Time::NEVER,
        }
    }

    /// Returns when the retransmission timer expires.
    #[inline]
    pub(super) fn rto_expiry(&self) -> Time {
        if self.has_segment_timers() && self.state == SenderState::Established {
            return self.segment_timer_expiry();
        }
        let start = self.pacer.timed_from(self.rto_start);
        if start == Time::NEVER {
            return Time::NEVER;
        }
        timer_ticks::expiry(start, self.timeout(), self.mechanism.reliability.timer_tick)
    }

    // Not inlined: few transports time each segment.
    #[inline(never)]
    fn segment_timer_expiry(&self) -> Time {
        let probe = self.sleek.as_ref().map_or(Time::NEVER, |sleek| sleek.next_timer());
        self.segment_rto_expiry().min(probe)
    }

    /// Returns when the timer expires of the segment that has been in flight for the longest time.
    pub(super) fn segment_rto_expiry(&self) -> Time {
        let sent_at = self.scoreboard.oldest_sent_at().unwrap_or(self.rto_start);
        self.pacer.timed_from(sent_at) + self.timeout()
    }
}
