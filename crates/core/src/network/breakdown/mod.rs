//! Time of packets in ports, split by cause for the FCT breakdown.

pub mod packet_records;
pub mod port_activity;
