//! Thresholds, rates and windows of data-centre laws that follow link rates and base RTTs, so that a
//! comparison at any rate treats all laws alike.
//!
//! Sources: the simulator of [hpcc19] (`run.py`), whose authors scale the constants of DCTCP, DCQCN and
//! TIMELY with the rate of hosts; [pfabric13] §5.4.3 for pFabric's window, queue and timeout.

use serde_json::{Value, json};

use crate::base::schema::Parameter;
use crate::base::units::{Bytes, Duration, Rate};
use crate::model::graph::Extent;
use crate::model::packet::Format;

/// Returns the thresholds of a queue discipline that a transport was designed for, in a network of this
/// scale.
pub(super) fn queue(discipline: &str, scale: &Scale) -> Value {
    match discipline {
        // 30 KB at 10 Gb/s, and at least what [dctcp10] has: 65 packets of 1500 B at 10 Gb/s, 20 at 1 Gb/s.
        "ecn_threshold" | "strict_priority" => {
            let least = if scale.slowest >= Rate::from_gbps(10) { "97.5 KB" } else { "30 KB" };
            json!({ "threshold": "24 us", "least_threshold": least })
        }
        // 100 KB and 400 KB at 25 Gb/s.
        "dcqcn_red" => json!({ "kmin": "32 us", "kmax": "128 us", "pmax": 0.2 }),
        // 36 KB at 10 Gb/s.
        "pfabric" => json!({ "capacity": "2 BDP" }),
        // 250 packets of any size: many requests of 84 B would not fit.
        "credit_shaper" => json!({ "capacity": "none" }),
        _ => packet_size(discipline, scale),
    }
}

/// Returns parameters of the queue at switches that a transport was designed for, by its name.
pub(super) fn designed_queue(transport: &str) -> Value {
    match transport {
        // 36 864 B at 10 Gb/s, like its other parameters for an RTT of 3.9 packets of 1500 B: three bursts of
        // free tokens. With as many bytes at 100 Gb/s one such burst did not fit.
        "phost" => json!({ "capacity": "6.3 BDP" }),
        _ => json!({}),
    }
}

/// Returns the packet size of a queue discipline that counts packets, for which a target delay is a number of
/// packets: otherwise full packets, not of this size, would wait for longer.
pub(super) fn packet_size(discipline: &str, scale: &Scale) -> Value {
    match discipline {
        "red" if scale.packet > Bytes::ZERO => json!({ "mean_packet": scale.packet.show() }),
        _ => json!({}),
    }
}

/// Name of the parameter of delay-based laws whose targets follow the base RTT.
const ABOVE_BASE_RTT: &str = "above_base_rtt";

/// Parameters that are absolute if a scenario gives one of them.
const TARGETS: [&str; 5] = ["base_target", "hop_scaling", "t_low", "t_high", "min_rtt"];

/// Removes parameters that would change the effect of those that `transport` gives: targets relative to the
/// base RTT, and the minimum of an increase.
pub(super) fn keep_given(law: &mut Value, transport: &Value) {
    let gives = |names: &[&str]| names.iter().any(|name| transport.get(name).is_some());
    let Some(law) = law.as_object_mut() else { return };
    if gives(&TARGETS) {
        law.remove(ABOVE_BASE_RTT);
    }
    if gives(&["additive_increase"]) {
        law.remove("least_increase");
    }
}

/// Raises the RTO of first packets to twice the base RTT, if it is below: it would expire before their ACKs
/// arrive (our choice; RFC 6298 §2.2 has three times the first RTT after its measurement).
pub(super) fn raise_initial_rto(reliability: &mut Value, scale: &Scale) {
    let rto = &mut reliability["initial_rto"];
    if Duration::read(rto).is_ok_and(|given| given < scale.base_rtt * 2) {
        *rto = (scale.base_rtt * 2).show();
    }
}

/// RTTs, lowest rate and packet that parameters follow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scale {
    /// RTT of a full packet and its ACK over the longest path.
    base_rtt: Duration,
    /// The same if the ACK waits for a full packet at each link, since both directions are in use.
    loaded_rtt: Duration,
    /// Lowest and highest rate of a link.
    slowest: Rate,
    fastest: Rate,
    /// A full packet.
    packet: Bytes,
}

impl Scale {
    pub(super) fn new(extent: &Extent, format: &Format) -> Self {
        let base_rtt = extent.base_rtt(format);
        let loaded_rtt = base_rtt + extent.serialisation(format.full());
        let Extent { slowest, fastest, .. } = *extent;
        Self { base_rtt, loaded_rtt, slowest, fastest, packet: format.full() }
    }

    /// Returns the RTO of uet-htsim: 15 us and six times the transmission time of a queue of one BDP, and at
    /// least 100 us.
    fn rto(&self) -> Duration {
        Duration::from_micros(100).max(Duration::from_micros(15) + self.base_rtt * 6)
    }
}

/// Returns the parameters of a law in a network of this scale.
pub(super) fn law(kind: &str, scale: &Scale) -> Value {
    let Scale { base_rtt, loaded_rtt, slowest, fastest, packet } = *scale;
    // 1 Gb/s at 100 Gb/s, as in [hpcc19], is also the share of [ecndelay16]'s code, 100 Mb/s at 10 Gb/s.
    let min_rate = "1 %";
    match kind {
        // 5 and 50 Mb/s at 25 Gb/s.
        "dcqcn" => json!({
            "additive_increase": "0.02 %", "hyper_increase": "0.2 %", "min_rate": min_rate,
        }),
        // 10 Mb/s at 10 Gb/s.
        "timely" | "patched_timely" => json!({
            "delta": "0.1 %", "segments": { "min_rate": min_rate }, (ABOVE_BASE_RTT): true,
        }),
        // 12 packets, the queue, and 45 us in a network with a base RTT of 15 us.
        "pfabric" => json!({
            "initial_window": "1 BDP",
            "max_window": "2 BDP",
            "reliability": { "fixed_rto": (base_rtt * 3).show() },
        }),
        // 50 Mb/s at 100 Gb/s, and as there at least 80 B per RTT: with 0.05 % of seven packets, or 4 B, four
        // flows to one host were not fair (Jain index 0.39). As a share of the slowest link, it was 3 Gb/s at
        // 100 Gb/s beside a host of 1 Gb/s, and 24 flows had a queue of two bandwidth-delay products.
        "hpcc" => json!({
            "additive_increase": "0.05 %",
            "least_increase": "80 B",
            "min_rate": min_rate,
            "base_rtt": base_rtt.show(),
        }),
        // The simulator of [powertcp22]: 150 Mb/s at 25 Gb/s. In the form of the paper, whose increase is the
        // rate of a host divided by its flows, eight flows were not fair after 20 ms with so little.
        // theta-PowerTCP takes waits of ACKs for queueing: with the base RTT, flows in both directions used a
        // quarter of links of 10 Gb/s.
        "powertcp" | "theta_powertcp" => json!({
            "form": "simulator",
            "additive_increase": "0.6 %",
            "min_rate": min_rate,
            "base_rtt": if kind == "powertcp" { base_rtt } else { loaded_rtt }.show(),
        }),
        // [homa18] §3.2: the bytes of an RTT, 10 000 at 10 Gb/s and 8 us. With those of the base RTT, grants
        // that wait for data of the other direction left a link idle for an eighth of the time.
        "homa" => json!({ "rtt_bytes": loaded_rtt.show() }),
        // As for Homa: the packets of an RTT ([ndp17]). Lost packets are known only after a timeout, so
        // that many are pulled at once: an RTT of them, and at least 100 (our choice).
        "ndp" => {
            let products = (100.0 * loaded_rtt.seconds() / base_rtt.seconds()).ceil() / 100.0;
            let packets = fastest.carries(base_rtt).0.div_ceil(packet.0.max(1));
            json!({
                "initial_window": format!("{products} BDP"),
                "request_pulls": packets.max(100),
            })
        }
        "phost" => phost(scale),
        // The RTO does not grow in uet-htsim; UEC 1.0 §3.5.13 doubles it. An ACK or a pull for 16 KiB, but
        // four times in an RTT at least: the window, 1.5 of its products, would wait for rarer ACKs, and a
        // queue could not hold what one pull permits.
        "uet" => {
            let rto = scale.rto();
            let most = Bytes(16_384.min(slowest.carries(base_rtt).0 / 4).max(packet.0));
            json!({
                "ack_bytes": most.show(),
                "pull_bytes": most.show(),
                "reliability": {
                    "initial_rto": rto.show(), "min_rto": rto.show(), "max_rto": (rto * 16).show(),
                },
            })
        }
        // Without slow start, a lone flow with 10 packets at first (RFC 6928) took up to ten times its ideal
        // FCT at 400 Gb/s; a BDP at first is our choice.
        "swift" => json!({ (ABOVE_BASE_RTT): true, "initial_cwnd": "1 BDP, at least 10 packets" }),
        _ => json!({}),
    }
}

/// Returns the parameters of a router in a network of this scale: its first estimate of the RTT, and for RCP
/// the gains of XCP, which lie in the region that [rcp06] finds stable. With the gains for Pareto sizes, and
/// an estimate of the RTT in a wide-area network that falls slowly, flows took up to five times as long
/// (docs/design/transports.md).
pub(super) fn router(kind: &str, scale: &Scale) -> Value {
    let rtt = scale.base_rtt.show();
    match kind {
        "rcp" => json!({ "preset": "as_xcp", "initial_rtt": rtt }),
        "xcp" => json!({ "initial_interval": rtt, "min_interval": (scale.base_rtt / 4).show() }),
        "pdq" | "d3" => json!({ "initial_rtt": rtt }),
        // As many RTTs as in the wide-area network of [pcp06], 25 ms, where a flow is forgotten after 1 s.
        "fair_share" => json!({ "forget_after": (scale.base_rtt * 40).show() }),
        _ => json!({}),
    }
}

/// Returns the parameters of pHost: those of [phost15]'s simulator, where an RTT takes 3.9 packet times.
/// There a flow is announced once; here again after the RTO of UET (our choice): after that of TCP, flows
/// whose first packets were lost took a thousand times as long as others.
fn phost(scale: &Scale) -> Value {
    let rtts = |packets: u64| Duration(scale.base_rtt.0 * packets * 10 / 39).show();
    json!({
        "free_tokens": rtts(8),
        "short_flow": rtts(8),
        "window": rtts(8),
        "resend_timeout": rtts(9),
        "window_timeout": rtts(25),
        "reliability": { "initial_rto": scale.rto().show(), "min_rto": scale.rto().show() },
    })
}
