//! Named random streams: a seed and a name determine a generator.
//!
//! Streams are independent, so a component that draws more or fewer numbers does not affect others: two
//! schemes with the same seed have the same flows. The generator is PCG-XSL-RR, whose values its authors
//! promise to keep.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;

/// Stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random(Pcg64);

impl Random {
    /// Creates the stream with this seed and name.
    pub fn new(seed: u64, name: &str) -> Self {
        let mut state = [0; 32];
        let mut hash = mix(seed);
        for byte in name.bytes() {
            hash = mix(hash ^ u64::from(byte));
        }
        for word in state.chunks_exact_mut(8) {
            hash = mix(hash);
            word.copy_from_slice(&hash.to_le_bytes());
        }
        Self(Pcg64::from_seed(state))
    }

    /// Returns a number uniform in `[0, 1)`, a multiple of 2⁻⁵³.
    pub fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns an integer uniform in `0..bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        index_below(self.0.next_u64(), bound)
    }

    /// Shuffles items; all orders are equally likely.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }

    /// Returns a number from the exponential distribution with the given mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.uniform()).ln()
    }

    /// Returns a number from the Pareto distribution with the given least value and shape.
    pub fn pareto(&mut self, least: f64, shape: f64) -> f64 {
        least * (1.0 - self.uniform()).powf(-1.0 / shape)
    }

    /// Returns a number from the normal distribution with the given mean and standard deviation.
    pub fn normal(&mut self, mean: f64, deviation: f64) -> f64 {
        // The Box-Muller transform; its second number is not used.
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        mean + deviation * radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// Returns the `SplitMix64` finaliser of a word: a bijection that scatters neighbouring words.
pub fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Maps a word that is uniform over all words to an integer in `0..bound` by multiply-shift (Lemire, Fast
/// Random Integer Generation in an Interval, 2019). The bias of bound / 2⁶⁴ is negligible.
pub fn index_below(word: u64, bound: u64) -> u64 {
    ((u128::from(word) * u128::from(bound)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_depends_on_seed_and_name_alone() {
        let draw = |seed, name| Random::new(seed, name).below(u64::MAX);
        assert_eq!(draw(1, "workload"), draw(1, "workload"));
        assert_ne!(draw(1, "workload"), draw(2, "workload"));
        assert_ne!(draw(1, "workload"), draw(1, "loss"));
    }

    #[test]
    fn values_stay_the_same_from_release_to_release() {
        let mut random = Random::new(1, "workload");
        let drawn: Vec<u64> = (0..4).map(|_| random.below(1_000_000)).collect();
        insta::assert_debug_snapshot!(drawn);
    }

    #[test]
    fn indices_divide_the_words_into_equal_parts() {
        let third = u64::MAX / 3;
        let words = [0, third, third + 1, 2 * third, 2 * third + 1, u64::MAX];
        assert_eq!(words.map(|word| index_below(word, 3)), [0, 0, 1, 1, 2, 2]);
        assert_eq!(index_below(u64::MAX, u64::MAX), u64::MAX - 1);
    }

    #[test]
    fn means_are_right() {
        let mut random = Random::new(7, "means");
        let n = 200_000;
        let uniform = (0..n).map(|_| random.uniform()).sum::<f64>() / f64::from(n);
        let exponential = (0..n).map(|_| random.exponential(3.0)).sum::<f64>() / f64::from(n);
        assert!((uniform - 0.5).abs() < 0.003, "{uniform}");
        assert!((exponential - 3.0).abs() < 0.03, "{exponential}");
    }
}
