//! Datagrams that leave with one system call.

use std::io;
use std::net::{IpAddr, SocketAddr};

use weir_sockets::socket::{DatagramSink, MAX_DATAGRAM, SendBatch, in_memory};
use weir_units::Ecn;

/// Where a datagram goes, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Addressing {
    pub(super) to: SocketAddr,
    /// Which of this machine's addresses it comes from.
    pub(super) from: Option<IpAddr>,
    pub(super) ecn: Ecn,
}

/// Datagrams for one place, all of one size but the last.
#[derive(Debug)]
pub(super) struct Outbox {
    bytes: Vec<u8>,
    way: Option<Addressing>,
    stride: usize,
    count: usize,
    /// The last one was shorter: no more fit.
    complete: bool,
}

impl Outbox {
    pub(super) fn new() -> Self {
        let mut bytes = in_memory(MAX_DATAGRAM);
        bytes.clear();
        Self { bytes, way: None, stride: 0, count: 0, complete: false }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether a datagram of `len` bytes may leave with those that are there.
    pub(super) fn takes(&self, way: Addressing, len: usize, max_segments: usize) -> bool {
        self.is_empty()
            || (self.way == Some(way)
                && !self.complete
                && len <= self.stride
                && self.count < max_segments
                && self.bytes.len() + len <= MAX_DATAGRAM)
    }

    /// Appends a datagram of `len` bytes that [`takes`](Self::takes) has let through. On an error
    /// nothing is appended.
    pub(super) fn push(
        &mut self,
        way: Addressing,
        len: usize,
        write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>,
    ) -> io::Result<()> {
        let start = self.bytes.len();
        if let Err(error) = write(&mut self.bytes) {
            self.bytes.truncate(start);
            return Err(error);
        }
        debug_assert_eq!(self.bytes.len() - start, len, "a datagram is as long as announced");
        if self.is_empty() {
            self.way = Some(way);
            self.stride = len;
        }
        self.count += 1;
        self.complete = len < self.stride;
        Ok(())
    }

    /// Sends what is there. It stays where the sink has no space for it.
    pub(super) fn send(&mut self, sink: &impl DatagramSink) -> io::Result<()> {
        let Some(way) = self.way.filter(|_| !self.is_empty()) else { return Ok(()) };
        let departure = SendBatch {
            to: way.to,
            from: way.from,
            ecn: way.ecn,
            bytes: &self.bytes,
            stride: self.stride,
        };
        match sink.send(&departure) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(error),
            result => {
                self.clear();
                result
            }
        }
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
        self.complete = false;
    }
}
