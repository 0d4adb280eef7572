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

/// Packets of a flow that stay in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// None: later ones may be sent first.
    None,
    /// Those that take one path.
    OfPath,
    /// All of them: the flow takes one path at a time.
    OfFlow,
}

/// Ideal FCT of a flow of `size` whose packets take these paths.
pub fn over_paths<'a>(
    graph: &Graph,
    mut paths: impl Iterator<Item = &'a [LinkId]> + Clone,
    format: &Format,
    size: Bytes,
    order: Order,
) -> IdealFct {
    let of_link = |link: &LinkId| {
        let Link { rate, delay, .. } = graph.links[*link as usize];
        (rate, delay)
    };
    let Some(first) = paths.next() else { return IdealFct::default() };
    if format.packets(size) == 1 || order == Order::OfFlow {
        let of_path = |path: &[LinkId]| ideal_fct(path.iter().map(of_link), format, size);
        let others = paths.filter(|path| !graph.are_alike(path, first)).map(of_path);
        return std::iter::once(of_path(first))
            .chain(others)
            .min_by_key(IdealFct::total)
            .unwrap_or_default();
    }
    if order == Order::OfPath && paths.clone().next().is_none() {
        return ideal_fct(first.iter().map(of_link), format, size);
    }
    let all = std::iter::once(first).chain(paths.clone());
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
    // The bound by shared links is exact if no other link is slower than all of them.
    let slowest = shared.iter().map(|link| of_link(link).0).min();
    let is_slower = |link: &LinkId| slowest.is_none_or(|slowest| of_link(link).0 < slowest);
    let mut has_slower = first.iter().any(is_slower);
    let (mut least, mut before) = (of_path(first), first);
    for path in paths {
        if path.len() != before.len() || !path.iter().zip(before).all(is_alike) {
            let ideal = of_path(path);
            least = if ideal.total() < least.total() { ideal } else { least };
            has_slower |= path.iter().any(is_slower);
        }
        before = path;
    }
    if has_slower {
        let bound = bound_of_cuts(all, of_link, format, size);
        least.waiting += Duration(bound.0.saturating_sub(least.total().0));
    }
    least
}

/// Links of which every packet of a flow crosses one.
#[derive(Clone)]
struct Cut {
    /// Each link, with the transmission times of a full and of the last packet.
    links: Vec<(LinkId, [Duration; 2])>,
    /// Earliest arrival of a packet at one of the links.
    reached: Duration,
    /// Least time of a full and of the last packet from the end of the transmission at the cut to the target.
    rest: [Duration; 2],
}

/// Returns a lower bound on the FCT of a flow of several packets, each of which takes one of `paths`: the
/// links at each hop of the paths are a cut, and carry all packets together. `hop` returns the rate and the
/// propagation delay of a link.
pub fn bound_of_cuts<'a>(
    paths: impl Iterator<Item = &'a [LinkId]> + Clone,
    hop: impl Fn(&LinkId) -> (Rate, Duration),
    format: &Format,
    size: Bytes,
) -> Duration {
    let before_last = format.packets(size) - 1;
    let last = format.last_payload(size) + format.header;
    let times = |link: &LinkId| {
        let (rate, delay) = hop(link);
        let time = |bytes| format.transmission_time(rate, bytes);
        ([format.payload + format.header, last].map(time), delay)
    };
    // Behind a link that all packets leave their host by, a short last packet is the last.
    let first = paths.clone().next().map_or(0, |path| path[0]);
    let is_shared = paths.clone().all(|path| path[0] == first);
    let sent_before_last =
        if is_shared { times(&first).0[0] * before_last } else { Duration::ZERO };
    let hops = paths.clone().map(<[LinkId]>::len).min().unwrap_or(0);
    let never = Duration(u64::MAX);
    let mut cuts = vec![Cut { links: Vec::new(), reached: never, rest: [never; 2] }; hops];
    for path in paths {
        let [mut full_in, mut last_in] = [Duration::ZERO, sent_before_last];
        for (link, cut) in path.iter().zip(&mut cuts) {
            let (of_link @ [full, last], delay) = times(link);
            cut.links.push((*link, of_link));
            cut.reached = cut.reached.min(full_in.min(last_in));
            full_in += full + delay;
            last_in += last + delay;
        }
        let mut rest = [Duration::ZERO; 2];
        for (at, link) in path.iter().enumerate().rev() {
            let (of_link, delay) = times(link);
            rest = rest.map(|rest| rest + delay);
            if let Some(cut) = cuts.get_mut(at) {
                cut.rest = [0, 1].map(|packet| cut.rest[packet].min(rest[packet]));
            }
            rest = [0, 1].map(|packet| rest[packet] + of_link[packet]);
        }
    }
    let of_cut = |mut cut: Cut| {
        cut.links.sort_unstable();
        cut.links.dedup();
        let [full, all] = least_times(&cut.links, before_last);
        cut.reached + (full + cut.rest[0]).max(all + cut.rest[1])
    };
    cuts.into_iter().map(of_cut).max().unwrap_or_default()
}

/// Returns lower bounds on the times in which links side by side transmit `full` packets, and these and the
/// last one. They are exact if the links have the same rate.
fn least_times(links: &[(LinkId, [Duration; 2])], full: u64) -> [Duration; 2] {
    let [one, last] = links[0].1;
    if links.iter().all(|(_, times)| times[0] == one) {
        let (each, others) = (full / links.len() as u64, full % links.len() as u64);
        return if others == 0 { [one * each, one * each + last] } else { [one * (each + 1); 2] };
    }
    // Packets in a picosecond, in units of 2^-90: rounding lowers the bound by less than a picosecond.
    let one = 1_u128 << 90;
    let rate_of = |(_, [time, _]): &(LinkId, [Duration; 2])| one / u128::from(time.0.max(1)) + 1;
    let rate: u128 = links.iter().map(rate_of).sum();
    [Duration((u128::from(full) * one / rate) as u64); 2]
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

        #[test]
        fn no_division_of_packets_among_paths_is_faster_than_the_bound_of_cuts(
            links in prop::collection::vec((1_000_u64..1_000_000, 0_u64..1_000_000), 9..10),
            paths in prop::collection::vec(prop::collection::vec(0_u32..3, 3..4), 1..6),
            choices in prop::collection::vec(0_usize..6, 50..51),
            size in 8_u64..350,
            is_alike in any::<bool>(),
        ) {
            // Hop h of a path is one of the links 3h, 3h + 1 and 3h + 2.
            let hop = |link: &LinkId| {
                let (rate, delay) = links[*link as usize];
                (Rate(if is_alike { 8_000 } else { rate } * 1_000_000), Duration(delay))
            };
            let number = |(at, link): (usize, &u32)| 3 * at as u32 + link;
            let paths: Vec<Vec<LinkId>> =
                paths.iter().map(|path| path.iter().enumerate().map(number).collect()).collect();
            let format = Format { payload: Bytes(7), header: Bytes(1), ..defaults() };
            let mut left = size;
            let mut packets: Vec<_> = (0..format.packets(Bytes(size)) as usize)
                .map(|packet| {
                    let payload = Bytes(left.min(7));
                    left -= payload.0;
                    (Duration::ZERO, &paths[choices[packet] % paths.len()], payload + Bytes(1))
                })
                .collect();
            for at in 0..3 {
                packets.sort_by_key(|(arrival, ..)| *arrival);
                let mut departed = [Duration::ZERO; 9];
                for (arrival, path, bytes) in &mut packets {
                    let (rate, delay) = hop(&path[at]);
                    let departed = &mut departed[path[at] as usize];
                    *departed = (*arrival).max(*departed) + format.transmission_time(rate, *bytes);
                    *arrival = *departed + delay;
                }
            }
            let fct = packets.iter().map(|(arrival, ..)| *arrival).max().unwrap();
            let all = paths.iter().map(Vec::as_slice);
            let bound = bound_of_cuts(all, hop, &format, Bytes(size));
            prop_assert!(bound <= fct, "{} is more than {}", bound, fct);
        }
    }

    #[test]
    fn links_side_by_side_share_the_packets() {
        // 800 ns each way, and 400 ns for the last packet.
        let times = [Duration::from_nanos(800), Duration::from_nanos(400)];
        let links: Vec<_> = (0..4).map(|link| (link, times)).collect();
        assert_eq!(least_times(&links, 8), [2 * 800, 2 * 800 + 400].map(Duration::from_nanos));
        assert_eq!(least_times(&links, 9), [3 * 800; 2].map(Duration::from_nanos));
        let half = [Duration::from_nanos(1600), Duration::from_nanos(800)];
        let unlike = least_times(&[(0, times), (1, half)], 300);
        assert_eq!(unlike, [Duration::from_nanos(200 * 800) - Duration(1); 2]);
    }
}
