//! Ideal FCT: packets leave back to back at line rate and are stored and forwarded at every hop of an idle
//! path, without handshake or slow start.

use crate::base::units::{Bytes, Duration, Rate};
use crate::model::graph::{Graph, Link, LinkId};
use crate::model::packet::Format;

/// Components of the ideal FCT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdealFct {
    /// Propagation delay of the last packet.
    pub propagation: Duration,
    /// Transmission delay of the last packet at all hops.
    pub transmission: Duration,
    /// Queueing delay of the last packet behind its predecessors.
    pub waiting: Duration,
}

impl IdealFct {
    /// Sum of the components.
    pub fn total(&self) -> Duration {
        self.propagation + self.transmission + self.waiting
    }
}

/// The time from the first packet sent to the last payload byte received, of a flow of `size` that
/// shares no link of its `hops`, each a line rate and a propagation delay; exact to the picosecond.
///
/// Packet k leaves hop j at `max(D_j(k−1), A_j(k)) + t_j(k)`: apart from propagation, the last
/// packet's departure is the heaviest monotone path through the grid of packets and hops. All
/// packets but the last weigh alike, so the path goes from the packet before the last to the last
/// at one hop i; before that it crosses hops 1 to i once each and repeats the slowest of them, and
/// after it follows the last packet over hops i to h. Hence no loop over packets.
pub fn ideal_fct(
    hops: impl IntoIterator<Item = (Rate, Duration)>,
    format: &Format,
    size: Bytes,
) -> IdealFct {
    let packets = format.packets(size);
    let last = format.last_payload(size) + format.header;
    // A single packet has no predecessor.
    let full = if packets > 1 { format.payload + format.header } else { last };
    let repeats = packets.saturating_sub(2);

    let mut alone = IdealFct::default();
    // Slowest transmission of a full packet so far, and additional time that a full packet takes to this hop
    // compared with the last packet.
    let (mut slowest, mut ahead) = (Duration::ZERO, Duration::ZERO);
    let mut same_rate = (Rate::default(), Duration::ZERO, Duration::ZERO);
    for (rate, delay) in hops {
        // Divisions are slow, and neighbours often have the same rate.
        if rate != same_rate.0 {
            let time = |bytes| format.transmission_time(rate, bytes);
            same_rate = (rate, time(full), time(last));
        }
        let (_, full, last) = same_rate;
        slowest = slowest.max(full);
        if packets > 1 {
            alone.waiting = alone.waiting.max(ahead + full + slowest * repeats);
        }
        ahead += full - last;
        alone.transmission += last;
        alone.propagation += delay;
    }
    alone
}

/// Ideal FCT of a flow of several packets that are spread over several paths, of which this is one, or that
/// overtake each other in queues. It is a lower bound. For packets spread over paths it is exact in an empty
/// network if no path has a hop of its own that is slower than the shared hops.
///
/// All packets take the hops that all paths share (the flag). A short last packet leaves the first of them
/// last, and may then overtake others. Hence the last byte arrives no earlier than any shared hop can have
/// forwarded all packets.
fn ideal_fct_spread(
    hops: impl Iterator<Item = ((Rate, Duration), bool)> + Clone,
    format: &Format,
    size: Bytes,
) -> IdealFct {
    let packets = format.packets(size);
    let last = format.last_payload(size) + format.header;
    let times = |rate: Rate| {
        let time = |bytes| format.transmission_time(rate, bytes);
        (time(format.payload + format.header), time(last))
    };
    // Propagation, and transmission of a full and of the last packet, over all hops.
    let [mut propagation, mut all_full, mut transmission] = [Duration::ZERO; 3];
    for ((rate, delay), _) in hops.clone() {
        let (full, last) = times(rate);
        propagation += delay;
        all_full += full;
        transmission += last;
    }
    let mut total = propagation + all_full;
    let sent_before_last = match hops.clone().next() {
        Some(((rate, _), true)) => times(rate).0 * (packets - 1),
        _ => Duration::ZERO,
    };
    // Arrival of a full and of the last packet at a hop, alone.
    let [mut full_in, mut last_in] = [Duration::ZERO; 2];
    for ((rate, delay), is_shared) in hops {
        let (full, last) = times(rate);
        let first_in = full_in.min(sent_before_last + last_in);
        full_in += full + delay;
        last_in += last + delay;
        if is_shared {
            let all_out = first_in + full * (packets - 1) + delay;
            let last_behind = all_out + last + (propagation + transmission - last_in);
            let full_behind = all_out + (propagation + all_full - full_in);
            total = total.max(last_behind).max(full_behind);
        }
    }
    IdealFct { propagation, transmission, waiting: total - (propagation + transmission) }
}

/// Ideal FCT of a flow of `size` whose packets take these paths. With `keeps_order`, packets that take one
/// path stay in order.
pub fn over_paths<'a>(
    graph: &Graph,
    mut paths: impl Iterator<Item = &'a [LinkId]> + Clone,
    format: &Format,
    size: Bytes,
    keeps_order: bool,
) -> IdealFct {
    let of_link = |link: &LinkId| {
        let Link { rate, delay, .. } = graph.links[*link as usize];
        (rate, delay)
    };
    if format.packets(size) == 1 {
        let of_path = |path: &[LinkId]| ideal_fct(path.iter().map(of_link), format, size);
        return paths.map(of_path).min_by_key(IdealFct::total).unwrap_or_default();
    }
    let Some(first) = paths.next() else { return IdealFct::default() };
    if keeps_order && paths.clone().next().is_none() {
        return ideal_fct(first.iter().map(of_link), format, size);
    }
    let mut shared = first.to_vec();
    for path in paths.clone() {
        shared.retain(|link| path.contains(link));
    }
    let is_alike = |(link, other): (&LinkId, &LinkId)| {
        let has_own = |link| !shared.contains(link);
        link == other || of_link(link) == of_link(other) && has_own(link) && has_own(other)
    };
    let of_path = |path: &[LinkId]| {
        let hop = |link: &LinkId| (of_link(link), shared.contains(link));
        ideal_fct_spread(path.iter().map(hop), format, size)
    };
    let (mut least, mut before) = (of_path(first), first);
    for path in paths {
        // In a symmetric network all paths are alike.
        if path.len() != before.len() || !path.iter().zip(before).all(is_alike) {
            let ideal = of_path(path);
            least = if ideal.total() < least.total() { ideal } else { least };
        }
        before = path;
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::defaults;
    use proptest::prelude::*;

    /// Recursion over all packets, of which `ideal_fct` is the closed form.
    fn packet_by_packet(hops: &[(Rate, Duration)], format: &Format, size: Bytes) -> Duration {
        let mut departed = vec![Duration::ZERO; hops.len()];
        let (mut left, mut arrived) = (size, Duration::ZERO);
        for _ in 0..format.packets(size) {
            let payload = left.min(format.payload);
            left -= payload;
            arrived = Duration::ZERO;
            for ((rate, delay), departed) in hops.iter().zip(&mut departed) {
                let lasts = format.transmission_time(*rate, payload + format.header);
                *departed = arrived.max(*departed) + lasts;
                arrived = *departed + *delay;
            }
        }
        arrived
    }

    #[test]
    fn one_packet_is_stored_and_forwarded() {
        // 1000 bytes take 800 ns at 10 Gb/s and 80 ns at 100 Gb/s.
        let hops = [
            (Rate::from_gbps(10), Duration::from_nanos(300)),
            (Rate::from_gbps(100), Duration::from_nanos(20)),
        ];
        let format = Format { payload: Bytes(960), ..defaults() };
        assert_eq!(ideal_fct(hops, &format, Bytes(960)).total(), Duration::from_nanos(1200));
        // Two more packets repeat the slowest hop.
        let three = ideal_fct(hops, &format, Bytes(2880));
        assert_eq!(three.total(), Duration::from_nanos(2800));
        assert_eq!(three.propagation, Duration::from_nanos(320));
        assert_eq!(three.transmission, Duration::from_nanos(880));
    }

    #[test]
    fn a_small_last_packet_waits_for_the_full_one_before_it() {
        let hops = [(Rate::from_gbps(8), Duration::ZERO); 2];
        let format = Format { header: Bytes(0), ..defaults() };
        assert_eq!(ideal_fct(hops, &format, Bytes(1001)).total(), Duration::from_nanos(2001));
    }

    proptest! {
        #[test]
        fn the_closed_form_is_the_recursion_over_all_packets(
            hops in prop::collection::vec((1_000_u64..1_000_000_000_000, 0_u64..1_000_000), 1..8),
            (payload, header) in (1_u64..2_000, 0_u64..100),
            size in 0_u64..40_000,
            time_unit in 0_u64..2_000,
        ) {
            let hops: Vec<_> =
                hops.into_iter().map(|(rate, delay)| (Rate(rate), Duration(delay))).collect();
            let ack = Bytes(40);
            let (payload, header) = (Bytes(payload), Bytes(header));
            let time_unit = Duration(time_unit);
            let format = Format { payload, header, ack, time_unit, ..defaults() };
            let closed = ideal_fct(hops.iter().copied(), &format, Bytes(size)).total();
            prop_assert_eq!(closed, packet_by_packet(&hops, &format, Bytes(size)));
        }

        #[test]
        fn like_rates_leave_much_to_rounding_and_still_agree(
            rates in prop::collection::vec(2_999_999_990_u64..3_000_000_010, 1..6),
            size in 0_u64..40_000,
        ) {
            let hops: Vec<_> = rates.into_iter().map(|rate| (Rate(rate), Duration::ZERO)).collect();
            let (payload, header, ack) = (Bytes(7), Bytes(1), Bytes(40));
            let format = Format { payload, header, ack, ..defaults() };
            let closed = ideal_fct(hops.iter().copied(), &format, Bytes(size)).total();
            prop_assert_eq!(closed, packet_by_packet(&hops, &format, Bytes(size)));
        }
    }
}
