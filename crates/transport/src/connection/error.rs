//! Why a connection broke.

use weir_cc::CcBuildError;
use weir_units::Duration;

/// Why a connection broke.
///
/// ```
/// use weir_transport::{Config, Connection, Event, Stack};
/// use weir_units::{Instant, stream};
///
/// let config = Config::new(Stack::parse_also_kernels("bpf_vegas")?);
/// let mut connection = Connection::connect(&config, Instant::ZERO, stream(1, "client"));
/// let Some(Event::Failed(error)) = connection.poll_event() else { panic!("it has no controller") };
/// assert_eq!(error.to_string(), "only a kernel's TCP has 'bpf_vegas'");
/// assert!(connection.is_closed());
/// # Ok::<(), weir_transport::StackError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectionError {
    /// No answer to the SYN.
    #[error(
        "no answer to the handshake after {retransmits} retransmissions in {waited} (max_retransmits, max_wait)"
    )]
    NoAnswer {
        /// How often the SYN was sent again.
        retransmits: u32,
        /// How long that took.
        waited: Duration,
    },
    /// Data, a FIN or window probes stayed unanswered.
    #[error(
        "the peer fell silent: no progress after {retransmits} retransmissions in {waited} (max_retransmits, max_wait)"
    )]
    TimedOut {
        /// Timeouts in a row.
        retransmits: u32,
        /// Time since the peer last moved anything forward.
        waited: Duration,
    },
    /// The peer refused the connection.
    #[error("the peer refused the connection")]
    Refused,
    /// The peer broke the connection off.
    #[error("the peer reset the connection")]
    Reset,
    /// The configured controller cannot be built.
    #[error(transparent)]
    Controller(#[from] CcBuildError),
}
