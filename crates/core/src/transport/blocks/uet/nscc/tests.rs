//! Tests of NSCC.

use super::*;
use proptest::prelude::*;

/// Network of the runs of htsim: a fat-tree of three tiers.
const SCALE: Scale = Scale {
    line_rate: Rate::from_gbps(100),
    base_rtt: Duration(14_027_520),
    target_delay: Duration(10_520_640),
    payload: Bytes(4096),
    packet: Bytes(4160),
};

/// Replays one flow of an incast in htsim and compares window and average delay with each answer.
fn replay(trace: &str) {
    let mut nscc = Nscc::new(SCALE);
    let mut now = Time::ZERO;
    for (number, row) in trace.lines().enumerate().skip(1) {
        let (kind, numbers) = row.split_once(',').unwrap();
        let numbers: Vec<u64> = numbers.split(',').map(|field| field.parse().unwrap()).collect();
        let &[after, rtt, bytes, in_flight, window, average] = &numbers[..] else {
            panic!("{row}")
        };
        now = now + Duration(after);
        let sample = (rtt > 0).then_some(Duration(rtt));
        match kind {
            "ack" => nscc.on_ack(now, sample, false, bytes, in_flight),
            "marked" => nscc.on_ack(now, sample, true, bytes, in_flight),
            _ => nscc.on_nack(now, Duration(rtt), bytes, in_flight, false),
        }
        assert_eq!((nscc.window(), nscc.average_delay), (window, average), "row {number}");
    }
}

#[test]
fn windows_are_those_of_htsim_answer_by_answer() {
    replay(include_str!("incast_4.csv"));
    replay(include_str!("incast_16.csv"));
}

#[test]
fn losses_show_beyond_one_and_a_half_windows_and_five_packets_at_least() {
    let mut nscc = Nscc::new(SCALE);
    // A window of 263 016 bytes is the largest one.
    assert_eq!((nscc.loss_bounds().reordered, nscc.loss_bounds().window), (64, 64));
    (0..40).for_each(|_| nscc.on_timeout(4160));
    let window = 263_016 - 40 * 4160;
    assert_eq!(nscc.loss_bounds().reordered, (3 * window / 2 / 4096) as u32);
    (0..40).for_each(|_| nscc.on_timeout(4160));
    assert_eq!((nscc.loss_bounds().reordered, nscc.loss_bounds().window), (5, 1));
    nscc.on_ack(Time(1), Some(Duration::ZERO), false, 4160, 0);
    assert_eq!(nscc.loss_bounds().base_rtt, Duration(332_800), "the transmission of a packet");
}

proptest! {
    #[test]
    fn the_window_is_between_a_packet_and_the_largest_window(
        answers in prop::collection::vec(
            (1_u64..40_000_000, 13_000_000_u64..80_000_000, 0_u8..4, 0_u64..17_000), 1..300,
        ),
    ) {
        let mut nscc = Nscc::new(SCALE);
        let mut now = Time::ZERO;
        let mut last_decrease = Time::ZERO;
        let mut base_rtt = SCALE.base_rtt;
        for (after, rtt, kind, bytes) in answers {
            now = now + Duration(after);
            let (before, rtt) = (nscc.window(), Duration(rtt));
            match kind {
                0 => nscc.on_nack(now, rtt, 4160, before, false),
                1 => nscc.on_timeout(4160),
                _ => nscc.on_ack(now, Some(rtt), kind == 2, bytes, before),
            }
            prop_assert!((4160..=SCALE.largest_window(SCALE.base_rtt)).contains(&nscc.window()));
            prop_assert!(nscc.base_rtt <= base_rtt, "the base RTT never grows");
            if nscc.last_decrease != last_decrease {
                let is_first = last_decrease == Time::ZERO;
                prop_assert!(is_first || nscc.last_decrease - last_decrease > nscc.base_rtt);
                last_decrease = nscc.last_decrease;
            }
            base_rtt = nscc.base_rtt;
        }
    }
}
