//! Whatever order transfers arrive in, the sum of all buffers gets to every rank, and nothing is sent that is
//! not there yet.

use std::collections::BTreeSet;

use proptest::prelude::*;
use weir_units::stream;

use super::*;

/// Whose buffers are in the sum that a rank has of a part.
type Sum = BTreeSet<u32>;

/// The buffers of all ranks, cut into parts as the algorithm does.
struct Ranks {
    sums: Vec<Vec<Sum>>,
}

/// A transfer with the sum that its sender had when it began.
struct InFlight {
    transfer: Transfer,
    part: usize,
    sum: Sum,
}

impl Ranks {
    fn new(spec: &AllReduce) -> Self {
        let parts = match spec.algorithm {
            AllReduceAlgorithm::Ring => spec.ranks as usize,
            AllReduceAlgorithm::Tree => 1,
        };
        Self { sums: (0..spec.ranks).map(|rank| vec![Sum::from([rank]); parts]).collect() }
    }

    fn begin(&self, transfer: Transfer) -> InFlight {
        let parts = self.sums.len();
        let part = match self.sums[0].len() {
            1 => 0,
            // Patarasuk and Yuan: rank `i` sends part `i − k` in step `k`.
            _ => (transfer.from as usize + 2 * parts - transfer.step as usize) % parts,
        };
        InFlight { transfer, part, sum: self.sums[transfer.from as usize][part].clone() }
    }

    fn arrive(&mut self, in_flight: InFlight) {
        let InFlight { transfer, part, sum } = in_flight;
        self.sums[transfer.to as usize][part].extend(sum);
    }

    fn are_complete(&self) -> bool {
        self.sums.iter().flatten().all(|sum| sum.len() == self.sums.len())
    }
}

/// Runs one operation; `choices` says which transfer arrives next. Returns all that were made.
fn run(collective: &mut Collective, size: u64, choices: &[usize]) -> Vec<Transfer> {
    let spec = collective.spec;
    let mut ranks = Ranks::new(&spec);
    let (mut in_flight, mut made) = (Vec::new(), Vec::new());
    collective.begin(Bytes(size));
    for choice in choices.iter().cycle() {
        while let Some(transfer) = collective.next() {
            made.push(transfer);
            in_flight.push(ranks.begin(transfer));
        }
        if in_flight.is_empty() {
            break;
        }
        assert!(!collective.is_complete());
        let next = in_flight.swap_remove(choice % in_flight.len());
        check_sum(&spec, &next);
        let transfer = next.transfer;
        ranks.arrive(next);
        assert_eq!(collective.on_arrival(&transfer, transfer.size.get()), Ok(()));
    }
    assert!(collective.is_complete() && collective.has_begun_all());
    assert!(ranks.are_complete(), "{spec:?}");
    made
}

/// What a sender had when it began is what the algorithm promises.
fn check_sum(spec: &AllReduce, in_flight: &InFlight) {
    let InFlight { transfer, sum, .. } = in_flight;
    let expected = match (spec.algorithm, transfer.step) {
        (AllReduceAlgorithm::Ring, step) => (step + 1).min(spec.ranks),
        (AllReduceAlgorithm::Tree, 1) => spec.ranks,
        // All ranks below it: they are next to each other.
        (AllReduceAlgorithm::Tree, _) => {
            let ends = sum.first().zip(sum.last());
            ends.map_or(0, |(first, last)| last - first + 1)
        }
    };
    assert_eq!(sum.len(), expected as usize, "{spec:?}: {transfer:?} with {sum:?}");
}

fn spec(ranks: u32, spare: u32, ring: bool, drawn: bool) -> AllReduce {
    AllReduce {
        ranks,
        hosts: ranks + spare,
        order: if drawn { RankOrder::Random } else { RankOrder::Host },
        algorithm: match ring {
            true => AllReduceAlgorithm::Ring,
            false => AllReduceAlgorithm::Tree,
        },
    }
}

proptest! {
    #[test]
    fn every_rank_has_the_whole_sum_in_any_order_of_arrivals(
        ranks in 2u32..14,
        spare in 0u32..4,
        more in 0u64..100_000,
        (ring, drawn) in (any::<bool>(), any::<bool>()),
        choices in prop::collection::vec(any::<usize>(), 1..80),
        seed in any::<u64>(),
    ) {
        let spec = spec(ranks, spare, ring, drawn);
        let size = u64::from(ranks) + more;
        let mut collective = Collective::new(spec, &mut stream(seed, "hosts"));
        // A second time nothing of the first is left.
        for _ in 0..2 {
            let made = run(&mut collective, size, &choices);
            prop_assert_eq!(made.len() as u64, spec.transfers());
            let bytes: u64 = made.iter().map(|transfer| transfer.size.get()).sum();
            prop_assert_eq!(bytes, 2 * (u64::from(ranks) - 1) * size);
            prop_assert!(made.iter().all(|transfer| transfer.size > Bytes::ZERO));
            let hosts: BTreeSet<u32> = made.iter().map(|transfer| transfer.ends.from).collect();
            prop_assert_eq!(hosts.len() as u32, ranks);
            prop_assert!(hosts.iter().all(|host| *host < spec.hosts));
        }
    }
}

/// The first hosts in their order, or any in any.
#[test]
fn hosts_are_the_first_or_drawn() {
    let hosts =
        |drawn, seed| Collective::new(spec(4, 4, true, drawn), &mut stream(seed, "h")).hosts;
    assert_eq!(hosts(false, 1), [0, 1, 2, 3]);
    assert_eq!(hosts(true, 1), hosts(true, 1));
    let orders: BTreeSet<Vec<u32>> = (0..50).map(|seed| hosts(true, seed)).collect();
    assert!(orders.len() > 40, "of 1680: {orders:?}");
}

#[test]
fn a_tree_is_binary_and_as_low_as_can_be() {
    for ranks in 1..200u32 {
        let nodes = tree(ranks);
        assert_eq!(nodes.iter().filter(|node| node.parent.is_none()).count(), 1);
        assert!(nodes.iter().all(|node| node.children.len() <= 2));
        let depth = |rank: u32| {
            std::iter::successors(Some(rank), |rank| nodes[*rank as usize].parent).count() - 1
        };
        let deepest = (0..ranks).map(depth).max();
        assert_eq!(deepest, Some(ranks.ilog2() as usize), "{ranks}");
    }
}

#[test]
fn nothing_begins_after_it_was_abandoned() {
    let mut collective = Collective::new(spec(3, 0, true, false), &mut stream(1, "hosts"));
    collective.begin(Bytes(9));
    let first = collective.next().expect("three may begin");
    collective.abandon();
    assert_eq!(collective.on_arrival(&first, 3), Ok(()));
    assert!(collective.has_begun_all() && !collective.is_complete());
    assert_eq!((collective.ready(), collective.next()), (0, None));
}

#[test]
fn missing_bytes_are_noticed() {
    let mut collective = Collective::new(spec(2, 0, false, false), &mut stream(1, "hosts"));
    collective.begin(Bytes(9));
    for (bytes, sound) in [(9, true), (8, false)] {
        let transfer = collective.next().expect("one after the other");
        assert_eq!(collective.on_arrival(&transfer, bytes).is_ok(), sound);
    }
}
