//! How files are sent.

use weir_sockets::socket::MAX_DATAGRAM;
use weir_transport::Config;
use weir_units::{Duration, Rate};

use super::{Carrier, base_config};
use crate::seal::{self, Key};

/// How to send.
#[derive(Clone, Debug)]
pub struct SendOptions {
    /// Loss recovery and congestion control, or neither.
    pub carrier: Carrier,
    /// Bytes of payload in a segment, at most [`SendOptions::MAX_MSS`].
    pub mss: u32,
    /// The first congestion window in segments. The usual one counts for more where the way takes longer
    /// packets than an Ethernet (`first_window`).
    pub initial_window: u32,
    /// A bound of the rate at which segments leave.
    pub max_rate: Option<Rate>,
    /// Pace controllers that set no rate of their own too ([`Config::pace_window`]).
    pub pacing: bool,
    /// Timeouts in a row after which a connection is given up (`MAX_RETRANSMITS`).
    pub max_retransmits: u32,
    /// Time without progress after which it is (`MAX_WAIT`).
    pub max_wait: Duration,
    /// With which everything is sealed, if it is.
    pub key: Option<Key>,
}

impl SendOptions {
    /// The smallest payload of a segment.
    pub const MIN_MSS: u32 = 64;
    /// The largest: what a datagram holds without the longest header.
    pub const MAX_MSS: u32 = MAX_DATAGRAM as u32 - 60;

    /// What is wrong with it, if anything is.
    ///
    /// # Errors
    /// The option, its value and what is allowed.
    pub fn validate(&self) -> Result<(), String> {
        let overhead = if self.key.is_some() { seal::OVERHEAD as u32 } else { 0 };
        let (least, most) = (Self::MIN_MSS, Self::MAX_MSS - overhead);
        if !(least..=most).contains(&self.mss) {
            return Err(format!("mss {} is not between {least} and {most} bytes", self.mss));
        }
        if self.initial_window == 0 {
            return Err("initial-window 0: at least one segment is needed".to_owned());
        }
        if self.max_rate.is_some_and(|rate| rate == Rate::ZERO) {
            return Err("rate 0: nothing would ever leave".to_owned());
        }
        if self.max_wait.is_zero() {
            return Err("max-wait 0: no peer answers in no time".to_owned());
        }
        Ok(())
    }

    /// For a connection over a way that takes packets of up to `path_mtu` bytes.
    pub fn config(&self, path_mtu: Option<u32>) -> Config {
        let usual = self.initial_window == Config::default().initial_window;
        let path_mtu = path_mtu.filter(|_| usual);
        let stack = match &self.carrier {
            Carrier::Stack(stack) => stack.clone(),
            Carrier::Udp => Config::default().stack,
        };
        Config {
            stack,
            mss: self.mss,
            initial_window: path_mtu.map_or(self.initial_window, |mtu| {
                first_window(mtu, self.mss, self.initial_window)
            }),
            pace_initial_window: self.initial_window > Config::default().initial_window,
            pace_window: self.pacing,
            max_pacing_rate: self.max_rate,
            max_retransmits: self.max_retransmits,
            max_wait: Some(self.max_wait),
            gso: (GSO_BYTES / self.mss).clamp(1, 64),
            ..base_config()
        }
    }
}

/// The first window in segments of `mss` bytes: `usual`, or as many bytes as RFC 6928 §2 lets a TCP send
/// whose segments fill the packets that the way takes, `min(10 MSS, max(2 MSS, 14600))`. Ours stay short
/// so that they fit everywhere, which is no reason to wait longer for the first answer.
fn first_window(path_mtu: u32, mss: u32, usual: u32) -> u32 {
    let longest = path_mtu.saturating_sub(HEADERS);
    let bytes = longest.saturating_mul(10).min(longest.saturating_mul(2).max(14_600));
    usual.max(bytes / mss)
}

/// TCP's and IP's, without options.
const HEADERS: u32 = 40;
/// Bytes that leave with one system call.
const GSO_BYTES: u32 = 65_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_window_is_that_of_the_way() {
        for (path_mtu, mss, segments) in [
            (1_500, 1_420, 10),
            (1_280, 1_420, 10),
            (9_000, 1_420, 12),
            (65_536, 1_420, 92),
            (65_536, 65_447, 10),
            (u32::MAX, 65_447, 65_625),
            (0, 1_420, 10),
        ] {
            assert_eq!(first_window(path_mtu, mss, 10), segments, "{path_mtu} {mss}");
        }
    }
}
