//! Rules of the repository that the compiler does not check: layers, citations, lengths.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The modules of the crate, from the bottom up. A module imports only modules of lower layers.
const LAYERS: &[&[&str]] = &[
    &["base"],
    &["model"],
    &["breakdown"],
    &["ideal", "load_balancing", "queueing", "router", "schedule", "topology", "traffic"],
    &["transport"],
    &["network"],
    &["record"],
    &["simulation"],
    &["run"],
    &["lib"],
];

/// Component folders below `crates`: each holds a list, one file per component, and nothing else.
const FAMILIES: &[&str] = &[
    "core/src/ideal/models",
    "core/src/load_balancing/policies",
    "core/src/model/host_clock/noise",
    "core/src/queueing/disciplines",
    "core/src/router",
    "core/src/topology",
    "core/src/traffic/collectives",
    "core/src/traffic/generators",
    "core/src/traffic/sizes",
    "core/src/transport/controllers",
    "core/src/transport/selectors",
    "fluid/src/models",
];

/// Files that exist only in test builds; they may import any module.
const TESTS: &[&str] = &["fixture", "tests"];

/// Components that build on another component; their documentation has the reason.
const BUILDS_ON: &[(&str, &str)] = &[
    ("d2tcp", "dctcp"),
    ("fast", "timely"),
    ("fq_codel", "codel"),
    ("jump_start", "tcp"),
    ("mixed", "bitmap"),
    ("patched_timely", "timely"),
    ("pias", "dctcp"),
    ("quick_start", "tcp"),
];

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Returns the sources to which the rules of citations and lengths apply.
fn sources() -> impl Iterator<Item = PathBuf> {
    ["core", "fluid"].into_iter().map(|name| repository().join("crates").join(name).join("src"))
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns every Rust file below `directory`, with its text.
fn rust_files(directory: &Path) -> Vec<(PathBuf, String)> {
    files(directory, "rs")
}

/// Returns every file below `directory` with this extension, with its text.
fn files(directory: &Path, suffix: &str) -> Vec<(PathBuf, String)> {
    let mut entries: Vec<_> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    let read_entry = |path: PathBuf| {
        if path.is_dir() {
            files(&path, suffix)
        } else if path.extension().is_some_and(|extension| extension == suffix) {
            let text = fs::read_to_string(&path).unwrap();
            vec![(path, text)]
        } else {
            Vec::new()
        }
    };
    entries.into_iter().flat_map(read_entry).collect()
}

/// Returns the module of the crate that contains a file.
fn module(file: &Path) -> String {
    let inside = file.strip_prefix(source()).unwrap();
    let first = inside.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
    first.trim_end_matches(".rs").to_owned()
}

/// Returns the file name without its extension.
fn stem(file: &Path) -> &str {
    file.file_stem().unwrap().to_str().unwrap()
}

/// Returns the text before the unit tests.
fn without_tests(text: &str) -> &str {
    text.find("#[cfg(test)]\nmod tests").map_or(text, |end| &text[..end])
}

/// Returns the names that follow `prefix` in `text`.
fn names_after<'a>(text: &'a str, prefix: &str) -> BTreeSet<&'a str> {
    let name = |rest: &'a str| {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        &rest[..end]
    };
    text.match_indices(prefix).map(|(at, _)| name(&text[at + prefix.len()..])).collect()
}

#[test]
fn modules_import_only_lower_layers() {
    let layer = |module: &str| {
        LAYERS
            .iter()
            .position(|modules| modules.contains(&module))
            .unwrap_or_else(|| panic!("`{module}` is missing from the list of layers in this test"))
    };
    // Macros are exported at the root of the crate.
    let macros = ["parameters", "family", "choices"];
    for (file, text) in rust_files(&source()) {
        let module = module(&file);
        if TESTS.contains(&stem(&file)) {
            continue;
        }
        for name in names_after(without_tests(&text), "crate::") {
            let is_allowed = name == module
                || name == "VERSION"
                || macros.contains(&name)
                || name.is_empty()
                || layer(name) < layer(&module);
            assert!(is_allowed, "{}: `{module}` must not import `{name}`", file.display());
        }
    }
}

#[test]
fn components_do_not_import_each_other() {
    for family in FAMILIES {
        let directory = repository().join("crates").join(family);
        let list = fs::read_to_string(directory.join("mod.rs")).unwrap();
        let list = &list[list.find("family!").unwrap_or_else(|| panic!("{family} has no list"))..];
        let list = &list[list.find("dyn ").unwrap()..list.find("\n}\n").unwrap()];
        let parts: BTreeSet<&str> = list[list.find('{').unwrap()..list.find('}').unwrap()]
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .filter(|word| !word.is_empty())
            .collect();
        for entry in fs::read_dir(&directory).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let is_part = name.strip_suffix(".rs").is_some_and(|name| parts.contains(name));
            // A long component has its tests in a folder of its name.
            let has_tests =
                parts.contains(&*name) && directory.join(&name).join("tests.rs").is_file();
            let is_known = is_part
                || has_tests
                || ["mod.rs", "tests", "tests.rs", "snapshots"].contains(&name.as_str());
            assert!(is_known, "{family}/{name}: not a part in the list in {family}/mod.rs");
        }
        for own in &parts {
            let file = directory.join(format!("{own}.rs"));
            let text = fs::read_to_string(&file).unwrap();
            for name in names_after(without_tests(&text), "super::") {
                let is_sibling = parts.contains(name) && name != *own;
                let builds_on = BUILDS_ON.contains(&(*own, name));
                assert!(!is_sibling || builds_on, "{}: imports its sibling {name}", file.display());
            }
        }
    }
}

/// Citation keys in a comment: letters and optionally digits, then the last two digits of a year.
fn citations(comment: &str) -> impl Iterator<Item = &str> {
    const TYPES: &[&str] = &["u16", "u32", "u64", "i16", "i32", "i64", "f32", "f64", "u128"];
    let bracketed = comment.split('[').skip(1).filter_map(|rest| rest.split_once(']'));
    bracketed.filter(|(_, after)| !after.starts_with('(')).map(|(key, _)| key).filter(|key| {
        let name = key.trim_end_matches(|c: char| c.is_ascii_digit());
        let is_word = key.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        is_word && !name.is_empty() && key.len() >= name.len() + 2 && !TYPES.contains(key)
    })
}

#[test]
fn citations_are_in_the_bibliography() {
    let bibliography = fs::read_to_string(repository().join("docs/papers.bib")).unwrap();
    let keys: BTreeSet<&str> = bibliography
        .lines()
        .filter_map(|line| line.strip_prefix('@')?.split_once('{')?.1.strip_suffix(','))
        .collect();
    let mut cited = BTreeSet::new();
    for (kind, sign) in [("rs", "//"), ("csv", "#")] {
        for (file, text) in sources().flat_map(|source| files(&source, kind)) {
            let comments = text.lines().filter_map(|line| line.split_once(sign));
            for key in comments.flat_map(|(_, comment)| citations(comment)) {
                let path = file.display();
                assert!(keys.contains(key), "{path}: [{key}] is not in docs/papers.bib");
                cited.insert(key.to_owned());
            }
        }
    }
    assert!(!cited.is_empty(), "found no citations");
}

#[test]
fn lines_and_files_are_short_and_without_open_items() {
    for directory in sources().chain([repository().join("crates/core/tests")]) {
        for (file, text) in rust_files(&directory) {
            let path = file.display();
            assert!(text.starts_with("//!"), "{path}: must start with a module comment");
            let lines = without_tests(&text).lines().count();
            assert!(lines <= 600, "{path}: {lines} lines: split the file");
            for (number, line) in (1..).zip(text.lines()) {
                let width = line.chars().count();
                assert!(width <= 110, "{path}:{number}: a line of {width} characters");
                let open_items =
                    ["TO", "FIX"].map(|a| format!("{a}{}", if a == "TO" { "DO" } else { "ME" }));
                assert!(!open_items.iter().any(|mark| line.contains(mark)), "{path}:{number}");
            }
        }
    }
}
