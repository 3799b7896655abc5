//! A link between two network namespaces that hosts the simulator's links in real time.
//!
//! Each namespace gets a TUN device. What the kernel routes into one comes out of the other, as late
//! and as incomplete as the path between them makes it. Offloads are off, so that every packet is one
//! of the wire's and is lost, marked and timed on its own.

mod ip;
mod link;

pub use link::{End, TunError, TunLink};
