//! Text files that a scenario names: delivery traces.
//!
//! No text causes a panic. What is read has no more entries than the text has lines, and its properties are bounded.

use std::fmt::Display;

use weir_net::DeliveryTrace;
use weir_units::{Bytes, Duration, Instant};

/// Reads the input as a delivery trace.
pub(crate) fn check_deliveries(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    match DeliveryTrace::parse(&text) {
        Ok(trace) => {
            assert!(trace.period() > Duration::ZERO);
            let cycle = trace.capacity(Instant::ZERO, Instant::ZERO + trace.period());
            assert!(cycle <= DeliveryTrace::OPPORTUNITY * text.lines().count() as u64);
            assert!(trace.capacity(Instant::ZERO, Instant::ZERO) == Bytes::ZERO);
        }
        Err(error) => check_message(&error),
    }
}

/// A message is one line.
fn check_message(error: &dyn Display) {
    let message = error.to_string();
    assert!(!message.is_empty() && message.lines().count() == 1, "{message:?}");
}
