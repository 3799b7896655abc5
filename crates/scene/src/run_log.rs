//! Log of a run: events, counters, and the first violation.

use weir_transport::Stats;

use crate::events::EventLog;
use crate::packet::{Direction, Packet};

/// Single events, counters, and the first violation of an invariant.
#[derive(Debug)]
pub struct RunLog {
    /// Table `events`.
    pub log: EventLog,
    /// Data packets that have arrived whole.
    pub data_packets: u64,
    /// Per flow, packets with data that were dropped on their way to the receiver.
    pub dropped_data: Vec<u64>,
    violation: Option<String>,
    /// Segments sent again since they were taken; `None` where no one takes them.
    resent: Option<Vec<Resent>>,
}

/// A segment that a reliable connection sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resent {
    /// Its flow.
    pub flow: u32,
    /// Which way it travels.
    pub direction: Direction,
    /// Where its payload begins in the stream.
    pub offset: u64,
    /// Why.
    pub cause: ResendCause,
}

/// How many segments a connection sent again, by [`ResendCause`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Resends([u64; 4]);

/// Why a segment was sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResendCause {
    /// Acknowledgements showed a loss.
    Fast,
    /// The retransmission timer expired.
    Timeout,
    /// A tail loss probe (RFC 8985 §7).
    Probe,
    /// The route came back.
    Route,
}

impl RunLog {
    /// For `flows` flows; `max_events` rows of table `events` are kept.
    pub fn new(flows: usize, max_events: usize) -> Self {
        let log = EventLog::new(max_events);
        Self { log, data_packets: 0, dropped_data: vec![0; flows], violation: None, resent: None }
    }

    /// There is one more flow.
    pub(crate) fn add_flow(&mut self) {
        self.dropped_data.push(0);
    }

    /// From now on keeps what is sent again, until it is taken.
    pub fn watch_resent(&mut self) {
        self.resent.get_or_insert_default();
    }

    /// What was sent again since this was called last, in order.
    pub fn take_resent(&mut self) -> impl Iterator<Item = Resent> + '_ {
        self.resent.iter_mut().flat_map(|resent| resent.drain(..))
    }

    /// The counters of an end by cause, if what it sends again is kept.
    #[inline]
    pub(crate) fn resends(&self, stats: &Stats) -> Option<Resends> {
        self.resent.is_some().then(|| Resends::of(stats))
    }

    /// An end sent `packet`, which moved its counters from `before`.
    #[cold]
    pub(crate) fn on_sent(&mut self, packet: &Packet, before: Resends, now: Resends) {
        if let (Some(resent), Some(cause)) = (&mut self.resent, now.cause_since(before)) {
            let (flow, direction, offset) = (packet.flow, packet.direction, packet.seq());
            resent.push(Resent { flow, direction, offset, cause });
        }
    }

    /// Records a violation of an invariant; the first one counts.
    #[cold]
    pub fn violate(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }

    /// The first violation.
    pub fn violation(&self) -> Option<&str> {
        self.violation.as_deref()
    }
}

impl Resends {
    fn of(stats: &Stats) -> Self {
        Self([
            stats.retransmits_fast,
            stats.retransmits_rto,
            stats.retransmits_tlp,
            stats.retransmits_route,
        ])
    }

    fn cause_since(self, before: Self) -> Option<ResendCause> {
        use ResendCause::{Fast, Probe, Route, Timeout};
        let causes = [Fast, Timeout, Probe, Route];
        let grown = self.0.iter().zip(before.0).position(|(now, before)| *now > before);
        grown.map(|index| causes[index])
    }
}
