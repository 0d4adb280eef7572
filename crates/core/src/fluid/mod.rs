//! What fluid models are made of: control laws, their integration, and how stable they are.

pub mod integrator;
pub mod law;
pub mod linear;
pub mod models;

pub use self::law::{Law, Layout, Link, Loop, Past, Variable, View};
pub use self::linear::{Margin, open_loop, phase_margin};
