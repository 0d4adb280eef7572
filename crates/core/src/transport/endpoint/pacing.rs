//! When a sender at a rate may send its next packet: by the clock, and by its host's port.

use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::transport::Mechanism;

/// What holds back the next segment besides the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// Until when the pace does.
    pub spaced: Time,
    /// Whether it waits until the host's port is free, too.
    pub awaits_port: bool,
}

/// What a sender has handed to its host.
#[derive(Debug)]
pub struct Pacing {
    /// Bytes on the wire since `from`, and what remains of the burst that began then.
    bytes: u32,
    from: Time,
    burst_left: u32,
    /// When the host's port has sent all that this flow gave it; [`Time::NEVER`] while that is
    /// unknown.
    port_free: Time,
    in_port: u32,
}

impl Pacing {
    /// Nothing has been handed over.
    pub fn new(now: Time) -> Self {
        Self { bytes: 0, from: now, burst_left: 0, port_free: Time::ZERO, in_port: 0 }
    }

    /// When the last burst began.
    pub fn from(&self) -> Time {
        self.from
    }

    /// When the host's port has sent all that this flow gave it; [`Time::NEVER`] while that is unknown.
    pub fn port_free(&self) -> Time {
        self.port_free
    }

    /// A packet of so many bytes starts or continues a burst.
    pub fn on_sent(&mut self, now: Time, bytes: u32, mechanism: &Mechanism) {
        if self.burst_left == 0 {
            self.from = now;
            self.bytes = 0;
            self.burst_left = mechanism.burst.unwrap_or(1);
        }
        self.bytes += bytes;
        self.burst_left -= 1;
    }

    /// What of a rate holds back the next packet.
    #[inline]
    pub fn of_next(&self, rate: Rate, mechanism: &Mechanism) -> Pace {
        let bytes = Bytes(u64::from(self.bytes));
        if self.burst_left > 0 {
            let spaced = |rate: Rate| rate.transmit(bytes);
            let spaced = self.from + mechanism.spacing.map_or(Duration::ZERO, spaced);
            return Pace { spaced, awaits_port: false };
        }
        if rate.0 == 0 {
            return Pace { spaced: Time::NEVER, awaits_port: false };
        }
        Pace { spaced: self.from + rate.transmit(bytes), awaits_port: true }
    }

    /// When what a pace holds back may leave. Within a burst that is at once, or as packets are spaced. The
    /// next burst may start when the last one has had its time at the rate now allowed, and the host's port
    /// has sent it. So flows that share a port take turns instead of filling it.
    pub fn until(&self, Pace { spaced, awaits_port }: Pace) -> Time {
        if awaits_port { spaced.max(self.port_free) } else { spaced }
    }

    /// The host's port has taken a packet and will have sent it at `ends`, if that is known yet.
    pub fn on_handed(&mut self, ends: Option<Time>) {
        if let Some(ends) = ends {
            self.port_free = ends;
        } else {
            self.in_port += 1;
            self.port_free = Time::NEVER;
        }
    }

    /// A packet that had to wait in the host's port will have been sent at `ends`. Says whether it was the
    /// last: then more may be sent.
    pub fn on_departure(&mut self, ends: Time) -> bool {
        self.in_port -= 1;
        if self.in_port == 0 {
            self.port_free = ends;
        }
        self.in_port == 0
    }
}
