//! Controllers behind the trait of s2n-quic, over a scripted path: 10 Mbit/s, 40 ms and a drop-tail queue of one
//! bandwidth-delay product. The calls and their order are those of `s2n-quic-transport`: losses, marks, then the
//! acknowledgement.

use std::collections::VecDeque;
use std::time::Duration;

use s2n_quic_core::event::builder::{BbrState, SlowStartExitCause};
use s2n_quic_core::random::Generator;
use s2n_quic_core::recovery::bandwidth::{Bandwidth, RateSample};
use s2n_quic_core::recovery::congestion_controller::Publisher;
use s2n_quic_core::recovery::{CongestionController, RttEstimator};
use s2n_quic_core::time::{Clock, NoopClock, Timestamp};
use weir_s2n::{Controller, Controllers, HostedConfigError};

/// Ignores events.
struct Ignore;

impl Publisher for Ignore {
    fn on_slow_start_exited(&mut self, _cause: SlowStartExitCause, _congestion_window: u32) {}
    fn on_delivery_rate_sampled(&mut self, _rate_sample: RateSample) {}
    fn on_pacing_rate_updated(
        &mut self,
        _pacing_rate: Bandwidth,
        _burst_size: u32,
        _pacing_gain: num_rational::Ratio<u64>,
    ) {
    }
    fn on_bbr_state_changed(&mut self, _state: BbrState) {}
}

/// No controller of ours draws from the host's generator.
struct Unused;

impl Generator for Unused {
    fn public_random_fill(&mut self, _dest: &mut [u8]) {
        panic!("a draw");
    }

    fn private_random_fill(&mut self, _dest: &mut [u8]) {
        panic!("a draw");
    }
}

const SIZE: usize = 1_250;
/// 10 Mbit/s: a packet takes 1 ms.
const SERVICE: Duration = Duration::from_millis(1);
const RTT: Duration = Duration::from_millis(40);
/// One bandwidth-delay product.
const QUEUE: usize = 40;

/// A packet on its way: its record, and when its acknowledgement arrives unless the queue dropped it.
struct Flying {
    number: u64,
    sent_at: Timestamp,
    info: <Controller as CongestionController>::PacketInfo,
    acked_at: Option<Timestamp>,
}

/// What a run of 20 s gave, of its second half.
#[derive(Debug)]
struct Outcome {
    /// Packets delivered per second, of 1000.
    rate: f64,
    /// The mean number of packets that each found in the queue.
    queue: f64,
    lost: u32,
}

/// The path and the sender's loss detection: packet threshold 3 (RFC 9002 §6.1.1).
struct Path {
    cc: Controller,
    now: Timestamp,
    flying: VecDeque<Flying>,
    /// When the link has sent all that is queued.
    free_at: Timestamp,
    sent: u64,
    delivered: u32,
    lost: u32,
    found: Vec<usize>,
}

impl Path {
    fn new(controller: &str) -> Self {
        let now = NoopClock.get_time();
        let cc = Controllers::new(controller, 1).unwrap().controller(SIZE as u16);
        let found = Vec::new();
        Self { cc, now, flying: VecDeque::new(), free_at: now, sent: 0, delivered: 0, lost: 0, found }
    }

    fn run(mut self) -> Outcome {
        let start = self.now;
        let (half, end) = (start + Duration::from_secs(10), start + Duration::from_secs(20));
        let mut counted = false;
        while self.now < end {
            if !counted && self.now >= half {
                (counted, self.delivered, self.lost) = (true, 0, 0);
                self.found.clear();
            }
            self.send_what_may_leave();
            self.advance();
        }
        let queue = self.found.iter().sum::<usize>() as f64 / self.found.len().max(1) as f64;
        Outcome { rate: f64::from(self.delivered) / 10.0, queue, lost: self.lost }
    }

    fn departure(&self) -> Timestamp {
        self.cc.earliest_departure_time().unwrap_or(self.now)
    }

    fn send_what_may_leave(&mut self) {
        while !self.cc.is_congestion_limited() && self.departure() <= self.now {
            let rtt = RttEstimator::default();
            let info = self.cc.on_packet_sent(self.now, SIZE, Some(false), &rtt, &mut Ignore);
            let waiting = self.free_at.saturating_duration_since(self.now).as_micros().div_ceil(1_000);
            let waiting = waiting as usize;
            self.found.push(waiting);
            let acked_at = (waiting < QUEUE).then(|| {
                self.free_at = self.free_at.max(self.now) + SERVICE;
                self.free_at + RTT
            });
            self.flying.push_back(Flying { number: self.sent, sent_at: self.now, info, acked_at });
            self.sent += 1;
        }
    }

    /// Goes on to the next acknowledgement or departure.
    fn advance(&mut self) {
        let ack = self.flying.iter().filter_map(|packet| packet.acked_at).min();
        let departure = (!self.cc.is_congestion_limited()).then(|| self.departure());
        let next = [ack, departure].into_iter().flatten().min().expect("something is due");
        self.now = self.now.max(next);
        if ack == Some(next) {
            self.acknowledge(next);
        }
    }

    fn acknowledge(&mut self, at: Timestamp) {
        let index = self.flying.iter().position(|packet| packet.acked_at == Some(at)).unwrap();
        let newest = self.flying.remove(index).unwrap();
        let rtt = RttEstimator::default();
        self.cc.on_rtt_update(newest.sent_at, at, &rtt, &mut Ignore);
        while self.flying.front().is_some_and(|oldest| oldest.number + 3 <= newest.number) {
            let lost = self.flying.pop_front().unwrap();
            self.lost += 1;
            self.cc.on_packet_lost(SIZE as u32, lost.info, false, true, &mut Unused, at, &mut Ignore);
        }
        self.delivered += 1;
        self.cc.on_ack(newest.sent_at, SIZE, newest.info, &rtt, &mut Unused, at, &mut Ignore);
    }
}

#[test]
fn cubic_fills_link_and_queue() {
    let outcome = Path::new("cubic").run();
    assert!((990.0..=1_001.0).contains(&outcome.rate), "{outcome:?}");
    assert!((10.0..40.0).contains(&outcome.queue) && outcome.lost > 0, "{outcome:?}");
}

#[test]
fn vegas_keeps_two_to_four_packets_in_the_queue() {
    let outcome = Path::new("vegas").run();
    assert!((990.0..=1_001.0).contains(&outcome.rate), "{outcome:?}");
    assert!((1.0..5.0).contains(&outcome.queue) && outcome.lost == 0, "{outcome:?}");
}

/// Without its pacing rate, two windows' worth of packets would stand in the queue.
#[test]
fn bbr_is_paced_at_its_own_rate() {
    for name in ["bbr", "bbr3"] {
        let outcome = Path::new(name).run();
        assert!((930.0..=1_001.0).contains(&outcome.rate), "{name}: {outcome:?}");
        assert!(outcome.queue < 10.0, "{name}: {outcome:?}");
    }
}

#[test]
fn every_controller_that_is_accepted_runs() {
    let names = weir_cc::CcConfig::CATALOGUE.iter().map(|entry| entry.examples[0]);
    let (accepted, refused): (Vec<_>, Vec<_>) =
        names.partition(|name| Controllers::new(name, 1).is_ok());
    assert!(accepted.len() >= 20, "{accepted:?}");
    assert!(refused.contains(&"prague") && refused.contains(&"xcp"), "{refused:?}");
    // An unbounded window fills memory here.
    for name in accepted.into_iter().filter(|name| *name != "none") {
        let outcome = Path::new(name).run();
        assert!(outcome.rate > 500.0, "{name}: {outcome:?}");
    }
}

/// RFC 8257: the window shrinks by half of the share of marks, which here is all of them.
#[test]
fn dctcp_counts_marks() {
    let mut path = Path::new("dctcp");
    path.send_what_may_leave();
    let before = path.cc.congestion_window();
    while !path.flying.is_empty() {
        let at = path.flying.iter().filter_map(|packet| packet.acked_at).min().unwrap();
        path.now = at;
        path.cc.on_explicit_congestion(1, at, &mut Ignore);
        path.acknowledge(at);
    }
    assert!(path.cc.congestion_window() <= before / 2 + SIZE as u32, "{}", path.cc.congestion_window());
}

#[test]
fn an_unbounded_window_is_the_largest_number() {
    let cc = Controllers::new("none", 1).unwrap().controller(SIZE as u16);
    assert_eq!((cc.congestion_window(), cc.is_congestion_limited()), (u32::MAX, false));
}

/// The last column of the table in `docs/stacks/adapters.md`.
#[test]
fn the_documentation_says_which_controllers_run_here() {
    let page = include_str!("../../../docs/stacks/adapters.md");
    let table = page.split("<!-- controllers -->").nth(1).expect("the table");
    let rows: Vec<_> = table.lines().filter(|line| line.starts_with("| `")).collect();
    assert_eq!(rows.len(), weir_cc::CcConfig::CATALOGUE.len());
    for (row, entry) in rows.into_iter().zip(weir_cc::CcConfig::CATALOGUE) {
        let said = match Controllers::new(entry.examples[0], 1) {
            Ok(_) => "yes".to_owned(),
            Err(HostedConfigError::Unsupported(refusal)) => format!("no: {}", refusal.reason),
            Err(error) => error.to_string(),
        };
        assert!(row.ends_with(&format!("| {said} |")), "{row} {said}");
    }
}
