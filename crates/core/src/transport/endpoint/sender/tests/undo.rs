//! Losses that were none: what tells, and what is given back.

use super::*;

/// A sender that undoes what was needless, whose first ten segments time out at 1000 ms, when it sends the
/// first again; with more that is so of it.
fn timed_out(more: &Value) -> Tcp {
    let mut reliability = more.clone();
    reliability["undo"] = json!(true);
    let mut tcp = tcp("rack", &json!({ "reliability": reliability }));
    tcp.sent(0);
    assert_eq!(tcp.time_out(), [0]);
    assert_window(&tcp, 1.0);
    tcp
}

/// What it sends on an ACK for the first segments that echoes this time.
fn acked_with(tcp: &mut Tcp, sent_ms: u64, cumulative: u32, block: (u32, u32)) -> Vec<u32> {
    tcp.hear_of(sent_ms, 1050, cumulative, block, Flags::NONE);
    tcp.sent(1050)
}

#[test]
fn a_time_out_is_undone_if_the_first_ack_after_it_answers_what_left_before_it() {
    let mut late = timed_out(&json!({}));
    assert_eq!(acked_with(&mut late, 0, 1, (0, 0)), [10, 11], "nine are on their way");
    assert_window(&late, 11.0);
    assert_eq!(late.ack(1060, 5), [12, 13, 14, 15, 16]);
    assert_eq!(late.sender.retransmits, 1);
    let mut lost = timed_out(&json!({}));
    assert_eq!(acked_with(&mut lost, 1000, 1, (0, 0)), [1, 2]);
    assert_window(&lost, 2.0);
}

#[test]
fn a_mark_forbids_to_undo() {
    let mut tcp = tcp("rack", &json!({ "ecn": true, "reliability": { "undo": true } }));
    tcp.sent(0);
    tcp.time_out();
    tcp.hear_of(0, 1050, 1, (0, 0), Flags::MARKED);
    assert_window(&tcp, 1.0);
}

#[test]
fn after_several_time_outs_the_window_is_what_it_was_before_the_first() {
    let mut tcp = timed_out(&json!({}));
    tcp.time_out();
    acked_with(&mut tcp, 0, 1, (0, 0));
    assert_window(&tcp, 11.0);
}

#[test]
fn a_repair_is_undone_if_the_gap_was_filled_by_what_left_before_it() {
    let filled = |sent_ms| {
        let mut tcp = tcp("rack", &json!({ "reliability": { "undo": true } }));
        tcp.sent(0);
        assert_eq!(tcp.sack(100, 0, (1, 4)), [0]);
        assert_window(&tcp, 5.0);
        tcp.hear_of(sent_ms, 110, 4, (0, 0), Flags::NONE);
        assert_eq!(tcp.sender.board.is_recovering(), sent_ms > 0);
        tcp
    };
    assert_window(&filled(100), 5.0);
    let mut tcp = filled(0);
    assert_window(&tcp, 11.0);
    // What is overtaken has more time from now on, and what is lost is a loss of its own.
    tcp.sack(120, 4, (5, 8));
    assert!(!tcp.sender.board.is_recovering());
    assert_eq!(tcp.time_out()[0], 4);
    assert!(tcp.sender.board.is_recovering());
    assert!(tcp.window() < 6.0);
}

#[test]
fn what_was_sent_again_and_came_twice_was_needless() {
    // All ACKs were lost: of what is sent again the first comes twice, and the time stamp tells nothing.
    let twice = |reports, block| {
        let mut tcp = timed_out(&json!({ "duplicate_sack": reports }));
        acked_with(&mut tcp, 1000, 10, block);
        tcp
    };
    assert_window(&twice(true, (0, 1)), 11.0);
    assert_window(&twice(true, (0, 0)), 2.0);
    assert_window(&twice(false, (0, 1)), 2.0);
}

#[test]
fn after_a_doubtful_time_out_new_data_tells_whether_it_was_right() {
    let doubtful = json!({ "frto": true, "timestamps": false });
    let in_doubt = || {
        let mut tcp = timed_out(&doubtful);
        assert_eq!(tcp.ack(1050, 1), [10, 11], "new data");
        assert_window(&tcp, 2.0);
        tcp
    };
    // RFC 5682 §3.1 step 3 b: what was not sent again is acknowledged.
    let mut late = in_doubt();
    late.ack(1060, 2);
    assert_window(&late, 11.0);
    assert_eq!(late.sender.retransmits, 1);
    // Step 3 a: only the new data comes.
    let mut lost = in_doubt();
    assert_eq!(lost.sack(1150, 1, (10, 11)), [1]);
    assert_eq!(lost.sack(1151, 1, (10, 12))[0], 2);
    // Not if one time-out follows another (§3.2), and something was acknowledged between them.
    lost.ack(1250, 3);
    assert_eq!(lost.time_out(), [3]);
    assert_eq!(lost.ack(9000, 4)[0], 4);
}

#[test]
fn without_new_data_a_doubtful_time_out_is_taken_for_right() {
    let mut tcp = tcp("rack", &json!({ "reliability": { "undo": true, "frto": true } }));
    tcp.sent(0);
    tcp.sender.stop();
    assert_eq!(tcp.time_out(), [0]);
    assert_eq!(tcp.ack(1100, 1), [1, 2]);
}
