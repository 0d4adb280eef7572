//! Tests of grants, priorities and cutoffs.

use super::*;
use crate::base::schema::Parameter;
use crate::base::units::Rate;
use crate::transport::fixture::{OUTGOING, credit_host, inbound_flow};
use serde_json::json;

const FORMAT: Format = Format {
    payload: Bytes(1460),
    header: Bytes(40),
    ack: Bytes(40),
    syn: None,
    credit: None,
    sack: false,
    time_unit: Duration::ZERO,
};
/// Cutoffs for the sizes of W3: with them, four priorities are for granted packets.
const W3: [u64; 3] = [433, 2339, 6756];
/// Time of a full packet at 10 Gb/s.
const PACKET: Duration = Duration(1_200_000);

fn scheduler(config: &serde_json::Value) -> Box<dyn CreditScheduler> {
    let host = credit_host(FORMAT);
    Config::read(config).unwrap().credit_scheduler(&host).unwrap()
}

/// Returns all credits that are issued at a time, as (flow, number, class), if no segment is missing.
fn grants(scheduler: &mut dyn CreditScheduler, now: Time) -> Vec<(FlowNumber, u32, u8)> {
    let mut grants = Vec::new();
    while let Some((flow, credit)) = scheduler.next_credit(now, &|_, _| u32::MAX) {
        assert_eq!(credit.segment, u32::MAX);
        grants.push((flow, credit.number, credit.class));
    }
    grants
}

/// Starts a message of a sender, and delivers this number of its packets.
fn start(scheduler: &mut dyn CreditScheduler, flow: FlowNumber, source: HostId, segments: u32) {
    scheduler.on_start(Time::ZERO, &inbound_flow(flow, source, segments));
    scheduler.on_arrival(Time::ZERO, flow, Arrival::Data { number: 0, is_new: true });
}

#[test]
fn as_many_of_the_lowest_priorities_are_used_as_messages_are_granted() {
    // Seven packets without grants; four priorities for granted packets.
    let mut scheduler = scheduler(&json!({ "cutoffs": W3 }));
    start(&mut *scheduler, 0, 0, 100);
    assert_eq!(grants(&mut *scheduler, Time::ZERO), [(0, 8, 7)]);
    start(&mut *scheduler, 1, 1, 50);
    assert_eq!(grants(&mut *scheduler, Time::ZERO), [(1, 8, 6)]);
    for (flow, segments) in [(2, 60), (3, 70), (4, 80)] {
        start(&mut *scheduler, flow, flow, segments);
    }
    // The fifth message, the longest, waits.
    assert_eq!(grants(&mut *scheduler, Time::ZERO), [(2, 8, 5), (3, 8, 6), (4, 8, 7)]);
    scheduler.on_end(Time::ZERO, 1);
    scheduler.on_arrival(Time::ZERO, 0, Arrival::Data { number: 0, is_new: true });
    assert_eq!(grants(&mut *scheduler, Time::ZERO + PACKET), [(0, 9, 7)]);
}

#[test]
fn a_sender_has_one_granted_message_and_grants_are_a_packet_time_apart() {
    let mut scheduler = scheduler(&json!({ "cutoffs": W3 }));
    start(&mut *scheduler, 0, 0, 100);
    start(&mut *scheduler, 1, 0, 50);
    scheduler.on_arrival(Time::ZERO, 1, Arrival::Data { number: 0, is_new: true });
    assert_eq!(grants(&mut *scheduler, Time::ZERO), [(1, 8, 7)]);
    assert_eq!(scheduler.next_timer(), Time::ZERO + PACKET);
    assert_eq!(grants(&mut *scheduler, Time::ZERO + PACKET), [(1, 9, 7)]);
    // Seven packets are granted and have not arrived.
    assert_eq!(grants(&mut *scheduler, Time::ZERO + PACKET * 2), []);
}

#[test]
fn the_last_packets_have_the_priority_that_they_would_have_without_grants() {
    for (tail_boost, class) in [(true, 3), (false, 7)] {
        let mut scheduler = scheduler(&json!({ "cutoffs": W3, "tail_boost": tail_boost }));
        start(&mut *scheduler, 0, 0, 14);
        assert_eq!(grants(&mut *scheduler, Time::ZERO), [(0, 8, class)]);
    }
    // The last packet has a payload of 100 B.
    let mut scheduler = scheduler(&json!({ "cutoffs": W3 }));
    let size = Some(Bytes(7 * 1460 + 100));
    scheduler.on_start(Time::ZERO, &InboundFlow { size, ..inbound_flow(0, 0, 8) });
    scheduler.on_arrival(Time::ZERO, 0, Arrival::Data { number: 0, is_new: true });
    assert_eq!(grants(&mut *scheduler, Time::ZERO), [(0, 8, 0)]);
}

#[test]
fn a_silent_sender_is_asked_for_what_was_granted_and_is_missing() {
    let mut scheduler = scheduler(&json!({ "resend_interval": "1 ms" }));
    start(&mut *scheduler, 0, 0, 100);
    grants(&mut *scheduler, Time::ZERO);
    let due = scheduler.next_timer();
    assert_eq!(due, Time::ZERO + Duration::from_millis(1));
    // The receiver has segments 0 and 2 of eight.
    let missing = |_, from: u32| from.max(1) + u32::from(from == 2);
    let mut resends = Vec::new();
    while let Some((_, Credit { number, segment, class })) = scheduler.next_credit(due, &missing) {
        resends.push((number, segment, class));
    }
    assert_eq!(resends, [1, 3, 4, 5, 6, 7].map(|segment| (8, segment, 0)));
    assert_eq!(scheduler.next_timer(), due + Duration::from_millis(2));
}

#[test]
fn resends_within_the_base_rtt_give_a_warning() {
    let config = Config::read(&json!({ "rtt_bytes": "20 ms" })).unwrap();
    let warnings = |delay| {
        let extent = Extent::new(Duration::from_micros(delay), [(Rate::from_gbps(10), 2)]);
        config.warnings(&extent, &FORMAT)
    };
    assert_eq!(warnings(2_400), [""; 0]);
    let warning = &warnings(2_500)[0];
    assert!(warning.starts_with("resend_interval: 5 ms is less than the base RTT"), "{warning}");
}

#[test]
fn a_request_repeats_what_was_granted_only_if_no_data_arrives() {
    let at = |ms| Time::ZERO + Duration::from_millis(ms);
    let mut scheduler = scheduler(&json!({ "resend_interval": "5 ms" }));
    start(&mut *scheduler, 0, 0, 7);
    let resends = |scheduler: &mut dyn CreditScheduler, now| {
        std::iter::from_fn(|| scheduler.next_credit(now, &|_, from| from.max(2))).count()
    };
    // Packets wait in a queue, which the request passes.
    scheduler.on_arrival(at(3), 0, Arrival::Data { number: 0, is_new: true });
    scheduler.on_arrival(at(4), 0, Arrival::Request { number: 0 });
    assert_eq!(resends(&mut *scheduler, at(4)), 0);
    assert_eq!(scheduler.next_timer(), at(8));
    // None have arrived for 5 ms, and again for 10 ms, unless the sender requests credit.
    assert_eq!(resends(&mut *scheduler, at(8)), 5);
    assert_eq!(scheduler.next_timer(), at(18));
    scheduler.on_arrival(at(14), 0, Arrival::Request { number: 0 });
    assert_eq!(resends(&mut *scheduler, at(14)), 5);
}

#[test]
fn waits_before_resends_double_until_new_data_arrives() {
    let config = json!({ "resend_interval": "1 ms", "reliability": { "max_rto": "3 ms" } });
    let mut scheduler = scheduler(&config);
    start(&mut *scheduler, 0, 0, 1);
    assert_eq!(grants(&mut *scheduler, Time::ZERO), []);
    let mut now = Time::ZERO;
    for wait in [1, 2, 3, 3] {
        now = now + Duration::from_millis(wait);
        assert_eq!(scheduler.next_timer(), now);
        let resends = std::iter::from_fn(|| scheduler.next_credit(now, &|_, from| from));
        assert_eq!(resends.count(), 1);
    }
    // A copy of a packet does not count.
    for (is_new, wait) in [(false, 3), (true, 1)] {
        scheduler.on_arrival(now, 0, Arrival::Data { number: 0, is_new });
        grants(&mut *scheduler, now);
        assert_eq!(scheduler.next_timer(), now + Duration::from_millis(wait));
    }
}

#[test]
fn a_sender_uses_the_priorities_of_remaining_bytes_then_of_grants_and_the_highest_for_resends() {
    let path = Path::new(Rate::from_gbps(10), Duration::from_micros(10), FORMAT);
    let size = Some(Bytes(1460 * 10));
    let mut flow =
        Config::read(&json!({ "cutoffs": W3 })).unwrap().controller(&Path { size, ..path });
    let header = |flow: &dyn Controller, segment: u64| {
        flow.header(&OutgoingPacket { offset: Bytes(segment * 1460), ..OUTGOING })
    };
    assert_eq!(flow.allowance(), Allowance::granted(7));
    assert_eq!(header(&*flow, 0), Header::Credit { number: 7, class: 3 });
    assert_eq!(header(&*flow, 6), Header::Credit { number: 7, class: 2 });
    flow.on_credit(Time::ZERO, &Credit { number: 9, segment: u32::MAX, class: 5 }, false);
    // An earlier grant that was overtaken.
    flow.on_credit(Time::ZERO, &Credit { number: 8, segment: u32::MAX, class: 6 }, false);
    assert_eq!(flow.allowance(), Allowance::granted(9));
    assert_eq!(header(&*flow, 8), Header::Credit { number: 9, class: 5 });
    let again = OutgoingPacket { offset: Bytes(7 * 1460), is_retransmit: true, ..OUTGOING };
    assert_eq!(flow.header(&again), Header::Credit { number: 9, class: 0 });
}

#[test]
fn more_priorities_than_there_are_give_an_error() {
    for (config, message) in [
        (json!({ "priorities": 9 }), "priorities: must be from 2 to 8, not 9"),
        (
            json!({ "cutoffs": [1, 2, 3, 4, 5, 6, 7] }),
            "cutoffs: 7 cutoffs need 9 priorities, one of them for granted packets: give `cutoffs` with 6 at \
         most",
        ),
        (json!({ "cutoffs": [2, 2] }), "cutoffs: must ascend"),
    ] {
        assert_eq!(Config::read(&config).unwrap_err().to_string(), message);
    }
}

/// Returns the sizes of a table at 100 000 equal steps of probability.
fn sizes(table: &str) -> Vec<Bytes> {
    let rows = table.lines().filter(|line| !line.starts_with(['#', 'b']));
    let mut rows = rows.map(|row| row.split_once(',').unwrap());
    let mut row =
        || rows.next().map(|(size, p)| (size.parse().unwrap(), p.parse::<f64>().unwrap()));
    let mut next = row().unwrap();
    let size = |step: u32| {
        while next.1 < (f64::from(step) + 0.5) / 1e5 {
            next = row().unwrap();
        }
        Bytes(next.0)
    };
    (0..100_000).map(size).collect()
}

#[test]
fn cutoffs_of_the_documentation_divide_the_bytes_evenly() {
    // Six full packets of 1538 B and a shorter one are 10 000 B; a packet is at most 1442 B of payload.
    let format =
        Format { payload: Bytes(1442), header: Bytes(96), credit: Some(Bytes(84)), ..FORMAT };
    let [w1, w2, w3] = [
        include_str!("../../../traffic/cdf/homa_w1.csv"),
        include_str!("../../../traffic/cdf/homa_w2.csv"),
        include_str!("../../../traffic/cdf/homa_w3.csv"),
    ];
    let load = |table| cutoffs::Load::of(&sizes(table), 7, true, &format);
    assert_eq!(load(w1).cutoffs(7), [11, 131, 280, 489, 794, 1360]);
    // Figure J4 has fewer priorities.
    assert_eq!(load(w1).cutoffs(4), [95, 376, 903]);
    assert_eq!(load(w1).cutoffs(2), [376]);
    assert_eq!(load(w2).cutoffs(5), [269, 366, 512, 1463]);
    // [433, 2339, 6756] with a seventh packet of 676 B of payload.
    assert_eq!(load(w3).cutoffs(4), [433, 2424, 7081]);
    // Packets without grants carry shares of 0.996, 0.8 and 0.32 of the bytes.
    assert_eq!([w1, w2, w3].map(|table| load(table).levels(8)), [7, 6, 3]);
}

#[test]
fn equal_messages_share_a_priority() {
    let cutoffs = |sizes: &[Bytes]| {
        let load = cutoffs::Load::of(sizes, 1, false, &FORMAT);
        load.cutoffs(load.levels(8))
    };
    assert!(cutoffs(&[]).is_empty());
    assert!(cutoffs(&[Bytes(1460)]).is_empty());
    assert_eq!(cutoffs(&[[Bytes(100); 10], [Bytes(1460); 10]].concat()), [0; 0]);
    assert_eq!(cutoffs(&[[Bytes(100); 15], [Bytes(1460); 15]].concat()[..16]), [100]);
}
