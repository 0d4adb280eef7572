//! Files that a scenario names. The core does no input: the caller reads the files.
//!
//! A file is `{name, text}`. Texts of large files are passed separately, and `text` is then an index, so that
//! a text of a gigabyte is not copied.

use std::cell::RefCell;
use std::ops::Deref;
use std::sync::Arc;

use serde_json::{Value, json};

use super::json_schema::Definitions;
use super::{Parameter, Problem, wrong};

/// Contents of a file, shared by all its readers.
#[derive(Clone)]
pub struct Text(Arc<dyn AsRef<str> + Send + Sync>);

impl Text {
    /// Wraps the owner of a text.
    pub fn new(holder: impl AsRef<str> + Send + Sync + 'static) -> Self {
        Self(Arc::new(holder))
    }
}

impl Deref for Text {
    type Target = str;
    fn deref(&self) -> &str {
        (*self.0).as_ref()
    }
}

impl AsRef<[u8]> for Text {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl std::fmt::Debug for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes of text", self.len())
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

thread_local! {
    /// The separate texts of the scenario that is being read.
    static TEXTS: RefCell<Vec<Text>> = const { RefCell::new(Vec::new()) };
}

/// Calls `read`, which reads a scenario that has these separate texts.
pub fn with_texts<T>(texts: Vec<Text>, read: impl FnOnce() -> T) -> T {
    TEXTS.set(texts);
    let read = read();
    TEXTS.take();
    read
}

/// File that a scenario names.
#[derive(Clone, Debug, PartialEq)]
pub struct File {
    /// Name in the scenario, for error messages.
    pub name: String,
    /// Contents.
    pub text: Text,
    /// Index of a separate text.
    index: Option<usize>,
}

impl File {
    /// Creates a file with this name and these contents.
    pub fn of(name: &str, text: String) -> Self {
        Self { name: name.to_owned(), text: Text::new(text), index: None }
    }
}

impl Parameter for File {
    fn allowed() -> String {
        "the name of a file, relative to the scenario".to_owned()
    }
    fn read(value: &Value) -> Result<Self, Problem> {
        let Value::String(name) = &value["name"] else { return Err(wrong::<Self>(value)) };
        let name = name.clone();
        if let Value::String(text) = &value["text"] {
            return Ok(Self { name, text: Text::new(text.clone()), index: None });
        }
        let index = value["text"].as_u64().and_then(|number| usize::try_from(number).ok());
        let text = index.and_then(|number| TEXTS.with_borrow(|texts| texts.get(number).cloned()));
        text.map(|text| Self { name, text, index }).ok_or_else(|| wrong::<Self>(value))
    }
    fn show(&self) -> Value {
        let text = self.index.map_or_else(|| json!(*self.text), |number| json!(number));
        json!({ "name": self.name, "text": text })
    }
    fn schema(_default: Option<&Self>, _definitions: &mut Definitions) -> Value {
        json!({ "type": "string" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separate_texts_are_shared_and_shown_as_indices() {
        let beside = json!({ "name": "flows.csv", "text": 1 });
        let texts = || ["a", "b"].map(Text::new).to_vec();
        let file = with_texts(texts(), || File::read(&beside)).unwrap();
        assert_eq!((&*file.name, &*file.text), ("flows.csv", "b"));
        assert_eq!(file.show(), beside);
        let inside = json!({ "name": "flows.csv", "text": "b" });
        assert_eq!(File::read(&inside).unwrap().show(), inside);
        // The texts are available only while their scenario is read.
        assert!(File::read(&beside).is_err());
        assert!(with_texts(texts(), || File::read(&json!({ "name": "a", "text": 2 }))).is_err());
    }
}
