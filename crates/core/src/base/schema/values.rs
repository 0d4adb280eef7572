//! Quantities with units, plain values, options, lists and tables as parameters.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::json_schema::{self, Definitions};
use super::{Parameter, ParameterInfo, Problem, wrong};
use crate::base::units::{
    Bytes, DATA_UNITS, Duration, RATE_UNITS, Rate, TIME_UNITS, Time, parse_quantity, spellings,
};

macro_rules! quantity {
    ($type:ident, $units:expr, $allowed:literal) => {
        impl Parameter for $type {
            fn allowed() -> String {
                let units: Vec<_> =
                    spellings($units).into_iter().filter(|unit| unit.is_ascii()).collect();
                format!("{} ({})", $allowed, units.join(", "))
            }
            fn read(value: &Value) -> Result<Self, Problem> {
                let text = value.as_str().unwrap_or_default().trim();
                let quantity = parse_quantity(text, $units).map(Self);
                quantity.ok_or_else(|| match text.strip_prefix('-') {
                    Some(rest) if parse_quantity(rest, $units).is_some() => negative(value),
                    _ => wrong::<Self>(value),
                })
            }
            fn show(&self) -> Value {
                json!(self.to_string())
            }
            fn schema(_default: Option<&Self>, _definitions: &mut Definitions) -> Value {
                json_schema::pattern(&json_schema::quantity_form($units))
            }
        }
    };
}
quantity!(Time, TIME_UNITS, "a time with its unit, such as \"1 s\"");
quantity!(Duration, TIME_UNITS, "a duration with its unit, such as \"55 us\"");
quantity!(Bytes, DATA_UNITS, "an amount of data with its unit, such as \"200 KB\"");
quantity!(Rate, RATE_UNITS, "a rate with its unit, such as \"10 Gbps\"");

/// Returns the error for a negative value.
fn negative(value: &Value) -> Problem {
    Problem::new("", format!("must be zero or more, not {value}"))
}

macro_rules! plain {
    ($type:ty, $allowed:literal, $schema:tt, $read:expr $(, at most $most:expr)?) => {
        impl Parameter for $type {
            fn allowed() -> String {
                $allowed.to_owned()
            }
            fn read(value: &Value) -> Result<Self, Problem> {
                let read: fn(&Value) -> Option<Self> = $read;
                read(value).ok_or_else(|| {
                    $(if value.as_f64().is_some_and(|number| number >= $most as f64 + 1.0) {
                        return Problem::new("", format!("must be at most {}, not {value}", $most));
                    }
                    if value.as_f64().is_some_and(|number| number <= -1.0) {
                        return negative(value);
                    })?
                    wrong::<Self>(value)
                })
            }
            fn show(&self) -> Value {
                json!(self)
            }
            fn schema(_default: Option<&Self>, _definitions: &mut Definitions) -> Value {
                json!($schema)
            }
        }
    };
}
plain!(f64, "a number", { "type": "number" }, |value| {
    value.as_f64().filter(|number| number.is_finite())
});
plain!(u64, "a whole number", { "type": "integer", "minimum": 0 }, Value::as_u64, at most u64::MAX);
plain!(
    u32,
    "a whole number",
    { "type": "integer", "minimum": 0, "maximum": u32::MAX },
    |value| value.as_u64()?.try_into().ok(),
    at most u32::MAX
);
plain!(bool, "true or false", { "type": "boolean" }, Value::as_bool);
plain!(String, "a string", { "type": "string" }, |value| value.as_str().map(str::to_owned));

/// Optional value; `"none"` for an absent one.
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
    fn schema(default: Option<&Self>, definitions: &mut Definitions) -> Value {
        let given = T::schema(default.and_then(Option::as_ref), definitions);
        json_schema::either([given, json!({ "const": "none" })])
    }
    fn entries() -> Vec<ParameterInfo> {
        T::entries()
    }
    fn meanings() -> Vec<(&'static str, String)> {
        T::meanings()
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
    fn schema(_default: Option<&Self>, definitions: &mut Definitions) -> Value {
        json!({ "type": "array", "items": T::schema(None, definitions) })
    }
    fn entries() -> Vec<ParameterInfo> {
        T::entries()
    }
    fn meanings() -> Vec<(&'static str, String)> {
        T::meanings()
    }
}

/// Large values that are seldom present.
impl<T: Parameter> Parameter for Box<T> {
    fn allowed() -> String {
        T::allowed()
    }
    fn read(value: &Value) -> Result<Self, Problem> {
        T::read(value).map(Self::new)
    }
    fn read_over(default: Self, value: &Value) -> Result<Self, Problem> {
        T::read_over(*default, value).map(Self::new)
    }
    fn show(&self) -> Value {
        (**self).show()
    }
    fn schema(default: Option<&Self>, definitions: &mut Definitions) -> Value {
        T::schema(default.map(|default| &**default), definitions)
    }
    fn entries() -> Vec<ParameterInfo> {
        T::entries()
    }
    fn meanings() -> Vec<(&'static str, String)> {
        T::meanings()
    }
}

/// Values by names that the scenario defines.
impl<T: Parameter> Parameter for BTreeMap<String, T> {
    fn allowed() -> String {
        format!("a table, each {}", T::allowed())
    }
    fn read(value: &Value) -> Result<Self, Problem> {
        let Value::Object(table) = value else { return Err(wrong::<Self>(value)) };
        let read = |(name, value): (&String, _)| {
            let item = T::read(value).map_err(|problem| problem.within(name))?;
            Ok((name.clone(), item))
        };
        table.iter().map(read).collect()
    }
    fn show(&self) -> Value {
        self.iter().map(|(name, item)| (name.clone(), item.show())).collect()
    }
    fn schema(_default: Option<&Self>, definitions: &mut Definitions) -> Value {
        json!({ "type": "object", "additionalProperties": T::schema(None, definitions) })
    }
    fn entries() -> Vec<ParameterInfo> {
        T::entries()
    }
    fn meanings() -> Vec<(&'static str, String)> {
        T::meanings()
    }
}
