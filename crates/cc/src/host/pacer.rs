//! Spreads segments over time at the controller's pacing rate, as Linux's internal pacing does.

use weir_units::{Bytes, Duration, Instant, Rate};

/// Decides when the next packet may leave, at the controller's pacing rate.
///
/// ```
/// use weir_cc::host::Pacer;
/// use weir_units::{Bytes, Duration, Instant, Rate};
///
/// let mut pacer = Pacer::default();
/// let (now, rate) = (Instant::from_nanos(1_000), Some(Rate::from_mbit(12)));
/// pacer.on_sent(now, rate, Bytes(1_500));
/// pacer.on_sent(pacer.next_departure(), rate, Bytes(1_500));
/// let gap = Duration::from_millis(1);
/// // As in Linux, the first packet is charged half of its gap.
/// assert_eq!(pacer.next_departure(), now + gap / 2 + gap);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Pacer {
    next: Instant,
    /// How much of its host's delays is made up for.
    catch_up: Duration,
}

impl Pacer {
    /// A pacer that makes up for up to `catch_up` of the time by which its host sends late, at a burst. It is always
    /// half of the time that the last packet takes.
    pub fn new(catch_up: Duration) -> Self {
        Self { catch_up, ..Self::default() }
    }

    /// Makes up for no more than `most` from now on.
    pub fn limit_catch_up(&mut self, most: Duration) {
        self.catch_up = self.catch_up.min(most);
    }

    /// When the next packet may leave: [`CcContext::next_departure`](crate::CcContext::next_departure).
    #[inline]
    pub fn next_departure(&self) -> Instant {
        self.next
    }

    /// Charges `bytes` that leave at `now`. Without a `rate`, or at rate zero, nothing is paced.
    #[inline]
    pub fn on_sent(&mut self, now: Instant, rate: Option<Rate>, bytes: Bytes) {
        if let Some(rate) = rate.filter(|rate| *rate > Rate::ZERO) {
            self.charge(now, rate, bytes);
        }
    }

    // Apart, so that what is not paced does not pay for it.
    #[inline(never)]
    fn charge(&mut self, now: Instant, rate: Rate, bytes: Bytes) {
        let gap = rate.transmit_time(bytes, &mut 0);
        // A sender that comes late is given back up to half of the gap (Linux's
        // tcp_update_skb_after_send): timers fire late, and the rate should not suffer for it.
        let late = now.saturating_since(self.next);
        let credit =
            if self.next == Instant::ZERO { gap / 2 } else { late.min(self.catch_up.max(gap / 2)) };
        self.next = now.max(self.next) + gap - credit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many megabytes leave in a second at 800 Mbit/s, 64 KB at a time, when each wake-up is so
    /// late.
    fn sent_in_a_second(late: Duration, catch_up: Duration) -> u64 {
        let rate = Some(Rate::from_bits_per_sec(800_000_000));
        let mut pacer = Pacer::new(catch_up);
        let (mut now, mut sent) = (Instant::from_nanos(1), 0);
        let end = now + Duration::from_secs(1);
        while now < end {
            if pacer.next_departure() > now {
                now = pacer.next_departure() + late;
            } else {
                pacer.on_sent(now, rate, Bytes(64_000));
                sent += 64_000;
            }
        }
        sent / 1_000_000
    }

    #[test]
    fn a_late_driver_catches_up_as_far_as_it_may() {
        let micros = Duration::from_micros;
        let all = 99..=100;
        assert!(all.contains(&sent_in_a_second(micros(0), micros(0))));
        assert!(all.contains(&sent_in_a_second(micros(300), micros(0))), "less than half a gap");
        assert!(sent_in_a_second(micros(1_500), micros(0)) < 40);
        assert!(all.contains(&sent_in_a_second(micros(1_500), micros(2_000))));
        assert!(sent_in_a_second(micros(4_000), micros(2_000)) < 70, "no more than it may");
    }
}
