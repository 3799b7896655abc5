//! Quantities with units, and the random streams that every model draws from.
//!
//! Time is an integer count of nanoseconds, sizes are bytes, rates are bits per second and
//! probabilities are exact fractions: no float decides anything, so a trace is the same on every
//! machine. Text forms follow `tc` (`10mbit`, `40ms`, `1500b`); see [`parse`].

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

pub use buffer::BufferSize;
pub use ecn::Ecn;
pub use feedback::{Echo, Feedback, FeedbackKind};
pub use parse::UnitError;
pub use quantity::{Bytes, Length, Rate, Ratio, Speed};
pub use rng::{Rng, stream};
pub use suggest::known;
pub use time::{Duration, Instant};
