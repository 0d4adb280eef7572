//! Tests of the receiver: ACKs, SACK blocks and ECN feedback.

use super::*;
use crate::base::schema::defaults;
use crate::base::units::Duration;
use crate::model::packet::Format;
use crate::transport::Reliability;
use crate::transport::blocks::tcp::window;
use crate::transport::endpoint::sender::Segment;

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

fn mechanism(delayed_ack: Option<Duration>) -> Arc<Mechanism> {
    let reliability = Reliability { delayed_ack, ..Reliability::internet() };
    Arc::new(window::mechanism(&reliability, true))
}

/// A segment sent 50 ms before its arrival.
fn data(mechanism: &Mechanism, ms: u64, sequence: u32, flags: Flags) -> Packet {
    let format: Format = defaults();
    let segment = Segment {
        sequence,
        payload: 1000,
        wants_ack: true,
        is_retransmit: false,
        is_timed_out: false,
        is_probe: false,
        has_cwr: flags.has(Flags::REDUCED),
    };
    let mut packet = mechanism.data(&format, 0, at(ms - 50), segment);
    if flags.has(Flags::MARKED) {
        assert!(packet.mark(), "the packet is ECN-capable");
    }
    packet
}

/// Returns the cumulative acknowledgement and SACK block of a TCP receiver's ACK of a segment.
fn ack_of(receiver: &mut Receiver, ms: u64, sequence: u32) -> Option<(u32, (u32, u32))> {
    let mechanism = mechanism(None);
    let output = receiver.on_data(at(ms), &data(&mechanism, ms, sequence, Flags::NONE));
    assert!(!output.notification);
    output.ack.map(|ack| (ack.cumulative, ack.block))
}

#[test]
fn an_ack_is_delayed_to_the_second_segment_or_by_the_timer() {
    let mut receiver = Receiver::new(&mechanism(Some(Duration::from_millis(40))));
    assert_eq!(ack_of(&mut receiver, 100, 0), None);
    assert_eq!(receiver.next_timer(), at(140));
    assert_eq!(ack_of(&mut receiver, 101, 1), Some((2, (0, 0))));
    assert_eq!(receiver.next_timer(), Time::NEVER);
    assert_eq!(ack_of(&mut receiver, 110, 2), None);
    assert_eq!(receiver.on_timer(at(149)).ack, None, "before the timer");
    let late = receiver.on_timer(at(150)).ack.unwrap();
    // With the timestamp of the segment, so that the RTT includes the delay (RFC 7323 §4.3).
    assert_eq!((late.cumulative, late.sent_at), (3, at(60)));
    assert_eq!(receiver.on_timer(at(160)).ack, None, "sent only once");
}

#[test]
fn a_marked_segment_and_an_unmarked_one_before_it_have_acks_of_their_own() {
    let reliability =
        Reliability { delayed_ack: Some(Duration::from_millis(40)), ..Reliability::internet() };
    let mut mechanism = window::mechanism(&reliability, true);
    mechanism.acks.feedback = MarkFeedback::Echo;
    let mechanism = Arc::new(mechanism);
    let mut receiver = Receiver::new(&mechanism);
    let mut acks = Vec::new();
    let marked = [false, true, true, false, false, false, true];
    for (sequence, is_marked) in (0..).zip(marked) {
        let ms = 100 + u64::from(sequence);
        let flags = Flags::NONE.with_if(Flags::MARKED, is_marked);
        acks.push(receiver.on_data(at(ms), &data(&mechanism, ms, sequence, flags)).ack);
        if receiver.next_timer() <= at(ms) {
            acks.push(receiver.on_timer(at(ms)).ack);
        }
    }
    let acks = acks.into_iter().flatten().map(|ack| (ack.cumulative, ack.flags.has(Flags::MARKED)));
    // Segments 3 and 4, without marks, have one ACK.
    let expected = [(1, false), (2, true), (3, true), (5, false), (6, false), (7, true)];
    assert_eq!(acks.collect::<Vec<_>>(), expected);
}

#[test]
fn acks_repeat_sack_blocks_if_the_sender_expects_it() {
    for (sack_blocks, options) in
        [(1, None), (2, Some([(4, 5), (2, 3), (0, 0)])), (3, Some([(4, 5), (2, 3), (0, 0)]))]
    {
        let reliability = Reliability { sack_blocks, ..Reliability::internet() };
        let mechanism = Arc::new(window::mechanism(&reliability, true));
        let mut receiver = Receiver::new(&mechanism);
        let mut last = None;
        for sequence in [0, 2, 4] {
            let ack = receiver.on_data(at(100), &data(&mechanism, 100, sequence, Flags::NONE)).ack;
            last = receiver.options(&mut ack.unwrap());
        }
        assert_eq!(last.map(|options| options.blocks), options);
    }
}

#[test]
fn quick_acks_are_not_delayed() {
    let delayed = mechanism(Some(Duration::from_millis(40)));
    let reliability = Reliability { quick_acks: 2, ..delayed.reliability.clone() };
    let mut receiver = Receiver::new(&Arc::new(window::mechanism(&reliability, true)));
    for sequence in 0..2 {
        assert_eq!(ack_of(&mut receiver, 100, sequence), Some((sequence + 1, (0, 0))));
    }
    assert_eq!(ack_of(&mut receiver, 100, 2), None);
    assert_eq!(ack_of(&mut receiver, 100, 3), Some((4, (0, 0))));
}

#[test]
fn acks_of_a_gap_and_of_its_end_are_not_delayed() {
    let mut receiver = Receiver::new(&mechanism(Some(Duration::from_millis(40))));
    assert_eq!(ack_of(&mut receiver, 100, 0), None);
    assert_eq!(ack_of(&mut receiver, 101, 2), Some((1, (2, 3))));
    assert_eq!(receiver.next_timer(), Time::NEVER, "the ACK includes segment 0");
    assert_eq!(ack_of(&mut receiver, 102, 4), Some((1, (4, 5))));
    assert_eq!(ack_of(&mut receiver, 103, 3), Some((1, (2, 5))), "the merged range");
    assert_eq!(ack_of(&mut receiver, 104, 1), Some((5, (0, 0))));
    assert_eq!(
        ack_of(&mut receiver, 105, 1),
        Some((5, (0, 0))),
        "a duplicate is acknowledged at once (RFC 5681 §4.2)"
    );
    assert_eq!(ack_of(&mut receiver, 106, 5), None);
}

/// A receiver that lacks segment 0 and has sent SACKs of 1, 2 and 3; it compresses further SACKs.
fn compressing() -> Receiver {
    let sack_compression = Some(Duration::from_millis(1));
    let reliability = Reliability { sack_compression, ..Reliability::internet() };
    let mut receiver = Receiver::new(&Arc::new(window::mechanism(&reliability, true)));
    for sequence in 1..=3 {
        assert_eq!(ack_of(&mut receiver, 100, sequence), Some((0, (1, sequence + 1))));
    }
    receiver
}

#[test]
fn sacks_are_compressed_from_the_fourth_on() {
    let mut receiver = compressing();
    for sequence in 4..20 {
        assert_eq!(ack_of(&mut receiver, 101, sequence), None);
    }
    assert_eq!(receiver.next_timer(), at(102));
    let ack = receiver.on_timer(at(102)).ack.unwrap();
    assert_eq!((ack.cumulative, ack.block, ack.sack_blocks), (0, (1, 20), 1));
    assert_eq!(receiver.next_timer(), Time::NEVER);
    for sequence in 20..64 {
        assert_eq!(ack_of(&mut receiver, 103, sequence), None);
    }
    assert_eq!(ack_of(&mut receiver, 103, 64), Some((0, (1, 65))), "at most 44 segments");
}

#[test]
fn an_ack_in_order_includes_a_compressed_sack_and_a_sack_of_another_range_does_not() {
    let mut receiver = compressing();
    assert_eq!(ack_of(&mut receiver, 101, 4), None);
    assert_eq!(ack_of(&mut receiver, 101, 6), Some((0, (6, 7))), "an ACK reports one range");
    assert_eq!(receiver.next_timer(), at(102));
    assert_eq!(ack_of(&mut receiver, 101, 0), Some((5, (0, 0))));
    assert_eq!(receiver.next_timer(), Time::NEVER);
    // The first ACK of a new gap was sent; segments from 6 on are beyond the gap.
    assert_eq!(ack_of(&mut receiver, 101, 7), Some((5, (6, 8))));
    assert_eq!(ack_of(&mut receiver, 101, 8), Some((5, (6, 9))));
    assert_eq!(ack_of(&mut receiver, 101, 9), None);
    assert_eq!(ack_of(&mut receiver, 101, 11), Some((5, (11, 12))));
    assert_eq!(ack_of(&mut receiver, 101, 5), Some((10, (0, 0))), "segment 5 fills the gap");
    assert_eq!(receiver.next_timer(), Time::NEVER);
}

#[test]
fn a_sack_is_delayed_by_at_most_a_twentieth_of_the_rtt() {
    let sack_compression = Some(Duration::from_millis(40));
    let reliability = Reliability { sack_compression, ..Reliability::internet() };
    let mut receiver = Receiver::new(&Arc::new(window::mechanism(&reliability, true)));
    for sequence in 1..=4 {
        ack_of(&mut receiver, 100, sequence);
    }
    assert_eq!(receiver.next_timer(), at(105), "one-way delay of 50 ms");
}

#[test]
fn a_mark_is_echoed_until_cwr() {
    let mechanism = mechanism(None);
    let mut receiver = Receiver::new(&mechanism);
    let mut echoes = |sequence, flags| {
        let packet = data(&mechanism, 100, sequence, flags);
        receiver.on_data(at(100), &packet).ack.unwrap().flags.has(Flags::MARKED)
    };
    assert!(!echoes(0, Flags::NONE));
    assert!(echoes(1, Flags::MARKED));
    assert!(echoes(2, Flags::NONE), "until CWR");
    assert!(!echoes(3, Flags::REDUCED));
    assert!(!echoes(4, Flags::NONE));
    assert!(echoes(5, Flags::MARKED));
    let both = Flags::MARKED.with_if(Flags::REDUCED, true);
    assert!(echoes(6, both), "a packet with CWR may be marked");
}

#[test]
fn accurate_ecn_counts_marks_modulo_eight() {
    let reliability = Reliability { accurate_ecn: true, ..Reliability::internet() };
    let mechanism = Arc::new(window::mechanism(&reliability, true));
    let mut receiver = Receiver::new(&mechanism);
    let mut count = |sequence, flags| {
        let packet = data(&mechanism, 100, sequence, flags);
        receiver.on_data(at(100), &packet).ack.unwrap().flags.count()
    };
    assert_eq!((count(0, Flags::NONE), count(1, Flags::MARKED)), (0, 1));
    assert_eq!(count(2, Flags::NONE), 1, "marks are not echoed");
    let counts: Vec<_> = (3..12).map(|sequence| count(sequence, Flags::MARKED)).collect();
    assert_eq!(counts, [2, 3, 4, 5, 6, 7, 0, 1, 2]);
}

#[test]
fn the_ack_of_a_marked_segment_is_not_delayed() {
    let mechanism = mechanism(Some(Duration::from_millis(40)));
    let mut receiver = Receiver::new(&mechanism);
    let packet = data(&mechanism, 100, 0, Flags::MARKED);
    assert!(receiver.on_data(at(100), &packet).ack.is_some_and(|ack| ack.flags.has(Flags::MARKED)));
}

#[test]
fn a_delayed_ack_sums_changes_of_the_window_and_keeps_the_latest_rate() {
    let sum = |header: fn(f32) -> Header| {
        let mechanism = mechanism(Some(Duration::from_millis(40)));
        let mut receiver = Receiver::new(&mechanism);
        let mut ack_feedback = |sequence, feedback| {
            let plain = data(&mechanism, 100, sequence, Flags::NONE);
            let ack = receiver.on_data(at(100), &plain.with_header(header(feedback)));
            ack.ack.map(|ack| ack.feedback)
        };
        assert_eq!(ack_feedback(0, 3.0), None);
        ack_feedback(1, 4.0)
    };
    assert_eq!(sum(|feedback| Header::Xcp { rtt: 0.1, spacing: 0.01, feedback }), Some(7.0));
    assert_eq!(sum(|rate| Header::Rcp { rtt: 0.1, rate }), Some(4.0));
}

#[test]
fn go_back_n_discards_out_of_order_segments_and_sends_one_nack() {
    let reliability =
        Reliability { recovery: Recovery::GoBackN, ..Reliability::selective_repeat() };
    let mut receiver = Receiver::new(&Arc::new(window::mechanism(&reliability, true)));
    assert_eq!(ack_of(&mut receiver, 100, 0), Some((1, (0, 0))));
    assert_eq!(ack_of(&mut receiver, 100, 2), Some((1, (0, 0))));
    assert_eq!(ack_of(&mut receiver, 100, 3), None);
    assert_eq!(ack_of(&mut receiver, 100, 1), Some((2, (0, 0))), "2 and 3 were discarded");
}

#[test]
fn packets_that_others_have_overtaken_are_counted_and_retransmissions_are_not() {
    let mut receiver = Receiver::new(&mechanism(None));
    let mut receive = |sent_ms: u64, sequence: u32| {
        let packet = data(&mechanism(None), sent_ms + 50, sequence, Flags::NONE);
        receiver.on_data(at(sent_ms + 50), &packet);
        (receiver.reordering.packets, receiver.reordering.extent)
    };
    // Segments 0 to 5 are sent in one burst: 3 overtakes 1 and 2, which arrive in order.
    assert_eq!([0, 3, 1, 2].map(|sequence| receive(0, sequence)), [(0, 0), (0, 0), (1, 2), (2, 2)]);
    // 4 is lost, and retransmitted after 5 and 6. A copy of a segment does not count.
    assert_eq!([5, 6].map(|sequence| receive(0, sequence)), [(2, 2); 2]);
    assert_eq!([receive(200, 4), receive(200, 7), receive(200, 5)], [(2, 2); 3]);
    // 8 is overtaken by 12, and by others after it.
    assert_eq!([9, 12, 8, 10].map(|sequence| receive(300, sequence))[2..], [(3, 4), (4, 4)]);
}

#[test]
fn coalesced_acks_are_sent_for_an_amount_of_data_and_where_the_sender_waits() {
    // Packets of 1040 B on the link.
    let mechanism = Arc::new(Mechanism::coalesced(&Reliability::selective_repeat(), Bytes(3_000)));
    let mut receiver = Receiver::new(&mechanism);
    let mut ack_of = |sequence, flags: Flags| {
        let packet = data(&mechanism, 100, sequence, flags);
        let is_requested = flags.has(Flags::WANTS_ACK);
        let flags = packet.flags.without(Flags::WANTS_ACK).with_if(Flags::WANTS_ACK, is_requested);
        let ack = receiver.on_data(at(100), &Packet { flags, ..packet }).ack;
        ack.map(|ack| (ack.cumulative, ack.block, ack.entropy.unwrap().1))
    };
    assert_eq!(ack_of(0, Flags::NONE), Some((1, (0, 0), 1)), "the first packet");
    assert_eq!([1, 2].map(|sequence| ack_of(sequence, Flags::NONE)), [None, None]);
    assert_eq!(ack_of(5, Flags::NONE), Some((3, (5, 6), 4)), "3120 B, also out of order");
    assert_eq!(ack_of(6, Flags::MARKED), Some((3, (5, 7), 5)), "a mark");
    assert_eq!(ack_of(9, Flags::WANTS_ACK), Some((3, (9, 10), 6)), "a request");
    assert_eq!(
        [3, 4, 8].map(|sequence| ack_of(sequence, Flags::NONE).is_some()),
        [false, false, true]
    );
    assert_eq!(ack_of(7, Flags::NONE), Some((10, (0, 0), 10)), "no gap is left before the request");
    assert_eq!(ack_of(7, Flags::NONE), Some((10, (0, 0), 10)), "a duplicate");
    assert_eq!(ack_of(10, Flags::NONE), None);
}

#[test]
fn a_nack_reports_where_the_packet_was_trimmed_and_acknowledges_nothing() {
    let mechanism = Arc::new(Mechanism::coalesced(&Reliability::selective_repeat(), Bytes(2_000)));
    let mut receiver = Receiver::new(&mechanism);
    let packet = |sequence| {
        let packet = data(&mechanism, 100, sequence, Flags::NONE);
        Packet { flags: packet.flags.without(Flags::WANTS_ACK), ..packet }
    };
    receiver.on_data(at(100), &packet(0));
    assert!(receiver.on_data(at(100), &packet(1)).ack.is_none());
    for at_last_hop in [false, true] {
        let flags = Flags::NONE.with_if(Flags::LAST_HOP, at_last_hop);
        let trimmed = Packet { kind: Kind::Trimmed, flags, ..packet(2) };
        let nack = receiver.on_trimmed(&trimmed).ack.unwrap();
        assert_eq!((nack.kind, nack.cumulative, nack.block), (Kind::Nack, 2, (2, 3)));
        assert_eq!(nack.flags.has(Flags::LAST_HOP), at_last_hop);
    }
    assert!(receiver.on_data(at(100), &packet(3)).ack.is_some(), "2080 B since the last ACK");
    let late = Packet { kind: Kind::Trimmed, flags: Flags::LAST_HOP, ..packet(1) };
    let ack = receiver.on_trimmed(&late).ack.unwrap();
    assert_eq!((ack.kind, ack.flags), (Kind::Ack, Flags::NONE), "the packet has arrived already");
}
