//! `rcp`: the Rate Control Protocol's sender.
//!
//! Source: Dukkipati, Kobayashi, Zhang-Shen and McKeown, "Processor sharing flows in the Internet",
//! IWQoS 2005. Routers have one rate for all flows; a packet collects the smallest on its way, and the
//! sender paces its packets at the newest that came back, the handshake's to begin with.
//!
//! The window only bounds bytes in flight when acknowledgements stop: two round trips' worth. A
//! timeout takes it down to one segment until the next rate comes. Losses are repaired and change nothing.
//! A rate that comes back as it was sent has met no RCP router: until another does, this is Reno.

use weir_units::feedback::{Rcp as Header, header_micros};
use weir_units::{Bytes, Echo, Feedback, FeedbackKind, Rate};

use crate::window::{AckClockedWindow, may_raise};
use crate::{
    AckEvent, Cause, CcContext, CongestionController, CongestionEvent, Needs, PathEvent, Variable,
};

/// A rate that routers set.
#[derive(Clone, Debug)]
pub struct Rcp {
    window: AckClockedWindow,
    /// The newest.
    rate: Option<Rate>,
    /// The window before the last timeout.
    checkpoint: Option<Bytes>,
}

impl Rcp {
    /// Starts with `initial_window` where no rate came back with the handshake.
    pub fn new(initial_window: Bytes) -> Self {
        Self { window: AckClockedWindow::new(initial_window), rate: None, checkpoint: None }
    }

    /// Routers' rates are in bytes per second; a segment in ten seconds is the least.
    fn obey(&mut self, cx: &CcContext<'_>, rate: u32) {
        let rate = u64::from(rate).max(cx.mss.get() / 10).max(1);
        let rate = Rate::from_bits_per_sec(rate * 8);
        self.rate = Some(rate);
        let per_rtt = rate.bytes_in(cx.rtt.srtt.unwrap_or_default());
        self.window.cwnd = (per_rtt * 2).max(cx.mss * 2).min(cx.peer_window.max(cx.mss));
    }
}

impl CongestionController for Rcp {
    fn name(&self) -> &'static str {
        "rcp"
    }

    fn needs(&self) -> Needs {
        Needs {
            feedback: Some(FeedbackKind::Rcp),
            own_reduction: true,
            pacing: true,
            ..Needs::default()
        }
    }

    fn request(&mut self, cx: &mut CcContext<'_>) -> Option<Feedback> {
        let rtt_micros = header_micros(cx.rtt.srtt.unwrap_or_default());
        Some(Feedback::Rcp(Header { rate: u32::MAX, rtt_micros }))
    }

    fn on_congestion(&mut self, cx: &mut CcContext<'_>, event: &CongestionEvent) {
        match (self.rate, event.cause) {
            (None, _) => self.window.on_congestion(cx, event, |cwnd| cwnd / 2),
            (Some(_), Cause::Timeout { .. }) => {
                let before = self.checkpoint.filter(|_| !event.first_in_epoch);
                self.checkpoint = before.max(Some(self.window.cwnd));
                self.window.cwnd = cx.bytes_in_flight + cx.mss;
            }
            (Some(_), _) => {}
        }
    }

    fn on_ack(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
        match cx.feedback {
            Some(Echo::Rcp(rate)) if rate != u32::MAX => self.obey(cx, rate),
            _ if self.rate.is_none() && may_raise(cx, ack) => {
                self.window.grow_as_reno(cx, ack.acked);
            }
            _ => {}
        }
    }

    fn on_spurious(&mut self, _cx: &mut CcContext<'_>) {
        self.window.undo();
        if let Some(cwnd) = self.checkpoint.take() {
            self.window.cwnd = self.window.cwnd.max(cwnd);
        }
    }

    fn on_path(&mut self, cx: &mut CcContext<'_>, event: &PathEvent) {
        if self.rate.is_none() {
            self.window.on_path(cx.mss, event);
        }
    }

    fn cwnd(&self) -> Bytes {
        self.window.cwnd
    }

    fn ssthresh(&self) -> Option<Bytes> {
        self.window.finite_ssthresh().filter(|_| self.rate.is_none())
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.rate
    }

    fn phase(&self) -> &'static str {
        if self.rate.is_some() { "controlled" } else { self.window.phase() }
    }

    fn variables(&self) -> Vec<Variable> {
        self.rate.map(|rate| ("rate_mbps", rate.as_mbit_f64())).into_iter().collect()
    }
}
