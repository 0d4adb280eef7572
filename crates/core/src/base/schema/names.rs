//! Names in scenarios, and suggestions for those that do not exist.

use serde_json::{Map, Value};

use super::{CatalogueEntry, ParameterInfo, Problem};

/// Name of a component elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct OtherName {
    /// The name elsewhere.
    pub elsewhere: &'static str,
    /// The component's name here.
    pub here: &'static str,
    /// Values that make the component the one elsewhere: `, gain = 0.1`, or empty.
    pub values: &'static str,
}

/// Returns the component that `value` names, and its parameters: `"name"` or `{kind = "name", …}`. The error
/// for another name uses the names of components elsewhere, and the catalogue.
pub fn choose<'a>(
    value: &'a Value,
    names: &[&'static str],
    known_as: &[OtherName],
    catalogue: fn() -> Vec<CatalogueEntry>,
) -> Result<(&'a str, Value), Problem> {
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
    let hint = explain_name(kind, known_as, &catalogue())
        .unwrap_or_else(|| did_you_mean(kind, names.iter().copied()));
    let message = format!("there is no `{kind}`{hint} (one of {})", listed(names));
    Err(Problem::new(if value.is_object() { "kind" } else { "" }, message))
}

/// Returns what a name stands for that no component has, as the end of a sentence: it is a component's name
/// elsewhere, or a value of one of its parameters, or an amount that is the only parameter of one.
fn explain_name(
    given: &str,
    known_as: &[OtherName],
    catalogue: &[CatalogueEntry],
) -> Option<String> {
    if let Some(name_here) = name_here(given, known_as) {
        return Some(name_here);
    }
    let suggest = |kind: &str, parameter: &ParameterInfo, value: &str| {
        format!("; did you mean {{kind = \"{kind}\", {} = \"{value}\"}}?", parameter.name)
    };
    let letters = |word: &str| in_our_spelling(word).replace('_', "");
    let word = letters(given);
    let of_word = catalogue.iter().find_map(|CatalogueEntry { name, entries, .. }| {
        entries.iter().find_map(|entry| {
            let mut quoted = entry.allowed.split('"').skip(1).step_by(2);
            Some(suggest(name, entry, quoted.find(|value| letters(value) == word)?))
        })
    });
    // An amount, such as a size in place of sizes that are all the same.
    let unit = given.trim_start_matches(|at: char| !at.is_alphabetic());
    let is_amount = given.starts_with(|at: char| at.is_ascii_digit()) && !unit.is_empty();
    let of_amount = || {
        catalogue.iter().find_map(|CatalogueEntry { name, entries, .. }| {
            let [only] = &entries[..] else { return None };
            let mut words = only.allowed.split(|at: char| !at.is_alphabetic());
            (is_amount && words.any(|word| word == unit)).then(|| suggest(name, only, given))
        })
    };
    of_word.or_else(of_amount)
}

/// Returns the component's name here, as the end of a sentence, if `given` is its name elsewhere.
pub fn name_here(given: &str, known_as: &[OtherName]) -> Option<String> {
    let word = in_our_spelling(given);
    let OtherName { here, values, .. } = known_as.iter().find(|other| other.elsewhere == word)?;
    Some(if values.is_empty() {
        format!("; its name here is `{here}`")
    } else {
        format!("; here it is {{kind = \"{here}\"{values}}}")
    })
}

/// Returns the suggestion of the name nearest to `given`, as the end of a sentence; empty if every name is
/// far.
pub fn did_you_mean<'a>(given: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    // The comparison takes time proportional to the product of both lengths.
    if given.len() > 200 {
        return String::new();
    }
    let given = in_our_spelling(given);
    names
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&given, name), name))
        .filter(|(distance, name)| *distance <= 1 + name.len() / 3)
        .min()
        .map_or_else(String::new, |(_, name)| format!("; did you mean `{name}`?"))
}

/// Returns the suggestion of the field nearest to `given`; else of those that end with its name, as
/// `host_rate` does with `rate`.
pub(super) fn did_you_mean_field(given: &str, names: &[&str]) -> String {
    let nearest = did_you_mean(given, names.iter().copied());
    let ending = format!("_{}", in_our_spelling(given));
    let longer =
        names.iter().filter(|name| name.ends_with(&ending)).map(|name| format!("`{name}`"));
    let longer = longer.collect::<Vec<_>>().join(" or ");
    if nearest.is_empty() && !longer.is_empty() {
        format!("; did you mean {longer}?")
    } else {
        nearest
    }
}

/// Returns a name as scenarios spell names: `Fat-Tree` is `fat_tree`.
fn in_our_spelling(name: &str) -> String {
    name.to_lowercase().replace(['-', ' '], "_")
}

/// Returns a list of names for an error message.
pub(super) fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
