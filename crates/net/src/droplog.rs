//! Which parcels were dropped, for the events table.

use weir_units::{Bytes, Instant};

use crate::stats::DropCause;

/// One drop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DropRecord {
    /// When.
    pub time: Instant,
    /// Why.
    pub cause: DropCause,
    /// Whose it was.
    pub flow: u32,
    /// Whether it travelled towards the flow's receiver.
    pub is_forward: bool,
    /// Whether it carried application data.
    pub carries_data: bool,
    /// Its length.
    pub len: Bytes,
    /// Its [`stamp`](crate::Parcel::stamp).
    pub stamp: u32,
}

/// The drops since the log was last emptied, up to a number.
#[derive(Clone, Debug)]
pub(crate) struct DropLog {
    records: Vec<DropRecord>,
    capacity: usize,
}

impl DropLog {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { records: Vec::new(), capacity }
    }

    pub(crate) fn push(&mut self, record: DropRecord) {
        if self.records.len() < self.capacity {
            self.records.push(record);
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub(crate) fn drain(&mut self) -> impl Iterator<Item = DropRecord> + '_ {
        self.records.drain(..)
    }
}
