//! A link on a clock of its own: when a packet arrives is computed from when it came.
//!
//! So whoever carries packets out may be late with one of them without delaying those behind it.

use std::collections::VecDeque;
use std::time::Duration;

/// What a link is; the way back has one like it.
#[derive(Clone, Copy, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// Rate of transmission, in bits a second.
    rate_bps: u64,
    /// Propagation delay, in seconds.
    delay_s: f64,
    /// How many packets may wait; the one in transmission does not count.
    capacity_packets: usize,
}

/// One direction: a drop-tail queue, a transmitter and a wire.
pub(crate) struct Link {
    config: Config,
    /// When the transmitter has sent all that was taken in.
    free: Duration,
    /// When the transmission of each packet begins that may still be waiting, in order.
    waiting: VecDeque<Duration>,
}

impl Link {
    pub(crate) fn new(config: Config) -> Self {
        Self { config, free: Duration::ZERO, waiting: VecDeque::new() }
    }

    /// Takes in a packet, and tells when it is at the other end; `None` if it is dropped.
    ///
    /// Times must not go back from call to call.
    pub(crate) fn offer(&mut self, now: Duration, bytes: usize) -> Option<Duration> {
        while self.waiting.front().is_some_and(|begin| *begin <= now) {
            self.waiting.pop_front();
        }
        if self.free > now {
            if self.waiting.len() >= self.config.capacity_packets {
                return None;
            }
            self.waiting.push_back(self.free);
        }
        let nanoseconds = bytes as u64 * 8 * 1_000_000_000 / self.config.rate_bps;
        self.free = self.free.max(now) + Duration::from_nanos(nanoseconds);
        Some(self.free + Duration::from_secs_f64(self.config.delay_s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    /// 1000 B a millisecond, 20 ms long.
    fn link(capacity_packets: usize) -> Link {
        Link::new(Config { rate_bps: 8_000_000, delay_s: 0.02, capacity_packets })
    }

    #[test]
    fn an_idle_link_takes_the_transmission_and_the_delay() {
        let mut link = link(0);
        assert_eq!(link.offer(ms(5), 1000), Some(ms(26)));
        assert_eq!(link.offer(ms(100), 3000), Some(ms(123)));
    }

    #[test]
    fn packets_that_come_together_leave_one_after_the_other() {
        let mut link = link(2);
        let ends: Vec<_> = (0..3).map(|_| link.offer(ms(0), 1000)).collect();
        assert_eq!(ends, [Some(ms(21)), Some(ms(22)), Some(ms(23))]);
    }

    #[test]
    fn what_finds_the_queue_full_is_dropped_and_takes_no_time() {
        let mut link = link(1);
        assert_eq!(link.offer(ms(0), 1000), Some(ms(21)));
        assert_eq!(link.offer(ms(0), 1000), Some(ms(22)));
        assert_eq!(link.offer(ms(0), 1000), None);
        // The second one is in transmission from now on, and no longer waits.
        assert_eq!(link.offer(ms(1), 1000), Some(ms(23)));
        assert_eq!(link.offer(ms(1), 1000), None);
    }

    #[test]
    fn a_link_that_ends_a_transmission_now_is_free() {
        let mut link = link(0);
        assert_eq!(link.offer(ms(0), 1000), Some(ms(21)));
        assert_eq!(link.offer(ms(1), 1000), Some(ms(22)));
    }
}
