//! Foundations: units, products, random streams, configuration schema and run control.

pub mod prefetch;
pub mod product;
pub mod random;
pub mod run_control;
pub mod schema;
pub mod units;
