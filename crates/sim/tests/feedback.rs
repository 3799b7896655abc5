//! Controllers that listen to routers, over wired links whose agents speak to them.

mod common;

use common::{Flow, Path};
use weir_net::FeedbackConfig;
use weir_net::feedback::DraiConfig;
use weir_scene::{Outcome, RunSpec, TransportSpec};
use weir_sim::run;
use weir_transport::Config;
use weir_units::{BufferSize, Bytes, Duration, Rate};

/// What flows do over a bottleneck with such an agent in front of it.
fn outcome(path: &Path, feedback: Option<FeedbackConfig>, flows: &[Flow], seconds: u64) -> Outcome {
    let mut spec: RunSpec = path.spec(flows, Duration::from_secs(seconds));
    spec.measure.warmup = Duration::from_secs(seconds / 5);
    spec.links[0].config.feedback = feedback;
    run(&spec, 1).expect("a run")
}

/// On a link that is never half used every router says 5: the window doubles with each round trip, from
/// two segments to what the peer offers.
#[test]
fn muzha_doubles_its_window_where_there_is_room() {
    let path =
        Path { rate: Rate::from_mbit(10_000), queue: BufferSize::Infinite, ..Path::default() };
    let feedback = Some(FeedbackConfig::Drai(DraiConfig::default()));
    let mut flow = Flow::bulk("newreno/muzha");
    config_of(&mut flow).recv_buffer = Bytes(100_000);
    let mut spec = path.spec(&[flow], Duration::from_secs(1));
    spec.links[0].config.feedback = feedback;
    // The handshake takes the first round trip; samples fall between the others.
    spec.measure.sample_interval = Some(Duration::from_millis(40) + Duration::from_micros(100));
    let outcome = run(&spec, 1).expect("a run");
    let windows: Vec<u64> = outcome.samples.iter().map(|row| row.cwnd_bytes / SEGMENT).collect();
    assert_eq!(windows[..9], [2, 4, 8, 16, 32, 64, 69, 69, 69]);
}

/// The window rests where the routers say 3, or moves by one segment around it: the average utilisation
/// is neither below where 5 begins (half is left) nor above where 2 does (15 % are left). That holds
/// where the average is as fast as the round trip; a slower one notices too late that the window has
/// doubled.
#[test]
fn muzha_finds_its_share_and_loses_nothing() {
    let memory = Path::default().rtt;
    let feedback = Some(FeedbackConfig::Drai(DraiConfig { memory, ..DraiConfig::default() }));
    let outcome = outcome(&Path::default(), feedback, &[Flow::bulk("newreno/muzha")], 30);
    let utilisation = outcome.links[0].utilisation.expect("the link has a rate");
    assert!((0.5..=0.85).contains(&utilisation), "{utilisation}");
    assert_eq!((outcome.links[0].dropped_queue, outcome.flows[0].retransmits), (0, 0));
}

/// Without an agent on the way the controller is NewReno with an initial window of two segments.
#[test]
fn muzha_without_routers_is_newreno() {
    let mut reno = Flow::bulk("newreno/reno");
    config_of(&mut reno).initial_window = 2;
    // As long a packet: an index takes eight bytes, and its echo leaves room for four more.
    let segment = SEGMENT + 8;
    config_of(&mut reno).mss = segment as u32;
    let windows = |flow, segment| {
        let outcome = outcome(&Path::default(), None, &[flow], 20);
        let rows = outcome.samples.iter();
        rows.map(|row| row.cwnd_bytes / segment).collect::<Vec<u64>>()
    };
    let muzha = windows(Flow::bulk("newreno/muzha"), SEGMENT);
    let reno = windows(reno, segment);
    assert!(muzha.len() > 100);
    // A sample may fall between two acknowledgements that are a little longer here.
    for (ours, theirs) in muzha.iter().zip(&reno) {
        assert!(ours.abs_diff(*theirs) <= 1, "{ours}, {theirs}");
    }
}

fn config_of(flow: &mut Flow) -> &mut Config {
    match &mut flow.transport {
        TransportSpec::Reliable(config) => config,
        TransportSpec::Udp(_) => unreachable!("the flow has a stack"),
    }
}

/// The payload beside feedback and its echo.
const SEGMENT: u64 = 1_448 - 12;
