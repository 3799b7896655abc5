//! The recovery epoch: the states that an episode of congestion passes through, PRR, and the
//! evidence that would take the episode back.
//!
//! The controller hears of each episode once, and never sees the metering: between the start and the
//! end of an episode PRR (RFC 6937) decides how much goes out per acknowledgement.

use weir_cc::RecoveryState;
use weir_units::Bytes;

use super::{Digest, Profile};
use crate::scoreboard::Scoreboard;

/// Where the connection stands between calm and loss.
#[derive(Debug)]
pub(crate) struct Epoch {
    state: RecoveryState,
    /// The recovery point: where the stream ended when the episode began.
    high: u64,
    prr: Option<Prr>,
    undo: Option<Undo>,
    /// F-RTO (RFC 5682) is under way: the timeout may have been spurious.
    frto: bool,
    /// F-RTO asks for new data rather than for retransmissions.
    prefer_new: bool,
}

/// What an acknowledgement did to the episode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Turn {
    /// The episode is over.
    pub(crate) ended: bool,
    /// It was unfounded.
    pub(crate) spurious: bool,
}

/// The evidence against a reduction.
#[derive(Clone, Copy, Debug)]
struct Undo {
    /// Retransmissions since it began for which no DSACK came; `None` before the first.
    unexplained: Option<u32>,
    /// The timestamp clock when the first retransmission left (Eifel detection, RFC 3522 §3.2).
    first_resent_ms: Option<u32>,
    /// A congestion mark speaks for it.
    marked: bool,
}

impl Epoch {
    pub(crate) fn new() -> Self {
        Self {
            state: RecoveryState::Open,
            high: 0,
            prr: None,
            undo: None,
            frto: false,
            prefer_new: false,
        }
    }

    pub(crate) fn state(&self) -> RecoveryState {
        self.state
    }

    pub(crate) fn high(&self) -> u64 {
        self.high
    }

    /// Whether a loss or mark found now opens an episode, rather than belonging to the current one.
    pub(crate) fn is_closed(&self) -> bool {
        matches!(self.state, RecoveryState::Open | RecoveryState::Disorder)
    }

    /// Whether lost segments may be sent again.
    pub(crate) fn repairs(&self) -> bool {
        !self.prefer_new
    }

    /// What PRR allows to be in flight, while it meters.
    pub(crate) fn prr_window(&self) -> Option<Bytes> {
        self.prr.map(|prr| prr.window)
    }

    /// An episode begins, or an ECN episode turns into one of loss: then its end stands (Linux's
    /// `tcp_enter_recovery`), and a controller that has reduced further gives PRR a new target.
    pub(crate) fn enter(&mut self, state: RecoveryState, board: &Scoreboard, prr: Option<Prr>) {
        debug_assert!(matches!(state, RecoveryState::Cwr | RecoveryState::Recovery));
        if self.is_closed() {
            self.prr = prr;
            self.undo = Some(Undo::new(board));
            self.high = board.nxt();
        } else if let (Some(current), Some(new)) = (&mut self.prr, prr) {
            current.ssthresh = new.ssthresh;
        }
        self.state = state;
    }

    /// The peer echoed a mark: whatever the losses were, the reduction is founded.
    pub(crate) fn on_echo(&mut self) {
        if let Some(undo) = &mut self.undo {
            undo.marked = true;
        }
    }

    /// The retransmission timer fired.
    pub(crate) fn enter_loss(&mut self, board: &Scoreboard, profile: Profile, again: bool) {
        let fresh = self.state != RecoveryState::Recovery;
        if self.is_closed() || self.undo.is_none() {
            self.undo = Some(Undo::new(board));
        }
        self.state = RecoveryState::Loss;
        self.high = board.nxt();
        self.prr = None;
        self.frto = profile.undo && (fresh || again);
        self.prefer_new = false;
    }

    /// Retransmissions are counted for the DSACKs that may answer them.
    pub(crate) fn on_resent(&mut self, now_ms: u32) {
        if let Some(undo) = &mut self.undo {
            undo.unexplained = Some(undo.unexplained.unwrap_or(0) + 1);
            undo.first_resent_ms.get_or_insert(now_ms);
        }
    }

    /// Bytes left while PRR meters.
    pub(crate) fn on_sent(&mut self, bytes: u64) {
        if let Some(prr) = &mut self.prr {
            prr.out += bytes;
        }
    }

    /// Takes in an acknowledgement before losses are looked for: does it end the episode?
    /// `echo_ms` is the timestamp that it echoes, `unsent` whether new data may be sent.
    pub(crate) fn on_ack(
        &mut self,
        board: &mut Scoreboard,
        ack: &Digest,
        echo_ms: Option<u32>,
        profile: Profile,
        unsent: bool,
    ) -> Turn {
        if let Some(undo) = &mut self.undo
            && ack.dsack
        {
            undo.unexplained = undo.unexplained.map(|n| n.saturating_sub(1));
        }
        let unfounded = profile.undo && self.undo.is_some_and(|undo| undo.is_unfounded(echo_ms));
        match self.state {
            RecoveryState::Open | RecoveryState::Disorder => Turn::default(),
            // Above the point: up to it the peer echoes the mark that began the episode.
            RecoveryState::Cwr => self.end_if(board.una() > self.high, false),
            RecoveryState::Recovery => {
                let moved = ack.covered.cum_acked > 0;
                let over = board.una() >= self.high || (moved && profile.ends_on_partial_ack);
                if unfounded && (over || moved || ack.dsack) {
                    board.unmark_losses();
                    return self.end_if(true, true);
                }
                if over {
                    board.clear_duplicates();
                }
                self.end_if(over, false)
            }
            RecoveryState::Loss => self.on_ack_in_loss(board, ack, unfounded, unsent),
        }
    }

    /// RFC 5682 §3.1, the SACK-enhanced form, as Linux's `tcp_process_loss`.
    fn on_ack_in_loss(
        &mut self,
        board: &mut Scoreboard,
        ack: &Digest,
        unfounded: bool,
        unsent: bool,
    ) -> Turn {
        let moved = ack.covered.cum_acked > 0;
        let recovered = board.una() >= self.high;
        self.prefer_new = false;
        if (moved || ack.dsack) && unfounded || self.frto && ack.covered.original_acked {
            board.unmark_losses();
            return self.end_if(true, true);
        }
        if self.frto {
            let sent_beyond = board.nxt() > self.high;
            if sent_beyond && (ack.covered.sacked > 0 || ack.duplicate) {
                self.frto = false;
            } else if moved && !recovered && unsent {
                self.high = board.nxt();
                self.prefer_new = true;
                return Turn::default();
            } else if moved && !recovered {
                self.frto = false;
            }
        }
        self.end_if(recovered, false)
    }

    fn end_if(&mut self, over: bool, spurious: bool) -> Turn {
        let marked = self.undo.is_some_and(|undo| undo.marked);
        if over {
            self.state = RecoveryState::Open;
            self.prr = None;
            self.undo = None;
            self.frto = false;
            self.prefer_new = false;
        }
        Turn { ended: over, spurious: over && spurious && !marked }
    }

    /// After losses were looked for: between calm and disorder.
    pub(crate) fn settle(&mut self, board: &Scoreboard) {
        if self.is_closed() {
            let calm = board.sacked() == 0 && board.lost() == 0;
            self.state = if calm { RecoveryState::Open } else { RecoveryState::Disorder };
        }
    }

    /// Meters by PRR after an acknowledgement that revealed the loss of `lost` bytes.
    pub(crate) fn meter(&mut self, board: &Scoreboard, ack: &Digest, lost: u64, mss: u64) {
        if let Some(prr) = &mut self.prr {
            prr.on_ack(board.in_flight(), ack, lost, mss);
        }
    }
}

impl Undo {
    fn new(board: &Scoreboard) -> Self {
        // What was resent earlier and is still out counts as unexplained (Linux's tcp_init_undo).
        let unexplained = (board.resent() > 0).then_some(u32::MAX / 2);
        Self { unexplained, first_resent_ms: None, marked: false }
    }

    /// Every retransmission was answered as a duplicate, or the acknowledgement echoes a segment that
    /// left before the first retransmission.
    fn is_unfounded(&self, echo_ms: Option<u32>) -> bool {
        let echoes_original = match (self.first_resent_ms, echo_ms) {
            (Some(resent), Some(echo)) => (echo.wrapping_sub(resent) as i32) < 0,
            _ => false,
        };
        self.unexplained == Some(0) || echoes_original
    }
}

/// Proportional rate reduction (RFC 6937 with RFC 9937's adaptive bound, as Linux 6.1).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prr {
    /// The window before the reduction.
    prior_cwnd: u64,
    /// The window to arrive at.
    ssthresh: u64,
    delivered: u64,
    out: u64,
    window: Bytes,
}

impl Prr {
    pub(crate) fn new(prior_cwnd: Bytes, ssthresh: Bytes) -> Self {
        let (prior_cwnd, ssthresh) = (prior_cwnd.get().max(1), ssthresh.get());
        Self { prior_cwnd, ssthresh, delivered: 0, out: 0, window: Bytes(prior_cwnd) }
    }

    fn on_ack(&mut self, in_flight: Bytes, ack: &Digest, lost: u64, mss: u64) {
        let newly_delivered = ack.covered.delivered;
        if newly_delivered == 0 && self.out > 0 {
            return;
        }
        self.delivered += newly_delivered;
        let in_flight = in_flight.get();
        let allowance = if in_flight > self.ssthresh {
            let share = u128::from(self.ssthresh) * u128::from(self.delivered);
            // In whole segments, rounded up, as Linux counts.
            let per_segment = u128::from(self.prior_cwnd) * u128::from(mss);
            let target = share.div_ceil(per_segment) as u64 * mss;
            target.saturating_sub(self.out)
        } else {
            let mut bound = self.delivered.saturating_sub(self.out).max(newly_delivered);
            // Progress without new losses: grow back as slow start would (RFC 6937's SSRB).
            if ack.covered.cum_acked > 0 && lost == 0 {
                bound += mss;
            }
            bound.min(self.ssthresh - in_flight)
        };
        // The first retransmission always goes out.
        let floor = if self.out == 0 { mss } else { 0 };
        self.window = Bytes(in_flight + allowance.max(floor));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::scoreboard::Covered;

    const MSS: u64 = 1_000;

    fn delivery(bytes: u64) -> Digest {
        let covered = Covered { delivered: bytes, ..Covered::default() };
        Digest { covered, duplicate: false, dsack: false }
    }

    /// Acknowledges a window segment by segment, of which the first `lost` were lost, and sends what
    /// PRR allows. Returns what was in flight at each step.
    fn window_under_prr(cwnd: u64, ssthresh: u64, lost: u64) -> Vec<u64> {
        let mut prr = Prr::new(Bytes(cwnd * MSS), Bytes(ssthresh * MSS));
        let mut in_flight = (cwnd - lost) * MSS;
        let mut seen = Vec::new();
        for _ in lost..cwnd {
            in_flight -= MSS;
            prr.on_ack(Bytes(in_flight), &delivery(MSS), 0, MSS);
            let sent = prr.window.get().saturating_sub(in_flight) / MSS * MSS;
            prr.out += sent;
            in_flight += sent;
            seen.push(in_flight / MSS);
        }
        seen
    }

    #[test]
    fn a_window_shrinks_to_ssthresh_over_one_round_trip() {
        let flight = window_under_prr(100, 50, 1);
        assert_eq!(flight.last(), Some(&50), "{flight:?}");
        assert!(flight.windows(2).all(|w| w[1] <= w[0]), "sends on every second ACK: {flight:?}");
    }

    #[test]
    fn cubic_sends_seven_of_ten() {
        assert_eq!(window_under_prr(100, 70, 1).last(), Some(&70));
    }

    #[test]
    fn heavy_loss_leaves_what_was_delivered_in_flight() {
        // 80 of 100 lost: packets are conserved, no burst back to ssthresh (RFC 6937 §3).
        let flight = window_under_prr(100, 50, 80);
        assert_eq!(flight.last(), Some(&20), "{flight:?}");
    }

    proptest! {
        #[test]
        fn prr_never_exceeds_ssthresh_by_its_own_sending(
            cwnd in 4u64..500, share in 30u64..90, lost in 1u64..400,
        ) {
            let lost = lost.min(cwnd - 1);
            let ssthresh = (cwnd * share / 100).max(2);
            let flight = window_under_prr(cwnd, ssthresh, lost);
            let start = cwnd - lost;
            prop_assert!(flight.iter().all(|f| *f <= start.max(ssthresh) + 1), "{:?}", flight);
        }
    }
}
