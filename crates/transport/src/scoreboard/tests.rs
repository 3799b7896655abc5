use proptest::prelude::*;
use weir_units::{Duration, Instant};

use super::*;
use weir_cc::host::SendRecord;

const MSS: u32 = 100;

/// A scoreboard with the sums recomputed from its segments after every step.
struct Checked {
    board: Scoreboard,
    now: Instant,
}

impl Checked {
    fn new() -> Self {
        Self { board: Scoreboard::default(), now: Instant::ZERO }
    }

    fn send(&mut self, segments: u32) {
        for _ in 0..segments {
            self.tick();
            self.board.push(self.now, MSS, SendRecord::default());
        }
        self.check();
    }

    fn sack(&mut self, range: Range<u64>) -> Covered {
        let mut covered = Covered::default();
        let high = self.board.nxt();
        self.tick();
        self.board.sack(range, high, &self.time(), &mut covered);
        self.check();
        covered
    }

    fn ack(&mut self, to: u64) -> Covered {
        let mut covered = Covered::default();
        let high = self.board.nxt();
        self.tick();
        self.board.ack_to(to, high, &self.time(), &mut covered);
        self.check();
        covered
    }

    fn resend_first_lost(&mut self) -> Option<u64> {
        self.tick();
        let start = self.board.first_lost()?.start;
        self.board.resend(self.now, start, SendRecord::default());
        self.check();
        Some(start)
    }

    fn tick(&mut self) {
        self.now += Duration::from_millis(1);
    }

    fn time(&self) -> AckTime {
        AckTime {
            now: self.now,
            min_rtt: Duration::ZERO,
            echo_ms: None,
            highest: self.board.highest_sacked(),
        }
    }

    fn check(&self) {
        let board = &self.board;
        let sum = |fates: &[Fate]| -> u64 {
            board.iter().filter(|s| fates.contains(&s.fate)).map(|s| u64::from(s.len)).sum()
        };
        assert_eq!(board.sacked, sum(&[Fate::Sacked]));
        assert_eq!(board.lost, sum(&[Fate::Lost, Fate::Resent]));
        assert_eq!(board.resent, sum(&[Fate::Resent]));
        let in_flight = sum(&[Fate::InFlight, Fate::Resent]).saturating_sub(board.duplicates);
        assert_eq!(board.in_flight().get(), in_flight);
        assert_eq!(board.iter().map(|s| u64::from(s.len)).sum::<u64>(), board.outstanding());
        let mut at = board.una();
        for segment in board.iter() {
            assert_eq!(segment.start, at, "segments follow one another");
            at = segment.end();
        }
        let before = |hint: u64, fate: Fate| board.iter().any(|s| s.start < hint && s.fate == fate);
        assert!(!before(board.lost_hint, Fate::Lost), "the hint skips a lost segment");
        assert!(!before(board.in_flight_hint, Fate::InFlight), "the hint skips one in flight");
        for range in board.sacked_ranges.iter() {
            let mut inside =
                board.iter().filter(|s| s.start >= range.start && s.end() <= range.end).peekable();
            assert!(inside.peek().is_some());
            assert!(inside.all(|s| s.fate == Fate::Sacked));
        }
    }
}

/// The second copy of the first of these segments leaves together with the fourth and the fifth, between them: the arrival
/// of the fourth says nothing of it, that of the fifth that it is lost.
#[test]
fn at_one_instant_the_order_is_that_of_leaving() {
    let mut board = Checked::new();
    board.send(3);
    board.board.lose_where(|_, _| true);
    board.tick();
    let now = board.now;
    board.board.push(now, MSS, SendRecord::default());
    board.board.resend(now, 0, SendRecord::default());
    board.board.push(now, MSS, SendRecord::default());
    for (sacked, lost) in [(300..400, 0), (400..500, 100)] {
        let newest = board.sack(sacked).newest_credible.expect("one has arrived");
        assert_eq!(board.board.lose_expired(|sent| sent < newest).0, lost);
    }
}

/// Linux's `tcp_undo_cwnd_reduction`, `tcp_sacktag_one`, `tcp_mark_skb_lost`, `tcp_retransmit_timer`: of four segments two were
/// sent again, and are not lost after all.
#[test]
fn both_copies_count_after_an_undo_until_they_are_acknowledged() {
    let mut board = Scoreboard::default();
    board.count_segments_as(u64::from(MSS));
    let at = |ms| Instant::ZERO + Duration::from_millis(ms);
    let time = AckTime { now: at(9), min_rtt: Duration::ZERO, echo_ms: None, highest: 0 };
    for _ in 0..4 {
        board.push(at(0), MSS, SendRecord::default());
    }
    board.lose_in_flight_below(200);
    for start in [0, 100] {
        board.resend(at(1), start, SendRecord::default());
    }
    let counts = |board: &Scoreboard| [board.in_flight().get(), board.lost(), board.resent()];
    assert_eq!(counts(&board), [400, 200, 200]);
    board.unmark_losses();
    assert_eq!(counts(&board), [600, 0, 200]);
    let mut covered = Covered::default();
    board.sack(100..200, 400, &time, &mut covered);
    assert_eq!(counts(&board), [500, 0, 200], "its copy is still on its way");
    board.report_twice(&(100..200), &mut covered);
    assert_eq!(counts(&board), [400, 0, 100], "the copy has arrived too");
    board.lose_where(|_, _| true);
    assert_eq!(counts(&board), [100, 300, 100], "a timeout does not take the copy off");
    board.resend(at(2), 0, SendRecord::default());
    assert_eq!(counts(&board), [200, 300, 200]);
    board.ack_to(200, 400, &time, &mut covered);
    assert_eq!(counts(&board), [100, 200, 100], "one too many");
    board.resend(at(3), 200, SendRecord::default());
    assert_eq!(board.first_lost().map(|sent| sent.start), None, "as much counts as sent again");
    board.ack_to(400, 400, &time, &mut covered);
    assert_eq!(counts(&board), [0, 0, 0], "until nothing is outstanding");
}

#[test]
fn an_acknowledgement_may_end_inside_a_segment() {
    let mut board = Checked::new();
    board.send(2);
    let covered = board.ack(130);
    assert_eq!((covered.cum_acked, covered.delivered, covered.segments), (130, 130, 1));
    assert_eq!(board.board.first().map(|s| (s.start, s.len)), Some((130, 70)));
}

#[test]
fn a_sack_block_counts_whole_segments_once() {
    let mut board = Checked::new();
    board.send(5);
    assert_eq!(board.sack(150..350).delivered, 100, "only 200..300 is whole");
    assert_eq!(board.sack(100..400).delivered, 200);
    assert_eq!(board.ack(500).delivered, 200, "what was sacked is not delivered twice");
}

#[test]
fn karn_takes_no_time_from_a_segment_sent_twice() {
    let mut board = Checked::new();
    board.send(2);
    board.board.lose_first();
    board.resend_first_lost();
    let covered = board.ack(200);
    assert_eq!((covered.cum_acked, covered.cum_sent), (200, None));
}

#[test]
fn an_answer_that_comes_too_soon_is_not_credible() {
    let mut board = Checked::new();
    board.send(1);
    board.board.lose_first();
    board.resend_first_lost();
    let mut covered = Covered::default();
    let time = AckTime { min_rtt: Duration::from_secs(1), ..board.time() };
    board.board.ack_to(100, 100, &time, &mut covered);
    assert!(covered.newest.is_some() && covered.newest_credible.is_none());
}

#[test]
fn expiry_goes_by_time_of_transmission_not_by_place() {
    let mut board = Checked::new();
    board.send(3);
    board.board.lose_first();
    board.resend_first_lost();
    let resent_at = board.now;
    // All originals are older than the retransmission of the first.
    let (lost, spared) = board.board.lose_expired(|sent| sent.sent_at < resent_at);
    board.check();
    assert_eq!((lost, spared.map(|s| s.end)), (200, Some(100)));
    let soon = Transmission { number: u64::MAX, sent_at: resent_at, end: 0 };
    assert_eq!(board.board.last_in_flight_before(soon).map(|s| s.end), Some(100));
}

/// What one acknowledgement reports for the first time did not overtake what it acknowledges.
#[test]
fn news_of_one_acknowledgement_is_no_reordering() {
    for (reported_before, reordered) in [(false, false), (true, true)] {
        let mut board = Checked::new();
        board.send(3);
        if reported_before {
            board.sack(200..300);
        }
        let (time, mut covered) = (board.time(), Covered::default());
        board.board.sack(200..300, 300, &time, &mut covered);
        board.board.ack_to(100, 300, &time, &mut covered);
        assert_eq!(covered.reordered, reordered.then_some(0));
    }
}

#[test]
fn duplicates_never_outnumber_what_can_have_arrived() {
    let mut board = Checked::new();
    board.send(4);
    for _ in 0..10 {
        board.board.duplicate_ack(u64::from(MSS));
    }
    assert_eq!(board.board.in_flight().get(), 100, "the missing one is still out");
    board.board.consume_duplicates(100, 100);
    assert_eq!(board.board.sacked(), 300);
}

#[derive(Clone, Debug)]
enum Op {
    Send(u32),
    Sack(u64, u64),
    Ack(u64),
    LoseFirst,
    LoseBelow(u64),
    LoseOlder(u64),
    LoseEverything,
    Resend,
    Probe,
    Unmark,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => (1u32..6).prop_map(Op::Send),
        4 => (0u64..2_000, 1u64..600).prop_map(|(from, len)| Op::Sack(from, len)),
        3 => (0u64..500).prop_map(Op::Ack),
        1 => Just(Op::LoseFirst),
        1 => (0u64..2_000).prop_map(Op::LoseBelow),
        1 => (0u64..40).prop_map(Op::LoseOlder),
        1 => Just(Op::LoseEverything),
        3 => Just(Op::Resend),
        1 => Just(Op::Probe),
        1 => Just(Op::Unmark),
    ]
}

proptest! {
    #[test]
    fn sums_and_hints_hold_under_any_sequence(ops in prop::collection::vec(op(), 1..120)) {
        let mut checked = Checked::new();
        let mut delivered = 0;
        for op in ops {
            let una = checked.board.una();
            match op {
                Op::Send(n) => checked.send(n),
                Op::Sack(from, len) => delivered += checked.sack(una + from..una + from + len).delivered,
                Op::Ack(by) => {
                    let to = (una + by).min(checked.board.nxt());
                    delivered += checked.ack(to).delivered;
                }
                Op::LoseFirst => { checked.board.lose_first(); }
                Op::LoseBelow(by) => { checked.board.lose_in_flight_below(una + by); }
                Op::LoseOlder(ms) => {
                    let limit = checked.now - Duration::from_millis(ms.min(checked.now.as_nanos() / 1_000_000));
                    checked.board.lose_expired(|sent| sent.sent_at < limit);
                }
                Op::LoseEverything => { checked.board.lose_where(|_, _| true); }
                Op::Resend => { checked.resend_first_lost(); }
                Op::Probe => {
                    checked.tick();
                    if let Some(last) = checked.board.last().map(|s| s.start) {
                        checked.board.resend(checked.now, last, SendRecord::default());
                    }
                }
                Op::Unmark => checked.board.unmark_losses(),
            }
            checked.check();
        }
        let end = checked.board.nxt();
        delivered += checked.ack(end).delivered;
        prop_assert_eq!(delivered, end, "every byte is delivered exactly once");
    }
}

/// draft-ietf-ccwg-bbr §4.1.2.1: `P.tx_in_flight` and what was lost since, of the last segment lost.
#[test]
fn a_lost_segment_tells_what_was_in_flight_and_lost_since() {
    let record = |in_flight: u64, lost: u64| {
        SendRecord::default().with_flight(Bytes(in_flight), Bytes(lost))
    };
    let mut board = Scoreboard::default();
    for segments in 1..=4 {
        board.push(Instant::ZERO, MSS, record(segments * u64::from(MSS), 0));
    }
    assert_eq!(board.take_last_loss(), None);
    board.lose_in_flight_below(200);
    let loss = board.take_last_loss().expect("two are lost");
    assert_eq!(
        (loss.size, loss.in_flight_at_send, loss.lost),
        (Bytes(100), Bytes(200), Bytes(200))
    );
    assert_eq!(board.take_last_loss(), None, "taken already");
    board.resend(Instant::ZERO, 0, record(300, board.ever_lost()));
    board.lose_first();
    let loss = board.take_last_loss().expect("the copy is lost too");
    assert_eq!((loss.in_flight_at_send, loss.lost), (Bytes(300), Bytes(100)));
}

/// `tcp_retrans_try_collapse`: up to a segment's length, and up to what has arrived. Sums stay those of the segments left.
#[test]
fn short_segments_that_follow_are_sent_again_as_one() {
    let mut board = Scoreboard::default();
    board.count_segments_as(100);
    for len in [30, 40, 20, 20, 10] {
        board.push(Instant::ZERO, len, SendRecord::default());
    }
    board.push_last();
    board.lose_where(|index, _| index < 4);
    assert_eq!((board.segments(), board.lost()), (5, 400));
    board.collapse(0, 100);
    assert_eq!(
        (board.segments(), board.lost()),
        (3, 200),
        "30 + 40 + 20, then 20 would be too many"
    );
    assert_eq!(board.resend(Instant::ZERO, 0, SendRecord::default()), (90, false));
    board.collapse(90, 100);
    assert_eq!(board.resend(Instant::ZERO, 90, SendRecord::default()), (30, true));
    assert_eq!((board.lost(), board.resent(), board.in_flight()), (200, 200, Bytes(200)));
    let time = AckTime { now: Instant::ZERO, min_rtt: Duration::ZERO, echo_ms: None, highest: 0 };
    board.ack_to(120, 0, &time, &mut Covered::default());
    assert_eq!((board.segments(), board.lost(), board.resent()), (0, 0, 0));
}

proptest! {
    /// Whatever has arrived of short segments, what is sent again stays a partition of the stream with the sums of its
    /// segments, none longer than a full one.
    #[test]
    fn sums_hold_for_short_segments_that_are_sent_again_as_one(
        lens in prop::collection::vec(1..=MSS, 1..20),
        blocks in prop::collection::vec((0u64..1_500, 1u64..400), 0..6),
    ) {
        let mut board = Scoreboard::default();
        board.count_segments_as(u64::from(MSS));
        for len in &lens {
            board.push(Instant::ZERO, *len, SendRecord::default());
        }
        let time =
            AckTime { now: Instant::ZERO, min_rtt: Duration::ZERO, echo_ms: None, highest: 0 };
        for (from, len) in blocks {
            board.sack(from..from + len, 0, &time, &mut Covered::default());
        }
        board.lose_where(|_, _| true);
        while let Some(sent) = board.first_lost() {
            board.collapse(sent.start, u64::from(MSS));
            board.resend(Instant::ZERO, sent.start, SendRecord::default());
            let weight = |of: &[Fate]| -> u64 {
                board.iter().filter(|s| of.contains(&s.fate)).map(|s| u64::from(s.weight)).sum()
            };
            let all = [Fate::InFlight, Fate::Sacked, Fate::Lost, Fate::Resent];
            prop_assert_eq!(
                (board.total, board.sacked, board.lost, board.resent),
                (weight(&all), weight(&all[1..2]), weight(&all[2..]), weight(&all[3..]))
            );
            let mut at = 0;
            for segment in board.iter() {
                prop_assert_eq!(segment.start, at);
                prop_assert!(segment.len <= MSS);
                at = segment.end();
            }
            prop_assert_eq!(at, board.nxt());
        }
        board.ack_to(board.nxt(), 0, &time, &mut Covered::default());
        prop_assert_eq!((board.total, board.sacked, board.lost, board.resent), (0, 0, 0, 0));
    }
}
