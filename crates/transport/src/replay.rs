//! Repeats what a recorded sender saw, to find the window that a controller would have had.

use std::ops::Range;

use weir_cc::{AckTimestamps, CcBuildError};
use weir_units::{Bytes, Duration, Instant, Rate, Rng};

use crate::segment::SackBlocks;
use crate::sender::{IncomingAck, Sender, Terms};
use crate::stats::Stats;
use crate::{Config, timestamp_ms};

/// The sending half of a connection that follows a recording, such as a packet capture.
///
/// What was sent and which acknowledgements came are given; loss recovery, RTT, rate samples and the controller run as
/// in a [`Connection`](crate::Connection). So [`window`](Self::window) is what the controller would have allowed then.
/// Positions count the bytes of data from 0.
///
/// ```
/// use weir_transport::{Config, RecordedAck, Replay};
/// use weir_units::{Bytes, Duration, Instant, stream};
///
/// let config = Config::new("rack/reno".parse()?).with_mss(1_000);
/// let (start, rtt) = (Instant::from_nanos(1), Duration::from_millis(40));
/// let mut replay = Replay::new(&config, start, Bytes(100_000), Some(rtt), stream(1, "replay"))?;
/// replay.on_sent(start, 0..10_000);
/// replay.on_sending_paused(true);
/// assert_eq!(replay.bytes_in_flight(), replay.window());
/// replay.on_ack(start + rtt, &RecordedAck { ack: 2_000, window: Some(100_000), ..RecordedAck::default() });
/// assert_eq!(replay.window(), Bytes(12_000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Replay {
    sender: Sender,
    stats: Stats,
}

/// A recorded acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordedAck<'a> {
    /// Everything below arrived.
    pub ack: u64,
    /// Ranges of the SACK option, in its order.
    pub sack: &'a [(u64, u64)],
    /// The receiver's window in bytes, if it is known.
    pub window: Option<u64>,
    /// Whether the segment carried data.
    pub carries_data: bool,
    /// Its timestamps; the echo is a time of this replay's clock, in milliseconds.
    pub timestamps: Option<AckTimestamps>,
    /// ECN echo.
    pub echoes_mark: bool,
}

impl Replay {
    /// A connection that is established `now`, with the receiver's first window and the RTT of the handshake. `config`
    /// is that of the recorded sender, as far as it is known.
    ///
    /// # Errors
    /// If the controller exists only elsewhere.
    pub fn new(
        config: &Config,
        now: Instant,
        window: Bytes,
        rtt: Option<Duration>,
        rng: Rng,
    ) -> Result<Self, CcBuildError> {
        let mss = Bytes(u64::from(config.mss));
        let controller = config.stack.controller.build(mss, config.initial_window())?;
        let mut sender = Sender::new(config, controller, rng);
        let mut stats = Stats::default();
        let terms = Terms {
            mss: config.mss,
            recovery: config.stack.recovery,
            sack: config.sack,
            ecn: config.ecn.unwrap_or(false),
            window: window.get(),
        };
        sender.establish(now, &terms, &mut stats);
        if let Some(rtt) = rtt {
            sender.on_handshake_rtt(now, rtt);
        }
        Ok(Self { sender, stats })
    }

    /// Draws the random numbers of the controller from `rng` from now on.
    pub fn reseed(&mut self, rng: Rng) {
        self.sender.reseed(rng);
    }

    /// These bytes were sent `now`, for the first time or again.
    pub fn on_sent(&mut self, now: Instant, range: Range<u64>) {
        self.on_time(now);
        self.sender.follow_sent(now, range, &mut self.stats);
    }

    /// Nothing more was sent before the next acknowledgement. `is_full` says that the congestion window was the reason.
    pub fn on_sending_paused(&mut self, is_full: bool) {
        self.sender.follow_rest(is_full);
    }

    /// The application had nothing more to send.
    pub fn on_app_limited(&mut self) {
        self.sender.follow_application();
    }

    /// An acknowledgement reached the sender `now`. What it acknowledges and was not recorded counts as sent just before.
    pub fn on_ack(&mut self, now: Instant, recorded: &RecordedAck<'_>) {
        self.on_time(now);
        let end = recorded.sack.iter().map(|(_, end)| *end).max().unwrap_or(0).max(recorded.ack);
        if end > self.sender.nxt() {
            self.sender.follow_sent(now, self.sender.nxt()..end, &mut self.stats);
        }
        if recorded.ack < self.sender.una() {
            return;
        }
        let mut sack = [const { 0..0 }; SackBlocks::MAX];
        let mut sack_len = 0;
        for (start, end) in recorded.sack.iter().filter(|(start, end)| start < end) {
            if let Some(free) = sack.get_mut(sack_len) {
                *free = *start..*end;
                sack_len += 1;
            }
        }
        let echo = recorded.timestamps.and_then(|ts| {
            let elapsed = timestamp_ms(now).wrapping_sub(ts.echo).max(1);
            let rtt = Duration::from_millis(u64::from(elapsed));
            (rtt < LONGEST_ECHO).then_some((ts.echo, rtt))
        });
        let ack = IncomingAck {
            ack: recorded.ack,
            sack,
            sack_len,
            window: recorded.window,
            carries_data: recorded.carries_data,
            echo,
            timestamps: recorded.timestamps,
            ece: recorded.echoes_mark,
            feedback: None,
        };
        self.sender.on_ack(now, &ack, &mut self.stats);
    }

    /// Runs the timers that expire until `now`.
    pub fn on_time(&mut self, now: Instant) {
        self.sender.follow_time(now, &mut self.stats);
    }

    /// The window in force: the controller's, or what PRR makes of it during recovery.
    pub fn window(&self) -> Bytes {
        self.sender.cwnd()
    }

    /// The rate at which the controller paces.
    pub fn pacing_rate(&self) -> Option<Rate> {
        self.sender.pacing_rate()
    }

    /// When the pacer lets the next segment leave.
    pub fn next_departure(&self) -> Instant {
        self.sender.next_departure()
    }

    /// Sent, neither acknowledged nor declared lost.
    pub fn bytes_in_flight(&self) -> Bytes {
        self.sender.in_flight()
    }
}

/// A longer time between a segment and its echo is not believed.
const LONGEST_ECHO: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests {
    use weir_cc::RecoveryState;
    use weir_units::stream;

    use super::*;

    const MSS: u64 = 1_000;
    const RTT: Duration = Duration::from_millis(40);

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(1_000_000_000) + Duration::from_millis(ms)
    }

    /// Reno, which has sent its first ten segments at once.
    fn started() -> Replay {
        let config = Config::new("rack/reno".parse().expect("a stack")).with_mss(MSS as u32);
        let rng = stream(1, "replay");
        let mut replay =
            Replay::new(&config, at(0), Bytes(1 << 20), Some(RTT), rng).expect("built in");
        replay.on_sent(at(0), 0..10 * MSS);
        replay.on_sending_paused(true);
        replay
    }

    fn state(replay: &Replay) -> RecoveryState {
        replay.sender.flight().state
    }

    #[test]
    fn a_repetition_after_the_timeout_restarts_the_window() {
        let mut replay = started();
        replay.on_sent(at(400), 0..MSS);
        assert_eq!(state(&replay), RecoveryState::Loss);
        assert_eq!(replay.window(), Bytes(MSS));
    }

    #[test]
    fn two_segments_in_one_repetition_are_one_timeout() {
        let mut replay = started();
        replay.on_sent(at(400), 0..2 * MSS);
        assert_eq!((state(&replay), replay.window()), (RecoveryState::Loss, Bytes(MSS)));
    }

    #[test]
    fn the_last_segment_sent_again_early_is_a_probe() {
        let mut replay = started();
        replay.on_sent(at(100), 9 * MSS..10 * MSS);
        assert_eq!((state(&replay), replay.window()), (RecoveryState::Open, Bytes(10 * MSS)));
    }

    #[test]
    fn an_early_repetition_shows_that_the_sender_found_a_loss() {
        let mut replay = started();
        replay.on_sent(at(41), 2 * MSS..3 * MSS);
        assert_eq!(state(&replay), RecoveryState::Recovery);
        assert_eq!(replay.sender.snapshot().ssthresh, Some(Bytes(5 * MSS)));
    }

    #[test]
    fn what_is_acknowledged_and_was_not_recorded_counts_as_sent() {
        let mut replay = started();
        let window = Some(1 << 20);
        replay.on_ack(at(40), &RecordedAck { ack: 12 * MSS, window, ..RecordedAck::default() });
        assert_eq!(replay.bytes_in_flight(), Bytes::ZERO);
        replay.on_ack(at(41), &RecordedAck { ack: 3 * MSS, window, ..RecordedAck::default() });
        assert_eq!(replay.window(), Bytes(22 * MSS), "an old acknowledgement changes nothing");
    }
}
