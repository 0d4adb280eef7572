//! Scalable TCP: increase per RTT and decrease per loss in proportion to the window ([scalable03]).

use super::{Ack, Controller, Loss, Mechanism, Path, Reliability, Transport};
use crate::base::schema::{defaults, not_negative, positive, positive_fraction};
use crate::model::packet::Format;
use crate::transport::blocks::tcp::window::{self, Window, WindowLaw};

crate::parameters! {
    /// Scalable TCP: every ACK adds 0.01 packets and a loss takes an eighth of the window, so that
    /// recovery takes the same number of RTTs for any window ([scalable03]).
    pub struct Config {
        /// Packets added to the window per packet acknowledged ([scalable03] §3: 0.01).
        pub increase: f64 = 0.01, where positive;
        /// Fraction by which a loss or mark reduces the window ([scalable03] §3: 0.125).
        pub decrease: f64 = 0.125, where positive_fraction;
        /// Window, in packets, up to which the flow behaves as TCP ([scalable03] §3: 16).
        pub legacy_window: f64 = 16.0, where not_negative;
        /// Initial congestion window, slow start and maximum window.
        pub window: Window = defaults();
        /// If true, packets are ECN-capable: routers may mark instead of drop (RFC 3168).
        pub ecn: bool = false;
        /// Loss recovery and retransmission timeouts.
        pub reliability: Reliability = Reliability::internet();
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        let Self { increase, decrease, legacy_window, .. } = *self;
        window::controller(&self.window, Scalable { increase, decrease, legacy_window }, path)
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        window::mechanism(&self.reliability, self.ecn)
    }
}

struct Scalable {
    increase: f64,
    decrease: f64,
    legacy_window: f64,
}

impl WindowLaw for Scalable {
    fn increase(&mut self, cwnd: f64, acked: f64, _ack: &Ack) -> f64 {
        let increase = if cwnd <= self.legacy_window { 1.0 / cwnd } else { self.increase };
        cwnd + increase * acked
    }

    fn decrease(&mut self, cwnd: f64, _loss: &Loss) -> f64 {
        if cwnd <= self.legacy_window { cwnd / 2.0 } else { cwnd - (self.decrease * cwnd).ceil() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::{Bytes, Time};
    use crate::transport::controllers::CongestionSignal;
    use crate::transport::fixture::{ACK, loss};

    #[test]
    fn recovery_from_a_loss_takes_the_same_number_of_rtts_for_any_window() {
        let (now, flight) = (Time::ZERO, Bytes::ZERO);
        for initial in [1_000.0, 50_000.0] {
            let mut law = Scalable { increase: 0.01, decrease: 0.125, legacy_window: 16.0 };
            let mut window = law
                .decrease(initial, &Loss { now, ..loss(CongestionSignal::DetectedLoss, flight) });
            let mut rtts = 0.0;
            while window < initial {
                rtts += 1.0 / window;
                window = law.increase(window, 1.0, &ACK);
            }
            // ln(1 / 0.875) / ln(1.01) = 13.4.
            assert!((rtts - 13.4_f64).abs() < 0.1, "{rtts} from {initial}");
        }
    }
}
