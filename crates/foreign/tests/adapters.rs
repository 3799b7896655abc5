//! Our controllers in noq and quinn behave as in our own transport. Study `adapters` compares more of them on more
//! paths; here are those whose differences are smallest, so that a fault in an adapter is seen.

use weir_cc::CcConfig;
use weir_cc::host::HostFeatures;
use weir_foreign::{Settings, StackName};
use weir_net::{DropTailConfig, Limit, LinkConfig, QueueConfig};
use weir_scene::{
    Ends, FlowSpec, LinkSpec, MeasureSpec, Outcome, RunSpec, TransportSpec, Workload,
};
use weir_transport::{Config, DelayedAck};
use weir_units::{Bytes, Duration, Instant, Rate};

/// Packets of 1228 bytes, in QUIC and with the headers of TCP.
const UDP_PAYLOAD: u16 = 1_200;
const MSS: u32 = 1_176;

/// A bulk flow over 10 Mbit/s and 40 ms with a queue of one bandwidth-delay product, sampled every 100 ms.
fn run(transport: TransportSpec) -> Outcome {
    let link = |name: &str, limit| LinkSpec {
        name: name.to_owned(),
        config: LinkConfig {
            queue: QueueConfig::DropTail(DropTailConfig { limit, ..DropTailConfig::default() }),
            ..LinkConfig::new(Rate::from_mbit(10), Duration::from_millis(20))
        },
        monitored: false,
        one_at_a_time: false,
    };
    let spec = RunSpec {
        links: vec![link("there", Limit::Bytes(Bytes(50_000))), link("back", Limit::Infinite)],
        radio: None,
        fabric: None,
        flows: vec![FlowSpec {
            name: "flow0".to_owned(),
            route_forward: vec![0],
            route_reverse: vec![1],
            transport,
            workload: Workload::Bulk,
            start: Instant::ZERO,
            stop: None,
            start_jitter: Duration::ZERO,
            ends: Ends::Kernel,
        }],
        measure: MeasureSpec {
            duration: Duration::from_secs(60),
            warmup: Duration::from_secs(15),
            sample_interval: Some(Duration::from_millis(100)),
            ..MeasureSpec::default()
        },
    };
    weir_sim::run(&spec, 1).expect("a sound run")
}

/// Goodput in Mbit/s and mean queue delay in ms.
fn measured(transport: TransportSpec) -> (f64, f64) {
    let flow = &run(transport).flows[0];
    (flow.goodput_mbps.expect("a measured flow"), flow.queue_delay_ms_mean.expect("packets"))
}

fn ours(controller: &str) -> (f64, f64) {
    let mut config = Config::new(format!("rack/{controller}").parse().expect("a stack"));
    config.mss = MSS;
    config.delayed_ack = Some(DelayedAck::Rfc1122);
    measured(TransportSpec::Reliable(Box::new(config)))
}

fn foreign(stack: &str) -> TransportSpec {
    let stack: StackName = stack.parse().expect("a stack");
    let settings = Settings { max_payload: UDP_PAYLOAD, ..Settings::default() };
    TransportSpec::Foreign(stack.build(settings))
}

fn hosted(host: &str, controller: &str) -> (f64, f64) {
    measured(foreign(&format!("{host}/weir-{controller}")))
}

#[test]
fn a_controller_in_a_host_behaves_as_in_our_transport() {
    for (host, controllers) in
        [("noq", &["reno", "cubic", "bbr3"][..]), ("quinn", &["reno", "cubic"])]
    {
        for controller in controllers {
            let ((goodput, delay), (our_goodput, our_delay)) =
                (hosted(host, controller), ours(controller));
            let (share, delays) = (goodput / our_goodput, delay / our_delay);
            assert!(
                (0.95..=1.05).contains(&share),
                "{host}, {controller}: {goodput} {our_goodput}"
            );
            assert!((0.9..=1.1).contains(&delays), "{host}, {controller}: {delay} {our_delay}");
        }
    }
}

#[test]
fn samples_have_the_phases_and_rates_of_our_controllers_in_a_host() {
    for (stack, phases, has_rate) in [
        ("noq/weir-cubic", &["slow_start", "congestion_avoidance"][..], true),
        ("quinn/weir-cubic", &["slow_start", "congestion_avoidance"], false),
        ("noq/cubic", &["none"], false),
        ("noq/bbr3", &["none"], true),
    ] {
        let outcome = run(foreign(stack));
        let mut found: Vec<_> = outcome.samples.iter().map(|row| row.phase).collect();
        found.dedup();
        assert_eq!(found, phases, "{stack}");
        let last = outcome.samples.last().expect("samples");
        assert_eq!(last.delivery_mbps.is_some(), has_rate, "{stack}");
    }
}

/// The lines of a table of `docs/stacks/adapters.md` that begin with a controller's name, without
/// markup.
fn documented() -> Vec<Vec<String>> {
    let page = include_str!("../../../docs/stacks/adapters.md");
    let table = page.split("<!-- controllers -->").nth(1).expect("the table");
    let cells =
        |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    table.lines().filter(|line| line.starts_with("| `")).map(cells).collect()
}

#[test]
fn the_documentation_says_which_controller_runs_where() {
    let rows = documented();
    assert_eq!(rows.len(), CcConfig::CATALOGUE.len());
    for (row, entry) in rows.iter().zip(CcConfig::CATALOGUE) {
        let config: CcConfig = entry.name.parse().expect("a controller");
        let cc = config.build(Bytes(1_200), Bytes(12_000)).expect("a controller");
        let said = |host: HostFeatures| match host.check(entry.name, cc.needs()) {
            Ok(()) => "yes".to_owned(),
            Err(refusal) => format!("no: {}", refusal.reason),
        };
        let expected = [format!("`{}`", entry.name), said(weir_noq::HOST), said(weir_quinn::HOST)];
        assert_eq!(row[..3], expected, "{}", entry.name);
    }
}
