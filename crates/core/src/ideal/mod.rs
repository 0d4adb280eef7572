//! Ideals: what completion times an allocation of rates alone would give, without packets or control.

pub mod alone;
