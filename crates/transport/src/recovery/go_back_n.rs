//! `go-back-n`: cumulative acknowledgements to a receiver that keeps nothing out of order. Three
//! duplicates or the timeout resend all that is outstanding.
//!
//! How many duplicates it takes is a parameter: programs that compare three equal acknowledgements need
//! two after the first, and those without fast retransmit wait for the timer (`duplicates=off`).
//!
//! When the sender goes back, duplicates of the old window are still on their way: one for each
//! segment that the receiver discarded behind the gap. Only duplicates beyond those speak of what
//! was resent, so they are waited out before three more make the sender go back again. Nor does a
//! duplicate count that comes sooner than a round trip after the oldest segment left: it answers an
//! earlier one. Without that, segments resent in vain would, by their own duplicates, cause ever more.
//!
//! The shortest round trip says little once a queue has grown. So copies are counted too: where an
//! acknowledgement answers an earlier copy (the Eifel detection, RFC 3522), each later copy of that
//! segment is still in flight, and the receiver will answer it by a duplicate.

use super::describe::{Mistake, Parameters};
use super::{AckSummary, DUP_THRESH, Found, LossRecovery, Profile, RecoveryCx};
use crate::scoreboard::Scoreboard;

/// How far go-back-N runs ahead, and what makes it go back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GoBackNConfig {
    /// Segments that may be unacknowledged.
    pub window: Option<u32>,
    /// Duplicates after which it goes back; without them only the timer makes it.
    pub duplicates: Option<u32>,
}

impl Default for GoBackNConfig {
    fn default() -> Self {
        Self { window: None, duplicates: Some(DUP_THRESH) }
    }
}

impl Parameters for GoBackNConfig {
    const FORM: &'static str = "window,duplicates=count|off";

    fn read(text: &str) -> Result<Self, Mistake> {
        let mut config = Self::default();
        for part in text.split(',').map(str::trim) {
            match part.split_once('=') {
                None => config.window = Parameters::read(part)?,
                Some(("duplicates", "off")) => config.duplicates = None,
                Some(("duplicates", count)) => {
                    let count = count.parse().ok().filter(|count| *count >= 1);
                    config.duplicates = Some(count.ok_or_else(|| Mistake::Value {
                        parameter: "duplicates",
                        value: part.trim_start_matches("duplicates=").to_owned(),
                        allowed: "a whole number, at least 1, or off",
                    })?);
                }
                Some(_) => return Err(Mistake::Refused),
            }
        }
        Ok(config)
    }

    fn shown(&self) -> String {
        let window = self.window.map(|window| window.to_string());
        let duplicates = (*self != Self { window: self.window, ..Self::default() }).then(|| {
            let count = self.duplicates.map_or("off".to_owned(), |count| count.to_string());
            format!("duplicates={count}")
        });
        let parts: Vec<String> = window.into_iter().chain(duplicates).collect();
        parts.join(",")
    }
}

/// Go-back-N's count of duplicates.
#[derive(Clone, Debug)]
pub(super) struct GoBackN {
    config: GoBackNConfig,
    duplicates: u32,
    /// Duplicates still expected from before the sender went back.
    stale: u32,
    /// Duplicates still expected from copies of segments that are acknowledged.
    spurious: u32,
}

impl GoBackN {
    pub(super) fn new(config: GoBackNConfig) -> Self {
        Self { config, duplicates: 0, stale: 0, spurious: 0 }
    }
}

impl LossRecovery for GoBackN {
    fn profile(&self) -> Profile {
        // Everything out was resent, so whatever an acknowledgement moves, the loss is repaired.
        Profile { window: self.config.window, ends_on_partial_ack: true, ..Profile::default() }
    }

    fn on_ack(&mut self, cx: &RecoveryCx, board: &mut Scoreboard, ack: &AckSummary) -> Found {
        if ack.covered.cum_acked > 0 {
            self.duplicates = 0;
            self.stale = 0;
            self.spurious = match ack.covered.spurious_copies {
                // It answers the last copy, and what was sent before that was answered before.
                0 => 0,
                copies => self.spurious + copies,
            };
        } else if ack.duplicate && self.spurious > 0 {
            self.spurious -= 1;
        } else if ack.duplicate && self.stale > 0 {
            self.stale -= 1;
        } else if ack.duplicate && answers_oldest(cx, board) {
            self.duplicates += 1;
        }
        let Some(enough) = self.config.duplicates.filter(|enough| self.duplicates >= *enough)
        else {
            return Found::default();
        };
        let outstanding = board.iter().count() as u32;
        self.stale = outstanding.saturating_sub(1).saturating_sub(enough);
        self.duplicates = 0;
        Found { lost: board.lose_where(|_, _| true), ..Found::default() }
    }
}

/// Whether what arrives now can answer something that left after the oldest outstanding segment; as
/// long as no round trip was measured, only the timer tells.
fn answers_oldest(cx: &RecoveryCx, board: &Scoreboard) -> bool {
    let waited = board.first().map(|oldest| cx.now.saturating_since(oldest.sent_at));
    cx.srtt.is_some() && waited >= Some(cx.min_rtt)
}

#[cfg(test)]
mod tests {
    use crate::RecoveryConfig;

    #[test]
    fn what_is_not_at_its_default_is_written() {
        for (given, shown) in [
            ("go-back-n(30,duplicates=3)", "go-back-n(30)"),
            ("go-back-n(duplicates=2, 5)", "go-back-n(5,duplicates=2)"),
            ("go-back-n(duplicates=off)", "go-back-n(duplicates=off)"),
        ] {
            let read: RecoveryConfig = given.parse().expect(given);
            assert_eq!(read.to_string(), shown);
        }
    }

    #[test]
    fn mistakes_say_what_is_allowed() {
        for (given, message) in [
            ("go-back-n(0)", "window = '0', allowed is a whole number of segments, at least 1"),
            (
                "go-back-n(5,duplicates=0)",
                "duplicates = '0', allowed is a whole number, at least 1, or off",
            ),
            ("go-back-n(5,acks=2)", "does not take '(5,acks=2)'"),
        ] {
            let error = given.parse::<RecoveryConfig>().unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
