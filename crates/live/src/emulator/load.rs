//! The bytes of a foreign packet while it is under way.

use std::sync::Arc;

use crate::relay::{Room, Taken};

/// The bytes of a packet. Copies share them; room for them is given back with the last. A packet
/// between ends of our own has none.
#[derive(Clone, Debug, Default)]
pub struct Load(Option<Arc<Buffer>>);

#[derive(Debug)]
struct Buffer {
    bytes: Box<[u8]>,
    _room: Taken,
}

impl Load {
    /// A copy of `bytes`, if there is room for it.
    pub(super) fn new(bytes: &[u8], room: &Room) -> Option<Self> {
        let taken = room.take(bytes.len())?;
        Some(Self(Some(Arc::new(Buffer { bytes: bytes.into(), _room: taken }))))
    }

    /// The bytes, as they were read.
    pub fn bytes(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], |buffer| &buffer.bytes)
    }
}
