//! Path scores of NDP: all paths in random rounds, except those that trim many packets.
//!
//! Sources: [ndp17], which keeps such paths out of use for a time; its numbers are those of htsim.
//!
//! Deviation: a packet that was trimmed at the last hop, which all paths share, counts as one that arrived.

use super::{Draw, EntropySelector, PathFeedback, Random, SelectorKind, ValueUse};
use crate::base::schema::{Bounds, positive, positive_if_given};
use crate::base::units::Time;

crate::parameters! {
    /// All paths of a flow once, in a random order that is drawn anew for each round. A path with many
    /// trimmed packets is left out of rounds: of one more each time it is found bad, of one less each time it
    /// is not ([ndp17]).
    pub struct Config {
        /// Answers of a path before it can be bad (htsim: 100). `none`: no path is left out (htsim, `perm`).
        pub least_answers: Option<u32> = Some(100), where positive_if_given;
        /// Trimmed packets for each packet that arrived, above which a path is bad (htsim: 0.3), if it is
        /// an outlier, too.
        pub bad_ratio: f64 = 0.3, where positive;
        /// The same in relation to all paths together, above which a path is an outlier (htsim: 1.25).
        pub outlier_ratio: f64 = 1.25, where at_least_equal;
    }
}

/// With less all paths could be outliers.
fn at_least_equal() -> Bounds {
    Bounds::at_least(1.0)
}

impl SelectorKind for Config {
    fn build(&self, random: Random, paths: u32) -> Box<dyn EntropySelector> {
        Box::new(PathScores::new(self.clone(), random, paths))
    }

    fn value_use(&self) -> ValueUse {
        ValueUse::Number
    }
}

/// Trimmed packets for which a returned header counts (htsim).
const RETURNED: u32 = 3;

/// Answers of one path or of all, and the use of a path.
#[derive(Clone, Copy, Default)]
struct Score {
    arrived: u32,
    trimmed: u32,
    /// Rounds without the path after each use, and those that are left.
    avoided: u32,
    left: u32,
}

impl Score {
    fn add(&mut self, arrived: u32, trimmed: u32) {
        self.arrived += arrived;
        self.trimmed += trimmed;
    }
}

/// Selector of a flow.
struct PathScores<D> {
    config: Config,
    random: D,
    /// Order of the paths in this round, and the index of the next.
    order: Vec<u16>,
    next: usize,
    scores: Vec<Score>,
    all: Score,
}

impl<D: Draw> PathScores<D> {
    fn new(config: Config, random: D, paths: u32) -> Self {
        let paths = paths.min(1 << 16);
        let order: Vec<u16> = (0..paths).map(|path| path as u16).collect();
        let scores = vec![Score::default(); order.len()];
        Self { config, random, next: order.len(), order, scores, all: Score::default() }
    }

    /// Returns the next path of the round, or the first one of a new round.
    fn step(&mut self) -> usize {
        if self.next == self.order.len() {
            self.next = 0;
            for index in (1..self.order.len()).rev() {
                self.order.swap(index, self.random.below(index as u64 + 1) as usize);
            }
        }
        self.next += 1;
        usize::from(self.order[self.next - 1])
    }

    fn is_bad(&self, path: usize) -> bool {
        let Config { least_answers, bad_ratio, outlier_ratio } = self.config;
        let of = |score: &Score| (f64::from(score.arrived), f64::from(score.trimmed));
        let ((arrived, trimmed), (all_arrived, all_trimmed)) =
            (of(&self.scores[path]), of(&self.all));
        least_answers.is_some_and(|least| arrived + trimmed > f64::from(least))
            && trimmed > bad_ratio * arrived
            && trimmed * all_arrived > outlier_ratio * all_trimmed * arrived
    }
}

impl<D: Draw> EntropySelector for PathScores<D> {
    fn next(&mut self, _now: Time, _window: u32) -> u16 {
        loop {
            let path = self.step();
            let is_bad = self.is_bad(path);
            let score = &mut self.scores[path];
            if score.left > 0 {
                score.left -= 1;
                continue;
            }
            score.avoided =
                if is_bad { score.avoided + 1 } else { score.avoided.saturating_sub(1) };
            score.left = score.avoided;
            return path as u16;
        }
    }

    fn on_feedback(&mut self, _now: Time, entropy: u16, feedback: PathFeedback) {
        let (arrived, trimmed) = match feedback {
            PathFeedback::Good | PathFeedback::Marked => (1, 0),
            PathFeedback::Trimmed => (0, 1),
            PathFeedback::Returned => (0, RETURNED),
            // The path is not known.
            PathFeedback::Timeout => return,
        };
        // Routes may have had more paths when the packet was sent.
        let path = usize::from(entropy) % self.scores.len();
        self.scores[path].add(arrived, trimmed);
        self.all.add(arrived, trimmed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::Parameter;
    use serde_json::json;

    const PATHS: usize = 8;

    fn selector(config: &serde_json::Value) -> Box<dyn EntropySelector> {
        Config::read(config).unwrap().build(Random::new(1, "paths"), PATHS as u32)
    }

    /// Sends packets whose answers on `bad` are trimmed at this share. Returns the packets on each path.
    fn send(
        selector: &mut dyn EntropySelector,
        packets: u32,
        bad: u16,
        is_trimmed: impl Fn(u32) -> bool,
    ) -> [u32; PATHS] {
        let mut sent = [0; PATHS];
        for packet in 0..packets {
            let path = selector.next(Time::ZERO, 1);
            sent[usize::from(path)] += 1;
            let is_trimmed = path == bad && is_trimmed(packet);
            let feedback = if is_trimmed { PathFeedback::Trimmed } else { PathFeedback::Good };
            selector.on_feedback(Time::ZERO, path, feedback);
        }
        sent
    }

    #[test]
    fn each_round_has_all_paths_in_another_order() {
        let mut selector = selector(&json!({}));
        let rounds: Vec<Vec<u16>> =
            (0..50).map(|_| (0..PATHS).map(|_| selector.next(Time::ZERO, 1)).collect()).collect();
        for round in &rounds {
            let mut sorted = round.clone();
            sorted.sort_unstable();
            assert!(sorted.iter().copied().eq(0..PATHS as u16), "{round:?}");
        }
        assert!(rounds.windows(2).any(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn a_bad_path_is_left_out_of_more_and_more_rounds() {
        let mut scored = selector(&json!({}));
        assert_eq!(send(&mut *scored, 800, 3, |_| true), [100; PATHS], "too few answers");
        let sent = send(&mut *scored, 8_000, 3, |_| true);
        // The rounds between two uses increase by one: 1 + 2 + ... + 46 are about 1100.
        assert!((40..=52).contains(&sent[3]), "{sent:?}");
    }

    #[test]
    fn a_path_that_was_bad_comes_back() {
        let mut scored = selector(&json!({}));
        send(&mut *scored, 1_600, 3, |packet| packet % 16 < 8);
        send(&mut *scored, 300_000, 3, |_| false);
        let sent = send(&mut *scored, 8_000, 3, |_| false);
        assert!(sent[3].abs_diff(1_000) < 2, "{sent:?}");
    }

    #[test]
    fn no_path_is_left_out_if_all_are_alike_or_without_scores() {
        let mut alike = selector(&json!({}));
        for packet in 0..8_000 {
            let path = alike.next(Time::ZERO, 1);
            let is_trimmed = (packet / PATHS).is_multiple_of(3);
            let feedback = if is_trimmed { PathFeedback::Trimmed } else { PathFeedback::Good };
            alike.on_feedback(Time::ZERO, path, feedback);
        }
        assert_eq!(send(&mut *alike, 8, 0, |_| false), [1; PATHS]);
        let mut unscored = selector(&json!({ "least_answers": null }));
        assert_eq!(send(&mut *unscored, 8_000, 3, |_| true), [1_000; PATHS]);
    }
}
