//! The recovery epoch: the states that an episode of congestion passes through, and the evidence that
//! would take the episode back.
//!
//! The controller hears of each episode once, and never sees the metering: between the start and the
//! end of an episode PRR (RFC 9937) decides how much goes out per acknowledgement.

use weir_cc::RecoveryState;
use weir_units::Bytes;

use super::{AckSummary, Profile, Prr};
use crate::scoreboard::{Scoreboard, Sent};

/// Where the connection stands between calm and loss.
#[derive(Clone, Debug)]
pub(crate) struct Epoch {
    state: RecoveryState,
    /// The recovery point: where the stream ended when the episode began.
    high: u64,
    prr: Option<Prr>,
    /// Kept after the end of the episode, for a DSACK that comes late.
    undo: Option<Undo>,
    /// The timestamp clock when the first retransmission left, of those that may be out (Eifel
    /// detection, RFC 3522 §3.2; Linux's `retrans_stamp`).
    first_resent_ms: Option<u32>,
    /// F-RTO (RFC 5682) is in progress: the timeout may have been spurious.
    frto: bool,
    /// F-RTO asks for new data rather than for retransmissions.
    prefer_new: bool,
    /// The controller has not been notified of the episode.
    silent: bool,
}

/// What an acknowledgement did to the episode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EpochChange {
    /// The episode is over.
    pub(crate) ended: bool,
    /// It was unfounded, and is taken back.
    pub(crate) spurious: bool,
    /// It was unfounded, but a congestion mark speaks for it: the window stays what it was metered down to (Linux's
    /// `tcp_undo_cwnd_reduction` without `prior_ssthresh`).
    pub(crate) stands: bool,
    /// A hole was filled by the original, which was late: the path reorders (Linux's
    /// `tcp_try_undo_partial`).
    pub(crate) reordered: bool,
    /// As long as copies are out, this acknowledgement lets new data go, and nothing more is marked
    /// lost or sent again.
    pub(crate) waits: bool,
}

/// The evidence against a reduction.
#[derive(Clone, Copy, Debug)]
struct Undo {
    /// What was unacknowledged when it began.
    una: u64,
    /// Retransmissions since it began for which no DSACK came; `None` before the first.
    unexplained: Option<u32>,
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
            first_resent_ms: None,
            frto: false,
            prefer_new: false,
            silent: false,
        }
    }

    pub(crate) fn state(&self) -> RecoveryState {
        self.state
    }

    /// The state as last reported to the controller.
    pub(crate) fn reported_state(&self) -> RecoveryState {
        if self.silent { RecoveryState::Open } else { self.state }
    }

    /// Whether losses are being repaired without notifying the controller.
    pub(crate) fn is_silent(&self) -> bool {
        self.silent
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
        self.prr.map(|prr| prr.window())
    }

    /// The controller has lowered the window that PRR goes down to (Linux's `snd_ssthresh`).
    pub(crate) fn aim_at(&mut self, window: Bytes) {
        if let Some(prr) = &mut self.prr {
            prr.aim_at(window);
        }
    }

    /// An episode begins, or an ECN episode turns into one of loss: then its end stands (Linux's
    /// `tcp_enter_recovery`), and a controller that has reduced further gives PRR a new target.
    /// `copies` are on their way from before it.
    pub(crate) fn enter(
        &mut self,
        state: RecoveryState,
        board: &Scoreboard,
        prr: Option<Prr>,
        copies: u32,
    ) {
        debug_assert!(matches!(state, RecoveryState::Cwr | RecoveryState::Recovery));
        self.forget_old_retransmissions(board);
        // Of an episode that a mark began nothing is given back (`tcp_enter_recovery`).
        let marked = self.state == RecoveryState::Cwr;
        self.undo = (state == RecoveryState::Recovery)
            .then(|| Undo { marked, ..Undo::new(board.una(), copies) });
        if self.state != RecoveryState::Cwr {
            self.prr = prr;
            self.high = board.nxt();
        } else if let (Some(current), Some(new)) = (&mut self.prr, prr) {
            current.aim_at(new.target());
        }
        self.state = state;
        self.frto = false;
        self.prefer_new = false;
        self.silent = false;
    }

    /// Repairs losses without notifying the controller, unless it was notified of the episode
    /// already: those that acknowledgements show one by one, or, as after a timeout, all at once. There is
    /// nothing to take back.
    pub(crate) fn enter_silently(&mut self, state: RecoveryState, board: &Scoreboard) {
        debug_assert!(matches!(state, RecoveryState::Recovery | RecoveryState::Loss));
        self.silent |= self.is_closed();
        if state == RecoveryState::Loss || !super::is_recovering(self.state) {
            self.state = state;
            self.high = board.nxt();
        }
        self.prr = None;
        self.undo = None;
        self.frto = false;
        self.prefer_new = false;
    }

    /// The peer echoed a mark: whatever the losses were, the reduction is founded.
    pub(crate) fn on_echo(&mut self) {
        if let Some(undo) = &mut self.undo {
            undo.marked = true;
        }
    }

    /// The retransmission timer fired, `again` without progress since it did (Linux's
    /// `tcp_enter_loss`). For the first time in an episode `copies` are on their way from before it.
    pub(crate) fn enter_loss(
        &mut self,
        board: &Scoreboard,
        profile: Profile,
        copies: Option<u32>,
        again: bool,
    ) {
        let calm = self.is_closed() || self.state == RecoveryState::Cwr;
        if let Some(copies) = copies {
            self.undo = Some(Undo::new(board.una(), copies));
        }
        self.state = RecoveryState::Loss;
        self.high = board.nxt();
        self.prr = None;
        self.frto = profile.undo && (calm || again);
        self.prefer_new = false;
        self.silent = false;
    }

    /// Retransmissions are counted for the DSACKs that may answer them.
    pub(crate) fn on_resent(&mut self, now_ms: u32) {
        self.first_resent_ms.get_or_insert(now_ms);
        if let Some(undo) = &mut self.undo {
            undo.unexplained = Some(undo.unexplained.unwrap_or(0) + 1);
        }
    }

    /// Bytes left while PRR meters.
    pub(crate) fn on_sent(&mut self, bytes: u64) {
        if let Some(prr) = &mut self.prr {
            prr.on_sent(bytes);
        }
    }

    /// Processes an acknowledgement before losses are looked for: does it end the episode?
    /// `echo_ms` is the timestamp that it echoes, `unsent` whether new data may be sent.
    pub(crate) fn on_ack(
        &mut self,
        board: &mut Scoreboard,
        ack: &AckSummary,
        echo_ms: Option<u32>,
        profile: Profile,
        unsent: bool,
    ) -> EpochChange {
        if self.is_closed() && ack.dsack.is_none() {
            return EpochChange::default();
        }
        if let (Some(undo), Some(dsack)) = (&mut self.undo, ack.dsack)
            && dsack.was_resent
            && dsack.end > undo.una
        {
            undo.unexplained = undo.unexplained.map(|n| n.saturating_sub(1));
        }
        let undo = self.undo.filter(|_| profile.undo);
        let marked = undo.is_some_and(|undo| undo.marked);
        let evidence = UndoEvidence {
            delayed: undo.is_some() && self.echoes_original(echo_ms),
            explained: undo.is_some_and(|undo| undo.unexplained == Some(0)),
        };
        let turn = match self.state {
            RecoveryState::Open | RecoveryState::Disorder => {
                // A late answer to the last episode's retransmissions (Linux's tcp_try_undo_dsack).
                let spurious = evidence.explained && ack.dsack.is_some();
                self.undo = self.undo.filter(|_| !spurious);
                EpochChange { spurious, ..EpochChange::default() }
            }
            // Above the point: up to it the peer echoes the mark that began the episode.
            RecoveryState::Cwr => self.end_if(board.una() > self.high, false),
            RecoveryState::Recovery => self.on_ack_in_recovery(board, ack, evidence, profile),
            RecoveryState::Loss => self.on_ack_in_loss(board, ack, evidence, unsent),
        };
        EpochChange { spurious: turn.spurious && !marked, stands: turn.spurious && marked, ..turn }
    }

    /// Linux's `tcp_try_undo_recovery`, `tcp_try_undo_partial` and `tcp_try_undo_dsack`.
    fn on_ack_in_recovery(
        &mut self,
        board: &mut Scoreboard,
        ack: &AckSummary,
        evidence: UndoEvidence,
        profile: Profile,
    ) -> EpochChange {
        let moved = ack.covered.cum_acked > 0;
        self.prefer_new = false;
        if board.una() >= self.high || (moved && profile.ends_on_partial_ack) {
            board.clear_duplicates();
            let spurious = evidence.delayed || evidence.explained;
            if profile.ends_above_point && board.una() == self.high {
                self.undo = self.undo.filter(|_| !spurious);
                return EpochChange { spurious, ..EpochChange::default() };
            }
            return self.end_if(true, spurious);
        }
        if moved && evidence.delayed {
            if board.resent() > 0 {
                self.prefer_new = true;
                return EpochChange { reordered: true, waits: true, ..EpochChange::default() };
            }
            board.unmark_losses();
            return EpochChange { reordered: true, ..self.end_if(true, true) };
        }
        self.end_if(evidence.explained, true)
    }

    /// RFC 5682 §3.1, the SACK-enhanced form, as Linux's `tcp_process_loss`.
    fn on_ack_in_loss(
        &mut self,
        board: &mut Scoreboard,
        ack: &AckSummary,
        evidence: UndoEvidence,
        unsent: bool,
    ) -> EpochChange {
        let moved = ack.covered.cum_acked > 0;
        // What was sent again silently may have arrived before: the answers to the copies are duplicates at
        // exactly the point, which mean no loss (RFC 6582 §3.2 step 2).
        let above = u64::from(self.silent);
        let recovered = board.una() >= self.high + above;
        self.prefer_new = false;
        let unfounded = moved && (evidence.delayed || evidence.explained);
        if unfounded || self.frto && ack.covered.original_acked {
            board.unmark_losses();
            return self.end_if(true, true);
        }
        if self.frto && board.nxt() > self.high {
            // A duplicate that reports a duplicate arrival says nothing of what was lost (Linux's
            // `num_dupack`).
            let duplicate = ack.duplicate && ack.dsack.is_none();
            self.frto = ack.covered.sacked == 0 && !duplicate;
        } else if self.frto && moved && !recovered {
            self.high = board.nxt();
            self.prefer_new = unsent;
            self.frto = unsent;
            if unsent {
                return EpochChange::default();
            }
        }
        self.end_if(recovered, false)
    }

    fn end_if(&mut self, over: bool, spurious: bool) -> EpochChange {
        let spurious = over && spurious;
        let ended = over && !self.silent;
        if over {
            self.state = RecoveryState::Open;
            self.prr = None;
            self.undo = self.undo.filter(|_| !spurious);
            self.frto = false;
            self.prefer_new = false;
            self.silent = false;
        }
        EpochChange { ended, spurious, ..EpochChange::default() }
    }

    /// A timer has shown a loss: it is repaired whatever the last acknowledgement said.
    pub(crate) fn resume_repairs(&mut self) {
        self.prefer_new = false;
    }

    /// Whether the echo is of a segment that left before anything was sent again; before the first
    /// retransmission every echo is (Linux's `tcp_packet_delayed`).
    fn echoes_original(&self, echo_ms: Option<u32>) -> bool {
        match (self.first_resent_ms, echo_ms) {
            (Some(resent), Some(echo)) => (echo.wrapping_sub(resent) as i32) < 0,
            (None, _) => true,
            (Some(_), None) => false,
        }
    }

    /// Without a retransmission on its way the next one is the first.
    fn forget_old_retransmissions(&mut self, board: &Scoreboard) {
        if self.first_resent_ms.is_some()
            && board.resent() == 0
            && !board.first().is_some_and(Sent::was_retransmitted)
        {
            self.first_resent_ms = None;
        }
    }

    /// After losses were looked for: between calm and disorder.
    pub(crate) fn settle(&mut self, board: &Scoreboard) {
        if self.is_closed() {
            self.forget_old_retransmissions(board);
            // Copies that count although nothing is lost (Linux's `tcp_try_keep_open`).
            let calm = board.sacked() == 0 && board.lost() == 0 && board.resent() == 0;
            self.state = if calm { RecoveryState::Open } else { RecoveryState::Disorder };
        }
    }

    /// Meters by PRR after an acknowledgement that revealed the loss of `lost` bytes.
    pub(crate) fn meter(&mut self, board: &Scoreboard, ack: &AckSummary, lost: u64, mss: u64) {
        if let Some(prr) = &mut self.prr {
            prr.on_ack(board.in_flight(), ack, lost, mss);
        }
    }
}

impl Undo {
    /// `copies` that left earlier and are still out are to be explained too (Linux's `tcp_init_undo`).
    fn new(una: u64, copies: u32) -> Self {
        Self { una, unexplained: (copies > 0).then_some(copies), marked: false }
    }
}

/// What speaks against the episode.
#[derive(Clone, Copy, Debug)]
struct UndoEvidence {
    /// The acknowledgement echoes a segment that left before the first retransmission.
    delayed: bool,
    /// Every retransmission was answered as a duplicate.
    explained: bool,
}

#[cfg(test)]
mod tests {
    use weir_cc::host::SendRecord;
    use weir_units::{Duration, Instant};

    use super::*;
    use crate::scoreboard::{AckTime, Covered};

    const MSS: u32 = 1_000;

    /// Linux's `tcp_enter_recovery` and `tcp_undo_cwnd_reduction`: the first segment after a mark's episode is lost, and PRR
    /// lets nothing be sent again yet. What acknowledges next ends that recovery, which gives nothing back, and the
    /// window stays where PRR had it.
    #[test]
    fn recovery_out_of_a_marks_episode_ends_with_the_metered_window() {
        let mut board = Scoreboard::default();
        for _ in 0..5 {
            board.push(Instant::ZERO, MSS, SendRecord::default());
        }
        let undoes = Profile { undo: true, ..Profile::default() };
        let mut epoch = Epoch::new();
        let mss = Bytes(u64::from(MSS));
        epoch.enter(RecoveryState::Cwr, &board, Some(Prr::new(mss * 10, mss * 9)), 0);
        board.push(Instant::ZERO, MSS, SendRecord::default());
        let time = AckTime {
            now: Instant::ZERO + Duration::from_millis(50),
            min_rtt: Duration::ZERO,
            echo_ms: None,
            highest: 0,
        };
        board.ack_to(epoch.high(), epoch.high(), &time, &mut Covered::default());
        let held = epoch.on_ack(&mut board, &AckSummary::default(), None, undoes, true);
        assert_eq!(held, EpochChange::default(), "the episode's end is not passed");
        epoch.enter(RecoveryState::Recovery, &board, None, 0);
        let turn = epoch.on_ack(&mut board, &AckSummary::default(), None, undoes, true);
        let expected = EpochChange { ended: true, stands: true, ..EpochChange::default() };
        assert_eq!(turn, expected);
    }
}
