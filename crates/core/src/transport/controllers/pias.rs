//! PIAS: DCTCP with priorities that fall as a flow sends more, without knowledge of flow sizes ([pias15]).
//!
//! Details follow its authors' ns-2 module. Hosts tag packets with a priority that falls as the flow passes
//! one threshold after another; switches serve by strict priority and mark. As in the module, the priority
//! depends on the payload of the flow before the packet: a retransmission keeps its priority.

use super::dctcp::{self, Dctcp};
use super::{
    Ack, Allowance, Controller, Loss, Mechanism, OutgoingPacket, Path, Priorities, Restart,
    Signalling, Transport,
};
use crate::base::schema::defaults;
use crate::base::units::{Bytes, Time};
use crate::model::packet::{Format, Header};
use crate::queueing::disciplines::{self, Capacity, strict_priority};

crate::parameters! {
    /// PIAS: DCTCP whose packets lose priority as their flow sends more, so that short flows overtake
    /// long flows without knowledge of flow sizes ([pias15]).
    pub struct Config {
        /// Thresholds between priorities, in packets sent by the flow, ascending (authors' script, web
        /// search at a load of 0.8).
        pub thresholds: Vec<u32> = vec![909, 1329, 1648, 1960, 2143, 2337, 2484],
            where |thresholds| {
                let is_ascending = thresholds.is_sorted_by(|one, next| one < next);
                let is_valid = is_ascending && thresholds.len() < 64;
                if is_valid { Ok(()) } else { Err("ascending, and at most 63") }
            };
        /// Parameters of DCTCP.
        pub dctcp: dctcp::Config = defaults();
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        let bytes = |packets: &u32| Bytes(u64::from(*packets) * path.format.payload.0);
        let thresholds = self.thresholds.iter().map(bytes).collect();
        Box::new(Pias { dctcp: self.dctcp.open(path), thresholds })
    }

    fn mechanism(&self, format: &Format) -> Mechanism {
        Mechanism { signalling: Signalling::Header, ..self.dctcp.mechanism(format) }
    }

    fn needs_own_connection(&self) -> bool {
        true
    }

    /// Strict priority with the authors' marking threshold K at 10 Gb/s, per port.
    fn queue(&self) -> disciplines::Config {
        disciplines::Config::strict_priority(strict_priority::Config {
            classes: self.thresholds.len() as u32 + 1,
            capacity: None,
            threshold: Some(Capacity::Packets(65)),
            least_threshold: Bytes::ZERO,
            mark_by: strict_priority::MarkBy::Port,
        })
    }

    fn priorities(&self) -> Priorities {
        Priorities::Classes(self.thresholds.len() as u32 + 1)
    }

    /// Hosts serve and mark as switches do.
    fn host_queue(&self) -> disciplines::Config {
        self.queue()
    }
}

struct Pias {
    dctcp: Dctcp,
    thresholds: Box<[Bytes]>,
}

impl Controller for Pias {
    fn on_ack(&mut self, ack: &Ack) {
        self.dctcp.on_ack(ack);
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

    fn allowance(&self) -> Allowance {
        self.dctcp.allowance()
    }

    fn header(&self, leaving: &OutgoingPacket) -> Header {
        let passed = self.thresholds.partition_point(|threshold| *threshold < leaving.offset);
        Header::Priority(passed as u64)
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
    use crate::base::units::Duration;
    use crate::transport::WindowReduction;
    use crate::transport::fixture::{OUTGOING, ack, path};
    use serde_json::json;

    #[test]
    fn priorities_fall_as_a_flow_passes_thresholds() {
        let config = Config::read(&json!({ "thresholds": [2, 3, 7] })).unwrap();
        assert_eq!(config.priorities(), Priorities::Classes(4));
        assert_eq!(config.queue().priorities(), Some(Priorities::Classes(4)));
        let flow = config.controller(&path());
        let priority = |packets: u64| {
            let offset = Bytes(packets * 960);
            flow.header(&OutgoingPacket { offset, ..OUTGOING })
        };
        let headers: Vec<Header> = (0..10).map(priority).collect();
        // As in the authors' module, a packet that begins at a threshold has not passed it.
        assert_eq!(headers, [0, 0, 0, 1, 2, 2, 2, 2, 3, 3].map(Header::Priority));
    }

    #[test]
    fn after_an_idle_time_the_window_is_that_of_dctcp() {
        let mut flow = Config::read(&json!({})).unwrap().controller(&path());
        let before = flow.congestion_window().unwrap().0;
        for sequence in 1..50 {
            flow.on_ack(&ack(sequence, sequence + 10));
        }
        assert!(flow.congestion_window().unwrap().0 > 2.0 * before);
        let (now, idle) = (Time::ZERO + Duration::from_millis(1), Duration::ZERO);
        flow.on_restart(&Restart { now, idle, reduction: WindowReduction::Initial });
        assert_eq!(flow.congestion_window().unwrap().0.to_bits(), before.to_bits());
    }

    #[test]
    fn thresholds_must_ascend() {
        for thresholds in [json!([3, 2]), json!([2, 2])] {
            let problem = Config::read(&json!({ "thresholds": thresholds })).unwrap_err();
            assert!(problem.to_string().contains("must be ascending"), "{problem}");
        }
        assert!(Config::read(&json!({ "thresholds": [] })).is_ok());
    }
}
