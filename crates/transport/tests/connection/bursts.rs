//! Bursts of several segments (`gso`), over a link that takes 0.1 ms for a segment.

use weir_transport::Config;
use weir_units::{Duration, Instant};

use super::pair::Pair;
use super::pair::Side::{Client, Server};
use super::pair::Verdict;
use super::{has_data, with_stack};

const SPACING: Duration = Duration::from_micros(100);
const SEGMENTS: u64 = 2_000;

/// Sends `SEGMENTS`, of which the link loses every `loss`-th.
fn transfer(stack: &str, gso: u32, loss: Option<u64>) -> Pair {
    let mut pair = Pair::connected(&Config { gso, ..with_stack(stack) });
    let (mut free, mut count) = (Instant::ZERO, 0);
    pair.network(move |p| {
        if !has_data(p) {
            return Verdict::Deliver;
        }
        count += 1;
        free = free.max(p.at) + SPACING;
        let lost = loss.is_some_and(|nth| count % nth == 0);
        if lost { Verdict::Drop } else { Verdict::Late(free - p.at) }
    });
    pair.write(Client, SEGMENTS * 1_448);
    pair.drive();
    assert_eq!(pair.server.read, SEGMENTS * 1_448, "{stack}, gso {gso}");
    pair
}

/// How many segments left at each instant, in the second half of the transfer.
fn bursts(pair: &Pair) -> Vec<usize> {
    let sent = pair.log.iter().filter(|p| p.from == Client && has_data(p));
    let late: Vec<Instant> = sent.skip(SEGMENTS as usize / 2).map(|p| p.at).collect();
    late.chunk_by(|a, b| a == b).map(<[Instant]>::len).collect()
}

/// The largest burst and the usual one.
fn largest_and_median(mut sizes: Vec<usize>) -> (usize, usize) {
    sizes.sort_unstable();
    (sizes[sizes.len() - 1], sizes[sizes.len() / 2])
}

/// Ten segments pass in a millisecond, and Linux takes twice the rate. Where the next acknowledgement is
/// far, after a pause, single segments leave.
#[test]
fn a_window_is_sent_in_bursts_up_to_the_limit() {
    for gso in [1, 2, 4] {
        let sizes = bursts(&transfer("rack/none(100)", gso, None));
        assert_eq!(largest_and_median(sizes), (gso as usize, gso as usize), "gso {gso}");
    }
}

#[test]
fn a_burst_is_a_milliseconds_worth_at_most() {
    // 30 segments in 20.1 ms are 2.9 in a 1024th of a second at twice the rate.
    let sizes = bursts(&transfer("rack/none(30)", 64, None));
    assert_eq!(largest_and_median(sizes), (2, 2));
}

#[test]
fn a_paced_burst_takes_as_long_as_its_segments() {
    let [single, burst] = [1, 8].map(|gso| transfer("rack/bbr", gso, None));
    let (sizes, took) = (bursts(&burst), [&single, &burst].map(|pair| pair.now));
    assert!(bursts(&single).iter().all(|size| *size == 1));
    assert!(largest_and_median(sizes).0 == 8);
    let [alone, together] = took.map(|now| now.as_nanos() as f64);
    assert!((together / alone - 1.0).abs() < 0.1, "{took:?}");
}

#[test]
fn bursts_survive_losses() {
    for stack in ["rack/reno", "rack/cubic", "rack/bbr", "sack/reno", "newreno/reno"] {
        let pair = transfer(stack, 16, Some(100));
        let stats = pair.client.connection.stats();
        assert!(stats.retransmits >= SEGMENTS / 100, "{stack}: {stats:?}");
        assert!(!pair.log.iter().any(|p| p.from == Server && has_data(p)));
    }
}
