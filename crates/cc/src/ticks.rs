//! Linux's clock of ticks, in which some of its controllers count: a kernel with `HZ` = 1000.

use weir_units::Instant;

pub(crate) const TICKS_PER_SEC: u64 = 1_000;

/// The tick of an instant. Where ticks fall between two instants depends on the time of boot; here they fall
/// as in the traces that the tests replay.
pub(crate) fn ticks(now: Instant) -> u64 {
    (now.as_micros() + 250) / 1_000
}
