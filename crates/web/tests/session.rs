//! A session is the run that `weir run` makes, whatever its steps, and records what happens to every packet.

mod ten;

use weir_web::{CROSSING, FRAME, Fate, PACKET, PacketKind, QUEUE, SACK, SAMPLE, Session, State};

/// Runs to the end in steps of `step` seconds.
fn finish(session: &mut Session, step: f64) {
    let mut until = 0.0;
    loop {
        match session.advance(until, 1_000).expect("no checker fails") {
            State::Ended => return,
            State::Paused => until += step,
            State::Running => {}
        }
    }
}

fn session(text: &str) -> Session {
    Session::new(text, &[], 1).expect("a scenario")
}

const LOSSY: &str = r#"
[topology]
rate = "10mbit"
rtt = "40ms"
queue = "0.5bdp"

[topology.forward]
loss = "1%"

[[flow]]
stack = "cubic"

[measure]
duration = "5s"
"#;

#[test]
fn ten_scenarios_have_the_trace_hash_of_weir_run() {
    for name in ten::SCENARIOS {
        let mut session =
            Session::new(&ten::text(name), &ten::overrides(), ten::SEED).expect("a scenario");
        finish(&mut session, 0.37);
        assert_eq!(format!("{:016x}", session.trace_hash()), ten::native(name), "{name}");
    }
}

#[test]
fn a_radio_network_has_its_nodes_and_every_frame() {
    let mut session =
        Session::new(&ten::text("radio-chain"), &ten::overrides(), ten::SEED).expect("a scenario");
    let about: serde_json::Value = serde_json::from_str(&session.describe()).expect("JSON");
    let radio = &about["radio"];
    assert_eq!(radio["nodes"].as_array().map(Vec::len), Some(5));
    assert_eq!((&radio["nodes"][4][0], &radio["ends"][0][1]), (&800.0.into(), &4.into()));
    assert_eq!((&radio["read_m"], &radio["levels"]), (&250.0.into(), &5.into()));
    let mut rows = Vec::new();
    for step in 1..=20 {
        while session.advance(f64::from(step), 1_000) == Ok(State::Running) {}
        rows.extend(session.take_frames());
    }
    let frames: Vec<&[f64]> = rows.chunks_exact(FRAME).collect();
    assert_eq!(frames.len(), ten::frames("radio-chain"));
    assert!(frames.windows(2).all(|pair| pair[0][1] <= pair[1][1]), "in the order of their ends");
    assert!(frames.iter().any(|frame| frame[12] == 0.0), "some collide");
    let waiting: Vec<f64> = frames.iter().map(|frame| frame[5]).collect();
    assert!(waiting.contains(&0.0) && waiting.iter().any(|count| *count > 1.0));
    assert!(session.take_events().contains("\"t_s\""));
}

#[test]
fn a_pause_comes_before_the_next_event() {
    let mut session = session(LOSSY);
    assert_eq!(session.advance(2.0, u64::MAX), Ok(State::Paused));
    assert!(session.now() <= 2.0 && session.now() > 1.9, "{}", session.now());
    let hash = session.trace_hash();
    assert_eq!(session.advance(1.0, u64::MAX), Ok(State::Paused), "time does not go back");
    assert_eq!(session.trace_hash(), hash);
    assert_eq!(session.advance(3.0, 1), Ok(State::Running));
}

#[test]
fn every_packet_has_its_way_and_its_reason() {
    let mut session = session(LOSSY);
    finish(&mut session, 1.0);
    let (packets, crossings) = (session.take_packets(), session.take_crossings());
    assert_eq!(session.recorded_until(), f64::INFINITY);
    let rows: Vec<&[f64]> = packets.chunks_exact(PACKET).collect();
    let ways: Vec<&[f64]> = crossings.chunks_exact(CROSSING).collect();
    assert_eq!(ways.len(), rows.len(), "each packet crosses one link of the dumbbell");
    let dropped: Vec<&&[f64]> =
        ways.iter().filter(|way| way[5] >= Fate::QueueFull as u8 as f64).collect();
    assert!(dropped.iter().any(|way| way[5] == Fate::Loss as u8 as f64));
    assert!(dropped.iter().any(|way| way[5] == Fate::QueueFull as u8 as f64));
    for way in &ways {
        assert!(way[2] <= way[3] && way[3] <= way[4], "{way:?}");
    }
    let again = |row: &&&[f64]| (1.0..=4.0).contains(&row[2]);
    let resent: Vec<&&[f64]> = rows.iter().filter(again).collect();
    assert!(!resent.is_empty());
    // Whatever is sent again was sent before, and nothing else is.
    let mut seen = std::collections::BTreeSet::new();
    for row in rows.iter().filter(|row| row[4] > 0.0) {
        let is_new = seen.insert(row[3].to_bits());
        assert_eq!(is_new, row[2] == PacketKind::New as u8 as f64, "{row:?}");
    }
    let samples = session.take_samples();
    let last = samples.chunks_exact(SAMPLE).next_back().expect("samples");
    assert!((last[9] - resent.len() as f64).abs() <= 3.0, "{last:?}, {}", resent.len());
    assert!(session.take_sacks().len() >= SACK);
    assert!(session.take_packets().is_empty() && session.take_samples().is_empty());
}

#[test]
fn a_mark_is_noted_where_it_was_made() {
    let text = r#"
[topology]
queue = { kind = "ecn-step", limit = "4bdp", threshold = "20p" }
[[flow]]
stack = "dctcp"
[measure]
duration = "5s"
"#;
    let mut session = session(text);
    finish(&mut session, 5.0);
    let crossings = session.take_crossings();
    let marked = crossings.chunks_exact(CROSSING).filter(|way| way[5] == Fate::Marked as u8 as f64);
    let queues = session.take_queues();
    let marks = queues.chunks_exact(QUEUE).next_back().expect("samples")[6];
    assert!(marks > 0.0);
    assert!((marked.count() as f64 - marks).abs() <= 3.0, "samples end before the run does");
}

/// Connections between hosts of two leaves: over two links below one leaf, over four to the other one.
const CONNECTIONS: &str = r#"
[topology]
kind = "leaf-spine"
leaves = 2
hosts = 4
spines = 2
rate = "1gbit"
delay = "1us"
queue = "100p"
routing = "spray"
[[flow]]
stack = "reno"
min_rto = "1ms"
workload = { kind = "permutation", size = "100kb" }
[measure]
duration = "100ms"
"#;

#[test]
fn a_packet_of_a_connection_is_one_on_all_its_links() {
    let mut session = session(CONNECTIONS);
    finish(&mut session, 0.001);
    let (packets, crossings) = (session.take_packets(), session.take_crossings());
    assert_eq!(session.recorded_until(), f64::INFINITY);
    let rows: Vec<&[f64]> = packets.chunks_exact(PACKET).collect();
    let mut ways = vec![Vec::new(); rows.len()];
    for way in crossings.chunks_exact(CROSSING) {
        ways[way[1] as usize].push(way);
    }
    let is_dropped = |way: &&[f64]| way[5] >= Fate::QueueFull as u8 as f64;
    let mut lengths = std::collections::BTreeSet::new();
    for (row, ways) in rows.iter().zip(&mut ways) {
        ways.sort_by(|a, b| a[2].total_cmp(&b[2]));
        assert_eq!(row[6], ways[0][2], "it enters its first link when it is sent: {row:?}");
        assert!(ways.windows(2).all(|pair| pair[0][4] == pair[1][2]), "{ways:?}");
        match ways.iter().any(is_dropped) {
            true => assert!(ways.len() <= 4, "{ways:?}"),
            false => _ = lengths.insert(ways.len()),
        }
    }
    assert!(lengths.iter().eq(&[2, 4]), "{lengths:?}");
    let data = rows.iter().filter(|row| row[4] > 0.0).count();
    assert!(data >= 8 * 69, "eight hosts send 69 full packets each, and {data} were sent");
}

#[test]
fn a_short_run_has_as_many_samples_as_a_long_one_and_a_large_network_fewer() {
    let samples = |keys: &[(&str, &str)]| {
        let keys = keys.iter().map(|(key, value)| (key.to_string(), value.to_string()));
        let keys: Vec<(String, String)> = keys.collect();
        let mut session = Session::new(CONNECTIONS, &keys, 1).expect("a scenario");
        finish(&mut session, 1.0);
        let queues = session.take_queues();
        let first = queues.chunks_exact(QUEUE).filter(|row| row[0] == 0.0).count();
        (first, queues.len() / QUEUE)
    };
    // 8 hosts and 2 leaves with 2 uplinks each, both ways.
    let (first, all) = samples(&[("measure.duration", "1ms")]);
    assert_eq!((first, all), (999, 24 * 999), "every microsecond, before the end");
    let longer = [("measure.duration", "20ms"), ("flow.0.workload.size", "10mb")];
    assert_eq!(samples(&longer).0, 1_999);
    let (first, all) = samples(&[("topology.hosts", "500"), ("measure.duration", "100us")]);
    assert_eq!(first, 99, "{all}");
    let (first, all) = samples(&[("topology.hosts", "500"), ("measure.duration", "1ms")]);
    assert!((240..250).contains(&first) && all <= 500_000, "{first}, {all}");
}

/// One flow over four links at 100 Gbit/s: 50 million ways over links in each second.
const FAST: &str = r#"
[topology]
kind = "leaf-spine"
leaves = 2
hosts = 1
spines = 1
rate = "100gbit"
delay = "1us"
queue = { kind = "ecn-step", threshold = "300kb", limit = "2mb" }
[[topology.port]]
link = "leaf1-h1"
impair = { rate_steps = [{ at = "50ms", rate = "20gbit" }] }
[[flow]]
stack = "dctcp"
from = "h0"
to = "h1"
[measure]
duration = "60ms"
"#;

#[test]
fn links_have_their_use_and_queue_after_the_last_packet_that_is_recorded() {
    let mut session = session(FAST);
    finish(&mut session, 0.01);
    let until = session.recorded_until();
    assert!((0.03..0.05).contains(&until), "{until}");
    let ways = session.take_crossings().len() / CROSSING;
    assert_eq!(ways, session.most_recorded());
    let about: serde_json::Value = serde_json::from_str(&session.describe()).expect("JSON");
    let links = about["links"].as_array().expect("links");
    let last = links.iter().position(|link| link["name"] == "leaf1-h1").expect("the link");
    assert_eq!(links[last]["rate_steps"], serde_json::json!([[0.05, 20_000.0]]));
    let queues = session.take_queues();
    let rows = queues.chunks_exact(QUEUE).filter(|row| row[0] == last as f64);
    let late: Vec<&[f64]> = rows.filter(|row| row[1] > 0.052).collect();
    assert!(late.len() > 250, "{}", late.len());
    // Of what the rate allows after its step.
    let used: f64 = late.iter().map(|row| row[7]).sum::<f64>() / late.len() as f64;
    assert!((0.99..1.001).contains(&used), "{used}");
    assert!(late.iter().all(|row| row[2] > 1.0 && row[3] > 1_500.0));
}

#[test]
fn bad_text_is_an_error_that_names_the_key() {
    let bad = [
        ("[topology]\nrate = \"fast\"", "rate"),
        ("[[flow]]\nstack = \"nothing\"", "nothing"),
        ("[topology", "line"),
        ("", "flow"),
        ("[[flow]]\nstack = \"mine.py:Mine\"", "mine.py"),
        (
            "[topology.forward]\nrate_trace = \"/etc/passwd\"\n[[flow]]\nstack = \"reno\"",
            "rate_trace",
        ),
    ];
    for (text, part) in bad {
        let message = Session::new(text, &[], 1).err().unwrap_or_default();
        assert!(message.contains(part), "{text}: {message}");
    }
    let unknown = [("topology.speed".to_owned(), "1".to_owned())];
    assert!(Session::new(LOSSY, &unknown, 1).err().unwrap_or_default().contains("speed"));
}

/// A flow whose window a person sets, next to CUBIC, for 5 s.
fn by_hand(windows: &str) -> Result<Session, String> {
    let text = format!(
        r#"
[controllers]
"by_hand.py" = "it is not read here"
[[flow]]
name = "you"
stack = "by_hand.py:ByHand(windows={windows})"
[[flow]]
name = "cubic"
stack = "cubic"
[measure]
duration = "5s"
"#
    );
    Session::new(&text, &[], 1)
}

#[test]
fn windows_that_a_person_sets_make_the_same_run_again() {
    let mut live = by_hand("0:10").expect("a scenario");
    let mut unsteered = by_hand("0:10").expect("a scenario");
    assert_eq!(live.advance(1.0, u64::MAX), Ok(State::Paused));
    live.set_window(1_001, 30).expect("it lies ahead");
    assert_eq!(live.advance(2.5, u64::MAX), Ok(State::Paused));
    live.set_window(2_501, 4).expect("it lies ahead");
    assert!(live.set_window(2_400, 4).is_err_and(|message| message.contains("2400 ms")));
    assert!(live.set_window(2_600, 0).is_err_and(|message| message.contains("1 to 10000")));
    finish(&mut live, 0.5);
    let mut again = by_hand("0:10 1001:30 2501:4").expect("a scenario");
    finish(&mut again, 5.0);
    finish(&mut unsteered, 5.0);
    assert_eq!(live.trace_hash(), again.trace_hash());
    assert_ne!(live.trace_hash(), unsteered.trace_hash());
    let samples = live.take_samples();
    let windows: Vec<f64> = samples
        .chunks_exact(SAMPLE)
        .filter(|row| row[0] == 0.0 && [0.9, 2.0, 4.0].iter().any(|t| (row[1] - t).abs() < 1e-9))
        .map(|row| row[2] / 1_448.0)
        .collect();
    assert_eq!(windows, [10.0, 30.0, 4.0]);
}

#[test]
fn what_is_no_list_of_windows_is_refused_with_its_form() {
    for (windows, part) in [
        ("10", "'10'"),
        ("0:x", "'0:x'"),
        ("5:10 5:11", "5 ms"),
        ("0:0", "1 to 10000"),
        ("0:10001", "1 to 10000"),
    ] {
        let message = by_hand(windows).err().unwrap_or_default();
        assert!(message.contains(part) && message.contains("flow.0.stack"), "{windows}: {message}");
    }
    let mut plain = session(LOSSY);
    assert!(plain.set_window(1, 1).is_err_and(|message| message.contains("no flow")));
}
