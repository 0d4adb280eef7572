//! Dumbbell: senders and receivers on either side of one bottleneck link.

use super::{
    Bursts, Extent, Graph, LoadReference, Loss, Topology, positive_count, set_varying, varying,
};
use crate::base::random::Random;
use crate::base::schema::{File, Problem, fraction, positive, positive_if_given};
use crate::base::units::{Duration, Rate};

crate::parameters! {
    /// Senders on one switch, receivers on another, and one link between the switches: the
    /// bottleneck.
    ///
    /// Hosts are numbered senders first: `sender0` … then `receiver0` …; the switches are `left`
    /// and `right`. A load of 1 is the rate of the link `left->right`.
    pub struct Config {
        /// Number of hosts that send.
        pub senders: u32 = 10, where positive_count;
        /// Number of hosts that receive.
        pub receivers: u32 = 10, where positive_count;
        /// Rate of every link.
        pub rate: Rate = Rate::from_gbps(10), where positive;
        /// Propagation delay of every link, one way.
        pub delay: Duration = Duration::from_micros(1);
        /// If given, each sender's access link has its own delay, drawn uniformly between `delay`
        /// and `longest_delay`. Between opposite hosts this gives each pair its own RTT.
        pub longest_delay: Option<Duration> = None;
        /// Rate of the bottleneck, if different from `rate`.
        pub bottleneck_rate: Option<Rate> = None, where positive_if_given;
        /// Rate of the bottleneck from left to right over time, instead of `bottleneck_rate`. Same
        /// file formats and meaning as `rate_trace` of the topology `link`.
        pub rate_trace: Option<File> = None;
        /// Propagation delay of the bottleneck, if different from `delay`.
        pub bottleneck_delay: Option<Duration> = None;
        /// Propagation delay of the bottleneck over time, in both directions, instead of
        /// `bottleneck_delay`. Same file format and meaning as `delay_trace` of the topology
        /// `link`.
        pub delay_trace: Option<File> = None;
        /// Probability that the bottleneck loses a packet from left to right.
        pub loss: f64 = 0.0, where fraction;
        /// Bursty losses of the bottleneck from left to right, instead of `loss`.
        pub bursts: Option<Bursts> = None;
        /// A CSV file of the packets that the bottleneck loses from left to right, instead of
        /// `loss`. Columns: `flow` (number, as in flow records), `segment` (counted from 1 in the
        /// order of the flow's data; 0 is the SYN) and `time` (which transmission of the segment to
        /// reach the end of the link: 1 is the first, later ones are retransmissions). All other
        /// packets pass.
        pub losses: Option<File> = None;
        /// Probability that the bottleneck loses a packet from right to left.
        pub ack_loss: f64 = 0.0, where fraction;
    }
    check |dumbbell| {
        if dumbbell.longest_delay.is_some_and(|longest| longest < dumbbell.delay) {
            let message = format!("must be at least `delay`, {}", dumbbell.delay);
            return Err(Problem::new("longest_delay", message));
        }
        if dumbbell.bottleneck_delay.is_some() && dumbbell.delay_trace.is_some() {
            let message = "must be omitted: `delay_trace` defines the delay";
            return Err(Problem::new("bottleneck_delay", message));
        }
        Ok(())
    }
}

impl Topology for Config {
    fn graph(&self, seed: u64) -> Result<Graph, Problem> {
        let rate = self.bottleneck_rate.unwrap_or(self.rate);
        let mut graph = Graph::new(LoadReference { rate, what: "left->right".to_owned() });
        let (left, right) = (graph.add_switch("left"), graph.add_switch("right"));
        let bottleneck =
            graph.connect(left, right, rate, self.bottleneck_delay.unwrap_or(self.delay));
        let losses = [
            ("loss", Loss::random(self.loss)),
            ("bursts", self.bursts.clone().map_or(Loss::None, Loss::Bursts)),
        ];
        let files = [&self.losses, &self.rate_trace, &self.delay_trace].map(Option::as_ref);
        set_varying(&mut graph, bottleneck, losses, files)?;
        graph.links[bottleneck as usize + 1].loss = Loss::random(self.ack_loss);
        let mut random = Random::new(seed, "topology/delays");
        let spread = self.longest_delay.map_or(0.0, |longest| (longest - self.delay).seconds());
        for i in 0..self.senders {
            let sender = graph.add_host(format!("sender{i}"));
            let more = Duration::from_seconds(spread * random.uniform());
            graph.connect(sender, left, self.rate, self.delay + more);
        }
        for i in 0..self.receivers {
            let receiver = graph.add_host(format!("receiver{i}"));
            graph.connect(right, receiver, self.rate, self.delay);
        }
        graph.senders = Some(self.senders);
        Ok(graph)
    }

    fn extent(&self) -> Result<Extent, Problem> {
        let back = self.bottleneck_rate.unwrap_or(self.rate);
        let (rate, delay) = varying(
            (back, self.rate_trace.as_ref()),
            (self.bottleneck_delay.unwrap_or(self.delay), self.delay_trace.as_ref()),
        )?;
        let access = self.longest_delay.unwrap_or(self.delay) + self.delay;
        Ok(Extent::new(access + delay, [(self.rate, 2), (rate, 1), (back, 0)]))
    }
}
