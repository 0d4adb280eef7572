//! How large flows are.

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

/// A kind of flow sizes.
pub trait Sizes {
    /// The distribution, where packets have the sizes in `format`.
    fn open(&self, format: &Format) -> Result<Box<dyn Distribution>, Problem>;
}

/// A distribution of whole bytes, at least one.
pub trait Distribution: Send {
    /// Draws a size.
    fn sample(&self, random: &mut Random) -> Bytes;

    /// The mean number of packets that a size fills, if each carries `payload` bytes; exact.
    fn mean_packets(&self, payload: Bytes) -> f64;

    /// The mean in bytes; exact.
    fn mean(&self) -> f64 {
        self.mean_packets(Bytes(1))
    }
}

crate::family! {
    /// Every distribution of sizes, by the name a scenario gives it.
    pub enum Config as dyn Sizes { fixed, uniform, exponential, pareto, bounded_pareto, empirical }
}

/// A real number of bytes, above zero, as a size.
fn whole(bytes: f64) -> Bytes {
    Bytes((bytes.ceil() as u64).max(1))
}

/// The sum over n = 1 … `steps` of n · `step` / `payload`, each rounded up.
fn packets_of_steps(steps: u64, step: Bytes, payload: Bytes) -> u128 {
    let (step, payload) = (u128::from(step.0), u128::from(payload.0));
    // Rounding n · step / payload up is rounding ((n - 1) · step + step + payload - 1) / payload
    // down.
    floor_sum(u128::from(steps), payload, step, step + payload - 1)
}

/// The sum over i = 0 … n - 1 of (a · i + b) / m, each rounded down: counts the lattice points
/// below a line, and turns the triangle that is left on its side as Euclid's algorithm does.
fn floor_sum(n: u128, m: u128, a: u128, b: u128) -> u128 {
    if n == 0 {
        return 0;
    }
    let below = n * (n - 1) / 2 * (a / m) + n * (b / m);
    let (a, b) = (a % m, b % m);
    let top = a * n + b;
    if top < m { below } else { below + floor_sum(top / m, a, m, top % m) }
}

/// The sum of (n / `scale`)^-`shape` over n = `from` …, up to but without `to` (infinity is allowed
/// if `shape` is above 1), by the Euler–Maclaurin formula.
fn power_sum(shape: f64, scale: f64, from: f64, to: f64) -> f64 {
    /// Terms taken one by one; what the formula leaves out is then below 10⁻¹⁰ of the first.
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
