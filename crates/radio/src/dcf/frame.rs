//! What a MAC reads in frames, and what it has its host do.

use weir_units::Duration;

use crate::datagram::NodeId;

/// What a frame says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: FrameKind,
    pub(crate) from: NodeId,
    pub(crate) to: NodeId,
    /// For how long after its end it reserves the medium.
    pub(crate) duration: Duration,
    pub(crate) airtime: Duration,
    /// Of data frames.
    pub(super) sequence: u32,
    /// Whether RTS and CTS went before it.
    pub(super) announced: bool,
}

/// Kinds of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FrameKind {
    /// Request to send.
    Rts,
    /// Clear to send.
    Cts,
    /// A packet.
    Data,
    /// Acknowledgement.
    Ack,
}

/// What the host is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Nothing,
    /// Put this on the air.
    Transmit(Header),
    /// Take the packet of the data frame that was just received.
    Deliver,
    /// The frame was received before.
    Duplicate,
    /// The packet at hand is done with; call [`Dcf::complete`].
    Finished {
        outcome: Outcome,
        retries: u32,
    },
    /// No answer; it will try again.
    Retry(Attempt),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Sent,
    GivenUp(Attempt),
}

/// What went unanswered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// An RTS, or data without one.
    Short,
    /// Data behind a CTS.
    Long,
}
