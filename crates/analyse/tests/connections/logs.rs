//! Logs of stacks of QUIC and of our own export, and events that a test writes.

use std::io::{Cursor, Write};
use std::ops::ControlFlow;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use weir_analyse::{ConnectionRow, Cut, ReadError, Reading, Tables};

fn read(file: &[u8]) -> Result<(Tables, Option<Cut>), ReadError> {
    let mut reading = Reading::default();
    let cut = reading.read("test", Cursor::new(file), || ControlFlow::Continue(()))?;
    Ok((reading.finish(), cut))
}

/// The row of a log that has one connection.
fn row(file: &[u8]) -> ConnectionRow {
    let (mut tables, cut) = read(file).expect("a log");
    assert_eq!((tables.connections.len(), cut), (1, None));
    tables.connections.remove(0)
}

fn sample(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/tests/qlogs/");
    std::fs::read(format!("{folder}{name}")).expect("a sample")
}

/// The log of a server with these events, each with a time in milliseconds, a name and data.
fn document(events: Vec<(f64, &str, Value)>) -> Value {
    let events: Vec<Value> = events
        .into_iter()
        .map(|(time, name, data)| json!({ "time": time, "name": name, "data": data }))
        .collect();
    json!({ "qlog_version": "0.3", "traces": [{
        "vantage_point": { "type": "server" }, "title": "t", "events": events,
    }] })
}

fn sent(number: u64) -> Value {
    let stream = json!({ "frame_type": "stream", "stream_id": 0, "offset": number * 1_000, "length": 1_000 });
    json!({
        "header": { "packet_type": "1RTT", "packet_number": number },
        "raw": { "length": 1_050 }, "frames": [stream],
    })
}

fn acked(ranges: &[[u64; 2]]) -> Value {
    json!({
        "header": { "packet_type": "1RTT", "packet_number": 0 },
        "raw": { "length": 40 }, "frames": [{ "frame_type": "ack", "acked_ranges": ranges }],
    })
}

/// `quinn` writes no frames, RTTs in seconds and losses by number.
#[test]
fn quinn() {
    let row = row(&sample("quinn.sqlog"));
    assert_eq!((row.source, row.sender, row.capture_point), ("qlog", "server", "sender"));
    assert_eq!((row.retransmits, row.retransmits_fast), (9, 9));
    assert!((41.0..43.0).contains(&row.rtt_ms_min.expect("samples")), "{:?}", row.rtt_ms_min);
    assert_eq!(row.cwnd_bytes_max, Some(164_937));
    assert!(row.delivered_bytes > 100_000 && row.delivered_bytes < row.sent_bytes, "{row:?}");
}

/// `quiche` writes frames, and losses as counts of its metrics.
#[test]
fn quiche() {
    let row = row(&sample("quiche.sqlog"));
    assert_eq!((row.source, row.sender, row.retransmits), ("qlog", "server", 16));
    assert!((10.0..10.2).contains(&row.rtt_ms_min.expect("samples")), "{:?}", row.rtt_ms_min);
    assert_eq!(row.cwnd_bytes_max, Some(14_720));
}

/// Our export of a run of TCP has payloads, acknowledgements and losses by number.
#[test]
fn weir() {
    let row = row(&sample("weir.qlog"));
    assert_eq!((row.sender, row.retransmits, row.mss_bytes), ("client", 7, 1_448));
    let shares = [row.limited_congestion, row.limited_slow_start, row.limited_path_capacity];
    assert!(shares.into_iter().flatten().sum::<f64>() > 0.9, "{row:?}");
}

/// Packet 1 is regarded as lost and is acknowledged later: the retransmission was not needed.
#[test]
fn a_loss_that_was_none_is_spurious() {
    let lost = json!({
        "header": { "packet_type": "1RTT", "packet_number": 1 }, "trigger": "time_threshold",
    });
    let mut events: Vec<_> =
        (0..5).map(|number| (number as f64, "quic:packet_sent", sent(number))).collect();
    events.push((40.0, "quic:packet_received", acked(&[[0, 0], [2, 4]])));
    events.push((41.0, "quic:packet_lost", lost));
    events.push((60.0, "quic:packet_received", acked(&[[0, 4]])));
    let row = row(document(events).to_string().as_bytes());
    assert_eq!((row.retransmits_fast, row.retransmits_spurious), (1, 1));
    assert_eq!((row.sent_bytes, row.delivered_bytes), (5_000, 4_000));
    assert_eq!(
        (row.rtt_ms_min, row.rtt_ms_max, row.flight_bytes_max),
        (Some(36.0), Some(36.0), 5_250)
    );
}

/// Half of the time nothing is in flight, a quarter flow control blocks, a quarter the window is full.
#[test]
fn time_has_the_limits_that_the_log_reports() {
    let blocked = json!({
        "raw": { "length": 40 }, "header": { "packet_number": 1_000 },
        "frames": [{ "frame_type": "data_blocked" }],
    });
    let window = json!({ "congestion_window": 1_050, "ssthresh": 1_050 });
    let events = vec![
        (0.0, "recovery:metrics_updated", window),
        (0.0, "transport:packet_sent", sent(0)),
        (100.0, "transport:packet_received", acked(&[[0, 0]])),
        (300.0, "transport:packet_sent", sent(1)),
        (300.0, "transport:packet_sent", blocked),
        (400.0, "transport:packet_received", acked(&[[0, 1]])),
    ];
    let row = row(document(events).to_string().as_bytes());
    let near = |share: Option<f64>, expected: f64| {
        assert!((share.expect("a share") - expected).abs() < 1e-6, "{share:?}, not {expected}");
    };
    near(row.limited_application, 0.5);
    near(row.limited_receiver_window, 0.25);
}

/// A paced sender has space in its window between two packets, and is not limited by its application.
#[test]
fn a_pacer_is_no_application() {
    let metrics =
        json!({ "congestion_window": 100_000, "ssthresh": 1_000, "pacing_rate": 840_000 });
    let mut events = vec![(0.0, "recovery:metrics_updated", metrics)];
    for number in 0..20 {
        events.push((number as f64 * 10.0, "transport:packet_sent", sent(number)));
    }
    let row = row(document(events).to_string().as_bytes());
    assert_eq!(row.limited_application, Some(0.0));
}

/// The same events as a document, as records, and compressed.
#[test]
fn every_form_gives_the_same() {
    let mut log = document(vec![
        (0.0, "transport:packet_sent", sent(0)),
        (30.0, "transport:packet_received", acked(&[[0, 0]])),
    ]);
    let plain = log.to_string();
    let expected = row(plain.as_bytes());
    let events = log["traces"][0]["events"].take();
    let head = json!({ "qlog_format": "JSON-SEQ", "trace": log["traces"][0] });
    let records = events.as_array().expect("a list").iter();
    let mut lines = format!("{head}\n");
    let mut texts = format!("\x1e{head}\n");
    for record in records {
        lines += &format!("{record}\n");
        texts += &format!("\x1e{record}\n");
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(plain.as_bytes()).expect("memory");
    let gzip = encoder.finish().expect("memory");
    for file in [lines.as_bytes(), texts.as_bytes(), &gzip] {
        assert_eq!(row(file), expected);
    }
}

/// What holds for events may follow them, as in logs of mvfst; these events are lists.
#[test]
fn fields_may_follow_the_events() {
    let row = row(include_bytes!("../corpus/qlog/lists"));
    assert_eq!((row.rtt_ms_min, row.retransmits, row.delivered_bytes), (Some(40.0), 2, 1_100));
    assert!((row.duration_s - 0.0402).abs() < 1e-9);
}

#[test]
fn a_log_that_ends_early_is_read_up_to_there() {
    let whole = sample("quinn.sqlog");
    let (tables, cut) = read(&whole[..whole.len() / 2]).expect("a log");
    assert_eq!((tables.connections.len(), cut), (1, Some(Cut::Event)));
    let whole = sample("weir.qlog");
    let (tables, cut) = read(&whole[..whole.len() / 2]).expect("a log");
    assert_eq!((tables.connections.len(), cut), (1, Some(Cut::Event)));
}

#[test]
fn what_is_no_log_is_one_line() {
    let long = format!(
        "{{\"traces\": [{{\"events\": [{{\"time\": 0, \"data\": \"{}\"}}]}}]}}",
        "x".repeat(2 << 20)
    );
    let cases: [(&[u8], &str); 6] = [
        (b"{ \"answer\": 42 }", "it has no events, so it is no qlog"),
        (b"{ \"traces\": 42 }", "expected a list of traces at line 1"),
        (b"{ traces }", "it is no valid qlog: key must be a string at line 1"),
        (
            b"\x1e{\"trace\": {}}\n\x1e{\"time\": \"x\", \"name\": \"a\"}\n",
            "record 2 of this qlog: the time '\"x\"'",
        ),
        (b"{\"traces\": [{\"events\": [7]}]}", "'7' is no event: allowed are objects and lists"),
        (long.as_bytes(), "a value is longer than 1024 KiB"),
    ];
    for (file, expected) in cases {
        let message = read(file).expect_err("no log").to_string();
        assert!(message.contains(expected) && !message.contains('\n'), "{message}");
    }
}

/// Events with another group are those of another connection.
#[test]
fn groups_are_connections() {
    let mut log = document(vec![
        (0.0, "transport:packet_sent", sent(0)),
        (1.0, "transport:packet_sent", sent(0)),
    ]);
    log["traces"][0]["events"][1]["group_id"] = json!("other");
    let (tables, _) = read(log.to_string().as_bytes()).expect("a log");
    assert_eq!(tables.connections.len(), 2);
}

/// What is refused is counted by connections, however many events they have.
#[test]
fn connections_beyond_the_largest_number_are_counted() {
    let mut log =
        document((0..80).map(|at| (f64::from(at), "quic:packet_sent", sent(0))).collect());
    let events = log["traces"][0]["events"].as_array_mut().expect("a list");
    for (number, event) in events.iter_mut().enumerate() {
        event["group_id"] = json!((number % 40).to_string());
    }
    let (tables, _) = read(log.to_string().as_bytes()).expect("a log");
    assert_eq!((tables.connections.len(), tables.counts.dropped_connections), (32, 8));
    assert_eq!(tables.counts.log_events, 80);
}

/// A log without acknowledgements whose bytes in flight are more than any path has.
#[test]
fn bytes_beyond_all_bounds_are_not_added() {
    let received = json!({ "header": { "packet_number": 0 }, "raw": { "length": 40 } });
    let mut events =
        vec![(0.0, "quic:packet_sent", sent(0)), (1.0, "quic:packet_received", received)];
    for number in 0..40_000 {
        let bytes = if number % 2 == 0 { 999_999_999_999_999u64 } else { 0 };
        let metrics = json!({ "bytes_in_flight": bytes });
        events.push((f64::from(number), "recovery:metrics_updated", metrics));
    }
    let row = row(document(events).to_string().as_bytes());
    assert_eq!(row.delivered_bytes, 1 << 62);
    assert!(row.goodput_mbps.is_some_and(f64::is_finite));
}

/// Documents are stopped in their first reading too, and a stopped log is no invalid one.
#[test]
fn reading_can_be_stopped() {
    let events = (0..5_000).map(|at| (f64::from(at), "quic:packet_sent", sent(0))).collect();
    let mut log = document(events);
    let whole = log.to_string();
    let events = log["traces"][0]["events"].take();
    let mut lines = json!({ "qlog_format": "JSON-SEQ" }).to_string();
    for event in events.as_array().expect("a list") {
        lines += &format!("\n{event}");
    }
    for (file, most) in [(whole, 0), (lines, 4_096)] {
        let mut reading = Reading::default();
        let read = reading.read("test", Cursor::new(file.as_bytes()), || ControlFlow::Break(()));
        assert_eq!(read.expect("a log"), None);
        assert!(reading.finish().counts.log_events <= most);
    }
}

/// Writers of qlog 0.0 use capitals and microseconds, and those of 0.1 end with an empty event.
#[test]
fn forms_of_the_first_drafts_are_read() {
    let packet = |number: u64| {
        json!([(number * 1_000).to_string(), "TRANSPORT", "PACKET_SENT", "DEFAULT", {
            "packet_type": "1RTT", "header": { "packet_number": number.to_string(), "packet_size": 1_050 },
            "frames": [{ "frame_type": "STREAM", "id": "3", "length": 1_000, "offset": number * 1_000 }],
        }])
    };
    let ack = json!([(50_000).to_string(), "TRANSPORT", "PACKET_RECEIVED", "DEFAULT", {
        "packet_type": "1RTT", "header": { "packet_number": "1", "packet_size": 40 },
        "frames": [{ "frame_type": "ACK", "acked_ranges": [["0", "9"]] }],
    }]);
    let mut events: Vec<_> = (0..10).map(packet).collect();
    events.extend([ack, json!([])]);
    let log = json!({ "qlog_version": "draft-00", "traces": [{
        "vantage_point": { "type": "SERVER" }, "configuration": { "time_units": "us" },
        "event_fields": ["relative_time", "CATEGORY", "EVENT_TYPE", "TRIGGER", "DATA"],
        "events": events,
    }] });
    let row = row(log.to_string().as_bytes());
    assert_eq!((row.sent_bytes, row.delivered_bytes), (10_000, 10_000));
    assert_eq!((row.sender, row.rtt_ms_min), ("server", Some(41.0)));
}

/// A log of neither end is about the end that it names, and knows nothing of its window.
#[test]
fn a_log_of_the_network_has_no_verdict() {
    let mut log = document(vec![
        (0.0, "transport:packet_sent", sent(0)),
        (40.0, "transport:packet_received", acked(&[[0, 0]])),
    ]);
    log["traces"][0]["vantage_point"] = json!({ "type": "network", "flow": "client" });
    let row = row(log.to_string().as_bytes());
    assert_eq!((row.sender, row.capture_point), ("client", "middle"));
    assert_eq!((row.limit, row.rtt_ms_min), (None, None));
    assert!(row.limit_note.expect("a reason").contains("neither end"));
}

/// aioquic logs the bytes in flight before the packet that they are in, also of its handshake.
#[test]
fn a_handshake_waits_for_no_application() {
    let metrics = |bytes: u64| json!({ "congestion_window": 2_100, "bytes_in_flight": bytes });
    let crypto = json!({
        "header": { "packet_type": "initial", "packet_number": 0 },
        "raw": { "length": 1_200 }, "frames": [{ "frame_type": "crypto" }],
    });
    let of = |first: &str, at: f64| {
        let mut events = vec![
            (at, "recovery:metrics_updated", metrics(1_200)),
            (1.0, "transport:packet_sent", crypto.clone()),
            (51.0, "recovery:metrics_updated", metrics(0)),
            (100.0, "transport:packet_sent", sent(1)),
            (100.0, "transport:packet_sent", sent(2)),
            (150.0, "transport:packet_received", acked(&[[1, 2]])),
        ];
        if !first.is_empty() {
            events.insert(0, (0.0, first, crypto.clone()));
        }
        row(document(events).to_string().as_bytes())
    };
    for (first, at) in [("", 0.0), ("", 1.0), ("transport:packet_received", 1.0)] {
        let row = of(first, at);
        assert_eq!(row.limited_application, Some(0.0), "{first} {at}: {row:?}");
    }
}

/// A stack that paces and does not log its rate sends full packets while there is data.
#[test]
fn full_packets_are_no_sign_of_the_application() {
    let log = |last: u64| {
        let window = json!({ "cwnd": 100_000, "bytes_in_flight": 0 });
        let mut events = vec![(0.0, "recovery:metrics_updated", window)];
        for number in 0..50 {
            let mut packet = sent(number);
            if number % 5 == 4 {
                packet["raw"]["length"] = json!(last);
            }
            events.push((number as f64 * 4.0, "transport:packet_sent", packet));
            if number >= 10 {
                let at = number as f64 * 4.0 + 0.1;
                events.push((at, "transport:packet_received", acked(&[[0, number - 10]])));
            }
        }
        row(document(events).to_string().as_bytes())
    };
    assert!(log(1_050).limited_application < Some(0.02));
    assert!(log(200).limited_application > Some(0.15));
}
