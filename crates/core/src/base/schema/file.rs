//! Files that a scenario names. The core does no input: whoever reads the scenario reads them too.
//!
//! A file is `{name, text}`. Large ones are handed over beside the scenario, where `text` is then only a
//! number: whoever holds a text of a gigabyte does not copy it from one form into the next.

use std::cell::RefCell;
use std::ops::Deref;
use std::sync::Arc;

use serde_json::{Value, json};

use super::json_schema::Definitions;
use super::{Parameter, Problem, wrong};

/// The contents of a file, held once by all who read it.
#[derive(Clone)]
pub struct Text(Arc<dyn AsRef<str> + Send + Sync>);

impl Text {
    /// Takes what holds a text.
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
    /// The texts beside the scenario that is read now.
    static BESIDE: RefCell<Vec<Text>> = const { RefCell::new(Vec::new()) };
}

/// Lets `read` read a scenario that has these texts beside it.
pub fn with_texts<T>(texts: Vec<Text>, read: impl FnOnce() -> T) -> T {
    BESIDE.set(texts);
    let read = read();
    BESIDE.take();
    read
}

/// A file that the scenario names.
#[derive(Clone, Debug, PartialEq)]
pub struct File {
    /// Name as the scenario gives it, for error messages.
    pub name: String,
    /// Contents.
    pub text: Text,
    /// Its number among the texts beside the scenario, if it is one of them.
    beside: Option<usize>,
}

impl File {
    /// A file of this name and contents.
    pub fn of(name: &str, text: String) -> Self {
        Self { name: name.to_owned(), text: Text::new(text), beside: None }
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
            return Ok(Self { name, text: Text::new(text.clone()), beside: None });
        }
        let beside = value["text"].as_u64().and_then(|number| usize::try_from(number).ok());
        let text = beside.and_then(|number| BESIDE.with_borrow(|texts| texts.get(number).cloned()));
        text.map(|text| Self { name, text, beside }).ok_or_else(|| wrong::<Self>(value))
    }
    fn show(&self) -> Value {
        let text = self.beside.map_or_else(|| json!(*self.text), |number| json!(number));
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
    fn a_text_beside_the_scenario_is_shared_and_shown_as_its_number() {
        let beside = json!({ "name": "flows.csv", "text": 1 });
        let texts = || ["a", "b"].map(Text::new).to_vec();
        let file = with_texts(texts(), || File::read(&beside)).unwrap();
        assert_eq!((&*file.name, &*file.text), ("flows.csv", "b"));
        assert_eq!(file.show(), beside);
        let inside = json!({ "name": "flows.csv", "text": "b" });
        assert_eq!(File::read(&inside).unwrap().show(), inside);
        // The texts are those of one scenario, and are gone with it.
        assert!(File::read(&beside).is_err());
        assert!(with_texts(texts(), || File::read(&json!({ "name": "a", "text": 2 }))).is_err());
    }
}
