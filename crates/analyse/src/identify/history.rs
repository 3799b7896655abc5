//! What a sender did and which acknowledgements reached it, in order: what a replay repeats.

use weir_units::Instant;

use crate::packet::{ACK, ECE, Segment};

/// The first events of a connection, in 32 bytes each and 8 per SACK block.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    events: Vec<Event>,
    blocks: Vec<(u32, u32)>,
    /// The time of the first event, and the place of the first data.
    start: Option<(u64, i64)>,
    /// The byte after the last one sent, and the first that is not acknowledged.
    next: u64,
    una: u64,
    clock: Clock,
    /// Bytes that were acknowledged or skipped and never captured.
    unseen: u64,
    repeats: u32,
    most_outstanding: u64,
    /// The time of the last event. A capture may have packets out of order; times of a replay do not decrease.
    now: u64,
    is_over: bool,
}

#[derive(Clone, Copy, Debug)]
struct Event {
    time: u64,
    /// The first byte sent, or the first that is not acknowledged.
    place: u32,
    /// Bytes sent, or the receiver's window.
    size: u32,
    value: u32,
    echo: u32,
    kind: Kind,
    blocks: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Sent,
    Ack { has_window: bool, has_timestamps: bool, carries_data: bool, echoes_mark: bool },
}

/// How the sender's timestamps follow the time of the capture.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    offset: Option<u32>,
    /// They do not count milliseconds.
    is_other: bool,
}

/// An event as a replay takes it.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Bytes that were sent.
    Sent(u64, u64),
    Ack(Ack),
}

/// An acknowledgement, in bytes from the first data on.
#[derive(Clone, Debug)]
pub(super) struct Ack {
    pub(super) place: u64,
    pub(super) window: Option<u64>,
    pub(super) blocks: [(u64, u64); 4],
    pub(super) count: usize,
    /// The receiver's timestamp, and the echo in milliseconds of the replay's clock.
    pub(super) timestamps: Option<(u32, u32)>,
    pub(super) carries_data: bool,
    pub(super) echoes_mark: bool,
}

impl History {
    /// Data was sent.
    pub(crate) fn record_sent(&mut self, time: u64, range: (i64, i64), segment: &Segment) {
        let (first, place) = *self.start.get_or_insert((time, range.0));
        let (Some(start), Some(end)) = (offset(range.0, place), offset(range.1, place)) else {
            return;
        };
        if !self.has_space(start.max(end), time, first) {
            return;
        }
        let time = self.follow(time - first);
        if let Some((value, _)) = segment.timestamps {
            self.clock.follow(value, instant(time));
        }
        self.unseen += u64::from(start).saturating_sub(self.next);
        self.repeats += u32::from(u64::from(start) < self.next);
        self.next = self.next.max(u64::from(end));
        let (size, kind) = (end - start, Kind::Sent);
        self.events.push(Event { time, place: start, size, value: 0, echo: 0, kind, blocks: 0 });
    }

    /// An acknowledgement reached the sender.
    pub(crate) fn record_ack(
        &mut self,
        time: u64,
        place: i64,
        window: Option<u64>,
        blocks: &[(i64, i64)],
        segment: &Segment,
    ) {
        let Some((first, base)) = self.start else { return };
        let Some(una) = offset(place, base) else { return };
        if !self.has_space(una, time, first) {
            return;
        }
        let time = self.follow(time - first);
        self.unseen += u64::from(una).saturating_sub(self.next);
        self.next = self.next.max(u64::from(una));
        self.una = self.una.max(u64::from(una));
        let before = self.blocks.len();
        let of_base = |at: i64| offset(at, base).filter(|at| u64::from(*at) <= self.next);
        self.blocks.extend(blocks.iter().filter_map(|(l, r)| Some((of_base(*l)?, of_base(*r)?))));
        let (value, echo) = segment.timestamps.unwrap_or_default();
        self.events.push(Event {
            time,
            place: una,
            size: window.map_or(0, |window| window.min(u64::from(u32::MAX)) as u32),
            value,
            echo,
            kind: Kind::Ack {
                has_window: window.is_some(),
                has_timestamps: segment.timestamps.is_some(),
                carries_data: segment.payload > 0,
                echoes_mark: segment.has(ECE) && segment.has(ACK),
            },
            blocks: (self.blocks.len() - before) as u8,
        });
    }

    /// Bytes of memory that it takes, about.
    pub(crate) fn memory(&self) -> usize {
        size_of_val(self.events.as_slice()) + size_of_val(self.blocks.as_slice())
    }

    /// Bytes sent, as far as events were kept.
    pub(super) fn bytes(&self) -> u64 {
        self.next
    }

    /// Packets of data.
    pub(super) fn packets(&self) -> u64 {
        self.events.iter().filter(|event| event.kind == Kind::Sent).count() as u64
    }

    /// Bytes that were acknowledged or skipped and never captured.
    pub(super) fn unseen(&self) -> u64 {
        self.unseen
    }

    /// Packets that were sent again.
    pub(super) fn repeats(&self) -> u32 {
        self.repeats
    }

    /// The most bytes that were not acknowledged.
    pub(super) fn most_outstanding(&self) -> u64 {
        self.most_outstanding
    }

    /// The receiver's first window.
    pub(super) fn first_window(&self) -> Option<u64> {
        let mut windows = self.events.iter().filter_map(|event| match event.kind {
            Kind::Ack { has_window: true, .. } => Some(u64::from(event.size)),
            _ => None,
        });
        windows.next()
    }

    /// The events with their times, in order.
    pub(super) fn steps(&self) -> impl Iterator<Item = (Instant, Step)> {
        let mut from = 0;
        self.events.iter().map(move |event| {
            let blocks = &self.blocks[from..from + usize::from(event.blocks)];
            from += usize::from(event.blocks);
            (instant(event.time), self.step(event, blocks))
        })
    }

    fn step(&self, event: &Event, blocks: &[(u32, u32)]) -> Step {
        let place = u64::from(event.place);
        let Kind::Ack { has_window, has_timestamps, carries_data, echoes_mark } = event.kind else {
            return Step::Sent(place, place + u64::from(event.size));
        };
        let mut sack = [(0, 0); 4];
        for (free, (left, right)) in sack.iter_mut().zip(blocks) {
            *free = (u64::from(*left), u64::from(*right));
        }
        let offset = self.clock.offset.filter(|_| !self.clock.is_other && has_timestamps);
        Step::Ack(Ack {
            place,
            window: has_window.then_some(u64::from(event.size)),
            blocks: sack,
            count: blocks.len().min(sack.len()),
            timestamps: offset.map(|offset| (event.value, event.echo.wrapping_sub(offset))),
            carries_data,
            echoes_mark,
        })
    }

    fn follow(&mut self, time: u64) -> u64 {
        self.now = self.now.max(time);
        self.now
    }

    /// Whether one more event is kept. What comes after the first that is not is left out.
    fn has_space(&mut self, end: u32, time: u64, first: u64) -> bool {
        let outstanding = u64::from(end).saturating_sub(self.una);
        self.is_over |= self.events.len() >= MOST_EVENTS
            || outstanding > MOST_OUTSTANDING
            || time < first
            || time - first > LONGEST;
        self.most_outstanding = self.most_outstanding.max(outstanding);
        !self.is_over
    }
}

impl Clock {
    fn follow(&mut self, value: u32, now: Instant) {
        let offset = value.wrapping_sub((now.as_nanos() / 1_000_000) as u32);
        let known = *self.offset.get_or_insert(offset);
        self.is_other |= (offset.wrapping_sub(known) as i32).unsigned_abs() > CLOCK_TOLERANCE;
    }
}

/// The time of a replay: it does not begin at zero, which stands for "never".
fn instant(nanos: u64) -> Instant {
    Instant::from_nanos(BEGIN + nanos)
}

fn offset(place: i64, base: i64) -> Option<u32> {
    u32::try_from(place.checked_sub(base)?).ok()
}

const BEGIN: u64 = 1_000_000_000;
/// Data packets and acknowledgements that are kept.
const MOST_EVENTS: usize = 1 << 16;
/// Bytes in flight up to which a replay follows.
const MOST_OUTSTANDING: u64 = 16 << 20;
/// An hour.
const LONGEST: u64 = 3_600_000_000_000;
/// Milliseconds by which timestamps may lag behind the capture.
const CLOCK_TOLERANCE: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    /// A capture of several processors may have packets out of order by some microseconds.
    #[test]
    fn times_do_not_decrease() {
        let mut history = History::default();
        let segment = Segment { flags: ACK, payload: 1_000, ..Segment::default() };
        for (number, time) in [(0, 5_000), (1, 7_000), (2, 6_000), (3, 9_000)] {
            history.record_sent(time, (number * 1_000, (number + 1) * 1_000), &segment);
        }
        history.record_ack(8_000, 1_000, None, &[], &segment);
        let times: Vec<_> = history.steps().map(|(now, _)| now.as_nanos() - BEGIN).collect();
        assert_eq!(times, [0, 2_000, 2_000, 4_000, 4_000]);
    }
}
