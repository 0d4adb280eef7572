//! The window and the pace of a sender that follows a model of its path, and what interrupts them.
//!
//! Source: [bbr26], its sections on the pacing rate and the congestion window; [bbr16]'s are the same.

use super::delivery_rate::DeliveryRate;
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::transport::{Ack, Allowance, CongestionSignal, Loss, Path};

/// What is being repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repair {
    /// Nothing.
    Nothing,
    /// A gap.
    Gap,
    /// All that was in flight at a time-out: until this segment, once an ACK has told which.
    All(Option<u32>),
}

/// A window and a pace; payload in bytes, and in bytes a second.
#[derive(Clone, Debug)]
pub struct BbrWindow {
    packet: f64,
    /// A packet on the wire over its payload.
    expansion: f64,
    line_rate: Rate,
    initial: f64,
    least: f64,
    window: f64,
    /// The last window that no repair and no pause had touched.
    good: f64,
    rate: f64,
    repair: Repair,
}

impl BbrWindow {
    /// With these windows in packets, and a rate of `gain` initial windows a round trip.
    pub fn new(path: &Path, initial: u32, least: u32, gain: f64) -> Self {
        let packet = path.format.payload.0 as f64;
        let initial = f64::from(initial) * packet;
        let on_wire = path.format.on_wire(path.format.payload).0 as f64;
        let mut throttle = Self {
            packet,
            expansion: on_wire / packet,
            line_rate: path.line_rate,
            initial,
            least: f64::from(least) * packet,
            window: initial,
            good: 0.0,
            rate: 0.0,
            repair: Repair::Nothing,
        };
        throttle.begin(gain, path.base_rtt);
        throttle
    }

    /// Sets the rate for a flow that knows nothing but its round-trip time.
    pub fn begin(&mut self, gain: f64, rtt: Duration) {
        self.rate = gain * self.initial / rtt.max(Duration(1)).seconds();
    }

    /// One packet, after a lost SYN.
    pub fn shrink(&mut self) {
        self.window = self.packet;
    }

    /// Sets the rate. Until the pipe has been full once it only rises.
    pub fn pace(&mut self, rate: f64, has_been_full: bool) {
        if has_been_full || rate > self.rate {
            self.rate = rate;
        }
    }

    /// Opens the window towards its aim by what was acknowledged. Until the pipe has been full once it is
    /// not cut to the aim either.
    pub fn open(&mut self, ack: &Ack, aim: f64, has_been_full: bool, delivery: &DeliveryRate) {
        let grown = self.window + ack.bytes.0 as f64;
        if has_been_full {
            self.window = grown.min(aim);
        } else if self.window < aim || (delivery.delivered() as f64) < self.initial {
            self.window = grown;
        }
        self.window = self.window.max(self.least);
    }

    /// Keeps the window within a bound.
    pub fn bound(&mut self, most: f64) {
        self.window = self.window.min(most.max(self.least));
    }

    /// Takes what has been lost out of the window.
    pub fn lose(&mut self, ack: &Ack) {
        self.window = (self.window - f64::from(ack.lost) * self.packet).max(self.packet);
    }

    /// Lets as much go as has come.
    pub fn conserve(&mut self, ack: &Ack) {
        self.window = ((ack.in_flight.0 + ack.bytes.0) as f64).max(self.packet);
    }

    /// Remembers the window before a pause.
    pub fn save(&mut self, is_paused: bool) {
        let is_untouched = self.repair == Repair::Nothing && !is_paused;
        self.good = if is_untouched { self.window } else { self.good.max(self.window) };
    }

    /// The window before the pause, if it was larger.
    pub fn restore(&mut self) {
        self.window = self.window.max(self.good);
    }

    /// A repair begins.
    pub fn on_loss(&mut self, loss: &Loss, is_paused: bool) {
        match loss.sign {
            CongestionSignal::Gap if self.repair == Repair::Nothing => {
                self.save(is_paused);
                self.repair = Repair::Gap;
            }
            CongestionSignal::Timeout => {
                self.save(is_paused);
                self.repair = Repair::All(None);
                self.window = self.packet;
            }
            CongestionSignal::Gap | CongestionSignal::Mark => {}
        }
    }

    /// Nothing was lost: restores the window.
    pub fn on_spurious_loss(&mut self) {
        if self.repair != Repair::Nothing {
            self.repair = Repair::Nothing;
            self.restore();
        }
    }

    /// Restores the window if that was the last ACK that a repair waited for.
    pub fn on_ack(&mut self, ack: &Ack) {
        let is_over = match self.repair {
            Repair::Nothing => false,
            Repair::Gap => !ack.is_recovering,
            Repair::All(until) => ack.cumulative >= until.unwrap_or(ack.next),
        };
        if is_over {
            self.repair = Repair::Nothing;
            self.restore();
        } else if self.repair == Repair::All(None) {
            self.repair = Repair::All(Some(ack.next));
        }
    }

    /// Whether a gap is being repaired.
    pub fn is_repairing(&self) -> bool {
        self.repair == Repair::Gap
    }

    /// The least that the window opens to, in bytes of payload.
    pub fn least(&self) -> f64 {
        self.least
    }

    /// The window in bytes of payload.
    pub fn window(&self) -> f64 {
        self.window
    }

    /// What may be sent.
    pub fn allowance(&self) -> Allowance {
        let rate = Rate::from_bps(self.rate * 8.0 * self.expansion).min(self.line_rate);
        // A packet that fits but for rounding fits.
        let window = Bytes((self.window + 0.5) as u64);
        Allowance { window, rate: Some(rate), ..Allowance::window(0.0) }
    }
}

/// A time with little in flight, in which round trips show what the path itself takes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stay {
    /// Until when, once there is little in flight.
    until: Option<Time>,
    has_seen_round: bool,
}

impl Stay {
    /// Lets an ACK in; says whether it was the last. It lasts for so long, and for a round trip.
    pub fn is_over(
        &mut self,
        now: Time,
        starts_round: bool,
        most: (f64, Duration),
        delivery: &mut DeliveryRate,
    ) -> bool {
        let (in_flight, lasts) = most;
        // What comes now is no measure of what the path can carry.
        delivery.limit();
        let Some(until) = self.until else {
            if delivery.in_flight() <= in_flight {
                self.until = Some(now + lasts);
                delivery.start_round();
            }
            return false;
        };
        self.has_seen_round |= starts_round;
        self.has_seen_round && now > until
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::fixture::{ack, path};

    const PACKET: f64 = 960.0;

    fn loss(sign: CongestionSignal) -> Loss {
        Loss { now: Time::ZERO, flight: Bytes(9600), lost: Bytes::ZERO, sign }
    }

    fn assert_window(throttle: &BbrWindow, packets: f64) {
        let window = throttle.window() / PACKET;
        assert!((window - packets).abs() < 1e-9, "{window} is not {packets}");
    }

    #[test]
    fn a_rate_is_that_of_the_payload_with_its_headers_and_at_most_the_lines() {
        let mut throttle = BbrWindow::new(&path(), 10, 4, 2.0);
        // Two windows of ten packets of 1000 B in 100 us are more than 1 Gb/s.
        assert_eq!(throttle.allowance().rate, Some(Rate::from_gbps(1)));
        throttle.begin(2.0, Duration::from_millis(1));
        assert_eq!(throttle.allowance().rate, Some(Rate::from_mbps(160)));
        throttle.pace(960.0 * 1000.0, false);
        assert_eq!(throttle.allowance().rate, Some(Rate::from_mbps(160)), "it only rises at first");
        throttle.pace(960.0 * 1000.0, true);
        assert_eq!(throttle.allowance().rate, Some(Rate::from_mbps(8)));
    }

    #[test]
    fn a_window_opens_by_what_is_acknowledged_and_closes_to_its_aim_once_the_pipe_was_full() {
        let (mut throttle, delivery) =
            (BbrWindow::new(&path(), 10, 4, 2.0), DeliveryRate::new(&path()));
        throttle.open(&ack(1, 2), 0.0, false, &delivery);
        assert_window(&throttle, 11.0);
        throttle.open(&ack(1, 2), 20.0 * PACKET, true, &delivery);
        assert_window(&throttle, 12.0);
        throttle.open(&ack(1, 2), 9.5 * PACKET, true, &delivery);
        assert_window(&throttle, 9.5);
        throttle.open(&ack(1, 2), 0.0, true, &delivery);
        assert_window(&throttle, 4.0);
    }

    #[test]
    fn a_time_out_leaves_a_packet_and_the_window_comes_back_when_all_is_repaired() {
        let mut throttle = BbrWindow::new(&path(), 10, 4, 2.0);
        throttle.on_loss(&loss(CongestionSignal::Timeout), false);
        assert_window(&throttle, 1.0);
        for (cumulative, next, packets) in [(1, 10, 1.0), (9, 12, 1.0), (10, 12, 10.0)] {
            throttle.on_ack(&ack(cumulative, next));
            assert_window(&throttle, packets);
        }
    }

    #[test]
    fn while_a_gap_is_repaired_as_much_goes_as_came_and_then_the_window_is_back() {
        let mut throttle = BbrWindow::new(&path(), 10, 4, 2.0);
        throttle.on_loss(&loss(CongestionSignal::Gap), false);
        let repairing = Ack { is_recovering: true, in_flight: Bytes(960 * 6), ..ack(1, 10) };
        throttle.on_ack(&repairing);
        assert!(throttle.is_repairing());
        throttle.conserve(&repairing);
        assert_window(&throttle, 7.0);
        throttle.lose(&Ack { lost: 2, ..repairing });
        assert_window(&throttle, 5.0);
        throttle.on_ack(&ack(10, 12));
        assert_window(&throttle, 10.0);
        assert!(!throttle.is_repairing());
    }

    #[test]
    fn a_stay_begins_when_little_is_in_flight_and_lasts_its_time_and_a_round_trip() {
        let ms = |ms| Time::ZERO + Duration::from_millis(ms);
        let mut delivery = DeliveryRate::new(&path());
        let mut stay = Stay::default();
        let mut is_over = |at, starts_round, delivery: &mut DeliveryRate| {
            stay.is_over(ms(at), starts_round, (PACKET, Duration::from_millis(200)), delivery)
        };
        delivery.on_sent(ms(0), Bytes(1000));
        delivery.on_sent(ms(0), Bytes(1000));
        assert!(!is_over(500, true, &mut delivery), "two packets are in flight");
        delivery.on_timeout();
        assert!(!is_over(1000, true, &mut delivery), "now it begins");
        assert!(!is_over(1100, true, &mut delivery));
        assert!(!is_over(1200, false, &mut delivery));
        assert!(is_over(1201, false, &mut delivery));
    }
}
