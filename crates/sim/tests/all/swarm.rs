//! Random networks from one seed each: everything stays sound under faults, and what has an end
//! reaches it.
//!
//! A seed decides topology, stacks, workloads and a random subset of faults. Safety is what the
//! simulator's own checkers say. Liveness: every transfer of a given size completes, those of flows of
//! many among them, because no fault is worse than a bad link. `WEIR_SWARM_SEEDS=1000` tries more; `WEIR_SWARM_FIRST=77` begins there.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::sync::Arc;

use crate::common::secs;
use weir_net::{
    CakeConfig, ChokeConfig, Classifier, CodelConfig, CodelLaw, DropList, DualPi2Config,
    EcnStepConfig, FqCodelConfig, FqConfig, FqPieConfig, GilbertElliott, Hosts, Impairments,
    Isolation, Jitter, Limit, LinkConfig, Numbering, Order, PieConfig, PieLaw, PolicerConfig,
    QueueConfig, RedConfig, Reorder, Scheduler, Service, SfqConfig, Spread, StepThreshold,
};
use weir_scene::topology::{
    Access, Chain, Dumbbell, Edge, Graph, Hop, LabRouter, Relay, Span, Topology, parking_lot_spans,
};
use weir_scene::{
    AllReduce, AllReduceAlgorithm, Ends, FlowSizes, FlowSpec, MeasureSpec, OnOff, Pattern,
    PeriodSpread, RankOrder, RunSpec, SizeDistribution, TransportSpec, UdpConfig, Workload,
};
use weir_sim::{QueueKind, RunOptions, run_with};
use weir_transport::{Config, DelayedAck};
use weir_units::{Bytes, Duration, Instant, Rate, Ratio, Rng, stream};

const STACKS: &[&str] = &[
    "stop-and-wait/none",
    "go-back-n(10)/none",
    "go-back-n/reno",
    "selective-repeat(20)/none",
    "selective-repeat/cubic",
    "reno/reno",
    "newreno/reno",
    "newreno/cubic",
    "sack/reno",
    "sack/vegas",
    "rack/reno",
    "rack/cubic",
    "rack/bbr",
    "rack/vegas",
    "rack/veno",
    "rack/westwood",
    "sack/westwood",
    "rack/illinois",
    "rack/htcp",
    "rack/highspeed",
    "rack/scalable",
    "rack/bic",
    "rack/hybla",
    "rack/yeah",
    "rack/lp(offsets=none)",
    "rack/nv",
    "rack/cdg",
    "newreno/cdg",
    "rack/dctcp",
    "newreno/dctcp",
    "rack/aimd(1,0.5)",
];

#[test]
fn random_networks_stay_sound_and_finish() {
    let number = |name: &str, otherwise: u64| {
        std::env::var(name).map_or(otherwise, |text| text.parse().expect("a number"))
    };
    let first = number("WEIR_SWARM_FIRST", 1);
    let seeds = first..first + number("WEIR_SWARM_SEEDS", 60);
    let mut transfers = 0;
    for seed in seeds {
        transfers += check(seed);
    }
    assert!(transfers > 0, "no seed made a transfer that can finish");
}

/// Runs one network; returns how many transfers it saw to their end.
fn check(seed: u64) -> usize {
    let spec = network(seed);
    let wheel = seed.is_multiple_of(2);
    let queue = if wheel { QueueKind::Wheel } else { QueueKind::Heap };
    let outcome = match run_with(&spec, seed, &RunOptions { queue }) {
        Ok(outcome) => outcome,
        Err(error) => panic!("{error}\n{spec:#?}"),
    };
    let mut transfers = 0;
    for (flow, row) in spec.flows.iter().zip(&outcome.flows) {
        let sized = matches!(flow.workload, Workload::File { .. });
        if sized && matches!(flow.transport, TransportSpec::Reliable(_)) {
            let finished = row.completed && row.fct_s.is_some();
            assert!(finished, "seed {seed}: {row:#?}\n{spec:#?}");
            transfers += 1;
        }
    }
    for row in &outcome.arrivals {
        let finished = row.completed && row.delivered_bytes == row.size_bytes;
        assert!(finished, "seed {seed}: {row:#?}\n{spec:#?}");
        transfers += 1;
    }
    transfers
}

/// The network that a seed stands for.
fn network(seed: u64) -> RunSpec {
    let mut rng = stream(seed, "swarm");
    let flows = 1 + rng.below(5) as usize;
    let topology = topology(&mut rng, flows);
    let first_links: Vec<LinkConfig> = topology
        .routes
        .iter()
        .map(|route| topology.links[route.forward[0]].config.clone())
        .collect();
    let flows = topology.routes.into_iter().zip(first_links).enumerate().map(
        |(index, (route, first_link))| {
            let (transport, workload) = traffic(&mut rng, &first_link);
            let start = Instant::ZERO + Duration::from_millis(rng.below(5_000));
            let endless = !matches!(workload, Workload::File { .. });
            FlowSpec {
                name: format!("flow {index}"),
                route_forward: route.forward,
                route_reverse: route.reverse,
                transport,
                workload,
                start,
                stop: endless.then(|| start + Duration::from_millis(1_000 + rng.below(20_000))),
                start_jitter: Duration::from_millis(rng.below(900)),
                ends: Ends::Kernel,
            }
        },
    );
    RunSpec {
        radio: None,
        fabric: None,
        flows: flows.collect(),
        links: topology.links,
        measure: MeasureSpec {
            // Long enough for stop-and-wait over the worst of these links.
            duration: secs(40_000),
            warmup: Duration::from_millis(rng.below(3_000)),
            sample_interval: Some(Duration::from_millis(500 + rng.below(5_000))),
            max_events: 100,
            max_requests: 1_000,
            max_arrivals: 1_000,
            max_acks: 100,
            max_frames: 0,
        },
    }
}

fn topology(rng: &mut Rng, flows: usize) -> Topology {
    let access = match rng.below(2) {
        0 => Access::None,
        _ => Access::Rate(Rate::from_mbit(1 + rng.below(200))),
    };
    match rng.below(4) {
        0 => {
            let (forward, reverse) = (link(rng), link(rng));
            let shared = forward.delay.initial + reverse.delay.initial;
            let extra = |rng: &mut Rng| Duration::from_millis(rng.below(100));
            let rtts = (0..flows).map(|_| shared + extra(rng)).collect();
            Dumbbell { forward, reverse, access, rtts }.build().unwrap()
        }
        1 => {
            let hops: Vec<Hop> = (0..1 + rng.below(4))
                .map(|_| Hop { forward: link(rng), reverse: link(rng) })
                .collect();
            let spans = parking_lot_spans(hops.len(), flows);
            Chain { hops, access, spans }.build().unwrap()
        }
        2 => ring(rng, flows, access),
        _ => {
            let per_packet = Duration::from_micros(rng.below(20_000));
            let reverse = if rng.below(2) == 0 { Duration::ZERO } else { per_packet };
            let buffer = Limit::Bytes(Bytes(4_000 + rng.below(100_000)));
            let relay = LinkConfig::serial_relay(per_packet, reverse, buffer);
            let lossy = LinkConfig { impairments: faults(rng), ..LinkConfig::default() };
            let forward = (rng.below(2) == 0).then_some(lossy);
            LabRouter { relay: Relay::Serial(relay), forward, reverse: None, flows }.build()
        }
    }
}

/// A ring of nodes with links both ways, so that there is always a way.
fn ring(rng: &mut Rng, flows: usize, access: Access) -> Topology {
    let count = 3 + rng.below(4) as usize;
    let mut edges = Vec::new();
    for from in 0..count {
        for to in [(from + 1) % count, (from + count - 1) % count] {
            let (name, config) = (format!("{from}-{to}"), link(rng));
            edges.push(Edge { name, from, to, cost: 1, config, monitored: rng.below(3) == 0 });
        }
    }
    let span = |rng: &mut Rng| {
        let from = rng.below(count as u64) as usize;
        Span { from, to: (from + 1 + rng.below(count as u64 - 1) as usize) % count }
    };
    let spans = (0..flows).map(|_| span(rng)).collect();
    let nodes = (0..count).map(|node| node.to_string()).collect();
    Graph { nodes, edges, access, spans }.build().unwrap()
}

fn link(rng: &mut Rng) -> LinkConfig {
    let rate = Rate::from_bits_per_sec(200_000 + rng.below(50_000_000));
    let limit = match rng.below(3) {
        0 => Limit::Packets(1 + rng.below(200)),
        1 => Limit::Bytes(Bytes(3_000 + rng.below(500_000))),
        _ => Limit::Infinite,
    };
    let delay = Duration::from_micros(rng.below(80_000));
    let mut link = LinkConfig::new(rate, delay).with_limit(limit);
    link.queue = queue(rng, limit);
    link.overhead = Bytes(rng.below(3) * 7);
    if rng.below(4) == 0 {
        let burst = Bytes(1_600 + rng.below(50_000));
        link.service = Service::Shaper { rate: rate.into(), burst };
    }
    link.impairments = faults(rng);
    link
}

fn queue(rng: &mut Rng, limit: Limit) -> QueueConfig {
    match rng.below(14) {
        0..=3 => QueueConfig::DropTail(limit.into()),
        4 => QueueConfig::Codel(CodelConfig { limit, law: codel(rng) }),
        5 => {
            let (flows, quantum) = (1 + rng.below(64) as u32, Bytes(300 + rng.below(6_000)));
            QueueConfig::FqCodel(FqCodelConfig { limit, flows, quantum, law: codel(rng) })
        }
        6 => {
            let min = 1 + rng.below(40);
            let red = RedConfig {
                limit,
                min: Limit::Packets(min),
                max: Limit::Packets(min + 1 + rng.below(100)),
                probability: Ratio::from_percent(1 + rng.below(30) as u32),
                weight: Ratio::from_percent(1 + rng.below(100) as u32),
                gentle: rng.below(2) == 0,
                ecn: rng.below(4) > 0,
            };
            if rng.below(2) == 0 {
                QueueConfig::Red(red)
            } else {
                QueueConfig::Choke(ChokeConfig(red))
            }
        }
        7 => QueueConfig::Pie(PieConfig { limit, law: pie(rng) }),
        8 => {
            let (flows, quantum) = (1 + rng.below(64) as u32, Bytes(300 + rng.below(6_000)));
            QueueConfig::FqPie(FqPieConfig { limit, flows, quantum, law: pie(rng) })
        }
        9 => QueueConfig::Fq(FqConfig {
            limit,
            flow_limit: 1 + rng.below(200) as u32,
            flows: 1 + rng.below(64) as u32,
            quantum: Bytes(300 + rng.below(6_000)),
            initial_quantum: Bytes(rng.below(20_000)),
            refill_delay: Duration::from_micros(rng.below(80_000)),
            ce_threshold: (rng.below(2) == 0).then(|| Duration::from_micros(rng.below(30_000))),
        }),
        10 => {
            let host = |rng: &mut Rng| rng.below(3) as u32;
            let hosts = (0..rng.below(6)).map(|_| Hosts { from: host(rng), to: host(rng) });
            QueueConfig::Cake(CakeConfig {
                limit,
                hosts: hosts.collect(),
                isolation: match rng.below(3) {
                    0 => Isolation::Flows,
                    1 => Isolation::DualSrcHost,
                    _ => Isolation::TripleIsolate,
                },
                ..CakeConfig::usual()
            })
        }
        11 => QueueConfig::DualPi2(DualPi2Config {
            limit,
            classifier: if rng.below(2) == 0 { Classifier::L4s } else { Classifier::AnyEct },
            scheduler: match rng.below(2) {
                0 => Scheduler::Weighted(Ratio::from_percent(1 + rng.below(99) as u32)),
                _ => Scheduler::TimeShifted(Duration::from_micros(rng.below(60_000))),
            },
            ..DualPi2Config::DEFAULT
        }),
        12 => QueueConfig::Sfq(SfqConfig {
            limit,
            depth: 1 + rng.below(200) as u32,
            buckets: 1 + rng.below(64) as u32,
            quantum: Bytes(300 + rng.below(6_000)),
            head_drop: rng.below(2) == 0,
        }),
        _ => {
            let threshold = match rng.below(2) {
                0 => StepThreshold::Backlog(Limit::Packets(rng.below(60))),
                _ => StepThreshold::Sojourn(Duration::from_micros(rng.below(30_000))),
            };
            QueueConfig::EcnStep(EcnStepConfig { limit, threshold })
        }
    }
}

/// A control law that signals often, by marks where it may.
fn codel(rng: &mut Rng) -> CodelLaw {
    let target = Duration::from_micros(1 + rng.below(20_000));
    CodelLaw {
        target,
        interval: target * (2 + rng.below(20)),
        ecn: rng.below(4) > 0,
        ce_threshold: (rng.below(2) == 0).then(|| Duration::from_micros(1 + rng.below(30_000))),
    }
}

/// A control law that holds a short delay, by marks where it may.
fn pie(rng: &mut Rng) -> PieLaw {
    PieLaw {
        target: Duration::from_micros(1 + rng.below(20_000)),
        update: Duration::from_micros(1_000 + rng.below(20_000)),
        ecn: rng.below(4) > 0,
        ..PieLaw::DEFAULT
    }
}

/// A random subset of faults, each somewhere between harmless and bad.
fn faults(rng: &mut Rng) -> Impairments {
    let mut faults = Impairments::default();
    let up_to = |rng: &mut Rng, percent: u64| match rng.below(4) {
        0 => Ratio::from_billionths(rng.below(percent * 10_000_000 + 1) as u32).unwrap(),
        _ => Ratio::ZERO,
    };
    faults.loss = up_to(rng, 5);
    faults.corrupt = up_to(rng, 3);
    faults.duplicate = up_to(rng, 5);
    if rng.below(6) == 0 {
        faults.burst_loss = Some(GilbertElliott {
            good_to_bad: Ratio::from_billionths(5_000_000).unwrap(),
            bad_to_good: Ratio::from_percent(30),
            loss_in_good: Ratio::ZERO,
            loss_in_bad: Ratio::ONE,
        });
    }
    if rng.below(6) == 0 {
        // From the first handshake packet on, also several in a row.
        let numbers = (0..8).map(|_| 1 + rng.below(30)).collect();
        faults.drops.push(DropList { counts: Numbering::Any, numbers });
    }
    if rng.below(6) == 0 {
        let extra_delay = Duration::from_micros(1 + rng.below(50_000));
        let probability = Ratio::from_percent(1 + rng.below(20) as u32);
        faults.reorder = Some(Reorder { probability, extra_delay });
    }
    if rng.below(8) == 0 {
        let rate = Rate::from_bits_per_sec(300_000 + rng.below(50_000_000));
        faults.policer = Some(PolicerConfig { rate, burst: Bytes(1_600 + rng.below(50_000)) });
    }
    if rng.below(6) == 0 {
        let order = if rng.below(2) == 0 { Order::Kept } else { Order::Free };
        let spread = Spread::Uniform(Duration::from_micros(1 + rng.below(20_000)));
        faults.jitter = Some(Jitter { spread, order });
    }
    faults
}

fn traffic(rng: &mut Rng, first_link: &LinkConfig) -> (TransportSpec, Workload) {
    let rate = Rate::from_bits_per_sec(10_000 + rng.below(3_000_000));
    let constant = Workload::Rate { rate, size: Bytes(1 + rng.below(1_400)) };
    if rng.below(6) == 0 {
        let greedy = first_link.service != Service::Infinite && rng.below(2) == 0;
        let payload = 1 + rng.below(1_400) as u32;
        let periodic = rng.below(2) == 0;
        let workload = match (greedy, periodic) {
            (true, false) => Workload::Bulk,
            (false, false) => constant,
            (_, true) => on_off(rng, (!greedy).then_some(rate)),
        };
        return (TransportSpec::Udp(UdpConfig { payload }), workload);
    }
    let workload = match rng.below(10) {
        0 => Workload::Bulk,
        1 => constant,
        2 => on_off(rng, None),
        3 => on_off(rng, Some(rate)),
        4 => Workload::PoissonRequest {
            request: Bytes(1 + rng.below(5_000)),
            response: Bytes(1 + rng.below(5_000)),
            mean_gap: Duration::from_micros(500 + rng.below(200_000)),
        },
        5 => Workload::Request {
            request: Bytes(1 + rng.below(20_000)),
            response: Bytes(1 + rng.below(20_000)),
            gap: Duration::from_micros(rng.below(50_000)),
        },
        6 => connections(FlowSizes {
            sizes: Arc::new(sizes(rng)),
            mean_gap: Duration::from_micros(5_000 + rng.below(400_000)),
            count: (rng.below(2) == 0).then(|| 1 + rng.below(60)),
            pattern: Pattern::One,
        }),
        _ => Workload::File { size: Bytes(1 + rng.below(400_000)) },
    };
    (TransportSpec::Reliable(Box::new(config(rng))), workload)
}

/// Of those with a number some are all-reduces, whose connections wait for each other.
fn connections(one: FlowSizes) -> Workload {
    let number = one.count.filter(|count| count % 3 == 0).unwrap_or(0);
    if number == 0 {
        return Workload::FlowSizes(one);
    }
    let algorithm = match number % 2 {
        0 => AllReduceAlgorithm::Ring,
        _ => AllReduceAlgorithm::Tree,
    };
    let ranks = 2 + (number / 6) as u32 % 4;
    let spec = AllReduce { ranks, hosts: 6, order: RankOrder::Random, algorithm };
    let sizes = SizeDistribution::new(&[(10, 0.3), (20_000, 1.0)]).expect("a distribution");
    let pattern = Pattern::AllReduce(spec);
    Workload::FlowSizes(FlowSizes { sizes: Arc::new(sizes), pattern, ..one })
}

fn sizes(rng: &mut Rng) -> SizeDistribution {
    let small = rng.below(2_000);
    let points = [(small, 0.3), (small + 1 + rng.below(9_000), 0.8), (60_000, 1.0)];
    SizeDistribution::new(&points).expect("a distribution")
}

fn on_off(rng: &mut Rng, rate: Option<Rate>) -> Workload {
    Workload::OnOff(OnOff {
        on: Duration::from_micros(1_000 + rng.below(3_000_000)),
        off: Duration::from_micros(rng.below(3_000_000)),
        spread: [PeriodSpread::Fixed, PeriodSpread::Exponential][rng.below(2) as usize],
        rate,
        size: Bytes(1 + rng.below(1_400)),
    })
}

fn config(rng: &mut Rng) -> Config {
    let stack = STACKS[rng.below(STACKS.len() as u64) as usize];
    let magnitude = rng.below(24);
    let likely = |rng: &mut Rng| rng.below(4) > 0;
    Config {
        stack: stack.parse().unwrap(),
        mss: 200 + rng.below(1_260) as u32,
        initial_window: 1 + rng.below(20) as u32,
        recv_buffer: Bytes(3_000 + rng.below(1 << magnitude)),
        sack: likely(rng),
        timestamps: likely(rng),
        ecn: [None, Some(true), Some(false)][rng.below(3) as usize],
        limited_transmit: likely(rng),
        delayed_ack: [
            None,
            Some(DelayedAck::Off),
            Some(DelayedAck::Rfc1122),
            Some(DelayedAck::Linux),
        ][rng.below(4) as usize],
        // However bad the link, no sender gives up.
        max_retransmits: 1_000,
        max_rto: secs(8),
        ..Config::default()
    }
}
