//! A link that computes the arrival time of a packet from its enqueue time.
//!
//! A late forwarder therefore delays single packets, but not the packets behind them.

use std::collections::VecDeque;
use std::time::Duration;

/// Parameters of a link; both directions are equal.
#[derive(Clone, Copy, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// Transmission rate, in bits per second.
    rate_bps: u64,
    /// Propagation delay, in seconds.
    delay_s: f64,
    /// Queue capacity in packets, without the packet in transmission.
    capacity_packets: usize,
}

/// One direction: a drop-tail queue, a transmitter and a propagation delay.
pub(crate) struct Link {
    config: Config,
    /// Time at which the transmitter has sent all packets.
    idle_from: Duration,
    /// Start of transmission of each packet that may still be queued, in order.
    queued: VecDeque<Duration>,
}

impl Link {
    pub(crate) fn new(config: Config) -> Self {
        Self { config, idle_from: Duration::ZERO, queued: VecDeque::new() }
    }

    /// Enqueues a packet and returns its arrival time; `None` if it is dropped.
    ///
    /// `now` must not decrease from call to call.
    pub(crate) fn enqueue(&mut self, now: Duration, bytes: usize) -> Option<Duration> {
        while self.queued.front().is_some_and(|begin| *begin <= now) {
            self.queued.pop_front();
        }
        if self.idle_from > now {
            if self.queued.len() >= self.config.capacity_packets {
                return None;
            }
            self.queued.push_back(self.idle_from);
        }
        let nanoseconds = bytes as u64 * 8 * 1_000_000_000 / self.config.rate_bps;
        self.idle_from = self.idle_from.max(now) + Duration::from_nanos(nanoseconds);
        Some(self.idle_from + Duration::from_secs_f64(self.config.delay_s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    /// A link of 1000 B per millisecond and 20 ms.
    fn link(capacity_packets: usize) -> Link {
        Link::new(Config { rate_bps: 8_000_000, delay_s: 0.02, capacity_packets })
    }

    #[test]
    fn idle_link_adds_transmission_and_propagation_delay() {
        let mut link = link(0);
        assert_eq!(link.enqueue(ms(5), 1000), Some(ms(26)));
        assert_eq!(link.enqueue(ms(100), 3000), Some(ms(123)));
    }

    #[test]
    fn simultaneous_packets_are_transmitted_in_sequence() {
        let mut link = link(2);
        let ends: Vec<_> = (0..3).map(|_| link.enqueue(ms(0), 1000)).collect();
        assert_eq!(ends, [Some(ms(21)), Some(ms(22)), Some(ms(23))]);
    }

    #[test]
    fn packets_are_dropped_if_the_queue_is_full() {
        let mut link = link(1);
        assert_eq!(link.enqueue(ms(0), 1000), Some(ms(21)));
        assert_eq!(link.enqueue(ms(0), 1000), Some(ms(22)));
        assert_eq!(link.enqueue(ms(0), 1000), None);
        // The second packet is now in transmission, and no longer queued.
        assert_eq!(link.enqueue(ms(1), 1000), Some(ms(23)));
        assert_eq!(link.enqueue(ms(1), 1000), None);
    }

    #[test]
    fn link_is_idle_at_the_end_of_a_transmission() {
        let mut link = link(0);
        assert_eq!(link.enqueue(ms(0), 1000), Some(ms(21)));
        assert_eq!(link.enqueue(ms(1), 1000), Some(ms(22)));
    }
}
