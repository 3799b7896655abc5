//! What a host of links did, and whether that is what was configured.

use std::fmt;

use weir_trace::Spread;
use weir_units::Duration;

use super::path::RouterFeedback;

/// One direction's counters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DirectionReport {
    /// Packets that came in.
    pub received: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Packets that went out.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Waiting or being sent at the moment, on any of the direction's links.
    pub queued: u64,
    /// Lost on the way, as configured.
    pub lost: u64,
    /// Refused by a full queue, dropped by its discipline or by a policer, as configured.
    pub queue_dropped: u64,
    /// Longer than a link's MTU.
    pub too_long: u64,
    /// Copies made on the way, as configured.
    pub duplicated: u64,
    /// Packets with a flipped bit, as configured.
    pub corrupted: u64,
    /// Packets that a later one overtook, as configured.
    pub reordered: u64,
    /// Packets marked by a queue (ECN).
    pub marked: u64,
    /// Packets that feedback was written into, and the lowest index among it.
    pub feedback: RouterFeedback,
    /// Losses that were not configured.
    pub unintended: UnintendedLoss,
    /// How long after it was due each packet was handed to the system.
    pub lateness: Spread,
}

/// What a host of links did so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Since when it has been at it.
    pub elapsed: Duration,
    /// From clients to the server, from the first end to the second.
    pub up: DirectionReport,
    /// Back.
    pub down: DirectionReport,
    /// Clients at the moment.
    pub clients: u64,
}

/// Packets that got lost although no link warnings so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnintendedLoss {
    /// Found the receive buffer full: the relay did not read fast enough.
    pub overflow: u64,
    /// Found the relay's own memory full.
    pub memory_full: u64,
    /// Could not be sent.
    pub send_errors: u64,
    /// Came from, or were for, a client that is not known.
    pub unknown_client: u64,
}

impl UnintendedLoss {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.overflow + self.memory_full + self.send_errors + self.unknown_client
    }
}

impl Report {
    /// Returns one sentence per deviation from the configuration; none means good health.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        for (name, way) in [("up", &self.up), ("down", &self.down)] {
            if let Some(late) = way.late() {
                let Spread { p99_ms, max_ms, .. } = way.lateness;
                let what = match (p99_ms, max_ms) {
                    (Some(_), Some(worst)) => {
                        format!(
                            "1 packet in 100 left {late:.3} ms late or later, one {worst:.3} ms"
                        )
                    }
                    _ => format!("a packet left {late:.3} ms late"),
                };
                warnings.push(format!(
                    "{name}: could not keep to the time: {what} (good is {GOOD_LATENESS_MS} ms)"
                ));
            }
            if way.unintended.total() > 0 {
                let what = way.unintended;
                warnings.push(format!(
                    "{name}: packets were lost that were not configured to be lost: {what}"
                ));
            }
        }
        warnings
    }
}

impl DirectionReport {
    /// By how much it was late, if that is too much: the 99th percentile, or the worst where packets
    /// are too few for one.
    fn late(&self) -> Option<f64> {
        let Spread { p99_ms, max_ms, .. } = self.lateness;
        p99_ms.or(max_ms).filter(|late| *late > GOOD_LATENESS_MS)
    }
}

impl fmt::Display for UnintendedLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let causes = [
            (self.overflow, "found the receive buffer full"),
            (self.memory_full, "found the relay's memory full"),
            (self.send_errors, "could not be sent"),
            (self.unknown_client, "belonged to no client"),
        ];
        let named = causes.iter().filter(|(count, _)| *count > 0);
        let named: Vec<String> = named.map(|(count, what)| format!("{count} {what}")).collect();
        f.write_str(&named.join(", "))
    }
}

/// Milliseconds within which 99 of 100 packets must leave to count as on time.
pub const GOOD_LATENESS_MS: f64 = 0.2;

#[cfg(test)]
mod tests {
    use super::*;

    fn way(p99_ms: Option<f64>, max_ms: f64, unintended: UnintendedLoss) -> DirectionReport {
        let lateness = Spread { p99_ms, max_ms: Some(max_ms), ..Spread::default() };
        DirectionReport { lateness, unintended, ..DirectionReport::default() }
    }

    #[test]
    fn good_health_says_nothing() {
        assert_eq!(Report::default().warnings(), Vec::<String>::new());
        // One straggler among many is not what a percentile is about.
        let up = way(Some(0.19), 4.0, UnintendedLoss::default());
        assert_eq!(Report { up, ..Report::default() }.warnings(), Vec::<String>::new());
    }

    #[test]
    fn lateness_and_unintended_losses_are_warnings() {
        let late = way(Some(0.25), 4.0, UnintendedLoss::default());
        let lossy = way(
            None,
            0.5,
            UnintendedLoss { overflow: 3, send_errors: 1, ..UnintendedLoss::default() },
        );
        assert_eq!(
            Report { up: late, ..Report::default() }.warnings(),
            [
                "up: could not keep to the time: 1 packet in 100 left 0.250 ms late or later, one 4.000 ms (good is 0.2 ms)"
            ]
        );
        assert_eq!(
            Report { down: lossy, ..Report::default() }.warnings(),
            [
                "down: could not keep to the time: a packet left 0.500 ms late (good is 0.2 ms)",
                "down: packets were lost that were not configured to be lost: 3 found the receive buffer full, 1 could not be sent",
            ]
        );
    }
}
