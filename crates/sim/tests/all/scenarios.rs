//! A table of single flows that may only change on purpose, and each workload by numbers known
//! beforehand.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::fmt::Write as _;

use crate::common::{Flow, Path, over, secs};
use weir_net::{Impairments, LinkConfig, Service};
use weir_scene::{RunSpec, TransportSpec, Workload};
use weir_sim::{SimError, run};
use weir_transport::{Config, RecoveryConfig};
use weir_units::{Bytes, Duration, Instant, Rate, Ratio};

#[test]
fn single_flows_fill_the_link_as_the_buffer_allows() {
    let mut table =
        String::from("stack       buffer   util‰  goodput-kbit  retx  rto  delay-us  p95-us\n");
    for stack in ["reno", "cubic", "bbr", "vegas"] {
        for buffer in ["0.1bdp", "0.5bdp", "1bdp", "2bdp", "4bdp"] {
            let path = Path { queue: buffer.parse().unwrap(), ..Path::default() };
            let mut spec = path.spec(&[Flow::bulk(stack)], secs(120));
            spec.measure.warmup = secs(20);
            let outcome = run(&spec, 1).unwrap();
            let (flow, link) = (&outcome.flows[0], &outcome.links[0]);
            let micros = |millis: Option<f64>| (millis.unwrap() * 1e3).round();
            let row = format!(
                "{:11} {buffer:7} {:6.0} {:13.0} {:5} {:4} {:9} {:7}",
                flow.stack,
                link.utilisation.unwrap() * 1e3,
                flow.goodput_mbps.expect("a measured flow") * 1e3,
                flow.retransmits,
                flow.timeouts.unwrap(),
                micros(flow.queue_delay_ms_mean),
                micros(flow.queue_delay_ms_p95),
            );
            writeln!(table, "{row}").unwrap();
        }
    }
    insta::assert_snapshot!(table);
}

/// As for a congestion mark: PRR meters it with `rack`, nothing is lost, and nothing is taken back.
#[test]
fn a_controller_may_begin_an_episode_without_loss_or_mark() {
    for stack in ["rack/cdg", "sack/cdg", "newreno/cdg"] {
        let path = Path { queue: "10bdp".parse().unwrap(), ..Path::default() };
        let mut spec = path.spec(&[Flow::bulk(stack)], secs(20));
        spec.measure.sample_interval = Some(Duration::from_millis(5));
        let outcome = run(&spec, 1).unwrap();
        assert_eq!(outcome.flows[0].retransmits, 0, "{stack}");
        let episodes = outcome.samples.windows(2).filter(|pair| {
            let begins = pair[0].state == "open" && pair[1].state == "cwr";
            // The window falls on the way there, and ends at 724/1024.
            assert!(!begins || pair[1].phase == "backoff", "{stack}");
            begins
        });
        assert!(episodes.count() > 10, "{stack}");
        let states = ["open", "cwr"];
        assert!(outcome.samples.iter().all(|sample| states.contains(&sample.state)), "{stack}");
    }
}

#[test]
fn requests_take_a_round_trip_and_their_transmission() {
    let gap = Duration::from_millis(10);
    let (request, response) = (Bytes(1_000), Bytes(1));
    let flow = Flow::new(over("reno"), Workload::Request { request, response, gap });
    let outcome = Path::default().run(&[flow], secs(10));
    // 1000 bytes with 52 of headers and 53 bytes back at 10 Mbit/s. As in netperf's `TCP_RR`, the
    // handshake does not count, but the 52 bytes that end it are ahead of the first request. That is acknowledged at
    // once, ahead of its answer; later acknowledgements leave with the answers.
    let exchange_ms = 40.0 + (1_052.0 + 53.0) * 8.0 / 10_000.0;
    let latencies: Vec<f64> = outcome.requests.iter().map(|row| row.latency_ms).collect();
    let expected = (9_960.0 / (exchange_ms + 10.0)) as usize;
    assert!(latencies.len().abs_diff(expected) <= 1, "{} requests", latencies.len());
    assert!((latencies[0] - exchange_ms - 2.0 * 0.0416).abs() < 1e-3, "{}", latencies[0]);
    let rest = &latencies[1..];
    assert!(rest.iter().all(|ms| (ms - exchange_ms).abs() < 1e-3), "{rest:?}");
}

#[test]
fn a_constant_rate_is_neither_hurried_nor_held_back() {
    let rate = Rate::from_mbit(2);
    let workload = Workload::Rate { rate, size: Bytes(1_000) };
    for flow in [Flow::new(over("cubic"), workload.clone()), Flow::udp(workload)] {
        let mut spec = Path::default().spec(&[flow], secs(20));
        spec.measure.warmup = secs(2);
        let row = run(&spec, 1).unwrap().flows.remove(0);
        assert!((row.goodput_mbps.expect("a measured flow") - 2.0).abs() < 0.01, "{row:?}");
        assert!(
            row.rtt_samples == 0 || row.time_app_limited_s.is_some_and(|s| s > 17.0),
            "{row:?}"
        );
        assert_eq!(row.retransmits, 0);
    }
}

#[test]
fn datagrams_as_fast_as_the_link_takes_them_fill_it_and_lose_what_is_lost() {
    let impairments = Impairments { loss: Ratio::from_percent(10), ..Impairments::default() };
    let forward = LinkConfig { impairments, ..LinkConfig::default() };
    let clean = Path::default().run(&[Flow::udp(Workload::Bulk)], secs(10));
    assert!(clean.links[0].utilisation.unwrap() > 0.999, "{:?}", clean.links[0]);
    assert_eq!(clean.flows[0].loss_ratio, Some(0.0));
    let lossy = Path { forward, ..Path::default() }.run(&[Flow::udp(Workload::Bulk)], secs(10));
    let ratio = lossy.flows[0].loss_ratio.expect("links of ours count");
    assert!((ratio - 0.1).abs() < 0.01, "{ratio}");
}

#[test]
fn a_file_of_datagrams_is_complete_only_if_none_is_lost() {
    let file = Flow::udp(Workload::File { size: Bytes(100_000) });
    let row = Path::default().run(std::slice::from_ref(&file), secs(10)).flows.remove(0);
    assert!(row.completed && row.fct_s.is_some(), "{row:?}");
    let impairments = Impairments { loss: Ratio::from_percent(30), ..Impairments::default() };
    let forward = LinkConfig { impairments, ..LinkConfig::default() };
    let row = Path { forward, ..Path::default() }.run(&[file], secs(10)).flows.remove(0);
    assert!(!row.completed && row.fct_s.is_none() && row.delivered_bytes < 100_000, "{row:?}");
}

#[test]
fn a_flow_that_stops_leaves_the_link_to_the_other() {
    let flows = [Flow::bulk("cubic"), Flow::bulk("cubic").starting(10).stopping(40)];
    let outcome = Path::default().run(&flows, secs(60));
    let goodput = |flow: u32, from: f64, to: f64| {
        let during = |row: &&weir_trace::SampleRow| row.t_s > from && row.t_s <= to;
        let rows: Vec<f64> = outcome
            .samples
            .iter()
            .filter(|row| row.flow == flow)
            .filter(during)
            .map(|row| row.goodput_mbps)
            .collect();
        rows.iter().sum::<f64>() / rows.len() as f64
    };
    assert!(goodput(0, 45.0, 60.0) > 9.4);
    assert!(goodput(0, 25.0, 40.0) < 7.5 && goodput(1, 25.0, 40.0) > 2.0);
    let stopped = &outcome.flows[1];
    assert!(stopped.completed && stopped.failure.is_none(), "{stopped:?}");
    assert_eq!((stopped.start_s, stopped.end_s), (10.0, Some(40.0)));
    assert!(outcome.samples.iter().all(|row| row.flow != 1 || row.t_s <= 40.0));
}

#[test]
fn a_dead_path_fails_the_flow_and_says_why() {
    let impairments = Impairments { loss: Ratio::ONE, ..Impairments::default() };
    let forward = LinkConfig { impairments, ..LinkConfig::default() };
    let row = Path { forward, ..Path::default() }.run(&[Flow::file("reno", 9_000)], secs(100_000));
    let row = &row.flows[0];
    let why = row.failure.as_deref().unwrap();
    assert!(why.contains("no answer to the handshake after 15 retransmissions"), "{why}");
    assert!(!row.completed);
}

#[test]
fn the_run_ends_when_the_last_flow_has() {
    let outcome = Path::default().run(&[Flow::file("reno", 100_000)], secs(3_600));
    let end = outcome.summary.sim_s;
    let fct = outcome.flows[0].fct_s.unwrap();
    // What remains is one exchange of FINs.
    assert!(end > fct && end < fct + 0.1, "completed at {fct}, ended at {end}");
}

#[test]
fn a_warm_up_leaves_out_slow_start() {
    let path = Path { queue: "0.5bdp".parse().unwrap(), ..Path::default() };
    let whole = path.run(&[Flow::bulk("reno")], secs(60));
    let mut spec = path.spec(&[Flow::bulk("reno")], secs(60));
    spec.measure.warmup = secs(10);
    let late = run(&spec, 1).unwrap();
    assert_eq!(whole.summary.trace_hash, late.summary.trace_hash, "measuring changes nothing");
    assert!(late.flows[0].retransmits < whole.flows[0].retransmits);
    assert!(late.flows[0].delivered_bytes < whole.flows[0].delivered_bytes);
}

#[test]
fn mistakes_are_named() {
    type Change = fn(&mut RunSpec);
    let mistake = |change: Change| -> SimError {
        let mut spec = Path::default().spec(&[Flow::bulk("reno"), Flow::bulk("reno")], secs(10));
        change(&mut spec);
        run(&spec, 1).unwrap_err()
    };
    let cases: [(Change, &str); 6] = [
        (|spec| spec.flows[1].name = "flow 0".into(), "two flows are called 'flow 0'"),
        (|spec| spec.flows[1].route_forward = vec![7], "flow 'flow 1': it is routed over link 7"),
        (|spec| spec.flows[1].route_reverse.clear(), "at least one link in each direction"),
        (|spec| spec.measure.warmup = secs(10), "warmup = 10s: it must be shorter"),
        (|spec| spec.flows[0].stop = Some(spec.flows[0].start), "it must come after the start"),
        (
            |spec| spec.flows[0].workload = Workload::File { size: Bytes::ZERO },
            "size = 0b: it must be above zero",
        ),
    ];
    for (change, expected) in cases {
        let message = mistake(change).to_string();
        assert!(message.contains(expected), "{message}");
    }
}

/// A link that dies in the middle of a packet: no checker mistakes that for a violation, and every
/// scheme gives up instead of waiting for ever.
#[test]
fn every_scheme_gives_up_on_a_link_that_dies() {
    for recovery in RecoveryConfig::CATALOGUE.iter().map(|entry| entry.name) {
        let config = Config {
            stack: format!("{recovery}/reno").parse().unwrap(),
            max_retransmits: 3,
            ..Config::default()
        };
        let transport = TransportSpec::Reliable(Box::new(config));
        let mut spec = Path::default().spec(&[Flow::new(transport, Workload::Bulk)], secs(600));
        let Service::Rate(rate) = &mut spec.links[0].config.service else { panic!("a rate") };
        rate.steps = vec![(Instant::ZERO + Duration::from_millis(1_000), Rate::ZERO)];
        let flow = run(&spec, 1).unwrap().flows.remove(0);
        assert!(flow.failure.is_some(), "{recovery}: {flow:?}");
        assert!(flow.delivered_bytes > 0, "{recovery}");
    }
}
