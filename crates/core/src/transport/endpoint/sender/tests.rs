//! A TCP sender told by hand what its receiver says: windows, recoveries, time-outs, handshakes and marks.

mod marks;
mod undo;

use super::*;
use crate::base::schema::{Parameter, defaults};
use crate::base::units::Rate;
use crate::model::packet::Flags;
use crate::transport::controllers::{Config, Path};
use serde_json::{Value, json};

/// A TCP sender with a window of ten packets at first, told by hand what its receiver says. Times are in
/// milliseconds, and a packet and its ACK take 100 of them.
struct Tcp {
    sender: Sender,
    controller: Box<dyn Controller>,
    mechanism: Arc<Mechanism>,
    format: Format,
}

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

fn tcp(recovery: &str, rest: &Value) -> Tcp {
    let mut table = json!({
        "kind": "tcp",
        "reliability": { "recovery": recovery, "handshake": false },
    });
    for (key, value) in rest.as_object().unwrap() {
        if let (Value::Object(under), Value::Object(more)) = (&mut table[key], value) {
            under.extend(more.clone());
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
    /// What it sends now.
    fn segments(&mut self, ms: u64) -> Vec<Segment> {
        let next = || match self.sender.next(at(ms), self.controller.allowance()) {
            Some(Output::Segment(segment)) => Some(segment),
            Some(other) => panic!("{other:?}"),
            None => None,
        };
        std::iter::from_fn(next).collect()
    }

    fn sent(&mut self, ms: u64) -> Vec<u32> {
        self.segments(ms).iter().map(|segment| segment.sequence).collect()
    }

    /// An ACK comes that answers a packet of 100 ms ago.
    fn hear(&mut self, ms: u64, cumulative: u32, block: (u32, u32), flags: Flags) {
        self.hear_of(ms.saturating_sub(100), ms, cumulative, block, flags);
    }

    /// An ACK comes that answers a packet of that time.
    fn hear_of(&mut self, sent_ms: u64, ms: u64, cumulative: u32, block: (u32, u32), flags: Flags) {
        let ack = Packet {
            sequence: cumulative,
            flags,
            ..self.format.control(Kind::Ack, 0, at(sent_ms))
        };
        let ack = ack.with_header(Header::Ack { block, feedback: 0.0 });
        let rtt = at(ms).since(ack.sent_at);
        self.sender.on_ack(at(ms), &ack, rtt, &mut *self.controller);
    }

    /// What it sends on a plain ACK.
    fn ack(&mut self, ms: u64, cumulative: u32) -> Vec<u32> {
        self.hear(ms, cumulative, (0, 0), Flags::NONE);
        self.sent(ms)
    }

    /// What it sends on an ACK with a block.
    fn sack(&mut self, ms: u64, cumulative: u32, block: (u32, u32)) -> Vec<u32> {
        self.hear(ms, cumulative, block, Flags::NONE);
        self.sent(ms)
    }

    /// When its time-out runs out, in milliseconds.
    fn times_out(&self) -> u64 {
        self.sender.deadline(self.controller.allowance()).0 / Duration::from_millis(1).0
    }

    /// What it sends when its time-out runs out.
    fn time_out(&mut self) -> Vec<u32> {
        let ms = self.times_out();
        self.sender.on_time(at(ms), &mut *self.controller);
        self.sent(ms)
    }

    /// The window in packets.
    fn window(&self) -> f64 {
        self.controller.gauges()[0].1 / 1000.0
    }
}

fn assert_window(tcp: &Tcp, packets: f64) {
    assert!((tcp.window() - packets).abs() < 1e-9, "{} is not {packets}", tcp.window());
}

const NOTHING: [u32; 0] = [];

#[test]
fn sack_resends_the_first_loss_at_once_and_then_keeps_the_pipe_full() {
    let mut tcp = tcp("selective_repeat", &json!({}));
    assert_eq!(tcp.sent(0), (0..10).collect::<Vec<_>>());
    // Segments 0 and 2 are lost. The first two reports let one new segment go each (RFC 3042).
    assert_eq!(tcp.sack(100, 0, (1, 2)), [10]);
    assert_eq!(tcp.sack(101, 0, (3, 4)), [11]);
    // The third tells of the loss: half the window, and the first segment at once, although nine are
    // in flight.
    assert_eq!(tcp.sack(102, 0, (3, 5)), [0]);
    assert_window(&tcp, 5.0);
    // With the fourth, three have come from beyond segment 2: it is lost as well. It and the four that
    // have come are not in flight, which leaves seven of twelve; each further report takes one out.
    assert_eq!(tcp.sack(103, 0, (3, 6)), NOTHING);
    assert_eq!(tcp.sack(104, 0, (3, 7)), NOTHING);
    assert_eq!(tcp.sack(105, 0, (3, 8)), NOTHING);
    assert_eq!(tcp.sack(106, 0, (3, 9)), [2], "four are in flight");
    assert_eq!(tcp.sack(107, 0, (3, 10)), [12]);
    assert_window(&tcp, 5.0);
    // The first is repaired, then the second: growth goes on when all that was sent before is there.
    assert_eq!(tcp.sack(202, 2, (0, 0)), [13]);
    assert_window(&tcp, 5.0);
    tcp.ack(206, 12);
    assert_window(&tcp, 5.0 + 1.0 / 5.0);
}

#[test]
fn a_second_loss_in_a_window_reduces_no_further_and_one_after_it_does() {
    let mut tcp = tcp("selective_repeat", &json!({}));
    tcp.sent(0);
    tcp.sack(100, 0, (1, 4));
    assert_window(&tcp, 5.0);
    tcp.sack(101, 0, (7, 10));
    assert_window(&tcp, 5.0);
    // 0 is repaired; 4 to 6 are still missing.
    tcp.sack(200, 4, (0, 0));
    assert_window(&tcp, 5.0);
    tcp.ack(201, 10);
    let before = tcp.window();
    tcp.sack(300, 10, (11, 14));
    assert_window(&tcp, (before.min(5.0) / 2.0).max(2.0));
}

#[test]
fn a_lost_repair_waits_for_the_time_out_whatever_sacks_tell_of_new_data() {
    let mut tcp = tcp("selective_repeat", &json!({}));
    tcp.sent(0);
    tcp.ack(100, 1);
    assert_eq!(tcp.sack(102, 1, (2, 5)), [1], "and it is lost again");
    let due = tcp.times_out();
    assert_eq!(at(due), at(102) + tcp.sender.timeout(), "the repair has a whole time-out");
    for (ms, end) in [(110, 8), (120, 10), (210, 11), (220, 12)] {
        tcp.sack(ms, 1, (2, end));
        assert!(tcp.times_out() <= due, "{} ms after {ms} ms", tcp.times_out());
    }
    assert_eq!(tcp.time_out(), [1]);
    assert_eq!((tcp.sender.timeouts, tcp.sender.retransmits), (1, 2));
}

#[test]
fn other_repairs_do_not_put_off_the_time_out_of_the_first() {
    let mut tcp = tcp("selective_repeat", &json!({}));
    tcp.sent(0);
    tcp.ack(100, 1);
    // Segments 1, 3, 5 and 7 are lost, and the first of them again.
    assert_eq!(tcp.sack(102, 1, (8, 11))[0], 1);
    let due = tcp.times_out();
    assert_eq!(at(due), at(102) + tcp.sender.timeout());
    for (ms, block) in [(150, (2, 3)), (160, (4, 5)), (170, (6, 7)), (180, (8, 12))] {
        tcp.sack(ms, 1, block);
        assert!(tcp.times_out() <= due, "{} ms after {ms} ms", tcp.times_out());
    }
    assert!(tcp.sender.retransmits > 1, "others were repaired meanwhile");
    assert_eq!(tcp.time_out()[0], 1);
}

#[test]
fn only_the_first_partial_ack_of_a_repair_without_sack_starts_the_time_out_again() {
    let mut tcp = tcp("new_reno", &json!({}));
    tcp.sent(0);
    tcp.ack(100, 1);
    // Every other of ten segments is lost (RFC 6582 §3.2).
    (101..104).for_each(|ms| drop(tcp.ack(ms, 1)));
    assert_eq!(tcp.sender.retransmits, 1);
    assert_eq!(tcp.ack(200, 3)[0], 3);
    let due = tcp.times_out();
    assert_eq!(at(due), at(200) + tcp.sender.timeout());
    assert_eq!(tcp.ack(300, 5)[0], 5);
    assert!(
        tcp.times_out() <= due.max(301),
        "though what is repaired is the first that is missing"
    );
}

#[test]
fn an_ack_counts_for_what_it_tells_of_for_the_first_time() {
    // With `count_limit` above 1, as Linux has it.
    let all = json!({ "window": { "count_limit": 1000, "initial_ssthresh": 1000 } });
    let mut tcp = tcp("selective_repeat", &all);
    tcp.sent(0);
    // Segment 0 is lost; of the others SACKs have told when its repair is acknowledged.
    for to in 2..=10 {
        tcp.sack(100, 0, (1, to));
    }
    assert_window(&tcp, 5.0);
    tcp.ack(200, tcp.sender.board.highest());
    assert!(tcp.window() < 5.0 + 2.0, "{}", tcp.window());
}

#[test]
fn rack_sends_a_lost_repair_again_after_a_round_trip() {
    let mut tcp = tcp("rack", &json!({}));
    tcp.sent(0);
    tcp.ack(100, 1);
    assert_eq!(tcp.sack(102, 1, (2, 5)), [1], "and it is lost again");
    tcp.sack(103, 1, (2, 10));
    let new = tcp.sack(200, 1, (2, 11));
    assert!(!new.contains(&1), "what came had left before it");
    // What left after the repair has come, and a round trip has passed.
    let end = tcp.sender.board.highest();
    assert!(tcp.sack(203, 1, (2, end)).contains(&1));
    assert_eq!(tcp.sender.timeouts, 0);
}

#[test]
fn rack_waits_a_quarter_of_a_round_trip_for_what_may_have_been_overtaken() {
    let mut tcp = tcp("rack", &json!({}));
    tcp.sent(0);
    assert_eq!(tcp.sack(100, 0, (1, 2)), [10]);
    assert_eq!(tcp.times_out(), 125, "the reordering timer");
    assert_eq!(tcp.time_out(), [0]);
    assert_eq!((tcp.sender.retransmits, tcp.sender.timeouts), (1, 0));
    assert_window(&tcp, 5.0);
}

#[test]
fn a_lost_tail_is_probed_for_before_the_time_out() {
    for recovery in ["selective_repeat", "rack"] {
        let probes = json!({ "reliability": { "tail_probe": "200 ms", "min_rto": "1 s" } });
        let mut tcp = tcp(recovery, &probes);
        tcp.sent(0);
        tcp.ack(100, 1);
        let last = tcp.sender.board.highest() - 1;
        // Two round trips of 100 ms, and 2 ms.
        assert_eq!(tcp.times_out(), 302, "{recovery}");
        assert_eq!(tcp.time_out(), [last + 1], "{recovery}: new data, whatever the window");
        assert_eq!((tcp.sender.retransmits, tcp.sender.timeouts), (0, 0), "{recovery}");
        assert!(tcp.times_out() > 1000, "{recovery}: one probe, and then the time-out");
    }
}

#[test]
fn time_outs_and_probes_come_with_ticks() {
    let ticks = json!({ "tail_probe": "200 ms", "min_rto": "400 ms", "timer_tick": "4 ms" });
    let mut tcp = tcp("rack", &json!({ "reliability": ticks }));
    tcp.sent(0);
    // The time-out of a second is 250 ticks, which only every eighth ends.
    assert_eq!(tcp.times_out(), 1024);
    tcp.ack(101, 1);
    // 202 ms after tick 25 are due at 76, and go off with the one after.
    assert_eq!(tcp.times_out(), 308);
    assert_eq!(tcp.time_out().len(), 1, "the probe");
    assert_eq!(tcp.times_out(), 736, "400 ms after 308, which is tick 77: 177, and then 184");
    let (probe, none) = (tcp.time_out(), tcp.sender.timeouts);
    assert_eq!((probe, none), (vec![1], 1));
}

#[test]
fn the_window_shrinks_in_proportion_to_what_comes() {
    let shrinks = json!({
        "reliability": { "proportional_reduction": true }, "window": { "initial": 20 },
    });
    let mut tcp = tcp("rack", &shrinks);
    tcp.sent(0);
    // Segment 0 is lost. The third that comes beyond it starts the repair; then every other lets one go.
    tcp.sack(100, 0, (1, 3));
    let sent: Vec<_> = (4..=20).map(|to| tcp.sack(101, 0, (1, to)).len()).collect();
    assert_eq!(sent[..9], [1, 0, 1, 0, 1, 0, 1, 0, 1], "{sent:?}");
    tcp.ack(201, tcp.sender.board.highest());
    assert!(tcp.window() >= 10.0, "and at its end the window is half");
}

#[test]
fn new_reno_repairs_one_loss_a_round_trip() {
    let mut tcp = tcp("new_reno", &json!({}));
    tcp.sent(0);
    // Segments 0, 3 and 7 are lost.
    assert_eq!(tcp.ack(100, 0), [10]);
    assert_eq!(tcp.ack(101, 0), [11]);
    assert_eq!(tcp.ack(102, 0), [0]);
    assert_window(&tcp, 5.0);
    let more: Vec<u32> = (103..107).flat_map(|ms| tcp.ack(ms, 0)).collect();
    // Seven of 0 to 9 have come: of twelve sent five are in flight.
    assert_eq!(more, NOTHING);
    assert_eq!(tcp.ack(200, 0), [12], "10 has come");
    assert_eq!(tcp.ack(201, 0), [13], "and 11");
    // Partial ACKs: the next gap at once, and no reduction.
    assert_eq!(tcp.ack(202, 3)[0], 3);
    assert_eq!(tcp.ack(302, 7)[0], 7);
    assert_window(&tcp, 5.0);
    assert_eq!((tcp.sender.retransmits, tcp.sender.timeouts), (3, 0));
    // All that had been sent is there.
    assert_eq!(tcp.ack(402, 12).first(), Some(&16));
    assert_window(&tcp, 5.0 + 1.0 / 5.0);
}

#[test]
fn reno_stops_at_the_first_new_ack_and_a_second_loss_waits_for_the_time_out() {
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
    // However many duplicates follow.
    (203..220).for_each(|ms| drop(tcp.ack(ms, 3)));
    assert_eq!(tcp.sender.retransmits, 1);
    assert_eq!(tcp.time_out(), [3]);
    assert_window(&tcp, 1.0);
}

#[test]
fn after_a_time_out_the_window_grows_from_one_packet_through_slow_start() {
    for recovery in ["selective_repeat", "new_reno", "reno"] {
        let mut tcp = tcp(recovery, &json!({}));
        tcp.sent(0);
        assert_eq!(tcp.times_out(), 1000, "{recovery}: the initial time-out");
        assert_eq!(tcp.time_out(), [0], "{recovery}");
        assert_window(&tcp, 1.0);
        assert_eq!(tcp.ack(1100, 1), [1, 2], "{recovery}");
        assert_eq!(tcp.ack(1200, 2), [3, 4], "{recovery}");
        assert_eq!(tcp.ack(1201, 3), [5, 6], "{recovery}");
        assert_eq!(tcp.ack(1300, 4), [7, 8], "{recovery}");
        // Half of the ten that were in flight: slow start ends here.
        assert_window(&tcp, 5.0);
        assert_eq!(tcp.ack(1301, 5), [9], "{recovery}");
        assert_window(&tcp, 5.0 + 1.0 / 5.0);
    }
}

#[test]
fn time_outs_double_and_end_slow_start_no_earlier_than_the_first() {
    let mut tcp = tcp("selective_repeat", &json!({}));
    tcp.sent(0);
    for due in [1000, 3000, 7000, 15_000, 31_000, 63_000, 123_000, 183_000] {
        assert_eq!(tcp.times_out(), due);
        assert_eq!(tcp.time_out(), [0]);
    }
    // RFC 5681 §3.1: the same segment again holds ssthresh at half of the ten first in flight.
    (1..=4).for_each(|cumulative| drop(tcp.ack(183_100 + u64::from(cumulative), cumulative)));
    assert_window(&tcp, 5.0);
}

#[test]
fn without_time_stamps_what_was_sent_twice_is_no_sample() {
    for timestamps in [true, false] {
        let mut tcp =
            tcp("selective_repeat", &json!({ "reliability": { "timestamps": timestamps } }));
        tcp.sent(0);
        tcp.time_out();
        tcp.ack(1100, 1);
        // A sample of 100 ms gives 100 + 4 * 50 ms; without one the second of the start stays doubled.
        let due = if timestamps { 300 } else { 2000 };
        assert_eq!(tcp.times_out(), 1100 + due);
        // Segments 1 to 9 were sent twice; the first that was not is timed.
        (2..=9).for_each(|cumulative| drop(tcp.ack(1200, cumulative)));
        assert_eq!(tcp.sender.timeout() == Duration::from_millis(2000), !timestamps);
        tcp.ack(1300, 11);
        assert!(tcp.sender.timeout() < Duration::from_millis(1000));
    }
}

#[test]
fn without_time_stamps_a_repair_takes_the_clock_off_its_segment() {
    let plain = json!({ "reliability": { "timestamps": false } });
    let mut tcp = tcp("selective_repeat", &plain);
    tcp.sent(0);
    assert_eq!(tcp.sack(100, 0, (1, 4)), [0], "which is timed");
    tcp.ack(200, 10);
    assert_eq!(tcp.sender.timeout(), Duration::from_millis(1000), "no sample yet");
    tcp.ack(300, 11);
    assert_eq!(tcp.sender.timeout(), Duration::from_millis(100 + 4 * 50));
}

#[test]
fn a_lost_syn_leaves_a_window_of_one_packet() {
    for lost in [0, 1, 2] {
        let mut tcp = tcp("selective_repeat", &json!({ "reliability": { "handshake": true } }));
        for _ in 0..lost {
            let allowance = tcp.controller.allowance();
            assert_eq!(tcp.sender.next(at(0), allowance), Some(Output::Syn));
            assert_eq!(tcp.sender.next(at(0), allowance), None);
            let due = tcp.times_out();
            tcp.sender.on_time(at(due), &mut *tcp.controller);
        }
        assert_eq!(tcp.sender.next(at(7000), tcp.controller.allowance()), Some(Output::Syn));
        assert_eq!(tcp.times_out(), 7000 + (1000 << lost));
        let answer = tcp.format.control(Kind::SynAck, 0, at(7000));
        let rtt = at(7100).since(answer.sent_at);
        tcp.sender.on_syn_ack(at(7100), &answer, rtt, &mut *tcp.controller);
        let expected = if lost == 0 { 10 } else { 1 };
        assert_eq!(tcp.sent(7100).len(), expected, "{lost} lost");
    }
}

#[test]
fn lost_syns_may_be_forgiven_and_their_time_outs_be_linear() {
    let linux = json!({
        "reliability": { "handshake": true, "forgiven_syns": 1, "linear_syns": 4 },
    });
    for (lost, waited, expected) in [(1, 1000, 10), (2, 2000, 1), (5, 5000, 1), (6, 7000, 1)] {
        let mut tcp = tcp("selective_repeat", &linux);
        let mut now = at(0);
        for _ in 0..lost {
            tcp.sender.next(now, tcp.controller.allowance());
            now = at(tcp.times_out());
            tcp.sender.on_time(now, &mut *tcp.controller);
        }
        assert_eq!(now, at(waited), "{lost} lost");
        tcp.sender.next(now, tcp.controller.allowance());
        let answer = tcp.format.control(Kind::SynAck, 0, now);
        tcp.sender.on_syn_ack(at(7100), &answer, at(7100) - now, &mut *tcp.controller);
        assert_eq!(tcp.sent(7100).len(), expected, "{lost} lost");
    }
}

#[test]
fn a_mark_is_answered_once_a_window_and_the_receiver_is_told() {
    let mut tcp = tcp("selective_repeat", &json!({ "ecn": true }));
    tcp.sent(0);
    tcp.hear(100, 1, (0, 0), Flags::MARKED);
    assert_window(&tcp, 5.0);
    assert_eq!(tcp.segments(100), []);
    // The echo goes on: everything up to segment 10 was sent before the answer.
    for cumulative in 2..=5 {
        tcp.hear(100, cumulative, (0, 0), Flags::MARKED);
    }
    assert_eq!(tcp.segments(100), []);
    tcp.hear(101, 8, (0, 0), Flags::MARKED);
    let told: Vec<_> = tcp.segments(101).iter().map(|s| (s.sequence, s.has_reduced)).collect();
    assert_eq!(told, [(10, true), (11, false), (12, false)], "the first new segment says so");
    tcp.hear(102, 10, (0, 0), Flags::MARKED);
    let before = tcp.window();
    assert!((5.0..6.5).contains(&before), "{before}: still the first answer");
    tcp.sent(102);
    tcp.hear(201, 11, (0, 0), Flags::MARKED);
    assert!(tcp.window() < before / 2.0 + 0.5, "segment 10 left after it");
    assert_eq!(tcp.sender.retransmits, 0);
}

#[test]
fn what_is_sent_again_is_not_ecn_capable_and_what_is_new_is() {
    let mut tcp = tcp("selective_repeat", &json!({ "ecn": true }));
    let mut segments = tcp.segments(0);
    tcp.hear(100, 0, (1, 4), Flags::NONE);
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
fn no_more_is_sent_than_the_receiver_takes() {
    let mut tcp = tcp("selective_repeat", &json!({ "reliability": { "receive_window": 4 } }));
    assert_eq!(tcp.sent(0), [0, 1, 2, 3]);
    assert_eq!(tcp.ack(100, 1), [4]);
    // Segment 1 is lost: what lies beyond the window waits for it, and it does not.
    assert_eq!(tcp.sack(101, 1, (2, 5)), [1]);
    assert_eq!(tcp.ack(200, 5), [5, 6], "half of the four in flight");
}

#[test]
fn a_coarse_sender_needs_three_duplicates_and_no_fewer() {
    for recovery in ["selective_repeat", "new_reno", "reno"] {
        let mut tcp = tcp(recovery, &json!({}));
        tcp.sent(0);
        // Reordering: 0 comes after 1 and 2.
        assert_eq!(tcp.sack(100, 0, (1, 2)), [10], "{recovery}");
        assert_eq!(tcp.sack(101, 0, (1, 3)), [11], "{recovery}");
        tcp.ack(102, 3);
        assert_eq!(tcp.sender.retransmits, 0, "{recovery}");
        assert!(tcp.window() > 10.5, "{recovery}: still slow start");
    }
}
