//! The macros that declare components: `parameters!`, `family!` and `choices!`.

/// Declares the configuration of a component: a struct whose fields are [`Parameter`]s, each with a doc
/// comment and, unless it is required, a default. `where bounds` names a function that returns
/// [`Bounds`]; `where |value| …` is a check for other rules. `check function` after the struct compares
/// fields with each other.
#[macro_export]
macro_rules! parameters {
    (
        $(#[doc = $about:literal])+
        pub struct $name:ident {
            $(
                $(#[doc = $doc:literal])+
                pub $field:ident : $type:ty $(= $default:expr)?
                $(, where $bounds:ident)? $(, where |$value:ident| $predicate:expr)?;
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
            /// Description with sources.
            pub const ABOUT: &'static str = concat!($($about, "\n"),+);

            #[doc(hidden)]
            #[expect(clippy::allow_attributes, reason = "some components have no fields")]
            #[allow(unused_variables, unused_mut)]
            fn read_from(default: Option<Self>, value: &serde_json::Value)
                -> Result<Self, $crate::base::schema::Problem>
            {
                let table = $crate::base::schema::table::<Self>(value, &[$(stringify!($field)),*])?;
                let read = Self {
                    $( $field: $crate::base::schema::field::<$type>(
                        table,
                        stringify!($field),
                        default.as_ref().map(|default| default.$field.clone())
                            .or_else(|| $crate::parameters!(@default $($default)?)),
                        $crate::parameters!(@rule $($bounds)? $(|$value| $predicate)?),
                    )?, )*
                };
                $( let check: fn(&Self) -> Result<(), $crate::base::schema::Problem> = $check;
                   check(&read)?; )?
                Ok(read)
            }
        }

        impl $crate::base::schema::Parameter for $name {
            fn allowed() -> String {
                "a table".to_owned()
            }
            fn read(value: &serde_json::Value) -> Result<Self, $crate::base::schema::Problem> {
                Self::read_from(None, value)
            }
            fn read_over(default: Self, value: &serde_json::Value)
                -> Result<Self, $crate::base::schema::Problem>
            {
                Self::read_from(Some(default), value)
            }
            fn show(&self) -> serde_json::Value {
                #[expect(clippy::allow_attributes, reason = "some components have no fields")]
                #[allow(unused_mut)]
                let mut table = serde_json::Map::new();
                $( table.insert(stringify!($field).to_owned(),
                    $crate::base::schema::Parameter::show(&self.$field)); )*
                serde_json::Value::Object(table)
            }
            #[expect(clippy::allow_attributes, reason = "some components have no fields")]
            #[allow(unused_variables, unused_mut)]
            fn schema(
                default: Option<&Self>, definitions: &mut $crate::base::schema::json_schema::Definitions,
            ) -> serde_json::Value {
                let mut table = $crate::base::schema::json_schema::Table::default();
                $( table.field::<$type>(
                    stringify!($field),
                    concat!($($doc, "\n"),+),
                    default.map(|default| default.$field.clone())
                        .or_else(|| $crate::parameters!(@default $($default)?)).as_ref(),
                    $crate::parameters!(@rule $($bounds)? $(|$value| $predicate)?),
                    definitions,
                ); )*
                table.finish()
            }
            fn entries() -> Vec<$crate::base::schema::ParameterInfo> {
                #[expect(clippy::allow_attributes, reason = "some components have no fields")]
                #[allow(unused_mut)]
                let mut entries = Vec::new();
                $( entries.extend($crate::base::schema::entries_of::<$type>(
                    stringify!($field),
                    concat!($($doc, "\n"),+),
                    $crate::parameters!(@default $($default)?),
                    $crate::parameters!(@rule $($bounds)? $(|$value| $predicate)?),
                )); )*
                entries
            }
        }
    };
    (@default) => { None };
    (@default $default:expr) => { Some($default) };
    (@rule) => { None };
    (@rule $bounds:ident) => { Some($crate::base::schema::Rule::within($bounds())) };
    (@rule |$value:ident| $predicate:expr) => {
        Some($crate::base::schema::Rule::Check(|$value| $predicate))
    };
}

/// Declares the list of a family's components: the only place where a new component is added. Each name is a
/// module in the same folder with a `Config`, declared by [`parameters!`](crate::base::schema), that
/// implements the family's trait. `named` is the family's name in the catalogue and in the JSON schema.
/// `known_as` lists names elsewhere for error messages, with the values of parameters that they imply.
#[macro_export]
macro_rules! family {
    (
        $(#[doc = $about:literal])+
        pub enum $name:ident as dyn $trait:ident named $family:literal { $($part:ident),+ $(,)? }
        $( known_as {
            $($other:literal => $here:ident $({ $($field:ident = $value:literal),+ })?),+ $(,)?
        } )?
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq)]
        #[expect(
            non_camel_case_types, missing_docs, reason = "variants have the names of scenarios"
        )]
        pub enum $name { $( $part($part::Config) ),+ }

        impl $name {
            /// The names of all components.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($part)),+];

            /// Names of components elsewhere.
            pub(crate) const KNOWN_AS: &'static [$crate::base::schema::OtherName] =
                &[$( $( $crate::base::schema::OtherName {
                    elsewhere: $other,
                    here: stringify!($here),
                    values: concat!($( $( ", ", stringify!($field), " = ", stringify!($value) ),+ )?),
                } ),+ )?];

            /// Returns the component that a value names, and its parameters.
            fn choose(
                value: &serde_json::Value,
            ) -> Result<(&str, serde_json::Value), $crate::base::schema::Problem> {
                let (names, known_as) = (Self::NAMES, Self::KNOWN_AS);
                $crate::base::schema::choose(value, names, known_as, Self::catalogue)
            }

            /// Returns the component's name in scenarios.
            pub fn name(&self) -> &'static str {
                match self { $( Self::$part(_) => stringify!($part) ),+ }
            }

            /// Returns every component with its parameters.
            pub fn catalogue() -> Vec<$crate::base::schema::CatalogueEntry> {
                vec![$( $crate::base::schema::CatalogueEntry {
                    name: stringify!($part),
                    about: $crate::base::schema::paragraph($part::Config::ABOUT),
                    entries: <$part::Config as $crate::base::schema::Parameter>::entries(),
                } ),+]
            }
        }

        impl std::ops::Deref for $name {
            type Target = dyn $trait;
            fn deref(&self) -> &Self::Target {
                match self { $( Self::$part(config) => config ),+ }
            }
        }

        impl $crate::base::schema::Parameter for $name {
            fn allowed() -> String {
                format!("one of {}", Self::NAMES.join(", "))
            }
            fn read(value: &serde_json::Value) -> Result<Self, $crate::base::schema::Problem> {
                let (kind, rest) = Self::choose(value)?;
                $( if kind == stringify!($part) {
                    return $crate::base::schema::Parameter::read(&rest).map(Self::$part);
                } )+
                unreachable!("`choose` returns one of the names")
            }
            fn read_over(default: Self, value: &serde_json::Value)
                -> Result<Self, $crate::base::schema::Problem>
            {
                let (kind, rest) = Self::choose(value)?;
                match default {
                    $( Self::$part(default) if kind == stringify!($part) => {
                        $crate::base::schema::Parameter::read_over(default, &rest).map(Self::$part)
                    } )+
                    _ => Self::read(value),
                }
            }
            fn show(&self) -> serde_json::Value {
                let rest = match self {
                    $( Self::$part(config) => $crate::base::schema::Parameter::show(config) ),+
                };
                let mut table = serde_json::Map::new();
                table.insert("kind".to_owned(), self.name().into());
                if let serde_json::Value::Object(rest) = rest {
                    table.extend(rest);
                }
                serde_json::Value::Object(table)
            }
            fn schema(
                _default: Option<&Self>, definitions: &mut $crate::base::schema::json_schema::Definitions,
            ) -> serde_json::Value {
                $crate::base::schema::json_schema::family($family, definitions, |definitions| {
                    vec![$( (
                        stringify!($part),
                        $part::Config::ABOUT,
                        <$part::Config as $crate::base::schema::Parameter>::schema(None, definitions),
                    ) ),+]
                })
            }
        }
    };
}

/// Declares a parameter that is one of a few words.
#[macro_export]
macro_rules! choices {
    (
        $(#[doc = $about:literal])+
        pub enum $name:ident {
            $( $(#[doc = $doc:literal])+ $variant:ident = $word:literal ),+ $(,)?
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $( $(#[doc = $doc])+ $variant ),+ }

        impl $name {
            /// The words.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// The words, each with its meaning.
            const MEANINGS: &'static [(&'static str, &'static str)] =
                &[$( ($word, concat!($($doc, "\n"),+)) ),+];
        }

        impl $crate::base::schema::Parameter for $name {
            fn allowed() -> String {
                format!("one of {}", [$($word),+].map(|word| format!("\"{word}\"")).join(", "))
            }
            fn read(value: &serde_json::Value) -> Result<Self, $crate::base::schema::Problem> {
                match value.as_str() {
                    $( Some($word) => Ok(Self::$variant), )+
                    given => {
                        let mut problem = $crate::base::schema::wrong::<Self>(value);
                        let given = given.unwrap_or_default();
                        problem.message += &$crate::base::schema::did_you_mean(given, [$($word),+]);
                        Err(problem)
                    }
                }
            }
            fn show(&self) -> serde_json::Value {
                match self { $( Self::$variant => $word.into() ),+ }
            }
            fn schema(
                _default: Option<&Self>, _definitions: &mut $crate::base::schema::json_schema::Definitions,
            ) -> serde_json::Value {
                $crate::base::schema::json_schema::word(Self::MEANINGS)
            }
            fn meanings() -> Vec<(&'static str, String)> {
                let words = Self::MEANINGS.iter();
                words.map(|(word, about)| (*word, $crate::base::schema::paragraph(about))).collect()
            }
        }
    };
}
