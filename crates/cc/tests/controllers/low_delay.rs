//! Formulas of the controllers that keep queues short: BBRv2 and v3, Prague, LEDBAT, Copa.

use crate::path::{Conditions, MSS, Path};
use weir_units::Duration;

/// Packets delivered in `seconds` over what the bottleneck of `packets` per `rtt_ms` takes, and the mean of
/// the packets in flight.
fn share_and_flight(path: &mut Path, rtt_ms: u64, packets: u64, seconds: u64) -> (f64, f64) {
    let before = path.delivered;
    let ticks = seconds * 1_000;
    let mut flight = 0;
    for _ in 0..ticks {
        path.run(Duration::from_millis(1));
        flight += path.in_flight();
    }
    let delivered = (path.delivered - before).get() as f64 / MSS.get() as f64;
    (delivered * rtt_ms as f64 / (packets * ticks) as f64, flight as f64 / ticks as f64)
}

/// draft-ietf-ccwg-bbr, appendix A: the bandwidth within 2 %, the pace 1 % below it. Startup leaves two
/// products in flight at most (§5.3.1.1), drain and the first down one.
#[test]
fn bbr_finds_the_bandwidth_and_drains_what_startup_queued() {
    // Between the stays in probe_rtt after 5 and 10 s.
    for (controller, start) in [("bbr2", 6), ("bbr3", 3)] {
        for (rtt_ms, packets) in [(100, 50), (40, 400), (10, 20)] {
            let conditions = Conditions::bottleneck(rtt_ms, packets, 10 * packets);
            let mut path = Path::new(controller, conditions);
            path.run(Duration::from_secs(start));
            let (share, flight) = share_and_flight(&mut path, rtt_ms, packets, 5);
            assert!((0.97..=1.0).contains(&share), "{controller}: {share} of {packets}");
            // Two segments more while it probes upwards, §5.6.4.2.
            assert!(flight < 1.25 * packets as f64 + 2.0, "{controller}: {flight} of {packets}");
            assert_eq!(path.lost, 0);
        }
    }
}

/// §5.3.3 and §5.3.4: the states follow each other, and probe_rtt comes every 10 s, for 200 ms and a round.
#[test]
fn bbr3_cycles_through_its_states() {
    assert_eq!(stays_in_probe_rtt("bbr3"), 2);
    assert_eq!(stays_in_probe_rtt("bbr3(text=06)"), 4, "every 5 s");
    // The handshake's RTT is not seen again, that of segments is whenever the queue is empty.
    assert_eq!(stays_in_probe_rtt("bbr2"), 1);
}

/// How often it measures the minimum RTT in 22 s.
fn stays_in_probe_rtt(controller: &str) -> usize {
    let mut path = Path::new(controller, Conditions::bottleneck(40, 200, 400));
    let mut phases = vec![(path.cc.phase(), 0)];
    for _ in 0..22_000 {
        path.run(Duration::from_millis(1));
        match phases.last_mut() {
            Some((phase, ticks)) if *phase == path.cc.phase() => *ticks += 1,
            _ => phases.push((path.cc.phase(), 1)),
        }
    }
    assert_eq!(phases[..2].iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["startup", "drain"]);
    let follows = |before: &str| match before {
        "probe_bw_down" => &["probe_bw_cruise", "probe_rtt"][..],
        "probe_bw_cruise" => &["probe_bw_refill", "probe_rtt"],
        "probe_bw_refill" => &["probe_bw_up", "probe_rtt"],
        "probe_bw_up" => &["probe_bw_down", "probe_rtt"],
        // What drained is as low as the down state wants it.
        "drain" => &["probe_bw_down", "probe_bw_cruise"],
        "probe_rtt" => &["probe_bw_cruise"],
        _ => &["drain"],
    };
    for pair in phases.windows(2) {
        assert!(follows(pair[0].0).contains(&pair[1].0), "{pair:?}");
    }
    let stays: Vec<u64> =
        phases.iter().filter(|(name, _)| *name == "probe_rtt").map(|(_, ticks)| *ticks).collect();
    // 200 ms, a round, and as long until what was in flight fits the window.
    assert!(stays.iter().all(|ticks| (200..=300).contains(ticks)), "{stays:?}");
    // T_probe of §5.3.3.5 is at most 63 rounds, here 2.5 s, or 3 s.
    let cruises = phases.iter().filter(|(name, _)| *name == "probe_bw_cruise");
    assert!(cruises.map(|(_, ticks)| ticks).all(|ticks| *ticks <= 3_000), "{phases:?}");
    stays.len()
}

/// §5.5.10: after losses of more than 2 % in a probe, what was in flight then bounds the window, which leaves
/// 15 % of it free while it cruises. The queue takes 10 % of a product: in flight are 220 packets when it is
/// full.
#[test]
fn bbr_remembers_what_was_too_much() {
    for controller in ["bbr2", "bbr3"] {
        let mut path = Path::new(controller, Conditions::bottleneck(40, 200, 20));
        path.run(Duration::from_secs(8));
        let mut windows = std::collections::BTreeSet::new();
        for _ in 0..1_500 {
            path.run(Duration::from_millis(1));
            if path.cc.phase() == "probe_bw_cruise" {
                windows.insert(path.cwnd_packets());
            }
        }
        // 0.85 of 220, and of what a probe raised it to before its losses were known.
        assert!(!windows.is_empty());
        assert!(windows.iter().all(|cwnd| (180..=205).contains(cwnd)), "{controller}: {windows:?}");
    }
}

/// With marks as for DCTCP on a path of 4 ms, the queue stays near what marks them, and it does not where they do not count.
#[test]
fn bbr2_answers_marks_on_a_short_path() {
    let queue = |controller: &str| {
        let conditions = Conditions { mark_above: 5, ..Conditions::bottleneck(4, 100, 400) };
        let mut path = Path::new(controller, conditions);
        path.run(Duration::from_secs(1));
        let (share, flight) = share_and_flight(&mut path, 4, 100, 5);
        assert!(share > 0.9, "{controller}: {share}");
        flight - 100.0 * share
    };
    let (on, off) = (queue("bbr2(ecn=on)"), queue("bbr2"));
    assert!(on < off, "{on} {off}");
}

/// Draft §2.4.4: growth per round trip is (RTT / 25 ms)² segments once 500 round trips are over, and a segment
/// before and where the round trip is longer.
#[test]
fn prague_grows_as_if_its_round_trip_were_25_ms() {
    let cases = [("prague", 10, 0.16), ("prague(rtt=0ms)", 10, 1.0), ("prague", 50, 1.0)];
    for (controller, rtt_ms, expected) in cases {
        // A loss ends slow start, after which nothing is in the way.
        let conditions = Conditions { drops: vec![100], ..Conditions::open(rtt_ms) };
        let mut path = Path::new(controller, conditions);
        path.run(Duration::from_millis(rtt_ms) * 10);
        assert!(path.cc.ssthresh().is_some());
        let rounds = |path: &mut Path, count| {
            let before = path.cc.cwnd();
            path.run(Duration::from_millis(rtt_ms) * count);
            (path.cc.cwnd() - before).get() as f64 / MSS.get() as f64 / count as f64
        };
        let young = rounds(&mut path, 100);
        assert!((young - 1.0).abs() < 0.05, "{controller} at {rtt_ms} ms: {young}");
        path.run(Duration::from_millis(rtt_ms) * 500);
        let old = rounds(&mut path, 100);
        assert!((old / expected - 1.0).abs() < 0.05, "{controller} at {rtt_ms} ms: {old}");
    }
}

/// `alpha` begins at one.
#[test]
fn prague_halves_at_its_first_mark() {
    let conditions = Conditions { mark_above: 5, ..Conditions::bottleneck(20, 200, u64::MAX) };
    let mut path = Path::new("prague", conditions);
    let mut before = path.cc.cwnd();
    while path.cc.ssthresh().is_none() {
        before = path.cc.cwnd();
        path.run(Duration::from_micros(1));
    }
    let after = path.cc.cwnd().get() as f64 / before.get() as f64;
    assert!((after - 0.5).abs() < 0.02, "{after}");
}

/// RFC 6817 §2.4.2: a segment per round trip far from the target, none at it.
#[test]
fn ledbat_grows_by_a_segment_and_rests_at_its_target() {
    let mut path = Path::new("ledbat", Conditions::bottleneck(100, 1_000, u64::MAX));
    path.run(Duration::from_secs(1));
    let before = path.cc.cwnd();
    path.run(Duration::from_secs(5));
    let grown = (path.cc.cwnd() - before).get() as f64 / MSS.get() as f64;
    // Windows of some packets are acknowledged a little later than the round trip.
    assert!((45.0..=50.0).contains(&grown), "{grown} in 50 round trips");
    for (controller, target_ms) in [("ledbat", 100.0), ("ledbat(target=25ms)", 25.0)] {
        let mut path = Path::new(controller, Conditions::bottleneck(100, 50, u64::MAX));
        path.run(Duration::from_secs(60));
        let (share, flight) = share_and_flight(&mut path, 100, 50, 10);
        let queueing_ms = (flight / 50.0 - 1.0) * 100.0;
        assert!((queueing_ms - target_ms).abs() < 4.0, "{controller}: {queueing_ms} ms");
        assert!(share > 0.99, "{controller}: {share}");
    }
}

/// Arun and Balakrishnan 2018: in equilibrium the queue of a flow goes from 0 to 2.5 / delta packets, half of
/// that on average.
#[test]
fn copa_keeps_one_over_delta_packets_in_the_queue() {
    for (controller, packets) in
        [("copa", 2.0), ("copa(delta=0.25)", 4.0), ("copa(delta=0.1)", 10.0)]
    {
        let mut path = Path::new(controller, Conditions::bottleneck(20, 100, u64::MAX));
        path.run(Duration::from_secs(10));
        let (share, flight) = share_and_flight(&mut path, 20, 100, 10);
        let queued = flight - 100.0 * share;
        assert!((0.5..2.0).contains(&(queued / packets)), "{controller}: {queued} in the queue");
        assert!(share > 0.95, "{controller}: {share}");
    }
}

/// Swift, algorithm 1: the window rests where the round trip is its target, `150 ms + fs(w)`. With 50 packets per
/// round trip of 100 ms, `w / 50 * 100 ms` equals it at 76.7 packets.
#[test]
fn swift_rests_where_the_round_trip_is_its_target() {
    let mut path = Path::new("swift(base=150ms)", Conditions::bottleneck(100, 50, 200));
    path.run(Duration::from_secs(20));
    for _ in 0..50 {
        path.run(Duration::from_millis(150));
        let window = path.cwnd_packets();
        assert!((75..=78).contains(&window), "{window}");
    }
    assert_eq!(path.lost, 0);
}
