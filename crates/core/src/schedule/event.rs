//! Event types.

use crate::model::flow::HostId;
use crate::model::graph::LinkId;
use crate::model::packet::FlowNumber;

/// Event of the simulation.
///
/// Simultaneous events are handled in the order of this list, and events of one type in the order of their
/// links or flows. Hence the order does not depend on the order of scheduling. Observers run before anything
/// changes. Departures precede arrivals, as they do where no event marks the end of a transmission. Flows act
/// after arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// Counters are read at a bound of the measured interval.
    ReadCounters,
    /// A bin of the counters of links ends.
    EndBin,
    /// The recorder takes samples.
    Sample,
    /// The watchdog checks for deadlocks of pauses.
    Watchdog,
    /// Links fail or recover, or routes converge.
    LinkChange,
    /// A transmitter becomes free while packets wait for it.
    Ready(LinkId),
    /// The queue of a port no longer holds back its packets.
    HoldEnd(LinkId),
    /// The control interval of a router ends.
    Tick(LinkId),
    /// The first packet in flight on a link arrives.
    Arrive(LinkId),
    /// The time of the pause of a lane (traffic class of a link) is over at its port. Later than arrivals, so
    /// that a frame that arrives just then prolongs the pause.
    PauseEnd(u32),
    /// The switch at the end of a lane repeats its pause frame.
    PauseFrame(u32),
    /// The timer of a flow's receiver expires.
    ReceiverTimer(FlowNumber),
    /// The timer of a credit scheduler expires, given by its number.
    Credit(u32),
    /// The port of a host has sent a packet, and the next of its flows by credit has its turn.
    Turn(HostId),
    /// The timer of a flow's sender expires.
    SenderTimer(FlowNumber),
    /// A flow starts.
    FlowStart(FlowNumber),
}

impl Event {
    /// First type in the order of simultaneous events.
    pub const FIRST: Self = Self::ReadCounters;

    /// Returns the event as a number, in the order of events: numbers are compared faster.
    pub fn code(self) -> u64 {
        let (kind, subject) = match self {
            Self::ReadCounters => (0, 0),
            Self::EndBin => (1, 0),
            Self::Sample => (2, 0),
            Self::Watchdog => (3, 0),
            Self::LinkChange => (4, 0),
            Self::Ready(link) => (5, link),
            Self::HoldEnd(link) => (6, link),
            Self::Tick(link) => (7, link),
            Self::Arrive(link) => (8, link),
            Self::PauseEnd(lane) => (9, lane),
            Self::PauseFrame(lane) => (10, lane),
            Self::ReceiverTimer(flow) => (11, flow),
            Self::Credit(scheduler) => (12, scheduler),
            Self::Turn(host) => (13, host),
            Self::SenderTimer(flow) => (14, flow),
            Self::FlowStart(flow) => (15, flow),
        };
        kind << 32 | u64::from(subject)
    }

    /// Returns the event of a number.
    pub fn from_code(code: u64) -> Self {
        let subject = code as u32;
        match code >> 32 {
            0 => Self::ReadCounters,
            1 => Self::EndBin,
            2 => Self::Sample,
            3 => Self::Watchdog,
            4 => Self::LinkChange,
            5 => Self::Ready(subject),
            6 => Self::HoldEnd(subject),
            7 => Self::Tick(subject),
            8 => Self::Arrive(subject),
            9 => Self::PauseEnd(subject),
            10 => Self::PauseFrame(subject),
            11 => Self::ReceiverTimer(subject),
            12 => Self::Credit(subject),
            13 => Self::Turn(subject),
            14 => Self::SenderTimer(subject),
            _ => Self::FlowStart(subject),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_order_of_events() {
        let of_link = [Event::Ready, Event::HoldEnd, Event::Tick, Event::Arrive];
        let of_lane = [Event::PauseEnd, Event::PauseFrame];
        let of_flow = [Event::ReceiverTimer, Event::SenderTimer, Event::FlowStart];
        let of_host = [Event::Credit, Event::Turn];
        let kinds = of_link.into_iter().chain(of_lane).chain(of_flow).chain(of_host);
        let of_subjects = kinds.flat_map(|kind| [0, 1, u32::MAX].map(kind));
        let first = [Event::EndBin, Event::Sample, Event::Watchdog, Event::LinkChange];
        let mut events: Vec<Event> = of_subjects.chain(first).chain([Event::FIRST]).collect();
        events.sort_unstable();
        let codes: Vec<u64> = events.iter().map(|event| event.code()).collect();
        assert!(codes.is_sorted_by(|one, other| one < other));
        assert_eq!(events, codes.into_iter().map(Event::from_code).collect::<Vec<_>>());
    }
}
