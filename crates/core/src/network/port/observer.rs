//! Observers of a port: its router, the FCT breakdown and telemetry.

use super::Port;
use crate::base::random::Random;
use crate::base::units::{Duration, Time};
use crate::model::packet::Packet;
use crate::model::telemetry::Digest;
use crate::network::breakdown::packet_records;
use crate::network::breakdown::port_activity::Totals;
use crate::network::switch::traffic_classes::Class;
use crate::network::telemetry::PortTelemetry;
use crate::router::{FlowInfo, PortView};

/// Components that are notified of each departure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Observer {
    None,
    /// The breakdown, or the telemetry, or both.
    Records,
    /// The router, and the others if they are recorded.
    Router,
}

/// Times of a packet's passage over a link.
#[derive(Clone, Copy, Debug)]
pub struct Hop {
    /// Start of the transmission.
    pub starts: Time,
    /// Activity of the transmitter up to then, if the packet waited.
    pub totals: Option<Totals>,
    /// Duration of the transmission.
    pub transmission: Duration,
    /// Propagation delay.
    pub propagation: Duration,
    /// If true, packets on the forward path get `starts` as their timestamp.
    pub stamps: bool,
}

/// The router.
impl Port {
    /// True if the port has a router.
    pub fn is_routed(&self) -> bool {
        self.router.is_some()
    }

    /// True if the router reads packets on the reverse path.
    pub fn reads_acks(&self) -> bool {
        self.router.as_ref().is_some_and(|router| router.reads_acks())
    }

    /// Passes a packet to the router, before it is enqueued.
    pub fn on_enqueue(&mut self, packet: &mut Packet, flow_info: &FlowInfo, now: Time) {
        self.advance_to(now);
        if let Some(router) = &mut self.router {
            router.on_arrival(packet, flow_info, now);
        }
    }

    /// Passes a packet of the reverse path, which has arrived over the same cable, to the router.
    pub fn on_ack_return(&mut self, packet: &mut Packet, flow_info: &FlowInfo, now: Time) {
        self.advance_to(now);
        if let Some(router) = &mut self.router {
            router.on_ack_return(packet, flow_info, now);
        }
    }

    /// Notifies the router of the drop of a packet after [`on_enqueue`](Self::on_enqueue).
    pub fn on_drop(&mut self, packet: &Packet) {
        if let Some(router) = &mut self.router {
            router.on_drop(packet);
        }
    }

    /// Returns the time of the router's next tick; [`Time::NEVER`] without a router.
    pub fn next_tick(&self) -> Time {
        self.router.as_ref().map_or(Time::NEVER, |router| router.next_tick())
    }

    /// Runs the router's tick.
    pub fn tick(&mut self, now: Time) {
        let backlog = self.backlog(now).bytes;
        if let Some(router) = &mut self.router {
            router.on_tick(PortView { now, backlog });
        }
    }

    /// Returns the router's named values.
    pub fn gauges(&self) -> Vec<(&'static str, f64)> {
        self.router.as_ref().map_or_else(Vec::new, |router| router.gauges())
    }
}

/// Telemetry.
impl Port {
    /// Averages the port's utilisation for digests from now on, if the port records telemetry. Codes are
    /// rounded with `random`.
    pub fn set_digest(&mut self, digest: Digest, random: Random) {
        if let Some(telemetry) = &mut self.telemetry {
            telemetry.set_digest(digest, random);
        }
    }

    /// Returns the telemetry of the packets in flight, if the port records any.
    pub(in crate::network) fn telemetry(&mut self) -> Option<&mut PortTelemetry> {
        self.telemetry.as_deref_mut()
    }
}

/// The FCT breakdown.
impl Port {
    /// Notifies the observers of the packet whose transmission starts. Cold, since most ports have no
    /// observer.
    #[cold]
    pub(super) fn notify(&mut self, starts: Time, has_waited: bool) {
        let view = PortView { now: starts, backlog: self.transmitter.waiting.bytes };
        let ends = self.transmitter.busy_until;
        let Some(packet) = self.transmitter.last() else { return };
        if self.observer == Observer::Router
            && let Some(router) = &mut self.router
        {
            router.on_departure(packet, view);
        }
        if let Some(telemetry) = &mut self.telemetry {
            telemetry.start(packet, starts, self.counters.bytes, view.backlog);
        }
        if let Some(activity) = &mut self.activity {
            activity.start(packet, has_waited, starts, ends);
            if self.transmitter.changes() {
                activity.record_start(starts);
            }
        }
    }

    /// Records that a packet of a class starts to wait. Returns the transmitter's activity up to now,
    /// if it is recorded.
    #[inline]
    pub fn enter(&mut self, packet: &Packet, class: Class, now: Time) -> Option<Totals> {
        self.activity.as_mut().map(|activity| activity.enter(packet, class, now))
    }

    /// Returns the time that the transmitter has been idle because of pauses of a class, if it is
    /// recorded. A paused port whose senders await departures is eager, so no transmission is overdue.
    pub fn idle_for(&self, class: Class, now: Time) -> Duration {
        self.activity.as_ref().map_or(Duration::ZERO, |activity| activity.idle_for(class, now))
    }

    /// Records that the queue has dropped a packet that waited.
    pub fn record_reject(&mut self, packet: &Packet) {
        if let Some(activity) = &mut self.activity {
            activity.reject(packet);
        }
    }

    /// Returns the passage of the packet that arrives at the end of the link now, if it is recorded.
    #[inline]
    pub fn hop(&mut self, packet: &Packet, now: Time) -> Option<Hop> {
        let activity = self.activity.as_mut()?;
        let (starts, ends) = self.transmitter.crossed(packet.bytes, now).unwrap_or_else(|| {
            let starts = activity.take_start();
            (starts, self.transmitter.end(packet.bytes, starts))
        });
        Some(Hop {
            starts,
            totals: packet_records::has_waited(packet).then(|| activity.exit()),
            transmission: ends - starts,
            propagation: now - ends,
            stamps: self.transmitter.stamps_aside,
        })
    }
}
