//! What a radio network is made of.

use weir_units::{Bytes, Duration, Ratio};

use super::airtime::Phy;
use super::propagation::Propagation;
use weir_net::ConfigError;
use weir_net::RedConfig;

/// The parameters that all nodes of a radio network share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RadioConfig {
    /// How signals spread.
    pub propagation: Propagation,
    /// By how much a frame must be stronger than a later one to survive it.
    pub capture: u32,
    /// Rates, lengths and gaps.
    pub phy: Phy,
    /// How nodes contend.
    pub mac: MacConfig,
    /// The queue between routing and MAC.
    pub queue: InterfaceQueueConfig,
    /// Whether addresses must be resolved.
    pub arp: Arp,
    /// From the router to the interface queue.
    pub link_delay: Duration,
    /// How many hops a flow's packet may take.
    pub ttl: u8,
    /// The probability that a data frame arrives damaged, each time it is sent: the MAC sends again.
    pub frame_error: Ratio,
    /// The probability that a packet is lost in a node after the MAC has acknowledged it: nothing
    /// sends again but the transport.
    pub packet_loss: Ratio,
}

/// How the nodes of a network contend for the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MacConfig {
    /// Whose reading of the standard.
    pub access: Access,
    /// Packets of this length and above are announced by an RTS.
    pub rts_threshold: Bytes,
    /// After how many unanswered RTS (or unannounced frames) a packet is given up, if ever.
    pub short_retries: Option<u32>,
    /// After how many unacknowledged data frames a packet is given up, if ever.
    pub long_retries: Option<u32>,
}

/// Readings of the distributed coordination function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// ns-2 with its corrected timer: backoff is always drawn, from `0..cw`, and an unreadable frame
    /// reserves the medium for EIFS.
    #[default]
    Ns2,
    /// ns-2 before that correction: an idle medium is waited for with a timer that does not freeze.
    Ns2Unfrozen,
    /// IEEE 802.11-2007 §9.2: backoff from `0..=cw`, immediate access to a medium that has been idle
    /// for DIFS, EIFS instead of DIFS after an unreadable frame, an answer missed when nothing has
    /// begun within SIFS and a slot.
    Standard,
}

/// The bound of an interface queue, and who goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceQueueConfig {
    /// How many packets it holds.
    pub packets: usize,
    /// Who goes first.
    pub order: Order,
    /// RED for the packets of flows; its `limit` has no effect here.
    pub red: Option<RedConfig>,
}

/// Who goes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Messages of routing protocols.
    #[default]
    RoutingFirst,
    /// Who came first.
    Fifo,
}

/// Whether link addresses must be resolved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arp {
    /// All are known.
    #[default]
    Known,
    /// They are resolved.
    Asked,
}

impl RadioConfig {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        const ABOVE_ZERO: &str = "it must be above zero";
        self.propagation.validate()?;
        self.phy.validate()?;
        if self.capture == 0 {
            return Err(ConfigError::new("capture", self.capture, ABOVE_ZERO));
        }
        if self.queue.packets == 0 || self.queue.packets > LONGEST_QUEUE {
            return Err(ConfigError::new("queue", self.queue.packets, "1 to 65536 packets"));
        }
        if let Some(red) = &self.queue.red {
            red.validate()?;
        }
        if self.ttl == 0 {
            return Err(ConfigError::new("ttl", self.ttl, ABOVE_ZERO));
        }
        weir_net::check_span("link_delay", self.link_delay)
    }
}

impl Default for RadioConfig {
    fn default() -> Self {
        Self {
            propagation: Propagation::default(),
            capture: 10,
            phy: Phy::default(),
            mac: MacConfig::default(),
            queue: InterfaceQueueConfig::default(),
            arp: Arp::default(),
            link_delay: Duration::from_micros(25),
            ttl: 64,
            frame_error: Ratio::ZERO,
            packet_loss: Ratio::ZERO,
        }
    }
}

impl Default for MacConfig {
    fn default() -> Self {
        Self {
            access: Access::default(),
            rts_threshold: Bytes::ZERO,
            short_retries: Some(7),
            long_retries: Some(4),
        }
    }
}

impl Default for InterfaceQueueConfig {
    fn default() -> Self {
        Self { packets: 50, order: Order::default(), red: None }
    }
}

const LONGEST_QUEUE: usize = 65_536;
