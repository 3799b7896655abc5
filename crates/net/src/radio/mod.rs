//! Multihop wireless: nodes with positions that share one channel.
//!
//! ```text
//! flow's packet -> routing -> interface queue -> MAC (802.11 DCF) -> channel -> MAC -> routing -> ...
//! ```
//!
//! Sources and the known errors of older simulators are named where they matter. Distances are
//! millimetres, so that positions are integers.

mod agent;
mod airtime;
mod arp;
mod audience;
mod config;
mod datagram;
mod dcf;
mod events;
mod frames;
mod ifq;
mod medium;
mod position;
mod propagation;
mod receiver;
mod routing;
mod stats;

pub use agent::{Agent, Occupied};
pub use airtime::Phy;
pub use config::{Access, Arp, InterfaceQueueConfig, MacConfig, Order, RadioConfig};
pub use datagram::{Content, Datagram, DropReason, NodeId};
pub use dcf::FrameKind;
pub use frames::FrameRecord;
pub use medium::{Radio, RadioEvent};
pub use position::Position;
pub use propagation::Propagation;
pub use routing::{LinkFailure, Notice, Router, RouterCx, Upcall};
pub use stats::{Cargo, RadioStats};
