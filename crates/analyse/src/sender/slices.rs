//! What a sender did over time, in slices whose number is bounded.

use std::ops::Range;

/// Slices of equal width. When there are too many, two become one and the width doubles.
#[derive(Debug)]
pub(crate) struct Slices {
    start: u64,
    width: u64,
    list: Vec<Slice>,
    /// The slice that was used last, and its times.
    index: usize,
    times: Range<u64>,
}

/// One slice of a sender's time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Slice {
    /// Nanoseconds in which it had no data to send.
    pub(crate) application: u64,
    /// Nanoseconds in which the receiver's window held it.
    pub(crate) window: u64,
    /// Nanoseconds of slow start, held by the network.
    pub(crate) slow_start: u64,
    /// Other nanoseconds in which the network or the sender's own buffer held it.
    pub(crate) network: u64,
    /// In which the peer did not answer.
    pub(crate) no_answer: u64,
    /// Bytes sent, with repetitions.
    pub(crate) sent: u64,
    /// Bytes acknowledged, also selectively.
    pub(crate) delivered: u64,
    pub(crate) repeats: u32,
    /// Most bytes in flight.
    pub(crate) flight_max: u64,
    /// The receiver's window: its least value.
    pub(crate) receive_window: Option<u64>,
    pub(crate) rtt_min: Option<u64>,
    pub(crate) rtt_max: Option<u64>,
    /// The smoothed RTT at the end, and the largest congestion window, as a log reports them.
    pub(crate) srtt: Option<u64>,
    pub(crate) cwnd: Option<u64>,
}

/// Who held the sender for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    Application,
    Window,
    SlowStart,
    Network,
}

impl Slices {
    /// Slices of `width` from `start` on.
    pub(crate) fn new(start: u64, width: u64) -> Self {
        let width = width.clamp(LEAST_WIDTH, MOST_WIDTH);
        Self { start, width, list: Vec::new(), index: 0, times: 0..0 }
    }

    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    pub(crate) fn width(&self) -> u64 {
        self.width
    }

    pub(crate) fn list(&self) -> &[Slice] {
        &self.list
    }

    /// The slice at `time`, which is not before the start.
    pub(crate) fn at(&mut self, time: u64) -> &mut Slice {
        if !self.times.contains(&time) {
            self.go_to(time);
        }
        &mut self.list[self.index]
    }

    fn go_to(&mut self, time: u64) {
        let since = time.saturating_sub(self.start);
        while since / self.width >= MOST as u64 {
            self.halve();
        }
        let index = (since / self.width) as usize;
        if index >= self.list.len() {
            self.list.resize(index + 1, Slice::default());
        }
        self.index = index;
        self.times = self.times_of(index);
    }

    fn times_of(&self, index: usize) -> Range<u64> {
        let start = self.start.saturating_add(index as u64 * self.width);
        start..start.saturating_add(self.width)
    }

    /// Adds the time between `from` and `to`.
    pub(crate) fn hold(&mut self, from: u64, to: u64, hold: Hold) {
        let mut at = from;
        self.at(to);
        while at < to {
            self.at(at);
            let until = self.times.end.min(to);
            let slice = &mut self.list[self.index];
            let part = match hold {
                Hold::Application => &mut slice.application,
                Hold::Window => &mut slice.window,
                Hold::SlowStart => &mut slice.slow_start,
                Hold::Network => &mut slice.network,
            };
            *part += until - at;
            at = until;
        }
    }

    /// Time between `from` and `to` that was added already is that of a peer that did not answer.
    pub(crate) fn reassign(&mut self, from: u64, to: u64) {
        for (index, slice) in self.list.iter_mut().enumerate() {
            let start = self.start + index as u64 * self.width;
            let end = (start + self.width).min(to);
            slice.reassign(end.saturating_sub(start.max(from)));
        }
    }

    fn halve(&mut self) {
        let merged = self.list.chunks(2).map(|pair| match pair {
            [one, other] => one.merged(other),
            rest => rest[0],
        });
        self.list = merged.collect();
        self.width *= 2;
    }
}

impl Slice {
    fn merged(&self, other: &Self) -> Self {
        let least = |one: Option<u64>, other: Option<u64>| one.into_iter().chain(other).min();
        Self {
            application: self.application + other.application,
            window: self.window + other.window,
            slow_start: self.slow_start + other.slow_start,
            network: self.network + other.network,
            no_answer: self.no_answer + other.no_answer,
            sent: self.sent + other.sent,
            delivered: self.delivered + other.delivered,
            repeats: self.repeats.saturating_add(other.repeats),
            flight_max: self.flight_max.max(other.flight_max),
            receive_window: least(self.receive_window, other.receive_window),
            rtt_min: least(self.rtt_min, other.rtt_min),
            rtt_max: self.rtt_max.max(other.rtt_max),
            srtt: other.srtt.or(self.srtt),
            cwnd: self.cwnd.max(other.cwnd),
        }
    }

    fn reassign(&mut self, time: u64) {
        let mut left = time;
        let parts =
            [&mut self.network, &mut self.slow_start, &mut self.window, &mut self.application];
        for part in parts {
            let moved = left.min(*part);
            *part -= moved;
            left -= moved;
            self.no_answer += moved;
        }
    }

    /// Processes a sample of the RTT.
    pub(crate) fn record_rtt(&mut self, rtt: u64) {
        self.rtt_min = Some(self.rtt_min.map_or(rtt, |least| least.min(rtt)));
        self.rtt_max = self.rtt_max.max(Some(rtt));
    }
}

/// Slices of a sender, of some 150 bytes each.
const MOST: usize = 512;
/// Shorter round trips have slices of several.
const LEAST_WIDTH: u64 = 5_000_000;
const MOST_WIDTH: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_stays_the_same_when_slices_become_wider() {
        let mut slices = Slices::new(1_000, LEAST_WIDTH);
        let end = 1_000 + 40_000 * LEAST_WIDTH + 7;
        slices.hold(1_000, 2_000, Hold::Window);
        slices.hold(2_000, end, Hold::Network);
        let sum = |part: fn(&Slice) -> u64| slices.list().iter().map(part).sum::<u64>();
        assert_eq!((sum(|s| s.window), sum(|s| s.network)), (1_000, end - 2_000));
        assert!(slices.list().len() <= MOST && slices.width() > LEAST_WIDTH);
    }
}
