//! What a link is made of.

use weir_units::{Bytes, Duration, Instant, Rate};

use crate::disciplines::QueueConfig;
use crate::droptail::{Counting, DropTailConfig, Limit};
use crate::error::{ConfigError, check_span};
use crate::feedback::FeedbackConfig;
use crate::impair::Impairments;
use crate::schedule::Schedule;
use crate::service::{Service, check_order};

/// A link's parameters.
///
/// ```
/// use weir_net::{Impairments, Limit, LinkConfig};
/// use weir_units::{Duration, Rate, Ratio};
///
/// let (rate, rtt) = (Rate::from_mbit(10), Duration::from_millis(40));
/// let limit = Limit::resolve("1bdp".parse()?, rate, rtt);
/// let mut config = LinkConfig::new(rate, rtt / 2).with_limit(limit);
/// config.impairments = Impairments { loss: Ratio::from_percent(1), ..Impairments::default() };
/// assert!(config.validate().is_ok());
/// assert_eq!(config.rate(), Some(rate));
/// # Ok::<(), weir_units::UnitError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// How parcels are sent, one after the other.
    pub service: Service,
    /// The one-way propagation delay. A parcel that meets a shortened delay does not overtake.
    pub delay: Schedule<Duration>,
    /// What each parcel takes beyond its length, in transmission times and where a bound is in bytes:
    /// the framing of the layer below.
    pub overhead: Bytes,
    /// The longest parcel that passes; longer ones are dropped.
    pub mtu: Option<Bytes>,
    /// What happens to parcels that have to wait.
    pub queue: QueueConfig,
    /// What goes wrong.
    pub impairments: Impairments,
    /// What it tells the senders of passing parcels.
    pub feedback: Option<FeedbackConfig>,
}

impl LinkConfig {
    /// A link of constant rate and delay with an unbounded queue.
    pub fn new(rate: Rate, delay: Duration) -> Self {
        Self { service: Service::Rate(rate.into()), delay: delay.into(), ..Self::default() }
    }

    /// A relay that reads a datagram from its socket, sleeps, sends it on, and only then reads the
    /// next: the serial server that a laboratory's "delay router" really is. `socket_buffer` bounds
    /// what waits in the socket; the datagram that the relay sleeps on has left it.
    ///
    /// ```
    /// # mod packet { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/packet.rs")); }
    /// # use packet::Packet;
    /// use weir_net::{Limit, Link, LinkConfig};
    /// use weir_units::{Bytes, Duration, Instant, stream};
    ///
    /// let buffer = Limit::Bytes(Bytes(3_000));
    /// let sleep = Duration::from_millis(10);
    /// let config = LinkConfig::serial_relay(sleep, Duration::ZERO, buffer);
    /// let mut relay = Link::new(&config, |purpose| stream(1, purpose))?;
    /// for _ in 0..4 {
    ///     relay.offer(Instant::ZERO, Packet::new(1_500));
    /// }
    /// let end = Instant::ZERO + sleep * 4;
    /// assert_eq!(std::iter::from_fn(|| relay.poll(end)).count(), 3, "one was served, two waited");
    /// # Ok::<(), weir_net::ConfigError>(())
    /// ```
    pub fn serial_relay(forward: Duration, reverse: Duration, socket_buffer: Limit) -> Self {
        let queue = DropTailConfig {
            limit: socket_buffer,
            counting: Counting::Waiting,
            ..DropTailConfig::default()
        };
        Self {
            service: Service::PerPacket { forward, reverse },
            queue: QueueConfig::DropTail(queue),
            ..Self::default()
        }
    }

    /// The same link with a drop-tail queue of this bound.
    pub fn with_limit(mut self, limit: Limit) -> Self {
        self.queue = QueueConfig::DropTail(limit.into());
        self
    }

    /// The rate it starts with; `None` if it has no rate.
    pub fn rate(&self) -> Option<Rate> {
        self.service.rate()
    }

    /// Says what is wrong with it, if anything.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.service.validate()?;
        check_order("delay_steps", &self.delay)?;
        for (_, delay) in self.delay.steps.iter().chain([&(Instant::ZERO, self.delay.initial)]) {
            check_span("delay", *delay)?;
        }
        if self.mtu == Some(Bytes::ZERO) {
            return Err(ConfigError::new("mtu", Bytes::ZERO, "it must be above zero"));
        }
        self.queue.validate(&self.service)?;
        if let Some(feedback) = &self.feedback {
            feedback.validate(self.rate())?;
        }
        self.impairments.validate()
    }
}

impl Default for LinkConfig {
    /// A link that is not there: no rate, no delay, nothing lost.
    fn default() -> Self {
        Self {
            service: Service::Infinite,
            delay: Duration::ZERO.into(),
            overhead: Bytes::ZERO,
            mtu: None,
            queue: QueueConfig::DropTail(DropTailConfig::default()),
            impairments: Impairments::default(),
            feedback: None,
        }
    }
}
