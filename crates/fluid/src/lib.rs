//! Fluid models of congestion control: control laws, their integration, and their phase margins.

pub mod integrator;
pub mod law;
pub mod linear;
pub mod models;

pub use self::law::{Law, Layout, Link, Loop, Past, Variable, View};
pub use self::linear::{Margin, open_loop, phase_margin};
