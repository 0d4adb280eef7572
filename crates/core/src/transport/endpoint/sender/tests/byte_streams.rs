//! Tests of flows on a persistent connection.

use super::*;
use crate::transport::{IdleRestart, WindowReduction};

/// A byte stream with a flow of 2,500 bytes, in packets of 1,000.
fn stream(changes: &Value, is_open: bool) -> Tcp {
    let mut tcp = tcp("selective_repeat", changes);
    tcp.format.payload = Bytes(1_000);
    tcp.sender = Sender::new(Some(Bytes(2_500)), &tcp.mechanism, &tcp.format, Time::ZERO);
    tcp.sender.begin_stream(is_open);
    tcp
}

impl Tcp {
    fn append(&mut self, ms: u64, bytes: u64) {
        self.sender.append(Bytes(bytes), &self.format, at(ms), &mut *self.controller);
    }

    /// Sequence number and payload of the segments that the sender sends now.
    fn payloads(&mut self, ms: u64) -> Vec<(u32, u32)> {
        let segments = self.segments(ms);
        segments.iter().map(|segment| (segment.sequence, segment.payload)).collect()
    }

    /// Delivers an ACK. Returns the payload as reported to the controller.
    fn delivered(&mut self, cumulative: u32, block: (u32, u32)) -> u64 {
        struct Counts(u64);
        impl Controller for Counts {
            fn on_ack(&mut self, ack: &Ack) {
                self.0 += ack.bytes.0;
            }
            fn allowance(&self) -> Allowance {
                Allowance::window(1e9)
            }
            fn gauges(&self) -> Vec<(&'static str, f64)> {
                Vec::new()
            }
        }
        let mut counts = Counts(0);
        let ack = Packet { sequence: cumulative, ..self.format.control(Kind::Ack, 0, at(0)) };
        let ack = ack.with_header(Header::Ack { block, feedback: 0.0 });
        self.sender.on_ack(at(100), &ack, None, Duration::from_millis(100), &mut counts);
        counts.0
    }
}

#[test]
fn every_flow_ends_with_a_segment_of_its_own_and_sequence_numbers_continue() {
    let mut tcp = stream(&json!({}), false);
    tcp.append(0, 1_000);
    tcp.append(0, 1);
    let sent = [(0, 1_000), (1, 1_000), (2, 500), (3, 1_000), (4, 1)];
    assert_eq!(tcp.payloads(0), sent);
    assert!(!tcp.sender.is_done());
    tcp.ack(100, 5);
    assert!(tcp.sender.is_done());
    tcp.append(200, 1_001);
    assert_eq!(tcp.payloads(200), [(5, 1_000), (6, 1)]);
    assert_eq!(tcp.sender.stream_end(), 7);
}

#[test]
fn the_payload_of_short_segments_is_corrected_when_they_are_acknowledged() {
    let mut tcp = stream(&json!({}), false);
    tcp.append(0, 1_000);
    tcp.append(0, 1);
    tcp.sent(0);
    // A SACK of the segments 2 and 3 counts full segments, until the cumulative acknowledgement passes them.
    assert_eq!(tcp.delivered(0, (2, 4)), 2_000);
    assert_eq!(tcp.delivered(2, (2, 4)), 2_000);
    // Of 500 + 999 bytes too much, the ACK of a further segment makes up for 1,000, and the next for 499.
    assert_eq!(tcp.delivered(5, (0, 0)), 0);
    tcp.append(100, 2_000);
    tcp.sent(100);
    assert_eq!(tcp.delivered(6, (0, 0)), 501);
    assert_eq!(tcp.delivered(7, (0, 0)), 1_000);
}

#[test]
fn only_the_side_that_opens_a_connection_has_a_handshake() {
    let handshake = json!({ "reliability": { "handshake": true } });
    let first = |is_open| {
        let mut tcp = stream(&handshake, is_open);
        tcp.sender.next_packet(at(0), tcp.controller.allowance())
    };
    assert_eq!(first(false), Some(NextPacket::Syn));
    assert!(matches!(first(true), Some(NextPacket::Segment(_))));
}

#[test]
fn an_idle_time_of_more_than_an_rto_reduces_the_window() {
    let restart = |idle_restart: IdleRestart, idle_ms: u64| {
        let reliability = json!({
            "fixed_rto": "200 ms", "min_rto": "200 ms", "idle_restart": idle_restart.show(),
        });
        let mut tcp = stream(&json!({ "reliability": reliability }), false);
        tcp.sent(0);
        tcp.sender.pacer.on_enqueued(at(0), Some(at(0)));
        tcp.ack(100, 3);
        tcp.sender.restart(at(idle_ms)).reduction
    };
    // Linux, `tcp_cwnd_restart`: one halving if idle for more than an RTO, two for more than two RTOs.
    for (idle_ms, halvings) in [(201, 1), (400, 1), (401, 2), (1_000, 4)] {
        assert_eq!(restart(IdleRestart::Halving, idle_ms), WindowReduction::Halvings(halvings));
        assert_eq!(restart(IdleRestart::Initial, idle_ms), WindowReduction::Initial);
        assert_eq!(restart(IdleRestart::None, idle_ms), WindowReduction::None);
    }
    assert_eq!(restart(IdleRestart::Halving, 200), WindowReduction::None);
    assert_eq!(restart(IdleRestart::Initial, 200), WindowReduction::None);
}
