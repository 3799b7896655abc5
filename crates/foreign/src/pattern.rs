//! Contents of streams: bytes that follow from their offset, so that a receiver notices what is
//! missing, doubled or in the wrong place.

use std::sync::LazyLock;

use bytes::Bytes;

/// The bytes of a stream from `offset` on: at most `len`, at least one if `len` is.
pub(crate) fn piece(offset: u64, len: u64) -> Bytes {
    let start = (offset % PERIOD) as usize;
    let len = len.min(PIECE as u64) as usize;
    TABLE.slice(start..start + len)
}

/// Whether `bytes` belong at `offset` of a stream.
pub(crate) fn matches(offset: u64, bytes: &[u8]) -> bool {
    let pieces = bytes.chunks(PIECE).zip((offset..).step_by(PIECE));
    pieces.into_iter().all(|(bytes, at)| *bytes == *piece(at, bytes.len() as u64))
}

/// A prime, so that no packet size is a multiple of it.
const PERIOD: u64 = 251;
/// Long pieces are quick: a stack searches the piece that holds an offset one by one.
const PIECE: usize = 1 << 20;

static TABLE: LazyLock<Bytes> =
    LazyLock::new(|| (0..PERIOD).cycle().take(PIECE + PERIOD as usize).map(|i| i as u8).collect());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_belong_where_they_were_taken_from() {
        let taken = piece(1_000_003, 1_452);
        assert_eq!(taken.len(), 1_452);
        assert!(matches(1_000_003, &taken));
        assert!(!matches(1_000_004, &taken));
        assert!(!matches(1_000_003 + 1_452, &taken));
        assert_eq!(piece(7, u64::MAX).len(), PIECE);
        let two = [piece(0, PIECE as u64), piece(PIECE as u64, 10)].concat();
        assert!(matches(0, &two));
    }
}
