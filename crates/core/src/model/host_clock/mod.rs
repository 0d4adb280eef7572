//! Hosts: their clocks, with the RTTs that transports measure, and the way in which flows share their ports.

pub mod noise;

use std::num::NonZeroU16;

use crate::base::random::Random;
use crate::base::units::{Duration, Time};
use crate::model::flow::HostId;

crate::choices! {
    /// Time at which a packet gets the timestamp from which its RTT is measured.
    pub enum Stamps {
        /// On the transfer from software to the NIC: the RTT includes the NIC wait.
        Handed = "handed",
        /// At the start of the transmission, by hardware ([timely15] §3.1).
        Wire = "wire",
    }
}

crate::choices! {
    /// Operating system whose TCP the hosts run.
    pub enum Kernel {
        /// Linux with its default settings. ACKs are not delayed, as while the receive window grows.
        Linux = "linux",
    }
}

crate::choices! {
    /// Way in which a host's flows share its port.
    pub enum Service {
        /// In order of arrival: window transports hand over all that their window permits, and others wait
        /// behind it; transports that pace hand over a packet, or a burst, at a time.
        Fifo = "fifo",
        /// In turn, for every transport: a flow hands over at most `flow_limit` packets, and further ones
        /// when its host's port has served them.
        Fair = "fair",
        /// As NICs of [hpcc19]'s simulator: when the link is free, the next flow with a packet that is due
        /// sends it, in the order in which the flows started (a `host_queue` that is not given is
        /// `round_robin`); and the gap after a paced packet runs from its transmission, not from when it was
        /// due.
        RoundRobin = "round_robin",
    }
}

crate::parameters! {
    /// Clocks of hosts, their operating system, and the way in which flows share a host's port.
    ///
    /// Transports receive measured RTTs; timers use exact times.
    pub struct Config {
        /// Way in which a host's flows share its port. With `fair` they wait outside the port's queue, so
        /// that ACKs and new flows do not wait behind a long flow's window, as with TCP small queues and
        /// `fq` (Linux) and the queue pairs of RDMA NICs. SYNs, ACKs and probes are not limited. Without
        /// effect where hosts are routers.
        pub service: Service = Service::Fifo;
        /// Packets of a flow that may wait in its host's port, a batch, with `service = "fair"` (Linux: a
        /// quantum of 2 packets in `fq`, and TCP small queues of at least 2 packets). Paced packets leave
        /// one at a time, and at most two wait.
        pub flow_limit: u32 = 2, where |limit| {
            if (1..=1000).contains(limit) { Ok(()) } else { Err("1 to 1000") }
        };
        /// If true, ACKs and other control packets pass data in strict priority in a host's port, as in the
        /// NICs of [hpcc19]'s simulator; none: as at switches (`switch.control_priority`). Without effect
        /// where hosts are routers.
        pub control_priority: Option<bool> = None;
        /// Largest share by which the rate of a host's port is below the nominal one; each host has its own,
        /// with every seed (IEEE 802.3: 100 ppm to either side, so that two ports differ by up to 0.0002).
        /// With equal rates the packets of a sender can arrive at the very instants at which a full queue has
        /// room again, and lock out those of all others (phase effects, [floyd92]). At a slower link, where
        /// ACKs time the packets, only `jitter` helps.
        pub rate_tolerance: f64 = 0.0, where |tolerance| {
            if (0.0..=0.01).contains(tolerance) { Ok(()) } else { Err("from 0 to 0.01") }
        };
        /// Longest random addition to the delay of links from hosts; packets stay in order. If it is the
        /// transmission time of a packet on the bottleneck, the shares of flows in a drop-tail queue do not
        /// depend on the exact times of their packets ([floyd92]).
        pub jitter: Duration = Duration::ZERO, where |jitter| {
            if *jitter <= Duration::from_millis(1000) { Ok(()) } else { Err("at most 1 s") }
        };
        /// Time at which a packet gets the timestamp from which its RTT is measured.
        pub stamps: Stamps = Stamps::Handed;
        /// Tick of the timestamp clock; zero for an exact clock.
        pub clock_granularity: Duration = Duration::ZERO;
        /// Offset of receivers' clocks from senders', which one-way delays include. Packets carry the sum in
        /// 24 bits, so an offset above a second would lose nanoseconds.
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
        /// CUBIC, `quanta = 6`, `unpaced = 10`, `policer = true` and `aggregation = true` in BBR,
        /// `unpaced = 10`, `aggregation = true` and `offload_quanta = 3` in BBRv3, `min_window = 2` in
        /// DCTCP, `variant = "linux"` in Vegas, `increase` and `decrease = "table"` in HighSpeed TCP, and
        /// 1448 B of `payload`, 52 B of `header`, an `ack` of 52 B and more with `sack`, and a `syn` of 60 B.
        pub kernel: Option<Kernel> = None;
        /// Noise added to every measured RTT; none for exact RTTs.
        pub rtt_noise: Option<noise::Config> = None;
    }
}

/// Limits of a flow's packets in its host's port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortShare {
    /// Packets of a flow that may wait; none without a limit.
    pub flow_limit: Option<NonZeroU16>,
    /// True if the gap after a paced packet runs from its transmission.
    pub paces_departures: bool,
}

impl Config {
    /// Returns the limits of a flow's packets in its host's port.
    pub fn port_share(&self) -> PortShare {
        match self.service {
            Service::Fifo => PortShare::default(),
            Service::Fair => PortShare {
                flow_limit: NonZeroU16::new(self.flow_limit as u16),
                paces_departures: false,
            },
            Service::RoundRobin => {
                PortShare { flow_limit: Some(NonZeroU16::MIN), paces_departures: true }
            }
        }
    }
}

/// Clocks of all hosts.
pub struct Clocks {
    config: Config,
    /// Random stream of the noise of each host; empty without noise.
    streams: Vec<Random>,
}

impl Clocks {
    /// Returns the clocks of all hosts, each with a random stream of its own.
    pub fn new(config: &Config, hosts: u32, seed: u64) -> Self {
        let stream = |host| Random::new(seed, &format!("host/clock/{host}"));
        let drawn = if config.rtt_noise.is_some() { hosts } else { 0 };
        Self { config: config.clone(), streams: (0..drawn).map(stream).collect() }
    }

    /// RTT that a host measures from `sent` to `now`. Only noise depends on the host.
    pub fn measure(&mut self, host: impl FnOnce() -> HostId, sent: Time, now: Time) -> Duration {
        let exact = self.elapsed(sent, now);
        let Some(noise) = &self.config.rtt_noise else { return exact };
        let seconds = exact.seconds() + noise.draw(&mut self.streams[host() as usize]);
        Duration::from_seconds(seconds.max(0.0))
    }

    /// One-way delay in seconds by the clocks of both hosts, as packets carry it.
    pub fn delay(&self, sent: Time, now: Time) -> f32 {
        self.elapsed(sent, now + self.config.clock_offset).seconds() as f32
    }

    /// Number of whole ticks between two times.
    fn elapsed(&self, from: Time, to: Time) -> Duration {
        match self.config.clock_granularity.0 {
            // Avoids a division for each ACK.
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

    /// Mean and maximum of many measurements of 100 us, in microseconds.
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
    fn noise_is_added_to_the_rtt() {
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
    fn one_way_delays_include_the_clock_offset() {
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
