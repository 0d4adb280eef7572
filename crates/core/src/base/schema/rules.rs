//! Rules on parameters' values: bounds, which are data, and checks, which are functions.
//!
//! Error messages, the catalogue and the JSON schema all derive from the same [`Bounds`].

use serde_json::{Map, Value, json};

use super::Parameter;
use crate::base::units::{Bytes, Duration, Rate, Time};

/// Bounds of a number, or of a quantity in its base unit (picoseconds, bytes, bits a second).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bounds {
    lower: Option<Bound>,
    upper: Option<Bound>,
    /// The value must be a multiple of this number.
    multiple_of: Option<u32>,
    /// Reason for the bounds, if it is not obvious.
    reason: Option<&'static str>,
}

/// One end of an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bound {
    value: f64,
    /// True if the value itself is not allowed.
    is_open: bool,
}

impl Bounds {
    /// Returns the interval of numbers above `lower`.
    pub const fn above(lower: f64) -> Self {
        let lower = Some(Bound { value: lower, is_open: true });
        Self { lower, upper: None, multiple_of: None, reason: None }
    }

    /// Returns the interval of numbers from `lower` on.
    pub const fn at_least(lower: f64) -> Self {
        let lower = Some(Bound { value: lower, is_open: false });
        Self { lower, upper: None, multiple_of: None, reason: None }
    }

    /// Adds an upper bound that is allowed itself.
    #[must_use]
    pub const fn to(self, upper: f64) -> Self {
        Self { upper: Some(Bound { value: upper, is_open: false }), ..self }
    }

    /// Adds an upper bound that is not allowed itself.
    #[must_use]
    pub const fn below(self, upper: f64) -> Self {
        Self { upper: Some(Bound { value: upper, is_open: true }), ..self }
    }

    /// Restricts the interval to multiples of `number`.
    #[must_use]
    pub const fn multiple_of(self, number: u32) -> Self {
        Self { multiple_of: Some(number), ..self }
    }

    /// Adds a reason to error messages.
    #[must_use]
    pub const fn because(self, reason: &'static str) -> Self {
        Self { reason: Some(reason), ..self }
    }

    /// Returns what a value must be, if it is out of bounds.
    pub fn check<T: Measure>(self, value: &T) -> Result<(), String> {
        Rule::within(self).check(value)
    }

    fn contains(&self, value: f64) -> bool {
        let is_above = |lower: Bound| {
            if lower.is_open { value > lower.value } else { value >= lower.value }
        };
        let is_below = |upper: Bound| {
            if upper.is_open { value < upper.value } else { value <= upper.value }
        };
        self.lower.is_none_or(is_above)
            && self.upper.is_none_or(is_below)
            && self.multiple_of.is_none_or(|number| value % f64::from(number) == 0.0)
    }

    /// Describes the allowed values for an error message, in words.
    fn words(&self, write: impl Fn(f64) -> String) -> String {
        let number =
            |bound: Bound| if bound.value == 0.0 { "0".into() } else { write(bound.value) };
        let single =
            |bound: Bound| if bound.value == 0.0 { "zero".into() } else { write(bound.value) };
        let range = match (self.lower, self.upper) {
            (None, None) => String::new(),
            (Some(lower), None) if lower.is_open => format!("above {}", single(lower)),
            (Some(lower), None) => format!("{} or more", single(lower)),
            (None, Some(upper)) if upper.is_open => format!("below {}", single(upper)),
            (None, Some(upper)) => format!("at most {}", single(upper)),
            (Some(lower), Some(upper)) => {
                let (from, to) = (number(lower), number(upper));
                match (lower.is_open, upper.is_open) {
                    (false, false) => format!("from {from} to {to}"),
                    (false, true) => format!("from {from} to below {to}"),
                    (true, false) => format!("above {from} and at most {to}"),
                    (true, true) => format!("above {from} and below {to}"),
                }
            }
        };
        let multiple = match self.multiple_of {
            None => "",
            Some(2) => "an even number ",
            Some(number) => &format!("a multiple of {number} "),
        };
        let reason = self.reason.map_or(String::new(), |reason| format!(": {reason}"));
        format!("{multiple}{range}{reason}")
    }

    /// Describes the allowed values for the catalogue: an interval, or words if it has one end.
    fn interval(&self, write: impl Fn(f64) -> String) -> String {
        let multiple = match self.multiple_of {
            None => "",
            Some(2) => "even, ",
            Some(number) => &format!("a multiple of {number}, "),
        };
        let (Some(lower), Some(upper)) = (self.lower, self.upper) else {
            let range = Self { reason: None, multiple_of: None, ..*self }.words(write);
            return format!("{multiple}{range}");
        };
        let [left, right] =
            [if lower.is_open { '(' } else { '[' }, if upper.is_open { ')' } else { ']' }];
        let number =
            |bound: Bound| if bound.value == 0.0 { "0".into() } else { write(bound.value) };
        format!("{multiple}in {left}{}, {}{right}", number(lower), number(upper))
    }

    /// Returns the bounds under the names of JSON schemas (draft 7).
    fn keywords(&self, write: impl Fn(f64) -> Value) -> Map<String, Value> {
        let name = |bound: Bound, open: &'static str, closed: &'static str| {
            if bound.is_open { open } else { closed }
        };
        let lower =
            self.lower.map(|bound| (name(bound, "exclusiveMinimum", "minimum"), bound.value));
        let upper =
            self.upper.map(|bound| (name(bound, "exclusiveMaximum", "maximum"), bound.value));
        let ends =
            lower.into_iter().chain(upper).map(|(name, value)| (name.to_owned(), write(value)));
        let multiple = self.multiple_of.map(|number| ("multipleOf".to_owned(), json!(number)));
        ends.chain(multiple).collect()
    }
}

/// A value that can have bounds.
pub trait Measure: Parameter {
    /// True if the value is written as a number, false if as text.
    const IS_NUMBER: bool = true;
    /// True if the value may be absent.
    const IS_OPTIONAL: bool = false;

    /// Returns the value as a number, or `None` if it is absent.
    fn measure(&self) -> Option<f64>;

    /// Returns a bound as a scenario contains it.
    fn written(bound: f64) -> Value;
}

impl Measure for f64 {
    fn measure(&self) -> Option<f64> {
        Some(*self)
    }
    fn written(bound: f64) -> Value {
        if bound.fract() == 0.0 { json!(bound as i64) } else { json!(bound) }
    }
}

macro_rules! measure_integers {
    ($($type:ty),+) => { $(
        impl Measure for $type {
            fn measure(&self) -> Option<f64> {
                Some(*self as f64)
            }
            fn written(bound: f64) -> Value {
                json!(bound as u64)
            }
        }
    )+ };
}
measure_integers!(u32, u64);

macro_rules! measure_quantities {
    ($($type:ident),+) => { $(
        impl Measure for $type {
            const IS_NUMBER: bool = false;

            fn measure(&self) -> Option<f64> {
                Some(self.0 as f64)
            }
            fn written(bound: f64) -> Value {
                Self(bound as u64).show()
            }
        }
    )+ };
}
measure_quantities!(Time, Duration, Bytes, Rate);

impl<T: Measure> Measure for Option<T> {
    const IS_NUMBER: bool = T::IS_NUMBER;
    const IS_OPTIONAL: bool = true;

    fn measure(&self) -> Option<f64> {
        self.as_ref().and_then(Measure::measure)
    }
    fn written(bound: f64) -> Value {
        T::written(bound)
    }
}

/// Bounds of the values of one type.
#[derive(Clone, Copy, Debug)]
pub struct Within<T> {
    bounds: Bounds,
    measure: fn(&T) -> Option<f64>,
    written: fn(f64) -> Value,
    is_number: bool,
    is_optional: bool,
}

impl<T> Within<T> {
    fn text(&self) -> impl Fn(f64) -> String {
        let written = self.written;
        move |bound| match written(bound) {
            Value::String(text) => text,
            number => number.to_string(),
        }
    }
}

/// A condition on a parameter's value.
#[derive(Clone, Copy, Debug)]
pub enum Rule<T> {
    /// The value must lie within bounds.
    Within(Within<T>),
    /// A function returns what the value must be, if it is not.
    Check(fn(&T) -> Result<(), &'static str>),
}

impl<T> Rule<T> {
    /// Creates the rule that values lie within `bounds`.
    pub fn within(bounds: Bounds) -> Self
    where
        T: Measure,
    {
        Self::Within(Within {
            bounds,
            measure: T::measure,
            written: T::written,
            is_number: T::IS_NUMBER,
            is_optional: T::IS_OPTIONAL,
        })
    }

    /// Returns what a value must be, if it breaks the rule.
    pub(super) fn check(&self, value: &T) -> Result<(), String> {
        match self {
            Self::Check(check) => check(value).map_err(str::to_owned),
            Self::Within(within) => match (within.measure)(value) {
                Some(number) if !within.bounds.contains(number) => {
                    Err(within.bounds.words(within.text()))
                }
                _ => Ok(()),
            },
        }
    }

    /// Adds the bounds to the description of allowed values.
    pub(super) fn allowed(&self, allowed: String) -> String {
        let Self::Within(within) = self else { return allowed };
        let interval = within.bounds.interval(within.text());
        let has_adjective = within.bounds.multiple_of.is_some();
        let separator = if within.is_number && !has_adjective { " " } else { ", " };
        let none = ", or \"none\"";
        match allowed.strip_suffix(none).filter(|_| within.is_optional) {
            Some(allowed) => format!("{allowed}{separator}{interval}{none}"),
            None => format!("{allowed}{separator}{interval}"),
        }
    }

    /// Returns the bounds under the names of JSON schemas; quantities are texts with units.
    pub(super) fn keywords(&self) -> Option<Map<String, Value>> {
        let Self::Within(within) = self else { return None };
        Some(within.bounds.keywords(within.written))
    }

    /// Adds the bounds to a parameter's JSON schema. The schema of a text cannot express them, so they are
    /// added to its description.
    pub(super) fn restrict(&self, schema: &mut Value) {
        let Self::Within(within) = self else { return };
        if within.is_number {
            let number = if within.is_optional { &mut schema["anyOf"][0] } else { &mut *schema };
            if let (Value::Object(number), Some(keywords)) = (number, self.keywords()) {
                number.extend(keywords);
            }
        } else if let Value::String(description) = &mut schema["description"] {
            let allowed = within.bounds.words(within.text());
            *description = format!("{description} Allowed: {allowed}.");
        }
    }
}

/// Above zero.
pub fn positive() -> Bounds {
    Bounds::above(0.0)
}

/// Above zero, or absent.
pub fn positive_if_given() -> Bounds {
    positive()
}

/// A fraction from 0 to 1.
pub fn fraction() -> Bounds {
    Bounds::at_least(0.0).to(1.0)
}

/// A fraction from 0 to 1, or absent.
pub fn fraction_if_given() -> Bounds {
    fraction()
}

/// A fraction above 0, up to 1.
pub fn positive_fraction() -> Bounds {
    Bounds::above(0.0).to(1.0)
}

/// A fraction above 0, up to 1, or absent.
pub fn positive_fraction_if_given() -> Bounds {
    positive_fraction()
}

/// 1 or more.
pub fn at_least_one() -> Bounds {
    Bounds::at_least(1.0)
}

/// Shape of a Pareto distribution that has a mean.
pub fn has_mean() -> Bounds {
    Bounds::above(1.0).because("otherwise there is no mean")
}

/// Shape of a Pareto distribution that has a mean, or absent.
pub fn has_mean_if_given() -> Bounds {
    has_mean()
}

/// Above 1.
pub fn above_one() -> Bounds {
    Bounds::above(1.0)
}

/// A fraction from 0 to below 1.
pub fn below_one() -> Bounds {
    Bounds::at_least(0.0).below(1.0)
}

/// A fraction above 0 and below 1.
pub fn proper_fraction() -> Bounds {
    Bounds::above(0.0).below(1.0)
}

/// Zero or more.
pub fn not_negative() -> Bounds {
    Bounds::at_least(0.0)
}

/// Zero or more, or absent.
pub fn not_negative_if_given() -> Bounds {
    not_negative()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error<T: Measure>(bounds: Bounds, value: &T) -> String {
        Rule::within(bounds).check(value).unwrap_err()
    }

    #[test]
    fn errors_state_the_allowed_values() {
        assert_eq!(error(positive(), &0_u32), "above zero");
        assert_eq!(error(positive(), &Rate(0)), "above zero");
        assert_eq!(error(positive_fraction(), &Some(1.5)), "above 0 and at most 1");
        assert_eq!(error(below_one(), &1.0), "from 0 to below 1");
        assert_eq!(error(proper_fraction(), &0.0), "above 0 and below 1");
        assert_eq!(error(not_negative(), &-1.0), "zero or more");
        assert_eq!(error(at_least_one(), &0.5), "1 or more");
        assert_eq!(error(has_mean(), &1.0), "above 1: otherwise there is no mean");
        let microsecond = Bounds::at_least(1e6);
        assert_eq!(error(microsecond, &Duration(1)), "1 us or more");
        let even = Bounds::at_least(2.0).to(64.0).multiple_of(2);
        assert_eq!(error(even, &3_u32), "an even number from 2 to 64");
        assert!(Rule::within(even).check(&4_u32).is_ok());
        assert!(Rule::within(positive_fraction()).check(&None::<f64>).is_ok());
        assert!(Rule::within(positive_fraction()).check(&1.0).is_ok());
        assert!(Rule::within(positive()).check(&f64::NAN).is_err());
    }

    #[test]
    fn catalogue_and_schema_have_the_same_bounds() {
        let rule = Rule::<Option<f64>>::within(positive_fraction());
        assert_eq!(rule.allowed(Option::<f64>::allowed()), "a number in (0, 1], or \"none\"");
        assert_eq!(json!(rule.keywords()), json!({ "exclusiveMinimum": 0, "maximum": 1 }));
        let mut schema = json!({ "anyOf": [{ "type": "number" }, { "const": "none" }] });
        rule.restrict(&mut schema);
        let number = json!({ "type": "number", "exclusiveMinimum": 0, "maximum": 1 });
        assert_eq!(schema["anyOf"][0], number);

        let even = Rule::<u32>::within(Bounds::at_least(2.0).to(64.0).multiple_of(2));
        assert_eq!(even.allowed(u32::allowed()), "a whole number, even, in [2, 64]");

        let rule = Rule::<Duration>::within(Bounds::at_least(0.0).to(1e12));
        assert!(rule.allowed(Duration::allowed()).ends_with("(ps, ns, us, ms, s), in [0, 1 s]"));
        assert_eq!(json!(rule.keywords()), json!({ "minimum": "0 ps", "maximum": "1 s" }));
        let mut schema = json!({ "description": "A span.", "type": "string" });
        rule.restrict(&mut schema);
        let described =
            json!({ "description": "A span. Allowed: from 0 to 1 s.", "type": "string" });
        assert_eq!(schema, described);
    }
}
