//! pFabric (host): sends at line rate, and leaves scheduling and drops to priority queues ([pfabric13]
//! §4.3 and §5.4.3).
//!
//! Where the paper is silent: its authors' ns-2 module. The window is about the bandwidth-delay product, with
//! slow start after a loss. A fixed short timeout is the only loss detection. After several consecutive
//! timeouts probes are sent instead of data.

use super::{
    Ack, Allowance, Controller, DesignRates, Loss, Mechanism, OutgoingPacket, Path, Priorities,
    Reliability, Signalling, Transport,
};
use crate::base::schema::{Problem, positive, positive_if_given};
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::graph::Extent;
use crate::model::packet::{Format, Header, Kind};
use crate::queueing::disciplines;
use crate::transport::blocks::path_scaled::WindowSize;

crate::choices! {
    /// Priority of a data packet; the smallest number is served first ([pfabric13] §5.4.3).
    pub enum Priority {
        /// Payload of the flow not yet acknowledged when the packet is sent.
        RemainingSize = "remaining_size",
        /// Payload of the whole flow.
        Size = "size",
        /// Payload of the flow before this packet; does not need flow sizes.
        BytesSent = "bytes_sent",
    }
}

crate::choices! {
    /// Use of deadlines.
    pub enum Deadlines {
        /// Deadlines are ignored.
        Ignored = "ignored",
        /// Flows with a deadline are served before all others, the earliest deadline first, as long as
        /// they can meet it (pFabric-EDF).
        First = "first",
    }
}

crate::parameters! {
    /// pFabric: starts at line rate and leaves scheduling to queues that serve and drop by priority
    /// ([pfabric13]). The defaults are for its fabric, with 12 packets per RTT.
    pub struct Config {
        /// Priority of a data packet.
        pub priority: Priority = Priority::RemainingSize;
        /// Thresholds between priority classes, in packets, ascending; empty: no classes, exact
        /// priorities.
        pub thresholds: Vec<u64> = Vec::new();
        /// Use of deadlines.
        pub deadlines: Deadlines = Deadlines::Ignored;
        /// Initial window (authors' scripts: the bandwidth-delay product, 12 packets).
        pub initial_window: WindowSize = WindowSize::Packets(12), where positive;
        /// Maximum window (authors' scripts: the queue's size less one packet; none: unlimited).
        pub max_window: Option<WindowSize> = Some(WindowSize::Packets(23)), where positive_if_given;
        /// Number of consecutive timeouts after which probes are sent instead of data, until a probe is
        /// answered (none: never; authors' scripts: 5).
        pub probe_after: Option<u32> = Some(5), where positive_if_given;
        /// Loss recovery and retransmission timeouts: a fixed timeout of three RTTs with a full buffer
        /// ([pfabric13] §5.4.3).
        pub reliability: Reliability = Reliability {
            duplicate_acks: None,
            fixed_rto: Some(Duration::from_micros(45)),
            ..Reliability::selective_repeat()
        };
    }
    check |config| {
        if !config.thresholds.is_sorted_by(|a, b| a < b) {
            return Err(Problem::new("thresholds", "must ascend"));
        }
        if config.deadlines == Deadlines::First && !config.thresholds.is_empty() {
            let message = "must be empty if deadlines is first, which has no classes";
            return Err(Problem::new("thresholds", message));
        }
        Ok(())
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        let default_timeout = path.base_rtt * 3;
        Box::new(PFabric {
            config: self.clone(),
            payload: path.format.payload,
            line_rate: path.line_rate,
            size: path.size,
            deadline: path.deadline,
            probe_interval: self.reliability.fixed_rto.unwrap_or(default_timeout),
            max_window: self.max_window.map_or(f64::INFINITY, |window| window.packets(path)),
            window: self.initial_window.packets(path),
            ssthresh: f64::INFINITY,
            timeouts: 0,
        })
    }

    fn needs_own_connection(&self) -> bool {
        true
    }

    fn own_reliability(&self) -> &'static [&'static str] {
        &["recovery", "duplicate_acks", "fixed_rto", "initial_rto", "min_rto"]
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        Mechanism { signalling: Signalling::Header, ..Mechanism::plain(&self.reliability) }
    }

    fn queue(&self) -> disciplines::Config {
        disciplines::Config::pfabric(crate::base::schema::defaults())
    }

    fn host_queue(&self) -> disciplines::Config {
        self.queue()
    }

    fn priorities(&self) -> Priorities {
        match self.thresholds.len() {
            0 => Priorities::Numbers,
            thresholds => Priorities::Classes(thresholds as u32 + 1),
        }
    }

    /// [pfabric13] has hosts of 10 Gb/s.
    fn design_rates(&self) -> Option<DesignRates> {
        let is_published = self.max_window == Some(WindowSize::Packets(23));
        is_published.then(|| DesignRates::one("max_window", Rate::from_gbps(10)))
    }

    fn warnings(&self, extent: &Extent, format: &Format) -> Vec<String> {
        let window = self.max_window.unwrap_or(self.initial_window);
        let (Some(rto), WindowSize::Packets(packets)) = (self.reliability.fixed_rto, window) else {
            return Vec::new();
        };
        let drain_time = extent.slowest.transmit(Bytes(u64::from(packets) * format.full().0));
        if drain_time <= rto {
            return Vec::new();
        }
        vec![format!(
            "a window of {packets} packets takes {drain_time} on the slowest link, longer than the timeout \
             of {rto}: queued packets are retransmitted, and may displace other data"
        )]
    }

    fn needs_deadlines(&self) -> bool {
        self.deadlines == Deadlines::First
    }
}

/// Added to the priority of a flow without a deadline, if other flows have deadlines.
const AFTER_DEADLINES: u64 = 1 << 62;

/// Priority of a packet whose deadline can no longer be met (authors' module).
const INFEASIBLE: u64 = AFTER_DEADLINES + (1 << 30);

/// State of one flow; windows in packets.
struct PFabric {
    config: Config,
    payload: Bytes,
    line_rate: Rate,
    size: Option<Bytes>,
    deadline: Time,
    probe_interval: Duration,
    max_window: f64,
    window: f64,
    ssthresh: f64,
    /// Timeouts since the last ACK.
    timeouts: u32,
}

impl PFabric {
    fn is_probing(&self) -> bool {
        self.config.probe_after.is_some_and(|limit| self.timeouts >= limit)
    }

    fn priority(&self, leaving: &OutgoingPacket) -> u64 {
        let number = match self.config.priority {
            Priority::RemainingSize => leaving.remaining,
            Priority::Size => self.size.unwrap_or(Bytes(u64::MAX)),
            Priority::BytesSent => leaving.offset,
        };
        let thresholds = &self.config.thresholds;
        match self.config.deadlines {
            Deadlines::Ignored if thresholds.is_empty() => number.0,
            Deadlines::Ignored => {
                let packets = number.0.div_ceil(self.payload.0);
                thresholds.partition_point(|threshold| *threshold < packets) as u64
            }
            Deadlines::First if self.deadline == Time::NEVER => {
                AFTER_DEADLINES + number.0.min(AFTER_DEADLINES)
            }
            Deadlines::First => {
                // Data in flight needs no more time.
                let size = self.size.unwrap_or(Bytes(u64::MAX));
                let unsent = Bytes(size.0 - leaving.offset.0).min(leaving.remaining);
                let ends = leaving.now + self.line_rate.transmit(unsent);
                let microsecond = Duration::from_micros(1).0;
                if ends > self.deadline { INFEASIBLE } else { self.deadline.0 / microsecond }
            }
        }
    }
}

impl Controller for PFabric {
    fn on_ack(&mut self, ack: &Ack) {
        if self.is_probing() {
            // [pfabric13] §4.3: the answer to a probe restarts slow start.
            self.ssthresh = f64::INFINITY;
        }
        self.timeouts = 0;
        let is_in_slow_start = self.window < self.ssthresh;
        let bytes = self.window * self.payload.0 as f64;
        if ack.advanced > 0 && ack.permits_growth(bytes, is_in_slow_start) {
            self.window += if is_in_slow_start { 1.0 } else { 1.0 / self.window };
            self.window = self.window.min(self.max_window);
        }
    }

    fn on_loss(&mut self, _loss: &Loss) {
        self.ssthresh = (self.window / 2.0).max(2.0);
        self.window = 1.0;
        self.timeouts += 1;
    }

    fn allowance(&self) -> Allowance {
        let window = Allowance::window(self.window * self.payload.0 as f64);
        if self.is_probing() {
            return Allowance {
                rate: Some(Rate(0)),
                probe_interval: Some(self.probe_interval),
                ..window
            };
        }
        window
    }

    fn header(&self, leaving: &OutgoingPacket) -> Header {
        // A probe stands for the data of its flow: in the authors' module it is one byte of data. With the
        // highest priority it would be answered although its flow is starved; and the queue, which serves
        // the earliest packet of the best flow, would serve all queued packets of that flow first.
        if matches!(leaving.kind, Kind::Data | Kind::Probe) {
            Header::Priority(self.priority(leaving))
        } else {
            Header::NONE
        }
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![("window_bytes", self.window * self.payload.0 as f64)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::Parameter;
    use crate::transport::controllers::CongestionSignal;
    use crate::transport::fixture::{ACK, OUTGOING, loss};
    use serde_json::json;

    const FORMAT: Format = Format {
        payload: Bytes(1460),
        header: Bytes(40),
        ack: Bytes(40),
        syn: None,
        credit: None,
        sack: false,
        time_unit: Duration::ZERO,
    };

    fn flow(config: &serde_json::Value) -> Box<dyn Controller> {
        let path = Path::new(Rate::from_gbps(10), Duration::from_nanos(14_680), FORMAT);
        let deadline = Time::ZERO + Duration::from_micros(500);
        let path = Path { size: Some(Bytes(146_000)), deadline, ..path };
        Config::read(config).unwrap().controller(&path)
    }

    fn header(flow: &dyn Controller, now: Duration, remaining: u64, offset: u64) -> Header {
        let (now, remaining, offset) = (Time::ZERO + now, Bytes(remaining), Bytes(offset));
        flow.header(&OutgoingPacket { now, remaining, offset, ..OUTGOING })
    }

    #[test]
    fn a_timeout_shorter_than_the_window_gives_a_warning() {
        let config = Config::read(&json!({})).unwrap();
        let network = |gbps| Extent::new(Duration::ZERO, [(Rate::from_gbps(gbps), 2)]);
        assert_eq!(config.warnings(&network(10), &FORMAT), [""; 0]);
        let warning = &config.warnings(&network(1), &FORMAT)[0];
        assert!(warning.contains("23 packets takes 276 us"), "{warning}");
        let patient = json!({ "reliability": { "fixed_rto": "1 ms" } });
        let config = Config::read(&patient).unwrap();
        assert_eq!(config.warnings(&network(1), &FORMAT), [""; 0]);
    }

    #[test]
    fn priorities_are_remaining_size_size_or_bytes_sent() {
        for (priority, expected) in
            [("remaining_size", 14_600), ("size", 146_000), ("bytes_sent", 29_200)]
        {
            let flow = flow(&json!({ "priority": priority }));
            let header = header(&*flow, Duration::ZERO, 14_600, 29_200);
            assert_eq!(header, Header::Priority(expected), "{priority}");
        }
    }

    #[test]
    fn a_probe_has_the_priority_of_its_flows_data() {
        let flow = flow(&json!({}));
        let header =
            |kind| flow.header(&OutgoingPacket { kind, remaining: Bytes(14_600), ..OUTGOING });
        assert_eq!(header(Kind::Probe), header(Kind::Data));
        assert_eq!(header(Kind::Syn), Header::NONE);
    }

    #[test]
    fn a_class_ends_with_its_threshold() {
        let flow = flow(&json!({ "thresholds": [1, 10] }));
        for (packets, class) in [(1, 0), (2, 1), (10, 1), (11, 2)] {
            let header = header(&*flow, Duration::ZERO, packets * 1460, 0);
            assert_eq!(header, Header::Priority(class), "{packets} packets");
        }
    }

    #[test]
    fn flows_with_deadlines_come_first_while_they_can_meet_them() {
        let flow = flow(&json!({ "deadlines": "first" }));
        // 100 us of data, with 500 us and with 90 us to go; then 90 us of it, the rest being in flight.
        let early = header(&*flow, Duration::ZERO, 125_000, 21_000);
        let late = header(&*flow, Duration::from_micros(410), 125_000, 21_000);
        let in_flight = header(&*flow, Duration::from_micros(410), 125_000, 33_500);
        let (in_time, infeasible) = (Header::Priority(500), Header::Priority(INFEASIBLE));
        assert_eq!([early, late, in_flight], [in_time, infeasible, in_time]);
    }

    #[test]
    fn a_timeout_restarts_slow_start_and_five_timeouts_start_probing() {
        let mut flow = flow(&json!({}));
        let loss = loss(CongestionSignal::Timeout, Bytes(14_600));
        let window = |flow: &dyn Controller| flow.allowance().window.0 / 1460;
        (0..3).for_each(|_| flow.on_ack(&ACK));
        assert_eq!(window(&*flow), 15, "one more with every ACK");
        flow.on_loss(&loss);
        assert_eq!(window(&*flow), 1);
        (0..20).for_each(|_| flow.on_ack(&ACK));
        assert_eq!(window(&*flow), 9, "slow start to 8.5, then one a window");
        (0..5).for_each(|_| flow.on_loss(&loss));
        let Allowance { rate, probe_interval, .. } = flow.allowance();
        assert_eq!((rate, probe_interval), (Some(Rate(0)), Some(Duration::from_micros(45))));
        flow.on_ack(&Ack { advanced: 0, ..ACK });
        assert_eq!((flow.allowance().rate, window(&*flow)), (None, 1), "any answer ends probing");
        (0..10).for_each(|_| flow.on_ack(&ACK));
        assert_eq!(window(&*flow), 11, "slow start restarts");
    }
}
