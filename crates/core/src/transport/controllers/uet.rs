//! Congestion control of Ultra Ethernet Transport (UET): a window of the sender (NSCC), credits of the
//! receiving host (RCCC), or both.
//!
//! Source: uet-htsim (August 2025), whose authors are among those of the congestion control of UEC 1.0.
//! Switches trim packets, and a NACK refuses each. Receivers coalesce ACKs, which count received data. The
//! flows of a host share its port in turn.
//!
//! Deviations: windows are rounded down to full packets; requests have no number of their own and take no
//! window; and what ACKs report beyond their count is one run of segments instead of 64 bits.

use super::{
    Ack, Allowance, CongestionSignal, Controller, Credit, CreditHost, CreditScheduler, CreditUse,
    Loss, Mechanism, OutgoingPacket, Path, Reliability, Signalling, Transport,
};
use crate::base::schema::{Problem, defaults, positive, positive_fraction, positive_if_given};
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::graph::Extent;
use crate::model::packet::{Format, Header};
use crate::queueing::Capacity;
use crate::queueing::disciplines::{self, composite};
use crate::transport::TrimmedAt;
use crate::transport::blocks::uet::nscc::{LARGEST, Nscc, Scale};
use crate::transport::blocks::uet::rccc::{PullPacer, SenderCredit};
use crate::transport::recovery::sleek::Bounds;

crate::choices! {
    /// Congestion control of Ultra Ethernet Transport.
    pub enum Control {
        /// The window of the sender, by ECN marks and queueing delay (UEC 1.0 §3.6.13).
        Nscc = "nscc",
        /// Credits of the receiving host at its line rate (UEC 1.0 §3.6.14).
        Rccc = "rccc",
        /// Both: a packet needs room in the window and credit.
        Both = "both",
    }
}

crate::parameters! {
    /// Ultra Ethernet Transport: a window by ECN and delay, credits of the receiving host, or both; switches
    /// trim packets that do not fit. Designed for packet spraying (`routing = "entropy"`).
    pub struct Config {
        /// Congestion control: window, credits or both.
        pub control: Control = Control::Nscc;
        /// If true, switches trim packets that do not fit, and packets that a queue drops wait for timeouts.
        /// If false, switches drop packets, and segments beyond a gap and probes reveal losses (SLEEK of
        /// uet-htsim); needs `control = "nscc"`.
        pub trimming: bool = true;
        /// RTT from which window and constants follow; none for that of a full packet and its ACK on the
        /// longest path of the network.
        pub base_rtt: Option<Duration> = None, where positive_if_given;
        /// Queueing delay that the window aims at; none for three quarters of the base RTT, or without
        /// trimming for all of it.
        pub target_delay: Option<Duration> = None, where positive_if_given;
        /// Rate of credits, as a share of the line rate of the receiving host.
        pub credit_rate: f64 = 0.99, where positive_fraction;
        /// Credit of the largest pull (UEC 1.0, htsim: 16 KiB; [eqds22], htsim: 4096 B).
        pub pull_bytes: Bytes = Bytes(16_384), where positive;
        /// Packets that a flow may send before the first answer, and the most credit that it may have
        /// ([eqds22], htsim: 50); none for 1.5 bandwidth-delay products.
        pub initial_packets: Option<u32> = None, where positive_if_given;
        /// New data on the link that one ACK acknowledges (UEC 1.0 §3.5.12: 16 KiB).
        pub ack_bytes: Bytes = Bytes(16_384), where positive;
        /// Timeout of a segment, and handshake (htsim: a constant of 15 us and six times the transmission
        /// time of the largest queue).
        pub reliability: Reliability = Reliability {
            initial_rto: Duration::from_micros(100),
            min_rto: Duration::from_micros(100),
            timer_granularity: Duration::ZERO,
            ..Reliability::selective_repeat()
        };
    }
    check |uet| {
        if !uet.trimming && uet.control != Control::Nscc {
            return Err(Problem::new("trimming", "false needs control = \"nscc\""));
        }
        Ok(())
    }
}

impl Config {
    /// Returns the most credit of a flow.
    fn most_credit(&self, scale: &Scale) -> u64 {
        let largest = || scale.largest_window(scale.base_rtt);
        self.initial_packets.map_or_else(largest, |packets| u64::from(packets) * scale.packet.0)
    }

    /// Returns the network and packets of flows.
    fn scale(&self, line_rate: Rate, longest_rtt: Duration, format: &Format) -> Scale {
        let base_rtt = self.base_rtt.unwrap_or(longest_rtt);
        let default = if self.trimming { base_rtt * 3 / 4 } else { base_rtt };
        Scale {
            line_rate,
            base_rtt,
            target_delay: self.target_delay.unwrap_or(default),
            payload: format.payload,
            packet: format.full(),
        }
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        let scale = self.scale(path.line_rate, path.longest_rtt, &path.format);
        let most = self.most_credit(&scale);
        Box::new(Uet {
            nscc: (self.control != Control::Rccc).then(|| Nscc::new(scale)),
            credit: (self.control != Control::Nscc).then(|| SenderCredit::new(most, scale.packet)),
            format: path.format.clone(),
            measures_probes: !self.trimming,
        })
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        let has_credit = self.control != Control::Nscc;
        Mechanism {
            signalling: if has_credit { Signalling::Header } else { Signalling::None },
            credit: if has_credit { CreditUse::WithAcks } else { CreditUse::None },
            sleek: !self.trimming,
            ..Mechanism::coalesced(&self.reliability, self.ack_bytes)
        }
    }

    fn credit_scheduler(&self, host: &CreditHost) -> Option<Box<dyn CreditScheduler>> {
        let scale = self.scale(host.line_rate, host.base_rtt, &host.format);
        let most = self.most_credit(&scale);
        (self.control != Control::Nscc).then(|| -> Box<dyn CreditScheduler> {
            Box::new(PullPacer::new(host.line_rate, self.credit_rate, self.pull_bytes, most))
        })
    }

    fn warnings(&self, extent: &Extent, format: &Format) -> Vec<String> {
        let base_rtt = self.base_rtt.unwrap_or_else(|| extent.base_rtt(format));
        let product = extent.slowest.carries(base_rtt);
        let is_late = self.ack_bytes.0 > (product.0 / 2).max(format.full().0);
        if !is_late || self.control == Control::Rccc {
            return Vec::new();
        }
        let half = "more than half of what the slowest link carries in the base RTT";
        vec![format!(
            "ack_bytes of {} are {half}, {product}: a window of {LARGEST} of these waits for ACKs; give a \
             quarter of it",
            self.ack_bytes
        )]
    }

    /// Timeouts follow from queues that trim, at any environment.
    fn own_reliability(&self) -> &'static [&'static str] {
        &[
            "recovery",
            "duplicate_acks",
            "initial_rto",
            "min_rto",
            "max_rto",
            "timer_granularity",
            "timer_tick",
        ]
    }

    fn needs_own_connection(&self) -> bool {
        true
    }

    fn needs_spraying(&self) -> bool {
        true
    }

    /// UEC 1.0 §3.6.17: trimming above a BDP, or drops above 2 to 5 BDP (htsim: 5), and marks between 0.2 and
    /// 0.8 BDP.
    fn queue(&self) -> disciplines::Config {
        let capacity = if self.trimming { 1.0 } else { 5.0 };
        disciplines::Config::composite(composite::Config {
            trimming: self.trimming,
            capacity: Some(Capacity::product(capacity)),
            header_capacity: Some(Capacity::product(2.0 * capacity)),
            kmin: Some(Capacity::product(0.2)),
            kmax: Some(Capacity::product(0.8)),
            marks_last_hop: self.control == Control::Nscc,
            // UEC 1.0 §3.6.17 permits headers half of the link: the default share is an eighth of it, with
            // packets of 4 KiB. htsim has all of them pass data.
            ..defaults()
        })
    }
}

/// Sender of a flow.
struct Uet {
    nscc: Option<Nscc>,
    credit: Option<SenderCredit>,
    format: Format,
    /// True if probes wait in the queues of data, so that their RTTs are samples.
    measures_probes: bool,
}

impl Uet {
    /// Returns the size on the link of payload, most of it in full packets.
    fn on_wire(&self, payload: Bytes) -> u64 {
        self.format.on_wire(payload).0
    }

    /// Returns the window in full packets of payload.
    fn window(&self) -> Bytes {
        let packets = |nscc: &Nscc| nscc.window() / self.format.full().0;
        self.nscc
            .as_ref()
            .map_or(Bytes(u64::MAX), |nscc| Bytes(packets(nscc) * self.format.payload.0))
    }
}

impl Controller for Uet {
    fn on_ack(&mut self, ack: &Ack) {
        let Ack { now, rtt, marked, bytes, delivered, .. } = *ack;
        let packet = self.format.full().0;
        let in_flight = if ack.in_flight.0 > 0 { self.on_wire(ack.in_flight) } else { 0 };
        let acknowledged = bytes.0 + u64::from(delivered) * self.format.header.0;
        let has_credit = self.credit.is_some();
        if ack.trimmed.is_some() && ack.lost == 0 {
            // The NACK of a packet that has arrived meanwhile.
            return;
        }
        match (&mut self.nscc, ack.trimmed) {
            (Some(nscc), Some(at)) => {
                let is_blameless = has_credit && at == TrimmedAt::LastHop;
                nscc.on_nack(now, rtt, packet, in_flight + packet, is_blameless);
            }
            (Some(nscc), None) => {
                // A probe is faster than full packets, but does not lower the base RTT.
                let probe_rtt = self.measures_probes.then(|| rtt.max(nscc.base_rtt()));
                let sample = if ack.is_probe_ack { probe_rtt } else { Some(rtt) };
                nscc.on_ack(now, sample, marked, acknowledged, in_flight);
            }
            (None, _) => {}
        }
        if let Some(credit) = &mut self.credit {
            credit.on_answer();
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        if let Some(nscc) = self.nscc.as_mut().filter(|_| loss.signal == CongestionSignal::Timeout)
        {
            nscc.on_timeout(self.format.full().0);
        }
    }

    fn on_credit(&mut self, _now: Time, credit: &Credit, _is_lost: bool) -> bool {
        if let Some(own) = &mut self.credit {
            own.on_pull(credit.number);
        }
        false
    }

    fn on_sent(&mut self, _now: Time, bytes: Bytes) -> Option<Allowance> {
        self.credit.as_mut()?.on_sent(bytes);
        Some(self.allowance())
    }

    fn allowance(&self) -> Allowance {
        let may_send = self.credit.as_ref().is_none_or(SenderCredit::may_send);
        Allowance {
            window: self.window(),
            ..Allowance::granted(if may_send { u32::MAX } else { 0 })
        }
    }

    fn loss_bounds(&self) -> Option<Bounds> {
        self.nscc.as_ref().map(Nscc::loss_bounds)
    }

    fn header(&self, outgoing: &OutgoingPacket) -> Header {
        let unsent = if outgoing.unsent.0 > 0 { self.on_wire(outgoing.unsent) } else { 0 };
        let window = self.nscc.as_ref().map_or(u64::MAX, Nscc::window);
        let target = self.credit.as_ref();
        let number = target.map_or(0, |credit| credit.target(unsent, window, outgoing.flows));
        Header::Credit { number, class: 0 }
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        let mut gauges = Vec::new();
        if let Some(nscc) = &self.nscc {
            gauges.push(("window_bytes", nscc.window() as f64));
            gauges.push(("average_delay_s", nscc.average_delay().seconds()));
        }
        if let Some(credit) = &self.credit {
            gauges.push(("credit_bytes", credit.bytes() as f64));
        }
        gauges
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::Parameter;
    use serde_json::json;

    #[test]
    fn acks_rarer_than_two_per_rtt_give_a_warning() {
        let config = Config::read(&json!({})).unwrap();
        let warnings = |delay| {
            let extent = Extent::new(Duration::from_micros(delay), [(Rate::from_gbps(10), 2)]);
            config.warnings(&extent, &defaults())
        };
        // 26 us and 1.8 us at 10 Gb/s carry 34.7 KB, twice 16 KiB.
        assert_eq!(warnings(13), [""; 0]);
        let warning = &warnings(12)[0];
        assert!(warning.starts_with("ack_bytes of 16.384 KB are more than half"), "{warning}");
    }
}
