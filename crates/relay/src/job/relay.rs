//! What carries packets between both ends, each way over a link of its own.
//!
//! One thread takes packets in and lets them out. So if it is kept waiting, packets that are due show it.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, ppoll};
use tun_rs::SyncDevice;

use super::link::Link;

/// The last bit of a wait is spent awake, for a sleeper wakes up late. Longer, and a fast link would keep
/// a processor busy: what has real-time priority is then stopped for 50 ms a second.
const AWAKE: Duration = Duration::from_micros(50);

/// What is late by more than this is counted.
const LATE: Duration = Duration::from_millis(1);

/// How long it sleeps at most: then it looks whether it is to stop.
const LOOKS: Duration = Duration::from_millis(100);

/// More than any packet has, in bytes.
const MOST_BYTES: usize = 1 << 16;

/// What one way carried.
#[derive(Debug, Default, serde::Serialize)]
pub(crate) struct Carried {
    /// Packets that left.
    packets: u64,
    /// Packets that found the queue full.
    drops: u64,
    /// How many left more than a millisecond late.
    late_packets: u64,
    /// How late all together were, in seconds.
    late_s: f64,
    /// How late the worst one was, in seconds.
    worst_s: f64,
}

/// One way: a link, and what is on it.
struct Way<'a> {
    from: &'a SyncDevice,
    to: &'a SyncDevice,
    link: Link,
    /// What was taken in, and when it is due, in order.
    wire: VecDeque<(Duration, Vec<u8>)>,
    carried: Carried,
}

/// Carries packets from the first device to the second, and back, until it is to `stop`.
pub(crate) fn run(
    [sender, receiver]: [&SyncDevice; 2],
    links: [Link; 2],
    stop: &AtomicBool,
) -> io::Result<[Carried; 2]> {
    for device in [sender, receiver] {
        device.set_nonblocking(true)?;
    }
    let [there, back] = links;
    let mut ways = [Way::new(sender, receiver, there), Way::new(receiver, sender, back)];
    let mut polled =
        [sender, receiver].map(|device| PollFd::new(device.as_fd(), PollFlags::POLLIN));
    let mut buffer = vec![0; MOST_BYTES];
    let epoch = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        for way in &mut ways {
            way.take_in(&mut buffer, epoch)?;
            way.let_out(epoch)?;
        }
        let next = ways.iter().filter_map(Way::next).min();
        let wait = next.map_or(LOOKS, |due| due.saturating_sub(epoch.elapsed() + AWAKE));
        if !wait.is_zero() {
            ppoll(&mut polled, Some(wait.min(LOOKS).into()), None)?;
        }
    }
    Ok(ways.map(|way| way.carried))
}

impl<'a> Way<'a> {
    fn new(from: &'a SyncDevice, to: &'a SyncDevice, link: Link) -> Self {
        Self { from, to, link, wire: VecDeque::new(), carried: Carried::default() }
    }

    /// When the next packet is due.
    fn next(&self) -> Option<Duration> {
        self.wire.front().map(|(due, _)| *due)
    }

    fn take_in(&mut self, buffer: &mut [u8], epoch: Instant) -> io::Result<()> {
        loop {
            let bytes = match self.from.recv(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                received => received?,
            };
            match self.link.offer(epoch.elapsed(), bytes) {
                Some(due) => self.wire.push_back((due, buffer[..bytes].to_vec())),
                None => self.carried.drops += 1,
            }
        }
    }

    fn let_out(&mut self, epoch: Instant) -> io::Result<()> {
        while self.next().is_some_and(|due| due <= epoch.elapsed())
            && let Some((due, packet)) = self.wire.pop_front()
        {
            let late = epoch.elapsed().saturating_sub(due);
            self.to.send(&packet)?;
            self.carried.packets += 1;
            self.carried.late_packets += u64::from(late > LATE);
            self.carried.late_s += late.as_secs_f64();
            self.carried.worst_s = self.carried.worst_s.max(late.as_secs_f64());
        }
        Ok(())
    }
}
