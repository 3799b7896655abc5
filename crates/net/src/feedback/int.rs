//! `int`: in-band telemetry as HPCC's switches have it.
//!
//! Source: Li et al., "HPCC: high precision congestion control", SIGCOMM 2019, §3.1 and §4.1. When a link sends a
//! packet that asks for it, it appends a record: the time, the bytes that it sent before, those that wait behind the
//! packet, and its rate.
//!
//! Deviation: the paper's records have 8 bytes, with counters of 20 to 24 bits in coarser units. Ours have the same
//! four numbers in 32 bits each, and add nothing to the length of the packet.
//!
//! Parameters: none.

use weir_units::feedback::Hop;
use weir_units::{Feedback, Instant, Rate};

use super::occupancy::{Occupancy, Signal};
use crate::parcel::Parcel;
use crate::queue::Backlog;

/// The agent.
#[derive(Clone, Debug)]
pub struct Int {
    /// In kbit/s.
    rate: u32,
    /// Modulo 2^32.
    sent: u32,
}

impl Int {
    /// Nothing sent yet.
    pub fn new(rate: Rate) -> Self {
        Self { rate: kbit(rate), sent: 0 }
    }

    pub(super) fn set_rate(&mut self, rate: Rate) {
        self.rate = kbit(rate);
    }

    pub(super) fn set_busy(&mut self, _: Instant, _: Signal, _: Occupancy) {}

    pub(super) fn on_departure<P: Parcel>(
        &mut self,
        now: Instant,
        parcel: &mut P,
        behind: Backlog,
    ) {
        let (nanos, bytes) = (now.as_nanos() as u32, self.sent);
        self.sent = self.sent.wrapping_add(parcel.len().get() as u32);
        let asks = matches!(parcel.feedback(), Some(Feedback::Int));
        if let Some(telemetry) = parcel.telemetry().filter(|_| asks) {
            let queue = u32::try_from(behind.bytes.get()).unwrap_or(u32::MAX);
            telemetry.push(Hop { nanos, bytes, queue, kbit: self.rate });
        }
    }
}

fn kbit(rate: Rate) -> u32 {
    u32::try_from(rate.as_bits_per_sec() / 1_000).unwrap_or(u32::MAX)
}
