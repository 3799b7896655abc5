//! Real time: the links of the simulator between real programs, and whole scenarios over UDP sockets or the
//! kernel's TCP.

#[cfg(target_os = "linux")]
pub mod datagrams;
#[cfg(target_os = "linux")]
pub mod emulator;
pub mod health;
#[cfg(target_os = "linux")]
pub mod kernel;
#[cfg(target_os = "linux")]
pub mod packetdrill;
pub mod relay;
pub mod world;
