//! Spurious losses: detection, and restoration of the window.

use super::*;

/// Returns a sender with `undo` whose first ten segments time out at 1000 ms, when it retransmits the first;
/// with further parameters in `changes`.
fn timed_out(changes: &Value) -> Tcp {
    let mut reliability = changes.clone();
    reliability["undo"] = json!(true);
    let mut tcp = tcp("rack", &json!({ "reliability": reliability }));
    tcp.sent(0);
    assert_eq!(tcp.expire_timer(), [0]);
    assert_window(&tcp, 1.0);
    tcp
}

/// Delivers an ACK that echoes the timestamp `sent_ms`. Returns the segments sent then.
fn ack_echoing(tcp: &mut Tcp, sent_ms: u64, cumulative: u32, block: (u32, u32)) -> Vec<u32> {
    tcp.on_ack(sent_ms, 1050, cumulative, block, Flags::NONE);
    tcp.sent(1050)
}

#[test]
fn a_timeout_is_undone_if_the_next_ack_echoes_an_earlier_timestamp() {
    let mut late = timed_out(&json!({}));
    assert_eq!(ack_echoing(&mut late, 0, 1, (0, 0)), [10, 11], "nine are in flight");
    assert_window(&late, 11.0);
    assert_eq!(late.ack(1060, 5), [12, 13, 14, 15, 16]);
    assert_eq!(late.sender.retransmits, 1);
    let mut lost = timed_out(&json!({}));
    assert_eq!(ack_echoing(&mut lost, 1000, 1, (0, 0)), [1, 2]);
    assert_window(&lost, 2.0);
}

#[test]
fn a_mark_prevents_an_undo() {
    let mut tcp = tcp("rack", &json!({ "ecn": true, "reliability": { "undo": true } }));
    tcp.sent(0);
    tcp.expire_timer();
    tcp.on_ack(0, 1050, 1, (0, 0), Flags::MARKED);
    assert_window(&tcp, 1.0);
}

#[test]
fn after_several_timeouts_the_window_of_the_first_is_restored() {
    let mut tcp = timed_out(&json!({}));
    tcp.expire_timer();
    ack_echoing(&mut tcp, 0, 1, (0, 0));
    assert_window(&tcp, 11.0);
}

#[test]
fn a_fast_recovery_is_undone_if_the_original_fills_the_gap() {
    let filled = |sent_ms| {
        let mut tcp = tcp("rack", &json!({ "reliability": { "undo": true } }));
        tcp.sent(0);
        assert_eq!(tcp.sack(100, 0, (1, 4)), [0]);
        assert_window(&tcp, 5.0);
        tcp.on_ack(sent_ms, 110, 4, (0, 0), Flags::NONE);
        assert_eq!(tcp.sender.scoreboard.is_recovering(), sent_ms > 0);
        tcp
    };
    assert_window(&filled(100), 5.0);
    let mut tcp = filled(0);
    assert_window(&tcp, 11.0);
    // The reordering window is wider from now on, and the next loss starts a new recovery.
    tcp.sack(120, 4, (5, 8));
    assert!(!tcp.sender.scoreboard.is_recovering());
    assert_eq!(tcp.expire_timer()[0], 4);
    assert!(tcp.sender.scoreboard.is_recovering());
    assert!(tcp.window() < 6.0);
}

#[test]
fn a_timeout_is_undone_if_all_retransmissions_were_duplicates() {
    // All ACKs were lost: the first retransmission is a duplicate, and its timestamp proves nothing.
    let after_duplicate = |duplicate_sack, block| {
        let mut tcp = timed_out(&json!({ "duplicate_sack": duplicate_sack }));
        ack_echoing(&mut tcp, 1000, 10, block);
        tcp
    };
    assert_window(&after_duplicate(true, (0, 1)), 11.0);
    assert_window(&after_duplicate(true, (0, 0)), 2.0);
    assert_window(&after_duplicate(false, (0, 1)), 2.0);
}

#[test]
fn frto_tests_a_timeout_with_new_data() {
    let with_frto = json!({ "frto": true, "timestamps": false });
    let in_test = || {
        let mut tcp = timed_out(&with_frto);
        assert_eq!(tcp.ack(1050, 1), [10, 11], "new data");
        assert_window(&tcp, 2.0);
        tcp
    };
    // RFC 5682 §3.1 step 3 b: a segment is acknowledged that was not retransmitted.
    let mut late = in_test();
    late.ack(1060, 2);
    assert_window(&late, 11.0);
    assert_eq!(late.sender.retransmits, 1);
    // Step 3 a: only the new data is delivered.
    let mut lost = in_test();
    assert_eq!(lost.sack(1150, 1, (10, 11)), [1]);
    assert_eq!(lost.sack(1151, 1, (10, 12))[0], 2);
    // §3.2: no test of a timeout during the recovery from another, after an ACK between them.
    lost.ack(1250, 3);
    assert_eq!(lost.expire_timer(), [3]);
    assert_eq!(lost.ack(9000, 4)[0], 4);
}

#[test]
fn without_new_data_a_timeout_is_not_tested() {
    let mut tcp = tcp("rack", &json!({ "reliability": { "undo": true, "frto": true } }));
    tcp.sent(0);
    tcp.sender.stop();
    assert_eq!(tcp.expire_timer(), [0]);
    assert_eq!(tcp.ack(1100, 1), [1, 2]);
}
