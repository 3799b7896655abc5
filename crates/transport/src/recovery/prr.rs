//! Proportional rate reduction: how much goes out per acknowledgement during an episode (RFC 9937).

use weir_units::Bytes;

use super::AckSummary;

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

    /// Goes down to `window`, from where it began.
    pub(super) fn aim_at(&mut self, window: Bytes) {
        self.ssthresh = window.get();
    }

    /// The window that it goes down to.
    pub(super) fn target(&self) -> Bytes {
        Bytes(self.ssthresh)
    }

    /// The window that it allows now.
    pub(super) fn window(&self) -> Bytes {
        self.window
    }

    pub(super) fn on_sent(&mut self, bytes: u64) {
        self.out += bytes;
    }

    /// An acknowledgement arrived with `in_flight` still out; `lost` bytes were found lost by it.
    pub(super) fn on_ack(&mut self, in_flight: Bytes, ack: &AckSummary, lost: u64, mss: u64) {
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
        AckSummary { covered, ..AckSummary::default() }
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

    /// Below `ssthresh` one segment more may be sent for each acknowledgement that moves `snd_una` and shows no new loss
    /// (SafeACK of RFC 9937).
    #[test]
    fn only_a_safe_acknowledgement_lets_the_flight_grow() {
        let window = |cum_acked: u64, lost: u64| {
            let mut prr = Prr::new(Bytes(20 * MSS), Bytes(10 * MSS));
            prr.on_sent(MSS);
            let mut ack = delivery(MSS);
            ack.covered.cum_acked = cum_acked;
            prr.on_ack(Bytes(4 * MSS), &ack, lost, MSS);
            prr.window.get() / MSS
        };
        assert_eq!(window(MSS, 0), 6);
        assert_eq!(window(0, 0), 5, "snd_una stands");
        assert_eq!(window(MSS, MSS), 5, "more is lost");
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
