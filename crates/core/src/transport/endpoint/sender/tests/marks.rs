//! Marks: how often they are answered, and how the window shrinks.

use super::*;

#[test]
fn the_window_shrinks_in_proportion_after_a_mark_and_does_not_grow_meanwhile() {
    let shrinks = json!({
        "reliability": { "proportional_reduction": true }, "window": { "initial": 20 }, "ecn": true,
    });
    let mut tcp = tcp("rack", &shrinks);
    tcp.sent(0);
    tcp.hear(100, 1, (0, 0), Flags::MARKED);
    assert_window(&tcp, 10.0);
    let mut sent = vec![tcp.sent(100).len()];
    sent.extend((2..=20).map(|to| tcp.ack(101, to).len()));
    assert_eq!(sent[..7], [1, 0, 1, 0, 1, 0, 1], "{sent:?}");
    assert_eq!(sent.iter().sum::<usize>(), 10, "half of what comes");
    assert_window(&tcp, 10.0 + 1.0 / 10.0);
}

#[test]
fn counted_marks_are_answered_once_a_window_and_by_no_flag() {
    let counts = json!({
        "reliability": { "accurate_ecn": true }, "window": { "initial": 20 }, "ecn": true,
    });
    let mut tcp = tcp("selective_repeat", &counts);
    tcp.sent(0);
    let hear = |tcp: &mut Tcp, cumulative, marks| {
        tcp.hear(100, cumulative, (0, 0), Flags::NONE.with_count(marks));
        assert!(tcp.segments(100).iter().all(|segment| !segment.has_reduced));
        tcp.window()
    };
    assert!(hear(&mut tcp, 1, 0) > 20.0);
    let halved = hear(&mut tcp, 2, 1);
    assert!((10.0..11.0).contains(&halved));
    // What ACKs have told already is not told again; more marks are, but not answered in this window.
    let grown = hear(&mut tcp, 3, 1);
    assert!(grown > halved);
    assert!((hear(&mut tcp, 4, 3) - grown).abs() < 1e-9);
    let next = tcp.sender.board.highest();
    hear(&mut tcp, next, 3);
    assert!(hear(&mut tcp, next + 1, 4) < 8.0, "the next window");
}
