//! Link emulator on the local kernel: runs flows over the kernel's TCP, through a link with
//! computed delays and drops.
//!
//! Reads a `Job` as JSON from the standard input, and writes lines of JSON: `Progress` at
//! intervals, and an `Outcome` at the end. An error is one line on the standard error. The purpose
//! is described in docs/validation.md, "On your own kernel".

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
            // If this fails, the error cannot be reported.
            let _ = writeln!(io::stderr(), "{message}");
            ExitCode::FAILURE
        }
    }
}
