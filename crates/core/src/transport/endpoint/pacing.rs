//! Pacing: the earliest departure of the next packet, by the rate and by the host's NIC.
//!
//! A flow with a limit has few packets in its host's NIC queue: it hands over a batch, waits until the
//! NIC has served it, and hands over the next. So flows share a FIFO queue in turn, as under `fq` with TCP
//! small queues (Linux), and wait outside it. A paced flow hands over a packet when its rate permits and
//! one at most is left in the queue; if it waited for a whole batch, it would fall behind its rate.

use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::host_clock::PortShare;
use crate::transport::PacingPolicy;

/// Packets of a flow that its NIC sends before the flow hands over the next segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NicWait {
    /// None of them.
    #[default]
    None,
    /// All but the last one.
    AllButLast,
    /// All of them.
    All,
}

/// Limits on the departure of the next segment, apart from the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacingLimit {
    /// Earliest departure by the rate.
    pub earliest: Time,
    /// Packets that the NIC sends first.
    pub nic: NicWait,
}

/// Pacing state of one sender.
#[derive(Debug)]
pub struct Pacer {
    /// Bytes on the link of the current burst.
    bytes: u32,
    /// Start of the current burst, and the packets left in it.
    burst_start: Time,
    burst_left: u32,
    /// Time when the NIC has sent all packets of this flow; [`Time::NEVER`] while that is unknown.
    nic_free: Time,
    /// Time when the NIC has sent all packets of this flow but the last.
    last_is_next: Time,
    /// Packets in the NIC queue without a known departure.
    queued_in_nic: u32,
    /// Packets of the current batch, which the NIC has not served completely.
    in_batch: u16,
    /// Time when the first packet of the current batch was handed over; of more than a batch has, the last.
    batch_began: Time,
    /// Time from the beginning of the last complete batch until the NIC had served it.
    batch_took: Duration,
    /// Packets of a batch, none if only pacing limits what the NIC queue holds; and from when gaps run.
    share: PortShare,
    /// Unit to which gaps are rounded down.
    time_unit: Duration,
}

impl Pacer {
    /// Creates the state of a sender that has sent no packets, with this share of the NIC queue, and gaps
    /// rounded down to `time_unit`.
    pub fn new(now: Time, share: PortShare, time_unit: Duration) -> Self {
        Self {
            bytes: 0,
            burst_start: now,
            burst_left: 0,
            nic_free: Time::ZERO,
            last_is_next: Time::ZERO,
            queued_in_nic: 0,
            in_batch: 0,
            batch_began: now,
            batch_took: Duration::ZERO,
            share,
            time_unit,
        }
    }

    /// Returns true if the flow has handed over all packets of a batch, so that the next one waits for the
    /// NIC, which may have served them by now.
    #[inline]
    pub fn is_batch_full(&self) -> bool {
        self.share.flow_limit.is_some_and(|limit| self.in_batch >= limit.get())
    }

    /// Returns true if the flow may hand over a packet now, regardless of its rate.
    pub fn may_hand_over(&self, now: Time) -> bool {
        !self.is_batch_full() || self.nic_free <= now
    }

    /// Returns what a packet within a batch or after it waits for.
    fn end_of_batch(&self) -> NicWait {
        if self.is_batch_full() { NicWait::All } else { NicWait::None }
    }

    /// Returns the limits on the next packet without a rate.
    pub fn unpaced_limit(&self) -> PacingLimit {
        PacingLimit { earliest: Time::ZERO, nic: self.end_of_batch() }
    }

    /// Returns the start of the last burst.
    pub fn burst_start(&self) -> Time {
        self.burst_start
    }

    /// Returns when the NIC has sent all packets of this flow; [`Time::NEVER`] while that is unknown.
    pub fn nic_free(&self) -> Time {
        self.nic_free
    }

    /// Returns true if flows send in turn and the NIC has packets of this flow.
    pub fn waits_for_nic(&self, now: Time) -> bool {
        self.share.flow_limit.is_some() && self.nic_free > now
    }

    /// Returns from when a timer runs that was started with the transmission of a packet at `handed_over`:
    /// about the time when the NIC has sent that packet, [`Time::NEVER`] while that is unknown. Linux does
    /// not time out a packet in its host's queue either (`skb_still_in_host_queue`).
    #[inline]
    pub fn timed_from(&self, handed_over: Time) -> Time {
        if self.share.flow_limit.is_none() {
            handed_over
        } else if handed_over >= self.batch_began {
            handed_over.max(self.nic_free)
        } else {
            handed_over + self.batch_took
        }
    }

    /// Records a paced packet of `bytes`, which starts or continues a burst.
    pub fn on_sent(&mut self, now: Time, bytes: u32, policy: PacingPolicy) {
        if self.burst_left == 0 {
            self.burst_start = now;
            self.bytes = 0;
            self.burst_left = policy.burst;
        }
        self.bytes += bytes;
        self.burst_left -= 1;
    }

    /// Returns the limits on the next packet at `rate`.
    #[inline]
    pub fn limit(&self, rate: Rate, policy: PacingPolicy) -> PacingLimit {
        let bytes = Bytes(u64::from(self.bytes));
        if self.burst_left > 0 {
            let offset = policy.spacing.map_or(Duration::ZERO, |rate| rate.transmit(bytes));
            return PacingLimit { earliest: self.burst_start + offset, nic: self.end_of_batch() };
        }
        if rate.0 == 0 {
            return PacingLimit { earliest: Time::NEVER, nic: NicWait::None };
        }
        let has_room_for_two = self.share.flow_limit.is_some_and(|limit| limit.get() > 1);
        let nic = if has_room_for_two { NicWait::AllButLast } else { NicWait::All };
        let gap = rate.transmit(bytes).rounded_down(self.time_unit);
        PacingLimit { earliest: self.burst_start + gap, nic }
    }

    /// Returns when the NIC has sent the packets that a segment waits for.
    pub fn nic_ready(&self, wait: NicWait) -> Time {
        match wait {
            NicWait::None => Time::ZERO,
            NicWait::AllButLast => self.last_is_next,
            NicWait::All => self.nic_free,
        }
    }

    /// Returns the earliest departure within `limit`. The packets of a burst depart back to back or
    /// with their spacing. The next burst may start when the last one has had its time at the current
    /// rate and the NIC has sent it, so that flows share a NIC in turn instead of filling its queue.
    pub fn earliest_departure(&self, limit: PacingLimit) -> Time {
        limit.earliest.max(self.nic_ready(limit.nic))
    }

    /// Records that the NIC has enqueued a packet now, whose transmission ends at `ends` if that is known.
    #[inline]
    pub fn on_enqueued(&mut self, now: Time, ends: Option<Time>) {
        if self.nic_free <= now {
            self.batch_took = self.nic_free.since(self.batch_began);
            self.batch_began = now;
        } else if self.is_batch_full() {
            self.batch_began = now;
        }
        self.in_batch = if self.nic_free <= now { 1 } else { self.in_batch.saturating_add(1) };
        self.last_is_next = self.nic_free;
        if let Some(ends) = ends {
            self.nic_free = ends;
        } else {
            self.queued_in_nic += 1;
            self.nic_free = Time::NEVER;
        }
    }

    /// Records that the NIC has enqueued a probe now, which belongs to the batch of its flow. Departures of
    /// probes are not reported: they count only if the NIC's queue predicts departures.
    pub fn on_probe_enqueued(&mut self, now: Time, ends: Option<Time>) {
        if self.share.flow_limit.is_some() && ends.is_some() && self.nic_free != Time::NEVER {
            self.on_enqueued(now, ends);
        }
    }

    /// Records that the transmission of a packet that waited in the NIC queue starts now and ends at
    /// `ends`. Returns true if the flow may be able to send again: that was the last packet or, with a
    /// limit, the last but one. A flow with a limit may send before the transmission ends, so that a queue
    /// that chooses among flows does not pass over it.
    pub fn on_departure(&mut self, now: Time, ends: Time) -> bool {
        self.queued_in_nic -= 1;
        // The first packet of a burst departs; batches are of one packet.
        if self.share.paces_departures && self.burst_start == self.batch_began {
            self.burst_start = now;
        }
        let has_limit = self.share.flow_limit.is_some();
        match self.queued_in_nic {
            0 => {
                self.nic_free = if has_limit { now } else { ends };
                self.last_is_next = self.last_is_next.min(now);
                true
            }
            1 => {
                self.last_is_next = now;
                has_limit
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU16;

    const AT: fn(u64) -> Time = Time;

    fn pacer(flow_limit: u16) -> Pacer {
        let flow_limit = NonZeroU16::new(flow_limit);
        let share = PortShare { flow_limit, paces_departures: false };
        Pacer::new(Time::ZERO, share, Duration::ZERO)
    }

    #[test]
    fn a_flow_hands_over_a_batch_and_waits_until_the_nic_has_served_it() {
        let mut pacer = pacer(2);
        pacer.on_enqueued(AT(0), Some(AT(10)));
        assert!(pacer.may_hand_over(AT(0)));
        pacer.on_enqueued(AT(5), Some(AT(20)));
        assert_eq!([5, 19, 20].map(|now| pacer.may_hand_over(AT(now))), [false, false, true]);
        let limit = pacer.unpaced_limit();
        assert_eq!((limit.nic, pacer.earliest_departure(limit)), (NicWait::All, AT(20)));
        // The next batch: a packet that finds none of its flow in the NIC starts one.
        pacer.on_enqueued(AT(20), Some(AT(30)));
        assert!(!pacer.is_batch_full());
        pacer.on_enqueued(AT(30), Some(AT(40)));
        assert!(!pacer.is_batch_full());
    }

    #[test]
    fn a_batch_of_unknown_departures_ends_when_the_last_packet_starts() {
        let mut pacer = pacer(2);
        pacer.on_enqueued(AT(0), None);
        pacer.on_enqueued(AT(0), None);
        pacer.on_departure(AT(7), AT(17));
        assert!(!pacer.may_hand_over(AT(16)));
        assert!(pacer.on_departure(AT(17), AT(27)));
        assert!(pacer.may_hand_over(AT(17)));
    }

    #[test]
    fn timers_run_from_the_departure_of_a_packet_where_flows_take_turns() {
        let mut unlimited = pacer(0);
        unlimited.on_enqueued(AT(0), None);
        assert_eq!(unlimited.timed_from(AT(0)), AT(0));
        let mut pacer = pacer(2);
        pacer.on_enqueued(AT(0), None);
        pacer.on_enqueued(AT(0), None);
        assert_eq!(pacer.timed_from(AT(0)), Time::NEVER);
        assert!(pacer.waits_for_nic(AT(40)));
        pacer.on_departure(AT(40), AT(50));
        pacer.on_departure(AT(50), AT(60));
        assert_eq!(pacer.timed_from(AT(0)), AT(50));
        assert!(!pacer.waits_for_nic(AT(50)));
        // Packets of earlier batches are taken to have waited as long as those of the last complete one.
        pacer.on_enqueued(AT(50), Some(AT(70)));
        assert_eq!([0, 50].map(|handed_over| pacer.timed_from(AT(handed_over))), [AT(50), AT(70)]);
    }

    #[test]
    fn without_a_limit_only_a_rate_waits_for_the_nic_and_for_the_end_of_the_transmission() {
        let mut pacer = pacer(0);
        (0..70_000).for_each(|_| pacer.on_enqueued(AT(0), None));
        assert_eq!(pacer.unpaced_limit(), PacingLimit::default());
        assert!(pacer.may_hand_over(AT(0)));
        assert_eq!(pacer.limit(Rate::from_gbps(1), PacingPolicy::PER_PACKET).nic, NicWait::All);
        let mut pacer = Pacer::new(Time::ZERO, PortShare::default(), Duration::ZERO);
        pacer.on_enqueued(AT(0), None);
        assert!(pacer.on_departure(AT(7), AT(17)));
        assert_eq!(pacer.nic_free(), AT(17));
    }

    #[test]
    fn gaps_are_rounded_down_to_the_time_unit() {
        // 1048 B take 83.84 ns at 100 Gb/s.
        for (unit, gap) in [(0, 83_840), (1_000, 83_000)] {
            let mut pacer = Pacer::new(Time::ZERO, PortShare::default(), Duration(unit));
            pacer.on_sent(AT(500), 1_048, PacingPolicy::PER_PACKET);
            let limit = pacer.limit(Rate::from_gbps(100), PacingPolicy::PER_PACKET);
            assert_eq!(limit.earliest, AT(500 + gap));
        }
    }

    #[test]
    fn a_probe_belongs_to_the_batch_of_its_flow_if_its_departure_is_known() {
        let mut limited = pacer(2);
        limited.on_enqueued(AT(0), Some(AT(10)));
        limited.on_probe_enqueued(AT(0), Some(AT(12)));
        assert!(limited.is_batch_full());
        assert_eq!(limited.nic_free(), AT(12));
        // The departure of this one is not reported.
        let mut limited = pacer(2);
        limited.on_probe_enqueued(AT(0), None);
        assert_eq!((limited.is_batch_full(), limited.nic_free()), (false, Time::ZERO));
        // A packet with an unknown departure waits before the probe, so that the NIC is not free after the
        // probe alone.
        limited.on_enqueued(AT(0), None);
        limited.on_probe_enqueued(AT(0), Some(AT(12)));
        assert_eq!((limited.is_batch_full(), limited.nic_free()), (false, Time::NEVER));
        let mut unlimited = pacer(0);
        unlimited.on_probe_enqueued(AT(0), Some(AT(12)));
        assert_eq!(unlimited.nic_free(), Time::ZERO);
    }

    #[test]
    fn a_burst_is_interrupted_at_the_end_of_a_batch() {
        let mut pacer = pacer(2);
        let policy = PacingPolicy::bursts(3);
        for _ in 0..2 {
            pacer.on_sent(AT(0), 1000, policy);
            pacer.on_enqueued(AT(0), Some(AT(50)));
        }
        let limit = pacer.limit(Rate::from_gbps(1), policy);
        assert_eq!(limit, PacingLimit { earliest: AT(0), nic: NicWait::All });
    }

    #[test]
    fn a_paced_flow_hands_over_the_next_packet_while_one_is_left() {
        let departure = |pacer: &Pacer| {
            let limit = pacer.limit(Rate::from_gbps(1), PacingPolicy::PER_PACKET);
            pacer.earliest_departure(limit)
        };
        for (flow_limit, [predicted, reported]) in [(1, [30, 40]), (2, [20, 30]), (7, [20, 30])] {
            let mut pacer = pacer(flow_limit);
            pacer.on_enqueued(AT(0), Some(AT(20)));
            pacer.on_enqueued(AT(1), Some(AT(30)));
            assert_eq!(departure(&pacer), AT(predicted), "{flow_limit}");
            pacer.on_enqueued(AT(20), None);
            pacer.on_enqueued(AT(21), None);
            assert_eq!(departure(&pacer), Time::NEVER, "{flow_limit}");
            assert!(pacer.on_departure(AT(30), AT(40)), "{flow_limit}");
            assert_eq!(departure(&pacer) == AT(30), reported == 30, "{flow_limit}");
            assert!(pacer.on_departure(AT(40), AT(50)), "{flow_limit}");
            assert_eq!(departure(&pacer), AT(reported), "{flow_limit}");
        }
    }

    #[test]
    fn gap_runs_from_the_transmission_where_the_host_paces_departures() {
        let us = |count: u64| AT(count * 1_000_000);
        let rate = Rate::from_gbps(1); // 8 us for 1000 B
        for (paces_departures, expected) in [(false, [8, 16]), (true, [8, 19])] {
            let share = PortShare { flow_limit: Some(NonZeroU16::MIN), paces_departures };
            let mut pacer = Pacer::new(Time::ZERO, share, Duration::ZERO);
            let earliest = |pacer: &Pacer| pacer.limit(rate, PacingPolicy::PER_PACKET).earliest;
            // The first packet starts at once; the second waits from 8 to 11 us.
            pacer.on_sent(us(0), 1000, PacingPolicy::PER_PACKET);
            pacer.on_enqueued(us(0), Some(us(1)));
            assert_eq!(earliest(&pacer), us(expected[0]));
            pacer.on_sent(us(8), 1000, PacingPolicy::PER_PACKET);
            pacer.on_enqueued(us(8), None);
            pacer.on_departure(us(11), us(12));
            assert_eq!(earliest(&pacer), us(expected[1]), "{paces_departures}");
        }
    }
}
