//! RTT samples of a sender: by the timestamps that ACKs echo, or of one segment at a time.

use super::Sender;
use crate::base::units::Time;
use crate::model::packet::Packet;

impl Sender {
    /// Starts to time a new segment if none is being timed and ACKs do not echo timestamps (RFC 6298
    /// §3).
    pub(super) fn start_timing(&mut self, sequence: u32, is_retransmit: bool, now: Time) {
        if is_retransmit {
            // Karn's algorithm: an ACK of a retransmitted segment is ambiguous.
            self.timed_segment =
                self.timed_segment.filter(|(timed_segment, _)| *timed_segment < sequence);
        } else if !self.has_timestamps() && self.timed_segment.is_none() {
            self.timed_segment = Some((sequence, now));
        }
    }

    /// Returns true if ACKs echo timestamps; otherwise one segment at a time is timed.
    pub(super) fn has_timestamps(&self) -> bool {
        self.mechanism.reliability.timestamps
    }

    pub(super) fn add_rtt_sample(&mut self, sent: Time, now: Time) {
        self.rtt.add_sample(sent, now, self.mechanism.reliability.clock_granularity);
        self.scoreboard.set_smoothed_rtt(self.rtt.smoothed());
    }

    /// Adds the RTT sample of an ACK, if there is one.
    pub(super) fn sample_rtt(&mut self, now: Time, packet: &Packet) {
        if self.has_timestamps() {
            self.add_rtt_sample(packet.sent_at, now);
        } else if let Some((sequence, sent)) = self.timed_segment
            && packet.sequence > sequence
        {
            self.timed_segment = None;
            self.add_rtt_sample(sent, now);
        }
    }

    /// Returns the timestamp that an ACK echoes; [`Time::NEVER`] without timestamps.
    pub(super) fn echoed_timestamp(&self, packet: &Packet) -> Time {
        if self.has_timestamps() { packet.sent_at } else { Time::NEVER }
    }
}
