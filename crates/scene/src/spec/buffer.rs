//! Memory that the ports of a switch share.

use weir_units::Bytes;

/// Memory that the ports of each switch share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferSpec {
    /// Memory of a switch.
    pub total: Bytes,
    /// What a port may hold, as a multiple of the memory that is free: of what it sends, or with priority
    /// flow control of what came in at it.
    pub alpha: Alpha,
    /// Whether ports pause their neighbours in place of dropping packets.
    pub pfc: Option<PfcSpec>,
}

/// Priority flow control (IEEE 802.1Qbb) with one priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PfcSpec {
    /// Memory that each port keeps for what arrives after it has sent a pause; `None`: what its link needs.
    pub headroom: Option<Bytes>,
    /// Memory that each port has for itself.
    pub reserve: Bytes,
    /// The longest packet there is.
    pub longest: Bytes,
}

/// A multiple of the memory that is free, above zero: 1/8, 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alpha {
    /// Times this.
    pub times: u32,
    /// Divided by this.
    pub over: u32,
}

impl Alpha {
    /// This multiple of `free`, rounded down.
    pub(crate) fn of(self, free: Bytes) -> Bytes {
        free.mul_ratio(u64::from(self.times), u64::from(self.over))
    }
}
