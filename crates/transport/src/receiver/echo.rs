//! What the receiver tells the sender of congestion marks.

use weir_units::Ecn;

/// How marks are echoed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum EchoMode {
    /// ECN was not agreed upon.
    #[default]
    Off,
    /// From the first mark on, until the sender says that it has reduced (RFC 3168 §6.1.3).
    Sticky,
    /// Each acknowledgement says whether what it covers was marked (RFC 8257 §3.2).
    Exact,
}

/// Which acknowledgements carry ECE.
#[derive(Debug, Default)]
pub(super) struct Echo {
    mode: EchoMode,
    on: bool,
    /// A segment has arrived in an ECN-capable packet.
    capable: bool,
    /// Exact: whether the last segment was marked.
    marked: bool,
}

/// What an arrival asks of the acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AckUrgency {
    Nothing,
    /// The next two without delay, as far as the policy knows of that.
    Quick,
    /// One that was delayed goes out as it would have, with or without echo; another at once.
    Flush {
        echo: bool,
    },
}

impl Echo {
    pub(super) fn new(mode: EchoMode) -> Self {
        Self { mode, ..Self::default() }
    }

    pub(super) fn is_on(&self) -> bool {
        self.on
    }

    /// Data arrived (Linux's `__tcp_ecn_check_ce` and, exact, `dctcp_ece_ack_update`).
    pub(super) fn on_data(&mut self, field: Ecn) -> AckUrgency {
        let marked = field == Ecn::Ce;
        if self.mode == EchoMode::Off {
            return AckUrgency::Nothing;
        }
        if field == Ecn::NotEct {
            // From a sender that uses ECN, this is a retransmission: it may have little in flight.
            return if self.capable { AckUrgency::Quick } else { AckUrgency::Nothing };
        }
        self.capable = true;
        if self.mode == EchoMode::Exact {
            let before = std::mem::replace(&mut self.marked, marked);
            self.on = marked;
            return if before == marked {
                AckUrgency::Nothing
            } else {
                AckUrgency::Flush { echo: before }
            };
        }
        let first = marked && !self.on;
        self.on |= marked;
        if first { AckUrgency::Quick } else { AckUrgency::Nothing }
    }

    /// The sender has reduced.
    pub(super) fn on_cwr(&mut self) {
        self.on = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Ecn::{Ce, Ect0, Ect1, NotEct};

    #[test]
    fn a_mark_is_echoed_until_the_sender_confirms() {
        let mut echo = Echo::new(EchoMode::Sticky);
        assert_eq!(echo.on_data(Ect0), AckUrgency::Nothing);
        assert!(!echo.is_on());
        assert_eq!(echo.on_data(Ce), AckUrgency::Quick);
        assert_eq!(echo.on_data(Ce), AckUrgency::Nothing);
        assert_eq!(echo.on_data(Ect0), AckUrgency::Nothing);
        assert!(echo.is_on());
        echo.on_cwr();
        assert!(!echo.is_on());
    }

    #[test]
    fn an_exact_echo_flushes_at_each_change() {
        let mut echo = Echo::new(EchoMode::Exact);
        let arrivals = [Ect1, Ce, Ce, Ect1, Ce];
        let urges = arrivals.map(|field| (echo.on_data(field), echo.is_on()));
        let (same, on, off) = (
            AckUrgency::Nothing,
            AckUrgency::Flush { echo: false },
            AckUrgency::Flush { echo: true },
        );
        assert_eq!(urges, [(same, false), (on, true), (same, true), (off, false), (on, true)]);
    }

    #[test]
    fn what_is_not_capable_after_what_was_is_a_retransmission() {
        let mut echo = Echo::new(EchoMode::Sticky);
        assert_eq!(echo.on_data(NotEct), AckUrgency::Nothing);
        echo.on_data(Ect0);
        assert_eq!(echo.on_data(NotEct), AckUrgency::Quick);
        assert_eq!(Echo::new(EchoMode::Off).on_data(Ce), AckUrgency::Nothing);
    }
}
