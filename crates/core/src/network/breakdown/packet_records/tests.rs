//! Tests of the records of packets.

use super::*;
use crate::breakdown::Breakdown;
use crate::model::packet::{Format, Kind};
use crate::network::breakdown::hop_log::HopLog;
use crate::network::breakdown::packet_log::{Candidates, LossCause};

fn packet(kind: Kind, sent_at: u64) -> Packet {
    let format: Format = crate::base::schema::defaults();
    format.control(kind, 0, Time(sent_at))
}

fn hop(starts: u64, stamps: bool) -> Hop {
    let (transmission, propagation) = (Duration(100), Duration(7));
    Hop { starts: Time(starts), totals: None, transmission, propagation, stamps }
}

/// The journey of a packet that did not wait.
fn journey(hops: u64) -> PathDelays {
    let waits = [[Duration::ZERO; 5]; 3];
    PathDelays::new(&waits, Duration(100 * hops), Duration(7 * hops))
}

#[test]
fn a_packet_gets_its_timestamp_back_when_it_is_delivered() {
    let mut records = PacketRecords::default();
    let mut data = packet(Kind::Data, 12_345);
    records.send(&mut data, BreakdownRef::default());
    assert_ne!(data.sent_at, Time(12_345), "the packet carries the number of its record");
    set_waited(&mut data, true);
    assert!(has_waited(&data));
    records.hop(&mut data, &hop(50, false));
    records.deliver(&mut data, Time::ZERO);
    assert_eq!(data.sent_at, Time(12_345));
    assert_eq!(records.take().map(|arrival| arrival.delays), Some(journey(1)));
    records.clear();
    records.assert_empty();
}

#[test]
fn a_timestamp_that_the_link_sets_is_recorded() {
    let mut records = PacketRecords::default();
    let mut data = packet(Kind::Data, 1);
    records.send(&mut data, BreakdownRef::default());
    records.hop(&mut data, &hop(50, true));
    records.hop(&mut data, &hop(60, false));
    records.deliver(&mut data, Time::ZERO);
    assert_eq!(data.sent_at, Time(50));
}

#[test]
fn an_answer_continues_the_record_of_its_packet() {
    let mut records = PacketRecords::default();
    let mut data = packet(Kind::Data, 1);
    let breakdown = Breakdown::default();
    let account = records.accounts.add(breakdown);
    records.send(&mut data, account);
    records.hop(&mut data, &hop(10, false));
    records.deliver(&mut data, Time::ZERO);
    assert_eq!(records.finish().map(|finish| finish.delays), Some(journey(1)));
    // The answer is delayed by 30.
    let kept = records.keep().unwrap();
    assert!(records.take().is_none(), "no packet is being delivered");
    records.resume(kept, Duration(30));
    let mut ack = packet(Kind::Ack, 1);
    records.answer(&mut ack);
    records.clear();
    records.hop(&mut ack, &hop(200, false));
    records.deliver(&mut ack, Time::ZERO);
    let arrival = records.take().unwrap();
    assert_eq!((arrival.delays, arrival.receiver), (journey(2), Duration(30)));
    records.accounts.release(arrival.breakdown);
    records.clear();
    records.assert_empty();
}

#[test]
fn an_answer_to_a_packet_without_a_record_starts_a_new_one() {
    let mut records = PacketRecords::default();
    let mut ack = packet(Kind::Ack, 9);
    records.answer(&mut ack);
    records.hop(&mut ack, &hop(200, false));
    records.deliver(&mut ack, Time::ZERO);
    assert_eq!(ack.sent_at, Time(9));
    assert_eq!(records.take().map(|arrival| arrival.delays), Some(journey(1)));
    records.clear();
    records.assert_empty();
}

#[test]
fn an_exported_record_continues_in_the_other_partition() {
    let [mut here, mut there] = [(); 2].map(|()| PacketRecords::default());
    let (mut other, mut data) = (packet(Kind::Data, 5), packet(Kind::Data, 6));
    there.send(&mut other, BreakdownRef::default());
    here.send(&mut data, BreakdownRef::default());
    here.hop(&mut data, &hop(10, false));
    let exported = here.export(&data, &hop(20, false));
    assert_eq!(exported.starts, Time(20));
    here.assert_empty();
    there.import(&mut data, exported);
    there.hop(&mut data, &hop(20, false));
    there.deliver(&mut data, Time::ZERO);
    assert_eq!(data.sent_at, Time(6));
    let arrival = there.take().unwrap();
    assert_eq!(arrival.delays, journey(2));
    there.accounts.release(arrival.breakdown);
    there.clear();
    there.lose(&other, Fate::Lost(Time::ZERO, 0, LossCause::Queue));
    there.assert_empty();
}

#[test]
fn a_header_that_turns_back_leaves_no_begin_of_a_wait_behind() {
    let (near, far) = (3, 4);
    let log = PacketLog::new(Candidates::default(), Some(HopLog::new(&[near, far], 10)));
    let mut records = PacketRecords::new(Some(log));
    let mut header = packet(Kind::Trimmed, 0);
    records.send(&mut header, BreakdownRef::default());
    records.log(&header, (0, 0), Sending::of_control(Time::ZERO));
    records.log_wait(&header, HopBegin { came: Time(20), queue: 64 });
    records.turn_back(&mut header);
    // It finds no queue at the next link.
    let begin = HopBegin { came: Time(50), queue: 0 };
    records.log_pass(&header, far, begin, Some(begin.came));
    let (_, hops) = records.log.take().unwrap().into_parts();
    assert_eq!(hops.iter().map(|hop| (hop.link, hop.begin)).collect::<Vec<_>>(), [(far, begin)]);
}
