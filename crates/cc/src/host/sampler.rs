//! Delivery rate samples (draft-cheng-iccrg-delivery-rate-estimation-02, as Linux's tcp_rate.c).
//!
//! Each transmission carries a snapshot of how much was delivered when it left. When it is
//! acknowledged, what was delivered since over the time since (the longer of the interval over which
//! the data was sent and the one over which it was acknowledged) is a bandwidth sample that neither
//! compressed ACKs nor bursts inflate.

use weir_units::{Bytes, Duration, Instant, Rate};

use crate::{LossSample, RateSample};

/// What was known when a packet was sent. The host keeps it with the packet.
#[derive(Clone, Copy, Debug, Default)]
pub struct SendRecord {
    delivered: u64,
    delivered_at: Instant,
    /// When the first segment of the send interval left.
    first_sent_at: Instant,
    app_limited: bool,
    /// Bytes in flight then, the packet included.
    in_flight: Bytes,
    /// Bytes declared lost until then.
    lost: Bytes,
}

impl SendRecord {
    /// Adds what the host knows: the bytes in flight with this packet, and those declared lost so far.
    #[inline]
    pub fn with_flight(self, in_flight: Bytes, lost: Bytes) -> Self {
        Self { in_flight, lost, ..self }
    }

    /// The bytes declared lost before the packet was sent.
    pub fn lost(&self) -> Bytes {
        self.lost
    }

    /// The loss sample of a packet of `size` bytes with this record, when `lost` bytes were declared lost in all,
    /// these included.
    ///
    /// ```
    /// use weir_cc::host::RateSampler;
    /// use weir_units::{Bytes, Instant};
    ///
    /// let record = RateSampler::default().on_sent(Instant::ZERO, true).with_flight(Bytes(12_000), Bytes(2_400));
    /// let sample = record.loss(Bytes(1_200), Bytes(6_000));
    /// assert_eq!(sample.in_flight_at_send, Bytes(12_000));
    /// assert_eq!(sample.lost, Bytes(3_600), "since the packet was sent");
    /// ```
    pub fn loss(&self, size: Bytes, lost: Bytes) -> LossSample {
        LossSample {
            size,
            in_flight_at_send: self.in_flight,
            lost: lost - self.lost,
            app_limited: self.app_limited,
        }
    }
}

/// Counts deliveries and turns acknowledgements into delivery rate samples.
///
/// ```
/// use weir_cc::host::RateSampler;
/// use weir_units::{Bytes, Duration, Instant, Rate};
///
/// let mut sampler = RateSampler::default();
/// let sent_at = Instant::ZERO;
/// let record = sampler.on_sent(sent_at, true);
/// let now = sent_at + Duration::from_millis(40);
/// let sample = sampler.on_ack(now, Bytes(50_000), Some((sent_at, record)), None).unwrap();
/// assert_eq!(sample.rate(), Some(Rate::from_mbit(10)));
/// assert_eq!(sampler.delivered(), Bytes(50_000));
/// ```
#[derive(Clone, Debug, Default)]
pub struct RateSampler {
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    /// The delivered count up to which samples are bounded by the application.
    app_limited_until: Option<u64>,
    /// What was delivered lately, and over which time.
    latest: Option<(Bytes, Duration)>,
}

impl RateSampler {
    /// The record of a packet that leaves now, without what [`with_flight`](SendRecord::with_flight) adds; `idle` says
    /// that nothing is in flight.
    #[inline]
    pub fn on_sent(&mut self, now: Instant, idle: bool) -> SendRecord {
        if idle {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        SendRecord {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            app_limited: self.app_limited_until.is_some(),
            ..SendRecord::default()
        }
    }

    /// The application has nothing more to send: samples are marked until `in_flight` is delivered.
    pub fn on_app_limited(&mut self, in_flight: Bytes) {
        self.app_limited_until = Some(self.delivered + in_flight.get().max(1));
    }

    /// Bytes delivered so far.
    #[inline]
    pub fn delivered(&self) -> Bytes {
        Bytes(self.delivered)
    }

    /// Whether the application, not the network, bounds what is delivered.
    #[inline]
    pub fn is_app_limited(&self) -> bool {
        self.app_limited_until.is_some()
    }

    /// Processes an acknowledgement of `delivered` new bytes whose newest transmission left at
    /// `sent_at` with `record`. No sample is made of an interval shorter than the minimum RTT: it
    /// cannot be real.
    ///
    /// [`RateSample::lost`] is zero: the host sets it to the bytes declared lost since
    /// [`record.lost()`](SendRecord::lost), once it has looked for losses.
    pub fn on_ack(
        &mut self,
        now: Instant,
        delivered: Bytes,
        newest: Option<(Instant, SendRecord)>,
        min_rtt: Option<Duration>,
    ) -> Option<RateSample> {
        self.delivered += delivered.get();
        if delivered > Bytes::ZERO {
            self.delivered_at = now;
        }
        if self.app_limited_until.is_some_and(|until| self.delivered > until) {
            self.app_limited_until = None;
        }
        let (sent_at, record) = newest?;
        self.first_sent_at = sent_at;
        let send_interval = sent_at.saturating_since(record.first_sent_at);
        let ack_interval = now.saturating_since(record.delivered_at);
        let interval = send_interval.max(ack_interval);
        if interval.is_zero() || min_rtt.is_some_and(|min| interval < min) {
            return None;
        }
        let sample = RateSample {
            delivered: Bytes(self.delivered - record.delivered),
            interval,
            prior_delivered: Bytes(record.delivered),
            total_delivered: Bytes(self.delivered),
            in_flight_at_send: record.in_flight,
            lost: Bytes::ZERO,
            app_limited: record.app_limited,
        };
        self.keep(&sample);
        Some(sample)
    }

    /// The rate at which data was delivered lately.
    pub fn rate(&self) -> Option<Rate> {
        self.latest.and_then(|(delivered, interval)| Rate::from_transfer(delivered, interval))
    }

    /// A sample that the application bounds tells only of rates that it exceeds (`tcp_rate_gen`).
    fn keep(&mut self, sample: &RateSample) {
        let area =
            |bytes: Bytes, time: Duration| u128::from(bytes.get()) * u128::from(time.as_nanos());
        let tells = self.latest.is_none_or(|(delivered, interval)| {
            area(sample.delivered, interval) >= area(delivered, sample.interval)
        });
        if tells || !sample.app_limited {
            self.latest = Some((sample.delivered, sample.interval));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux's `tcp_rate_gen`: an acknowledgement that delivers nothing does not shorten the interval
    /// over which the next one's data was delivered.
    #[test]
    fn what_delivers_nothing_starts_no_interval() {
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let mut sampler = RateSampler::default();
        let first = sampler.on_sent(at(0), true);
        sampler.on_ack(at(40), Bytes(1_000), Some((at(0), first)), None);
        sampler.on_ack(at(50), Bytes::ZERO, None, None);
        let second = sampler.on_sent(at(60), false);
        let sample = sampler.on_ack(at(100), Bytes(1_000), Some((at(60), second)), None).unwrap();
        assert_eq!((sample.delivered, sample.interval), (Bytes(1_000), Duration::from_millis(60)));
    }

    #[test]
    fn a_sample_that_the_application_bounds_does_not_lower_the_rate() {
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let rate_after = |limited: bool, bytes: u64| {
            let mut sampler = RateSampler::default();
            let first = sampler.on_sent(at(0), true);
            sampler.on_ack(at(10), Bytes(10_000), Some((at(0), first)), None);
            if limited {
                sampler.on_app_limited(Bytes(0));
            }
            let second = sampler.on_sent(at(20), true);
            sampler.on_ack(at(30), Bytes(bytes), Some((at(20), second)), None);
            sampler.rate().map(Rate::as_bits_per_sec)
        };
        assert_eq!(rate_after(false, 1_000), Some(800_000));
        assert_eq!(rate_after(true, 1_000), Some(8_000_000));
        assert_eq!(rate_after(true, 20_000), Some(16_000_000));
    }
}
