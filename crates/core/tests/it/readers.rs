//! Malformed input: for any mutation of a valid scenario or of its files, parsing and checking
//! terminate soon, with a scenario or with a one-line error that names a field, and in bounded
//! memory.
//!
//! `make fuzz-input COUNT=…` runs more inputs. A failure prints the number and the input.
#![allow(clippy::disallowed_types, reason = "how long reading takes is a part of what is tried")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use crate::common::campaign::{self, Plan};
use serde_json::{Value, json};
use sojourn_core::base::random::Random;
use sojourn_core::base::schema::{Parameter, Problem};
use sojourn_core::run::Prepared;
use sojourn_core::run::scenario::Scenario;

/// Memory limit of a run, as with `--memory`.
const MEMORY: u64 = 100_000_000;

/// Limit of the memory of all threads of this test: checking takes less than running.
const MAX_MEMORY_KB: u64 = 1_000_000;

/// Time limit for one input; nearly all take a millisecond.
const MAX_TIME: Duration = Duration::from_secs(20);

/// Maximum length of an error: field and message, if each character is an escape of six characters.
const MAX_CHARACTERS: usize = 6 * 2_300;

/// Numbers at the limits of types and beyond, and text that resembles numbers.
const EXTREMES: &[&str] = &[
    "0",
    "-0",
    "1",
    "-1",
    "0.5",
    "1e-320",
    "1e308",
    "1e400",
    "-1e308",
    "255",
    "256",
    "65535",
    "65536",
    "2147483648",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "340282366920938463463374607431768211456",
    "0.000000000001",
    "00",
    "1_000",
    "0x10",
    "NaN",
    "inf",
    "-inf",
    "1e",
    "٣",
];

/// Keywords and similar words.
const WORDS: &[&str] = &[
    "",
    "none",
    "kind",
    "file",
    "null",
    "true",
    "1 Gbps",
    "0 bps",
    "18446744 s",
    "1 ps",
    "-1 us",
    "1e30 GB",
    "1 packets",
    "999999999 packets",
    "16 EiB",
    "poisson",
    "dctcp",
    "fat_tree",
    "empirical",
    "a\nb",
    "\u{0}",
    "\u{202e}",
    "🚀",
    "\u{feff}",
    "%s{}",
    "[0]",
    "a.b.c",
];

/// Valid scenarios: all examples, with their files; scenarios with files come first.
static BASES: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/sojourn/examples");
    let entries = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path());
    let is_scenario = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "toml");
    let mut paths: Vec<PathBuf> = entries.filter(is_scenario).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let mut scenario: Value = toml::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        put_files(&mut scenario, &directory);
        scenario
    };
    let mut bases: Vec<Value> = paths.into_iter().map(read).collect();
    bases.sort_by_key(|base| !base.to_string().contains("\"text\""));
    bases
});

fn put_files(value: &mut Value, directory: &Path) {
    if let Some(name) = value.get("file").and_then(Value::as_str) {
        let text = fs::read_to_string(directory.join(name)).unwrap();
        value["file"] = json!({ "name": name, "text": text });
    }
    for child in children(value) {
        put_files(child, directory);
    }
}

fn children(value: &mut Value) -> Vec<&mut Value> {
    match value {
        Value::Array(values) => values.iter_mut().collect(),
        Value::Object(table) => table.values_mut().collect(),
        _ => Vec::new(),
    }
}

fn pick<'a, T>(random: &mut Random, choices: &'a [T]) -> &'a T {
    &choices[random.below(choices.len() as u64) as usize]
}

/// A random value inside, or the whole value.
fn random_value<'a>(random: &mut Random, value: &'a mut Value) -> &'a mut Value {
    let is_leaf = children(value).is_empty();
    if is_leaf || random.below(6) == 0 {
        return value;
    }
    let mut children = children(value);
    let child = children.swap_remove(random.below(children.len() as u64) as usize);
    random_value(random, child)
}

/// The text of a file inside, if any.
fn text_of_file<'a>(random: &mut Random, value: &'a mut Value) -> Option<&'a mut String> {
    if value.get("name").is_some()
        && let Some(Value::String(_)) = value.get("text")
    {
        let Some(Value::String(text)) = value.get_mut("text") else { return None };
        return Some(text);
    }
    let mut found: Vec<_> =
        children(value).into_iter().filter_map(|child| text_of_file(random, child)).collect();
    if found.is_empty() {
        return None;
    }
    let chosen = random.below(found.len() as u64) as usize;
    Some(found.swap_remove(chosen))
}

/// Changes one value: replaces it, deletes it, copies another value, or renames it.
fn change_value(random: &mut Random, scenario: &mut Value) {
    let other = pick(random, &BASES).clone();
    let random_value = random_value(random, scenario);
    match random.below(8) {
        0 => *random_value = json!(pick(random, WORDS)),
        1 => {
            let number = pick(random, EXTREMES);
            *random_value = serde_json::from_str(number).unwrap_or_else(|_| json!(number));
        }
        2 => {
            *random_value =
                pick(random, &[json!(null), json!([]), json!({}), json!(true), json!([[[]]])])
                    .clone();
        }
        3 => *random_value = self::random_value(random, &mut other.clone()).clone(),
        4 => {
            *random_value = json!([
                random_value.take(),
                self::random_value(random, &mut other.clone()).clone()
            ]);
        }
        5 => {
            if let Value::Object(table) = random_value {
                let keys: Vec<String> = table.keys().cloned().collect();
                let key = if keys.is_empty() { return } else { pick(random, &keys) };
                let value = table.remove(key).unwrap_or_default();
                match random.below(3) {
                    0 => (),
                    1 => drop(table.insert(mutated(random, key), value)),
                    _ => drop(table.insert((*pick(random, WORDS)).to_owned(), value)),
                }
            }
        }
        6 => {
            if let Value::Object(table) = random_value {
                let more = other.as_object().unwrap().clone();
                table.extend(more.into_iter().filter(|_| random.below(3) == 0));
            }
        }
        _ => {
            if let Value::String(text) = random_value {
                *text = mutated(random, text);
            }
        }
    }
}

/// Mutates a text: bytes, lines, fields, numbers.
fn mutated(random: &mut Random, text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let at = random.below(bytes.len() as u64 + 1) as usize;
    let to = (at + random.below(20) as usize).min(bytes.len());
    match random.below(10) {
        0 => bytes.truncate(at),
        1 => drop(bytes.drain(at..to)),
        2 => bytes.extend_from_within(at..to),
        3 => {
            let flipped = 1 << random.below(8);
            bytes[at..to].iter_mut().take(1).for_each(|byte| *byte ^= flipped);
        }
        4 => drop(bytes.splice(at..to, pick(random, WORDS).bytes())),
        5 => bytes.insert(at, *pick(random, b",\n\r\"' #{}[]=.-\t\0")),
        6 | 7 => return with_extreme(random, text),
        _ => return with_lines(random, text),
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Replaces a number or a word by an extreme value.
fn with_extreme(random: &mut Random, text: &str) -> String {
    let is_between = |sign: char| ",\n \"".contains(sign);
    let words = text.split(is_between).filter(|word| !word.is_empty()).count() as u64;
    let (mut left, mut out, mut rest) = (random.below(words.max(1)), String::new(), text);
    while let Some(start) = rest.find(|sign| !is_between(sign)) {
        let end = rest[start..].find(is_between).map_or(rest.len(), |end| start + end);
        if left == 0 {
            let unit =
                if random.below(2) == 0 { *pick(random, EXTREMES) } else { pick(random, WORDS) };
            return out + &rest[..start] + unit + &rest[end..];
        }
        left -= 1;
        out += &rest[..end];
        rest = &rest[end..];
    }
    out + rest
}

/// Doubles, repeats, swaps or drops lines.
fn with_lines(random: &mut Random, text: &str) -> String {
    let mut lines: Vec<&str> = text.split('\n').collect();
    let [one, other] = [0; 2].map(|_: u8| random.below(lines.len() as u64) as usize);
    match random.below(4) {
        0 => lines.insert(other, lines[one]),
        1 => {
            let times = *pick(random, &[2, 100, 2000]);
            let many = vec![lines[one]; times];
            lines.splice(one..=one, many);
        }
        2 => lines.swap(one, other),
        _ => drop(lines.remove(one)),
    }
    lines.join("\n")
}

/// A mutated scenario, as JSON that may be malformed itself.
fn input(number: u64) -> String {
    let random = &mut Random::new(number, "input");
    let with_files = BASES.iter().filter(|base| base.to_string().contains("\"text\"")).count();
    let bases = if random.below(2) == 0 { &BASES[..with_files] } else { &BASES[..] };
    let mut scenario = pick(random, bases).clone();
    for _ in 0..=random.below(3) {
        let in_file = random.below(2) == 0;
        match text_of_file(random, &mut scenario) {
            Some(text) if in_file => *text = mutated(random, text),
            _ => change_value(random, &mut scenario),
        }
    }
    let text = scenario.to_string();
    if random.below(8) == 0 { mutated(random, &text) } else { text }
}

/// Parses an input and checks it as `sojourn check` does.
fn read(text: &str) -> Result<Scenario, Problem> {
    let scenario = Scenario::parse(text)?;
    Prepared::new(scenario.clone()).check(Some(MEMORY))?;
    Ok(scenario)
}

fn check(number: u64) {
    let text = input(number);
    let began = Instant::now();
    let outcome = read(&text);
    let took = began.elapsed();
    assert!(took < MAX_TIME, "took {took:?}");
    match outcome {
        Ok(scenario) => {
            let shown = scenario.show();
            assert_eq!(Scenario::read(&shown).unwrap(), scenario, "is another when it was shown");
        }
        Err(problem) => {
            let line = problem.to_string();
            assert!(!problem.message.is_empty());
            let is_hidden = |sign: char| sign.is_control() || sign == '\u{202e}';
            assert!(!line.contains(is_hidden), "more than a line: {line:?}");
            assert!(line.chars().count() <= MAX_CHARACTERS, "a long line: {line}");
            let is_table =
                serde_json::from_str::<Value>(&text).is_ok_and(|value| value.is_object());
            assert!(!problem.field.is_empty() || !is_table, "no field: {line}");
        }
    }
    let taken = peak_memory_kb();
    assert!(taken <= MAX_MEMORY_KB, "{taken} KB were taken, by this or by what ran beside it");
}

/// Peak memory of this process, where the system reports it.
fn peak_memory_kb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or(0, |line| line.trim().trim_end_matches(" kB").parse().unwrap())
}

#[test]
fn malformed_input_gives_a_scenario_or_a_one_line_error() {
    let plan = Plan { name: "input", default_cases: 10_000, block: 100 };
    campaign::run(&plan, check, input);
}

#[test]
fn malformed_inputs_cover_many_errors() {
    let mut lines: Vec<String> = Vec::new();
    let mut accepted = 0;
    for number in 1..1000 {
        match read(&input(number)) {
            Ok(_) => accepted += 1,
            // Error text without the numbers that differ between inputs.
            Err(problem) => {
                lines
                    .push(problem.message.chars().filter(|c| c.is_alphabetic()).take(30).collect());
            }
        }
    }
    lines.sort();
    lines.dedup();
    assert!(lines.len() > 200, "{} kinds of problems", lines.len());
    assert!((100..500).contains(&accepted), "{accepted} of 1000 accepted");
}
