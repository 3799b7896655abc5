//! Quantities with units, and the random streams that every model draws from.
//!
//! Time is an integer count of nanoseconds, sizes are bytes, rates are bits per second and
//! probabilities are exact fractions: no float decides anything, so a trace is the same on every
//! machine. Text forms follow `tc` (`10mbit`, `40ms`, `1500b`).
//!
//! ```
//! use weir_units::{BufferSize, Bytes, Duration, Rate};
//!
//! let rate: Rate = "10mbit".parse()?;
//! let rtt: Duration = "40ms".parse()?;
//! let queue: BufferSize = "1bdp".parse()?;
//! assert_eq!(queue.to_bytes(rate, rtt), Some(Bytes(50_000)));
//! assert_eq!(rtt.to_string(), "40ms");
//! # Ok::<(), weir_units::UnitError>(())
//! ```
//!
//! With the feature `serde`, quantities are read and written as text in files too.

mod buffer;
mod ecn;
pub mod feedback;
mod parse;
mod quantity;
mod rng;
#[cfg(feature = "serde")]
mod serde;
mod suggest;
mod time;

/// The example of the README, which runs with those of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

pub use buffer::BufferSize;
pub use ecn::Ecn;
pub use feedback::{Echo, Feedback, FeedbackKind};
pub use parse::UnitError;
pub use quantity::{Bytes, Length, Rate, Ratio, Speed};
pub use rng::{Rng, mix, stream};
pub use suggest::known;
pub use time::{Duration, Instant};
