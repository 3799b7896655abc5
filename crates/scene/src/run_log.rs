//! Log of a run: events, counters, and the first violation.

use crate::events::EventLog;

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
}

impl RunLog {
    /// For `flows` flows; `max_events` rows of table `events` are kept.
    pub fn new(flows: usize, max_events: usize) -> Self {
        let log = EventLog::new(max_events);
        Self { log, data_packets: 0, dropped_data: vec![0; flows], violation: None }
    }

    /// There is one more flow.
    pub(crate) fn add_flow(&mut self) {
        self.dropped_data.push(0);
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
