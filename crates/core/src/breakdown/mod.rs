//! Accounts: where the time of a flow went, by reason and by place, exact to the picosecond.
//!
//! A sending has the account of all that came before it, from the start of its flow. Packets carry that of
//! the sending which they are, and their journey; answers carry both on (docs/design.md).

pub mod chain;
pub mod next_fit;
pub mod pool;

use self::pool::BreakdownRef;
use crate::base::units::Duration;

/// How a wait at a port divides by what its transmitter did meanwhile: it sent packets of the same flow, of
/// others, control packets; nothing for a pause; nothing.
pub type Waits = [Duration; WAITS];

/// In how many ways a packet waits at a port.
const WAITS: usize = 5;
/// Without any.
const NO_WAITS: Waits = [Duration::ZERO; WAITS];
/// Where waits on the way back begin.
const BACK: usize = 2 + 2 * WAITS;
/// How many places there are in the network.
const IN_NETWORK: usize = 2 + 3 * WAITS;

/// The places of a journey, in order.
const PLACES: [&str; IN_NETWORK] = [
    "propagation",
    "transmission",
    "queue_own_host",
    "queue_others_host",
    "queue_control_host",
    "paused_host",
    "queue_idle_host",
    "queue_own_there",
    "queue_others_there",
    "queue_control_there",
    "paused_there",
    "queue_idle_there",
    "queue_own_back",
    "queue_others_back",
    "queue_control_back",
    "paused_back",
    "queue_idle_back",
];

/// How long a packet, and what answers it, were where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Journey([Duration; IN_NETWORK]);

impl Journey {
    /// One that has not begun.
    pub const NONE: Self = Self([Duration::ZERO; IN_NETWORK]);

    /// One with such waits before the first link, further on the way there, and on the way back, and so long
    /// on links.
    pub fn new(legs: &[Waits; 3], transmission: Duration, propagation: Duration) -> Self {
        let mut places = [propagation; IN_NETWORK];
        places[1] = transmission;
        places[2..].copy_from_slice(legs.as_flattened());
        Self(places)
    }

    /// One that is all a pause of the host's port, which did nothing.
    pub fn paused(lasted: Duration) -> Self {
        let host = [Duration::ZERO, Duration::ZERO, Duration::ZERO, lasted, Duration::ZERO];
        Self::new(&[host, NO_WAITS, NO_WAITS], Duration::ZERO, Duration::ZERO)
    }

    /// All of it.
    pub fn total(&self) -> Duration {
        sum(&self.0)
    }

    fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(all, part)| *all += *part);
    }
}

fn sum(parts: &[Duration]) -> Duration {
    parts.iter().fold(Duration::ZERO, |all, part| all + *part)
}

/// Why a sender held back what could have been sent, or what was lost was sent late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// By its pace.
    Rate,
    /// Until its host's port had sent.
    Turn,
    /// For a loss that ACKs told of.
    Gap,
    /// For a loss that a time-out told of.
    Timeout,
    /// Until its host's port had sent, which a pause kept from it.
    Paused,
}

/// How many of these there are.
const HELD: usize = 5;

/// Where the time went between the opening of a flow and a sending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Breakdown {
    window: Journey,
    receiver: Duration,
    held: [Duration; HELD],
    rounds: u32,
    /// The last piece of its chain, counted from 1, if chains are kept.
    piece: u32,
}

impl Breakdown {
    /// All of it.
    pub fn total(&self) -> Duration {
        self.window.total() + self.receiver + sum(&self.held)
    }

    /// It was held back.
    pub fn hold(&mut self, why: WaitReason, lasted: Duration) {
        self.held[why as usize] += lasted;
    }

    /// A round trip of the window came after it.
    pub fn add_round(&mut self, journey: &Journey, receiver: Duration) {
        self.window.add(journey);
        self.receiver += receiver;
        self.rounds += 1;
    }
}

/// What a packet carried that has come to the end of its way.
#[derive(Debug)]
pub struct Arrival {
    /// The account of its sending, or of that which it answers.
    pub account: BreakdownRef,
    /// Where it has been since.
    pub journey: Journey,
    /// How long the receiver held back the answer.
    pub receiver: Duration,
}

/// How a flow began: where the time went until it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opening {
    /// The round trip of the SYN that was answered first.
    pub journey: Journey,
    /// What came before that SYN was sent.
    pub sender: Duration,
}

/// How a flow was completed: the account of the packet that did it, and its journey.
#[derive(Clone, Copy, Debug, Default)]
pub struct Finish {
    /// Of its sending.
    pub account: Breakdown,
    /// There.
    pub journey: Journey,
}

/// How many parts an account is divided into.
pub const PARTS: usize = 2 * (IN_NETWORK + 1) + HELD + BACK;

/// A flow's completion time in parts, in the order of [`names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakdownRow {
    /// The parts.
    pub parts: [Duration; PARTS],
    /// How many round trips of the window are in it.
    pub rounds: u64,
}

impl BreakdownRow {
    /// The whole account of a flow.
    pub fn new(opening: &Opening, finish: &Finish) -> Self {
        let Finish { account, journey } = finish;
        let opening = opening.journey.0.iter().chain([&opening.sender]);
        let window = account.window.0.iter().chain([&account.receiver]);
        // Nothing of it was on the way back.
        let flight = &journey.0[..BACK];
        let all = opening.chain(window).chain(&account.held).chain(flight);
        let mut parts = [Duration::ZERO; PARTS];
        parts.iter_mut().zip(all).for_each(|(part, one)| *part = *one);
        Self { parts, rounds: u64::from(account.rounds) }
    }

    /// All of it.
    pub fn total(&self) -> Duration {
        sum(&self.parts)
    }
}

/// The names of the parts: the reason, and the place.
pub fn names() -> impl Iterator<Item = String> {
    let of = |reason: &'static str, places: &'static [&str], more: &'static [&str]| {
        places.iter().chain(more).map(move |place| format!("{reason}_{place}"))
    };
    let held = [
        "rate_sender",
        "turn_sender",
        "recovery_gap_sender",
        "recovery_timeout_sender",
        "turn_paused_host",
    ];
    of("handshake", &PLACES, &["sender"])
        .chain(of("window", &PLACES, &["receiver"]))
        .chain(held.map(str::to_owned))
        .chain(of("flight", &PLACES[..BACK], &[]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_has_a_name_and_the_parts_are_all_there_is() {
        let us = Duration::from_micros;
        let host = [us(100), us(0), us(0), us(0), us(0)];
        let back = [us(0), us(1_000), us(0), us(0), us(0)];
        let journey = Journey::new(&[host, NO_WAITS, back], us(1), us(10));
        let mut account = Breakdown::default();
        account.add_round(&journey, us(10_000));
        account.hold(WaitReason::Timeout, us(100_000));
        let further = [us(0), us(0), us(0), us(1_000_000), us(0)];
        let there = Journey::new(&[host, further, NO_WAITS], us(1), us(10));
        let opening = Opening { journey, sender: us(7) };
        let division = BreakdownRow::new(&opening, &Finish { account, journey: there });
        assert_eq!(names().count(), PARTS);
        let parts = names().zip(division.parts).filter(|(_, part)| *part > Duration::ZERO);
        let told: Vec<(String, u64)> =
            parts.map(|(name, part)| (name, part.0 / 1_000_000)).collect();
        let told: Vec<(&str, u64)> = told.iter().map(|(name, us)| (&**name, *us)).collect();
        let expected = [
            ("handshake_propagation", 10),
            ("handshake_transmission", 1),
            ("handshake_queue_own_host", 100),
            ("handshake_queue_others_back", 1_000),
            ("handshake_sender", 7),
            ("window_propagation", 10),
            ("window_transmission", 1),
            ("window_queue_own_host", 100),
            ("window_queue_others_back", 1_000),
            ("window_receiver", 10_000),
            ("recovery_timeout_sender", 100_000),
            ("flight_propagation", 10),
            ("flight_transmission", 1),
            ("flight_queue_own_host", 100),
            ("flight_paused_there", 1_000_000),
        ];
        assert_eq!(told, expected);
        let sum = journey.total() + us(7) + account.total() + there.total();
        assert_eq!((division.total(), division.rounds), (sum, 1));
    }
}
