//! `muzha2`: NewReno under the routers' indices.
//!
//! Source: three bullets of the slides on TCP Muzha (Hsiao and Lien, 2006) about its second version:
//! congestion control based on NewReno, a new index, link errors distinguished from congestion. How they go
//! together is our reading:
//!
//! ```text
//! smallest index of the round trip    the next one
//!   5    grows as NewReno: slow start below ssthresh, one segment per round trip above
//!   4    grows by one segment per round trip
//!   3    stays
//!   2    loses one segment and stays
//!   1    ssthresh = cwnd / 2, cwnd = ssthresh, and stays
//! ```
//!
//! Losses shrink the window as NewReno's do, but for a fast retransmit without an index of 1 or 2 among
//! its three duplicates, which is laid to the medium and leaves the window alone. The window starts with
//! two segments; where no router stamps a packet this is NewReno.

use weir_units::{Bytes, Feedback, FeedbackKind};

use crate::indices::Indices;
use crate::window::{AckClockedWindow, ack_clocked_window, may_raise};
use crate::{AckEvent, Cause, CcContext, CongestionController, CongestionEvent, Needs, Variable};

/// NewReno's window under the routers' indices.
#[derive(Clone, Debug)]
pub struct Muzha2 {
    window: AckClockedWindow,
    indices: Indices,
    /// The smallest index of the last round trip.
    gate: u8,
}

impl Muzha2 {
    /// Starts with two segments of `mss`, or with a smaller `initial_window`.
    pub fn new(mss: Bytes, initial_window: Bytes) -> Self {
        Self {
            window: AckClockedWindow::new(initial_window.min(mss * 2)),
            indices: Indices::new(LEVELS),
            gate: LEVELS,
        }
    }

    /// A round trip is over, with this index.
    fn on_round_end(&mut self, cx: &CcContext<'_>, smallest: u8) {
        self.gate = smallest;
        match smallest {
            1 => {
                self.window.ssthresh = (self.window.cwnd / 2).max(cx.mss * 2);
                self.window.cwnd = (self.window.cwnd / 2).max(cx.mss);
            }
            2 => self.window.cwnd = self.window.cwnd.saturating_sub(cx.mss).max(cx.mss),
            _ => {}
        }
    }

    fn grow(&mut self, cx: &CcContext<'_>, ack: &AckEvent) {
        let cwnd = self.window.cwnd;
        match self.gate {
            5.. => self.window.grow_as_reno(cx, ack.acked),
            4 if cx.cwnd_limited => self.window.additive_increase(cx.mss, cwnd, ack.acked),
            _ => {}
        }
        self.window.cwnd = self.window.cwnd.min(cx.peer_window.max(cwnd));
    }
}

impl CongestionController for Muzha2 {
    fn name(&self) -> &'static str {
        "muzha2"
    }

    fn needs(&self) -> Needs {
        Needs { feedback: Some(FeedbackKind::Drai), ..Needs::default() }
    }

    fn request(&mut self, _cx: &mut CcContext<'_>) -> Option<Feedback> {
        Some(self.indices.request())
    }

    fn on_congestion(&mut self, cx: &mut CcContext<'_>, event: &CongestionEvent) {
        let warned = self.indices.at_loss(cx).is_some_and(|index| index < self.indices.steady());
        let random = event.cause == Cause::FastRetransmit && self.indices.is_marked() && !warned;
        if !random {
            self.window.on_congestion(cx, event, |cwnd| cwnd / 2);
        } else if event.first_in_epoch {
            self.window.keep();
        }
    }

    fn on_ack(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
        self.indices.on_ack(cx, ack);
        if !may_raise(cx, ack) {
            return;
        }
        if !self.indices.is_marked() {
            return self.window.grow_as_reno(cx, ack.acked);
        }
        if let Some(smallest) = self.indices.round_over(cx, ack) {
            self.on_round_end(cx, smallest);
        }
        self.grow(cx, ack);
    }

    fn on_epoch_end(&mut self, cx: &mut CcContext<'_>) {
        self.indices.begin_round(cx);
    }

    ack_clocked_window!(on_spurious, phase);

    fn variables(&self) -> Vec<Variable> {
        let mut found = vec![("gate", f64::from(self.gate))];
        found.extend(self.indices.last().map(|index| ("index", f64::from(index))));
        found
    }
}

const LEVELS: u8 = 5;
