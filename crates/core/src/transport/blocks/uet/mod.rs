//! Congestion control of Ultra Ethernet Transport: the window of the sender, and credits of the receiver.

pub mod nscc;
pub mod rccc;
