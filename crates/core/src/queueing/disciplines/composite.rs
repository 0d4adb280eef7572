//! Composite queue: data that does not fit loses its payload, and its header passes the data that waits.
//!
//! Sources: [ndp17], and the queue of the public simulators htsim (`CompositeQueue`).
//!
//! Deviation: the packet in transmission does not count as queued, as at all ports.

use super::{
    Backlog, Capacity, Context, Limit, LinkScale, PacketFifo, PortQueue, Queue, QueueKind,
};
use crate::base::schema::{Bounds, Problem, positive_if_given};
use crate::base::units::Bytes;
use crate::model::packet::{Flags, Kind, Packet};

crate::parameters! {
    /// Composite queue: a FIFO for data and one for headers and control packets. Data that does not fit
    /// is trimmed to its header, so that the receiver learns of the loss at once ([ndp17]).
    pub struct Config {
        /// Capacity of the data FIFO ([ndp17]: 8 packets). If a packet arrives that does not fit, a fair
        /// coin chooses the victim: this packet, or the newest that waits, if that makes enough room.
        /// `none`: no limit.
        pub capacity: Option<Capacity> = Some(Capacity::Packets(8));
        /// Capacity of the FIFO of headers and control packets. Packets that do not fit are dropped, with
        /// their payload. `none`: no limit.
        pub header_capacity: Option<Capacity> = Some(Capacity::Packets(1000));
        /// Headers and control packets that depart for each data packet while both wait ([ndp17]). `none`:
        /// data waits for all of them, so that headers of packets that are sent again and again can fill a
        /// slow link.
        pub header_share: Option<u32> = Some(10), where positive_if_given;
        /// If true, headers of trimmed packets that do not fit return to their senders, by the links on which
        /// they came ([ndp17], return to sender), as far as hosts choose the paths of packets.
        pub returns_headers: bool = false;
        /// If false, data that does not fit is dropped.
        pub trimming: bool = true;
        /// Largest size of a trimmed packet.
        pub trimmed_size: Bytes = Bytes(64), where trimmed_size;
        /// Data that remains at a departure up to which the packet is not marked. `none`: no marking.
        pub kmin: Option<Capacity> = None;
        /// Data that remains at a departure above which every packet is marked. Between the two the
        /// probability grows linearly.
        pub kmax: Option<Capacity> = None;
        /// If false, ports to hosts do not mark (UEC 1.0 with credits of the receiving host, which controls
        /// this hop).
        pub marks_last_hop: bool = true;
    }
    check |config| {
        for (name, threshold) in [("kmin", config.kmin), ("kmax", config.kmax)] {
            if matches!(threshold, Some(Capacity::Packets(_))) {
                let message = "must be an amount of data, a time or a bandwidth-delay product";
                return Err(Problem::new(name, message));
            }
        }
        match (config.kmin, config.kmax) {
            (None, Some(_)) => Err(Problem::new("kmin", "must be given with kmax")),
            (Some(_), None) => Err(Problem::new("kmax", "must be given with kmin")),
            (Some(kmin), Some(kmax)) if kmin.exceeds(kmax) => {
                Err(Problem::new("kmin", "must not be above kmax"))
            }
            _ => Ok(()),
        }
    }
}

fn trimmed_size() -> Bounds {
    Bounds::at_least(1.0).to(f64::from(u16::MAX))
}

impl Config {
    /// Returns the marking thresholds in bytes.
    fn marking(&self, scale: LinkScale) -> Option<(u64, u64)> {
        let bytes = |capacity| match scale.limit(Some(capacity)) {
            Some(Limit::Bytes(bytes)) => bytes,
            _ => unreachable!("thresholds are not in packets"),
        };
        let (kmin, kmax) = (bytes(self.kmin?), bytes(self.kmax?));
        Some((kmin.min(kmax), kmax))
    }
}

impl QueueKind for Config {
    fn build(&self, scale: LinkScale) -> PortQueue {
        PortQueue::OnDeparture(Box::new(Composite {
            capacity: scale.limit(self.capacity),
            header_capacity: scale.limit(self.header_capacity),
            header_share: self.header_share.unwrap_or(u32::MAX),
            trimmed_size: self.trimming.then_some(self.trimmed_size.0 as u16),
            marking: self.marking(scale).filter(|_| self.marks_last_hop || !scale.is_last_hop),
            returns_headers: self.returns_headers,
            is_last_hop: scale.is_last_hop,
            data: PacketFifo::default(),
            headers: PacketFifo::default(),
            headers_in_row: 0,
        }))
    }

    fn capacity(&self) -> Option<Capacity> {
        self.capacity
    }

    fn marks(&self) -> bool {
        self.kmin.is_some()
    }

    fn thresholds(&self, scale: LinkScale) -> Vec<(&'static str, Limit)> {
        let marking = self.marking(scale).into_iter();
        let named = |(kmin, kmax)| [("kmin", Limit::Bytes(kmin)), ("kmax", Limit::Bytes(kmax))];
        marking.flat_map(named).collect()
    }
}

struct Composite {
    capacity: Option<Limit>,
    header_capacity: Option<Limit>,
    /// Largest number of headers in a row while data waits.
    header_share: u32,
    /// Size of trimmed packets; `None` without trimming.
    trimmed_size: Option<u16>,
    /// Thresholds of marking.
    marking: Option<(u64, u64)>,
    returns_headers: bool,
    is_last_hop: bool,
    data: PacketFifo,
    headers: PacketFifo,
    /// Headers that have departed since the last data while data waited.
    headers_in_row: u32,
}

impl Composite {
    /// Returns true if the data FIFO has room for a packet of `bytes` without `other`. With a capacity in
    /// bytes an empty FIFO has room for any packet: a bandwidth-delay product may be less than a packet.
    fn has_room(&self, bytes: u16, other: Option<&Packet>) -> bool {
        let mut backlog = self.data.backlog();
        if let Some(other) = other {
            backlog.remove(other.bytes);
        }
        self.capacity.is_none_or(|capacity| {
            let is_empty = matches!(capacity, Limit::Bytes(_)) && backlog.packets == 0;
            is_empty || capacity.fits(backlog, bytes)
        })
    }

    /// Enqueues the header of a data packet that found no room, or drops the packet.
    fn cut(&mut self, mut packet: Packet, context: &mut Context<'_>) {
        let trimmed_size = self.trimmed_size.filter(|_| packet.kind == Kind::Data);
        let has_room =
            trimmed_size.is_some_and(|size| self.has_header_room(packet.bytes.min(size)));
        if let Some(size) = trimmed_size.filter(|_| has_room || self.returns_headers) {
            context.trim(&mut packet, size);
            let flags = packet.flags.without(Flags::LAST_HOP);
            packet.flags = flags.with_if(Flags::LAST_HOP, self.is_last_hop);
        }
        if has_room {
            self.headers.push(packet);
        } else {
            context.dropped.push(packet);
        }
    }

    fn has_header_room(&self, bytes: u16) -> bool {
        // An empty FIFO accepts any header, as that of data does: a BDP may be less than one.
        self.headers.backlog().packets == 0
            || self
                .header_capacity
                .is_none_or(|capacity| capacity.fits(self.headers.backlog(), bytes))
    }

    /// Marks a data packet by what remains behind it.
    fn mark(&self, packet: &mut Packet, context: &mut Context<'_>) {
        let Some((kmin, kmax)) = self.marking else { return };
        let bytes = self.data.backlog().bytes;
        let probability = || (bytes - kmin) as f64 / (kmax - kmin) as f64;
        if bytes > kmax || bytes > kmin && context.random.uniform() < probability() {
            context.mark(packet);
        }
    }
}

impl Queue for Composite {
    fn enqueue(&mut self, packet: Packet, context: &mut Context<'_>) {
        if packet.kind.is_control() || packet.kind == Kind::Trimmed {
            if self.has_header_room(packet.bytes) {
                self.headers.push(packet);
            } else {
                context.dropped.push(packet);
            }
            return;
        }
        if self.has_room(packet.bytes, None) {
            self.data.push(packet);
            return;
        }
        // Always the packet that arrives would be always a packet of the same flow, with phase effects.
        let newest = self.data.last();
        let is_newest =
            newest.is_some() && self.has_room(packet.bytes, newest) && context.random.below(2) == 0;
        let victim = if is_newest { self.data.pop_last() } else { None };
        if is_newest {
            self.data.push(packet);
        }
        self.cut(victim.unwrap_or(packet), context);
    }

    fn dequeue(&mut self, context: &mut Context<'_>) -> Option<Packet> {
        let has_data = self.data.backlog().packets > 0;
        let may_pass = self.headers_in_row < self.header_share || !has_data;
        if let Some(header) = if may_pass { self.headers.pop() } else { None } {
            self.headers_in_row = if has_data { self.headers_in_row + 1 } else { 0 };
            return Some(header);
        }
        self.headers_in_row = 0;
        let mut packet = self.data.pop()?;
        self.mark(&mut packet, context);
        Some(packet)
    }

    fn returns_headers(&self) -> bool {
        self.returns_headers
    }

    fn backlog(&self) -> Backlog {
        let (data, headers) = (self.data.backlog(), self.headers.backlog());
        Backlog { bytes: data.bytes + headers.bytes, packets: data.packets + headers.packets }
    }

    fn for_each_packet(&self, visit: &mut dyn FnMut(&Packet)) {
        self.data.for_each_packet(visit);
        self.headers.for_each_packet(visit);
    }

    fn allows_lazy_service(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::{Parameter, defaults};
    use crate::base::units::Time;
    use crate::model::packet::Format;
    use crate::queueing::blocks::fixture::{QueueFixture, fixture, packet};
    use proptest::prelude::*;
    use serde_json::json;

    fn queue(config: &serde_json::Value) -> QueueFixture<dyn Queue> {
        fixture(&Config::read(config).unwrap())
    }

    /// Control packet of 40 B.
    fn ack(sequence: u32) -> Packet {
        Packet { sequence, ..defaults::<Format>().control(Kind::Ack, 9, Time::ZERO) }
    }

    /// Dequeues all packets, as kinds and sequence numbers.
    fn drain(queue: &mut QueueFixture<dyn Queue>) -> Vec<(Kind, u32)> {
        let popped = std::iter::from_fn(|| queue.dequeue().0);
        popped.map(|packet| (packet.kind, packet.sequence)).collect()
    }

    #[test]
    fn a_fair_coin_trims_the_arriving_packet_or_the_newest_that_waits() {
        let mut newest = 0;
        let mut queue = queue(&json!({ "capacity": "2 packets" }));
        for _ in 0..400 {
            (0..3).for_each(|sequence| assert_eq!(queue.enqueue(packet(0, sequence, 1000)), []));
            let order = drain(&mut queue);
            let (victim, kept) = if order[0].1 == 1 { (1, 2) } else { (2, 1) };
            assert_eq!(order, [(Kind::Trimmed, victim), (Kind::Data, 0), (Kind::Data, kept)]);
            newest += u32::from(victim == 1);
        }
        assert!((150..250).contains(&newest), "{newest} of 400");
    }

    #[test]
    fn an_empty_queue_accepts_a_packet_that_exceeds_its_capacity() {
        let mut queue = queue(&json!({ "capacity": "900 B" }));
        assert_eq!(queue.enqueue(packet(0, 0, 1000)), []);
        queue.enqueue(packet(0, 1, 1000));
        let kinds: Vec<_> = drain(&mut queue).into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(kinds, [Kind::Trimmed, Kind::Data]);
    }

    #[test]
    fn the_newest_stays_if_the_arriving_packet_would_not_fit_in_its_place() {
        for _ in 0..20 {
            let mut queue = queue(&json!({ "capacity": "2 KB" }));
            for (sequence, bytes) in (0..).zip([1000, 500, 1200]) {
                queue.enqueue(packet(0, sequence, bytes));
            }
            assert_eq!(drain(&mut queue)[0], (Kind::Trimmed, 2));
        }
    }

    #[test]
    fn headers_and_control_packets_pass_data_up_to_their_share() {
        for (share, order) in [(json!("none"), "aaaddd"), (json!(2), "aadadd")] {
            let mut queue = queue(&json!({ "header_share": share }));
            (0..3).for_each(|sequence| assert_eq!(queue.enqueue(packet(0, sequence, 1000)), []));
            (0..3).for_each(|sequence| assert_eq!(queue.enqueue(ack(sequence)), []));
            let kinds = drain(&mut queue);
            let kinds = kinds.iter().map(|(kind, _)| if *kind == Kind::Ack { 'a' } else { 'd' });
            assert_eq!(kinds.collect::<String>(), order);
        }
    }

    #[test]
    fn a_full_header_queue_drops_control_packets_and_whole_data() {
        let mut queue = queue(&json!({ "capacity": "0 packets", "header_capacity": "104 B" }));
        assert_eq!(queue.enqueue(packet(0, 0, 1000)), []);
        assert_eq!(queue.enqueue(ack(1)), []);
        assert_eq!(queue.enqueue(ack(2)), [ack(2)]);
        assert_eq!(queue.enqueue(packet(0, 3, 1000)), [packet(0, 3, 1000)]);
        assert_eq!(drain(&mut queue), [(Kind::Trimmed, 0), (Kind::Ack, 1)]);
        // A header that arrives keeps its size.
        let header = Packet { kind: Kind::Trimmed, ..packet(0, 4, 64) };
        queue.enqueue(header);
        assert_eq!((queue.dequeue().0, queue.trimmed.len()), (Some(header), 1));
        // A capacity below a header is one of a header.
        let mut queue = self::queue(&json!({ "header_capacity": "1 B" }));
        assert_eq!([queue.enqueue(header).len(), queue.enqueue(header).len()], [0, 1]);
    }

    #[test]
    fn headers_that_are_to_return_are_dropped_without_their_payload() {
        let mut queue = queue(&json!({
            "capacity": "0 packets", "header_capacity": "64 B", "returns_headers": true,
        }));
        assert_eq!(queue.enqueue(packet(0, 0, 1000)), []);
        let header = Packet { kind: Kind::Trimmed, ..packet(0, 1, 64) };
        assert_eq!(queue.enqueue(packet(0, 1, 1000)), [header]);
        assert_eq!(queue.enqueue(header), [header]);
        assert_eq!(queue.enqueue(ack(2)), [ack(2)]);
        assert_eq!(queue.trimmed.len(), 2);
    }

    #[test]
    fn packets_are_marked_by_the_data_that_remains() {
        let mut queue = queue(&json!({
            "kmin": "2 KB", "kmax": "2 KB", "capacity": "none", "header_share": "none",
        }));
        assert!(queue.queue.allows_lazy_service());
        (0..5).for_each(|sequence| assert_eq!(queue.enqueue(packet(0, sequence, 1000)), []));
        (0..9).for_each(|sequence| assert_eq!(queue.enqueue(ack(sequence)), []));
        let marks: Vec<bool> =
            std::iter::from_fn(|| queue.dequeue().0).map(|packet| packet.is_marked()).collect();
        assert_eq!(marks[9..], [true, true, false, false, false]);
        assert_eq!((queue.marks, marks[..9].contains(&true)), (2, false));
    }

    #[test]
    fn invalid_thresholds_are_rejected() {
        for (config, message) in [
            (json!({ "kmin": "1 KB" }), "kmax: must be given with kmin"),
            (json!({ "kmin": "3 KB", "kmax": "2 KB" }), "kmin: must not be above kmax"),
            (
                json!({ "kmin": "3 packets", "kmax": "2 KB" }),
                "kmin: must be an amount of data, a time or a bandwidth-delay product",
            ),
        ] {
            assert_eq!(Config::read(&config).unwrap_err().to_string(), message);
        }
    }

    proptest! {
        #[test]
        fn bytes_arrived_are_departed_dropped_trimmed_or_queued(
            visits in prop::collection::vec((0_u8..5, 65_u16..1500), 0..300),
        ) {
            let mut queue =
                queue(&json!({ "capacity": "5 KB", "header_capacity": "200 B", "header_share": 3 }));
            let (mut arrived, mut departed, mut dropped) = (0, 0, 0);
            for (sequence, (kind, bytes)) in (0..).zip(visits) {
                let size = |packet: &Packet| u64::from(packet.bytes);
                let packet = match kind {
                    0..3 => packet(0, sequence, bytes),
                    3 => ack(sequence),
                    _ => {
                        departed += queue.dequeue().0.as_ref().map_or(0, size);
                        continue;
                    }
                };
                arrived += size(&packet);
                dropped += queue.enqueue(packet).iter().map(size).sum::<u64>();
                let trimmed: u64 = queue.trimmed.iter().map(size).sum();
                let queued = queue.queue.backlog();
                prop_assert_eq!(arrived, departed + dropped + trimmed + queued.bytes);
                let mut waiting = Backlog::default();
                queue.queue.for_each_packet(&mut |packet| waiting.add(packet.bytes));
                prop_assert_eq!(waiting, queued);
                prop_assert!(queued.bytes <= 5_200);
            }
        }
    }
}
