//! PLB: a flow keeps its path, and takes another one if it meets congestion for some rounds.
//!
//! Source: Linux (`tcp_plb.c`), whose authors are among those of [plb22].

use super::{Draw, EntropySelector, PathFeedback, Random, SelectorKind, ValueUse};
use crate::base::schema::{fraction, positive};
use crate::base::units::{Duration, Time};

crate::parameters! {
    /// One path for all packets of a flow, and another random one after rounds with many ECN marks or after a
    /// timeout (protective load balancing, [plb22]). For transports with ECN.
    pub struct Config {
        /// Share of ACKs with marks from which a round, an RTT, is congested (Linux,
        /// `tcp_plb_cong_thresh`: 0.5).
        pub threshold: f64 = 0.5, where fraction;
        /// Congested rounds in a row after which the path changes if no packet is in flight, so that none is
        /// overtaken (Linux, `tcp_plb_idle_rehash_rounds`: 3).
        pub idle_rounds: u32 = 3, where positive;
        /// Congested rounds in a row after which the path changes at once (Linux,
        /// `tcp_plb_rehash_rounds`: 12).
        pub rounds: u32 = 12, where positive;
        /// Least time after a timeout until marks may change the path; random up to twice this time, so that
        /// flows do not follow each other (Linux, `tcp_plb_suspend_rto_sec`: 60 s).
        pub suspension: Duration = Duration::from_millis(60_000);
    }
}

impl SelectorKind for Config {
    fn build(&self, random: Random, _paths: u32) -> Box<dyn EntropySelector> {
        Box::new(Plb::new(self.clone(), random))
    }

    fn value_use(&self) -> ValueUse {
        ValueUse::OnePath
    }
}

/// Selector of a flow.
struct Plb<D> {
    config: Config,
    random: D,
    value: u16,
    /// End of the segments of this round, its answers, and those with marks.
    round_end: u32,
    answers: u32,
    marked: u32,
    /// Congested rounds in a row.
    congested: u32,
    suspended_until: Time,
}

impl<D: Draw> Plb<D> {
    fn new(config: Config, random: D) -> Self {
        let mut plb = Self {
            config,
            random,
            value: 0,
            round_end: 0,
            answers: 0,
            marked: 0,
            congested: 0,
            suspended_until: Time::ZERO,
        };
        plb.change_path();
        plb
    }

    fn change_path(&mut self) {
        self.value = self.random.below(1 << 16) as u16;
        self.congested = 0;
    }
}

impl<D: Draw> EntropySelector for Plb<D> {
    fn next(&mut self, _now: Time, _window: u32) -> u16 {
        self.value
    }

    fn on_feedback(&mut self, now: Time, _entropy: u16, feedback: PathFeedback) {
        if feedback == PathFeedback::Timeout {
            // Linux changes the path after every timeout (`sk_rethink_txhash`).
            self.change_path();
            let suspension = self.config.suspension;
            let more = Duration(self.random.below(suspension.0 + 1));
            self.suspended_until = now + suspension + more;
            return;
        }
        self.answers += 1;
        self.marked += u32::from(feedback != PathFeedback::Good);
    }

    fn on_progress(&mut self, now: Time, acknowledged: u32, sent: u32) {
        if acknowledged < self.round_end || self.answers == 0 {
            return;
        }
        let share = f64::from(self.marked) / f64::from(self.answers);
        self.congested = if share >= self.config.threshold { self.congested + 1 } else { 0 };
        (self.round_end, self.answers, self.marked) = (sent, 0, 0);
        let is_idle = acknowledged == sent;
        let rounds = if is_idle { self.config.idle_rounds } else { self.config.rounds };
        if now >= self.suspended_until && self.congested >= rounds {
            self.change_path();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::Parameter;
    use serde_json::json;

    fn plb() -> Box<dyn EntropySelector> {
        Config::read(&json!({})).unwrap().build(Random::new(1, "plb"), 4)
    }

    /// Sends rounds of ten packets, the first `marked` of which are marked, each while packets of the next
    /// one are in flight. Returns the rounds after which the path changed.
    fn run(plb: &mut dyn EntropySelector, now: Time, rounds: u32, marked: u32) -> Vec<u32> {
        let mut changes = Vec::new();
        for round in 1..=rounds {
            let value = plb.next(now, 10);
            for packet in 0..10 {
                let is_marked = packet < marked;
                let feedback = if is_marked { PathFeedback::Marked } else { PathFeedback::Good };
                plb.on_feedback(now, value, feedback);
                plb.on_progress(now, 10 * (round - 1) + packet + 1, 10 * round + 10);
            }
            if plb.next(now, 10) != value {
                changes.push(round);
            }
        }
        changes
    }

    #[test]
    fn the_path_changes_after_twelve_rounds_of_which_half_the_packets_are_marked() {
        assert!(run(&mut *plb(), Time::ZERO, 30, 4).is_empty());
        let changes = run(&mut *plb(), Time::ZERO, 30, 5);
        assert_eq!(changes.len(), 2);
        assert_eq!(changes[1] - changes[0], 12);
    }

    #[test]
    fn an_idle_flow_changes_its_path_after_three_rounds() {
        let mut plb = plb();
        run(&mut *plb, Time::ZERO, 5, 10);
        let value = plb.next(Time::ZERO, 1);
        plb.on_feedback(Time::ZERO, value, PathFeedback::Marked);
        plb.on_progress(Time::ZERO, 60, 60);
        assert_ne!(plb.next(Time::ZERO, 1), value);
    }

    #[test]
    fn a_timeout_changes_the_path_and_suspends_further_changes() {
        // Changes after this number of milliseconds.
        let changes_after = |milliseconds| {
            let mut plb = plb();
            let value = plb.next(Time::ZERO, 1);
            plb.on_feedback(Time::ZERO, 0, PathFeedback::Timeout);
            assert_ne!(plb.next(Time::ZERO, 1), value);
            run(&mut *plb, Time::ZERO + Duration::from_millis(milliseconds), 30, 10).len()
        };
        assert_eq!(changes_after(59_999), 0);
        assert!(changes_after(120_000) > 0);
    }
}
