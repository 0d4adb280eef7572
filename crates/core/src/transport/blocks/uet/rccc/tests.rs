//! Tests of RCCC.

use super::*;
use crate::transport::fixture::inbound_flow;

const PACKET: Bytes = Bytes(4160);
/// Initial credit in the runs of htsim: 1.5 bandwidth-delay products.
const MOST: u64 = 263_016;

fn pacer() -> PullPacer {
    PullPacer::new(Rate::from_gbps(100), 0.99, Bytes(16_384), MOST)
}

fn start(pacer: &mut PullPacer, flow: FlowNumber, wanted: u32) {
    pacer.on_start(Time::ZERO, &inbound_flow(flow, flow, 1_000));
    pacer.on_arrival(Time::ZERO, flow, Arrival::Data { number: wanted, is_new: true });
}

/// Returns the next pull as flow, granted quanta and slowness.
fn pull(pacer: &mut PullPacer, now: Time) -> Option<(FlowNumber, u32, bool)> {
    let (flow, credit) = pacer.next_credit(now, &|_, from| from)?;
    Some((flow, credit.number, credit.class > 0))
}

#[test]
fn credits_are_those_of_htsim_event_by_event() {
    let mut pacer = pacer();
    start(&mut pacer, 1, 0);
    let mut credit = SenderCredit::new(MOST, PACKET);
    // A lone flow of 512 packets.
    let mut unsent = 512 * PACKET.0;
    for (number, row) in include_str!("lone.csv").lines().enumerate().skip(1) {
        let fields: Vec<&str> = row.split(',').collect();
        let [at, bytes, quanta, granted] =
            [1, 2, 3, 4].map(|column| fields[column].parse::<i64>().unwrap_or_default());
        match fields[0] {
            "sent" => {
                assert!(credit.may_send(), "row {number}");
                credit.on_sent(PACKET);
                unsent -= PACKET.0;
                assert_eq!(credit.bytes(), bytes, "row {number}");
                assert_eq!(i64::from(credit.target(unsent, u64::MAX, 1)), quanta, "row {number}");
            }
            "answer" => credit.on_answer(),
            "pull" => {
                credit.on_pull(granted as u32);
                assert_eq!(credit.bytes(), bytes, "row {number}");
            }
            _ => {
                let now = Time::ZERO + Duration(at.unsigned_abs());
                let arrival = Arrival::Data { number: quanta as u32, is_new: true };
                pacer.on_arrival(now, 1, arrival);
                let (_, number_granted, _) = pull(&mut pacer, now).expect("a pull");
                assert_eq!(i64::from(number_granted), granted, "row {number}");
            }
        }
    }
}

#[test]
fn flows_that_want_credit_share_it_in_turn() {
    let mut pacer = pacer();
    (1..=3).for_each(|flow| start(&mut pacer, flow, 150));
    let mut now = Time::ZERO;
    let mut turns = Vec::new();
    for _ in 0..9 {
        turns.push(pull(&mut pacer, now).unwrap());
        assert_eq!(pull(&mut pacer, now), None);
        now = pacer.next_timer();
    }
    let round = |granted| (1..=3).map(move |flow| (flow, granted, false));
    assert_eq!(turns, round(64).chain(round(128)).chain(round(150)).collect::<Vec<_>>());
    // 64, 64 and 22 quanta of 256 B for each at 0.99 of 100 Gb/s.
    let packets = (3 * 150 * 256 * 80) as f64 / 0.99;
    assert!((now.seconds() * 1e12 / packets - 1.0).abs() < 1e-4, "{now:?}");
}

#[test]
fn idle_flows_get_credit_up_to_the_largest_window() {
    let mut pacer = pacer();
    start(&mut pacer, 1, 64);
    start(&mut pacer, 2, 64);
    pacer.on_end(Time::ZERO, 2);
    let mut granted = Vec::new();
    while let now = pacer.next_timer()
        && now < Time::NEVER
    {
        granted.push(pull(&mut pacer, now).unwrap());
    }
    assert!(granted.iter().skip(1).all(|turn| turn.2), "slow pulls follow");
    assert_eq!(granted.last(), Some(&(1, 64 + 17 * 64, true)));
    // A trimmed packet, or a request, makes the flow active: its pull repeats the credit.
    pacer.on_arrival(Time::ZERO, 1, Arrival::Trimmed { number: 64 });
    let now = pacer.next_timer();
    assert_eq!(pull(&mut pacer, now), Some((1, 64 + 17 * 64, false)));
}
