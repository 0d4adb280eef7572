//! The two ends of a flow, and what they share.
//!
//! A flow's sender lives at its source, its receiver at its target. Neither reads what the other writes:
//! what both know was fixed when the flow started, and everything else travels in packets. So it does not
//! matter which of two hosts is served first, as long as packets need some time between them.

use super::table::ChunkedTable;
use crate::base::units::Time;
use crate::breakdown::Finish;
use crate::model::flow::FlowSpec;
use crate::model::packet::FlowNumber;
use crate::network::routes::{PathSelector, Route};
use crate::record::rtts::Trace;
use crate::simulation::external_stacks::Datagrams;
use crate::transport::endpoint::breakdown::SenderBreakdown;
use crate::transport::endpoint::receiver::Receiver;
use crate::transport::endpoint::sender::Sender;
use crate::transport::{Controller, StackEndpoint};

/// The sending end of a flow. What ACKs touch stands first: with thousands of flows none of it is in a near
/// cache (docs/performance.md).
#[repr(C)]
pub(in crate::simulation) struct SenderEnd {
    pub(in crate::simulation) number: FlowNumber,
    pub(in crate::simulation) class: u16,
    /// When the sender had nothing left to do; [`Time::NEVER`] before.
    pub(in crate::simulation) closed: Time,
    pub(in crate::simulation) controller: Box<dyn Controller>,
    pub(in crate::simulation) tally: Tally,
    /// When its one pending wake-up that counts comes; others are stale and ignored.
    pub(in crate::simulation) wakes: Time,
    /// When a long-lived flow stops; [`Time::NEVER`] otherwise.
    pub(in crate::simulation) stops: Time,
    pub(in crate::simulation) there: PathSelector,
    pub(in crate::simulation) sender: Sender,
    /// Its account, if one is kept.
    pub(in crate::simulation) ledger: Option<Box<SenderBreakdown>>,
    /// What sends in place of controller and sender, if the flow's stack comes from elsewhere.
    pub(in crate::simulation) stack: Option<Box<dyn StackEndpoint>>,
}

/// The receiving end of a flow. What every data packet touches stands first.
#[repr(C)]
pub(in crate::simulation) struct ReceiverEnd {
    pub(in crate::simulation) number: FlowNumber,
    pub(in crate::simulation) class: u16,
    /// Whether what is answered is followed.
    pub(in crate::simulation) is_traced: bool,
    pub(in crate::simulation) tally: Tally,
    /// When its one pending deadline that counts comes.
    pub(in crate::simulation) responds: Time,
    /// Payload that has come.
    pub(in crate::simulation) delivered: u64,
    /// Payload that is to come; without end, if the flow is.
    pub(in crate::simulation) awaited: u64,
    pub(in crate::simulation) receiver: Receiver,
    pub(in crate::simulation) back: PathSelector,
    /// When all had come; [`Time::NEVER`] before.
    pub(in crate::simulation) completed: Time,
    /// What it has of the flow's account, if one is kept.
    pub(in crate::simulation) receipt: Option<Box<Receipt>>,
    /// What receives in place of the receiver, if the flow's stack comes from elsewhere.
    pub(in crate::simulation) stack: Option<Box<dyn StackEndpoint>>,
}

/// What a receiver has of its flow's account.
#[derive(Default)]
pub(in crate::simulation) struct Receipt {
    /// The parcel of a packet that is still to be answered, and when it came.
    pub(in crate::simulation) kept: Option<(u32, Time)>,
    /// How the flow was completed.
    pub(in crate::simulation) finish: Option<Box<Finish>>,
}

/// What both ends of a flow know of it, and what is counted of it elsewhere.
pub(in crate::simulation) struct Shared {
    pub(in crate::simulation) spec: FlowSpec,
    /// The way there.
    pub(in crate::simulation) there: Route,
    /// Packets of the flow that were lost in the network.
    pub(in crate::simulation) lost: u64,
    /// Follows its packets there and back, if that is asked for.
    pub(in crate::simulation) trace: Option<Box<Trace>>,
    /// What the receiver has said, if another part of the run has it.
    pub(in crate::simulation) far: Option<Box<ReceiverFinal>>,
    /// Its datagrams in the network, if its stack comes from elsewhere.
    pub(in crate::simulation) datagrams: Option<Box<Datagrams>>,
}

/// What is to be known of a receiver before its flow ends.
#[derive(Clone, Copy)]
pub(in crate::simulation) struct ReceiverState {
    pub(in crate::simulation) tally: Tally,
    /// Whether it owes no answer.
    pub(in crate::simulation) is_silent: bool,
    pub(in crate::simulation) delivered: u64,
    pub(in crate::simulation) completed: Time,
}

/// What is to be known of a receiver when its flow ends.
#[derive(Clone)]
pub(in crate::simulation) struct ReceiverFinal {
    pub(in crate::simulation) heard: ReceiverState,
    pub(in crate::simulation) finish: Option<Box<Finish>>,
}

impl SenderEnd {
    /// What its controller, or its own stack, has for traces over time.
    pub(in crate::simulation) fn gauges(&self) -> Vec<(&'static str, f64)> {
        self.stack.as_ref().map_or_else(|| self.controller.gauges(), |end| end.gauges())
    }
}

impl ReceiverEnd {
    /// When it has something to say at the latest that it does not say now.
    fn deadline(&self) -> Time {
        self.stack.as_ref().map_or_else(|| self.receiver.next_timer(), |end| end.next_timer())
    }

    /// What is to be known of it before its flow ends.
    fn heard(&self) -> ReceiverState {
        ReceiverState {
            tally: self.tally,
            is_silent: self.deadline() == Time::NEVER,
            delivered: self.delivered,
            completed: self.completed,
        }
    }

    /// What is to be known of it when its flow ends.
    pub(in crate::simulation) fn final_state(&self) -> ReceiverFinal {
        let finish = self.receipt.as_ref().and_then(|receipt| receipt.finish.clone());
        ReceiverFinal { heard: self.heard(), finish }
    }
}

/// Packets that an end of a flow has put into the network, and that it has taken out.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::simulation) struct Tally {
    pub(in crate::simulation) sent: u64,
    pub(in crate::simulation) heard: u64,
    /// When it last took one out.
    pub(in crate::simulation) last_heard: Time,
}

impl Tally {
    /// A packet has come.
    pub(in crate::simulation) fn hear(&mut self, now: Time) {
        self.heard += 1;
        self.last_heard = now;
    }
}

/// The flows in progress, by place.
#[derive(Default)]
pub(in crate::simulation) struct LiveFlows {
    pub(in crate::simulation) senders: ChunkedTable<SenderEnd>,
    pub(in crate::simulation) receivers: ChunkedTable<ReceiverEnd>,
    pub(in crate::simulation) shared: ChunkedTable<Shared>,
    /// Where receivers are whose senders have closed, in another part of the run.
    pub(in crate::simulation) farewells: Vec<usize>,
    /// Where receivers are of flows that are followed, with senders in another part of the run.
    pub(in crate::simulation) followed: Vec<usize>,
}

impl LiveFlows {
    /// What a flow takes in memory, besides its controller.
    pub(in crate::simulation) const BYTES: usize = size_of::<Option<SenderEnd>>()
        + size_of::<Option<ReceiverEnd>>()
        + size_of::<Option<Shared>>();

    /// Puts a flow, or what of it is here, in its place.
    pub(in crate::simulation) fn put(
        &mut self,
        place: usize,
        sending: Option<SenderEnd>,
        receiving: Option<ReceiverEnd>,
        shared: Shared,
    ) {
        self.senders.put(place, sending);
        self.receivers.put(place, receiving);
        self.shared.put(place, Some(shared));
    }

    /// Takes a flow from its place, if its sender is here: with what its receiver has said.
    pub(in crate::simulation) fn take(
        &mut self,
        place: usize,
    ) -> Option<(SenderEnd, ReceiverFinal, Shared)> {
        self.heard(place)?;
        let sending = self.senders[place].take()?;
        let mut shared = self.shared[place].take()?;
        let near = self.receivers[place].take().map(|receiving| receiving.final_state());
        let farewell = near.or_else(|| shared.far.take().map(|far| *far))?;
        Some((sending, farewell, shared))
    }

    /// There are no flows in a place or beyond any more: gives back their memory.
    pub(in crate::simulation) fn shorten(&mut self, place: usize) {
        self.senders.shorten(place);
        self.receivers.shorten(place);
        self.shared.shorten(place);
    }

    /// Puts what another part has of a flow to what is here.
    pub(in crate::simulation) fn absorb(&mut self, place: usize, other: &mut Self, at: usize) {
        let (sending, receiving) = (other.senders[at].take(), other.receivers[at].take());
        let Some(shared) = other.shared[at].take() else { return };
        if self.shared.get(place).is_none() {
            self.put(place, sending, receiving, shared);
            return;
        }
        if sending.is_some() {
            self.senders[place] = sending;
            self.shared[place] = Some(shared);
        }
        if receiving.is_some() {
            self.receivers[place] = receiving;
        }
    }

    /// What the receiver of a flow has said last.
    fn heard(&self, place: usize) -> Option<ReceiverState> {
        let far = || Some(self.shared[place].as_ref()?.far.as_ref()?.heard);
        self.receivers[place].as_ref().map(ReceiverEnd::heard).or_else(far)
    }

    /// How many packets of a flow are in the network, as its sender knows.
    pub(in crate::simulation) fn in_network(&self, place: usize) -> u64 {
        let (Some(sending), Some(heard), Some(shared)) =
            (&self.senders[place], self.heard(place), &self.shared[place])
        else {
            return 0;
        };
        let (there, back) = (sending.tally, heard.tally);
        there.sent + back.sent - there.heard - back.heard - shared.lost
    }

    /// Whether nothing can happen to a flow any more unless its sender is woken: its packets have left the
    /// network, and its receiver owes no answer.
    pub(in crate::simulation) fn is_over(&self, place: usize) -> bool {
        self.heard(place).is_some_and(|heard| heard.is_silent) && self.in_network(place) == 0
    }
}
