//! How a scenario's plain data becomes typed configuration, with errors a person can act on.
//!
//! [`parameters!`](crate::parameters) declares a part's configuration once: from its doc comments, types,
//! defaults and rules come the reader, the error messages and the catalogue of parts.
//! [`family!`](crate::family) is the list of the parts of one kind. `docs/design.md` says why this is not
//! a derive of serde's.

use serde_json::{Map, Value, json};

use crate::units::{
    Bytes, DATA_UNITS, Duration, RATE_UNITS, Rate, TIME_UNITS, Time, parse_quantity,
};

/// What is wrong with a scenario: the field, by its path, and what is allowed there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Path of the field, such as `transport.gain`; empty for the scenario as a whole.
    pub field: String,
    /// What is wrong, and what is allowed.
    pub message: String,
}

impl Problem {
    /// A problem with the field `field`.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }

    /// The same problem seen from the table that holds the field at `parent`.
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
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.field.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.field, self.message)
        }
    }
}

impl std::error::Error for Problem {}

/// A value that a scenario can give.
pub trait Parameter: Sized {
    /// What may be written, as a noun phrase with its unit.
    fn allowed() -> String;

    /// Reads the value, or says what is wrong with it.
    fn read(value: &Value) -> Result<Self, Problem>;

    /// Reads a value of which parts may be missing; those are taken from `default`.
    fn read_over(default: Self, value: &Value) -> Result<Self, Problem> {
        drop(default);
        Self::read(value)
    }

    /// The value as a scenario would give it.
    fn show(&self) -> Value;

    /// The parameters inside, if this is a table.
    fn entries() -> Vec<Entry> {
        Vec::new()
    }
}

/// One parameter in the catalogue.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Name, with the names of the tables around it: `reliability.min_rto`.
    pub name: String,
    /// What may be written.
    pub allowed: String,
    /// What stands for it if it is not given; `None` if it must be.
    pub default: Option<Value>,
    /// Meaning and source.
    pub about: String,
}

/// One part in the catalogue.
#[derive(Clone, Debug)]
pub struct Part {
    /// The name a scenario gives it.
    pub name: &'static str,
    /// What it is and where it comes from.
    pub about: String,
    /// Its parameters, in order.
    pub entries: Vec<Entry>,
}

/// The value in which every parameter has its default.
///
/// # Panics
/// If one has none: that is for whoever declared the parameters.
pub fn defaults<T: Parameter>() -> T {
    match T::read(&Value::Object(Map::new())) {
        Ok(value) => value,
        Err(problem) => panic!("{problem}"),
    }
}

/// The error for a value of the wrong form.
pub fn wrong<T: Parameter>(value: &Value) -> Problem {
    Problem::new("", format!("expected {}, not {value}", T::allowed()))
}

/// The name among `names` that `given` probably meant, as the end of a sentence; empty if none is near.
pub fn did_you_mean<'a>(given: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    names
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(given, name), name))
        .filter(|(distance, name)| *distance <= 1 + name.len() / 3)
        .min()
        .map_or_else(String::new, |(_, name)| format!("; did you mean `{name}`?"))
}

/// Joins names for an error message.
fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// The table in `value`, having only keys among `names`.
pub fn table<'a>(value: &'a Value, names: &[&str]) -> Result<&'a Map<String, Value>, Problem> {
    let Value::Object(table) = value else {
        return Err(Problem::new("", format!("expected a table, not {value}")));
    };
    match table.keys().find(|key| !names.contains(&key.as_str())) {
        None => Ok(table),
        Some(key) => {
            let hint = did_you_mean(key, names.iter().copied());
            let known = if names.is_empty() {
                "there are no fields here".to_owned()
            } else {
                format!("the fields here are {}", listed(names))
            };
            Err(Problem::new(key, format!("unknown field{hint} ({known})")))
        }
    }
}

/// Reads one field of a table: given, or by default, or an error.
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
    match rule.map(|rule| rule(&value)) {
        None | Some(Ok(())) => Ok(value),
        Some(Err(must)) => Err(Problem::new(name, format!("must be {must}, not {}", value.show()))),
    }
}

/// The part that `value` names, and its own parameters: `"name"` or `{kind = "name", …}`.
pub fn choose<'a>(value: &'a Value, names: &[&'static str]) -> Result<(&'a str, Value), Problem> {
    let (kind, rest) = match value {
        Value::String(kind) => (kind.as_str(), Value::Object(Map::new())),
        Value::Object(table) => {
            let Some(Value::String(kind)) = table.get("kind") else {
                let message = format!("missing; give one of {}", listed(names));
                return Err(Problem::new("kind", message));
            };
            let rest = table.iter().filter(|(key, _)| *key != "kind");
            (kind.as_str(), Value::Object(rest.map(|(k, v)| (k.clone(), v.clone())).collect()))
        }
        other => {
            let message = format!("expected one of {}, not {other}", listed(names));
            return Err(Problem::new("", message));
        }
    };
    if names.contains(&kind) {
        return Ok((kind, rest));
    }
    let hint = did_you_mean(kind, names.iter().copied());
    let message = format!("there is no `{kind}`{hint} (one of {})", listed(names));
    Err(Problem::new(if value.is_object() { "kind" } else { "" }, message))
}

/// A condition on a parameter's value: what it must be, if it is not.
pub type Rule<T> = fn(&T) -> Result<(), &'static str>;

/// More than nothing.
pub fn positive<T: Default + PartialOrd>(value: &T) -> Result<(), &'static str> {
    if *value > T::default() { Ok(()) } else { Err("above zero") }
}

/// More than nothing, if given at all.
pub fn positive_if_given<T: Default + PartialOrd>(value: &Option<T>) -> Result<(), &'static str> {
    value.as_ref().map_or(Ok(()), positive)
}

/// A share of one: 0 to 1.
pub fn fraction(value: &f64) -> Result<(), &'static str> {
    if (0.0..=1.0).contains(value) { Ok(()) } else { Err("from 0 to 1") }
}

/// A share of one that is not nothing: above 0, up to 1.
pub fn positive_fraction(value: &f64) -> Result<(), &'static str> {
    if *value > 0.0 && *value <= 1.0 { Ok(()) } else { Err("above 0 and at most 1") }
}

/// Zero or more.
pub fn not_negative(value: &f64) -> Result<(), &'static str> {
    if *value >= 0.0 { Ok(()) } else { Err("zero or more") }
}

macro_rules! quantity {
    ($type:ident, $units:expr, $allowed:literal) => {
        impl Parameter for $type {
            fn allowed() -> String {
                let units: Vec<_> = $units.iter().map(|(name, _)| *name).collect();
                format!("{} ({})", $allowed, units.join(", "))
            }
            fn read(value: &Value) -> Result<Self, Problem> {
                let quantity = value.as_str().and_then(|text| parse_quantity(text, $units));
                quantity.map(Self).ok_or_else(|| wrong::<Self>(value))
            }
            fn show(&self) -> Value {
                json!(self.to_string())
            }
        }
    };
}
quantity!(Time, TIME_UNITS, "a time with its unit, such as \"1 s\"");
quantity!(Duration, TIME_UNITS, "a duration with its unit, such as \"55 us\"");
quantity!(Bytes, DATA_UNITS, "an amount of data with its unit, such as \"200 KB\"");
quantity!(Rate, RATE_UNITS, "a rate with its unit, such as \"10 Gbps\"");

macro_rules! plain {
    ($type:ty, $allowed:literal, $read:expr) => {
        impl Parameter for $type {
            fn allowed() -> String {
                $allowed.to_owned()
            }
            fn read(value: &Value) -> Result<Self, Problem> {
                let read: fn(&Value) -> Option<Self> = $read;
                read(value).ok_or_else(|| wrong::<Self>(value))
            }
            fn show(&self) -> Value {
                json!(self)
            }
        }
    };
}
plain!(f64, "a number", |value| value.as_f64().filter(|number| number.is_finite()));
plain!(u64, "a whole number", Value::as_u64);
plain!(u32, "a whole number", |value| value.as_u64()?.try_into().ok());
plain!(bool, "true or false", Value::as_bool);
plain!(String, "a text", |value| value.as_str().map(str::to_owned));

/// An optional value; `"none"` says that there is none.
impl<T: Parameter> Parameter for Option<T> {
    fn allowed() -> String {
        format!("{}, or \"none\"", T::allowed())
    }
    fn read(value: &Value) -> Result<Self, Problem> {
        match value {
            Value::Null => Ok(None),
            Value::String(text) if text == "none" => Ok(None),
            value => T::read(value).map(Some),
        }
    }
    fn read_over(default: Self, value: &Value) -> Result<Self, Problem> {
        match default {
            Some(default) if value.is_object() => T::read_over(default, value).map(Some),
            _ => Self::read(value),
        }
    }
    fn show(&self) -> Value {
        self.as_ref().map_or_else(|| json!("none"), Parameter::show)
    }
    fn entries() -> Vec<Entry> {
        T::entries()
    }
}

impl<T: Parameter> Parameter for Vec<T> {
    fn allowed() -> String {
        format!("a list, each {}", T::allowed())
    }
    fn read(value: &Value) -> Result<Self, Problem> {
        let Value::Array(items) = value else { return Err(wrong::<Self>(value)) };
        let read = |(i, item)| T::read(item).map_err(|problem| problem.within(&format!("[{i}]")));
        items.iter().enumerate().map(read).collect()
    }
    fn show(&self) -> Value {
        Value::Array(self.iter().map(Parameter::show).collect())
    }
    fn entries() -> Vec<Entry> {
        T::entries()
    }
}

/// A file that the scenario names. The core does no input: whoever reads the scenario reads the file
/// too, and hands on `{name, text}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Name as the scenario gives it, for error messages.
    pub name: String,
    /// Contents.
    pub text: String,
}

impl Parameter for File {
    fn allowed() -> String {
        "the name of a file, relative to the scenario".to_owned()
    }
    fn read(value: &Value) -> Result<Self, Problem> {
        match (&value["name"], &value["text"]) {
            (Value::String(name), Value::String(text)) => {
                Ok(Self { name: name.clone(), text: text.clone() })
            }
            _ => Err(wrong::<Self>(value)),
        }
    }
    fn show(&self) -> Value {
        json!({ "name": self.name, "text": self.text })
    }
}

/// Declares the configuration of a part: a struct whose fields are [`Parameter`]s, each with a doc
/// comment and, unless it must be given, a default; `where rule` bounds a value, and `check function`
/// after the struct holds fields against each other.
#[macro_export]
macro_rules! parameters {
    (
        $(#[doc = $about:literal])+
        pub struct $name:ident {
            $(
                $(#[doc = $doc:literal])+
                pub $field:ident : $type:ty $(= $default:expr)? $(, where $rule:expr)?;
            )*
        }
        $(check $check:expr)?
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $( $(#[doc = $doc])+ pub $field: $type, )*
        }

        impl $name {
            /// What this is and where it comes from.
            pub const ABOUT: &'static str = concat!($($about, "\n"),+);

            #[doc(hidden)]
            #[expect(clippy::allow_attributes, reason = "whether there are fields depends on the part")]
            #[allow(unused_variables, unused_mut)]
            fn read_from(default: Option<Self>, value: &serde_json::Value)
                -> Result<Self, $crate::parameters::Problem>
            {
                let table = $crate::parameters::table(value, &[$(stringify!($field)),*])?;
                let read = Self {
                    $( $field: $crate::parameters::field::<$type>(
                        table,
                        stringify!($field),
                        default.as_ref().map(|default| default.$field.clone())
                            .or_else(|| $crate::parameters!(@default $($default)?)),
                        $crate::parameters!(@rule $($rule)?),
                    )?, )*
                };
                $( let check: fn(&Self) -> Result<(), $crate::parameters::Problem> = $check;
                   check(&read)?; )?
                Ok(read)
            }
        }

        impl $crate::parameters::Parameter for $name {
            fn allowed() -> String {
                "a table".to_owned()
            }
            fn read(value: &serde_json::Value) -> Result<Self, $crate::parameters::Problem> {
                Self::read_from(None, value)
            }
            fn read_over(default: Self, value: &serde_json::Value)
                -> Result<Self, $crate::parameters::Problem>
            {
                Self::read_from(Some(default), value)
            }
            fn show(&self) -> serde_json::Value {
                #[expect(clippy::allow_attributes, reason = "whether there are fields depends on the part")]
                #[allow(unused_mut)]
                let mut table = serde_json::Map::new();
                $( table.insert(stringify!($field).to_owned(),
                    $crate::parameters::Parameter::show(&self.$field)); )*
                serde_json::Value::Object(table)
            }
            fn entries() -> Vec<$crate::parameters::Entry> {
                #[expect(clippy::allow_attributes, reason = "whether there are fields depends on the part")]
                #[allow(unused_mut)]
                let mut entries = Vec::new();
                $( entries.extend($crate::parameters::entries_of::<$type>(
                    stringify!($field),
                    concat!($($doc, "\n"),+),
                    $crate::parameters!(@default $($default)?),
                )); )*
                entries
            }
        }
    };
    (@default) => { None };
    (@default $default:expr) => { Some($default) };
    (@rule) => { None };
    (@rule $rule:expr) => { Some($rule) };
}

/// The catalogue's rows for a field: its own and, if it is a table, those inside.
pub fn entries_of<T: Parameter>(name: &str, about: &str, default: Option<T>) -> Vec<Entry> {
    let default = default.map(|value| value.show());
    let about = paragraph(about);
    let inner = T::entries();
    let of_inner = inner.into_iter().map(|entry| Entry {
        name: format!("{name}.{}", entry.name),
        default: default
            .as_ref()
            .and_then(|d| d.pointer(&pointer(&entry.name)).cloned())
            .or(entry.default),
        ..entry
    });
    let of_inner: Vec<Entry> = of_inner.collect();
    let default = if of_inner.is_empty() { default } else { default.map(|_| json!("see below")) };
    let own = Entry { name: name.to_owned(), allowed: T::allowed(), default, about };
    std::iter::once(own).chain(of_inner).collect()
}

/// The JSON pointer of a dotted name.
fn pointer(name: &str) -> String {
    format!("/{}", name.replace('.', "/"))
}

/// A doc comment as one paragraph of text.
pub fn paragraph(doc: &str) -> String {
    doc.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Declares the list of the parts of one kind: the one place that a new part is added to. Each name is
/// a module beside it with a `Config` made by [`parameters!`](crate::parameters) that implements the
/// family's trait.
#[macro_export]
macro_rules! family {
    (
        $(#[doc = $about:literal])+
        pub enum $name:ident as dyn $trait:ident { $($part:ident),+ $(,)? }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq)]
        #[expect(
            non_camel_case_types, missing_docs, reason = "a variant is named as scenarios name it"
        )]
        pub enum $name { $( $part($part::Config) ),+ }

        impl $name {
            /// The names of all parts.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($part)),+];

            /// The name a scenario gives this part.
            pub fn name(&self) -> &'static str {
                match self { $( Self::$part(_) => stringify!($part) ),+ }
            }

            /// Every part with its parameters.
            pub fn catalogue() -> Vec<$crate::parameters::Part> {
                vec![$( $crate::parameters::Part {
                    name: stringify!($part),
                    about: $crate::parameters::paragraph($part::Config::ABOUT),
                    entries: <$part::Config as $crate::parameters::Parameter>::entries(),
                } ),+]
            }
        }

        impl std::ops::Deref for $name {
            type Target = dyn $trait;
            fn deref(&self) -> &Self::Target {
                match self { $( Self::$part(config) => config ),+ }
            }
        }

        impl $crate::parameters::Parameter for $name {
            fn allowed() -> String {
                format!("one of {}", Self::NAMES.join(", "))
            }
            fn read(value: &serde_json::Value) -> Result<Self, $crate::parameters::Problem> {
                let (kind, rest) = $crate::parameters::choose(value, Self::NAMES)?;
                $( if kind == stringify!($part) {
                    return $crate::parameters::Parameter::read(&rest).map(Self::$part);
                } )+
                unreachable!("`choose` returns one of the names")
            }
            fn read_over(default: Self, value: &serde_json::Value)
                -> Result<Self, $crate::parameters::Problem>
            {
                let (kind, rest) = $crate::parameters::choose(value, Self::NAMES)?;
                match default {
                    $( Self::$part(default) if kind == stringify!($part) => {
                        $crate::parameters::Parameter::read_over(default, &rest).map(Self::$part)
                    } )+
                    _ => Self::read(value),
                }
            }
            fn show(&self) -> serde_json::Value {
                let rest = match self {
                    $( Self::$part(config) => $crate::parameters::Parameter::show(config) ),+
                };
                let mut table = serde_json::Map::new();
                table.insert("kind".to_owned(), self.name().into());
                if let serde_json::Value::Object(rest) = rest {
                    table.extend(rest);
                }
                serde_json::Value::Object(table)
            }
        }
    };
}

/// Declares a parameter that is one word of a few.
#[macro_export]
macro_rules! choices {
    (
        $(#[doc = $about:literal])+
        pub enum $name:ident { $( $(#[doc = $doc:literal])+ $variant:ident = $word:literal ),+ $(,)? }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $( $(#[doc = $doc])+ $variant ),+ }

        impl $crate::parameters::Parameter for $name {
            fn allowed() -> String {
                format!("one of {}", [$($word),+].map(|word| format!("\"{word}\"")).join(", "))
            }
            fn read(value: &serde_json::Value) -> Result<Self, $crate::parameters::Problem> {
                match value.as_str() {
                    $( Some($word) => Ok(Self::$variant), )+
                    given => {
                        let mut problem = $crate::parameters::wrong::<Self>(value);
                        let given = given.unwrap_or_default();
                        problem.message += &$crate::parameters::did_you_mean(given, [$($word),+]);
                        Err(problem)
                    }
                }
            }
            fn show(&self) -> serde_json::Value {
                match self { $( Self::$variant => $word.into() ),+ }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    #![expect(dead_code, unreachable_pub, reason = "the macros make what parts need")]

    use super::*;

    choices! {
        /// A shape.
        pub enum Shape {
            /// Round.
            Round = "round",
            /// Square.
            Square = "square",
        }
    }

    parameters! {
        /// The inner table.
        pub struct Inner {
            /// A delay.
            pub delay: Duration = Duration::from_micros(5);
            /// A share.
            pub share: f64 = 0.5, where fraction;
        }
    }

    parameters! {
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
    fn what_is_missing_inside_a_table_comes_from_the_outer_default() {
        let read = Outer::read(&json!({"rate": "1 Gbps", "inner": {"share": 1.0}})).unwrap();
        assert_eq!(read.inner, Inner { delay: Duration::from_micros(7), share: 1.0 });
        assert_eq!(Outer::read(&read.show()).unwrap(), read);
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
    }
}
