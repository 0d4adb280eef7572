//! Conversion of a scenario's plain data into typed configuration. Errors name the field and what is allowed.
//!
//! [`parameters!`](crate::base::schema) declares a component's configuration once: the reader, the error
//! messages, the catalogue and the JSON schema derive from its doc comments, types, defaults and rules.
//! [`family!`](crate::family) declares the list of a family's components. The design documents explain why
//! this is not a serde derive.

use serde_json::{Map, Value, json};

mod file;
pub mod json_schema;
mod macros;
mod names;
mod rules;
pub(crate) mod table;
mod values;

pub use self::file::{File, Text, with_texts};
use self::json_schema::Definitions;
pub use self::names::{OtherName, choose, did_you_mean, name_here};
use self::names::{did_you_mean_field, listed};
pub use self::rules::{
    Bounds, Measure, Rule, Within, above_one, at_least_one, below_one, fraction, fraction_if_given,
    has_mean, has_mean_if_given, not_negative, not_negative_if_given, positive, positive_fraction,
    positive_fraction_if_given, positive_if_given, proper_fraction,
};

/// Error in a scenario: the path of the field, what is wrong, and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Path of the field, such as `transport.gain`; empty for the scenario as a whole.
    pub field: String,
    /// Description of the error and of the allowed values.
    pub message: String,
    kind: ProblemKind,
}

/// Kind of a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ProblemKind {
    /// A field or a value is invalid.
    Invalid,
    /// The table does not have this field.
    UnknownField {
        /// True if the message suggests a field of the same table.
        has_suggestion: bool,
        /// List of the table's fields, for the message.
        fields: String,
    },
}

impl Problem {
    /// Creates a problem with a field.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into(), kind: ProblemKind::Invalid }
    }

    /// A field that is not among the `names` of its table's fields.
    fn unknown_field(field: &str, names: &[&str]) -> Self {
        let hint = did_you_mean_field(field, names);
        let fields = if names.is_empty() {
            "there are no fields here".to_owned()
        } else {
            format!("the fields here are {}", listed(names))
        };
        Self {
            field: if field.is_empty() { "\"\"" } else { field }.to_owned(),
            message: format!("unknown field{hint} ({fields})"),
            kind: ProblemKind::UnknownField { has_suggestion: !hint.is_empty(), fields },
        }
    }

    /// Replaces the field.
    #[must_use]
    pub(crate) fn of(self, field: &str) -> Self {
        Self { field: field.to_owned(), ..self }
    }

    /// Prepends the path of the enclosing table.
    #[must_use]
    pub fn within(mut self, parent: &str) -> Self {
        self.field = match (parent, self.field.as_str()) {
            ("", field) => field.to_owned(),
            (parent, "") => parent.to_owned(),
            (parent, field) if field.starts_with('[') => format!("{parent}{field}"),
            (parent, field) => format!("{parent}.{field}"),
        };
        self
    }

    /// Adds `others`, fields that a caller reads itself, to the message of an unknown field of the outermost
    /// table.
    #[must_use]
    pub fn with_fields(mut self, others: &[&str]) -> Self {
        if let ProblemKind::UnknownField { has_suggestion, fields } = &mut self.kind
            && !self.field.contains(['.', '['])
        {
            let all = format!("{fields}, {}", listed(others));
            let hint = did_you_mean(&self.field, others.iter().copied());
            self.message = if *has_suggestion || hint.is_empty() {
                self.message.replace(&*fields, &all)
            } else {
                format!("unknown field{hint} ({all})")
            };
            *has_suggestion |= !hint.is_empty();
            *fields = all;
        }
        self
    }

    /// Adds the list whose entries have an unknown field of a table, which has the schema `table`.
    #[must_use]
    fn with_entries(mut self, table: &Value) -> Self {
        if let ProblemKind::UnknownField { has_suggestion, .. } = &mut self.kind
            && !*has_suggestion
            && let Some(list) = json_schema::list_with(table, &self.field)
        {
            *has_suggestion = true;
            self.message =
                format!("unknown field; give `{}` in each entry of `{list}`", self.field);
        }
        self
    }

    /// Adds the places where the schema `document` has a field of this name to an unknown field without a
    /// suggestion.
    #[must_use]
    pub(crate) fn with_places<'a>(mut self, document: impl FnOnce() -> &'a Value) -> Self {
        if let ProblemKind::UnknownField { has_suggestion: false, fields } = &self.kind {
            let (_, name) = self.field.rsplit_once('.').unwrap_or(("", &self.field));
            let mut places = json_schema::places(document(), name);
            places.remove(&self.field);
            if (1..=MAX_PLACES).contains(&places.len()) {
                let places: Vec<_> = places.iter().map(|place| format!("`{place}`")).collect();
                self.message =
                    format!("unknown field; there is {} ({fields})", places.join(" or "));
            }
        }
        self
    }
}

/// Most places that the message of an unknown field lists.
const MAX_PLACES: usize = 3;

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.field.is_empty() {
            write!(f, "{}: ", Shortened(&self.field, 200))?;
        }
        write!(f, "{}", Shortened(&self.message, 2_000))
    }
}

/// Text in one line, of which a long one shows only its beginning and its end: names in scenarios may contain
/// any characters.
struct Shortened<'a>(&'a str, usize);

impl std::fmt::Display for Shortened<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self(text, most) = self;
        let mut places = text.char_indices().map(|(at, _)| at);
        let (Some(head), Some(_)) = (places.nth(most / 2), places.nth(most / 2)) else {
            return in_one_line(text, f);
        };
        let tail = text.char_indices().rev().nth(most / 2).map_or(head, |(at, _)| at);
        in_one_line(&text[..head], f)?;
        f.write_str(" … ")?;
        in_one_line(&text[tail..], f)
    }
}

/// Writes a text with escapes for characters that move a terminal's cursor or are invisible.
fn in_one_line(text: &str, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
    text.chars().try_for_each(|sign| match sign {
        '"' | '\'' | '\\' => write!(f, "{sign}"),
        _ => write!(f, "{}", sign.escape_debug()),
    })
}

impl std::error::Error for Problem {}

/// Value in a scenario.
pub trait Parameter: Sized {
    /// Returns a noun phrase for the allowed values, with their unit.
    fn allowed() -> String;

    /// Reads the value.
    fn read(value: &Value) -> Result<Self, Problem>;

    /// Reads a value; missing fields are taken from `default`.
    fn read_over(default: Self, value: &Value) -> Result<Self, Problem> {
        drop(default);
        Self::read(value)
    }

    /// Returns the value as a scenario contains it.
    fn show(&self) -> Value;

    /// Returns a JSON schema of the allowed values, in which missing fields are taken from `default`.
    /// Families are added to `definitions`.
    fn schema(default: Option<&Self>, definitions: &mut Definitions) -> Value;

    /// Returns the parameters of a table.
    fn entries() -> Vec<ParameterInfo> {
        Vec::new()
    }

    /// Returns the allowed words, each with its meaning.
    fn meanings() -> Vec<(&'static str, String)> {
        Vec::new()
    }
}

/// Parameter in the catalogue.
#[derive(Clone, Debug)]
pub struct ParameterInfo {
    /// Name, with the names of the enclosing tables: `reliability.min_rto`.
    pub name: String,
    /// Allowed values, with their bounds.
    pub allowed: String,
    /// Bounds under the names of JSON schemas, such as `exclusiveMinimum`; quantities are texts with units.
    pub bounds: Option<Map<String, Value>>,
    /// Value of a parameter that is not given; `None` if it is required.
    pub default: Option<Value>,
    /// Meaning and source.
    pub about: String,
    /// Allowed words, each with its meaning.
    pub values: Vec<(&'static str, String)>,
}

impl ParameterInfo {
    /// Returns the parameter as plain data.
    fn show(&self) -> Value {
        let values = self.values.iter().map(|(word, about)| (*word, about.as_str()));
        json!({
            "name": self.name,
            "allowed": self.allowed,
            "bounds": self.bounds,
            "default": self.default,
            "about": self.about,
            "values": values.collect::<Value>(),
        })
    }
}

/// Component in the catalogue.
#[derive(Clone, Debug)]
pub struct CatalogueEntry {
    /// Name in scenarios.
    pub name: &'static str,
    /// Description with sources.
    pub about: String,
    /// Parameters, in order.
    pub entries: Vec<ParameterInfo>,
}

impl CatalogueEntry {
    /// Returns the entry as plain data.
    pub fn show(&self) -> Value {
        let parameters: Vec<Value> = self.entries.iter().map(ParameterInfo::show).collect();
        json!({ "name": self.name, "about": self.about, "parameters": parameters })
    }
}

/// Returns the table in which every parameter has its default.
///
/// # Panics
/// If a parameter is required. This is an error in the declaration.
pub fn defaults<T: Parameter>() -> T {
    match T::read(&Value::Object(Map::new())) {
        Ok(value) => value,
        Err(problem) => panic!("{problem}"),
    }
}

/// Returns the error for a value of the wrong form.
pub fn wrong<T: Parameter>(value: &Value) -> Problem {
    Problem::new("", format!("expected {}, not {value}", T::allowed()))
}

/// Parses JSON.
pub fn parse(text: &str) -> Result<Value, Problem> {
    serde_json::from_str(text).map_err(|error| {
        let message = error.to_string();
        let message = match message.strip_prefix("recursion limit exceeded") {
            Some(place) => format!("lists and tables inside each other more than 127 deep{place}"),
            None => message,
        };
        Problem::new("", message)
    })
}

/// Returns the table of a `T` in `value`, whose keys must be among `names`.
pub fn table<'a, T: Parameter>(
    value: &'a Value,
    names: &[&str],
) -> Result<&'a Map<String, Value>, Problem> {
    let Value::Object(table) = value else {
        return Err(Problem::new("", format!("expected a table, not {value}")));
    };
    match table.keys().find(|key| !names.contains(&key.as_str())) {
        None => Ok(table),
        Some(key) => {
            let problem = Problem::unknown_field(key, names);
            Err(problem.with_entries(&T::schema(None, &mut Definitions::new())))
        }
    }
}

/// Reads one field of a table. A field that is missing takes its default, or is an error.
pub fn field<T: Parameter>(
    table: &Map<String, Value>,
    name: &str,
    default: Option<T>,
    rule: Option<Rule<T>>,
) -> Result<T, Problem> {
    let value = match (table.get(name), default) {
        (Some(value), Some(default)) => T::read_over(default, value),
        (Some(value), None) => T::read(value),
        (None, Some(default)) => return Ok(default),
        (None, None) => Err(Problem::new("", format!("missing; give {}", T::allowed()))),
    };
    let value = value.map_err(|problem| problem.within(name))?;
    match rule.map(|rule| rule.check(&value)) {
        None | Some(Ok(())) => Ok(value),
        Some(Err(must)) => Err(Problem::new(name, format!("must be {must}, not {}", value.show()))),
    }
}

/// Returns the catalogue's rows for a field: its own row and, for a table, those of its fields.
pub fn entries_of<T: Parameter>(
    name: &str,
    about: &str,
    default: Option<T>,
    rule: Option<Rule<T>>,
) -> Vec<ParameterInfo> {
    let default = default.map(|value| value.show());
    let about = paragraph(about);
    let inner = T::entries();
    let of_inner = inner.into_iter().map(|entry| ParameterInfo {
        name: format!("{name}.{}", entry.name),
        default: default
            .as_ref()
            .and_then(|d| d.pointer(&pointer(&entry.name)).cloned())
            .or(entry.default),
        ..entry
    });
    let of_inner: Vec<ParameterInfo> = of_inner.collect();
    let is_shown_inside = |value: &Value| value.is_object() && !of_inner.is_empty();
    let default =
        default.map(|value| if is_shown_inside(&value) { json!("see below") } else { value });
    let allowed = match &rule {
        Some(rule) => rule.allowed(T::allowed()),
        None => T::allowed(),
    };
    let bounds = rule.and_then(|rule| rule.keywords());
    let (name, values) = (name.to_owned(), T::meanings());
    let own = ParameterInfo { name, allowed, bounds, default, about, values };
    std::iter::once(own).chain(of_inner).collect()
}

/// Returns the catalogue's entry of a table, with these of its parameters.
pub fn table_entry(name: &'static str, about: &str, entries: Vec<ParameterInfo>) -> CatalogueEntry {
    CatalogueEntry { name, about: paragraph(about), entries }
}

/// Returns the parameters of a table without those of the tables inside.
pub fn own_fields(entries: Vec<ParameterInfo>) -> Vec<ParameterInfo> {
    entries.into_iter().filter(|entry| !entry.name.contains('.')).collect()
}

/// Returns the JSON pointer of a dotted name.
fn pointer(name: &str) -> String {
    format!("/{}", name.replace('.', "/"))
}

/// Returns a doc comment as one paragraph of text.
pub fn paragraph(doc: &str) -> String {
    doc.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the first sentence of a text.
pub(crate) fn first_sentence(text: &str) -> &str {
    text.find(". ").map_or(text, |end| &text[..=end])
}

#[cfg(test)]
mod tests {
    #![expect(dead_code, unreachable_pub, reason = "the macros make what parts need")]

    use super::*;
    use crate::base::units::{Duration, Rate};

    crate::choices! {
        /// A shape.
        pub enum Shape {
            /// Round.
            Round = "round",
            /// Square.
            Square = "square",
        }
    }

    crate::parameters! {
        /// The inner table.
        pub struct Inner {
            /// A delay.
            pub delay: Duration = Duration::from_micros(5);
            /// A share.
            pub share: f64 = 0.5, where fraction;
        }
    }

    crate::parameters! {
        /// The outer table.
        pub struct Outer {
            /// A rate.
            pub rate: Rate, where positive;
            /// A shape.
            pub shape: Shape = Shape::Round;
            /// A table inside, with a default of its own.
            pub inner: Inner = Inner { delay: Duration::from_micros(7), share: 0.25 };
        }
        check |outer| {
            if outer.rate > Rate::from_gbps(100) {
                return Err(Problem::new("rate", "too fast"));
            }
            Ok(())
        }
    }

    fn error(value: &Value) -> String {
        Outer::read(value).unwrap_err().to_string()
    }

    #[test]
    fn missing_fields_of_a_table_come_from_the_outer_default() {
        let read = Outer::read(&json!({"rate": "1 Gbps", "inner": {"share": 1.0}})).unwrap();
        assert_eq!(read.inner, Inner { delay: Duration::from_micros(7), share: 1.0 });
        assert_eq!(Outer::read(&read.show()).unwrap(), read);
    }

    #[test]
    fn errors_are_one_line_with_a_field_for_any_name() {
        let line = error(&json!({"rate\n": "1 Gbps"}));
        assert!(line.starts_with("rate\\n: unknown field; did you mean `rate`?"), "{line}");
        let line = error(&json!({"shape": "\u{1b}[31m\u{202e}'é'", "rate": "1 Gbps"}));
        assert!(line.contains("[31m\\u{202e}'é'") && !line.contains(char::is_control), "{line}");
        assert!(error(&json!({"": 1})).starts_with("\"\": unknown field"));
    }

    #[test]
    fn errors_list_the_places_of_a_field_in_the_wrong_table() {
        let document = json_schema::document::<Outer>("outer", "");
        let error =
            |value: &Value| Outer::read(value).unwrap_err().with_places(|| &document).to_string();
        let line = error(&json!({"delay": "1 us", "rate": "1 Gbps"}));
        assert!(line.starts_with("delay: unknown field; there is `inner.delay` (the"), "{line}");
        let line = error(&json!({"inner": {"rate": "1 Gbps"}, "rate": "1 Gbps"}));
        assert!(line.starts_with("inner.rate: unknown field; there is `rate` (the"), "{line}");
        let line = error(&json!({"colour": "red", "rate": "1 Gbps"}));
        assert!(line.starts_with("colour: unknown field (the fields here"), "{line}");
    }

    #[test]
    fn errors_name_field_allowance_and_the_nearest_name() {
        insta::assert_snapshot!(
            [
                error(&json!({"rate": "1 Gbps", "shpae": "round"})),
                error(&json!({"rate": 10})),
                error(&json!({"rate": "0 bps"})),
                error(&json!({})),
                error(&json!({"rate": "1 Gbps", "shape": "sqare"})),
                error(&json!({"rate": "1 Gbps", "inner": {"share": 1.5}})),
                error(&json!({"rate": "1 Gbps", "inner": 3})),
                error(&json!({"rate": "200 Gbps"})),
            ]
            .join("\n")
        );
    }

    #[test]
    fn the_catalogue_shows_the_defaults_in_force() {
        let entries = Outer::entries();
        let names: Vec<_> = entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["rate", "shape", "inner", "inner.delay", "inner.share"]);
        assert_eq!(entries[3].default, Some(json!("7 us")));
        assert_eq!(entries[0].default, None);
        let shape = entries[1].show();
        assert_eq!(shape["values"], json!({ "round": "Round.", "square": "Square." }));
        assert_eq!(entries[0].show()["values"], json!({}));
    }

    #[test]
    fn the_schema_asks_for_what_has_no_default() {
        let schema = Outer::schema(None, &mut Definitions::new());
        assert_eq!(schema["required"], json!(["rate"]));
        let inner = &schema["properties"]["inner"];
        assert_eq!(inner["required"], json!([]));
        assert_eq!(inner["properties"]["delay"]["default"], json!("7 us"));
        assert_eq!(schema["properties"]["shape"]["description"], json!("A shape."));
        assert_eq!(schema["properties"]["shape"]["anyOf"][1]["const"], json!("square"));
    }
}
