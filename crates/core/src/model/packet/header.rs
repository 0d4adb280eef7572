//! Headers: what hosts and routers write into a packet besides its sequence number.

use super::packed::{both, each};

/// Header of a packet besides its sequence number: for routers, which may write it, or for the sender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Header {
    /// Header of an ACK, and of packets without a header.
    Ack {
        /// Block of received segments beyond the ACK's number that contains the segment just received (RFC
        /// 2018, first block), start and end; may be empty.
        block: (u32, u32),
        /// Feedback of routers from the packet that the ACK answers.
        feedback: f32,
    },
    /// RCP, for routers.
    Rcp {
        /// RTT of the sender in seconds; 0 if it is unknown.
        rtt: f32,
        /// Minimum of the rates that routers on the path offer, in bytes per second.
        rate: f32,
    },
    /// XCP, for routers.
    Xcp {
        /// RTT of the sender in seconds; 0 if it is unknown.
        rtt: f32,
        /// Time between packets in seconds, averaged over an RTT.
        spacing: f32,
        /// Change of throughput that the sender requests and routers limit, in bytes per second.
        feedback: f32,
    },
    /// Priority queues: lower values are served first. Packets without a header have priority 0.
    Priority(u64),
    /// PDQ, for routers.
    Pdq {
        /// Grant of the routers so far.
        grant: Grant,
        /// Remaining payload, in seconds at the sender's line rate.
        remaining: f32,
        /// RTT of the sender in seconds.
        rtt: f32,
    },
    /// D3, for routers.
    D3 {
        /// Rate that the sender requests until its next request, in bytes per second.
        desired: f32,
        /// Minimum of the rates that routers on the path allocate, in bytes per second.
        allotted: f32,
    },
    /// Fair shares, for routers, which answer on the reverse path ([`Share`]).
    FairShare {
        /// Maximum rate of the flow at the sender and the routers so far, in bytes per second.
        limit: f32,
        /// True if the flow is about to end and no longer needs a share.
        leaves: bool,
    },
    /// Quick-Start, for routers.
    QuickStart {
        /// Rate that routers so far approve, in the code of RFC 4782 §3.1; 0 for none.
        code: u8,
    },
    /// Credit: that of a credit packet, or that by which a data packet is sent.
    Credit {
        /// Number of the credit.
        number: u32,
        /// Priority class of the data; 0 is the highest.
        class: u8,
    },
}

impl Header {
    /// Empty header.
    pub const NONE: Self = Self::Ack { block: (0, 0), feedback: 0.0 };

    /// Feedback that a receiver returns.
    pub fn feedback(self) -> f32 {
        match self {
            Self::Rcp { rate, .. } => rate,
            Self::Ack { feedback, .. } | Self::Xcp { feedback, .. } => feedback,
            Self::Priority(_) | Self::Credit { .. } => 0.0,
            Self::Pdq { grant, .. } => grant.number(),
            Self::D3 { allotted, .. } => allotted,
            Self::FairShare { .. } => Share::OPEN.number(),
            Self::QuickStart { code } => f32::from(code),
        }
    }
}

/// Maximum number of SACK blocks of an ACK, besides timestamps (RFC 2018 §3).
pub const SACK_BLOCKS: usize = 3;

/// Options of an ACK that do not fit its header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckOptions {
    /// SACK blocks, most recent first, and empty blocks behind them (RFC 2018 §4).
    pub blocks: [(u32, u32); SACK_BLOCKS],
    /// Marked packets so far: the counter of AccECN's option; 0 without that.
    ///
    /// Deviation: RFC 9768 §3.2.3 counts bytes.
    pub marks: u32,
    /// Entropy value of the packet that the ACK answers, if it is returned.
    pub entropy: Option<u16>,
}

impl AckOptions {
    /// Returns the number of SACK blocks.
    pub fn sack_blocks(&self) -> usize {
        self.blocks.iter().filter(|block| block.0 < block.1).count()
    }
}

/// Feedback of fair-share routers to a flow, on the reverse path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// Minimum share of the flow at the routers so far, in bytes per second.
    pub rate: f64,
    /// Backlog of the flow at all these routers, in bytes.
    pub queued: f64,
}

/// Steps per octave of shares, from 1 B/s to 4 TB/s: a precision of 0.09 %.
const RATES: f64 = 768.0;
/// Largest number of steps. Above it the two numbers would not form a finite float.
const MOST_STEPS: u16 = 0x7f7f;
/// Steps per octave of bytes, up to 4 GB: a precision of 0.03 %.
const QUEUES: f64 = 2048.0;

impl Share {
    /// Feedback before any router has written it.
    pub const OPEN: Self = Self { rate: f64::MAX, queued: 0.0 };

    /// Encodes both values in one number of a header, on logarithmic scales of sixteen bits each. Shares are
    /// rounded down, so that the sum of shares does not exceed the capacity.
    pub fn number(self) -> f32 {
        // A decoded value is encoded to the same step again.
        let rate = 1.0 + (self.rate.max(1.0).log2() * RATES + 1e-3).floor();
        let queued = (self.queued + 1.0).log2() * QUEUES;
        f32::from_bits(both((rate as u16).min(MOST_STEPS), queued.round() as u16))
    }

    /// Decodes a number.
    pub fn of(number: f32) -> Self {
        let (rate, queued) = each(number.to_bits());
        Self {
            rate: (f64::from(rate.max(1) - 1) / RATES).exp2(),
            queued: (f64::from(queued) / QUEUES).exp2() - 1.0,
        }
    }
}

/// Grant of PDQ's routers to a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Grant {
    /// Transmit, at this number of bytes per second.
    Rate(f32),
    /// Pause.
    Pause {
        /// Router that pauses the flow: the number of its link.
        by: u16,
        /// Time to the next probe, in fifths of an RTT; 0 for the sender's choice, [`Self::UNCONFIRMED`]
        /// until the router that pauses the flow has seen the packet.
        probe_after: u8,
    },
}

impl Grant {
    /// `probe_after` of a pause in a packet that leaves. If it returns, the router that paused the flow is
    /// not on the path any more.
    pub const UNCONFIRMED: u8 = u8::MAX;

    /// Encodes the grant in one number of a header: a rate, or a negative number of 24 bits for a pause,
    /// which a float represents exactly.
    pub fn number(self) -> f32 {
        match self {
            Self::Rate(rate) => rate,
            Self::Pause { by, probe_after } => {
                -((u32::from(by) << 8 | u32::from(probe_after)) as f32) - 1.0
            }
        }
    }

    /// Decodes a number.
    pub fn of(number: f32) -> Self {
        if number >= 0.0 {
            return Self::Rate(number);
        }
        let code = (-number - 1.0) as u32;
        Self::Pause { by: (code >> 8) as u16, probe_after: code as u8 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shares_are_rounded_down_and_once_only(rate in 1.0..4e12_f64, queued in 0.0..4e9_f64) {
            let read = Share::of(Share { rate, queued }.number());
            prop_assert!(read.rate <= rate * 1.000_001 && read.rate > rate * 0.999, "{read:?}");
            prop_assert!((read.queued / queued - 1.0).abs() < 3e-4 || queued < 1.0, "{read:?}");
            prop_assert_eq!(Share::of(read.number()), read);
            prop_assert!(read.number().is_finite() && read.number() != 0.0);
        }
    }
}
