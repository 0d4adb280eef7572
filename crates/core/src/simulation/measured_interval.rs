//! Counters of links from the end of the warm-up to the last arrival.
//!
//! Before, a network that started empty fills; after, it drains. Counters of the whole run contain both.

use super::Simulation;
use crate::base::units::Time;
use crate::model::graph::LinkId;
use crate::network::port::Port;
use crate::network::port::counters::PortTotals;

/// Counters of links at both ends of the measured interval.
#[derive(Clone, Debug, Default)]
pub struct MeasuredInterval {
    /// Start of the interval, and its end or [`Time::NEVER`] for that of the run.
    bounds: [Time; 2],
    /// Counters of all ports at the bounds that the run has reached.
    totals: [Option<Box<[PortTotals]>>; 2],
}

impl MeasuredInterval {
    /// Returns the interval with these bounds.
    pub fn new(bounds: [Time; 2]) -> Self {
        Self { bounds, totals: [None, None] }
    }

    /// Returns the first bound at which the counters have not been read; there is nothing to read at the
    /// start of the run.
    pub fn next_bound(&self) -> Option<Time> {
        let bounds = self.bounds.iter().zip(&self.totals);
        bounds
            .filter(|(bound, totals)| totals.is_none() && **bound > Time::ZERO)
            .map(|(bound, _)| *bound)
            .find(|bound| *bound < Time::NEVER)
    }

    /// Returns the bounds of the interval in a run that ended at `ended`; `None` if that is the whole run.
    pub fn bounds(&self, ended: Time) -> Option<[Time; 2]> {
        let [start, _] = self.bounds;
        let end = if self.totals[1].is_some() { self.bounds[1] } else { ended };
        let has_started = start == Time::ZERO || self.totals[0].is_some();
        Self::part_of_run([start, end], ended).filter(|_| has_started)
    }

    /// Returns the interval, or `None` if it is empty or the whole of a run that ended at `ended`.
    pub fn part_of_run([start, end]: [Time; 2], ended: Time) -> Option<[Time; 2]> {
        (start < end && (start, end) != (Time::ZERO, ended)).then_some([start, end])
    }

    /// Returns the start of the interval, and its end or [`Time::NEVER`] for that of the run.
    pub fn configured(&self) -> [Time; 2] {
        self.bounds
    }

    /// Returns the counters of a link in the interval, at the end of the run.
    pub fn of_link(&self, link: LinkId, port: &Port, ended: Time) -> PortTotals {
        let at = |totals: &Option<Box<[PortTotals]>>| totals.as_ref().map(|of| of[link as usize]);
        let [start, end] = [at(&self.totals[0]), at(&self.totals[1])];
        end.unwrap_or_else(|| PortTotals::of(port, ended)).since(start.unwrap_or_default())
    }

    /// Takes over the ports that `is_other` selects from another partition.
    pub fn absorb(&mut self, other: &Self, is_other: impl Fn(usize) -> bool) {
        for (own, other) in self.totals.iter_mut().zip(&other.totals) {
            let both = own.iter_mut().flatten().zip(other.iter().flatten());
            for (_, (own, other)) in both.enumerate().filter(|(link, _)| is_other(*link)) {
                *own = *other;
            }
        }
    }
}

impl Simulation<'_> {
    /// Reads the counters of links, if now is a bound of the measured interval.
    pub(super) fn read_links(&mut self) {
        let now = self.scheduler.now();
        let MeasuredInterval { bounds, totals } = &mut self.measured;
        let Some(index) = bounds.iter().position(|bound| *bound == now) else { return };
        let links = 0..self.graph.links.len() as LinkId;
        let read = |link| self.network.port_mut(link).totals(now);
        totals[index] = Some(links.map(read).collect());
    }
}
