//! What hosts measure, and how well: the clocks that give transports their round-trip times.

pub mod noise;

use crate::base::random::Random;
use crate::base::units::{Duration, Time};
use crate::model::flow::HostId;

crate::choices! {
    /// When a packet gets the time stamp that its round-trip time counts from.
    pub enum Stamps {
        /// When it is handed to its host's port, by software: waiting there is part of the round trip.
        Handed = "handed",
        /// When its transmission starts, by hardware ([timely15] §3.1).
        Wire = "wire",
    }
}

crate::choices! {
    /// The operating system whose TCP hosts have.
    pub enum Kernel {
        /// Linux's, as it comes. ACKs are not delayed, as while a receiver's window grows.
        Linux = "linux",
    }
}

crate::parameters! {
    /// How hosts measure round-trip times, and what else they are.
    ///
    /// Transports are told what is measured; time-outs run by exact times.
    pub struct Config {
        /// When a packet gets the time stamp that its round-trip time counts from.
        pub stamps: Stamps = Stamps::Handed;
        /// Tick of the clock that stamps; zero for an exact one.
        pub clock_granularity: Duration = Duration::ZERO;
        /// How far receivers' clocks are ahead of senders', which one-way delays include.
        /// Packets carry the sum with 24 bits: more than a second would cost it its nanoseconds.
        pub clock_offset: Duration = Duration::ZERO, where |offset| {
            if *offset <= Duration::from_millis(1000) { Ok(()) } else { Err("at most 1 s") }
        };
        /// The system whose TCP they have: it gives other defaults to transports and packets, which the
        /// scenario then shows; none leaves them as the RFCs and papers have them. `linux` (6.18; for `tcp`,
        /// `cubic`, `bbr`, `bbr3`, `dctcp`, `vegas`, `high_speed_tcp` and `scalable_tcp`) stands for
        /// `recovery = "rack"`, `tail_probe = "200 ms"`, `proportional_reduction = true`, `undo`,
        /// `duplicate_sack` and `frto`, a `handshake` and `timestamps`, `initial_rto = "1 s"`, `min_rto` and
        /// `timer_granularity = "200 ms"`, `timer_tick = "4 ms"`, `max_rto = "120 s"`, `forgiven_syns = 1`
        /// and `linear_syns = 4` under `reliability`, any `window.count_limit`, `window.hystart = "linux"` in
        /// CUBIC, `quanta = 6`, `unpaced = 10`, `policer = true` and `aggregation = true` in BBR, and 1448 B
        /// of `payload`, 52 B of `header`, an `ack` of 52 B and more with `sack`, and a `syn` of 60 B.
        pub kernel: Option<Kernel> = None;
        /// What is added to every measured round-trip time; none adds nothing.
        pub rtt_noise: Option<noise::Config> = None;
    }
}

/// The clocks of all hosts, which measure round-trip times.
pub struct Clocks {
    config: Config,
    /// What each host draws its errors from; none if there are no errors.
    streams: Vec<Random>,
}

impl Clocks {
    /// The clocks of so many hosts, each of which has its errors from a stream of its own.
    pub fn new(config: &Config, hosts: u32, seed: u64) -> Self {
        let stream = |host| Random::new(seed, &format!("host/clock/{host}"));
        let drawn = if config.rtt_noise.is_some() { hosts } else { 0 };
        Self { config: config.clone(), streams: (0..drawn).map(stream).collect() }
    }

    /// The round-trip time that a host measures from `sent` to `now`; which host, only errors ask.
    pub fn measure(&mut self, host: impl FnOnce() -> HostId, sent: Time, now: Time) -> Duration {
        let exact = self.elapsed(sent, now);
        let Some(noise) = &self.config.rtt_noise else { return exact };
        let seconds = exact.seconds() + noise.draw(&mut self.streams[host() as usize]);
        Duration::from_seconds(seconds.max(0.0))
    }

    /// How long a packet took from one host to another by their clocks, in seconds, as packets carry it.
    pub fn delay(&self, sent: Time, now: Time) -> f32 {
        self.elapsed(sent, now + self.config.clock_offset).seconds() as f32
    }

    /// The whole ticks between two readings.
    fn elapsed(&self, from: Time, to: Time) -> Duration {
        match self.config.clock_granularity.0 {
            // Divisions are slow, and this is asked for every ACK.
            0 => to - from,
            tick => Duration((to.0 / tick - from.0 / tick) * tick),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::Parameter;
    use serde_json::{Value, json};

    /// Mean and greatest of many measurements of 100 us, in microseconds.
    fn measured(config: &Value) -> (f64, f64) {
        let mut clock = Clocks::new(&Config::read(config).unwrap(), 1, 1);
        let sent = Time(12_345);
        let draws: Vec<f64> = (0..20_000)
            .map(|_| clock.measure(|| 0, sent, sent + Duration::from_micros(100)).seconds() * 1e6)
            .collect();
        let most = draws.iter().copied().fold(0.0, f64::max);
        (draws.iter().sum::<f64>() / draws.len() as f64, most)
    }

    #[test]
    fn noise_adds_what_it_says() {
        assert_eq!(measured(&json!({})), (100.0, 100.0));
        let (mean, most) = measured(&json!({"rtt_noise": {"kind": "uniform", "most": "50 us"}}));
        assert!((mean - 125.0).abs() < 0.5 && most <= 150.0);
        let (mean, most) =
            measured(&json!({"rtt_noise": {"kind": "gaussian", "deviation": "5 us"}}));
        assert!((mean - 100.0).abs() < 0.2 && most > 110.0);
        let spikes = json!({"kind": "spikes", "probability": 0.01, "size": "200 us"});
        let (mean, most) = measured(&json!({ "rtt_noise": spikes }));
        assert!((mean - 102.0).abs() < 0.5 && (most - 300.0).abs() < 1e-6);
    }

    #[test]
    fn one_way_delays_are_as_wrong_as_the_clocks() {
        let config = json!({"clock_granularity": "1 us", "clock_offset": "1 ms"});
        let clock = Clocks::new(&Config::read(&config).unwrap(), 1, 1);
        let delay = clock.delay(Time(900_000), Time(2_100_000));
        assert!((delay - 1.002e-3).abs() < 1e-9, "{delay}");
        assert!(Config::read(&json!({"clock_offset": "2 s"})).is_err());
    }

    #[test]
    fn a_coarse_clock_counts_ticks() {
        let coarse = Config::read(&json!({"clock_granularity": "1 us"})).unwrap();
        let mut clock = Clocks::new(&coarse, 1, 1);
        let at = |ns: u64| Time(1_000 * ns);
        assert_eq!(clock.measure(|| 0, at(900), at(2_100)), Duration::from_micros(2));
        assert_eq!(clock.measure(|| 0, at(1_000), at(1_999)), Duration::ZERO);
    }
}
