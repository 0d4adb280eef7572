//! Breakdowns of single transmissions of a sender with a controlled clock.

use std::sync::Arc;

use super::*;
use crate::base::schema::{Parameter, defaults};
use crate::base::units::{Bytes, Rate};
use crate::breakdown::{BreakdownRow, component_names};
use crate::model::packet::{Format, Header, Kind, Packet};
use crate::transport::controllers::{Config, Path};
use crate::transport::endpoint::sender::NextPacket;
use crate::transport::{Controller, Mechanism};
use serde_json::json;

/// Rate at which a full packet takes 1 ms.
const PACKET_PER_MS: f64 = 8.32e6;

/// Sender with its breakdown. Times are in milliseconds.
struct Flow {
    sender: Sender,
    mechanism: Arc<Mechanism>,
    breakdown: SenderBreakdown,
    pool: BreakdownPool,
    controller: Box<dyn Controller>,
    format: Format,
    /// Total time for which the port has been paused.
    paused: u64,
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn at(time: u64) -> Time {
    Time::ZERO + ms(time)
}

fn window(packets: u64) -> Allowance {
    Allowance::window(1000.0 * packets as f64)
}

/// Path delays that consist of propagation only.
fn propagation(duration: Duration) -> PathDelays {
    PathDelays::new(&Default::default(), Duration::ZERO, duration)
}

impl Flow {
    fn new(has_handshake: bool) -> Self {
        let config = json!({
            "kind": "constant_rate",
            "reliability": { "recovery": "selective_repeat", "handshake": has_handshake },
        });
        let config = Config::read(&config).unwrap();
        let format: Format = defaults();
        let mechanism = Arc::new(config.mechanism(&format));
        let path = Path::new(Rate::from_gbps(1), ms(100), format.clone());
        Self {
            sender: Sender::new(Some(Bytes(1_000_000)), &mechanism, &format, Time::ZERO),
            breakdown: SenderBreakdown::new(Time::ZERO, 100),
            mechanism,
            pool: BreakdownPool::default(),
            controller: config.controller(&path),
            format,
            paused: 0,
        }
    }

    /// Transmits all that the allowance permits, given the record of a received packet. Returns the sequence
    /// numbers and the breakdowns.
    fn transmit(
        &mut self,
        now: u64,
        allowance: Allowance,
        record: Option<PacketRecord>,
    ) -> Vec<(u32, BreakdownRef)> {
        let Self { sender, breakdown, pool, paused, .. } = self;
        let is_needed = breakdown.needs_record(sender, allowance);
        assert!(is_needed || record.is_none(), "a record is not needed");
        breakdown.update(at(now), sender, allowance, record, ms(*paused), pool);
        let mut sent = Vec::new();
        while let Some(output) = sender.next_packet(at(now), allowance) {
            if let NextPacket::Segment(segment) = output {
                let port = (0, ms(*paused));
                let reference = breakdown.on_send(at(now), segment, port, pool);
                sender.pacer.on_enqueued(at(now), None);
                sent.push((segment.sequence, reference));
            }
        }
        breakdown.note_constraint(sender, allowance);
        sent
    }

    /// Receives an ACK of a packet sent at `sent_at`.
    fn ack(&mut self, now: u64, sent_at: u64, cumulative: u32, block: (u32, u32)) {
        let packet = self.format.control(Kind::Ack, 0, at(sent_at));
        let packet = Packet { sequence: cumulative, ..packet };
        let packet = packet.with_header(Header::Ack { block, feedback: 0.0 });
        self.sender.on_ack(at(now), &packet, None, ms(now - sent_at), &mut *self.controller);
    }

    /// Ports have transmitted all packets of the flow, the last one at `time`.
    fn depart(&mut self, time: u64) {
        while !self.sender.pacer.on_departure(at(time), at(time)) {}
    }

    /// Nonzero components of a breakdown, in milliseconds.
    fn components(&self, reference: &BreakdownRef) -> Vec<(String, u64)> {
        let breakdown = *self.pool.get(reference);
        let completion = Completion { breakdown, ..Completion::default() };
        let row = BreakdownRow::new(&self.breakdown.handshake(&completion), &completion);
        let chain = self.breakdown.chain(&completion).unwrap();
        let chain = chain.iter().flat_map(|interval| interval.durations);
        assert_eq!(chain.fold(Duration::ZERO, |sum, one| sum + one), row.total());
        component_names()
            .zip(row.components)
            .filter(|(_, component)| *component > Duration::ZERO)
            .map(|(name, component)| (name, component.0 / ms(1).0))
            .collect()
    }

    /// Checks the nonzero components of a transmission, and that they sum to its time.
    fn check(&mut self, now: u64, reference: BreakdownRef, expected: &[(&str, u64)]) {
        let components = self.components(&reference);
        let names: Vec<(&str, u64)> = components.iter().map(|(name, ms)| (&**name, *ms)).collect();
        assert_eq!(names, expected);
        assert_eq!(names.iter().map(|(_, ms)| ms).sum::<u64>(), now);
        self.pool.release(reference);
    }

    fn release(mut self, references: impl IntoIterator<Item = BreakdownRef>) {
        references.into_iter().for_each(|reference| self.pool.release(reference));
        self.breakdown.release(&mut self.pool);
        assert_eq!(self.pool.used(), 0, "all references are released");
    }
}

#[test]
fn a_full_window_costs_the_rtt_of_the_acknowledged_packet() {
    let mut flow = Flow::new(false);
    let mut first = flow.transmit(0, window(2), None);
    assert_eq!(first.iter().map(|(sequence, _)| *sequence).collect::<Vec<_>>(), [0, 1]);
    let (_, breakdown) = first.remove(0);
    flow.ack(100, 0, 1, (0, 0));
    let record = PacketRecord { breakdown, delays: propagation(ms(90)), receiver: ms(10) };
    let mut second = flow.transmit(100, window(2), Some(record));
    let (sequence, reference) = second.remove(0);
    assert_eq!(sequence, 2);
    assert_eq!(flow.pool.get(&reference).total(), ms(100));
    flow.check(100, reference, &[("window_propagation", 90), ("window_receiver", 10)]);
    flow.release(first.into_iter().map(|(_, reference)| reference));
}

#[test]
fn a_retransmission_costs_the_time_since_the_last_transmission() {
    let mut flow = Flow::new(false);
    let mut sent = flow.transmit(0, window(8), None);
    // Segment 0 is lost; the ACKs of those that follow report it.
    flow.ack(100, 0, 0, (1, 8));
    let retransmitted = flow.transmit(100, window(1), None);
    let [(0, reference)] = <[_; 1]>::try_from(retransmitted).unwrap() else { panic!() };
    flow.check(100, reference, &[("recovery_gap_sender", 100)]);
    // The retransmission is lost too, and a timeout detects that.
    let timeout = flow.sender.next_timer(window(1)).0 / ms(1).0 + 1;
    flow.sender.on_timer(at(timeout), &mut *flow.controller);
    let mut retransmitted = flow.transmit(timeout, window(1), None);
    let (sequence, reference) = retransmitted.remove(0);
    assert_eq!(sequence, 0);
    let expected = [("recovery_gap_sender", 100), ("recovery_timeout_sender", timeout - 100)];
    flow.check(timeout, reference, &expected);
    sent.extend(retransmitted);
    flow.release(sent.into_iter().map(|(_, reference)| reference));
}

#[test]
fn new_data_behind_a_lost_window_waits_for_the_timeout() {
    let mut flow = Flow::new(false);
    let mut sent = flow.transmit(0, window(2), None);
    let timeout = flow.sender.next_timer(window(2)).0 / ms(1).0 + 1;
    flow.sender.on_timer(at(timeout), &mut *flow.controller);
    let mut after_timeout = flow.transmit(timeout, window(3), None);
    let (sequence, reference) = after_timeout.pop().unwrap();
    assert_eq!((sequence, after_timeout.len()), (2, 2), "two retransmissions and new data");
    flow.check(timeout, reference, &[("recovery_timeout_sender", timeout)]);
    sent.extend(after_timeout);
    flow.release(sent.into_iter().map(|(_, reference)| reference));
}

#[test]
fn pacing_and_nic_waits_follow_in_the_order_in_which_they_end() {
    let mut flow = Flow::new(false);
    let rate = Allowance::rate(PACKET_PER_MS);
    let mut references: Vec<_> = flow.transmit(0, rate, None);
    assert_eq!(references.len(), 1, "the second packet is paced");
    // The NIC transmits the packet late: 1 ms of pacing, then 4 ms of waiting for the NIC, 3 of them paused.
    flow.paused = 3;
    flow.depart(5);
    references.extend(flow.transmit(5, rate, None));
    let (_, reference) = references.pop().unwrap();
    let expected = [("rate_sender", 1), ("turn_sender", 1), ("turn_paused_host", 3)];
    flow.check(5, reference, &expected);
    // The NIC is free before the pacing interval ends: a sender that transmits at 8 ms was late by 2 ms.
    flow.depart(5);
    references.extend(flow.transmit(8, rate, None));
    let (_, reference) = references.pop().unwrap();
    let expected = [("rate_sender", 4), ("turn_sender", 1), ("turn_paused_host", 3)];
    flow.check(8, reference, &expected);
    flow.release(references.into_iter().map(|(_, reference)| reference));
}

#[test]
fn a_handshake_splits_into_the_rtt_of_the_answered_syn_and_the_time_before() {
    let mut flow = Flow::new(true);
    assert!(flow.transmit(0, window(1), None).is_empty(), "only the SYN is sent");
    assert!(!flow.breakdown.needs_record(&flow.sender, window(1)), "the flow is not open");
    // The first SYN is lost. The answer to one sent at 40 ms arrives at 100 ms.
    let packet = flow.format.control(Kind::SynAck, 0, at(40));
    flow.sender.on_syn_ack(at(100), &packet, ms(60), &mut *flow.controller);
    let breakdown = BreakdownRef::default();
    let delays = propagation(ms(60));
    let record = PacketRecord { breakdown, delays, receiver: Duration::ZERO };
    let mut sent = flow.transmit(100, window(1), Some(record));
    let handshake = flow.breakdown.handshake(&Completion::default());
    assert_eq!(handshake, Handshake { delays, sender: ms(40) });
    let (_, reference) = sent.remove(0);
    flow.check(100, reference, &[("handshake_propagation", 60), ("handshake_sender", 40)]);
    flow.release(None);
}

#[test]
fn acknowledged_segments_release_their_breakdowns() {
    let mut flow = Flow::new(false);
    // A wait makes a breakdown that is not the empty one.
    let rate = Allowance::rate(PACKET_PER_MS);
    for time in 0..4 {
        for (_, reference) in flow.transmit(time, rate, None) {
            flow.pool.release(reference);
        }
        flow.depart(time);
    }
    assert_eq!(flow.pool.used(), 3);
    flow.ack(10, 0, 4, (0, 0));
    let sent = flow.transmit(10, rate, None);
    assert_eq!(flow.pool.used(), 1, "only the next transmission has a breakdown");
    flow.release(sent.into_iter().map(|(_, reference)| reference));
}

#[test]
fn a_flow_of_a_byte_stream_waits_for_the_earlier_flows_until_its_own_acknowledgements() {
    let mut flow = Flow::new(false);
    // Two packets of the first flow, and from 10 ms on three of the second; the window permits two.
    flow.sender = Sender::new(Some(Bytes(2_000)), &flow.mechanism, &flow.format, Time::ZERO);
    flow.sender.begin_stream(true);
    flow.breakdown.begin_stream(2);
    let mut first = flow.transmit(0, window(2), None);
    flow.sender.append(Bytes(3_000), &flow.format, at(10), &mut *flow.controller);
    flow.breakdown.append(at(10), 5, 100, &mut flow.pool);
    assert!(flow.transmit(10, window(2), None).is_empty());
    flow.ack(100, 0, 2, (0, 0));
    let record =
        |(_, breakdown)| PacketRecord { breakdown, delays: propagation(ms(90)), receiver: ms(10) };
    let mut second = flow.transmit(100, window(2), Some(record(first.remove(0))));
    assert_eq!(second.iter().map(|(sequence, _)| *sequence).collect::<Vec<_>>(), [2, 3]);
    let (_, last) = second.pop().unwrap();
    flow.check(90, last, &[("connection_sender", 90)]);
    flow.ack(200, 100, 4, (0, 0));
    let mut third = flow.transmit(200, window(2), Some(record(second.remove(0))));
    let expected = [("window_propagation", 90), ("window_receiver", 10), ("connection_sender", 90)];
    flow.check(190, third.remove(0).1, &expected);
    flow.release(first.into_iter().map(|(_, reference)| reference));
}
