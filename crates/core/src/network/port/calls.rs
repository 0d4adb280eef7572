//! Calls of an eager port: when [`serve`](Port::serve) must be called next.

use super::{Port, may_go};
use crate::base::units::Time;

impl Port {
    /// Returns the time at which [`serve`](Self::serve) must be called next: `None` if no packet may
    /// go, if the port is lazy, or if a call is pending.
    pub fn next_call(&mut self, now: Time) -> Option<Time> {
        let waits = self.transmitter.waiting.packets > 0;
        if !waits && !self.is_paused {
            self.service.on_empty();
        }
        let Self { service, control, data, is_paused, transmitter, .. } = self;
        let is_held = || transmitter.busy_until <= now && data.held_until() > now;
        let wants_call =
            service.wants_call(|| waits && may_go(*control, data, *is_paused) && !is_held());
        wants_call.then(|| self.transmitter.busy_until.max(now))
    }

    /// Returns the time at which [`serve`](Self::serve) must be called because a queue no longer holds
    /// back its packets: `None` if the transmitter is busy, if no packet is held back, or if an event
    /// for it is pending.
    pub fn next_release(&mut self, now: Time) -> Option<Time> {
        if self.transmitter.busy_until > now || self.transmitter.waiting.packets == 0 {
            return None;
        }
        let held_until = self.data.held_until();
        let is_new = held_until > now && held_until < self.released_at;
        is_new.then(|| {
            self.released_at = held_until;
            held_until
        })
    }

    /// Handles the event that [`next_release`](Self::next_release) requested.
    pub fn on_release(&mut self, now: Time) {
        if self.released_at == now {
            self.released_at = Time::NEVER;
        }
    }

    /// Handles the call that [`next_call`](Self::next_call) requested.
    pub fn on_call(&mut self) {
        self.service.on_call();
    }
}
