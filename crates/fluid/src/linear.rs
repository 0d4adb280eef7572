//! Linear analysis: a law near its fixed point, and how much delay its loop could still bear.
//!
//! Near the fixed point all flows move together, so one stands for all. With the changes of now `A`
//! and those of `tau` ago `B`, the characteristic equation is `det(s - A - B exp(-s tau)) = 0`. The
//! loop is broken where delayed variables enter: its open loop is `L(s) = det(s - A - B exp(-s tau)) /
//! det(s - A) - 1`. For a law whose delayed variables all follow from one signal this is that signal's
//! transfer function, which is so for all laws here.

use std::cell::RefCell;
use std::f64::consts::PI;

use num_complex::Complex64;

use super::law::{Law, Layout, Loop, Past, View};

/// A phase margin, and the gain crossover that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margin {
    /// Degrees that the phase is away from instability; a negative one is unstable.
    pub degrees: f64,
    /// The frequency of the crossover in radians a second.
    pub frequency: f64,
}

/// The frequencies in which crossovers are sought, as powers of ten, and points a decade.
const DECADES: (f64, f64) = (-2.0, 8.0);
const POINTS: usize = 400;

/// The least phase margin over all frequencies at which the gain crosses one; none if it never does.
pub fn phase_margin(open_loop: &Loop) -> Option<Margin> {
    let gain = |power: f64| open_loop(Complex64::new(0.0, 10_f64.powf(power))).norm().ln();
    let count = ((DECADES.1 - DECADES.0) * POINTS as f64) as usize;
    let power = |number: usize| DECADES.0 + number as f64 / POINTS as f64;
    let gains: Vec<f64> = (0..=count).map(|number| gain(power(number))).collect();
    let crossings = (0..count).filter(|i| (gains[*i] > 0.0) != (gains[i + 1] > 0.0));
    let margin = |number: usize| {
        let (mut low, mut high) = (power(number), power(number + 1));
        for _ in 0..50 {
            let middle = f64::midpoint(low, high);
            let is_low = (gain(middle) > 0.0) == (gains[number] > 0.0);
            *(if is_low { &mut low } else { &mut high }) = middle;
        }
        let frequency = 10_f64.powf(low);
        let phase = open_loop(Complex64::new(0.0, frequency)).arg() + PI;
        let wrapped = if phase > PI { phase - 2.0 * PI } else { phase };
        Margin { degrees: wrapped.to_degrees(), frequency }
    };
    crossings.map(margin).min_by(|a, b| a.degrees.total_cmp(&b.degrees))
}

/// The open loop of a law near its fixed point.
pub fn open_loop(law: &dyn Law, point: &[f64]) -> Loop {
    let Linear { now, past } = Linear::of(law, point);
    Box::new(move |s: Complex64| {
        let order = now.len();
        let open: Vec<Vec<Complex64>> = (0..order)
            .map(|row| {
                (0..order).map(|at| if row == at { s } else { 0.0.into() } - now[row][at]).collect()
            })
            .collect();
        let mut closed = open.clone();
        for (delay, changes) in &past {
            let behind = (-s * delay).exp();
            for (row, changes) in closed.iter_mut().zip(changes) {
                for (cell, change) in row.iter_mut().zip(changes) {
                    *cell -= behind * change;
                }
            }
        }
        determinant(closed) / determinant(open) - 1.0
    })
}

type Matrix = Vec<Vec<f64>>;

/// The changes that small deviations bring about: those of now, and those of each delay.
struct Linear {
    now: Matrix,
    past: Vec<(f64, Matrix)>,
}

impl Linear {
    fn of(law: &dyn Law, point: &[f64]) -> Self {
        let steady = Steady::new(law, point);
        let mut changes = vec![0.0; steady.state.len()];
        steady.changes(law, &steady.state, None, &mut changes);
        let delays = steady.asked.take();
        let scales: Vec<f64> =
            law.shared().iter().chain(&law.own()).map(|variable| variable.scale).collect();
        // Central differences: their error is of the second order.
        let slope = |at: usize, delay: Option<f64>| -> Vec<f64> {
            let height = 1e-5 * scales[at];
            let side = |height: f64| {
                let mut changes = vec![0.0; steady.state.len()];
                match delay {
                    Some(delay) => {
                        let wave = Wave { delay, at, height };
                        steady.changes(law, &steady.state, Some(wave), &mut changes);
                    }
                    None => steady.changes(law, &steady.moved(at, height), None, &mut changes),
                }
                changes.truncate(point.len());
                changes
            };
            let (above, below) = (side(height), side(-height));
            above.iter().zip(below).map(|(above, below)| (above - below) / (2.0 * height)).collect()
        };
        let matrix = |delay: Option<f64>| -> Matrix {
            let columns: Vec<_> = (0..point.len()).map(|at| slope(at, delay)).collect();
            (0..point.len()).map(|row| columns.iter().map(|column| column[row]).collect()).collect()
        };
        let past = delays.into_iter().map(|delay| (delay, matrix(Some(delay)))).collect();
        Self { now: matrix(None), past }
    }
}

/// A deviation of one variable, of all flows, at one delay.
#[derive(Clone, Copy)]
struct Wave {
    delay: f64,
    at: usize,
    height: f64,
}

/// A past in which everything was at the fixed point, but for one deviation.
struct Steady {
    layout: Layout,
    /// The fixed point, for all flows.
    state: Vec<f64>,
    active: Vec<bool>,
    wave: Option<Wave>,
    /// Delays that the law has read.
    asked: RefCell<Vec<f64>>,
}

/// Delays that differ by less are one.
const SAME: f64 = 1e-12;

impl Steady {
    fn new(law: &dyn Law, point: &[f64]) -> Self {
        let (layout, flows) = (law.layout(), law.link().flows);
        let mut state = point[..layout.shared].to_vec();
        state.extend(point[layout.shared..].repeat(flows));
        let asked = RefCell::default();
        Self { layout, state, active: vec![true; flows], wave: None, asked }
    }

    /// The fixed point with one variable of all flows moved.
    fn moved(&self, at: usize, height: f64) -> Vec<f64> {
        let value = |(place, value): (usize, &f64)| {
            if self.layout.in_one(place) == at { value + height } else { *value }
        };
        self.state.iter().enumerate().map(value).collect()
    }

    fn changes(&self, law: &dyn Law, state: &[f64], wave: Option<Wave>, change: &mut [f64]) {
        let past = Self {
            state: self.state.clone(),
            active: Vec::new(),
            wave,
            asked: RefCell::default(),
            ..*self
        };
        let (active, layout, time) = (&self.active, self.layout, f64::INFINITY);
        law.changes(&View { time, state, past: &past, active, layout }, change);
        *self.asked.borrow_mut() = past.asked.take();
    }
}

impl Past for Steady {
    fn value(&self, place: usize, delay: f64) -> f64 {
        let is_same = |other: f64| (delay - other).abs() <= SAME;
        let mut asked = self.asked.borrow_mut();
        if !asked.iter().any(|other| is_same(*other)) {
            asked.push(delay);
        }
        match self.wave {
            Some(wave) if is_same(wave.delay) && self.layout.in_one(place) == wave.at => {
                self.state[place] + wave.height
            }
            Some(_) | None => self.state[place],
        }
    }
}

/// The determinant, by elimination.
fn determinant(mut rows: Vec<Vec<Complex64>>) -> Complex64 {
    let mut product = Complex64::new(1.0, 0.0);
    for at in 0..rows.len() {
        let size = |row: &usize| rows[*row][at].norm();
        let Some(pivot) = (at..rows.len()).max_by(|a, b| size(a).total_cmp(&size(b))) else {
            break;
        };
        if rows[pivot][at].norm() == 0.0 {
            return 0.0.into();
        }
        if pivot != at {
            rows.swap(pivot, at);
            product = -product;
        }
        product *= rows[at][at];
        let (above, below) = rows.split_at_mut(at + 1);
        for row in below {
            let factor = row[at] / above[at][at];
            for (cell, above) in row.iter_mut().zip(&above[at]).skip(at) {
                *cell -= factor * above;
            }
        }
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_integrator_with_delay_has_the_margin_of_its_closed_form() {
        // K exp(-s tau) / s crosses one at K, where its phase is -90 degrees - K tau.
        let open: Loop = Box::new(|s| 500.0 * (-s * 1e-3).exp() / s);
        let margin = phase_margin(&open).unwrap();
        assert!((margin.frequency - 500.0).abs() < 1e-6);
        assert!((margin.degrees - (90.0 - 0.5_f64.to_degrees())).abs() < 1e-6);
    }

    #[test]
    fn a_gain_that_never_crosses_one_has_no_margin() {
        let open: Loop = Box::new(|s| 0.5 / (1.0 + s));
        assert_eq!(phase_margin(&open), None);
    }

    #[test]
    fn a_determinant_changes_sign_with_its_rows() {
        let rows = |order: [usize; 3]| {
            let all = [[0.0, 2.0, 1.0], [1.0, 0.0, 3.0], [4.0, 1.0, 0.0]];
            order.map(|i| all[i].map(Complex64::from).to_vec()).to_vec()
        };
        assert!((determinant(rows([0, 1, 2])) - 25.0).norm() < 1e-12);
        assert!((determinant(rows([1, 0, 2])) + 25.0).norm() < 1e-12);
    }
}
