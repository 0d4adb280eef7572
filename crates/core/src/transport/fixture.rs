//! A path and events for the tests of controllers.

use super::blocks::bbr::delivery_rate::RateSample;
use super::{Ack, CongestionSignal, CreditHost, InboundFlow, Loss, OutgoingPacket, Path};
use crate::base::random::Random;
use crate::base::schema::defaults;
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::flow::HostId;
use crate::model::packet::{FlowNumber, Format, Kind};

/// ACK of one new packet of a thousand bytes in order.
pub(crate) const ACK: Ack = Ack {
    now: Time::ZERO,
    bytes: Bytes(1000),
    advanced: 1,
    delivered: 1,
    rtt: Duration::from_micros(100),
    marked: false,
    feedback: 0.0,
    sent_at: Time::ZERO,
    is_probe_ack: false,
    cumulative: 1,
    next: 2,
    is_recovering: false,
    lost: 0,
    trimmed: None,
    in_flight: Bytes::ZERO,
    used_window: None,
};

/// Returns a loss or mark with this payload in flight.
pub(crate) fn loss(signal: CongestionSignal, flight: Bytes) -> Loss {
    Loss { now: Time::ZERO, flight, lost: Bytes::ZERO, signal, cumulative: 0, is_repeated: false }
}

/// Rate sample without information.
pub(crate) const SAMPLE: RateSample = RateSample {
    rate: None,
    delivered: 0.0,
    prior_delivered: 0,
    in_flight: 0.0,
    lost: 0.0,
    is_app_limited: false,
    starts_round: false,
};

/// First packet of an unbounded flow.
pub(crate) const OUTGOING: OutgoingPacket = OutgoingPacket {
    now: Time::ZERO,
    kind: Kind::Data,
    remaining: Bytes(u64::MAX),
    offset: Bytes::ZERO,
    is_retransmit: false,
    unsent: Bytes(u64::MAX),
    flows: 1,
};

/// Returns a path of 1 Gb/s and 100 us for packets of 960 B payload, 1000 B on the link.
pub(crate) fn path() -> Path {
    let format = Format { payload: Bytes(960), ..defaults() };
    Path::new(Rate::from_gbps(1), Duration::from_micros(100), format)
}

/// Returns the ACK of one such packet after 100 us.
pub(crate) fn ack(cumulative: u32, next: u32) -> Ack {
    Ack { bytes: Bytes(960), cumulative, next, ..ACK }
}

/// Returns a receiving host at 10 Gb/s.
pub(crate) fn credit_host(format: Format) -> CreditHost {
    CreditHost {
        host: 0,
        now: Time::ZERO,
        line_rate: Rate::from_gbps(10),
        format,
        random: Random::new(1, "credit"),
        base_rtt: Duration::ZERO,
    }
}

/// Flow from a host at 10 Gb/s, of segments of 1460 B.
pub(crate) fn inbound_flow(flow: FlowNumber, source: HostId, segments: u32) -> InboundFlow {
    let size = Some(Bytes(1460 * u64::from(segments)));
    InboundFlow { flow, source, line_rate: Rate::from_gbps(10), segments, size }
}
