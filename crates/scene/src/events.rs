//! The events table, as long as the scenario asks for.

use weir_net::{DropCause, DropRecord};
use weir_trace::EventRow;
use weir_units::Instant;

/// Single happenings, up to a number of rows.
#[derive(Debug)]
pub struct EventLog {
    rows: Vec<EventRow>,
    max: usize,
}

impl EventLog {
    /// Of `max` rows at most; 0 for none.
    pub fn new(max: usize) -> Self {
        Self { rows: Vec::new(), max }
    }

    /// Something happened to a flow.
    pub fn flow(&mut self, now: Instant, flow: u32, kind: &'static str, detail: &str) {
        self.push(now, |row| {
            row.flow = Some(flow);
            row.kind = kind;
            row.detail = detail.to_owned();
        });
    }

    /// A link dropped a packet.
    pub fn dropped(&mut self, link: u32, record: &DropRecord) {
        self.push(record.time, |row| {
            row.flow = Some(record.flow);
            row.link = Some(link);
            row.kind = "dropped";
            row.len = Some(record.len.get() as u32);
            let cause = match record.cause {
                DropCause::Queue => "queue full",
                DropCause::Buffer => "no memory left",
                DropCause::Aqm => "queue management",
                DropCause::Policer => "policer",
                DropCause::Loss => "random loss",
                DropCause::Mtu => "longer than the MTU",
            };
            let way = if record.is_forward { "" } else { ", on the way back" };
            row.detail = format!("{cause}{way}");
        });
    }

    /// What was noted so far.
    pub fn rows(&self) -> &[EventRow] {
        &self.rows
    }

    /// What was noted.
    pub fn into_rows(self) -> Vec<EventRow> {
        self.rows
    }

    #[inline]
    fn push(&mut self, now: Instant, fill: impl FnOnce(&mut EventRow)) {
        if self.rows.len() >= self.max {
            return;
        }
        let mut row = EventRow { t_s: now.as_secs_f64(), ..EventRow::default() };
        if self.rows.len() + 1 == self.max {
            row.kind = "truncated";
            row.detail = format!("only the first {} events are kept", self.max - 1);
        } else {
            fill(&mut row);
        }
        self.rows.push(row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_row_says_that_there_was_more() {
        let mut log = EventLog::new(3);
        (0..9).for_each(|_| log.flow(Instant::ZERO, 0, "start", ""));
        let kinds: Vec<&str> = log.into_rows().iter().map(|row| row.kind).collect();
        assert_eq!(kinds, ["start", "start", "truncated"]);
    }
}
