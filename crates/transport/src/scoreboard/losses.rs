//! Which segments are declared lost: the recovery schemes choose, the scoreboard marks and counts.

use super::{Fate, Scoreboard, Sent, Transmission};

impl Scoreboard {
    /// Declares the segment at `index` lost, whether sent once or again. Returns the bytes newly lost.
    fn lose(&mut self, index: usize) -> u64 {
        let segment = &mut self.segments[index];
        let weight = u64::from(segment.weight);
        match segment.fate {
            Fate::Sacked | Fate::DoubledSacked | Fate::Lost => return 0,
            Fate::InFlight => self.lost += weight,
            Fate::Resent => self.resent -= weight,
            Fate::Doubled => {
                self.doubled -= weight;
                self.resent += weight;
                self.lost += weight;
            }
        }
        // Of two copies one is lost, the other on its way (Linux's `tcp_mark_skb_lost` leaves `TCPCB_SACKED_RETRANS`).
        let is_doubled = segment.fate == Fate::Doubled;
        segment.fate = if is_doubled { Fate::Resent } else { Fate::Lost };
        self.ever_lost += weight;
        self.last_loss = Some((weight, segment.record));
        self.lost_hint = self.lost_hint.min(segment.start);
        u64::from(segment.len)
    }

    /// Declares the oldest outstanding segment lost.
    pub(crate) fn lose_first(&mut self) -> u64 {
        if self.segments.is_empty() { 0 } else { self.lose(0) }
    }

    /// Declares the segment that starts at `start` lost.
    pub(crate) fn lose_at(&mut self, start: u64) -> u64 {
        self.lose(self.index_of(start))
    }

    /// Declares lost, of all that is not selectively acknowledged, what `choose` picks. A timeout sends the oldest once
    /// more although a copy of it is on its way; that copy is never taken off again (Linux's `tcp_retransmit_timer`).
    pub(crate) fn lose_where(&mut self, mut choose: impl FnMut(usize, &Sent) -> bool) -> u64 {
        let mut lost = 0;
        for index in 0..self.segments.len() {
            if choose(index, &self.segments[index]) {
                let is_doubled = self.segments[index].fate == Fate::Doubled;
                lost += self.lose(index);
                if index == 0 && is_doubled {
                    let oldest = &mut self.segments[0];
                    oldest.fate = Fate::Lost;
                    self.resent -= u64::from(oldest.weight);
                    self.doubled += u64::from(oldest.weight);
                }
            }
        }
        lost
    }

    /// Declares lost every segment in flight for the first time that ends at or before `boundary`.
    pub(crate) fn lose_in_flight_below(&mut self, boundary: u64) -> u64 {
        let mut lost = 0;
        let mut index = self.index_at_or_after(self.in_flight_hint);
        while index < self.segments.len() && self.segments[index].end() <= boundary {
            if self.segments[index].is_in_flight() {
                lost += self.lose(index);
            }
            index += 1;
        }
        self.in_flight_hint = self.segments.get(index).map_or(self.nxt, |s| s.start);
        lost
    }

    /// Declares lost the first segment in flight for the first time that ends at or before `boundary`.
    pub(crate) fn lose_first_in_flight_below(&mut self, boundary: u64) -> u64 {
        let from = self.index_at_or_after(self.in_flight_hint);
        let below = self.segments.iter().skip(from).take_while(|s| s.end() <= boundary);
        match below.enumerate().find(|(_, s)| s.is_in_flight()) {
            Some((offset, _)) => self.lose(from + offset),
            None => 0,
        }
    }

    /// Declares lost, in order of transmission, what `expired` says, up to the first that it spares;
    /// that one is returned with the bytes newly lost.
    pub(crate) fn lose_expired(
        &mut self,
        mut expired: impl FnMut(Transmission) -> bool,
    ) -> (u64, Option<Transmission>) {
        let mut lost = 0;
        let mut spared: Option<Transmission> = None;
        // Segments sent once are in order of time among themselves …
        let mut index = self.index_at_or_after(self.in_flight_hint);
        while let Some(segment) = self.segments.get(index) {
            if segment.fate == Fate::InFlight && segment.is_timed {
                let sent = segment.transmission();
                if !expired(sent) {
                    spared = Some(sent);
                    break;
                }
                lost += self.lose(index);
                self.segments[index].is_timed = self.unit == 0;
            }
            index += 1;
        }
        self.in_flight_hint = self.segments.get(index).map_or(self.nxt, |s| s.start);
        // … and so are retransmissions.
        while let Some(sent) = self.retransmissions.front().copied() {
            if let Some(index) = self.find_resent(sent) {
                if !expired(sent) {
                    spared = Some(spared.map_or(sent, |other| other.min(sent)));
                    break;
                }
                lost += self.lose(index);
                self.segments[index].is_timed = self.unit == 0;
            }
            self.retransmissions.pop_front();
        }
        (lost, spared)
    }

    /// The last transmission before `limit` that is still on its way.
    pub(crate) fn last_in_flight_before(&self, limit: Transmission) -> Option<Transmission> {
        let newest_first =
            self.segments.iter().rev().filter(|s| s.fate == Fate::InFlight && s.is_timed);
        let once = newest_first.map(Sent::transmission).find(|sent| *sent < limit);
        let again = self.retransmissions.iter().rev().copied();
        let again =
            again.filter(|sent| *sent < limit).find(|sent| self.find_resent(*sent).is_some());
        once.max(again)
    }

    /// Where the segment is of which `sent` is the newest copy, and on its way.
    fn find_resent(&self, sent: Transmission) -> Option<usize> {
        self.find_ending_at(sent.end).filter(|index| {
            let segment = &self.segments[*index];
            matches!(segment.fate, Fate::Resent | Fate::Doubled) && segment.number == sent.number
        })
    }
}
