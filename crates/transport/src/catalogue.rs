//! What a list of choices says about each.

/// A line of [`RecoveryConfig::CATALOGUE`](crate::RecoveryConfig::CATALOGUE) or [`RoutePolicy::CATALOGUE`](crate::RoutePolicy::CATALOGUE).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CatalogueEntry {
    /// The name by which users choose it.
    pub name: &'static str,
    /// What it is.
    pub summary: &'static str,
    /// What may stand in parentheses, empty for nothing.
    pub parameters: &'static str,
    /// Ways to write it; the first is the bare name.
    pub examples: &'static [&'static str],
}
