use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn keeping() -> Reassembly {
    Reassembly::new(OutOfOrder::Keep)
}

fn sacked(reassembly: &mut Reassembly, max: usize) -> Vec<Range<u64>> {
    reassembly.sack_ranges(max).collect()
}

#[test]
fn in_order_data_is_delivered_as_it_comes() {
    let mut stream = keeping();
    let arrival = stream.insert(0, 1000);
    let all = Stored { offset: 0, skip: 0, len: 1000 };
    assert_eq!(arrival, Arrival { delivered: 1000, store: Some(all), ..Arrival::default() });
    assert_eq!(stream.rcv_nxt(), 1000);
    assert!(sacked(&mut stream, 4).is_empty());
}

#[test]
fn a_filled_hole_delivers_what_waited_behind_it() {
    let mut stream = keeping();
    let ahead = stream.insert(1000, 500);
    assert!(ahead.out_of_order && ahead.delivered == 0 && !ahead.fills_hole);
    assert_eq!((stream.has_hole(), stream.highest()), (true, 1500));
    let part = stream.insert(0, 400);
    assert!(part.fills_hole && part.delivered == 400, "a part of the hole counts: {part:?}");
    let rest = stream.insert(400, 600);
    assert!(rest.fills_hole && rest.delivered == 1100, "{rest:?}");
    assert_eq!((stream.has_hole(), stream.highest(), stream.rcv_nxt()), (false, 1500, 1500));
}

#[test]
fn overlapping_data_is_stored_from_where_it_is_new() {
    let mut stream = keeping();
    stream.insert(0, 1000);
    let tail = stream.insert(600, 1000);
    assert_eq!(tail.store, Some(Stored { offset: 1000, skip: 400, len: 600 }));
    assert_eq!((tail.delivered, tail.duplicate), (600, Some(600..1000)));
}

#[test]
fn without_reassembly_what_is_not_next_is_dropped() {
    let mut stream = Reassembly::new(OutOfOrder::Discard);
    let ahead = stream.insert(1000, 500);
    assert_eq!(ahead, Arrival { out_of_order: true, ..Arrival::default() });
    assert!(!stream.has_hole() && sacked(&mut stream, 4).is_empty());
    assert_eq!(stream.insert(0, 1000).delivered, 1000);
    assert_eq!(stream.insert(1000, 500).delivered, 500);
}

#[test]
fn ranges_that_did_not_fit_are_reported_next() {
    let mut stream = keeping().with_all_ranges();
    let all: Vec<_> = (1..=10).map(|n| n * 2_000..n * 2_000 + 500).collect();
    for range in &all {
        stream.insert(range.start, 500);
    }
    let mut reported = Vec::new();
    let mut reports = 0;
    while stream.has_unreported() {
        let blocks = sacked(&mut stream, 3);
        assert!(reports > 0 || blocks[0] == all[9], "the newest first: {blocks:?}");
        reported.extend(blocks);
        reports += 1;
    }
    assert_eq!(reports, 4);
    assert!(all.iter().all(|range| reported.contains(range)), "{reported:?}");
    stream.insert(20_500, 500);
    assert_eq!(sacked(&mut stream, 3)[0], 20_000..21_000);
    stream.insert(0, 2_000);
    assert!(!stream.has_unreported() && !keeping().has_unreported());
}

#[test]
fn the_newest_range_is_reported_first_then_those_before_it() {
    let mut stream = keeping();
    for offset in [10_000, 2_000, 6_000, 4_000, 8_000] {
        stream.insert(offset, 1000);
    }
    let newest_first = [8_000..9_000, 4_000..5_000, 6_000..7_000, 2_000..3_000];
    assert_eq!(sacked(&mut stream, 4), newest_first);
    assert_eq!(sacked(&mut stream, 3), newest_first[..3]);
    // Joins two ranges: reported as one, once.
    stream.insert(5_000, 1000);
    assert_eq!(sacked(&mut stream, 4), [4_000..7_000, 8_000..9_000, 2_000..3_000]);
    // What is acknowledged is no longer reported.
    stream.insert(0, 2_000);
    assert_eq!(sacked(&mut stream, 4), [4_000..7_000, 8_000..9_000]);
}

/// The cases of RFC 2883 §4.1 to §4.2.
#[test]
fn a_duplicate_is_reported_first_and_once() {
    let mut stream = keeping();
    stream.insert(0, 1000);
    stream.insert(2000, 1000);
    stream.insert(200, 100);
    assert_eq!(sacked(&mut stream, 3), [200..300, 2000..3000], "below the acknowledgement");
    assert_eq!(sacked(&mut stream, 3).first(), Some(&(2000..3000)), "only once");
    stream.insert(5000, 500);
    stream.insert(2100, 200);
    assert_eq!(
        sacked(&mut stream, 3),
        [2100..2300, 2000..3000, 5000..5500],
        "within a range, which comes second"
    );
    stream.insert(1800, 400);
    assert_eq!(sacked(&mut stream, 2), [2000..2200, 1800..3000], "the part that was there");
}

#[test]
fn ranges_are_bounded() {
    let mut stream = keeping();
    let isolated = (1..).map(|n| n * 10);
    for offset in isolated.clone().take(Reassembly::MAX_RANGES) {
        assert!(stream.insert(offset, 1).store.is_some());
    }
    let beyond = stream.insert(1_000_000, 1);
    assert!(beyond.out_of_order && beyond.store.is_none());
    assert_eq!(stream.insert(0, 10).delivered, 11, "in-order data is always taken");
    assert!(stream.insert(1_000_000, 1).store.is_some(), "the slot is free again");
}

/// Linux remembers four blocks. What fills the hole between two that it has forgotten is reported alone; between two
/// that it remembers, with both.
#[test]
fn what_was_forgotten_is_not_reported_again() {
    for (whole, alone) in [(false, 100..200), (true, 0..300)] {
        let mut stream = if whole { keeping().with_all_ranges() } else { keeping() };
        let at = |n: u64| 1_000 + n;
        for n in [0, 200, 400, 600, 800, 1_000] {
            stream.insert(at(n), 100);
            sacked(&mut stream, 3);
        }
        stream.insert(at(100), 100);
        let blocks = sacked(&mut stream, 3);
        assert_eq!(blocks[0], at(alone.start)..at(alone.end));
        assert_eq!(blocks[1..], [at(1_000)..at(1_100), at(800)..at(900)]);
        stream.insert(at(900), 100);
        assert_eq!(sacked(&mut stream, 3)[0], at(800)..at(1_100));
    }
}

/// A FIN behind a hole is a byte of its block, and of none once all before it is there.
#[test]
fn a_fin_ahead_is_reported() {
    let mut stream = keeping();
    stream.insert(0, 100);
    stream.note_fin_ahead(300);
    assert_eq!(sacked(&mut stream, 3)[0], 300..301);
    stream.insert(200, 100);
    assert_eq!(sacked(&mut stream, 3)[0], 200..301);
    stream.insert(100, 100);
    assert_eq!(stream.rcv_nxt(), 300);
    assert!(!stream.has_reports());
    stream.note_fin_ahead(400);
    stream.insert(300, 100);
    assert!(!stream.has_reports());
}

proptest! {
    /// Against the plain set of bytes that arrived.
    #[test]
    fn accounts_for_every_byte(
        segments in prop::collection::vec((0..150u64, 0..20u32), 1..80),
        policy in prop_oneof![Just(OutOfOrder::Keep), Just(OutOfOrder::Discard)],
    ) {
        let mut stream = Reassembly::new(policy);
        let mut held = BTreeSet::new();
        let (mut delivered, mut next) = (0, 0);
        for (offset, len) in segments {
            let arrived: Vec<u64> = (offset..offset + u64::from(len)).collect();
            let new: Vec<u64> = arrived.iter().copied().filter(|at| !held.contains(at)).collect();
            let out_of_order = !arrived.is_empty() && offset > next;
            let refused = out_of_order && policy == OutOfOrder::Discard;
            let filling = !new.is_empty() && offset <= next && stream.has_hole();
            let arrival = stream.insert(offset, len);
            prop_assert_eq!(arrival.out_of_order, out_of_order);
            prop_assert_eq!(arrival.fills_hole, filling);

            let first_known = arrived.iter().copied().find(|at| held.contains(at));
            prop_assert_eq!(arrival.duplicate.clone().map(|d| d.start), first_known);
            if let Some(duplicate) = arrival.duplicate {
                prop_assert!(!duplicate.is_empty());
                prop_assert!(duplicate.clone().all(|at| held.contains(&at)));
                prop_assert!(duplicate.end == offset + u64::from(len) || !held.contains(&duplicate.end)
                    || duplicate.end == next);
            }
            let expected = if refused { None } else { new.first().zip(new.last()) };
            prop_assert_eq!(
                arrival.store,
                expected.map(|(first, last)| Stored {
                    offset: *first,
                    skip: (first - offset) as u32,
                    len: (last + 1 - first) as u32,
                })
            );
            if !refused {
                held.extend(arrived);
            }
            next = (0..).find(|at| !held.contains(at)).expect("some byte is missing");
            delivered += arrival.delivered;
            prop_assert_eq!(stream.rcv_nxt(), next);
            prop_assert_eq!(delivered, next);
            let highest = held.last().map_or(0, |last| last + 1);
            prop_assert_eq!(stream.highest(), highest);
            prop_assert_eq!(stream.has_hole(), highest > next);
        }
    }

    /// Blocks cover what is held, and repeat and touch nothing; the first holds the newest arrival (RFC 2018 §4). With
    /// all ranges they border on missing bytes.
    #[test]
    fn sack_blocks_are_what_is_held_without_repetition(
        segments in prop::collection::vec((1..150u64, 1..8u32), 1..60),
        max in 1..=4usize,
        whole in any::<bool>(),
    ) {
        let mut stream = if whole { keeping().with_all_ranges() } else { keeping() };
        let mut held = BTreeSet::new();
        for (offset, len) in segments {
            let arrival = stream.insert(offset, len);
            held.extend(offset..offset + u64::from(len));
            let blocks = sacked(&mut stream, max);
            prop_assert!(blocks.len() <= max);
            let ranges = &blocks[usize::from(arrival.duplicate.is_some())..];
            if let Some(newest) = ranges.first() {
                prop_assert!(newest.contains(&offset));
            }
            for range in ranges {
                prop_assert!(range.clone().all(|at| held.contains(&at)));
                prop_assert!(!whole || !held.contains(&range.end) && !held.contains(&(range.start - 1)));
                prop_assert_eq!(ranges.iter().filter(|other| touch(other, range)).count(), 1);
            }
        }
    }
}
