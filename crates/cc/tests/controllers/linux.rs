//! ACK by ACK with a real kernel: what Linux 6.1's sender saw on a path of 10 Mbit/s, 40 ms and 34
//! packets of queue (DCTCP: CoDel's marks) goes into our controller, and its window must be the
//! kernel's. While the kernel's window is PRR's, which is the transport's business here, nothing is
//! compared.

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
        predicted: bool,
        echo: bool,
        state: RecoveryState,
        cwnd: u64,
    },
    /// The next acknowledgement begins an episode.
    Episode(Cause),
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
        match fields[0] {
            "loss" => return Self::Episode(Cause::FastRetransmit),
            "mark" => return Self::Episode(Cause::EcnEcho),
            _ => {}
        }
        let at = Seen {
            now: Instant::from_nanos(number(1) * 1_000),
            snd_una: number(5) * MSS.get(),
            snd_nxt: number(6) * MSS.get(),
            cwnd_limited: number(7) == 1,
        };
        let state = match fields[8] {
            "open" => RecoveryState::Open,
            "disorder" => RecoveryState::Disorder,
            "cwr" => RecoveryState::Cwr,
            _ => RecoveryState::Recovery,
        };
        Self::Ack {
            at,
            cumulative: number(2),
            delivered: number(3),
            rtt: Duration::from_micros(number(4)),
            predicted: fields.get(10) == Some(&"1"),
            echo: fields.get(11) == Some(&"1"),
            state,
            cwnd: number(9),
        }
    }
}

/// A controller behind what the trace's sender knew.
struct Replay {
    cc: Box<dyn CongestionController>,
    srtt: Duration,
    delivered: Bytes,
    delivered_marked: Bytes,
    /// What the next acknowledgement begins.
    begins: Option<Cause>,
    state: RecoveryState,
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
            delivered: self.delivered,
            delivered_marked: self.delivered_marked,
            next_departure: at.now,
            paced: false,
            app_limited: false,
            cwnd_limited: at.cwnd_limited,
            peer_window: Bytes(1 << 40),
            feedback: None,
            state,
            rng: &mut stream(1, "unused"),
        };
        call(self.cc.as_mut(), &mut cx);
    }

    /// Processes a line; our window and the kernel's where they compare.
    fn step(&mut self, line: &Line) -> Option<(u64, u64)> {
        match *line {
            Line::Episode(cause) => {
                self.begins = Some(cause);
                None
            }
            Line::Ack { at, cumulative, delivered, rtt, predicted, echo, state, cwnd } => {
                let ours = self.cc.cwnd().get() / MSS.get();
                self.srtt = (self.srtt * 7 + rtt) / 8;
                self.delivered += MSS * delivered;
                self.delivered_marked += MSS * (delivered * u64::from(echo));
                let ack = AckEvent {
                    acked: MSS * delivered,
                    cum_acked: MSS * cumulative,
                    rtt: Some(rtt),
                    predicted,
                    ..AckEvent::default()
                };
                self.with_cx(at, self.state, |cc, cx| cc.on_delivery(cx, &ack));
                if let Some(cause) = self.begins.take() {
                    let event = CongestionEvent {
                        cause,
                        first_in_epoch: true,
                        lost: MSS * u64::from(cause == Cause::FastRetransmit),
                        prior_in_flight: Bytes(at.snd_nxt - at.snd_una),
                    };
                    self.with_cx(at, RecoveryState::Open, |cc, cx| cc.on_congestion(cx, &event));
                }
                self.with_cx(at, state, |cc, cx| cc.on_ack(cx, &ack));
                self.state = state;
                let metered = matches!(state, RecoveryState::Recovery | RecoveryState::Cwr);
                (!metered).then_some((ours, cwnd))
            }
        }
    }
}

/// When the handshake was done, a round trip after its start.
const CONNECTED: Instant = Instant::from_nanos(40_060_000);

/// Compares window by window; how many there were.
fn replay(controller: &str, trace: &str) -> usize {
    let config = CcConfig::parse(controller).expect("a controller");
    let cc = config.build(MSS, MSS * INITIAL_WINDOW).expect("it is one of ours");
    let mut replay = Replay {
        cc,
        srtt: CONNECTED.saturating_since(Instant::ZERO),
        delivered: Bytes::ZERO,
        delivered_marked: Bytes::ZERO,
        begins: None,
        state: RecoveryState::Open,
    };
    let start = Seen { now: CONNECTED, snd_una: 0, snd_nxt: 0, cwnd_limited: false };
    replay.with_cx(start, RecoveryState::Open, |cc, cx| cc.on_sent(cx, MSS));
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

#[test]
fn veno_is_linuxs() {
    // Slow start, two losses with a queue, growth by one segment in one and in two round trips.
    assert!(replay("veno", include_str!("linux/veno.csv")) > 1_800);
}

#[test]
fn westwood_is_linuxs() {
    // Slow start, the fall to its first estimate, the growth, the fall to the path's product.
    assert!(replay("westwood", include_str!("linux/westwood.csv")) > 2_200);
}

#[test]
fn dctcp_is_linuxs() {
    // Slow start that marks end, and alpha by the depth of twenty reductions.
    assert!(replay("dctcp", include_str!("linux/dctcp.csv")) > 1_500);
}
