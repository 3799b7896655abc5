//! What is measured of connections whose every packet a test writes.

mod controllers;
mod formats;
mod found;
mod limits;
mod logs;
mod script;
mod udp;

use script::{Fields, MSS, Script};

fn packets(script: &Script) -> Vec<weir_analyse::PacketRow> {
    let mut reading = weir_analyse::Reading::default().keeping_packets();
    let file = script.pcapng();
    let read =
        reading.read("a", std::io::Cursor::new(&file), || std::ops::ControlFlow::Continue(()));
    assert_eq!(read.expect("a capture"), None);
    reading.finish().packets
}

#[test]
fn a_transfer_without_losses_has_its_round_trip_and_its_bytes() {
    let mut script = Script::connected(40.0, 0.1);
    for number in 0..10 {
        script.data(50.0 + f64::from(number), number);
        script.ack(90.0 + f64::from(number), number + 1, &[]);
    }
    let row = script.row();
    assert_eq!((row.sender, row.capture_point), ("client", "sender"));
    assert_eq!((row.sent_bytes, row.delivered_bytes), (u64::from(10 * MSS), u64::from(10 * MSS)));
    assert_eq!(row.handshake_rtt_ms, Some(40.1));
    assert_eq!((row.rtt_ms_min, row.rtt_ms_max, row.rtt_samples), (Some(40.0), Some(40.0), 10));
    assert_eq!((row.retransmits, row.dup_acks, row.flight_bytes_max), (0, 0, u64::from(10 * MSS)));
    assert_eq!(row.window_bytes_max, Some(2_000 << 7));
}

/// Segment 1 is lost; three acknowledgements with SACK lead to its repetition.
#[test]
fn a_repetition_after_sack_is_fast() {
    let mut script = Script::connected(40.0, 0.1);
    for number in 0..6 {
        script.data(50.0 + f64::from(number), number);
    }
    script.ack(90.0, 1, &[]);
    for number in 2..6 {
        script.ack(90.0 + f64::from(number), 1, &[(2, number + 1)]);
    }
    script.data(95.0, 1);
    script.ack(135.0, 6, &[]);
    let row = script.row();
    assert_eq!((row.retransmits, row.retransmits_fast, row.dup_acks), (1, 1, 4));
    assert_eq!((row.tshark_retransmission, row.tshark_fast_retransmission), (1, 1));
    assert_eq!((row.retransmits_spurious, row.reordered), (0, 0));
    // Karn: the last acknowledgement covers a repetition.
    assert_eq!(row.rtt_ms_max, Some(40.0));
}

/// The network delays segment 1: the sender repeats it, and the receiver reports the duplicate (RFC 2883).
#[test]
fn a_repetition_that_was_not_needed_is_spurious() {
    let mut script = Script::connected(40.0, 0.1);
    for number in 0..6 {
        script.data(50.0 + f64::from(number), number);
    }
    for number in 2..6 {
        script.ack(90.0 + f64::from(number), 1, &[(2, number + 1)]);
    }
    script.data(95.5, 1);
    script.ack(97.0, 6, &[]);
    script.ack(136.0, 6, &[(1, 2)]);
    let row = script.row();
    assert_eq!((row.retransmits_fast, row.retransmits_spurious, row.reordered), (1, 1, 1));
    // The first transmission arrived 46 ms after it was sent; the repetition has no sample.
    assert_eq!(packets(&script)[1].rtt_ms, Some(46.0));
    assert_eq!(packets(&script)[6].rtt_ms, None);
    assert!(packets(&script).iter().all(|packet| !packet.is_lost));
}

/// Segment 1 overtakes nothing: it arrives late, and is acknowledged without a repetition.
#[test]
fn a_segment_that_arrives_late_is_reordered() {
    let mut script = Script::connected(40.0, 0.1);
    for number in 0..4 {
        script.data(50.0 + f64::from(number), number);
    }
    script.ack(90.0, 1, &[]);
    script.ack(92.0, 1, &[(2, 3)]);
    script.ack(93.0, 4, &[]);
    let row = script.row();
    assert_eq!((row.retransmits, row.reordered), (0, 1));
}

/// All of a window is lost: after 240 ms of silence the first segment comes again, the others after its acknowledgement.
#[test]
fn repetitions_after_silence_are_timeouts() {
    let mut script = Script::connected(40.0, 0.1);
    script.data(50.0, 0);
    script.ack(90.0, 1, &[]);
    for number in 1..5 {
        script.data(91.0, number);
    }
    script.data(91.0 + 245.0, 1);
    script.ack(380.0, 2, &[]);
    script.data(380.1, 2);
    script.data(380.2, 3);
    script.ack(420.0, 4, &[]);
    script.data(420.1, 4);
    script.ack(460.0, 5, &[]);
    let row = script.row();
    assert_eq!((row.retransmits_rto, row.timeouts, row.retransmits_fast), (4, 1, 0));
}

/// The last segment is lost: it comes again after two round trips, before the timer (RFC 8985 §7.2).
#[test]
fn the_repetition_of_the_last_segment_is_a_probe() {
    let mut script = Script::connected(40.0, 0.1);
    for number in 0..4 {
        script.data(50.0, number);
        script.ack(90.0, number + 1, &[]);
    }
    for number in 4..8 {
        script.data(91.0, number);
    }
    script.ack(131.0, 6, &[]);
    script.data(131.0 + 82.0, 7);
    script.ack(260.0, 6, &[(7, 8)]);
    script.data(260.1, 6);
    script.ack(300.0, 8, &[]);
    let row = script.row();
    assert_eq!((row.retransmits_tlp, row.retransmits_fast, row.retransmits_rto), (1, 1, 0));
}

/// Offload merges segments: one record of 20 segments, acknowledged in parts.
#[test]
fn merged_segments_are_acknowledged_in_parts() {
    let mut script = Script::connected(40.0, 0.1);
    script.data_of(50.0, 0, 20 * MSS);
    for number in [4, 9, 20] {
        script.ack(90.0 + f64::from(number), number, &[]);
    }
    let row = script.row();
    assert_eq!((row.merged_packets, row.data_packets), (1, 1));
    assert_eq!(row.delivered_bytes, u64::from(20 * MSS));
    assert_eq!(row.rtt_ms_min, Some(94.0 - 50.0));
}

/// The capture missed segment 1: nothing is wrong with the connection.
#[test]
fn what_was_not_captured_is_counted_and_no_loss() {
    let mut script = Script::connected(40.0, 0.1);
    for number in [0, 2, 3] {
        script.data(50.0 + f64::from(number), number);
        script.ack(90.0 + f64::from(number), number + 1, &[]);
    }
    let row = script.row();
    assert_eq!((row.unseen_bytes, row.retransmits), (u64::from(MSS), 0));
    assert_eq!(row.tshark_lost_segment, 1);
}

#[test]
fn times_that_go_back_do_not_disturb() {
    let mut script = Script::connected(40.0, 0.1);
    let syn = Fields { flags: 16, seq: 1, ack: 1, window: 2_000, ..Fields::default() };
    script.data(50.0, 0);
    script.ack(90.0, 1, &[]);
    script.client(95.0, &syn);
    let mut file = script.pcapng();
    // The last block's time, 36 bytes of header before it, becomes 0.
    let block = file.len() - (12 + 20 + 40);
    file[block + 12..block + 20].fill(0);
    let mut reading = weir_analyse::Reading::default();
    reading
        .read("a", std::io::Cursor::new(&file), || std::ops::ControlFlow::Continue(()))
        .expect("a capture");
    let row = reading.finish().connections.remove(0);
    assert_eq!((row.time_reversals, row.rtt_ms_min), (1, Some(40.0)));
}

/// The handshake shows where the capture was made.
#[test]
fn the_place_of_the_capture_is_recognised() {
    let place = |near, far| {
        let mut script = Script::connected(near, far);
        script.data(near + far + 1.0, 0);
        script.ack(near + far + 30.0, 1, &[]);
        script.row().capture_point
    };
    assert_eq!(
        [place(40.0, 0.1), place(20.0, 20.0), place(0.2, 40.0)],
        ["sender", "middle", "receiver"]
    );
}

/// At the receiver, an acknowledgement takes the way of the handshake to the sender. The last ones had not arrived when the
/// capture ended: they give no sample.
#[test]
fn at_the_receiver_the_round_trip_is_that_of_the_path() {
    let mut script = Script::connected(0.2, 40.0);
    for number in 0..60 {
        script.data(50.0 + f64::from(number), number);
        script.ack(50.5 + f64::from(number), number + 1, &[]);
    }
    let row = script.row();
    assert_eq!(row.capture_point, "receiver");
    assert_eq!((row.rtt_ms_min, row.rtt_ms_max), (Some(40.5), Some(40.5)));
    assert_eq!(row.delivered_bytes, u64::from(60 * MSS));
}

/// Data packets have rows if they are wanted: here a lost one, its repetition, and one that was overtaken.
#[test]
fn packets_are_returned_in_the_order_of_sending() {
    let mut script = Script::connected(40.0, 0.1);
    for number in 0..6 {
        script.data(50.0 + f64::from(number), number);
    }
    for number in 2..6 {
        script.ack(90.0 + f64::from(number), 1, &[(2, number + 1)]);
    }
    script.data(96.0, 1);
    script.ack(136.0, 6, &[]);
    let packets = packets(&script);
    let found: Vec<_> = packets.iter().map(|one| (one.rtt_ms, one.is_lost)).collect();
    let acked = (Some(42.0), false);
    let sacked = (Some(40.0), false);
    let expected = [acked, (None, true), sacked, sacked, sacked, sacked, (None, false)];
    assert_eq!(found, expected);
    assert!(script.tables().packets.is_empty());
}
