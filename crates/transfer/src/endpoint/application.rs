//! What lives on a connection.

use std::io;

use weir_sockets::socket::MAX_DATAGRAM;
use weir_transport::Connection;
use weir_transport::wire::Ports;
use weir_units::Instant;

use crate::seal;

/// What lives on a connection, as a state machine that the endpoint drives. An error from any of its
/// methods breaks the connection off.
pub trait Application {
    /// Copies the outgoing stream's bytes from `offset` on into `buf`; asked again for what is sent
    /// again. Never called for bytes that were not written.
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
    fn on_step(&mut self, now: Instant, connection: &mut Connection) -> io::Result<()>;

    /// When it wants a step by itself.
    fn next_time(&self) -> Option<Instant> {
        None
    }

    /// Whether the peer has said what the connection is for. Until then, a connection does not count as
    /// active at a limit of connections, whatever arrives on it.
    fn is_established(&self) -> bool {
        true
    }

    /// How much was done for the peer so far that costs it little, in frames for example. An endpoint does a bounded
    /// number of these before it reads again, first for those of which it has done least.
    fn work(&self) -> u64 {
        0
    }

    /// Whether the next step ends the connection, because others need what it holds. It comes first then.
    fn must_end(&self) -> bool {
        false
    }

    /// The next [loose](Datagram) datagram that may be sent. It is sent once, and no acknowledgement says whether it
    /// arrives.
    fn poll_loose(&mut self, _now: Instant) -> Option<Datagram> {
        None
    }

    /// Copies the payload of a loose datagram into `buf`.
    ///
    /// # Errors
    /// Why the bytes cannot be had.
    fn fill_loose(&mut self, _loose: Datagram, _buf: &mut [u8]) -> io::Result<()> {
        Ok(())
    }

    /// Takes a loose datagram that arrived: perhaps not the first time, in any order, and changed on
    /// its way unless the connection is sealed.
    ///
    /// # Errors
    /// Why the connection is to be broken off.
    fn store_loose(&mut self, _now: Instant, _number: u64, _bytes: &[u8]) -> io::Result<()> {
        Ok(())
    }
}

/// A datagram outside of the connection's stream, as UDP sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Its number, which travels with it and means what the application likes.
    pub number: u64,
    /// How many bytes it carries, at most [`MAX_LEN`](Self::MAX_LEN).
    pub len: usize,
}

impl Datagram {
    /// The header of a loose datagram: ports, number, and a zero where a segment has its header's
    /// length, so that it can be none.
    pub const HEADER_LEN: usize = 13;
    /// The most that one carries, sealed or not.
    pub const MAX_LEN: usize = MAX_DATAGRAM - Self::HEADER_LEN - seal::OVERHEAD;

    /// Appends the datagram to `out`.
    pub(super) fn emit(
        self,
        ports: Ports,
        out: &mut Vec<u8>,
        fill: impl FnOnce(&mut [u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        out.extend(ports.source.to_be_bytes());
        out.extend(ports.destination.to_be_bytes());
        out.extend(self.number.to_be_bytes());
        out.push(0);
        let start = out.len();
        out.resize(start + self.len, 0);
        fill(&mut out[start..])
    }

    /// The number and the payload of a datagram that is loose.
    pub(super) fn parse(datagram: &[u8]) -> Option<(u64, &[u8])> {
        let (header, payload) = datagram.split_first_chunk::<{ Self::HEADER_LEN }>()?;
        let [_, _, _, _, number @ .., 0] = *header else { return None };
        Some((u64::from_be_bytes(number), payload))
    }
}
