//! The chains of causes of the flows that were asked about, as columns.

use super::flow_columns::reorder;
use crate::base::units::Duration;
use crate::breakdown::chain::{PLACES_OF_PIECES, Piece, REASONS, place_names};

/// Chains as columns, a row a piece, in order of time within a flow.
#[derive(Clone, Debug)]
pub struct Chains {
    /// Number of the flow.
    pub flow: Vec<u64>,
    /// Why the flow was not further, by the numbers of [`REASONS`].
    pub reason: Vec<u8>,
    /// When the piece begins, in picoseconds after the flow's start.
    pub begins_ps: Vec<u64>,
    places: [Vec<u64>; PLACES_OF_PIECES],
}

impl Default for Chains {
    fn default() -> Self {
        let places = [const { Vec::new() }; PLACES_OF_PIECES];
        Self { flow: Vec::new(), reason: Vec::new(), begins_ps: Vec::new(), places }
    }
}

impl Chains {
    /// The names of reasons, by number.
    pub const REASONS: [&str; 7] = REASONS;

    /// Appends the chain of a flow.
    ///
    /// # Panics
    /// If its pieces are not its completion time.
    pub fn push(&mut self, flow: u64, fct: Duration, chain: &[Piece]) {
        let mut begins = Duration::ZERO;
        for piece in chain {
            self.flow.push(flow);
            self.reason.push(piece.reason);
            self.begins_ps.push(begins.0);
            for (column, place) in self.places.iter_mut().zip(piece.places) {
                column.push(place.0);
                begins += place;
            }
        }
        assert_eq!(begins, fct, "the chain of flow {flow} is not as long as it took");
    }

    /// Appends all rows of another table.
    pub fn append(&mut self, mut other: Self) {
        self.flow.append(&mut other.flow);
        self.reason.append(&mut other.reason);
        self.begins_ps.append(&mut other.begins_ps);
        for (column, other) in self.places.iter_mut().zip(&mut other.places) {
            column.append(other);
        }
    }

    /// Puts flows in order of their numbers.
    pub fn sort(&mut self) {
        let mut order: Vec<u32> = (0..self.flow.len() as u32).collect();
        order.sort_by_key(|row| self.flow[*row as usize]);
        reorder(&mut self.reason, &order);
        let numbers = [&mut self.flow, &mut self.begins_ps];
        for column in numbers.into_iter().chain(&mut self.places) {
            reorder(column, &order);
        }
    }

    /// Gives up the places by name, a row a piece.
    pub fn take_places(&mut self) -> impl Iterator<Item = (String, Vec<u64>)> {
        let places = std::mem::replace(&mut self.places, [const { Vec::new() }; PLACES_OF_PIECES]);
        place_names().map(|name| format!("{name}_ps")).zip(places)
    }
}
