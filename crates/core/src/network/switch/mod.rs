//! Shared state of a switch: its buffer, traffic classes and PFC deadlock detection.

mod buffering;
pub mod config;
pub mod pause_timers;
pub mod pause_watchdog;
pub mod shared_buffer;
pub mod traffic_classes;
