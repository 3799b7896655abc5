//! What theory says of Linux's further controllers, on the small path of `path`.

use crate::path::{Conditions, MSS, Path, assert_within};
use weir_units::Duration;

const RTT_MS: u64 = 100;
const ROUND: Duration = Duration::from_millis(RTT_MS);

/// A path without a queue that loses these packets.
fn losing(controller: &str, drops: &[u64]) -> Path {
    let drops = drops.to_vec();
    Path::new(controller, Conditions { drops, ..Conditions::open(RTT_MS) })
}

/// Runs until the window falls; the window before and after.
fn next_cut(path: &mut Path) -> (u64, u64) {
    for _ in 0..60_000 {
        let before = path.cwnd_packets();
        path.run(Duration::from_millis(1));
        if path.cwnd_packets() < before {
            return (before, path.cwnd_packets());
        }
    }
    panic!("nothing was lost");
}

/// Runs until slow start has lost. Its window may have grown at the same instant by more than it gave.
fn end_slow_start(path: &mut Path) {
    while path.cc.ssthresh().is_none() {
        path.run(Duration::from_millis(1));
    }
}

/// By how much the window grows in this many round trips.
fn growth(path: &mut Path, rounds: u64) -> f64 {
    let before = path.cwnd_packets();
    path.run(ROUND * rounds);
    path.cwnd_packets() as f64 - before as f64
}

#[test]
fn highspeed_adds_and_takes_what_the_rfc_says() {
    for first_loss in [1_000, 2_500] {
        let mut path = losing("highspeed", &[first_loss, first_loss * 20]);
        next_cut(&mut path);
        path.run(ROUND * 3);
        // RFC 3649 §5.
        let w = path.cwnd_packets() as f64;
        let b = |w: f64| 0.5 - 0.4 * libm::log(w / 38.0) / libm::log(83_000.0 / 38.0);
        let a = |w: f64| libm::pow(w, 0.8) * 0.078 * 2.0 * b(w) / (2.0 - b(w));
        // The table rounds a(w) up, and b(w) down to that of the end of its row.
        assert_within(growth(&mut path, 5) / 5.0, a(w).ceil(), 0.15);
        let (before, after) = next_cut(&mut path);
        assert_within(1.0 - after as f64 / before as f64, b(before as f64), 0.06);
    }
}

#[test]
fn scalable_grows_by_a_hundredth_and_gives_an_eighth() {
    let mut path = losing("scalable", &[1_000, 150_000]);
    end_slow_start(&mut path);
    path.run(ROUND * 2);
    let before = path.cwnd_packets() as f64;
    path.run(ROUND * 50);
    assert_within(path.cwnd_packets() as f64 / before, libm::pow(1.01, 50.0), 0.01);
    let (before, after) = next_cut(&mut path);
    // Acknowledgements of a round trip come all at once here, and 1 % of growth with them.
    assert_within(after as f64 / before as f64, 7.0 / 8.0, 0.011);
}

#[test]
fn scalable_needs_the_same_time_to_recover_at_any_rate() {
    // ln(8/7) / ln(1.01) round trips (Kelly 2003, §2), whatever the window; and finding the loss, two.
    for packets in [400, 1_600] {
        let mut path =
            Path::new("scalable", Conditions { capacity: packets, ..Conditions::open(RTT_MS) });
        path.run(ROUND * 60);
        next_cut(&mut path);
        let from = path.now;
        next_cut(&mut path);
        let rounds = (path.now - from).as_nanos() as f64 / ROUND.as_nanos() as f64;
        let expected = libm::log(8.0 / 7.0) / libm::log(1.01) + 1.0;
        assert_within(rounds, expected, 0.08);
    }
}

#[test]
fn bic_takes_a_quarter_of_the_way_back_and_then_rests() {
    let mut path = losing("bic", &[2_000]);
    end_slow_start(&mut path);
    // What it takes for the last maximum: the window before the reduction by 819/1024.
    let max = path.cwnd_packets() as f64 * 1_024.0 / 819.0;
    path.run(ROUND);
    // Where every segment is acknowledged, Linux counts 31/16 segments per acknowledgement.
    let faster = 31.0 / 16.0;
    let mut plateau = 0;
    for _ in 0..60 {
        let distance = max - path.cwnd_packets() as f64;
        let step = growth(&mut path, 1);
        if distance > 4.0 * 16.0 + 32.0 {
            assert_within(step, 16.0 * faster, 0.1);
        } else if distance > 20.0 && distance < 60.0 {
            // The distance shrinks during the round trip, by 1 - e^(-1/4 * 31/16) in all.
            assert_within(step, distance * (1.0 - libm::exp(-faster / 4.0)), 0.25);
        } else if distance.abs() < 4.0 {
            plateau += 1;
            assert!(step <= 1.0, "{step} at {distance}");
        }
    }
    // Five windows per segment, 16/31 of that in truth: some 8 segments.
    assert!((14..=28).contains(&plateau), "{plateau}");
}

#[test]
fn hybla_grows_as_over_25_ms() {
    for (rtt_ms, dropped) in [(50_u64, 60), (100, 80), (150, 8)] {
        let rho = rtt_ms / 25;
        let drops = vec![dropped];
        let mut path = Path::new("hybla", Conditions { drops, ..Conditions::open(rtt_ms) });
        path.run(Duration::from_millis(rtt_ms - 1));
        assert_eq!(path.cwnd_packets(), rho, "the first window");
        // 2^rho - 1 segments per acknowledgement.
        path.run(Duration::from_millis(2));
        assert_eq!(path.cwnd_packets(), rho << rho);
        next_cut(&mut path);
        let round = Duration::from_millis(rtt_ms);
        path.run(round * 2);
        // rho^2 segments per window, counted in 1/128 segment per acknowledgement and rounded down.
        let mut expected = path.cwnd_packets() as f64;
        for _ in 0..10 {
            let steps = rho * rho * 128 / expected as u64;
            expected += steps as f64 * expected / 128.0;
        }
        path.run(round * 10);
        assert_within(path.cwnd_packets() as f64, expected, 0.05);
    }
}

#[test]
fn yeah_is_fast_without_a_queue_and_reno_with_one() {
    let drops = vec![400];
    let mut path = Path::new("yeah", Conditions { drops, ..Conditions::open(RTT_MS) });
    end_slow_start(&mut path);
    path.run(ROUND * 3);
    let before = path.cwnd_packets() as f64;
    path.run(ROUND * 30);
    assert_within(path.cwnd_packets() as f64 / before, libm::pow(1.01, 30.0), 0.03);

    // A queue of more than an eighth of the RTT and of less than 80 segments: one segment per round trip.
    let mut path = Path::new("yeah", Conditions::bottleneck(RTT_MS, 100, 70));
    path.run(ROUND * 100);
    let mut slow = 0;
    for _ in 0..40 {
        let queueing = path.cwnd_packets().saturating_sub(101);
        let rtt = ROUND + ROUND * queueing / 100;
        let before = path.cwnd_packets();
        path.run(rtt);
        if (20..60).contains(&queueing) && path.cwnd_packets() > before {
            assert!(path.cwnd_packets() - before <= 2, "{before} {}", path.cwnd_packets());
            slow += 1;
        }
    }
    assert!(slow > 10, "{slow}");
}

#[test]
fn yeah_drains_a_queue_of_more_than_80_segments() {
    let drops = vec![150];
    let conditions = Conditions { drops, ..Conditions::bottleneck(RTT_MS, 200, 2_000) };
    let mut path = Path::new("yeah", conditions);
    path.run(ROUND * 40);
    let (mut most, mut least) = (0, u64::MAX);
    for _ in 0..150 {
        path.run(ROUND);
        most = most.max(path.cwnd_packets());
        least = least.min(path.cwnd_packets());
    }
    // 200 in flight and one in service; 80 wait, and the growth of the round trip in which that shows.
    assert!((281..=285).contains(&most), "{most}");
    assert!((195..=206).contains(&least), "{least}");
    assert_eq!(path.lost, 1);
}

#[test]
fn lp_is_renos_twin_seven_times_of_eight() {
    // As Linux computes it, with an offset of the peer's clock beyond 2^29 ms; the path's stream draws one.
    let run = |controller: &str| {
        let mut path = Path::new(controller, Conditions::bottleneck(RTT_MS, 100, 100));
        path.run(ROUND * 400);
        (path.cwnd_packets(), path.delivered, path.lost)
    };
    assert_eq!(run("lp"), run("reno"));
}

#[test]
fn lp_gives_way_to_delay_where_clocks_agree() {
    let mut path = Path::new("lp(offsets=none)", Conditions::bottleneck(RTT_MS, 100, 1_000));
    let (before, after) = next_cut(&mut path);
    assert!(after == before / 2 || after == before / 2 + 1, "{before} {after}");
    assert_eq!(path.lost, 0);
}

#[test]
fn nv_keeps_ten_segments_in_the_queue() {
    let mut path = Path::new("nv", Conditions::bottleneck(RTT_MS, 100, 1_000));
    // Slow start's end leaves too little, which grows by a segment per round trip. Until that is made up for,
    // the smallest RTT is replaced by an equal one only (at 2 s, and 3.75 s later or more).
    path.run(ROUND * 90);
    assert_eq!(path.lost, 0);
    // 100 in flight, one in service, ten wait, and what is above gets less by 30 % at a time.
    let window = path.cwnd_packets();
    assert!((105..=115).contains(&window), "{window}");
}

#[test]
fn nv_waits_for_samples_after_a_loss() {
    let mut path = losing("nv", &[900]);
    next_cut(&mut path);
    assert_eq!(path.cc.phase(), "holding");
    path.run(ROUND * 4);
    assert_eq!(path.cc.phase(), "congestion_avoidance");
    assert_within(growth(&mut path, 10), 10.0, 0.15);
}

#[test]
fn cdg_backs_off_without_a_loss_to_seven_tenths() {
    let mut path = Path::new("cdg", Conditions::bottleneck(RTT_MS, 100, 1_000));
    path.run(ROUND * 30);
    let mut cuts = 0;
    for _ in 0..30 {
        let (before, after) = next_cut(&mut path);
        assert_eq!(after, before * 724 / 1_024);
        cuts += 1;
    }
    assert_eq!((cuts, path.lost), (30, 0));
}

#[test]
fn cdg_falls_to_its_shadow_at_a_loss() {
    // Losses without a rising delay: the shadow is the window, and a half remains.
    let mut path = losing("cdg", &[800, 9_000]);
    next_cut(&mut path);
    let (before, after) = next_cut(&mut path);
    assert!(after == before / 2 || after == before / 2 + 1, "{before} {after}");
}

#[test]
fn windows_are_whole_segments() {
    for controller in ["highspeed", "scalable", "bic", "hybla", "yeah", "lp", "nv", "cdg"] {
        let mut path = Path::new(controller, Conditions::bottleneck(RTT_MS, 50, 40));
        for _ in 0..300 {
            path.run(ROUND);
            assert_eq!(path.cc.cwnd().get() % MSS.get(), 0, "{controller}");
        }
    }
}
