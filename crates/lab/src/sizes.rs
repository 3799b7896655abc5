//! Distributions of flow sizes: those that come with Weir, and those of files next to a scenario.
//!
//! A file has a line per point: a size in bytes and the share of flows that are at most so large, with
//! blanks, a tab or a comma between them. Shares are fractions that end with 1, or percentages that end
//! with 100. What follows `#` is a comment. In a canonical scenario the points stand in place of the
//! file's name, so that a run needs no file.

use std::fmt;
use std::path::Path;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use weir_scene::SizeDistribution;

use crate::error::Problem;
use crate::files::read_text;
use crate::keys::form;

/// How large flows are, as a scenario writes it.
#[derive(Clone, Debug, PartialEq)]
pub enum Sizes {
    /// A distribution that comes with Weir.
    Known(&'static KnownSizes),
    /// Sizes in bytes with the share of flows that are at most so large.
    Points(Vec<(u64, f64)>),
}

/// A distribution that comes with Weir.
#[derive(Debug, PartialEq, Eq)]
pub struct KnownSizes {
    /// Its name.
    pub name: &'static str,
    text: &'static str,
}

impl Sizes {
    /// Every distribution that comes with Weir.
    pub const CATALOGUE: &[KnownSizes] = &[
        KnownSizes { name: "web-search", text: include_str!("../data/web-search.cdf") },
        KnownSizes { name: "data-mining", text: include_str!("../data/data-mining.cdf") },
        KnownSizes { name: "fb-hadoop", text: include_str!("../data/fb-hadoop.cdf") },
        KnownSizes { name: "ali-storage", text: include_str!("../data/ali-storage.cdf") },
        KnownSizes { name: "google-rpc", text: include_str!("../data/google-rpc.cdf") },
    ];

    /// What sizes are drawn from.
    ///
    /// # Errors
    /// Says what is wrong with the points.
    pub fn distribution(&self) -> Result<SizeDistribution, String> {
        match self {
            Self::Known(known) => SizeDistribution::new(&parse(known.text)?),
            Self::Points(points) => SizeDistribution::new(points),
        }
    }

    fn known(name: &str) -> Option<Self> {
        Self::CATALOGUE.iter().find(|known| known.name == name).map(Self::Known)
    }
}

impl Default for Sizes {
    fn default() -> Self {
        Self::Known(&Self::CATALOGUE[0])
    }
}

/// Replaces every `sizes` of a workload that names a file by the points in it. Files are looked for
/// next to the scenario file `source`.
pub(crate) fn load(tree: &mut Map<String, Value>, source: &str) -> Result<(), Problem> {
    let folder = Path::new(source).parent().unwrap_or(Path::new(""));
    let flows = tree.get_mut("flow").and_then(Value::as_array_mut).into_iter().flatten();
    for (index, flow) in flows.enumerate() {
        let Some(Value::String(name)) = flow.pointer("/workload/sizes") else { continue };
        if Sizes::known(name).is_some() {
            continue;
        }
        let points = read(&folder.join(name))
            .map_err(|message| Problem::new(format!("flow.{index}.workload.sizes"), message))?;
        flow["workload"]["sizes"] =
            points.into_iter().map(|(a, b)| Value::from(vec![Value::from(a), b.into()])).collect();
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<(u64, f64)>, String> {
    let text = read_text(path).map_err(|message| {
        format!("{message}; it is a file of sizes and shares, or one of {}", known_names())
    })?;
    parse(&text).map_err(|message| format!("'{}', {message}", path.display()))
}

fn known_names() -> String {
    Sizes::CATALOGUE.iter().map(|known| known.name).collect::<Vec<_>>().join(", ")
}

/// The points of a file.
fn parse(text: &str) -> Result<Vec<(u64, f64)>, String> {
    let mut points = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default();
        let cells: Vec<&str> =
            line.split([',', ' ', '\t', '\r']).filter(|cell| !cell.is_empty()).collect();
        let point = match cells[..] {
            [] => continue,
            [size, share] => size.parse::<u64>().ok().zip(share.parse::<f64>().ok()),
            _ => None,
        };
        let allowed = "a line has a size in bytes and the share of flows at most so large";
        points.push(point.ok_or_else(|| format!("line {number}: {allowed}"))?);
    }
    let percent = points.last().is_some_and(|(_, share)| *share == 100.0);
    let scale = if percent { 100.0 } else { 1.0 };
    Ok(points.into_iter().map(|(size, share)| (size, share / scale)).collect())
}

impl Serialize for Sizes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Known(known) => serializer.serialize_str(known.name),
            Self::Points(points) => points.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Sizes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SizesVisitor)
    }
}

struct SizesVisitor;

impl<'de> Visitor<'de> for SizesVisitor {
    type Value = Sizes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of [size, share] pairs, a file of them, or one of {}", known_names())
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Sizes, E> {
        Sizes::known(name).ok_or_else(|| {
            let known = known_names();
            E::custom(format!("there are no sizes '{name}'; there are {known}, and files"))
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Sizes, A::Error> {
        let mut points = Vec::new();
        while let Some(point) = list.next_element()? {
            points.push(point);
        }
        Ok(Sizes::Points(points))
    }
}

form! {
    Sizes => "name, file, or list of `[size, share]`",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_with_weir_has_the_means_of_its_studies() {
        // As the scripts of the studies compute them from the same points.
        for (name, mean) in [
            ("web-search", 1_711_250.0),
            ("data-mining", 12_658_199.0),
            ("fb-hadoop", 120_421.0),
            ("ali-storage", 40_870.0),
            ("google-rpc", 2_892.0),
        ] {
            let sizes = Sizes::known(name).and_then(|sizes| sizes.distribution().ok()).unwrap();
            assert!((sizes.mean() - mean).abs() < 1.0, "{name}: {}", sizes.mean());
        }
    }

    #[test]
    fn files_have_fractions_or_percentages_and_comments() {
        let fractions = parse("# sizes\n100 0.5\n\n2000\t1 # the largest\n");
        assert_eq!(fractions, Ok(vec![(100, 0.5), (2_000, 1.0)]));
        assert_eq!(parse("100, 50\r\n2000, 100\r\n"), fractions);
        let refused = |text| parse(text).unwrap_err();
        assert!(refused("100 0.5\n7 1 0.6\n").starts_with("line 2: a line has"));
        assert!(refused("1.5kb 1").starts_with("line 1: a line has"));
    }
}
