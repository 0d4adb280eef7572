//! The two ends of a flow, and the state that they share.
//!
//! The sender is at the flow's source, the receiver at its target. Neither reads what the other writes:
//! shared state is fixed when the flow starts, and all other information travels in packets. Hence the order
//! in which hosts are handled does not matter, as long as packets take some time between them.

use super::connections::StreamFlows;
use super::table::ChunkedTable;
use crate::base::prefetch::prefetch;
use crate::base::units::Time;
use crate::breakdown::Completion;
use crate::model::flow::{FlowSpec, Reordering};
use crate::model::packet::FlowNumber;
use crate::network::routes::{PathSelector, Route};
use crate::record::gauges::GaugeLog;
use crate::record::rtts::RttTrace;
use crate::simulation::credit::SchedulerRef;
use crate::simulation::external_stacks::Datagrams;
use crate::transport::endpoint::breakdown::SenderBreakdown;
use crate::transport::endpoint::receiver::Receiver;
use crate::transport::endpoint::sender::Sender;
use crate::transport::selector::EntropySelector;
use crate::transport::{CachedPathState, Controller, StackEndpoint};

/// Sender end of a flow. Fields that ACKs access come first: with thousands of flows none of them is cached
/// (docs/performance.md).
#[repr(C)]
pub(in crate::simulation) struct SenderEnd {
    pub(in crate::simulation) number: FlowNumber,
    pub(in crate::simulation) class: u16,
    /// True if the flow is the byte stream of a persistent connection.
    pub(in crate::simulation) is_stream: bool,
    /// True if the flow waits for its turn at the host's port ([`HostTurns`]).
    ///
    /// [`HostTurns`]: crate::simulation::host_turns::HostTurns
    pub(in crate::simulation) awaits_turn: bool,
    /// Time at which the sender had nothing left to do; [`Time::NEVER`] before.
    pub(in crate::simulation) closed_at: Time,
    pub(in crate::simulation) controller: Box<dyn Controller>,
    pub(in crate::simulation) packets: PacketCounts,
    /// Time of the valid timer event. Other timer events are stale and ignored.
    pub(in crate::simulation) wake_at: Time,
    /// Time at which a long-lived flow stops; otherwise [`Time::NEVER`].
    pub(in crate::simulation) stop_at: Time,
    pub(in crate::simulation) forward: PathSelector,
    /// Selector of entropy values, if the host chooses paths.
    pub(in crate::simulation) entropy: Option<Box<dyn EntropySelector>>,
    pub(in crate::simulation) sender: Sender,
    /// FCT breakdown, if it is kept.
    pub(in crate::simulation) breakdown: Option<Box<SenderBreakdown>>,
    /// Endpoint of an external stack, which replaces controller and sender.
    pub(in crate::simulation) external_stack: Option<Box<dyn StackEndpoint>>,
}

/// Receiver end of a flow. Fields that every data packet accesses come first.
#[repr(C)]
pub(in crate::simulation) struct ReceiverEnd {
    pub(in crate::simulation) number: FlowNumber,
    pub(in crate::simulation) class: u16,
    /// True if RTTs of the flow are recorded.
    pub(in crate::simulation) is_traced: bool,
    /// True if the flow is the byte stream of a persistent connection.
    pub(in crate::simulation) is_stream: bool,
    pub(in crate::simulation) packets: PacketCounts,
    /// Time of the valid timer event.
    pub(in crate::simulation) respond_at: Time,
    /// Payload received.
    pub(in crate::simulation) delivered: u64,
    /// Payload to receive; `u64::MAX` for a long-lived flow and for a byte stream.
    pub(in crate::simulation) expected: u64,
    pub(in crate::simulation) receiver: Receiver,
    pub(in crate::simulation) reverse: PathSelector,
    /// Time at which all payload had been received; [`Time::NEVER`] before.
    pub(in crate::simulation) completed_at: Time,
    /// Credit scheduler of the flow, if its transport has one.
    pub(in crate::simulation) credit_scheduler: Option<SchedulerRef>,
    /// FCT breakdown at the receiver, if it is kept.
    pub(in crate::simulation) breakdown: Option<Box<ReceiverBreakdown>>,
    /// Endpoint of an external stack, which replaces the receiver.
    pub(in crate::simulation) external_stack: Option<Box<dyn StackEndpoint>>,
}

/// FCT breakdown at a receiver.
#[derive(Default)]
pub(in crate::simulation) struct ReceiverBreakdown {
    /// Record of a packet that has not been answered yet, and its arrival time.
    pub(in crate::simulation) pending_answer: Option<(u32, Time)>,
    /// Breakdown of the packet that completed the flow.
    pub(in crate::simulation) completion: Option<Box<Completion>>,
}

/// State shared by both ends of a flow, and counters kept elsewhere.
pub(in crate::simulation) struct SharedState {
    pub(in crate::simulation) spec: FlowSpec,
    /// Route of the forward path.
    pub(in crate::simulation) route: Route,
    /// Packets of the flow that the network has lost.
    pub(in crate::simulation) lost: u64,
    /// RTT trace, if RTTs of the flow are recorded.
    pub(in crate::simulation) trace: Option<Box<RttTrace>>,
    /// Gauges of the sender, if the flow is recorded.
    pub(in crate::simulation) gauges: Option<Box<GaugeLog>>,
    /// Final state of the receiver, if it is in another partition.
    pub(in crate::simulation) remote_receiver: Option<Box<ReceiverFinal>>,
    /// Datagrams in the network, if the flow has an external stack.
    pub(in crate::simulation) datagrams: Option<Box<Datagrams>>,
    /// Flows of the byte stream, if the flow is one.
    pub(in crate::simulation) stream: Option<Box<StreamFlows>>,
}

/// State of a receiver while its flow is in progress.
#[derive(Clone, Copy)]
pub(in crate::simulation) struct ReceiverState {
    pub(in crate::simulation) packets: PacketCounts,
    /// True if no answer is pending.
    pub(in crate::simulation) is_idle: bool,
    pub(in crate::simulation) delivered: u64,
    pub(in crate::simulation) completed_at: Time,
    /// Order of arrivals, unless an external stack receives.
    pub(in crate::simulation) reordering: Option<Reordering>,
}

/// State of a receiver at the end of its flow.
#[derive(Clone)]
pub(in crate::simulation) struct ReceiverFinal {
    pub(in crate::simulation) state: ReceiverState,
    pub(in crate::simulation) completion: Option<Box<Completion>>,
}

impl SenderEnd {
    /// Gauges of the controller or the external stack.
    pub(in crate::simulation) fn gauges(&self) -> Vec<(&'static str, f64)> {
        self.external_stack.as_ref().map_or_else(|| self.controller.gauges(), |end| end.gauges())
    }

    /// Returns the state to cache for the next flow between the same hosts, after `cached`. A persistent
    /// connection does not end, and an external stack has an RTT estimate of its own.
    pub(super) fn update_cached_state(&self, mut cached: CachedPathState) -> CachedPathState {
        cached.rate = self.controller.cached_rate().or(cached.rate);
        if !self.is_stream && self.external_stack.is_none() {
            self.sender.update_cached_state(&*self.controller, &mut cached);
        }
        cached
    }
}

impl ReceiverEnd {
    /// Returns true if the flow has an end, and data is missing.
    pub(in crate::simulation) fn lacks_data(&self) -> bool {
        self.completed_at == Time::NEVER && self.expected < u64::MAX
    }

    /// Returns true if the transport sends data by credit, and the receiver answers each packet of it.
    pub(in crate::simulation) fn answers_packets(&self) -> bool {
        self.credit_scheduler.is_some_and(|scheduler| scheduler.answers_packets)
    }

    /// Time of the receiver's next answer, if an answer is delayed.
    fn next_timer(&self) -> Time {
        self.external_stack
            .as_ref()
            .map_or_else(|| self.receiver.next_timer(), |end| end.next_timer())
    }

    /// State of the receiver.
    fn state(&self) -> ReceiverState {
        ReceiverState {
            packets: self.packets,
            is_idle: self.next_timer() == Time::NEVER,
            delivered: self.delivered,
            completed_at: self.completed_at,
            reordering: self.external_stack.is_none().then_some(self.receiver.reordering),
        }
    }

    /// State of the receiver at the end of its flow.
    pub(in crate::simulation) fn final_state(&self) -> ReceiverFinal {
        let completion = self.breakdown.as_ref().and_then(|breakdown| breakdown.completion.clone());
        ReceiverFinal { state: self.state(), completion }
    }
}

/// Packets that one end of a flow has sent and received.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::simulation) struct PacketCounts {
    pub(in crate::simulation) sent: u64,
    pub(in crate::simulation) received: u64,
    /// Time of the last packet received.
    pub(in crate::simulation) last_received: Time,
}

impl PacketCounts {
    /// Counts a received packet.
    pub(in crate::simulation) fn on_received(&mut self, now: Time) {
        self.received += 1;
        self.last_received = now;
    }
}

/// Flows in progress by slot.
#[derive(Default)]
pub(in crate::simulation) struct LiveFlows {
    pub(in crate::simulation) senders: ChunkedTable<SenderEnd>,
    pub(in crate::simulation) receivers: ChunkedTable<ReceiverEnd>,
    pub(in crate::simulation) shared: ChunkedTable<SharedState>,
    /// Slots of receivers whose senders, in another partition, have closed.
    pub(in crate::simulation) closing_receivers: Vec<usize>,
    /// Slots of traced receivers whose senders are in another partition.
    pub(in crate::simulation) traced_receivers: Vec<usize>,
}

impl LiveFlows {
    /// Memory of a flow without its controller.
    pub(in crate::simulation) const BYTES: usize = size_of::<Option<SenderEnd>>()
        + size_of::<Option<ReceiverEnd>>()
        + size_of::<Option<SharedState>>();

    /// Reads ahead lines of memory that the sender needs for an answer, or the receiver for another packet.
    pub(in crate::simulation) fn read_ahead(&self, slot: usize, is_answer: bool) {
        if is_answer && let Some(end) = self.senders.get(slot) {
            prefetch(&end.number);
            prefetch(&end.stop_at);
            prefetch(&end.sender.retransmits);
            prefetch(&end.breakdown);
            end.sender.read_ahead();
        } else if let Some(end) = self.receivers.get(slot) {
            prefetch(&end.number);
            prefetch(&end.expected);
            prefetch(&end.completed_at);
            end.receiver.read_ahead();
        }
    }

    /// Number of flows in progress. A byte stream counts as the flows that it carries.
    pub(in crate::simulation) fn active(&self) -> usize {
        let active = |sender_end: &&SenderEnd| sender_end.closed_at == Time::NEVER;
        let senders = self.senders.iter().filter(active);
        let (streams, others): (Vec<_>, Vec<_>) =
            senders.partition(|sender_end| sender_end.is_stream);
        let in_streams = |shared: &SharedState| Some(shared.stream.as_ref()?.in_progress());
        let carried: usize = match streams.len() {
            0 => 0,
            _ => self.shared.iter().filter_map(in_streams).sum(),
        };
        others.len() + carried
    }

    /// Inserts a flow, or those of its ends that are in this partition.
    #[inline]
    pub(in crate::simulation) fn insert(
        &mut self,
        slot: usize,
        sender_end: Option<SenderEnd>,
        receiver_end: Option<ReceiverEnd>,
        shared: SharedState,
    ) {
        self.senders.insert(slot, sender_end);
        self.receivers.insert(slot, receiver_end);
        self.shared.insert(slot, Some(shared));
    }

    /// Removes a flow, if its sender is in this partition and the final state of its receiver is available.
    #[inline]
    pub(in crate::simulation) fn remove(
        &mut self,
        slot: usize,
    ) -> Option<(SenderEnd, ReceiverFinal, SharedState)> {
        self.receiver_state(slot)?;
        let sender_end = self.senders[slot].take()?;
        let mut shared = self.shared[slot].take()?;
        let local = self.receivers[slot].take().map(|receiver_end| receiver_end.final_state());
        let receiver = local.or_else(|| shared.remote_receiver.take().map(|remote| *remote))?;
        Some((sender_end, receiver, shared))
    }

    /// Frees the memory of a slot and all slots after it, which are empty.
    pub(in crate::simulation) fn truncate(&mut self, slot: usize) {
        self.senders.truncate(slot);
        self.receivers.truncate(slot);
        self.shared.truncate(slot);
    }

    /// Merges the ends of a flow that are in another partition.
    pub(in crate::simulation) fn merge(
        &mut self,
        slot: usize,
        other: &mut Self,
        other_slot: usize,
    ) {
        let (sender_end, receiver_end) =
            (other.senders[other_slot].take(), other.receivers[other_slot].take());
        let Some(shared) = other.shared[other_slot].take() else { return };
        if self.shared.get(slot).is_none() {
            self.insert(slot, sender_end, receiver_end, shared);
            return;
        }
        if sender_end.is_some() {
            self.senders[slot] = sender_end;
            self.shared[slot] = Some(shared);
        }
        if receiver_end.is_some() {
            self.receivers[slot] = receiver_end;
        }
    }

    /// Last state of a flow's receiver that is available in this partition.
    pub(in crate::simulation) fn receiver_state(&self, slot: usize) -> Option<ReceiverState> {
        let remote = || Some(self.shared[slot].as_ref()?.remote_receiver.as_ref()?.state);
        self.receivers[slot].as_ref().map(ReceiverEnd::state).or_else(remote)
    }

    /// Number of a flow's packets in the network. The sender's partition has the count.
    pub(in crate::simulation) fn in_network(&self, slot: usize) -> u64 {
        let (Some(sender_end), Some(receiver), Some(shared)) =
            (&self.senders[slot], self.receiver_state(slot), &self.shared[slot])
        else {
            return 0;
        };
        let (forward, reverse) = (sender_end.packets, receiver.packets);
        forward.sent + reverse.sent - forward.received - reverse.received - shared.lost
    }

    /// Returns true if only a timer of the sender can affect the flow: the network contains none of its
    /// packets, and the receiver has no pending answer.
    pub(in crate::simulation) fn is_over(&self, slot: usize) -> bool {
        self.receiver_state(slot).is_some_and(|receiver| receiver.is_idle)
            && self.in_network(slot) == 0
    }
}
