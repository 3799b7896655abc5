//! Checks of what is read from files: movements and placements.

use std::fmt::Display;

use weir_radio::{Mobility, Placement};
use weir_units::{Duration, Instant};

/// Reads the input as movements in either format.
pub(crate) fn check_movements(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    for read in [Mobility::parse_csv(&text), Mobility::parse_setdest(&text)] {
        match read {
            Ok(mobility) => {
                assert!((1..=text.lines().count()).contains(&mobility.nodes()));
                for seconds in [0, 1, 1_000_000] {
                    let now = Instant::ZERO + Duration::from_secs(seconds);
                    assert_eq!(mobility.positions(now).len(), mobility.nodes());
                }
            }
            Err(error) => check_message(&error),
        }
    }
}

/// Reads the input as a placement.
pub(crate) fn check_placements(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    match Placement::parse(&text) {
        Ok(placement) => assert!((2..=text.lines().count()).contains(&placement.positions.len())),
        Err(error) => check_message(&error),
    }
}

/// A message is one line.
fn check_message(error: &dyn Display) {
    let message = error.to_string();
    assert!(!message.is_empty() && message.lines().count() == 1, "{message:?}");
}
