//! File transfer: the same [`Connection`](weir_transport::Connection) as in the simulator, driven by the
//! machine's clock over UDP sockets.

pub mod endpoint;
pub mod file;
mod programs;
pub mod seal;
pub mod tcp;

pub use programs::{
    Carrier, ConnectionSequence, DatagramSession, Destination, Progress, Receiving, RecvOptions,
    SendOptions, Sender, Sent, Sessions, Skipped, TransferError, Watch, recv, resolve, send,
};
