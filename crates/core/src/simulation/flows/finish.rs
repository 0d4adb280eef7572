//! How flows end, and the run.

use std::cmp::Reverse;

use super::ends::ReceiverFinal;
use crate::base::units::{Bytes, Time};
use crate::breakdown::BreakdownRow;
use crate::model::flow::{FlowRecord, Outcome};
use crate::network::outbox::PacketLoss;
use crate::network::switch::pause_watchdog;
use crate::simulation::Simulation;

impl Simulation<'_> {
    /// The sender in a place has nothing left to do.
    pub(in crate::simulation) fn close_sender(&mut self, place: usize) {
        let (Some(sending), Some(shared)) =
            (&mut self.flows.senders[place], &self.flows.shared[place])
        else {
            return;
        };
        if sending.closed == Time::NEVER {
            sending.closed = self.scheduler.now();
            let (source, target) = (shared.spec.source, shared.spec.target);
            self.sending[source as usize] -= 1;
            if let Some(memo) = sending.controller.cached_state() {
                self.memos.insert((source, target), memo);
            }
            if let (Some(ledger), Some(records)) = (&mut sending.ledger, self.network.records_mut())
            {
                ledger.release(&mut records.accounts);
            }
            if !self.part.owns(self.graph.hosts[target as usize]) {
                self.abroad.news.closed.push(sending.number);
            }
        }
        self.leaving.push((Time::ZERO, place));
    }

    /// Something has happened after which the flow in a place is over, if its sender is: at `lost`, if a
    /// packet was lost.
    pub(in crate::simulation) fn release_if_closed(&mut self, place: usize, lost: Time) {
        let sending = &self.flows.senders[place];
        if sending.as_ref().is_some_and(|sending| sending.closed < Time::NEVER) {
            self.leaving.push((lost, place));
        }
    }

    /// Ends the flows of which nothing is left to happen. Not as soon as that is so, but before anything
    /// happens later: so nobody needs to know which end of a flow was the last.
    pub(in crate::simulation) fn end_instant(&mut self) {
        while let Some(PacketLoss { flow, time }) = self.network.pop_loss() {
            let Some(place) = self.network.slot(flow) else { continue };
            let place = place as usize;
            if self.flows.senders[place].is_some()
                && let Some(shared) = &mut self.flows.shared[place]
            {
                shared.lost += 1;
            }
            self.release_if_closed(place, time);
        }
        // The last loss of a flow first.
        self.leaving.sort_unstable();
        while let Some((lost, place)) = self.leaving.pop() {
            if self.flows.is_over(place) {
                self.record(place, lost);
            }
        }
    }

    /// Whether nothing is left to happen: what events remain are stale.
    pub(in crate::simulation) fn is_over(&self) -> bool {
        self.live == 0 && self.network.pause_frames() == 0 && self.upcoming.is_empty()
    }

    /// Writes a flow's record and forgets the flow. It was over when its sender closed, when its ends heard a
    /// packet last or when the last was `lost`.
    fn record(&mut self, place: usize, lost: Time) {
        let Some((sending, ReceiverFinal { heard, finish }, shared)) = self.flows.take(place)
        else {
            return;
        };
        let spec = shared.spec;
        let completed = Some(heard.completed).filter(|time| *time < Time::NEVER);
        let closed = Some(sending.closed).filter(|time| *time < Time::NEVER);
        let outcome = match (spec.size, completed) {
            (None, _) => Outcome::LongLived,
            (Some(_), Some(_)) => Outcome::Finished,
            (Some(_), None) if sending.sender.is_terminated() => Outcome::Terminated,
            (Some(_), None) => Outcome::Unfinished,
        };
        let (there, back) = (sending.tally, heard.tally);
        self.totals.packets += there.sent + back.sent;
        if let Some(closed) = closed {
            let ended = closed.max(there.last_heard).max(back.last_heard).max(lost);
            self.population.note(ended, -1);
            self.totals.ended = self.totals.ended.max(ended);
        }
        let former = self.former.remove(&sending.number).unwrap_or_default();
        let ways = || former.iter().copied().chain([shared.there]);
        let routes = self.network.routes();
        let of_size = |size| routes.ideal_fct(self.graph, ways(), &self.format, size);
        let alone = spec.size.map(of_size).unwrap_or_default();
        self.network.unregister_flow(sending.number, ways());
        ways().for_each(|way| self.network.routes_mut().release(way));
        self.live -= 1;
        if self.part.has_others() {
            self.abroad.ended.push(sending.number);
        }
        if let (Some(completed), Some(ledger)) = (completed, &sending.ledger) {
            let finish = finish.map(|finish| *finish).unwrap_or_default();
            let division = BreakdownRow::new(&ledger.opening(), &finish);
            self.recorder.accounts.push(spec.id, completed - spec.start, &division, &alone);
            if let Some(chain) = ledger.chain(&finish) {
                self.recorder.chains.push(spec.id, completed - spec.start, &chain);
            }
        }
        // Of a flow that ends otherwise its sender does not learn that all has arrived.
        let acked = closed.filter(|_| outcome == Outcome::Finished);
        let repairs = || (sending.sender.retransmits, sending.sender.timeouts);
        let (retransmits, timeouts) =
            sending.stack.as_ref().map_or_else(repairs, |end| end.retransmits_and_timeouts());
        self.recorder.records.push(&FlowRecord {
            outcome,
            fct: completed.map(|completed| completed - spec.start),
            acked: acked.map(|acked| acked - spec.start),
            ideal_fct: alone.total(),
            delivered: Bytes(heard.delivered),
            retransmits,
            timeouts,
            spec,
        });
    }

    /// Records what is left and checks that nothing has leaked.
    pub(in crate::simulation) fn close(&mut self, limit: Time) {
        self.end_instant();
        self.population.count();
        if let Some(records) = self.network.records()
            && self.is_over()
            && !self.part.has_others()
        {
            records.assert_empty();
        }
        self.totals.ended = match self.deadlocks.is_empty() {
            true if self.is_over() => self.totals.ended.max(self.network.last_frame()),
            true => limit,
            false => self.scheduler.now(),
        };
        self.totals.live_flows_max = self.population.most;
        let now = self.totals.ended;
        // Before ports close, which ends their pauses.
        self.deadlocks = pause_watchdog::deadlocks(&self.network);
        let traffic = self.network.traffic();
        let told = self.deadlocks.iter().map(|deadlock| deadlock.explain(traffic, self.graph));
        self.stuck.extend(told);
        self.explain_stuck(now);
        let mut left: Vec<usize> = self.network.flows().map(|(_, place)| place as usize).collect();
        // The last place first, so that flows make room for their records.
        left.sort_unstable_by_key(|place| Reverse(*place));
        let in_network: u64 = left.iter().map(|place| self.flows.in_network(*place)).sum();
        let in_ports: u64 = self.network.close(now);
        assert_eq!(
            in_ports,
            in_network + self.network.pause_frames(),
            "flows and ports disagree on the packets in the network"
        );
        for place in left {
            self.record(place, Time::ZERO);
            self.flows.shorten(place);
        }
        self.recorder.close();
    }
}
