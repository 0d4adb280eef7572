//! Scalable TCP: window growth and cuts in proportion to the window ([scalable03]).

use super::{Ack, Controller, Loss, Mechanism, Path, Reliability, Transport};
use crate::base::schema::{defaults, not_negative, positive, positive_fraction};
use crate::model::packet::Format;
use crate::transport::blocks::tcp::window::{self, Law, Window};

crate::parameters! {
    /// Scalable TCP: every ACK adds a hundredth of a packet and a loss takes an eighth of the window, so
    /// that recovery takes as many round trips whatever the window ([scalable03]).
    pub struct Config {
        /// Packets that an acknowledged packet adds to the window ([scalable03] §3: 0.01).
        pub increase: f64 = 0.01, where positive;
        /// Share of the window that a loss takes ([scalable03] §3: 0.125).
        pub decrease: f64 = 0.125, where positive_fraction;
        /// Window up to which it behaves as TCP, in packets ([scalable03] §3: 16).
        pub legacy_window: f64 = 16.0, where not_negative;
        /// How the window begins and is bounded.
        pub window: Window = defaults();
        /// Whether routers may mark instead of dropping (RFC 3168).
        pub ecn: bool = false;
        /// How data is made reliable.
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

impl Law for Scalable {
    fn increase(&mut self, window: f64, acked: f64, _ack: &Ack) -> f64 {
        let increase = if window <= self.legacy_window { 1.0 / window } else { self.increase };
        window + increase * acked
    }

    fn decrease(&mut self, window: f64, _loss: &Loss) -> f64 {
        if window <= self.legacy_window {
            window / 2.0
        } else {
            window - (self.decrease * window).ceil()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::{Bytes, Time};
    use crate::transport::controllers::CongestionSignal;
    use crate::transport::fixture::ACK;

    #[test]
    fn it_recovers_from_a_loss_in_as_many_round_trips_at_every_window() {
        let (now, flight) = (Time::ZERO, Bytes::ZERO);
        for full in [1_000.0, 50_000.0] {
            let mut law = Scalable { increase: 0.01, decrease: 0.125, legacy_window: 16.0 };
            let mut window = law.decrease(
                full,
                &Loss { now, flight, lost: Bytes::ZERO, sign: CongestionSignal::Gap },
            );
            let mut round_trips = 0.0;
            while window < full {
                round_trips += 1.0 / window;
                window = law.increase(window, 1.0, &ACK);
            }
            // ln(1 / 0.875) / ln(1.01) = 13.4.
            assert!((round_trips - 13.4_f64).abs() < 0.1, "{round_trips} from {full}");
        }
    }
}
