//! Which controllers are named: connections of our transport over a link of 10 Mbit/s and 40 ms that loses the segments
//! that do not fit its queue, captured at the sender.

use std::collections::BTreeMap;

use weir_analyse::ConnectionRow;
use weir_transport::{Config, Connection, Segment, Transmit};
use weir_units::{Bytes, Duration, Ecn, Instant, stream};

use crate::script::{Fields, Script};

const WAY: Duration = Duration::from_millis(20);
/// What 1,500 bytes take at 10 Mbit/s, and how many fit into the queue.
const SERVICE: Duration = Duration::from_micros(1_200);
const QUEUE: u64 = 40;

struct Link {
    client: Connection,
    server: Connection,
    /// Segments on their way, in order of arrival; the server's come to the client.
    arrivals: BTreeMap<(Instant, u64), (Side, Segment)>,
    count: u64,
    free_at: Instant,
    script: Script,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Client,
    Server,
}

impl Link {
    fn new(stack: &str) -> Self {
        let config = Config::new(stack.parse().expect("a stack"))
            .with_mss(crate::MSS)
            .with_timestamps(false)
            // A window scale of 7, as the script has.
            .with_recv_buffer(Bytes(65_535 << 7));
        let start = Instant::from_nanos(1);
        let mut client = Connection::connect(&config, start, stream(1, "client"));
        client.write(start, 1 << 30);
        Self {
            client,
            server: Connection::listen(&config, stream(1, "server")),
            arrivals: BTreeMap::new(),
            count: 0,
            free_at: start,
            script: Script::empty(),
        }
    }

    fn run(mut self, until: Instant) -> ConnectionRow {
        let mut now = Instant::from_nanos(1);
        while now < until {
            self.client.handle_timeout(now);
            self.server.handle_timeout(now);
            while let Some(sent) = self.client.poll_transmit(now) {
                self.note(now, Side::Client, &sent.segment);
                self.enqueue(now, &sent);
            }
            while let Some(sent) = self.server.poll_transmit(now) {
                self.arrive(now + WAY, Side::Client, sent.segment);
            }
            let next = self.arrivals.first_key_value().map(|((at, _), _)| *at);
            let timers =
                Instant::earlier(self.client.next_timeout(now), self.server.next_timeout(now));
            now = Instant::earlier(next, timers).unwrap_or(until).max(now);
            while let Some(first) = self.arrivals.first_entry().filter(|first| first.key().0 <= now)
            {
                let (to, segment) = first.remove();
                self.deliver(now, to, &segment);
            }
        }
        self.script.row()
    }

    fn enqueue(&mut self, now: Instant, sent: &Transmit) {
        if sent.segment.payload_len == 0 {
            return self.arrive(now + WAY, Side::Server, sent.segment);
        }
        let waiting = self.free_at.saturating_since(now).as_nanos() / SERVICE.as_nanos();
        if waiting < QUEUE {
            self.free_at = self.free_at.max(now) + SERVICE;
            self.arrive(self.free_at + WAY, Side::Server, sent.segment);
        }
    }

    fn arrive(&mut self, at: Instant, to: Side, segment: Segment) {
        self.count += 1;
        self.arrivals.insert((at, self.count), (to, segment));
    }

    fn deliver(&mut self, now: Instant, to: Side, segment: &Segment) {
        match to {
            Side::Server => {
                self.server.handle_segment(now, segment, Ecn::NotEct);
                self.server.read(now, u64::MAX);
            }
            Side::Client => {
                self.note(now, Side::Server, segment);
                self.client.handle_segment(now, segment, Ecn::NotEct);
            }
        }
    }

    fn note(&mut self, now: Instant, from: Side, segment: &Segment) {
        let sack = segment.options.sack.as_slice().iter();
        let fields = Fields {
            seq: segment.seq.0,
            ack: segment.ack.0,
            flags: segment.flags.0,
            window: segment.window,
            payload: segment.payload_len,
            sack: sack.map(|block| (block.start.0, block.end.0)).collect(),
            syn_options: segment.options.mss.is_some(),
        };
        let at = now.as_nanos() as f64 / 1e6;
        match from {
            Side::Client => self.script.client(at, &fields),
            Side::Server => self.script.server(at, &fields),
        }
    }
}

fn row(stack: &str) -> ConnectionRow {
    Link::new(stack).run(Instant::ZERO + Duration::from_secs(12))
}

#[test]
fn controllers_are_named() {
    for stack in ["cubic", "reno", "bbr", "vegas", "bic", "htcp", "westwood"] {
        let row = row(stack);
        assert!(row.retransmits > 0 || stack == "vegas", "{stack} loses nothing");
        let found = row.controller.expect("looked for");
        let class: Vec<&str> = found.split(", ").collect();
        assert!(class.contains(&stack), "{stack}: {found}");
        let most = if stack == "reno" { 3 } else { 1 };
        assert!(class.len() <= most, "{stack}: {found}");
        assert!(row.controller_confidence > Some(0.5), "{stack}");
    }
}

/// Without marks and timestamps these three are the same algorithm.
#[test]
fn what_predicts_the_same_is_one_class() {
    let row = row("reno");
    assert_eq!(row.controller.as_deref(), Some("reno, dctcp, lp"));
}

#[test]
fn a_controller_that_is_no_candidate_is_unknown() {
    for stack in ["copa", "bbr3"] {
        let row = row(stack);
        assert_eq!(row.controller.as_deref(), Some("unknown"), "{:?}", row.controller_candidates);
        assert_eq!(row.controller_note, Some("no candidate predicts the window"));
    }
}

#[test]
fn a_short_connection_is_unknown() {
    let row = Link::new("cubic").run(Instant::ZERO + Duration::from_millis(120));
    assert_eq!(row.controller.as_deref(), Some("unknown"));
    assert_eq!(row.controller_note, Some("the congestion window limited too little of it"));
}
