//! `careful-resume`: a controller that starts with what an earlier connection knew of the path (RFC 9959).
//!
//! ```text
//! reconnaissance  as the controller itself, until the initial window is acknowledged
//! unvalidated     cwnd = saved cwnd / 2, paced over an RTT; until it is in flight, for one RTT,
//!                 or until a byte of the jump is acknowledged
//! validating      cwnd = flight size, slow start; until all of the jump is acknowledged
//! safe retreat    on congestion: cwnd = pipe size / 2, at least the initial window, no growth;
//!                 until all of the jump is acknowledged, then ssthresh = pipe size / 2
//! normal          as the controller itself
//! ```
//!
//! The pipe size is what was in flight at the jump, or what has been delivered since, if that is more. Congestion during
//! reconnaissance, or a minimum RTT of at most half of the saved one or above ten times it, gives the jump up. A flight that is
//! smaller than the initial window or the pipe when the unvalidated phase ends goes back to the pipe size.
//!
//! Parameters: the controller, `cubic` without; `cwnd` and `rtt`, the saved window in segments and the saved RTT. Without
//! them there is no jump.
//!
//! Deviations: the transport's PRR meters a safe retreat too; the saved parameters do not expire, and are not written.

use weir_units::{Bytes, Duration, Instant, Rate};

use crate::modified::its_inner_controller_answers;
use crate::{
    AckEvent, Cause, CcContext, CongestionController, CongestionEvent, PathEvent, Variable,
};

/// What an earlier connection knew of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedPath {
    /// The window, in segments.
    pub cwnd: u64,
    /// The minimum RTT.
    pub rtt: Duration,
}

/// A controller that may jump to half of a saved window.
#[derive(Clone, Debug)]
pub(crate) struct CarefulResume {
    inner: Box<dyn CongestionController>,
    initial_window: Bytes,
    phase: Phase,
    pipe: Pipe,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Reconnaissance(Jump),
    /// Until `end` at the latest.
    Unvalidated {
        window: Bytes,
        end: Instant,
        pace: Option<Rate>,
    },
    /// Until `last` is acknowledged.
    Validating {
        last: u64,
    },
    SafeRetreat {
        window: Bytes,
        last: u64,
    },
    Normal,
}

/// The window to jump to, and the RTT of which it is.
#[derive(Clone, Copy, Debug)]
struct Jump {
    window: Bytes,
    rtt: Duration,
}

/// What the path is known to carry.
#[derive(Clone, Copy, Debug, Default)]
struct Pipe {
    /// What was in flight at the jump, and the first byte of the jump.
    at_jump: Bytes,
    first: u64,
    /// Delivered and lost since.
    delivered: Bytes,
    lost: Bytes,
}

impl Pipe {
    /// What has arrived of the bytes below `last`, retransmissions not counted.
    fn size(self, last: u64) -> Bytes {
        let sent = self.at_jump + Bytes(last.saturating_sub(self.first));
        self.at_jump.max(self.delivered.min(sent.saturating_sub(self.lost)))
    }
}

impl CarefulResume {
    pub(crate) fn new(
        inner: Box<dyn CongestionController>,
        mss: Bytes,
        initial_window: Bytes,
        saved: Option<SavedPath>,
    ) -> Self {
        let jump = saved.map(|saved| Jump { window: mss * saved.cwnd / 2, rtt: saved.rtt });
        // A jump to less than the initial window is none.
        let phase = match jump.filter(|jump| jump.window > initial_window) {
            Some(jump) => Phase::Reconnaissance(jump),
            None => Phase::Normal,
        };
        Self { inner, initial_window, phase, pipe: Pipe::default() }
    }

    fn reconnoitre(&mut self, cx: &CcContext<'_>, jump: Jump) {
        if cx.snd_una < self.initial_window.get() {
            return;
        }
        let known = cx.rtt.min.filter(|min| is_of_the_same_path(*min, jump.rtt));
        self.phase = Phase::Normal;
        if let (Some(min), true) = (known, jump.window > self.inner.cwnd()) {
            let rtt = cx.rtt.srtt.unwrap_or(min);
            let (at_jump, first) = (cx.bytes_in_flight, cx.snd_nxt);
            self.pipe = Pipe { at_jump, first, ..Pipe::default() };
            self.phase = Phase::Unvalidated {
                window: jump.window,
                end: cx.now + rtt,
                pace: Rate::from_transfer(jump.window, rtt),
            };
            self.inner.replace_window(jump.window, None);
        }
    }

    /// The jump is in flight, or as much of it as there was to send.
    fn validate(&mut self, cx: &CcContext<'_>, flight: Bytes, last: u64) {
        let pipe = self.pipe.size(last);
        if flight < self.initial_window || flight <= pipe {
            self.inner.replace_window(pipe.max(cx.mss * 2), None);
            self.phase = Phase::Normal;
        } else {
            self.inner.replace_window(flight, None);
            self.phase = Phase::Validating { last };
        }
    }

    /// Congestion. The window before it, or that of a timeout, is not exceeded.
    fn retreat(&mut self, cx: &CcContext<'_>, most: Bytes, last: u64) {
        let window = (self.pipe.size(last) / 2).max(self.initial_window).min(most).max(cx.mss);
        self.inner.replace_window(window, None);
        self.phase = Phase::SafeRetreat { window, last };
    }

    /// All of the jump was acknowledged, or a timeout found it lost.
    fn leave_retreat(&mut self, cx: &CcContext<'_>, window: Bytes, last: u64) {
        let ssthresh = (self.pipe.size(last) / 2).max(cx.mss * 2);
        self.inner.replace_window(window, Some(ssthresh));
        self.phase = Phase::Normal;
    }
}

/// RFC 9959: the minimum RTT is neither at most half of the saved one nor above ten times it.
fn is_of_the_same_path(min: Duration, saved: Duration) -> bool {
    min > saved / 2 && min <= saved * 10
}

impl CongestionController for CarefulResume {
    fn name(&self) -> &'static str {
        "careful-resume"
    }

    its_inner_controller_answers!();

    fn on_sent(&mut self, cx: &mut CcContext<'_>, bytes: Bytes) {
        self.inner.on_sent(cx, bytes);
        let flight = cx.bytes_in_flight + bytes;
        if let Phase::Unvalidated { window, .. } = self.phase
            && flight + cx.mss > window
        {
            self.validate(cx, flight, cx.snd_nxt + bytes.get());
        }
    }

    fn on_congestion(&mut self, cx: &mut CcContext<'_>, event: &CongestionEvent) {
        let before = self.inner.cwnd();
        self.inner.on_congestion(cx, event);
        let timeout = matches!(event.cause, Cause::Timeout { .. });
        let most = if timeout { self.inner.cwnd() } else { before };
        match self.phase {
            Phase::Normal => {}
            Phase::SafeRetreat { window, last } => {
                self.phase = Phase::SafeRetreat { window: window.min(self.inner.cwnd()), last };
            }
            Phase::Reconnaissance(_) => self.phase = Phase::Normal,
            Phase::Unvalidated { .. } => self.retreat(cx, most, cx.snd_nxt),
            Phase::Validating { last } => self.retreat(cx, most, last),
        }
        if let (true, Phase::SafeRetreat { window, last }) = (timeout, self.phase) {
            self.leave_retreat(cx, window.min(most), last);
        }
    }

    fn on_ack(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
        if !matches!(self.phase, Phase::Reconnaissance(_) | Phase::Normal) {
            self.pipe.delivered += ack.acked;
            self.pipe.lost += ack.lost;
        }
        self.inner.on_ack(cx, ack);
        match self.phase {
            Phase::Normal => {}
            Phase::Reconnaissance(jump) => self.reconnoitre(cx, jump),
            Phase::Unvalidated { window, end, .. } => {
                if cx.snd_una > self.pipe.first || cx.now >= end {
                    self.validate(cx, ack.prior_in_flight, cx.snd_nxt);
                } else {
                    self.inner.replace_window(window, None);
                }
            }
            Phase::Validating { last } if cx.snd_una >= last => self.phase = Phase::Normal,
            Phase::Validating { .. } => {}
            Phase::SafeRetreat { window, last } if cx.snd_una >= last => {
                self.leave_retreat(cx, window, last);
            }
            Phase::SafeRetreat { window, .. } => self.inner.replace_window(window, None),
        }
    }

    fn on_epoch_end(&mut self, cx: &mut CcContext<'_>) {
        self.inner.on_epoch_end(cx);
        if let Phase::SafeRetreat { window, .. } = self.phase {
            self.inner.replace_window(window, None);
        }
    }

    fn on_spurious(&mut self, cx: &mut CcContext<'_>) {
        if matches!(self.phase, Phase::SafeRetreat { .. }) {
            self.phase = Phase::Normal;
        }
        self.inner.on_spurious(cx);
    }

    fn on_path(&mut self, cx: &mut CcContext<'_>, event: &PathEvent) {
        self.inner.on_path(cx, event);
    }

    fn pacing_rate(&self) -> Option<Rate> {
        match self.phase {
            Phase::Unvalidated { pace: Some(pace), .. } => Some(pace),
            _ => self.inner.pacing_rate(),
        }
    }

    fn phase(&self) -> &'static str {
        match self.phase {
            Phase::Unvalidated { .. } => "unvalidated",
            Phase::Validating { .. } => "validating",
            Phase::SafeRetreat { .. } => "safe_retreat",
            Phase::Reconnaissance(_) => "reconnaissance",
            Phase::Normal => self.inner.phase(),
        }
    }

    fn variables(&self) -> Vec<Variable> {
        let mut found = self.inner.variables();
        match self.phase {
            Phase::Reconnaissance(jump) => found.push(("jump_bytes", jump.window.get() as f64)),
            Phase::Unvalidated { window, .. } => found.push(("jump_bytes", window.get() as f64)),
            Phase::Validating { last } | Phase::SafeRetreat { last, .. } => {
                found.push(("pipe_bytes", self.pipe.size(last).get() as f64));
            }
            Phase::Normal => {}
        }
        found
    }
}

#[cfg(test)]
#[path = "careful_resume/tests.rs"]
mod tests;
