//! The sections of a scenario file: each key's type, default and meaning, written down once.

use serde_json::Value;
use weir_units::{BufferSize, Bytes, Duration, Length, Rate, Ratio, Speed};

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

pub(crate) use {form, section};

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
