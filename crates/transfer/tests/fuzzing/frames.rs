//! Any bytes: reading a frame never panics, and what is read is written and read again to the same.
//!
//! The input has no checks behind its frames, which a fuzzer would hardly guess.

use std::fmt::Debug;

use weir_transfer::file::{Announcement, Answer, Frame, MAX_FRAME};

/// Reads the input as either side's frames, one after the other, as a session does.
pub(crate) fn check(input: &[u8]) {
    read_all::<Announcement>(input);
    read_all::<Answer>(input);
}

fn read_all<F: Frame + PartialEq + Debug>(mut bytes: &[u8]) {
    let _ = F::parse(bytes);
    while let Ok(Some((frame, len))) = F::parse_body(bytes) {
        assert!((1..MAX_FRAME).contains(&len) && len <= bytes.len(), "{len} bytes: {frame:?}");
        let mut again = Vec::new();
        frame.encode(&mut again);
        let (same, used) = F::parse(&again).expect("proper").expect("whole");
        assert_eq!((&same, used), (&frame, again.len()));
        for cut in 0..again.len() {
            let early = F::parse(&again[..cut]);
            assert!(matches!(early, Ok(None)), "{early:?} from {cut} bytes of {frame:?}");
        }
        bytes = &bytes[len..];
    }
}
