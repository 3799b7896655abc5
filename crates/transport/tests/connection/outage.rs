//! A path that carries nothing for some time and then returns: how soon a sender of files goes on.
//!
//! The path holds what its queue has, as radio links do, or loses all, as a broken route does. Neither is
//! congestion, and neither measures the path.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use weir_cc::CcConfig;
use weir_transport::{Config, Connection, Segment};
use weir_units::{Duration, Ecn, Instant, stream};

/// What becomes of packets during the outage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outage {
    /// They wait in the queue.
    Holds,
    /// They are lost, in both directions.
    Loses,
}

/// 4 Mbit/s and 40 ms, with a queue for data; acknowledgements meet none.
struct Path {
    queue: u64,
    outage: Outage,
    silent: Range<Instant>,
    /// When what waits leaves the queue, and its bytes.
    waiting: VecDeque<(Instant, u64)>,
    busy_until: Instant,
}

const BYTES_PER_SECOND: u64 = 500_000;
const ONE_WAY: Duration = Duration::from_millis(20);
const BDP: u64 = 20_000;
const HEADERS: u64 = 60;

impl Path {
    /// When a packet of `bytes` leaves the queue, if it does.
    fn departure(&mut self, now: Instant, bytes: u64) -> Option<Instant> {
        if self.outage == Outage::Loses && self.silent.contains(&now) {
            return None;
        }
        while self.waiting.front().is_some_and(|(at, _)| *at <= now) {
            self.waiting.pop_front();
        }
        if self.waiting.iter().map(|(_, bytes)| bytes).sum::<u64>() + bytes > self.queue {
            return None;
        }
        let mut start = now.max(self.busy_until);
        if self.outage == Outage::Holds && self.silent.contains(&start) {
            start = self.silent.end;
        }
        self.busy_until = start + Duration::from_nanos(bytes * 1_000_000_000 / BYTES_PER_SECOND);
        self.waiting.push_back((self.busy_until, bytes));
        Some(self.busy_until)
    }
}

struct Transfer {
    now: Instant,
    sender: Connection,
    receiver: Connection,
    path: Path,
    arrivals: BTreeMap<(Instant, u64), (bool, Segment, Ecn)>,
    packets: u64,
    /// When data was sent.
    sent: Vec<Instant>,
    /// Bytes delivered, by the time of each delivery.
    delivered: Vec<(Instant, u64)>,
}

impl Transfer {
    fn new(config: &Config, path: Path) -> Self {
        let now = Instant::from_nanos(1_000_000_000);
        Self {
            now,
            sender: Connection::connect(config, now, stream(1, "client")),
            receiver: Connection::listen(config, stream(1, "server")),
            path,
            arrivals: BTreeMap::new(),
            packets: 0,
            sent: Vec::new(),
            delivered: Vec::new(),
        }
    }

    fn settle(&mut self) {
        let now = self.now;
        while let Some(transmit) = self.sender.poll_transmit(now) {
            let payload = u64::from(transmit.segment.payload_len);
            if payload > 0 {
                self.sent.push(now);
            }
            if let Some(at) = self.path.departure(now, payload + HEADERS) {
                self.packets += 1;
                let arrival = (true, transmit.segment, transmit.ecn);
                self.arrivals.insert((at + ONE_WAY, self.packets), arrival);
            }
        }
        while let Some(transmit) = self.receiver.poll_transmit(now) {
            if self.path.outage == Outage::Holds || !self.path.silent.contains(&now) {
                self.packets += 1;
                let arrival = (false, transmit.segment, transmit.ecn);
                self.arrivals.insert((now + ONE_WAY, self.packets), arrival);
            }
        }
        while self.sender.poll_event().is_some() {}
        while self.receiver.poll_event().is_some() {}
    }

    fn run_until(&mut self, end: Instant) {
        self.sender.write(self.now, 1 << 40);
        loop {
            self.settle();
            let arrival = self.arrivals.keys().next().map(|(at, _)| *at);
            let timers = [self.sender.next_timeout(self.now), self.receiver.next_timeout(self.now)];
            let next = timers.into_iter().chain([arrival]).flatten().min();
            let Some(at) = next.filter(|at| *at < end) else { return };
            self.now = self.now.max(at);
            self.sender.handle_timeout(self.now);
            self.receiver.handle_timeout(self.now);
            while let Some(entry) =
                self.arrivals.first_entry().filter(|entry| entry.key().0 <= self.now)
            {
                let (to_receiver, segment, ecn) = entry.remove();
                let end = if to_receiver { &mut self.receiver } else { &mut self.sender };
                end.handle_segment(self.now, &segment, ecn);
            }
            let read = self.receiver.read(self.now, u64::MAX);
            if read > 0 {
                self.delivered.push((self.now, read));
            }
        }
    }
}

/// What followed the path's return.
#[derive(Debug)]
struct Recovery {
    /// Until data was sent.
    silence: Duration,
    /// The longest time without data sent in the six seconds that followed.
    gap: Duration,
    /// Share of the path's rate in the second to the sixth second.
    share: f64,
}

fn recovery(stack: &str, outage: Outage, length: Duration, queue: u64) -> Recovery {
    let start = Instant::from_nanos(4_000_000_000);
    let silent = start..start + length;
    let back = silent.end;
    let path = Path { queue, outage, silent, waiting: VecDeque::new(), busy_until: Instant::ZERO };
    let stack = format!("rack/{stack}").parse().expect("a stack");
    let config = Config { stack, max_retransmits: u32::MAX, ..Config::for_datagrams() };
    let mut transfer = Transfer::new(&config, path);
    transfer.run_until(back + Duration::from_secs(6));
    let later: Vec<Instant> = transfer.sent.iter().copied().filter(|at| *at >= back).collect();
    let silence = later.first().map_or(Duration::MAX, |at| *at - back);
    let gap = later.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(Duration::MAX);
    let window = back + Duration::from_secs(2)..back + Duration::from_secs(6);
    let delivered: u64 =
        transfer.delivered.iter().filter(|(at, _)| window.contains(at)).map(|(_, n)| n).sum();
    Recovery { silence, gap, share: delivered as f64 / (4 * BYTES_PER_SECOND) as f64 }
}

/// Those that ask routers, of which this path has none, those without a window of their own, and those whose
/// parameters are for round trips of microseconds and, of one, a network without loss.
const LEFT_OUT: [&str; 9] =
    ["muzha", "drai", "xcp", "rcp", "hpcc", "none", "swift", "timely", "dcqcn"];

#[test]
fn a_sender_goes_on_when_the_path_returns() {
    let mut late = Vec::new();
    let mut controllers = 0;
    for example in CcConfig::CATALOGUE.iter().map(|entry| entry.name) {
        if LEFT_OUT.iter().any(|name| example.starts_with(name)) {
            continue;
        }
        controllers += 1;
        // The queue in halves of a BDP.
        for (outage, seconds, queue) in [
            (Outage::Holds, 1, 4),
            (Outage::Holds, 12, 8),
            (Outage::Loses, 3, 1),
            (Outage::Loses, 120, 2),
        ] {
            let found = recovery(example, outage, Duration::from_secs(seconds), queue * BDP / 2);
            let silence = found.silence.max(found.gap);
            if silence > Duration::from_millis(1_500) || found.share < 0.5 {
                late.push(format!("{example}, {outage:?} {seconds} s, {queue}: {found:?}"));
            }
        }
    }
    assert!(controllers > 20, "{controllers}");
    assert!(late.is_empty(), "{} cases:\n{}", late.len(), late.join("\n"));
}
