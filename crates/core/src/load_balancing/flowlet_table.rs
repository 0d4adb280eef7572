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
    /// Number of entries at which those that have ended are removed.
    purge_at: usize,
}

impl FlowletTable {
    /// Returns an empty table. A flowlet ends when no packet has arrived for longer than `gap`.
    pub(super) fn new(gap: Duration) -> Self {
        Self { gap, flowlets: FxHashMap::default(), purge_at: 64 }
    }

    /// Returns the link of the flowlet to which a packet belongs, if that has not ended and is one of
    /// `links`; otherwise the link that `choose` returns for a new flowlet. It receives the link of the
    /// last one, if that is known and one of `links`.
    pub(super) fn link(
        &mut self,
        packet: &Packet,
        now: Time,
        links: &[LinkId],
        choose: impl FnOnce(Option<LinkId>) -> LinkId,
    ) -> LinkId {
        if self.flowlets.len() >= self.purge_at {
            let gap = self.gap;
            self.flowlets.retain(|_, flowlet| now.since(flowlet.last_packet) <= gap);
            self.purge_at = 64.max(2 * self.flowlets.len());
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
