//! What holds a sender back, from what it logs itself: its window, its pacer, flow control, or nothing to send.

use super::flight::Flight;
use crate::sender::{Hold, Slices};

/// What holds the sender now, and since when that is undecided.
///
/// Nothing in flight, or space in the congestion window: the application, unless the pacer let the next packet wait. Where no
/// pacing rate is logged, a full packet shows that more data waits.
/// A frame that says that flow control blocks: the receiver's window. Otherwise the network.
#[derive(Debug)]
pub(crate) struct Holder {
    pub(crate) cwnd: Option<u64>,
    /// Bits per second.
    pub(crate) pacing_rate: Option<u64>,
    hold: Hold,
    last_event: u64,
    /// When the last packet was sent.
    last_sent: u64,
    /// Bytes that were sent at that time.
    burst: u64,
    /// Whether the time since then may be that of the pacer.
    may_be_paced: bool,
    longest: u64,
    /// The size of the last packet with data.
    last_size: u64,
    is_slow_start: Option<bool>,
    is_in_recovery: bool,
    is_limited_by_application: bool,
    has_lost: bool,
    has_threshold: bool,
    is_blocked: bool,
    has_begun: bool,
}

impl Holder {
    pub(crate) fn new(time: u64) -> Self {
        Self {
            cwnd: None,
            pacing_rate: None,
            hold: Hold::Application,
            last_event: time,
            last_sent: time,
            burst: 0,
            may_be_paced: false,
            longest: 0,
            last_size: 0,
            is_slow_start: None,
            is_in_recovery: false,
            is_limited_by_application: false,
            has_lost: false,
            has_threshold: false,
            is_blocked: false,
            has_begun: false,
        }
    }

    /// The state of the congestion control, in the words of the stack.
    pub(crate) fn set_state(&mut self, state: &str) {
        let state = state.to_lowercase();
        let is = |words: [&str; 2]| words.iter().any(|word| state.contains(word));
        self.is_limited_by_application = is(["application_limited", "app_limited"]);
        if !self.is_limited_by_application {
            self.is_slow_start = Some(is(["slow_start", "startup"]));
            self.is_in_recovery = is(["recovery", "loss"]);
        }
    }

    /// The threshold of slow start; none is an unlimited one.
    pub(crate) fn set_ssthresh(&mut self, threshold: Option<f64>) {
        self.has_threshold = threshold.is_some();
    }

    /// Flow control holds the sender, or holds it no longer.
    pub(crate) fn set_blocked(&mut self, blocked: Option<bool>) {
        self.is_blocked = blocked.unwrap_or(self.is_blocked);
    }

    /// After a loss the window is another one, which the log has not shown yet.
    pub(crate) fn on_loss(&mut self) {
        self.has_lost = true;
        self.cwnd = None;
    }

    /// There is data from `time` on, unless there was some before.
    pub(crate) fn begin(&mut self, time: u64) {
        if !self.has_begun {
            (self.has_begun, self.last_event, self.last_sent) = (true, time, time);
        }
    }

    /// What was taken for data was none: it begins later.
    pub(crate) fn forget_beginning(&mut self) {
        self.has_begun = false;
    }

    /// A packet was sent: the time since the one before was the pacer's if it is what the pacer needs.
    pub(crate) fn on_sent(&mut self, time: u64, size: u64, slices: &mut Slices) {
        self.begin(time);
        if self.may_be_paced && self.is_of_pacer(time) {
            self.hold = self.network();
        }
        self.may_be_paced = false;
        self.add_time(time, slices);
        self.burst = if time > self.last_sent { size } else { self.burst + size };
        self.last_sent = time;
        self.longest = self.longest.max(size);
    }

    /// A packet of this size with data was sent, and `flight` bytes are in flight with it. One that fills the window is as
    /// short as that.
    pub(crate) fn note_data(&mut self, size: u64, flight: u64) {
        let is_filled = self.cwnd.is_some_and(|cwnd| flight.saturating_add(self.longest) > cwnd);
        self.last_size = if is_filled { self.longest.max(size) } else { size };
    }

    /// Adds the time since the last event. Time that may be the pacer's is added with the next packet.
    pub(crate) fn add_time(&mut self, time: u64, slices: &mut Slices) {
        if !self.has_begun || (self.may_be_paced && self.is_of_pacer(time)) {
            return;
        }
        self.may_be_paced = false;
        slices.hold(self.last_event, time, self.hold);
        self.last_event = time;
    }

    /// Decides what holds the sender from now on.
    pub(crate) fn settle(&mut self, flight: &Flight) {
        let bytes = flight.bytes();
        let next = if self.longest > 0 { self.longest } else { USUAL_PACKET };
        let has_space = self
            .cwnd
            .is_some_and(|cwnd| bytes.saturating_add(next) <= cwnd && !self.is_in_recovery);
        self.hold = if self.is_blocked {
            Hold::Window
        } else if has_space && bytes > 0 && self.has_more() {
            self.network()
        } else if bytes == 0 || has_space || self.is_limited_by_application {
            Hold::Application
        } else {
            self.network()
        };
        self.may_be_paced =
            self.hold == Hold::Application && bytes > 0 && self.pacing_rate.is_some();
    }

    /// Whether more data waits, in the log of a stack that may pace and does not log its rate: the last packet was full.
    fn has_more(&self) -> bool {
        self.pacing_rate.is_none()
            && !self.is_limited_by_application
            && self.longest > 0
            && self.last_size + HEADERS_VARY >= self.longest
    }

    /// Whether the pacer may have held the sender from the last packet until `time`.
    fn is_of_pacer(&self, time: u64) -> bool {
        let Some(rate) = self.pacing_rate else { return false };
        let needed = u128::from(self.burst) * 8 * NANOS / u128::from(rate.max(1));
        u128::from(time.saturating_sub(self.last_sent)) <= needed * 5 / 4 + TIMER
    }

    fn network(&self) -> Hold {
        let is_slow_start = self.is_slow_start.unwrap_or(!self.has_threshold && !self.has_lost);
        if is_slow_start { Hold::SlowStart } else { Hold::Network }
    }
}

const NANOS: u128 = 1_000_000_000;
/// Pacers run at ticks of a millisecond.
const TIMER: u128 = 1_000_000;
/// Bytes by which headers of full packets differ.
const HEADERS_VARY: u64 = 32;
/// The size of the next packet, in a log without packets.
const USUAL_PACKET: u64 = 1_500;
