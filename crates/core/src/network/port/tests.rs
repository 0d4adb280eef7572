//! Tests of a port with a manual clock.

use super::*;
use crate::base::units::{Bytes, Duration, Rate};
use crate::model::graph::Loss;
use crate::model::packet::Format;
use crate::queueing::blocks::tail_drop::TailDrop;
use crate::queueing::{Admission, Fifo, Limit};

/// A link that transmits a byte in a nanosecond, with a delay of 500 ns.
fn link() -> Link {
    Link {
        from: 0,
        to: 1,
        rate: Rate::from_gbps(8),
        trace: None,
        delay: Duration::from_nanos(500),
        delays: None,
        loss: Loss::None,
    }
}

fn tail_drop(capacity: Option<Limit>) -> Box<dyn Admission> {
    Box::new(TailDrop(capacity))
}

const CONFIG: PortConfig = PortConfig {
    passing: Passing::Control,
    is_awaited: false,
    stamps: false,
    keeps_account: false,
    has_telemetry: false,
    time_unit: Duration::ZERO,
};

fn port_with(config: PortConfig, queue: PortQueue) -> Port {
    Port::new(&link(), vec![queue], &[1], None, config, Random::new(1, "port"), Losses::None)
}

/// A port with a FIFO queue, which permits lazy service.
fn fifo(is_awaited: bool) -> Port {
    port_with(PortConfig { is_awaited, ..CONFIG }, PortQueue::OnArrival(tail_drop(None)))
}

fn at(ns: u64) -> Time {
    Time::ZERO + Duration::from_nanos(ns)
}

/// A packet of 1000 B, which takes 1000 ns.
fn data(sequence: u32) -> Packet {
    Packet { sequence, bytes: 1_000, ..control(Kind::Data) }
}

/// A packet of 40 B, which takes 40 ns.
fn control(kind: Kind) -> Packet {
    let format: Format = crate::base::schema::defaults();
    format.control(kind, 0, Time::ZERO)
}

fn enqueue(port: &mut Port, mut packet: Packet, now: u64) -> PortOutcome {
    let mut rejects = Rejects::default();
    let outcome = port.enqueue(&mut packet, 0, at(now), &mut rejects);
    assert!(rejects.is_empty(), "{rejects:?}");
    outcome
}

fn serve(port: &mut Port, now: u64) -> Option<Transmission> {
    port.serve(at(now), &mut Rejects::default()).map(|(_, transmission)| transmission)
}

/// Kinds of the packets that have arrived by the end, in order.
fn arrivals(port: &mut Port) -> Vec<(Kind, u32)> {
    let in_flight = port.arrivals(at(1_000_000), Time::NEVER).count();
    (0..in_flight).map(|_| port.take()).map(|packet| (packet.kind, packet.sequence)).collect()
}

#[test]
fn a_lazy_port_transmits_back_to_back_without_calls() {
    let mut port = fifo(false);
    let PortOutcome::Started(first) = enqueue(&mut port, data(0), 0) else { panic!("idle") };
    assert_eq!((first.ends, first.arrives, first.is_first), (at(1_000), at(1_500), true));
    assert_eq!(enqueue(&mut port, data(1), 0), PortOutcome::Waits);
    assert_eq!(enqueue(&mut port, data(2), 10), PortOutcome::Waits);
    assert_eq!(port.next_call(at(10)), None);
    assert_eq!(port.backlog(at(999)).packets, 2);
    assert_eq!(port.backlog(at(1_000)).packets, 1);
    assert_eq!(port.transmitted(at(1_999)), 2_000);
    let arrive: Vec<Time> = port.arrivals(at(2_000), at(3_500)).map(|f| f.arrives).collect();
    assert_eq!(arrive, [at(1_500), at(2_500)], "the third arrives at the end");
    assert_eq!(port.close(at(4_000)), 3);
    // 2 packets wait for 1000 ns, the second of them from 10 ns on, and 1 for another 1000 ns.
    assert_eq!(port.counters.queue_area, (990 * 1_000 + 1_000 * 1_000 + 1_000 * 1_000) * 1_000);
    assert_eq!((port.counters.queue_max, port.counters.departed), (2_000, 3));
}

#[test]
fn without_packets_in_flight_no_transmission_is_overdue() {
    let mut port = fifo(false);
    enqueue(&mut port, data(0), 0);
    port.take();
    assert_eq!(enqueue(&mut port, data(1), 100), PortOutcome::Waits);
    assert_eq!(port.backlog(at(5_000)).packets, 1, "an arrival would have accessed the port");
    port.cut();
    assert_eq!(port.backlog(at(5_000)).packets, 0, "another partition collects the packet");
}

#[test]
fn departures_of_a_fifo_queue_are_predicted() {
    let mut port = fifo(true);
    let departs = |outcome: PortOutcome| outcome.departs();
    assert_eq!(departs(enqueue(&mut port, data(0), 0)), Some(at(1_000)));
    assert_eq!(enqueue(&mut port, data(1), 0), PortOutcome::WaitsUntil(at(2_000)));
    assert_eq!(enqueue(&mut port, data(2), 1_500), PortOutcome::WaitsUntil(at(3_000)));
    assert_eq!(departs(enqueue(&mut port, data(3), 9_000)), Some(at(10_000)));
}

#[test]
fn predictions_survive_a_pause_and_later_departures_are_reported() {
    let mut port = fifo(true);
    for sequence in 0..3 {
        enqueue(&mut port, data(sequence), 0);
    }
    port.pause(0, at(100));
    assert_eq!(enqueue(&mut port, data(3), 200), PortOutcome::Queued);
    assert_eq!((serve(&mut port, 1_000), port.next_call(at(1_000))), (None, None));
    port.resume(0, at(5_000));
    let mut reported = Vec::new();
    let mut now = 5_000;
    while let Some(transmission) = serve(&mut port, now) {
        reported.push(transmission.is_reported);
        assert_eq!(transmission.ends, at(now + 1_000));
        now += 1_000;
    }
    assert_eq!(reported, [false, false, true]);
    assert!(port.is_eager());
    assert_eq!(port.next_call(at(now)), None);
    assert!(!port.is_eager(), "the queue is empty");
    assert_eq!(port.pauses()[0].total, Duration::from_nanos(4_900));
    assert_eq!(port.close(at(now)), 4);
}

#[test]
fn an_awaited_port_without_predictions_is_called_and_reports_departures() {
    let queue = PortQueue::OnDeparture(Box::new(Fifo::new(tail_drop(None))));
    let mut port = port_with(PortConfig { is_awaited: true, ..CONFIG }, queue);
    for sequence in 0..2 {
        assert_eq!(enqueue(&mut port, data(sequence), 0), PortOutcome::Queued);
        let transmission = serve(&mut port, 0);
        assert_eq!(transmission.map(|t| t.is_reported), (sequence == 0).then_some(true));
    }
    assert_eq!(port.next_call(at(0)), Some(at(1_000)));
    assert_eq!(port.next_call(at(10)), None, "a call is pending");
    port.on_call();
    let (packet, transmission) = port.serve(at(1_000), &mut Rejects::default()).unwrap();
    assert_eq!((packet, transmission.ends), (data(1), at(2_000)));
    assert!(transmission.is_reported);
    assert_eq!(port.next_call(at(1_000)), None, "the queue is empty");
}

#[test]
fn control_packets_pass_data_and_frames_pass_both() {
    let mut port = fifo(false);
    enqueue(&mut port, data(0), 0);
    enqueue(&mut port, data(1), 0);
    enqueue(&mut port, control(Kind::Ack), 0);
    enqueue(&mut port, Packet { sequence: 7, ..control(Kind::Pause) }, 0);
    let order = [(Kind::Data, 0), (Kind::Pause, 7), (Kind::Ack, 0), (Kind::Data, 1)];
    assert_eq!(arrivals(&mut port), order);
    assert_eq!(port.close(at(2_000_000)), 0);
}

#[test]
fn a_frame_that_waits_can_be_taken_back() {
    let mut port = fifo(false);
    enqueue(&mut port, data(0), 0);
    enqueue(&mut port, Packet { sequence: 7, ..control(Kind::Pause) }, 0);
    assert!(!port.take_frame(8, at(10)));
    assert_eq!([7, 8].map(|lane| port.has_frame(lane, at(10))), [true, false]);
    assert!(port.take_frame(7, at(10)));
    assert!(!port.take_frame(7, at(10)));
    assert_eq!(arrivals(&mut port), [(Kind::Data, 0)]);
    assert_eq!((port.close(at(2_000_000)), port.counters.arrived), (0, 1));
}

#[test]
fn a_pause_stops_data_and_not_control_packets() {
    let mut port = fifo(false);
    port.pause(0, at(0));
    assert_eq!(enqueue(&mut port, data(0), 0), PortOutcome::Queued);
    assert_eq!(serve(&mut port, 0), None);
    assert_eq!(enqueue(&mut port, control(Kind::Ack), 10), PortOutcome::Queued);
    assert_eq!(serve(&mut port, 10).map(|t| t.ends), Some(at(50)));
    assert_eq!(port.backlog(at(900)), Backlog { bytes: 1_000, packets: 1 });
    port.resume(0, at(900));
    assert_eq!(port.backlog(at(900)).packets, 0);
    let arrive: Vec<Time> = port.arrivals(at(900), Time::NEVER).map(|f| f.arrives).collect();
    assert_eq!(arrive, [at(550), at(2_400)]);
}

#[test]
fn a_packet_beyond_the_capacity_is_dropped() {
    let capacity = Some(Limit::Bytes(1_500));
    let mut port = port_with(CONFIG, PortQueue::OnArrival(tail_drop(capacity)));
    let outcomes: Vec<PortOutcome> = (0..3).map(|n| enqueue(&mut port, data(n), 0)).collect();
    assert_eq!(outcomes[1..], [PortOutcome::Waits, PortOutcome::Dropped]);
    assert_eq!(enqueue(&mut port, control(Kind::Ack), 0), PortOutcome::Waits, "it passes data");
    assert_eq!((port.counters.arrived, port.counters.dropped), (4, 1));
    assert_eq!(port.close(at(0)), 3);
}

#[test]
fn a_watched_port_is_called_while_packets_wait() {
    let mut port = fifo(false);
    enqueue(&mut port, data(0), 0);
    enqueue(&mut port, data(1), 0);
    port.set_watched(true, at(300));
    assert_eq!(port.next_call(at(300)), Some(at(1_000)));
    assert_eq!(port.backlog(at(1_200)).packets, 1, "an eager port is not overdue");
    port.set_watched(false, at(1_200));
    assert_eq!(port.backlog(at(1_200)).packets, 0);
}

#[test]
fn packets_are_exported_with_overdue_transmissions() {
    let [mut port, mut other] = [false; 2].map(fifo);
    port.cut();
    for sequence in 0..3 {
        enqueue(&mut port, data(sequence), 0);
    }
    let mut arrive = Vec::new();
    let next = port.export(at(1_000), |flight, hop, _| {
        assert!(hop.is_none(), "hops are not recorded");
        arrive.push((flight.arrives, other.import(flight, Time::ZERO)));
    });
    assert_eq!(arrive, [(at(1_500), true), (at(2_500), false)]);
    assert_eq!(next, at(2_000), "the third transmission");
    assert_eq!(port.export(at(2_000), |_, _, _| ()), Time::NEVER);
    assert_eq!(other.next_arrival(), Some(at(1_500)));
    assert_eq!(arrivals(&mut other), [(Kind::Data, 0), (Kind::Data, 1)]);
}

#[test]
fn a_failed_link_loses_packets_in_flight_and_frames() {
    let mut port = fifo(false);
    port.may_fail();
    enqueue(&mut port, data(0), 0);
    assert!(!port.loses(&data(9), false));
    port.set_link_state(true, at(500));
    assert!(port.loses(&data(0), false), "it is in flight");
    assert!(port.loses(&control(Kind::Pause), false), "the link is down");
    port.set_link_state(false, at(1_000));
    assert!(port.loses(&data(0), false), "it is in flight when the link comes back");
    assert!(!port.loses(&data(1), false));
    assert_eq!((port.counters.lost, port.counters.cut_off), (3, 3));
}

#[test]
fn timestamps_are_set_when_the_transmission_starts() {
    let config = PortConfig { stamps: true, ..CONFIG };
    let mut port = port_with(config, PortQueue::OnArrival(tail_drop(None)));
    let mut ack = control(Kind::Ack);
    ack.sent_at = at(3);
    enqueue(&mut port, data(0), 10);
    enqueue(&mut port, data(1), 10);
    enqueue(&mut port, ack, 10);
    port.advance_to(at(1_000_000));
    let stamps: Vec<Time> = (0..3).map(|_| port.take().sent_at).collect();
    assert_eq!(stamps, [at(10), at(3), at(1_050)], "an ACK echoes the timestamp of its data");
}

#[test]
fn sizes_of_packets_do_not_mix_their_durations() {
    let mut port = fifo(false);
    let mut now = 0;
    for bytes in [1_000_u16, 40, 500, 40, 1_000, 500] {
        let packet = Packet { bytes, ..data(0) };
        let PortOutcome::Started(transmission) = enqueue(&mut port, packet, now) else {
            panic!("the port is idle")
        };
        assert_eq!(transmission.ends, at(now + u64::from(bytes)));
        assert_eq!(link().rate.transmit(Bytes(u64::from(bytes))).0, u64::from(bytes) * 1_000);
        now += u64::from(bytes);
    }
}
