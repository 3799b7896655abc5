//! The machine's clock, its UDP sockets, and who gets a place at them, for the worlds in real time and for file
//! transfer.

pub mod clock;
pub mod places;
pub mod socket;
