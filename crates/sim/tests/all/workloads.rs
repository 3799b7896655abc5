//! What applications do, by closed forms and by the statistics of what is drawn.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use crate::common::{Flow, Path, over, secs};
use weir_scene::{OnOff, Outcome, PeriodSpread, TransportSpec, Workload};
use weir_sim::run;
use weir_trace::FlowRow;
use weir_transport::{DelayedAck, HostProfile};
use weir_units::{BufferSize, Bytes, Duration, Rate};

/// Requests of `bytes`, answered by one byte: netperf's `TCP_RR -r bytes,1`.
fn rpc(bytes: u64) -> Workload {
    Workload::Request { request: Bytes(bytes), response: Bytes(1), gap: Duration::ZERO }
}

fn poisson(bytes: u64, mean_gap: Duration) -> Workload {
    Workload::PoissonRequest { request: Bytes(bytes), response: Bytes(1), mean_gap }
}

fn on_off(on: Duration, off: Duration, spread: PeriodSpread, rate: Option<Rate>) -> Workload {
    Workload::OnOff(OnOff { on, off, spread, rate, size: Bytes(1_000) })
}

/// A round trip of 40 ms, the request with 52 bytes of headers per segment of 1448, and an answer of
/// 53 bytes, at 10 Mbit/s.
fn exchange_ms(bytes: u64) -> f64 {
    let wire = bytes + bytes.div_ceil(1_448) * 52 + 53;
    40.0 + wire as f64 * 8.0 / 10_000.0
}

/// A stack whose clients let their acknowledgement of an answer ride on the next request.
fn unhurried(stack: &str) -> TransportSpec {
    let mut transport = over(stack);
    let TransportSpec::Reliable(config) = &mut transport else { panic!("{stack}") };
    config.delayed_ack = Some(DelayedAck::Rfc1122);
    transport
}

/// A run of one flow, measured from the 20th second to the 60th.
fn settled(flow: Flow) -> Outcome {
    let path = Path { queue: BufferSize::Infinite, ..Path::default() };
    let mut spec = path.spec(&[flow], secs(60));
    spec.measure.warmup = secs(20);
    run(&spec, 1).unwrap()
}

#[test]
fn a_closed_loop_on_an_empty_path_has_its_closed_form() {
    for stack in ["rack/reno", "rack/cubic", "sack/reno", "newreno/cubic"] {
        // The largest two need a window that slow start has opened: the warm-up sees to it.
        for bytes in [1, 1_000, 10_000, 100_000, 1_000_000] {
            let outcome = settled(Flow::new(unhurried(stack), rpc(bytes)));
            let (row, exchange) = (&outcome.flows[0], exchange_ms(bytes));
            let exact = |ms: f64| (ms - exchange).abs() < 0.001;
            let odd = outcome.requests.iter().find(|row| !exact(row.latency_ms));
            assert_eq!(odd, None, "{stack}, {bytes}: not {exchange} ms");
            let count = row.requests.unwrap() as f64;
            assert!((count - 40_000.0 / exchange).abs() <= 1.0, "{stack}, {bytes}: {count}");
            let ideal = bytes as f64 * 8.0 / exchange / 1e3;
            // One request more or less in 40 s.
            let rounding = bytes as f64 * 8e-6 / 40.0;
            let goodput = goodput(row);
            let off = (goodput - ideal).abs();
            assert!(off <= rounding, "{stack}, {bytes}: {goodput} not {ideal}");
        }
    }
}

#[test]
fn several_clients_of_one_host_share_the_link() {
    let flows = vec![Flow::new(over("rack/cubic"), rpc(10_000)); 16];
    // One alone would get 1.66 Mbit/s; sixteen fill the link, and the queue holds all.
    let outcome = Path { queue: "4bdp".parse().unwrap(), ..Path::default() }.run(&flows, secs(20));
    assert!(outcome.summary.utilisation.unwrap() > 0.99, "{:?}", outcome.summary);
    assert!(outcome.summary.jain_index.unwrap() > 0.99, "{:?}", outcome.summary);
    let answered: u64 = outcome.flows.iter().map(|row| row.requests.unwrap()).sum();
    assert_eq!(outcome.requests.len() as u64, answered);
}

#[test]
fn a_pause_restarts_the_window_and_a_stop_ends_the_flow() {
    let gap = secs(2);
    let (request, response) = (Bytes(100_000), Bytes(1));
    let workload = Workload::Request { request, response, gap };
    let mean = |restart: bool| {
        let mut flow = Flow::new(over("rack/reno"), workload.clone()).stopping(50);
        let TransportSpec::Reliable(config) = &mut flow.transport else { panic!("{flow:?}") };
        config.slow_start_after_idle = restart;
        let row = settled(flow).flows.remove(0);
        assert!(row.completed && row.end_s == Some(50.0), "{row:?}");
        assert!(row.requests.unwrap() >= 9 && row.requests_unanswered.unwrap() <= 1, "{row:?}");
        row.request_latency_ms_mean.unwrap()
    };
    let (kept, restarted) = (mean(false), mean(true));
    assert!((kept - exchange_ms(100_000)).abs() < 0.1, "{kept}");
    // Two round trips of 41.2 ms in which 10 and 20 segments of 1.2 ms leave, before 40 fill the path.
    assert!(restarted > kept + 30.0 && restarted < kept + 80.0, "{restarted} after {kept}");
}

/// A Poisson process: as many arrivals as expected, gaps that are exponential and know nothing of
/// each other; each within four standard errors.
#[test]
fn an_open_loop_asks_at_the_times_of_a_poisson_process() {
    let mean_gap = Duration::from_millis(10);
    let flow = Flow::new(over("rack/cubic"), poisson(500, mean_gap));
    let outcome = Path::default().run(&[flow], secs(400));
    let row = &outcome.flows[0];
    let made = (row.requests.unwrap() + row.requests_unanswered.unwrap()) as f64;
    assert!((made - 40_000.0).abs() < 4.0 * 200.0, "{made} requests");
    assert_eq!(row.requests, row.requests_kept);
    let times: Vec<f64> = outcome.requests.iter().map(|row| row.t_s).collect();
    let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) / 0.010).collect();
    let n = gaps.len() as f64;
    let error = 1.0 / n.sqrt();
    let mean = gaps.iter().sum::<f64>() / n;
    assert!((mean - 1.0).abs() < 4.0 * error, "{mean}");
    // The fourth moment of an exponential about its mean is 9: the variance has a variance of 8 / n.
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / n;
    assert!((variance - 1.0).abs() < 4.0 * 8f64.sqrt() * error, "{variance}");
    let long = gaps.iter().filter(|gap| **gap > 1.0).count() as f64 / n;
    let (expected, spread) = (libm::exp(-1.0), 0.4823);
    assert!((long - expected).abs() < 4.0 * spread * error, "{long}");
    let products = gaps.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean));
    let correlation = products.sum::<f64>() / n / variance;
    assert!(correlation.abs() < 4.0 * error, "{correlation}");
}

/// Requests of one full packet, and a window that never holds them back: the bottleneck is an M/D/1
/// queue, in which a packet waits `ρ S / 2 (1 - ρ)` on average (Pollaczek and Khinchine; Kleinrock,
/// Queueing Systems I, §5.6). The client's
/// acknowledgements ride on its requests.
#[test]
fn an_open_loop_of_single_packets_waits_as_in_m_d_1() {
    let path = Path { rate: Rate::from_mbit(100), queue: BufferSize::Infinite, ..Path::default() };
    for per_second in [2_500, 5_000, 6_667] {
        let mean_gap = Duration::from_nanos(1_000_000_000 / per_second);
        let flow = Flow::new(unhurried("rack/none(100000)"), poisson(1_448, mean_gap));
        let mut spec = path.spec(&[flow], secs(120));
        spec.measure.warmup = secs(2);
        let outcome = run(&spec, 1).unwrap();
        let row = &outcome.flows[0];
        let load = 1_500.0 * 8.0 * per_second as f64 / 100e6;
        let service_ms = 0.12;
        let waiting_ms = load * service_ms / (2.0 * (1.0 - load));
        let sent_ms = 40.0 + service_ms + 53.0 * 8.0 / 100_000.0;
        let waited_ms = row.request_latency_ms_mean.unwrap() - sent_ms;
        let off = waited_ms / waiting_ms - 1.0;
        assert!(off.abs() < 0.03, "at {load}: waited {waited_ms} ms, not {waiting_ms} ({off})");
    }
}

#[test]
fn an_open_loop_that_asks_too_much_falls_behind_and_loses_no_request() {
    // 12 Mbit/s offered to 10.
    let flow = Flow::new(over("rack/cubic"), poisson(10_000, Duration::from_micros(6_667)));
    let outcome = Path::default().run(&[flow], secs(60));
    let row = &outcome.flows[0];
    let (answered, waiting) = (row.requests.unwrap(), row.requests_unanswered.unwrap());
    assert!(waiting > 500, "{waiting} of {}", answered + waiting);
    let delivered = row.delivered_bytes / 10_000;
    assert!((answered..=answered + waiting).contains(&delivered), "{delivered}");
    let numbers: Vec<u64> = outcome.requests.iter().map(|row| row.request).collect();
    assert_eq!(numbers, (0..answered).collect::<Vec<_>>(), "in order, none left out");
    let latency = |index: usize| outcome.requests[index].latency_ms;
    assert!(latency(numbers.len() - 1) > latency(numbers.len() / 2) + 1_000.0);
}

fn goodput(row: &FlowRow) -> f64 {
    row.goodput_mbps.expect("a measured flow")
}

#[test]
fn a_flow_that_ends_before_it_is_measured_has_no_goodput() {
    let small = Workload::File { size: Bytes(10_000) };
    let flows = [Flow::new(over("rack/cubic"), small), Flow::bulk("rack/cubic")];
    let mut spec = Path::default().spec(&flows, secs(10));
    spec.measure.warmup = secs(5);
    let outcome = run(&spec, 1).unwrap();
    let (ended, other) = (&outcome.flows[0], &outcome.flows[1]);
    assert!(ended.completed && ended.fct_s < Some(5.0), "{ended:?}");
    assert_eq!((ended.goodput_mbps, ended.throughput_mbps, ended.share), (None, None, None));
    assert!(goodput(other) > 9.0, "{other:?}");
    assert_eq!(outcome.summary.jain_index, None, "one flow has no fairness");
}

#[test]
fn datagrams_on_and_off_use_the_link_for_that_time() {
    let half = Duration::from_millis(500);
    let greedy = Flow::udp(on_off(half, half, PeriodSpread::Fixed, None));
    let used = Path::default().run(&[greedy], secs(20)).summary.utilisation.unwrap();
    // Two packets per period are still in the link when it ends: 24 ms in 10 s.
    assert!((0.5..0.503).contains(&used), "{used}");
    let rate = Some(Rate::from_mbit(4));
    let paced = Flow::udp(on_off(half, secs(1), PeriodSpread::Fixed, rate));
    let row = Path::default().run(&[paced], secs(30)).flows.remove(0);
    assert!((goodput(&row) - 4.0 / 3.0).abs() < 0.001, "{row:?}");
}

/// The time on in `T` has the standard deviation `√(2 on² off² / (on + off)³ · T)`.
#[test]
fn random_periods_have_their_share_of_the_time() {
    let (on, off) = (Duration::from_millis(200), Duration::from_millis(300));
    let workload = on_off(on, off, PeriodSpread::Exponential, Some(Rate::from_mbit(5)));
    for flow in [Flow::udp(workload.clone()), Flow::new(over("rack/cubic"), workload)] {
        let row = Path::default().run(&[flow], secs(1_000)).flows.remove(0);
        let error = (2.0 * 0.04f64 * 0.09 / 0.125 * 1_000.0).sqrt() / 1_000.0;
        let share = goodput(&row) / 5.0;
        assert!((share - 0.4).abs() < 4.0 * error, "{share}");
        assert_eq!(row.retransmits, 0);
    }
}

#[test]
fn a_greedy_source_is_silent_when_it_is_off() {
    let workload = on_off(secs(2), secs(3), PeriodSpread::Fixed, None);
    let outcome = Path::default().run(&[Flow::new(over("rack/cubic"), workload)], secs(25));
    // What is in flight when a period ends still arrives, within a round trip and a full queue.
    let (mut silent, mut busy) = (0, 0);
    for row in &outcome.samples {
        let phase = row.t_s % 5.0;
        if phase > 2.3 {
            assert_eq!(row.goodput_mbps, 0.0, "{row:?}");
            silent += 1;
        }
        busy += u32::from(phase > 0.5 && phase <= 2.0 && row.goodput_mbps > 8.0);
    }
    assert!(silent > 100 && busy > 60, "{silent} silent, {busy} busy samples");
    let row = &outcome.flows[0];
    assert!(row.time_app_limited_s.unwrap() > 14.0, "{row:?}");
}

#[test]
fn background_datagrams_take_their_rate_and_leave_the_rest() {
    let background = Flow::udp(Workload::Rate { rate: Rate::from_mbit(4), size: Bytes(1_000) });
    let mut spec = Path::default().spec(&[background, Flow::bulk("rack/cubic")], secs(120));
    spec.measure.warmup = secs(20);
    let outcome = run(&spec, 1).unwrap();
    let (udp, tcp) = (&outcome.flows[0], &outcome.flows[1]);
    assert!((udp.throughput_mbps.expect("a measured flow") - 4.0 * 1.028).abs() < 0.01, "{udp:?}");
    assert!(udp.loss_ratio < Some(0.02) && goodput(udp) > 3.92, "{udp:?}");
    let rest = (10.0 - goodput(udp) * 1.028) * 1_448.0 / 1_500.0;
    assert!(goodput(tcp) < rest + 0.01 && goodput(tcp) > 0.97 * rest, "{} of {rest}", goodput(tcp));
}

/// Netesto lets every flow wait for a random time up to 0.1 s: uniform, new in each repeat, and the
/// same whatever the algorithm.
#[test]
fn a_random_wait_belongs_to_the_flow_and_the_seed() {
    let starts = |stack: &str, seed: u64| -> Vec<f64> {
        let flow = Flow::new(over(stack), rpc(10_000)).starting(13).jittered(100);
        let spec = Path::default().spec(&[flow.clone(), flow], secs(14));
        run(&spec, seed).unwrap().flows.iter().map(|row| row.start_s - 13.0).collect()
    };
    let all: Vec<f64> = (1..=100).flat_map(|seed| starts("rack/cubic", seed)).collect();
    assert!(all.iter().all(|wait| (0.0..=0.1).contains(wait)));
    let n = all.len() as f64;
    let mean = all.iter().sum::<f64>() / n;
    // A uniform wait has a standard deviation of 0.1 / √12.
    assert!((mean - 0.05).abs() < 4.0 * 0.1 / (12.0 * n).sqrt(), "{mean}");
    let mut distinct = all.clone();
    distinct.sort_by(f64::total_cmp);
    distinct.dedup();
    assert_eq!(distinct.len(), all.len(), "every flow in every repeat has its own");
    assert_eq!(starts("rack/bbr", 1), all[..2]);
}

/// Nothing in the way: the handshake's round trip, headers, and the window that opens are what the
/// ideal leaves out.
#[test]
fn the_slowdown_of_a_lone_transfer_is_a_little_above_one() {
    let flows = [Flow::file("rack/cubic", 20_000_000), Flow::bulk("rack/cubic").starting(100)];
    let outcome = Path::default().run(&flows, secs(101));
    let row = &outcome.flows[0];
    let (fct, slowdown) = (row.fct_s.unwrap(), row.slowdown.unwrap());
    assert!((slowdown - fct / (16.0 + 0.04)).abs() < 1e-4, "{row:?}");
    assert!((1.03..1.1).contains(&slowdown), "{slowdown}");
    assert_eq!(outcome.flows[1].slowdown, None);
}

/// A kernel sends what is due before the application's next call: a FIN after data that may leave, and an
/// acknowledgement before the answer. A transport in user space puts them into one packet.
#[test]
fn what_is_due_leaves_before_the_application_goes_on() {
    let request = Workload::Request { request: Bytes(1_000), response: Bytes(1), gap: secs(9) };
    for (profile, file, asks) in
        [(HostProfile::Kernel, [6, 4], [4, 3]), (HostProfile::UserSpace, [5, 3], [4, 2])]
    {
        let packets = |workload| {
            let mut flow = Flow::new(over("rack/cubic"), workload);
            let TransportSpec::Reliable(config) = &mut flow.transport else { panic!("{flow:?}") };
            config.host_profile = profile;
            let outcome = Path::default().run(&[flow], secs(5));
            [0, 1].map(|link: usize| outcome.links[link].delivered_packets)
        };
        assert_eq!(packets(Workload::File { size: Bytes(2_000) }), file, "{profile:?}");
        assert_eq!(packets(request.clone()), asks, "{profile:?}");
    }
}
