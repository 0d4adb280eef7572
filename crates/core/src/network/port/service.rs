//! Service policy of a port: when its next transmission is started, and who is notified of it.

use crate::base::units::Time;

/// Service policy of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceMode {
    /// At the next access to the port, from the time when the transmitter became free. Costs no
    /// event.
    Lazy,
    /// At the event of the transmitter becoming free. A packet that finds the port idle bypasses
    /// the queue.
    Eager,
    /// As `Eager`, but every packet passes through the queue, which does not
    /// allow lazy service ([`Queue::allows_lazy_service`](crate::queueing::Queue)).
    EagerQueue,
}

/// Way in which flows receive the time when their packet leaves the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DepartureReport {
    /// They do not wait for departures.
    None,
    /// On arrival, as long as the port is lazy: a FIFO queue without pauses is predictable.
    /// Otherwise when the transmission starts.
    Predicted,
    /// Time when the transmission starts.
    OnStart,
}

/// State machine that decides when a port is served.
///
/// The mode changes with these events; an event that is not listed changes nothing. `P` is a port
/// whose departures are [`Predicted`](DepartureReport::Predicted), `S` one that reports them
/// [`OnStart`](DepartureReport::OnStart), `N` one that does not report them.
///
/// | mode | event | port | new mode | action |
/// | --- | --- | --- | --- | --- |
/// | – | creation | N, P | Lazy | |
/// | – | creation | S | Eager | |
/// | – | creation, queue forbids lazy service | any | `EagerQueue` | |
/// | Lazy | `on_wait`, transmitter busy | P | Lazy | report the predicted departure |
/// | Lazy | `on_pause` | P | Eager | the data that waits keeps its predictions |
/// | Eager | `on_empty` | P | Lazy | |
/// | Lazy | `on_watch` | any | Eager | |
/// | Eager | `on_unwatch` | N, P | Lazy | |
/// | Eager, `EagerQueue` | `wants_call`, packet may go, no call pending | any | same | request a call |
/// | any | `on_call` | any | same | no call is pending |
/// | any | `on_start` of data with a prediction | any | same | the prediction is used up |
/// | any | `on_start` of other data | P, S | same | report the departure |
///
/// A pause does not change the mode of an `N` or `S` port: lazy service stops at paused data
/// anyway. The predictions of a `P` port end with a pause, whose end is not predictable.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Service {
    /// End of the transmission of the last packet that waits, if departures are predicted.
    /// Excludes control packets that arrive later and pass data, and pauses that begin later.
    drains_at: Time,
    /// Number of packets at the head of the queue whose departure has been reported on arrival.
    predicted: u32,
    mode: ServiceMode,
    report: DepartureReport,
    /// If true, a call is pending.
    is_called: bool,
    /// If true, the packets in flight are handed to another partition
    /// ([`export`](super::Port::export)).
    is_cut: bool,
}

const _: () =
    assert!(size_of::<Service>() == 16, "it shares a line of memory with what a hop needs");

impl Service {
    /// Returns the policy of a port with an empty queue. Flows wait for departures if
    /// `is_awaited`.
    pub fn new(is_awaited: bool, is_fifo: bool, allows_lazy_service: bool) -> Self {
        let report = match (is_awaited, is_fifo) {
            (false, _) => DepartureReport::None,
            (true, true) => DepartureReport::Predicted,
            (true, false) => DepartureReport::OnStart,
        };
        let mode = if !allows_lazy_service {
            ServiceMode::EagerQueue
        } else if report == DepartureReport::OnStart {
            ServiceMode::Eager
        } else {
            ServiceMode::Lazy
        };
        Self { drains_at: Time::ZERO, predicted: 0, mode, report, is_called: false, is_cut: false }
    }

    /// Returns the present mode.
    pub fn mode(&self) -> ServiceMode {
        self.mode
    }

    /// True if the port is served by events.
    pub fn is_eager(&self) -> bool {
        self.mode != ServiceMode::Lazy
    }

    /// True if departures are predicted.
    pub fn is_predicting(&self) -> bool {
        self.report == DepartureReport::Predicted
    }

    /// Handles a switch that starts to count departures exactly.
    pub fn on_watch(&mut self) {
        if self.mode == ServiceMode::Lazy {
            self.mode = ServiceMode::Eager;
        }
    }

    /// Handles a switch that no longer counts departures exactly.
    pub fn on_unwatch(&mut self) {
        if self.mode == ServiceMode::Eager && self.report != DepartureReport::OnStart {
            self.mode = ServiceMode::Lazy;
        }
    }

    /// Handles a packet that waits at a lazy port whose transmitter is busy. Returns the end of its
    /// transmission if departures are predicted; `end` computes it from the start.
    pub fn on_wait(&mut self, busy_until: Time, end: impl FnOnce(Time) -> Time) -> Option<Time> {
        if !self.is_predicting() {
            return None;
        }
        self.drains_at = end(self.drains_at.max(busy_until));
        Some(self.drains_at)
    }

    /// Handles the begin of a pause, while this number of packets waits in the queue of data.
    pub fn on_pause(&mut self, data_packets: impl FnOnce() -> u32) {
        if self.is_predicting() && self.mode == ServiceMode::Lazy {
            self.predicted = data_packets();
            self.mode = ServiceMode::Eager;
        }
    }

    /// Handles an empty queue whose data is not paused.
    pub fn on_empty(&mut self) {
        if self.is_predicting() {
            self.on_unwatch();
        }
    }

    /// Handles the start of a transmission by [`serve`](super::Port::serve). Returns true if the
    /// departure must be reported to its flow. Control packets may wait in the queue of data
    /// (`is_in_line`).
    pub fn on_start(&mut self, is_awaited: bool, is_in_line: bool) -> bool {
        let is_predicted = self.predicted > 0;
        self.predicted -= u32::from(is_in_line && is_predicted);
        self.report != DepartureReport::None && is_awaited && !is_predicted
    }

    /// Returns true if the port is to be called when the transmitter is free, because a packet
    /// that waits may go. The call is then pending.
    pub fn wants_call(&mut self, may_go: impl FnOnce() -> bool) -> bool {
        let wants_call = self.is_eager() && !self.is_called && may_go();
        self.is_called |= wants_call;
        wants_call
    }

    /// Handles the call.
    pub fn on_call(&mut self) {
        self.is_called = false;
    }

    /// Hands the packets in flight to another partition from now on.
    pub fn cut(&mut self) {
        self.is_cut = true;
    }

    /// True if a lazy port may start overdue transmissions with `in_flight` packets in flight. With an
    /// empty link no arrival event is pending, so the port is accessed again only if another
    /// partition collects its packets.
    pub fn may_start_overdue(&self, in_flight: u64) -> bool {
        in_flight > 0 || self.is_cut
    }
}

#[cfg(test)]
mod tests {
    use super::ServiceMode::{Eager, EagerQueue, Lazy};
    use super::*;

    /// Policies that do not report departures, predict them, and report them on start.
    fn policies() -> [Service; 3] {
        [(false, true), (true, true), (true, false)]
            .map(|(is_awaited, is_fifo)| Service::new(is_awaited, is_fifo, true))
    }

    /// The mode of each policy after an event.
    fn modes_after(mut services: [Service; 3], event: impl Fn(&mut Service)) -> [ServiceMode; 3] {
        services.each_mut().map(|service| {
            event(service);
            service.mode()
        })
    }

    fn watched() -> [Service; 3] {
        policies().map(|mut service| {
            service.on_watch();
            service
        })
    }

    /// Ends of transmissions that last 10.
    fn end(starts: Time) -> Time {
        Time(starts.0 + 10)
    }

    #[test]
    fn creation_selects_the_mode() {
        assert_eq!(policies().map(|service| service.mode()), [Lazy, Lazy, Eager]);
        for is_awaited in [false, true] {
            assert_eq!(Service::new(is_awaited, false, false).mode(), EagerQueue);
        }
    }

    #[test]
    fn only_a_predicting_port_reports_departures_on_arrival() {
        let [mut silent, mut predicting, mut on_start] = policies();
        assert_eq!(silent.on_wait(Time(5), end), None);
        assert_eq!(on_start.on_wait(Time(5), end), None);
        assert_eq!(predicting.on_wait(Time(5), end), Some(Time(15)));
        assert_eq!(predicting.on_wait(Time(5), end), Some(Time(25)), "behind the first");
        assert_eq!(predicting.on_wait(Time(40), end), Some(Time(50)), "the queue has drained");
        assert_eq!(predicting.mode(), Lazy);
    }

    #[test]
    fn a_pause_makes_only_a_predicting_port_eager() {
        assert_eq!(modes_after(policies(), |s| s.on_pause(|| 2)), [Lazy, Eager, Eager]);
        let mut queue = Service::new(true, false, false);
        queue.on_pause(|| unreachable!("it has no predictions"));
        assert_eq!(queue.mode(), EagerQueue);
    }

    #[test]
    fn data_that_waited_at_a_pause_keeps_its_prediction_and_later_data_is_reported() {
        let [_, mut service, _] = policies();
        service.on_pause(|| 2);
        service.on_pause(|| unreachable!("an eager port makes no predictions"));
        let starts = [true, false, true, true, false, true];
        let reported = starts.map(|is_data| service.on_start(is_data, is_data));
        assert_eq!(reported, [false, false, false, true, false, true]);
    }

    #[test]
    fn control_packets_that_wait_with_data_use_up_no_prediction_of_later_data() {
        let [_, mut service, _] = policies();
        service.on_pause(|| 2);
        let reported = [false, true, true].map(|is_data| service.on_start(is_data, true));
        assert_eq!(reported, [false, false, true]);
    }

    #[test]
    fn departures_are_reported_on_start_to_flows_that_wait_and_for_data() {
        let reported =
            policies().map(|mut service| [true, false].map(|data| service.on_start(data, data)));
        assert_eq!(reported, [[false, false], [true, false], [true, false]]);
    }

    #[test]
    fn an_empty_queue_makes_only_a_predicting_port_lazy() {
        assert_eq!(modes_after(watched(), Service::on_empty), [Eager, Lazy, Eager]);
        let mut queue = Service::new(true, false, false);
        queue.on_empty();
        assert_eq!(queue.mode(), EagerQueue);
    }

    #[test]
    fn a_watched_switch_has_eager_ports() {
        assert_eq!(watched().map(|service| service.mode()), [Eager; 3]);
        assert_eq!(modes_after(watched(), Service::on_unwatch), [Lazy, Lazy, Eager]);
        let mut queue = Service::new(false, false, false);
        for event in [Service::on_watch, Service::on_unwatch] {
            event(&mut queue);
            assert_eq!(queue.mode(), EagerQueue);
        }
    }

    #[test]
    fn an_eager_port_requests_one_call_for_packets_that_may_go() {
        let mut service = Service::new(false, false, false);
        assert!(!service.wants_call(|| false));
        assert!(service.wants_call(|| true));
        assert!(!service.wants_call(|| true), "a call is pending");
        service.on_call();
        assert!(service.wants_call(|| true));
        let [mut lazy, ..] = policies();
        assert!(!lazy.wants_call(|| true));
    }

    #[test]
    fn overdue_transmissions_need_a_packet_in_flight_or_a_cut() {
        let [mut service, ..] = policies();
        assert_eq!([0, 1].map(|count| service.may_start_overdue(count)), [false, true]);
        service.cut();
        assert!(service.may_start_overdue(0));
    }
}
