//! Multihop wireless: nodes with positions that share one channel.
//!
//! ```text
//! flow's packet -> routing -> interface queue -> MAC (802.11 DCF) -> channel -> MAC -> routing -> ...
//! ```
//!
//! Sources and the known errors of older simulators are named where they matter. Distances are
//! millimetres, so that positions are integers.

mod datagram;
mod position;
mod routing;

pub use datagram::{Content, Datagram, DropReason, NodeId};
pub use position::Position;
pub use routing::{LinkFailure, Notice, Router, RouterCx, Upcall};
