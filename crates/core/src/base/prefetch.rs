//! Prefetches of memory that will be read soon.
//!
//! A program that reads a value waits for its line of memory; one that prefetches lines first waits for many
//! of them together, while it does other work (docs/performance.md).

/// Fetches the line of memory in which a value begins.
#[inline]
pub fn prefetch<T>(value: &T) {
    prefetch_at(std::slice::from_ref(value), 0);
}

/// Fetches the line of memory in which the value at an index begins, if it exists.
#[inline]
pub fn prefetch_at<T>(values: &[T], index: usize) {
    prefetch_index::prefetch_index(values, index);
}
