//! The transports of a run, and which class of flows has which.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::packet::Format;
use crate::transport::Mechanism;
use crate::transport::controllers::Config as Transport;

/// A transport, and how its sender and receiver work.
pub(super) struct Stack<'a> {
    /// The transport.
    pub(super) transport: &'a Transport,
    /// Its mechanism.
    pub(super) mechanism: Arc<Mechanism>,
}

/// The transports of a run.
pub struct Transports<'a> {
    /// That of most flows first.
    all: Vec<Stack<'a>>,
    /// By class: which of them its flows have.
    of_class: Vec<usize>,
}

impl<'a> Transports<'a> {
    /// Flows have the transport that `others` names for their class, or else `most`.
    pub fn new(
        most: &'a Transport,
        others: &'a BTreeMap<String, Transport>,
        classes: &[String],
        format: &Format,
    ) -> Self {
        let all = std::iter::once(most).chain(others.values());
        let all = all.map(|transport| {
            let mechanism = Arc::new(transport.mechanism(format));
            Stack { transport, mechanism }
        });
        let place = |class| others.keys().position(|name| name == class).map_or(0, |i| i + 1);
        Self { all: all.collect(), of_class: classes.iter().map(place).collect() }
    }

    /// What the flows of a class have.
    pub(super) fn of(&self, class: u16) -> &Stack<'a> {
        &self.all[self.of_class[usize::from(class)]]
    }
}
