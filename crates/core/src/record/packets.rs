//! Packets of recorded flows as columns.

use crate::model::graph::LinkId;
use crate::model::packet::Kind;
use crate::network::breakdown::packet_log::{
    Fate, FlowLog, LoggedPacket, LossCause, PacketSample, SendReason,
};

/// Value of a time or a link that is absent.
pub const ABSENT: u64 = u64::MAX;

/// Packets as they were sent, as columns.
#[derive(Clone, Debug, Default)]
pub struct SentPackets {
    /// Number of the flow.
    pub flow: Vec<u64>,
    /// Number of the kind in [`Packets::KINDS`].
    pub kind: Vec<u8>,
    /// Segment, or the first segment that an ACK requests.
    pub number: Vec<u32>,
    /// First segment of an ACK's first SACK block; 0 without one.
    pub from: Vec<u32>,
    /// Segment after the last of the block.
    pub to: Vec<u32>,
    /// Size with headers.
    pub bytes: Vec<u16>,
    /// Number of sendings of the segment so far.
    pub copy: Vec<u16>,
    /// Number of the reason of the sending in [`Packets::REASONS`].
    pub because: Vec<u8>,
    /// True if the packet is ECN-capable.
    pub ecn: Vec<bool>,
    /// True if the packet is marked, or reports a mark.
    pub marked: Vec<bool>,
    /// Time of the sending in picoseconds.
    pub sent_ps: Vec<u64>,
}

impl SentPackets {
    /// Appends a packet.
    pub fn push(&mut self, packet: &LoggedPacket) {
        self.flow.push(u64::from(packet.flow));
        self.kind.push(packet.kind as u8);
        self.number.push(packet.sequence);
        self.from.push(packet.block.0);
        self.to.push(packet.block.1);
        self.bytes.push(packet.bytes);
        self.copy.push(packet.copy);
        self.because.push(packet.reason as u8);
        self.ecn.push(packet.is_ecn_capable);
        self.marked.push(packet.is_marked);
        self.sent_ps.push(packet.sent.0);
    }
}

/// Packets as columns, a row per packet, sorted by flow and time.
#[derive(Clone, Debug, Default)]
pub struct Packets {
    /// The packets; marked if they were marked on their way, or report a mark.
    pub sent: SentPackets,
    /// Time of the arrival in picoseconds; [`ABSENT`] if it did not arrive.
    pub arrived_ps: Vec<u64>,
    /// Time of the loss in picoseconds; [`ABSENT`] if it was not lost.
    pub lost_ps: Vec<u64>,
    /// Link at which it was lost; the greatest number if it was not.
    pub lost_at: Vec<LinkId>,
    /// Number of the cause in [`CAUSES`](Self::CAUSES); the one behind the last if it was not lost.
    pub lost_why: Vec<u8>,
}

impl Packets {
    /// Names of the kinds, by number.
    pub const KINDS: [&str; Kind::Pause as usize] = [
        "data",
        "datagram",
        "syn",
        "syn_ack",
        "probe",
        "probe_ack",
        "request",
        "loss_probe",
        "credit",
        "ack",
        "nack",
        "cnp",
        "return",
        "fin",
        "trimmed",
        "returned",
    ];
    /// Names of the reasons, by number.
    pub const REASONS: [&str; 4] = SendReason::NAMES;
    /// Names of the causes of losses, by number.
    pub const CAUSES: [&str; 5] = LossCause::NAMES;

    /// Returns the packets of these logs, which are thinned until there are no more than `most`. Those that
    /// were lost or sent again may be half of them.
    pub fn new(logs: &mut [FlowLog], most: usize) -> Self {
        let others = thin(logs, most / 2, |log| &mut log.others);
        thin(logs, most.saturating_sub(others), |log| &mut log.ordinary);
        let mut packets: Vec<&LoggedPacket> = logs.iter().flat_map(FlowLog::packets).collect();
        packets.sort_unstable_by_key(|packet| {
            (packet.flow, packet.sent, packet.kind.is_answer(), packet.index)
        });
        let mut columns = Self::default();
        for packet in packets {
            columns.push(packet);
        }
        columns
    }

    fn push(&mut self, packet: &LoggedPacket) {
        let (arrived, lost, lost_at, lost_why) = match packet.fate {
            Fate::InNetwork => (ABSENT, ABSENT, LinkId::MAX, Self::CAUSES.len() as u8),
            Fate::Arrived(time) => (time.0, ABSENT, LinkId::MAX, Self::CAUSES.len() as u8),
            Fate::Lost(time, link, cause) => (ABSENT, time.0, link, cause as u8),
        };
        self.sent.push(packet);
        self.arrived_ps.push(arrived);
        self.lost_ps.push(lost);
        self.lost_at.push(lost_at);
        self.lost_why.push(lost_why);
    }
}

/// Thins the samples with most packets until all together have no more than `most`. The first packet of
/// either direction is in every sample. Returns the number of packets left.
fn thin(logs: &mut [FlowLog], most: usize, sample: fn(&mut FlowLog) -> &mut PacketSample) -> usize {
    let mut total = logs.iter_mut().map(|log| sample(log).packets.len()).sum();
    while total > most
        && let Some(longest) =
            logs.iter_mut().rev().map(sample).max_by_key(|sample| sample.packets.len())
        && longest.packets.len() > 2
    {
        total -= longest.packets.len();
        longest.thin();
        total += longest.packets.len();
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_named_in_their_order() {
        let kinds = [
            Kind::Data,
            Kind::Datagram,
            Kind::Syn,
            Kind::SynAck,
            Kind::Probe,
            Kind::ProbeAck,
            Kind::Request,
            Kind::LossProbe,
            Kind::Credit,
            Kind::Ack,
            Kind::Nack,
            Kind::Cnp,
            Kind::Return,
            Kind::Fin,
            Kind::Trimmed,
            Kind::Returned,
        ];
        let names = kinds.map(|kind| Packets::KINDS[kind as usize].replace('_', ""));
        assert_eq!(names, kinds.map(|kind| format!("{kind:?}").to_lowercase()));
    }
}
