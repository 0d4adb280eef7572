//! Timers of pauses that expire (IEEE 802.1Qbb; IEEE 802.3 clause 31B): each pause frame stops a lane for a
//! time, and the switch repeats the frame before that time ends.

use super::config::{Config, Pause};
use super::traffic_classes::{LaneId, TrafficClasses};
use crate::base::units::{Bytes, Duration, Time};
use crate::model::graph::{Graph, Loss};
use crate::network::Network;
use crate::schedule::{Event, Scheduler};

/// Times of the pauses of a link.
#[derive(Clone, Copy, Debug)]
struct PauseTimes {
    /// Time after which a pause ends without another frame.
    length: Duration,
    /// Time after which the switch repeats the frame.
    interval: Duration,
    /// If true, a pause can end although the switch repeats the frame.
    can_expire: bool,
}

impl PauseTimes {
    /// Returns the times with a frame of this length, if frames wait for up to `wait` and can be lost.
    fn new(length: Duration, wait: Duration, is_lossy: bool) -> Self {
        // Less the wait, so that the second frame is in time if the first is lost.
        let interval = Duration(((length.0 - wait.0.min(length.0 / 2)) / 2).max(1));
        let can_expire = is_lossy || interval.0.saturating_add(wait.0) > length.0;
        Self { length, interval, can_expire }
    }
}

/// Deadline with at most one pending event. If the deadline moves, the event is scheduled again.
#[derive(Clone, Copy, Debug, Default)]
struct Timer {
    due: Time,
    is_pending: bool,
}

impl Timer {
    /// Sets the deadline, and schedules `event` unless it is pending.
    fn set(&mut self, due: Time, event: Event, scheduler: &mut Scheduler) {
        self.due = due;
        if !self.is_pending {
            self.is_pending = true;
            scheduler.push(due, event);
        }
    }

    /// Handles the event. Returns true at the deadline, unless the timer is off.
    fn fires(&mut self, is_on: bool, event: Event, scheduler: &mut Scheduler) -> bool {
        self.is_pending = false;
        if is_on && self.due > scheduler.now() {
            self.set(self.due, event, scheduler);
        }
        is_on && !self.is_pending
    }
}

/// Timers of pauses that expire.
#[derive(Debug)]
pub struct PauseTimers {
    /// By link.
    times: Vec<PauseTimes>,
    /// End of the pause at the neighbour, by lane.
    ends: Vec<Timer>,
    /// Next frame of the switch, by lane.
    frames: Vec<Timer>,
    /// Number of pauses at present.
    pauses: u64,
}

impl PauseTimers {
    /// Returns the timers of a network with packets of up to `packet`; `None` if pauses do not expire.
    pub fn new(
        config: &Config,
        graph: &Graph,
        packet: Bytes,
        traffic: &TrafficClasses,
    ) -> Option<Self> {
        let quanta = config.pause.as_ref()?.quanta?;
        let classes = traffic.numbers.len();
        let times = graph.links.iter().enumerate().map(|(id, link)| {
            let back = &graph.links[id ^ 1];
            let variation = Duration(back.longest_delay().0 - back.delay.0);
            let is_lossy = !matches!(back.loss, Loss::None | Loss::Chosen(_));
            let length = link.rate.transmit(Bytes(u64::from(quanta) * QUANTUM.0));
            PauseTimes::new(length, Pause::frame_time(classes, back, packet) + variation, is_lossy)
        });
        let off = vec![Timer::default(); graph.links.len() * classes];
        Some(Self { times: times.collect(), ends: off.clone(), frames: off, pauses: 0 })
    }

    /// Adds the pauses of another partition that has ended.
    pub fn absorb(&mut self, other: &Self) {
        self.pauses += other.pauses;
    }
}

/// Unit of the time in a pause frame: 512 bits at the rate of the paused link (IEEE 802.3 clause 31B.2).
const QUANTUM: Bytes = Bytes(64);

impl Network {
    /// Lets pauses expire, if there are timers.
    pub fn set_pause_timers(&mut self, timers: Option<PauseTimers>) {
        self.pause_timers = timers.map(Box::new);
    }

    /// Returns the number of pause frames in the network and of pauses that can expire at present. A run ends
    /// after them. In a partition it wraps around zero.
    pub fn open_pauses(&self) -> u64 {
        let pauses = self.pause_timers.as_ref().map_or(0, |timers| timers.pauses);
        self.pause_frames.wrapping_add(pauses)
    }

    /// True if the pause of a lane can end although its switch does not resume it.
    pub(super) fn can_expire(&self, lane: LaneId) -> bool {
        let link = self.traffic.lanes.link(lane) as usize;
        self.pause_timers.as_ref().is_some_and(|timers| timers.times[link].can_expire)
    }

    /// Starts, or restarts, the time of a pause at the neighbour.
    pub(super) fn start_pause_time(&mut self, lane: LaneId, scheduler: &mut Scheduler) {
        let is_on = self.is_paused(lane);
        let Some(timers) = &mut self.pause_timers else { return };
        let link = self.traffic.lanes.link(lane) as usize;
        timers.pauses += u64::from(!is_on);
        let due = scheduler.now() + timers.times[link].length;
        timers.ends[lane as usize].set(due, Event::PauseEnd(lane), scheduler);
    }

    /// Counts the end of a pause that could expire.
    pub(super) fn end_pause_time(&mut self, now: Time) {
        let Some(timers) = &mut self.pause_timers else { return };
        timers.pauses -= 1;
        self.last_frame = self.last_frame.max(now);
    }

    /// Ends the pause of a lane at the neighbour if its time is over.
    pub fn on_pause_end(&mut self, lane: LaneId, scheduler: &mut Scheduler) {
        let is_on = self.is_paused(lane);
        let Some(timers) = &mut self.pause_timers else { return };
        if timers.ends[lane as usize].fires(is_on, Event::PauseEnd(lane), scheduler) {
            self.resume(lane, scheduler);
        }
    }

    /// Sets the time of the next pause frame for a lane.
    pub(super) fn start_frame_time(&mut self, lane: LaneId, scheduler: &mut Scheduler) {
        let Some(timers) = &mut self.pause_timers else { return };
        let link = self.traffic.lanes.link(lane) as usize;
        let due = scheduler.now() + timers.times[link].interval;
        timers.frames[lane as usize].set(due, Event::PauseFrame(lane), scheduler);
    }

    /// Repeats the pause frame for a lane if that is due.
    pub fn on_pause_frame_due(&mut self, lane: LaneId, scheduler: &mut Scheduler) {
        let is_on = self.buffers.as_ref().is_some_and(|buffers| buffers.is_paused(lane));
        let Some(timers) = &mut self.pause_timers else { return };
        if timers.frames[lane as usize].fires(is_on, Event::PauseFrame(lane), scheduler) {
            self.repeat_pause_frame(lane, scheduler);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::Parameter;
    use crate::topology;
    use serde_json::json;
    use std::collections::BTreeMap;

    #[test]
    fn a_pause_is_counted_in_512_bits_of_its_own_link() {
        // Links of 10 and 40 Gb/s between the same nodes: 100 times 51.2 and 12.8 ns.
        let rates = "from,to,rate,delay,reverse_rate\na,s,10 Gbps,1 us,40 Gbps\nb,s,1 Gbps,1 us,\n";
        let graph = json!({ "kind": "graph", "file": { "name": "rates.csv", "text": rates } });
        let graph = topology::Config::read(&graph).unwrap().graph(1).unwrap();
        let config =
            |pause| Config::read(&json!({ "shared_buffer": "1 MB", "pause": pause })).unwrap();
        let traffic = TrafficClasses::new(&BTreeMap::new(), &["all".to_owned()]);
        let timers = |pause| PauseTimers::new(&config(pause), &graph, Bytes(1_000), &traffic);
        let times = timers(json!({ "quanta": 100 })).unwrap().times;
        assert_eq!([0, 1].map(|link| times[link].length.0), [5_120_000, 1_280_000]);
        // Less the 1064 B at 40 Gb/s that a frame needs on the reverse link at most, 212.8 ns.
        assert_eq!(times[0].interval.0, (5_120_000 - 212_800) / 2);
        assert!(timers(json!({})).is_none());
    }

    #[test]
    fn only_late_or_lost_frames_let_a_pause_expire() {
        let times = |wait, is_lossy| PauseTimes::new(Duration(100), Duration(wait), is_lossy);
        let waits = [20, 50, 75, 76];
        let intervals = waits.map(|wait| times(wait, false).interval.0);
        assert_eq!(intervals, [40, 25, 25, 25], "not below a quarter");
        assert_eq!(waits.map(|wait| times(wait, false).can_expire), [false, false, false, true]);
        assert!(times(20, true).can_expire);
        assert_eq!(PauseTimes::new(Duration(1), Duration(0), false).interval, Duration(1));
    }
}
