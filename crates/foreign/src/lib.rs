//! Transports of other projects in the simulator: quinn-proto and noq-proto in virtual time.
//!
//! Both are sans-IO. Each end of a flow has an endpoint with one connection, and one bidirectional
//! stream in it; its datagrams cross our links. A null handshake takes the place of TLS, connection
//! IDs count, and the endpoints' random numbers come from the flow's streams: the same seed gives the
//! same packets. Controllers are the host's own or, by [`quinn::Stack::new`] and
//! [`noq::Stack::new`], any other implementation of the host's trait.
//!
//! The hosts need feature `hosts`. Without it only the names of the stacks are known.

#![allow(clippy::duplicate_mod, reason = "host/ is compiled once for each host, on purpose")]

#[cfg(feature = "hosts")]
mod clock;
#[cfg(feature = "hosts")]
mod handshake;
#[cfg(feature = "hosts")]
mod makers;
#[cfg(feature = "hosts")]
mod monitor;
#[cfg(feature = "hosts")]
pub mod noq;
#[cfg(feature = "hosts")]
mod pattern;
#[cfg(feature = "hosts")]
pub mod quinn;
mod settings;
mod stacks;

pub use settings::{MIN_PAYLOAD, Settings};
pub use stacks::{StackName, StackNameError};
