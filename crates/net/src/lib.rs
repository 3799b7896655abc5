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
//!
//! Three packets are offered to 12 Mbit/s and 20 ms with space for two:
//!
//! ```
//! # mod packet { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/packet.rs")); }
//! # use packet::Packet;
//! use weir_net::{Limit, Link, LinkConfig};
//! use weir_units::{Duration, Instant, Rate, stream};
//!
//! let (rate, delay) = (Rate::from_mbit(12), Duration::from_millis(20));
//! let config = LinkConfig::new(rate, delay).with_limit(Limit::Packets(2));
//! let mut link = Link::new(&config, |purpose| stream(1, purpose))?;
//! for _ in 0..3 {
//!     link.offer(Instant::ZERO, Packet::new(1_500));
//! }
//! let mut arrivals = Vec::new();
//! while let Some(time) = link.next_time() {
//!     while let Some(delivery) = link.poll(time) {
//!         arrivals.push((time.as_micros(), delivery.sojourn.as_micros()));
//!     }
//! }
//! assert_eq!(arrivals, [(21_000, 0), (22_000, 1_000)]);
//! assert_eq!(link.stats(Instant::MAX).dropped_queue.packets, 1);
//! # Ok::<(), weir_net::ConfigError>(())
//! ```
//!
//! `Packet` is any type that implements [`Parcel`].

mod bucket;
mod cake;
mod choke;
mod codel;
mod config;
mod disciplines;
mod droplog;
mod droptail;
mod dualpi2;
mod ecn_step;
mod error;
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
#[cfg(test)]
mod probe;
mod queue;
mod red;
mod rotation;
mod schedule;
mod server;
mod service;
mod sfq;
mod stats;
mod wire;

/// The example of the README, which runs with those of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

pub use bucket::PolicerConfig;
pub use cake::{Cake, CakeConfig, Isolation};
pub use choke::{Choke, ChokeConfig};
pub use codel::{Codel, CodelConfig, CodelLaw};
pub use config::LinkConfig;
pub use disciplines::QueueConfig;
pub use droplog::DropRecord;
pub use droptail::{Counting, DropTail, DropTailConfig, Limit};
pub use dualpi2::{Classifier, DualPi2, DualPi2Config, Scheduler};
pub use ecn_step::{EcnStep, EcnStepConfig, StepThreshold};
pub use error::{ConfigError, MAX_DELAY, check_span};
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
pub use queue::{Backlog, Dropped, Queue, Queued, mark};
pub use red::{EarlyDetection, Red, RedConfig};
pub use rotation::{MAX_FLOW_QUEUES, MAX_QUANTUM};
pub use schedule::Schedule;
pub use service::Service;
pub use sfq::{Sfq, SfqConfig};
pub use stats::{DropCause, Stats, Tally};
