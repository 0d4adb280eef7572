//! What carries packets from one end to the other: two threads for each way.
//!
//! The one takes packets in and computes when they are due; the other sleeps until then. They end with
//! the process.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{hint, thread};

use tun::Device;

use super::link::Link;

/// The last bit of a wait is spent awake, for a sleeper wakes up late. Longer, and a fast link would keep
/// a processor busy: what has real-time priority is then stopped for 50 ms a second.
const AWAKE: Duration = Duration::from_micros(50);

/// What is late by more than this is counted.
const LATE: Duration = Duration::from_millis(1);

/// What one way carried.
#[derive(Clone, Debug, Default, serde::Serialize)]
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

/// What one way has carried so far.
#[derive(Clone, Default)]
pub(crate) struct Way(Arc<Mutex<Carried>>);

impl Way {
    /// Carries packets over a link from now on, which is also when its clock begins.
    pub(crate) fn open(from: Arc<Device>, to: Arc<Device>, mtu: u16, link: Link) -> Self {
        let (way, epoch) = (Self::default(), Instant::now());
        let (put, get) = channel();
        let counted = way.clone();
        thread::spawn(move || counted.take_in(&from, mtu, link, epoch, &put));
        let counted = way.clone();
        thread::spawn(move || counted.let_out(&to, epoch, &get));
        way
    }

    /// What it has carried by now.
    pub(crate) fn carried(&self) -> Carried {
        self.count(|carried| carried.clone())
    }

    fn count<T>(&self, change: impl FnOnce(&mut Carried) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn take_in(
        &self,
        from: &Device,
        mtu: u16,
        mut link: Link,
        epoch: Instant,
        put: &Sender<(Duration, Vec<u8>)>,
    ) {
        let mut buffer = vec![0; mtu.into()];
        while let Ok(bytes) = from.recv(&mut buffer) {
            match link.offer(epoch.elapsed(), bytes) {
                Some(due) if put.send((due, buffer[..bytes].to_vec())).is_err() => return,
                Some(_) => (),
                None => self.count(|carried| carried.drops += 1),
            }
        }
    }

    fn let_out(&self, to: &Device, epoch: Instant, get: &Receiver<(Duration, Vec<u8>)>) {
        for (due, packet) in get {
            wait_until(epoch + due);
            let late = epoch.elapsed().saturating_sub(due);
            if to.send(&packet).is_err() {
                return;
            }
            self.count(|carried| {
                carried.packets += 1;
                carried.late_packets += u64::from(late > LATE);
                carried.late_s += late.as_secs_f64();
                carried.worst_s = carried.worst_s.max(late.as_secs_f64());
            });
        }
    }
}

fn wait_until(time: Instant) {
    thread::sleep(time.saturating_duration_since(Instant::now()).saturating_sub(AWAKE));
    while Instant::now() < time {
        hint::spin_loop();
    }
}
