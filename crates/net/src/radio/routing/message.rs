//! What routers send each other.

use super::aodv::AodvMessage;
use super::notices::NoticeMessage;

/// A message of any routing protocol.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// Of AODV.
    Aodv(AodvMessage),
    /// To the source of a flow, about its route.
    Notice(NoticeMessage),
}
