//! Looks for pauses that cannot end, and for those that last long.
//!
//! A paused link waits for a paused link behind it if packets that came by the one wait for the other.
//! Links that wait for each other in a circle are deadlocked ([deadlocks16]): nothing in it ever moves
//! again, since pauses have no time-out and admitted packets are not dropped. A circle at one moment is no
//! deadlock yet if a link in it holds enough that may still leave by other ports; so what can leave is
//! taken away first.

use std::collections::BTreeMap;

use crate::network::Network;
use crate::topology::{Graph, LinkId};
use crate::units::Time;

/// Links whose pauses wait for each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// Each waits for the next, and the last for the first.
    pub links: Vec<LinkId>,
    /// When the last of them was paused.
    pub since: Time,
}

impl Deadlock {
    /// The names of its links.
    pub fn names(&self, graph: &Graph) -> Vec<String> {
        self.links.iter().map(|link| graph.link_name(*link)).collect()
    }

    /// Says it in words.
    pub fn explain(&self, graph: &Graph) -> String {
        let names = self.names(graph).join(", ");
        format!("deadlock: {names} wait for each other since {}", self.since)
    }
}

/// For every two paused links the bytes that came by the first and wait for the second.
type Waits = BTreeMap<(LinkId, LinkId), u64>;

/// The deadlocks there are, if a link has been paused for as long as switches watch for.
pub fn watch(network: &Network, now: Time) -> Vec<Deadlock> {
    let Some(most) = network.watchdog() else { return Vec::new() };
    let lasts = |since: Time| now - since >= most;
    if network.ports.iter().any(|port| port.pauses().since.is_some_and(lasts)) {
        deadlocks(network)
    } else {
        Vec::new()
    }
}

/// The deadlocks there are.
pub fn deadlocks(network: &Network) -> Vec<Deadlock> {
    let Some(buffers) = &network.buffers else { return Vec::new() };
    // Paused at both ends: no resume frame is on its way. By link, since when.
    let pause = |link: LinkId| {
        let since = network.ports[link as usize].pauses().since;
        since.filter(|_| buffers.is_paused(link))
    };
    let mut stuck: Vec<Option<Time>> =
        (0..network.ports.len()).map(|link| pause(link as LinkId)).collect();
    if stuck.iter().all(Option::is_none) {
        return Vec::new();
    }
    let mut waits = waits(network, &stuck);
    loop {
        let mut kept = vec![0; stuck.len()];
        for ((link, _), bytes) in &waits {
            kept[*link as usize] += bytes;
        }
        let mut goes_on = false;
        for link in buffers.would_resume(&kept) {
            goes_on |= stuck[link as usize].take().is_some();
        }
        if !goes_on {
            break;
        }
        waits.retain(|(_, port), _| stuck[*port as usize].is_some());
    }
    circles(&stuck, &waits)
}

/// What waits for paused links, by the link that it came by.
fn waits(network: &Network, paused: &[Option<Time>]) -> Waits {
    let mut waits = Waits::new();
    for (port, _) in (0..).zip(paused).filter(|(_, paused)| paused.is_some()) {
        network.ports[port as usize].visit_data(&mut |packet| {
            if let Some(link) = network.ingress(packet, port) {
                *waits.entry((link, port)).or_default() += u64::from(packet.bytes);
            }
        });
    }
    waits
}

/// Follows each stuck link to the one that holds most of what came by it, and so on, to where that leads
/// back to.
fn circles(stuck: &[Option<Time>], waits: &Waits) -> Vec<Deadlock> {
    let mut next: Vec<Option<(u64, LinkId)>> = vec![None; stuck.len()];
    for ((link, port), bytes) in
        waits.iter().filter(|((link, _), _)| stuck[*link as usize].is_some())
    {
        let most = &mut next[*link as usize];
        *most = (*most).max(Some((*bytes, *port)));
    }
    let mut found = Vec::new();
    // By link, the walk that came by.
    let mut walks = vec![None; stuck.len()];
    for start in (0..stuck.len()).filter(|link| stuck[*link].is_some()) {
        let mut path: Vec<LinkId> = Vec::new();
        let mut link = start as LinkId;
        while walks[link as usize].is_none()
            && let Some((_, onward)) = next[link as usize]
        {
            walks[link as usize] = Some(start);
            path.push(link);
            link = onward;
        }
        if walks[link as usize] == Some(start)
            && let Some(entry) = path.iter().position(|of_path| *of_path == link)
        {
            let links = path.split_off(entry);
            let paused = links.iter().filter_map(|link| stuck[*link as usize]);
            let since = paused.max().unwrap_or_default();
            found.push(Deadlock { links, since });
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
    let longest = |link: LinkId| network.ports[link as usize].pauses().longest;
    let links = (0..network.ports.len() as LinkId).filter(|link| longest(*link) > most);
    let worst = links.clone().max_by_key(|link| (longest(*link), std::cmp::Reverse(*link)))?;
    let others = match links.count() - 1 {
        0 => String::new(),
        1 => " (and another link longer than that)".to_owned(),
        more => format!(" (and {more} others longer than that)"),
    };
    let (name, took) = (graph.link_name(worst), longest(worst));
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
        let deadlock = |links: [LinkId; 3], since| Deadlock { links: links.to_vec(), since };
        assert_eq!(found[0], deadlock([2, 4, 1], Time(9_000_000)));
        assert_eq!(found[1], Deadlock { links: vec![5, 6], since: Time(3_000_000) });
        assert_eq!(found.len(), 2);
    }
}
