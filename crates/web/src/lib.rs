//! The simulator in a browser: a scenario is moved on step by step, and what happens is read as arrays
//! of numbers.
//!
//! [`Session`] does the work and runs on every machine. For `wasm32` the module `bindings` gives it a
//! JavaScript interface.

#[cfg(target_arch = "wasm32")]
pub mod bindings;
mod by_hand;
mod describe;
mod recorder;
mod rows;
mod session;

pub use recorder::{Fate, PacketKind};
pub use rows::{CROSSING, FRAME, PACKET, QUEUE, SACK, SAMPLE};
pub use session::{Session, State};
