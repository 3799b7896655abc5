//! The sender of one direction, from its packets and the acknowledgements that reached it.
//!
//! Times are those at the sender. A capture elsewhere passes acknowledgements when they had reached it.

mod measured;
mod rates;
mod repeat;
mod scoreboard;
mod slices;

pub(crate) use measured::{Counts, Loss, Measured, Passed};
pub(crate) use repeat::RepeatKind;
use repeat::{Evidence, Timer};
use scoreboard::{Range, Scoreboard};
pub(crate) use slices::{Hold, Slice, Slices};

/// What a sender did, and what it had in flight.
#[derive(Debug)]
pub(crate) struct Sender {
    board: Scoreboard,
    seen: Measured,
    timer: Timer,
    /// The last event, and what held the sender since.
    last_event: u64,
    hold: Hold,
    /// The right edge of the receiver's window.
    edge: Option<i64>,
    progressed: u64,
    /// The last data segment.
    last_data: u64,
    dup_acks: u32,
    /// The last sample of a cumulative acknowledgement.
    last_rtt: Option<u64>,
    /// Until here the loss episode goes on.
    recovery_end: Option<i64>,
    /// Until here repetitions belong to the last timeout.
    timeout_end: Option<i64>,
    rounds: Rounds,
    /// Whether the last new segment was not full.
    is_short: bool,
    mss: u32,
    has_sack: bool,
    silence: Silence,
}

/// What was repeated by the timer since the peer was last heard.
#[derive(Clone, Copy, Debug)]
struct Silence {
    since: u64,
    repeats: u32,
}

/// Growth of the bytes in flight from round to round, which shows slow start.
#[derive(Clone, Copy, Debug, Default)]
struct Rounds {
    end: i64,
    count: u32,
    flight: u64,
    previous: u64,
    is_over: bool,
}

/// A data segment in places of its direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Data {
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) mss: u32,
}

/// An acknowledgement in places of the acknowledged direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acknowledgement<'a> {
    pub(crate) place: i64,
    pub(crate) window: Option<u64>,
    /// Whether its time is known; if not, it gives no sample of the RTT.
    pub(crate) is_timed: bool,
    /// The SACK blocks, the first one perhaps of duplicates.
    pub(crate) blocks: &'a [(i64, i64)],
    pub(crate) is_duplicate: bool,
}

impl Sender {
    /// A sender whose first data begins at `place`; `round_trip` is what the handshake took.
    pub(crate) fn new(time: u64, place: i64, round_trip: Option<u64>, has_sack: bool) -> Self {
        Self {
            board: Scoreboard::new(place),
            seen: Measured::new(time, round_trip),
            timer: Timer::default(),
            last_event: time,
            hold: Hold::Application,
            edge: None,
            progressed: time,
            last_data: time,
            dup_acks: 0,
            last_rtt: None,
            recovery_end: None,
            timeout_end: None,
            rounds: Rounds { end: place, ..Rounds::default() },
            is_short: false,
            mss: 0,
            has_sack,
            silence: Silence { since: time, repeats: 0 },
        }
    }

    /// The receiver offers `window` bytes from `place` on, before there is data.
    pub(crate) fn offer(&mut self, place: i64, window: u64) {
        self.edge = Some(place.saturating_add_unsigned(window));
    }

    /// Processes a data segment. Returns why it was repeated, if it was.
    pub(crate) fn on_data(&mut self, time: u64, data: Data) -> Option<RepeatKind> {
        let time = time.max(self.last_event);
        let len = (data.end - data.start) as u64;
        self.mss = data.mss;
        self.seen.counts.packets += 1;
        self.seen.counts.bytes += len;
        self.seen.counts.merged += u64::from(len > u64::from(data.mss));
        let kind = self.repeat_kind(time, &data);
        let waited_for_timer = matches!(kind, Some(RepeatKind::Timeout | RepeatKind::TailProbe));
        self.silence.repeats += u32::from(waited_for_timer);
        let held = if waited_for_timer { self.network_hold() } else { self.hold };
        self.add_time(time, held);
        self.note_gap(time, len);
        let number = self.seen.note_passed(time, data.start, len as u32);
        let found = self.place(time, &data, number, kind);
        if data.end >= self.board.next() {
            self.is_short = !len.is_multiple_of(u64::from(data.mss.max(1)));
        }
        let slice = self.seen.slices.at(time);
        slice.sent += len;
        slice.repeats += u32::from(found.is_some());
        self.settle(time);
        found
    }

    /// Processes an acknowledgement.
    pub(crate) fn on_ack(&mut self, time: u64, ack: &Acknowledgement<'_>) {
        let time = time.max(self.last_event);
        self.add_time(time, self.hold);
        self.end_silence(time);
        self.take_window(time, ack);
        if ack.place > self.board.next() {
            self.seen.counts.unseen += (ack.place - self.board.next()) as u64;
        }
        let before = self.board.in_flight();
        self.take_duplicates(ack);
        if ack.place > self.board.una() {
            self.seen.counts.acks += 1;
            self.acknowledge(time, ack);
        } else if ack.is_duplicate && self.board.outstanding() > 0 {
            self.dup_acks += 1;
            self.seen.counts.dup_acks += 1;
        }
        self.sack(time, ack);
        let delivered = before.saturating_sub(self.board.in_flight());
        self.seen.record_delivered(time, delivered);
        self.settle(time);
    }

    /// The capture of the connection ends at `time`.
    pub(crate) fn finish(&mut self, time: u64) {
        let time = time.max(self.last_event);
        if self.silence.repeats >= FEWEST_UNANSWERED {
            self.add_time(time, self.hold);
        }
        self.end_silence(time);
    }

    /// The peer was heard, or will not be: time in which the timer ran out again and again is that of a missing peer
    /// (RFC 9293 §3.8.3), whatever was lost at its beginning.
    fn end_silence(&mut self, time: u64) {
        let Silence { since, repeats } = self.silence;
        if repeats >= FEWEST_UNANSWERED {
            self.seen.slices.reassign(since, time);
        }
        self.silence = Silence { since: time, repeats: 0 };
    }

    /// Bytes of memory that it takes, about.
    pub(crate) fn memory(&self) -> usize {
        size_of::<Self>() + self.board.memory() + self.seen.memory()
    }

    /// The place after the last byte sent.
    pub(crate) fn next(&self) -> i64 {
        self.board.next()
    }

    /// What was measured.
    pub(crate) fn measured(&self) -> &Measured {
        &self.seen
    }

    pub(crate) fn counts(&self) -> &Counts {
        &self.seen.counts
    }

    fn repeat_kind(&self, time: u64, data: &Data) -> Option<RepeatKind> {
        if data.start >= self.board.next() {
            return None;
        }
        let last_sent = self.board.first_from(data.start);
        let (sent, sends) = last_sent.map_or((0, 1), |range| (range.last_sent, range.sends));
        Some(self.timer.kind(&Evidence {
            is_loss_reported: self.dup_acks > 0 || self.board.is_sacked_above(data.end),
            is_first: data.start <= self.board.una(),
            is_last: data.end >= self.board.next(),
            is_after_timeout: self.timeout_end.is_some_and(|end| data.start < end),
            waited: time.saturating_sub(sent.max(self.progressed)),
            quiet: time.saturating_sub(self.last_event),
            may_probe: sends <= 1 && self.has_sack,
        }))
    }

    /// Adds a segment to what was sent. Returns why it was a repetition, if it was one.
    fn place(
        &mut self,
        time: u64,
        data: &Data,
        number: u32,
        kind: Option<RepeatKind>,
    ) -> Option<RepeatKind> {
        let next = self.board.next();
        let range = |sends, number| Range {
            start: 0,
            end: 0,
            first_sent: time,
            last_sent: time,
            sends,
            is_sacked: false,
            number,
            first_number: number,
        };
        if self.board.is_full() {
            return None;
        }
        if data.start > next {
            let missing = self.seen.note_missing(time, next, (data.start - next) as u32);
            self.board.append(data.start, range(0, missing));
        }
        let mut found = None;
        if data.start < next {
            let quarter = self.timer.smoothed().unwrap_or(0) / 4;
            let seen = self.again(time, data.start, data.end.min(next), number);
            found = match seen {
                // All of it is acknowledged, or was sent before.
                Seen::Acknowledged | Seen::Before => kind,
                Seen::Missing { since, number } if time - since <= quarter && self.dup_acks < 3 => {
                    self.seen.set_arrived(number);
                    self.seen.counts.reordered += 1;
                    None
                }
                Seen::Missing { .. } => {
                    self.seen.counts.lost_upstream += 1;
                    kind
                }
            };
        }
        if data.end > self.board.next() {
            self.board.append(data.end, range(1, number));
        }
        if let (Some(_), Some(kind)) = (found, kind) {
            let repeated = (data.end.min(next) - data.start) as u64;
            self.note_repeat(time, kind, repeated, next);
        }
        found
    }

    /// Marks `from..to` as sent once more, and the packets that had it as lost.
    fn again(&mut self, time: u64, from: i64, to: i64, number: u32) -> Seen {
        let mut seen = Seen::Acknowledged;
        for range in self.board.within(from, to) {
            if range.is_missing() {
                seen = Seen::Missing { since: range.first_sent, number: range.number };
            } else {
                seen = if seen == Seen::Acknowledged { Seen::Before } else { seen };
                if let Some(passed) = self.seen.passed.get_mut(range.number as usize) {
                    passed.is_lost = true;
                }
            }
            range.sends += 1;
            range.last_sent = time;
            range.number = number;
        }
        seen
    }

    /// Counts the gap before a segment, if those of a round trip are several. A sender that paces has none that are much
    /// narrower than the others.
    fn note_gap(&mut self, time: u64, len: u64) {
        let gap = time - std::mem::replace(&mut self.last_data, time);
        let flight = self.board.in_flight();
        let Some(rtt) = self.last_rtt.filter(|_| flight >= LEAST_PACED * len) else { return };
        // Whether it is at least a quarter of the mean, `rtt * len / flight` rounded down.
        let [rtt, len, flight] = [rtt, len, flight.max(1)].map(u128::from);
        self.seen.counts.gaps += 1;
        self.seen.counts.wide_gaps += u64::from((4 * u128::from(gap) + 1) * flight > rtt * len);
    }

    fn note_repeat(&mut self, time: u64, kind: RepeatKind, bytes: u64, next: i64) {
        self.seen.counts.repeated_bytes += bytes;
        match kind {
            RepeatKind::Fast => self.seen.counts.fast += 1,
            RepeatKind::TailProbe => self.seen.counts.tail_probe += 1,
            RepeatKind::Timeout => {
                self.seen.counts.timeout += 1;
                if self.timeout_end.is_none() {
                    self.seen.counts.timeouts += 1;
                    self.timeout_end = Some(next);
                }
            }
        }
        if kind == RepeatKind::TailProbe {
            return;
        }
        self.rounds.is_over = true;
        if self.recovery_end.is_none() {
            self.seen.begin_loss(time, self.last_rtt);
        }
        self.recovery_end.get_or_insert(next);
        if let Some(loss) = self.seen.losses.last_mut() {
            loss.repeats += 1;
        }
    }

    fn take_window(&mut self, time: u64, ack: &Acknowledgement<'_>) {
        let Some(window) = ack.window else {
            // The offer of a SYN, which has no scale, is not that of what comes after it.
            self.edge = None;
            return;
        };
        let edge = ack.place.saturating_add_unsigned(window);
        // Old acknowledgements arrive late: the edge does not move back (RFC 9293 §3.8.6).
        if ack.place >= self.board.una() {
            self.edge = Some(edge);
        }
        self.seen.counts.zero_windows += u64::from(window == 0);
        self.seen.counts.window_max = self.seen.counts.window_max.max(window);
        let least = self.seen.counts.window_min.get_or_insert(window);
        *least = window.min(*least);
        let least = self.seen.slices.at(time).receive_window.get_or_insert(window);
        *least = window.min(*least);
    }

    /// Counts what the receiver had already: DSACK, RFC 2883 §4.
    fn take_duplicates(&mut self, ack: &Acknowledgement<'_>) {
        let Some((left, right)) = ack.blocks.first().copied() else { return };
        let is_within = |outer: Option<&(i64, i64)>| {
            outer.is_some_and(|(from, to)| *from <= left && right <= *to)
        };
        if right <= ack.place || is_within(ack.blocks.get(1)) {
            self.seen.counts.spurious += 1;
            self.note_arrived(left, right);
            if let Some(loss) = self.seen.losses.last_mut() {
                loss.duplicates += 1;
            }
        }
    }

    /// What the receiver had twice was not lost.
    fn note_arrived(&mut self, left: i64, right: i64) {
        for passed in self.seen.passed.iter_mut().rev().take(MOST_BEFORE_DUPLICATE) {
            let is_within = left <= passed.place && passed.place + i64::from(passed.len) <= right;
            if passed.is_lost && is_within {
                passed.is_lost = false;
            }
        }
    }

    fn acknowledge(&mut self, time: u64, ack: &Acknowledgement<'_>) {
        let place = ack.place;
        let mut newest: Option<Range> = None;
        let mut was_repeated = false;
        let (mut overtaken, mut unseen) = (0, 0);
        let highest = self.board.highest_sacked();
        let least = self.least_round_trip(ack);
        let passed = &mut self.seen.passed;
        self.board.acknowledge(place, |range| {
            was_repeated |= range.sends > 1;
            if range.is_missing() {
                unseen += (range.end - range.start) as u64;
                if let Some(passed) = passed.get_mut(range.number as usize) {
                    passed.is_lost = false;
                }
            }
            // Sent once, and later data was acknowledged before it: RFC 8985 §6.2, step 3.
            let is_overtaken = range.sends == 1 && !range.is_sacked && range.end < highest;
            overtaken += u64::from(is_overtaken);
            if is_overtaken && let Some(passed) = passed.get_mut(range.number as usize) {
                passed.set_rtt(time - range.first_sent);
            }
            overtaken += u64::from(note_late(passed, range, time, least));
            newest = Some(*range);
        });
        self.seen.counts.reordered += overtaken;
        self.seen.counts.unseen += unseen;
        // A range that was selectively acknowledged before gave its sample then.
        let sample = newest
            .filter(|range| ack.is_timed && range.sends == 1 && !range.is_sacked && !was_repeated);
        if let Some(range) = sample {
            self.record_rtt(time, &range);
            self.last_rtt = Some(time - range.first_sent);
        }
        self.progressed = time;
        self.dup_acks = 0;
        self.recovery_end = self.recovery_end.filter(|end| place < *end);
        self.timeout_end = self.timeout_end.filter(|end| place < *end);
        self.end_round(place);
    }

    fn sack(&mut self, time: u64, ack: &Acknowledgement<'_>) {
        if ack.blocks.is_empty() {
            return;
        }
        let mut newest: Option<Range> = None;
        let mut overtaken = 0;
        let least = self.least_round_trip(ack);
        let passed = &mut self.seen.passed;
        self.board.sack(ack.blocks.iter().copied(), |range, highest| {
            overtaken += u64::from(range.sends == 1 && range.end < highest);
            overtaken += u64::from(note_late(passed, range, time, least));
            if range.sends == 1 {
                newest = Some(*range);
            }
        });
        self.seen.counts.reordered += overtaken;
        if let Some(range) = newest.filter(|_| ack.is_timed) {
            self.record_rtt(time, &range);
        }
    }

    /// The smallest RTT, if the time of the acknowledgement is known.
    fn least_round_trip(&self, ack: &Acknowledgement<'_>) -> Option<u64> {
        let least = self.seen.rtts.min().map(|rtt| rtt.as_nanos());
        least.filter(|_| ack.is_timed)
    }

    fn record_rtt(&mut self, time: u64, range: &Range) {
        let rtt = time - range.first_sent;
        self.timer.record(rtt);
        self.seen.record_rtt(time, rtt);
        if let Some(passed) = self.seen.passed.get_mut(range.number as usize) {
            passed.set_rtt(rtt);
        }
    }

    fn end_round(&mut self, place: i64) {
        let rounds = &mut self.rounds;
        // A round ends when data is acknowledged that was sent in it.
        if rounds.is_over || place <= rounds.end {
            return;
        }
        rounds.end = self.board.next();
        rounds.count += 1;
        // Slow start ends with the first round that grows by less than a quarter.
        let has_grown = rounds.flight * 4 >= rounds.previous * 5;
        rounds.is_over = rounds.count > FIRST_ROUNDS && !has_grown;
        rounds.previous = rounds.flight;
        rounds.flight = 0;
    }

    /// Adds the time since the last event.
    fn add_time(&mut self, time: u64, hold: Hold) {
        self.seen.slices.hold(self.last_event, time, hold);
        self.last_event = time;
    }

    /// Decides what holds the sender from now on.
    fn settle(&mut self, time: u64) {
        let flight = self.board.in_flight();
        self.rounds.flight = self.rounds.flight.max(flight);
        self.seen.record_flight(time, flight);
        self.hold = if self.is_closed() {
            Hold::Window
        } else if self.board.outstanding() == 0 {
            Hold::Application
        } else if self.is_window_full() {
            Hold::Window
        } else if self.is_short && self.recovery_end.is_none() {
            Hold::Application
        } else {
            self.network_hold()
        };
    }

    fn network_hold(&self) -> Hold {
        if self.rounds.is_over { Hold::Network } else { Hold::SlowStart }
    }

    /// Whether the receiver offers nothing at all.
    fn is_closed(&self) -> bool {
        self.edge.is_some_and(|edge| edge <= self.board.una())
    }

    /// Whether less than three segments fit into the receiver's window (T-RAT, Zhang et al. 2002), or less than a third
    /// of a small one.
    fn is_window_full(&self) -> bool {
        let Some(edge) = self.edge else { return false };
        let window = (edge - self.board.una()).max(0);
        let free = (edge - self.board.next()).max(0);
        free < (3 * i64::from(self.mss)).min(window / 3 + 1)
    }
}

/// Whether a range that was sent twice is acknowledged before its repetition can have arrived: the first transmission came
/// late, after later data (as RFC 3522, by the time in place of the timestamp). It was not lost.
fn note_late(passed: &mut [Passed], range: &Range, time: u64, least: Option<u64>) -> bool {
    let is_late = range.sends == 2
        && !range.is_sacked
        && least.is_some_and(|least| time - range.last_sent < least / 4 * 3);
    if is_late && let Some(passed) = passed.get_mut(range.first_number as usize) {
        passed.set_rtt(time - range.first_sent);
        passed.is_lost = false;
    }
    is_late
}

/// What a repetition repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    /// What was acknowledged.
    Acknowledged,
    /// What was captured before.
    Before,
    /// What should have been captured before, at `since`.
    Missing { since: u64, number: u32 },
}

/// Repetitions by the timer in a row that no answer followed.
const FEWEST_UNANSWERED: u32 = 3;
/// Rounds before growth counts: the first window may wait for the application.
const FIRST_ROUNDS: u32 = 1;
/// Packets sent between a segment and the report that it arrived twice.
const MOST_BEFORE_DUPLICATE: usize = 1 << 10;
/// Segments in flight from which on gaps are counted.
const LEAST_PACED: u64 = 8;
