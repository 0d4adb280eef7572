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

/// Samples an index with a probability in proportion to its share, some of which are above 0.
fn sample_index(shares: &[f64], random: &mut Random) -> usize {
    let mut left = random.uniform() * shares.iter().sum::<f64>();
    let index = shares.iter().position(|share| {
        left -= share;
        left < 0.0
    });
    // Rounding may leave a little.
    let last = || shares.iter().rposition(|share| *share > 0.0);
    index.or_else(last).unwrap_or_default()
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
        let mut sampler = Self { shares, distances, paths, by_source, hosts };
        for source in 0..hosts {
            let shares = sampler.shares.clone();
            let mut targets = sampler.by_distance(source).iter().zip(shares);
            if targets.any(|(hosts, share)| share > 0.0 && hosts.is_empty()) {
                let message = format!("host {source} has no other host at one of the distances");
                return Err(Problem::new("shares", message));
            }
        }
        Ok(sampler)
    }

    /// Samples a target of a source.
    pub(crate) fn sample(&mut self, source: HostId, random: &mut Random) -> HostId {
        let distance = sample_index(&self.shares, random);
        let targets = &self.by_distance(source)[distance];
        targets[random.below(targets.len() as u64) as usize]
    }

    /// Samples distinct targets of a source. A distance without targets left gives its share to the others.
    pub(crate) fn sample_distinct(
        &mut self,
        source: HostId,
        number: usize,
        random: &mut Random,
    ) -> Vec<HostId> {
        let mut shares = self.shares.clone();
        let mut left = self.by_distance(source).to_vec();
        let mut sample = |_| {
            let distance = sample_index(&shares, random);
            let targets = &mut left[distance];
            let target = targets.swap_remove(random.below(targets.len() as u64) as usize);
            if targets.is_empty() {
                shares[distance] = 0.0;
            }
            target
        };
        (0..number).map(&mut sample).collect()
    }

    /// Checks that the shares of `number` distinct targets are possible for every source.
    pub(crate) fn check_distinct(&mut self, number: usize) -> Result<(), Problem> {
        let shares = self.shares.clone();
        for source in 0..self.hosts {
            for (share, targets) in shares.iter().zip(self.by_distance(source)) {
                let expected = share * number as f64;
                // Shares that are fractions of hosts may be rounded up.
                if expected > targets.len() as f64 * (1.0 + 1e-6) {
                    let message = format!(
                        "{share} of {number} hosts are {expected:.1}, but host {source} has {} at this \
                         distance",
                        targets.len()
                    );
                    return Err(Problem::new("shares", message));
                }
            }
        }
        Ok(())
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
    fn distinct_targets_have_their_shares_and_full_distances_pass_theirs_on() {
        let table = json!({"leaves": 2, "hosts_per_leaf": 4, "spines": 1});
        let graph = leaf_spine::Config::read(&table).unwrap().graph(1).unwrap();
        let mut random = Random::new(1, "test");
        // Of host 0, 3 others are near and 4 far.
        let mut near = |shares: &[f64], number| {
            let mut targets = TargetsByDistance::new(shares, &graph).unwrap();
            targets.check_distinct(number)?;
            let mut count = 0;
            for _ in 0..10_000 {
                let mut drawn = targets.sample_distinct(0, number, &mut random);
                drawn.sort_unstable();
                drawn.dedup();
                assert_eq!(drawn.len(), number);
                count += drawn.iter().filter(|target| **target < 4).count();
            }
            Ok::<_, Problem>(count as f64 / 10_000.0)
        };
        assert!((near(&[0.5, 0.5], 2).unwrap() - 1.0).abs() < 0.02);
        assert!((near(&[0.9, 0.1], 3).unwrap() - 2.7).abs() < 0.02);
        assert!((near(&[1.0 - 1e-9, 1e-9], 3).unwrap() - 3.0).abs() < 1e-9);
        insta::assert_snapshot!(
            near(&[1.0 - 1e-9, 1e-9], 5).unwrap_err(),
            @"shares: 0.999999999 of 5 hosts are 5.0, but host 0 has 3 at this distance"
        );
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
