//! Forwards packets between sender and receiver, with one link per direction.
//!
//! A single thread reads and writes packets. If the thread is delayed, packets are late, which is
//! recorded.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, ppoll};
use tun_rs::SyncDevice;

use super::link::Link;

/// The last part of a wait is busy waiting, because wake-ups are late. A longer part would occupy a
/// processor if the link is fast, and real-time processes are then stopped for 50 ms per second.
const BUSY_WAIT: Duration = Duration::from_micros(50);

/// Packets that are later than this are counted.
const LATE: Duration = Duration::from_millis(1);

/// Maximum sleep time, after which the stop flag is checked.
const MAX_SLEEP: Duration = Duration::from_millis(100);

/// Larger than any packet, in bytes.
const MAX_PACKET_BYTES: usize = 1 << 16;

/// Counters of one direction.
#[derive(Debug, Default, serde::Serialize)]
pub(crate) struct DirectionCounters {
    /// Packets forwarded.
    packets: u64,
    /// Packets dropped because the queue was full.
    drops: u64,
    /// Packets forwarded more than a millisecond late.
    late_packets: u64,
    /// Sum of the lateness of all packets, in seconds.
    late_s: f64,
    /// Maximum lateness of a packet, in seconds.
    worst_s: f64,
}

/// One direction: a link and its packets.
struct Direction<'a> {
    from: &'a SyncDevice,
    to: &'a SyncDevice,
    link: Link,
    /// Packets with their due times, in order.
    in_flight: VecDeque<(Duration, Vec<u8>)>,
    counters: DirectionCounters,
}

/// Forwards packets in both directions between two devices until `stop` is set.
pub(crate) fn run(
    [sender, receiver]: [&SyncDevice; 2],
    links: [Link; 2],
    stop: &AtomicBool,
) -> io::Result<[DirectionCounters; 2]> {
    for device in [sender, receiver] {
        device.set_nonblocking(true)?;
    }
    let [forward, reverse] = links;
    let mut directions =
        [Direction::new(sender, receiver, forward), Direction::new(receiver, sender, reverse)];
    let mut polled =
        [sender, receiver].map(|device| PollFd::new(device.as_fd(), PollFlags::POLLIN));
    let mut buffer = vec![0; MAX_PACKET_BYTES];
    let epoch = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        for direction in &mut directions {
            direction.receive_packets(&mut buffer, epoch)?;
            direction.send_due_packets(epoch)?;
        }
        let next = directions.iter().filter_map(Direction::next_due).min();
        let wait = next.map_or(MAX_SLEEP, |due| due.saturating_sub(epoch.elapsed() + BUSY_WAIT));
        if !wait.is_zero() {
            ppoll(&mut polled, Some(wait.min(MAX_SLEEP).into()), None)?;
        }
    }
    Ok(directions.map(|direction| direction.counters))
}

impl<'a> Direction<'a> {
    fn new(from: &'a SyncDevice, to: &'a SyncDevice, link: Link) -> Self {
        Self { from, to, link, in_flight: VecDeque::new(), counters: DirectionCounters::default() }
    }

    /// Returns the due time of the next packet.
    fn next_due(&self) -> Option<Duration> {
        self.in_flight.front().map(|(due, _)| *due)
    }

    fn receive_packets(&mut self, buffer: &mut [u8], epoch: Instant) -> io::Result<()> {
        loop {
            let bytes = match self.from.recv(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                received => received?,
            };
            match self.link.enqueue(epoch.elapsed(), bytes) {
                Some(due) => self.in_flight.push_back((due, buffer[..bytes].to_vec())),
                None => self.counters.drops += 1,
            }
        }
    }

    fn send_due_packets(&mut self, epoch: Instant) -> io::Result<()> {
        while self.next_due().is_some_and(|due| due <= epoch.elapsed())
            && let Some((due, packet)) = self.in_flight.pop_front()
        {
            let late = epoch.elapsed().saturating_sub(due);
            self.to.send(&packet)?;
            self.counters.packets += 1;
            self.counters.late_packets += u64::from(late > LATE);
            self.counters.late_s += late.as_secs_f64();
            self.counters.worst_s = self.counters.worst_s.max(late.as_secs_f64());
        }
        Ok(())
    }
}
