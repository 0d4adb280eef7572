//! Chains of causes of selected flows as columns.

use super::flow_columns::reorder;
use crate::base::units::Duration;
use crate::breakdown::chain::{ChainInterval, LOCATIONS, REASONS, location_names};

/// Chains as columns, a row per interval, sorted by time within a flow.
#[derive(Clone, Debug)]
pub struct Chains {
    /// Number of the flow.
    pub flow: Vec<u64>,
    /// Number of the reason in [`REASONS`].
    pub reason: Vec<u8>,
    /// Start of the interval in picoseconds after the start of the flow.
    pub begins_ps: Vec<u64>,
    /// Durations by location, in picoseconds.
    durations: [Vec<u64>; LOCATIONS],
}

impl Default for Chains {
    fn default() -> Self {
        let durations = [const { Vec::new() }; LOCATIONS];
        Self { flow: Vec::new(), reason: Vec::new(), begins_ps: Vec::new(), durations }
    }
}

impl Chains {
    /// Names of the reasons, by number.
    pub const REASONS: [&str; 9] = REASONS;

    /// Appends the chain of a flow.
    ///
    /// # Panics
    /// If the intervals do not sum to the FCT.
    pub fn push(&mut self, flow: u64, fct: Duration, chain: &[ChainInterval]) {
        let mut begins = Duration::ZERO;
        for interval in chain {
            self.flow.push(flow);
            self.reason.push(interval.reason);
            self.begins_ps.push(begins.0);
            for (column, duration) in self.durations.iter_mut().zip(interval.durations) {
                column.push(duration.0);
                begins += duration;
            }
        }
        assert_eq!(begins, fct, "the chain of flow {flow} does not sum to its FCT");
    }

    /// Appends all rows of another table.
    pub fn append(&mut self, mut other: Self) {
        self.flow.append(&mut other.flow);
        self.reason.append(&mut other.reason);
        self.begins_ps.append(&mut other.begins_ps);
        for (column, other) in self.durations.iter_mut().zip(&mut other.durations) {
            column.append(other);
        }
    }

    /// Sorts the chains by flow number.
    pub fn sort(&mut self) {
        let mut order: Vec<u32> = (0..self.flow.len() as u32).collect();
        order.sort_by_key(|row| self.flow[*row as usize]);
        reorder(&mut self.reason, &order);
        let numbers = [&mut self.flow, &mut self.begins_ps];
        for column in numbers.into_iter().chain(&mut self.durations) {
            reorder(column, &order);
        }
    }

    /// Removes and returns the durations by name of the location.
    pub fn take_durations(&mut self) -> impl Iterator<Item = (String, Vec<u64>)> {
        let empty = [const { Vec::new() }; LOCATIONS];
        let durations = std::mem::replace(&mut self.durations, empty);
        location_names().map(|name| format!("{name}_ps")).zip(durations)
    }
}
