//! Links in real time: between real programs, and for scenarios of our transport over UDP sockets.

#[cfg(target_os = "linux")]
pub mod datagrams;
#[cfg(target_os = "linux")]
pub mod emulator;
pub mod health;
pub mod relay;
pub mod world;
