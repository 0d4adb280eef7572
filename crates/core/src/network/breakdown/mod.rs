//! Packets in the network, for the FCT breakdown and for records of flows: time in ports by cause, and fates.

pub mod hop_log;
pub mod packet_log;
pub mod packet_records;
pub mod port_activity;
