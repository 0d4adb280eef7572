//! Turns of the flows of a sending host under receiver-driven transports and UET: its port gets one packet at
//! a time, of the flow with the least unsent bytes that has credit when the port is free (SRPT), or in round
//! robin.

use super::Simulation;
use crate::base::units::{Bytes, Duration, Time};
use crate::model::flow::HostId;
use crate::model::packet::FlowNumber;
use crate::schedule::{Event, Scheduler};
use crate::transport::{Allowance, TurnOrder};

/// Turns by host. Empty without transports whose flows take turns.
#[derive(Default)]
pub(super) struct HostTurns(Vec<HostTurn>);

/// State of a host.
#[derive(Clone, Default)]
pub(super) struct HostTurn {
    host: HostId,
    /// True if the port has a packet, or is about to choose the next flow.
    is_taken: bool,
    /// Time for which the last packet took the port.
    took: Duration,
    /// Flows that had credit when the port was not free.
    waiting: Vec<FlowNumber>,
}

impl HostTurns {
    /// State of a host.
    pub(super) fn of(&mut self, host: HostId) -> &mut HostTurn {
        let index = host as usize;
        if index >= self.0.len() {
            self.0.resize(index + 1, HostTurn::default());
        }
        self.0[index].host = host;
        &mut self.0[index]
    }
}

impl HostTurn {
    /// Returns the allowance of a flow: it permits no data while the port is not free.
    pub(super) fn limit(&self, allowance: Allowance) -> Allowance {
        Allowance { granted: if self.is_taken { 0 } else { allowance.granted }, ..allowance }
    }

    /// Begins the turn of a flow, whose packet leaves the port at `ends`, if that is known.
    pub(super) fn begin(&mut self, ends: Option<Time>, scheduler: &mut Scheduler) {
        self.is_taken = true;
        if let Some(ends) = ends {
            self.took = ends.since(scheduler.now());
            scheduler.push(ends.max(scheduler.now()), Event::Turn(self.host));
        }
    }

    /// Returns the number of flows that wait, and the one whose turn it is.
    pub(super) fn flows(&self) -> u32 {
        self.waiting.len() as u32 + 1
    }

    /// Returns about the time until a flow has its next turn, if all flows have one in between.
    pub(super) fn until_next(&self) -> Duration {
        self.took * self.waiting.len() as u64
    }

    /// Adds a flow that waits.
    pub(super) fn wait(&mut self, flow: FlowNumber) {
        self.waiting.push(flow);
    }
}

impl Simulation<'_> {
    /// Ends the turn of a flow whose packet waited in the port, and leaves it at `ends`.
    pub(super) fn end_turn(&mut self, slot: usize, ends: Time) {
        if let Some(shared) = &self.flows.shared[slot] {
            self.host_turns.of(shared.spec.source).begin(Some(ends), &mut self.scheduler);
        }
    }

    /// Gives the next flow of a host its turn: the one with the least unsent bytes, and of several the first;
    /// or of flows in round robin the one that has waited for the longest time.
    pub(super) fn on_turn(&mut self, host: HostId) {
        let Self { host_turns, network, flows, transports, .. } = self;
        let turn = host_turns.of(host);
        turn.is_taken = false;
        let mut best = None;
        let mut position = 0;
        turn.waiting.retain(|flow| {
            let slot = network.slot(*flow).map(|slot| slot as usize);
            let sender_end = slot.and_then(|slot| flows.senders[slot].as_mut());
            let (Some(slot), Some(sender_end)) = (slot, sender_end) else { return false };
            sender_end.awaits_turn = sender_end.sender.has_data(sender_end.controller.allowance());
            if sender_end.awaits_turn {
                let mechanism = &transports.of_class(sender_end.class).mechanism;
                let order = match mechanism.turns {
                    Some(TurnOrder::RoundRobin) => (Bytes::ZERO, position),
                    _ => (sender_end.sender.unsent(), *flow),
                };
                let key = (order, *flow, slot);
                best = Some(best.map_or(key, |best| key.min(best)));
                position += 1;
            }
            sender_end.awaits_turn
        });
        let Some((_, flow, slot)) = best else { return };
        turn.waiting.retain(|other| *other != flow);
        if let Some(sender_end) = &mut flows.senders[slot] {
            sender_end.awaits_turn = false;
        }
        self.try_send(slot);
    }
}
