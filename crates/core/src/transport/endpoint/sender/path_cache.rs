//! State that a finished flow caches for the next flow between the same hosts (temporal sharing, RFC 9040).

use super::{Sender, SenderState};
use crate::base::units::Duration;
use crate::transport::{CachedPathState, Controller};

impl Sender {
    /// Uses the SRTT and RTTVAR that finished flows cached. Called before the first packet.
    pub fn use_cached_rtt(&mut self, cached: (Duration, Duration)) {
        let reliability = &self.mechanism.reliability;
        self.rtt.start_with(cached, reliability);
        if self.state == SenderState::Established {
            self.rtt.on_established(reliability);
        }
    }

    /// Updates the cached RTT and ssthresh at the end of the flow.
    pub fn update_cached_state(&self, controller: &dyn Controller, cached: &mut CachedPathState) {
        let reliability = &self.mechanism.reliability;
        self.rtt.update_cached(&mut cached.rtt, reliability);
        if reliability.cached_ssthresh
            && let Some((cwnd, ssthresh)) = controller.congestion_window()
        {
            cached.update_ssthresh(cwnd, ssthresh, self.scoreboard.is_recovering());
        }
    }
}
