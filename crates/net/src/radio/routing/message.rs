//! What routers send each other.

/// A message of any routing protocol.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {}
