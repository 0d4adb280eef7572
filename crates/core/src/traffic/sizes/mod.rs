//! Flow size distributions.

pub mod bounded_pareto;
pub mod empirical;
pub mod exponential;
pub mod fixed;
pub mod pareto;
pub mod uniform;

use crate::base::random::Random;
use crate::base::schema::Problem;
use crate::base::units::Bytes;
use crate::model::packet::Format;

/// Parameters of a flow size distribution.
pub trait FlowSizes {
    /// Returns the distribution, for packets with the sizes in `format`.
    fn distribution(&self, format: &Format) -> Result<Box<dyn SizeDistribution>, Problem>;

    /// Returns a warning of an assumption on the sizes, if there is one.
    fn warning(&self, _format: &Format) -> Option<String> {
        None
    }
}

/// Distribution of a flow size in whole bytes, at least one.
pub trait SizeDistribution: Send {
    /// Draws a size.
    fn sample(&self, random: &mut Random) -> Bytes;

    /// Returns the exact mean number of packets per flow, with `payload` bytes in each packet.
    fn mean_packets(&self, payload: Bytes) -> f64;

    /// Returns the exact mean in bytes.
    fn mean(&self) -> f64 {
        self.mean_packets(Bytes(1))
    }
}

crate::family! {
    /// Every flow size distribution, by the name a scenario gives it.
    pub enum Config as dyn FlowSizes named "sizes" {
        fixed, uniform, exponential, pareto, bounded_pareto, empirical,
    }
}

/// Rounds a positive number of bytes up to a size.
fn round_up(bytes: f64) -> Bytes {
    Bytes((bytes.ceil() as u64).max(1))
}

/// Returns the sum over n = 1 … `steps` of n · `step` / `payload`, each term rounded up.
fn sum_of_packets(steps: u64, step: Bytes, payload: Bytes) -> u128 {
    let (step, payload) = (u128::from(step.0), u128::from(payload.0));
    // ceil(n · step / payload) = floor(((n − 1) · step + step + payload − 1) / payload).
    floor_sum(u128::from(steps), payload, step, step + payload - 1)
}

/// Returns the sum over i = 0 … n − 1 of floor((a · i + b) / m): counts the lattice points below a
/// line by a variant of Euclid's algorithm.
fn floor_sum(n: u128, m: u128, a: u128, b: u128) -> u128 {
    if n == 0 {
        return 0;
    }
    let below = n * (n - 1) / 2 * (a / m) + n * (b / m);
    let (a, b) = (a % m, b % m);
    let top = a * n + b;
    if top < m { below } else { below + floor_sum(top / m, a, m, top % m) }
}

/// Returns the sum of (n / `scale`)^-`shape` over n = `from` … `to` − 1 (`to` may be infinite if
/// `shape` is above 1), by the Euler–Maclaurin formula.
fn power_sum(shape: f64, scale: f64, from: f64, to: f64) -> f64 {
    /// Number of terms that are summed directly. The remainder of the formula is then below 10⁻¹⁰
    /// of the first term.
    const TERMS: u32 = 64;
    let power = |x: f64| (x / scale).powf(-shape);
    let mut sum = 0.0;
    let mut n = from;
    for _ in 0..TERMS {
        if n >= to {
            return sum;
        }
        sum += power(n);
        n += 1.0;
    }
    let integral = |x: f64| {
        let rest = 1.0 - shape;
        if rest.abs() < 1e-12 { scale * x.ln() } else { scale * (x / scale).powf(rest) / rest }
    };
    let correction = |x: f64| power(x) * (0.5 + shape / x / 12.0);
    sum + integral(to) - integral(n) + correction(n) - correction(to)
}

#[cfg(test)]
mod tests;
