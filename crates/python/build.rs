//! Hashes the simulator's source, which is part of every cache key: another source, another result.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let core = workspace.join("crates/core");
    // The lock file counts too: random numbers come from a library.
    let mut files = vec![workspace.join("Cargo.lock"), core.join("Cargo.toml")];
    list(&core.join("src"), &mut files)?;
    if env::var_os("CARGO_FEATURE_QUIC").is_some() {
        let quic = workspace.join("crates/quic");
        files.push(quic.join("Cargo.toml"));
        list(&quic.join("src"), &mut files)?;
    }
    files.sort();
    let mut hasher = DefaultHasher::new();
    env::var("TARGET").unwrap_or_default().hash(&mut hasher);
    for file in &files {
        println!("cargo::rerun-if-changed={}", file.display());
        fs::read(file)?.hash(&mut hasher);
    }
    println!("cargo::rerun-if-changed={}", core.join("src").display());
    println!("cargo::rustc-env=SOJOURN_SOURCE_HASH={:016x}", hasher.finish());
    Ok(())
}

/// Adds every file under `directory`, save the snapshots of tests.
fn list(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            if !path.ends_with("snapshots") {
                list(&path, files)?;
            }
        } else {
            files.push(path);
        }
    }
    Ok(())
}
