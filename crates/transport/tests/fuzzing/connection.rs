//! A connection against a peer, an application and a clock that do anything, in any order.
//!
//! The input's bytes are read as a list of operations. Numbers in segments are mostly near those that
//! the connection expects, so that more than the first check is reached.

use weir_transport::{
    Config, Connection, DelayedAck, Event, Flags, HostProfile, Options, SackBlock, SackBlocks,
    Segment, SeqNum, Timestamps,
};
use weir_units::{Bytes, Duration, Ecn, Instant, Rate, stream};

/// Runs the operations and checks after each what must hold whatever came.
pub(crate) fn check(input: &[u8]) {
    let mut bytes = Input(input);
    let mut harness = Harness::new(&mut bytes);
    harness.settle();
    while !bytes.0.is_empty() {
        harness.operate(&mut bytes);
        harness.settle();
        harness.check();
    }
}

/// The rest of the input; zeros once it is used up.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn u8(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn u16(&mut self) -> u16 {
        u16::from_be_bytes([self.u8(), self.u8()])
    }

    fn u32(&mut self) -> u32 {
        u32::from(self.u16()) << 16 | u32::from(self.u16())
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::from(self.u8()) % from.len()]
    }

    /// A number at `base`, near it, or anywhere.
    fn near(&mut self, base: SeqNum) -> SeqNum {
        match self.u8() {
            0..160 => base,
            160..200 => base + u32::from(self.u16()),
            200..240 => base - u32::from(self.u16()),
            _ => SeqNum(self.u32()),
        }
    }
}

struct Harness {
    connection: Connection,
    now: Instant,
    recv_buffer: u64,
    written: u64,
    read: u64,
    /// What left, a segment of data as at least a whole one.
    sent: Bytes,
    /// The next number that the connection expects, as it last said.
    expected: SeqNum,
    /// One past the highest number that it has sent.
    sent_to: SeqNum,
    /// The newest timestamp that it has sent.
    timestamp: u32,
    over: bool,
}

impl Harness {
    fn new(input: &mut Input<'_>) -> Self {
        let config = config(input);
        let now = Instant::from_nanos(1_000_000_000);
        let rng = stream(u64::from(input.u8()), "fuzz");
        let connection = match input.u8() % 2 {
            0 => Connection::connect(&config, now, rng),
            _ => Connection::listen(&config, rng),
        };
        Self {
            connection,
            now,
            recv_buffer: config.recv_buffer.get(),
            written: 0,
            read: 0,
            sent: Bytes::ZERO,
            expected: SeqNum(input.u32()),
            sent_to: SeqNum(0),
            timestamp: 0,
            over: false,
        }
    }

    fn operate(&mut self, input: &mut Input<'_>) {
        match input.u8() {
            0..24 => self.advance(input),
            24..56 => self.run_to_timeout(),
            56..88 => self.write(u64::from(input.u16())),
            88..112 => {
                self.read += self.connection.read(self.now, u64::from(input.u16()));
            }
            112..116 => self.connection.close(self.now),
            116..117 => self.connection.abort(self.now),
            117..119 => {
                let window = u64::from(input.u16()) << (input.u8() % 16);
                self.connection.set_recv_window(Bytes(window));
            }
            119..133 => self.handshake(input),
            133..180 => self.acknowledge(input),
            180..220 => self.deliver(input),
            _ => self.anything(input),
        }
    }

    /// From a nanosecond to some hours.
    fn advance(&mut self, input: &mut Input<'_>) {
        let by = u64::from(input.u16()) << (input.u8() % 28);
        self.now += Duration::from_nanos(by);
    }

    fn run_to_timeout(&mut self) {
        if let Some(at) = self.connection.next_timeout(self.now) {
            self.now = self.now.max(at.min(self.now + Duration::from_secs(3600)));
        }
    }

    fn write(&mut self, bytes: u64) {
        if self.written < MAX_WRITTEN {
            self.written += bytes;
            self.connection.write(self.now, bytes);
        }
    }

    /// A SYN, with an acknowledgement where one is due.
    fn handshake(&mut self, input: &mut Input<'_>) {
        let flags = input.pick(&[Flags::SYN, Flags::SYN.with(Flags::ACK)]);
        let options = Options {
            mss: input.pick(&[None, Some(0), Some(536), Some(1_448), Some(u16::MAX)]),
            window_scale: input.pick(&[None, Some(0), Some(7), Some(14)]),
            sack_permitted: input.u8() < 192,
            timestamps: self.timestamps(input),
            ..Options::default()
        };
        let segment = Segment { options, ..self.segment(input, flags) };
        self.handle(&segment);
    }

    /// Something that acknowledges, with SACK blocks near what was sent.
    fn acknowledge(&mut self, input: &mut Input<'_>) {
        let mut segment = self.segment(input, Flags::ACK);
        let back = u32::from(input.u16()) * u32::from(input.u8() % 2);
        segment.ack = segment.ack - back;
        for _ in 0..input.u8() % 5 {
            let start = segment.ack + u32::from(input.u16());
            let end = start + u32::from(input.u16() % 4_000);
            segment.options.sack.push(SackBlock { start, end });
        }
        self.handle(&segment);
    }

    /// Data, next or after a hole, sometimes the last.
    fn deliver(&mut self, input: &mut Input<'_>) {
        let fin = if input.u8() < 8 { Flags::FIN } else { Flags::default() };
        let mut segment = self.segment(input, Flags::ACK.with(fin));
        segment.payload_len = u32::from(input.u16() % 3_000);
        self.handle(&segment);
    }

    fn anything(&mut self, input: &mut Input<'_>) {
        let flags = Flags(input.u8());
        let mut segment = self.segment(input, flags);
        segment.payload_len = u32::from(input.u16());
        let count = input.u8() % 5;
        let mut sack = SackBlocks::default();
        for _ in 0..count {
            sack.push(SackBlock { start: SeqNum(input.u32()), end: SeqNum(input.u32()) });
        }
        segment.options.sack = sack;
        self.handle(&segment);
    }

    fn segment(&self, input: &mut Input<'_>, flags: Flags) -> Segment {
        Segment {
            seq: input.near(self.expected),
            ack: input.near(self.sent_to),
            flags,
            window: input.pick(&[0, 1, 500, 5_000, u16::MAX]),
            payload_len: 0,
            options: Options { timestamps: self.timestamps(input), ..Options::default() },
        }
    }

    fn timestamps(&self, input: &mut Input<'_>) -> Option<Timestamps> {
        let clock = (self.now.as_nanos() / 1_000_000) as u32;
        match input.u8() {
            0..16 => None,
            16..240 => Some(Timestamps { value: clock, echo: self.timestamp }),
            _ => Some(Timestamps { value: input.u32(), echo: input.u32() }),
        }
    }

    fn handle(&mut self, segment: &Segment) {
        let ecn = match segment.ack.0 % 8 {
            0 => Ecn::Ce,
            1..6 => Ecn::Ect0,
            _ => Ecn::NotEct,
        };
        let arrived = self.connection.handle_segment(self.now, segment, ecn);
        if let Some(arrived) = arrived {
            assert!(arrived.len > 0, "{arrived:?}");
            let end = u64::from(arrived.skip) + u64::from(arrived.len);
            assert!(end <= u64::from(segment.payload_len), "{arrived:?} of {segment:?}");
            let edge = self.read + self.recv_buffer;
            assert!(arrived.offset + u64::from(arrived.len) <= edge, "{arrived:?} beyond {edge}");
        }
    }

    /// What a driver does after each call.
    fn settle(&mut self) {
        for _ in 0..MAX_TIMEOUTS {
            self.drain();
            let due = self.connection.next_timeout(self.now).is_some_and(|at| at <= self.now);
            if !due {
                return;
            }
            self.connection.handle_timeout(self.now);
        }
        panic!("a deadline stays due: {:?}", self.connection);
    }

    fn drain(&mut self) {
        for _ in 0..MAX_BURST {
            let Some(transmit) = self.connection.poll_transmit(self.now) else {
                while let Some(event) = self.connection.poll_event() {
                    assert!(!self.over, "{event:?} after the end");
                    self.over = matches!(event, Event::Closed | Event::Failed(_));
                }
                self.connection.poll_rtt_sample();
                return;
            };
            let segment = transmit.segment;
            assert!(segment.header_len() <= 60, "{segment:?}");
            let end = transmit.offset + u64::from(segment.payload_len);
            assert!(segment.payload_len == 0 || end <= self.written, "{transmit:?}");
            if segment.flags.contains(Flags::ACK) {
                self.expected = segment.ack;
            }
            if segment.seq_len() > 0 {
                let whole = self.connection.snapshot().mss;
                self.sent += whole.max(Bytes(u64::from(segment.seq_len())));
            }
            self.sent_to = segment.seq + segment.seq_len();
            self.timestamp = segment.options.timestamps.map_or(0, |ts| ts.value);
        }
        panic!("more than {MAX_BURST} segments at once: {:?}", self.connection);
    }

    fn check(&self) {
        let (connection, stats) = (&self.connection, self.connection.stats());
        assert!(connection.readable() <= self.recv_buffer);
        assert_eq!(stats.delivered_bytes, self.read + connection.readable());
        assert!(stats.acked_bytes <= self.written);
        let snapshot = connection.snapshot();
        assert!(snapshot.bytes_in_flight <= self.sent, "{snapshot:?}");
        assert!(snapshot.cwnd > Bytes::ZERO && snapshot.rto > Duration::ZERO, "{snapshot:?}");
        assert_eq!(connection.is_closed(), self.over);
        if self.over {
            assert_eq!(connection.next_timeout(self.now), None);
        }
    }
}

fn config(input: &mut Input<'_>) -> Config {
    let recovery = input.pick(&[
        "stop-and-wait",
        "go-back-n",
        "go-back-n(5)",
        "selective-repeat",
        "selective-repeat(5)",
        "reno",
        "newreno",
        "sack",
        "rack",
    ]);
    let controller = input
        .pick(&["none", "none(5)", "reno", "cubic", "bbr", "vegas", "veno", "westwood", "dctcp"]);
    let features = input.u8();
    Config {
        stack: format!("{recovery}/{controller}").parse().expect("a stack"),
        mss: input.pick(&[100, 536, 1_448]),
        recv_buffer: Bytes(input.pick(&[1_000, 10_000, 100_000, 64 << 20])),
        sack: features & 1 == 0,
        timestamps: features & 2 == 0,
        pace_initial_window: features & 32 == 0,
        host_profile: if features & 128 == 0 {
            HostProfile::Kernel
        } else {
            HostProfile::UserSpace
        },
        max_pacing_rate: (features & 64 == 0).then_some(Rate::from_mbit(1)),
        ecn: (features & 16 == 0).then_some(features & 4 == 0),
        limited_transmit: features & 8 == 0,
        delayed_ack: input.pick(&[
            None,
            Some(DelayedAck::Off),
            Some(DelayedAck::Rfc1122),
            Some(DelayedAck::Linux),
        ]),
        max_wait: input.pick(&[None, None, Some(Duration::from_secs(5))]),
        ..Config::default()
    }
}

/// Enough to fill any of the windows above.
const MAX_WRITTEN: u64 = 1 << 20;
/// All that was written, in the smallest segments, and some.
const MAX_BURST: usize = 60_000;
const MAX_TIMEOUTS: usize = 100;
