//! Tests of the sender, of the credits of a receiving host, and of their feedback.

use super::*;
use crate::base::schema::Parameter;
use crate::base::units::Rate;
use crate::transport::fixture::{OUTGOING, credit_host, inbound_flow};
use serde_json::{Value, json};

const FORMAT: Format = Format {
    payload: Bytes(1460),
    header: Bytes(78),
    ack: Bytes(84),
    syn: None,
    credit: None,
    sack: false,
    time_unit: Duration::ZERO,
};

/// Interval of credits at 10 Gb/s: the time of 84 + 1538 bytes.
const INTERVAL: u64 = 1_297_600;

/// Scheduler of a host at 10 Gb/s without jitter.
struct Fixture {
    scheduler: Box<dyn CreditScheduler>,
}

impl Fixture {
    fn new(mut config: Value) -> Self {
        config["jitter"] = json!(config["jitter"].as_f64().unwrap_or_default());
        let config = Config::read(&config).unwrap();
        Self { scheduler: config.credit_scheduler(&credit_host(FORMAT)).unwrap() }
    }

    fn start(&mut self, flow: FlowNumber, segments: u32) {
        self.scheduler.on_start(Time::ZERO, &inbound_flow(flow, 0, segments));
        self.scheduler.on_arrival(Time::ZERO, flow, Arrival::Request { number: 0 });
    }

    /// Returns the next credit and its time, if all segments up to `segments` are missing.
    fn credit(&mut self, segments: u32) -> (Time, Credit) {
        let now = self.scheduler.next_timer();
        let missing = |_, from| if from < segments { from } else { u32::MAX };
        let (_, credit) = self.scheduler.next_credit(now, &missing).unwrap();
        assert_eq!(self.scheduler.next_credit(now, &missing), None);
        (now, credit)
    }

    /// Returns the gap between the next two credits, relative to the smallest one.
    fn gap(&mut self) -> f64 {
        let (now, _) = self.credit(0);
        (self.scheduler.next_timer() - now).0 as f64 / INTERVAL as f64
    }

    fn data(&mut self, now: Time, number: u32) {
        self.scheduler.on_arrival(now, 0, Arrival::Data { number, is_new: true });
    }

    /// Sends credits, which return data after an RTT of 20 us unless they are lost. Returns the rates of the
    /// credits, as shares of the largest.
    fn run(&mut self, rtts: u64, is_lost: impl Fn(u32) -> bool) -> Vec<f64> {
        const RTT: u64 = 20_000_000;
        let (mut data, mut rates) = (VecDeque::new(), Vec::new());
        while self.scheduler.next_timer() < Time(rtts * RTT) {
            let now = self.scheduler.next_timer();
            while let Some((due, number)) = data.pop_front_if(|(due, _)| *due <= now) {
                self.data(due, number);
            }
            let (_, credit) = self.credit(0);
            if !is_lost(credit.number) {
                data.push_back((now + Duration(RTT), credit.number));
            }
            let gap = self.scheduler.next_timer() - now;
            rates.push(INTERVAL as f64 / gap.0 as f64);
        }
        rates.dedup_by(|one, other| (*one - *other).abs() < 1e-4);
        rates
    }
}

#[test]
fn a_credit_permits_one_packet_and_is_wasted_without_one() {
    let path = Path::new(Rate::from_gbps(10), Duration::from_micros(10), FORMAT);
    let path = Path { size: Some(Bytes(2 * 1460)), ..path };
    let mut flow = Config::read(&json!({})).unwrap().controller(&path);
    assert_eq!(flow.allowance(), Allowance::granted(0));
    let credit = |number| Credit { number, segment: u32::MAX, class: 0 };
    assert!((1..=3).all(|number| !flow.on_credit(Time::ZERO, &credit(number), false)));
    assert_eq!(flow.gauges(), [("credits", 2.0), ("wasted_credits", 1.0)]);
    assert_eq!(flow.header(&OUTGOING), Header::Credit { number: 1, class: 0 });
    assert_eq!(flow.on_sent(Time::ZERO, Bytes(1538)), Some(Allowance::granted(u32::MAX)));
    assert_eq!(flow.header(&OUTGOING), Header::Credit { number: 2, class: 0 });
    assert_eq!(flow.on_sent(Time::ZERO, Bytes(1538)), Some(Allowance::granted(0)));
    // A packet that is named and was never sent needs no other credit; a lost one does.
    flow.on_credit(Time::ZERO, &Credit { segment: 1, ..credit(4) }, false);
    assert_eq!(flow.allowance(), Allowance::granted(0));
    flow.on_credit(Time::ZERO, &Credit { segment: 0, ..credit(4) }, true);
    assert_eq!(flow.allowance(), Allowance::granted(u32::MAX));
}

#[test]
fn a_sender_without_data_for_two_base_rtts_stops_the_credits() {
    let path = Path::new(Rate::from_gbps(10), Duration::from_micros(10), FORMAT);
    let path = Path { size: Some(Bytes(1460)), ..path };
    let mut flow = Config::read(&json!({})).unwrap().controller(&path);
    let at = |us: u64| Time(us * 1_000_000);
    let first = Credit { number: 1, segment: u32::MAX, class: 0 };
    assert!(!flow.on_credit(at(1), &first, false));
    flow.on_sent(at(1), Bytes(1538));
    let mut stops = |us, number| flow.on_credit(at(us), &Credit { number, ..first }, false);
    let answers = [(20, 2), (21, 3), (22, 4), (40, 5), (41, 6)].map(|(us, i)| stops(us, i));
    assert_eq!(answers, [false, true, false, false, true]);
    // A later request follows a timeout.
    for (us, number) in [(41, 6), (42, 0)] {
        let request = OutgoingPacket { kind: Kind::Request, now: at(us), ..OUTGOING };
        assert_eq!(flow.header(&request), Header::Credit { number, class: 0 });
    }
}

#[test]
fn credits_begin_at_half_the_largest_rate_or_less_for_few_packets() {
    for (segments, gap) in [(1, 80.0), (20, 4.0), (40, 2.0), (u32::MAX, 2.0)] {
        let mut fixture = Fixture::new(json!({}));
        fixture.start(0, segments);
        assert!((fixture.gap() - gap).abs() < 1e-5, "{segments} packets");
    }
}

#[test]
fn gaps_between_credits_vary_by_the_jitter() {
    let mut fixture = Fixture::new(json!({ "jitter": 0.1, "initial_rate": 1.0 }));
    fixture.start(0, u32::MAX);
    let gaps: Vec<f64> = (0..1000).map(|_| fixture.gap()).collect();
    assert!(gaps.iter().all(|gap| (0.9..=1.1).contains(gap)));
    let (mean, least) = (gaps.iter().sum::<f64>() / 1e3, gaps.iter().fold(2.0, |a, b| b.min(a)));
    assert!((mean - 1.0).abs() < 0.01 && least < 0.91, "{mean}, {least}");
}

#[test]
fn without_losses_the_rate_approaches_the_largest_by_half_the_rest() {
    let mut fixture = Fixture::new(json!({}));
    fixture.start(0, u32::MAX);
    let rates = fixture.run(12, |_| false);
    for (rate, expected) in rates.iter().zip([0.5, 0.75, 0.875, 0.9375]) {
        assert!((rate - expected).abs() < 1e-4, "{rates:?}");
    }
}

#[test]
fn credits_beyond_the_target_loss_reduce_the_rate_to_that_of_the_data() {
    // Of four credits one is lost. Without aggressiveness the rate does not grow again.
    let config = json!({ "initial_rate": 0.8, "initial_weight": 1e-9, "min_weight": 1e-9 });
    let mut fixture = Fixture::new(config);
    fixture.start(0, u32::MAX);
    let rates = fixture.run(3, |number| number.is_multiple_of(4));
    let (target, last) = (0.2 * 0.125, rates[rates.len() - 1]);
    assert!((rates[0] - 0.8).abs() < 1e-12, "{rates:?}");
    assert!(last < 0.8 * 0.8 * (1.0 + target) && last > 0.5, "{rates:?}");
}

#[test]
fn a_loss_below_the_target_does_not_reduce_the_rate() {
    let config = json!({
        "initial_weight": 1e-9, "min_weight": 1e-9, "max_weight": 1e-9, "target_loss": 0.5,
    });
    let mut fixture = Fixture::new(config);
    fixture.start(0, u32::MAX);
    // The target is 25 % at half the largest rate; one of the 7 or 8 credits of a period is lost.
    assert_eq!(fixture.run(20, |number| number.is_multiple_of(10)), [0.5]);
}

#[test]
fn credits_name_missing_packets_after_a_timeout_without_data() {
    let mut fixture = Fixture::new(json!({ "resend_timeout": "10 us", "feedback": false }));
    fixture.start(0, 2);
    let named = |fixture: &mut Fixture| {
        let (now, credit) = fixture.credit(2);
        (now.0 / 1_000_000, credit.segment)
    };
    // One credit per 40 intervals: a flow of two packets starts at a fortieth of the largest rate.
    let none = u32::MAX;
    let expected = [(0, none), (51, 0), (103, 1), (155, none)];
    assert_eq!([(); 4].map(|()| named(&mut fixture)), expected);
    // Without feedback the timeout does not halve the rate.
    assert_eq!(named(&mut fixture), (207, 0));
    fixture.data(Time(208_000_000), 5);
    fixture.scheduler.on_arrival(Time(209_000_000), 0, Arrival::Request { number: 0 });
    assert_eq!(named(&mut fixture), (209, 1));
}

#[test]
fn a_stopped_flow_gets_only_credits_that_name_missing_packets() {
    let mut fixture = Fixture::new(json!({ "resend_timeout": "100 us", "initial_rate": 1.0 }));
    fixture.start(0, 40);
    let (none, interval) = (u32::MAX, INTERVAL as f64 / 1e6);
    let sent = [(); 3].map(|()| fixture.credit(1).1.segment);
    assert_eq!(sent, [none; 3]);
    fixture.scheduler.on_arrival(Time(4_000_000), 0, Arrival::Request { number: 2 });
    let missing = |_, from| if from < 2 { from } else { none };
    let mut credits = Vec::new();
    while fixture.scheduler.next_timer() < Time(300_000_000) {
        let now = fixture.scheduler.next_timer();
        if let Some((_, credit)) = fixture.scheduler.next_credit(now, &missing) {
            credits.push((now.0 as f64 / 1e6, credit.segment));
        }
    }
    // The second timeout begins when both packets have been named, and has half the rate.
    let second = 100.0 + 2.0 * interval + 100.0;
    let expected = [(100.0, 0), (100.0 + interval, 1), (second, 0), (second + 2.0 * interval, 1)];
    assert_eq!(credits.len(), 4, "{credits:?}");
    for ((time, segment), (expected_time, expected_segment)) in credits.iter().zip(expected) {
        assert_eq!(*segment, expected_segment);
        assert!((time - expected_time).abs() < 0.01, "{credits:?}");
    }
}

#[test]
fn a_credit_names_a_packet_that_is_missing_before_one_that_has_arrived() {
    let mut fixture = Fixture::new(json!({}));
    fixture.start(0, 100);
    // Segments 0 and 1 have arrived; the others are on their way.
    let next = |fixture: &mut Fixture, lost: &'static [u32], in_flight: u32| {
        let now = fixture.scheduler.next_timer();
        let missing = |_, from| {
            lost.iter().copied().find(|lost| *lost >= from).unwrap_or(from.max(in_flight))
        };
        fixture.scheduler.next_credit(now, &missing).unwrap().1.segment
    };
    for number in 1..=2 {
        fixture.data(Time::ZERO, number);
    }
    assert_eq!(next(&mut fixture, &[], 2), u32::MAX);
    // Segment 3 arrives, and 2 does not.
    fixture.data(Time::ZERO, 4);
    assert_eq!(next(&mut fixture, &[2], 4), 2);
    assert_eq!(next(&mut fixture, &[2], 4), u32::MAX, "named once");
    // Of the next three segments the first is lost.
    fixture.data(Time::ZERO, 6);
    fixture.data(Time::ZERO, 7);
    assert_eq!(next(&mut fixture, &[2, 4], 7), 4);
}
