//! Runs flows over the TCP of this machine's kernel, through a link that is computed.
//!
//! It reads a `Job` as JSON on the standard input, and writes lines of JSON: `Progress` now and then, and
//! an `Outcome` at the end. What went wrong it says in one line on the error output. What it is for:
//! docs/validation.md, "On your own kernel".

#[cfg(target_os = "linux")]
mod job;

#[cfg(not(target_os = "linux"))]
mod job {
    pub(crate) fn run() -> Result<(), String> {
        Err("needs Linux".to_owned())
    }
}

use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    match job::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            // Nobody is left to be told if this fails.
            let _ = writeln!(io::stderr(), "{message}");
            ExitCode::FAILURE
        }
    }
}
