//! After how many unanswered frames a MAC gives a packet up, as a scenario writes it: a number, or
//! `unlimited`.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::keys::form;

/// A bound of attempts, if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries(pub Option<u32>);

impl fmt::Display for Retries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(limit) => limit.fmt(f),
            None => f.write_str(UNLIMITED),
        }
    }
}

impl Serialize for Retries {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(limit) => serializer.serialize_u32(limit),
            None => serializer.serialize_str(UNLIMITED),
        }
    }
}

impl<'de> Deserialize<'de> for Retries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RetriesVisitor)
    }
}

struct RetriesVisitor;

impl Visitor<'_> for RetriesVisitor {
    type Value = Retries;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(ALLOWED)
    }

    fn visit_i64<E: Error>(self, limit: i64) -> Result<Retries, E> {
        self.visit_str(&limit.to_string())
    }

    fn visit_u64<E: Error>(self, limit: u64) -> Result<Retries, E> {
        self.visit_str(&limit.to_string())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Retries, E> {
        match text.parse() {
            _ if text == UNLIMITED => Ok(Retries(None)),
            Ok(limit @ 1..=MOST) => Ok(Retries(Some(limit))),
            _ => Err(E::custom(format_args!("{text} is not allowed; {ALLOWED}"))),
        }
    }
}

const UNLIMITED: &str = "unlimited";
const MOST: u32 = 255;
const ALLOWED: &str = "1 to 255 attempts, or unlimited";

form! {
    Retries => "whole number, or `unlimited`",
}
