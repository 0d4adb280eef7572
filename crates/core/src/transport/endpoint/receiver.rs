//! The receiving end of a flow: what has come, what to acknowledge, what to make of marks.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::base::units::Time;
use crate::model::packet::{Flags, Header, Kind, Packet};
use crate::transport::recovery::segment_set::SegmentSet;
use crate::transport::{Feedback, Mechanism, Recovery};

/// What a receiver sends back.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reply {
    /// An acknowledgement.
    pub ack: Option<Answer>,
    /// A congestion notification.
    pub notification: bool,
    /// Whether a segment has come that is new.
    pub is_new: bool,
}

/// An acknowledgement to send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    /// ACK or NACK.
    pub kind: Kind,
    /// The first segment that is missing.
    pub cumulative: u32,
    /// The run of segments beyond that which holds the one just received.
    pub block: (u32, u32),
    /// How many runs a SACK option would tell of: those beyond the gap, and what came again.
    pub runs: usize,
    /// When the earliest packet that this answers was sent.
    pub sent_at: Time,
    /// Whether to tell of a mark, or what counts them.
    pub flags: Flags,
    /// What routers wrote into the packets that this answers.
    pub feedback: f32,
}

/// What has come and is still to be acknowledged: a segment in order, or some of one run beyond a gap.
#[derive(Clone, Copy, Debug)]
struct Pending {
    /// The first of them, and when it was sent.
    sequence: u32,
    sent_at: Time,
    feedback: f32,
    count: u32,
    /// When to acknowledge them at the latest.
    until: Time,
}

/// SACKs that tell of a gap before they are compressed, and how many segments one may stand for then (Linux:
/// `TCP_FASTRETRANS_THRESH` and `tcp_comp_sack_nr`).
const REPORTS: u32 = 3;
const MOST_COMPRESSED: u32 = 44;

/// State of a receiver. What every packet touches stands first.
#[derive(Debug)]
#[repr(C)]
pub struct Receiver {
    /// Everything before this has come.
    expected: u32,
    /// RFC 3168: ACKs tell of a mark until the sender says that it has answered.
    echoing: bool,
    /// Marked packets, if ACKs count them.
    marks: u32,
    /// The tick at which to notify.
    notify_at: Time,
    mechanism: Arc<Mechanism>,
    /// What has come beyond a gap.
    early: SegmentSet,
    pending: Option<Pending>,
    /// How many SACKs have told of the gap before `expected`.
    reports: u32,
    /// When the gap before `expected` was last reported; [`Time::NEVER`] before.
    reported: Time,
    /// When the next notification may go, or when the clock of notifications started, if they go at its
    /// ticks; [`Time::NEVER`] before the first mark or packet.
    notifies_from: Time,
}

impl Receiver {
    /// A receiver of a flow with this mechanism.
    pub fn new(mechanism: &Arc<Mechanism>) -> Self {
        Self {
            mechanism: Arc::clone(mechanism),
            pending: None,
            reports: 0,
            expected: 0,
            early: SegmentSet::default(),
            reported: Time::NEVER,
            echoing: false,
            marks: 0,
            notifies_from: Time::NEVER,
            notify_at: Time::NEVER,
        }
    }

    /// Whether a segment that has come is still to be acknowledged.
    pub fn owes_answer(&self) -> bool {
        self.pending.is_some()
    }

    /// Takes a data packet in.
    #[inline]
    pub fn on_data(&mut self, now: Time, packet: &Packet) -> Reply {
        let notification = self.notes_mark(now, packet);
        let (is_new, ack) = match packet.sequence.cmp(&self.expected) {
            Ordering::Less => (false, Some(self.answer(packet, self.again(packet)))),
            Ordering::Equal => (true, self.on_expected(now, packet)),
            Ordering::Greater if self.mechanism.reliability.recovery == Recovery::GoBackN => {
                (false, self.report_gap(now, packet))
            }
            Ordering::Greater => {
                let is_new = self.early.insert(packet.sequence, packet.sequence + 1) > 0;
                let run = || self.early.run_of(packet.sequence).unwrap_or_default();
                let block = if is_new { run() } else { self.again(packet) };
                let holds = is_new && self.holds(now, packet, block);
                (is_new, (!holds).then(|| self.answer(packet, block)))
            }
        };
        Reply { ack, notification, is_new }
    }

    /// The next segment in order has come: acknowledged if the sender asks and, with delayed
    /// acknowledgements, another one waits already; at once for the first segments, if they are to be, while
    /// there is a gap (RFC 5681 §4.2) and when it is marked.
    #[inline]
    fn on_expected(&mut self, now: Time, packet: &Packet) -> Option<Answer> {
        let had_gap = !self.early.is_empty();
        self.expected += 1;
        self.reported = Time::NEVER;
        if let Some((_, to)) = self.early.run_of(self.expected) {
            self.early.remove(self.expected, to);
            self.expected = to;
        }
        self.reports = u32::from(!self.early.is_empty());
        let wants_ack = packet.flags.has(Flags::WANTS_ACK);
        match self.mechanism.reliability.delayed_ack.filter(|_| !self.is_quick(packet)) {
            Some(delay)
                if wants_ack && !had_gap && self.pending.is_none() && !packet.is_marked() =>
            {
                self.hold(packet, now + delay);
                None
            }
            _ => (wants_ack || had_gap).then(|| self.answer(packet, self.pending_run())),
        }
    }

    /// Whether a segment is one of the first, which are acknowledged at once.
    fn is_quick(&self, packet: &Packet) -> bool {
        packet.sequence < self.mechanism.reliability.quick_acks
    }

    /// A new segment beyond the gap, in the run `block`: says whether its SACK waits for others. It does not
    /// beside another run that waits, for an ACK tells of one; nor if it is marked.
    fn holds(&mut self, now: Time, packet: &Packet, block: (u32, u32)) -> bool {
        let Some(most) = self.mechanism.reliability.sack_compression else { return false };
        if self.is_quick(packet) || packet.is_marked() {
            return false;
        }
        if self.reports < REPORTS {
            self.reports += 1;
            return false;
        }
        match &mut self.pending {
            None => {
                // The receiver's own estimate of the round trip is not modelled.
                let round_trip = now.since(packet.sent_at) * 2;
                self.hold(packet, now + most.min(round_trip / 20));
                true
            }
            Some(pending) => {
                let waits_on = (block.0..block.1).contains(&pending.sequence)
                    && pending.count < MOST_COMPRESSED;
                pending.count += u32::from(waits_on);
                waits_on
            }
        }
    }

    /// Leaves a segment unanswered for now.
    fn hold(&mut self, packet: &Packet, until: Time) {
        let feedback = packet.header().feedback();
        let Packet { sequence, sent_at, .. } = *packet;
        self.pending = Some(Pending { sequence, sent_at, feedback, count: 1, until });
    }

    /// The run beyond the gap that holds what is still to be acknowledged; empty in order.
    fn pending_run(&self) -> (u32, u32) {
        let run = self.pending.and_then(|pending| self.early.run_of(pending.sequence));
        run.unwrap_or_default()
    }

    /// What an ACK reports of a segment that has come again: that segment (RFC 2883), or as much as of any
    /// other.
    fn again(&self, packet: &Packet) -> (u32, u32) {
        if self.mechanism.reliability.duplicate_sack {
            (packet.sequence, packet.sequence + 1)
        } else {
            self.early.run_of(packet.sequence).unwrap_or_default()
        }
    }

    /// Reports a gap to a go-back-N sender, unless that was done lately.
    fn report_gap(&mut self, now: Time, packet: &Packet) -> Option<Answer> {
        let lately = self.mechanism.reliability.nack_interval;
        if self.reported != Time::NEVER && now.since(self.reported) < lately {
            return None;
        }
        self.reported = now;
        Some(Answer { kind: Kind::Nack, ..self.answer(packet, (0, 0)) })
    }

    /// The acknowledgement that `packet` causes, for it and for what is still to be acknowledged, unless that
    /// lies in another run.
    fn answer(&mut self, packet: &Packet, block: (u32, u32)) -> Answer {
        let (expected, told) = (self.expected, block.0..block.1);
        let is_told = |sequence: u32| sequence < expected || told.contains(&sequence);
        let pending = self.pending.take_if(|pending| is_told(pending.sequence));
        let feedback = match (pending, packet.header()) {
            // XCP's feedback is a change, and adds up; a rate is replaced by the next.
            (Some(pending), Header::Xcp { feedback, .. }) => pending.feedback + feedback,
            (_, header) => header.feedback(),
        };
        let reports_again = block.0 < block.1 && self.early.run_of(block.0) != Some(block);
        Answer {
            kind: Kind::Ack,
            cumulative: self.expected,
            block,
            runs: self.early.len() + usize::from(reports_again),
            // RFC 7323 §4.3: the time stamp of the earliest segment, so that the sample has the delay.
            sent_at: pending.map_or(packet.sent_at, |pending| pending.sent_at),
            flags: self.told_of_marks(packet.is_marked()),
            feedback,
        }
    }

    /// What an ACK tells of marks, which answers a packet that has one or none.
    fn told_of_marks(&self, is_marked: bool) -> Flags {
        match self.mechanism.feedback {
            Feedback::Count => Flags::NONE.with_count(self.marks),
            Feedback::EchoUntilReduced => Flags::NONE.with_if(Flags::MARKED, self.echoing),
            Feedback::Echo | Feedback::Notify { .. } | Feedback::NotifyAtTicks { .. } => {
                Flags::NONE.with_if(Flags::MARKED, is_marked)
            }
        }
    }

    /// Notes whether a packet was marked; says whether to send a notification now.
    #[inline]
    fn notes_mark(&mut self, now: Time, packet: &Packet) -> bool {
        let marked = packet.is_marked();
        match self.mechanism.feedback {
            Feedback::Echo => false,
            Feedback::Count => {
                self.marks += u32::from(marked);
                false
            }
            Feedback::EchoUntilReduced => {
                // RFC 3168 §6.1.3; a packet may be the answer and be marked itself.
                self.echoing = marked || self.echoing && !packet.flags.has(Flags::REDUCED);
                false
            }
            Feedback::Notify { interval } => {
                let is_due =
                    marked && (self.notifies_from == Time::NEVER || now >= self.notifies_from);
                if is_due {
                    self.notifies_from = now + interval;
                }
                is_due
            }
            Feedback::NotifyAtTicks { interval } => {
                let is_first = self.notifies_from == Time::NEVER;
                let from = self.notifies_from.min(now);
                self.notifies_from = from;
                if marked && !is_first && self.notify_at == Time::NEVER {
                    let ticks = now.since(from).0 / interval.0 + 1;
                    self.notify_at = from + interval * ticks;
                }
                marked && is_first
            }
        }
    }

    /// When something happens by itself: a notification at a tick, or a delayed acknowledgement.
    pub fn deadline(&self) -> Time {
        self.pending.map_or(self.notify_at, |pending| pending.until.min(self.notify_at))
    }

    /// Lets time pass: says what to send now.
    pub fn on_time(&mut self, now: Time) -> Reply {
        let notification = now >= self.notify_at;
        if notification {
            self.notify_at = Time::NEVER;
        }
        let block = self.pending_run();
        let pending = self.pending.take_if(|pending| pending.until <= now);
        // What waits was not marked.
        let flags = self.told_of_marks(false);
        let ack = pending.map(|Pending { sent_at, feedback, .. }| Answer {
            kind: Kind::Ack,
            cumulative: self.expected,
            block,
            runs: self.early.len(),
            sent_at,
            flags,
            feedback,
        });
        Reply { ack, notification, is_new: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::defaults;
    use crate::base::units::Duration;
    use crate::model::packet::Format;
    use crate::transport::Reliability;
    use crate::transport::blocks::tcp::window;
    use crate::transport::endpoint::sender::Segment;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    fn mechanism(delayed_ack: Option<Duration>) -> Arc<Mechanism> {
        let reliability = Reliability { delayed_ack, ..Reliability::internet() };
        Arc::new(window::mechanism(&reliability, true))
    }

    /// A segment that was sent 50 ms before it comes.
    fn data(mechanism: &Mechanism, ms: u64, sequence: u32, flags: Flags) -> Packet {
        let format: Format = defaults();
        let segment = Segment {
            sequence,
            payload: 1000,
            wants_ack: true,
            is_retransmit: false,
            has_reduced: flags.has(Flags::REDUCED),
        };
        let mut packet = mechanism.data(&format, 0, at(ms - 50), segment);
        if flags.has(Flags::MARKED) {
            assert!(packet.mark(), "it is ECN-capable");
        }
        packet
    }

    /// What the receiver of TCP answers to a segment: what it lacks, and its block.
    fn answer(receiver: &mut Receiver, ms: u64, sequence: u32) -> Option<(u32, (u32, u32))> {
        let mechanism = mechanism(None);
        let reply = receiver.on_data(at(ms), &data(&mechanism, ms, sequence, Flags::NONE));
        assert!(!reply.notification);
        reply.ack.map(|ack| (ack.cumulative, ack.block))
    }

    #[test]
    fn an_ack_is_delayed_to_the_second_segment_or_by_its_time() {
        let mut receiver = Receiver::new(&mechanism(Some(Duration::from_millis(40))));
        assert_eq!(answer(&mut receiver, 100, 0), None);
        assert_eq!(receiver.deadline(), at(140));
        assert_eq!(answer(&mut receiver, 101, 1), Some((2, (0, 0))));
        assert_eq!(receiver.deadline(), Time::NEVER);
        assert_eq!(answer(&mut receiver, 110, 2), None);
        assert_eq!(receiver.on_time(at(149)).ack, None, "not yet");
        let late = receiver.on_time(at(150)).ack.unwrap();
        // With the time stamp of the segment, so that the sample has the delay (RFC 7323 §4.3).
        assert_eq!((late.cumulative, late.sent_at), (3, at(60)));
        assert_eq!(receiver.on_time(at(160)).ack, None, "only once");
    }

    #[test]
    fn the_first_segments_may_be_acknowledged_at_once() {
        let delayed = mechanism(Some(Duration::from_millis(40)));
        let reliability = Reliability { quick_acks: 2, ..delayed.reliability.clone() };
        let mut receiver = Receiver::new(&Arc::new(window::mechanism(&reliability, true)));
        for sequence in 0..2 {
            assert_eq!(answer(&mut receiver, 100, sequence), Some((sequence + 1, (0, 0))));
        }
        assert_eq!(answer(&mut receiver, 100, 2), None);
        assert_eq!(answer(&mut receiver, 100, 3), Some((4, (0, 0))));
    }

    #[test]
    fn a_gap_is_told_at_once_and_so_is_what_fills_it() {
        let mut receiver = Receiver::new(&mechanism(Some(Duration::from_millis(40))));
        assert_eq!(answer(&mut receiver, 100, 0), None);
        assert_eq!(answer(&mut receiver, 101, 2), Some((1, (2, 3))));
        assert_eq!(receiver.deadline(), Time::NEVER, "and tells of segment 0, too");
        assert_eq!(answer(&mut receiver, 102, 4), Some((1, (4, 5))));
        assert_eq!(answer(&mut receiver, 103, 3), Some((1, (2, 5))), "the run it now belongs to");
        assert_eq!(answer(&mut receiver, 104, 1), Some((5, (0, 0))));
        assert_eq!(
            answer(&mut receiver, 105, 1),
            Some((5, (0, 0))),
            "a copy, at once (RFC 5681 §4.2)"
        );
        assert_eq!(answer(&mut receiver, 106, 5), None);
    }

    /// A receiver that lacks segment 0 and has told of 1, 2 and 3 at once; it compresses what follows.
    fn compressing() -> Receiver {
        let sack_compression = Some(Duration::from_millis(1));
        let reliability = Reliability { sack_compression, ..Reliability::internet() };
        let mut receiver = Receiver::new(&Arc::new(window::mechanism(&reliability, true)));
        for sequence in 1..=3 {
            assert_eq!(answer(&mut receiver, 100, sequence), Some((0, (1, sequence + 1))));
        }
        receiver
    }

    #[test]
    fn the_fourth_sack_of_a_gap_waits_for_more_but_not_long() {
        let mut receiver = compressing();
        for sequence in 4..20 {
            assert_eq!(answer(&mut receiver, 101, sequence), None);
        }
        assert_eq!(receiver.deadline(), at(102));
        let ack = receiver.on_time(at(102)).ack.unwrap();
        assert_eq!((ack.cumulative, ack.block, ack.runs), (0, (1, 20), 1));
        assert_eq!(receiver.deadline(), Time::NEVER);
        for sequence in 20..64 {
            assert_eq!(answer(&mut receiver, 103, sequence), None);
        }
        assert_eq!(answer(&mut receiver, 103, 64), Some((0, (1, 65))), "44 are enough");
    }

    #[test]
    fn what_waits_is_told_with_what_comes_in_order_and_not_with_another_run() {
        let mut receiver = compressing();
        assert_eq!(answer(&mut receiver, 101, 4), None);
        assert_eq!(answer(&mut receiver, 101, 6), Some((0, (6, 7))), "an ACK tells of one run");
        assert_eq!(receiver.deadline(), at(102));
        assert_eq!(answer(&mut receiver, 101, 0), Some((5, (0, 0))));
        assert_eq!(receiver.deadline(), Time::NEVER);
        // That was the first ACK of a new gap; 6 and what follows are its run.
        assert_eq!(answer(&mut receiver, 101, 7), Some((5, (6, 8))));
        assert_eq!(answer(&mut receiver, 101, 8), Some((5, (6, 9))));
        assert_eq!(answer(&mut receiver, 101, 9), None);
        assert_eq!(answer(&mut receiver, 101, 11), Some((5, (11, 12))));
        assert_eq!(
            answer(&mut receiver, 101, 5),
            Some((10, (0, 0))),
            "it has filled the first run"
        );
        assert_eq!(receiver.deadline(), Time::NEVER);
    }

    #[test]
    fn a_sack_waits_no_longer_than_a_twentieth_of_a_round_trip() {
        let sack_compression = Some(Duration::from_millis(40));
        let reliability = Reliability { sack_compression, ..Reliability::internet() };
        let mut receiver = Receiver::new(&Arc::new(window::mechanism(&reliability, true)));
        for sequence in 1..=4 {
            answer(&mut receiver, 100, sequence);
        }
        assert_eq!(receiver.deadline(), at(105), "50 ms on its way");
    }

    #[test]
    fn a_mark_is_echoed_until_the_sender_has_reduced() {
        let mechanism = mechanism(None);
        let mut receiver = Receiver::new(&mechanism);
        let mut echoes = |sequence, flags| {
            let packet = data(&mechanism, 100, sequence, flags);
            receiver.on_data(at(100), &packet).ack.unwrap().flags.has(Flags::MARKED)
        };
        assert!(!echoes(0, Flags::NONE));
        assert!(echoes(1, Flags::MARKED));
        assert!(echoes(2, Flags::NONE), "until the sender says so");
        assert!(!echoes(3, Flags::REDUCED));
        assert!(!echoes(4, Flags::NONE));
        assert!(echoes(5, Flags::MARKED));
        let both = Flags::MARKED.with_if(Flags::REDUCED, true);
        assert!(echoes(6, both), "the answer to one mark may be marked again");
    }

    #[test]
    fn marks_are_counted_modulo_eight_if_that_is_asked_for() {
        let reliability = Reliability { accurate_ecn: true, ..Reliability::internet() };
        let mechanism = Arc::new(window::mechanism(&reliability, true));
        let mut receiver = Receiver::new(&mechanism);
        let mut count = |sequence, flags| {
            let packet = data(&mechanism, 100, sequence, flags);
            receiver.on_data(at(100), &packet).ack.unwrap().flags.count()
        };
        assert_eq!((count(0, Flags::NONE), count(1, Flags::MARKED)), (0, 1));
        assert_eq!(count(2, Flags::NONE), 1, "and nothing is echoed");
        let counts: Vec<_> = (3..12).map(|sequence| count(sequence, Flags::MARKED)).collect();
        assert_eq!(counts, [2, 3, 4, 5, 6, 7, 0, 1, 2]);
    }

    #[test]
    fn a_marked_segment_is_not_delayed() {
        let mechanism = mechanism(Some(Duration::from_millis(40)));
        let mut receiver = Receiver::new(&mechanism);
        let packet = data(&mechanism, 100, 0, Flags::MARKED);
        assert!(
            receiver.on_data(at(100), &packet).ack.is_some_and(|ack| ack.flags.has(Flags::MARKED))
        );
    }

    #[test]
    fn delayed_feedback_adds_up_if_it_is_a_change_and_is_the_newest_if_it_is_a_rate() {
        let sum = |header: fn(f32) -> Header| {
            let mechanism = mechanism(Some(Duration::from_millis(40)));
            let mut receiver = Receiver::new(&mechanism);
            let mut reply = |sequence, feedback| {
                let plain = data(&mechanism, 100, sequence, Flags::NONE);
                let ack = receiver.on_data(at(100), &plain.with_header(header(feedback)));
                ack.ack.map(|ack| ack.feedback)
            };
            assert_eq!(reply(0, 3.0), None);
            reply(1, 4.0)
        };
        assert_eq!(sum(|feedback| Header::Xcp { rtt: 0.1, spacing: 0.01, feedback }), Some(7.0));
        assert_eq!(sum(|rate| Header::Rcp { rtt: 0.1, rate }), Some(4.0));
    }

    #[test]
    fn go_back_n_throws_away_what_comes_early_and_reports_the_gap_once() {
        let reliability =
            Reliability { recovery: Recovery::GoBackN, ..Reliability::selective_repeat() };
        let mut receiver = Receiver::new(&Arc::new(window::mechanism(&reliability, true)));
        assert_eq!(answer(&mut receiver, 100, 0), Some((1, (0, 0))));
        assert_eq!(answer(&mut receiver, 100, 2), Some((1, (0, 0))));
        assert_eq!(answer(&mut receiver, 100, 3), None);
        assert_eq!(answer(&mut receiver, 100, 1), Some((2, (0, 0))), "2 and 3 are gone");
    }
}
