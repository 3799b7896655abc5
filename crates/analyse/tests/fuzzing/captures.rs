//! Captures and logs from anywhere.
//!
//! No bytes cause a panic. Shares are shares, and no more is counted than the capture has.

use std::io::Cursor;
use std::ops::ControlFlow;

use weir_analyse::Reading;

/// Reads the input as a capture or as a log.
pub(crate) fn check_capture(input: &[u8]) {
    let mut reading = Reading::with_limit(4);
    let read = reading.read("fuzz", Cursor::new(input), || ControlFlow::Continue(()));
    if let Err(error) = &read {
        let message = error.to_string();
        assert!(!message.is_empty() && message.lines().count() == 1, "{message:?}");
    }
    let tables = reading.finish();
    let counts = &tables.counts;
    assert!(counts.tcp_packets + counts.udp_packets + counts.other_packets <= counts.packets);
    for row in &tables.connections {
        let shares = [row.limited_application, row.limited_receiver_window, row.limited_unknown];
        assert!(shares.into_iter().flatten().all(|share| (0.0..=1.0).contains(&share)));
        assert!(row.packets <= counts.tcp_packets + counts.log_events);
        // A log may report the losses of packets that it has not.
        assert!(row.source == "qlog" || row.retransmits <= row.data_packets, "{row:?}");
        assert!(row.goodput_mbps.is_none_or(f64::is_finite));
    }
}
