//! Routers: controllers at ports that read what packets say and write what senders should know.

use crate::packet::Packet;
use crate::random::Random;
use crate::units::{Rate, Time};

pub mod rcp;
pub mod xcp;

crate::family! {
    /// Every router, by the name a scenario gives it.
    pub enum Config as dyn Design { rcp, xcp }
}

/// A kind of router.
pub trait Design {
    /// The router at one port whose link has the given rate, drawing from a stream of its own.
    fn build(&self, rate: Rate, random: Random) -> Box<dyn Router>;

    /// What a user should know of these parameters, although they are allowed.
    fn warning(&self) -> Option<String> {
        None
    }
}

/// What a router sees of its port.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// The present.
    pub now: Time,
    /// The bytes that wait; what is being sent waits no longer.
    pub waiting: u64,
}

/// A controller at a port. It may write the headers of packets that depart, and nothing else.
pub trait Router: Send {
    /// A packet has come, which the queue may yet drop.
    fn on_arrive(&mut self, packet: &Packet, now: Time);

    /// The transmission of a packet starts.
    fn on_depart(&mut self, packet: &mut Packet, view: View);

    /// When to call [`on_tick`](Self::on_tick).
    fn next_tick(&self) -> Time;

    /// The time that [`next_tick`](Self::next_tick) gave has come.
    fn on_tick(&mut self, view: View);

    /// Named numbers for traces over time; always the same names in the same order.
    fn gauges(&self) -> Vec<(&'static str, f64)>;
}
