//! What a flow is before it runs, and what is known of it afterwards.

use crate::base::units::{Bytes, Duration, Rate, Time};

/// Index of a host among the hosts of a topology.
pub type HostId = u32;

/// One transfer that a workload asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowSpec {
    /// Number of the flow: counted from 0 in order of start, but where flows follow one another. Under
    /// every transport the same flow has the same.
    pub id: u64,
    /// Host that sends.
    pub source: HostId,
    /// Host that receives; never the source.
    pub target: HostId,
    /// Payload to transfer; `None` sends until [`stop`](Self::stop).
    pub size: Option<Bytes>,
    /// When the flow starts.
    pub start: Time,
    /// When a long-lived flow stops sending.
    pub stop: Option<Time>,
    /// Index into the workload's class names.
    pub class: u16,
    /// Deadline, counted from the start.
    pub deadline: Option<Duration>,
    /// Rate a rate-based transport starts at instead of its own choice.
    pub initial_rate: Option<Rate>,
    /// What the receiver is to send back, if this is a request.
    pub reply: Option<Reply>,
    /// When the request was sent, if this is the response.
    pub called: Option<Time>,
}

/// What the receiver of a request is to send back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Payload of the response.
    pub size: Bytes,
    /// How long it takes to serve the request.
    pub service: Duration,
    /// Index of the response into the workload's class names.
    pub class: u16,
}

/// How a flow ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The receiver has every byte.
    Finished,
    /// The run ended first.
    Unfinished,
    /// A long-lived flow, which has no completion time.
    LongLived,
    /// Its sender gave it up, because it could not meet its deadline.
    Terminated,
}

/// One row of the result: a flow and how it fared.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowRecord {
    /// The flow.
    pub spec: FlowSpec,
    /// How it ended.
    pub outcome: Outcome,
    /// From the first packet sent (a SYN, if there is one) to the last payload byte at the
    /// receiver.
    pub fct: Option<Duration>,
    /// From the same instant to the sender's knowledge that the receiver has all; none where there
    /// are no acknowledgements.
    pub acked: Option<Duration>,
    /// The same flow alone in the same network.
    pub ideal_fct: Duration,
    /// Payload that the receiver has.
    pub delivered: Bytes,
    /// Data packets sent again.
    pub retransmits: u32,
    /// Retransmission time-outs.
    pub timeouts: u32,
}

/// Flows as columns, for analysis; the names are those of `flows.parquet`. A flow that has ended is kept as
/// a row of this and nothing else: long runs have millions.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    /// Number of the flow.
    pub flow: Vec<u64>,
    /// Host that sends.
    pub source: Vec<u32>,
    /// Host that receives.
    pub target: Vec<u32>,
    /// Payload; of a long-lived flow what was delivered.
    pub size_bytes: Vec<u64>,
    /// Start, in seconds.
    pub start_s: Vec<f64>,
    /// Completion time in seconds; NaN if there is none.
    pub fct_s: Vec<f64>,
    /// Completion time alone in the network, in seconds; NaN for long-lived flows.
    pub ideal_fct_s: Vec<f64>,
    /// `fct_s / ideal_fct_s`.
    pub slowdown: Vec<f64>,
    /// Data packets sent again.
    pub retransmits: Vec<u32>,
    /// Time-outs.
    pub timeouts: Vec<u32>,
    /// Index of the class.
    pub class: Vec<u16>,
    /// Deadline in seconds; NaN if there is none.
    pub deadline_s: Vec<f64>,
    /// Payload delivered.
    pub delivered_bytes: Vec<u64>,
    /// 0 finished, 1 unfinished, 2 long-lived, 3 terminated.
    pub outcome: Vec<u8>,
    /// Completion time as the sender sees it, with the way back of the last acknowledgement, in
    /// seconds; NaN if there is none.
    pub acked_s: Vec<f64>,
    /// From the start of a request to the last byte of its response at the caller, in seconds; NaN for
    /// flows that answer no request, or did not finish.
    pub latency_s: Vec<f64>,
}

impl Columns {
    /// What a flow takes: ten numbers of eight bytes, four of four, a class and an outcome.
    pub const BYTES_PER_FLOW: usize = 10 * 8 + 4 * 4 + 2 + 1;

    /// Appends a record.
    ///
    /// # Panics
    /// If a flow was faster than alone in the network, which is impossible.
    pub fn push(&mut self, record: &FlowRecord) {
        let spec = &record.spec;
        if let Some(fct) = record.fct {
            assert!(
                fct.0 + 1 >= record.ideal_fct.0,
                "flow {} took {fct}, less than alone in the network: {}",
                spec.id,
                record.ideal_fct
            );
        }
        let fct = record.fct.map_or(f64::NAN, Duration::seconds);
        let ideal = spec.size.map_or(f64::NAN, |_| record.ideal_fct.seconds());
        self.flow.push(spec.id);
        self.source.push(spec.source);
        self.target.push(spec.target);
        self.size_bytes.push(spec.size.unwrap_or(record.delivered).0);
        self.start_s.push(spec.start.seconds());
        self.fct_s.push(fct);
        self.ideal_fct_s.push(ideal);
        self.slowdown.push(fct / ideal);
        self.retransmits.push(record.retransmits);
        self.timeouts.push(record.timeouts);
        self.class.push(spec.class);
        self.deadline_s.push(spec.deadline.map_or(f64::NAN, Duration::seconds));
        self.delivered_bytes.push(record.delivered.0);
        self.outcome.push(record.outcome as u8);
        self.acked_s.push(record.acked.map_or(f64::NAN, Duration::seconds));
        let since_call = |fct| Some((spec.start + fct).since(spec.called?).seconds());
        self.latency_s.push(record.fct.and_then(since_call).unwrap_or(f64::NAN));
    }

    /// Appends all rows of another table.
    pub fn append(&mut self, mut other: Self) {
        self.flow.append(&mut other.flow);
        self.source.append(&mut other.source);
        self.target.append(&mut other.target);
        self.size_bytes.append(&mut other.size_bytes);
        self.start_s.append(&mut other.start_s);
        self.fct_s.append(&mut other.fct_s);
        self.ideal_fct_s.append(&mut other.ideal_fct_s);
        self.slowdown.append(&mut other.slowdown);
        self.retransmits.append(&mut other.retransmits);
        self.timeouts.append(&mut other.timeouts);
        self.class.append(&mut other.class);
        self.deadline_s.append(&mut other.deadline_s);
        self.delivered_bytes.append(&mut other.delivered_bytes);
        self.outcome.append(&mut other.outcome);
        self.acked_s.append(&mut other.acked_s);
        self.latency_s.append(&mut other.latency_s);
    }

    /// What the flows that started after the first offered until the last did, in bits a second on the
    /// wire, where `on_wire` says what a size takes; none if they all started together.
    pub fn offered_bps(&self, on_wire: impl Fn(Bytes) -> Bytes) -> Option<f64> {
        let sized = || self.start_s.iter().zip(&self.size_bytes).zip(&self.outcome);
        let sized = || sized().filter(|(_, outcome)| **outcome != Outcome::LongLived as u8);
        let starts = || sized().map(|((start, _), _)| *start);
        let (first, last) = (starts().min_by(f64::total_cmp)?, starts().max_by(f64::total_cmp)?);
        let later = sized().filter(|((start, _), _)| **start > first);
        let offered: f64 = later.map(|((_, size), _)| on_wire(Bytes(*size)).bits()).sum();
        (last > first).then(|| offered / (last - first))
    }

    /// Puts the rows in order of their flows' numbers.
    pub fn sort(&mut self) {
        let mut order: Vec<u32> = (0..self.flow.len() as u32).collect();
        order.sort_unstable_by_key(|row| self.flow[*row as usize]);
        let order = &order[..];
        arrange(&mut self.flow, order);
        arrange(&mut self.source, order);
        arrange(&mut self.target, order);
        arrange(&mut self.size_bytes, order);
        arrange(&mut self.start_s, order);
        arrange(&mut self.fct_s, order);
        arrange(&mut self.ideal_fct_s, order);
        arrange(&mut self.slowdown, order);
        arrange(&mut self.retransmits, order);
        arrange(&mut self.timeouts, order);
        arrange(&mut self.class, order);
        arrange(&mut self.deadline_s, order);
        arrange(&mut self.delivered_bytes, order);
        arrange(&mut self.outcome, order);
        arrange(&mut self.acked_s, order);
        arrange(&mut self.latency_s, order);
    }

    /// How many flows had this outcome.
    pub fn count(&self, outcome: Outcome) -> usize {
        self.outcome.iter().map(|known| usize::from(*known == outcome as u8)).sum()
    }
}

/// Puts a column in the given order.
pub(crate) fn arrange<T: Copy>(column: &mut Vec<T>, order: &[u32]) {
    *column = order.iter().map(|row| column[*row as usize]).collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_offered_is_counted_after_the_first_start_until_the_last() {
        let on_wire = |size: Bytes| Bytes(size.0 + size.0.div_ceil(1000) * 40);
        let mut columns = Columns {
            start_s: vec![1.0, 2.0, 5.0, 9.0],
            size_bytes: vec![7_000, 1_001, 3_000, 1_000_000],
            outcome: vec![0, 1, 0, Outcome::LongLived as u8],
            ..Columns::default()
        };
        // Two packets with one byte in the second, and three: on the wire, in four seconds.
        assert_eq!(columns.offered_bps(on_wire), Some(8.0 * (1_081.0 + 3_120.0) / 4.0));
        columns.start_s = vec![1.0, 1.0, 1.0, 9.0];
        assert_eq!(columns.offered_bps(on_wire), None);
        assert_eq!(Columns::default().offered_bps(on_wire), None);
    }
}
