//! Runs a scenario file and prints its summary: for profilers, which want no Python in the way.
//!
//! `cargo run --release --example run -- ../../examples/dctcp_dumbbell.toml`, and the number of threads behind
//! it if there are to be more than one.

use std::sync::atomic::AtomicBool;

use serde_json::Value;
use sojourn_core::parameters::Parameter;
use sojourn_core::scenario::Scenario;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("give a scenario file")?;
    let value: Value = toml::from_str(&std::fs::read_to_string(file)?)?;
    let threads = std::env::args().nth(2).map_or(Ok(1), |threads| threads.parse())?;
    let results = Scenario::read(&value)?.run_on(threads, &AtomicBool::new(false))?;
    let mut output = std::io::stdout();
    for part in ["counts", "engine"] {
        serde_json::to_writer_pretty(&mut output, &results.summary[part])?;
    }
    Ok(())
}
