//! What a script runs against.

use weir_transport::{Flags, Segment};
use weir_units::{Duration, Ecn};

use crate::fast_open::FastOpen;
use crate::info::Info;
use crate::script::{Call, Settings};

/// A TCP stack with a socket interface, a clock and a network interface. Times count from the script's
/// start.
pub trait Endpoint {
    /// The clock.
    fn now(&self) -> Duration;

    /// Lets time pass until `until`, or until the stack has sent something or a call may return.
    ///
    /// # Errors
    /// If the endpoint itself fails.
    fn advance(&mut self, until: Duration) -> Result<(), EndpointError>;

    /// The oldest segment that the stack has sent and that was not taken yet.
    fn poll_sent(&mut self) -> Option<Sent>;

    /// The connection to which a segment with these flags would belong: a SYN after `listen` opens one.
    fn next_connection(&self, flags: Flags) -> u32;

    /// A segment arrives at the stack. A SYN after `listen` is the first of a connection of its own, to which all
    /// that follows belongs, as does a connection that `connect` opens.
    ///
    /// # Errors
    /// If the endpoint itself fails.
    fn inject(&mut self, arriving: &Received) -> Result<(), EndpointError>;

    /// The application makes a call. `socket` and `accept` open the file descriptor of the expected
    /// result.
    ///
    /// # Errors
    /// If the endpoint does not support the call.
    fn call(&mut self, call: &Call) -> Result<Returned, EndpointError>;

    /// The settings change, except for loss recovery and congestion control.
    ///
    /// # Errors
    /// If the endpoint cannot change them.
    fn configure(&mut self, settings: &Settings) -> Result<(), EndpointError>;

    /// How many connections are in this state, as `TCP_INFO` numbers them.
    ///
    /// # Errors
    /// If the endpoint does not know.
    fn count(&mut self, state: i64) -> Result<u32, EndpointError>;

    /// `TCP_INFO` of the connection.
    ///
    /// # Errors
    /// If there is no connection.
    fn info(&mut self) -> Result<Info, EndpointError>;
}

/// A segment that the stack has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// When.
    pub at: Duration,
    /// The segment, with sequence numbers as on the wire.
    pub segment: Segment,
    /// The ECN field of its packet.
    pub ecn: Ecn,
    /// Its option of Fast Open.
    pub fast_open: Option<FastOpen>,
    /// Which of the script's connections sent it, in order of their opening.
    pub connection: u32,
}

/// A segment that arrives at the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// The segment, with sequence numbers as on the wire.
    pub segment: Segment,
    /// The ECN field of its packet.
    pub ecn: Ecn,
    /// Its option of Fast Open.
    pub fast_open: Option<FastOpen>,
}

/// What a call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returned {
    /// A result.
    Value(i64),
    /// -1, with this `errno`.
    Error(&'static str),
    /// The call blocks. On a non-blocking socket it returns -1 with this `errno`.
    Blocks(&'static str),
    /// The call succeeds and stores something else than the script expects: what, and its value.
    Stores(&'static str, i64),
}

/// Why a script cannot run against an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EndpointError(pub String);
