//! What comes out of a path is what the simulator's links give for the same seed and arrivals, however
//! late and however often the path is asked.

use proptest::prelude::*;
use weir_net::{Ecn, Impairments, Jitter, Limit, Order, Reorder, Service, Spread};
use weir_units::{Duration, Rate, Ratio};

use super::*;

mod feedback;

const MEMORY: Bytes = Bytes(1 << 24);

/// A packet going in or coming out: when, which way, which bytes.
type Event = (Instant, Direction, Vec<u8>);

fn header(direction: Direction, len: usize) -> Header {
    let len = Bytes(len as u64 + 28);
    Header { flow: 0, route: 0, direction, carries_data: true, ecn: Ecn::NotEct, len }
}

fn hosted(name: &str, config: LinkConfig) -> HostedLink {
    HostedLink { name: name.to_owned(), config }
}

fn at_us(micros: u64) -> Instant {
    Instant::from_nanos(micros * 1_000)
}

/// Drives one link as the simulator does: at the times it asks for, and when something goes in.
fn simulate(link: &HostedLink, seed: u64, arrivals: &[Event]) -> Vec<Event> {
    let mut link = Hosted::new(link, seed).unwrap().link;
    let memory = MemoryLimit::new(MEMORY);
    let mut out = Vec::new();
    let mut drain = |link: &mut Link<Packet>, until: Instant| {
        while let Some(time) = link.next_time().filter(|time| *time <= until) {
            while let Some(delivery) = link.poll(time) {
                let packet = delivery.parcel;
                out.push((time, packet.header().direction, packet.bytes().to_vec()));
            }
        }
    };
    for (at, direction, bytes) in arrivals {
        drain(&mut link, *at);
        link.offer(*at, Packet::new(header(*direction, bytes.len()), bytes, 0, &memory).unwrap());
    }
    drain(&mut link, Instant::MAX);
    link.check().unwrap();
    out
}

/// Drives a path as a real-time host does: it looks when it likes, mostly late.
fn host(path: &mut Path, arrivals: &[Event], looks: &[u64]) -> Vec<Event> {
    let mut out = Vec::new();
    let mut take = |path: &mut Path, now: Instant| {
        while let Some(Arrival { due, packet }) = path.poll(now) {
            assert!(due <= now);
            out.push((due, packet.header().direction, packet.bytes().to_vec()));
        }
    };
    let mut looks = looks.iter().cycle();
    for (at, direction, bytes) in arrivals {
        if looks.next().is_some_and(|look| look % 3 == 0) {
            take(path, *at);
        }
        path.offer(*at, header(*direction, bytes.len()), bytes).unwrap();
    }
    let mut now = arrivals.last().map_or(Instant::ZERO, |event| event.0);
    while let Some(next) = path.next_time() {
        now = next.max(now) + Duration::from_micros(*looks.next().unwrap_or(&0));
        take(path, now);
    }
    out
}

/// Packets both ways at rising times, each with its number in its first bytes.
fn arrivals() -> impl Strategy<Value = Vec<Event>> {
    let packet = (0..2_000_000u64, any::<bool>(), 8..1_400usize);
    prop::collection::vec(packet, 1..120).prop_map(|packets| {
        let mut at = Instant::ZERO;
        let numbered = packets.into_iter().enumerate();
        let events = numbered.map(|(number, (gap, up, len))| {
            at += Duration::from_nanos(gap);
            let mut bytes = vec![0; len];
            bytes[..8].copy_from_slice(&(number as u64).to_le_bytes());
            (at, if up { Direction::Forward } else { Direction::Reverse }, bytes)
        });
        events.collect()
    })
}

fn impairments() -> impl Strategy<Value = Impairments> {
    let percent = || (0u32..40).prop_map(Ratio::from_percent);
    let wire = (0u64..3, 0u64..5_000, any::<bool>());
    (percent(), percent(), percent(), wire).prop_map(
        |(loss, duplicate, held, (kind, size, free))| {
            let size = Duration::from_micros(size + 1);
            let order = if free { Order::Free } else { Order::Kept };
            Impairments {
                loss,
                duplicate,
                reorder: (kind == 1).then_some(Reorder { probability: held, extra_delay: size }),
                jitter: (kind == 2).then_some(Jitter { spread: Spread::Uniform(size), order }),
                ..Impairments::default()
            }
        },
    )
}

fn config() -> impl Strategy<Value = LinkConfig> {
    let service = prop_oneof![
        Just(Service::Infinite),
        (1u64..50).prop_map(|mbit| Service::Rate(Rate::from_mbit(mbit).into())),
        (0u64..900, 0u64..900).prop_map(|(forward, reverse)| Service::PerPacket {
            forward: Duration::from_micros(forward),
            reverse: Duration::from_micros(reverse),
        }),
    ];
    (service, 0u64..30_000, 1u64..20, impairments()).prop_map(
        |(service, delay, packets, impairments)| {
            let delay = Duration::from_micros(delay).into();
            let config = LinkConfig { service, delay, impairments, ..LinkConfig::default() };
            config.with_limit(Limit::Packets(packets))
        },
    )
}

proptest! {
    #[test]
    fn one_link_gives_what_the_simulator_gives(
        config in config(),
        arrivals in arrivals(),
        looks in prop::collection::vec(0u64..5_000, 1..50),
        seed in 0u64..1_000,
    ) {
        let link = hosted("relay", config);
        let route = Route { up: vec![0], down: vec![0] };
        let mut path = Path::new(std::slice::from_ref(&link), vec![route], MEMORY, seed).unwrap();
        let out = host(&mut path, &arrivals, &looks);
        prop_assert_eq!(&out, &simulate(&link, seed, &arrivals));
        prop_assert!(path.is_empty());
        let stats = path.stats(Instant::MAX, 0);
        let dropped = [Direction::Forward, Direction::Reverse].map(|direction| path.drops(Instant::MAX, direction));
        let total = |count: fn(&Drops) -> u64| dropped.iter().map(count).sum::<u64>();
        prop_assert_eq!(total(|d| d.loss), stats.dropped_loss.packets);
        prop_assert_eq!(total(|d| d.queue), stats.dropped_queue.packets);
        let taken = arrivals.len() as u64 + stats.duplicated.packets;
        prop_assert_eq!(taken, out.len() as u64 + stats.dropped().packets);
    }

    /// A way of its own in each direction, then a server that both share: the router of a laboratory.
    #[test]
    fn links_in_series_hand_over_at_the_exact_time(
        configs in [config(), config(), config()],
        arrivals in arrivals(),
        looks in prop::collection::vec(0u64..5_000, 1..50),
        seed in 0u64..1_000,
    ) {
        let names = ["to-relay", "to-relay-reverse", "relay"];
        let links: Vec<_> = names.iter().zip(configs).map(|(name, c)| hosted(name, c)).collect();
        let route = Route { up: vec![0, 2], down: vec![1, 2] };
        let mut path = Path::new(&links, vec![route], MEMORY, seed).unwrap();
        let out = host(&mut path, &arrivals, &looks);

        let of = |direction| arrivals.iter().filter(|event| event.1 == direction).cloned().collect::<Vec<_>>();
        let mut met = simulate(&links[0], seed, &of(Direction::Forward));
        met.extend(simulate(&links[1], seed, &of(Direction::Reverse)));
        met.sort_by_key(|event| event.0);
        // Of two packets at the same nanosecond either may be first at the shared server.
        let times: Vec<_> = met.iter().map(|event| (event.0, event.1)).collect();
        let ties = times.windows(2).any(|pair| pair[0].0 == pair[1].0 && pair[0].1 != pair[1].1);
        prop_assume!(!ties);
        prop_assert_eq!(out, simulate(&links[2], seed, &met));
    }
}

#[test]
fn damage_flips_one_bit_and_depends_on_the_packet_alone() {
    let impairments = Impairments { corrupt: Ratio::ONE, ..Impairments::default() };
    let link = hosted("relay", LinkConfig { impairments, ..LinkConfig::default() });
    let route = Route { up: vec![0], down: vec![] };
    let mut path = Path::new(&[link], vec![route], MEMORY, 1).unwrap();
    let mut broken = std::collections::BTreeSet::new();
    for number in 0..50 {
        path.offer(at_us(number), header(Direction::Forward, 100), &[0; 100]).unwrap();
        let arrival = path.poll(at_us(number)).unwrap();
        let set = |(at, byte): (usize, &u8)| (*byte != 0).then_some((at, *byte));
        let found: Vec<_> = arrival.packet.bytes().iter().enumerate().filter_map(set).collect();
        assert_eq!(found.len(), 1, "one byte differs");
        assert_eq!(found[0].1.count_ones(), 1, "by one bit");
        broken.insert(found[0]);
    }
    assert!(broken.len() > 40, "which bit it is differs from packet to packet");
    path.offer(at_us(60), header(Direction::Forward, 0), &[]).unwrap();
    assert!(path.poll(at_us(60)).unwrap().packet.bytes().is_empty(), "nothing to break");
}

#[test]
fn a_path_with_full_memory_refuses_packets_and_recovers() {
    let link = hosted(
        "relay",
        LinkConfig { delay: Duration::from_secs(1).into(), ..LinkConfig::default() },
    );
    let route = Route { up: vec![0], down: vec![0] };
    let mut path = Path::new(&[link], vec![route], Bytes(100_000), 1).unwrap();
    let taken = (0..200)
        .filter(|i| path.offer(at_us(*i), header(Direction::Forward, 1_000), &[7; 1_000]).is_ok());
    let taken = taken.count() as u64;
    assert!((50..100).contains(&taken), "{taken}");
    let mut out = 0;
    while path.poll(at_us(2_000_000)).is_some() {
        out += 1;
    }
    assert_eq!(out, taken);
    assert!(path.is_empty());
    assert!(path.offer(at_us(2_000_000), header(Direction::Reverse, 1_000), &[7; 1_000]).is_ok());
}

#[test]
fn a_route_without_links_is_no_way_at_all() {
    let mut path = Path::new(&[], vec![Route::default()], MEMORY, 1).unwrap();
    path.offer(at_us(5), header(Direction::Reverse, 3), b"abc").unwrap();
    assert_eq!(path.next_time(), Some(at_us(5)));
    let arrival = path.poll(at_us(9)).unwrap();
    assert_eq!((arrival.due, arrival.packet.bytes()), (at_us(5), &b"abc"[..]));
    assert_eq!(path.next_time(), None);
}
