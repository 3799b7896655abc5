//! What theory says of each controller, on the small path of `path`.

use crate::path::{Conditions, MSS, Path, assert_within};
use weir_units::Duration;

const RTT_MS: u64 = 100;
const ROUND: Duration = Duration::from_millis(RTT_MS);

/// Windows at the end of each of `count` round trips, after `settle` of them.
fn windows(path: &mut Path, settle: u64, count: usize) -> Vec<u64> {
    path.run(ROUND * settle);
    (0..count)
        .map(|_| {
            path.run(ROUND);
            path.cwnd_packets()
        })
        .collect()
}

fn mean(windows: &[u64]) -> f64 {
    windows.iter().sum::<u64>() as f64 / windows.len() as f64
}

/// A path that holds `capacity` packets and has no queue.
fn pipe(capacity: u64) -> Conditions {
    Conditions { capacity, ..Conditions::open(RTT_MS) }
}

#[test]
fn reno_fills_three_quarters_of_a_path_without_a_buffer() {
    let mut path = Path::new("reno", pipe(100));
    assert_within(mean(&windows(&mut path, 300, 2_000)), 75.0, 0.02);
}

#[test]
fn aimd_moves_between_b_and_one_times_the_capacity() {
    for (a, b) in [("1", 0.5), ("1", 0.8), ("2", 0.8), ("0.25", 0.9), ("4", 0.3)] {
        let mut path = Path::new(&format!("aimd({a},{b})"), pipe(200));
        let windows = windows(&mut path, 1_000, 4_000);
        assert_within(mean(&windows), 200.0 * (1.0 + b) / 2.0, 0.02);
        // From b W to W takes (1 - b) W / a round trips; finding the loss and recovering, two.
        let period = (1.0 - b) * 200.0 / a.parse::<f64>().expect("a number") + 2.0;
        let cuts = windows.windows(2).filter(|pair| pair[1] + 5 < pair[0]).count();
        assert_within(windows.len() as f64 / cuts as f64, period, 0.05);
    }
}

#[test]
fn additive_decrease_stays_near_the_capacity() {
    let mut path = Path::new("aiad(1,3)", pipe(200));
    let windows = windows(&mut path, 300, 1_000);
    assert!(windows.iter().all(|cwnd| (196..=202).contains(cwnd)), "{windows:?}");
}

#[test]
fn multiplicative_increase_multiplies_per_round_trip() {
    let mut path = Path::new("mimd(1.125,0.5)", Conditions { drops: vec![400], ..pipe(5_000) });
    let windows = windows(&mut path, 8, 12);
    for pair in windows.windows(2) {
        assert_within(pair[1] as f64 / pair[0] as f64, 1.125, 0.01);
    }
}

#[test]
fn reno_adds_one_packet_per_round_trip() {
    let mut path = Path::new("reno", Conditions { drops: vec![400], ..Conditions::open(RTT_MS) });
    let windows = windows(&mut path, 10, 40);
    let slope = (windows[39] - windows[0]) as f64 / 39.0;
    assert_within(slope, 1.0, 0.03);
}

#[test]
fn slow_start_doubles_per_round_trip() {
    let all = [
        "reno",
        "cubic(hystart=off)",
        "vegas",
        "veno",
        "westwood",
        "illinois",
        "htcp",
        "highspeed",
        "scalable",
        "bic",
        "yeah",
        "lp",
        "cdg",
        "dctcp",
        "aimd",
    ];
    for controller in all {
        let mut path = Path::new(controller, Conditions::open(RTT_MS));
        assert_eq!(windows(&mut path, 0, 5), [20, 40, 80, 160, 320], "{controller}");
    }
}

#[test]
fn cubic_returns_to_its_old_window_after_k_along_a_cubic() {
    // One loss late in slow start; the window before it is W_max. 10 us per packet keep ACKs apart.
    let drops = vec![1_500];
    let conditions = Conditions { drops, ..Conditions::bottleneck(RTT_MS, 10_000, u64::MAX) };
    let mut path = Path::new("cubic(hystart=off)", conditions);
    let mut w_max = 0;
    while path.cc.ssthresh().is_none() {
        w_max = path.cwnd_packets();
        path.run(Duration::from_micros(10));
    }
    assert_eq!(path.cwnd_packets(), w_max * 717 / 1_024);
    // The epoch starts when the window may grow again, a round trip after the loss was found.
    let below = (w_max - path.cwnd_packets()) as f64;
    let k = libm::cbrt(below / 0.4);
    path.run(ROUND);
    let w = |t: f64| w_max as f64 + 0.4 * (t - k).powi(3);
    let mut at = 0.0;
    for part in [0.25, 0.5, 0.75, 1.0, 1.25] {
        path.run(Duration::from_nanos(((part - at) * k * 1e9) as u64));
        at = part;
        assert_within(path.cwnd_packets() as f64, w(part * k), 0.02);
    }
}

#[test]
fn cubic_is_never_slower_than_reno_with_its_factor() {
    // On a short path W_est rules: 3 (1 - beta) / (1 + beta) packets per round trip.
    let conditions = Conditions { drops: vec![80], ..Conditions::open(10) };
    let mut path = Path::new("cubic(hystart=off)", conditions);
    path.run(Duration::from_millis(200));
    let before = path.cwnd_packets();
    path.run(Duration::from_millis(500));
    assert_within((path.cwnd_packets() - before) as f64 / 50.0, 0.53, 0.1);
}

#[test]
fn cubic_without_friendliness_needs_all_of_k_on_a_short_path() {
    // Where W_est has long overtaken, the curve alone is back at W_max after K.
    let conditions = Conditions { drops: vec![80], ..Conditions::open(10) };
    let (_, after) = first_reduction("cubic(hystart=off)", conditions.clone());
    let w_max = after as f64 * 1_024.0 / 717.0;
    let k = libm::cbrt((w_max - after as f64) / 0.4);
    let after_k = |controller| {
        let mut path = Path::new(controller, conditions.clone());
        path.run(Duration::from_nanos((k * 1e9) as u64));
        path.cwnd_packets() as f64
    };
    assert_within(after_k("cubic(hystart=off,friendliness=off)"), w_max, 0.02);
    assert!(after_k("cubic(hystart=off)") > 2.0 * w_max);
}

#[test]
fn vegas_keeps_between_alpha_and_beta_packets_in_the_queue() {
    let mut path = Path::new("vegas", Conditions::bottleneck(RTT_MS, 50, 1_000));
    // 50 in flight and one in service.
    for cwnd in windows(&mut path, 400, 200) {
        assert!((53..=55).contains(&cwnd), "window {cwnd}");
    }
    assert_eq!(path.lost, 0);
}

#[test]
fn vegas_keeps_as_many_as_its_parameters_say() {
    for (text, queued) in [("vegas(alpha=1,beta=3)", 1..=3), ("vegas(alpha=10,beta=12)", 10..=12)] {
        let mut path = Path::new(text, Conditions::bottleneck(RTT_MS, 50, 1_000));
        for cwnd in windows(&mut path, 600, 200) {
            assert!(queued.contains(&(cwnd - 51)), "{text}: window {cwnd}");
        }
    }
}

#[test]
fn the_share_that_a_loss_leaves_is_a_parameter() {
    let conditions =
        Conditions { drops: vec![400], ..Conditions::bottleneck(RTT_MS, 10_000, u64::MAX) };
    for (text, beta) in [
        ("cubic(hystart=off,beta=0.5)", 512),
        ("cubic(hystart=off)", 717),
        ("bic(beta=0.5)", 512),
        ("bic", 819),
    ] {
        let (before, after) = first_reduction(text, conditions.clone());
        assert_eq!(after, before * beta / 1_024, "{text}");
    }
}

#[test]
fn a_steeper_cubic_is_back_sooner() {
    // K goes with the cube root of 1/C: at eight times the default it is half as long.
    let conditions =
        Conditions { drops: vec![1_500], ..Conditions::bottleneck(RTT_MS, 10_000, u64::MAX) };
    let back = |text: &str| {
        let mut path = Path::new(text, conditions.clone());
        while path.cc.ssthresh().is_none() {
            path.run(Duration::from_micros(10));
        }
        let w_max = path.cwnd_packets() * 1_024 / 717;
        let mut rounds = 0;
        while path.cwnd_packets() < w_max {
            path.run(ROUND);
            rounds += 1;
        }
        f64::from(rounds)
    };
    assert_within(back("cubic(hystart=off)") / back("cubic(hystart=off,c=3.2)"), 2.0, 0.1);
}

#[test]
fn hybla_grows_as_over_the_path_that_it_is_given() {
    // Over 100 ms, rho is 4 for a reference of 25 ms and 1 for one of 100 ms, which is Reno.
    let windows = |text: &str| {
        let mut path = Path::new(text, Conditions::open(100));
        path.run(Duration::from_millis(350));
        path.cwnd_packets()
    };
    assert!(windows("hybla") > 50 * windows("hybla(rtt0=100ms)"));
}

/// The window before the first reduction and after it.
fn first_reduction(controller: &str, conditions: Conditions) -> (u64, u64) {
    let mut path = Path::new(controller, conditions);
    let mut before = 0;
    while path.cc.ssthresh().is_none() {
        before = path.cwnd_packets();
        path.run(Duration::from_micros(10));
    }
    (before, path.cwnd_packets())
}

#[test]
fn veno_gives_way_by_a_fifth_without_a_queue_and_by_half_with_one() {
    // 10 us per packet keep ACKs apart and the queue below a packet.
    let random = Conditions { drops: vec![60], ..Conditions::bottleneck(RTT_MS, 10_000, u64::MAX) };
    let (before, after) = first_reduction("veno", random);
    assert_eq!(after, before * 4 / 5);
    let queued = Conditions { drops: vec![400], ..Conditions::bottleneck(RTT_MS, 50, 1_000) };
    let (before, after) = first_reduction("veno", queued);
    assert_eq!(after, before / 2);
}

#[test]
fn veno_grows_every_second_round_trip_once_it_queues_three_packets() {
    let drops = vec![70];
    let mut path =
        Path::new("veno", Conditions { drops, ..Conditions::bottleneck(RTT_MS, 50, 1_000) });
    path.run(ROUND * 6);
    // One in service besides the 50 in flight: 54 queue three, as the RTT shows.
    for (from, to, per_window) in [(40, 52, 1.0), (58, 80, 2.0)] {
        while path.cwnd_packets() != from {
            path.run(Duration::from_micros(100));
        }
        let before = path.delivered;
        while path.cwnd_packets() < to {
            path.run(Duration::from_micros(100));
        }
        let packets = (path.delivered - before).get() / MSS.get();
        let windows = (from..to).sum::<u64>() as f64;
        assert_within(packets as f64 / windows, per_window, 0.03);
    }
}

#[test]
fn westwood_falls_back_to_what_the_path_holds_without_its_queue() {
    // Smaller buffers run empty while half of the window recovers, which lowers the estimate.
    for buffer in [50, 75, 100] {
        let mut path = Path::new("westwood", Conditions::bottleneck(RTT_MS, 50, buffer));
        path.run(ROUND * 600);
        // `ssthresh` is half of the window during an episode, then what Westwood falls back to.
        let thresholds: Vec<u64> = (0..3_000)
            .map(|_| {
                path.run(ROUND);
                path.cc.ssthresh().map_or(0, |ssthresh| ssthresh.get() / MSS.get())
            })
            .collect();
        let mut seen = 0;
        for stay in thresholds.chunk_by(|a, b| a == b).filter(|stay| stay.len() > 5) {
            // 50 in flight and one in service, whatever the buffer; the RTT counts in whole ticks.
            assert!((50..=52).contains(&stay[0]), "{} with a buffer of {buffer}", stay[0]);
            seen += 1;
        }
        assert!(seen > 5, "{seen}");
    }
}

#[test]
fn illinois_takes_ten_segments_and_gives_an_eighth_where_nothing_queues() {
    let drops = vec![400, 8_000];
    let mut path = Path::new("illinois", Conditions { drops, ..Conditions::open(RTT_MS) });
    let windows = windows(&mut path, 10, 60);
    let cut = windows.windows(2).position(|pair| pair[1] < pair[0]).expect("the second loss");
    assert_within((windows[cut] - windows[0]) as f64 / cut as f64, 10.0, 0.02);
    // Which is a part of a round trip's growth later than the sample.
    assert_within(windows[cut + 1] as f64 / windows[cut] as f64, 7.0 / 8.0, 0.03);
}

#[test]
fn illinois_grows_along_its_convex_curve_as_the_queue_fills() {
    let mut path = Path::new("illinois", Conditions::bottleneck(RTT_MS, 50, 100));
    path.run(ROUND * 100);
    // A full buffer is the largest delay ever; 50 are in flight and one is in service.
    let service_ms = RTT_MS as f64 / 50.0;
    let (largest, low, least) = (100.0 * service_ms, service_ms, 38.0 / 128.0);
    let alpha = |window: u64| {
        let delay = (window - 51) as f64 * service_ms;
        10.0 * (largest - low) / (largest - low + (delay - low) * (10.0 - least) / least)
    };
    for (from, to) in [(80, 100), (100, 120), (120, 140)] {
        while path.cwnd_packets() != from {
            path.run(Duration::from_millis(1));
        }
        let before = path.delivered;
        while path.cwnd_packets() < to {
            path.run(Duration::from_millis(1));
        }
        let packets = (path.delivered - before).get() as f64 / MSS.get() as f64;
        // A segment per W / alpha packets.
        let expected: f64 = (from..to).map(|window| window as f64 / alpha(window)).sum();
        assert_within(packets, expected, 0.03);
    }
}

#[test]
fn htcp_grows_with_the_time_since_the_last_loss() {
    let open = Conditions { drops: vec![1_000], ..Conditions::open(RTT_MS) };
    let mut path = Path::new("htcp", open);
    while path.cc.ssthresh().is_none() {
        path.run(Duration::from_millis(1));
    }
    // A round trip after the reduction the episode is over.
    path.run(ROUND);
    let start = path.cwnd_packets() as f64;
    // Over a path of 100 ms the scale is one: f(t) whole segments per round trip, less a little. A
    // round trip acknowledges what the window was f segments ago, and Linux does not count the
    // acknowledgement at which the window grows, nor half a packet on average before it.
    let f = |t: f64| 1.0 + (10.0 * (t - 1.0) + ((t - 1.0) / 2.0).powi(2)).max(0.0).floor();
    let mut window = start;
    for ms in 0..8_000_u32 {
        let f = f(f64::from(ms) / 1e3);
        window += f / (1.0 + 2.5 * f / window) / RTT_MS as f64;
        path.run(Duration::from_millis(1));
        if (ms + 1) % 1_000 == 0 && ms > 1_000 {
            assert_within(path.cwnd_packets() as f64 - start, window - start, 0.03);
        }
    }
}

#[test]
fn htcp_leaves_the_queue_just_empty_once_the_throughput_is_steady() {
    // RTT_min / RTT_max with the buffer full, within 0.5 and 0.8; 50 in flight and one in service.
    for (buffer, beta) in [(5, 0.8), (25, 51.0 / 76.0), (40, 51.0 / 91.0), (75, 0.5)] {
        let mut path = Path::new("htcp", Conditions::bottleneck(RTT_MS, 50, buffer));
        path.run(ROUND * 600);
        let mut cuts = 0;
        for _ in 0..60_000 {
            let before = path.cwnd_packets();
            path.run(Duration::from_millis(1));
            let after = path.cwnd_packets();
            if after < before {
                assert_within(after as f64 / before as f64, beta, 0.02);
                cuts += 1;
            }
        }
        assert!(cuts > 5, "{cuts}");
    }
}

/// The fall of DCTCP's window at each mark, by the model of Alizadeh et al. 2010 (section 3.3) for one
/// flow: marks begin at `w_star` = C RTT + K and last for a round trip, the window falls by
/// `D = (w_star + 1) alpha / 2`. The paper takes alpha as constant. Here it is what g = 1/16 leaves
/// of it when the next mark comes: a cycle has one marked round trip, D that grow and one that closes
/// the episode.
fn dctcp_fall(w_star: u64) -> f64 {
    let (g, mut fall) = (1.0 / 16.0, 5.0);
    for _ in 0..100 {
        let kept = |rounds: f64| libm::pow(1.0 - g, rounds);
        let alpha = g * kept(fall + 1.0) / (1.0 - kept(fall + 2.0));
        fall = (fall + (w_star + 1) as f64 * alpha / 2.0) / 2.0;
    }
    fall
}

#[test]
fn dctcp_oscillates_as_its_authors_computed() {
    for (packets, threshold) in [(100, 20), (200, 40), (400, 65)] {
        let path = Conditions::bottleneck(RTT_MS, packets, u64::MAX);
        let mut path = Path::new("dctcp", Conditions { mark_above: threshold, ..path });
        let windows = windows(&mut path, 1_000, 2_000);
        let w_star = packets + threshold;
        let (lowest, highest) = windows
            .iter()
            .fold((u64::MAX, 0), |(low, high), &window| (low.min(window), high.max(window)));
        let fall = dctcp_fall(w_star);
        // In whole packets: a mark is seen one late, a window is cut to the next packet.
        assert!((w_star + 1..=w_star + 3).contains(&highest), "{highest} marked at {w_star}");
        let measured = (highest - lowest) as f64;
        assert!((measured - fall).abs() <= 1.5, "falls by {measured}, computed {fall}");
        assert_eq!(path.lost, 0);
    }
}

#[test]
fn dctcp_gives_way_by_half_of_alpha() {
    // The first window meets a mark, after one acknowledgement without: alpha is 15/16 of its start.
    let conditions = Conditions { mark_above: 5, ..Conditions::bottleneck(RTT_MS, 50, u64::MAX) };
    let (before, after) = first_reduction("reno", conditions.clone());
    assert_eq!(after, before / 2);
    for alpha in [1.0, 0.5, 0.0] {
        let controller = format!("dctcp(alpha0={alpha})");
        let (before, after) = first_reduction(&controller, conditions.clone());
        let expected = before as f64 * (1.0 - alpha * 15.0 / 16.0 / 2.0);
        assert_eq!(after, expected.ceil() as u64, "{controller} from {before}");
    }
}

#[test]
fn dctcp_without_marks_is_reno() {
    let path = Conditions::bottleneck(RTT_MS, 50, 50);
    let [dctcp, reno] = ["dctcp", "reno"]
        .map(|controller| windows(&mut Path::new(controller, path.clone()), 0, 300));
    assert_eq!(dctcp, reno);
}

/// The phases of the first `seconds` over 200 packets per round trip, and the packets lost.
fn first_phases(controller: &str, buffer: u64, seconds: u64) -> (Vec<&'static str>, u64) {
    let mut path = Path::new(controller, Conditions::bottleneck(RTT_MS, 200, buffer));
    let mut phases = vec![path.cc.phase()];
    for _ in 0..seconds * 1_000 {
        path.run(Duration::from_millis(1));
        phases.push(path.cc.phase());
    }
    phases.dedup();
    (phases, path.lost)
}

#[test]
fn hystart_leaves_slow_start_before_the_queue_overflows() {
    let phases = vec!["slow_start", "congestion_avoidance"];
    assert_eq!(first_phases("cubic", 200, 1), (phases.clone(), 0));
    let (without, lost) = first_phases("cubic(hystart=off)", 200, 1);
    assert!(without == phases && lost > 100, "{lost} lost");
}

#[test]
fn hystart_plus_plus_slows_down_before_it_leaves_slow_start() {
    let phases = vec!["slow_start", "conservative_slow_start", "congestion_avoidance"];
    assert_eq!(first_phases("cubic(hystart=plus-plus)", 4_000, 15), (phases.clone(), 0));
    // Five rounds at a quarter of the pace outgrow a buffer of 2 BDP, but lose less.
    let (with, lost) = first_phases("cubic(hystart=plus-plus)", 400, 3);
    let (_, lost_without) = first_phases("cubic(hystart=off)", 400, 3);
    assert!(with == phases && 2 * lost < lost_without, "{lost} lost, {lost_without} without");
}

#[test]
fn bbr_converges_to_the_bandwidth_and_keeps_the_queue_short() {
    for (rtt_ms, packets) in [(100, 50), (40, 400), (10, 20)] {
        let conditions = Conditions::bottleneck(rtt_ms, packets, 10 * packets);
        let mut path = Path::new("bbr", conditions);
        path.run(Duration::from_secs(3));
        let before = path.delivered;
        let time = Duration::from_secs(5);
        path.run(time);
        let delivered = (path.delivered - before).get() as f64 / MSS.get() as f64;
        let capacity = packets as f64 * time.as_secs_f64() * 1e3 / rtt_ms as f64;
        assert_within(delivered, capacity, 0.02);
        assert_eq!(path.lost, 0);
        // Windows of 2 BDP would queue one; pacing keeps most of that away.
        assert!(path.in_flight() < 2 * packets, "{} in flight", path.in_flight());
    }
}

#[test]
fn bbr_probes_the_rtt_every_ten_seconds_for_a_fifth_of_one() {
    let mut path = Path::new("bbr", Conditions::bottleneck(40, 40, 400));
    let mut probing = Vec::new();
    for tick in 0..35_000_u64 {
        path.run(Duration::from_millis(1));
        if path.cc.phase() == "probe_rtt" {
            probing.push(tick);
        }
    }
    let starts: Vec<u64> =
        probing.iter().filter(|tick| !probing.contains(&tick.wrapping_sub(1))).copied().collect();
    assert!(starts.len() == 3 || starts.len() == 2, "{starts:?}");
    let each = probing.len() as f64 / starts.len() as f64;
    assert!((200.0..330.0).contains(&each), "{each} ms");
}
