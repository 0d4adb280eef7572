//! One link and nothing else: the network of textbooks, and of the ns-2 scripts of the Internet's
//! protocols.

use super::{Bursts, DelayTrace, Graph, LinkId, LoadReference, Loss, RateTrace, Topology};
use crate::base::schema::{File, Problem, fraction, positive, positive_if_given};
use crate::base::units::{Duration, Rate};

crate::parameters! {
    /// One cable between two routers, and the flows' ends on the routers themselves.
    ///
    /// There are no access links: a burst enters the bottleneck's queue at once, as in the ns-2
    /// scripts of [rcp06]. The routers are `left`, which sends, and `right`. A load of 1 is the rate
    /// of the link `left->right`.
    pub struct Config {
        /// Rate of the cable.
        pub rate: Rate = Rate::from_gbps(10), where positive;
        /// Rate from left to right over time, instead of `rate`; none for no change.
        ///
        /// A CSV file with the columns `time_s` (from 0 on) and `rate_bps`: each rate holds until
        /// the next, and the last for ever. At a rate of 0 the link is down, and what waits stays.
        /// Or a trace of Mahimahi's [mahimahi15], with a whole number a line: the millisecond at
        /// which one packet of 1500 B may be delivered, in order, equal ones for several packets;
        /// the last ends the trace, which then begins again. Here an opportunity is the rate that
        /// carries those 1500 B in the millisecond that ends with it: so it serves packets of any
        /// size, those of 1500 B that wait at most 1 ms earlier than there and never later, and
        /// what is not used is gone, as there.
        ///
        /// A load of 1 is then the mean rate over the trace (of a table, until its last row). Hosts,
        /// queues, routers and computed headrooms take the largest rate for the link's, and so does
        /// the time that a flow takes alone, which none can beat.
        pub rate_trace: Option<File> = None;
        /// Propagation delay of the cable, one way.
        pub delay: Duration = Duration::from_micros(1);
        /// Propagation delay over time, both ways, instead of `delay`; none for no change.
        ///
        /// A CSV file with the columns `time_s` (from 0 on) and `delay_s`: each delay holds until the
        /// next, and the last for ever, for the packets whose transmission ends then. Where it falls,
        /// packets do not overtake those before them, but come with the last of these. The time that
        /// a flow takes alone is that with the shortest delay, and computed headrooms are for the
        /// longest.
        pub delay_trace: Option<File> = None;
        /// Probability that a packet is lost from left to right.
        pub loss: f64 = 0.0, where fraction;
        /// Every so many-th packet from left to right is lost, instead of some at random; none for
        /// no such losses. One packet is lost in each period of a TCP's window, as its laws assume.
        pub loss_every: Option<u64> = None, where positive_if_given;
        /// Losses in bursts from left to right, instead of some at random; none for no such losses.
        pub bursts: Option<Bursts> = None;
        /// A CSV file of the packets that are lost from left to right, instead of some at random.
        /// Columns: `flow` (its number, as in flow records), `segment` (counted from 1 in the order
        /// of the flow's data; 0 is the SYN) and `time` (which of its copies that come to the end
        /// of the link: 1 is the first, more were sent again). All others pass. None for no such
        /// losses.
        pub losses: Option<File> = None;
        /// Probability that a packet is lost from right to left.
        pub ack_loss: f64 = 0.0, where fraction;
    }
}

impl Topology for Config {
    fn graph(&self, _seed: u64) -> Result<Graph, Problem> {
        let what = "left->right".to_owned();
        let mut graph = Graph::new(LoadReference { rate: self.rate, what });
        let (left, right) = (graph.add_host("left"), graph.add_host("right"));
        let forward = graph.connect(left, right, self.rate, self.delay) as usize;
        let chosen = |file| Loss::chosen("losses", file);
        graph.links[forward].loss = Loss::one_of([
            ("loss", Loss::random(self.loss)),
            ("loss_every", self.loss_every.map_or(Loss::None, Loss::Every)),
            ("bursts", self.bursts.clone().map_or(Loss::None, Loss::Bursts)),
            ("losses", self.losses.as_ref().map_or(Ok(Loss::None), chosen)?),
        ])?;
        graph.links[forward + 1].loss = Loss::random(self.ack_loss);
        if let Some(file) = &self.rate_trace {
            graph.follow(forward as LinkId, RateTrace::read("rate_trace", file)?);
        }
        if let Some(file) = &self.delay_trace {
            graph.delay_by(forward as LinkId, DelayTrace::read("delay_trace", file)?);
        }
        graph.hosts_are_routers = true;
        graph.senders = Some(1);
        Ok(graph)
    }
}
