//! The simulated world: virtual time, endpoints, links, workloads, measurement and checkers.
//!
//! [`run`] takes a plain description of links and flows and a seed, and returns the rows of the
//! result tables. The same description and seed give the same bytes, on every machine.

mod app;
mod packet;
mod queue;
mod spec;
pub mod topology;

pub use queue::QueueKind;
pub use spec::{FlowSpec, LinkSpec, MeasureSpec, SimSpec, TransportSpec, UdpConfig, Workload};
