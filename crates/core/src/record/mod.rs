//! Results of a run: flow records, counters of links, FCT breakdowns, samples over time, RTTs and packets.

pub mod breakdown;
pub mod chains;
pub mod flow_columns;
pub mod gauges;
pub mod hops;
pub mod link_columns;
pub mod packets;
pub mod recorder;
pub mod recording;
pub mod rtts;
pub mod series;

pub use self::breakdown::Breakdowns;
pub use self::chains::Chains;
pub use self::flow_columns::FlowColumns;
pub use self::gauges::Gauges;
pub use self::hops::Hops;
pub use self::link_columns::LinkColumns;
pub use self::packets::{Packets, SentPackets};
pub use self::recorder::{Config, Recorder, Samples};
pub use self::recording::Record;
pub use self::series::Series;
