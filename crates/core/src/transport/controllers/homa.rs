//! Homa: message transport with grants of the receiver and priority queues in the network.
//!
//! Source: [homa18]; where the paper is silent, its authors' simulator. A message sends its first bytes
//! without grants. The receiving host grants the rest, to a few messages at a time, those with the least
//! ungranted bytes first (SRPT with overcommitment), and chooses the priority of the granted packets. A
//! host's port serves the message with the least remaining bytes.
//!
//! Deviations: packets have one size, so that grants and limits are whole packets; the receiver
//! acknowledges a message when it is complete; a RESEND names one packet; and the wait before RESENDs doubles
//! until new data arrives. The authors' kernel module repeats them at one interval and gives up after five;
//! a message here never gives up, and RESENDs for data that waits in a queue would fill it for ever.

use super::{
    Allowance, Arrival, Controller, Credit, CreditHost, CreditScheduler, CreditUse, InboundFlow,
    Mechanism, MissingSegments, OutgoingPacket, Path, Priorities, Reliability, Transport,
};
use crate::base::schema::{Bounds, Problem, positive, positive_if_given};
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::flow::HostId;
use crate::model::graph::Extent;
use crate::model::packet::{FlowNumber, Format, Header, Kind};
use crate::queueing::disciplines::{self, Capacity, strict_priority};
use crate::transport::controllers::Ack;

mod cutoffs;

/// Largest number of priorities, as switches have.
const MAX_CLASSES: u32 = 8;

crate::parameters! {
    /// Homa: the receiving host grants data by shortest remaining message first, and chooses its priority
    /// in the network ([homa18]).
    pub struct Config {
        /// Amount on the link that a message sends without grants, and that it may have granted and not
        /// received: bytes, packets, or a time at the host's line rate, such as the base RTT; rounded up
        /// to packets (`RTTbytes`; authors' simulator at 10 Gb/s: 10 000 bytes).
        pub rtt_bytes: Capacity = Capacity::Bytes(10_000);
        /// Number of priorities.
        pub priorities: u32 = MAX_CLASSES, where classes;
        /// Bounds between the priorities of packets without grants: bytes of the message that remain at
        /// the packet, ascending. The remaining priorities are for granted packets. None: from the sizes of
        /// the first 10 000 flows, so that each of these priorities carries the same bytes, and their number
        /// has the share of packets without grants in all bytes ([homa18] §3.4). Authors' simulator: for W1
        /// [11, 131, 280, 489, 794, 1360], for W2 [269, 366, 512, 1463], for W3 [433, 2339, 6756], for W4
        /// and W5 [].
        pub cutoffs: Option<Vec<u64>> = None;
        /// Number of messages that a host grants at a time, each of another sender (none: the number of
        /// priorities for granted packets).
        pub overcommitment: Option<u32> = None, where positive_if_given;
        /// If true, the last granted packets of a message have at least the priority that they would have
        /// without grants (authors' simulator).
        pub tail_boost: bool = true;
        /// Time without data of a message after which the receiver requests what it has granted and lacks
        /// (RESEND; authors' kernel module: 5 ms). Doubles each time until new data arrives, up to `max_rto`.
        /// Packets that wait for longer below those of shorter messages are sent twice.
        pub resend_interval: Duration = Duration::from_millis(5), where positive;
        /// Timeouts after which a sender requests credit, and handshake. Losses are detected by the receiver.
        pub reliability: Reliability = Reliability::selective_repeat();
    }
    check |config| {
        if matches!(config.rtt_bytes, Capacity::Product(_)) {
            return Err(Problem::new("rtt_bytes", "must be an amount of data or a time"));
        }
        if !config.cutoffs().is_sorted_by(|a, b| a < b) {
            return Err(Problem::new("cutoffs", "must ascend"));
        }
        if config.cutoffs().len() as u32 + 2 > config.priorities {
            let (given, most) = (config.cutoffs().len(), config.priorities - 2);
            let message = format!(
                "{given} cutoffs need {} priorities, one of them for granted packets: give `cutoffs` with \
                 {most} at most",
                given + 2
            );
            return Err(Problem::new("cutoffs", message));
        }
        Ok(())
    }
}

fn classes() -> Bounds {
    Bounds::at_least(2.0).to(f64::from(MAX_CLASSES))
}

impl Config {
    fn cutoffs(&self) -> &[u64] {
        self.cutoffs.as_deref().unwrap_or_default()
    }

    /// Number of segments without grants, at least 1.
    fn unscheduled(&self, format: &Format, line_rate: Rate) -> u32 {
        let bytes = match self.rtt_bytes {
            Capacity::Packets(packets) => return packets.max(1),
            Capacity::Bytes(bytes) => bytes,
            Capacity::Time(time) => line_rate.carries(time).0,
            Capacity::Product(_) => unreachable!("rejected by the check"),
        };
        bytes.div_ceil(format.full().0).clamp(1, u64::from(u32::MAX)) as u32
    }

    /// Priority of a packet without a grant, at which this payload of the message remains.
    fn unscheduled_class(&self, remaining: Bytes) -> u8 {
        self.cutoffs().partition_point(|cutoff| *cutoff < remaining.0) as u8
    }

    /// Wait before the next RESENDs, after this number of rounds without new data.
    fn resend_wait(&self, rounds: u32) -> Duration {
        let doubled = self.resend_interval.0.saturating_mul(1 << rounds.min(32));
        Duration(doubled).min(self.reliability.max_rto).max(self.resend_interval)
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        let unscheduled = self.unscheduled(&path.format, path.line_rate);
        Box::new(Homa {
            config: self.clone(),
            format: path.format.clone(),
            size: path.size,
            unscheduled,
            granted: unscheduled,
            class: 0,
        })
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        Mechanism::credited(&self.reliability, CreditUse::Unannounced)
    }

    fn credit_scheduler(&self, host: &CreditHost) -> Option<Box<dyn CreditScheduler>> {
        Some(Box::new(GrantScheduler {
            config: self.clone(),
            rtt_segments: self.unscheduled(&host.format, host.line_rate),
            packet_time: host.line_rate.transmit(host.format.full()),
            format: host.format.clone(),
            messages: Vec::new(),
            granted: Vec::new(),
            timer: Time::NEVER,
        }))
    }

    fn fitted(
        &self,
        sizes: &dyn Fn() -> Vec<Bytes>,
        slowest: Rate,
        format: &Format,
    ) -> Option<super::Config> {
        if self.cutoffs.is_some() {
            return None;
        }
        let unscheduled = self.unscheduled(format, slowest);
        let load = cutoffs::Load::of(&sizes(), unscheduled, self.tail_boost, format);
        let cutoffs = load.cutoffs(load.levels(self.priorities));
        Some(super::Config::homa(Self { cutoffs: Some(cutoffs), ..self.clone() }))
    }

    fn warnings(&self, extent: &Extent, format: &Format) -> Vec<String> {
        let base_rtt = extent.base_rtt(format);
        let packets = self.unscheduled(format, extent.slowest);
        let most = Bytes(u64::from(packets) * format.full().0);
        let mut warnings = Vec::new();
        if most < extent.slowest.carries(base_rtt) {
            warnings.push(format!(
                "rtt_bytes of {most} are less than the slowest link carries in the base RTT, {base_rtt}: a \
                 message alone cannot fill its path"
            ));
        }
        if self.resend_interval < base_rtt {
            let interval = self.resend_interval;
            warnings.push(format!(
                "resend_interval: {interval} is less than the base RTT of {base_rtt}: packets are sent again \
                 before they can arrive"
            ));
        }
        warnings
    }

    fn own_reliability(&self) -> &'static [&'static str] {
        Mechanism::SET_BY_CREDIT
    }

    fn needs_own_connection(&self) -> bool {
        true
    }

    /// The last packets may have a higher priority than those before.
    fn keeps_order(&self) -> bool {
        false
    }

    fn queue(&self) -> disciplines::Config {
        disciplines::Config::strict_priority(strict_priority::Config {
            classes: self.priorities,
            ..crate::base::schema::defaults()
        })
    }

    fn priorities(&self) -> Priorities {
        Priorities::Classes(self.priorities)
    }
}

/// Sender of a message.
struct Homa {
    config: Config,
    format: Format,
    size: Option<Bytes>,
    /// Number of segments without grants.
    unscheduled: u32,
    /// End of the segments that may be sent.
    granted: u32,
    /// Priority of granted segments.
    class: u8,
}

impl Controller for Homa {
    fn on_ack(&mut self, _ack: &Ack) {}

    fn on_credit(&mut self, _now: Time, credit: &Credit, _is_lost: bool) -> bool {
        if credit.number > self.granted {
            (self.granted, self.class) = (credit.number, credit.class);
        }
        false
    }

    fn allowance(&self) -> Allowance {
        Allowance::granted(self.granted)
    }

    fn header(&self, outgoing: &OutgoingPacket) -> Header {
        if outgoing.kind != Kind::Data {
            return Header::NONE;
        }
        let remaining = Bytes(self.size.map_or(u64::MAX, |size| size.0 - outgoing.offset.0));
        let segment = outgoing.offset.0 / self.format.payload.0;
        let is_unscheduled = segment < u64::from(self.unscheduled);
        let class = if outgoing.is_retransmit {
            // What the receiver requests again has the highest priority (authors' kernel module).
            0
        } else if is_unscheduled {
            self.config.unscheduled_class(remaining)
        } else {
            self.class
        };
        Header::Credit { number: self.granted, class }
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![("granted_segments", f64::from(self.granted))]
    }
}

/// Incomplete message at its receiver.
struct Message {
    flow: FlowNumber,
    source: HostId,
    segments: u32,
    /// Payload in bytes; the largest number for an unbounded flow.
    size: u64,
    received: u32,
    /// Segments that may be granted and not received: an RTT of the slower of both hosts.
    window: u32,
    /// End of the granted segments.
    granted: u32,
    /// Earliest time of the next grant: grants of a message are a packet time apart.
    next_grant: Time,
    /// Time of the next RESEND, and the first segment that it may name.
    resend_at: Time,
    resend_from: u32,
    /// Rounds of RESENDs since the last new data.
    resends: u32,
    /// Time of the last data; none before the first.
    data_at: Option<Time>,
}

impl Message {
    fn ungranted(&self) -> u32 {
        self.segments - self.granted
    }
}

/// Grants of a receiving host.
struct GrantScheduler {
    config: Config,
    rtt_segments: u32,
    packet_time: Duration,
    format: Format,
    /// Incomplete messages in the order of ungranted segments. Of equal messages the one that was ahead stays
    /// so: otherwise two would overtake each other with every grant, and share the link.
    messages: Vec<Message>,
    /// Indices of the messages that are granted now: the first of each of the first senders. A field for
    /// reuse of its memory.
    granted: Vec<usize>,
    timer: Time,
}

impl GrantScheduler {
    /// Number of priorities for granted packets.
    fn scheduled_classes(&self) -> u32 {
        self.config.priorities - self.config.cutoffs().len() as u32 - 1
    }

    /// Selects the messages that are granted now.
    fn select(&mut self) {
        let most = self.config.overcommitment.unwrap_or(self.scheduled_classes()) as usize;
        let Self { messages, granted, .. } = self;
        granted.clear();
        for (index, message) in messages.iter().enumerate() {
            if granted.len() == most {
                break;
            }
            let is_first = |other: &usize| messages[*other].source != message.source;
            if message.ungranted() > 0 && granted.iter().all(is_first) {
                granted.push(index);
            }
        }
    }

    /// Priority of the message of this rank: as many of the lowest priorities are in use as messages are
    /// granted, so that a shorter message finds a higher one.
    fn class(&self, rank: usize, message: &Message) -> u8 {
        let used = (self.granted.len() as u32).min(self.scheduled_classes());
        let rank = (rank as u32).min(used - 1);
        let class = (self.config.priorities - used + rank) as u8;
        if self.config.tail_boost && message.ungranted() <= self.rtt_segments {
            let granted = u64::from(message.granted) * self.format.payload.0;
            let remaining = Bytes(message.size - granted);
            return class.min(self.config.unscheduled_class(remaining));
        }
        class
    }

    /// Returns the next grant, if one is permitted now; otherwise notes when one is.
    fn next_grant(&mut self, now: Time) -> Option<(FlowNumber, Credit)> {
        self.select();
        for rank in 0..self.granted.len() {
            let index = self.granted[rank];
            let message = &self.messages[index];
            if message.granted.saturating_sub(message.received) >= message.window {
                continue;
            }
            if message.next_grant > now {
                self.timer = self.timer.min(message.next_grant);
                continue;
            }
            let class = self.class(rank, message);
            let message = &mut self.messages[index];
            message.granted += 1;
            message.next_grant = now + self.packet_time;
            message.resend_at =
                message.resend_at.max(now + self.config.resend_wait(message.resends));
            let credit = Credit { number: message.granted, segment: u32::MAX, class };
            let (flow, ungranted) = (message.flow, message.ungranted());
            let first =
                self.messages[..index].partition_point(|other| other.ungranted() <= ungranted);
            self.messages[first..=index].rotate_right(1);
            return Some((flow, credit));
        }
        None
    }

    /// Returns the next RESEND, if one is due.
    fn next_resend(
        &mut self,
        now: Time,
        missing: MissingSegments<'_>,
    ) -> Option<(FlowNumber, Credit)> {
        for message in &mut self.messages {
            if message.resend_at <= now {
                let segment = missing(message.flow, message.resend_from);
                if segment < message.granted {
                    message.resend_from = segment + 1;
                    let credit = Credit { number: message.granted, segment, class: 0 };
                    return Some((message.flow, credit));
                }
                message.resends += u32::from(message.resend_from > 0);
                message.resend_from = 0;
                message.resend_at = now + self.config.resend_wait(message.resends);
            }
            self.timer = self.timer.min(message.resend_at);
        }
        None
    }
}

impl CreditScheduler for GrantScheduler {
    fn on_start(&mut self, now: Time, inbound: &InboundFlow) {
        let InboundFlow { flow, source, line_rate, segments, size } = *inbound;
        // As the headers of the message state it ([homa18] §3.2).
        let unscheduled = self.config.unscheduled(&self.format, line_rate);
        let message = Message {
            flow,
            source,
            segments,
            size: size.map_or(u64::MAX, |size| size.0),
            received: 0,
            window: unscheduled.min(self.rtt_segments),
            granted: segments.min(unscheduled),
            next_grant: now,
            resend_at: now + self.config.resend_interval,
            resend_from: 0,
            resends: 0,
            data_at: None,
        };
        let ungranted = message.ungranted();
        let place = self.messages.partition_point(|other| other.ungranted() <= ungranted);
        self.messages.insert(place, message);
    }

    fn on_arrival(&mut self, now: Time, flow: FlowNumber, arrival: Arrival) {
        let Self { config, messages, .. } = self;
        let message = messages.iter_mut().find(|message| message.flow == flow);
        let Some(message) = message else { return };
        match arrival {
            Arrival::Data { is_new, .. } => {
                if is_new {
                    message.received += 1;
                    message.resends = 0;
                }
                message.data_at = Some(now);
                message.resend_at = now + config.resend_wait(message.resends);
            }
            // The sender has waited for long: what was granted to it is lost, unless data still arrives: then
            // the rest may wait in a queue that the request has passed.
            Arrival::Request { .. } => {
                let silent_from = |data_at: Time| (data_at + config.resend_interval).max(now);
                message.resend_at = message.data_at.map_or(now, silent_from).min(message.resend_at);
            }
            Arrival::Trimmed { .. } => {}
        }
    }

    fn on_end(&mut self, _now: Time, flow: FlowNumber) {
        self.messages.retain(|message| message.flow != flow);
    }

    fn next_credit(
        &mut self,
        now: Time,
        missing: MissingSegments<'_>,
    ) -> Option<(FlowNumber, Credit)> {
        self.timer = Time::NEVER;
        self.next_grant(now).or_else(|| self.next_resend(now, missing))
    }

    fn next_timer(&self) -> Time {
        self.timer
    }
}

#[cfg(test)]
mod tests;
