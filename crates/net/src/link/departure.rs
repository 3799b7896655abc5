//! When parcels in service are on the wire.

use crate::config::LinkConfig;
use crate::disciplines::QueueConfig;
use crate::service::Service;

/// When a parcel in service is on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Departure {
    /// Bit by bit; it has left when its service ends.
    Gradual,
    /// Whole, at the end of its service: a token bucket holds it until there are tokens for it.
    AtEnd,
    /// Whole, at the start: CAKE's shaper lets it go and waits for as long as the rate takes for it.
    AtStart,
}

impl Departure {
    pub(super) fn new(config: &LinkConfig) -> Self {
        match (&config.service, &config.queue) {
            (Service::Shaper { .. }, _) => Self::AtEnd,
            (_, QueueConfig::Cake(cake)) if cake.shapes => Self::AtStart,
            _ => Self::Gradual,
        }
    }
}
