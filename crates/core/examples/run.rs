//! Runs a scenario file and prints its summary: for profilers, which want no Python in the way.
//!
//! `cargo run --release --example run -- ../../examples/dctcp_dumbbell.toml`, behind it the number of
//! threads if there are to be more than one, and that of the network's parts if it is not the same.

use serde_json::Value;
use sojourn_core::base::run_control::RunControl;
use sojourn_core::run::scenario::Scenario;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("give a scenario file")?;
    let value: Value = toml::from_str(&std::fs::read_to_string(file)?)?;
    let number = |at| std::env::args().nth(at).map(|text| text.parse::<u32>()).transpose();
    let threads = number(2)?.unwrap_or(1);
    let parts = number(3)?.unwrap_or(threads);
    let results = Scenario::parse(&value.to_string())?.run_in_parts(
        parts,
        threads,
        &RunControl::default(),
    )?;
    let mut output = std::io::stdout();
    for part in ["counts", "engine", "memory"] {
        serde_json::to_writer_pretty(&mut output, &results.summary[part])?;
    }
    Ok(())
}
