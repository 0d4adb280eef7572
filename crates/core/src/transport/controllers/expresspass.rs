//! ExpressPass: credits whose rate ports limit, so that congestion drops credits and not data.
//!
//! Source: [expresspass17]; where the paper and its authors' simulator differ, the simulator. A sender
//! requests credits. The receiver sends them at a rate of the flow; each permits one packet, on the reverse
//! path. Ports drop credits for whose data a link has no room (`credit_shaper`). Once per RTT the receiver
//! adjusts the rate to the share of credits that returned no data, so that a small share is lost.
//!
//! Deviations: The receiver knows the size of a flow and stops when all its data has arrived; in the source a
//! packet behind the last one stops the credits (`CREDIT_STOP`), or an earlier one. Here a sender stops them
//! only if data is lost: if credits find nothing to send for two base RTTs, and as in the source again after
//! two more, by a request with the number of a credit. Instead of a NACK with go-back-N, a credit names a
//! packet that is missing before one that has arrived, and after a timeout any that is missing; each timeout
//! halves the rate. One credit at a time measures the RTT, not every one.

use std::collections::VecDeque;

use super::{
    Ack, Allowance, Arrival, Controller, Credit, CreditHost, CreditScheduler, CreditUse, Gaps,
    InboundFlow, Mechanism, MissingSegments, OutgoingPacket, Path, Reliability, Transport,
};
use crate::base::random::Random;
use crate::base::schema::{Problem, defaults, fraction, positive, positive_fraction};
use crate::base::units::{Bytes, Duration, Time};
use crate::model::packet::{FlowNumber, Format, Header, Kind};
use crate::queueing::disciplines::{self, Capacity, credit_shaper};

crate::parameters! {
    /// ExpressPass: the receiver paces credits, whose rate ports limit, and adjusts their rate to the share
    /// that is lost ([expresspass17]).
    pub struct Config {
        /// α: initial rate of credits, as a share of the largest. A flow of less than 40 packets starts in
        /// proportion to their number.
        pub initial_rate: f64 = 0.5, where positive_fraction;
        /// Initial aggressiveness: weight of the largest rate in an increase (`w_init`; authors' fat-tree:
        /// 0.0625).
        pub initial_weight: f64 = 0.5, where positive_fraction;
        /// Largest aggressiveness (`w_max`).
        pub max_weight: f64 = 0.5, where positive_fraction;
        /// Smallest aggressiveness (`w_min`).
        pub min_weight: f64 = 0.01, where positive_fraction;
        /// Share of credits that may be lost at a small rate; it falls to 0 at the largest rate (authors'
        /// simulator: 0.125).
        pub target_loss: f64 = 0.125, where fraction;
        /// If false, the rate does not change.
        pub feedback: bool = true;
        /// Largest random change of the gap between credits, relative to it, so that flows do not lose their
        /// credits in step (authors' simulator: 0.1).
        pub jitter: f64 = 0.1, where fraction;
        /// Time without data after which credits name all missing packets, also those behind the last one
        /// that has arrived (authors' simulator, where a NACK is repeated: 100 ms, in its fat-tree 100 us).
        pub resend_timeout: Duration = Duration::from_millis(100), where positive;
        /// Timeouts after which a sender requests credit again, and handshake. Losses are detected by the
        /// receiver.
        pub reliability: Reliability = Reliability::selective_repeat();
    }
    check |config| {
        if config.min_weight > config.max_weight {
            let message = format!("must be at most `max_weight`, {}", config.max_weight);
            return Err(Problem::new("min_weight", message));
        }
        if !(config.min_weight..=config.max_weight).contains(&config.initial_weight) {
            let message = format!(
                "must be from `min_weight`, {}, to `max_weight`, {}",
                config.min_weight, config.max_weight
            );
            return Err(Problem::new("initial_weight", message));
        }
        Ok(())
    }
}

/// Packets of the smallest flow that starts at the initial rate (authors' simulator).
const FULL_START: u32 = 40;

/// Increase of the aggressiveness after two periods without excess losses (authors' simulator).
const WEIGHT_STEP: f64 = 0.05;

/// Rate to which timeouts reduce that of a flow, as a share of the largest.
const MIN_RATE: f64 = 1e-4;

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        let unsent = path.size.map_or(u64::MAX, |size| path.format.packets(size));
        Box::new(ExpressPass {
            unsent,
            credits: VecDeque::new(),
            wasted: 0,
            patience: path.base_rtt * 2,
            sent_at: path.start,
            stop: (Time::ZERO, 0),
        })
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        let credited = Mechanism::credited(&self.reliability, CreditUse::Announced);
        Mechanism { names_gaps: true, ..credited }
    }

    fn credit_scheduler(&self, host: &CreditHost) -> Option<Box<dyn CreditScheduler>> {
        let CreditHost { line_rate, format, random, .. } = host;
        let credit = format.credit.unwrap_or(format.ack);
        Some(Box::new(CreditPacer {
            config: self.clone(),
            interval: line_rate.transmit(credit + format.full()),
            random: random.clone(),
            flows: Vec::new(),
        }))
    }

    fn own_reliability(&self) -> &'static [&'static str] {
        Mechanism::SET_BY_CREDIT
    }

    fn needs_own_connection(&self) -> bool {
        true
    }

    /// Ports limit credits for the links that their data takes.
    fn needs_one_path(&self) -> bool {
        true
    }

    fn queue(&self) -> disciplines::Config {
        disciplines::Config::credit_shaper(defaults())
    }

    fn host_queue(&self) -> disciplines::Config {
        let capacity = Some(Capacity::Packets(1000));
        disciplines::Config::credit_shaper(credit_shaper::Config { capacity, ..defaults() })
    }
}

/// Sender of a flow.
struct ExpressPass {
    /// Packets to be sent, for the first time or again.
    unsent: u64,
    /// Numbers of unspent credits.
    credits: VecDeque<u32>,
    /// Credits that found no packet to send.
    wasted: u32,
    /// Time without data to send after which it stops the credits.
    patience: Duration,
    /// Time of the last packet, data or stop.
    sent_at: Time,
    /// Time of the last stop, and the credit that it answered.
    stop: (Time, u32),
}

impl Controller for ExpressPass {
    fn on_ack(&mut self, _ack: &Ack) {}

    fn on_credit(&mut self, now: Time, credit: &Credit, is_lost: bool) -> bool {
        self.unsent = self.unsent.saturating_add(u64::from(is_lost));
        if (self.credits.len() as u64) < self.unsent {
            self.credits.push_back(credit.number);
            return false;
        }
        self.wasted += 1;
        let stops = self.unsent == 0 && now >= self.sent_at + self.patience;
        if stops {
            (self.sent_at, self.stop) = (now, (now, credit.number));
        }
        stops
    }

    fn on_sent(&mut self, now: Time, _bytes: Bytes) -> Option<Allowance> {
        self.sent_at = now;
        self.credits.pop_front();
        self.unsent = self.unsent.saturating_sub(1);
        Some(self.allowance())
    }

    /// A credit permits any packet, but only one.
    fn allowance(&self) -> Allowance {
        Allowance::granted(if self.credits.is_empty() { 0 } else { u32::MAX })
    }

    fn header(&self, outgoing: &OutgoingPacket) -> Header {
        let number = match outgoing.kind {
            Kind::Data => self.credits.front().copied().unwrap_or_default(),
            // Not a later one, after a timeout.
            Kind::Request if self.stop.0 == outgoing.now => self.stop.1,
            Kind::Request => 0,
            _ => return Header::NONE,
        };
        Header::Credit { number, class: 0 }
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![("credits", self.credits.len() as f64), ("wasted_credits", f64::from(self.wasted))]
    }
}

/// Incomplete flow at its receiver.
struct Inbound {
    flow: FlowNumber,
    /// Rate of credits, as a share of the largest.
    rate: f64,
    /// Aggressiveness: weight of the largest rate in an increase.
    weight: f64,
    /// True if the last period had no excess losses.
    may_accelerate: bool,
    /// True if the sender has nothing left to send, so that only credits that name packets return data.
    is_stopped: bool,
    /// Number of the last credit, and the highest number that data has returned.
    issued: u32,
    returned: u32,
    next_credit: Time,
    /// Credit that is timed, and when it was sent.
    timed: Option<(u32, Time)>,
    /// Smoothed time from a credit to its data.
    rtt: Option<Duration>,
    period_start: Time,
    /// Credits whose fate has become known in the period, and those of them that returned data.
    settled: u32,
    successful: u32,
    /// Packets that have arrived, and the first one that may be missing before these and was not named.
    received: u32,
    gap_from: u32,
    /// Those that were named and stay missing.
    gaps: Gaps,
    is_unbounded: bool,
    /// Time when credits name missing packets, and the first one that the next credit may name.
    resend_at: Time,
    resend_from: u32,
}

impl Inbound {
    /// Handles data that returns a credit.
    fn on_data(&mut self, now: Time, number: u32) {
        if number > self.returned {
            self.settled += number - self.returned;
            self.successful += 1;
            self.returned = number;
        }
        if let Some((timed, sent_at)) = self.timed.take_if(|(timed, _)| number >= *timed)
            && number == timed
        {
            let sample = now - sent_at;
            self.rtt = Some(self.rtt.map_or(sample, |rtt| (rtt * 4 + sample) / 5));
        }
    }

    /// Adjusts the rate to the losses of credits, once per RTT (Algorithm 1, as in the authors' simulator).
    /// `interval` is that of credits at the largest rate.
    fn adjust(&mut self, now: Time, interval: Duration, config: &Config) {
        let Some(rtt) = self.rtt.filter(|rtt| now >= self.period_start + *rtt) else { return };
        if self.settled == 0 {
            // The share of a flow may be less than one credit per RTT, so silence does not show a loss.
            return;
        }
        let one_per_rtt = interval.seconds() / rtt.seconds();
        let loss = 1.0 - f64::from(self.successful) / f64::from(self.settled);
        let target = (1.0 - self.rate) * config.target_loss;
        if loss > target {
            let period = (now - self.period_start).seconds();
            let arrival_rate = f64::from(self.successful) * interval.seconds() / period;
            self.rate = self.rate.min(arrival_rate * (1.0 + target));
            self.weight = (self.weight / 2.0).max(config.min_weight);
            self.may_accelerate = false;
        } else {
            if self.may_accelerate {
                self.weight = (self.weight + WEIGHT_STEP).min(config.max_weight);
            }
            self.may_accelerate = true;
            self.rate += self.weight * (1.0 - self.rate);
        }
        self.rate = self.rate.max(one_per_rtt).min(1.0);
        (self.period_start, self.settled, self.successful) = (now, 0, 0);
    }

    /// Returns the next packet that is missing before one that has arrived, or `u32::MAX`. Paths keep the
    /// order of packets, so it is lost. It is named again if it stays missing for two RTTs, because ports
    /// drop credits on purpose.
    fn gap(&mut self, now: Time, missing: MissingSegments<'_>) -> u32 {
        let segment = missing(self.flow, self.gap_from);
        // If all that have arrived were before it, there were at most as many as its number.
        if segment >= self.received {
            let Some(rtt) = self.rtt else { return u32::MAX };
            return self.gaps.next(now, self.gap_from, rtt * 2, |from| missing(self.flow, from));
        }
        self.gap_from = segment + 1;
        segment
    }

    /// Returns the packet that the next credit names: `u32::MAX` unless one is lost, or data has been missing
    /// for a timeout.
    fn missing(&mut self, now: Time, missing: MissingSegments<'_>, config: &Config) -> u32 {
        if now < self.resend_at {
            return self.gap(now, missing);
        }
        if self.is_unbounded {
            self.begin_timeout(now, config);
            // No more packets were sent than credits.
            self.gaps.name_before(self.issued, self.resend_at);
            return self.gaps.take(|from| missing(self.flow, from));
        }
        let segment = missing(self.flow, self.resend_from);
        self.resend_from = segment.wrapping_add(1);
        if segment == u32::MAX {
            // All have been named.
            self.begin_timeout(now, config);
        }
        segment
    }

    /// Begins the next timeout, at a lower rate.
    fn begin_timeout(&mut self, now: Time, config: &Config) {
        if config.feedback {
            self.rate = (self.rate / 2.0).max(MIN_RATE);
        }
        self.resend_at = now + config.resend_timeout;
    }
}

/// Credits of a receiving host.
struct CreditPacer {
    config: Config,
    /// Smallest gap between credits: the time of a credit and of the packet that it permits.
    interval: Duration,
    random: Random,
    flows: Vec<Inbound>,
}

impl CreditScheduler for CreditPacer {
    fn on_start(&mut self, now: Time, inbound: &InboundFlow) {
        let Config { initial_rate, initial_weight, resend_timeout, .. } = self.config;
        let start = f64::from(inbound.segments.min(FULL_START)) / f64::from(FULL_START);
        self.flows.push(Inbound {
            flow: inbound.flow,
            rate: initial_rate * start,
            weight: initial_weight,
            may_accelerate: false,
            is_stopped: false,
            issued: 0,
            returned: 0,
            next_credit: now,
            timed: None,
            rtt: None,
            period_start: now,
            settled: 0,
            successful: 0,
            received: 0,
            gap_from: 0,
            gaps: Gaps::new(now),
            is_unbounded: inbound.size.is_none(),
            resend_at: now + resend_timeout,
            resend_from: 0,
        });
    }

    fn on_arrival(&mut self, now: Time, flow: FlowNumber, arrival: Arrival) {
        let Some(flow) = self.flows.iter_mut().find(|other| other.flow == flow) else { return };
        match arrival {
            Arrival::Data { number, is_new } => {
                flow.on_data(now, number);
                flow.received += u32::from(is_new);
                // Credits go on to name missing packets until all have been named.
                if flow.resend_from == 0 {
                    flow.resend_at = now + self.config.resend_timeout;
                }
            }
            // Data is lost. Credits that found nothing to send are not.
            Arrival::Request { number } if number > 0 => {
                (flow.is_stopped, flow.returned) = (true, flow.issued);
            }
            // The first one announces the flow; after others credits or data are lost.
            Arrival::Request { .. } if flow.issued > 0 => {
                (flow.resend_at, flow.next_credit) = (now, now);
            }
            Arrival::Request { .. } | Arrival::Trimmed { .. } => {}
        }
    }

    fn on_end(&mut self, _now: Time, flow: FlowNumber) {
        self.flows.retain(|other| other.flow != flow);
    }

    fn next_credit(
        &mut self,
        now: Time,
        missing: MissingSegments<'_>,
    ) -> Option<(FlowNumber, Credit)> {
        let Self { config, interval, random, flows } = self;
        let (flow, segment) = loop {
            let flow = flows.iter_mut().min_by_key(|flow| (flow.next_credit, flow.flow))?;
            if flow.next_credit > now {
                return None;
            }
            if config.feedback {
                flow.adjust(now, *interval, config);
            }
            let segment = flow.missing(now, missing, config);
            if segment != u32::MAX || !flow.is_stopped {
                break (flow, segment);
            }
            flow.next_credit = flow.resend_at.min(flow.gaps.next_time());
        };
        flow.issued += 1;
        flow.timed.get_or_insert((flow.issued, now));
        let jitter = 1.0 + config.jitter * (2.0 * random.uniform() - 1.0);
        flow.next_credit = now + Duration::from_seconds(interval.seconds() / flow.rate * jitter);
        Some((flow.flow, Credit { number: flow.issued, segment, class: 0 }))
    }

    fn next_timer(&self) -> Time {
        self.flows.iter().map(|flow| flow.next_credit).min().unwrap_or(Time::NEVER)
    }
}

#[cfg(test)]
mod tests;
