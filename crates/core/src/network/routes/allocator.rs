//! Positions of routes in the table of all routes.

use super::END;
use crate::model::graph::LinkId;

/// Number of hops in a page: many more than all paths between two hosts have.
const PAGE: u32 = 1 << 18;

/// Allocator of positions for new routes. Each partition has its own pages, so that positions are valid in
/// all partitions.
pub(super) struct RouteAllocator {
    next: u32,
    left: u32,
    parts: u32,
}

impl RouteAllocator {
    /// Returns the allocator of partition `part` of `parts`.
    pub(super) fn new(part: u32, parts: u32) -> Self {
        Self { next: part * PAGE, left: PAGE, parts }
    }

    /// Allocates positions for `hops`; `len` is the number of positions in use by a single partition.
    pub(super) fn take(&mut self, hops: usize, len: usize) -> u32 {
        if self.parts == 1 {
            return len as u32;
        }
        let hops = hops as u32;
        assert!(
            hops <= PAGE,
            "two hosts have more equal-cost paths than a page of a partition holds"
        );
        if hops > self.left {
            self.next += self.left + (self.parts - 1) * PAGE;
            self.left = PAGE;
        }
        self.next += hops;
        self.left -= hops;
        self.next - hops
    }

    /// Records a change for other partitions, if there are any.
    pub(super) fn record(&self, written: &mut Vec<(u32, u32)>, first: u32, hops: usize) {
        if self.parts > 1 {
            written.push((first, hops as u32));
        }
    }
}

/// Writes `new` at `first`.
pub(super) fn copy(hops: &mut Vec<LinkId>, first: u32, new: &[LinkId]) {
    let first = first as usize;
    if first + new.len() > hops.len() {
        hops.resize(first + new.len(), END);
    }
    hops[first..first + new.len()].copy_from_slice(new);
}
