//! pHost: tokens of the receiving host, each of which permits one packet and soon expires.
//!
//! Source: [phost15] and its authors' simulator. A sender announces its flow; a flow of a few packets starts
//! with tokens for all of them. The receiving host issues one token per packet time, to the flow with the
//! least remaining packets whose sender uses its tokens, so that its link is not oversubscribed.
//!
//! Deviations: a flow from a slower host gets one token per packet time of that host, in which its waits
//! are counted, too; in [phost15] all hosts have one rate. A token names a packet only to send it again;
//! otherwise the sender sends the next one. The waits of the receiver double when it has issued tokens
//! for all missing packets in vain, as an RTO does (RFC 6298 §5.5). They are constant in the authors'
//! simulator; tokens, which have the highest priority, then starve the data on a path that is much slower
//! than its hosts.

use std::collections::VecDeque;

use super::{
    Ack, Allowance, Arrival, Controller, Credit, CreditHost, CreditScheduler, CreditUse, Gaps,
    InboundFlow, Mechanism, MissingSegments, Opened, OutgoingPacket, Path, Priorities, Reliability,
    Transport,
};
use crate::base::schema::{Bounds, defaults, positive};
use crate::base::units::{Bytes, Duration, Time};
use crate::model::graph::Extent;
use crate::model::packet::{FlowNumber, Format, Header, Kind};
use crate::queueing::disciplines::{self, Capacity, strict_priority};
use crate::transport::blocks::path_scaled::Span;

/// Priorities: control packets, short flows, other flows.
const CLASSES: u32 = 3;

crate::parameters! {
    /// pHost: the receiving host paces all data that it receives with tokens, which senders spend on
    /// their shortest flow ([phost15]). Amounts and times are in packets and packet times, those of a full
    /// packet at the line rate, or a time. The defaults are for the fabric of the paper, with an RTT of 3.9
    /// packet times.
    pub struct Config {
        /// Packets of the largest flow that starts with tokens for all its packets (authors' simulator: 8).
        pub free_tokens: Span = Span::Packets(8.0), where zero_or_more;
        /// Packets of the largest flow that has the higher of the two priorities of data.
        pub short_flow: Span = Span::Packets(8.0), where zero_or_more;
        /// Tokens of a flow that may be unspent before its receiver turns to others (authors' simulator: 8).
        pub window: Span = Span::Packets(8.0), where positive;
        /// Time after which a sender discards a token (authors' simulator: 1.5).
        pub token_life: f64 = 1.5, where positive;
        /// Time after the last token of a flow until the receiver issues tokens for what it lacks (authors'
        /// simulator: 9). It and `window_timeout` double each time until new data arrives, up to `max_rto`.
        pub resend_timeout: Span = Span::Packets(9.0), where positive;
        /// Interval of tokens to a sender that spends none (authors' simulator: 25).
        pub window_timeout: Span = Span::Packets(25.0), where positive;
        /// Timeouts after which a sender announces its flow again, and handshake. Losses are detected by the
        /// receiver.
        pub reliability: Reliability = Reliability::selective_repeat();
    }
}

fn zero_or_more() -> Bounds {
    Bounds::at_least(0.0)
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        let packet_time = path.line_rate.transmit(path.format.full());
        let life = Duration::from_seconds(packet_time.seconds() * self.token_life);
        let packets = path.size.map(|size| path.format.packets(size));
        let is_within = |most: Span| {
            packets.is_some_and(|packets| packets <= u64::from(most.packets(packet_time)))
        };
        let free = packets.filter(|_| is_within(self.free_tokens)).unwrap_or(0) as u32;
        let free_life = packet_time * u64::from(free) + life;
        let expires = if self.reliability.handshake { Time::NEVER } else { path.start + free_life };
        Box::new(PHost {
            class: if is_within(self.short_flow) { 1 } else { 2 },
            life,
            free_life,
            tokens: (1..=free).map(|number| Token { number, expires }).collect(),
        })
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        Mechanism::credited(&self.reliability, CreditUse::Announced)
    }

    fn credit_scheduler(&self, host: &CreditHost) -> Option<Box<dyn CreditScheduler>> {
        Some(Box::new(TokenScheduler {
            config: self.clone(),
            full_packet: host.format.full(),
            packet_time: host.line_rate.transmit(host.format.full()),
            flows: Vec::new(),
            next_token: Time::ZERO,
            withheld: 0,
            timer: Time::NEVER,
        }))
    }

    fn warnings(&self, extent: &Extent, format: &Format) -> Vec<String> {
        let base_rtt = extent.base_rtt(format);
        let wait = self.resend_timeout.time(extent.fastest.transmit(format.full()));
        if wait >= base_rtt {
            return Vec::new();
        }
        let message = "the end of every flow is sent twice";
        vec![format!("resend_timeout: {wait} is less than the base RTT of {base_rtt}: {message}")]
    }

    fn own_reliability(&self) -> &'static [&'static str] {
        // Losses are found by the receiver, and the RTO only announces flows again.
        &["recovery", "duplicate_acks", "initial_rto", "min_rto"]
    }

    fn needs_own_connection(&self) -> bool {
        true
    }

    fn queue(&self) -> disciplines::Config {
        let capacity = Some(Capacity::Bytes(36_864));
        let queue = strict_priority::Config { classes: CLASSES, capacity, ..defaults() };
        disciplines::Config::strict_priority(queue)
    }

    fn priorities(&self) -> Priorities {
        Priorities::Classes(CLASSES)
    }
}

/// Permission to send one packet.
#[derive(Clone, Copy, Debug)]
struct Token {
    /// Number among the tokens of the flow, from 1.
    number: u32,
    expires: Time,
}

/// Sender of a flow.
struct PHost {
    class: u8,
    life: Duration,
    /// Life of the tokens with which a flow starts.
    free_life: Duration,
    /// Unspent tokens, in the order of expiry.
    tokens: VecDeque<Token>,
}

impl Controller for PHost {
    fn on_ack(&mut self, _ack: &Ack) {}

    /// Only then may tokens be spent.
    fn on_open(&mut self, opened: &Opened) {
        let expires = opened.now + self.free_life;
        self.tokens.iter_mut().for_each(|token| token.expires = expires);
    }

    fn on_credit(&mut self, now: Time, credit: &Credit, _is_lost: bool) -> bool {
        self.tokens.push_back(Token { number: credit.number, expires: now + self.life });
        false
    }

    fn on_sent(&mut self, _now: Time, _bytes: Bytes) -> Option<Allowance> {
        self.tokens.pop_front();
        Some(self.allowance())
    }

    fn on_timer(&mut self, now: Time) {
        while self.tokens.front().is_some_and(|token| token.expires <= now) {
            self.tokens.pop_front();
        }
    }

    fn next_timer(&self) -> Time {
        self.tokens.front().map_or(Time::NEVER, |token| token.expires)
    }

    /// A token permits any packet, but only one.
    fn allowance(&self) -> Allowance {
        Allowance::granted(if self.tokens.is_empty() { 0 } else { u32::MAX })
    }

    fn header(&self, outgoing: &OutgoingPacket) -> Header {
        if outgoing.kind != Kind::Data {
            return Header::NONE;
        }
        let number = self.tokens.front().map_or(0, |token| token.number);
        Header::Credit { number, class: self.class }
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![("tokens", self.tokens.len() as f64)]
    }
}

/// Incomplete flow at its receiver.
struct Inbound {
    flow: FlowNumber,
    segments: u32,
    /// Time of a full packet at the slower of both hosts.
    packet_time: Duration,
    /// Tokens that may be unspent.
    window: u32,
    received: u32,
    /// Tokens issued, and tokens to issue before the receiver waits for what it lacks.
    issued: u32,
    goal: u32,
    /// Highest number of a token that data has returned.
    spent: u32,
    /// First segment that the next token may name, of a flow with a size.
    next: u32,
    /// Missing segments of an unbounded flow.
    gaps: Gaps,
    /// End of the wait for data after the last token of the goal.
    resend_at: Time,
    /// Ends of that wait since new data arrived.
    timeouts: u32,
    /// Time when the flow may get a token although its sender spends none.
    window_at: Time,
    /// Time when the sender can spend another token than the last one.
    next_token: Time,
}

impl Inbound {
    fn remaining(&self) -> u32 {
        self.segments - self.received
    }

    fn unspent(&self) -> u32 {
        self.issued - self.spent
    }

    /// Returns the segment that the next token names. Of an unbounded flow, whose tokens have no goal, those
    /// before as many as had arrived are lost if they are missing `resend_timeout` later.
    fn next_segment(
        &mut self,
        now: Time,
        resend_timeout: Duration,
        missing: MissingSegments<'_>,
    ) -> u32 {
        if self.segments == u32::MAX {
            return self
                .gaps
                .next(now, self.received, resend_timeout, |from| missing(self.flow, from));
        }
        let segment = match missing(self.flow, self.next) {
            u32::MAX => missing(self.flow, 0),
            segment => segment,
        };
        self.next = segment.saturating_add(1);
        segment
    }

    /// Time from which the flow may get a token.
    fn eligible_at(&self) -> Time {
        let resend_at = if self.issued < self.goal { Time::ZERO } else { self.resend_at };
        let window_at = if self.unspent() < self.window { Time::ZERO } else { self.window_at };
        // Clocks of hosts differ: a sender that is a little slower would miss every other token.
        let early = Time(self.next_token.0.saturating_sub(self.packet_time.0 / 2));
        resend_at.max(window_at).max(early)
    }
}

/// Tokens of a receiving host.
struct TokenScheduler {
    config: Config,
    full_packet: Bytes,
    /// Time of a full packet at this host.
    packet_time: Duration,
    /// Incomplete flows in the order of their starts.
    flows: Vec<Inbound>,
    /// Earliest time of the next token.
    next_token: Time,
    /// Tokens that are not issued, because packets with free tokens arrive instead: those of the flow that
    /// was announced last (authors' simulator).
    withheld: u32,
    timer: Time,
}

impl CreditScheduler for TokenScheduler {
    fn on_start(&mut self, now: Time, inbound: &InboundFlow) {
        let InboundFlow { flow, segments, line_rate, .. } = *inbound;
        let packet_time = self.packet_time.max(line_rate.transmit(self.full_packet));
        // As the sender, which knows its own line rate only.
        let free_tokens = self.config.free_tokens.packets(line_rate.transmit(self.full_packet));
        let is_short = segments <= free_tokens;
        let free = if is_short { segments } else { 0 };
        self.withheld = free;
        self.flows.push(Inbound {
            flow,
            segments,
            packet_time,
            window: self.config.window.packets(packet_time),
            received: 0,
            issued: free,
            goal: segments,
            spent: 0,
            next: free,
            gaps: Gaps::new(now),
            resend_at: now + packet_time * u64::from(2 * free),
            timeouts: 0,
            window_at: now + self.config.window_timeout.time(packet_time),
            next_token: now,
        });
    }

    fn on_arrival(&mut self, now: Time, flow: FlowNumber, arrival: Arrival) {
        let Some(flow) = self.flows.iter_mut().find(|other| other.flow == flow) else { return };
        match arrival {
            Arrival::Data { number, is_new } => {
                flow.spent = flow.spent.max(number);
                if is_new {
                    flow.received += 1;
                    flow.timeouts = 0;
                }
            }
            // The first one announces the flow; after others its tokens are lost.
            Arrival::Request { .. } if flow.received > 0 => {
                (flow.resend_at, flow.window_at) = (now, now);
                flow.gaps.name_before(
                    flow.issued,
                    now + self.config.resend_timeout.time(flow.packet_time),
                );
            }
            Arrival::Request { .. } | Arrival::Trimmed { .. } => {}
        }
    }

    fn on_end(&mut self, _now: Time, flow: FlowNumber) {
        self.flows.retain(|other| other.flow != flow);
    }

    fn next_credit(
        &mut self,
        now: Time,
        missing: MissingSegments<'_>,
    ) -> Option<(FlowNumber, Credit)> {
        if now < self.next_token {
            self.timer = self.next_token;
            return None;
        }
        if self.withheld > 0 {
            self.withheld -= 1;
            self.next_token = now + self.packet_time;
            self.timer = self.next_token;
            return None;
        }
        let Config { resend_timeout, window_timeout, .. } = self.config;
        self.timer = Time::NEVER;
        let mut best: Option<&mut Inbound> = None;
        for flow in &mut self.flows {
            let eligible_at = flow.eligible_at();
            if eligible_at > now {
                self.timer = self.timer.min(eligible_at);
            } else if best.as_ref().is_none_or(|best| flow.remaining() < best.remaining()) {
                best = Some(flow);
            }
        }
        let flow = best?;
        if flow.issued >= flow.goal {
            flow.goal += flow.remaining();
            flow.timeouts += 1;
        }
        flow.issued += 1;
        // Unspent tokens beyond the window have expired.
        flow.spent = flow.spent.max(flow.issued.saturating_sub(flow.window));
        let wait = |timeout: Span| {
            let times = f64::from(flow.timeouts).exp2();
            let doubled = Duration::from_seconds(timeout.time(flow.packet_time).seconds() * times);
            doubled.min(self.config.reliability.max_rto)
        };
        flow.window_at = now + wait(window_timeout);
        flow.resend_at = now + wait(resend_timeout);
        flow.next_token = flow.next_token.max(now) + flow.packet_time;
        let segment = flow.next_segment(now, resend_timeout.time(flow.packet_time), missing);
        self.next_token = now + self.packet_time;
        Some((flow.flow, Credit { number: flow.issued, segment, class: 0 }))
    }

    fn next_timer(&self) -> Time {
        self.timer
    }
}

#[cfg(test)]
mod tests {
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

    /// Returns the time of this number of packet times of 1.2 us.
    fn at(packets: f64) -> Time {
        Time::ZERO + Duration((1_200_000.0 * packets).round() as u64)
    }

    fn flow(packets: u64) -> Box<dyn Controller> {
        let path = Path::new(Rate::from_gbps(10), Duration::from_nanos(4_680), FORMAT);
        let size = Some(Bytes(packets * 1460));
        Config::read(&json!({})).unwrap().controller(&Path { size, ..path })
    }

    fn scheduler() -> Box<dyn CreditScheduler> {
        let host = credit_host(FORMAT);
        Config::read(&json!({})).unwrap().credit_scheduler(&host).unwrap()
    }

    fn start(scheduler: &mut dyn CreditScheduler, flow: FlowNumber, segments: u32) {
        scheduler.on_start(Time::ZERO, &inbound_flow(flow, flow, segments));
        scheduler.on_arrival(Time::ZERO, flow, Arrival::Request { number: 0 });
    }

    /// Returns the next token as (flow, number), if all segments are missing.
    fn token(scheduler: &mut dyn CreditScheduler, now: Time) -> Option<(FlowNumber, u32)> {
        let (flow, credit) = scheduler.next_credit(now, &|_, from| from)?;
        Some((flow, credit.number))
    }

    #[test]
    fn a_resend_timeout_below_the_base_rtt_gives_a_warning() {
        let config = Config::read(&json!({})).unwrap();
        let warnings = |delay| {
            let extent = Extent::new(Duration::from_micros(delay), [(Rate::from_gbps(10), 4)]);
            config.warnings(&extent, &FORMAT)
        };
        assert_eq!(warnings(1), [""; 0]);
        let warning = &warnings(20)[0];
        assert!(warning.contains("10.8 us is less than the base RTT of 44.928 us"), "{warning}");
    }

    #[test]
    fn a_token_permits_one_packet_until_it_expires() {
        let mut flow = flow(100);
        let is_blocked = |flow: &dyn Controller| flow.allowance() == Allowance::granted(0);
        assert!(is_blocked(&*flow));
        for number in [1, 2] {
            flow.on_credit(at(f64::from(number)), &Credit { number, segment: 0, class: 0 }, false);
        }
        assert_eq!(flow.header(&OUTGOING), Header::Credit { number: 1, class: 2 });
        let allowance = flow.on_sent(at(2.0), Bytes(1500));
        assert_eq!(allowance, Some(Allowance::granted(u32::MAX)));
        assert_eq!(flow.next_timer(), at(3.5));
        flow.on_timer(at(3.5));
        assert!(is_blocked(&*flow));
    }

    #[test]
    fn a_short_flow_starts_with_tokens_for_all_its_packets() {
        let mut flow = flow(8);
        assert_eq!(flow.header(&OUTGOING), Header::Credit { number: 1, class: 1 });
        (0..7).for_each(|_| assert!(flow.on_sent(Time::ZERO, Bytes(1500)).is_some()));
        assert_eq!((flow.allowance().granted, flow.next_timer()), (u32::MAX, at(9.5)));
        assert_eq!(flow.on_sent(Time::ZERO, Bytes(1500)), Some(Allowance::granted(0)));
    }

    #[test]
    fn the_tokens_of_a_short_flow_live_from_the_end_of_a_handshake_on() {
        let config = Config::read(&json!({ "reliability": { "handshake": true } })).unwrap();
        let path = Path::new(Rate::from_gbps(10), Duration::from_nanos(4_680), FORMAT);
        let mut flow = config.controller(&Path { size: Some(Bytes(8 * 1460)), ..path });
        assert_eq!(flow.next_timer(), Time::NEVER);
        let rtt = Duration::from_micros(24);
        flow.on_open(&Opened { now: at(20.0), rtt, feedback: 0.0, syn_was_lost: false });
        assert_eq!((flow.allowance().granted, flow.next_timer()), (u32::MAX, at(29.5)));
    }

    #[test]
    fn a_host_issues_a_token_per_packet_time_to_the_shortest_flow_within_its_window() {
        let mut scheduler = scheduler();
        start(&mut *scheduler, 0, 100);
        start(&mut *scheduler, 1, 50);
        for number in 1..=8 {
            let now = at(f64::from(number - 1));
            assert_eq!(token(&mut *scheduler, now), Some((1, number)));
            assert_eq!(
                (token(&mut *scheduler, now), scheduler.next_timer()),
                (None, at(f64::from(number)))
            );
        }
        // Eight tokens are unspent: the other flow has its turn.
        assert_eq!(token(&mut *scheduler, at(8.0)), Some((0, 1)));
        scheduler.on_arrival(at(8.5), 1, Arrival::Data { number: 5, is_new: true });
        assert_eq!(token(&mut *scheduler, at(9.0)), Some((1, 9)));
    }

    #[test]
    fn a_sender_that_spends_no_tokens_gets_one_after_each_window_timeout() {
        let mut scheduler = scheduler();
        start(&mut *scheduler, 0, 100);
        (0..8).for_each(|i| assert!(token(&mut *scheduler, at(f64::from(i))).is_some()));
        assert_eq!(
            (token(&mut *scheduler, at(8.0)), scheduler.next_timer()),
            (None, at(7.0 + 25.0))
        );
        assert_eq!(token(&mut *scheduler, at(32.0)), Some((0, 9)));
        assert_eq!(
            (token(&mut *scheduler, at(33.0)), scheduler.next_timer()),
            (None, at(32.0 + 25.0))
        );
    }

    #[test]
    fn waits_for_missing_data_double_until_new_data_arrives() {
        let config = json!({ "reliability": { "max_rto": "30 us" }, "free_tokens": 0 });
        let host = credit_host(FORMAT);
        let mut scheduler = Config::read(&config).unwrap().credit_scheduler(&host).unwrap();
        start(&mut *scheduler, 0, 2);
        assert_eq!(token(&mut *scheduler, at(0.0)), Some((0, 1)));
        let mut now = 1.0;
        assert_eq!(token(&mut *scheduler, at(now)), Some((0, 2)));
        // Two tokens in each round; max_rto is 25 packet times.
        for (number, wait) in [(3, 9.0), (5, 18.0), (7, 25.0)] {
            assert_eq!(token(&mut *scheduler, at(now + 1.0)), None);
            assert_eq!(scheduler.next_timer(), at(now + wait));
            now += wait;
            assert_eq!(token(&mut *scheduler, at(now)), Some((0, number)));
            now += 1.0;
            assert_eq!(token(&mut *scheduler, at(now)), Some((0, number + 1)));
        }
        scheduler.on_arrival(at(now), 0, Arrival::Data { number: 8, is_new: true });
        now += 25.0;
        assert_eq!(token(&mut *scheduler, at(now)), Some((0, 9)));
        assert_eq!(
            (token(&mut *scheduler, at(now + 1.0)), scheduler.next_timer()),
            (None, at(now + 18.0))
        );
    }

    #[test]
    fn tokens_are_withheld_for_the_packets_of_a_short_flow_and_follow_if_they_are_lost() {
        let mut scheduler = scheduler();
        start(&mut *scheduler, 0, 100);
        start(&mut *scheduler, 1, 2);
        assert_eq!(token(&mut *scheduler, at(0.0)), None);
        assert_eq!(token(&mut *scheduler, at(1.0)), None);
        assert_eq!(token(&mut *scheduler, at(2.0)), Some((0, 1)));
        assert_eq!(token(&mut *scheduler, at(3.0)), Some((0, 2)));
        // Both packets of the short flow should have arrived within four packet times.
        assert_eq!(token(&mut *scheduler, at(4.0)), Some((1, 3)));
        assert_eq!(token(&mut *scheduler, at(5.0)), Some((1, 4)));
        assert_eq!(token(&mut *scheduler, at(6.0)), Some((0, 3)));
    }
}
