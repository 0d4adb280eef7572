//! Gauges of the senders of recorded flows.

use crate::base::units::{Duration, Time};

/// Most values of a gauge.
const MOST: usize = 512;

/// Values of a gauge, a row for each change. When it is full, every second value goes, and later values keep
/// a distance in time.
#[derive(Clone, Debug)]
struct Gauge {
    name: &'static str,
    values: Vec<(Time, f64)>,
    /// Last change, if it is too close to the last row.
    pending: Option<(Time, f64)>,
    /// Least distance of rows.
    step: Duration,
}

impl Gauge {
    fn push(&mut self, now: Time, value: f64) {
        let (time, last) = self.pending.or(self.values.last().copied()).unwrap_or((now, f64::NAN));
        if value.to_bits() == last.to_bits() {
            return;
        }
        if let Some((kept, _)) = self.values.last()
            && now < *kept + self.step
        {
            self.pending = Some((now, value));
            return;
        }
        if let Some(pending) = self.pending.take()
            && time < now
        {
            self.add(pending);
        }
        self.add((now, value));
    }

    fn add(&mut self, row: (Time, f64)) {
        if self.values.len() == MOST {
            let mut index = 0;
            self.values.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            let spread = (row.0 - self.values[0].0) / (MOST as u64 / 2);
            self.step = (self.step * 2).max(spread);
        }
        self.values.push(row);
    }
}

/// Gauges of a sender.
#[derive(Clone, Debug, Default)]
pub struct GaugeLog(Vec<Gauge>);

impl GaugeLog {
    /// Adds the value of a gauge.
    pub fn push(&mut self, now: Time, name: &'static str, value: f64) {
        let index = self.0.iter().position(|gauge| gauge.name == name).unwrap_or_else(|| {
            let step = Duration::from_nanos(0);
            self.0.push(Gauge { name, values: Vec::new(), pending: None, step });
            self.0.len() - 1
        });
        self.0[index].push(now, value);
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
    /// Appends the gauges of a flow.
    pub fn append(&mut self, flow: u64, log: GaugeLog) {
        let mut gauges = log.0;
        gauges.sort_unstable_by_key(|gauge| gauge.name);
        for Gauge { name, values, pending, .. } in gauges {
            let number = self.names.iter().position(|other| *other == name).unwrap_or_else(|| {
                self.names.push(name);
                self.names.len() - 1
            });
            for (time, value) in values.into_iter().chain(pending) {
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

    /// Rows of a gauge with these changes.
    fn rows(changes: impl Iterator<Item = (u64, f64)>) -> Vec<(u64, f64)> {
        let (mut log, mut gauges) = (GaugeLog::default(), Gauges::default());
        changes.for_each(|(time, value)| log.push(Time(time), "window_bytes", value));
        gauges.append(7, log);
        gauges.time_ps.into_iter().zip(gauges.value).collect()
    }

    #[test]
    fn only_changes_are_kept() {
        let changes = [(1, 5.0), (2, 5.0), (3, 6.0), (9, 5.0)];
        assert_eq!(rows(changes.into_iter()), [(1, 5.0), (3, 6.0), (9, 5.0)]);
    }

    #[test]
    fn a_full_gauge_keeps_rows_over_all_the_time_and_the_last_change() {
        for count in [512, 513, 5_000, 100_000] {
            let rows = rows((0..count).map(|time| (10 * time, time as f64)));
            assert!((256..=MOST + 1).contains(&rows.len()), "{} of {count}", rows.len());
            assert_eq!((rows[0].0, rows[rows.len() - 1].0), (0, 10 * (count - 1)));
            let longest = rows.windows(2).map(|pair| pair[1].0 - pair[0].0).max();
            assert!(longest <= Some(10 * count / 60), "{longest:?} of {count}");
        }
    }
}
