//! What routers send each other.

use super::abr::AbrMessage;
use super::aodv::AodvMessage;
use super::dsr::DsrMessage;
use super::notices::NoticeMessage;

/// A message of any routing protocol.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// Of AODV.
    Aodv(AodvMessage),
    /// Of ABR.
    Abr(AbrMessage),
    /// Of DSR.
    Dsr(DsrMessage),
    /// To the source of a flow, about its route.
    Notice(NoticeMessage),
}
