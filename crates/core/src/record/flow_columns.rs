//! Flow records as columns. Each column is declared once: name, type, meaning, value.

use serde_json::Value;

use crate::base::units::{Bytes, Duration};
use crate::model::flow::{FlowRecord, Outcome};
use crate::model::flow_totals::{FlowTotals, KeptRecords, OfferedBytes};

/// Description of a column of `flows.parquet`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnInfo {
    /// Name of the column.
    pub name: &'static str,
    /// Meaning and unit.
    pub meaning: &'static str,
    /// True if a flow may have no value, which the column stores as NaN.
    pub is_nullable: bool,
}

/// Values of one column, a row per flow.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnValues {
    /// Small enumerations.
    U8(Vec<u8>),
    /// Class indices.
    U16(Vec<u16>),
    /// Hosts and counts.
    U32(Vec<u32>),
    /// Flow numbers and byte counts.
    U64(Vec<u64>),
    /// Times in seconds and ratios.
    F64(Vec<f64>),
}

macro_rules! from_vector {
    ($($variant:ident: $type:ty),+) => {
        $(impl From<Vec<$type>> for ColumnValues {
            fn from(values: Vec<$type>) -> Self {
                Self::$variant(values)
            }
        }

        impl FromIterator<$type> for ColumnValues {
            fn from_iter<I: IntoIterator<Item = $type>>(values: I) -> Self {
                Self::$variant(values.into_iter().collect())
            }
        })+

        impl ColumnValues {
            /// Returns the value of a row as JSON.
            pub fn show(&self, row: usize) -> Value {
                match self {
                    $(Self::$variant(values) => values[row].into(),)+
                }
            }
        }
    };
}

from_vector!(U8: u8, U16: u16, U32: u32, U64: u64, F64: f64);

/// Declares the columns as `name: type = value of a record`. `or NAN` after the type marks a nullable column.
macro_rules! columns {
    ($(
        $(#[doc = $meaning:literal])+
        $name:ident: $type:ident $(or $absent:ident)? = $value:expr;
    )+) => {
        /// Flow records as columns, named as in `flows.parquet`. A finished flow occupies one row
        /// and no other memory, because long runs have millions of flows.
        #[derive(Clone, Debug, Default)]
        pub struct FlowColumns {
            $( $(#[doc = $meaning])+ pub $name: Vec<$type>, )+
            /// Choice of the flows that have a row.
            pub kept: KeptRecords,
            /// Totals of all flows.
            pub totals: FlowTotals,
        }

        impl FlowColumns {
            /// Descriptions of all columns, in order.
            pub const INFO: &[ColumnInfo] = &[$(ColumnInfo {
                name: stringify!($name),
                meaning: concat!($($meaning),+).trim_ascii_start(),
                is_nullable: is_nullable(&[$(f64::$absent)?]),
            }),+];

            /// Memory of a row.
            pub const BYTES_PER_FLOW: usize = 0 $(+ size_of::<$type>())+;

            fn push_row(&mut self, record: &FlowRecord) {
                $( self.$name.push(($value)(record)); )+
            }

            /// Appends all rows of another table.
            pub fn append(&mut self, mut other: Self) {
                $( self.$name.append(&mut other.$name); )+
                self.totals.merge(&other.totals);
            }

            fn reorder(&mut self, order: &[u32]) {
                $( reorder(&mut self.$name, order); )+
            }

            /// Returns the columns by name, in the order of [`INFO`](Self::INFO).
            pub fn into_columns(self) -> impl Iterator<Item = (&'static str, ColumnValues)> {
                [$((stringify!($name), ColumnValues::from(self.$name))),+].into_iter()
            }
        }
    };
}

columns! {
    /// Number of the flow.
    flow: u64 = |record: &FlowRecord| record.spec.id;
    /// Index of the sending host.
    source: u32 = |record: &FlowRecord| record.spec.source;
    /// Index of the receiving host.
    target: u32 = |record: &FlowRecord| record.spec.target;
    /// Payload in bytes; for a long-lived flow the payload delivered.
    size_bytes: u64 = |record: &FlowRecord| record.spec.size.unwrap_or(record.delivered).0;
    /// Start time in seconds.
    start_s: f64 = |record: &FlowRecord| record.spec.start.seconds();
    /// Flow completion time in seconds; absent if the flow did not finish.
    fct_s: f64 or NAN = fct_s;
    /// Ideal FCT in seconds: at line rate over the idle path, without handshake or slow start; absent for
    /// long-lived flows.
    ideal_fct_s: f64 or NAN = ideal_fct_s;
    /// Slowdown: `fct_s / ideal_fct_s`.
    slowdown: f64 or NAN = |record: &FlowRecord| fct_s(record) / ideal_fct_s(record);
    /// Retransmitted data packets.
    retransmits: u32 = |record: &FlowRecord| record.retransmits;
    /// Retransmission timeouts.
    timeouts: u32 = |record: &FlowRecord| record.timeouts;
    /// Index of the flow's class.
    class: u16 = |record: &FlowRecord| record.spec.class;
    /// Deadline in seconds after the start; absent if the flow has none.
    deadline_s: f64 or NAN = |record: &FlowRecord| seconds(record.spec.deadline);
    /// Payload delivered to the receiver, in bytes.
    delivered_bytes: u64 = |record: &FlowRecord| record.delivered.0;
    /// Outcome: 0 finished, 1 unfinished, 2 long-lived, 3 terminated.
    outcome: u8 = |record: &FlowRecord| record.outcome as u8;
    /// Time in seconds from the start until the sender received the last acknowledgement; absent if it did
    /// not.
    acked_s: f64 or NAN = |record: &FlowRecord| seconds(record.acked);
    /// Latency of an RPC in seconds, from the start of the request to the last byte of the response; absent
    /// for flows that are not responses or did not finish.
    latency_s: f64 or NAN = latency_s;
    /// Packets of the flow, in both directions, that queues dropped or links lost; absent for flows on a
    /// persistent connection, which share its packets.
    lost_packets: f64 or NAN = |record: &FlowRecord| record.lost.map_or(f64::NAN, f64::from);
    /// Data packets that arrived later than packets sent after them, without retransmissions (RFC 4737 §3);
    /// absent for flows on a persistent connection.
    reordered_packets: f64 or NAN = |record: &FlowRecord| {
        record.reordering.map_or(f64::NAN, |reordering| f64::from(reordering.packets))
    };
    /// Largest number of packets from a reordered one to the highest that had arrived before; absent for
    /// flows on a persistent connection.
    reordering_extent: f64 or NAN = |record: &FlowRecord| {
        record.reordering.map_or(f64::NAN, |reordering| f64::from(reordering.extent))
    };
    /// Step of the collective operation, from 0; absent for flows that do not belong to one.
    step: f64 or NAN = |record: &FlowRecord| record.spec.step.map_or(f64::NAN, f64::from);
}

/// Returns true if a column declares a value for absent ones.
const fn is_nullable(absent: &[f64]) -> bool {
    !absent.is_empty()
}

/// Converts a duration to seconds, NaN if it is absent.
fn seconds(duration: Option<Duration>) -> f64 {
    duration.map_or(f64::NAN, Duration::seconds)
}

fn fct_s(record: &FlowRecord) -> f64 {
    seconds(record.fct)
}

fn ideal_fct_s(record: &FlowRecord) -> f64 {
    seconds(record.spec.size.map(|_| record.ideal_fct))
}

fn latency_s(record: &FlowRecord) -> f64 {
    let since_call = |fct| Some((record.spec.start + fct).since(record.spec.called?));
    seconds(record.fct.and_then(since_call))
}

impl FlowColumns {
    /// Adds a flow, and its record if it is kept.
    ///
    /// # Panics
    /// If the FCT is less than the ideal FCT, which is impossible.
    pub fn push(&mut self, record: &FlowRecord) {
        if let Some(fct) = record.fct {
            let FlowRecord { spec, ideal_fct, .. } = record;
            assert!(
                fct.0 + 1 >= ideal_fct.0,
                "flow {}: FCT {fct} is less than its ideal FCT {ideal_fct}",
                spec.id
            );
        }
        self.totals.add(record);
        if self.kept.includes(&record.spec) {
            self.push_row(record);
        }
    }

    /// Offered load in bits per second: the sizes of all flows but those of the first start,
    /// divided by the time between the first and the last start. `on_wire` maps a payload to its
    /// bytes with headers; of flows without records, headers are the same share. `None` if all flows start at
    /// one time.
    pub fn offered_bps(&self, on_wire: impl Fn(Bytes) -> Bytes) -> Option<f64> {
        let sized = || self.start_s.iter().zip(&self.size_bytes).zip(&self.outcome);
        let sized = || sized().filter(|(_, outcome)| **outcome != Outcome::LongLived as u8);
        let bits = |((_, size), _): ((_, &u64), _)| on_wire(Bytes(*size)).bits();
        if self.kept.one_in > 1 {
            let OfferedBytes { starts, at_first, all } = self.totals.offered;
            let (first, last) = starts?;
            let recorded: f64 = sized().map(|((_, size), _)| Bytes(*size).bits()).sum();
            let headers =
                if recorded > 0.0 { sized().map(bits).sum::<f64>() / recorded } else { 1.0 };
            let offered = headers * (all - at_first).bits();
            return (last > first).then(|| offered / last.since(first).seconds());
        }
        let starts = || sized().map(|((start, _), _)| *start);
        let (first, last) = (starts().min_by(f64::total_cmp)?, starts().max_by(f64::total_cmp)?);
        let later = sized().filter(|((start, _), _)| **start > first);
        let offered: f64 = later.map(bits).sum();
        (last > first).then(|| offered / (last - first))
    }

    /// Sorts the rows by flow number.
    pub fn sort(&mut self) {
        let mut order: Vec<u32> = (0..self.flow.len() as u32).collect();
        order.sort_unstable_by_key(|row| self.flow[*row as usize]);
        self.reorder(&order);
    }
}

/// Permutes a column: row `i` becomes the former row `order[i]`.
pub(super) fn reorder<T: Copy>(column: &mut Vec<T>, order: &[u32]) {
    *column = order.iter().map(|row| column[*row as usize]).collect();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::Time;
    use crate::model::flow::{FlowSpec, Reordering};

    /// A record of a flow of 1000 bytes whose FCT is twice its ideal FCT.
    fn record(id: u64) -> FlowRecord {
        let at = |us| Time::ZERO + Duration::from_micros(us);
        FlowRecord {
            spec: FlowSpec {
                id,
                source: 1,
                target: 2,
                size: Some(Bytes(1000)),
                start: at(5),
                stop: None,
                class: 3,
                deadline: None,
                initial_rate: None,
                reply: None,
                called: Some(at(1)),
                connection: None,
                step: Some(2),
            },
            outcome: Outcome::Finished,
            fct: Some(Duration::from_micros(20)),
            acked: None,
            ideal_fct: Duration::from_micros(10),
            delivered: Bytes(1000),
            retransmits: 4,
            timeouts: 5,
            lost: Some(6),
            reordering: Some(Reordering { packets: 7, extent: 8 }),
        }
    }

    #[test]
    fn offered_load_counts_flows_after_the_first_start_until_the_last() {
        let on_wire = |size: Bytes| Bytes(size.0 + size.0.div_ceil(1000) * 40);
        let mut columns = FlowColumns {
            start_s: vec![1.0, 2.0, 5.0, 9.0],
            size_bytes: vec![7_000, 1_001, 3_000, 1_000_000],
            outcome: vec![0, 1, 0, Outcome::LongLived as u8],
            ..FlowColumns::default()
        };
        // 1001 bytes take two packets and 3000 bytes three, in four seconds.
        assert_eq!(columns.offered_bps(on_wire), Some(8.0 * (1_081.0 + 3_120.0) / 4.0));
        columns.start_s = vec![1.0, 1.0, 1.0, 9.0];
        assert_eq!(columns.offered_bps(on_wire), None);
        assert_eq!(FlowColumns::default().offered_bps(on_wire), None);
    }

    #[test]
    fn all_columns_of_a_row_move_together() {
        let mut columns = FlowColumns::default();
        columns.push(&record(9));
        let mut other = FlowColumns::default();
        other.push(&FlowRecord {
            spec: FlowSpec { size: None, called: None, ..record(7).spec },
            outcome: Outcome::LongLived,
            fct: None,
            ..record(7)
        });
        columns.append(other);
        columns.sort();
        assert_eq!(columns.flow, [7, 9]);
        let names: Vec<&str> = FlowColumns::INFO.iter().map(|column| column.name).collect();
        let (mut width, mut row) = (0, Vec::new());
        for ((name, values), info) in columns.into_columns().zip(FlowColumns::INFO) {
            assert_eq!(name, info.name);
            assert!(!info.meaning.is_empty());
            let ([one, other], bytes) = match values {
                ColumnValues::U8(values) => ([values[0], values[1]].map(f64::from), 1),
                ColumnValues::U16(values) => ([values[0], values[1]].map(f64::from), 2),
                ColumnValues::U32(values) => ([values[0], values[1]].map(f64::from), 4),
                ColumnValues::U64(values) => ([values[0], values[1]].map(|value| value as f64), 8),
                ColumnValues::F64(values) => ([values[0], values[1]], 8),
            };
            assert!(info.is_nullable || !one.is_nan() && !other.is_nan(), "{name}");
            width += bytes;
            row.push((name, other));
        }
        assert_eq!(width, FlowColumns::BYTES_PER_FLOW);
        assert_eq!(names.len(), row.len());
        let latency = row.remove(row.len() - 5);
        assert_eq!(latency.0, "latency_s");
        assert!((latency.1 - 24e-6).abs() < 1e-12);
        let (absent, row): (Vec<_>, Vec<_>) =
            row.into_iter().partition(|(_, value)| value.is_nan());
        assert_eq!(
            absent.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
            ["deadline_s", "acked_s"]
        );
        let expected = [
            ("flow", 9.0),
            ("source", 1.0),
            ("target", 2.0),
            ("size_bytes", 1000.0),
            ("start_s", 5e-6),
            ("fct_s", 20e-6),
            ("ideal_fct_s", 10e-6),
            ("slowdown", 2.0),
            ("retransmits", 4.0),
            ("timeouts", 5.0),
            ("class", 3.0),
            ("delivered_bytes", 1000.0),
            ("outcome", 0.0),
            ("lost_packets", 6.0),
            ("reordered_packets", 7.0),
            ("reordering_extent", 8.0),
            ("step", 2.0),
        ];
        assert_eq!(row, expected);
    }
}
