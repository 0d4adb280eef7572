//! Counters of all links over time, in bins that grow with the run.
//!
//! When all bins are full, the next ones are twice as long, and the full ones are merged in pairs once a
//! longer bin has content. So the table depends on what happened only, not on the time at which a partition
//! notices the end of the run.

use crate::base::units::{Duration, Time};
use crate::model::graph::LinkId;
use crate::network::port::Port;
use crate::network::port::counters::PortTotals;

/// Length of the first bins.
const FIRST_BIN: Duration = Duration::from_micros(1);

/// Counters of a link in a bin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    bin: u32,
    link: LinkId,
    /// Differences of the totals.
    totals: PortTotals,
    /// Largest backlog.
    peak: u64,
}

impl Row {
    /// Adds the counters of the same link in another bin, or in another partition.
    fn add(&mut self, other: &Self) {
        self.totals = self.totals.plus(other.totals);
        self.peak = self.peak.max(other.peak);
    }
}

/// Counters of all links over time.
pub struct LinkSeries {
    /// Most bins.
    bins: u64,
    /// Length of the bin in progress, and its start.
    reading: Duration,
    start: Time,
    /// Length of the bins of the rows.
    bin: Duration,
    /// By bin, then by link.
    rows: Vec<Row>,
    /// Totals of all ports at the start of the bin in progress.
    before: Box<[PortTotals]>,
    /// Largest backlogs of all ports before that.
    peaks: Box<[u64]>,
}

impl LinkSeries {
    /// Returns the empty table of a network of `links` links, with up to `bins` bins.
    pub fn new(links: usize, bins: u32) -> Self {
        Self {
            bins: u64::from(bins),
            reading: FIRST_BIN,
            start: Time::ZERO,
            bin: FIRST_BIN,
            rows: Vec::new(),
            before: vec![PortTotals::default(); links].into(),
            peaks: vec![0; links].into(),
        }
    }

    /// Returns the end of the bin in progress.
    pub fn next_end(&self) -> Time {
        self.start + self.reading
    }

    /// Reads the counters of all ports, at the end of a bin or of the run.
    pub fn read(&mut self, ports: &mut [Port], now: Time) {
        let first = self.rows.len();
        let bin = (self.start.0 / self.reading.0) as u32;
        for (link, port) in (0..).zip(ports) {
            let index = link as usize;
            let (totals, peak) = port.take_totals(now);
            let difference = totals.since(self.before[index]);
            if difference != PortTotals::default() || peak > 0 {
                self.rows.push(Row { bin, link, totals: difference, peak });
                self.before[index] = totals;
                self.peaks[index] = peak.max(self.peaks[index]);
            }
        }
        if self.rows.len() > first {
            let mut new = self.rows.split_off(first);
            self.merge_bins(self.reading);
            self.rows.append(&mut new);
        }
        self.start = now;
        if now.0 / self.reading.0 >= self.bins {
            self.reading = self.reading * 2;
        }
    }

    /// Merges bins until they have this length.
    fn merge_bins(&mut self, length: Duration) {
        while self.bin < length {
            self.bin = self.bin * 2;
            let mut merged = Vec::with_capacity(self.rows.len());
            for pair in self.rows.chunk_by(|one, other| one.bin / 2 == other.bin / 2) {
                let (first, second) =
                    pair.split_at(pair.partition_point(|row| row.bin.is_multiple_of(2)));
                merge(first, second, &mut merged);
            }
            for row in &mut merged {
                row.bin /= 2;
            }
            self.rows = merged;
        }
    }

    /// Adds the counters of another partition, which were read at the same times.
    pub fn absorb(&mut self, mut other: Self) {
        let length = self.bin.max(other.bin);
        self.merge_bins(length);
        other.merge_bins(length);
        let mut merged = Vec::with_capacity(self.rows.len() + other.rows.len());
        let (mut own, mut others) = (&self.rows[..], &other.rows[..]);
        while let Some(bin) = own.iter().chain(others).map(|row| row.bin).min() {
            let (first, rest) = own.split_at(own.partition_point(|row| row.bin == bin));
            let (second, others_rest) =
                others.split_at(others.partition_point(|row| row.bin == bin));
            merge(first, second, &mut merged);
            (own, others) = (rest, others_rest);
        }
        self.rows = merged;
        for (own, other) in self.before.iter_mut().zip(&other.before) {
            *own = own.plus(*other);
        }
        for (own, other) in self.peaks.iter_mut().zip(&other.peaks) {
            *own = (*own).max(*other);
        }
    }

    /// Ends the table at the end of the run, and gives the ports their largest backlogs back.
    pub fn finish(mut self, ports: &mut [Port], now: Time) -> Series {
        self.read(ports, now);
        for (port, peak) in ports.iter_mut().zip(&self.peaks) {
            port.counters.queue_max = *peak;
        }
        self.rows.sort_by_key(|row| (row.link, row.bin));
        let mut series = Series { bin_ps: self.bin.0, ..Series::default() };
        for Row { bin, link, totals, peak } in self.rows {
            let start = u64::from(bin) * self.bin.0;
            let lasted = self.bin.0.min(now.0.saturating_sub(start)).max(1);
            series.link.push(link);
            series.bin.push(bin);
            series.bytes.push(totals.bytes);
            series.queue_mean_bytes.push(totals.queue_area as f64 / lasted as f64);
            series.queue_max_bytes.push(peak);
            series.marks.push(totals.marked as u32);
            series.drops.push(totals.dropped as u32);
            series.losses.push(totals.lost as u32);
            series.paused_ps.push(totals.paused.0);
        }
        series
    }
}

/// Merges two lists of rows by link: rows of the same link are added to the first.
fn merge(first: &[Row], second: &[Row], merged: &mut Vec<Row>) {
    let mut second = second.iter().peekable();
    for row in first {
        while let Some(other) = second.next_if(|other| other.link < row.link) {
            merged.push(*other);
        }
        let mut row = *row;
        if let Some(other) = second.next_if(|other| other.link == row.link) {
            row.add(other);
        }
        merged.push(row);
    }
    merged.extend(second);
}

/// Counters of links over time as columns, a row for each link and bin in which anything happened.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Length of a bin in picoseconds.
    pub bin_ps: u64,
    /// Link.
    pub link: Vec<LinkId>,
    /// Number of the bin.
    pub bin: Vec<u32>,
    /// Bytes whose transmission started.
    pub bytes: Vec<u64>,
    /// Mean backlog in bytes.
    pub queue_mean_bytes: Vec<f64>,
    /// Largest backlog in bytes.
    pub queue_max_bytes: Vec<u64>,
    /// Packets that were marked.
    pub marks: Vec<u32>,
    /// Packets that the queue or the shared buffer dropped.
    pub drops: Vec<u32>,
    /// Packets that the link lost.
    pub losses: Vec<u32>,
    /// Time for which the port was paused, over all traffic classes.
    pub paused_ps: Vec<u64>,
}
