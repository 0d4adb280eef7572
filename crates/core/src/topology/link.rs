//! A single link, as in textbook models and in ns-2 scripts of Internet protocols.

use super::{Bursts, Extent, Graph, LoadReference, Loss, Topology, set_varying, varying};
use crate::base::schema::{File, Problem, fraction, positive, positive_if_given};
use crate::base::units::{Duration, Rate};

/// Propagation delay without another.
const DEFAULT_DELAY: Duration = Duration::from_micros(1);

crate::parameters! {
    /// One link between two routers. The flows' endpoints are on the routers.
    ///
    /// There are no access links, and `host_queue` has no effect: a burst enters the bottleneck's queue at
    /// once, as in the ns-2 scripts of [rcp06]. The routers are `left`, which sends, and `right`. A load of
    /// 1 is the rate of the link `left->right`.
    pub struct Config {
        /// Rate of the link.
        pub rate: Rate = Rate::from_gbps(10), where positive;
        /// Rate from left to right over time, instead of `rate`.
        ///
        /// The file is either a CSV table with the columns `time_s` (from 0 on) and `rate_bps`:
        /// each rate holds until the next row, the last until the end. At a rate of 0 the link is
        /// down and keeps its queue. Or it is a trace of Mahimahi [mahimahi15], with an integer per
        /// line, in ascending order: the millisecond of one delivery opportunity of 1500 B; equal
        /// lines are several opportunities; the trace repeats after its last line. Here an
        /// opportunity is the rate that carries 1500 B in the millisecond that ends with it.
        /// Packets may have any size. Waiting packets of 1500 B depart at most 1 ms earlier than in
        /// Mahimahi, never later, and unused opportunities are lost, as in Mahimahi.
        ///
        /// A load of 1 is the mean rate of the trace (of a table, until its last row). Hosts,
        /// queues, routers, computed headrooms and the ideal FCT use the maximum rate.
        pub rate_trace: Option<File> = None;
        /// Propagation delay of the link, one way.
        pub delay: Duration = DEFAULT_DELAY;
        /// Propagation delay over time, in both directions, instead of `delay`.
        ///
        /// A CSV file with the columns `time_s` (from 0 on) and `delay_s`: each delay holds until
        /// the next row, the last until the end, for packets whose transmission ends in that time.
        /// If the delay falls, packets are not reordered: they arrive no earlier than the packets
        /// before them. Computed headrooms use the maximum delay; the ideal FCT and the base RTT, to which
        /// queues and timers may be relative, use the minimum.
        pub delay_trace: Option<File> = None;
        /// Probability that a packet is lost from left to right.
        pub loss: f64 = 0.0, where fraction;
        /// Every n-th packet from left to right is lost, instead of `loss`. This gives one loss per
        /// window cycle of TCP, as the models of its throughput assume.
        pub loss_every: Option<u64> = None, where positive_if_given;
        /// Bursty losses from left to right, instead of `loss`.
        pub bursts: Option<Bursts> = None;
        /// A CSV file of the packets that are lost from left to right, instead of `loss`. Columns:
        /// `flow` (number, as in flow records), `segment` (counted from 1 in the order of the
        /// flow's data; 0 is the SYN) and `time` (which transmission of the segment to reach the
        /// end of the link: 1 is the first, later ones are retransmissions). All other packets
        /// pass.
        pub losses: Option<File> = None;
        /// Probability that a packet is lost from right to left.
        pub ack_loss: f64 = 0.0, where fraction;
    }
    check |config| {
        if config.delay_trace.is_some() && config.delay != DEFAULT_DELAY {
            return Err(Problem::new("delay", "must be omitted: `delay_trace` defines the delay"));
        }
        Ok(())
    }
}

impl Topology for Config {
    fn graph(&self, _seed: u64) -> Result<Graph, Problem> {
        let what = "left->right".to_owned();
        let mut graph = Graph::new(LoadReference { rate: self.rate, what });
        let (left, right) = (graph.add_host("left"), graph.add_host("right"));
        let forward = graph.connect(left, right, self.rate, self.delay);
        let losses = [
            ("loss", Loss::random(self.loss)),
            ("loss_every", self.loss_every.map_or(Loss::None, Loss::Every)),
            ("bursts", self.bursts.clone().map_or(Loss::None, Loss::Bursts)),
        ];
        let files = [&self.losses, &self.rate_trace, &self.delay_trace].map(Option::as_ref);
        set_varying(&mut graph, forward, losses, files)?;
        graph.links[forward as usize + 1].loss = Loss::random(self.ack_loss);
        graph.hosts_are_routers = true;
        graph.senders = Some(1);
        Ok(graph)
    }

    fn extent(&self) -> Result<Extent, Problem> {
        let (rate, delay) = varying(
            (self.rate, self.rate_trace.as_ref()),
            (self.delay, self.delay_trace.as_ref()),
        )?;
        Ok(Extent { has_switches: false, ..Extent::new(delay, [(self.rate, 0), (rate, 1)]) })
    }
}
