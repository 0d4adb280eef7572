//! Flow sizes from an empirical cumulative distribution function (CDF).

use std::sync::OnceLock;

use super::{FlowSizes, SizeDistribution, sum_of_packets};
use crate::base::random::Random;
use crate::base::schema::table::at;
use crate::base::schema::{File, Problem, positive_if_given};
use crate::base::units::Bytes;
use crate::model::packet::Format;

crate::choices! {
    /// Published flow size distributions; each file names its source.
    pub enum PublishedTable {
        /// Web search, in bytes; mean 1.711 MB.
        WebSearch = "web_search",
        /// Web search, in packets; mean 1141.4 packets.
        WebSearchPackets = "web_search_packets",
        /// Data mining, in packets; mean 5116.9 packets.
        DataMining = "data_mining",
        /// Facebook's Hadoop cluster, in bytes; mean 120.4 KB.
        FbHadoop = "fb_hadoop",
        /// Facebook's web servers, in bytes; mean 66.1 KB.
        WebServer = "web_server",
        /// Facebook's cache followers, in bytes; mean 712.6 KB.
        CacheFollower = "cache_follower",
        /// Alibaba's distributed storage, in bytes; mean 40.9 KB.
        AliStorage = "ali_storage",
        /// University data centres, in packets; mean 134.1 packets.
        Imc10 = "imc10",
        /// W1 of [homa18], exact sizes in bytes: Facebook's memcached; mean 187.5 B.
        HomaW1 = "homa_w1",
        /// W2 of [homa18], exact sizes in bytes: Google's search; mean 441 B.
        HomaW2 = "homa_w2",
        /// W3 of [homa18], exact sizes in bytes: all RPCs of Google; mean 2.93 KB.
        HomaW3 = "homa_w3",
        /// W4 of [homa18], exact sizes in bytes: Facebook's Hadoop cluster; mean 127.8 KB.
        HomaW4 = "homa_w4",
        /// W5 of [homa18], exact sizes in bytes: web search in packets of 1442 B; mean 2.52 MB.
        HomaW5 = "homa_w5",
    }
}

crate::choices! {
    /// Unit of the sizes of a CDF.
    pub enum SizeUnit {
        /// Bytes.
        Bytes = "bytes",
        /// Packets.
        Packets = "packets",
    }
}

crate::parameters! {
    /// An empirical CDF, linear between its points.
    ///
    /// A file has one row per point, separated by commas or white space: `size cumulative`, in
    /// bytes, or ns-2's `packets 1 cumulative`. An optional first line, `bytes,cumulative` or
    /// `packets,cumulative`, selects the unit, or `unit` does. Three columns without either count
    /// packets, with a warning: some tools count bytes there. The last cumulative value is 1, or 100
    /// for percent. The probability at or below the first point, and of each vertical step, belongs
    /// to exactly that size. Lines that start with `#` are comments.
    pub struct Config {
        /// Name of a published distribution.
        pub table: Option<PublishedTable> = None;
        /// A CDF file, instead of `table`.
        pub file: Option<File> = None;
        /// Unit of the sizes in `file`; if not given, that of its first line, or else bytes for two
        /// columns and packets for three.
        pub unit: Option<SizeUnit> = None;
        /// Payload of one packet of a CDF in packets; if not given, the payload of the scenario's
        /// packets.
        pub packet: Option<Bytes> = None, where positive_if_given;
        /// If true, sizes are rounded up to whole packets; if not given, true for a CDF in packets.
        pub whole_packets: Option<bool> = None;
    }
    check |config| {
        if config.table.is_some() == config.file.is_some() {
            return Err(Problem::new("table", "give either `table` or `file`"));
        }
        if config.unit.is_some() && config.file.is_none() {
            return Err(Problem::new("unit", "goes with `file`, not with `table`"));
        }
        config.points().map(|_| ())
    }
}

impl PublishedTable {
    fn text(self) -> &'static str {
        match self {
            Self::WebSearch => include_str!("../cdf/web_search.csv"),
            Self::WebSearchPackets => include_str!("../cdf/web_search_packets.csv"),
            Self::DataMining => include_str!("../cdf/data_mining.csv"),
            Self::FbHadoop => include_str!("../cdf/fb_hadoop.csv"),
            Self::WebServer => include_str!("../cdf/web_server.csv"),
            Self::CacheFollower => include_str!("../cdf/cache_follower.csv"),
            Self::AliStorage => include_str!("../cdf/ali_storage.csv"),
            Self::Imc10 => include_str!("../cdf/imc10.csv"),
            Self::HomaW1 => include_str!("../cdf/homa_w1.csv"),
            Self::HomaW2 => include_str!("../cdf/homa_w2.csv"),
            Self::HomaW3 => include_str!("../cdf/homa_w3.csv"),
            Self::HomaW4 => include_str!("../cdf/homa_w4.csv"),
            Self::HomaW5 => include_str!("../cdf/homa_w5.csv"),
        }
    }

    /// Returns the CDF. It is parsed once, since every run reads it several times.
    fn cdf(self) -> &'static CdfTable {
        static CDFS: [OnceLock<CdfTable>; PublishedTable::WORDS.len()] =
            [const { OnceLock::new() }; PublishedTable::WORDS.len()];
        CDFS[self as usize].get_or_init(|| {
            let cdf = CdfTable::parse("a published distribution", self.text())
                .expect("unit tests read all published distributions");
            if self.is_discrete() { cdf.into_steps() } else { cdf }
        })
    }

    /// Returns true if the table lists exact sizes, so that its CDF is a step function.
    fn is_discrete(self) -> bool {
        matches!(self, Self::HomaW1 | Self::HomaW2 | Self::HomaW3 | Self::HomaW4 | Self::HomaW5)
    }
}

impl Config {
    fn points(&self) -> Result<CdfTable, Problem> {
        match (&self.table, &self.file) {
            (_, Some(file)) => {
                let mut table = CdfTable::parse(&file.name, &file.text)?;
                if let Some(unit) = self.unit {
                    let in_packets = unit == SizeUnit::Packets;
                    if table.named_unit.is_some_and(|named| named != unit) {
                        let message =
                            format!("the first line of {} names the other unit", file.name);
                        return Err(Problem::new("unit", message));
                    }
                    table.in_packets = in_packets;
                    table.named_unit = Some(unit);
                }
                Ok(table)
            }
            (Some(table), None) => Ok(table.cdf().clone()),
            (None, None) => unreachable!("checked when the scenario is read"),
        }
    }
}

impl FlowSizes for Config {
    fn distribution(&self, format: &Format) -> Result<Box<dyn SizeDistribution>, Problem> {
        let CdfTable { mut points, in_packets, .. } = self.points()?;
        let packet = self.packet.unwrap_or(format.payload);
        let step = if self.whole_packets.unwrap_or(in_packets) { packet } else { Bytes(1) };
        let unit = if in_packets { packet } else { Bytes(1) };
        for point in &mut points {
            point.size *= unit.0 as f64 / step.0 as f64;
        }
        Ok(Box::new(Empirical { points, step }))
    }

    fn warning(&self, format: &Format) -> Option<String> {
        let name = &self.file.as_ref()?.name;
        let table = self.points().ok().filter(|table| table.named_unit.is_none())?;
        if !table.in_packets {
            return None;
        }
        let (packet, mean) =
            (self.packet.unwrap_or(format.payload), self.distribution(format).ok()?.mean());
        Some(format!(
            "the first of three columns of {name} counts packets of {packet}, as in ns-2 (mean \
             {mean:.0} B); give `unit = \"packets\"`, or `unit = \"bytes\"`"
        ))
    }
}

/// A point of a CDF.
#[derive(Clone, Copy, Debug)]
struct CdfPoint {
    size: f64,
    cumulative: f64,
}

/// A CDF file, with cumulative values normalised to 1.
#[derive(Clone, Debug)]
struct CdfTable {
    points: Vec<CdfPoint>,
    in_packets: bool,
    /// Unit that the file names.
    named_unit: Option<SizeUnit>,
}

impl CdfTable {
    fn parse(file: &str, text: &str) -> Result<Self, Problem> {
        let mut points: Vec<CdfPoint> = Vec::new();
        let mut columns = 0;
        let mut named_unit = None;
        let mut last = 1;
        for (line, text) in (1..).zip(text.lines()) {
            let problem = |message: &str| Err(at(file, line, message));
            let separator = |c: char| c == ',' || c.is_whitespace();
            let cells: Vec<&str> = text.split(separator).filter(|cell| !cell.is_empty()).collect();
            match cells[..] {
                [] => continue,
                [first, ..] if first.starts_with('#') => continue,
                [unit @ ("bytes" | "packets"), "cumulative"] if points.is_empty() => {
                    let in_packets = unit == "packets";
                    named_unit = Some(if in_packets { SizeUnit::Packets } else { SizeUnit::Bytes });
                    continue;
                }
                _ => (),
            }
            let number = |cell: &&str| cell.parse::<f64>().ok().filter(|x| (0.0..1e15).contains(x));
            let Some(numbers) = cells.iter().map(number).collect::<Option<Vec<f64>>>() else {
                return problem(
                    "expected numbers from 0 to 1e15, or a first line `bytes,cumulative`",
                );
            };
            let ([size, cumulative] | [size, _, cumulative]) = numbers[..] else {
                return problem(
                    "expected `size cumulative`, or `packets 1 cumulative`; `sojourn import` converts \
                     files of other tools",
                );
            };
            if columns != 0 && columns != cells.len() {
                return problem(&format!("{} columns, but {columns} above", cells.len()));
            }
            if points.last().is_some_and(|p| size < p.size || cumulative < p.cumulative) {
                return problem("sizes and cumulative values must not fall from row to row");
            }
            (columns, last) = (cells.len(), line);
            points.push(CdfPoint { size, cumulative });
        }
        let total = match points[..] {
            [_, .., CdfPoint { size, cumulative }] if size > 0.0 => cumulative,
            _ => return Err(at(file, last, "expected two points or more, the last above size 0")),
        };
        #[expect(clippy::float_cmp, reason = "both are written out in the file")]
        if total != 1.0 && total != 100.0 {
            let message = format!("the last cumulative value must be 1 or 100, not {total}");
            return Err(at(file, last, &message));
        }
        for point in &mut points {
            point.cumulative /= total;
        }
        let in_packets = named_unit.map_or(columns == 3, |unit| unit == SizeUnit::Packets);
        Ok(Self { points, in_packets, named_unit })
    }
}

impl CdfTable {
    /// Returns the step function through the points.
    fn into_steps(self) -> Self {
        let mut below = 0.0;
        let step = |point: CdfPoint| {
            let cumulative = std::mem::replace(&mut below, point.cumulative);
            [CdfPoint { cumulative, ..point }, point]
        };
        Self { points: self.points.into_iter().flat_map(step).collect(), ..self }
    }
}

/// The distribution. Sizes are counted in steps and rounded up to whole steps.
struct Empirical {
    points: Vec<CdfPoint>,
    step: Bytes,
}

impl SizeDistribution for Empirical {
    fn sample(&self, random: &mut Random) -> Bytes {
        let uniform = random.uniform();
        let above = self.points.partition_point(|point| point.cumulative <= uniform);
        let upper = self.points[above];
        let steps = match above.checked_sub(1).map(|below| self.points[below]) {
            None => upper.size,
            Some(lower) => {
                let share = (uniform - lower.cumulative) / (upper.cumulative - lower.cumulative);
                lower.size + (upper.size - lower.size) * share
            }
        };
        Bytes((steps.ceil() as u64).max(1) * self.step.0)
    }

    fn mean_packets(&self, payload: Bytes) -> f64 {
        let first = self.points[0];
        let segments = self.points.windows(2).map(|pair| {
            let probability = pair[1].cumulative - pair[0].cumulative;
            probability * self.mean_packets_between(pair[0].size, pair[1].size, payload)
        });
        first.cumulative * self.mean_packets_between(first.size, first.size, payload)
            + segments.sum::<f64>()
    }
}

impl Empirical {
    /// Mean number of packets of a size that is uniformly distributed between two numbers of steps.
    fn mean_packets_between(&self, low: f64, high: f64, payload: Bytes) -> f64 {
        let packets = |steps: u64| (steps.max(1) * self.step.0).div_ceil(payload.0) as f64;
        if high <= low {
            return packets(low.ceil() as u64);
        }
        let (low_whole, high_whole) = (low.floor() as u64, high.floor() as u64);
        let up_to = |steps| sum_of_packets(steps, self.step, payload);
        let whole = (up_to(high_whole) - up_to(low_whole)) as f64;
        let partial = |size: f64, whole: u64| (size - whole as f64) * packets(whole + 1);
        (whole + partial(high, high_whole) - partial(low, low_whole)) / (high - low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::{Parameter, defaults};
    use serde_json::json;

    fn open(table: &str, packet: u64) -> Box<dyn SizeDistribution> {
        let config = Config::read(&json!({"table": table, "packet": format!("{packet} B")}));
        let format = defaults::<Format>();
        config.unwrap().distribution(&format).unwrap()
    }

    #[test]
    fn published_distributions_have_their_published_means() {
        let near = |value: f64, published: f64, tolerance: f64| {
            assert!((value - published).abs() <= tolerance, "{value}, published {published}");
        };
        near(open("web_search", 1000).mean(), 1.711e6, 500.0);
        near(open("web_search_packets", 1460).mean() / 1460.0, 1141.4, 0.05);
        let means = [187.5, 440.8, 2927.0, 127_797.0, 2_515_863.0];
        for (table, mean) in (1..).zip(means) {
            near(open(&format!("homa_w{table}"), 1442).mean(), mean, 5e-4 * mean);
        }
        near(open("web_search_packets", 1000).mean() / 1000.0, 1141.4, 0.05);
        near(open("data_mining", 1460).mean() / 1460.0, 5116.9, 0.05);
        near(open("fb_hadoop", 1000).mean(), 120.4e3, 50.0);
        near(open("web_server", 1000).mean(), 66.1e3, 50.0);
        near(open("cache_follower", 1000).mean(), 712.6e3, 50.0);
        near(open("ali_storage", 1000).mean(), 40.9e3, 50.0);
        // Of the points: 133.8, and half a packet for each flow of more than one, rounded up.
        near(open("imc10", 1460).mean() / 1460.0, 134.06, 0.01);
    }

    #[test]
    fn probability_atoms_and_whole_packets_are_preserved() {
        let sizes = open("web_search_packets", 1460);
        let mut random = Random::new(1, "atoms");
        let drawn: Vec<u64> = (0..100_000).map(|_| sizes.sample(&mut random).0).collect();
        assert!(drawn.iter().all(|size| size.is_multiple_of(1460) && *size >= 6 * 1460));
        let smallest = drawn.iter().filter(|size| **size == 6 * 1460).count() as f64;
        assert!((smallest / 1e5 - 0.15).abs() < 0.005, "{smallest}");
    }

    fn parse(text: &str) -> Result<Config, Problem> {
        Config::read(&json!({"file": {"name": "my.cdf", "text": text}}))
    }

    #[test]
    fn three_file_formats_give_the_same_distribution() {
        let format = Format { payload: Bytes(1), header: Bytes(0), ..defaults() };
        let forms =
            ["# bytes\n0 0\n10, 50\n\n20\t100", "0,0\n10,0.5\n20,1\n", "0 1 0\n10 1 .5\n20 1 1"];
        for text in forms {
            let mean = parse(text).unwrap().distribution(&format).unwrap().mean();
            assert!((mean - 10.5).abs() < 1e-9, "{mean} of {text}");
        }
    }

    #[test]
    fn a_table_of_three_columns_can_count_bytes_and_warns_of_packets() {
        // 0.25 * 70 + 0.5 * 110 + 0.25 * 825 = 278.75 B, between 0 and 1 more by rounding up.
        let text = "70 1 0\n70 1 0.25\n150 1 0.75\n1500 1 1\n";
        let open = |unit: Option<&str>| {
            let file = json!({"name": "sizes.tcl", "text": text});
            let unit = unit.map_or(json!("none"), |unit| json!(unit));
            let config = Config::read(&json!({"file": file, "unit": unit})).unwrap();
            let format = Format { payload: Bytes(1000), ..defaults() };
            (config.distribution(&format).unwrap().mean(), config.warning(&format))
        };
        let (bytes, warning) = open(Some("bytes"));
        assert!((278.75..279.75).contains(&bytes) && warning.is_none(), "{bytes} {warning:?}");
        let (packets, warning) = open(Some("packets"));
        assert!((278_750.0..279_750.0).contains(&packets) && warning.is_none(), "{packets}");
        let (guessed, warning) = open(None);
        assert!(guessed.to_bits() == packets.to_bits());
        assert!(warning.unwrap().starts_with("the first of three columns of sizes.tcl counts"));
    }

    #[test]
    fn errors_name_file_and_line() {
        let error = |text| parse(text).unwrap_err().to_string();
        insta::assert_snapshot!(
            [
                error(""),
                error("10 1"),
                error("0 0\n0 1"),
                error("1 0\n2 0.5\n3 0.9"),
                error("# sizes\n1 0\n\n0.5 1"),
                error("1 0.5\n2 0.4\n3 1"),
                error("-1 0\n2 1"),
                error("1 0\n2 1 1"),
                error("size cdf\n1 0\n2 1"),
                error("1 2 3 4"),
                Config::read(&json!({})).unwrap_err().to_string(),
                Config::read(&json!({"table": "websearch"})).unwrap_err().to_string(),
                Config::read(&json!({"table": "web_search", "unit": "bytes"}))
                    .unwrap_err()
                    .to_string(),
                Config::read(&json!({
                    "file": {"name": "my.cdf", "text": "bytes,cumulative\n1 0\n2 1\n"},
                    "unit": "packets",
                }))
                .unwrap_err()
                .to_string(),
            ]
            .join("\n")
        );
    }
}
