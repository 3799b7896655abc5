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
mod decimal;
mod events;
mod frames;
mod graph;
mod ifq;
mod medium;
mod mobility;
mod placement;
mod position;
#[cfg(test)]
#[path = "../../net/src/probe.rs"]
mod probe;
mod propagation;
mod receiver;
mod routing;
mod stats;

#[cfg(test)]
use weir_net::{Ecn, Parcel};

pub use agent::Agent;
pub use airtime::Phy;
pub use config::{Access, Arp, InterfaceQueueConfig, MacConfig, Order, RadioConfig};
pub use datagram::{Content, Datagram, DropReason, NodeId};
pub use dcf::FrameKind;
pub use frames::{FrameCargo, FrameRecord};
pub use graph::Graph;
pub use medium::{Radio, RadioEvent};
pub use mobility::{Mobility, RandomWaypoint, Speeds, TraceFileError, WaypointError};
pub use placement::{
    Area, Connection, GridShape, Placement, PlacementError, RandomPlacement, ReadError,
};
pub use position::Position;
pub use propagation::Propagation;
pub use routing::{
    Abr, AbrConfig, AbrMessage, AbrQuery, AbrReply, AnyRouter, Aodv, AodvConfig, AodvMessage,
    Backtrack, BufferConfig, Dsr, DsrConfig, DsrMessage, DsrRequest, HelloConfig, LinkFailure,
    LocalRepair, Message, Notice, NoticeMessage, Notices, RequestWait, RouteError, RouteKey,
    RouteReply, RouteRequest, Router, RouterConfig, RouterConfigError, RouterCx, SourceRoute,
    StaticRouter, StaticRoutes, Upcall, Visit,
};
pub use stats::{PacketClass, RadioStats};
