use proptest::prelude::*;
use weir_units::feedback::Drai;
use weir_units::{Duration, Echo, Instant, Rng, stream};

use super::*;
use crate::{CcConfig, RecoveryState, RttSnapshot};

const MSS: Bytes = Bytes(1_000);

/// A connection that sends whole windows, each acknowledged segment by segment a round trip later.
struct Rounds {
    cc: Box<dyn CongestionController>,
    peer_window: Bytes,
    una: u64,
    nxt: u64,
    state: RecoveryState,
    rng: Rng,
}

impl Rounds {
    fn new(text: &str, peer_segments: u64) -> Self {
        let config = CcConfig::parse(text).expect("a controller");
        Self {
            cc: config.build(MSS, MSS * 10).unwrap(),
            peer_window: MSS * peer_segments,
            una: 0,
            nxt: 0,
            state: RecoveryState::Open,
            rng: stream(1, "rounds"),
        }
    }

    fn segments(&self) -> u64 {
        self.cc.cwnd().get() / MSS.get()
    }

    /// Bytes in flight are acknowledged segment by segment, with this index each; what that frees leaves
    /// at once.
    fn round(&mut self, index: Option<u8>) {
        self.send();
        let end = self.nxt;
        while self.una < end {
            self.una += MSS.get();
            let ack = AckEvent { acked: MSS, cum_acked: MSS, ..AckEvent::default() };
            self.call(index, |cc, cx| cc.on_ack(cx, &ack));
            self.send();
        }
    }

    fn send(&mut self) {
        self.nxt = self.nxt.max(self.una + self.segments() * MSS.get());
    }

    fn duplicate(&mut self, index: Option<u8>) {
        let ack = AckEvent { duplicate: true, ..AckEvent::default() };
        self.call(index, |cc, cx| cc.on_ack(cx, &ack));
    }

    /// Three duplicates with these indices; the third shows the loss.
    fn lose(&mut self, indices: [Option<u8>; 3]) {
        self.duplicate(indices[0]);
        self.duplicate(indices[1]);
        self.congest(indices[2], Cause::FastRetransmit);
        self.state = RecoveryState::Recovery;
        self.duplicate(indices[2]);
    }

    fn congest(&mut self, index: Option<u8>, cause: Cause) {
        let event = CongestionEvent {
            cause,
            first_in_epoch: true,
            lost: MSS,
            prior_in_flight: Bytes(self.nxt - self.una),
        };
        self.call(index, |cc, cx| cc.on_congestion(cx, &event));
    }

    fn recover(&mut self, index: Option<u8>) {
        self.state = RecoveryState::Open;
        self.una = self.nxt;
        let ack = AckEvent { acked: MSS, cum_acked: MSS, ..AckEvent::default() };
        self.call(index, |cc, cx| {
            cc.on_ack(cx, &ack);
            cc.on_epoch_end(cx);
        });
    }

    fn call(
        &mut self,
        index: Option<u8>,
        call: impl FnOnce(&mut dyn CongestionController, &mut CcContext<'_>),
    ) {
        let mut cx = CcContext {
            now: Instant::ZERO + Duration::from_secs(1),
            mss: MSS,
            rtt: RttSnapshot::default(),
            bytes_in_flight: Bytes(self.nxt - self.una),
            snd_una: self.una,
            snd_nxt: self.nxt,
            delivered: Bytes(self.una),
            delivered_marked: Bytes::ZERO,
            next_departure: Instant::ZERO,
            paced: false,
            app_limited: false,
            cwnd_limited: true,
            peer_window: self.peer_window,
            feedback: index.map(|level| Echo::Drai(Drai { level, hops: 1 })),
            state: self.state,
            rng: &mut self.rng,
        };
        call(self.cc.as_mut(), &mut cx);
    }
}

fn windows(text: &str, peer: u64, indices: &[u8]) -> Vec<u64> {
    let mut rounds = Rounds::new(text, peer);
    let window = |index: &u8| {
        rounds.round(Some(*index));
        rounds.segments()
    };
    indices.iter().map(window).collect()
}

#[test]
fn it_doubles_each_round_trip_up_to_what_the_peer_offers() {
    assert_eq!(windows("muzha", 50, &[5; 7]), [4, 8, 16, 32, 50, 50, 50]);
    assert_eq!(windows("muzha(update=per-ack-smooth)", 50, &[5; 6]), [4, 8, 16, 32, 50, 50]);
}

#[test]
fn it_stays_where_routers_say_so() {
    assert_eq!(windows("muzha", 50, &[5, 5, 3, 3, 3, 3]), [4, 8, 8, 8, 8, 8]);
}

#[test]
fn it_comes_down_to_one_segment() {
    assert_eq!(windows("muzha", 50, &[5, 5, 5, 1, 1, 1, 1, 1, 1]), [4, 8, 16, 8, 4, 2, 1, 1, 1]);
    assert_eq!(windows("muzha", 50, &[5, 5, 2, 2, 2]), [4, 8, 7, 6, 5]);
    assert_eq!(windows("muzha", 50, &[4, 4, 4]), [3, 4, 5]);
}

#[test]
fn applied_with_each_acknowledgement_the_table_runs_away() {
    assert_eq!(windows("muzha(update=per-ack-literal)", 32, &[5, 5]), [8, 32]);
}

/// What the specification of this laboratory lists for each number of levels.
#[test]
fn each_number_of_levels_has_its_actions() {
    for (levels, expected) in [
        (3, &["x0.5", "0", "x2"][..]),
        (4, &["x0.5", "-1", "+1", "x2"]),
        (5, &["x0.5", "-1", "0", "+1", "x2"]),
        (6, &["x0.5", "-2", "-1", "+1", "+2", "x2"]),
        (7, &["x0.5", "-2", "-1", "0", "+1", "+2", "x2"]),
    ] {
        let actions: Vec<String> = (1..=levels)
            .map(|index| match MuzhaTable::Levels(levels).action(index) {
                Action::Hold => "0".to_string(),
                Action::Grow(Increase::Add(a)) => format!("+{a}"),
                Action::Grow(Increase::Multiply(a)) => format!("x{a}"),
                Action::Shrink(Decrease::Subtract(b)) => format!("-{b}"),
                Action::Shrink(Decrease::Multiply(b)) => format!("x{b}"),
            })
            .collect();
        assert_eq!(actions, expected);
    }
}

#[test]
fn the_family_takes_its_increase_from_four_and_its_decrease_below_three() {
    for (text, up, down) in [
        ("drai-aimd(2,0.5)", 10, 4),
        ("drai-aiad(2,3)", 10, 5),
        ("drai-mimd(1.25,0.5)", 10, 4),
        ("drai-miad(1.25,3)", 10, 5),
    ] {
        for (index, expected) in [(5, up), (4, up), (3, 8), (2, down), (1, down)] {
            let mut rounds = Rounds::new(text, 100);
            // To eight segments, whatever the increase.
            let mut tries = 0;
            while rounds.segments() < 8 && tries < 50 {
                rounds.round(Some(5));
                tries += 1;
            }
            let cwnd = rounds.cc.cwnd();
            rounds.round(Some(index));
            let change = rounds.cc.cwnd().get() as i64 - cwnd.get() as i64;
            let per_mille = match expected.cmp(&8) {
                std::cmp::Ordering::Greater => change > 0,
                std::cmp::Ordering::Equal => change == 0,
                std::cmp::Ordering::Less => change < 0,
            };
            assert!(per_mille, "{text} at {index}: {change}");
        }
    }
    assert_eq!(windows("drai-aimd(1,0.8)", 50, &[5, 4, 3, 1]), [3, 4, 4, 3]);
    assert_eq!(windows("drai-aiad(3,2)", 50, &[5, 4, 3, 2]), [5, 8, 8, 6]);
    assert_eq!(windows("drai-mimd(1.25,0.5)", 50, &[5, 5, 5, 5, 2]), [2, 3, 3, 4, 2]);
}

/// The rule on the third duplicate: an index that slows down among the three means congestion, anything
/// else a random loss.
#[test]
fn the_index_distinguishes_losses() {
    let mut seen = 0;
    for reduce in ["half", "by-index", "none"] {
        for index in [None, Some(1), Some(2), Some(3), Some(4), Some(5)] {
            let mut rounds = Rounds::new(&format!("muzha(fr-reduce={reduce})"), 50);
            (0..3).for_each(|_| rounds.round(Some(5)));
            assert_eq!(rounds.segments(), 16);
            rounds.lose([Some(5), index, Some(4)]);
            rounds.recover(Some(3));
            let expected = match (reduce, index) {
                ("half", Some(1 | 2)) | ("by-index", Some(1)) => 8,
                ("by-index", Some(2)) => 15,
                _ => 16,
            };
            assert_eq!(rounds.segments(), expected, "{reduce}, {index:?}");
            seen += 1;
        }
    }
    assert_eq!(seen, 18);
}

#[test]
fn the_third_duplicate_counts_and_older_ones_do_not() {
    let mut rounds = Rounds::new("muzha", 50);
    (0..3).for_each(|_| rounds.round(Some(5)));
    rounds.duplicate(Some(1));
    rounds.round(Some(3));
    assert_eq!(rounds.segments(), 8, "the duplicate's index was the smallest of its round");
    rounds.lose([Some(5), Some(5), Some(5)]);
    assert_eq!(rounds.segments(), 8, "the acknowledgement between ends the series");
    rounds.recover(Some(3));
    rounds.lose([None, None, Some(2)]);
    assert_eq!(rounds.segments(), 4);
}

#[test]
fn a_timeout_begins_again_with_one_segment_and_the_table_goes_on() {
    let mut rounds = Rounds::new("muzha", 50);
    (0..3).for_each(|_| rounds.round(Some(5)));
    rounds.nxt = rounds.una;
    rounds.congest(None, Cause::Timeout { backoff: 0 });
    assert_eq!((rounds.segments(), rounds.cc.ssthresh()), (1, None));
    rounds.round(Some(5));
    rounds.round(Some(5));
    assert_eq!(rounds.segments(), 4);
}

#[test]
fn a_timeout_may_halve_if_routers_saw_spare_capacity() {
    for (index, segments) in [(5, 8), (3, 8), (2, 1), (1, 1)] {
        let mut rounds = Rounds::new("muzha(rto=half)", 50);
        (0..3).for_each(|_| rounds.round(Some(5)));
        rounds.nxt = rounds.una;
        rounds.duplicate(Some(index));
        rounds.congest(None, Cause::Timeout { backoff: 0 });
        assert_eq!(rounds.segments(), segments, "index {index}");
    }
}

#[test]
fn without_indices_it_is_newreno() {
    let mut rounds = Rounds::new("muzha", 1_000);
    let mut reno = Rounds::new("reno", 1_000);
    reno.cc = CcConfig::Reno.build(MSS, MSS * 2).unwrap();
    for step in 0..12 {
        if step % 5 == 4 {
            rounds.lose([None; 3]);
            reno.lose([None; 3]);
            rounds.recover(None);
            reno.recover(None);
        }
        rounds.round(None);
        reno.round(None);
        assert_eq!(rounds.cc.cwnd(), reno.cc.cwnd(), "step {step}");
        assert_eq!(rounds.cc.ssthresh(), reno.cc.ssthresh());
    }
}

#[test]
fn where_marks_were_seen_their_absence_changes_nothing() {
    let mut rounds = Rounds::new("muzha", 50);
    rounds.round(Some(5));
    rounds.round(None);
    assert_eq!(rounds.segments(), 4);
}

#[test]
fn recovery_may_end_for_the_table_with_any_acknowledgement() {
    for (exit, segments) in [("full", 16), ("any", 32)] {
        let mut rounds = Rounds::new(&format!("muzha(exit={exit})"), 50);
        (0..3).for_each(|_| rounds.round(Some(5)));
        rounds.lose([Some(5); 3]);
        rounds.round(Some(5));
        assert_eq!(rounds.segments(), segments, "{exit}");
    }
}

/// The next round trip goes by the smallest index of the last.
#[test]
fn version_two_opens_and_closes_newreno_s_growth() {
    assert_eq!(windows("muzha2", 50, &[5, 5, 5, 5, 5, 5]), [4, 8, 16, 32, 50, 50]);
    assert_eq!(windows("muzha2", 50, &[5, 5, 3, 3, 3]), [4, 8, 8, 8, 8]);
    assert_eq!(windows("muzha2", 50, &[5, 5, 4, 4, 4]), [4, 8, 9, 10, 11]);
    assert_eq!(windows("muzha2", 50, &[5, 5, 2, 2, 2]), [4, 8, 7, 6, 5]);
    assert_eq!(windows("muzha2", 50, &[5, 5, 1, 1, 1, 1, 1]), [4, 8, 4, 2, 1, 1, 1]);
    // Above ssthresh, which two halvings set to two, it is one segment per round trip at 5 too.
    assert_eq!(windows("muzha2", 50, &[5, 5, 1, 5, 5, 5, 5]), [4, 8, 4, 2, 3, 4, 5]);
}

#[test]
fn version_two_tells_losses_apart_too() {
    for (index, segments) in
        [(None, 16), (Some(1), 8), (Some(2), 8), (Some(3), 16), (Some(4), 16), (Some(5), 16)]
    {
        let mut rounds = Rounds::new("muzha2", 50);
        (0..3).for_each(|_| rounds.round(Some(5)));
        rounds.lose([Some(5), index, Some(4)]);
        assert_eq!(rounds.segments(), segments, "{index:?}");
    }
}

proptest! {
    /// Between one segment and what the peer offers, and one change per round trip at most.
    #[test]
    fn the_window_stays_within_its_bounds(
        indices in prop::collection::vec(prop::option::weighted(0.9, 1..=7u8), 1..60),
        peer in 2..64u64,
        levels in 3..=7u8,
    ) {
        let mut rounds = Rounds::new(&format!("muzha(levels={levels})"), peer);
        rounds.round(Some(levels));
        for index in indices {
            rounds.round(index);
            let cwnd = rounds.cc.cwnd();
            prop_assert!(cwnd >= MSS && cwnd <= MSS * peer, "{cwnd:?}");
        }
    }

    /// An episode that is classified as random leaves the window alone.
    #[test]
    fn random_losses_cost_nothing(
        before in prop::collection::vec(1..=5u8, 1..20),
        duplicates in prop::array::uniform3(prop::option::of(3..=5u8)),
    ) {
        let mut rounds = Rounds::new("muzha", 64);
        rounds.round(Some(5));
        before.iter().for_each(|index| rounds.round(Some(*index)));
        let cwnd = rounds.cc.cwnd();
        rounds.lose(duplicates);
        rounds.recover(Some(3));
        prop_assert_eq!(rounds.cc.cwnd(), cwnd);
    }
}
