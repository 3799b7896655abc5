//! Networks of any shape under any load: nothing is lost without a cause, nothing comes twice, and the
//! same seed gives the same run.

use proptest::prelude::*;
use weir_units::Ratio;

use super::*;
use crate::{Access, Arp, InterfaceQueueConfig, MacConfig, PacketClass};

#[derive(Clone, Debug)]
struct Case {
    seed: u64,
    config: RadioConfig,
    /// Distances between neighbours, in metres.
    gaps: Vec<i64>,
    /// Millisecond, source, destination, length.
    offers: Vec<(u64, u16, u16, u64)>,
    /// Millisecond, node, metres to the north.
    moves: Vec<(u64, u16, i64)>,
}

fn cases() -> impl Strategy<Value = Case> {
    let access = prop_oneof![Just(Access::Ns2), Just(Access::Ns2Unfrozen), Just(Access::Standard)];
    let arp = prop_oneof![Just(Arp::Known), Just(Arp::Asked)];
    let config = (access, arp, 0..30u32, 0..10u32, 1..20usize, prop_oneof![Just(0u64), Just(500)]);
    let config = config.prop_map(|(access, arp, error, loss, packets, threshold)| RadioConfig {
        mac: MacConfig { access, rts_threshold: Bytes(threshold), ..MacConfig::default() },
        queue: InterfaceQueueConfig { packets, ..InterfaceQueueConfig::default() },
        arp,
        frame_error: Ratio::from_percent(error),
        packet_loss: Ratio::from_percent(loss),
        ..RadioConfig::default()
    });
    (any::<u64>(), config, prop::collection::vec(50..300i64, 1..9)).prop_flat_map(
        |(seed, config, gaps)| {
            let nodes = 0..=gaps.len() as u16;
            let offer = (0..300u64, nodes.clone(), nodes.clone(), 40..1_500u64);
            let offers = prop::collection::vec(offer, 1..200);
            let moves = prop::collection::vec((0..300u64, nodes, 0..400i64), 0..6);
            (offers, moves).prop_map(move |(mut offers, mut moves)| {
                offers.sort_unstable();
                moves.sort_unstable();
                Case { seed, config, gaps: gaps.clone(), offers, moves }
            })
        },
    )
}

/// Every event with its time.
fn play(case: &Case) -> (TestRadio, Vec<(Instant, RadioEvent<Probe>)>) {
    let places = case.gaps.iter().scan(0, |at, gap| {
        *at += gap;
        Some(*at)
    });
    let metres: Vec<_> = std::iter::once(0).chain(places).collect();
    let mut radio = line(&case.config, &metres, case.seed);
    let mut trace = Vec::new();
    let mut moves = case.moves.iter().peekable();
    for (id, (millis, from, to, len)) in case.offers.iter().enumerate() {
        let now = Instant::ZERO + Duration::from_millis(*millis);
        while let Some((_, node, north)) = moves.next_if(|(at, ..)| at <= millis) {
            let x_mm = metres[usize::from(*node)] * 1_000;
            radio.set_position(now, NodeId(*node), Position { x_mm, y_mm: north * 1_000 });
        }
        run_until(&mut radio, now, |_, time, event| trace.push((time, event)));
        radio.offer(now, NodeId(*from), NodeId(*to), Probe::data(id as u64, *len));
        check_balance(&mut radio, now, id as u64 + 1, &mut trace);
    }
    run_until(&mut radio, secs(30), |_, time, event| trace.push((time, event)));
    (radio, trace)
}

fn check_balance(
    radio: &mut TestRadio,
    now: Instant,
    offered: u64,
    trace: &mut Vec<(Instant, RadioEvent<Probe>)>,
) {
    while let Some(event) = radio.poll(now) {
        trace.push((radio.time(), event));
    }
    let came_out = trace.len() as u64;
    assert_eq!(offered + radio.total(now).copies, came_out + radio.waiting());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_parcel_is_accounted_for(case in cases()) {
        let (radio, trace) = play(&case);
        let total = radio.total(secs(30));
        prop_assert_eq!(radio.next_time(), None, "everything has settled");
        // ARP may hold a datagram for ever.
        let offered = case.offers.len() as u64;
        prop_assert_eq!(offered + total.copies, trace.len() as u64 + radio.waiting());
        let mut delivered = vec![0u64; case.offers.len()];
        let mut dropped = 0;
        for (_, event) in &trace {
            match event {
                RadioEvent::Delivered { parcel, node, .. } => {
                    delivered[parcel.id as usize] += 1;
                    prop_assert_eq!(node.0, case.offers[parcel.id as usize].2);
                }
                RadioEvent::Dropped { .. } => dropped += 1,
                other => panic!("{other:?}"),
            }
        }
        let by_cause = DropReason::ALL.map(|reason| total.dropped(PacketClass::Parcel, reason));
        prop_assert_eq!(by_cause.iter().sum::<u64>(), dropped);
        prop_assert!(delivered.iter().all(|count| *count <= 1), "static routes send no copy twice");
    }

    #[test]
    fn the_same_seed_gives_the_same_run(case in cases()) {
        let ((first, trace), (second, again)) = (play(&case), play(&case));
        prop_assert_eq!(trace, again);
        prop_assert_eq!(first.total(secs(30)), second.total(secs(30)));
    }

    /// A world that knows of nothing else to come may poll ahead.
    #[test]
    fn polling_ahead_changes_nothing(case in cases()) {
        let case = Case { moves: Vec::new(), offers: case.offers[..1].repeat(20), ..case };
        let (_, trace) = play(&case);
        let metres: Vec<_> = std::iter::once(0).chain(case.gaps.iter().scan(0, |at, gap| {
            *at += gap;
            Some(*at)
        })).collect();
        let mut radio = line(&case.config, &metres, case.seed);
        let now = Instant::ZERO + Duration::from_millis(case.offers[0].0);
        for (id, (_, from, to, len)) in case.offers.iter().enumerate() {
            radio.offer(now, NodeId(*from), NodeId(*to), Probe::data(id as u64, *len));
        }
        let mut ahead = Vec::new();
        while let Some(event) = radio.poll(secs(30)) {
            ahead.push((radio.time(), event));
        }
        prop_assert_eq!(trace, ahead);
    }
}
