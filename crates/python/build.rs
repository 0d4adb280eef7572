//! Computes the hash of the simulator's source, which is part of every cache key.

use std::path::Path;
use std::{env, io};

use sojourn_source_hash::SourceHash;

fn main() -> io::Result<()> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let lock = workspace.join("Cargo.lock");
    let mut hash = SourceHash::new(&env::var("TARGET").unwrap_or_default());
    let has_quic = env::var_os("CARGO_FEATURE_QUIC").is_some();
    for name in ["core"].into_iter().chain(has_quic.then_some("quic")) {
        let directory = workspace.join("crates").join(name);
        hash.add_crate(&directory, &lock)?;
        println!("cargo::rerun-if-changed={}", directory.join("src").display());
    }
    for file in &hash.files {
        println!("cargo::rerun-if-changed={}", file.display());
    }
    println!("cargo::rustc-env=SOJOURN_SOURCE_HASH={}", hash.finish());
    Ok(())
}
