//! Flowlets at a switch: the next hops of flows that have sent recently.

use rustc_hash::FxHashMap;

use crate::base::units::{Duration, Time};
use crate::model::graph::LinkId;
use crate::model::packet::{FlowNumber, Packet};

/// Direction of a flow: its number, and true for the answers.
type Key = (FlowNumber, bool);

#[derive(Clone, Copy, Debug)]
struct Flowlet {
    last_packet: Time,
    link: LinkId,
}

/// Table of flowlets, exact: flows do not share entries as in the hash tables of switches, and the gap is
/// measured from the last packet, not by a periodic age bit.
pub(super) struct FlowletTable {
    gap: Duration,
    flowlets: FxHashMap<Key, Flowlet>,
    /// Number of entries at which flowlets that have ended are removed; `None` if their links matter.
    purge_at: Option<usize>,
}

impl FlowletTable {
    /// Returns an empty table. A flowlet ends when no packet has arrived for longer than `gap`.
    pub(super) fn new(gap: Duration) -> Self {
        Self { purge_at: Some(64), ..Self::with_last_links(gap) }
    }

    /// Returns an empty table that remembers the link of each flow's last flowlet, however long ago.
    pub(super) fn with_last_links(gap: Duration) -> Self {
        Self { gap, flowlets: FxHashMap::default(), purge_at: None }
    }

    /// Returns the link of the flowlet to which a packet belongs, if that has not ended and is one of
    /// `links`; otherwise the link that `choose` returns for a new flowlet. It receives the link of the
    /// last one, if the table remembers it and it is one of `links`.
    pub(super) fn link(
        &mut self,
        packet: &Packet,
        now: Time,
        links: &[LinkId],
        choose: impl FnOnce(Option<LinkId>) -> LinkId,
    ) -> LinkId {
        if let Some(purge_at) = &mut self.purge_at
            && self.flowlets.len() >= *purge_at
        {
            let gap = self.gap;
            self.flowlets.retain(|_, flowlet| now.since(flowlet.last_packet) <= gap);
            *purge_at = 64.max(2 * self.flowlets.len());
        }
        let key = (packet.flow, packet.kind.is_answer());
        let last = self.flowlets.get(&key).filter(|last| links.contains(&last.link));
        let link = match last {
            Some(last) if now.since(last.last_packet) <= self.gap => last.link,
            last => choose(last.map(|last| last.link)),
        };
        self.flowlets.insert(key, Flowlet { last_packet: now, link });
        link
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::defaults;
    use crate::model::packet::{Format, Kind};

    #[test]
    fn a_table_with_last_links_remembers_them_however_many_other_flows_pass() {
        let gap = Duration::from_micros(10);
        for (mut table, is_remembered) in
            [(FlowletTable::new(gap), false), (FlowletTable::with_last_links(gap), true)]
        {
            let format: Format = defaults();
            let mut link = |flow: FlowNumber, at_us: u64, new: LinkId| {
                let (packet, mut found) = (format.control(Kind::Syn, flow, Time::ZERO), None);
                let now = Time::ZERO + Duration::from_micros(at_us);
                let choose = |last| {
                    found = last;
                    new
                };
                (table.link(&packet, now, &[3, 4, 5], choose), found)
            };
            assert_eq!(link(0, 0, 5), (5, None));
            assert_eq!(link(0, 10, 4), (5, None), "the same flowlet");
            for flow in 1..1000 {
                link(flow, 20 * u64::from(flow), 3);
            }
            assert_eq!(link(0, 30_000, 4), (4, is_remembered.then_some(5)));
        }
    }
}
