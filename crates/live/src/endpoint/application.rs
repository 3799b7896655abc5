//! What lives on a connection.

use std::io;

use weir_transport::Connection;
use weir_units::Instant;

/// What lives on a connection, as a state machine that the endpoint drives. An error from any of its
/// methods breaks the connection off.
pub trait Application {
    /// Copies the outgoing stream's bytes from `offset` on into `buf`; asked again for what is sent
    /// again. Never asked for what was not written.
    ///
    /// # Errors
    /// Why the bytes cannot be had.
    fn fill(&mut self, offset: u64, buf: &mut [u8]) -> io::Result<()>;

    /// Keeps bytes of the incoming stream: each byte once, in any order, never beyond the window that
    /// was offered.
    ///
    /// # Errors
    /// Why the bytes cannot be kept.
    fn store(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// After each batch of arrivals or deadlines: reads events, consumes what is readable, writes,
    /// closes, opens the window.
    ///
    /// # Errors
    /// Why the connection is to be broken off.
    fn on_turn(&mut self, now: Instant, connection: &mut Connection) -> io::Result<()>;

    /// When it wants a turn by itself.
    fn next_time(&self) -> Option<Instant> {
        None
    }
}
