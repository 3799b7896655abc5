//! Measures what a segment costs each end, without a network:
//! `cargo run --release -p weir-transport --example speed [STACK...]`.
//!
//! Segments travel as a real socket carries them, 44 of 1448 bytes at a time: all of a batch are
//! handed in, then the connection is polled. Figures are of the best of several rounds.

#![allow(clippy::print_stdout, clippy::disallowed_types, reason = "it is a program that measures")]

use std::hint::black_box;
use std::time;

use weir_transport::wire::{self, Ports};
use weir_transport::{Config, Connection, Segment};
use weir_units::{Bytes, Duration, Ecn, Instant, stream};

const BATCH: usize = 44;
const SEGMENTS: u64 = 400_000;
const ROUNDS: usize = 7;
/// From when a batch leaves until what it causes arrives.
const ONE_WAY: Duration = Duration::from_micros(50);

fn main() {
    let named: Vec<String> = std::env::args().skip(1).collect();
    let stacks =
        if named.is_empty() { vec!["rack/bbr".into(), "rack/cubic".into()] } else { named };
    println!("stack          send ns/segment  receive ns/segment  segments/ACK");
    for stack in &stacks {
        let rounds: Vec<Cost> = (0..ROUNDS).map(|_| transfer(stack)).collect();
        let best = |cost: fn(&Cost) -> time::Duration| {
            rounds.iter().map(cost).min().unwrap_or_default().as_nanos() as f64
        };
        let acks = rounds[0].acks as f64;
        println!(
            "{stack:14} {:15.0} {:19.0} {:13.1}",
            best(|cost| cost.sending) / SEGMENTS as f64,
            best(|cost| cost.receiving) / SEGMENTS as f64,
            SEGMENTS as f64 / acks,
        );
    }
    println!("\nsegment       emit GB/s  parse GB/s");
    for len in [1_448, 64_000] {
        let (emit, parse) = codec(len);
        println!("{len:7} bytes {emit:10.1} {parse:11.1}");
    }
}

#[derive(Default)]
struct Cost {
    sending: time::Duration,
    receiving: time::Duration,
    acks: u64,
}

/// Sends `SEGMENTS` from one connection to another.
fn transfer(stack: &str) -> Cost {
    let config = Config { stack: stack.parse().expect("a stack"), ..Config::for_datagrams() };
    let mut now = Instant::from_nanos(1_000_000_000);
    let mut sender = Connection::connect(&config, now, stream(1, "sender"));
    let mut receiver = Connection::listen(&config, stream(1, "receiver"));
    for _ in 0..3 {
        let offers = take(&mut sender, now, usize::MAX);
        now += ONE_WAY;
        deliver(&mut receiver, now, &offers);
        let answers = take(&mut receiver, now, usize::MAX);
        now += ONE_WAY;
        deliver(&mut sender, now, &answers);
    }
    receiver.set_recv_window(Bytes(64 << 20));
    sender.write(now, SEGMENTS * u64::from(config.mss));
    let mut cost = Cost::default();
    while receiver.stats().delivered_bytes < SEGMENTS * u64::from(config.mss) {
        let start = time::Instant::now();
        sender.handle_timeout(now);
        let batch = take(&mut sender, now, BATCH);
        black_box(sender.next_timeout(now));
        let sent = time::Instant::now();
        now += ONE_WAY;
        deliver(&mut receiver, now, &batch);
        receiver.handle_timeout(now);
        receiver.read(now, u64::MAX);
        while receiver.poll_event().is_some() {}
        let acks = take(&mut receiver, now, usize::MAX);
        black_box(receiver.next_timeout(now));
        cost.acks += acks.len() as u64;
        let received = time::Instant::now();
        now += ONE_WAY;
        deliver(&mut sender, now, &acks);
        while sender.poll_event().is_some() {}
        cost.sending += (sent - start) + received.elapsed();
        cost.receiving += received - sent;
    }
    cost
}

fn take(connection: &mut Connection, now: Instant, most: usize) -> Vec<Segment> {
    std::iter::from_fn(|| connection.poll_transmit(now)).take(most).map(|t| t.segment).collect()
}

fn deliver(connection: &mut Connection, now: Instant, segments: &[Segment]) {
    for segment in segments {
        black_box(connection.handle_segment(now, segment, Ecn::NotEct));
    }
}

/// How fast segments of `len` bytes are written and read, in GB/s.
fn codec(len: usize) -> (f64, f64) {
    let segment = Segment { payload_len: len as u32, ..Segment::default() };
    let mut space = vec![1; len + 60];
    let times = 2_000_000_000 / len;
    let rate = |took: time::Duration| (times * len) as f64 / took.as_nanos() as f64;
    let (mut emit, mut parse) = (0.0f64, 0.0f64);
    for _ in 0..ROUNDS {
        let start = time::Instant::now();
        for _ in 0..times {
            let written =
                wire::emit_into(black_box(&segment), Ports::default(), &mut space, |_| {
                    Ok::<(), ()>(())
                });
            black_box(written).expect("it fits");
        }
        let middle = time::Instant::now();
        for _ in 0..times {
            black_box(wire::parse(black_box(&space[..len + 20]))).expect("it was written above");
        }
        emit = rate(middle - start).max(emit);
        parse = rate(middle.elapsed()).max(parse);
    }
    (emit, parse)
}
