//! Hash of the simulator's source, which is part of every cache key: a run is a pure function of scenario,
//! seed and this source.
//!
//! The hash covers what results depend on: the tokens of Rust files, the rows of data files, and the
//! versions of libraries. Comments, documentation, whitespace, test modules and file names are not part of
//! it. SHA-256 does not change with releases of the compiler.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fs, io};

use sha2::{Digest, Sha256};

mod tokens;

pub use tokens::Tokens;

/// Hash of a set of crates.
pub struct SourceHash {
    hasher: Sha256,
    /// Every file that the hash depends on, for the build system.
    pub files: Vec<PathBuf>,
}

impl SourceHash {
    /// Starts a hash with a text, such as the target of the compiler.
    pub fn new(text: &str) -> Self {
        let mut hash = Self { hasher: Sha256::new(), files: Vec::new() };
        hash.add(text.as_bytes());
        hash
    }

    /// Adds the crate in `directory`, and the libraries that it depends on, whose versions are in `lock`.
    pub fn add_crate(&mut self, directory: &Path, lock: &Path) -> io::Result<()> {
        let manifest = directory.join("Cargo.toml");
        let dependencies = dependency_section(&fs::read_to_string(&manifest)?);
        let names = dependencies.keys().map(String::as_str);
        for package in locked_packages(&fs::read_to_string(lock)?, names) {
            self.add(package.as_bytes());
        }
        for (name, settings) in &dependencies {
            self.add(name.as_bytes());
            self.add(settings.as_bytes());
        }
        self.files.extend([manifest, lock.to_owned()]);
        self.add_sources(&directory.join("src"))
    }

    /// Adds Rust files and data files below a directory, in the order of their paths.
    fn add_sources(&mut self, directory: &Path) -> io::Result<()> {
        let mut files = Vec::new();
        list(directory, &mut files)?;
        files.sort();
        let mut texts = Vec::new();
        let mut tests = BTreeSet::new();
        for file in files {
            let text = fs::read_to_string(&file)?;
            if file.extension().is_some_and(|extension| extension == "rs") {
                let tokens = Tokens::parse(&text)
                    .map_err(|error| io::Error::other(format!("{}: {error}", file.display())))?;
                tests.extend(tokens.test_modules.iter().flat_map(|name| module_files(&file, name)));
                texts.push((file, tokens.text));
            } else {
                texts.push((file, data_rows(&text)));
            }
        }
        for (file, text) in texts {
            if !tests.iter().any(|test| file.starts_with(test)) {
                self.add(text.as_bytes());
            }
            self.files.push(file);
        }
        Ok(())
    }

    /// Adds bytes with their number, so that no two sequences of additions are alike.
    fn add(&mut self, bytes: &[u8]) {
        self.hasher.update((bytes.len() as u64).to_le_bytes());
        self.hasher.update(bytes);
    }

    /// Returns the hash as 32 hexadecimal digits.
    pub fn finish(self) -> String {
        use std::fmt::Write;
        self.hasher.finalize()[..16].iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").unwrap_or_else(|_| unreachable!("a String takes all text"));
            text
        })
    }
}

/// Appends the Rust files and data files below a directory.
fn list(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "csv")
        {
            files.push(path);
        }
    }
    Ok(())
}

/// Returns the paths of a module that `file` declares, without its text: a file or a directory.
fn module_files(file: &Path, name: &str) -> [PathBuf; 2] {
    let is_root =
        ["mod", "lib", "main"].iter().any(|root| file.file_stem().is_some_and(|it| it == *root));
    let directory =
        if is_root { file.parent().unwrap_or(file).to_owned() } else { file.with_extension("") };
    [directory.join(format!("{name}.rs")), directory.join(name)]
}

/// Returns the lines of a data file without comments.
fn data_rows(text: &str) -> String {
    let rows = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    rows.flat_map(|row| [row.trim_end(), "\n"]).collect()
}

/// Returns the dependencies of a manifest with their settings. Development dependencies are not among them.
fn dependency_section(manifest: &str) -> BTreeMap<String, String> {
    let lines = manifest.lines().map(str::trim);
    let section = lines.skip_while(|line| *line != "[dependencies]").skip(1);
    let section = section.take_while(|line| !line.starts_with('['));
    let entries =
        section.filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('='));
    entries.map(|(name, settings)| (name.trim().to_owned(), settings.trim().to_owned())).collect()
}

/// Returns the entries of a lock file for these packages and all that they depend on, by name.
fn locked_packages<'a>(lock: &'a str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let entries: Vec<&str> = lock.split("[[package]]").skip(1).map(str::trim).collect();
    let mut pending: Vec<&str> = names.collect();
    let mut found = BTreeSet::new();
    while let Some(name) = pending.pop() {
        for entry in entries.iter().filter(|entry| field(entry, "name") == Some(name)) {
            // A path in the workspace has no checksum: its source is hashed.
            if field(entry, "checksum").is_some() && found.insert(*entry) {
                let (_, list) = entry.split_once("dependencies = [").unwrap_or_default();
                let quoted = list.lines().filter_map(|line| line.trim().strip_prefix('"'));
                pending.extend(quoted.filter_map(|line| line.split(['"', ' ']).next()));
            }
        }
    }
    found.into_iter().collect()
}

/// Returns a field of an entry of a lock file.
fn field<'a>(entry: &'a str, name: &str) -> Option<&'a str> {
    let line = entry.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \""))?;
    line.strip_suffix('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: &str = r#"
[[package]]
name = "one"
version = "1.0.0"
checksum = "aa"
dependencies = [
 "two",
]

[[package]]
name = "tool"
version = "3.0.0"
checksum = "cc"

[[package]]
name = "two"
version = "2.0.0"
checksum = "bb"
"#;

    /// Returns the hash of a crate with these files.
    fn hash(name: &str, files: &[(&str, &str)]) -> String {
        let directory =
            std::env::temp_dir().join(format!("source-hash-{name}-{}", std::process::id()));
        let all = [("Cargo.toml", "[dependencies]\none = \"1\"\n"), ("Cargo.lock", LOCK)];
        for (file, text) in all.iter().chain(files) {
            let path = directory.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let mut hash = SourceHash::new("target");
        hash.add_crate(&directory, &directory.join("Cargo.lock")).unwrap();
        fs::remove_dir_all(directory).unwrap();
        hash.finish()
    }

    #[test]
    fn comments_tests_and_names_of_files_do_not_change_the_hash() {
        let first = hash("a", &[("src/lib.rs", "mod b;"), ("src/b.rs", "fn f() -> u8 { 1 }")]);
        assert_eq!(first.len(), 32);
        let other = [
            ("src/lib.rs", "//! Crate.\nmod b;\n#[cfg(test)] mod tests;"),
            (
                "src/b.rs",
                "/// Doc.\nfn f()\n -> u8 { /* one */ 1 } #[cfg(test)] mod tests { fn g() {} }",
            ),
            ("src/tests.rs", "fn test() {}"),
            ("src/tests/more.rs", "fn test() {}"),
            ("src/snapshots/a.snap", "text"),
        ];
        assert_eq!(hash("b", &other), first);
        let renamed = [("src/lib.rs", "mod c;"), ("src/c.rs", "fn f() -> u8 { 1 }")];
        assert_ne!(hash("c", &renamed), first, "the declaration of the module is code");
        let moved = [("src/lib.rs", "mod b;"), ("src/b/mod.rs", "fn f() -> u8 { 1 }")];
        assert_eq!(hash("d", &moved), hash("e", &[moved[1], moved[0]]));
    }

    #[test]
    fn code_literals_data_and_libraries_change_the_hash() {
        let base =
            [("src/lib.rs", "fn f() -> &str { \"a\" }"), ("src/d.csv", "# about\nx,y\n1,2\n")];
        let first = hash("f", &base);
        assert_ne!(hash("g", &[("src/lib.rs", "fn f() -> &str { \"b\" }"), base[1]]), first);
        assert_ne!(hash("h", &[("src/lib.rs", "fn g() -> &str { \"a\" }"), base[1]]), first);
        assert_ne!(hash("i", &[base[0], ("src/d.csv", "x,y\n1,3\n")]), first);
        assert_eq!(hash("j", &[base[0], ("src/d.csv", "# other\nx,y\n1,2\n")]), first);
        let newer = LOCK.replace("2.0.0", "2.0.1");
        assert_ne!(hash("k", &[base[0], base[1], ("Cargo.lock", &newer)]), first);
        let tool = LOCK.replace("3.0.0", "3.0.1");
        assert_eq!(hash("l", &[base[0], base[1], ("Cargo.lock", &tool)]), first);
    }

    #[test]
    fn locked_packages_are_a_closure_without_development_dependencies() {
        let names: Vec<_> = locked_packages(LOCK, ["one"].into_iter())
            .into_iter()
            .filter_map(|it| field(it, "name"))
            .collect();
        assert_eq!(names, ["one", "two"]);
    }
}
