//! Flows that follow others and are yet to start.

use crate::flow::FlowSpec;

/// They stand in numbered places, which events name.
#[derive(Debug, Default)]
pub(super) struct Followers {
    places: Vec<Option<FlowSpec>>,
    empty: Vec<u32>,
}

impl Followers {
    /// Puts a flow in a place.
    pub(super) fn put(&mut self, spec: FlowSpec) -> u32 {
        if let Some(place) = self.empty.pop() {
            self.places[place as usize] = Some(spec);
            return place;
        }
        self.places.push(Some(spec));
        self.places.len() as u32 - 1
    }

    /// Takes the flow from its place.
    pub(super) fn take(&mut self, place: u32) -> FlowSpec {
        self.empty.push(place);
        let spec = self.places[place as usize].take();
        spec.unwrap_or_else(|| unreachable!("every follower has one event"))
    }

    /// Whether none is yet to start.
    pub(super) fn is_empty(&self) -> bool {
        self.empty.len() == self.places.len()
    }
}
