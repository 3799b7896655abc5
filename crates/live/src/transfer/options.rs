//! How files are sent.

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
    /// The first congestion window in segments.
    pub initial_window: u32,
    /// A bound of the rate at which segments leave.
    pub max_rate: Option<Rate>,
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
    /// The largest: a datagram's 65507 bytes without the longest header.
    pub const MAX_MSS: u32 = 65_507 - 60;

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
            return Err("max-wait 0: nobody answers in no time".to_owned());
        }
        Ok(())
    }

    pub(super) fn config(&self) -> Config {
        let stack = match &self.carrier {
            Carrier::Stack(stack) => stack.clone(),
            Carrier::Udp => Config::default().stack,
        };
        Config {
            stack,
            mss: self.mss,
            initial_window: self.initial_window,
            pace_initial_window: self.initial_window > Config::default().initial_window,
            max_pacing_rate: self.max_rate,
            max_retransmits: self.max_retransmits,
            max_wait: Some(self.max_wait),
            gso: (GSO_BYTES / self.mss).clamp(1, 64),
            ..base_config()
        }
    }
}

/// Bytes that leave with one system call.
const GSO_BYTES: u32 = 65_000;
