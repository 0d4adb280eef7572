//! FCT breakdowns of completed flows as columns.

use super::flow_columns::reorder;
use crate::base::units::Duration;
use crate::breakdown::{BreakdownRow, COMPONENTS, component_names};
use crate::model::ideal_fct::IdealFct;

/// FCT breakdowns as columns, a row per flow.
#[derive(Clone, Debug)]
pub struct Breakdowns {
    /// Number of the flow.
    pub flow: Vec<u64>,
    /// FCT in picoseconds.
    pub fct_ps: Vec<u64>,
    /// Number of RTTs for which the window was full.
    pub rounds: Vec<u64>,
    /// Propagation delay in the ideal FCT, in picoseconds.
    pub alone_propagation_ps: Vec<u64>,
    /// Transmission delay of the last packet in the ideal FCT, in picoseconds.
    pub alone_transmission_ps: Vec<u64>,
    /// Queueing delay behind the flow's own packets in the ideal FCT, in picoseconds.
    pub alone_queue_own_ps: Vec<u64>,
    /// Components in picoseconds, in the order of [`component_names`]. A column stays empty while
    /// its component is zero for all flows.
    components: Vec<Vec<u64>>,
}

impl Default for Breakdowns {
    fn default() -> Self {
        let [flow, fct_ps, rounds] = [const { Vec::new() }; 3];
        let [alone_propagation_ps, alone_transmission_ps, alone_queue_own_ps] =
            [const { Vec::new() }; 3];
        let components = vec![Vec::new(); COMPONENTS];
        Self {
            flow,
            fct_ps,
            rounds,
            alone_propagation_ps,
            alone_transmission_ps,
            alone_queue_own_ps,
            components,
        }
    }
}

impl Breakdowns {
    /// Appends the breakdowns of a flow's FCT and ideal FCT.
    ///
    /// # Panics
    /// If the components do not sum to the FCT.
    pub fn push(&mut self, flow: u64, fct: Duration, row: &BreakdownRow, ideal: &IdealFct) {
        let total = row.total();
        assert_eq!(total, fct, "flow {flow}: FCT {fct}, sum of its components {total}: {row:?}");
        let rows = self.flow.len();
        self.flow.push(flow);
        self.fct_ps.push(fct.0);
        self.rounds.push(row.window_rtts);
        self.alone_propagation_ps.push(ideal.propagation.0);
        self.alone_transmission_ps.push(ideal.transmission.0);
        self.alone_queue_own_ps.push(ideal.waiting.0);
        for (column, component) in self.components.iter_mut().zip(row.components) {
            if component > Duration::ZERO || !column.is_empty() {
                column.resize(rows, 0);
                column.push(component.0);
            }
        }
    }

    /// Appends all rows of another table.
    pub fn append(&mut self, mut other: Self) {
        let (before, more) = (self.flow.len(), other.flow.len());
        for (column, other) in self.dense().into_iter().zip(other.dense()) {
            column.append(other);
        }
        for (column, other) in self.components.iter_mut().zip(&mut other.components) {
            if !column.is_empty() || !other.is_empty() {
                column.resize(before, 0);
                column.append(other);
                column.resize(before + more, 0);
            }
        }
    }

    /// Sorts the rows by flow number.
    pub fn sort(&mut self) {
        let mut order: Vec<u32> = (0..self.flow.len() as u32).collect();
        order.sort_unstable_by_key(|row| self.flow[*row as usize]);
        for column in self.dense() {
            reorder(column, &order);
        }
        for column in self.components.iter_mut().filter(|column| !column.is_empty()) {
            reorder(column, &order);
        }
    }

    /// Columns that are never empty.
    fn dense(&mut self) -> [&mut Vec<u64>; 6] {
        [
            &mut self.flow,
            &mut self.fct_ps,
            &mut self.rounds,
            &mut self.alone_propagation_ps,
            &mut self.alone_transmission_ps,
            &mut self.alone_queue_own_ps,
        ]
    }

    /// Removes and returns the columns of components by name.
    pub fn take_components(&mut self) -> impl Iterator<Item = (String, Vec<u64>)> {
        let rows = self.flow.len();
        component_names().zip(std::mem::take(&mut self.components)).map(
            move |(name, mut column)| {
                column.resize(rows, 0);
                (format!("{name}_ps"), column)
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of flows with one component each.
    fn table(rows: &[(u64, usize, u64)]) -> Breakdowns {
        let mut table = Breakdowns::default();
        for (flow, component, fct) in rows {
            let components = [Duration::ZERO; COMPONENTS];
            let mut row = BreakdownRow { components, window_rtts: *flow };
            row.components[*component] = Duration(*fct);
            table.push(*flow, Duration(*fct), &row, &IdealFct::default());
        }
        table
    }

    #[test]
    fn tables_are_appended_and_sorted() {
        let mut whole = table(&[(3, 0, 30), (1, 2, 10)]);
        whole.append(table(&[(2, 1, 20), (0, 0, 5)]));
        whole.sort();
        assert_eq!((&whole.flow, &whole.rounds), (&vec![0, 1, 2, 3], &vec![0, 1, 2, 3]));
        assert_eq!(whole.fct_ps, [5, 10, 20, 30]);
        let components: Vec<Vec<u64>> = whole.take_components().map(|(_, column)| column).collect();
        assert_eq!(components.len(), COMPONENTS);
        let expected = [[5, 0, 0, 30], [0, 0, 20, 0], [0, 10, 0, 0], [0, 0, 0, 0]];
        assert_eq!(components[..4], expected);
    }

    #[test]
    #[should_panic(expected = "flow 7: FCT")]
    fn a_breakdown_that_does_not_sum_to_the_fct_panics() {
        let row = BreakdownRow { components: [Duration(1); COMPONENTS], window_rtts: 0 };
        Breakdowns::default().push(7, Duration(1), &row, &IdealFct::default());
    }
}
