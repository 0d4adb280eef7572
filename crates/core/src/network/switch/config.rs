//! Parameters of switches.

use super::traffic_classes::Number;
use crate::base::schema::{Bounds, Problem, positive};
use crate::base::units::{Bytes, Duration, Rate};
use crate::model::graph::Link;
use crate::model::packet::Format;
use crate::network::port::Passing;

crate::parameters! {
    /// Buffers of switches, and pause frames to their neighbours.
    pub struct Config {
        /// If true, ACKs and other control packets pass data in strict priority; if false, they wait
        /// with data, and are paused with it. By default true with `pause` and without a `credit_shaper`,
        /// and otherwise false. Hosts do the same without `host.control_priority`.
        pub control_priority: Option<bool> = None;
        /// Memory that all ports of a switch share. Without it, only the capacity of each port's
        /// queue is a limit.
        pub shared_buffer: Option<Bytes> = None;
        /// Bound of a port's queue, as a multiple of the free shared buffer (Choudhury and Hahne
        /// 1998). Without it, any port may take all of the buffer.
        pub alpha: Option<f64> = None;
        /// Pause frames (PFC, IEEE 802.1Qbb) instead of drops; needs a shared buffer.
        pub pause: Option<Pause> = None;
    }
    check |switch| {
        if switch.pause.is_some() && switch.shared_buffer.is_none() {
            return Err(Problem::new("shared_buffer", "missing; pause frames need a shared buffer"));
        }
        if switch.alpha.is_some() && switch.pause.is_some() {
            return Err(Problem::new("alpha", "does not go with `pause`, which has an alpha of its own"));
        }
        if switch.alpha.is_some() && switch.shared_buffer.is_none() {
            return Err(Problem::new("shared_buffer", "missing; `alpha` is a share of it"));
        }
        if switch.alpha.is_some_and(|alpha| alpha <= 0.0) {
            return Err(Problem::new("alpha", "must be above zero"));
        }
        if let (Some(size), Some(pause)) = (switch.shared_buffer, &switch.pause) {
            let parts =
                [("pause.headroom", pause.headroom), ("pause.reserve", Some(pause.reserve))];
            for (field, part) in parts {
                if let Some(part) = part.filter(|part| *part > size) {
                    let message = format!("must be below shared_buffer, which is {size}, not {part}");
                    return Err(Problem::new(field, message));
                }
            }
        }
        Ok(())
    }
}

crate::parameters! {
    /// Pause frames (PFC).
    pub struct Pause {
        /// Pause threshold of an ingress link, as a multiple of the free shared pool ([hpcc19]:
        /// 1/8). With several `traffic_classes` this threshold, `reserve` and `headroom` apply to
        /// each class of a link.
        pub alpha: f64 = 0.125, where positive;
        /// If true, `alpha` of a link between switches doubles with each doubling of its rate over that of
        /// the slowest host, up to 1 (the simulator of [hpcc19]), so that these links are not paused first.
        pub alpha_by_rate: bool = false;
        /// Memory of each ingress link that it fills before it draws on the pool ([hpcc19]: 4 KB).
        pub reserve: Bytes = Bytes(4_096);
        /// Memory of each ingress link for packets that arrive after it is paused. By default the
        /// most that can arrive at line rate: the packet that exceeds the threshold, the packets
        /// that arrive while the pause frame waits for the packet before it and for a frame of
        /// each other class, is transmitted, propagates and takes effect, the packets in flight
        /// then, and the packet that the neighbour has just started.
        pub headroom: Option<Bytes> = None;
        /// Distance below the threshold at which the link is resumed ([hpcc19]: 3 KB).
        pub resume_offset: Bytes = Bytes(3_072);
        /// Traffic classes that are paused; packets of the other classes are dropped above the
        /// threshold. By default all classes are paused.
        pub classes: Option<Vec<Number>> = None, where |classes| {
            let is_empty = classes.as_ref().is_some_and(Vec::is_empty);
            if is_empty { Err("at least one traffic class, or left out") } else { Ok(()) }
        };
        /// Time of a pause in units of 512 bit times of the paused link (IEEE 802.1Qbb; IEEE 802.3
        /// clause 31B). The pause ends then, unless another frame has restarted the time: while a link
        /// is paused, the switch repeats the frame each half of the time that remains after the longest
        /// wait of a frame, so that a single lost frame does not end the pause, if that wait is at most
        /// half of the pause. With shorter pauses frames may come too late, and take capacity from data of
        /// the reverse link. Links with losses then lose frames, too. By default pauses do not expire, and
        /// frames are not lost.
        pub quanta: Option<u32> = None, where sixteen_bits;
        /// Time that the neighbour takes to react to a pause frame, for the computed headroom
        /// only.
        pub reaction: Duration = Duration::ZERO;
        /// Duration of a pause after which a run looks for deadlocks, and ends if it finds one;
        /// the summary warns of longer pauses. Without it, a run looks for deadlocks only at its
        /// end, and does not warn.
        pub watchdog: Option<Duration> = Some(Duration::from_millis(10)), where |watchdog| {
            // The watchdog runs once in this time, which must not be too often.
            let is_long = watchdog.is_none_or(|watchdog| watchdog >= Duration::from_micros(1));
            if is_long { Ok(()) } else { Err("1 us or more") }
        };
    }
}

/// Times in a pause frame, which has 16 bits for them; a time of 0 resumes.
fn sixteen_bits() -> Bounds {
    Bounds::at_least(1.0).to(f64::from(u16::MAX))
}

/// Size of a pause frame (IEEE 802.3).
pub const PAUSE_FRAME: Bytes = Bytes(64);

impl Config {
    /// Returns the packets that pass data at ports with this `control_priority`.
    pub fn passing(&self, control_priority: Option<bool>) -> Passing {
        match (control_priority, &self.pause) {
            (Some(true), _) | (None, Some(_)) => Passing::Control,
            (Some(false), Some(_)) => Passing::Frames,
            (Some(false) | None, None) => Passing::None,
        }
    }
}

impl Pause {
    /// Returns the number of times that `alpha` is doubled for a link of this rate.
    pub(super) fn alpha_shift(&self, rate: Rate, host_rate: Rate) -> u8 {
        let is_due = |shift: &u8| {
            let (shift, factor) = (*shift, f64::from(1_u32 << *shift));
            rate.bps() > host_rate.bps() * factor && self.lane_alpha(shift + 1) <= 1.0
        };
        if self.alpha_by_rate { (0..30).take_while(is_due).count() as u8 } else { 0 }
    }

    /// Returns `alpha` after this number of doublings.
    pub(super) fn lane_alpha(&self, shift: u8) -> f64 {
        self.alpha * f64::from(1_u32 << shift)
    }

    /// Returns the longest time of a pause frame at the port of `back`: it waits for a packet and for frames
    /// of other lanes, of `lanes` in all.
    pub(super) fn frame_time(lanes: usize, back: &Link, packet: Bytes) -> Duration {
        back.rate.transmit(Bytes(packet.0 + lanes as u64 * PAUSE_FRAME.0))
    }

    /// Returns the headroom of one of `lanes` lossless lanes of a link with the reverse link `back`.
    pub(super) fn headroom(&self, lanes: usize, link: &Link, back: &Link, format: &Format) -> u64 {
        let needed = || self.needed_headroom(lanes, link, back, format);
        self.headroom.map_or_else(needed, |headroom| headroom.0)
    }

    /// Returns the computed headroom, whatever the configured one.
    pub(crate) fn needed_headroom(
        &self,
        lanes: usize,
        link: &Link,
        back: &Link,
        format: &Format,
    ) -> u64 {
        let packet = format.longest();
        let frame = Self::frame_time(lanes, back, packet);
        let spans = [frame, back.longest_delay(), self.reaction, link.longest_delay()];
        let reaction = spans.iter().fold(0, |sum: u64, span| sum.saturating_add(span.0));
        // Data is faster than the link's rate if transmission times are rounded down.
        let [exact, rounded] =
            [link.rate.transmit(packet), format.transmission_time(link.rate, packet)]
                .map(|time| u128::from(time.0.max(1)));
        let carried = u128::from(link.rate.carries(Duration(reaction)).0) * exact;
        let arrives = u64::try_from(carried.div_ceil(rounded)).unwrap_or(u64::MAX);
        arrives.saturating_add(2 * packet.0)
    }
}
