//! Round-trip time and retransmission timeout (RFC 6298), as written there or as Linux does it.
//!
//! In both: `srtt += (sample - srtt) / 8` and a smoothed deviation `mdev += (|sample - srtt| - mdev) / 4`.
//!
//! * RFC 6298: `rttvar = mdev`, `rto = max(min_rto, srtt + 4 rttvar)`.
//! * Linux (`tcp_rtt_estimator` of 6.1): `4 rttvar` is the largest `4 mdev` within a round trip, never
//!   below `min_rto`, and sinks by a quarter of its excess once per round trip; a deviation towards
//!   shorter times counts an eighth as fast. `rto = srtt + 4 rttvar`, so `min_rto` is a margin above
//!   `srtt` rather than a floor under the sum: at 46 ms Linux waits 246 ms, not 200 ms.
//!
//! Deviation from RFC 6298 §2: the clock granularity G is one nanosecond and left out.

use weir_cc::RttSnapshot;
use weir_units::{Duration, Instant};

/// How the variation is derived from the samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RttVariation {
    /// As Linux 6.1.
    #[default]
    Linux,
    /// As RFC 6298 §2.
    Rfc6298,
}

/// The parameters of an [`RttEstimator`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttConfig {
    /// Linux's variation or the RFC's.
    pub variation: RttVariation,
    /// The smallest margin (Linux) or timeout (RFC 6298 §2.4).
    pub min_rto: Duration,
    /// The largest timeout, back-off included (RFC 6298 §2.5).
    pub max_rto: Duration,
    /// The timeout before the first sample (RFC 6298 §2.1).
    pub initial_rto: Duration,
    /// How many times the timeout doubles at most (RFC 6298 §5.5).
    pub max_doublings: u32,
    /// How far doubling lengthens a timeout at most.
    pub longest_backoff: Duration,
    /// A timeout that neither samples nor back-off move.
    pub fixed_rto: Option<Duration>,
}

/// Measures round trips and derives the retransmission timeout.
///
/// ```
/// use weir_transport::{Outstanding, RttConfig, RttEstimator, RttVariation};
/// use weir_units::{Duration, Instant};
///
/// let ms = Duration::from_millis;
/// let mut rtt = RttEstimator::new(RttConfig {
///     variation: RttVariation::Rfc6298,
///     min_rto: ms(200),
///     max_rto: ms(60_000),
///     initial_rto: ms(1_000),
///     max_doublings: 16,
///     longest_backoff: Duration::MAX,
///     fixed_rto: None,
/// });
/// let sent = Outstanding { snd_una: 1_000, snd_nxt: 2_000 };
/// rtt.on_sample(Instant::ZERO + ms(100), ms(100), sent);
/// assert_eq!((rtt.snapshot().srtt, rtt.rto()), (Some(ms(100)), ms(300)));
/// rtt.on_timeout();
/// assert_eq!(rtt.rto(), ms(600));
/// ```
#[derive(Clone, Debug)]
pub struct RttEstimator {
    config: RttConfig,
    latest: Option<Duration>,
    srtt: Option<Duration>,
    /// Smoothed deviation, times four.
    mdev4: Duration,
    /// Variation that the timeout uses, times four.
    rttvar4: Duration,
    /// Linux: the largest `mdev4` of the current round trip.
    mdev4_max: Duration,
    /// Linux: the round trip ends when everything below this offset is acknowledged.
    round_end: u64,
    min: WindowedMin,
    /// The timeout before the first sample.
    unmeasured_rto: Duration,
    /// The timeout without back-off, once measured: many ask for it between two samples.
    measured_rto: Option<Duration>,
    backoff: u32,
}

/// The part of the stream in flight when a sample is taken: distinguishes round trips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outstanding {
    /// The oldest offset not acknowledged, after the acknowledgement that brought the sample.
    pub snd_una: u64,
    /// The next offset to send.
    pub snd_nxt: u64,
}

impl RttEstimator {
    /// An estimator without samples.
    pub const fn new(config: RttConfig) -> Self {
        Self {
            config,
            latest: None,
            srtt: None,
            mdev4: Duration::ZERO,
            rttvar4: Duration::ZERO,
            mdev4_max: Duration::ZERO,
            round_end: 0,
            min: WindowedMin::new(),
            unmeasured_rto: config.initial_rto,
            measured_rto: None,
            backoff: 0,
        }
    }

    /// Processes a sample. It must not stem from a retransmitted segment unless timestamps tell
    /// which transmission was acknowledged (Karn's rule, RFC 6298 §3). Ends the back-off.
    pub fn on_sample(&mut self, now: Instant, sample: Duration, outstanding: Outstanding) {
        self.latest = Some(sample);
        self.min.update(now, sample);
        self.backoff = 0;
        match (self.srtt, self.config.variation) {
            (None, _) => self.on_first_sample(sample, outstanding),
            (Some(srtt), RttVariation::Rfc6298) => {
                self.mdev4 = self.mdev4 - self.mdev4 / 4 + distance(sample, srtt);
                self.rttvar4 = self.mdev4;
                self.srtt = Some(smooth(srtt, sample));
            }
            (Some(srtt), RttVariation::Linux) => {
                self.mdev4 = linux_mdev4(self.mdev4, sample, srtt);
                self.srtt = Some(smooth(srtt, sample));
                self.update_linux_variation(outstanding);
            }
        }
        let srtt = self.srtt.unwrap_or(sample);
        let rto = (srtt + self.rttvar4).max(self.config.min_rto).min(self.config.max_rto);
        self.measured_rto = Some(self.config.fixed_rto.unwrap_or(rto));
    }

    /// Processes the time of the newest segment that an acknowledgement covers, which excludes the wait
    /// of a delayed acknowledgement: for the minimum alone (Linux's `tcp_update_rtt_min`).
    pub fn on_newest(&mut self, now: Instant, sample: Duration) {
        self.min.update(now, sample);
    }

    /// The retransmission timer expired: doubles the timeout (RFC 6298 §5.5).
    pub fn on_timeout(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
    }

    /// The handshake is done, but a SYN had to be sent again: without a sample so far, data starts
    /// with a timeout of at least 3 s and no back-off (RFC 6298 §5.7).
    pub fn on_handshake_after_syn_loss(&mut self) {
        if self.srtt.is_none() {
            self.unmeasured_rto = self.unmeasured_rto.max(RTO_AFTER_SYN_LOSS);
            self.backoff = 0;
        }
    }

    /// Forgets round trips and back-off: until the next sample the timeout is `rto`.
    pub fn forget(&mut self, rto: Duration) {
        self.srtt = None;
        self.measured_rto = None;
        self.unmeasured_rto = rto;
        self.backoff = 0;
    }

    /// The retransmission timeout, back-off included.
    pub fn rto(&self) -> Duration {
        self.config.fixed_rto.unwrap_or_else(|| self.backed_off(self.base_rto()))
    }

    /// The same in whole milliseconds, as Linux doubles it (`icsk_rto` counts ticks).
    pub(crate) fn rto_in_ticks(&self) -> Duration {
        self.backed_off(Duration::from_millis(self.base_rto().as_nanos().div_ceil(1_000_000)))
    }

    fn backed_off(&self, base: Duration) -> Duration {
        if self.backoff == 0 {
            return base;
        }
        let doublings = self.backoff.min(self.config.max_doublings);
        let factor = 1u64.checked_shl(doublings).unwrap_or(u64::MAX);
        let longest = self.config.longest_backoff.max(base).min(self.config.max_rto);
        base.saturating_mul(factor).min(longest)
    }

    /// The retransmission timeout without back-off.
    pub fn base_rto(&self) -> Duration {
        self.measured_rto.unwrap_or_else(|| {
            let unmeasured = self.unmeasured_rto.min(self.config.max_rto);
            self.config.fixed_rto.unwrap_or(unmeasured)
        })
    }

    /// How often the timeout has doubled since the last sample.
    pub const fn backoff(&self) -> u32 {
        self.backoff
    }

    /// The newest sample.
    pub const fn latest(&self) -> Option<Duration> {
        self.latest
    }

    /// The smoothed round-trip time.
    pub const fn srtt(&self) -> Option<Duration> {
        self.srtt
    }

    /// The variation: RFC 6298's, or a quarter of the margin that Linux adds to `srtt`.
    pub fn rttvar(&self) -> Duration {
        self.rttvar4 / 4
    }

    /// How far samples lie from `srtt`, on average: what Linux's `TCP_INFO` calls `rttvar`.
    pub fn mdev(&self) -> Duration {
        self.mdev4 / 4
    }

    /// The smallest sample of the last 150 to 300 s.
    pub fn min(&self) -> Option<Duration> {
        self.min.get()
    }

    /// Everything that a controller may know.
    pub fn snapshot(&self) -> RttSnapshot {
        RttSnapshot { latest: self.latest, srtt: self.srtt, rttvar: self.rttvar(), min: self.min() }
    }

    /// RFC 6298 §2.2: `srtt` is the sample, `rttvar` half of it.
    fn on_first_sample(&mut self, sample: Duration, outstanding: Outstanding) {
        self.srtt = Some(sample);
        self.mdev4 = sample * 2;
        self.rttvar4 = match self.config.variation {
            RttVariation::Rfc6298 => self.mdev4,
            RttVariation::Linux => self.mdev4.max(self.config.min_rto),
        };
        self.mdev4_max = self.rttvar4;
        self.round_end = outstanding.snd_nxt;
    }

    fn update_linux_variation(&mut self, outstanding: Outstanding) {
        self.mdev4_max = self.mdev4_max.max(self.mdev4);
        self.rttvar4 = self.rttvar4.max(self.mdev4_max);
        if outstanding.snd_una > self.round_end {
            self.rttvar4 -= self.rttvar4.saturating_sub(self.mdev4_max) / 4;
            self.round_end = outstanding.snd_nxt;
            self.mdev4_max = self.config.min_rto;
        }
    }
}

/// RFC 6298 §5.7.
const RTO_AFTER_SYN_LOSS: Duration = Duration::from_secs(3);

fn distance(a: Duration, b: Duration) -> Duration {
    a.max(b) - a.min(b)
}

/// `srtt + (sample - srtt) / 8`, rounded towards `srtt`.
fn smooth(srtt: Duration, sample: Duration) -> Duration {
    let step = distance(sample, srtt) / 8;
    if sample > srtt { srtt + step } else { srtt - step }
}

/// `mdev` moves a quarter of the way to the new deviation; but where the time shrank and the
/// deviation grew, it moves a thirty-second only, so that a queue that drains does not inflate the
/// timeout.
fn linux_mdev4(mdev4: Duration, sample: Duration, srtt: Duration) -> Duration {
    let deviation = distance(sample, srtt);
    let mdev = mdev4 / 4;
    if deviation <= mdev {
        mdev4 - (mdev - deviation)
    } else if sample < srtt {
        mdev4 + (deviation - mdev) / 8
    } else {
        mdev4 + (deviation - mdev)
    }
}

/// The minimum of the last one to two spans of [`WindowedMin::SPAN`].
#[derive(Clone, Debug)]
struct WindowedMin {
    span_start: Instant,
    previous: Option<Duration>,
    current: Option<Duration>,
}

impl WindowedMin {
    /// Half of the window over which Linux keeps the minimum (`tcp_min_rtt_wlen`, 300 s).
    const SPAN: Duration = Duration::from_secs(150);

    const fn new() -> Self {
        Self { span_start: Instant::ZERO, previous: None, current: None }
    }

    fn update(&mut self, now: Instant, sample: Duration) {
        let age = now.saturating_since(self.span_start);
        if age >= Self::SPAN {
            let adjacent = age < Self::SPAN * 2;
            self.previous = self.current.take().filter(|_| adjacent);
            self.span_start = if adjacent { self.span_start + Self::SPAN } else { now };
        }
        self.current = Some(self.current.map_or(sample, |min| min.min(sample)));
    }

    fn get(&self) -> Option<Duration> {
        match (self.previous, self.current) {
            (Some(previous), Some(current)) => Some(previous.min(current)),
            (previous, current) => previous.or(current),
        }
    }
}

#[cfg(test)]
mod tests;
