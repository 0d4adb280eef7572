//! JSON schema (draft 7) of scenario files, with which editors complete and check scenarios.
//!
//! The schema has the fields and components, their forms, bounds of numbers, and which fields are required.
//! It cannot express bounds of quantities with units, and rules that compare fields.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{Parameter, Rule, paragraph};
use crate::base::units::{Units, spellings};

/// The schemas of families by name. A component may contain components of its family, as a mixture does.
pub type Definitions = Map<String, Value>;

/// Returns the schema of a file that contains a `T`, with a title and a description.
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

/// Returns the schema of texts of this form, a regular expression.
pub fn pattern(form: &str) -> Value {
    json!({ "type": "string", "pattern": format!("^{form}$") })
}

/// Returns the form of a number with one of these units, for [`pattern`].
pub(crate) fn quantity_form(units: &Units) -> String {
    format!(r"\s*[0-9]+(\.[0-9]{{1,18}})?\s*({})\s*", spellings(units).join("|"))
}

/// Returns the schema of values of any of several schemas.
pub fn either(schemas: impl IntoIterator<Item = Value>) -> Value {
    json!({ "anyOf": schemas.into_iter().collect::<Vec<_>>() })
}

/// Returns the schema of one of a few words, each with its meaning.
pub fn word(of: &[(&str, &str)]) -> Value {
    either(words(of))
}

fn words(of: &[(&str, &str)]) -> impl Iterator<Item = Value> {
    of.iter().map(|(word, about)| json!({ "const": word, "description": paragraph(about) }))
}

/// Schema of a table, built field by field.
#[derive(Default)]
pub struct Table {
    fields: Map<String, Value>,
    required: Vec<Value>,
}

impl Table {
    /// Adds a field. It is required if it has no default.
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
        // Draft 7 ignores keywords in the same table as a reference.
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

    /// Returns the schema of a table with these fields and no others.
    pub fn finish(self) -> Value {
        json!({
            "type": "object",
            "properties": self.fields,
            "required": self.required,
            "additionalProperties": false,
        })
    }
}

/// Returns a reference to the definition of a family. On first use `parts` returns each component's name,
/// description and table of parameters, for the definition.
///
/// All fields share one definition, so defaults of a component that depend on the field are not in it.
pub fn family<'a>(
    name: &str,
    definitions: &mut Definitions,
    parts: impl FnOnce(&mut Definitions) -> Vec<(&'a str, &'a str, Value)>,
) -> Value {
    if !definitions.contains_key(name) {
        definitions.insert(name.to_owned(), Value::Null);
        let parts = parts(definitions);
        // The name alone suffices for a component without required parameters.
        let complete = parts.iter().filter(|(_, _, table)| table["required"] == json!([]));
        let names: Vec<_> = complete.map(|(part, about, _)| (*part, *about)).collect();
        let tables = parts.iter().map(|(part, about, table)| of_part(part, about, table));
        definitions.insert(name.to_owned(), either(words(&names).chain(tables)));
    }
    json!({ "$ref": format!("#/definitions/{name}") })
}

/// Returns the table of a component's parameters, with its name as `kind`.
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

/// Appends the fields of `more`.
fn append(schema: &mut Value, more: Value) {
    if let (Value::Object(schema), Value::Object(more)) = (schema, more) {
        schema.extend(more);
    }
}

/// Depth of tables that are searched for a field. A family may contain itself.
const MAX_DEPTH: usize = 4;

/// Returns the field of a table that is a list of tables with the given field, if there is one.
pub fn list_with<'a>(table: &'a Value, field: &str) -> Option<&'a str> {
    let mut fields = table["properties"].as_object()?.iter();
    fields.find(|(_, form)| !form["items"]["properties"][field].is_null()).map(|(name, _)| &**name)
}

/// Returns the paths of a field, such as `workload.load`, in the schema that [`document`] returned: those of
/// the least depth. Lists, and tables with free keys, are not searched.
pub fn places(document: &Value, field: &str) -> BTreeSet<String> {
    let mut tables = vec![(String::new(), document)];
    for _ in 0..MAX_DEPTH {
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
