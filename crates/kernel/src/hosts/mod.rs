//! Runs between hosts: flows of the kernel's TCP and of our transport, each from one machine to another.
//!
//! Nothing of ours lies between the machines: the links of the scenario carry no packet. On each host a
//! [`HostPart`] drives the ends of flows that are there, from a start that all hosts share. What its
//! applications and connections were given is its [`HostRecord`]. [`merge`] replays all records in one
//! place, and makes the tables of a run.

mod merge;
mod own;
mod part;
mod tap;

pub use self::merge::{MeasuredHost, merge};
pub use self::part::{HostPart, check_between_hosts};
pub use self::tap::{FlowLatency, PathLog, SharedPathLog};
