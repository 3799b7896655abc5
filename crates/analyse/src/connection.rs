//! One TCP connection of a capture: its handshake, and a sender in each direction.

use std::collections::VecDeque;

use crate::clock::Clock;
use crate::copies::Copies;
use crate::echoes::{Echoes, is_before};
use crate::end::End;
use crate::expert::{Expert, ExpertCounts};
use crate::identify::{Evidence, History, Path};
use crate::packet::{ACK, ECE, FIN, RST, SYN, Segment};
use crate::points::{Point, PointKind, Points};
use crate::sender::{Acknowledgement, Data, RepeatKind, Sender};
use crate::sequence::Unwrap;

/// A connection while it is read.
#[derive(Debug)]
pub(crate) struct Connection {
    /// The ends: the client first, as far as the handshake shows.
    pub(crate) ends: [End; 2],
    pub(crate) interface: u32,
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) packets: u64,
    handshake: Handshake,
    sides: [Side; 2],
    expert: Expert,
    /// Packets that the capture has twice.
    pub(crate) duplicates: u64,
    /// Packets whose time is before that of the packet before.
    pub(crate) time_reversals: u64,
    pub(crate) clock: Clock,
    /// Its memory as the table counts it.
    pub(crate) counted: usize,
    is_closed: bool,
}

/// When the packets of the handshake passed.
#[derive(Clone, Copy, Debug, Default)]
struct Handshake {
    syn: Option<u64>,
    syn_ack: Option<u64>,
    ack: Option<u64>,
    /// A repeated SYN or SYN-ACK makes its times ambiguous.
    is_repeated: bool,
}

/// One direction: what this end sends.
#[derive(Debug, Default)]
struct Side {
    unwrap: Unwrap,
    sender: Option<Box<Sender>>,
    points: Points,
    history: History,
    scale: Option<u8>,
    mss: Option<u16>,
    /// The longest payload that the announced sizes allow.
    longest: u32,
    has_timestamps: bool,
    has_sack: bool,
    has_ecn: bool,
    /// With all of its options.
    has_syn: bool,
    /// The most frequent payload, by majority vote.
    usual: (u32, u32),
    /// The offer of the other end before there is data: acknowledged place and window.
    offer: Option<(i64, u64)>,
    /// Acknowledgements that have not reached this end yet.
    pending: VecDeque<Pending>,
    /// How long the newest of them took to reach this end.
    way: Option<u64>,
    /// When the last data passed, and whether its segment was full.
    last_data: Option<(u64, bool)>,
    last_ack: Option<u32>,
    last_window: Option<u16>,
    fin: Option<i64>,
    copies: Copies,
    /// Packets of this end.
    packets: u64,
    /// Timestamps that travel to this end, without a handshake.
    echoes: Echoes,
}

/// An acknowledgement between the place of the capture and the sender.
#[derive(Clone, Debug)]
struct Pending {
    captured: u64,
    place: i64,
    window: Option<u64>,
    segment: Segment,
    is_duplicate: bool,
}

impl Pending {
    fn timestamp(&self) -> Option<u32> {
        self.segment.timestamps.map(|(value, _)| value)
    }

    /// Whether data that echoes `echo` was sent after this had arrived.
    fn is_echoed(&self, echo: Option<u32>) -> bool {
        matches!((self.timestamp(), echo), (Some(value), Some(echo)) if !is_before(echo, value))
    }
}

/// Where a capture was made, seen from the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CapturePoint {
    Sender,
    Middle,
    Receiver,
    Unknown,
}

impl Connection {
    /// A connection whose first packet goes from `source` to `destination`.
    pub(crate) fn new(
        time: u64,
        interface: u32,
        source: End,
        destination: End,
        first: &Segment,
    ) -> Self {
        let is_reply = first.has(SYN) && first.has(ACK);
        let ends = if is_reply { [destination, source] } else { [source, destination] };
        Self {
            ends,
            interface,
            first: time,
            last: time,
            packets: 0,
            handshake: Handshake::default(),
            sides: Default::default(),
            expert: Expert::default(),
            duplicates: 0,
            time_reversals: 0,
            clock: Clock::default(),
            counted: 0,
            is_closed: false,
        }
    }

    /// Whether `segment` begins another connection between the same ports.
    pub(crate) fn is_over_before(&self, segment: &Segment) -> bool {
        segment.has(SYN) && !segment.has(ACK) && self.is_closed
    }

    /// Processes a packet from `source`.
    pub(crate) fn handle(&mut self, time: u64, source: End, id: u16, segment: &Segment) {
        let from = usize::from(source != self.ends[0]);
        let (raw_time, steps) = (time, self.clock.steps());
        let time = self.clock.time(time);
        if self.sides[from].copies.contains(time, id, segment) {
            self.duplicates += 1;
            return;
        }
        self.packets += 1;
        self.sides[from].packets += 1;
        let has_stepped = self.clock.steps() > steps;
        self.time_reversals += u64::from(time < self.last || has_stepped);
        let time = time.max(self.last);
        self.last = time;
        self.is_closed |= segment.has(RST | FIN);
        self.note_handshake(time, from, segment);
        self.expert.handle(raw_time, from, segment);
        self.note_options(from, segment);
        self.note_echoes(time, from, segment);
        if segment.has(RST) {
            return;
        }
        // The acknowledgement that a data segment carries had left before its data.
        if segment.has(ACK) {
            self.take_ack(time, from, segment);
        }
        self.take_data(time, from, segment);
    }

    /// Passes what is still on its way to the senders.
    pub(crate) fn finish(&mut self) {
        for side in &mut self.sides {
            side.release(u64::MAX, self.last, None);
            if let Some(sender) = &mut side.sender {
                sender.finish(self.last);
            }
        }
    }

    /// Bytes of memory that it takes, about.
    pub(crate) fn memory(&self) -> usize {
        let sides = self.sides.iter().map(|side| {
            let sender = side.sender.as_ref().map_or(0, |sender| sender.memory());
            let pending = side.pending.len() * size_of::<Pending>();
            let kept = size_of_val(side.points.list()) + side.history.memory();
            sender + pending + kept + side.copies.memory()
        });
        size_of::<Self>() + sides.sum::<usize>()
    }

    /// The end that sent more data: 0 the client.
    pub(crate) fn sending_side(&self) -> usize {
        let bytes = |side: &Side| side.sender.as_ref().map_or(0, |sender| sender.counts().bytes);
        usize::from(bytes(&self.sides[1]) > bytes(&self.sides[0]))
    }

    pub(crate) fn sender(&self, side: usize) -> Option<&Sender> {
        self.sides[side].sender.as_deref()
    }

    pub(crate) fn points(&self, side: usize) -> &Points {
        &self.sides[side].points
    }

    /// Takes out what shows the congestion control of `side`.
    pub(crate) fn take_evidence(&mut self, side: usize) -> Evidence {
        let path = Path {
            mss: self.mss(side),
            round_trip: self.handshake_rtt(),
            has_sack: self.has_sack(),
            has_ecn: self.sides.iter().all(|side| side.has_ecn),
        };
        let is_at_receiver = self.capture_point(side) == CapturePoint::Receiver;
        let is_one_way = self.is_one_way(side);
        let history = std::mem::take(&mut self.sides[side].history);
        Evidence { history, path, is_at_receiver, is_one_way }
    }

    fn has_sack(&self) -> bool {
        self.sides.iter().all(|side| side.has_sack || !side.has_syn)
    }

    pub(crate) fn expert(&self) -> ExpertCounts {
        self.expert.counts()
    }

    /// From SYN to the client's first acknowledgement: a whole round trip wherever the capture was made.
    pub(crate) fn handshake_rtt(&self) -> Option<u64> {
        let Handshake { syn, ack, is_repeated, .. } = self.handshake;
        if is_repeated { None } else { ack?.checked_sub(syn?) }
    }

    /// Between the place of the capture and the end `side`, and back.
    fn way_to(&self, side: usize) -> Option<u64> {
        let Handshake { syn, syn_ack, ack, is_repeated } = self.handshake;
        if is_repeated {
            return None;
        }
        if side == 0 { ack?.checked_sub(syn_ack?) } else { syn_ack?.checked_sub(syn?) }
    }

    /// Where the capture was made, seen from the end `side`: below a tenth of the round trip is at this end.
    pub(crate) fn capture_point(&self, side: usize) -> CapturePoint {
        let (Some(near), Some(whole)) = (self.way_to(side), self.handshake_rtt()) else {
            return self.place_by_answers(side);
        };
        match near * 10 {
            near if near <= whole => CapturePoint::Sender,
            near if near >= whole * 9 => CapturePoint::Receiver,
            _ => CapturePoint::Middle,
        }
    }

    /// The same without a handshake: an end that answers at once is where the capture was made, if the other takes twenty
    /// times as long.
    fn place_by_answers(&self, side: usize) -> CapturePoint {
        let (Some(near), Some(far)) = (self.answer_of(side), self.answer_of(1 - side)) else {
            return CapturePoint::Unknown;
        };
        match (near * MUCH_LONGER <= far, far * MUCH_LONGER <= near) {
            (true, false) => CapturePoint::Sender,
            (false, true) => CapturePoint::Receiver,
            _ => CapturePoint::Unknown,
        }
    }

    /// The least time until the end `side` acknowledged data or echoed a timestamp.
    fn answer_of(&self, side: usize) -> Option<u64> {
        let to_it = self.sides[1 - side].sender.as_ref();
        let of_data = to_it.and_then(|sender| sender.measured().rtts.min());
        let of_data = of_data.map(|rtt| rtt.as_nanos());
        of_data.into_iter().chain(self.sides[side].echoes.least()).min()
    }

    /// Whether nothing of what acknowledges the data of `side` was captured.
    pub(crate) fn is_one_way(&self, side: usize) -> bool {
        self.sides[1 - side].packets == 0
    }

    /// Whether the handshake was captured, with the scales of windows.
    pub(crate) fn has_handshake(&self) -> bool {
        self.sides.iter().all(|side| side.has_syn)
    }

    /// The largest payload of a segment of `side`: what both ends announced, without timestamps (RFC 6691 §2), unless the
    /// sender fills all of it. Without a handshake it is the most frequent payload.
    pub(crate) fn mss(&self, side: usize) -> u32 {
        let own = &self.sides[side];
        match self.announced(side) {
            Some(mss) if self.has_handshake() => {
                let options = if own.has_timestamps { TIMESTAMP_OPTION } else { 0 };
                u32::from(mss).saturating_sub(options).max(1).max(own.longest)
            }
            _ if (1..=LARGEST_FRAME).contains(&own.usual.0) => own.usual.0,
            _ => USUAL_MSS,
        }
    }

    /// Bytes of headers of a data packet of `side`.
    pub(crate) fn header(&self, side: usize) -> u32 {
        let ip = if self.ends[side].is_ipv4() { 20 } else { 40 };
        ip + 20 + if self.sides[side].has_timestamps { TIMESTAMP_OPTION } else { 0 }
    }

    fn announced(&self, side: usize) -> Option<u16> {
        self.sides[side].mss.into_iter().chain(self.sides[1 - side].mss).min()
    }

    /// Without a handshake the times of echoes show where the capture was made.
    fn note_echoes(&mut self, time: u64, from: usize, segment: &Segment) {
        let Some((value, echo)) = segment.timestamps.filter(|_| !self.has_handshake()) else {
            return;
        };
        self.sides[1 - from].echoes.note_sent(time, value);
        self.sides[from].echoes.note_echo(time, echo);
    }

    fn note_handshake(&mut self, time: u64, from: usize, segment: &Segment) {
        let handshake = &mut self.handshake;
        let place = match (segment.has(SYN), segment.has(ACK)) {
            (true, false) => &mut handshake.syn,
            (true, true) => &mut handshake.syn_ack,
            (false, true) if from == 0 && handshake.ack.is_none() => {
                handshake.ack = Some(time);
                let syn = handshake.syn;
                if let (Some(syn), Some(rtt)) = (syn, self.handshake_rtt()) {
                    let scales = [0, 1].map(|side| self.scale(side).unwrap_or(0));
                    self.expert.set_handshake(syn, rtt, scales);
                }
                return;
            }
            _ => return,
        };
        handshake.is_repeated |= place.is_some();
        *place = Some(time);
    }

    fn note_options(&mut self, from: usize, segment: &Segment) {
        let side = &mut self.sides[from];
        side.unwrap.start(segment.seq);
        side.has_timestamps = segment.timestamps.is_some();
        if segment.has(SYN) {
            side.has_syn = !segment.is_cut;
            side.mss = segment.mss;
            side.has_sack = segment.sack_permitted;
            side.has_ecn = segment.has(ECE);
            side.scale = segment.window_scale;
        }
    }

    /// Bits that the windows of `side` are shifted by: 0 unless both ends announced it (RFC 7323 §2.2), unknown without a
    /// handshake.
    fn scale(&self, side: usize) -> Option<u8> {
        match [side, 1 - side].map(|side| (self.sides[side].has_syn, self.sides[side].scale)) {
            [(true, Some(scale)), (true, Some(_))] => Some(scale),
            [(true, _), (true, _)] => Some(0),
            _ => None,
        }
    }

    fn take_ack(&mut self, time: u64, from: usize, segment: &Segment) {
        let scale = if segment.has(SYN) { Some(0) } else { self.scale(from) };
        // Nothing times any scale is nothing.
        let scale = scale.or((segment.window == 0).then_some(0));
        let window = scale.map(|scale| u64::from(segment.window) << scale);
        let to = 1 - from;
        let point = self.capture_point(to);
        let way = if point == CapturePoint::Sender { None } else { self.way_to(to) };
        let side = &mut self.sides[to];
        side.unwrap.start(segment.ack);
        let Some(place) = side.unwrap.peek(segment.ack) else { return };
        let place = side.fin.map_or(place, |fin| place.min(fin));
        let is_duplicate = segment.payload == 0
            && !segment.has(SYN | FIN)
            && side.last_ack == Some(segment.ack)
            && (side.last_window == Some(segment.window) || !segment.sack.is_empty());
        (side.last_ack, side.last_window) = (Some(segment.ack), Some(segment.window));
        if side.sender.is_none() {
            side.offer = window.map(|window| (place, window)).or(side.offer);
            return;
        }
        side.points.push(Point { time, start: place, end: place, kind: PointKind::Ack });
        side.way = side.way.or(way);
        let (segment, captured) = (*segment, time);
        let pending = Pending { captured, place, window, segment, is_duplicate };
        if side.way.is_none() && side.pending.is_empty() {
            side.pass(time, true, &pending);
            return;
        }
        side.pending.push_back(pending);
        // What arrives at once, or what would take too much memory.
        let is_full = side.pending.len() > MOST_PENDING;
        let until = if way.is_none() || is_full { u64::MAX } else { time };
        side.release(until, time, None);
    }

    fn take_data(&mut self, time: u64, from: usize, segment: &Segment) {
        if self.announced(from).is_some_and(|mss| segment.payload <= u32::from(mss)) {
            let longest = &mut self.sides[from].longest;
            *longest = segment.payload.max(*longest);
        }
        let mss = self.mss(from);
        let round_trip = self.handshake_rtt();
        let has_sack = self.has_sack();
        let side = &mut self.sides[from];
        let first = segment.seq.wrapping_add(u32::from(segment.has(SYN)));
        let Some(start) = side.unwrap.peek(first) else { return };
        let end = start + i64::from(segment.payload);
        if segment.has(FIN) {
            side.fin = Some(end);
        }
        // What is before the first number is repeated, or was late when the capture began.
        if segment.payload == 0 || start < -FARTHEST_BEFORE {
            return;
        }
        side.vote(segment.payload);
        side.unwrap.place(first.wrapping_add(segment.payload));
        let offer = side.offer;
        let echo = segment.timestamps.map(|(_, echo)| echo);
        side.release(time, time, echo);
        side.last_data = Some((time, segment.payload >= mss));
        let sender = side.sender.get_or_insert_with(|| {
            let mut sender = Box::new(Sender::new(time, start, round_trip, has_sack));
            if let Some((place, window)) = offer {
                sender.offer(place, window);
            }
            sender
        });
        let is_keep_alive = segment.payload == 1 && end == sender.next();
        if is_keep_alive {
            return;
        }
        side.history.record_sent(time, (start, end), segment);
        let kind = match sender.on_data(time, Data { start, end, mss }) {
            None => PointKind::Data,
            Some(RepeatKind::Fast) => PointKind::Fast,
            Some(RepeatKind::Timeout) => PointKind::Timeout,
            Some(RepeatKind::TailProbe) => PointKind::TailProbe,
        };
        side.points.push(Point { time, start, end, kind });
    }
}

impl Side {
    /// Passes acknowledgements to the sender that have reached it until `time`, or that `echo` proves to have reached it.
    /// `now` is the time of the packet in hand.
    fn release(&mut self, time: u64, now: u64, echo: Option<u32>) {
        self.measure_way(now, echo);
        while let Some(pending) = self.pending.front() {
            let value = pending.timestamp();
            let is_echoed = pending.is_echoed(echo);
            let due = pending.captured.saturating_add(self.way.unwrap_or(0));
            // Data with older echoes left before it arrived.
            let may_be_echoed = self.has_timestamps && value.is_some() && self.way.is_some();
            let waits = may_be_echoed && time < pending.captured.saturating_add(LONGEST_WAY);
            if !is_echoed && (waits || due > time) {
                return;
            }
            // What is passed before it is due has no time at the sender: the capture ended, or memory did.
            let is_timed = is_echoed || due <= now;
            let reached = due.min(now).max(pending.captured);
            let Some(pending) = self.pending.pop_front() else { return };
            self.pass(reached, is_timed, &pending);
        }
    }

    /// Data at `now` echoes acknowledgements. The newest of them let the sender send it, and is the first one with its
    /// timestamp.
    fn measure_way(&mut self, now: u64, echo: Option<u32>) {
        let echoed = self.pending.iter().take_while(|pending| pending.is_echoed(echo));
        let Some(newest) = echoed.last().and_then(Pending::timestamp) else { return };
        let first = self.pending.iter().find(|pending| pending.timestamp() == Some(newest));
        if let Some(first) = first
            && self.is_continuous(now)
        {
            self.way = Some(now - first.captured).filter(|way| *way < LONGEST_WAY).or(self.way);
        }
    }

    /// Whether data at `now` follows the data before without a pause, so that no application held it.
    fn is_continuous(&self, now: u64) -> bool {
        let (Some((last, is_full)), Some(way)) = (self.last_data, self.way) else { return false };
        let pause = now.saturating_sub(last);
        pause <= way / 4 || (is_full && pause <= way * 2)
    }

    fn pass(&mut self, time: u64, is_timed: bool, pending: &Pending) {
        let Some(sender) = &mut self.sender else { return };
        let mut blocks = [(0, 0); 4];
        let mut count = 0;
        for (left, right) in pending.segment.sack.iter() {
            if let (Some(left), Some(right)) = (self.unwrap.peek(left), self.unwrap.peek(right)) {
                blocks[count] = (left, right);
                count += 1;
            }
        }
        let blocks = &blocks[..count];
        self.history.record_ack(time, pending.place, pending.window, blocks, &pending.segment);
        sender.on_ack(
            time,
            &Acknowledgement {
                place: pending.place,
                window: pending.window,
                is_timed,
                blocks,
                is_duplicate: pending.is_duplicate,
            },
        );
    }

    /// Boyer and Moore's majority vote over the payloads.
    fn vote(&mut self, payload: u32) {
        match &mut self.usual {
            (usual, count) if *usual == payload => *count = count.saturating_add(1),
            (_, count) if *count > 0 => *count -= 1,
            usual => *usual = (payload, 1),
        }
    }
}

impl CapturePoint {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Middle => "middle",
            Self::Receiver => "receiver",
            Self::Unknown => "unknown",
        }
    }
}

/// Bytes of the timestamps option with its padding.
const TIMESTAMP_OPTION: u32 = 12;
/// A longer payload was merged by offload.
const LARGEST_FRAME: u32 = 8_960;
const USUAL_MSS: u32 = 1_448;
/// Bytes before the first number that a window may have.
const FARTHEST_BEFORE: i64 = 1 << 30;
/// How many times longer the far end takes to answer than the near one.
const MUCH_LONGER: u64 = 20;
const MOST_PENDING: usize = 1 << 14;
/// A later echo was held by the application.
const LONGEST_WAY: u64 = 10_000_000_000;
