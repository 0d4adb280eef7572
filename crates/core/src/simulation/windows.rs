//! The run in windows: each group of nodes by itself, from a window's beginning to its end.
//!
//! What comes to a group in a window is on a wire when the window begins ([`Cut`](crate::agenda::Cut)). So
//! no queue of events is needed for it: the arrivals are collected and sorted, merged with the few events of
//! the group's own, and handled while its state is in a near cache (docs/performance.md).

use std::sync::atomic::{AtomicBool, Ordering};

use super::Simulation;
use crate::agenda::Event;
use crate::graph::LinkId;
use crate::parameters::Problem;
use crate::units::{Duration, Time};

/// Packets that come to a group in a window: how long after its beginning, and by which link. In one number,
/// which sorts faster.
#[derive(Default)]
pub(super) struct Arrivals(Vec<u64>);

impl Arrivals {
    fn push(&mut self, after: Duration, link: LinkId) {
        self.0.push(after.0 << 32 | u64::from(link));
    }
}

/// When what belongs to no node is to be done.
struct Clock {
    sample: Option<Time>,
    watch: Option<Time>,
}

impl Simulation<'_> {
    /// Runs until every flow has finished, `limit` is reached or `stop` is set.
    pub(super) fn run_in_windows(&mut self, limit: Time, stop: &AtomicBool) -> Result<(), Problem> {
        let mut clock = Clock {
            sample: self.recorder.is_sampling().then_some(Time::ZERO),
            watch: self.network.watchdog().map(|period| Time::ZERO + period),
        };
        let mut arrivals = Arrivals::default();
        while let Some(groups) = self.agenda.groups() {
            let window = groups.cut.window;
            let alarm = clock.sample.into_iter().chain(clock.watch).fold(Time::NEVER, Time::min);
            let begins = groups.begins().min(self.upcoming.next_start()).min(alarm);
            if begins > limit || begins == Time::NEVER || self.is_over() {
                break;
            }
            self.look(begins, &mut clock);
            if !self.deadlocks.is_empty() {
                break;
            }
            let alarm = clock.sample.into_iter().chain(clock.watch).fold(Time::NEVER, Time::min);
            let ends = (begins + window).min(alarm).min(Time(limit.0.saturating_add(1)));
            self.upcoming.announce_before(ends, self.graph, &mut self.agenda)?;
            let mut first = 0;
            while let Some(group) = self.agenda.due_from(first, ends) {
                self.serve(group, begins, ends, &mut arrivals)?;
                first = group + 1;
            }
            self.end_instant();
            self.totals.windows += 1;
            if stop.load(Ordering::Relaxed) {
                return Err(Problem::new("", "interrupted"));
            }
        }
        Ok(())
    }

    /// Does what belongs to no node, if it is time: before anything else happens then.
    fn look(&mut self, now: Time, clock: &mut Clock) {
        self.agenda.set_now(now);
        if clock.sample == Some(now) {
            self.totals.events += 1;
            clock.sample = self.sample();
        }
        if clock.watch == Some(now) {
            self.totals.events += 1;
            clock.watch = self.watch();
        }
    }

    /// Serves a group from `begins` until before `ends`.
    fn serve(
        &mut self,
        group: usize,
        begins: Time,
        ends: Time,
        arrivals: &mut Arrivals,
    ) -> Result<(), Problem> {
        self.agenda.begin(group, begins);
        let Some(groups) = self.agenda.groups() else { return Ok(()) };
        arrivals.0.clear();
        for link in groups.due(group, ends) {
            let port = &mut self.network.ports[link as usize];
            // Its own node may have been served to the window's end, or not at all: what it has started by
            // the beginning is all that comes before the end.
            for time in port.arrivals(begins, ends) {
                arrivals.push(time - begins, link);
            }
        }
        arrivals.0.sort_unstable();
        for arrival in &arrivals.0 {
            let (time, link) = (begins + Duration(arrival >> 32), *arrival as LinkId);
            while let Some(event) = self.agenda.pop_before(time, Event::Arrive(link)) {
                self.handle(event)?;
            }
            self.agenda.set_now(time);
            self.totals.events += 1;
            let port = &mut self.network.ports[link as usize];
            let packet = port.take();
            match port.next_arrival() {
                Some(next) if next < ends => {}
                next => self.agenda.taken(link, next),
            }
            self.come(packet, link)?;
            self.hear_of_departures();
        }
        while let Some(event) = self.agenda.pop_before(ends, Event::FIRST) {
            self.handle(event)?;
        }
        self.agenda.end();
        Ok(())
    }
}
