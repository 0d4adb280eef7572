//! Window loop: handles the events of each group of nodes separately, from the start of a window to its end.
//!
//! All packets that arrive at a group in a window are in flight when the window starts
//! ([`WindowPlan`](crate::schedule::WindowPlan)). Instead of an event queue, the loop collects and sorts
//! these arrivals and merges them with the few other events of the group, while the state of the group is
//! cached (docs/performance.md).

use std::ops::DerefMut;

use super::Simulation;
use crate::base::run_control::{Progress, RunControl};
use crate::base::schema::Problem;
use crate::base::units::{Duration, Time};
use crate::model::graph::LinkId;
use crate::network::switch::pause_watchdog;
use crate::schedule::Event;

/// Time span in which groups cannot affect each other.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    start: Time,
    /// Exclusive end.
    end: Time,
}

/// Coordinator of windows: exchanges messages between partitions and handles events that belong to no node.
pub(super) struct WindowCoordinator<'a> {
    limit: Time,
    control: &'a RunControl,
    /// Times of the next bound of the measured interval, end of a bin, samples, deadlock check and link
    /// change.
    next_bound: Option<Time>,
    next_bin_end: Option<Time>,
    next_sample: Option<Time>,
    next_deadlock_check: Option<Time>,
    next_link_change: Option<Time>,
}

impl<'a> WindowCoordinator<'a> {
    /// Returns a coordinator that ends the run at `limit`, or when `control` requests a stop.
    pub(super) fn new(simulation: &Simulation<'_>, limit: Time, control: &'a RunControl) -> Self {
        let next_sample = simulation.recorder.is_sampling().then_some(Time::ZERO);
        let next_deadlock_check = simulation.network.watchdog().map(|period| Time::ZERO + period);
        Self {
            limit,
            control,
            next_bound: simulation.next_bound(),
            next_bin_end: simulation.next_bin_end(),
            next_sample,
            next_deadlock_check,
            next_link_change: simulation.next_link_change(),
        }
    }

    /// Ends a window and returns the next, or `None` at the end of the run.
    pub(super) fn next<'s>(
        &mut self,
        simulations: &mut [impl DerefMut<Target = Simulation<'s>>],
    ) -> Result<Option<Window>, Problem> {
        exchange(simulations);
        record_ended_flows(simulations);
        let events = simulations.iter_mut().map(|simulation| simulation.events_of_window());
        let critical = events.max().unwrap_or_default();
        let (first, others) =
            simulations.split_first_mut().unwrap_or_else(|| unreachable!("one simulation"));
        first.totals.critical += critical;
        for simulation in others {
            first.live_flow_count.merge(&mut simulation.live_flow_count);
        }
        first.live_flow_count.update();
        let start = simulations
            .iter()
            .map(|simulation| simulation.next_time())
            .fold(self.next_global_event(), Time::min);
        if start > self.limit || start == Time::NEVER || is_over(simulations) {
            return Ok(None);
        }
        self.control.poll(|| progress(simulations))?;
        for simulation in &mut *simulations {
            simulation.scheduler.set_now(start);
        }
        if self.next_bound == Some(start) {
            self.next_bound = simulations
                .iter_mut()
                .map(|simulation| simulation.read_counters())
                .fold(None, Option::or);
            simulations[0].totals.events += 1;
        }
        if self.next_bin_end == Some(start) {
            self.next_bin_end = simulations
                .iter_mut()
                .map(|simulation| simulation.end_bin())
                .fold(None, Option::or);
            simulations[0].totals.events += 1;
        }
        if self.next_sample == Some(start) {
            self.next_sample = simulations
                .iter_mut()
                .map(|simulation| simulation.take_samples())
                .fold(None, Option::or);
            simulations[0].totals.events += 1;
        }
        if self.next_deadlock_check == Some(start) {
            self.next_deadlock_check = check_deadlocks(simulations);
            simulations[0].totals.events += 1;
            if !simulations[0].deadlocks.is_empty() {
                return Ok(None);
            }
        }
        if self.next_link_change == Some(start) {
            apply_link_changes(simulations, start);
            self.next_link_change = simulations[0].next_link_change();
            simulations[0].totals.events += 1;
        }
        simulations[0].totals.windows += 1;
        let longest = simulations[0].scheduler.window();
        let after = Time(self.limit.0.saturating_add(1));
        Ok(Some(Window { start, end: (start + longest).min(self.next_global_event()).min(after) }))
    }

    /// Time of the next event that belongs to no node.
    fn next_global_event(&self) -> Time {
        let of_observers = [self.next_bound, self.next_bin_end, self.next_sample];
        let others = [self.next_deadlock_check, self.next_link_change];
        of_observers.into_iter().chain(others).flatten().fold(Time::NEVER, Time::min)
    }
}

/// Progress of the run.
fn progress<'s>(simulations: &[impl DerefMut<Target = Simulation<'s>>]) -> Progress {
    simulations.iter().map(|simulation| simulation.progress()).fold(
        Progress::default(),
        |sum, one| Progress {
            now: sum.now.max(one.now),
            started: sum.started + one.started,
            ended: sum.ended + one.ended,
            started_bytes: sum.started_bytes + one.started_bytes,
            delivered_bytes: sum.delivered_bytes + one.delivered_bytes,
            hops: sum.hops + one.hops,
        },
    )
}

/// Exchanges packets and news between partitions.
fn exchange<'s>(simulations: &mut [impl DerefMut<Target = Simulation<'s>>]) {
    for from in 0..simulations.len() {
        let news = std::mem::take(&mut simulations[from].partition_links.news);
        for to in (0..simulations.len()).filter(|to| *to != from) {
            simulations[to].apply_news(&news);
            let filled = std::mem::take(&mut simulations[from].partition_links.outboxes[to]);
            // The receiver has emptied its inbox, whose memory becomes the new outbox.
            let emptied =
                std::mem::replace(&mut simulations[to].partition_links.inboxes[from], filled);
            simulations[from].partition_links.outboxes[to] = emptied;
        }
    }
    for from in 0..simulations.len() {
        let finals = simulations[from].receiver_finals();
        for to in (0..simulations.len()).filter(|to| *to != from && !finals.is_empty()) {
            simulations[to].apply_receiver_finals(&finals);
        }
    }
}

/// Applies the link changes that are due in all partitions. Before, packets in flight between partitions move
/// to the receiving partition, because their link may fail. Afterwards, partitions exchange the new routes.
fn apply_link_changes<'s>(simulations: &mut [impl DerefMut<Target = Simulation<'s>>], now: Time) {
    if simulations.len() > 1 {
        for simulation in &mut *simulations {
            simulation.import_packets();
            simulation.export_packets(now);
        }
        exchange(simulations);
        for simulation in &mut *simulations {
            simulation.import_packets();
        }
    }
    for simulation in &mut *simulations {
        simulation.apply_link_changes();
    }
    exchange(simulations);
}

/// Records the flows that have ended, in all partitions.
fn record_ended_flows<'s>(simulations: &mut [impl DerefMut<Target = Simulation<'s>>]) {
    for from in 0..simulations.len() {
        simulations[from].record_ended_flows();
        let links = &mut simulations[from].partition_links;
        let (mut ended, mut idle) =
            (std::mem::take(&mut links.ended), std::mem::take(&mut links.idle));
        for to in (0..simulations.len()).filter(|to| *to != from) {
            for number in &ended {
                simulations[to].remove_remote_flow(*number);
            }
            for number in &idle {
                simulations[to].end_closing(*number);
            }
        }
        let forgotten = std::mem::take(&mut simulations[from].partition_links.forgotten);
        for to in (0..simulations.len()).filter(|to| *to != from) {
            for number in &forgotten {
                simulations[to].network.forget_packets(*number);
            }
        }
        ended.clear();
        idle.clear();
        let links = &mut simulations[from].partition_links;
        (links.ended, links.idle) = (ended, idle);
    }
}

/// Returns true if no flow is pending or in progress. Remaining events are stale.
fn is_over<'s>(simulations: &[impl DerefMut<Target = Simulation<'s>>]) -> bool {
    let open_pauses = simulations
        .iter()
        .map(|simulation| simulation.network.open_pauses())
        .fold(0, u64::wrapping_add);
    open_pauses == 0
        && simulations
            .iter()
            .all(|simulation| simulation.local_flows == 0 && simulation.pending_flows.is_empty())
}

/// Checks for deadlocks and stores them in the first partition. Returns the time of the next check.
pub(super) fn check_deadlocks<'s>(
    simulations: &mut [impl DerefMut<Target = Simulation<'s>>],
) -> Option<Time> {
    let (first, others) = simulations.split_first_mut()?;
    let now = first.scheduler.now();
    let has_long_pause =
        |simulation: &Simulation<'_>| pause_watchdog::has_long(&simulation.network, now);
    if has_long_pause(first) || others.iter().any(|simulation| has_long_pause(simulation)) {
        swap_network_state(first, others);
        first.deadlocks = pause_watchdog::deadlocks(&first.network);
        swap_network_state(first, others);
    }
    first.network.watchdog().map(|period| now + period)
}

/// Swaps the state of the network between the first partition and the others. A second call restores it.
fn swap_network_state<'s>(
    first: &mut Simulation<'s>,
    others: &mut [impl DerefMut<Target = Simulation<'s>>],
) {
    for other in others {
        let Simulation { partition, network, graph, .. } = &mut **other;
        first.network.swap(network, graph, |node| partition.owns(node));
    }
}

impl Simulation<'_> {
    /// Runs until every flow has finished, `limit` is reached or `control` requests a stop.
    pub(super) fn run_in_windows(
        &mut self,
        limit: Time,
        control: &RunControl,
    ) -> Result<(), Problem> {
        let mut coordinator = WindowCoordinator::new(self, limit, control);
        while let Some(window) = coordinator.next(&mut [&mut *self])? {
            self.run_window(window)?;
        }
        Ok(())
    }

    /// Number of events since the last call.
    fn events_of_window(&mut self) -> u64 {
        let before = std::mem::replace(&mut self.events_before_window, self.totals.events);
        self.totals.events - before
    }

    /// Time of the next event in this partition.
    fn next_time(&self) -> Time {
        self.scheduler
            .next_time()
            .min(self.pending_flows.next_start())
            .min(self.partition_links.next_arrival)
    }

    /// Runs all groups of this partition in a window.
    pub(super) fn run_window(&mut self, window: Window) -> Result<(), Problem> {
        self.import_packets();
        self.pending_flows.announce_before(window.end, self.graph, &mut self.scheduler)?;
        let mut arrivals = std::mem::take(&mut self.arrivals);
        let (mut first, mut read_until) = (0, 0);
        while let Some(group) = self.scheduler.next_due_group(first, window.end) {
            if group >= read_until {
                read_until = self.read_ahead(group, window);
            }
            self.run_group(group, window, &mut arrivals)?;
            first = group + 1;
        }
        self.arrivals = arrivals;
        if self.partition.has_others() {
            self.export_packets(window.end);
        }
        Ok(())
    }

    /// Reads ahead the state that arrivals in a window need, if the network outgrows the cache, of the groups
    /// from `group` to the one that it returns. Not inlined, because most networks do not need it.
    #[inline(never)]
    fn read_ahead(&mut self, group: usize, Window { start, end }: Window) -> usize {
        let Some(queues) = self.scheduler.node_queues() else { return usize::MAX };
        if !queues.plan.has_many_links() {
            return usize::MAX;
        }
        let groups = queues.plan.groups_ahead(group);
        let links = queues.links_of_groups_due(groups.clone(), end);
        self.network.read_ahead(links, start, end, &mut self.ahead);
        for link in &self.ahead.next_links {
            queues.read_ahead(*link);
        }
        for (slot, is_answer) in &self.ahead.deliveries {
            self.flows.read_ahead(*slot as usize, *is_answer);
        }
        groups.end
    }

    /// Runs a group in a window.
    fn run_group(
        &mut self,
        group: usize,
        Window { start, end }: Window,
        arrivals: &mut Vec<u64>,
    ) -> Result<(), Problem> {
        self.scheduler.begin_window(group, start);
        let Some(queues) = self.scheduler.node_queues() else { return Ok(()) };
        arrivals.clear();
        for link in queues.links_due(group, end) {
            self.network.visit_arrivals(link, start, end, |arrives| {
                // One number sorts faster than a pair. A window is shorter than 2³² ps.
                arrivals.push((arrives - start).0 << 32 | u64::from(link));
            });
        }
        arrivals.sort_unstable();
        for arrival in &*arrivals {
            let (time, link) = (start + Duration(arrival >> 32), *arrival as LinkId);
            while let Some(event) = self.scheduler.pop_before(time, Event::Arrive(link)) {
                self.handle(event)?;
            }
            self.scheduler.set_now(time);
            self.totals.events += 1;
            let (packet, next) = self.network.take_arrival(link);
            match next {
                Some(next) if next < end => {}
                next => self.scheduler.set_next_arrival(link, next),
            }
            self.on_arrival(packet, link)?;
            self.process_departures();
        }
        while let Some(event) = self.scheduler.pop_before(end, Event::FIRST) {
            self.handle(event)?;
        }
        self.scheduler.end_window();
        Ok(())
    }
}
