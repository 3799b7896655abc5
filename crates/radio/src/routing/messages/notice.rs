//! What a router sends to the source of a flow about its route.

use crate::datagram::NodeId;
use crate::routing::Notice;

/// A message to the source of a flow, which is the destination of its datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoticeMessage {
    /// Whose route it is.
    pub flow: u32,
    /// Where the flow goes.
    pub destination: NodeId,
    /// What happened.
    pub notice: Notice,
}
