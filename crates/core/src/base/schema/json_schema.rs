//! What may be written, as a JSON schema (draft 7), by which editors complete and check scenarios.
//!
//! The schema has the fields and components, their forms, bounds of numbers, and which fields are required.
//! It cannot express bounds of quantities with units, and rules that compare fields.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{Parameter, Rule, paragraph};
use crate::base::units::Units;

/// The schemas of families by name: a part may hold parts of its own family, as a mixture does.
pub type Definitions = Map<String, Value>;

/// The schema of a file that holds a `T`, with a title and what it is.
pub fn document<T: Parameter>(title: &str, about: &str) -> Value {
    let mut definitions = Definitions::new();
    let mut schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": title,
        "description": paragraph(about),
    });
    append(&mut schema, T::schema(None, &mut definitions));
    schema["definitions"] = Value::Object(definitions);
    schema
}

/// A text of this form.
pub fn pattern(form: &str) -> Value {
    json!({ "type": "string", "pattern": format!("^{form}$") })
}

/// The form of a number with one of these units, as a regular expression for [`pattern`].
pub(crate) fn quantity_form(units: &Units) -> String {
    let units: Vec<_> = units.iter().map(|(name, _)| *name).collect();
    format!(r"\s*[0-9]+(\.[0-9]{{1,18}})?\s*({})\s*", units.join("|"))
}

/// One of several.
pub fn either(schemas: impl IntoIterator<Item = Value>) -> Value {
    json!({ "anyOf": schemas.into_iter().collect::<Vec<_>>() })
}

/// One word of a few, each with what it means.
pub fn word(of: &[(&str, &str)]) -> Value {
    either(words(of))
}

fn words(of: &[(&str, &str)]) -> impl Iterator<Item = Value> {
    of.iter().map(|(word, about)| json!({ "const": word, "description": paragraph(about) }))
}

/// The schema of a table, which grows by a field at a time.
#[derive(Default)]
pub struct Table {
    fields: Map<String, Value>,
    required: Vec<Value>,
}

impl Table {
    /// Adds a field: it must be given if it has no default.
    pub fn field<T: Parameter>(
        &mut self,
        name: &str,
        about: &str,
        default: Option<&T>,
        rule: Option<Rule<T>>,
        definitions: &mut Definitions,
    ) {
        let mut schema = json!({ "description": paragraph(about) });
        let form = T::schema(default, definitions);
        let is_shown_inside = form.get("properties").is_some();
        // Beside a reference, draft 7 reads nothing.
        append(
            &mut schema,
            if form.get("$ref").is_some() { json!({ "allOf": [form] }) } else { form },
        );
        if let Some(rule) = rule {
            rule.restrict(&mut schema);
        }
        match default {
            None => self.required.push(name.into()),
            Some(default) if !is_shown_inside => schema["default"] = default.show(),
            Some(_) => {}
        }
        self.fields.insert(name.to_owned(), schema);
    }

    /// The schema of the table with these fields and no others.
    pub fn finish(self) -> Value {
        json!({
            "type": "object",
            "properties": self.fields,
            "required": self.required,
            "additionalProperties": false,
        })
    }
}

/// A reference to the schema of the family in the module `path`, which `parts` makes when it is
/// first wanted: of every part the name, what it is, and the table of its parameters.
///
/// It is one for all fields, so what a field's default would give a part is not taken into account.
pub fn family<'a>(
    path: &str,
    definitions: &mut Definitions,
    parts: impl FnOnce(&mut Definitions) -> Vec<(&'a str, &'a str, Value)>,
) -> Value {
    let (_, name) = path.rsplit_once("::").unwrap_or(("", path));
    if !definitions.contains_key(name) {
        definitions.insert(name.to_owned(), Value::Null);
        let parts = parts(definitions);
        // By its name alone can stand what needs no parameters.
        let complete = parts.iter().filter(|(_, _, table)| table["required"] == json!([]));
        let names: Vec<_> = complete.map(|(part, about, _)| (*part, *about)).collect();
        let tables = parts.iter().map(|(part, about, table)| of_part(part, about, table));
        definitions.insert(name.to_owned(), either(words(&names).chain(tables)));
    }
    json!({ "$ref": format!("#/definitions/{name}") })
}

/// The table of a part's parameters, with the part's name as its `kind`.
fn of_part(part: &str, about: &str, parameters: &Value) -> Value {
    let mut schema = json!({ "title": part, "description": paragraph(about) });
    append(&mut schema, parameters.clone());
    let mut properties = json!({ "kind": { "const": part } });
    append(&mut properties, parameters["properties"].clone());
    schema["properties"] = properties;
    let given = parameters["required"].as_array().into_iter().flatten().cloned();
    schema["required"] = std::iter::once("kind".into()).chain(given).collect();
    schema
}

/// Appends the entries of `more`.
fn append(schema: &mut Value, more: Value) {
    if let (Value::Object(schema), Value::Object(more)) = (schema, more) {
        schema.extend(more);
    }
}

/// How many tables inside each other are looked through for a field: a family may hold itself.
const DEEPEST: usize = 4;

/// Where in what `document` has made a field is, least deep: paths of tables, such as `workload.load`.
/// Lists, and tables whose keys anyone chooses, are not looked into.
pub fn places(document: &Value, field: &str) -> BTreeSet<String> {
    let mut tables = vec![(String::new(), document)];
    for _ in 0..DEEPEST {
        let mut found = BTreeSet::new();
        let mut inside = Vec::new();
        while let Some((path, schema)) = tables.pop() {
            let name = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next());
            let family = name.map(|name| &document["definitions"][name]);
            let forms = ["anyOf", "allOf"].into_iter().filter_map(|of| schema[of].as_array());
            tables
                .extend(family.into_iter().chain(forms.flatten()).map(|form| (path.clone(), form)));
            for (name, form) in schema["properties"].as_object().into_iter().flatten() {
                let place = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                if name == field {
                    found.insert(place.clone());
                }
                inside.push((place, form));
            }
        }
        if !found.is_empty() {
            return found;
        }
        tables = inside;
    }
    BTreeSet::new()
}
