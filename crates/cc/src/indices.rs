//! What the sender knows of the routers' indices (TCP Muzha's MRAI): shared by the controllers that act on
//! them.

use weir_units::feedback::Drai;
use weir_units::{Echo, Feedback};

use crate::{AckEvent, CcContext};

/// The indices that come back, by round trip and by duplicate.
#[derive(Clone, Debug)]
pub(crate) struct Indices {
    levels: u8,
    /// The newest that a router has stamped. Until there is one, no router on the path does.
    last: Option<u8>,
    /// The smallest of the round trip.
    round_min: Option<u8>,
    /// The smallest of the duplicates since something new was acknowledged.
    duplicates_min: Option<u8>,
    /// The round trip ends when more of the stream than this is acknowledged, or something that was sent
    /// since `delivered` bytes had been delivered: a retransmission may be the first.
    end: u64,
    end_delivered: u64,
}

impl Indices {
    /// None so far; the first round trip begins.
    pub(crate) fn new(levels: u8) -> Self {
        Self {
            levels,
            last: None,
            round_min: None,
            duplicates_min: None,
            end: 0,
            end_delivered: u64::MAX,
        }
    }

    /// What a packet starts out with: what stands if no router objects.
    pub(crate) fn request(&self) -> Feedback {
        Feedback::Drai(Drai { level: self.levels, hops: 0 })
    }

    /// Whether any router was ever heard of.
    pub(crate) fn is_marked(&self) -> bool {
        self.last.is_some()
    }

    /// The newest that a router has stamped.
    pub(crate) fn last(&self) -> Option<u8> {
        self.last
    }

    /// Processes what an acknowledgement returns: the index to go by. On a path with routers' indices, one
    /// that acknowledges something without any counts as the steady level.
    pub(crate) fn on_ack(&mut self, cx: &CcContext<'_>, ack: &AckEvent) -> u8 {
        let index = self.index(cx);
        if index.is_some() {
            self.last = index;
        }
        if ack.cum_acked.get() > 0 {
            self.duplicates_min = None;
        } else if ack.duplicate {
            self.duplicates_min = smaller(self.duplicates_min, index);
        }
        let level = index.unwrap_or(self.steady());
        if index.is_some() || ack.cum_acked.get() > 0 {
            self.round_min = smaller(self.round_min, Some(level));
        }
        level
    }

    /// If the round trip is over: the smallest index in it, that of the acknowledgement which shows it
    /// included. The next one begins.
    ///
    /// Only what was sent after it began ends it. What was sent last before that may have left a whole
    /// round trip earlier, and an end there would come at once.
    pub(crate) fn round_over(&mut self, cx: &CcContext<'_>, ack: &AckEvent) -> Option<u8> {
        let resent = ack.rate.is_some_and(|rate| rate.prior_delivered.get() >= self.end_delivered);
        if cx.snd_una <= self.end && !resent {
            return None;
        }
        let smallest = self.round_min;
        self.begin_round(cx);
        smallest
    }

    /// A round trip begins now.
    pub(crate) fn begin_round(&mut self, cx: &CcContext<'_>) {
        self.round_min = None;
        self.end = cx.snd_nxt;
        self.end_delivered = cx.delivered.get();
    }

    /// At a fast retransmit: the smallest index of the duplicates that led to it, the acknowledgement at
    /// hand included.
    pub(crate) fn at_loss(&self, cx: &CcContext<'_>) -> Option<u8> {
        smaller(self.duplicates_min, self.index(cx))
    }

    /// The level that changes nothing or, where none is, the lowest that accelerates: those below it slow
    /// the sender down.
    pub(crate) fn steady(&self) -> u8 {
        self.levels / 2 + 1
    }

    /// What the acknowledgement at hand returns, if a router stamped it.
    fn index(&self, cx: &CcContext<'_>) -> Option<u8> {
        match cx.feedback {
            Some(Echo::Drai(drai)) if drai.hops > 0 => Some(drai.level.clamp(1, self.levels)),
            _ => None,
        }
    }
}

fn smaller(one: Option<u8>, other: Option<u8>) -> Option<u8> {
    [one, other].into_iter().flatten().min()
}
