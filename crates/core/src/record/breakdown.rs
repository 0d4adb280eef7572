//! The accounts of flows that have finished, as columns.

use super::flow_columns::reorder;
use crate::base::units::Duration;
use crate::breakdown::{BreakdownRow, PARTS, names};
use crate::model::ideal_fct::IdealFct;

/// Accounts as columns, a row a flow.
#[derive(Clone, Debug)]
pub struct Breakdowns {
    /// Number of the flow.
    pub flow: Vec<u64>,
    /// Its completion time in picoseconds.
    pub fct_ps: Vec<u64>,
    /// How many round trips of the window are in its account.
    pub rounds: Vec<u64>,
    /// What its last packet would spend on wires if the flow met nobody, in picoseconds.
    pub alone_propagation_ps: Vec<u64>,
    /// The same for its transmission at every hop.
    pub alone_transmission_ps: Vec<u64>,
    /// And for its wait for the packets before it.
    pub alone_queue_own_ps: Vec<u64>,
    /// The parts in picoseconds, in the order of their names; nothing while there was none of that in any
    /// flow.
    parts: Vec<Vec<u64>>,
}

impl Default for Breakdowns {
    fn default() -> Self {
        let [flow, fct_ps, rounds] = [const { Vec::new() }; 3];
        let [alone_propagation_ps, alone_transmission_ps, alone_queue_own_ps] =
            [const { Vec::new() }; 3];
        let parts = vec![Vec::new(); PARTS];
        Self {
            flow,
            fct_ps,
            rounds,
            alone_propagation_ps,
            alone_transmission_ps,
            alone_queue_own_ps,
            parts,
        }
    }
}

impl Breakdowns {
    /// Appends the account of a flow, and what it would have been alone.
    ///
    /// # Panics
    /// If its parts are not its completion time.
    pub fn push(&mut self, flow: u64, fct: Duration, division: &BreakdownRow, alone: &IdealFct) {
        let total = division.total();
        assert_eq!(total, fct, "flow {flow} took {fct}, and by its account {total}: {division:?}");
        let rows = self.flow.len();
        self.flow.push(flow);
        self.fct_ps.push(fct.0);
        self.rounds.push(division.rounds);
        self.alone_propagation_ps.push(alone.propagation.0);
        self.alone_transmission_ps.push(alone.transmission.0);
        self.alone_queue_own_ps.push(alone.waiting.0);
        for (column, part) in self.parts.iter_mut().zip(division.parts) {
            if part > Duration::ZERO || !column.is_empty() {
                column.resize(rows, 0);
                column.push(part.0);
            }
        }
    }

    /// Appends all rows of another table.
    pub fn append(&mut self, mut other: Self) {
        let (before, more) = (self.flow.len(), other.flow.len());
        for (column, other) in self.numbers().into_iter().zip(other.numbers()) {
            column.append(other);
        }
        for (column, other) in self.parts.iter_mut().zip(&mut other.parts) {
            if !column.is_empty() || !other.is_empty() {
                column.resize(before, 0);
                column.append(other);
                column.resize(before + more, 0);
            }
        }
    }

    /// Puts the rows in order of their flows' numbers.
    pub fn sort(&mut self) {
        let mut order: Vec<u32> = (0..self.flow.len() as u32).collect();
        order.sort_unstable_by_key(|row| self.flow[*row as usize]);
        for column in self.numbers() {
            reorder(column, &order);
        }
        for column in self.parts.iter_mut().filter(|column| !column.is_empty()) {
            reorder(column, &order);
        }
    }

    /// The columns that have a number for every flow.
    fn numbers(&mut self) -> [&mut Vec<u64>; 6] {
        [
            &mut self.flow,
            &mut self.fct_ps,
            &mut self.rounds,
            &mut self.alone_propagation_ps,
            &mut self.alone_transmission_ps,
            &mut self.alone_queue_own_ps,
        ]
    }

    /// Gives up the parts by name, a row a flow.
    pub fn take_parts(&mut self) -> impl Iterator<Item = (String, Vec<u64>)> {
        let rows = self.flow.len();
        names().zip(std::mem::take(&mut self.parts)).map(move |(name, mut column)| {
            column.resize(rows, 0);
            (format!("{name}_ps"), column)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of flows whose account is one part each.
    fn table(rows: &[(u64, usize, u64)]) -> Breakdowns {
        let mut table = Breakdowns::default();
        for (flow, part, took) in rows {
            let mut division = BreakdownRow { parts: [Duration::ZERO; PARTS], rounds: *flow };
            division.parts[*part] = Duration(*took);
            table.push(*flow, Duration(*took), &division, &IdealFct::default());
        }
        table
    }

    #[test]
    fn tables_are_joined_and_put_in_order() {
        let mut whole = table(&[(3, 0, 30), (1, 2, 10)]);
        whole.append(table(&[(2, 1, 20), (0, 0, 5)]));
        whole.sort();
        assert_eq!((&whole.flow, &whole.rounds), (&vec![0, 1, 2, 3], &vec![0, 1, 2, 3]));
        assert_eq!(whole.fct_ps, [5, 10, 20, 30]);
        let parts: Vec<Vec<u64>> = whole.take_parts().map(|(_, column)| column).collect();
        assert_eq!(parts.len(), PARTS);
        let expected = [[5, 0, 0, 30], [0, 0, 20, 0], [0, 10, 0, 0], [0, 0, 0, 0]];
        assert_eq!(parts[..4], expected);
    }

    #[test]
    #[should_panic(expected = "flow 7 took")]
    fn an_account_that_does_not_add_up_is_refused() {
        let division = BreakdownRow { parts: [Duration(1); PARTS], rounds: 0 };
        Breakdowns::default().push(7, Duration(1), &division, &IdealFct::default());
    }
}
