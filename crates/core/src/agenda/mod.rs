//! What is pending: events, by time, then by what happens.

pub mod event;
pub mod schedule;

pub use event::Event;
pub use schedule::Schedule;

/// The pending events of a simulation.
pub type Agenda = Schedule<Event>;
