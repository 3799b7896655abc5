//! Delivery rate samples (draft-cheng-iccrg-delivery-rate-estimation-02, as Linux's tcp_rate.c).
//!
//! Each transmission carries a snapshot of how much was delivered when it left. When it is
//! acknowledged, what was delivered since over the time since (the longer of the interval over which
//! the data was sent and the one over which it was acknowledged) is a bandwidth sample that neither
//! compressed ACKs nor bursts inflate.

use weir_cc::{LossSample, RateSample};
use weir_units::{Bytes, Duration, Instant, Rate};

/// What was known when a segment was sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SendRecord {
    delivered: u64,
    delivered_at: Instant,
    /// When the first segment of the send interval left.
    first_sent_at: Instant,
    app_limited: bool,
    /// Bytes in flight then, the segment included.
    pub(crate) in_flight: u64,
    /// Bytes declared lost until then.
    pub(crate) lost: u64,
}

impl SendRecord {
    /// The loss sample for a segment of `size` bytes with this record, when `lost`
    /// bytes were declared lost in all.
    pub(crate) fn loss(&self, size: u64, lost: u64) -> LossSample {
        LossSample {
            size: Bytes(size),
            in_flight_at_send: Bytes(self.in_flight),
            lost: Bytes(lost - self.lost),
            app_limited: self.app_limited,
        }
    }
}

/// Counts deliveries and turns acknowledgements into samples.
#[derive(Debug, Default)]
pub(crate) struct RateSampler {
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    /// The delivered count up to which samples are bounded by the application.
    app_limited_until: Option<u64>,
    /// What was delivered lately, and over which time.
    latest: Option<(Bytes, Duration)>,
}

impl RateSampler {
    /// The snapshot for a segment that leaves now, without what the scoreboard knows; `idle` says that
    /// nothing is in flight.
    pub(crate) fn on_sent(&mut self, now: Instant, idle: bool) -> SendRecord {
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

    /// Notes that the application leaves the path idle while `in_flight` drains.
    pub(crate) fn on_app_limited(&mut self, in_flight: Bytes) {
        self.app_limited_until = Some(self.delivered + in_flight.get().max(1));
    }

    /// Bytes delivered so far.
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Whether the application, not the network, bounds what is delivered.
    pub(crate) fn is_app_limited(&self) -> bool {
        self.app_limited_until.is_some()
    }

    /// Takes in an acknowledgement of `delivered` new bytes whose newest transmission left at
    /// `sent_at` with `record`. No sample is made of an interval shorter than the minimum RTT: it
    /// cannot be real.
    pub(crate) fn on_ack(
        &mut self,
        now: Instant,
        delivered: u64,
        newest: Option<(Instant, SendRecord)>,
        min_rtt: Option<Duration>,
    ) -> Option<RateSample> {
        self.delivered += delivered;
        if delivered > 0 {
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
            in_flight_at_send: Bytes(record.in_flight),
            lost: Bytes::ZERO,
            app_limited: record.app_limited,
        };
        self.keep(&sample);
        Some(sample)
    }

    /// The rate at which data was delivered lately.
    pub(crate) fn rate(&self) -> Option<Rate> {
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
        sampler.on_ack(at(40), 1_000, Some((at(0), first)), None);
        sampler.on_ack(at(50), 0, None, None);
        let second = sampler.on_sent(at(60), false);
        let sample = sampler.on_ack(at(100), 1_000, Some((at(60), second)), None).unwrap();
        assert_eq!((sample.delivered, sample.interval), (Bytes(1_000), Duration::from_millis(60)));
    }

    #[test]
    fn a_sample_that_the_application_bounds_does_not_lower_the_rate() {
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let rate_after = |limited: bool, bytes: u64| {
            let mut sampler = RateSampler::default();
            let first = sampler.on_sent(at(0), true);
            sampler.on_ack(at(10), 10_000, Some((at(0), first)), None);
            if limited {
                sampler.on_app_limited(Bytes(0));
            }
            let second = sampler.on_sent(at(20), true);
            sampler.on_ack(at(30), bytes, Some((at(20), second)), None);
            sampler.rate().map(Rate::as_bits_per_sec)
        };
        assert_eq!(rate_after(false, 1_000), Some(800_000));
        assert_eq!(rate_after(true, 1_000), Some(8_000_000));
        assert_eq!(rate_after(true, 20_000), Some(16_000_000));
    }
}
