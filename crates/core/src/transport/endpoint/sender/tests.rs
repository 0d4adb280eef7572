//! Tests of a TCP sender with handmade ACKs: windows, recovery, timeouts, handshakes and ECN marks.

mod byte_streams;
mod marks;
mod spurious_losses;

use super::*;
use crate::base::schema::{Parameter, defaults};
use crate::base::units::Rate;
use crate::model::packet::Flags;
use crate::transport::controllers::{Config, Path};
use serde_json::{Value, json};

/// A TCP sender with an initial window of ten packets and handmade ACKs. Times are in milliseconds, and the
/// RTT is 100 ms.
struct Tcp {
    sender: Sender,
    controller: Box<dyn Controller>,
    mechanism: Arc<Mechanism>,
    format: Format,
}

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

fn tcp(recovery: &str, changes: &Value) -> Tcp {
    let mut table = json!({
        "kind": "tcp",
        "reliability": { "recovery": recovery, "handshake": false },
    });
    for (key, value) in changes.as_object().unwrap() {
        if let (Value::Object(fields), Value::Object(changes)) = (&mut table[key], value) {
            fields.extend(changes.clone());
        } else {
            table[key] = value.clone();
        }
    }
    let config = Config::read(&table).unwrap();
    let format: Format = defaults();
    let mechanism = Arc::new(config.mechanism(&format));
    let controller = config.controller(&Path::new(
        Rate::from_gbps(1),
        Duration::from_millis(100),
        format.clone(),
    ));
    let sender = Sender::new(Some(Bytes(1_000_000)), &mechanism, &format, Time::ZERO);
    Tcp { sender, controller, mechanism, format }
}

impl Tcp {
    /// Returns the segments that the sender sends now.
    fn segments(&mut self, ms: u64) -> Vec<Segment> {
        let next = || match self.sender.next_packet(at(ms), self.controller.allowance()) {
            Some(NextPacket::Segment(segment)) => Some(segment),
            Some(other) => panic!("{other:?}"),
            None => None,
        };
        std::iter::from_fn(next).collect()
    }

    fn sent(&mut self, ms: u64) -> Vec<u32> {
        self.segments(ms).iter().map(|segment| segment.sequence).collect()
    }

    /// Delivers an ACK of a packet that was sent 100 ms ago.
    fn ack_with(&mut self, ms: u64, cumulative: u32, block: (u32, u32), flags: Flags) {
        self.on_ack(ms.saturating_sub(100), ms, cumulative, block, flags);
    }

    /// Delivers an ACK of a packet that was sent at `sent_ms`.
    fn on_ack(&mut self, sent_ms: u64, ms: u64, cumulative: u32, block: (u32, u32), flags: Flags) {
        let ack = Packet {
            sequence: cumulative,
            flags,
            ..self.format.control(Kind::Ack, 0, at(sent_ms))
        };
        let ack = ack.with_header(Header::Ack { block, feedback: 0.0 });
        let rtt = at(ms).since(ack.sent_at);
        self.sender.on_ack(at(ms), &ack, None, rtt, &mut *self.controller);
    }

    /// Delivers an ACK without a SACK block. Returns the segments sent then.
    fn ack(&mut self, ms: u64, cumulative: u32) -> Vec<u32> {
        self.ack_with(ms, cumulative, (0, 0), Flags::NONE);
        self.sent(ms)
    }

    /// Delivers an ACK with a SACK block. Returns the segments sent then.
    fn sack(&mut self, ms: u64, cumulative: u32, block: (u32, u32)) -> Vec<u32> {
        self.ack_with(ms, cumulative, block, Flags::NONE);
        self.sent(ms)
    }

    /// Returns when the next timer expires, in milliseconds.
    fn next_timer(&self) -> u64 {
        self.sender.next_timer(self.controller.allowance()).0 / Duration::from_millis(1).0
    }

    /// Advances to the next timer. Returns the segments sent then.
    fn expire_timer(&mut self) -> Vec<u32> {
        let ms = self.next_timer();
        self.sender.on_timer(at(ms), &mut *self.controller);
        self.sent(ms)
    }

    /// Returns the window in packets.
    fn window(&self) -> f64 {
        self.controller.gauges()[0].1 / 1000.0
    }
}

fn assert_window(tcp: &Tcp, packets: f64) {
    assert!((tcp.window() - packets).abs() < 1e-9, "{} is not {packets}", tcp.window());
}

const NOTHING: [u32; 0] = [];

#[test]
fn sack_retransmits_the_first_loss_at_once_and_then_keeps_the_pipe_full() {
    let mut tcp = tcp("selective_repeat", &json!({}));
    assert_eq!(tcp.sent(0), (0..10).collect::<Vec<_>>());
    // Segments 0 and 2 are lost. Each of the first two SACKs permits one new segment (RFC 3042).
    assert_eq!(tcp.sack(100, 0, (1, 2)), [10]);
    assert_eq!(tcp.sack(101, 0, (3, 4)), [11]);
    // The third SACK reveals the loss: half the window, and the first segment at once, although nine
    // are in flight.
    assert_eq!(tcp.sack(102, 0, (3, 5)), [0]);
    assert_window(&tcp, 5.0);
    // With the fourth SACK, three segments beyond segment 2 are delivered: it is lost as well. It and
    // the four delivered segments are not in flight, which leaves seven of twelve; each further SACK
    // removes one.
    assert_eq!(tcp.sack(103, 0, (3, 6)), NOTHING);
    assert_eq!(tcp.sack(104, 0, (3, 7)), NOTHING);
    assert_eq!(tcp.sack(105, 0, (3, 8)), NOTHING);
    assert_eq!(tcp.sack(106, 0, (3, 9)), [2], "four are in flight");
    assert_eq!(tcp.sack(107, 0, (3, 10)), [12]);
    assert_window(&tcp, 5.0);
    // Both retransmissions are acknowledged; growth continues beyond the recovery point.
    assert_eq!(tcp.sack(202, 2, (0, 0)), [13]);
    assert_window(&tcp, 5.0);
    tcp.ack(206, 12);
    assert_window(&tcp, 5.0 + 1.0 / 5.0);
}

#[test]
fn the_window_is_reduced_once_per_window_of_data() {
    let mut tcp = tcp("selective_repeat", &json!({}));
    tcp.sent(0);
    tcp.sack(100, 0, (1, 4));
    assert_window(&tcp, 5.0);
    tcp.sack(101, 0, (7, 10));
    assert_window(&tcp, 5.0);
    // The retransmission of 0 is acknowledged; 4 to 6 are still missing.
    tcp.sack(200, 4, (0, 0));
    assert_window(&tcp, 5.0);
    tcp.ack(201, 10);
    let before = tcp.window();
    tcp.sack(300, 10, (11, 14));
    assert_window(&tcp, (before.min(5.0) / 2.0).max(2.0));
}

#[test]
fn a_lost_retransmission_waits_for_the_timeout_despite_sacks_of_new_data() {
    let mut tcp = tcp("selective_repeat", &json!({}));
    tcp.sent(0);
    tcp.ack(100, 1);
    assert_eq!(tcp.sack(102, 1, (2, 5)), [1], "which is lost, too");
    let due = tcp.next_timer();
    assert_eq!(at(due), at(102) + tcp.sender.timeout(), "a full RTO from the retransmission");
    for (ms, end) in [(110, 8), (120, 10), (210, 11), (220, 12)] {
        tcp.sack(ms, 1, (2, end));
        assert!(tcp.next_timer() <= due, "{} ms after {ms} ms", tcp.next_timer());
    }
    assert_eq!(tcp.expire_timer(), [1]);
    assert_eq!((tcp.sender.timeouts, tcp.sender.retransmits), (1, 2));
}

#[test]
fn other_retransmissions_do_not_postpone_the_timeout_of_the_first() {
    let mut tcp = tcp("selective_repeat", &json!({}));
    tcp.sent(0);
    tcp.ack(100, 1);
    // Segments 1, 3, 5 and 7 are lost, and the retransmission of 1, too.
    assert_eq!(tcp.sack(102, 1, (8, 11))[0], 1);
    let due = tcp.next_timer();
    assert_eq!(at(due), at(102) + tcp.sender.timeout());
    for (ms, block) in [(150, (2, 3)), (160, (4, 5)), (170, (6, 7)), (180, (8, 12))] {
        tcp.sack(ms, 1, block);
        assert!(tcp.next_timer() <= due, "{} ms after {ms} ms", tcp.next_timer());
    }
    assert!(tcp.sender.retransmits > 1, "other segments were retransmitted");
    assert_eq!(tcp.expire_timer()[0], 1);
}

#[test]
fn only_the_first_partial_ack_of_a_recovery_without_sack_restarts_the_timer() {
    let mut tcp = tcp("new_reno", &json!({}));
    tcp.sent(0);
    tcp.ack(100, 1);
    // Every other of ten segments is lost (RFC 6582 §3.2).
    (101..104).for_each(|ms| drop(tcp.ack(ms, 1)));
    assert_eq!(tcp.sender.retransmits, 1);
    assert_eq!(tcp.ack(200, 3)[0], 3);
    let due = tcp.next_timer();
    assert_eq!(at(due), at(200) + tcp.sender.timeout());
    assert_eq!(tcp.ack(300, 5)[0], 5);
    assert!(tcp.next_timer() <= due.max(301), "for retransmissions of the first missing segment");
}

#[test]
fn the_window_grows_only_for_newly_delivered_segments() {
    // With `count_limit` above 1, as in Linux.
    let unlimited = json!({ "window": { "count_limit": 1000, "initial_ssthresh": 1000 } });
    let mut tcp = tcp("selective_repeat", &unlimited);
    tcp.sent(0);
    // Segment 0 is lost; SACKs have reported the others when its retransmission is acknowledged.
    for to in 2..=10 {
        tcp.sack(100, 0, (1, to));
    }
    assert_window(&tcp, 5.0);
    tcp.ack(200, tcp.sender.scoreboard.highest());
    assert!(tcp.window() < 5.0 + 2.0, "{}", tcp.window());
}

#[test]
fn rack_detects_a_lost_retransmission_after_an_rtt() {
    let mut tcp = tcp("rack", &json!({}));
    tcp.sent(0);
    tcp.ack(100, 1);
    assert_eq!(tcp.sack(102, 1, (2, 5)), [1], "which is lost, too");
    tcp.sack(103, 1, (2, 10));
    let new = tcp.sack(200, 1, (2, 11));
    assert!(!new.contains(&1), "sent before the retransmission");
    // A segment sent after the retransmission is delivered, and an RTT has passed.
    let end = tcp.sender.scoreboard.highest();
    assert!(tcp.sack(203, 1, (2, end)).contains(&1));
    assert_eq!(tcp.sender.timeouts, 0);
}

#[test]
fn rack_waits_a_quarter_of_an_rtt_for_reordered_segments() {
    let mut tcp = tcp("rack", &json!({}));
    tcp.sent(0);
    assert_eq!(tcp.sack(100, 0, (1, 2)), [10]);
    assert_eq!(tcp.next_timer(), 125, "the reordering timer");
    assert_eq!(tcp.expire_timer(), [0]);
    assert_eq!((tcp.sender.retransmits, tcp.sender.timeouts), (1, 0));
    assert_window(&tcp, 5.0);
}

#[test]
fn a_tail_loss_probe_precedes_the_timeout() {
    for recovery in ["selective_repeat", "rack"] {
        let probes = json!({ "reliability": { "tail_probe": "200 ms", "min_rto": "1 s" } });
        let mut tcp = tcp(recovery, &probes);
        tcp.sent(0);
        tcp.ack(100, 1);
        let last = tcp.sender.scoreboard.highest() - 1;
        // Two RTTs of 100 ms, and 2 ms.
        assert_eq!(tcp.next_timer(), 302, "{recovery}");
        assert_eq!(
            tcp.expire_timer(),
            [last + 1],
            "{recovery}: new data, regardless of the window"
        );
        assert_eq!((tcp.sender.retransmits, tcp.sender.timeouts), (0, 0), "{recovery}");
        assert!(tcp.next_timer() > 1000, "{recovery}: one probe before the timeout");
    }
}

#[test]
fn the_rto_and_probe_timers_expire_with_ticks() {
    let ticks = json!({ "tail_probe": "200 ms", "min_rto": "400 ms", "timer_tick": "4 ms" });
    let mut tcp = tcp("rack", &json!({ "reliability": ticks }));
    tcp.sent(0);
    // An RTO of a second is 250 ticks: it expires with every eighth tick.
    assert_eq!(tcp.next_timer(), 1024);
    tcp.ack(101, 1);
    // 202 ms after tick 25 are due at tick 76, and expire with the next tick.
    assert_eq!(tcp.next_timer(), 308);
    assert_eq!(tcp.expire_timer().len(), 1, "the probe");
    assert_eq!(tcp.next_timer(), 736, "400 ms after tick 77: due at tick 177, expires at tick 184");
    assert_eq!((tcp.expire_timer(), tcp.sender.timeouts), (vec![1], 1));
}

#[test]
fn prr_reduces_the_window_in_proportion_to_delivered_data() {
    let with_prr = json!({
        "reliability": { "proportional_reduction": true }, "window": { "initial": 20 },
    });
    let mut tcp = tcp("rack", &with_prr);
    tcp.sent(0);
    // Segment 0 is lost. The third segment beyond it starts the recovery; then every other ACK permits
    // a segment.
    tcp.sack(100, 0, (1, 3));
    let sent: Vec<_> = (4..=20).map(|to| tcp.sack(101, 0, (1, to)).len()).collect();
    assert_eq!(sent[..9], [1, 0, 1, 0, 1, 0, 1, 0, 1], "{sent:?}");
    tcp.ack(201, tcp.sender.scoreboard.highest());
    assert!(tcp.window() >= 10.0, "half the window after the recovery");
}

#[test]
fn new_reno_retransmits_one_segment_per_rtt() {
    let mut tcp = tcp("new_reno", &json!({}));
    tcp.sent(0);
    // Segments 0, 3 and 7 are lost.
    assert_eq!(tcp.ack(100, 0), [10]);
    assert_eq!(tcp.ack(101, 0), [11]);
    assert_eq!(tcp.ack(102, 0), [0]);
    assert_window(&tcp, 5.0);
    let more: Vec<u32> = (103..107).flat_map(|ms| tcp.ack(ms, 0)).collect();
    // Seven of 0 to 9 are delivered: of twelve sent five are in flight.
    assert_eq!(more, NOTHING);
    assert_eq!(tcp.ack(200, 0), [12], "10 is delivered");
    assert_eq!(tcp.ack(201, 0), [13], "11 is delivered");
    // Partial ACKs: the next missing segment at once, without a reduction.
    assert_eq!(tcp.ack(202, 3)[0], 3);
    assert_eq!(tcp.ack(302, 7)[0], 7);
    assert_window(&tcp, 5.0);
    assert_eq!((tcp.sender.retransmits, tcp.sender.timeouts), (3, 0));
    // The recovery point is reached.
    assert_eq!(tcp.ack(402, 12).first(), Some(&16));
    assert_window(&tcp, 5.0 + 1.0 / 5.0);
}

#[test]
fn reno_leaves_recovery_at_the_first_new_ack_and_a_second_loss_waits_for_the_timeout() {
    let mut tcp = tcp("reno", &json!({}));
    tcp.sent(0);
    // Segments 0 and 3 are lost.
    for ms in 100..102 {
        assert_eq!(tcp.ack(ms, 0).len(), 1);
    }
    assert_eq!(tcp.ack(102, 0), [0]);
    (103..108).for_each(|ms| drop(tcp.ack(ms, 0)));
    tcp.ack(202, 3);
    assert_eq!(tcp.sender.retransmits, 1);
    // Further duplicate ACKs have no effect.
    (203..220).for_each(|ms| drop(tcp.ack(ms, 3)));
    assert_eq!(tcp.sender.retransmits, 1);
    assert_eq!(tcp.expire_timer(), [3]);
    assert_window(&tcp, 1.0);
}

#[test]
fn after_a_timeout_slow_start_begins_with_one_packet() {
    for recovery in ["selective_repeat", "new_reno", "reno"] {
        let mut tcp = tcp(recovery, &json!({}));
        tcp.sent(0);
        assert_eq!(tcp.next_timer(), 1000, "{recovery}: the initial RTO");
        assert_eq!(tcp.expire_timer(), [0], "{recovery}");
        assert_window(&tcp, 1.0);
        assert_eq!(tcp.ack(1100, 1), [1, 2], "{recovery}");
        assert_eq!(tcp.ack(1200, 2), [3, 4], "{recovery}");
        assert_eq!(tcp.ack(1201, 3), [5, 6], "{recovery}");
        assert_eq!(tcp.ack(1300, 4), [7, 8], "{recovery}");
        // Slow start ends at half of the ten packets in flight.
        assert_window(&tcp, 5.0);
        assert_eq!(tcp.ack(1301, 5), [9], "{recovery}");
        assert_window(&tcp, 5.0 + 1.0 / 5.0);
    }
}

#[test]
fn the_rto_doubles_and_repeated_timeouts_do_not_lower_ssthresh() {
    let mut tcp = tcp("selective_repeat", &json!({}));
    tcp.sent(0);
    for due in [1000, 3000, 7000, 15_000, 31_000, 63_000, 123_000, 183_000] {
        assert_eq!(tcp.next_timer(), due);
        assert_eq!(tcp.expire_timer(), [0]);
    }
    // RFC 5681 §3.1: ssthresh remains at half of the ten packets first in flight.
    (1..=4).for_each(|cumulative| drop(tcp.ack(183_100 + u64::from(cumulative), cumulative)));
    assert_window(&tcp, 5.0);
}

#[test]
fn a_credit_ends_the_back_off_of_a_sender_without_acks() {
    let mut tcp = tcp("selective_repeat", &json!({}));
    (0..3).for_each(|_| tcp.sender.on_credit_timeout());
    assert_eq!(tcp.sender.timeout(), Duration::from_millis(8000));
    tcp.sender.on_credit(at(100), 0, false);
    assert_eq!(tcp.sender.timeout(), Duration::from_millis(1000));
}

#[test]
fn without_timestamps_retransmitted_segments_give_no_sample() {
    for timestamps in [true, false] {
        let mut tcp =
            tcp("selective_repeat", &json!({ "reliability": { "timestamps": timestamps } }));
        tcp.sent(0);
        tcp.expire_timer();
        tcp.ack(1100, 1);
        // A sample of 100 ms gives 100 + 4 * 50 ms; without one the initial RTO of a second stays doubled.
        let due = if timestamps { 300 } else { 2000 };
        assert_eq!(tcp.next_timer(), 1100 + due);
        // Segments 1 to 9 were retransmitted; the first new segment is timed.
        (2..=9).for_each(|cumulative| drop(tcp.ack(1200, cumulative)));
        assert_eq!(tcp.sender.timeout() == Duration::from_millis(2000), !timestamps);
        tcp.ack(1300, 11);
        assert!(tcp.sender.timeout() < Duration::from_millis(1000));
    }
}

#[test]
fn without_timestamps_a_retransmission_cancels_the_timing_of_its_segment() {
    let plain = json!({ "reliability": { "timestamps": false } });
    let mut tcp = tcp("selective_repeat", &plain);
    tcp.sent(0);
    assert_eq!(tcp.sack(100, 0, (1, 4)), [0], "which was being timed");
    tcp.ack(200, 10);
    assert_eq!(tcp.sender.timeout(), Duration::from_millis(1000), "no sample yet");
    tcp.ack(300, 11);
    assert_eq!(tcp.sender.timeout(), Duration::from_millis(100 + 4 * 50));
}

#[test]
fn a_lost_syn_reduces_the_initial_window_to_one_packet() {
    for lost in [0, 1, 2] {
        let mut tcp = tcp("selective_repeat", &json!({ "reliability": { "handshake": true } }));
        for _ in 0..lost {
            let allowance = tcp.controller.allowance();
            assert_eq!(tcp.sender.next_packet(at(0), allowance), Some(NextPacket::Syn));
            assert_eq!(tcp.sender.next_packet(at(0), allowance), None);
            let due = tcp.next_timer();
            tcp.sender.on_timer(at(due), &mut *tcp.controller);
        }
        assert_eq!(
            tcp.sender.next_packet(at(7000), tcp.controller.allowance()),
            Some(NextPacket::Syn)
        );
        assert_eq!(tcp.next_timer(), 7000 + (1000 << lost));
        let syn_ack = tcp.format.control(Kind::SynAck, 0, at(7000));
        let rtt = at(7100).since(syn_ack.sent_at);
        tcp.sender.on_syn_ack(at(7100), &syn_ack, rtt, &mut *tcp.controller);
        let expected = if lost == 0 { 10 } else { 1 };
        assert_eq!(tcp.sent(7100).len(), expected, "{lost} lost");
    }
}

#[test]
fn lost_syns_may_be_forgiven_and_their_timeouts_constant() {
    let linux = json!({
        "reliability": { "handshake": true, "forgiven_syns": 1, "linear_syns": 4 },
    });
    for (lost, waited, expected) in [(1, 1000, 10), (2, 2000, 1), (5, 5000, 1), (6, 7000, 1)] {
        let mut tcp = tcp("selective_repeat", &linux);
        let mut now = at(0);
        for _ in 0..lost {
            tcp.sender.next_packet(now, tcp.controller.allowance());
            now = at(tcp.next_timer());
            tcp.sender.on_timer(now, &mut *tcp.controller);
        }
        assert_eq!(now, at(waited), "{lost} lost");
        tcp.sender.next_packet(now, tcp.controller.allowance());
        let syn_ack = tcp.format.control(Kind::SynAck, 0, now);
        tcp.sender.on_syn_ack(at(7100), &syn_ack, at(7100) - now, &mut *tcp.controller);
        assert_eq!(tcp.sent(7100).len(), expected, "{lost} lost");
    }
}

#[test]
fn timeouts_of_a_syn_are_spurious_if_the_first_one_was_answered() {
    // Linux: tcp_try_undo_spurious_syn, which takes timestamps.
    for (timestamps, answered, expected) in [(true, 0, 10), (true, 1, 1), (false, 0, 1)] {
        let reliability = json!({ "handshake": true, "timestamps": timestamps, "undo": true });
        let mut tcp = tcp("rack", &json!({ "reliability": reliability }));
        for sent in [0, 1000] {
            tcp.sender.next_packet(at(sent), tcp.controller.allowance());
            let timer = at(tcp.next_timer());
            tcp.sender.on_timer(timer, &mut *tcp.controller);
        }
        tcp.sender.next_packet(at(3000), tcp.controller.allowance());
        let sent = at(1000 * answered);
        let syn_ack = tcp.format.control(Kind::SynAck, 0, sent);
        tcp.sender.on_syn_ack(at(3100), &syn_ack, at(3100).since(sent), &mut *tcp.controller);
        assert_eq!(tcp.sent(3100).len(), expected, "{timestamps}, {answered}");
    }
}

#[test]
fn data_after_a_lost_syn_has_an_rto_of_three_seconds_without_a_sample() {
    // RFC 6298 §5.7. With timestamps the SYN-ACK gives a sample of 100 ms: 100 ms + 4 times 50 ms.
    for (timestamps, fallback, rto_ms) in
        [(false, "3 s", 3000), (false, "none", 2000), (true, "3 s", 300), (false, "500 ms", 1000)]
    {
        let reliability =
            json!({ "handshake": true, "timestamps": timestamps, "syn_fallback_rto": fallback });
        let mut tcp = tcp("selective_repeat", &json!({ "reliability": reliability }));
        tcp.sender.next_packet(at(0), tcp.controller.allowance());
        tcp.sender.on_timer(at(1000), &mut *tcp.controller);
        tcp.sender.next_packet(at(1000), tcp.controller.allowance());
        let syn_ack = tcp.format.control(Kind::SynAck, 0, at(1000));
        tcp.sender.on_syn_ack(at(1100), &syn_ack, at(1100) - at(1000), &mut *tcp.controller);
        assert_eq!(tcp.sent(1100).len(), 1);
        assert_eq!(tcp.sender.timeout(), Duration::from_millis(rto_ms), "{timestamps}, {fallback}");
    }
}

#[test]
fn a_mark_reduces_the_window_once_per_window_of_data_and_sets_cwr() {
    let mut tcp = tcp("selective_repeat", &json!({ "ecn": true }));
    tcp.sent(0);
    tcp.ack_with(100, 1, (0, 0), Flags::MARKED);
    assert_window(&tcp, 5.0);
    assert_eq!(tcp.segments(100), []);
    // ECE continues: all segments before 10 were sent before the reduction.
    for cumulative in 2..=5 {
        tcp.ack_with(100, cumulative, (0, 0), Flags::MARKED);
    }
    assert_eq!(tcp.segments(100), []);
    tcp.ack_with(101, 8, (0, 0), Flags::MARKED);
    let cwr: Vec<_> = tcp.segments(101).iter().map(|s| (s.sequence, s.has_cwr)).collect();
    assert_eq!(cwr, [(10, true), (11, false), (12, false)], "CWR on the first new segment");
    tcp.ack_with(102, 10, (0, 0), Flags::MARKED);
    let before = tcp.window();
    assert!((5.0..6.5).contains(&before), "{before}: no second reduction");
    tcp.sent(102);
    tcp.ack_with(201, 11, (0, 0), Flags::MARKED);
    assert!(tcp.window() < before / 2.0 + 0.5, "segment 10 was sent after the reduction");
    assert_eq!(tcp.sender.retransmits, 0);
}

#[test]
fn new_data_is_ecn_capable_and_retransmissions_are_not() {
    let mut tcp = tcp("selective_repeat", &json!({ "ecn": true }));
    let mut segments = tcp.segments(0);
    tcp.ack_with(100, 0, (1, 4), Flags::NONE);
    segments.extend(tcp.segments(100));
    let of_segment = |segment: &Segment| {
        let packet = tcp.mechanism.data(&tcp.format, 0, at(0), *segment);
        (segment.sequence, packet.flags.has(Flags::ECN_CAPABLE))
    };
    let capable: Vec<_> = segments.iter().map(of_segment).collect();
    assert_eq!(capable[..10], (0..10).map(|sequence| (sequence, true)).collect::<Vec<_>>());
    assert_eq!(capable[10..], [(0, false)]);
    assert_eq!(tcp.format.control(Kind::Syn, 0, at(0)).flags, Flags::NONE);
}

#[test]
fn the_receive_window_limits_the_data_sent() {
    let mut tcp = tcp("selective_repeat", &json!({ "reliability": { "receive_window": 4 } }));
    assert_eq!(tcp.sent(0), [0, 1, 2, 3]);
    assert_eq!(tcp.ack(100, 1), [4]);
    // Segment 1 is lost: segments beyond the receive window wait for its retransmission.
    assert_eq!(tcp.sack(101, 1, (2, 5)), [1]);
    assert_eq!(tcp.ack(200, 5), [5, 6], "half of the four in flight");
}

#[test]
fn fewer_than_three_duplicate_acks_reveal_no_loss() {
    for recovery in ["selective_repeat", "new_reno", "reno"] {
        let mut tcp = tcp(recovery, &json!({}));
        tcp.sent(0);
        // Reordering: 0 arrives after 1 and 2.
        assert_eq!(tcp.sack(100, 0, (1, 2)), [10], "{recovery}");
        assert_eq!(tcp.sack(101, 0, (1, 3)), [11], "{recovery}");
        tcp.ack(102, 3);
        assert_eq!(tcp.sender.retransmits, 0, "{recovery}");
        assert!(tcp.window() > 10.5, "{recovery}: still slow start");
    }
}
