//! Gauges of the senders of recorded flows.

use crate::base::units::Time;

/// Most rows of a gauge.
const MOST: usize = 512;

/// Most rows while the run goes on. In windows a sender may do more after the end of the run; with twice the
/// room, what is dropped of it in the end changes no other row.
const CAPACITY: usize = 2 * MOST;

/// Changes of a gauge. Of those in a slot of time only the first is kept; when there are too many, slots
/// double.
#[derive(Clone, Debug)]
struct Gauge {
    name: &'static str,
    rows: Vec<(Time, f64)>,
    /// Last change.
    last: (Time, f64),
    /// Binary logarithm of a slot in picoseconds.
    slot: u32,
}

impl Gauge {
    fn push(&mut self, now: Time, value: f64) {
        if value.to_bits() == self.last.1.to_bits() {
            return;
        }
        self.last = (now, value);
        match self.rows.last_mut() {
            Some(row) if row.0 == now => row.1 = value,
            Some(row) if row.0.0 >> self.slot == now.0 >> self.slot => {}
            _ => {
                self.rows.push((now, value));
                self.thin(CAPACITY);
            }
        }
    }

    /// Doubles slots until there are at most `most` rows.
    fn thin(&mut self, most: usize) {
        while self.rows.len() > most {
            self.slot += 1;
            self.rows.dedup_by_key(|row| row.0.0 >> self.slot);
        }
    }
}

/// Gauges of a sender.
#[derive(Clone, Debug)]
pub struct GaugeLog {
    gauges: Vec<Gauge>,
    /// Time when the sender closed, after which no gauge changes.
    closed: Time,
}

impl Default for GaugeLog {
    fn default() -> Self {
        Self { gauges: Vec::new(), closed: Time::NEVER }
    }
}

impl GaugeLog {
    /// Adds the value of a gauge.
    pub fn push(&mut self, now: Time, name: &'static str, value: f64) {
        let index = self.gauges.iter().position(|gauge| gauge.name == name).unwrap_or_else(|| {
            self.gauges.push(Gauge { name, rows: Vec::new(), last: (now, f64::NAN), slot: 0 });
            self.gauges.len() - 1
        });
        self.gauges[index].push(now, value);
    }

    /// Handles the close of the sender.
    pub fn close(&mut self, now: Time) {
        self.closed = now;
    }
}

/// Gauges as columns, a row per value, sorted by flow, gauge and time.
#[derive(Clone, Debug, Default)]
pub struct Gauges {
    /// Names of the gauges.
    pub names: Vec<&'static str>,
    /// Number of the flow.
    pub flow: Vec<u64>,
    /// Time in picoseconds.
    pub time_ps: Vec<u64>,
    /// Index of the gauge's name.
    pub gauge: Vec<u32>,
    /// Value.
    pub value: Vec<f64>,
}

impl Gauges {
    /// Appends the gauges of a flow before the end of the run.
    pub fn append(&mut self, flow: u64, log: GaugeLog, ended: Time) {
        let mut gauges = log.gauges;
        gauges.sort_unstable_by_key(|gauge| gauge.name);
        for mut gauge in gauges {
            gauge.rows.retain(|row| row.0 < ended);
            gauge.thin(MOST);
            let Gauge { name, mut rows, last, .. } = gauge;
            if log.closed <= ended && rows.last().is_some_and(|row| row.0 < last.0) {
                rows.push(last);
            }
            if rows.is_empty() {
                continue;
            }
            let number = self.names.iter().position(|other| *other == name).unwrap_or_else(|| {
                self.names.push(name);
                self.names.len() - 1
            });
            for (time, value) in rows {
                self.flow.push(flow);
                self.time_ps.push(time.0);
                self.gauge.push(number as u32);
                self.value.push(value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of a gauge with these changes, in a run that ends at `ended`.
    fn rows(changes: impl Iterator<Item = (u64, f64)>, ended: u64) -> Vec<(u64, f64)> {
        let (mut log, mut gauges) = (GaugeLog::default(), Gauges::default());
        changes.for_each(|(time, value)| log.push(Time(time), "window_bytes", value));
        gauges.append(7, log, Time(ended));
        gauges.time_ps.into_iter().zip(gauges.value).collect()
    }

    #[test]
    fn only_changes_are_kept_of_an_instant_the_last() {
        let changes = [(1, 5.0), (2, 5.0), (3, 6.0), (3, 7.0), (9, 5.0)];
        assert_eq!(rows(changes.into_iter(), 10), [(1, 5.0), (3, 7.0), (9, 5.0)]);
    }

    #[test]
    fn a_full_gauge_keeps_rows_over_all_the_time() {
        for count in [512, 513, 1025, 5_000, 100_000] {
            let rows = rows((0..count).map(|time| (10 * time, time as f64)), u64::MAX);
            assert!((MOST / 2..=MOST).contains(&rows.len()), "{} of {count}", rows.len());
            assert_eq!(rows[0].0, 0);
            let longest = rows.windows(2).map(|pair| pair[1].0 - pair[0].0).max();
            assert!(longest <= Some(10 * count / 120), "{longest:?} of {count}");
        }
    }

    #[test]
    fn the_last_change_before_a_close_is_kept() {
        let (mut log, mut gauges) = (GaugeLog::default(), Gauges::default());
        (0..5000).for_each(|time| log.push(Time(time), "window_bytes", time as f64));
        log.close(Time(5000));
        gauges.append(7, log, Time::NEVER);
        assert_eq!(gauges.value.last(), Some(&4999.0));
    }

    #[test]
    fn changes_after_the_end_of_the_run_leave_no_trace() {
        for count in (1..3000).step_by(7) {
            let changes = |count| (0..count).map(|time| (10 * time, time as f64));
            let ended = 10 * count;
            assert_eq!(rows(changes(count), ended), rows(changes(count + 300), ended), "{count}");
        }
    }
}
