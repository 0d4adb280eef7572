//! Building blocks of PCP: probe trains and rate compensation.

pub mod probe_train;
pub mod rate_compensation;
