//! Detection of deadlocks by pauses, and of long pauses.
//!
//! A pause stops a lane, one traffic class of one link. A paused lane waits for a second paused lane if
//! packets that arrived by the first wait for the second. Lanes that wait for each other in a cycle are
//! deadlocked ([deadlocks16]): their packets never move again, since admitted packets are not dropped and
//! pauses do not expire while their switches repeat the frames. Pauses that can expire nevertheless, since
//! frames can be lost, do not count: the cycle resolves itself. A cycle is not a deadlock yet if enough
//! packets of one of its lanes can still leave by other ports. So the packets that can leave are removed
//! first.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::traffic_classes::{LaneId, TrafficClasses};
use crate::base::units::Time;
use crate::model::graph::Graph;
use crate::network::Network;
use crate::network::port::Port;
use crate::network::port::pause_state::PauseState;

/// Cycle of paused lanes that wait for each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// Lanes of the cycle: each waits for the next, and the last for the first.
    pub lanes: Vec<LaneId>,
    /// Begin of the last pause.
    pub since: Time,
}

impl Deadlock {
    /// Returns the names of the lanes.
    pub fn names(&self, traffic: &TrafficClasses, graph: &Graph) -> Vec<String> {
        self.lanes.iter().map(|lane| traffic.name(*lane, graph)).collect()
    }

    /// Returns a description.
    pub fn explain(&self, traffic: &TrafficClasses, graph: &Graph) -> String {
        let names = self.names(traffic, graph).join(", ");
        format!("deadlock: {names} wait for each other since {}", self.since)
    }
}

/// For each pair of paused lanes, the bytes that arrived by the first and wait for the second.
type Waits = BTreeMap<(LaneId, LaneId), u64>;

/// True if a lane has been paused for the time of the watchdog.
pub fn has_long(network: &Network, now: Time) -> bool {
    let Some(longest) = network.watchdog() else { return false };
    let is_long = |since: Time| now - since >= longest;
    let mut pauses = network.ports.iter().flat_map(Port::pauses);
    pauses.any(|pauses| pauses.since.is_some_and(is_long))
}

/// Returns all deadlocks.
pub fn deadlocks(network: &Network) -> Vec<Deadlock> {
    endless_pauses(network).map_or_else(Vec::new, |(stuck, waits)| cycles(&stuck, &waits))
}

/// Returns, by lane, true if its pause cannot end because the lane is in a deadlock or waits for one. Empty
/// without a deadlock.
pub fn never_resumed(network: &Network) -> Vec<bool> {
    endless_pauses(network)
        .map_or_else(Vec::new, |(stuck, _)| stuck.iter().map(Option::is_some).collect())
}

/// Returns, by lane, the begin of a pause that cannot end, and the bytes that wait; `None` if all pauses can
/// end.
fn endless_pauses(network: &Network) -> Option<(Vec<Option<Time>>, Waits)> {
    let buffers = network.buffers.as_ref()?;
    // Paused at both ends, so that no resume frame is in flight. By lane, the begin of the pause.
    let pauses = (0..).zip(network.ports.iter().flat_map(Port::pauses));
    let is_endless = |lane| buffers.is_paused(lane) && !network.can_expire(lane);
    let mut stuck: Vec<Option<Time>> =
        pauses.map(|(lane, pauses)| pauses.since.filter(|_| is_endless(lane))).collect();
    if stuck.iter().all(Option::is_none) {
        return None;
    }
    let mut waits = waits(network, &stuck);
    loop {
        let mut left = vec![0; stuck.len()];
        for ((lane, _), bytes) in &waits {
            left[*lane as usize] += bytes;
        }
        let mut has_resumed = false;
        for lane in buffers.would_resume(&left) {
            has_resumed |= stuck[lane as usize].take().is_some();
        }
        if !has_resumed {
            break;
        }
        waits.retain(|(_, onward), _| stuck[*onward as usize].is_some());
    }
    stuck.iter().any(Option::is_some).then_some((stuck, waits))
}

/// Returns the bytes that wait for paused lanes, by the lane by which they arrived.
fn waits(network: &Network, paused: &[Option<Time>]) -> Waits {
    let mut waits = Waits::new();
    for (link, port) in (0..).zip(&network.ports) {
        if port.pauses().iter().all(|pauses| !pauses.is_on()) {
            continue;
        }
        port.visit_data(&mut |packet| {
            let onward = network.traffic.lane(link, packet.flow);
            if paused[onward as usize].is_some()
                && let Some(lane) = network.ingress(packet, link)
            {
                *waits.entry((lane, onward)).or_default() += u64::from(packet.bytes);
            }
        });
    }
    waits
}

/// Returns the cycles of lanes, where each lane waits for the lane that holds most of its bytes.
fn cycles(stuck: &[Option<Time>], waits: &Waits) -> Vec<Deadlock> {
    let mut next: Vec<Option<(u64, LaneId)>> = vec![None; stuck.len()];
    for ((lane, onward), bytes) in
        waits.iter().filter(|((lane, _), _)| stuck[*lane as usize].is_some())
    {
        let largest = &mut next[*lane as usize];
        *largest = (*largest).max(Some((*bytes, *onward)));
    }
    let mut found = Vec::new();
    // By lane, the walk that visited it.
    let mut walks = vec![None; stuck.len()];
    for start in (0..stuck.len()).filter(|lane| stuck[*lane].is_some()) {
        let mut path: Vec<LaneId> = Vec::new();
        let mut lane = start as LaneId;
        while walks[lane as usize].is_none()
            && let Some((_, onward)) = next[lane as usize]
        {
            walks[lane as usize] = Some(start);
            path.push(lane);
            lane = onward;
        }
        if walks[lane as usize] == Some(start)
            && let Some(entry) = path.iter().position(|visited| *visited == lane)
        {
            let lanes = path.split_off(entry);
            let paused = lanes.iter().filter_map(|lane| stuck[*lane as usize]);
            let since = paused.max().unwrap_or_default();
            found.push(Deadlock { lanes, since });
        }
    }
    found
}

/// Returns the warning for a run that ended at `ended` with these deadlocks, if there is one. `limit` is the
/// end of the run without a deadlock.
pub fn warning(
    network: &Network,
    graph: &Graph,
    deadlocks: &[Deadlock],
    ended: Time,
    limit: Time,
) -> Option<String> {
    if !deadlocks.is_empty() {
        let when = if ended < limit {
            format!("; the run ends with it, at {ended}")
        } else {
            String::new()
        };
        return Some(format!("pause frames have deadlocked the network (see `stuck`){when}"));
    }
    storm(network, graph)
}

/// Returns a warning about the longest pause, if it exceeds the time of the watchdog.
fn storm(network: &Network, graph: &Graph) -> Option<String> {
    let threshold = network.watchdog()?;
    let pauses = (0..).zip(network.ports.iter().flat_map(Port::pauses));
    let long = pauses.filter(|(_, pauses)| pauses.longest > threshold);
    let (worst, PauseState { longest, .. }) =
        long.clone().max_by_key(|(lane, pauses)| (pauses.longest, Reverse(*lane)))?;
    let others = match long.count() - 1 {
        0 => String::new(),
        1 => " (and another longer than that)".to_owned(),
        more => format!(" (and {more} others longer than that)"),
    };
    let name = network.traffic.name(worst, graph);
    Some(format!(
        "{name} was paused for {longest} without a break; `switch.pause.watchdog` is {threshold}{others}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cycle_is_found_once_without_the_lanes_that_wait_for_it() {
        let at = |microseconds: u64| Some(Time(microseconds * 1_000_000));
        let stuck = [at(5), at(1), at(7), None, at(9), at(2), at(3)];
        // 0 waits for the cycle 1 -> 2 -> 4 -> 1, mostly for 2. 5 and 6 wait for each other.
        let pairs =
            [(0, 1), (0, 2), (1, 2), (2, 4), (2, 0), (4, 1), (3, 1), (5, 6), (6, 5), (6, 0)];
        let bytes = [10, 20, 10, 30, 20, 10, 90, 10, 20, 10];
        let waits: Waits = pairs.into_iter().zip(bytes).collect();
        let found = cycles(&stuck, &waits);
        let deadlock = |lanes: [LaneId; 3], since| Deadlock { lanes: lanes.to_vec(), since };
        assert_eq!(found[0], deadlock([2, 4, 1], Time(9_000_000)));
        assert_eq!(found[1], Deadlock { lanes: vec![5, 6], since: Time(3_000_000) });
        assert_eq!(found.len(), 2);
    }
}
