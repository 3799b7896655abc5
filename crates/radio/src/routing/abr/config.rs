//! ABR's parameters.

use weir_units::Duration;

use crate::routing::buffer::BufferConfig;
use crate::routing::notices::Notices;

/// Parameters of ABR. The paper leaves most to the implementer: values without a source are ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbrConfig {
    /// How often a node says that it is there.
    pub beacon_interval: Duration,
    /// Number of silent intervals after which a neighbour's ticks begin anew.
    pub allowed_beacon_loss: u64,
    /// More ticks than this make a link stable.
    pub stable_ticks: u16,
    /// How long a destination collects copies of a query before it chooses.
    pub choice_time: Duration,
    /// The first wait for a reply; it doubles. Where replies have been measured, shorter waits precede it.
    pub query_wait: Duration,
    /// How often a query is repeated that has waited for `query_wait`.
    pub query_retries: u32,
    /// What a hop takes, conservatively: a localized query waits for its reply so long there and back.
    pub node_traversal_time: Duration,
    /// A localized query goes this much further than the destination was.
    pub local_slack: u8,
    /// The TTL of parcels and queries.
    pub diameter: u8,
    /// How long an unused route is kept.
    pub route_life: Duration,
    /// How often TCP-BuS's messages are repeated without an acknowledgement.
    pub signal_retries: u32,
    /// How long they wait for it.
    pub signal_wait: Duration,
    /// How long nodes keep parcels back for TCP-BuS if no news come.
    pub freeze_time: Duration,
    /// Broadcasts wait for up to this time.
    pub jitter: Duration,
    /// Where parcels wait for their route.
    pub buffer: BufferConfig,
    /// Notices that transports receive.
    pub notices: Notices,
}

impl Default for AbrConfig {
    fn default() -> Self {
        Self {
            beacon_interval: Duration::from_secs(1),
            allowed_beacon_loss: 2,
            stable_ticks: 5,
            choice_time: Duration::from_millis(50),
            query_wait: Duration::from_secs(1),
            query_retries: 3,
            node_traversal_time: Duration::from_millis(40),
            local_slack: 2,
            diameter: 64,
            route_life: Duration::from_secs(60),
            signal_retries: 5,
            signal_wait: Duration::from_millis(200),
            freeze_time: Duration::from_secs(5),
            jitter: Duration::from_millis(10),
            buffer: BufferConfig::default(),
            notices: Notices::None,
        }
    }
}
