//! Parking lot: several bottlenecks in a row, shared by one long path and many short paths.

use super::{Extent, Graph, LoadReference, Topology};
use crate::base::schema::{Problem, positive, positive_if_given};
use crate::base::units::{Duration, Rate};

crate::parameters! {
    /// A chain of switches. One pair of hosts communicates over the whole chain, and one pair over
    /// each link of it.
    ///
    /// Hosts are numbered sources first. Host 0 is `long_source` at the first switch; host 1 + i is
    /// `source<i>` at switch i. With k bottlenecks, host k + 1 is `long_target` at the last switch;
    /// host k + 2 + i is `target<i>` at switch i + 1. Each source is opposite its own target. A
    /// load of 1 fills the bottlenecks: they carry two of k + 1 shares of the traffic each, one over
    /// the whole chain and one over their own link.
    pub struct Config {
        /// Number of bottleneck links in the chain.
        pub bottlenecks: u32 = 3,
            where |k| if (1..=1000).contains(k) { Ok(()) } else { Err("from 1 to 1000") };
        /// Rate of the bottlenecks.
        pub rate: Rate = Rate::from_gbps(10), where positive;
        /// Propagation delay of the bottlenecks.
        pub delay: Duration = Duration::from_micros(1);
        /// Rate of the access links, if different from `rate`.
        pub access_rate: Option<Rate> = None, where positive_if_given;
        /// Propagation delay of the access links, if different from `delay`.
        pub access_delay: Option<Duration> = None;
    }
}

impl Topology for Config {
    fn graph(&self, _seed: u64) -> Result<Graph, Problem> {
        let k = self.bottlenecks as usize;
        // One of k + 1 senders sends over all bottlenecks, each other one over one of them: a bottleneck
        // carries two shares of the traffic.
        let rate = Rate(self.rate.0 * (u64::from(self.bottlenecks) + 1) / 2);
        let what = "each bottleneck, which two of the senders share".to_owned();
        let mut graph = Graph::new(LoadReference { rate, what });
        let switches: Vec<_> = (0..=k).map(|i| graph.add_switch(format!("switch{i}"))).collect();
        for pair in switches.windows(2) {
            graph.connect(pair[0], pair[1], self.rate, self.delay);
        }
        let rate = self.access_rate.unwrap_or(self.rate);
        let delay = self.access_delay.unwrap_or(self.delay);
        let mut attach = |name: String, switch: usize| {
            let host = graph.add_host(name);
            graph.connect(host, switches[switch], rate, delay);
        };
        attach("long_source".to_owned(), 0);
        for i in 0..k {
            attach(format!("source{i}"), i);
        }
        attach("long_target".to_owned(), k);
        for i in 0..k {
            attach(format!("target{i}"), i + 1);
        }
        graph.senders = Some(self.bottlenecks + 1);
        Ok(graph)
    }

    fn extent(&self) -> Result<Extent, Problem> {
        let access = self.access_delay.unwrap_or(self.delay);
        let delay = access * 2 + self.delay * u64::from(self.bottlenecks);
        let access_rate = self.access_rate.unwrap_or(self.rate);
        Ok(Extent::new(delay, [(self.rate, self.bottlenecks), (access_rate, 2)]))
    }
}
