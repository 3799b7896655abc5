//! The simulated world: virtual time, endpoints, links, workloads, measurement and checkers.
//!
//! [`run`] takes a plain description of links and flows and a seed, and returns the rows of the
//! result tables. The same description and seed give the same bytes, on every machine.

mod aggregate;
mod app;
mod check;
mod error;
mod events;
mod flow;
mod ledger;
mod meter;
mod network;
mod outcome;
mod packet;
mod periods;
mod probe;
mod queue;
mod reliable;
mod requests;
mod run;
mod spec;
pub mod topology;
mod udp;
mod validate;
mod world;

pub use error::SimError;
pub use outcome::Outcome;
pub use queue::QueueKind;
pub use run::{RunOptions, run, run_with};
pub use spec::{
    FlowSpec, LinkSpec, MeasureSpec, OnOff, PeriodSpread, SimSpec, TransportSpec, UdpConfig,
    Workload,
};
pub use validate::validate;
