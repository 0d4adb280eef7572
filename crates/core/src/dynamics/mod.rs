//! What fluid models are made of: control laws, their integration, and how stable they are.

pub mod integrator;
pub mod law;
pub mod linear;

pub use law::{Law, Layout, Link, Loop, Past, Variable, View};
pub use linear::{Margin, open_loop, phase_margin};
