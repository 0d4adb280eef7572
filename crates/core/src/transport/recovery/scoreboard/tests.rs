//! Tests of the scoreboard: loss detection and recovery with handmade ACKs.

use super::*;

const NOW: Time = Time::ZERO;

/// A flow of a hundred segments that has sent the first `sent`.
fn board(recovery: Recovery, duplicate_acks: Option<u32>, sent: u32) -> Scoreboard {
    let reliability = Reliability { recovery, duplicate_acks, ..Reliability::selective_repeat() };
    let mut board = Scoreboard::new(100, &reliability);
    send(&mut board, sent);
    board
}

/// Sends `segments` segments. Returns their numbers.
fn send(board: &mut Scoreboard, segments: u32) -> Vec<u32> {
    let next = |_| {
        let (sequence, _) = board.candidate().unwrap();
        board.on_sent(sequence, NOW);
        sequence
    };
    (0..segments).map(next).collect()
}

#[test]
fn the_threshold_counts_sacked_segments_not_acks() {
    let mut board = board(Recovery::SelectiveRepeat, Some(3), 10);
    // Four reports of the same two segments are below the threshold; a third segment reaches it.
    for _ in 0..4 {
        assert!(!board.on_ack(0, &[(1, 3)], NOW, NOW).starts_recovery);
    }
    assert_eq!(board.in_flight(), 8);
    let outcome = board.on_ack(0, &[(1, 4)], NOW, NOW);
    assert_eq!((outcome.starts_recovery, outcome.delivered, outcome.advanced), (true, 1, 0));
    assert_eq!(board.candidate(), Some((0, true)), "at once");
    assert_eq!(board.in_flight(), 6, "ten less three delivered and one lost");
    assert!(board.on_sent(0, NOW), "a retransmission");
    assert_eq!((board.in_flight(), board.flight_size()), (7, 10));
    // A second gap is lost when three segments beyond it are sacked.
    board.on_ack(0, &[(7, 9)], NOW, NOW);
    assert_eq!(board.candidate(), Some((10, false)));
    board.on_ack(0, &[(7, 10)], NOW, NOW);
    assert_eq!(send(&mut board, 4), [4, 5, 6, 10]);
}

#[test]
fn recovery_ends_at_the_recovery_point() {
    for recovery in [Recovery::SelectiveRepeat, Recovery::NewReno] {
        let mut board = board(recovery, Some(3), 10);
        for to in 2..5 {
            board.on_ack(0, &[(1, to)], NOW, NOW);
        }
        assert!(board.is_recovering());
        send(&mut board, 3);
        board.on_ack(9, &[], NOW, NOW);
        assert!(board.is_recovering(), "{recovery:?}");
        board.on_ack(10, &[], NOW, NOW);
        assert!(!board.is_recovering(), "{recovery:?}");
    }
}

#[test]
fn a_timeout_marks_unsacked_segments_lost_and_later_sacks_clear_the_marks() {
    let mut board = board(Recovery::SelectiveRepeat, Some(3), 10);
    board.on_ack(2, &[(5, 7)], NOW, NOW);
    assert_eq!(board.on_timeout(NOW), 6, "2 to 4, and 7 to 9");
    assert_eq!(board.in_flight(), 0);
    assert_eq!(send(&mut board, 2), [2, 3]);
    assert_eq!(board.in_flight(), 2);
    assert_eq!(board.clone().on_timeout(NOW), 2, "the other four are marked already");
    // 8 and 9 were not lost.
    assert!(
        !board.on_ack(2, &[(8, 10)], NOW, NOW).starts_recovery,
        "no second reduction after the timeout"
    );
    assert_eq!(send(&mut board, 3), [4, 7, 10]);
}

#[test]
fn without_sack_duplicate_acks_after_a_timeout_start_no_recovery() {
    for recovery in [Recovery::NewReno, Recovery::Reno] {
        let mut board = board(recovery, Some(3), 10);
        board.on_timeout(NOW);
        assert_eq!(send(&mut board, 2), [0, 1], "{recovery:?}");
        // The receiver has 1 to 9: retransmissions cause duplicate ACKs.
        board.on_ack(10, &[], NOW, NOW);
        send(&mut board, 5);
        (0..5).for_each(|_| {
            assert!(!board.on_ack(9, &[], NOW, NOW).starts_recovery, "{recovery:?}");
        });
        assert_eq!(send(&mut board, 1), [15], "{recovery:?}");
    }
}

#[test]
fn go_back_n_restarts_from_the_gap_and_reduces_once_per_window() {
    let mut board = board(Recovery::GoBackN, Some(3), 10);
    assert!(board.on_nack(3, 0, NOW).starts_recovery);
    assert_eq!(send(&mut board, 3), [3, 4, 5]);
    assert!(!board.on_nack(4, 0, NOW).starts_recovery, "within the same window");
    assert_eq!(send(&mut board, 7), (4..11).collect::<Vec<_>>());
    board.on_ack(11, &[], NOW, NOW);
    send(&mut board, 5);
    assert!(board.on_nack(12, 0, NOW).starts_recovery, "the next window");
}

#[test]
fn without_a_threshold_duplicate_acks_reveal_no_loss() {
    for recovery in [Recovery::SelectiveRepeat, Recovery::NewReno, Recovery::Reno] {
        let mut board = board(recovery, None, 10);
        (0..8).for_each(|i| {
            assert!(!board.on_ack(0, &[(1, 2 + i)], NOW, NOW).starts_recovery, "{recovery:?}");
        });
        assert_eq!(board.candidate(), Some((10, false)), "{recovery:?}");
    }
}

/// A flow of twenty segments that has sent all, with `NextSeg`'s rules 3 and 4.
fn rescued() -> Scoreboard {
    let reliability = Reliability { rescue: true, ..Reliability::selective_repeat() };
    let mut board = Scoreboard::new(20, &reliability);
    send(&mut board, 20);
    board
}

#[test]
fn a_gap_below_the_highest_sack_is_retransmitted_when_nothing_else_is_left() {
    let mut board = rescued();
    board.on_ack(0, &[(1, 17)], NOW, NOW);
    board.on_ack(0, &[(18, 20)], NOW, NOW);
    assert_eq!(send(&mut board, 1), [0], "rule 1");
    assert_eq!(board.in_flight(), 2, "0 and 17: only two segments beyond 17 are sacked");
    assert_eq!(send(&mut board, 1), [17], "rule 3");
    assert_eq!(board.in_flight(), 3, "both transmissions of 17");
    assert_eq!(board.candidate(), None, "once");
    board.on_ack(17, &[], NOW, NOW);
    assert_eq!(board.in_flight(), 2);
    // The whole tail is acknowledged.
    board.on_ack(20, &[], NOW, NOW);
    assert_eq!(board.in_flight(), 0);
}

#[test]
fn a_segment_of_rule_3_is_in_flight_once_when_its_original_is_lost() {
    let mut board = rescued();
    board.on_ack(0, &[(1, 4)], NOW, NOW);
    board.on_ack(0, &[(5, 7)], NOW, NOW);
    assert_eq!(send(&mut board, 2), [0, 4]);
    assert_eq!(board.in_flight(), 16, "20 less 5 sacked, and 4 counts twice");
    board.on_ack(0, &[(5, 8)], NOW, NOW);
    assert_eq!(board.in_flight(), 14, "8 is the third segment beyond 4");
    assert_eq!(board.candidate(), Some((19, false)), "4 is not retransmitted again");
}

#[test]
fn the_last_segment_is_retransmitted_once_per_recovery_when_nothing_else_is_left() {
    let mut board = rescued();
    board.on_ack(0, &[(1, 4)], NOW, NOW);
    assert_eq!(send(&mut board, 2), [0, 19]);
    assert_eq!(board.in_flight(), 17, "20 less three sacked: HighRxt does not change");
    assert_eq!(board.candidate(), None);
    board.on_ack(10, &[], NOW, NOW);
    assert_eq!(board.candidate(), None, "in the same recovery");
    board.on_timeout(NOW);
    assert_eq!(send(&mut board, 10), (10..20).collect::<Vec<_>>());
    assert_eq!(board.candidate(), None, "not in the recovery from a timeout");
}

#[test]
fn new_data_beyond_the_receive_window_leaves_the_last_resort() {
    let receive_window = Some(20);
    let reliability =
        Reliability { rescue: true, receive_window, ..Reliability::selective_repeat() };
    let mut board = Scoreboard::new(100, &reliability);
    send(&mut board, 20);
    assert_eq!(board.candidate(), None);
    board.on_ack(0, &[(1, 4)], NOW, NOW);
    assert_eq!(send(&mut board, 2), [0, 19]);
}

#[test]
fn an_ack_repeats_the_blocks_of_lost_acks() {
    for recovery in [Recovery::SelectiveRepeat, Recovery::Rack] {
        let reliability = Reliability {
            recovery,
            sack_blocks: 3,
            duplicate_sack: true,
            ..Reliability::selective_repeat()
        };
        let mut board = Scoreboard::new(10, &reliability);
        send(&mut board, 10);
        // The ACKs with 2 and 4 alone were lost. 0, 1, 3, 5 and 7 are missing.
        let blocks = [(6, 7), (4, 5), (2, 3)];
        let outcome = board.on_ack(0, &blocks, NOW, NOW);
        assert_eq!((outcome.delivered, outcome.has_duplicate_sack), (3, false), "{recovery:?}");
        assert_eq!(board.remaining(), 7);
        // A segment in order: no block is new, and none is a D-SACK (RFC 2883 §4).
        let outcome = board.on_ack(1, &blocks, NOW, NOW);
        assert_eq!((outcome.delivered, outcome.has_duplicate_sack), (1, false));
        assert!(!outcome.has_new_block);
        for duplicate in [(0, 1), (4, 5)] {
            let blocks = [duplicate, (4, 5), (6, 7)];
            let outcome = board.on_ack(1, &blocks, NOW, NOW);
            assert_eq!((outcome.delivered, outcome.has_duplicate_sack), (0, true));
        }
        // The last segment is delivered once.
        assert!(board.on_ack(1, &[(9, 10), (6, 7), (0, 0)], NOW, NOW).has_last);
        assert!(!board.on_ack(1, &[(8, 10), (6, 7), (0, 0)], NOW, NOW).has_last);
    }
}

#[test]
fn repeated_blocks_are_not_reordering() {
    let reliability =
        Reliability { recovery: Recovery::Rack, sack_blocks: 3, ..Reliability::selective_repeat() };
    let mut board = Scoreboard::new(10, &reliability);
    let at = |ms| Time::ZERO + Duration::from_millis(ms);
    (0..10).for_each(|sequence| {
        board.on_sent(sequence, at(u64::from(sequence)));
    });
    // RFC 8985 §6.2: with three segments sacked and no reordering the window is zero. Taken in the order of
    // the option, 4 and 2 would seem to arrive after 6.
    assert_eq!(board.on_ack(0, &[(6, 7), (4, 5), (2, 3)], at(106), Time::NEVER).lost, 4);
}

#[test]
fn data_in_flight_follows_the_count_of_received_segments() {
    let mut board = board(Recovery::SelectiveRepeat, None, 0);
    board.count_received();
    send(&mut board, 10);
    assert_eq!(board.on_report(4), 4);
    board.on_ack(2, &[(5, 6)], NOW, NOW);
    assert_eq!(board.in_flight(), 6, "the receiver has two more segments than the ACK names");
    assert_eq!((board.on_report(3), board.in_flight()), (0, 6), "an overtaken ACK");
    // A NACK, and a timeout of the oldest segment.
    board.on_nack(2, 7, NOW);
    assert_eq!(board.in_flight(), 5);
    board.on_segment_timeout();
    assert_eq!((board.in_flight(), board.candidate()), (4, Some((2, false))));
    // Segment 2 was late and is not lost: it counts again.
    board.on_ack(3, &[], NOW, NOW);
    assert_eq!((board.in_flight(), board.candidate()), (5, Some((7, false))));
}
