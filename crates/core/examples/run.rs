//! Runs a scenario file and prints its summary: for profilers, which want no Python in the way.
//!
//! `cargo run --release --example run -- ../../examples/dctcp_dumbbell.toml`

use std::sync::atomic::AtomicBool;

use serde_json::Value;
use sojourn_core::parameters::Parameter;
use sojourn_core::scenario::Scenario;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("give a scenario file")?;
    let value: Value = toml::from_str(&std::fs::read_to_string(file)?)?;
    let results = Scenario::read(&value)?.run(&AtomicBool::new(false))?;
    let mut output = std::io::stdout();
    for part in ["counts", "engine"] {
        serde_json::to_writer_pretty(&mut output, &results.summary[part])?;
    }
    Ok(())
}
