//! Deadline of a flow: the data and time left, and the time from which the deadline cannot be met.

use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::packet::Format;
use crate::transport::{Ack, Path};

/// Deadline and progress of a flow.
pub struct Deadline {
    /// Set only for flows with both a size and a deadline.
    goal: Option<Goal>,
    line_rate: Rate,
    format: Format,
    /// Payload acknowledged.
    acked: Bytes,
    /// Number of packets sent.
    packets_sent: u32,
    /// Time for which the flow cannot send.
    pause: Duration,
    terminates_early: bool,
    is_given_up: bool,
}

#[derive(Clone, Copy)]
struct Goal {
    size: Bytes,
    deadline: Time,
}

impl Deadline {
    /// Deadline of a flow that starts on `path`. If `terminates_early`, the flow is given up once the
    /// deadline cannot be met.
    pub fn new(path: &Path, terminates_early: bool) -> Self {
        let size = path.size.filter(|_| path.deadline < Time::NEVER);
        Self {
            goal: size.map(|size| Goal { size, deadline: path.deadline }),
            line_rate: path.line_rate,
            format: path.format.clone(),
            acked: Bytes::ZERO,
            packets_sent: 0,
            pause: Duration::ZERO,
            terminates_early,
            is_given_up: false,
        }
    }

    /// Handles a sent data packet.
    pub fn on_sent(&mut self) {
        self.packets_sent += 1;
    }

    /// Handles an ACK.
    pub fn on_ack(&mut self, ack: &Ack) {
        self.acked += ack.bytes;
        // Exact again: retransmissions no longer count.
        self.packets_sent = ack.next;
    }

    /// Sets the time for which the flow cannot send.
    pub fn set_pause(&mut self, pause: Duration) {
        self.pause = pause;
    }

    /// Payload not acknowledged, and time to the deadline; none without a deadline.
    pub fn remaining(&self, now: Time) -> Option<(Bytes, Duration)> {
        let remaining = |goal: Goal| (subtract(goal.size, self.acked), goal.deadline.since(now));
        self.goal.map(remaining)
    }

    /// Time from which the deadline cannot be met: the unsent data at line rate, or the pause, takes
    /// longer.
    fn infeasible_from(&self) -> Time {
        self.goal.map_or(Time::NEVER, |goal| {
            let sent = Bytes(u64::from(self.packets_sent) * self.format.payload.0);
            let needed = match subtract(goal.size, sent) {
                Bytes::ZERO => Duration::ZERO,
                unsent => self.line_rate.transmit(self.format.on_wire(unsent)),
            };
            Time(goal.deadline.0.saturating_sub(needed.max(self.pause).0))
        })
    }

    /// Time of the next call of [`on_timer`](Self::on_timer).
    pub fn next_timer(&self) -> Time {
        if self.terminates_early && !self.is_given_up {
            self.infeasible_from()
        } else {
            Time::NEVER
        }
    }

    /// Handles the timer of [`next_timer`](Self::next_timer).
    pub fn on_timer(&mut self, now: Time) {
        self.is_given_up = self.next_timer() <= now;
    }

    /// True if the flow is to be given up.
    pub fn is_given_up(&self) -> bool {
        self.is_given_up
    }
}

fn subtract(all: Bytes, done: Bytes) -> Bytes {
    Bytes(all.0.saturating_sub(done.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::fixture::{ack, path};

    fn at(us: u64) -> Time {
        Time::ZERO + Duration::from_micros(us)
    }

    /// Flow of ten packets of 1000 B on the link, 8 us each, with a deadline after 200 us.
    fn deadline(terminates_early: bool) -> Deadline {
        let path = Path { size: Some(Bytes(9_600)), deadline: at(200), ..path() };
        Deadline::new(&path, terminates_early)
    }

    #[test]
    fn remaining_is_the_data_not_acknowledged_and_the_time_to_the_deadline() {
        let mut deadline = deadline(false);
        assert_eq!(deadline.remaining(at(0)), Some((Bytes(9_600), Duration::from_micros(200))));
        deadline.on_ack(&ack(1, 3));
        assert_eq!(deadline.remaining(at(50)), Some((Bytes(8_640), Duration::from_micros(150))));
        assert_eq!(deadline.remaining(at(300)), Some((Bytes(8_640), Duration::ZERO)));
        assert_eq!(deadline.next_timer(), Time::NEVER);
        assert_eq!(Deadline::new(&path(), true).remaining(at(0)), None);
        assert_eq!(Deadline::new(&path(), true).next_timer(), Time::NEVER);
    }

    #[test]
    fn a_flow_is_given_up_when_line_rate_cannot_meet_the_deadline() {
        let mut deadline = deadline(true);
        assert_eq!(deadline.next_timer(), at(120), "ten packets take 80 us");
        (0..4).for_each(|_| deadline.on_sent());
        assert_eq!(deadline.next_timer(), at(152));
        // One of the four was sent twice.
        deadline.on_ack(&ack(1, 3));
        assert_eq!(deadline.next_timer(), at(144));
        deadline.on_timer(at(120));
        assert!(!deadline.is_given_up(), "the timer of an earlier state");
        deadline.on_timer(at(144));
        assert!(deadline.is_given_up());
        assert_eq!(deadline.next_timer(), Time::NEVER);
    }

    #[test]
    fn a_flow_paused_beyond_its_deadline_is_given_up() {
        let mut deadline = deadline(true);
        deadline.set_pause(Duration::from_micros(50));
        assert_eq!(deadline.next_timer(), at(120), "the rest takes longer");
        deadline.set_pause(Duration::from_micros(90));
        assert_eq!(deadline.next_timer(), at(110));
        deadline.set_pause(Duration::ZERO);
        assert_eq!(deadline.next_timer(), at(120));
    }

    #[test]
    fn a_flow_that_has_sent_everything_is_given_up_at_its_deadline() {
        let mut deadline = deadline(true);
        deadline.on_ack(&ack(9, 10));
        assert_eq!(deadline.next_timer(), at(200));
        deadline.on_timer(at(200));
        assert!(deadline.is_given_up());
    }
}
