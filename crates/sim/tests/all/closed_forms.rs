//! The whole simulator against formulas that anyone can look up. Each test states its source and how
//! far the formula may be off; none of the tolerances is ours to widen.

use weir_net::{Limit, LinkConfig};
use weir_scene::topology::{Access, Dumbbell};
use weir_scene::{
    Ends, FlowSpec, LinkSpec, MeasureSpec, Outcome, RunSpec, TransportSpec, Workload,
};
use weir_sim::run;
use weir_transport::{Config, DelayedAck};
use weir_units::{Bytes, Duration, Instant, Rate, Ratio};

/// One flow over one link.
struct Path {
    rate: Rate,
    rtt: Duration,
    limit: Limit,
    loss: Ratio,
    config: Config,
    workload: Workload,
    duration: Duration,
    warmup: Duration,
}

impl Path {
    fn new(stack: &str, rate: Rate, rtt: Duration) -> Self {
        Self {
            rate,
            rtt,
            limit: Limit::Infinite,
            loss: Ratio::ZERO,
            config: Config { stack: stack.parse().expect("a stack"), ..Config::default() },
            workload: Workload::Bulk,
            duration: Duration::from_secs(60),
            warmup: Duration::ZERO,
        }
    }

    /// A file of `segments` segments.
    fn file(mut self, segments: u64) -> Self {
        let size = Bytes(segments * u64::from(self.config.mss));
        self.workload = Workload::File { size };
        self.duration = Duration::from_secs(100_000);
        self
    }

    fn lasting(mut self, warmup: u64, duration: u64) -> Self {
        self.warmup = Duration::from_secs(warmup);
        self.duration = Duration::from_secs(duration);
        self
    }

    fn run(self, seed: u64) -> Outcome {
        let forward = LinkConfig::new(self.rate, self.rtt / 2).with_limit(self.limit);
        let reverse = LinkConfig::new(Rate::from_mbit(100_000), self.rtt / 2);
        let dumbbell = Dumbbell { forward, reverse, access: Access::None, rtts: vec![self.rtt] };
        let mut topology = dumbbell.build().expect("a path");
        // What is lost has used the bottleneck: the formulas count it.
        let mut lossy = LinkConfig::default();
        lossy.impairments.loss = self.loss;
        let name = "lossy".into();
        topology.links.push(LinkSpec {
            name,
            config: lossy,
            monitored: false,
            one_at_a_time: false,
        });
        topology.routes[0].forward.push(topology.links.len() - 1);
        let flow = FlowSpec {
            name: "flow".into(),
            route_forward: topology.routes[0].forward.clone(),
            route_reverse: topology.routes[0].reverse.clone(),
            transport: TransportSpec::Reliable(Box::new(self.config)),
            workload: self.workload,
            start: Instant::ZERO,
            stop: None,
            start_jitter: Duration::ZERO,
            ends: Ends::Kernel,
        };
        let measure = MeasureSpec {
            duration: self.duration,
            warmup: self.warmup,
            sample_interval: Some(self.rtt),
            max_events: 0,
            ..MeasureSpec::default()
        };
        run(
            &RunSpec {
                radio: None,
                fabric: None,
                links: topology.links,
                flows: vec![flow],
                measure,
            },
            seed,
        )
        .expect("a run")
    }
}

fn bdp(rate: Rate, rtt: Duration, thousandths: u64) -> Limit {
    Limit::Bytes(rate.bytes_in(rtt).mul_ratio(thousandths, 1_000))
}

fn assert_close(what: &str, measured: f64, expected: f64, tolerance: f64) {
    let off = measured / expected - 1.0;
    assert!(
        off.abs() <= tolerance,
        "{what}: measured {measured:.4}, expected {expected:.4}: off by {:.1} %",
        100.0 * off
    );
}

/// Appenzeller, Keslassy and McKeown, "Sizing router buffers" (2004) §2: halving the window of a
/// path with one BDP of buffer just empties the buffer.
#[test]
fn reno_fills_a_link_with_one_bdp_of_buffer() {
    let (rate, rtt) = (Rate::from_mbit(10), Duration::from_millis(40));
    let mut path = Path::new("rack/reno", rate, rtt).lasting(20, 80);
    path.limit = bdp(rate, rtt, 1_000);
    let utilisation = path.run(1).summary.utilisation.unwrap();
    assert!(utilisation >= 0.98, "{utilisation}");
}

/// The same source: without a buffer the window swings between half and all of the BDP, which is
/// three quarters of the link.
#[test]
fn reno_uses_three_quarters_of_a_link_without_buffer() {
    let (rate, rtt) = (Rate::from_mbit(100), Duration::from_millis(40));
    let mut path = Path::new("rack/reno", rate, rtt).lasting(60, 240);
    path.limit = Limit::Packets(3);
    // A delayed ACK releases a burst, for which there is no space.
    path.config.delayed_ack = Some(DelayedAck::Off);
    let utilisation = path.run(1).summary.utilisation.unwrap();
    assert_close("utilisation", utilisation, 0.75, 0.05);
}

/// Mathis, Semke, Mahdavi and Ott, "The macroscopic behavior of the TCP congestion avoidance
/// algorithm" (1997): `sqrt(3 / 2p) / rtt` segments per second. It is the part of Padhye's formula
/// (1998, eq. 30) that holds without timeouts, of which RACK has next to none here, as is checked.
/// Linux counts the bytes that an ACK acknowledges, so delayed ACKs do not slow the growth (b = 1).
#[test]
fn reno_follows_mathis_at_fixed_loss() {
    let (rate, rtt) = (Rate::from_mbit(10_000), Duration::from_millis(40));
    for (billionths, duration) in
        [(100_000, 960), (300_000, 660), (1_000_000, 660), (5_000_000, 660), (20_000_000, 660)]
    {
        let mut path = Path::new("rack/reno", rate, rtt).lasting(60, duration);
        path.loss = Ratio::from_billionths(billionths).unwrap();
        let p = path.loss.as_f64();
        let outcome = path.run(1);
        let flow = &outcome.flows[0];
        assert!(flow.timeouts.unwrap() * 100 <= flow.retransmits, "{row:?}", row = flow);
        let measured = flow.goodput_mbps.expect("a measured flow") * 1e6 / 8.0 / 1448.0;
        let expected = libm::sqrt(1.5 / p) / 0.040;
        assert_close(&format!("segments per second at p = {p}"), measured, expected, 0.15);
    }
}

/// RFC 5681 §3.1: while nothing is lost, slow start doubles the window every round trip.
#[test]
fn slow_start_doubles_per_round_trip() {
    let (rate, rtt) = (Rate::from_mbit(100_000), Duration::from_millis(40));
    let outcome = Path::new("rack/reno", rate, rtt).file(2_000).run(1);
    let segments: Vec<u64> = outcome.samples.iter().map(|s| s.cwnd_bytes / 1448).collect();
    let doubling: Vec<u64> = (0..7).map(|n| 10 << n).collect();
    let found = segments.windows(doubling.len()).any(|window| window == doubling);
    assert!(found, "{segments:?}");
}

/// Kurose and Ross §3.4.2: one segment per round trip. The exchange takes the round trip and the
/// transmission times of the segment and its ACK; the handshake takes one round trip.
#[test]
fn stop_and_wait_moves_one_segment_per_round_trip() {
    let (rate, rtt) = (Rate::from_mbit(10), Duration::from_millis(40));
    let outcome = Path::new("stop-and-wait/none", rate, rtt).file(500).run(1);
    let sending = 1_500.0 * 8.0 / 10e6;
    let exchange = 0.040 + sending;
    // The last segment counts when it arrives, half a round trip earlier.
    let expected = 0.040 + 500.0 * exchange - 0.020;
    assert_close("completion time", outcome.flows[0].fct_s.unwrap(), expected, 0.001);
}

/// A window that fills the path, a timer that fires as soon as the answer is overdue, losses on data
/// only: the setting of the textbook formulas (Stallings, Data and Computer Communications, §16).
fn pipelined(stack: &str, loss: Ratio, rto_us: u64) -> f64 {
    let (rate, rtt) = (Rate::from_mbit(10), Duration::from_millis(40));
    let mut path = Path::new(stack, rate, rtt).file(40_000);
    path.loss = loss;
    path.config.timestamps = false;
    path.config.fixed_rto = Some(Duration::from_micros(rto_us));
    path.config.max_retransmits = 1_000;
    let outcome = path.run(1);
    let ideal = 40_000.0 * 1_488.0 * 8.0 / 10e6;
    ideal / outcome.flows[0].fct_s.expect("a finished file")
}

/// Without errors a window of `2a + 1` keeps the link busy, `a` being delay over transmission time.
/// Each transmission is lost with probability `p`; a loss costs all that was sent until it shows,
/// `2a + 1` segments: `U = (1 - p) / (1 - p + (2a + 1) p)`.
#[test]
fn go_back_n_matches_its_textbook_efficiency() {
    let window = 35.6; // 42.5 ms of segments of 1488 bytes at 10 Mbit/s
    for percent in [1, 5, 10] {
        let p = f64::from(percent) / 100.0;
        let loss = Ratio::from_percent(percent);
        let measured = pipelined("go-back-n(36)/none", loss, 42_500);
        let expected = (1.0 - p) / (1.0 - p + window * p);
        assert_close(&format!("go-back-n at {percent} %"), measured, expected, 0.05);
    }
}

/// Only what is lost is sent again: `U = 1 - p`, where the span of sequence numbers never runs out
/// and as much is in flight as the path holds.
#[test]
fn selective_repeat_matches_its_textbook_efficiency() {
    for percent in [1, 5, 10] {
        let p = f64::from(percent) / 100.0;
        let loss = Ratio::from_percent(percent);
        let measured = pipelined("selective-repeat(2000)/none(80)", loss, 150_000);
        assert_close(&format!("selective repeat at {percent} %"), measured, 1.0 - p, 0.05);
    }
}
