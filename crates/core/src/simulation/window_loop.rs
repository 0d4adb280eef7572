//! The run in windows: each group of nodes by itself, from a window's beginning to its end.
//!
//! What comes to a group in a window is on a wire when the window begins ([`WindowPlan`](crate::schedule::WindowPlan)). So
//! no queue of events is needed for it: the arrivals are collected and sorted, merged with the few events of
//! the group's own, and handled while its state is in a near cache (docs/performance.md).

use std::ops::DerefMut;

use super::Simulation;
use crate::base::run_control::{Progress, RunControl};
use crate::base::schema::Problem;
use crate::base::units::{Duration, Time};
use crate::model::graph::LinkId;
use crate::network::switch::pause_watchdog;
use crate::schedule::Event;

/// A span of time in which groups cannot influence each other.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    begins: Time,
    /// It ends before this.
    ends: Time,
}

/// What is done between windows, for all parts of a run: what belongs to no node.
pub(super) struct WindowCoordinator<'a> {
    limit: Time,
    watch: &'a RunControl,
    /// When to take samples next, when to look for deadlocks, and when something happens to a link.
    sample: Option<Time>,
    patrol: Option<Time>,
    change: Option<Time>,
}

impl<'a> WindowCoordinator<'a> {
    /// The conductor of a run that ends at `limit`, or when `watch` asks for a stop.
    pub(super) fn new(simulation: &Simulation<'_>, limit: Time, watch: &'a RunControl) -> Self {
        let sample = simulation.recorder.is_sampling().then_some(Time::ZERO);
        let patrol = simulation.network.watchdog().map(|period| Time::ZERO + period);
        Self { limit, watch, sample, patrol, change: simulation.next_change() }
    }

    /// Ends a window and gives the next; none if the run is over.
    pub(super) fn next<'s>(
        &mut self,
        parts: &mut [impl DerefMut<Target = Simulation<'s>>],
    ) -> Result<Option<Window>, Problem> {
        exchange(parts);
        end_instant(parts);
        let handled = parts.iter_mut().map(|part| part.events_of_window());
        let critical = handled.max().unwrap_or_default();
        let (first, others) = parts.split_first_mut().unwrap_or_else(|| unreachable!("one part"));
        first.totals.critical += critical;
        for part in others {
            first.population.absorb(&mut part.population);
        }
        first.population.count();
        let begins = parts.iter().map(|part| part.next_time()).fold(self.alarm(), Time::min);
        if begins > self.limit || begins == Time::NEVER || is_over(parts) {
            return Ok(None);
        }
        self.watch.poll(|| progress(parts))?;
        for part in &mut *parts {
            part.scheduler.set_now(begins);
        }
        if self.sample == Some(begins) {
            self.sample = parts.iter_mut().map(|part| part.sample()).fold(None, Option::or);
            parts[0].totals.events += 1;
        }
        if self.patrol == Some(begins) {
            self.patrol = watch(parts);
            parts[0].totals.events += 1;
            if !parts[0].deadlocks.is_empty() {
                return Ok(None);
            }
        }
        if self.change == Some(begins) {
            change(parts, begins);
            self.change = parts[0].next_change();
            parts[0].totals.events += 1;
        }
        parts[0].totals.windows += 1;
        let longest = parts[0].scheduler.window();
        let after = Time(self.limit.0.saturating_add(1));
        Ok(Some(Window { begins, ends: (begins + longest).min(self.alarm()).min(after) }))
    }

    /// When the next thing is to be done that belongs to no node.
    fn alarm(&self) -> Time {
        [self.sample, self.patrol, self.change].into_iter().flatten().fold(Time::NEVER, Time::min)
    }
}

/// How far the run is.
fn progress<'s>(parts: &[impl DerefMut<Target = Simulation<'s>>]) -> Progress {
    parts.iter().map(|part| part.progress()).fold(Progress::default(), |all, part| Progress {
        now: all.now.max(part.now),
        flows: all.flows + part.flows,
        hops: all.hops + part.hops,
    })
}

/// Hands over packets and news between parts.
fn exchange<'s>(parts: &mut [impl DerefMut<Target = Simulation<'s>>]) {
    for from in 0..parts.len() {
        let news = std::mem::take(&mut parts[from].abroad.news);
        for to in (0..parts.len()).filter(|to| *to != from) {
            parts[to].learn(&news);
            let sent = std::mem::take(&mut parts[from].abroad.outboxes[to]);
            // What was received has been taken: its memory is used again.
            let emptied = std::mem::replace(&mut parts[to].abroad.inboxes[from], sent);
            parts[from].abroad.outboxes[to] = emptied;
        }
    }
    for from in 0..parts.len() {
        let farewells = parts[from].farewells();
        for to in (0..parts.len()).filter(|to| *to != from && !farewells.is_empty()) {
            parts[to].part_from(&farewells);
        }
    }
}

/// Lets all parts do what happens to links now. Before, what has left one for another is handed over: it is
/// on a link that may fail. After it they tell each other which flows go other ways.
fn change<'s>(parts: &mut [impl DerefMut<Target = Simulation<'s>>], now: Time) {
    if parts.len() > 1 {
        for part in &mut *parts {
            part.unpack();
            part.pack(now);
        }
        exchange(parts);
        for part in &mut *parts {
            part.unpack();
        }
    }
    for part in &mut *parts {
        part.change();
    }
    exchange(parts);
}

/// Ends the flows of which nothing is left to happen, in all parts.
fn end_instant<'s>(parts: &mut [impl DerefMut<Target = Simulation<'s>>]) {
    for of in 0..parts.len() {
        parts[of].end_instant();
        let mut ended = std::mem::take(&mut parts[of].abroad.ended);
        for other in (0..parts.len()).filter(|other| *other != of) {
            for number in &ended {
                parts[other].forget(*number);
            }
        }
        ended.clear();
        parts[of].abroad.ended = ended;
    }
}

/// Whether nothing is left to happen: what events remain are stale.
fn is_over<'s>(parts: &[impl DerefMut<Target = Simulation<'s>>]) -> bool {
    let frames = parts.iter().map(|part| part.network.pause_frames()).fold(0, u64::wrapping_add);
    frames == 0 && parts.iter().all(|part| part.live == 0 && part.upcoming.is_empty())
}

/// Looks for a deadlock, which the first part is told of; says when to look again.
pub(super) fn watch<'s>(parts: &mut [impl DerefMut<Target = Simulation<'s>>]) -> Option<Time> {
    let (first, others) = parts.split_first_mut()?;
    let now = first.scheduler.now();
    let has_long = |part: &Simulation<'_>| pause_watchdog::has_long(&part.network, now);
    if has_long(first) || others.iter().any(|part| has_long(part)) {
        swap(first, others);
        first.deadlocks = pause_watchdog::deadlocks(&first.network);
        swap(first, others);
    }
    first.network.watchdog().map(|period| now + period)
}

/// Lends the first part what the others have of the network, or gives it back.
fn swap<'s>(first: &mut Simulation<'s>, others: &mut [impl DerefMut<Target = Simulation<'s>>]) {
    for other in others {
        let Simulation { part, network, graph, .. } = &mut **other;
        first.network.swap(network, graph, |node| part.owns(node));
    }
}

impl Simulation<'_> {
    /// Runs until every flow has finished, `limit` is reached or `watch` asks for a stop.
    pub(super) fn run_in_windows(
        &mut self,
        limit: Time,
        watch: &RunControl,
    ) -> Result<(), Problem> {
        let mut conductor = WindowCoordinator::new(self, limit, watch);
        while let Some(window) = conductor.next(&mut [&mut *self])? {
            self.serve(window)?;
        }
        Ok(())
    }

    /// How many events this part has handled since this was last asked.
    fn events_of_window(&mut self) -> u64 {
        let before = std::mem::replace(&mut self.events_before, self.totals.events);
        self.totals.events - before
    }

    /// When something happens next that this part knows of.
    fn next_time(&self) -> Time {
        self.scheduler.begins().min(self.upcoming.next_start()).min(self.abroad.next)
    }

    /// Serves all groups of this part in a window.
    pub(super) fn serve(&mut self, window: Window) -> Result<(), Problem> {
        self.unpack();
        self.upcoming.announce_before(window.ends, self.graph, &mut self.scheduler)?;
        let mut arrivals = std::mem::take(&mut self.arrivals);
        let mut first = 0;
        while let Some(group) = self.scheduler.due_from(first, window.ends) {
            self.serve_group(group, window, &mut arrivals)?;
            first = group + 1;
        }
        self.arrivals = arrivals;
        if self.part.has_others() {
            self.pack(window.ends);
        }
        Ok(())
    }

    /// Serves a group in a window.
    fn serve_group(
        &mut self,
        group: usize,
        Window { begins, ends }: Window,
        arrivals: &mut Vec<u64>,
    ) -> Result<(), Problem> {
        self.scheduler.begin(group, begins);
        let Some(groups) = self.scheduler.groups() else { return Ok(()) };
        arrivals.clear();
        for link in groups.due(group, ends) {
            self.network.visit_arrivals(link, begins, ends, |arrives| {
                // In one number, which sorts faster: a window is shorter than 2³² ps.
                arrivals.push((arrives - begins).0 << 32 | u64::from(link));
            });
        }
        if self.network.records().is_some() {
            // In a loop of its own: most runs keep no records.
            for link in groups.due(group, ends) {
                self.network.read_ahead_records(link, begins, ends);
            }
        }
        arrivals.sort_unstable();
        for arrival in &*arrivals {
            let (time, link) = (begins + Duration(arrival >> 32), *arrival as LinkId);
            while let Some(event) = self.scheduler.pop_before(time, Event::Arrive(link)) {
                self.handle(event)?;
            }
            self.scheduler.set_now(time);
            self.totals.events += 1;
            let (packet, next) = self.network.take_arrival(link);
            match next {
                Some(next) if next < ends => {}
                next => self.scheduler.taken(link, next),
            }
            self.on_arrival(packet, link)?;
            self.process_departures();
        }
        while let Some(event) = self.scheduler.pop_before(ends, Event::FIRST) {
            self.handle(event)?;
        }
        self.scheduler.end();
        Ok(())
    }
}
