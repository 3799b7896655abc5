//! The bytes of a foreign packet while it is in flight: its own, or its part of a superpacket.

use std::ops::Range;
use std::sync::Arc;

use super::superpacket::{Layout, MAX_HEADER, Part};
use crate::relay::{MemoryLimit, Reserved};

/// The bytes of a packet. Copies share them, as do the parts of a superpacket, whose headers are
/// written when they are wanted; their memory is given back with the last.
#[derive(Clone, Debug, Default)]
pub struct Load {
    buffer: Arc<Buffer>,
    part: u32,
}

#[derive(Debug, Default)]
struct Buffer {
    bytes: Box<[u8]>,
    layout: Layout,
    _reserved: Option<Reserved>,
}

impl weir_scene::Load for Load {}

impl Load {
    /// A copy of `bytes`, which are laid out in this way, if there is memory: its first part.
    pub(super) fn new(bytes: &[u8], layout: Layout, memory: &MemoryLimit) -> Option<Self> {
        let taken = memory.take(bytes.len(), layout.parts(bytes.len()))?;
        let buffer = Buffer { bytes: bytes.into(), layout, _reserved: Some(taken) };
        Some(Self { buffer: Arc::new(buffer), part: 0 })
    }

    /// All parts in order: the packets of the wire.
    pub(super) fn parts(&self) -> impl Iterator<Item = Self> + use<'_> {
        let count = self.buffer.layout.parts(self.buffer.bytes.len()) as u32;
        (0..count).map(|part| Self { buffer: Arc::clone(&self.buffer), part })
    }

    /// The length of the packet.
    pub(super) fn len(&self) -> usize {
        self.layout().header() + self.payload().len()
    }

    /// What is behind the headers; of a packet that was never part of another, all of it.
    pub(super) fn payload(&self) -> &[u8] {
        &self.buffer.bytes[self.payload_range()]
    }

    pub(super) fn layout(&self) -> &Layout {
        &self.buffer.layout
    }

    /// The headers as they were read, those of the first part.
    pub(super) fn template(&self) -> &[u8] {
        &self.buffer.bytes[..self.layout().header()]
    }

    /// The bytes as they were read, from the network header on.
    pub(super) fn start(&self) -> &[u8] {
        &self.buffer.bytes
    }

    pub(super) fn is_v4(&self) -> bool {
        self.start().first().is_some_and(|byte| byte >> 4 == 4)
    }

    /// Which part of the packet that was read it is.
    pub(super) fn part(&self) -> Part<'_> {
        let payload = self.payload_range();
        Part {
            template: self.template(),
            number: self.part,
            offset: (payload.start - self.layout().header()) as u32,
            is_last: payload.end == self.buffer.bytes.len(),
        }
    }

    /// Whether `other` comes straight behind it in the same buffer.
    pub(super) fn is_followed_by(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.buffer, &other.buffer) && self.part + 1 == other.part
    }

    /// The payload from this part to a later one of the same buffer.
    pub(super) fn payload_up_to(&self, last: &Self) -> &[u8] {
        &self.buffer.bytes[self.payload_range().start..last.payload_range().end]
    }

    /// The whole packet with checksums complete.
    pub(super) fn to_vec(&self) -> Vec<u8> {
        let mut headers = [0; MAX_HEADER];
        let headers = self.layout().write_header(&self.part(), self.payload().len(), &mut headers);
        let mut packet = [headers, self.payload()].concat();
        self.layout().complete(&mut packet);
        packet
    }

    fn payload_range(&self) -> Range<usize> {
        self.buffer.layout.payload(self.part as usize, self.buffer.bytes.len())
    }
}
