//! DCQCN's RED: a profile on the instantaneous queue, without averaging, that marks and never
//! drops.

use super::{Backlog, Capacity, PortQueue, QueueKind};
use crate::base::random::Random;
use crate::base::schema::{Problem, positive, positive_fraction};
use crate::base::units::{Bytes, Rate};
use crate::queueing::blocks::marking::{self, MarkAt, Rule};
use crate::queueing::blocks::tail_limit::Limit;

crate::parameters! {
    /// RED profile of DCQCN: marks with a probability that grows with the instantaneous queue
    /// ([dcqcn15]), by default as packets depart, as [ecndelay16] explains it.
    pub struct Config {
        /// Up to this queue nothing is marked ([dcqcn15]: 5 KB).
        pub kmin: Bytes = Bytes(5_000);
        /// Above this queue everything is marked ([dcqcn15]: 200 KB).
        pub kmax: Bytes = Bytes(200_000), where positive;
        /// Probability just below `kmax` ([dcqcn15]: 1 %).
        pub pmax: f64 = 0.01, where positive_fraction;
        /// The moment that decides.
        pub mark_at: MarkAt = MarkAt::Departure;
        /// The most that waits, in bytes or packets; none for a queue without limit of its own.
        pub capacity: Option<Capacity> = None;
    }
    check |red| {
        if red.kmin > red.kmax {
            let message = format!("must not be above kmax, which is {}", red.kmax);
            return Err(Problem::new("kmin", message));
        }
        Ok(())
    }
}

impl QueueKind for Config {
    fn build(&self, _rate: Rate) -> PortQueue {
        let profile = Profile { kmin: self.kmin.0, kmax: self.kmax.0, pmax: self.pmax };
        marking::build(profile, self.mark_at, Limit(self.capacity))
    }

    fn capacity(&self) -> Option<Capacity> {
        self.capacity
    }
}

struct Profile {
    kmin: u64,
    kmax: u64,
    pmax: f64,
}

impl Profile {
    /// Probability of a mark when `bytes` wait.
    fn probability(&self, bytes: u64) -> f64 {
        if bytes <= self.kmin {
            0.0
        } else if bytes > self.kmax {
            1.0
        } else {
            self.pmax * (bytes - self.kmin) as f64 / (self.kmax - self.kmin) as f64
        }
    }
}

impl Rule for Profile {
    fn accepts_all_below(&self) -> u64 {
        self.kmin
    }

    fn marks(&self, backlog: Backlog, random: &mut Random) -> bool {
        let probability = self.probability(backlog.bytes);
        probability > 0.0 && random.uniform() < probability
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::float_cmp, reason = "the law gives exactly these numbers")]

    use super::*;

    #[test]
    fn the_profile_is_flat_then_rises_then_jumps_to_one() {
        let profile = Profile { kmin: 5_000, kmax: 200_000, pmax: 0.01 };
        let at = |bytes| (profile.probability(bytes) * 1e6).round();
        assert_eq!([at(0), at(5_000), at(102_500), at(200_000)], [0.0, 0.0, 5_000.0, 10_000.0]);
        assert_eq!(profile.probability(200_001), 1.0);
    }
}
