//! `muzha`, and `drai-aimd(a,b)`, `drai-aiad(a,b)`, `drai-mimd(a,b)`, `drai-miad(a,b)`: TCP Muzha.
//!
//! Source: Hsiao and Lien, "A New TCP Congestion Control Mechanism over Mobile Ad Hoc Networks by
//! Router-Assisted Approach", slides, 2006. Routers put an index into each packet, the receiver returns the
//! smallest of the path, and the window follows it in place of slow start and congestion avoidance:
//!
//! ```text
//! index    3        4        5        6        7        levels
//!   1     x 1/2    x 1/2    x 1/2    x 1/2    x 1/2
//!   2      -        - 1      - 1      - 2      - 2
//!   3     x 2       + 1       -       - 1      - 1
//!   4              x 2       + 1      + 1       -
//!   5                       x 2       + 2      + 1
//!   6                                x 2       + 2
//!   7                                         x 2
//! ```
//!
//! Five levels are the slides' own. The `drai-` family has five, of which 4 and 5 take the increase, 1 and
//! 2 the decrease, and 3 nothing; the settings are those of [`Parametric`](crate::Parametric).
//!
//! On the third duplicate acknowledgement an index that slows down among them means congestion, and
//! anything else a random loss, which leaves the window alone. A timeout restarts the window with one
//! segment, from which the table goes on: there is no slow start.
//!
//! The slides leave open how often the table applies. As doubling with each acknowledgement would be no
//! replacement of slow start, it does once per round trip, with the smallest index of that round trip.
//! Growth needs a window that was in use, and ends at what the peer offers. Where no router ever stamps a
//! packet this is NewReno.
//!
//! Options: `update`, how often the table applies; `levels`; `fr-reduce`, what congestion on a fast
//! retransmit does; `rto`, what a timeout does; `exit`, when fast recovery ends for the table. The window
//! starts with two segments. It is kept in bytes, so that fractions of a segment add up.

use weir_units::{Bytes, Feedback, FeedbackKind};

use crate::indices::Indices;
use crate::window::{AckClockedWindow, may_raise};
use crate::{
    AckEvent, Cause, CcContext, CongestionController, CongestionEvent, Decimal, Decrease, Increase,
    Needs, PathEvent, Variable,
};

/// A window that follows the routers' indices.
#[derive(Clone, Debug)]
pub struct Muzha {
    /// Besides the window itself: NewReno's state, for paths without indices.
    window: AckClockedWindow,
    mss: Bytes,
    table: MuzhaTable,
    options: MuzhaOptions,
    indices: Indices,
    /// Between a fast retransmit and the end of its recovery.
    recovering: bool,
    /// The window to return to if the last reduction proves unfounded.
    checkpoint: Option<Bytes>,
}

/// What an index does to the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MuzhaTable {
    /// The table for `levels` levels, 3 to 7.
    Levels(u8),
    /// Five levels of which the upper two do the one and the lower two the other.
    Linear(Increase, Decrease),
}

/// What the slides leave open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MuzhaOptions {
    /// How often the table applies.
    pub update: MuzhaUpdate,
    /// What congestion does to the window on a fast retransmit.
    pub reduce: FrReduce,
    /// What a timeout does to it.
    pub timeout: MuzhaRto,
    /// When the table applies again after a fast retransmit.
    pub exit: MuzhaExit,
}

/// How often the table applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MuzhaUpdate {
    /// Once per round trip, with its smallest index.
    #[default]
    PerRtt,
    /// With every acknowledgement in part, to the same sum per round trip.
    PerAckSmooth,
    /// With every acknowledgement in full.
    PerAckLiteral,
}

/// What congestion does to the window on a fast retransmit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FrReduce {
    /// Halves it, down to two segments.
    #[default]
    Half,
    /// What the table says for the index.
    ByIndex,
    /// Nothing.
    None,
}

/// What a timeout does to the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MuzhaRto {
    /// It begins again with one segment.
    #[default]
    One,
    /// Halves it if the last index did not slow down.
    Half,
}

/// When the table applies again after a fast retransmit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MuzhaExit {
    /// When everything that was in flight is acknowledged.
    #[default]
    Full,
    /// With any new acknowledgement, as the slides' diagram has it.
    Any,
}

/// What an index does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Grow(Increase),
    Hold,
    Shrink(Decrease),
}

impl Muzha {
    /// Starts with two segments of `mss`, or with a smaller `initial_window`.
    pub fn new(
        mss: Bytes,
        initial_window: Bytes,
        table: MuzhaTable,
        options: MuzhaOptions,
    ) -> Self {
        let initial = initial_window.min(mss * 2);
        Self {
            window: AckClockedWindow::new(initial),
            mss,
            table,
            options,
            indices: Indices::new(table.levels()),
            recovering: false,
            checkpoint: None,
        }
    }

    /// Applies an action in full.
    fn apply(&mut self, cx: &CcContext<'_>, action: Action) {
        let cwnd = self.window.cwnd;
        let target = match action {
            Action::Hold => cwnd,
            Action::Grow(_) if !cx.cwnd_limited => cwnd,
            Action::Grow(Increase::Add(a)) => cwnd + a.multiply(cx.mss),
            Action::Grow(Increase::Multiply(a)) => a.multiply(cwnd),
            Action::Shrink(Decrease::Subtract(b)) => cwnd.saturating_sub(b.multiply(cx.mss)),
            Action::Shrink(Decrease::Multiply(b)) => b.multiply(cwnd),
        };
        self.set_cwnd(cx, target);
    }

    /// Applies the part of an action that falls to `acked` bytes of a window.
    fn apply_part(&mut self, cx: &CcContext<'_>, action: Action, acked: Bytes) {
        let cwnd = self.window.cwnd;
        let share =
            |segments: Decimal| segments.multiply(cx.mss).mul_ratio(acked.get(), cwnd.get().max(1));
        let target = match action {
            Action::Hold => cwnd,
            Action::Grow(_) if !cx.cwnd_limited => cwnd,
            Action::Grow(Increase::Add(a)) => cwnd + share(a),
            Action::Grow(Increase::Multiply(a)) => cwnd + a.less_one().multiply(acked),
            Action::Shrink(Decrease::Subtract(b)) => cwnd.saturating_sub(share(b)),
            Action::Shrink(Decrease::Multiply(b)) => {
                cwnd.saturating_sub(acked.saturating_sub(b.multiply(acked)))
            }
        };
        self.set_cwnd(cx, target);
    }

    fn set_cwnd(&mut self, cx: &CcContext<'_>, target: Bytes) {
        self.window.cwnd = target.min(cx.peer_window).max(cx.mss);
    }

    fn on_fast_retransmit(&mut self, cx: &CcContext<'_>) {
        self.recovering = true;
        self.checkpoint = None;
        let Some(index) = self.indices.at_loss(cx).filter(|index| *index < self.indices.steady())
        else {
            return;
        };
        self.checkpoint = Some(self.window.cwnd);
        match self.options.reduce {
            FrReduce::Half => self.window.cwnd = (self.window.cwnd / 2).max(cx.mss * 2),
            FrReduce::ByIndex => self.apply(cx, self.table.action(index)),
            FrReduce::None => {}
        }
    }

    fn on_timeout(&mut self, cx: &CcContext<'_>, event: &CongestionEvent) {
        self.recovering = false;
        let cwnd = self.window.cwnd;
        let before = self.checkpoint.filter(|_| !event.first_in_epoch);
        self.checkpoint = before.max(Some(cwnd));
        let spare = self.indices.last().is_some_and(|index| index >= self.indices.steady());
        self.window.cwnd = match self.options.timeout {
            MuzhaRto::Half if spare => (cwnd / 2).max(cx.mss),
            MuzhaRto::One | MuzhaRto::Half => cx.bytes_in_flight + cx.mss,
        };
        self.indices.begin_round(cx);
    }
}

impl CongestionController for Muzha {
    fn name(&self) -> &'static str {
        match self.table {
            MuzhaTable::Levels(_) => "muzha",
            MuzhaTable::Linear(Increase::Add(_), Decrease::Multiply(_)) => "drai-aimd",
            MuzhaTable::Linear(Increase::Add(_), Decrease::Subtract(_)) => "drai-aiad",
            MuzhaTable::Linear(Increase::Multiply(_), Decrease::Multiply(_)) => "drai-mimd",
            MuzhaTable::Linear(Increase::Multiply(_), Decrease::Subtract(_)) => "drai-miad",
        }
    }

    fn needs(&self) -> Needs {
        Needs { feedback: Some(FeedbackKind::Drai), ..Needs::default() }
    }

    fn request(&mut self, _cx: &mut CcContext<'_>) -> Option<Feedback> {
        Some(self.indices.request())
    }

    fn on_congestion(&mut self, cx: &mut CcContext<'_>, event: &CongestionEvent) {
        let marked = self.indices.is_marked();
        match event.cause {
            Cause::FastRetransmit if marked && event.first_in_epoch => self.on_fast_retransmit(cx),
            Cause::FastRetransmit if marked => {}
            Cause::Timeout { .. } if marked => self.on_timeout(cx, event),
            _ => self.window.on_congestion(cx, event, |cwnd| cwnd / 2),
        }
    }

    fn on_ack(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
        let level = self.indices.on_ack(cx, ack);
        if !self.indices.is_marked() {
            if may_raise(cx, ack) {
                self.window.grow_as_reno(cx, ack.acked);
            }
            return;
        }
        if ack.cum_acked == Bytes::ZERO {
            return;
        }
        self.recovering &= self.options.exit == MuzhaExit::Full;
        if self.recovering {
            return;
        }
        match self.options.update {
            MuzhaUpdate::PerRtt => {
                if let Some(smallest) = self.indices.round_over(cx, ack) {
                    self.apply(cx, self.table.action(smallest));
                }
            }
            MuzhaUpdate::PerAckSmooth => {
                self.apply_part(cx, self.table.action(level), ack.cum_acked);
            }
            MuzhaUpdate::PerAckLiteral => self.apply(cx, self.table.action(level)),
        }
    }

    fn on_epoch_end(&mut self, cx: &mut CcContext<'_>) {
        if self.recovering {
            self.recovering = false;
            self.indices.begin_round(cx);
        }
    }

    fn on_spurious(&mut self, _cx: &mut CcContext<'_>) {
        self.window.undo();
        if let Some(cwnd) = self.checkpoint.take() {
            self.window.cwnd = self.window.cwnd.max(cwnd);
        }
        self.recovering = false;
    }

    fn on_path(&mut self, cx: &mut CcContext<'_>, event: &PathEvent) {
        if let PathEvent::MssChanged(mss) = *event {
            self.window.cwnd = self.window.cwnd.mul_ratio(mss.get(), self.mss.get());
            self.mss = mss;
        }
        self.window.on_path(cx.mss, event);
    }

    fn cwnd(&self) -> Bytes {
        self.window.cwnd
    }

    fn ssthresh(&self) -> Option<Bytes> {
        self.window.finite_ssthresh().filter(|_| !self.indices.is_marked())
    }

    fn phase(&self) -> &'static str {
        match (self.indices.is_marked(), self.recovering) {
            (false, _) => self.window.phase(),
            (true, false) => "congestion_avoidance",
            (true, true) => "fast_recovery",
        }
    }

    fn variables(&self) -> Vec<Variable> {
        self.indices.last().map(|index| ("index", f64::from(index))).into_iter().collect()
    }
}

impl MuzhaTable {
    /// The number of indices.
    pub(crate) fn levels(self) -> u8 {
        match self {
            Self::Levels(levels) => levels,
            Self::Linear(..) => 5,
        }
    }

    fn action(self, index: u8) -> Action {
        match self {
            Self::Linear(increase, decrease) => match index {
                ..=2 => Action::Shrink(decrease),
                3 => Action::Hold,
                4.. => Action::Grow(increase),
            },
            Self::Levels(levels) => of_levels(levels, index),
        }
    }
}

/// The lowest index halves, the highest doubles; between them the window changes by as many segments as
/// the index is away from the middle, where it holds if there is one.
fn of_levels(levels: u8, index: u8) -> Action {
    let segments = |count: u8| Decimal::from_thousandths(u32::from(count) * 1_000);
    if index <= 1 {
        return Action::Shrink(Decrease::Multiply(Decimal::HALF));
    }
    if index >= levels {
        return Action::Grow(Increase::Multiply(Decimal::TWO));
    }
    let (below, above) = (levels.div_ceil(2), levels / 2 + 1);
    let grow = segments(index.saturating_sub(below)).filter(|_| index > below);
    let shrink = segments(above.saturating_sub(index)).filter(|_| index < above);
    match (grow, shrink) {
        (Some(count), _) => Action::Grow(Increase::Add(count)),
        (_, Some(count)) => Action::Shrink(Decrease::Subtract(count)),
        _ => Action::Hold,
    }
}

#[cfg(test)]
mod tests;
