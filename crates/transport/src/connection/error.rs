//! Why a connection broke.

use weir_units::Duration;

/// Why a connection broke.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
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
}
