//! Path pieces: links, queues, impairments and relays, driven by whoever owns the clock.
//!
//! A piece is offered parcels, says when something will come out of it, and is polled then. The
//! simulator and the real-time relay host the same objects.

mod parcel;

pub use parcel::{Ecn, Parcel};
