//! The recovery epoch: the states that an episode of congestion passes through, PRR, and the
//! evidence that would take the episode back.
//!
//! The controller hears of each episode once, and never sees the metering: between the start and the
//! end of an episode PRR (RFC 9937) decides how much goes out per acknowledgement.

use weir_cc::RecoveryState;
use weir_units::Bytes;

use super::{AckSummary, Profile};
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
    /// It was unfounded.
    pub(crate) spurious: bool,
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
        self.prr.map(|prr| prr.window)
    }

    /// An episode begins, or an ECN episode turns into one of loss: then its end stands (Linux's
    /// `tcp_enter_recovery`), and a controller that has reduced further gives PRR a new target.
    pub(crate) fn enter(&mut self, state: RecoveryState, board: &Scoreboard, prr: Option<Prr>) {
        debug_assert!(matches!(state, RecoveryState::Cwr | RecoveryState::Recovery));
        self.forget_old_retransmissions(board);
        self.undo = (state == RecoveryState::Recovery).then(|| Undo::new(board));
        if self.state != RecoveryState::Cwr {
            self.prr = prr;
            self.high = board.nxt();
        } else if let (Some(current), Some(new)) = (&mut self.prr, prr) {
            current.ssthresh = new.ssthresh;
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

    /// The retransmission timer fired: for the `first` time in an episode, `again` without progress
    /// since it did (Linux's `tcp_enter_loss`).
    pub(crate) fn enter_loss(
        &mut self,
        board: &Scoreboard,
        profile: Profile,
        first: bool,
        again: bool,
    ) {
        let calm = self.is_closed() || self.state == RecoveryState::Cwr;
        if first {
            self.undo = Some(Undo::new(board));
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
            prr.out += bytes;
        }
    }

    /// Takes in an acknowledgement before losses are looked for: does it end the episode?
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
        if let (Some(undo), Some(end)) = (&mut self.undo, ack.dsack)
            && end > undo.una
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
                EpochChange { ended: false, spurious }
            }
            // Above the point: up to it the peer echoes the mark that began the episode.
            RecoveryState::Cwr => self.end_if(board.una() > self.high, false),
            RecoveryState::Recovery => self.on_ack_in_recovery(board, ack, evidence, profile),
            RecoveryState::Loss => self.on_ack_in_loss(board, ack, evidence, unsent),
        };
        EpochChange { spurious: turn.spurious && !marked, ..turn }
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
        if board.una() >= self.high || (moved && profile.ends_on_partial_ack) {
            board.clear_duplicates();
            let spurious = evidence.delayed || evidence.explained;
            if profile.ends_above_point && board.una() == self.high {
                self.undo = self.undo.filter(|_| !spurious);
                return EpochChange { ended: false, spurious };
            }
            return self.end_if(true, spurious);
        }
        if moved && evidence.delayed && board.resent() == 0 {
            board.unmark_losses();
            return self.end_if(true, true);
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
            self.frto = ack.covered.sacked == 0 && !ack.duplicate;
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
        EpochChange { ended, spurious }
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
            let calm = board.sacked() == 0 && board.lost() == 0;
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
    fn new(board: &Scoreboard) -> Self {
        // What was resent earlier and is still out counts as unexplained (Linux's tcp_init_undo).
        let unexplained = (board.resent() > 0).then_some(u32::MAX / 2);
        Self { una: board.una(), unexplained, marked: false }
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

/// From where proportional rate reduction goes down to `ssthresh`. Linux 6.1 and RFC 9937 agree otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrrRule {
    /// From the window before the reduction (`prior_cwnd`).
    #[default]
    Linux,
    /// From what was in flight (`RecoverFS`): less than the window if the sender did not use it.
    Rfc9937,
    /// The reduced window holds at once: nothing leaves until less than it is in flight (RFC 9002 §7.3.2).
    Off,
}

/// Proportional rate reduction (RFC 9937, counted in whole segments as in Linux 6.1).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prr {
    /// The window, or what was in flight, before the reduction.
    base: u64,
    /// The window to arrive at.
    ssthresh: u64,
    delivered: u64,
    out: u64,
    window: Bytes,
}

impl Prr {
    pub(crate) fn new(base: Bytes, ssthresh: Bytes) -> Self {
        let (base, ssthresh) = (base.get().max(1), ssthresh.get());
        Self { base, ssthresh, delivered: 0, out: 0, window: Bytes(base) }
    }

    fn on_ack(&mut self, in_flight: Bytes, ack: &AckSummary, lost: u64, mss: u64) {
        let newly_delivered = ack.covered.delivered;
        if newly_delivered == 0 {
            return;
        }
        self.delivered += newly_delivered;
        let in_flight = in_flight.get();
        let allowance = if in_flight > self.ssthresh {
            let share = u128::from(self.ssthresh) * u128::from(self.delivered);
            // In whole segments, rounded up, as Linux counts.
            let per_segment = u128::from(self.base) * u128::from(mss);
            let target = share.div_ceil(per_segment) as u64 * mss;
            target.saturating_sub(self.out)
        } else {
            let mut bound = self.delivered.saturating_sub(self.out).max(newly_delivered);
            // Progress without new losses (SafeACK): grow back as slow start would.
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

    fn delivery(bytes: u64) -> AckSummary {
        let covered = Covered { delivered: bytes, ..Covered::default() };
        AckSummary { covered, duplicate: false, dsack: None }
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

    /// The window and the segments sent for each acknowledgement of RFC 9937's examples: `cwnd` segments, of which the
    /// first `lost` are lost, then two more (RFC 3042). The third acknowledgement shows the losses; each acknowledgement
    /// covers one segment, and those of the resent ones move `snd_una`.
    fn example(cwnd: u64, ssthresh: u64, lost: u64, acks: u64) -> Vec<(u64, u64)> {
        // Before the third: cwnd + 2 sent, two SACKed.
        let mut prr = Prr::new(Bytes(cwnd * MSS), Bytes(ssthresh * MSS));
        let (mut in_flight, mut resent) = ((cwnd - lost) * MSS, 0);
        let mut arrivals = std::collections::VecDeque::from(vec![false; (cwnd - lost) as usize]);
        let mut rows = Vec::new();
        for ack in 1..=acks {
            let Some(moves) = arrivals.pop_front() else { break };
            in_flight -= MSS;
            let window = if ack < 3 {
                in_flight + MSS
            } else {
                let mut ack = delivery(MSS);
                ack.covered.cum_acked = if moves { MSS } else { 0 };
                prr.on_ack(Bytes(in_flight), &ack, 0, MSS);
                prr.window.get()
            };
            let sent = window.saturating_sub(in_flight) / MSS;
            for _ in 0..sent {
                let repairs = ack >= 3 && resent < lost;
                resent += u64::from(repairs);
                arrivals.push_back(repairs && resent == lost);
            }
            prr.out += if ack < 3 { 0 } else { sent * MSS };
            in_flight += sent * MSS;
            rows.push((window / MSS + if ack < 3 { lost } else { 0 }, sent));
        }
        rows
    }

    /// RFC 9937's first example: one of 20 segments lost, Reno. One segment for every second acknowledgement. The table
    /// has 11 at the 19th, and sends then instead of at the 20th: in flight is `ssthresh`, for which the rule allows
    /// nothing.
    #[test]
    fn a_single_loss_is_answered_by_every_second_acknowledgement() {
        let rows = example(20, 10, 1, 22);
        let windows: Vec<u64> = rows.iter().map(|(window, _)| *window).collect();
        let expected = [
            20, 20, 19, 18, 18, 17, 17, 16, 16, 15, 15, 14, 14, 13, 13, 12, 12, 11, 10, 10, 10, 10,
        ];
        assert_eq!(windows, expected);
        let sent: Vec<u64> = rows.iter().map(|(_, sent)| *sent).collect();
        let expected = [1, 1, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1, 1];
        assert_eq!(sent, expected);
    }

    /// RFC 9937's second example: the first 15 of 20 segments lost. RFC 6675 would send six at once.
    #[test]
    fn a_burst_of_losses_is_answered_one_by_one() {
        let rows = example(20, 10, 15, 5);
        assert_eq!(rows, [(20, 1), (20, 1), (5, 1), (5, 1), (5, 1)]);
    }

    /// 80 segments in flight under a window of 100, and one of them lost: RFC 9937 takes 65 acknowledgements to get to 70, and
    /// Linux, which sends 70 % of what arrives, takes 28.
    #[test]
    fn an_unused_window_goes_down_from_what_was_in_flight() {
        let acks_until_70 = [80, 100].map(|base| {
            let mut prr = Prr::new(Bytes(base * MSS), Bytes(70 * MSS));
            let mut in_flight = 79 * MSS;
            let mut step = || {
                in_flight -= MSS;
                prr.on_ack(Bytes(in_flight), &delivery(MSS), 0, MSS);
                let sent = prr.window.get().saturating_sub(in_flight) / MSS * MSS;
                prr.out += sent;
                in_flight += sent;
                in_flight
            };
            (1..80).find(|_| step() == 70 * MSS)
        });
        assert_eq!(acks_until_70, [Some(65), Some(28)]);
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
