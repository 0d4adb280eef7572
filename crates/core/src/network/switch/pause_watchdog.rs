//! Looks for pauses that cannot end, and for those that last long.
//!
//! Pauses are of lanes, the traffic classes of links. A paused lane waits for a paused lane behind it if
//! packets that came by the one wait for the other. Lanes that wait for each other in a circle are
//! deadlocked ([deadlocks16]): nothing in it ever moves again, since pauses have no time-out and admitted
//! packets are not dropped. A circle at one moment is no deadlock yet if a lane in it holds enough that may
//! still leave by other ports; so what can leave is taken away first.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::traffic_classes::{LaneId, TrafficClasses};
use crate::base::units::Time;
use crate::model::graph::Graph;
use crate::network::Network;
use crate::network::port::Port;
use crate::network::port::pause_state::PauseState;

/// Lanes whose pauses wait for each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// Each waits for the next, and the last for the first.
    pub lanes: Vec<LaneId>,
    /// When the last of them was paused.
    pub since: Time,
}

impl Deadlock {
    /// The names of its lanes.
    pub fn names(&self, traffic: &TrafficClasses, graph: &Graph) -> Vec<String> {
        self.lanes.iter().map(|lane| traffic.name(*lane, graph)).collect()
    }

    /// Says it in words.
    pub fn explain(&self, traffic: &TrafficClasses, graph: &Graph) -> String {
        let names = self.names(traffic, graph).join(", ");
        format!("deadlock: {names} wait for each other since {}", self.since)
    }
}

/// For every two paused lanes the bytes that came by the first and wait for the second.
type Waits = BTreeMap<(LaneId, LaneId), u64>;

/// Whether a lane has been paused for as long as switches watch for.
pub fn has_long(network: &Network, now: Time) -> bool {
    let Some(most) = network.watchdog() else { return false };
    let lasts = |since: Time| now - since >= most;
    let mut pauses = network.ports.iter().flat_map(Port::pauses);
    pauses.any(|pauses| pauses.since.is_some_and(lasts))
}

/// The deadlocks there are.
pub fn deadlocks(network: &Network) -> Vec<Deadlock> {
    hopeless(network).map_or_else(Vec::new, |(stuck, waits)| circles(&stuck, &waits))
}

/// By lane, whether its pause cannot end: it is in a deadlock, or waits for one. Empty if there is none.
pub fn never_resumed(network: &Network) -> Vec<bool> {
    hopeless(network)
        .map_or_else(Vec::new, |(stuck, _)| stuck.iter().map(Option::is_some).collect())
}

/// By lane, since when it has a pause that cannot end, and what waits for what there; none if no lane has.
fn hopeless(network: &Network) -> Option<(Vec<Option<Time>>, Waits)> {
    let buffers = network.buffers.as_ref()?;
    // Paused at both ends: no resume frame is on its way. By lane, since when.
    let pauses = (0..).zip(network.ports.iter().flat_map(Port::pauses));
    let mut stuck: Vec<Option<Time>> =
        pauses.map(|(lane, pauses)| pauses.since.filter(|_| buffers.is_paused(lane))).collect();
    if stuck.iter().all(Option::is_none) {
        return None;
    }
    let mut waits = waits(network, &stuck);
    loop {
        let mut kept = vec![0; stuck.len()];
        for ((lane, _), bytes) in &waits {
            kept[*lane as usize] += bytes;
        }
        let mut goes_on = false;
        for lane in buffers.would_resume(&kept) {
            goes_on |= stuck[lane as usize].take().is_some();
        }
        if !goes_on {
            break;
        }
        waits.retain(|(_, onward), _| stuck[*onward as usize].is_some());
    }
    stuck.iter().any(Option::is_some).then_some((stuck, waits))
}

/// What waits for paused lanes, by the lane that it came by.
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

/// Follows each stuck lane to the one that holds most of what came by it, and so on, to where that leads
/// back to.
fn circles(stuck: &[Option<Time>], waits: &Waits) -> Vec<Deadlock> {
    let mut next: Vec<Option<(u64, LaneId)>> = vec![None; stuck.len()];
    for ((lane, onward), bytes) in
        waits.iter().filter(|((lane, _), _)| stuck[*lane as usize].is_some())
    {
        let most = &mut next[*lane as usize];
        *most = (*most).max(Some((*bytes, *onward)));
    }
    let mut found = Vec::new();
    // By lane, the walk that came by.
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
            && let Some(entry) = path.iter().position(|of_path| *of_path == lane)
        {
            let lanes = path.split_off(entry);
            let paused = lanes.iter().filter_map(|lane| stuck[*lane as usize]);
            let since = paused.max().unwrap_or_default();
            found.push(Deadlock { lanes, since });
        }
    }
    found
}

/// What people should know of a run that ended at `ended` with these deadlocks: `limit` is when it should
/// have ended.
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

/// The longest pause, if it took longer than switches watch for.
fn storm(network: &Network, graph: &Graph) -> Option<String> {
    let most = network.watchdog()?;
    let pauses = (0..).zip(network.ports.iter().flat_map(Port::pauses));
    let long = pauses.filter(|(_, pauses)| pauses.longest > most);
    let (worst, PauseState { longest: took, .. }) =
        long.clone().max_by_key(|(lane, pauses)| (pauses.longest, Reverse(*lane)))?;
    let others = match long.count() - 1 {
        0 => String::new(),
        1 => " (and another longer than that)".to_owned(),
        more => format!(" (and {more} others longer than that)"),
    };
    let name = network.traffic.name(worst, graph);
    Some(format!(
        "{name} was paused for {took} without a break; `switch.pause.watchdog` is {most}{others}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_are_found_once_each_and_those_who_only_wait_for_one_are_left_out() {
        let at = |microseconds: u64| Some(Time(microseconds * 1_000_000));
        let stuck = [at(5), at(1), at(7), None, at(9), at(2), at(3)];
        // 0 waits for the circle 1 -> 2 -> 4 -> 1, most of all for 2; 5 and 6 wait for each other.
        let pairs =
            [(0, 1), (0, 2), (1, 2), (2, 4), (2, 0), (4, 1), (3, 1), (5, 6), (6, 5), (6, 0)];
        let bytes = [10, 20, 10, 30, 20, 10, 90, 10, 20, 10];
        let waits: Waits = pairs.into_iter().zip(bytes).collect();
        let found = circles(&stuck, &waits);
        let deadlock = |lanes: [LaneId; 3], since| Deadlock { lanes: lanes.to_vec(), since };
        assert_eq!(found[0], deadlock([2, 4, 1], Time(9_000_000)));
        assert_eq!(found[1], Deadlock { lanes: vec![5, 6], since: Time(3_000_000) });
        assert_eq!(found.len(), 2);
    }
}
