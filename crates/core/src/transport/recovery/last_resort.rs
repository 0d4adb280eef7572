//! State of the retransmissions that RFC 6675 §4 calls a last resort: rules 3 and 4 of `NextSeg`.

use super::segment_set::SegmentSet;

/// State of `NextSeg`'s rules 3 and 4.
#[derive(Clone, Debug, Default)]
pub struct LastResort {
    /// Segments that rule 3 has retransmitted and that are not lost: `SetPipe` counts both transmissions.
    pub doubled: SegmentSet,
    /// True if rule 4 was applied in this recovery (`RescueRxt` is `RecoveryPoint`).
    pub is_spent: bool,
}
