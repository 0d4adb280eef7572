//! Parameters of loss recovery, retransmission timers and ACKs, which users may set for a transport.

use crate::base::schema::{Bounds, Problem, defaults, positive, positive_if_given};
use crate::base::units::Duration;
use crate::model::packet::SACK_BLOCKS;

crate::choices! {
    /// Loss recovery.
    pub enum Recovery {
        /// Retransmission of lost segments only: the receiver keeps out-of-order segments and reports
        /// them (SACK, RFC 6675).
        SelectiveRepeat = "selective_repeat",
        /// The same with loss detection by transmission times (RACK, RFC 8985), which detects a lost
        /// retransmission after an RTT.
        Rack = "rack",
        /// One retransmission per RTT, without SACK, until all data in flight is acknowledged (RFC
        /// 6582).
        NewReno = "new_reno",
        /// One retransmission, without SACK; further losses in the same window wait for the timeout
        /// (RFC 5681 §3.2).
        Reno = "reno",
        /// Retransmission of all data from the first missing segment on: the receiver discards
        /// out-of-order segments (RoCE).
        GoBackN = "go_back_n",
    }
}

impl Recovery {
    /// Returns true if receivers report the segments beyond a gap.
    pub fn has_sack(self) -> bool {
        matches!(self, Self::SelectiveRepeat | Self::Rack)
    }
}

crate::choices! {
    /// Window of a persistent connection that has sent nothing for more than an RTO.
    pub enum IdleRestart {
        /// The window stays.
        None = "none",
        /// The window is halved for every RTO of idle time, but not below the initial window (RFC 2861;
        /// Linux, `tcp_slow_start_after_idle`).
        Halving = "halving",
        /// The window falls to the initial window (RFC 5681 §4.1).
        Initial = "initial",
    }
}

crate::choices! {
    /// RTT that a flow takes from finished flows between the same hosts.
    pub enum CachedRtt {
        /// None.
        None = "none",
        /// The RTO of the first data follows from the cached SRTT, if the RTT of the handshake is smaller or
        /// unknown; the estimator starts anew. A larger SRTT replaces the cached one, a smaller one moves it
        /// by an eighth of the difference (Linux, `tcp_metrics.c`).
        Linux = "linux",
        /// SRTT and RTTVAR start with those of the last flow, so that the RTO of the SYN follows from them
        /// (RFC 9040).
        Rfc9040 = "rfc9040",
    }
}

crate::parameters! {
    /// Loss recovery, retransmission timers and ACK generation.
    pub struct Reliability {
        /// Loss recovery.
        pub recovery: Recovery = Recovery::SelectiveRepeat;
        /// Segments received beyond a gap at which the gap is a loss (`DupThresh`; RFC 6675: 3); none
        /// waits for the timeout, as packet spraying requires. Not used with go-back-N.
        pub duplicate_acks: Option<u32> = Some(3), where positive_if_given;
        /// If true, a recovery that may send neither lost segments nor new data retransmits segments below
        /// the highest SACK, and once the last segment (rules 3 and 4 of `NextSeg`, RFC 6675 §4: true;
        /// ns-2: false). Needs `recovery = "selective_repeat"`.
        pub rescue: bool = false;
        /// Time beyond two RTTs until a tail loss probe for a single segment in flight (RFC 8985 §7.2:
        /// 200 ms, the worst-case delay of an ACK; with more segments in flight 2 ms); none sends no
        /// probes.
        pub tail_probe: Option<Duration> = None, where positive_if_given;
        /// If true, the window is restored after a spurious loss: an ACK that advances the cumulative
        /// acknowledgement echoes a timestamp from before the first retransmission (Eifel, RFC 3522), or
        /// all retransmissions were duplicates (RFC 3708; with `duplicate_sack`). The response is that of
        /// Linux (own choice: false).
        pub undo: bool = false;
        /// Maximum number of SACK blocks of an ACK: the block of the segment just received, and those that
        /// were reported most recently, so that the loss of an ACK loses no block (RFC 2018 §4 and Linux
        /// with timestamps: 3; own choice: 1).
        pub sack_blocks: u32 = 1, where sack_blocks;
        /// If true, receivers report duplicate segments (D-SACK, RFC 2883; Linux: true; own choice:
        /// false).
        pub duplicate_sack: bool = false;
        /// If true, the first ACK after a timeout permits new data before further retransmissions, and
        /// the timeout is undone if a segment is then acknowledged that was not retransmitted (F-RTO, RFC
        /// 5682 §3; Linux: true; own choice: false). Needs `undo`.
        pub frto: bool = false;
        /// If true, the window shrinks in proportion to the delivered data during recovery (PRR, RFC
        /// 9937), or for an RTT after a mark (Linux), instead of at once. For transports with the window of
        /// TCP, and for controllers in Python that do not pace.
        pub proportional_reduction: bool = false;
        /// If true, a timeout during fast recovery does not reduce ssthresh again (Linux,
        /// `tcp_enter_loss`: true; ns-2, and RFC 5681 §4.3, which takes the loss of a retransmission for a
        /// second indication of congestion: false). For transports with the window of TCP or DCTCP.
        pub single_reduction: bool = false;
        /// RTO before the first RTT sample.
        pub initial_rto: Duration = Duration::from_millis(10), where positive;
        /// Minimum RTO.
        pub min_rto: Duration = Duration::from_millis(10), where positive;
        /// Maximum RTO after exponential backoff, which does not shorten an RTO that is longer without it.
        pub max_rto: Duration = Duration::from_millis(1_000), where positive;
        /// Minimum time between two NACKs for the same gap, with go-back-N ([ecndelay16], authors'
        /// code).
        pub nack_interval: Duration = Duration::from_micros(500);
        /// If true, a SYN and a SYN-ACK precede the data; the flow completion time then includes the
        /// handshake.
        pub handshake: bool = false;
        /// Number of lost SYNs above which the initial window is one packet (RFC 5681 §3.1: 0; Linux: 1).
        pub forgiven_syns: u32 = 0;
        /// Number of SYN retransmissions before the RTO begins to double (RFC 6298: 0; Linux: 4).
        pub linear_syns: u32 = 0;
        /// RTO of the first data if SYNs were lost and the handshake gave no RTT sample, which takes
        /// timestamps (RFC 6298 §5.7 and Linux: 3 s); none for the RTO of the SYN.
        pub syn_fallback_rto: Option<Duration> = None, where positive_if_given;
        /// If true, ACKs echo timestamps and each gives an RTT sample (RFC 7323); otherwise one segment
        /// at a time is timed, and retransmissions give no sample (Karn's algorithm).
        pub timestamps: bool = true;
        /// If true, ACKs carry the number of marked packets (AccECN, RFC 9768) instead of an echo until
        /// CWR (RFC 3168); for transports with `ecn` that handle marks as losses.
        pub accurate_ecn: bool = false;
        /// If true, ACKs also carry AccECN's option with a wide counter, so that the loss of ACKs is not
        /// taken for marks (RFC 9768 §3.2.3; Linux: on every ACK; own choice: false); with `accurate_ecn`.
        /// Its size is not counted.
        pub accurate_ecn_option: bool = false;
        /// Granularity of the clock for RTT samples; zero for an exact clock (RFC 6298: G).
        pub clock_granularity: Duration = Duration::ZERO;
        /// Maximum delay of the ACK of a segment in order, which waits for the next segment (RFC 5681
        /// §4.2: at most 500 ms); none acknowledges every segment at once.
        pub delayed_ack: Option<Duration> = None, where |delay| match delay {
            Some(delay) if *delay == Duration::ZERO || *delay > LONGEST_ACK_DELAY => {
                Err("above 0 and at most 500 ms")
            }
            _ => Ok(()),
        };
        /// Number of segments at the start that are acknowledged at once before ACKs are delayed (RFC
        /// 5681: 0; Linux: at least 16, and more while the receive window grows).
        pub quick_acks: u32 = 0;
        /// Maximum delay of a SACK for compression, after three SACKs of the same gap and after the quick
        /// ACKs; limited to a twentieth of the RTT, which is estimated as twice the one-way delay of the
        /// segment (Linux: 1 ms); none sends a SACK for every segment.
        pub sack_compression: Option<Duration> = None, where positive_if_given;
        /// Constant RTO; none computes the RTO by RFC 6298 with the parameters above.
        pub fixed_rto: Option<Duration> = None, where positive_if_given;
        /// Minimum difference of the RTO and the smoothed RTT (RFC 9002 §6.1.2: 1 ms).
        pub timer_granularity: Duration = Duration::from_millis(1);
        /// Period of the clock that drives the RTO and probe timers, whose granularity grows with their
        /// length (Linux: 1, 4 or 10 ms, a build option); zero for an exact clock.
        pub timer_tick: Duration = Duration::ZERO;
        /// Receive window in segments from the first missing segment on; none for an unlimited window.
        pub receive_window: Option<u32> = None, where positive_if_given;
        /// If true, the window grows only while it limits the flow, and not the application, the receive
        /// window or the host; in slow start also while it is less than twice what was in flight (congestion
        /// window validation, RFC 7661, RFC 9438 §5.8; Linux: true; own choice: false).
        pub window_validation: bool = false;
        /// Window of a persistent connection that has sent nothing for more than an RTO, of TCP, its variants
        /// and DCTCP (Linux: halving; own choice: none). With `halving` and `window_validation` the window
        /// also falls half way to what was used of it after each RTO in which the application did not fill it
        /// (Linux).
        pub idle_restart: IdleRestart = IdleRestart::None;
        /// RTT that a flow takes from finished flows between the same hosts: none, that of `linux`
        /// (`tcp_no_metrics_save = 0`, the default), or that of `rfc9040`. Persistent connections use it, and
        /// cache nothing, as they do not end.
        pub cached_rtt: CachedRtt = CachedRtt::None;
        /// If true, a flow starts with the ssthresh of finished flows between the same hosts, if they left
        /// slow start (Linux, `tcp_metrics.c`, with `tcp_no_ssthresh_metrics_save = 0`; the default of Linux
        /// is 1 since 5.6, here false). For transports with the window of TCP or DCTCP.
        pub cached_ssthresh: bool = false;
    }
    check |reliability: &Reliability| {
        let needs = |field| Err(Problem::new(field, "needs recovery = \"selective_repeat\" or \"rack\""));
        if reliability.frto && !reliability.undo {
            return Err(Problem::new("frto", "needs undo = true"));
        }
        if reliability.rescue && reliability.recovery != Recovery::SelectiveRepeat {
            return Err(Problem::new("rescue", "needs recovery = \"selective_repeat\""));
        }
        match reliability.recovery {
            Recovery::Rack => Ok(()),
            _ if reliability.undo => Err(Problem::new("undo", "needs recovery = \"rack\"")),
            Recovery::SelectiveRepeat => Ok(()),
            _ if reliability.duplicate_sack => needs("duplicate_sack"),
            _ if reliability.sack_blocks > 1 => needs("sack_blocks"),
            _ if reliability.sack_compression.is_some() => needs("sack_compression"),
            _ if reliability.tail_probe.is_some() => needs("tail_probe"),
            _ if reliability.proportional_reduction => needs("proportional_reduction"),
            Recovery::NewReno | Recovery::Reno | Recovery::GoBackN => Ok(()),
        }
    }
}

/// RFC 5681 §4.2.
const LONGEST_ACK_DELAY: Duration = Duration::from_millis(500);

fn sack_blocks() -> Bounds {
    Bounds::at_least(1.0).to(SACK_BLOCKS as f64).because("the space for TCP options")
}

impl Reliability {
    /// Returns the defaults: selective repeat with a minimum RTO of 10 ms ([dctcp10]).
    pub fn selective_repeat() -> Self {
        defaults()
    }

    /// Returns the parameters of hosts on the Internet: a handshake, and Linux's minimum RTO of 200 ms
    /// (RFC 6298 §2.4: a second).
    pub fn internet() -> Self {
        Self {
            initial_rto: Duration::from_millis(1_000),
            min_rto: Duration::from_millis(200),
            max_rto: Duration::from_millis(60_000),
            handshake: true,
            ..Self::selective_repeat()
        }
    }

    /// Returns selective repeat with an RTO that exceeds the queueing delay of a full buffer of 9 MB at
    /// 10 Gb/s.
    pub fn with_long_rto() -> Self {
        let rto = Duration::from_millis(20);
        Self { initial_rto: rto, min_rto: rto, ..Self::selective_repeat() }
    }

    /// Rejects parameters that leave packets without an ACK of their own, which `reason` requires.
    pub fn require_ack_per_packet(&self, reason: &str) -> Result<(), Problem> {
        let field = match (self.delayed_ack, self.sack_compression) {
            (None, None) => return Ok(()),
            (Some(_), _) => "delayed_ack",
            (None, Some(_)) => "sack_compression",
        };
        Err(Problem::new(field, format!("must be none: {reason}")).within("reliability"))
    }

    /// Returns the parameters of RDMA NICs: go-back-N.
    pub fn go_back_n() -> Self {
        Self { recovery: Recovery::GoBackN, ..Self::with_long_rto() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::Parameter;
    use serde_json::json;

    #[test]
    fn parameters_that_need_another_parameter_are_rejected_without_it() {
        for (recovery, field, needs) in [
            ("new_reno", "duplicate_sack", "needs recovery = \"selective_repeat\" or \"rack\""),
            ("selective_repeat", "undo", "needs recovery = \"rack\""),
            ("rack", "frto", "needs undo = true"),
            ("rack", "rescue", "needs recovery = \"selective_repeat\""),
        ] {
            let problem = Reliability::read(&json!({ "recovery": recovery, field: true }));
            assert_eq!(problem.unwrap_err().to_string(), format!("{field}: {needs}"));
        }
    }
}
