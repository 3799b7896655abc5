//! What becomes of frames that overlap at a receiver.
//!
//! The rules of ns-2's `WirelessPhy` and `Mac802_11`, which decide how hidden terminals fare:
//!
//! 1. A frame that can be sensed but not read occupies the receiver for its whole length.
//! 2. A frame that begins while the node sends is lost to it.
//! 3. A frame that begins during another one is ignored if the earlier one is `capture` times as
//!    strong. Otherwise both are lost, however strong the later one, and the receiver is busy until
//!    the longer one ends. Frames interfere in pairs: powers are not summed.
//! 4. A frame that the node sends itself destroys the one that it is receiving.

use weir_units::Instant;

/// The receiver of one node.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Receiver {
    reception: Option<Reception>,
}

/// A signal that begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signal {
    /// Which frame.
    pub(super) frame: u32,
    pub(super) until: Instant,
    pub(super) power: u64,
    /// Whether it can be read, the node not sending.
    pub(super) readable: bool,
}

/// What a signal does to the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begun {
    /// It was idle and is no longer.
    Occupies,
    /// The earlier frame is too strong to notice.
    Ignored,
    /// Both are lost.
    Collides,
}

/// How a reception ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Readable,
    Unreadable,
    Collided,
}

#[derive(Clone, Copy, Debug)]
struct Reception {
    frame: u32,
    until: Instant,
    power: u64,
    fate: Ended,
}

impl Receiver {
    pub(super) fn begin(&mut self, signal: Signal, capture: u32) -> Begun {
        let Signal { frame, until, power, readable } = signal;
        let Some(current) = &mut self.reception else {
            let fate = if readable { Ended::Readable } else { Ended::Unreadable };
            self.reception = Some(Reception { frame, until, power, fate });
            return Begun::Occupies;
        };
        if u128::from(current.power) >= u128::from(power) * u128::from(capture) {
            return Begun::Ignored;
        }
        if until > current.until {
            *current = Reception { frame, until, power, fate: Ended::Collided };
        }
        current.fate = Ended::Collided;
        Begun::Collides
    }

    /// The node begins to send.
    pub(super) fn on_transmit(&mut self) {
        if let Some(current) = &mut self.reception
            && current.fate == Ended::Readable
        {
            current.fate = Ended::Unreadable;
        }
    }

    /// The signal of `frame` ends; `None` if the receiver was not following it.
    pub(super) fn end(&mut self, frame: u32) -> Option<Ended> {
        let current = self.reception.filter(|current| current.frame == frame)?;
        self.reception = None;
        Some(current.fate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signal(frame: u32, until_us: u64, power: u64) -> Signal {
        let until = Instant::from_nanos(until_us * 1_000);
        Signal { frame, until, power, readable: true }
    }

    #[test]
    fn a_signal_too_weak_to_read_occupies_the_receiver() {
        let mut receiver = Receiver::default();
        let weak = Signal { readable: false, ..signal(1, 100, 50) };
        assert_eq!(receiver.begin(weak, 10), Begun::Occupies);
        assert_eq!(receiver.begin(signal(2, 50, 499), 10), Begun::Collides);
        assert_eq!(receiver.end(2), None);
        assert_eq!(receiver.end(1), Some(Ended::Collided));
    }

    #[test]
    fn an_earlier_frame_ten_times_as_strong_survives() {
        let mut receiver = Receiver::default();
        receiver.begin(signal(1, 100, 1_000), 10);
        assert_eq!(receiver.begin(signal(2, 200, 100), 10), Begun::Ignored);
        assert_eq!(receiver.end(1), Some(Ended::Readable));
        assert_eq!(receiver.end(2), None);
    }

    #[test]
    fn a_later_stronger_frame_never_captures() {
        let mut receiver = Receiver::default();
        receiver.begin(signal(1, 100, 100), 10);
        assert_eq!(receiver.begin(signal(2, 200, 1_000_000), 10), Begun::Collides);
        assert_eq!(receiver.end(1), None);
        assert_eq!(receiver.end(2), Some(Ended::Collided));
    }

    /// Three that are each a tenth and together three tenths as strong.
    #[test]
    fn interference_is_not_summed() {
        let mut receiver = Receiver::default();
        receiver.begin(signal(1, 100, 1_000), 10);
        for frame in 2..5 {
            assert_eq!(receiver.begin(signal(frame, 100, 100), 10), Begun::Ignored);
        }
        assert_eq!(receiver.end(1), Some(Ended::Readable));
    }

    #[test]
    fn the_node_destroys_what_it_receives_by_sending() {
        let mut receiver = Receiver::default();
        receiver.begin(signal(1, 100, 1_000), 10);
        receiver.on_transmit();
        assert_eq!(receiver.end(1), Some(Ended::Unreadable));
    }
}
