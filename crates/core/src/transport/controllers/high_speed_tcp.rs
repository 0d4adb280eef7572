//! HighSpeed TCP: a faster increase and a smaller decrease at larger windows (RFC 3649).

use super::{Ack, Controller, Loss, Mechanism, Path, Reliability, Transport};
use crate::base::schema::{Problem, defaults, positive, positive_fraction};
use crate::model::packet::Format;
use crate::transport::blocks::tcp::window::{self, Window, WindowLaw};

crate::choices! {
    /// Source of the increase a(w).
    pub enum Increase {
        /// RFC 3649 §5 with the rounded response function, a loss rate of 0.078 / w^1.2; for the
        /// default parameters.
        Formula = "formula",
        /// As in Linux: the table of RFC 3649 Appendix B, with the increase of the next row between two
        /// rows. That is the formula rounded up to whole packets: 2 from a window of 39, where the
        /// formula has 1, so the mean window is above that of the RFC's response function.
        Table = "table",
        /// RFC 3649 §5 with the exact response function through the two points; up to 2.5 % more
        /// than `formula` where both are defined.
        Interpolated = "interpolated",
    }
}

crate::choices! {
    /// Source of the decrease b(w).
    pub enum Decrease {
        /// RFC 3649 §5.
        Formula = "formula",
        /// As in Linux: the formula at the end of the table's row, in units of 1/256, rounded down. The row
        /// changes in congestion avoidance only, so a loss in the first slow start halves the window.
        Table = "table",
    }
}

crate::parameters! {
    /// HighSpeed TCP: TCP up to a window of 38 packets; above, the increase per RTT grows and the
    /// decrease shrinks with the window (RFC 3649).
    pub struct Config {
        /// Window, in packets, up to which the flow behaves as TCP (RFC 3649 §5: 38).
        pub low_window: f64 = 38.0, where positive;
        /// Loss rate at which the window is `low_window` (RFC 3649 §5: 0.001; ns-2: 0.00104); only for
        /// the interpolated increase.
        pub low_loss: f64 = 1e-3, where positive_fraction;
        /// Window at the loss rate `high_loss`, in packets (RFC 3649 §5: 83000).
        pub high_window: f64 = 83_000.0, where positive;
        /// Loss rate at which the window is `high_window` (RFC 3649 §5: 1e-7); only for the interpolated
        /// increase.
        pub high_loss: f64 = 1e-7, where positive_fraction;
        /// Fraction by which a loss reduces a window of `high_window` (RFC 3649 §5: 0.1).
        pub high_decrease: f64 = 0.1, where positive_fraction;
        /// Source of the increase a(w).
        pub increase: Increase = Increase::Formula;
        /// Source of the decrease b(w).
        pub decrease: Decrease = Decrease::Formula;
        /// Initial congestion window, slow start and maximum window.
        pub window: Window = defaults();
        /// If true, packets are ECN-capable: routers may mark instead of drop (RFC 3168).
        pub ecn: bool = false;
        /// Loss recovery and retransmission timeouts.
        pub reliability: Reliability = Reliability::internet();
    }
    check |config: &Config| {
        if config.high_window <= config.low_window {
            let message = format!("must be above low_window, which is {}", config.low_window);
            return Err(Problem::new("high_window", message));
        }
        if config.high_loss >= config.low_loss {
            let message = format!("must be below low_loss, which is {}", config.low_loss);
            return Err(Problem::new("high_loss", message));
        }
        Ok(())
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        window::controller(&self.window, HighSpeed::new(self), path)
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        window::mechanism(&self.reliability, self.ecn)
    }
}

/// Windows at which the increase is 1, 2, 3 … packets per RTT (RFC 3649 Appendix B), and up to which
/// it is in Linux (`tcp_highspeed.c`).
const TABLE: [u32; 73] = [
    38, 118, 221, 347, 495, 663, 851, 1058, 1284, 1529, 1793, 2076, 2378, 2699, 3039, 3399, 3778,
    4177, 4596, 5036, 5497, 5979, 6483, 7009, 7558, 8130, 8726, 9346, 9991, 10661, 11358, 12082,
    12834, 13614, 14424, 15265, 16137, 17042, 17981, 18955, 19965, 21013, 22101, 23230, 24402,
    25618, 26881, 28193, 29557, 30975, 32450, 33986, 35586, 37253, 38992, 40808, 42707, 44694,
    46776, 48961, 51258, 53677, 56230, 58932, 61799, 64851, 68113, 71617, 75401, 79517, 84035,
    89053, 94717,
];

struct HighSpeed {
    low_window: f64,
    low_loss: f64,
    increase: Increase,
    decrease: Decrease,
    /// Row of the table at the last increase.
    row: usize,
    /// Slope of b(w) over the logarithm of the window.
    decrease_slope: f64,
    /// Exponent of the loss rate over the window.
    exponent: f64,
}

impl HighSpeed {
    fn new(config: &Config) -> Self {
        let span = (config.high_window / config.low_window).ln();
        Self {
            low_window: config.low_window,
            low_loss: config.low_loss,
            increase: config.increase,
            decrease: config.decrease,
            row: 0,
            decrease_slope: (config.high_decrease - 0.5) / span,
            exponent: (config.high_loss / config.low_loss).ln() / span,
        }
    }

    /// b(w), the fraction by which a loss reduces the window; `log_ratio` is ln(w / `low_window`).
    fn decrease_factor(&self, log_ratio: f64) -> f64 {
        (0.5 + self.decrease_slope * log_ratio).max(0.0)
    }

    /// Returns the row of the table with this window.
    fn row(cwnd: f64) -> usize {
        TABLE.partition_point(|top| f64::from(*top) < cwnd)
    }

    /// b of the current row.
    fn row_decrease(&self) -> f64 {
        let top = f64::from(TABLE[self.row.min(TABLE.len() - 1)]);
        (self.decrease_factor((top / self.low_window).ln()) * 256.0).floor() / 256.0
    }

    /// a(w), the increase in packets per RTT.
    fn increase_per_rtt(&self, cwnd: f64) -> f64 {
        if cwnd <= self.low_window {
            return 1.0;
        }
        let log_ratio = (cwnd / self.low_window).ln();
        let loss = match self.increase {
            Increase::Table => {
                return 1.0 + Self::row(cwnd) as f64;
            }
            Increase::Formula => 0.078 / cwnd.powf(1.2),
            Increase::Interpolated => self.low_loss * (self.exponent * log_ratio).exp(),
        };
        let factor = self.decrease_factor(log_ratio);
        (cwnd * cwnd * loss * 2.0 * factor / (2.0 - factor)).max(1.0)
    }
}

impl WindowLaw for HighSpeed {
    fn increase(&mut self, cwnd: f64, acked: f64, _ack: &Ack) -> f64 {
        self.row = Self::row(cwnd);
        cwnd + self.increase_per_rtt(cwnd) * acked / cwnd
    }

    fn decrease(&mut self, cwnd: f64, _loss: &Loss) -> f64 {
        let factor = match self.decrease {
            Decrease::Formula => self.decrease_factor((cwnd / self.low_window).ln().max(0.0)),
            Decrease::Table => self.row_decrease(),
        };
        (1.0 - factor) * cwnd
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::Bytes;
    use crate::transport::controllers::CongestionSignal;
    use crate::transport::fixture::{ACK, loss};

    #[test]
    fn the_formula_agrees_with_the_table_of_the_rfc() {
        let law = HighSpeed::new(&defaults());
        for (packets, top) in (1..).zip(TABLE) {
            let increase = law.increase_per_rtt(f64::from(top));
            assert!((increase / f64::from(packets) - 1.0).abs() < 0.005, "{increase} at {top}");
        }
        // RFC 3649 Appendix B.
        for (window, factor) in [(38, 0.50), (118, 0.44), (851, 0.34), (5036, 0.25), (84035, 0.10)]
        {
            let log_ratio = (f64::from(window) / 38.0).ln();
            assert!((law.decrease_factor(log_ratio) - factor).abs() < 0.006, "at {window}");
        }
    }

    #[test]
    fn the_table_decreases_by_the_row_of_the_last_increase() {
        let mut law = HighSpeed { decrease: Decrease::Table, ..HighSpeed::new(&defaults()) };
        let halved = |law: &mut HighSpeed, cwnd: f64| {
            let loss = loss(CongestionSignal::DetectedLoss, Bytes::ZERO);
            ((1.0 - law.decrease(cwnd, &loss) / cwnd) * 256.0).round() as u32
        };
        assert_eq!(halved(&mut law, 1000.0), 128, "no increase before");
        // Linux, `tcp_highspeed.c`: `md` of some rows.
        for (window, expected) in
            [(38, 128), (100, 112), (118, 112), (119, 104), (5036, 62), (11_000, 52), (84_035, 25)]
        {
            law.increase(f64::from(window), 1.0, &ACK);
            assert_eq!(halved(&mut law, f64::from(window)), expected, "at {window}");
        }
    }

    #[test]
    fn the_table_increases_by_whole_packets() {
        let law = HighSpeed { increase: Increase::Table, ..HighSpeed::new(&defaults()) };
        let increase =
            [10.0, 38.0, 39.0, 118.0, 119.0, 84_035.0].map(|window| law.increase_per_rtt(window));
        assert_eq!(increase.map(|packets| packets as u32), [1, 1, 2, 2, 3, 71]);
    }
}
