//! BBR's congestion window and pacing rate, with packet conservation in loss recovery.
//!
//! Source: [bbr26], sections on the pacing rate and the congestion window; the same as in [bbr16].

use super::delivery_rate::DeliveryRate;
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::transport::{Ack, Allowance, CongestionSignal, Loss, Path};

/// State of loss recovery, with Linux's names (`tcp_ca_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CaState {
    /// No recovery.
    Open,
    /// Fast recovery.
    Recovery {
        /// True until packet conservation has cut the window.
        is_new: bool,
    },
    /// Recovery after a timeout, until this segment is acknowledged; none before the first ACK.
    Loss(Option<u32>),
}

/// Congestion window and pacing rate; payload in bytes, rates in bytes per second.
#[derive(Clone, Debug)]
pub struct BbrWindow {
    packet: f64,
    /// Size of a packet on the link over its payload.
    header_overhead: f64,
    max_pacing_rate: Rate,
    initial_cwnd: f64,
    min_cwnd: f64,
    cwnd: f64,
    /// The last window outside loss recovery and `ProbeRTT`.
    prior_cwnd: f64,
    pacing_rate: f64,
    ca_state: CaState,
}

impl BbrWindow {
    /// State of a new flow; windows in packets, and a rate of `gain` initial windows per RTT.
    pub fn new(path: &Path, initial: u32, min: u32, gain: f64) -> Self {
        let packet = path.format.payload.0 as f64;
        let initial = f64::from(initial) * packet;
        let on_wire = path.format.on_wire(path.format.payload).0 as f64;
        let mut window = Self {
            packet,
            header_overhead: on_wire / packet,
            max_pacing_rate: path.max_pacing_rate,
            initial_cwnd: initial,
            min_cwnd: f64::from(min) * packet,
            cwnd: initial,
            prior_cwnd: 0.0,
            pacing_rate: 0.0,
            ca_state: CaState::Open,
        };
        window.init_pacing_rate(gain, path.base_rtt);
        window
    }

    /// Sets the initial pacing rate for this RTT.
    pub fn init_pacing_rate(&mut self, gain: f64, rtt: Duration) {
        self.pacing_rate = gain * self.initial_cwnd / rtt.max(Duration(1)).seconds();
    }

    /// Sets the window to one packet, after a lost SYN.
    pub fn set_one_packet(&mut self) {
        self.cwnd = self.packet;
    }

    /// Sets the pacing rate. Before the pipe was full the rate only rises.
    pub fn set_pacing_rate(&mut self, rate: f64, full_bw_reached: bool) {
        if full_bw_reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// Moves the window towards `target` by the data acknowledged. Before the pipe was full the window is not
    /// cut to the target.
    pub fn update_cwnd(
        &mut self,
        ack: &Ack,
        target: f64,
        full_bw_reached: bool,
        delivery: &DeliveryRate,
    ) {
        let increased = self.cwnd + ack.bytes.0 as f64;
        if full_bw_reached {
            self.cwnd = increased.min(target);
        } else if self.cwnd < target || (delivery.delivered() as f64) < self.initial_cwnd {
            self.cwnd = increased;
        }
        self.cwnd = self.cwnd.max(self.min_cwnd);
    }

    /// Limits the window.
    pub fn bound_cwnd(&mut self, bound: f64) {
        self.cwnd = self.cwnd.min(bound.max(self.min_cwnd));
    }

    /// Subtracts the packets lost from the window.
    pub fn subtract_losses(&mut self, ack: &Ack) {
        self.cwnd = (self.cwnd - f64::from(ack.lost) * self.packet).max(self.packet);
    }

    /// Packet conservation: sends at least one packet for each packet delivered. Only the first ACK of
    /// recovery cuts the window to that: later the pacing rate, not the window, may limit the data in flight
    /// (Linux, `bbr_set_cwnd_to_recover_or_restore`).
    pub fn conserve_packets(&mut self, ack: &Ack) {
        let conserved = ((ack.in_flight.0 + ack.bytes.0) as f64).max(self.packet);
        if self.ca_state == (CaState::Recovery { is_new: true }) {
            self.ca_state = CaState::Recovery { is_new: false };
            self.cwnd = conserved;
        } else {
            self.cwnd = self.cwnd.max(conserved);
        }
    }

    /// Saves the window before recovery or `ProbeRTT` (`BBRSaveCwnd` of [bbr26]).
    pub fn save_cwnd(&mut self, is_probing_rtt: bool) {
        let is_undisturbed = self.ca_state == CaState::Open && !is_probing_rtt;
        self.prior_cwnd = if is_undisturbed { self.cwnd } else { self.prior_cwnd.max(self.cwnd) };
    }

    /// Restores the saved window if it is larger.
    pub fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }

    /// Enters loss recovery.
    pub fn on_loss(&mut self, loss: &Loss, is_probing_rtt: bool) {
        match loss.signal {
            CongestionSignal::DetectedLoss if self.ca_state == CaState::Open => {
                self.save_cwnd(is_probing_rtt);
                self.ca_state = CaState::Recovery { is_new: true };
            }
            CongestionSignal::Timeout => {
                self.save_cwnd(is_probing_rtt);
                self.ca_state = CaState::Loss(None);
                self.cwnd = self.packet;
            }
            CongestionSignal::DetectedLoss | CongestionSignal::EcnMark => {}
        }
    }

    /// Undoes loss recovery after a spurious loss.
    pub fn on_spurious_loss(&mut self) {
        if self.ca_state != CaState::Open {
            self.ca_state = CaState::Open;
            self.restore_cwnd();
        }
    }

    /// Restores the window if the ACK ends loss recovery.
    pub fn on_ack(&mut self, ack: &Ack) {
        let is_over = match self.ca_state {
            CaState::Open => false,
            CaState::Recovery { .. } => !ack.is_recovering,
            CaState::Loss(until) => ack.cumulative >= until.unwrap_or(ack.next),
        };
        if is_over {
            self.ca_state = CaState::Open;
            self.restore_cwnd();
        } else if self.ca_state == CaState::Loss(None) {
            self.ca_state = CaState::Loss(Some(ack.next));
        }
    }

    /// True in fast recovery.
    pub fn is_in_recovery(&self) -> bool {
        matches!(self.ca_state, CaState::Recovery { .. })
    }

    /// Minimum window, in bytes of payload.
    pub fn min_cwnd(&self) -> f64 {
        self.min_cwnd
    }

    /// Pacing rate, in bytes of payload per second.
    pub fn pacing_rate(&self) -> f64 {
        self.pacing_rate
    }

    /// Window, in bytes of payload.
    pub fn cwnd(&self) -> f64 {
        self.cwnd
    }

    /// Returns the allowance of the window and the pacing rate.
    pub fn allowance(&self) -> Allowance {
        let rate = Rate::from_bps(self.pacing_rate * 8.0 * self.header_overhead);
        // Rounding up half a byte lets through a packet that the window just holds.
        let window = Bytes((self.cwnd + 0.5) as u64);
        Allowance { window, rate: Some(rate.min(self.max_pacing_rate)), ..Allowance::window(0.0) }
    }
}

/// `ProbeRTT`: an episode with little data in flight, in which the RTT contains no queueing of the flow.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProbeRtt {
    /// End of the episode, once little data is in flight.
    done_stamp: Option<Time>,
    is_round_done: bool,
}

impl ProbeRtt {
    /// Handles an ACK. Returns true if the episode is over: after the given duration and a full round with at
    /// most `inflight` bytes in flight.
    pub fn is_over(
        &mut self,
        now: Time,
        starts_round: bool,
        (inflight, duration): (f64, Duration),
        delivery: &mut DeliveryRate,
    ) -> bool {
        // Delivery rates in ProbeRTT do not measure the path.
        delivery.mark_app_limited();
        let Some(done_stamp) = self.done_stamp else {
            if delivery.in_flight() <= inflight {
                self.done_stamp = Some(now + duration);
                delivery.start_round();
            }
            return false;
        };
        self.is_round_done |= starts_round;
        self.is_round_done && now > done_stamp
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::fixture::{self, ack, path};

    const PACKET: f64 = 960.0;

    fn loss(signal: CongestionSignal) -> Loss {
        fixture::loss(signal, Bytes(9600))
    }

    fn assert_window(window: &BbrWindow, packets: f64) {
        let window = window.cwnd() / PACKET;
        assert!((window - packets).abs() < 1e-9, "{window} is not {packets}");
    }

    #[test]
    fn the_pacing_rate_includes_headers_and_is_at_most_the_line_rate() {
        let mut window = BbrWindow::new(&path(), 10, 4, 2.0);
        // Two windows of ten packets of 1000 B in 100 us exceed 1 Gb/s.
        assert_eq!(window.allowance().rate, Some(Rate::from_gbps(1)));
        window.init_pacing_rate(2.0, Duration::from_millis(1));
        assert_eq!(window.allowance().rate, Some(Rate::from_mbps(160)));
        window.set_pacing_rate(960.0 * 1000.0, false);
        assert_eq!(
            window.allowance().rate,
            Some(Rate::from_mbps(160)),
            "the rate only rises at first"
        );
        window.set_pacing_rate(960.0 * 1000.0, true);
        assert_eq!(window.allowance().rate, Some(Rate::from_mbps(8)));
    }

    #[test]
    fn the_window_grows_by_data_acknowledged_and_is_cut_to_the_target_once_the_pipe_was_full() {
        let (mut window, delivery) =
            (BbrWindow::new(&path(), 10, 4, 2.0), DeliveryRate::new(&path()));
        window.update_cwnd(&ack(1, 2), 0.0, false, &delivery);
        assert_window(&window, 11.0);
        window.update_cwnd(&ack(1, 2), 20.0 * PACKET, true, &delivery);
        assert_window(&window, 12.0);
        window.update_cwnd(&ack(1, 2), 9.5 * PACKET, true, &delivery);
        assert_window(&window, 9.5);
        window.update_cwnd(&ack(1, 2), 0.0, true, &delivery);
        assert_window(&window, 4.0);
    }

    #[test]
    fn a_timeout_leaves_one_packet_and_recovery_restores_the_window() {
        let mut window = BbrWindow::new(&path(), 10, 4, 2.0);
        window.on_loss(&loss(CongestionSignal::Timeout), false);
        assert_window(&window, 1.0);
        for (cumulative, next, packets) in [(1, 10, 1.0), (9, 12, 1.0), (10, 12, 10.0)] {
            window.on_ack(&ack(cumulative, next));
            assert_window(&window, packets);
        }
    }

    #[test]
    fn fast_recovery_conserves_packets_and_then_restores_the_window() {
        let mut window = BbrWindow::new(&path(), 10, 4, 2.0);
        window.on_loss(&loss(CongestionSignal::DetectedLoss), false);
        let recovering = Ack { is_recovering: true, in_flight: Bytes(960 * 6), ..ack(1, 10) };
        window.on_ack(&recovering);
        assert!(window.is_in_recovery());
        window.conserve_packets(&recovering);
        assert_window(&window, 7.0);
        window.subtract_losses(&Ack { lost: 2, ..recovering });
        assert_window(&window, 5.0);
        // Six packets in flight and one delivered raise it again. If pacing left three in flight, it stays.
        window.conserve_packets(&recovering);
        assert_window(&window, 7.0);
        window.conserve_packets(&Ack { in_flight: Bytes(960 * 3), ..recovering });
        assert_window(&window, 7.0);
        window.on_ack(&ack(10, 12));
        assert_window(&window, 10.0);
        assert!(!window.is_in_recovery());
    }

    #[test]
    fn probe_rtt_starts_with_little_in_flight_and_lasts_its_duration_and_a_round() {
        let ms = |ms| Time::ZERO + Duration::from_millis(ms);
        let mut delivery = DeliveryRate::new(&path());
        let mut probe_rtt = ProbeRtt::default();
        let mut is_over = |at, starts_round, delivery: &mut DeliveryRate| {
            probe_rtt.is_over(ms(at), starts_round, (PACKET, Duration::from_millis(200)), delivery)
        };
        delivery.on_sent(ms(0), Bytes(1000));
        delivery.on_sent(ms(0), Bytes(1000));
        assert!(!is_over(500, true, &mut delivery), "two packets are in flight");
        delivery.on_timeout();
        assert!(!is_over(1000, true, &mut delivery), "the episode starts");
        assert!(!is_over(1100, true, &mut delivery));
        assert!(!is_over(1200, false, &mut delivery));
        assert!(is_over(1201, false, &mut delivery));
    }
}
