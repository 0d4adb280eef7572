//! Ideals: the completion times that an allocation of rates alone would give, without packets or
//! control.
//!
//! Flows are fluid. A [`Service`] says at every instant at what rate each active flow is served, and
//! changes its mind only when a flow comes or leaves, at once and at no cost. What a flow needs of the
//! network besides (propagation, storing and forwarding) is added as if it were alone, so that a flow
//! that meets nobody takes exactly [`alone`](crate::model::ideal_fct::alone). Left out: losses of links,
//! acknowledgements, handshakes.
//!
//! Most ideals are an [`Allocation`], which gives all flows new rates each time. One under which a
//! change concerns few of many flows is a service of its own.

pub mod alone;
pub mod max_min;
pub mod omniscient;
pub mod processor_sharing;
pub mod srpt;

pub use crate::ideal::{Allocation, Flow, Links, Outcome, Service, Setting};

use crate::ideal::fluid_flows::{State, picoseconds};
use crate::model::flow::FlowSpec;
use crate::model::graph::LinkId;

crate::family! {
    /// Every ideal, by the name a scenario gives it.
    pub enum Config as dyn Ideal { alone, processor_sharing, srpt, max_min, omniscient }
}

/// A kind of ideal.
pub trait Ideal {
    /// Its service in a network of that many links.
    fn open(&self, links: usize) -> Box<dyn Service>;
}

/// Runs `flows`, which come in order of start, each over the links that `route` appends for it.
pub fn run(
    ideal: &dyn Ideal,
    setting: Setting<'_>,
    flows: impl IntoIterator<Item = FlowSpec>,
    mut route: impl FnMut(&FlowSpec, &mut Vec<LinkId>),
) -> Outcome {
    let mut state = State::new(setting, ideal.open(setting.graph.links.len()));
    for spec in flows.into_iter().take_while(|spec| spec.start < setting.limit) {
        state.serve_until(picoseconds(spec.start));
        state.admit(spec, &mut route);
    }
    state.serve_until(picoseconds(setting.limit));
    state.close()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::run_control::RunControl;
    use crate::base::schema::{Parameter, defaults};
    use crate::base::units::{Bytes, Duration, Rate, Time};
    use crate::ideal::fixture::{
        BARE, completions, in_turn, long_lived, no_network, one_link, run_on_link, sized,
    };
    use crate::model::flow;
    use crate::model::graph::Graph;
    use crate::model::packet::Format;
    use proptest::prelude::*;

    /// Every ideal with its defaults.
    fn ideals() -> impl Iterator<Item = Config> {
        Config::NAMES.iter().map(|name| Config::read(&(*name).into()).unwrap())
    }

    /// The ideals under which flows have to share.
    fn sharing() -> impl Iterator<Item = Config> {
        ideals().filter(|ideal| ideal.name() != "alone")
    }

    /// A chain of `rates` and delays in picoseconds; forward links are 0, 2, 4 …
    fn chain(hops: &[(u64, u64)]) -> Graph {
        let mut graph = no_network();
        let mut node = graph.add_host("source");
        for (i, (rate, delay)) in hops.iter().enumerate() {
            let next = graph.add_switch(i.to_string());
            graph.connect(node, next, Rate(*rate), Duration(*delay));
            node = next;
        }
        graph
    }

    #[test]
    fn under_alone_flows_do_not_meet() {
        let flows = [sized(0, 0, 2000), sized(1, 0, 2000), sized(2, 500_000, 1000)];
        let fcts = completions(&alone::Config {}, &one_link(), &flows);
        assert_eq!(fcts, [2000, 2000, 1000].map(Duration::from_nanos));
    }

    #[test]
    fn the_limit_cuts_flows_off_with_what_has_arrived() {
        // 1 us of delay, a byte a nanosecond, half for each: at 4 us 1500 B of each have arrived.
        let graph = chain(&[(8_000_000_000, 1_000_000)]);
        let flows = [sized(0, 0, 2000), sized(1, 0, 9000), sized(2, 4_000_000, 1)];
        let outcome = run_on_link(&max_min::Config {}, &graph, &flows, Time(4_000_000));
        let got: Vec<_> = outcome.records.iter().map(|r| (r.outcome, r.delivered.0)).collect();
        // What was lost within the last microsecond counts as lost before it.
        assert_eq!(got, [(flow::Outcome::Unfinished, 1000), (flow::Outcome::Unfinished, 1000)]);
        assert_eq!((outcome.link_bytes[0] as u64, outcome.end), (4000, Time(4_000_000)));

        let outcome = run_on_link(&max_min::Config {}, &graph, &flows, Time(5_000_000));
        assert_eq!(outcome.records[0].fct, Some(Duration::from_micros(5)));
        assert_eq!(outcome.records[0].outcome, flow::Outcome::Finished);
    }

    #[test]
    fn long_lived_flows_share_until_they_stop() {
        let flows = [long_lived(0, 0, Some(Time(3_000_000))), sized(1, 1_000_000, 2000)];
        // Half of 2 us for the long-lived flow, then the other has the link to itself.
        let outcome = run_on_link(&max_min::Config {}, &one_link(), &flows, Time::NEVER);
        let [long, short] = &outcome.records[..] else { panic!("two flows") };
        assert_eq!(
            (long.outcome, long.delivered.0, long.fct),
            (flow::Outcome::LongLived, 2000, None)
        );
        assert_eq!(short.fct, Some(Duration::from_nanos(3000)));
        assert_eq!((outcome.link_bytes[0] as u64, outcome.end), (4000, Time(4_000_000)));
    }

    #[test]
    fn a_run_without_limit_ends_when_only_endless_flows_are_left() {
        for ideal in sharing() {
            let flows = [long_lived(0, 0, None), sized(1, 0, 1000)];
            let outcome = run_on_link(&*ideal, &one_link(), &flows, Time::NEVER);
            let fct = outcome.records[1].fct.unwrap();
            assert_eq!(outcome.end, Time(fct.0), "{}", ideal.name());
            assert_eq!(outcome.link_bytes[0] as u64, fct.0 / 1000, "{}", ideal.name());
        }
    }

    proptest! {
        #[test]
        fn a_lone_flow_takes_exactly_its_ideal_time(
            hops in prop::collection::vec((1_000_000_u64..400_000_000_000, 0_u64..1_000_000), 1..6),
            size in 0_u64..10_000_000,
            start in 0_u64..1_000_000_000_000,
            header in 0_u64..60,
        ) {
            let graph = chain(&hops);
            let (payload, header, ack) = (Bytes(1460), Bytes(header), Bytes(40));
            let format = Format { payload, header, ack, ..defaults() };
            let watch = RunControl::default();
            let (graph, format, limit) = (&graph, &format, Time::NEVER);
            let setting = Setting { graph, format, limit, watch: &watch };
            let route = |_: &FlowSpec, links: &mut Vec<LinkId>| {
                links.extend((0..hops.len() as LinkId).map(|i| 2 * i));
            };
            for ideal in ideals() {
                let outcome = run(&*ideal, setting, [sized(0, start, size)], route);
                prop_assert_eq!(outcome.records[0].fct, Some(outcome.records[0].ideal_fct));
                let wire = format.on_wire(Bytes(size)).0 as f64;
                prop_assert!((outcome.link_bytes[0] - wire).abs() <= 1e-9 * wire);
            }
        }

        #[test]
        fn no_flow_beats_itself_alone_and_every_byte_is_carried(
            hops in prop::collection::vec((1_000_000_000_u64..9_000_000_000, 0_u64..1_000_000), 6),
            flows in prop::collection::vec(
                (0_u64..3_000_000, 0_u64..30_000, 0_usize..6, 1_usize..6),
                1..60,
            ),
        ) {
            let graph = chain(&hops);
            let watch = RunControl::default();
            let (graph, format, limit) = (&graph, &BARE, Time::NEVER);
            let setting = Setting { graph, format, limit, watch: &watch };
            let specs = in_turn(flows.iter().map(|(gap, size, ..)| (*gap, *size)));
            let on = |i: usize| flows[i].2..(flows[i].2 + flows[i].3).min(hops.len());
            let carried = |hop| -> u64 {
                (0..flows.len()).filter(|i| on(*i).contains(&hop)).map(|i| flows[i].1).sum()
            };
            for ideal in ideals() {
                let outcome = run(&*ideal, setting, specs.iter().copied(), |spec, links| {
                    links.extend(on(spec.id as usize).map(|hop| 2 * hop as LinkId));
                });
                for record in &outcome.records {
                    prop_assert!(record.fct.unwrap() >= record.ideal_fct, "{}", ideal.name());
                }
                for hop in 0..hops.len() {
                    let (carried, counted) = (carried(hop) as f64, outcome.link_bytes[2 * hop]);
                    prop_assert!((counted - carried).abs() <= 1e-9 * carried, "{}", ideal.name());
                }
            }
        }

        #[test]
        fn one_link_never_idles_while_a_flow_is_left(
            flows in prop::collection::vec((0_u64..2_000_000, 1_u64..3_000), 1..60),
        ) {
            let specs = in_turn(flows);
            let idle_at = specs.iter().fold(0, |idle_at, spec| {
                spec.start.0.max(idle_at) + spec.size.unwrap().0 * 1000
            });
            for ideal in sharing() {
                let end = run_on_link(&*ideal, &one_link(), &specs, Time::NEVER).end;
                prop_assert!(end.0.abs_diff(idle_at) <= 1, "{}: {end:?}, {idle_at}", ideal.name());
            }
        }
    }
}
