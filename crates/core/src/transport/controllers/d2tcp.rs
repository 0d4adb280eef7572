//! D2TCP: DCTCP that reduces its window less the closer its deadline is ([d2tcp12] §3).
//!
//! The reduction at a mark is alpha to the power of the flow's urgency: the time that the flow still needs
//! over the time to the deadline, between 0.5 and 2. Without a deadline the urgency is 1, as in DCTCP. (The
//! ns-2 module that [pfabric13] used halves the windows of such flows instead.)

use super::dctcp::{self, Dctcp};
use super::{Ack, Allowance, Controller, Loss, Mechanism, Path, Restart, Transport};
use crate::base::schema::defaults;
use crate::base::units::{Bytes, Duration, Time};
use crate::model::packet::Format;
use crate::queueing::disciplines;
use crate::transport::blocks::deadline::Deadline;
use crate::transport::endpoint::rtt::smooth;

crate::parameters! {
    /// D2TCP: DCTCP whose reduction at a mark depends on the flow's deadline ([d2tcp12]).
    pub struct Config {
        /// Parameters of DCTCP.
        pub dctcp: dctcp::Config = defaults();
        /// If true, a flow is given up once its deadline has passed, or cannot be met at line rate
        /// (ns-2 module of [pfabric13]: true).
        pub early_termination: bool = false;
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        Box::new(D2tcp {
            dctcp: self.dctcp.open(path),
            deadline: Deadline::new(path, self.early_termination),
            srtt: None,
        })
    }

    fn mechanism(&self, format: &Format) -> Mechanism {
        self.dctcp.mechanism(format)
    }

    fn queue(&self) -> disciplines::Config {
        self.dctcp.queue()
    }

    fn host_queue(&self) -> disciplines::Config {
        self.dctcp.host_queue()
    }

    fn needs_deadlines(&self) -> bool {
        true
    }
}

/// Bounds of the urgency d ([d2tcp12] §3.2).
const MIN_URGENCY: f64 = 0.5;
const MAX_URGENCY: f64 = 2.0;

/// Mean window of the sawtooth between half and all of the maximum, over the maximum.
const SAWTOOTH: f64 = 0.75;

struct D2tcp {
    dctcp: Dctcp,
    deadline: Deadline,
    /// Smoothed RTT; none before the first sample.
    srtt: Option<Duration>,
}

/// Returns the urgency d of a flow with this window, in bytes: time needed over time left.
fn urgency(deadline: &Deadline, now: Time, window: f64, rtt: Duration) -> f64 {
    let Some((bytes, time)) = deadline.remaining(now) else { return 1.0 };
    if time == Duration::ZERO {
        // The paper leaves this open. As in the ns-2 module, a late flow yields to flows that may still
        // meet their deadlines.
        return MIN_URGENCY;
    }
    let needed = bytes.0 as f64 / (SAWTOOTH * window) * rtt.seconds();
    (needed / time.seconds()).clamp(MIN_URGENCY, MAX_URGENCY)
}

impl Controller for D2tcp {
    fn on_ack(&mut self, ack: &Ack) {
        self.deadline.on_ack(ack);
        let srtt = smooth(self.srtt, ack.rtt);
        self.srtt = Some(srtt);
        let Self { dctcp, deadline, .. } = self;
        dctcp.handle_ack(ack, |flow| flow.alpha.powf(urgency(deadline, ack.now, flow.cwnd, srtt)));
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.dctcp.on_loss(loss);
    }

    fn on_restart(&mut self, restart: &Restart) {
        self.dctcp.on_restart(restart);
    }

    fn save_state(&mut self, now: Time) {
        self.dctcp.save_state(now);
    }

    fn on_spurious_loss(&mut self, now: Time) {
        self.dctcp.on_spurious_loss(now);
    }

    fn on_sent(&mut self, _now: Time, _bytes: Bytes) -> Option<Allowance> {
        self.deadline.on_sent();
        Some(self.allowance())
    }

    fn on_timer(&mut self, now: Time) {
        self.deadline.on_timer(now);
    }

    fn next_timer(&self) -> Time {
        self.deadline.next_timer()
    }

    fn allowance(&self) -> Allowance {
        Allowance { is_terminated: self.deadline.is_given_up(), ..self.dctcp.allowance() }
    }

    fn congestion_window(&self) -> Option<(f64, f64)> {
        self.dctcp.congestion_window()
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        self.dctcp.gauges()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::Parameter;
    use crate::transport::WindowReduction;
    use crate::transport::fixture::{ack, path};
    use proptest::prelude::*;
    use serde_json::json;

    /// A flow of ten packets of 960 B in 9600 B, with a window of ten packets and alpha = 1/4.
    fn flow(path: &Path) -> Box<dyn Controller> {
        let dctcp = json!({ "initial_alpha": 0.25, "initial_ssthresh": 10, "gain": 1e-12 });
        Config::read(&json!({ "dctcp": dctcp })).unwrap().controller(path)
    }

    fn at(us: u64) -> Time {
        Time::ZERO + Duration::from_micros(us)
    }

    /// Fraction of the window left by a mark, for a flow of `bytes` with this time to its deadline.
    fn left_by_mark(bytes: u64, deadline_us: u64) -> f64 {
        let size = Some(Bytes(bytes));
        let mut flow = flow(&Path { size, deadline: at(100 + deadline_us), ..path() });
        flow.on_ack(&Ack { now: at(100), marked: true, ..ack(1, 11) });
        flow.gauges()[0].1 / 9_600.0
    }

    #[test]
    fn a_mark_reduces_the_window_by_half_of_alpha_to_the_urgency() {
        // After the first ACK, of 960 B and after 100 us, the rest needs the rest / 7200 B times 100 us.
        let expected = |urgency: f64| 1.0 - 0.25_f64.powf(urgency) / 2.0;
        for (bytes, deadline_us, urgency) in [
            (960 + 7_200, 100, 1.0),
            (960 + 7_200, 80, 1.25),
            (960 + 10_800, 100, 1.5),
            // Bounded by 2 and by 0.5.
            (960 + 72_000, 100, 2.0),
            (960 + 7_200, 1_000_000, 0.5),
            // Late.
            (960 + 72_000, 0, 0.5),
        ] {
            let fraction = left_by_mark(bytes, deadline_us);
            let case = format!("{bytes} B in {deadline_us} us: {fraction}");
            assert!((fraction - expected(urgency)).abs() < 1e-9, "{case}");
        }
    }

    proptest! {
        #[test]
        fn without_a_deadline_it_is_dctcp(
            marks in prop::collection::vec(any::<bool>(), 0..200), gain in 0.01_f64..1.0,
        ) {
            let config = json!({ "gain": gain });
            let dctcp: dctcp::Config = Parameter::read(&config).unwrap();
            let mut dctcp_flow = dctcp.controller(&path());
            let mut flow = Config::read(&json!({ "dctcp": config })).unwrap().controller(&path());
            for (sequence, marked) in (1..).zip(marks) {
                let ack = Ack { marked, ..ack(sequence, sequence + 9) };
                dctcp_flow.on_ack(&ack);
                flow.on_ack(&ack);
                prop_assert_eq!(dctcp_flow.gauges(), flow.gauges());
            }
        }
    }

    #[test]
    fn after_an_idle_time_the_window_is_that_of_dctcp() {
        let mut flow = flow(&path());
        flow.on_ack(&ack(9, 19));
        assert!(flow.gauges()[0].1 > 9_600.0);
        let (now, idle) = (at(1_000), Duration::from_micros(500));
        flow.on_restart(&Restart { now, idle, reduction: WindowReduction::Initial });
        assert_eq!(flow.allowance().window, Bytes(9_600));
    }

    #[test]
    fn a_flow_gives_up_only_with_early_termination() {
        for early in [false, true] {
            let config = Config::read(&json!({ "early_termination": early })).unwrap();
            let late = Path { size: Some(Bytes(9_600)), deadline: at(200), ..path() };
            let mut flow = config.controller(&late);
            flow.on_timer(at(120));
            assert_eq!(flow.allowance().is_terminated, early);
            assert_eq!(flow.allowance().window, Bytes(9_600), "the window is DCTCP's");
        }
    }
}
