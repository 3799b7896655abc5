//! The sections of a scenario file: each key's type, default and meaning, written down once.

use std::fmt::Debug;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use weir_units::{BufferSize, Bytes, Duration, Length, Rate, Ratio, Speed, known};

use crate::error::Problem;
use crate::reading::deserialize_with;

/// One key of a section, as the reference and `weir list` describe it.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What may be written there.
    pub form: &'static str,
    /// What it means.
    pub about: &'static str,
    /// Which values of that form are allowed, if not all.
    pub allowed: Option<fn() -> String>,
    /// The values of other keys with which it has an effect, where that depends on them.
    pub only: Option<fn() -> String>,
}

impl Key {
    /// What may be written, and within which range.
    pub fn value(&self) -> String {
        match self.allowed {
            None => self.form.to_owned(),
            Some(allowed) => format!("{}, {}", self.form, allowed()),
        }
    }
}

/// How a type is written in a scenario.
pub(crate) trait Form {
    const FORM: &'static str;
}

/// The values of other keys with which a key of section `S` has an effect.
pub(crate) struct Only<S> {
    /// These values, as in `kind chain`.
    pub(crate) owner: fn() -> String,
    /// Whether the section has them.
    pub(crate) holds: fn(&S) -> bool,
}

/// The values that `only` demands, as in `kind chain`.
pub(crate) const fn owner<S>(only: &Only<S>) -> fn() -> String {
    only.owner
}

/// What [`section!`] declares.
pub(crate) trait Section: Sized + 'static {
    /// The keys that depend on others.
    const ONLY: &'static [(&'static str, Only<Self>)];

    /// Reads every key.
    fn read_keys<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error>;

    /// Refuses a value outside its key's range.
    fn check_ranges(&self) -> Result<(), Problem>;

    /// Writes every key.
    fn write_keys<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error>;

    /// Reads a table. The keys of problems are relative to it.
    fn from_table(table: Map<String, Value>) -> Result<Self, Problem> {
        let written = |(key, only): &'static (&str, Only<Self>)| {
            let value = table.get(*key).filter(|value| !value.is_null())?;
            Some((*key, only, shown(value)))
        };
        let dependent: Vec<_> = Self::ONLY.iter().filter_map(written).collect();
        let section = deserialize_with(Value::Object(table), |keys| Self::read_keys(keys))?;
        match dependent.into_iter().find(|(_, only, _)| !(only.holds)(&section)) {
            Some((key, only, value)) => Err(foreign(key, &value, &(only.owner)())),
            None => section.check_ranges().map(|()| section),
        }
    }

    /// A table of every key.
    fn every_key(&self) -> Map<String, Value> {
        match self.write_keys(serde_json::value::Serializer) {
            Ok(Value::Object(table)) => table,
            other => unreachable!("a section is a table, not {other:?}"),
        }
    }

    /// Its table, without the keys that have no effect.
    fn to_table(&self) -> Map<String, Value> {
        let mut table = self.every_key();
        let foreign = |(_, only): &&(&str, Only<Self>)| !(only.holds)(self);
        for (key, _) in Self::ONLY.iter().filter(foreign) {
            table.shift_remove(*key);
        }
        table
    }
}

/// Declares a section from one list: the struct, its defaults, its keys, and the refusal of others. In
/// brackets after the type stands the range of the key's values, where not all are allowed. After
/// `=>` stands the condition [`Only`] under which a key has an effect; where it does not hold, the key is
/// refused, and left out of the canonical form.
macro_rules! section {
    (
        $(#[$about:meta])*
        pub struct $name:ident {
            $( $(#[doc = $doc:literal])+ $key:ident: $type:ty $([$range:expr])? = $default:expr $(=> $only:expr)?, )*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(remote = "Self", default, deny_unknown_fields)]
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
                    allowed: $crate::keys::section!(@allowed $type $(, $range)?),
                    only: $crate::keys::section!(@owner $name $(, $only)?),
                }, )*
            ];
        }

        impl $crate::keys::Section for $name {
            const ONLY: &'static [(&'static str, $crate::keys::Only<Self>)] =
                &[ $( $( (stringify!($key), $only), )? )* ];

            fn read_keys<'de, D: serde::Deserializer<'de>>(keys: D) -> Result<Self, D::Error> {
                Self::deserialize(keys)
            }

            fn check_ranges(&self) -> Result<(), $crate::error::Problem> {
                $( $( $crate::range::check(stringify!($key), &self.$key, &$range)?; )? )*
                Ok(())
            }

            fn write_keys<S: serde::Serializer>(&self, keys: S) -> Result<S::Ok, S::Error> {
                Self::serialize(self, keys)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serde::Serialize::serialize(&$crate::keys::Section::to_table(self), serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(table: D) -> Result<Self, D::Error> {
                <Self as $crate::keys::Section>::from_table(serde::Deserialize::deserialize(table)?)
                    .map_err($crate::error::Problem::into_custom)
            }
        }
    };
    (@allowed $type:ty) => { None };
    (@allowed $type:ty, $range:expr) => { Some(|| $crate::range::shown::<$type>(&$range)) };
    (@owner $section:ty) => { None };
    (@owner $section:ty, $only:expr) => { Some($crate::keys::owner::<$section>(&$only)) };
}

/// The condition that a key of the section has one of some values, or another key one of others.
macro_rules! only {
    ($($key:ident: $choice:ident = $($value:ident)|+),+) => {
        $crate::keys::Only {
            owner: || {
                let keys = [$( (stringify!($key), vec![$( $choice::$value.word() ),+]) ),+];
                $crate::keys::owners(&keys)
            },
            holds: |section| $( matches!(section.$key, $($choice::$value)|+) )||+,
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
                    defaults: $crate::keys::defaults::<$section>,
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
                    $( $word => $crate::keys::Section::from_table(table).map(Self::$variant), )+
                    _ => unreachable!("every kind is listed"),
                }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::from_table(serde_json::Map::new()).expect("every key has a default")
            }
        }

        /// The kind, and every key of that kind.
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let keys = match self {
                    $( Self::$variant(section) => $crate::keys::Section::to_table(section), )+
                };
                let kind = ("kind".to_owned(), self.kind().into());
                serializer.collect_map(std::iter::once(kind).chain(keys))
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(table: D) -> Result<Self, D::Error> {
                Self::from_table(serde::Deserialize::deserialize(table)?)
                    .map_err($crate::error::Problem::into_custom)
            }
        }

        $crate::keys::form! {
            $name => "section",
        }
    };
}

/// Declares an enum from which a key chooses: each value has a word and a line about it. The word is how it
/// is written.
macro_rules! choices {
    (
        $(#[$doc:meta])*
        pub enum $name:ident {
            $first:ident = $first_word:literal, $first_about:literal;
            $( $value:ident = $word:literal, $about:literal; )*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            #[doc = $first_about] $first,
            $( #[doc = $about] $value, )*
        }

        $crate::keys::words! {
            $name { $first = $first_word $(, $value = $word)* }
        }

        impl $crate::keys::Choices for $name {
            const ABOUT: &[&str] = &[$first_about $(, $about)*];
        }

        impl $crate::keys::Form for $name {
            const FORM: &'static str = $crate::keys::Word::<Self>::FORM;
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str($crate::keys::Words::word(*self))
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(word: D) -> Result<Self, D::Error> {
                <$crate::keys::Word<Self> as serde::Deserialize>::deserialize(word).map(|word| word.0)
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

pub(crate) use {choices, form, kinds, only, section, words};

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

    /// How it is written.
    fn word(self) -> &'static str {
        let found = Self::WORDS.iter().find(|(_, value)| *value == self);
        found.map_or("", |(word, _)| word)
    }
}

/// An enum that [`choices!`] declares.
pub(crate) trait Choices: Words {
    /// A line about each value, in the order of its words.
    const ABOUT: &[&'static str];
}

/// A value that is written as a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word<T>(pub T);

impl<T: Words> Serialize for Word<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.word())
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

/// Every key of a section, with its default.
pub(crate) fn defaults<S: Section + Default + Debug>() -> Value {
    let default = S::default();
    debug_assert!(default.check_ranges().is_ok(), "a default outside its range: {default:?}");
    Value::Object(default.every_key())
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
        if kind.has(key) {
            continue;
        }
        let owners: Vec<_> =
            kinds.iter().filter(|other| other.has(key)).map(|kind| kind.name).collect();
        return Err(if owners.is_empty() {
            unknown(key, kind)
        } else {
            foreign(key, &shown(value), &format!("kind {}", owners.join(", ")))
        });
    }
    Ok(kind)
}

fn unknown(key: &str, kind: &Kind) -> Problem {
    let allowed = match kind.keys {
        [] => format!("kind {} has no keys", kind.name),
        keys => known(key, keys.iter().map(|key| key.name)).to_string(),
    };
    Problem::new(key, format!("there is no such key; {allowed}"))
}

/// A key that has no effect, because it belongs to something else.
pub(crate) fn foreign(key: &str, value: &str, owner: &str) -> Problem {
    Problem::new(key, format!("{value} is set, but this key belongs to {owner}"))
}

/// Keys with the words that they may have, as errors and the reference show them.
pub(crate) fn owners(keys: &[(&str, Vec<&str>)]) -> String {
    let key = |(key, words): &(&str, Vec<&str>)| format!("{key} {}", words.join(", "));
    keys.iter().map(key).collect::<Vec<_>>().join(", or ")
}

/// A value as errors show it. What may be the content of a file is not repeated.
fn shown(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a section".to_owned(),
        value => value.to_string(),
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
