//! ACK by ACK with a real kernel: what Linux 6.1's sender saw on a path of 10 Mbit/s, 40 ms and 34
//! packets of queue goes into our controller, and its window must be the kernel's. In recovery the
//! kernel's window is PRR's, which is the transport's business here, so nothing is compared then.

use weir_cc::{
    AckEvent, Cause, CcConfig, CcContext, CongestionController, CongestionEvent, RecoveryState,
    RttSnapshot,
};
use weir_units::{Bytes, Duration, Instant, stream};

use crate::path::{INITIAL_WINDOW, MSS};

/// A line of a trace.
enum Line {
    Ack {
        at: Seen,
        cumulative: u64,
        delivered: u64,
        rtt: Duration,
        state: RecoveryState,
        cwnd: u64,
    },
    Loss {
        at: Seen,
    },
}

/// What both kinds of line say.
#[derive(Clone, Copy)]
struct Seen {
    now: Instant,
    snd_una: u64,
    snd_nxt: u64,
    cwnd_limited: bool,
}

impl Line {
    fn read(line: &str) -> Self {
        let fields: Vec<&str> = line.split(',').collect();
        let number = |i: usize| fields[i].parse::<u64>().expect("a number");
        let seen = |una: usize, cwnd_limited| Seen {
            now: Instant::from_nanos(number(1) * 1_000),
            snd_una: number(una) * MSS.get(),
            snd_nxt: number(una + 1) * MSS.get(),
            cwnd_limited,
        };
        if fields[0] == "loss" {
            return Self::Loss { at: seen(2, true) };
        }
        let state = match fields[8] {
            "open" => RecoveryState::Open,
            "disorder" => RecoveryState::Disorder,
            _ => RecoveryState::Recovery,
        };
        Self::Ack {
            at: seen(5, number(7) == 1),
            cumulative: number(2),
            delivered: number(3),
            rtt: Duration::from_micros(number(4)),
            state,
            cwnd: number(9),
        }
    }
}

/// A controller behind what the trace's sender knew.
struct Replay {
    cc: Box<dyn CongestionController>,
    srtt: Duration,
}

impl Replay {
    fn with_cx(
        &mut self,
        at: Seen,
        state: RecoveryState,
        call: impl FnOnce(&mut dyn CongestionController, &mut CcContext<'_>),
    ) {
        let mut cx = CcContext {
            now: at.now,
            mss: MSS,
            rtt: RttSnapshot { srtt: Some(self.srtt), ..RttSnapshot::default() },
            bytes_in_flight: Bytes(at.snd_nxt - at.snd_una),
            snd_una: at.snd_una,
            snd_nxt: at.snd_nxt,
            delivered: Bytes::ZERO,
            delivered_marked: Bytes::ZERO,
            next_departure: at.now,
            app_limited: false,
            cwnd_limited: at.cwnd_limited,
            state,
            rng: &mut stream(1, "unused"),
        };
        call(self.cc.as_mut(), &mut cx);
    }

    /// Takes in a line; our window and the kernel's where they compare.
    fn step(&mut self, line: &Line) -> Option<(u64, u64)> {
        match *line {
            Line::Loss { at } => {
                let event = CongestionEvent {
                    cause: Cause::FastRetransmit,
                    first_in_epoch: true,
                    lost: MSS,
                    prior_in_flight: Bytes(at.snd_nxt - at.snd_una),
                };
                self.with_cx(at, RecoveryState::Recovery, |cc, cx| cc.on_congestion(cx, &event));
                None
            }
            Line::Ack { at, cumulative, delivered, rtt, state, cwnd } => {
                let ours = self.cc.cwnd().get() / MSS.get();
                self.srtt = (self.srtt * 7 + rtt) / 8;
                let ack = AckEvent {
                    acked: MSS * delivered,
                    cum_acked: MSS * cumulative,
                    rtt: Some(rtt),
                    ..AckEvent::default()
                };
                self.with_cx(at, state, |cc, cx| cc.on_ack(cx, &ack));
                (state != RecoveryState::Recovery).then_some((ours, cwnd))
            }
        }
    }
}

/// Compares window by window; how many there were.
fn replay(controller: &str, trace: &str) -> usize {
    let config = CcConfig::parse(controller).expect("a controller");
    let cc = config.build(MSS, MSS * INITIAL_WINDOW);
    let mut replay = Replay { cc, srtt: Duration::from_micros(40_060) };
    let lines = trace.lines().filter(|line| !line.starts_with('#'));
    let mut compared = 0;
    for line in lines {
        if let Some((ours, linux)) = replay.step(&Line::read(line)) {
            assert_eq!(ours, linux, "after {compared} equal windows, at {line}");
            compared += 1;
        }
    }
    compared
}

#[test]
fn cubic_is_linuxs() {
    // Slow start, HyStart's exit, growth before the first loss, a reduction, the curve after it.
    assert!(replay("cubic", include_str!("linux/cubic.csv")) > 1_700);
}

#[test]
fn reno_is_linuxs() {
    assert!(replay("reno", include_str!("linux/reno.csv")) > 200);
}
