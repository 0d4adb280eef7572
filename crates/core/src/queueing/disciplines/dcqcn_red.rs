//! RED profile of DCQCN: marks by the instantaneous queue length, without averaging, and does not
//! drop.

use super::{Backlog, Capacity, DesignRates, Limit, LinkScale, PortQueue, QueueKind};
use crate::base::random::Random;
use crate::base::schema::{Parameter, Problem, positive_fraction};
use crate::base::units::{Duration, Rate};
use crate::queueing::blocks::marking::{self, MarkAt, MarkingRule};
use crate::queueing::blocks::tail_drop::TailDrop;

/// Allowed values of a threshold.
const AMOUNT: &str = "above zero, as an amount of data, a time or a bandwidth-delay product";

crate::parameters! {
    /// RED profile of DCQCN: the marking probability grows with the instantaneous queue length
    /// ([dcqcn15]). By default packets are marked on departure, as explained in [ecndelay16].
    pub struct Config {
        /// Queue length up to which no packet is marked ([dcqcn15]: 5 KB).
        pub kmin: Capacity = Capacity::Bytes(5_000), where |kmin| {
            if matches!(kmin, Capacity::Packets(_)) { Err(AMOUNT) } else { Ok(()) }
        };
        /// Queue length above which all packets are marked ([dcqcn15]: 200 KB).
        pub kmax: Capacity = Capacity::Bytes(200_000), where |kmax| {
            let is_zero = matches!(kmax, Capacity::Bytes(0) | Capacity::Time(Duration(0)));
            if is_zero || matches!(kmax, Capacity::Packets(_)) { Err(AMOUNT) } else { Ok(()) }
        };
        /// Marking probability at `kmax` ([dcqcn15]: 1 %).
        pub pmax: f64 = 0.01, where positive_fraction;
        /// Time of the marking decision.
        pub mark_at: MarkAt = MarkAt::Departure;
        /// Capacity in bytes or packets. `none`: no limit of its own.
        pub capacity: Option<Capacity> = None;
    }
    check |red| {
        if red.kmin.exceeds(red.kmax) {
            let kmax = red.kmax.show();
            let message = format!("must not be above kmax, which is {}", kmax.as_str().unwrap_or_default());
            return Err(Problem::new("kmin", message));
        }
        Ok(())
    }
}

impl QueueKind for Config {
    fn build(&self, scale: LinkScale) -> PortQueue {
        let bytes = |capacity| match scale.limit(Some(capacity)) {
            Some(Limit::Bytes(bytes)) => bytes,
            _ => unreachable!("thresholds are not in packets"),
        };
        let kmax = bytes(self.kmax);
        let profile = MarkingProfile { kmin: bytes(self.kmin).min(kmax), kmax, pmax: self.pmax };
        marking::build(profile, self.mark_at, false, TailDrop(scale.limit(self.capacity)))
    }

    fn capacity(&self) -> Option<Capacity> {
        self.capacity
    }

    fn marks(&self) -> bool {
        true
    }

    fn thresholds(&self, scale: LinkScale) -> Vec<(&'static str, Limit)> {
        let limit = |capacity| scale.limit(Some(capacity));
        let named = [("kmin", limit(self.kmin)), ("kmax", limit(self.kmax))];
        named.into_iter().filter_map(|(name, limit)| Some((name, limit?))).collect()
    }

    /// [dcqcn15] chose its thresholds for links of 40 Gb/s.
    fn design_rates(&self) -> Option<DesignRates> {
        let is_published = self.kmax == Capacity::Bytes(200_000);
        is_published.then(|| DesignRates::one("kmax", Rate::from_gbps(40)))
    }
}

struct MarkingProfile {
    kmin: u64,
    kmax: u64,
    pmax: f64,
}

impl MarkingProfile {
    /// Returns the marking probability at a queue length of `bytes`.
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

impl MarkingRule for MarkingProfile {
    fn accepts_all_below(&self) -> u64 {
        self.kmin
    }

    fn should_mark(&self, backlog: Backlog, random: &mut Random) -> bool {
        let probability = self.probability(backlog.bytes);
        probability > 0.0 && random.uniform() < probability
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::float_cmp, reason = "the profile yields exactly these numbers")]

    use super::*;

    #[test]
    fn the_profile_is_zero_then_linear_then_one() {
        let profile = MarkingProfile { kmin: 5_000, kmax: 200_000, pmax: 0.01 };
        let at = |bytes| (profile.probability(bytes) * 1e6).round();
        assert_eq!([at(0), at(5_000), at(102_500), at(200_000)], [0.0, 0.0, 5_000.0, 10_000.0]);
        assert_eq!(profile.probability(200_001), 1.0);
    }
}
