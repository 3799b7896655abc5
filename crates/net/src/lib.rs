//! Path pieces: links, queues, impairments and relays, driven by the owner of the clock.
//!
//! A piece is offered parcels, says when something will come out of it, and is polled then. The
//! simulator and the real-time relay host the same objects.
//!
//! A [`Link`] is a queue, a server, a wire and, if configured, a set of impairments:
//!
//! ```text
//! offer -> mtu, loss, corruption, duplication, policer -> queue -> server -> delay, jitter, reordering -> poll
//! ```
//!
//! Losses sit in front of the queue, as in Linux's netem: a lost parcel uses none of the link's
//! capacity and a duplicate uses it twice. Jitter and reordering happen on the wire.

mod bucket;
mod cake;
mod codel;
mod config;
mod droplog;
mod droptail;
mod dualpi2;
mod ecn_step;
pub mod feedback;
mod fq;
mod fq_codel;
mod fq_pie;
mod impair;
mod jitter;
mod link;
mod loss;
mod opportunities;
mod parcel;
mod pie;
mod queue;
pub mod radio;
mod red;
mod rotation;
mod schedule;
mod server;
mod sfq;
mod stats;
mod wire;

pub use bucket::PolicerConfig;
pub use cake::{Cake, CakeConfig, Isolation};
pub use codel::{Codel, CodelConfig, CodelLaw};
pub use config::{ConfigError, LinkConfig, QueueConfig, Service};
pub use droplog::DropRecord;
pub use droptail::{Counting, DropTail, DropTailConfig, Limit};
pub use dualpi2::{Classifier, DualPi2, DualPi2Config, Scheduler};
pub use ecn_step::{EcnStep, EcnStepConfig, StepThreshold};
pub use feedback::{FeedbackAgent, FeedbackConfig};
pub use fq::{Fq, FqConfig};
pub use fq_codel::{FqCodel, FqCodelConfig};
pub use fq_pie::{FqPie, FqPieConfig};
pub use impair::Impairments;
pub use jitter::{Jitter, Order, Reorder, Spread};
pub use link::{Delivery, Link, Violation};
pub use loss::{DropList, GilbertElliott, Numbering};
pub use opportunities::{DeliveryTrace, TraceError};
pub use parcel::{Ecn, Hosts, Parcel};
pub use pie::{Pie, PieConfig, PieLaw};
pub use queue::{Backlog, Dropped, Queue, Queued};
pub use red::{Red, RedConfig};
pub use schedule::Schedule;
pub use sfq::{Sfq, SfqConfig};
pub use stats::{DropCause, Stats, Tally};
