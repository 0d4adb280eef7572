//! The receiving end of a flow: what has come, what to acknowledge, what to make of marks.

use std::cmp::Ordering;

use super::ranges::Ranges;
use super::{Feedback, Mechanism, Recovery};
use crate::packet::{Flags, Kind, Packet};
use crate::units::{Duration, Time};

/// What a receiver sends back for a data packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// An acknowledgement.
    pub ack: Option<Answer>,
    /// A congestion notification.
    pub notification: bool,
    /// Whether the segment is new.
    pub is_new: bool,
}

/// An acknowledgement to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// ACK or NACK.
    pub kind: Kind,
    /// The first segment that is missing.
    pub cumulative: u32,
    /// The run of segments beyond that which holds the one just received.
    pub block: (u32, u32),
}

/// State of a receiver.
#[derive(Debug)]
pub struct Receiver {
    go_back_n: bool,
    nack_interval: Duration,
    feedback: Feedback,
    /// Everything before this has come.
    expected: u32,
    /// What has come beyond a gap.
    early: Ranges,
    /// The gap last reported, and when.
    reported: Option<(u32, Time)>,
    /// When the last notification went.
    notified: Option<Time>,
    /// When the clock of notifications started.
    clock_from: Option<Time>,
    /// The tick at which to notify.
    notify_at: Time,
}

impl Receiver {
    /// A receiver of a flow with this mechanism.
    pub fn new(mechanism: &Mechanism) -> Self {
        Self {
            go_back_n: mechanism.reliability.recovery == Recovery::GoBackN,
            nack_interval: mechanism.reliability.nack_interval,
            feedback: mechanism.feedback,
            expected: 0,
            early: Ranges::default(),
            reported: None,
            notified: None,
            clock_from: None,
            notify_at: Time::NEVER,
        }
    }

    /// Takes a data packet in.
    pub fn on_data(&mut self, now: Time, packet: &Packet) -> Reply {
        let notification = self.notes_mark(now, packet.is_marked());
        let (is_new, ack) = match packet.sequence.cmp(&self.expected) {
            Ordering::Less => (false, Some(self.answer(Kind::Ack, (0, 0)))),
            Ordering::Equal => (true, self.on_expected(packet)),
            Ordering::Greater if self.go_back_n => (false, self.report_gap(now)),
            Ordering::Greater => {
                let is_new = self.early.insert(packet.sequence, packet.sequence + 1) > 0;
                let block = self.early.run_of(packet.sequence).unwrap_or_default();
                (is_new, Some(self.answer(Kind::Ack, block)))
            }
        };
        Reply { ack, notification, is_new }
    }

    /// The next segment in order has come: acknowledged if the sender asks, or while there is a
    /// gap.
    fn on_expected(&mut self, packet: &Packet) -> Option<Answer> {
        let had_gap = !self.early.is_empty();
        self.expected += 1;
        if let Some((_, to)) = self.early.run_of(self.expected) {
            self.early.remove(self.expected, to);
            self.expected = to;
        }
        (packet.flags.has(Flags::WANTS_ACK) || had_gap).then(|| self.answer(Kind::Ack, (0, 0)))
    }

    /// Reports a gap to a go-back-N sender, unless that was done lately.
    fn report_gap(&mut self, now: Time) -> Option<Answer> {
        let is_reported = self.reported.is_some_and(|(gap, when)| {
            gap == self.expected && now.since(when) < self.nack_interval
        });
        if is_reported {
            return None;
        }
        self.reported = Some((self.expected, now));
        Some(self.answer(Kind::Nack, (0, 0)))
    }

    fn answer(&self, kind: Kind, block: (u32, u32)) -> Answer {
        Answer { kind, cumulative: self.expected, block }
    }

    /// Notes whether a packet was marked; says whether to send a notification now.
    fn notes_mark(&mut self, now: Time, marked: bool) -> bool {
        match self.feedback {
            Feedback::Echo => false,
            Feedback::Notify { interval } => {
                let is_due = marked && self.notified.is_none_or(|last| now.since(last) >= interval);
                if is_due {
                    self.notified = Some(now);
                }
                is_due
            }
            Feedback::NotifyAtTicks { interval } => {
                let is_first = self.clock_from.is_none();
                let from = *self.clock_from.get_or_insert(now);
                if marked && !is_first && self.notify_at == Time::NEVER {
                    let ticks = now.since(from).0 / interval.0 + 1;
                    self.notify_at = from + interval * ticks;
                }
                marked && is_first
            }
        }
    }

    /// When something happens by itself: a notification at a tick.
    pub fn deadline(&self) -> Time {
        self.notify_at
    }

    /// Lets time pass: says whether to send a notification now.
    pub fn on_time(&mut self, now: Time) -> bool {
        let is_due = now >= self.notify_at;
        if is_due {
            self.notify_at = Time::NEVER;
        }
        is_due
    }
}
