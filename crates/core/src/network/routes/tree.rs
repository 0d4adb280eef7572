//! Paths between two hosts as a tree, for switches that choose the next hop of each packet.
//!
//! A tree stands in the table of routes, in which a packet advances by one position per hop. Where paths
//! part, the position holds a [`branch`](BRANCH) instead of a link, and the switch moves the packet to the
//! position of the link that it chooses. The link by which the packet arrived is repeated in front of each
//! of those, so that the position before the packet's always holds its last link.

use super::{END, Routes};
use crate::model::graph::LinkId;

/// Flag of an entry that is not a link: [`END`], or a branch with the distance to its block. The block holds
/// the last link of the paths, their number of next hops and the distance from the block to each of them.
pub const BRANCH: u32 = 1 << 31;

/// Nodes at which the tree of a pair of hosts has a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branches {
    /// Nodes with several next hops.
    Several,
    /// All switches.
    All,
}

/// Next hops of a packet at a switch.
pub struct Branch {
    /// Position of the block.
    block: u32,
    /// Number of next hops.
    count: u32,
}

impl Branch {
    /// Returns the positions of the next hops.
    fn entries(&self) -> std::ops::Range<usize> {
        let first = self.block as usize + 2;
        first..first + self.count as usize
    }
}

impl Routes {
    /// Returns the branch at `position`, whose entry is `entry`.
    pub fn branch(&self, position: u32, entry: u32) -> Branch {
        let block = position + (entry & !BRANCH);
        Branch { block, count: self.hops[block as usize + 1] }
    }

    /// Returns the last link of the paths through a branch.
    pub fn last_link(&self, branch: &Branch) -> LinkId {
        self.hops[branch.block as usize]
    }

    /// Returns the links to the next hops at a branch.
    pub fn next_hops(&self, branch: &Branch) -> impl Iterator<Item = LinkId> {
        let distances = &self.hops[branch.entries()];
        distances.iter().map(|distance| self.hops[(branch.block + distance) as usize])
    }

    /// Returns the position of a next hop at a branch, by its index.
    pub fn position(&self, branch: &Branch, choice: usize) -> u32 {
        branch.block + self.hops[branch.entries().start + choice]
    }
}

/// Returns the tree of `paths`, and its number of roots: the first links, each followed by its branch.
pub(super) fn tree(mut paths: Vec<&[LinkId]>, branches: Branches) -> (Vec<u32>, u32) {
    paths.sort_unstable();
    let roots: Vec<_> = paths.chunk_by(|a, b| a[0] == b[0]).collect();
    let mut builder = Builder { entries: Vec::new(), branches };
    for root in &roots {
        builder.entries.extend([root[0][0], END]);
    }
    for (index, root) in roots.iter().enumerate() {
        builder.branch(2 * index + 1, root, 1);
    }
    (builder.entries, roots.len() as u32)
}

/// Tree under construction.
struct Builder {
    entries: Vec<u32>,
    branches: Branches,
}

impl Builder {
    /// Writes the branch of `paths`, which have their first `depth` links in common, to position `at`.
    fn branch(&mut self, at: usize, paths: &[&[LinkId]], depth: usize) {
        let first = paths[0];
        if first.len() == depth {
            self.entries[at] = END;
            return;
        }
        let next_hops: Vec<_> = paths.chunk_by(|a, b| a[depth] == b[depth]).collect();
        let block = self.entries.len();
        self.entries[at] = BRANCH | (block - at) as u32;
        self.entries.extend([first[first.len() - 1], next_hops.len() as u32]);
        self.entries.resize(block + 2 + next_hops.len(), END);
        for (choice, paths) in next_hops.into_iter().enumerate() {
            self.entries.push(first[depth - 1]);
            self.entries[block + 2 + choice] = (self.entries.len() - block) as u32;
            self.follow(paths, depth);
        }
    }

    /// Appends link number `depth` of `paths` and the links behind it up to the next branch.
    fn follow(&mut self, paths: &[&[LinkId]], mut depth: usize) {
        loop {
            let link = paths[0].get(depth).copied().unwrap_or(END);
            let is_branch = paths.iter().any(|path| path.get(depth) != paths[0].get(depth));
            if is_branch {
                break;
            }
            self.entries.push(link);
            depth += 1;
            if link == END {
                return;
            }
            if self.branches == Branches::All {
                break;
            }
        }
        let at = self.entries.len();
        self.entries.push(END);
        self.branch(at, paths, depth);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Follows all choices from `position`, and returns the paths.
    fn walk(entries: &[u32], position: usize, path: &[u32], found: &mut Vec<Vec<u32>>) {
        let entry = entries[position];
        if entry == END {
            found.push(path.to_vec());
        } else if entry & BRANCH == 0 {
            walk(entries, position + 1, &[path, &[entry]].concat(), found);
        } else {
            let block = position + (entry & !BRANCH) as usize;
            let count = entries[block + 1] as usize;
            for distance in &entries[block + 2..block + 2 + count] {
                let next = block + *distance as usize;
                assert_eq!(Some(&entries[next - 1]), path.last(), "the link of arrival");
                walk(entries, next, path, found);
            }
        }
    }

    #[test]
    fn a_tree_has_exactly_the_paths_that_it_was_made_of() {
        let parting: [&[u32]; 4] =
            [&[0, 4, 8, 12], &[0, 6, 10, 12], &[0, 4, 9, 12], &[1, 7, 9, 12]];
        let single: [&[u32]; 1] = [&[3, 5, 7]];
        for paths in [&parting[..], &single[..], &[&[2]]] {
            for branches in [Branches::Several, Branches::All] {
                let (entries, roots) = tree(paths.to_vec(), branches);
                let mut found = Vec::new();
                for root in 0..roots {
                    walk(&entries, 2 * root as usize, &[], &mut found);
                }
                let mut expected = paths.to_vec();
                expected.sort_unstable();
                assert_eq!(found, expected);
            }
        }
    }
}
