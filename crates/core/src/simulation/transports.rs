//! Transports of a run by class of flows.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::units::Duration;
use crate::model::host_clock::PortShare;
use crate::model::packet::Format;
use crate::transport::controllers::Config as Transport;
use crate::transport::{Mechanism, selectors};

/// Transport of a class.
pub(super) struct ClassTransport<'a> {
    /// Configuration.
    pub(super) config: &'a Transport,
    /// Options of sender and receiver.
    pub(super) mechanism: Arc<Mechanism>,
}

/// Transports of a run.
pub struct Transports<'a> {
    /// The default transport, then all others.
    all: Vec<ClassTransport<'a>>,
    /// Index into `all` by class.
    index_by_class: Vec<usize>,
    /// Selector of entropy values, if hosts choose paths.
    pub(super) entropy: Option<&'a selectors::Config>,
    /// Base RTT of the network's longest path.
    pub(super) base_rtt: Duration,
}

impl<'a> Transports<'a> {
    /// Assigns each class the transport with its name in `others`, or else `default`. Flows have
    /// `port_share` of their hosts' ports, and hosts choose paths by `entropy` if it is given.
    pub fn new(
        default: &'a Transport,
        others: &'a BTreeMap<String, Transport>,
        classes: &[String],
        format: &Format,
        port_share: PortShare,
        entropy: Option<&'a selectors::Config>,
        base_rtt: Duration,
    ) -> Self {
        let all = std::iter::once(default).chain(others.values());
        let all = all.map(|transport| {
            let mut mechanism = transport.mechanism(format);
            if mechanism.turns.is_none() {
                mechanism.port_share = port_share;
            }
            mechanism.returns_entropy |= entropy.is_some();
            ClassTransport { config: transport, mechanism: Arc::new(mechanism) }
        });
        let index = |class| others.keys().position(|name| name == class).map_or(0, |i| i + 1);
        Self {
            all: all.collect(),
            index_by_class: classes.iter().map(index).collect(),
            entropy,
            base_rtt,
        }
    }

    /// Number of a class's transport, and of all transports.
    pub(super) fn index_of(&self, class: u16) -> (usize, usize) {
        (self.index_by_class[usize::from(class)], self.all.len())
    }

    /// Transport of a class.
    pub(super) fn of_class(&self, class: u16) -> &ClassTransport<'a> {
        &self.all[self.index_by_class[usize::from(class)]]
    }
}
