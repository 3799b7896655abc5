//! DSR's parameters.

use weir_units::Duration;

use crate::routing::buffer::BufferConfig;
use crate::routing::notices::Notices;

/// Parameters of DSR; the defaults are RFC 4728 §9's, the send buffer ns-2's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DsrConfig {
    /// `RouteCacheTimeout`: how long an unused route is kept.
    pub route_cache_timeout: Duration,
    /// `NonpropRequestTimeout`: how long neighbours alone are asked.
    pub nonprop_request_timeout: Duration,
    /// `RequestPeriod`: the first wait for an answer to a flood; it doubles.
    pub request_period: Duration,
    /// `MaxRequestPeriod`.
    pub max_request_period: Duration,
    /// `MaxRequestRexmt`: how often a flood is repeated.
    pub max_request_rexmt: u32,
    /// `MAX_SALVAGE_COUNT`: how often a parcel's route is replaced on the way.
    pub max_salvage: u8,
    /// `GratReplyHoldoff`: how long a shorter way is not reported again.
    pub grat_reply_holdoff: Duration,
    /// `BroadcastJitter`.
    pub jitter: Duration,
    /// Where parcels wait for their route.
    pub buffer: BufferConfig,
    /// Notices that transports receive.
    pub notices: Notices,
}

impl Default for DsrConfig {
    fn default() -> Self {
        Self {
            route_cache_timeout: Duration::from_secs(300),
            nonprop_request_timeout: Duration::from_millis(30),
            request_period: Duration::from_millis(500),
            max_request_period: Duration::from_secs(10),
            max_request_rexmt: 16,
            max_salvage: 15,
            grat_reply_holdoff: Duration::from_secs(1),
            jitter: Duration::from_millis(10),
            buffer: BufferConfig::default(),
            notices: Notices::None,
        }
    }
}
