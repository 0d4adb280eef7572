//! Chains of causes, piece by piece, of the flows that somebody asks about.
//!
//! Which sendings the packet that completes a flow will have come over is known in the end: until then every
//! piece is kept, and each names the one before it.

use super::{Breakdown, Finish, IN_NETWORK, Journey, Opening, PLACES, WaitReason};
use crate::base::units::Duration;

/// How many places a piece divides into.
pub const PLACES_OF_PIECES: usize = IN_NETWORK + 2;

/// Their names, in order.
pub fn place_names() -> impl Iterator<Item = &'static str> {
    PLACES.iter().chain(&["receiver", "sender"]).copied()
}

/// Why the flow was not further meanwhile, by number.
pub const REASONS: [&str; 7] =
    ["handshake", "window", "rate", "turn", "recovery_gap", "recovery_timeout", "flight"];

const HANDSHAKE: u8 = 0;
const WINDOW: u8 = 1;
const FLIGHT: u8 = 6;

impl WaitReason {
    fn reason(self) -> u8 {
        match self {
            Self::Rate => 2,
            Self::Turn | Self::Paused => 3,
            Self::Gap => 4,
            Self::Timeout => 5,
        }
    }
}

/// One link of a chain: a stretch of time with one reason, by place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its reason's number.
    pub reason: u8,
    /// By place.
    pub places: [Duration; PLACES_OF_PIECES],
    /// The one before it, counted from 1; with 0 it is the first after the opening.
    before: u32,
}

impl Piece {
    fn new(reason: u8, journey: &Journey, receiver: Duration, sender: Duration) -> Self {
        let mut places = [Duration::ZERO; PLACES_OF_PIECES];
        places[..IN_NETWORK].copy_from_slice(&journey.0);
        places[IN_NETWORK..].copy_from_slice(&[receiver, sender]);
        Self { reason, places, before: 0 }
    }
}

/// All pieces that any sending of a flow came over.
#[derive(Debug, Default)]
pub struct Chain(Vec<Piece>);

impl Chain {
    /// What is next in line was held back.
    pub fn hold(&mut self, account: &mut Breakdown, why: WaitReason, lasted: Duration) {
        if lasted > Duration::ZERO {
            let (at_port, at_sender) = match why {
                WaitReason::Paused => (Journey::paused(lasted), Duration::ZERO),
                _ => (Journey::NONE, lasted),
            };
            self.add(account, Piece::new(why.reason(), &at_port, Duration::ZERO, at_sender));
        }
    }

    /// A round trip of the window came after it.
    pub fn add_round(&mut self, account: &mut Breakdown, journey: &Journey, receiver: Duration) {
        self.add(account, Piece::new(WINDOW, journey, receiver, Duration::ZERO));
    }

    fn add(&mut self, account: &mut Breakdown, piece: Piece) {
        self.0.push(Piece { before: account.piece, ..piece });
        account.piece = self.0.len() as u32;
    }

    /// The chain of the packet that completed the flow, from the flow's start.
    pub fn of(&self, opening: &Opening, finish: &Finish) -> Vec<Piece> {
        let mut pieces = vec![Piece::new(FLIGHT, &finish.journey, Duration::ZERO, Duration::ZERO)];
        let mut next = finish.account.piece;
        while let Some(piece) = next.checked_sub(1).map(|index| self.0[index as usize]) {
            pieces.push(piece);
            next = piece.before;
        }
        if *opening != Opening::default() {
            let Opening { journey, sender } = opening;
            pieces.push(Piece::new(HANDSHAKE, journey, Duration::ZERO, *sender));
        }
        pieces.reverse();
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_led_to_the_last_packet_is_in_its_chain() {
        let us = Duration::from_micros;
        let mut chain = Chain::default();
        let journey = Journey::new(&Default::default(), us(1), us(9));
        let mut first = Breakdown::default();
        chain.hold(&mut first, WaitReason::Rate, us(3));
        chain.hold(&mut first, WaitReason::Turn, Duration::ZERO);
        let mut other = first;
        chain.hold(&mut other, WaitReason::Gap, us(100));
        let mut last = first;
        chain.add_round(&mut last, &journey, us(4));
        let opening = Opening { journey, sender: us(7) };
        let told: Vec<(&str, u64)> = chain
            .of(&opening, &Finish { account: last, journey })
            .iter()
            .map(|piece| {
                let lasted: u64 = piece.places.iter().map(|place| place.0 / 1_000_000).sum();
                (REASONS[usize::from(piece.reason)], lasted)
            })
            .collect();
        assert_eq!(told, [("handshake", 17), ("rate", 3), ("window", 14), ("flight", 10)]);
        assert_eq!(place_names().count(), PLACES_OF_PIECES);
    }
}
