//! What is around a segment on its way.

use std::io;

use weir_transport::Segment;
use weir_transport::wire::{self, Ports};
use weir_units::Instant;

use super::application::Datagram;
use crate::seal::{Opened, Seal};

/// How a connection's segments are wrapped into datagrams.
#[derive(Debug)]
pub enum Framing {
    /// Not at all: the datagram is the segment.
    Clear,
    /// Encrypted and authenticated.
    Sealed(Seal),
}

impl Framing {
    /// How long the datagram around a segment of `len` bytes will be.
    pub fn wrapped_len(&self, len: usize) -> usize {
        match self {
            Self::Clear => len,
            Self::Sealed(seal) => seal.sealed_len(len),
        }
    }

    /// Appends the datagram that carries `segment`, whose payload `fill` puts in its place; `scratch` is
    /// overwritten.
    ///
    /// # Errors
    /// That of `fill`, or why the segment cannot be wrapped.
    pub fn wrap(
        &mut self,
        now: Instant,
        segment: &Segment,
        ports: Ports,
        fill: impl FnOnce(&mut [u8]) -> io::Result<()>,
        scratch: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        let len = segment.header_len() + segment.payload_len as usize;
        match self {
            Self::Clear => {
                let start = out.len();
                out.resize(start + len, 0);
                wire::emit_into(segment, ports, &mut out[start..], fill)?;
                Ok(())
            }
            Self::Sealed(seal) => {
                scratch.resize(scratch.len().max(len), 0);
                let len = wire::emit_into(segment, ports, scratch, fill)?;
                seal.seal(now, &scratch[..len], out).map_err(io::Error::other)
            }
        }
    }

    /// Appends the datagram that carries something loose, as [`wrap`](Self::wrap) does a segment.
    pub(super) fn wrap_datagram(
        &mut self,
        now: Instant,
        datagram: Datagram,
        ports: Ports,
        fill: impl FnOnce(&mut [u8]) -> io::Result<()>,
        scratch: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        match self {
            Self::Clear => datagram.emit(ports, out, fill),
            Self::Sealed(seal) => {
                scratch.clear();
                datagram.emit(ports, scratch, fill)?;
                seal.seal(now, scratch, out).map_err(io::Error::other)
            }
        }
    }

    /// What the datagram is; `scratch` is overwritten.
    pub fn open<'a>(
        &'a mut self,
        now: Instant,
        datagram: &'a [u8],
        scratch: &'a mut Vec<u8>,
    ) -> Opened<'a> {
        match self {
            Self::Clear => Opened::Segment(datagram),
            Self::Sealed(seal) => seal.open(now, datagram, scratch),
        }
    }
}

/// The port fields, with which every datagram begins, wrapped or not.
pub(super) fn ports(datagram: &[u8]) -> Option<Ports> {
    let [a, b, c, d] = *datagram.first_chunk()?;
    Some(Ports { source: u16::from_be_bytes([a, b]), destination: u16::from_be_bytes([c, d]) })
}
