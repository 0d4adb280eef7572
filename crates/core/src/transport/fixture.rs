//! A way, and what controllers under test are told.

use super::blocks::bbr::delivery_rate::Sample;
use super::{Ack, OutgoingPacket, Path};
use crate::base::schema::defaults;
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::packet::{Format, Kind};

/// One new packet of a thousand bytes in order.
pub(crate) const ACK: Ack = Ack {
    now: Time::ZERO,
    bytes: Bytes(1000),
    advanced: 1,
    delivered: 1,
    rtt: Duration::from_micros(100),
    marked: false,
    feedback: 0.0,
    sent_at: Time::ZERO,
    is_of_probe: false,
    cumulative: 1,
    next: 2,
    is_recovering: false,
    lost: 0,
    in_flight: Bytes::ZERO,
};

/// The way of a packet that tells nothing.
pub(crate) const SAMPLE: Sample = Sample {
    rate: None,
    delivered: 0.0,
    delivered_before: 0,
    in_flight: 0.0,
    lost: 0.0,
    is_limited: false,
    starts_round: false,
};

/// The first packet of a flow without end.
pub(crate) const LEAVING: OutgoingPacket = OutgoingPacket {
    now: Time::ZERO,
    kind: Kind::Data,
    remaining: Bytes(u64::MAX),
    offset: Bytes::ZERO,
};

/// A way of 1 Gb/s and 100 us for packets of 960 B, which are 1000 B on the wire.
pub(crate) fn path() -> Path {
    let format = Format { payload: Bytes(960), ..defaults() };
    Path::new(Rate::from_gbps(1), Duration::from_micros(100), format)
}

/// The ACK of one such packet after 100 us.
pub(crate) fn ack(cumulative: u32, next: u32) -> Ack {
    Ack { bytes: Bytes(960), cumulative, next, ..ACK }
}
