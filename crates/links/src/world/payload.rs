//! The bytes that flows carry: made from their place in the stream, so that a receiver can tell
//! whether what it stores belongs there.

use std::ops::Range;

use weir_scene::{Direction, Packet};
use weir_transport::Arrived;
use weir_units::stream;

/// The bytes of every stream of a run.
#[derive(Debug)]
pub struct Pattern(Box<[u8]>);

/// Period of a stream's content in bytes: a prime, so that what is misplaced by a round number
/// is noticed.
const PERIOD: u64 = 65_521;

impl Pattern {
    /// The streams of the run with this seed.
    pub fn new(seed: u64) -> Self {
        let mut rng = stream(seed, "payload");
        let mut bytes: Vec<u8> = (0..PERIOD).map(|_| rng.next_u32() as u8).collect();
        bytes.extend_from_within(..);
        Self(bytes.into())
    }

    /// The bytes at `place` in a stream.
    ///
    /// # Panics
    /// If they are more than a period: no datagram is longer.
    pub fn bytes(&self, flow: u32, direction: Direction, place: Range<u64>) -> &[u8] {
        let len = place.end - place.start;
        assert!(len <= PERIOD, "{len} bytes at once");
        // Streams begin at different points, so that what belongs to another flow is noticed too.
        let shift = u64::from(flow) * 7_919 + direction as u64 * 104_729;
        let start = ((place.start + shift) % PERIOD) as usize;
        &self.0[start..start + len as usize]
    }

    /// Checks that what a receiver stores of `payload`, that of `packet`, is what was sent.
    ///
    /// # Errors
    /// Which bytes are wrong.
    pub fn check(&self, packet: &Packet, at: &Arrived, payload: &[u8]) -> Result<(), String> {
        let Arrived { offset, skip, len } = *at;
        let expected = self.bytes(packet.flow, packet.direction, offset..offset + u64::from(len));
        if payload.get(skip as usize..(skip + len) as usize) == Some(expected) {
            return Ok(());
        }
        Err(format!("flow {}: wrong bytes stored at {offset}, {len} of them", packet.flow))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_the_same_however_it_is_cut_and_differs_from_others() {
        let pattern = Pattern::new(3);
        let whole = pattern.bytes(1, Direction::Forward, 65_000..66_500);
        let second = pattern.bytes(1, Direction::Forward, 65_700..66_000);
        assert_eq!(&whole[700..1_000], second);
        assert_ne!(
            pattern.bytes(1, Direction::Forward, 65_701..66_001),
            second,
            "misplaced by one"
        );
        assert_ne!(pattern.bytes(2, Direction::Forward, 65_700..66_000), second, "another flow");
        assert_ne!(pattern.bytes(1, Direction::Reverse, 65_700..66_000), second, "the way back");
    }
}
