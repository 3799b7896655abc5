//! Frames on their way, for as long as they may have to be sent again.

use std::io;

use weir_transport::Connection;
use weir_units::Instant;

use super::frame::Frame;

/// The frames that the other end has not acknowledged.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// The offset in the stream at which `bytes` begins.
    base: u64,
    bytes: Vec<u8>,
    /// Handed to the connection up to here.
    written: u64,
}

impl Outbox {
    pub(crate) fn push(&mut self, frame: &impl Frame) {
        frame.encode(&mut self.bytes);
    }

    /// How many bytes the other end has not acknowledged.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The memory that they take, in bytes.
    pub(crate) fn held(&self) -> usize {
        self.bytes.capacity()
    }

    /// Makes what was pushed available to send.
    pub(crate) fn write(&mut self, now: Instant, connection: &mut Connection) {
        let end = self.base + self.bytes.len() as u64;
        if end > self.written {
            connection.write(now, end - self.written);
            self.written = end;
        }
    }

    /// Forgets what has arrived.
    pub(crate) fn forget(&mut self, acked: u64) {
        if acked > self.base {
            self.bytes.drain(..(acked - self.base) as usize);
            self.base = acked;
            if self.bytes.is_empty() && self.held() > KEPT {
                self.bytes = Vec::new();
            }
        }
    }

    pub(crate) fn fill(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let start = offset.checked_sub(self.base).map(|start| start as usize);
        let bytes = start.and_then(|start| self.bytes.get(start..start + buf.len()));
        buf.copy_from_slice(
            bytes.ok_or_else(|| io::Error::other("bytes requested that were not written"))?,
        );
        Ok(())
    }
}

/// Memory that stays reserved for the next frames.
const KEPT: usize = 4 << 10;
