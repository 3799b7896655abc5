//! The sections of a scenario file: each key's type, default and meaning, written down once.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use weir_units::{BufferSize, Bytes, Duration, Length, Rate, Ratio, Speed, known};

use crate::error::Problem;

/// One key of a section, as the reference and `weir list` describe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What may be written there.
    pub form: &'static str,
    /// What it means.
    pub about: &'static str,
}

/// How a type is written in a scenario.
pub(crate) trait Form {
    const FORM: &'static str;
}

/// Declares a section from one list: the struct, its defaults, its keys, and the refusal of others.
macro_rules! section {
    (
        $(#[$about:meta])*
        pub struct $name:ident {
            $( $(#[doc = $doc:literal])+ $key:ident: $type:ty = $default:expr, )*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            $( $(#[doc = $doc])+ pub $key: $type, )*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $( $key: $default, )* }
            }
        }

        impl $name {
            /// The keys, in the order of the reference.
            pub const KEYS: &[$crate::keys::Key] = &[
                $( $crate::keys::Key {
                    name: stringify!($key),
                    form: <$type as $crate::keys::Form>::FORM,
                    about: concat!($($doc),+),
                }, )*
            ];
        }
    };
}

/// Says how types are written.
macro_rules! form {
    ($($type:ty => $form:literal),* $(,)?) => {
        $(impl $crate::keys::Form for $type { const FORM: &'static str = $form; })*
    };
}

/// Declares what a section's key `kind` chooses from: each kind is a section with keys of its own, and has
/// a name and a line for `weir list`. The first is the default. Reading and writing a table, errors, the
/// catalogue and the reference of keys follow from the list.
macro_rules! kinds {
    (
        $(#[$doc:meta])*
        pub enum $name:ident {
            $( $variant:ident($section:ty) = $word:literal, $about:literal; )+
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $name {
            $( #[doc = $about] $variant($section), )+
        }

        impl $name {
            /// Every kind, in the order in which `weir list` prints them.
            pub const KINDS: &[$crate::keys::Kind] = &[
                $( $crate::keys::Kind {
                    name: $word,
                    about: $about,
                    keys: <$section>::KEYS,
                    defaults: || $crate::keys::written(&<$section>::default()),
                }, )+
            ];

            /// Its name.
            pub(crate) fn kind(&self) -> &'static str {
                match self {
                    $( Self::$variant(_) => $word, )+
                }
            }

            /// Reads a table. The keys of problems are relative to it.
            pub(crate) fn from_table(
                mut table: serde_json::Map<String, serde_json::Value>,
            ) -> Result<Self, $crate::error::Problem> {
                let kind = $crate::keys::take_kind(&mut table, Self::KINDS)?;
                match kind.name {
                    $( $word => $crate::scenario_file::deserialize(table.into()).map(Self::$variant), )+
                    _ => unreachable!("every kind is listed"),
                }
            }

            /// Its table: the kind, and every key of that kind.
            pub(crate) fn to_table(&self) -> serde_json::Map<String, serde_json::Value> {
                let keys = match self {
                    $( Self::$variant(section) => $crate::keys::written(section), )+
                };
                let kind = ("kind".to_owned(), self.kind().into());
                let keys = keys.as_object().into_iter().flatten();
                std::iter::once(kind)
                    .chain(keys.map(|(key, value)| (key.clone(), value.clone())))
                    .collect()
            }
        }
    };
}

/// Declares the words for the values of an enum of another crate, the value of a key [`Word`].
macro_rules! words {
    ($type:ty { $first:ident = $first_word:literal $(, $value:ident = $word:literal)* $(,)? }) => {
        impl $crate::keys::Words for $type {
            const WORDS: &[(&str, Self)] =
                &[($first_word, Self::$first) $(, ($word, Self::$value))*];
        }

        impl $crate::keys::Form for $crate::keys::Word<$type> {
            const FORM: &'static str = concat!("`", $first_word, "`" $(, ", `", $word, "`")*);
        }
    };
}

pub(crate) use {form, kinds, section, words};

/// A kind of a section that has several, as the reference and `weir list` describe it.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
    /// Their values where they are not written, as a JSON object.
    pub defaults: fn() -> Value,
}

impl Kind {
    fn has(&self, name: &str) -> bool {
        self.keys.iter().any(|key| key.name == name)
    }
}

/// An enum whose values have words.
pub(crate) trait Words: Copy + PartialEq + 'static {
    const WORDS: &[(&'static str, Self)];
}

/// A value that is written as a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word<T>(pub T);

impl<T: Words> Serialize for Word<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let found = T::WORDS.iter().find(|(_, value)| *value == self.0);
        serializer.serialize_str(found.map_or("", |(word, _)| word))
    }
}

impl<'de, T: Words> Deserialize<'de> for Word<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let found = T::WORDS.iter().find(|(word, _)| *word == text);
        found.map(|(_, value)| Self(*value)).ok_or_else(|| {
            let words = T::WORDS.iter().map(|(word, _)| *word);
            D::Error::custom(format!("'{text}' is not allowed; {}", known(&text, words)))
        })
    }
}

/// Every key of a section, with its value.
pub(crate) fn written(section: &impl Serialize) -> Value {
    serde_json::to_value(section).expect("every key can be written")
}

/// Takes the kind out of a table, and refuses keys that only other kinds have.
pub(crate) fn take_kind(
    table: &mut Map<String, Value>,
    kinds: &'static [Kind],
) -> Result<&'static Kind, Problem> {
    let kind = match table.remove("kind") {
        None => &kinds[0],
        Some(Value::String(name)) => {
            kinds.iter().find(|kind| kind.name == name).ok_or_else(|| {
                let names = kinds.iter().map(|kind| kind.name);
                Problem::new("kind", format!("'{name}' is not allowed; {}", known(&name, names)))
            })?
        }
        Some(other) => {
            return Err(Problem::new(
                "kind",
                format!("{} is not allowed; it is text in quotes", shown(&other)),
            ));
        }
    };
    // Another kind's default may stand in a canonical form of old.
    table.retain(|key, value| kind.has(key) || !value.is_null());
    for (key, value) in &*table {
        let owners: Vec<_> =
            kinds.iter().filter(|other| other.has(key)).map(|kind| kind.name).collect();
        if !kind.has(key) && !owners.is_empty() {
            return Err(foreign(key, value, &format!("kind {}", owners.join(", "))));
        }
    }
    Ok(kind)
}

/// A key that has no effect, because it belongs to something else.
pub(crate) fn foreign(key: impl Into<String>, value: &Value, owner: &str) -> Problem {
    Problem::new(key, format!("{} is set, but this key belongs to {owner}", shown(value)))
}

/// A value as errors show it. What may be the content of a file is not repeated.
fn shown(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a section".to_owned(),
        value => value.to_string(),
    }
}

/// Leaves only `keys` in a section.
pub(crate) fn keep(section: &mut Value, keys: &[&str]) {
    if let Value::Object(table) = section {
        table.retain(|key, _| keys.contains(&key.as_str()));
    }
}

form! {
    bool => "true or false",
    u32 => "whole number",
    u64 => "whole number",
    Vec<u64> => "list of whole numbers",
    String => "text",
    BufferSize => "queue size",
    Bytes => "size",
    Duration => "time",
    Length => "length",
    Rate => "rate",
    Ratio => "ratio",
    Speed => "speed",
}

impl<T: Form> Form for Option<T> {
    const FORM: &'static str = T::FORM;
}
