//! Feedback inside of real datagrams: agents reach it, and nothing else.

use proptest::prelude::*;
use weir_net::FeedbackConfig;
use weir_net::feedback::DraiConfig;
use weir_transport::wire::{self, Ports};
use weir_transport::{Flags, Options, Segment, SeqNum};
use weir_units::feedback::{Drai, Xcp};
use weir_units::{Duration, Rate};

use super::*;

const PORTS: Ports = Ports { source: 40_000, destination: 9_000 };
const FRESH: Feedback = Feedback::Drai(Drai { level: 5, hops: 0 });

/// A link of 8 Mbit/s with an agent, and the same without.
fn link(feedback: Option<FeedbackConfig>) -> LinkConfig {
    let service = weir_net::Service::Rate(Rate::from_bits_per_sec(8_000_000).into());
    LinkConfig { service, feedback, ..LinkConfig::default() }
}

fn drai() -> Option<FeedbackConfig> {
    Some(FeedbackConfig::Drai(DraiConfig::default()))
}

/// A data segment that carries this past routers.
fn segment(feedback: Option<Feedback>, payload: &[u8]) -> Vec<u8> {
    let options = Options { feedback, ..Options::default() };
    let payload_len = payload.len() as u32;
    let flags = Flags::ACK;
    let segment = Segment { seq: SeqNum(7), flags, payload_len, options, ..Segment::default() };
    let mut bytes = Vec::new();
    wire::emit(&segment, PORTS, payload, &mut bytes);
    bytes
}

fn path(config: LinkConfig) -> Path {
    let route = Route { up: vec![0], down: vec![] };
    Path::new(&[hosted("up", config)], vec![route], MEMORY, 1).unwrap()
}

/// What comes out of `path` for each of these, one per millisecond.
fn carry(path: &mut Path, datagrams: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut now = Instant::ZERO;
    for bytes in datagrams {
        now += Duration::from_millis(1);
        path.offer(now, header(Direction::Forward, bytes.len()), bytes).unwrap();
    }
    let end = now + Duration::from_secs(60);
    std::iter::from_fn(|| path.poll(end)).map(|arrival| arrival.packet.bytes().to_vec()).collect()
}

fn feedback_in(bytes: &[u8]) -> Option<Feedback> {
    wire::parse(bytes).expect("an undamaged segment").segment.options.feedback
}

#[test]
fn an_agent_has_its_say_in_the_bytes_and_the_checksum_follows() {
    // With headers a little over a kilobyte per millisecond: less than 5 % of the link is left, on average
    // over 200 ms, after three times that.
    let datagrams: Vec<_> = (0..1_000).map(|_| segment(Some(FRESH), &[1; 950])).collect();
    let mut path = path(link(drai()));
    let out = carry(&mut path, &datagrams);
    let levels: Vec<u8> = out
        .iter()
        .map(|bytes| match feedback_in(bytes) {
            Some(Feedback::Drai(Drai { level, hops: 1 })) => level,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!((levels.len(), levels[0]), (1_000, 5));
    assert!(levels.is_sorted_by(|a, b| a >= b) && levels[999] == 1, "{levels:?}");
    assert_eq!(
        path.feedback(Instant::MAX, Direction::Forward),
        RouterFeedback { stamped: 1_000, lowest_index: Some(1) }
    );
    assert_eq!(path.feedback(Instant::MAX, Direction::Reverse), RouterFeedback::default());
}

#[test]
fn a_link_without_an_agent_or_of_another_kind_says_nothing() {
    let xcp = Feedback::Xcp(Xcp { rtt_micros: 1, spacing_nanos: 2, delta: 3 });
    for (feedback, carried) in [(None, Some(FRESH)), (drai(), Some(xcp)), (drai(), None)] {
        let mut path = path(link(feedback));
        let datagram = segment(carried, b"payload");
        assert_eq!(carry(&mut path, std::slice::from_ref(&datagram)), [datagram]);
        assert_eq!(path.feedback(Instant::MAX, Direction::Forward), RouterFeedback::default());
    }
}

#[test]
fn a_packet_collects_the_word_of_every_link() {
    let links = ["first", "second"].map(|name| hosted(name, link(drai())));
    let route = Route { up: vec![0, 1], down: vec![] };
    let mut path = Path::new(&links, vec![route], MEMORY, 1).unwrap();
    let [out] = &carry(&mut path, &[segment(Some(FRESH), &[])])[..] else { panic!("one") };
    assert_eq!(feedback_in(out), Some(Feedback::Drai(Drai { level: 5, hops: 2 })));
    assert_eq!(path.feedback(Instant::MAX, Direction::Forward).stamped, 2);
}

/// A datagram of whatever it may be: noise, noise of a known form, a segment with anything changed.
fn datagram() -> impl Strategy<Value = Vec<u8>> {
    let noise = prop::collection::vec(any::<u8>(), 0..200);
    let payload = prop::collection::vec(any::<u8>(), 0..60);
    let carried = prop::option::of(
        (1..=15u8, any::<u8>()).prop_map(|(level, hops)| Feedback::Drai(Drai { level, hops })),
    );
    let ours = (carried, payload).prop_map(|(feedback, payload)| segment(feedback, &payload));
    let edits = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3);
    let broken = (ours.clone(), edits).prop_map(|(mut bytes, edits)| {
        for (at, value) in edits {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        bytes
    });
    prop_oneof![noise, ours, broken]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn nothing_but_the_feedback_of_a_segment_ever_changes(
        datagrams in prop::collection::vec(datagram(), 1..30),
    ) {
        let mut path = path(link(drai()));
        let out = carry(&mut path, &datagrams);
        prop_assert_eq!(out.len(), datagrams.len());
        let mut stamped = 0;
        for (before, after) in datagrams.iter().zip(&out) {
            let mut expected = before.clone();
            if let Ok(parsed) = wire::parse(before) && let Some(was) = parsed.segment.options.feedback {
                stamped += 1;
                let now = wire::parse(after).unwrap().segment.options.feedback.unwrap();
                let (Feedback::Drai(was), Feedback::Drai(now)) = (was, now) else { unreachable!() };
                prop_assert!(now.level <= was.level && now.hops == was.hops.saturating_add(1));
                wire::stamp(&mut expected, |feedback| *feedback = Feedback::Drai(now));
            }
            prop_assert_eq!(after, &expected);
        }
        prop_assert_eq!(path.feedback(Instant::MAX, Direction::Forward).stamped, stamped);
    }

    #[test]
    fn a_damaged_segment_stays_damaged(payload in prop::collection::vec(any::<u8>(), 0..60), seed: u64) {
        let mut config = link(drai());
        config.impairments.corrupt = weir_units::Ratio::ONE;
        let route = Route { up: vec![0], down: vec![] };
        let mut path = Path::new(&[hosted("up", config)], vec![route], MEMORY, seed).unwrap();
        let out = carry(&mut path, &[segment(Some(FRESH), &payload)]);
        prop_assert!(wire::parse(&out[0]).is_err());
    }
}
