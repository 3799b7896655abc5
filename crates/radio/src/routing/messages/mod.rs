//! What routers send each other.

mod abr;
mod aodv;
mod dsr;
mod notice;

pub use abr::{AbrMessage, AbrQuery, AbrReply, Backtrack, RouteKey, Visit};
pub use aodv::{AodvMessage, RouteError, RouteReply, RouteRequest};
pub use dsr::{DsrMessage, DsrRequest, SourceRoute};
pub use notice::NoticeMessage;

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
