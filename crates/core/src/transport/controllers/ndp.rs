//! NDP: a first window at line rate, trimmed packets, and pulls of the receiving host for all later packets.
//!
//! Source: [ndp17]; for the pace of pulls, and their order among flows, the public simulators htsim. A flow
//! sends its first window at once. Each packet that arrives, whole or trimmed, is acknowledged or refused
//! (NACK), and earns the flow a pull. The receiving host sends pulls at the pace of its link, to its flows in
//! turn. A pull permits a packet: one that was trimmed, or else the next.
//!
//! The packet of a header that returns waits for a pull, unless the sender expects none, or most of its last
//! packets arrived: then only the path was bad.
//!
//! Deviations: a pull is always a packet of its own; and the receiver pulls lost segments again when the
//! sender requests it after a timeout.

use rustc_hash::FxHashMap;

use super::{
    Ack, Allowance, Arrival, Controller, Credit, CreditHost, CreditScheduler, CreditUse,
    InboundFlow, Mechanism, MissingSegments, OutgoingPacket, Path, Reliability, Transport,
};
use crate::base::product::Product;
use crate::base::schema::{defaults, positive, positive_fraction};
use crate::base::units::{Bytes, Duration, Time};
use crate::model::packet::{FlowNumber, Format, Header};
use crate::queueing::disciplines::{self, composite};
use crate::transport::blocks::path_scaled::WindowSize;

crate::parameters! {
    /// NDP: flows start at line rate, switches trim packets that do not fit, and the receiving host pulls
    /// all later packets at the pace of its link ([ndp17]). Designed for packet spraying.
    pub struct Config {
        /// Packets that a flow sends without pulls ([ndp17]: those of an RTT).
        pub initial_window: WindowSize = WindowSize::Product(Product::times(1.0)), where positive;
        /// Rate of pulled packets, as a share of the line rate of the receiving host (htsim: 0.99).
        pub pull_rate: f64 = 1.0, where positive_fraction;
        /// Pulls with which a receiver answers a request, for segments that it lacks.
        pub request_pulls: u32 = 8, where positive;
        /// Timeouts after which a sender requests pulls, and handshake.
        pub reliability: Reliability = Reliability::selective_repeat();
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        let window = self.initial_window.packets(path) as u32;
        let packets = path.size.map_or(u32::MAX, |size| path.format.packets(size) as u32);
        // What a short flow leaves of its window permits no retransmissions.
        Box::new(Ndp { window: window.min(packets), ..Ndp::default() })
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        Mechanism::credited(&self.reliability, CreditUse::PerPacket)
    }

    fn credit_scheduler(&self, host: &CreditHost) -> Option<Box<dyn CreditScheduler>> {
        let packet_time = host.line_rate.transmit(host.format.full());
        Some(Box::new(PullScheduler {
            request_pulls: self.request_pulls,
            interval: Duration::from_seconds(packet_time.seconds() / self.pull_rate),
            flows: FxHashMap::default(),
            turns: Vec::new(),
            last: 0,
            next_pull: Time::ZERO,
        }))
    }

    fn own_reliability(&self) -> &'static [&'static str] {
        Mechanism::SET_BY_CREDIT
    }

    fn needs_own_connection(&self) -> bool {
        true
    }

    fn needs_spraying(&self) -> bool {
        true
    }

    fn queue(&self) -> disciplines::Config {
        disciplines::Config::composite(composite::Config { returns_headers: true, ..defaults() })
    }
}

/// Answers that a sender remembers, and the number of ACKs among them from which a header returned because of
/// its path only (htsim).
const ANSWERS: u32 = 12;
const MANY_ACKS: u32 = 3;

/// Sender of a flow.
#[derive(Default)]
struct Ndp {
    /// Packets that need no pull.
    window: u32,
    /// Largest number of a pull. Pulls are numbered, so that the next one replaces a lost one.
    pulls: u32,
    sent: u32,
    /// Packets whose headers returned. All others earn pulls.
    returned: u32,
    /// Last answers, as bits that are set for ACKs.
    answers: u32,
}

impl Ndp {
    fn add_answer(&mut self, is_ack: bool) {
        self.answers = (self.answers << 1 | u32::from(is_ack)) & ((1 << ANSWERS) - 1);
    }
}

impl Controller for Ndp {
    fn on_ack(&mut self, ack: &Ack) {
        self.add_answer(ack.trimmed.is_none());
    }

    fn on_returned(&mut self) {
        self.returned += 1;
        self.add_answer(false);
        let expects_pull = self.sent - self.returned > self.pulls;
        let is_path_bad = self.answers.count_ones() >= MANY_ACKS;
        if (!expects_pull || is_path_bad) && self.allowance().granted == 0 {
            self.window += 1;
        }
    }

    fn on_credit(&mut self, _now: Time, credit: &Credit, _is_lost: bool) -> bool {
        self.pulls = self.pulls.max(credit.number);
        false
    }

    fn on_sent(&mut self, _now: Time, _bytes: Bytes) -> Option<Allowance> {
        self.sent += 1;
        Some(self.allowance())
    }

    /// A pull permits any packet, but only one.
    fn allowance(&self) -> Allowance {
        let may_send = self.sent < self.window.saturating_add(self.pulls);
        Allowance::granted(if may_send { u32::MAX } else { 0 })
    }

    fn header(&self, _outgoing: &OutgoingPacket) -> Header {
        Header::Credit { number: self.pulls, class: 0 }
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![("pulls", f64::from(self.pulls))]
    }
}

/// Incomplete flow at its receiver.
#[derive(Default)]
struct Inbound {
    segments: u32,
    received: u32,
    /// Pulls sent, and pulls that wait.
    pulls: u32,
    waiting: u32,
    /// Pulls that name a segment to send again, and the first segment that the next of them may name.
    naming: u32,
    next: u32,
}

/// Pulls of a receiving host.
struct PullScheduler {
    request_pulls: u32,
    /// Time between two pulls.
    interval: Duration,
    flows: FxHashMap<FlowNumber, Inbound>,
    /// Flows with waiting pulls, sorted. They take turns in this order (authors' simulator, `fairpullqueue`).
    /// In the order in which they join, those of near senders would follow each other: their packets would
    /// arrive in bursts, together with packets that earlier pulls permitted to far senders.
    turns: Vec<FlowNumber>,
    /// Flow of the last turn.
    last: FlowNumber,
    /// Earliest time of the next pull.
    next_pull: Time,
}

impl CreditScheduler for PullScheduler {
    fn on_start(&mut self, _now: Time, inbound: &InboundFlow) {
        let InboundFlow { flow, segments, .. } = *inbound;
        self.flows.insert(flow, Inbound { segments, ..Inbound::default() });
    }

    fn on_arrival(&mut self, _now: Time, number: FlowNumber, arrival: Arrival) {
        let Some(flow) = self.flows.get_mut(&number) else { return };
        let had_turn = flow.waiting > 0;
        match arrival {
            Arrival::Data { is_new, .. } => {
                flow.received += u32::from(is_new);
                flow.waiting += 1;
            }
            Arrival::Trimmed { .. } => flow.waiting += 1,
            Arrival::Request { .. } => {
                flow.naming = (flow.segments - flow.received).min(self.request_pulls);
                flow.next = 0;
                flow.waiting = flow.waiting.max(flow.naming);
            }
        }
        if !had_turn && flow.waiting > 0 {
            let place = self.turns.partition_point(|other| *other < number);
            self.turns.insert(place, number);
        }
    }

    fn on_end(&mut self, _now: Time, flow: FlowNumber) {
        self.flows.remove(&flow);
        self.turns.retain(|other| *other != flow);
    }

    fn next_credit(
        &mut self,
        now: Time,
        missing: MissingSegments<'_>,
    ) -> Option<(FlowNumber, Credit)> {
        if now < self.next_pull {
            return None;
        }
        let place = self.turns.partition_point(|flow| *flow <= self.last);
        let place = if place < self.turns.len() { place } else { 0 };
        let number = *self.turns.get(place)?;
        let flow = self.flows.get_mut(&number)?;
        flow.waiting -= 1;
        if flow.waiting == 0 {
            self.turns.remove(place);
        }
        self.last = number;
        flow.pulls += 1;
        let mut segment = u32::MAX;
        if flow.naming > 0 {
            flow.naming -= 1;
            segment = missing(number, flow.next);
            flow.next = segment.saturating_add(1);
        }
        self.next_pull = now + self.interval;
        Some((number, Credit { number: flow.pulls, segment, class: 0 }))
    }

    fn next_timer(&self) -> Time {
        if self.turns.is_empty() { Time::NEVER } else { self.next_pull }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::Parameter;
    use crate::base::units::Rate;
    use crate::transport::fixture::{ACK, OUTGOING, credit_host, inbound_flow};
    use serde_json::json;

    const FORMAT: Format = Format {
        payload: Bytes(1436),
        header: Bytes(64),
        ack: Bytes(64),
        credit: None,
        syn: None,
        sack: false,
        time_unit: Duration::ZERO,
    };

    /// Returns the time of this number of packets of 1.2 us at 10 Gb/s.
    fn at(packets: u64) -> Time {
        Time::ZERO + Duration(1_200_000) * packets
    }

    fn scheduler() -> Box<dyn CreditScheduler> {
        let host = credit_host(FORMAT);
        Config::read(&json!({})).unwrap().credit_scheduler(&host).unwrap()
    }

    fn start(scheduler: &mut dyn CreditScheduler, flow: FlowNumber, arrivals: &[Arrival]) {
        scheduler.on_start(at(0), &inbound_flow(flow, flow, 100));
        for arrival in arrivals {
            scheduler.on_arrival(at(0), flow, *arrival);
        }
    }

    /// Returns the next pull as (flow, number, segment), if all segments are missing.
    fn pull(scheduler: &mut dyn CreditScheduler, now: Time) -> Option<(FlowNumber, u32, u32)> {
        let (flow, credit) = scheduler.next_credit(now, &|_, from| from)?;
        Some((flow, credit.number, credit.segment))
    }

    const DATA: Arrival = Arrival::Data { number: 0, is_new: true };
    const TRIMMED: Arrival = Arrival::Trimmed { number: 0 };
    const REQUEST: Arrival = Arrival::Request { number: 0 };

    #[test]
    fn flows_take_turns_by_number_in_whatever_order_they_join() {
        let mut pulls = scheduler();
        for flow in [9, 3, 7] {
            start(&mut *pulls, flow, &[DATA, DATA]);
        }
        let order: Vec<_> = (0..6)
            .filter_map(|turn| pull(&mut *pulls, at(2 * turn)).map(|(flow, ..)| flow))
            .collect();
        assert_eq!(order, [3, 7, 9, 3, 7, 9]);
    }

    #[test]
    fn a_sender_sends_its_first_window_and_then_a_packet_for_each_pull() {
        let config = Config::read(&json!({ "initial_window": 2 })).unwrap();
        let path = Path::new(Rate::from_gbps(10), Duration::from_micros(10), FORMAT);
        let mut flow = config.controller(&path);
        let credit = |number| Credit { number, segment: u32::MAX, class: 0 };
        let mut sent = Vec::new();
        for number in [0, 1, 3, 2] {
            flow.on_credit(at(0), &credit(number), false);
            let mut packets = 0;
            while flow.allowance().granted > 0 {
                flow.on_sent(at(0), Bytes(1500));
                packets += 1;
            }
            sent.push(packets);
        }
        // Pull 2 was overtaken by pull 3, which replaces it.
        assert_eq!(sent, [2, 1, 2, 0]);
        assert_eq!(flow.header(&OUTGOING), Header::Credit { number: 3, class: 0 });
    }

    #[test]
    fn a_returned_header_permits_a_packet_if_no_pull_is_expected_or_others_arrived() {
        let path = Path::new(Rate::from_gbps(10), Duration::from_micros(10), FORMAT);
        let credit = |number| Credit { number, segment: u32::MAX, class: 0 };
        let start = || {
            let config = Config::read(&json!({ "initial_window": 4 })).unwrap();
            let mut flow = config.controller(&path);
            (0..4).for_each(|_| assert!(flow.on_sent(at(0), Bytes(1500)).is_some()));
            flow
        };
        let may_send = |flow: &dyn Controller| flow.allowance().granted > 0;
        // The pull of the fourth packet will send the others again, one after the other.
        let mut flow = start();
        (0..3).for_each(|_| flow.on_returned());
        assert!(!may_send(&*flow));
        flow.on_credit(at(1), &credit(1), false);
        assert!(may_send(&*flow));
        // All four return.
        let mut flow = start();
        (0..3).for_each(|_| flow.on_returned());
        assert!(!may_send(&*flow));
        flow.on_returned();
        assert!(may_send(&*flow));
        // Three arrive: only the path of the fourth was bad.
        let mut flow = start();
        (0..3).for_each(|_| flow.on_ack(&ACK));
        flow.on_returned();
        assert!(may_send(&*flow));
    }

    #[test]
    fn a_window_of_one_bdp_is_rounded_up_to_packets() {
        let path = Path::new(Rate::from_gbps(10), Duration::from_micros(12), FORMAT);
        let mut flow = Config::read(&json!({})).unwrap().controller(&path);
        (0..9).for_each(|_| assert!(flow.on_sent(at(0), Bytes(1500)).is_some()));
        assert_eq!(flow.allowance().granted, u32::MAX);
        assert_eq!(flow.on_sent(at(0), Bytes(1500)), Some(Allowance::granted(0)));
    }

    #[test]
    fn the_window_of_a_short_flow_has_no_room_for_retransmissions() {
        let path = Path::new(Rate::from_gbps(10), Duration::from_micros(12), FORMAT);
        let size = Some(Bytes(3 * 1436));
        let mut flow = Config::read(&json!({})).unwrap().controller(&Path { size, ..path });
        let allowances = (0..3).map(|_| flow.on_sent(at(0), Bytes(1500)));
        let open = Some(Allowance::granted(u32::MAX));
        assert_eq!(allowances.collect::<Vec<_>>(), [open, open, Some(Allowance::granted(0))]);
    }

    #[test]
    fn a_host_sends_a_pull_per_packet_time_to_its_flows_in_turn() {
        let mut scheduler = scheduler();
        start(&mut *scheduler, 1, &[DATA, TRIMMED, DATA]);
        start(&mut *scheduler, 2, &[TRIMMED, DATA]);
        for (packets, flow, number) in [(0, 1, 1), (1, 2, 1), (2, 1, 2), (3, 2, 2), (4, 1, 3)] {
            assert_eq!(pull(&mut *scheduler, at(packets)), Some((flow, number, u32::MAX)));
            assert_eq!(pull(&mut *scheduler, at(packets)), None);
            let timer = if packets < 4 { at(packets + 1) } else { Time::NEVER };
            assert_eq!(scheduler.next_timer(), timer);
        }
        // After a pause the next pull leaves at once.
        scheduler.on_arrival(at(9), 2, DATA);
        assert_eq!(pull(&mut *scheduler, at(9)), Some((2, 3, u32::MAX)));
    }

    #[test]
    fn the_pulls_of_a_flow_that_has_ended_take_no_time() {
        let mut scheduler = scheduler();
        start(&mut *scheduler, 1, &[DATA; 5]);
        start(&mut *scheduler, 2, &[DATA]);
        scheduler.on_end(at(0), 1);
        assert_eq!(pull(&mut *scheduler, at(0)), Some((2, 1, u32::MAX)));
        assert_eq!((pull(&mut *scheduler, at(1)), scheduler.next_timer()), (None, Time::NEVER));
    }

    #[test]
    fn a_request_is_answered_with_pulls_that_name_missing_segments() {
        let mut scheduler = scheduler();
        start(&mut *scheduler, 1, &[DATA, REQUEST, REQUEST]);
        let named = (0..9).map(|packets| pull(&mut *scheduler, at(packets)));
        let mut expected: Vec<_> = (0..8).map(|segment| Some((1, segment + 1, segment))).collect();
        expected.push(None);
        assert_eq!(named.collect::<Vec<_>>(), expected);
    }
}
