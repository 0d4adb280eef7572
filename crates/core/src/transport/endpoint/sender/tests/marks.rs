//! ECN marks: the number of window reductions, and PRR.

use super::*;

#[test]
fn prr_reduces_the_window_after_a_mark_and_it_does_not_grow_meanwhile() {
    let with_prr = json!({
        "reliability": { "proportional_reduction": true }, "window": { "initial": 20 }, "ecn": true,
    });
    let mut tcp = tcp("rack", &with_prr);
    tcp.sent(0);
    tcp.ack_with(100, 1, (0, 0), Flags::MARKED);
    assert_window(&tcp, 10.0);
    let mut sent = vec![tcp.sent(100).len()];
    sent.extend((2..=20).map(|to| tcp.ack(101, to).len()));
    assert_eq!(sent[..7], [1, 0, 1, 0, 1, 0, 1], "{sent:?}");
    assert_eq!(sent.iter().sum::<usize>(), 10, "half of the delivered segments");
    assert_window(&tcp, 10.0 + 1.0 / 10.0);
}

#[test]
fn a_loss_of_a_window_that_a_mark_has_reduced_does_not_reduce_it_again() {
    for (mark, expected) in [(Flags::MARKED, 5.0), (Flags::NONE, 5.5)] {
        let mut tcp = tcp("selective_repeat", &json!({ "ecn": true }));
        tcp.sent(0);
        tcp.ack_with(100, 1, (0, 0), mark);
        tcp.sent(100);
        // Segment 1 is lost. It was sent before the mark arrived.
        (3..=6).for_each(|to| tcp.ack_with(101, 1, (2, to), Flags::NONE));
        assert!(tcp.sender.scoreboard.is_recovering());
        assert_window(&tcp, expected);
    }
}

#[test]
fn a_loss_after_the_window_of_a_mark_reduces_it_again() {
    let mut tcp = tcp("selective_repeat", &json!({ "ecn": true }));
    tcp.sent(0);
    tcp.ack_with(100, 1, (0, 0), Flags::MARKED);
    tcp.ack_with(101, 10, (0, 0), Flags::NONE);
    assert_eq!(tcp.sent(101), [10, 11, 12, 13, 14]);
    // Segment 10 was sent after the reduction.
    (12..=15).for_each(|to| tcp.ack_with(200, 10, (11, to), Flags::NONE));
    assert_window(&tcp, 2.5);
}

#[test]
fn the_option_of_accurate_ecn_counts_marks_beyond_eight() {
    let accurate_ecn = json!({
        "reliability": { "accurate_ecn": true, "accurate_ecn_option": true },
        "window": { "initial": 40 }, "ecn": true,
    });
    let mut tcp = tcp("selective_repeat", &accurate_ecn);
    tcp.sent(0);
    let mut is_marked = |cumulative, marks| {
        let ack = tcp.format.control(Kind::Ack, 0, at(0));
        let flags = Flags::NONE.with_count(marks);
        let ack = Packet { sequence: cumulative, flags, ..ack }.with_header(Header::NONE);
        let options = AckOptions { blocks: [(0, 0); 3], marks, entropy: None };
        let (options, rtt) = (Some(&options).filter(|_| marks > 0), at(100) - at(0));
        tcp.sender.on_ack(at(100), &ack, options, rtt, &mut *tcp.controller)
    };
    assert!(!is_marked(9, 0), "nine packets without a mark");
    assert!(is_marked(10, 1));
    assert!(is_marked(18, 9), "the field of three bits is 1 as before");
    assert!(!is_marked(30, 9));
    assert!(!is_marked(30, 8), "overtaken by the ACK before");
}

#[test]
fn counted_marks_reduce_the_window_once_per_window_of_data_and_set_no_cwr() {
    let accurate_ecn = json!({
        "reliability": { "accurate_ecn": true }, "window": { "initial": 20 }, "ecn": true,
    });
    let mut tcp = tcp("selective_repeat", &accurate_ecn);
    tcp.sent(0);
    let window_after = |tcp: &mut Tcp, cumulative, marks| {
        tcp.ack_with(100, cumulative, (0, 0), Flags::NONE.with_count(marks));
        assert!(tcp.segments(100).iter().all(|segment| !segment.has_cwr));
        tcp.window()
    };
    assert!(window_after(&mut tcp, 1, 0) > 20.0);
    let halved = window_after(&mut tcp, 2, 1);
    assert!((10.0..11.0).contains(&halved));
    // An unchanged count reports no mark; a higher count does, but does not reduce this window again.
    let grown = window_after(&mut tcp, 3, 1);
    assert!(grown > halved);
    assert!((window_after(&mut tcp, 4, 3) - grown).abs() < 1e-9);
    let next = tcp.sender.scoreboard.highest();
    window_after(&mut tcp, next, 3);
    assert!(window_after(&mut tcp, next + 1, 4) < 8.0, "the next window");
}
