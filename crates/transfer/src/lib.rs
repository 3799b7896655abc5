//! The real-time world: the same [`Connection`](weir_transport::Connection) and the same links as in
//! the simulator, driven by the machine's clock over UDP sockets.

pub mod clock;
#[cfg(target_os = "linux")]
pub mod emulator;
pub mod endpoint;
pub mod file;
pub mod health;
#[cfg(target_os = "linux")]
pub mod kernel;
pub mod relay;
pub mod seal;
pub mod socket;
pub mod tcp;
pub mod transfer;
pub mod world;
