//! What a script runs against.

use weir_transport::Segment;
use weir_units::{Duration, Ecn};

use crate::info::Info;
use crate::script::Call;

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

    /// A segment arrives at the stack.
    ///
    /// # Errors
    /// If the endpoint itself fails.
    fn inject(&mut self, segment: &Segment, ecn: Ecn) -> Result<(), EndpointError>;

    /// The application makes a call. `socket` and `accept` open the file descriptor of the expected
    /// result.
    ///
    /// # Errors
    /// If the endpoint does not support the call.
    fn call(&mut self, call: &Call) -> Result<Returned, EndpointError>;

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
}

/// Why a script cannot run against an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EndpointError(pub String);
