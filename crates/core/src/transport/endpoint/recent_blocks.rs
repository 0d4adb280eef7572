//! SACK blocks that a receiver repeats (RFC 2018 §4).

use crate::model::packet::SACK_BLOCKS;
use crate::transport::recovery::segment_set::SegmentSet;

/// Blocks that ACKs reported first, as one segment of each, most recent first.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecentBlocks([u32; SACK_BLOCKS]);

/// Number that no segment has.
const NO_SEGMENT: u32 = u32::MAX;

impl Default for RecentBlocks {
    fn default() -> Self {
        Self([NO_SEGMENT; SACK_BLOCKS])
    }
}

impl RecentBlocks {
    /// Returns at most `limit` blocks of an ACK, for the segments `received` out of order: `first`, which may
    /// be empty, and the blocks that were reported most recently. A D-SACK is followed by the block that
    /// contains it (RFC 2883 §4).
    pub(super) fn blocks(
        &mut self,
        first: (u32, u32),
        received: &SegmentSet,
        limit: usize,
    ) -> [(u32, u32); SACK_BLOCKS] {
        let is_empty = first.0 >= first.1;
        let containing = received.range_of(first.0).filter(|_| !is_empty);
        if containing == Some(first) {
            self.add(first, received);
        }
        let recent = self.0.iter().filter_map(|segment| received.range_of(*segment));
        let mut blocks = [(0, 0); SACK_BLOCKS];
        let mut count = 0;
        let first = Some(first).filter(|_| !is_empty);
        for block in first.into_iter().chain(containing).chain(recent) {
            if count < limit && !blocks[..count].contains(&block) {
                blocks[count] = block;
                count += 1;
            }
        }
        blocks
    }

    /// Adds a block as the most recent, and removes blocks that have become part of it.
    fn add(&mut self, block: (u32, u32), received: &SegmentSet) {
        let is_other = |segment: &u32| received.range_of(*segment).is_some_and(|it| it != block);
        let others = self.0.into_iter().filter(is_other);
        let mut segments = std::iter::once(block.0).chain(others);
        self.0 = std::array::from_fn(|_| segments.next().unwrap_or(NO_SEGMENT));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(ranges: &[(u32, u32)]) -> SegmentSet {
        let mut received = SegmentSet::default();
        for (from, to) in ranges {
            received.insert(*from, *to);
        }
        received
    }

    #[test]
    fn blocks_are_repeated_in_the_order_of_their_last_report() {
        let mut recent = RecentBlocks::default();
        let mut blocks =
            |first, ranges: &[(u32, u32)]| recent.blocks(first, &received(ranges), SACK_BLOCKS);
        // RFC 2018 §5, case 3: every second segment is lost.
        assert_eq!(blocks((1, 2), &[(1, 2)]), [(1, 2), (0, 0), (0, 0)]);
        assert_eq!(blocks((3, 4), &[(1, 2), (3, 4)]), [(3, 4), (1, 2), (0, 0)]);
        let three = [(1, 2), (3, 4), (5, 6)];
        assert_eq!(blocks((5, 6), &three), [(5, 6), (3, 4), (1, 2)]);
        let four = [(1, 2), (3, 4), (5, 6), (7, 8)];
        assert_eq!(blocks((7, 8), &four), [(7, 8), (5, 6), (3, 4)]);
        // Segment 4 joins two blocks.
        assert_eq!(blocks((3, 6), &[(1, 2), (3, 6), (7, 8)]), [(3, 6), (7, 8), (0, 0)]);
        // A segment in order advances the cumulative acknowledgement.
        assert_eq!(blocks((0, 0), &[(3, 6), (7, 8)]), [(3, 6), (7, 8), (0, 0)]);
        assert_eq!(blocks((0, 0), &[(7, 8)]), [(7, 8), (0, 0), (0, 0)]);
    }

    #[test]
    fn a_duplicate_segment_is_followed_by_the_block_that_contains_it() {
        let mut recent = RecentBlocks::default();
        let set = received(&[(3, 6), (8, 9)]);
        recent.blocks((8, 9), &set, SACK_BLOCKS);
        // RFC 2883 §4.2.
        assert_eq!(recent.blocks((4, 5), &set, SACK_BLOCKS), [(4, 5), (3, 6), (8, 9)]);
        assert_eq!(recent.blocks((0, 1), &set, SACK_BLOCKS), [(0, 1), (8, 9), (0, 0)]);
        assert_eq!(recent.blocks((0, 1), &set, 1), [(0, 1), (0, 0), (0, 0)]);
    }
}
