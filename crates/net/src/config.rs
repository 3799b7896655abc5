//! What a link is made of.

use weir_units::{Bytes, Duration, Instant, Rate};

use crate::disciplines::QueueConfig;
use crate::droptail::{Counting, DropTailConfig, Limit};
use crate::feedback::FeedbackConfig;
use crate::impair::Impairments;
use crate::opportunities::DeliveryTrace;
use crate::schedule::Schedule;

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

/// How a link sends.
#[derive(Clone, Debug, PartialEq)]
pub enum Service {
    /// In no time: the link is only a delay.
    Infinite,
    /// At a rate. Zero is a blackout; a parcel half sent then waits for its rest.
    Rate(Schedule<Rate>),
    /// At once while tokens last, which arrive at a rate: Linux's `tbf`. Longer parcels than the burst
    /// are dropped.
    Shaper {
        /// How fast tokens arrive.
        rate: Schedule<Rate>,
        /// How many bytes may go at once.
        burst: Bytes,
    },
    /// A fixed time per parcel whatever its length, by direction: a relay that sleeps. When both
    /// directions use the same link, they share its server and its queue.
    PerPacket {
        /// The time for a parcel towards the flow's receiver.
        forward: Duration,
        /// The time for a parcel that travels back.
        reverse: Duration,
    },
    /// At recorded moments.
    Trace(DeliveryTrace),
}

/// A link that cannot be.
///
/// ```
/// use weir_net::LinkConfig;
/// use weir_units::{Duration, Rate};
///
/// let error = LinkConfig::new(Rate::ZERO, Duration::ZERO).validate().unwrap_err();
/// assert_eq!(error.to_string(), "rate = 0bit: a rate that never changes must be above zero");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} = {value}: {allowed}")]
#[non_exhaustive]
pub struct ConfigError {
    /// The parameter.
    pub key: &'static str,
    /// Its value.
    pub value: String,
    /// What it may be.
    pub allowed: &'static str,
}

impl LinkConfig {
    /// A link of constant rate and delay with an unbounded queue.
    pub fn new(rate: Rate, delay: Duration) -> Self {
        Self { service: Service::Rate(rate.into()), delay: delay.into(), ..Self::default() }
    }

    /// A relay that reads a datagram from its socket, sleeps, sends it on, and only then reads the
    /// next: the serial server that a laboratory's "delay router" really is. `socket_buffer` bounds
    /// what waits in the socket, each datagram charged `overhead` beyond its length; the one that
    /// the relay sleeps on has left the socket.
    ///
    /// ```
    /// # mod packet { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/packet.rs")); }
    /// # use packet::Packet;
    /// use weir_net::{Link, LinkConfig};
    /// use weir_units::{Bytes, Duration, Instant, stream};
    ///
    /// let sleep = Duration::from_millis(10);
    /// let config = LinkConfig::serial_relay(sleep, Duration::ZERO, Bytes(3_000), Bytes::ZERO);
    /// let mut relay = Link::new(&config, |purpose| stream(1, purpose))?;
    /// for _ in 0..4 {
    ///     relay.offer(Instant::ZERO, Packet::new(1_500));
    /// }
    /// let end = Instant::ZERO + sleep * 4;
    /// assert_eq!(std::iter::from_fn(|| relay.poll(end)).count(), 3, "one was served, two waited");
    /// # Ok::<(), weir_net::ConfigError>(())
    /// ```
    pub fn serial_relay(
        forward: Duration,
        reverse: Duration,
        socket_buffer: Bytes,
        overhead: Bytes,
    ) -> Self {
        let queue = DropTailConfig {
            limit: Limit::Bytes(socket_buffer),
            counting: Counting::Waiting,
            overhead,
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
        match &self.service {
            Service::Rate(schedule) | Service::Shaper { rate: schedule, .. } => {
                Some(schedule.initial)
            }
            Service::Infinite | Service::PerPacket { .. } | Service::Trace(_) => None,
        }
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

impl Service {
    fn validate(&self) -> Result<(), ConfigError> {
        match self {
            Self::Infinite | Self::Trace(_) => Ok(()),
            Self::PerPacket { forward, reverse } => {
                check_span("service time", *forward)?;
                check_span("service time", *reverse)
            }
            Self::Shaper { burst: Bytes::ZERO, .. } => {
                const HELP: &str = "it must be above zero, or nothing gets through";
                Err(ConfigError::new("burst", Bytes::ZERO, HELP))
            }
            Self::Rate(rate) | Self::Shaper { rate, .. } => check_rate(rate),
        }
    }
}

fn check_rate(rate: &Schedule<Rate>) -> Result<(), ConfigError> {
    if rate.is_constant() && rate.initial == Rate::ZERO {
        const HELP: &str = "a rate that never changes must be above zero";
        return Err(ConfigError::new("rate", rate.initial, HELP));
    }
    check_order("rate_steps", rate)
}

fn check_order<T: Copy>(key: &'static str, schedule: &Schedule<T>) -> Result<(), ConfigError> {
    const HELP: &str = "steps must be in the order of their times, no two at the same time";
    match schedule.first_disorder() {
        Some(time) => Err(ConfigError::new(key, format!("step at {time}"), HELP)),
        None => Ok(()),
    }
}

/// A day: no path takes longer, and no sum of delays overflows.
pub const MAX_DELAY: Duration = Duration::from_secs(86_400);

/// Refuses a time that is longer than [`MAX_DELAY`].
///
/// # Errors
/// With `key` and the time.
pub fn check_span(key: &'static str, span: Duration) -> Result<(), ConfigError> {
    if span > MAX_DELAY {
        return Err(ConfigError::new(key, span, "it may be a day (24h) at most"));
    }
    Ok(())
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

impl ConfigError {
    /// A value that is not allowed, and what is.
    pub fn new(key: &'static str, value: impl ToString, allowed: &'static str) -> Self {
        Self { key, value: value.to_string(), allowed }
    }
}
