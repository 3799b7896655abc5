use weir_units::stream;

use super::*;
use crate::LinkConfig;
use crate::disciplines::QueueConfig;
use crate::link::Link;
use crate::link::probe::{Probe, at_us, drain_until, link};
use crate::parcel::Ecn;

const MS: Duration = Duration::from_millis(1);

/// 120 Mbit/s: 1500 bytes take 0.1 ms. COBALT does nothing.
fn fast(isolation: Isolation, hosts: &[(u32, u32)]) -> Link<Probe> {
    let hosts = hosts.iter().map(|(from, to)| Hosts { from: *from, to: *to }).collect();
    let never = Duration::from_secs(1_000);
    let queue = QueueConfig::Cake(CakeConfig {
        limit: Limit::Infinite,
        isolation,
        target: never,
        interval: never,
        shapes: false,
        hosts,
    });
    link(&LinkConfig { queue, ..LinkConfig::new(Rate::from_mbit(120), Duration::ZERO) })
}

/// What part of a second's bytes each of the backlogged flows gets, after a tenth of it.
fn parts(isolation: Isolation, hosts: &[(u32, u32)]) -> Vec<f64> {
    let mut link = fast(isolation, hosts);
    for id in 0..10_000 {
        for flow in 0..hosts.len() as u32 {
            link.offer(Instant::ZERO, Probe { flow, ..Probe::data(id, 1_500) });
        }
    }
    drain_until(&mut link, at_us(100_000));
    let mut sent = vec![0.0; hosts.len()];
    for (_, parcel) in drain_until(&mut link, at_us(1_000_000)) {
        sent[parcel.flow as usize] += 1.0 / 9_000.0;
    }
    sent
}

fn assert_parts(isolation: Isolation, hosts: &[(u32, u32)], expected: &[f64]) {
    let parts = parts(isolation, hosts);
    assert_eq!(parts.len(), expected.len());
    for (part, expected) in parts.iter().zip(expected) {
        // Packets are whole, and turns rounded at random.
        assert!((part / expected - 1.0).abs() < 0.03, "{isolation:?}: {parts:?}");
    }
}

/// Host 1 sends four flows and host 2 one, all to host 9; `tc-cake(8)`.
#[test]
fn sending_hosts_share_equally_whatever_their_flows() {
    let hosts = [(1, 9), (1, 9), (1, 9), (1, 9), (2, 9)];
    let per_host = [0.125, 0.125, 0.125, 0.125, 0.5];
    assert_parts(Isolation::Flows, &hosts, &[0.2; 5]);
    assert_parts(Isolation::DualSrcHost, &hosts, &per_host);
    assert_parts(Isolation::DualDstHost, &hosts, &[0.2; 5]);
    // The receiver is busier, with five flows: it decides for all alike.
    assert_parts(Isolation::TripleIsolate, &hosts, &[0.2; 5]);
    let away: Vec<(u32, u32)> =
        hosts.iter().enumerate().map(|(n, (from, _))| (*from, 100 + n as u32)).collect();
    assert_parts(Isolation::TripleIsolate, &away, &per_host);
    let back: Vec<(u32, u32)> = away.iter().map(|(from, to)| (*to, *from)).collect();
    assert_parts(Isolation::TripleIsolate, &back, &per_host);
    assert_parts(Isolation::DualDstHost, &back, &per_host);
    assert_parts(Isolation::DualSrcHost, &back, &[0.2; 5]);
}

/// With queues for hosts flows of one host share a queue, in the order of their arrival.
#[test]
fn queues_may_be_those_of_hosts() {
    let hosts = [(1, 8), (1, 9), (2, 9)];
    assert_parts(Isolation::SrcHost, &hosts, &[0.25, 0.25, 0.5]);
    assert_parts(Isolation::DstHost, &hosts, &[0.5, 0.25, 0.25]);
    assert_parts(Isolation::Hosts, &hosts, &[1.0 / 3.0; 3]);
    assert_parts(Isolation::FlowBlind, &hosts, &[1.0 / 3.0; 3]);
}

/// Acknowledgements travel from the receiver: then that is the source.
#[test]
fn hosts_change_sides_on_the_way_back() {
    let hosts: Arc<[Hosts]> = [Hosts { from: 1, to: 2 }].into();
    let key = |probe: &Probe| Isolation::TripleIsolate.key(probe, &hosts, 7);
    let data = Probe { flow: 0, ..Probe::data(0, 1_500) };
    let (there, back) = (key(&data), key(&Probe { is_forward: false, ..data.clone() }));
    let reversed: Arc<[Hosts]> = [Hosts { from: 2, to: 1 }].into();
    let swapped = Isolation::TripleIsolate.key(&data, &reversed, 7);
    assert_eq!((back.source, back.destination), (swapped.source, swapped.destination));
    assert_ne!(there.source, back.source);
    assert_ne!(there.flow, back.flow);
    let unknown = |flow| key(&Probe { flow, ..data.clone() });
    assert_ne!(unknown(5).source, unknown(6).source, "hosts of their own");
    assert_eq!(unknown(5).source, unknown(5).source);
}

/// "Piece of CAKE", §III-A: sets of eight make collisions unlikely where a plain hash has many.
#[test]
fn flows_hardly_ever_meet() {
    let config = CakeConfig { limit: Limit::Infinite, ..CakeConfig::usual() };
    let (mut met, mut plain, mut flows) = (0, 0, 0);
    for seed in 0..20 {
        let rng = stream(seed, "cake");
        let mut cake = Cake::new(config.clone(), None, Bytes::ZERO, Bytes(1_500), rng);
        let mut direct = vec![0; PLACES];
        for flow in 0..400 {
            let parcel = Probe { flow, ..Probe::data(0, 100) };
            let key = cake.config.isolation.key(&parcel, &cake.config.hosts, cake.salt);
            direct[(key.flow % PLACES as u64) as usize] += 1;
            cake.enqueue(Instant::ZERO, parcel, Backlog::default(), &mut Vec::new());
        }
        met += cake.flows.iter().map(|flow| flow.waiting.len().saturating_sub(1)).sum::<usize>();
        plain += direct.iter().map(|flows: &usize| flows.saturating_sub(1)).sum::<usize>();
        flows += 400;
    }
    // 400 flows over 1024 places: 400 - 1024 (1 - exp(-400/1024)) = 69 meet by a plain hash.
    assert!((60 * 20..78 * 20).contains(&plain), "{plain} of {flows}");
    // A set of eight has 3.1 on average; Poisson's mean beyond eight is 0.0068, in 128 sets 0.9.
    assert!(met < 20 * 2, "{met} of {flows}");
}

#[test]
fn a_sparse_flow_goes_before_bulk_ones() {
    let mut link = fast(Isolation::TripleIsolate, &[]);
    for id in 0..2_000 {
        link.offer(Instant::ZERO, Probe { flow: 1, ..Probe::data(id, 1_500) });
    }
    let mut waits = Vec::new();
    for turn in 1..100 {
        let now = at_us(turn * 1_730);
        for (_, parcel) in drain_until(&mut link, now) {
            waits.extend((parcel.flow == 2).then_some(parcel.waited));
        }
        link.offer(now, Probe { flow: 2, ..Probe::data(turn, 200) });
    }
    assert!(waits.len() > 90);
    assert!(waits.iter().all(|wait| *wait <= MS.mul_ratio(1, 10)), "{waits:?}");
}

#[test]
fn an_overflow_drops_the_head_of_the_longest_queue() {
    let queue =
        QueueConfig::Cake(CakeConfig { limit: Limit::Bytes(Bytes(15_000)), ..CakeConfig::usual() });
    let mut link =
        link(&LinkConfig { queue, ..LinkConfig::new(Rate::from_mbit(12), Duration::ZERO) });
    link.log_drops(100);
    for id in 0..8 {
        link.offer(Instant::ZERO, Probe { flow: 1, ..Probe::data(id, 1_500) });
    }
    for id in 8..12 {
        link.offer(Instant::ZERO, Probe { flow: 2, ..Probe::data(id, 1_500) });
    }
    assert!(link.drain_drops().all(|drop| drop.flow == 1));
    assert_eq!(link.stats(Instant::ZERO).dropped_queue.packets, 2);
    let left: Vec<u64> = drain_until(&mut link, Instant::MAX).iter().map(|d| d.1.id).collect();
    assert!(!left.contains(&1) && !left.contains(&2) && left.len() == 10, "{left:?}");
}

/// `cake_dequeue`: a parcel leaves, and only then does `time_next_packet` move on by what it takes. A
/// pause earns nothing: `cake_enqueue` moves it to the present.
#[test]
fn its_own_shaper_lets_a_parcel_go_before_its_time_and_the_next_one_after() {
    let queue = QueueConfig::Cake(CakeConfig { shapes: true, ..CakeConfig::usual() });
    let config = LinkConfig { queue, ..LinkConfig::new(Rate::from_mbit(12), MS * 20) };
    let mut link = link(&config);
    (0..3).for_each(|id| link.offer(Instant::ZERO, Probe::data(id, 1_500)));
    assert_eq!(link.backlog(at_us(500)).packets, 2, "the first one has left");
    (3..5).for_each(|id| link.offer(at_us(10_200), Probe::data(id, 1_500)));
    let out: Vec<_> = drain_until(&mut link, Instant::MAX)
        .into_iter()
        .map(|(time, parcel)| (time.as_micros() - 20_000, parcel.waited.as_micros()))
        .collect();
    assert_eq!(out, [(0, 0), (1_000, 1_000), (2_000, 2_000), (10_200, 0), (11_200, 1_000)]);
    assert_eq!(link.stats(at_us(12_200)).busy, MS * 5);
}

/// At 1 Mbit/s a full packet takes 12 ms: a target of 5 ms would never be met.
#[test]
fn targets_suit_slow_links() {
    let config = CakeConfig::usual();
    let (law, quantum) = config.at(Some(Rate::from_mbit(1)), Bytes(1_500));
    assert_eq!((law.target, law.interval), (MS * 18, MS * 113));
    assert_eq!(quantum, MIN_QUANTUM);
    let (law, quantum) = config.at(Some(Rate::from_mbit(20)), Bytes(1_500));
    assert_eq!((law.target, law.interval, quantum), (MS * 5, MS * 100, Bytes(610)));
    let (law, quantum) = config.at(None, Bytes(1_500));
    assert_eq!((law.target, law.mtu_time, quantum), (MS * 5, Duration::ZERO, MAX_QUANTUM));
}

/// A flow that is marked keeps all its parcels; a queue's last one is never dropped.
#[test]
fn capable_flows_are_marked() {
    let queue = QueueConfig::Cake(CakeConfig::usual());
    let config = LinkConfig { queue, ..LinkConfig::new(Rate::from_mbit(12), Duration::ZERO) };
    let mut link = link(&config);
    for id in 0..400 {
        let ecn = if id % 2 == 0 { Ecn::Ect0 } else { Ecn::NotEct };
        let flow = (id % 2) as u32;
        link.offer(Instant::ZERO, Probe { flow, ecn, ..Probe::data(id, 1_500) });
    }
    let out = drain_until(&mut link, Instant::MAX);
    let stats = link.stats(at_us(1_000_000));
    let marked = out.iter().filter(|(_, parcel)| parcel.ecn == Ecn::Ce).count() as u64;
    assert_eq!((stats.marked, stats.dropped_queue.packets), (marked, 0));
    assert!(marked > 2 && stats.dropped_aqm.packets > 2, "{stats:?}");
    assert_eq!(out.iter().filter(|(_, parcel)| parcel.flow == 0).count(), 200);
}
