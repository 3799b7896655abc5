//! AODV's parameters, as the RFC and as ns-2 have them.

use weir_units::{Bytes, Duration};

use crate::routing::buffer::BufferConfig;
use crate::routing::notices::Notices;

/// Parameters of AODV; [`AodvConfig::rfc3561`] and [`AodvConfig::ns2`] fill them in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AodvConfig {
    /// `ACTIVE_ROUTE_TIMEOUT`: how long an unused route lives.
    pub active_route_timeout: Duration,
    /// `MY_ROUTE_TIMEOUT`: the lifetime a destination puts into its replies.
    pub my_route_timeout: Duration,
    /// The least lifetime of a route back to the originator of a request.
    pub reverse_route_life: Duration,
    /// `PATH_DISCOVERY_TIME`: how long a request is recognised.
    pub path_discovery_time: Duration,
    /// `DELETE_PERIOD`: how long a dead route's sequence number is kept.
    pub delete_period: Duration,
    /// `NODE_TRAVERSAL_TIME`: what a hop takes, conservatively.
    pub node_traversal_time: Duration,
    /// `NET_DIAMETER`: the TTL of parcels and of floods.
    pub net_diameter: u8,
    /// `RREQ_RETRIES`: how often a network-wide flood is repeated.
    pub rreq_retries: u32,
    /// Time without a new search after all floods failed; packets wait.
    pub silence: Duration,
    /// `TTL_START` of the expanding ring.
    pub ttl_start: u8,
    /// `TTL_INCREMENT`.
    pub ttl_increment: u8,
    /// `TTL_THRESHOLD`: beyond it the whole network is asked.
    pub ttl_threshold: u8,
    /// `LOCAL_ADD_TTL`.
    pub local_add_ttl: u8,
    /// How long a request waits for its reply.
    pub wait: RequestWait,
    /// `RREQ_RATELIMIT` and `RERR_RATELIMIT` in messages per second; `None` for no limit.
    pub rate_limit: Option<u32>,
    /// Whether a break near the destination is mended on the spot.
    pub local_repair: LocalRepair,
    /// Hello messages; off where the link layer reports broken links.
    pub hello: Option<HelloConfig>,
    /// Broadcasts wait for up to this time.
    pub jitter: Duration,
    /// Where parcels wait for their route.
    pub buffer: BufferConfig,
    /// The length of a request without the IP header.
    pub rreq_len: Bytes,
    /// The length of a reply without the IP header.
    pub rrep_len: Bytes,
    /// Notices that transports receive.
    pub notices: Notices,
}

/// How long a route request waits for its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestWait {
    /// RFC 3561 §6.4: `2 * NODE_TRAVERSAL_TIME * (TTL + TIMEOUT_BUFFER)` for a ring;
    /// `NET_TRAVERSAL_TIME` for a flood, twice as long for each repetition.
    Ring {
        /// `TIMEOUT_BUFFER`.
        timeout_buffer: u64,
    },
    /// ns-2: `2 * TTL` times what a hop took in the last three discoveries, or
    /// `NODE_TRAVERSAL_TIME`, times the number of floods.
    Measured {
        /// The longest wait.
        cap: Duration,
    },
}

/// When a broken link is mended by the node that finds it broken (RFC 3561 §6.12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalRepair {
    /// Never.
    Off,
    /// If the packet has come further than it had to go.
    NearDestination,
}

/// Hello messages (RFC 3561 §6.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HelloConfig {
    /// `HELLO_INTERVAL`.
    pub interval: Duration,
    /// `ALLOWED_HELLO_LOSS`: after this number of silent intervals a neighbour is gone.
    pub allowed_loss: u64,
}

impl AodvConfig {
    /// The RFC's parameters (§10), but with a diameter of 64 hops instead of 35, so that a chain of
    /// 32 hops may take detours; no hello messages, because the link layer reports breaks.
    pub const fn rfc3561() -> Self {
        let node_traversal_time = Duration::from_millis(40);
        let net_traversal_time = node_traversal_time.saturating_mul(2 * DIAMETER as u64);
        Self {
            active_route_timeout: Duration::from_secs(3),
            my_route_timeout: Duration::from_secs(6),
            reverse_route_life: net_traversal_time.saturating_mul(2),
            path_discovery_time: net_traversal_time.saturating_mul(2),
            delete_period: Duration::from_secs(15),
            node_traversal_time,
            net_diameter: DIAMETER,
            rreq_retries: 2,
            silence: Duration::ZERO,
            ttl_start: 1,
            ttl_increment: 2,
            ttl_threshold: 7,
            local_add_ttl: 2,
            wait: RequestWait::Ring { timeout_buffer: 2 },
            rate_limit: Some(10),
            local_repair: LocalRepair::NearDestination,
            hello: None,
            jitter: Duration::from_millis(10),
            buffer: BufferConfig { datagrams: 64, time: Duration::from_secs(30) },
            rreq_len: Bytes(24),
            rrep_len: Bytes(20),
            notices: Notices::None,
        }
    }

    /// The parameters of ns-2.35, but with a diameter of 64 hops instead of 30: with 30 nothing
    /// crosses a chain of 32. ns-2 never forgets a destination's sequence number.
    pub const fn ns2() -> Self {
        Self {
            active_route_timeout: Duration::from_secs(10),
            my_route_timeout: Duration::from_secs(10),
            reverse_route_life: Duration::from_secs(6),
            path_discovery_time: Duration::from_secs(6),
            delete_period: Duration::MAX,
            node_traversal_time: Duration::from_millis(30),
            rreq_retries: 3,
            silence: Duration::from_secs(10),
            ttl_start: 5,
            wait: RequestWait::Measured { cap: Duration::from_secs(10) },
            rate_limit: None,
            rreq_len: Bytes(28),
            rrep_len: Bytes(24),
            ..Self::rfc3561()
        }
    }
}

const DIAMETER: u8 = 64;
