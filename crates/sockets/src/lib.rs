//! The machine's clock and its UDP sockets, for the worlds in real time and for file transfer.

pub mod clock;
pub mod socket;
