//! Building blocks of BBR: the path model, delivery-rate samples, filters and bounds on data in flight.

pub mod ack_aggregation;
pub mod delivery_rate;
pub mod inflight_bounds;
pub mod max_filter;
pub mod path_model;
pub mod policer;
pub mod window;
