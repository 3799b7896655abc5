//! Captures of Solaris' snoop, as pcap.
//!
//! Source: RFC 1761. Each record has its length, the kept length, that of the record, drops, seconds, microseconds.

use std::io::{Error, Read, Result};

/// The first bytes of such a capture.
pub(crate) const MAGIC: [u8; 8] = *b"snoop\0\0\0";

/// Turns the records of a capture of snoop into those of pcap.
pub(crate) struct AsPcap<R> {
    source: R,
    ready: Vec<u8>,
    given: usize,
    has_begun: bool,
}

impl<R: Read> AsPcap<R> {
    /// Of a source at its first byte.
    pub(crate) fn new(source: R) -> Self {
        Self { source, ready: Vec::new(), given: 0, has_begun: false }
    }

    fn begin(&mut self) -> Result<()> {
        let mut header = [0; 16];
        self.source.read_exact(&mut header)?;
        let link_type = match word(&header, 12) {
            4 => ETHERNET,
            8 => FDDI,
            26 => IP_OVER_INFINIBAND,
            228 => 228,
            other => NONE + (other & 0xff),
        };
        self.ready.extend(0xa1b2_c3d4_u32.to_be_bytes());
        self.ready.extend([0, 2, 0, 4]);
        for value in [0, 0, LONGEST, link_type] {
            self.ready.extend(value.to_be_bytes());
        }
        Ok(())
    }

    /// Prepares the next record. Leaves nothing at the end.
    fn advance(&mut self) -> Result<()> {
        let mut header = [0; 24];
        let mut filled = 0;
        while filled < header.len() {
            match self.source.read(&mut header[filled..])? {
                0 => break,
                count => filled += count,
            }
        }
        if filled < header.len() {
            // What is left of a record is an incomplete one of pcap too.
            self.ready.extend(&header[..filled.min(15)]);
            return Ok(());
        }
        let (len, kept, record) = (word(&header, 0), word(&header, 4), word(&header, 8));
        let padding = record.checked_sub(24).and_then(|rest| rest.checked_sub(kept));
        let (Some(padding), true) = (padding, kept <= LONGEST) else {
            return Err(Error::other("a record of snoop has an impossible length"));
        };
        for value in [word(&header, 16), word(&header, 20), kept, len] {
            self.ready.extend(value.to_be_bytes());
        }
        self.source.by_ref().take(u64::from(kept)).read_to_end(&mut self.ready)?;
        std::io::copy(&mut self.source.by_ref().take(u64::from(padding)), &mut std::io::sink())?;
        Ok(())
    }
}

impl<R: Read> Read for AsPcap<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if self.given == self.ready.len() {
            self.ready.clear();
            self.given = 0;
            if std::mem::replace(&mut self.has_begun, true) {
                self.advance()?;
            } else {
                self.begin()?;
            }
        }
        let count = buffer.len().min(self.ready.len() - self.given);
        buffer[..count].copy_from_slice(&self.ready[self.given..self.given + count]);
        self.given += count;
        Ok(count)
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte))
}

// Link types of pcap. Those of snoop that are not known get a number that no link type has.
const ETHERNET: u32 = 1;
const FDDI: u32 = 10;
const IP_OVER_INFINIBAND: u32 = 242;
const NONE: u32 = 0xff00;
const LONGEST: u32 = 262_144;
