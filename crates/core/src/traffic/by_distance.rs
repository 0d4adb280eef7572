//! Targets drawn by their distance from the source, for networks that stand for larger ones.

use std::collections::BTreeMap;

use crate::base::random::Random;
use crate::base::schema::Problem;
use crate::model::flow::HostId;
use crate::model::graph::{Graph, Paths};

/// Largest number of hosts: the targets of all of them take 4 bytes a pair.
const MOST_HOSTS: HostId = 4096;

/// Check of shares: none is negative, and they add up to 1.
pub(crate) fn shares_of_one(shares: Option<&[f64]>) -> Result<(), &'static str> {
    let Some(shares) = shares else { return Ok(()) };
    let sum: f64 = shares.iter().sum();
    let are_shares = shares.iter().all(|share| *share >= 0.0) && (sum - 1.0).abs() < 1e-6;
    if are_shares { Ok(()) } else { Err("numbers from 0 on that add up to 1") }
}

/// Samples a distance with given probabilities, then one of the hosts at that distance.
#[derive(Clone, Debug)]
pub(crate) struct TargetsByDistance {
    shares: Vec<f64>,
    /// Distances that occur between hosts, in ascending order.
    distances: Vec<u16>,
    paths: Box<Paths>,
    /// By source, computed when first needed: its targets at each distance.
    by_source: BTreeMap<HostId, Vec<Vec<HostId>>>,
    hosts: HostId,
    /// Smallest number of targets that a source can draw.
    pub(crate) fewest: usize,
}

impl TargetsByDistance {
    pub(crate) fn new(shares: &[f64], graph: &Graph) -> Result<Self, Problem> {
        let hosts = graph.host_count();
        if hosts > MOST_HOSTS {
            let message = format!("is for at most {MOST_HOSTS} hosts, not {hosts}");
            return Err(Problem::new("shares", message));
        }
        let mut paths = Box::new(Paths::new(graph));
        let others = 1..hosts;
        let mut distances: Vec<u16> = others.filter_map(|target| paths.hops(0, target)).collect();
        distances.sort_unstable();
        distances.dedup();
        if distances.len() != shares.len() {
            let hops: Vec<_> = distances.iter().map(u16::to_string).collect();
            let message = format!(
                "must have one share for each distance between hosts ({} hops), not {} shares",
                hops.join(", "),
                shares.len()
            );
            return Err(Problem::new("shares", message));
        }
        let (shares, by_source) = (shares.to_vec(), BTreeMap::new());
        let mut sampler = Self { shares, distances, paths, by_source, hosts, fewest: usize::MAX };
        for source in 0..hosts {
            let shares = sampler.shares.clone();
            let targets = sampler.by_distance(source).iter().zip(shares);
            let numbers = targets.filter(|(_, share)| *share > 0.0).map(|(hosts, _)| hosts.len());
            let (fewest, sum) = numbers
                .fold((usize::MAX, 0), |(fewest, sum), number| (fewest.min(number), sum + number));
            if fewest == 0 {
                let message = format!("host {source} has no other host at one of the distances");
                return Err(Problem::new("shares", message));
            }
            sampler.fewest = sampler.fewest.min(sum);
        }
        Ok(sampler)
    }

    /// Samples a target of a source.
    pub(crate) fn sample(&mut self, source: HostId, random: &mut Random) -> HostId {
        let mut left = random.uniform();
        // The shares may add up to a little less than 1.
        let last = self.shares.iter().rposition(|share| *share > 0.0).unwrap_or_default();
        let distance = self.shares.iter().position(|share| {
            left -= share;
            left < 0.0
        });
        let targets = &self.by_distance(source)[distance.unwrap_or(last)];
        targets[random.below(targets.len() as u64) as usize]
    }

    /// Samples distinct targets of a source, at most `fewest`.
    pub(crate) fn sample_distinct(
        &mut self,
        source: HostId,
        number: usize,
        random: &mut Random,
    ) -> Vec<HostId> {
        let mut targets = Vec::with_capacity(number);
        while targets.len() < number {
            let target = self.sample(source, random);
            if !targets.contains(&target) {
                targets.push(target);
            }
        }
        targets
    }

    /// Returns all targets of a source.
    pub(crate) fn all(&mut self, source: HostId) -> Vec<HostId> {
        self.by_distance(source).concat()
    }

    /// Returns the pairs of hosts at each distance, with the share of the distance. The pairs of one distance
    /// are equally likely if all hosts have as many hosts at that distance.
    pub(crate) fn pairs(&mut self) -> Vec<(f64, Vec<(HostId, HostId)>)> {
        let shares = self.shares.clone().into_iter();
        let mut groups: Vec<_> = shares.map(|share| (share, Vec::new())).collect();
        for source in 0..self.hosts {
            for ((_, pairs), targets) in groups.iter_mut().zip(self.by_distance(source)) {
                pairs.extend(targets.iter().map(|target| (source, *target)));
            }
        }
        groups.retain(|(share, _)| *share > 0.0);
        groups
    }

    fn by_distance(&mut self, source: HostId) -> &[Vec<HostId>] {
        let Self { distances, paths, by_source, hosts, .. } = self;
        by_source.entry(source).or_insert_with(|| {
            let mut targets = vec![Vec::new(); distances.len()];
            for target in (0..*hosts).filter(|target| *target != source) {
                let place = paths.hops(source, target).map(|hops| distances.binary_search(&hops));
                if let Some(Ok(place)) = place {
                    targets[place].push(target);
                }
            }
            targets
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::Parameter;
    use crate::topology::{Topology, clos, leaf_spine};
    use serde_json::json;

    #[test]
    fn distances_have_their_shares_and_hosts_of_a_distance_are_equally_likely() {
        let table = json!({"pods": 2, "edges_per_pod": 2, "hosts_per_edge": 4});
        let graph = clos::Config::read(&table).unwrap().graph(1).unwrap();
        let mut targets = TargetsByDistance::new(&[0.1, 0.2, 0.7], &graph).unwrap();
        let mut random = Random::new(1, "test");
        let mut counts = [0; 16];
        for _ in 0..100_000 {
            counts[targets.sample(5, &mut random) as usize] += 1;
        }
        assert_eq!(counts[5], 0);
        for (target, count) in counts.into_iter().enumerate().filter(|(target, _)| *target != 5) {
            let share = match target {
                4..8 => 0.1 / 3.0,
                0..4 => 0.2 / 4.0,
                _ => 0.7 / 8.0,
            };
            let ratio = f64::from(count) / (100_000.0 * share);
            assert!((ratio - 1.0).abs() < 0.06, "{target}: {ratio}");
        }
    }

    #[test]
    fn shares_must_fit_the_network() {
        let graph = |table| leaf_spine::Config::read(&table).unwrap().graph(1).unwrap();
        let error = |shares: &[f64], table| {
            TargetsByDistance::new(shares, &graph(table)).unwrap_err().to_string()
        };
        insta::assert_snapshot!(
            [error(&[1.0], json!({})), error(&[0.5, 0.2, 0.3], json!({"leaves": 2}))].join("\n"),
            @r"
        shares: must have one share for each distance between hosts (2, 4 hops), not 1 shares
        shares: must have one share for each distance between hosts (2, 4 hops), not 3 shares
        "
        );
        assert!(shares_of_one(Some(&[0.5, 0.4])).is_err());
        assert!(shares_of_one(Some(&[1.5, -0.5])).is_err());
    }
}
