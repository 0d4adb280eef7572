//! A flow's deadline: what is left to do, how much time there is for it, and whether it is still possible.

use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::packet::Format;
use crate::transport::{Ack, Path};

/// A flow's deadline, and how far the flow is.
pub struct Deadline {
    /// What makes a difference only to flows that have both a size and a deadline.
    terms: Option<Terms>,
    line_rate: Rate,
    format: Format,
    /// Payload that has been acknowledged.
    acked: Bytes,
    /// Packets that have been sent.
    sent: u32,
    /// For so long nothing more can be sent.
    held: Duration,
    terminates_early: bool,
    is_given_up: bool,
}

#[derive(Clone, Copy)]
struct Terms {
    size: Bytes,
    at: Time,
}

impl Deadline {
    /// That of a flow that starts on `path`, and whether to give it up once it cannot be met.
    pub fn new(path: &Path, terminates_early: bool) -> Self {
        let size = path.size.filter(|_| path.deadline < Time::NEVER);
        Self {
            terms: size.map(|size| Terms { size, at: path.deadline }),
            line_rate: path.line_rate,
            format: path.format.clone(),
            acked: Bytes::ZERO,
            sent: 0,
            held: Duration::ZERO,
            terminates_early,
            is_given_up: false,
        }
    }

    /// A data packet has been sent.
    pub fn on_sent(&mut self) {
        self.sent += 1;
    }

    /// Data has been acknowledged.
    pub fn on_ack(&mut self, ack: &Ack) {
        self.acked += ack.bytes;
        // Now exactly, whatever was sent twice.
        self.sent = ack.next;
    }

    /// Nothing more can be sent for so long.
    pub fn hold(&mut self, held: Duration) {
        self.held = held;
    }

    /// Payload not yet acknowledged, and the time there is for it; none without a deadline.
    pub fn left(&self, now: Time) -> Option<(Bytes, Duration)> {
        let left = |terms: Terms| (without(terms.size, self.acked), terms.at.since(now));
        self.terms.map(left)
    }

    /// From when on the deadline cannot be met: what has never been sent takes longer at line rate, or the
    /// flow is held for longer.
    fn is_hopeless_from(&self) -> Time {
        self.terms.map_or(Time::NEVER, |terms| {
            let sent = Bytes(u64::from(self.sent) * self.format.payload.0);
            let takes = match without(terms.size, sent) {
                Bytes::ZERO => Duration::ZERO,
                unsent => self.line_rate.transmit(self.format.on_wire(unsent)),
            };
            Time(terms.at.0.saturating_sub(takes.max(self.held).0))
        })
    }

    /// When to call [`on_timer`](Self::on_timer).
    pub fn next_timer(&self) -> Time {
        if self.terminates_early && !self.is_given_up {
            self.is_hopeless_from()
        } else {
            Time::NEVER
        }
    }

    /// The time that [`next_timer`](Self::next_timer) gave has come.
    pub fn on_timer(&mut self, now: Time) {
        self.is_given_up = self.next_timer() <= now;
    }

    /// Whether the flow is to be given up.
    pub fn is_given_up(&self) -> bool {
        self.is_given_up
    }
}

fn without(all: Bytes, done: Bytes) -> Bytes {
    Bytes(all.0.saturating_sub(done.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::fixture::{ack, path};

    fn at(us: u64) -> Time {
        Time::ZERO + Duration::from_micros(us)
    }

    /// Ten packets of 1000 B on the wire, 8 us each, in 200 us.
    fn deadline(terminates_early: bool) -> Deadline {
        let path = Path { size: Some(Bytes(9_600)), deadline: at(200), ..path() };
        Deadline::new(&path, terminates_early)
    }

    #[test]
    fn what_is_left_is_what_was_not_acknowledged_and_the_time_to_the_deadline() {
        let mut deadline = deadline(false);
        assert_eq!(deadline.left(at(0)), Some((Bytes(9_600), Duration::from_micros(200))));
        deadline.on_ack(&ack(1, 3));
        assert_eq!(deadline.left(at(50)), Some((Bytes(8_640), Duration::from_micros(150))));
        assert_eq!(deadline.left(at(300)), Some((Bytes(8_640), Duration::ZERO)));
        assert_eq!(deadline.next_timer(), Time::NEVER);
        assert_eq!(Deadline::new(&path(), true).left(at(0)), None);
        assert_eq!(Deadline::new(&path(), true).next_timer(), Time::NEVER);
    }

    #[test]
    fn a_flow_is_given_up_when_the_line_cannot_send_the_rest_in_time() {
        let mut deadline = deadline(true);
        assert_eq!(deadline.next_timer(), at(120), "ten packets take 80 us");
        (0..4).for_each(|_| deadline.on_sent());
        assert_eq!(deadline.next_timer(), at(152));
        // One of the four was sent twice.
        deadline.on_ack(&ack(1, 3));
        assert_eq!(deadline.next_timer(), at(144));
        deadline.on_timer(at(120));
        assert!(!deadline.is_given_up(), "of old");
        deadline.on_timer(at(144));
        assert!(deadline.is_given_up());
        assert_eq!(deadline.next_timer(), Time::NEVER);
    }

    #[test]
    fn a_flow_that_is_held_for_longer_than_there_is_time_is_given_up() {
        let mut deadline = deadline(true);
        deadline.hold(Duration::from_micros(50));
        assert_eq!(deadline.next_timer(), at(120), "the rest takes longer");
        deadline.hold(Duration::from_micros(90));
        assert_eq!(deadline.next_timer(), at(110));
        deadline.hold(Duration::ZERO);
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
