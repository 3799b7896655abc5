//! Measures a link: between samples, and from the end of the warm-up to the end of the run.

use weir_net::{Service, Stats};
use weir_trace::{LinkRow, QueueRow};
use weir_units::{Bytes, Duration, Instant};

use crate::link::HostedLink;
use crate::packet::Load;
use crate::spec::LinkSpec;

/// The state of a link's counters at earlier times.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LinkProbe {
    opened: LinkSample,
    sampled: LinkSample,
    checked: LinkSample,
}

/// What a link had done by some time.
#[derive(Clone, Copy, Debug, Default)]
struct LinkSample {
    at: Instant,
    stats: Stats,
    /// Bytes that have left the server, the sent part of the packet at hand included.
    sent: Bytes,
    /// Bytes that may go at once.
    ready: Bytes,
}

impl LinkProbe {
    /// The warm-up is over.
    pub(crate) fn open<L: Load>(&mut self, now: Instant, link: &mut HostedLink<L>) {
        self.opened = LinkSample::take(now, link);
        link.link.restart_peaks(now);
        link.meter.restart();
    }

    /// Checks the link's counters, and that it sent no more than it could since the last check.
    pub(crate) fn check<L: Load>(
        &mut self,
        now: Instant,
        link: &mut HostedLink<L>,
    ) -> Result<(), String> {
        // Both ends of the window may have been rounded.
        const ROUNDING: u64 = 2;
        link.link.check().map_err(|violation| violation.to_string())?;
        let before = std::mem::replace(&mut self.checked, LinkSample::take(now, link));
        let sent = self.checked.sent.saturating_sub(before.sent);
        // A trace's opportunity at this very moment may have been used already.
        let slack = link.link.burst() + Bytes(ROUNDING);
        match link.link.capacity(before.at, now.saturating_add(Duration::from_nanos(1))) {
            Some(capacity) if sent > capacity + slack => {
                Err(format!("sent {sent} since {}, but could send {capacity}", before.at))
            }
            _ => Ok(()),
        }
    }

    /// A row of table `queues`.
    pub(crate) fn sample<L: Load>(
        &mut self,
        index: u32,
        now: Instant,
        link: &mut HostedLink<L>,
    ) -> QueueRow {
        let before = std::mem::replace(&mut self.sampled, LinkSample::take(now, link));
        let backlog = link.link.backlog(now);
        let stats = &self.sampled.stats;
        QueueRow {
            link: index,
            t_s: now.as_secs_f64(),
            packets: backlog.packets,
            bytes: backlog.bytes.get(),
            queue_delay_ms: link.meter.last_sojourn.as_millis_f64(),
            drops: stats.dropped_by_queue().packets,
            marks: stats.marked,
            utilisation: self.sampled.utilisation(&before, link),
        }
    }

    /// The row of table `links`.
    pub(crate) fn row<L: Load>(
        &self,
        index: u32,
        spec: &LinkSpec,
        now: Instant,
        link: &mut HostedLink<L>,
    ) -> LinkRow {
        let last = LinkSample::take(now, link);
        let span = now.saturating_since(self.opened.at);
        let stats = last.stats.since(&self.opened.stats);
        let capacity = link.link.capacity(self.opened.at, now).filter(|_| !span.is_zero());
        let mut row = LinkRow {
            link: index,
            name: spec.name.clone(),
            monitored: spec.monitored,
            capacity_mbps: capacity.map(|bytes| bytes.get() as f64 * 8e-6 / span.as_secs_f64()),
            utilisation: last.utilisation(&self.opened, link).or_else(|| busy(spec, &stats, span)),
            offered_packets: stats.offered.packets,
            delivered_packets: stats.delivered.packets,
            delivered_bytes: stats.delivered.bytes,
            dropped_queue: stats.dropped_queue.packets,
            dropped_buffer: stats.dropped_buffer.packets,
            dropped_loss: stats.dropped_loss.packets + stats.dropped_mtu.packets,
            dropped_aqm: stats.dropped_aqm.packets,
            dropped_policer: stats.dropped_policer.packets,
            marked: stats.marked,
            corrupted: stats.corrupted,
            duplicated: stats.duplicated.packets,
            reordered: stats.reordered,
            queue_packets_mean: if span.is_zero() { 0.0 } else { stats.mean_packets(span) },
            queue_packets_max: stats.max_packets,
            ..LinkRow::default()
        };
        row.set_queue_delay(&link.meter.sojourns.spread());
        row
    }
}

/// A server without a rate is used for as long as it is busy.
fn busy(spec: &LinkSpec, stats: &Stats, span: Duration) -> Option<f64> {
    let per_packet = matches!(spec.config.service, Service::PerPacket { .. });
    (per_packet && !span.is_zero()).then(|| stats.busy.as_secs_f64() / span.as_secs_f64())
}

impl LinkSample {
    fn take<L: Load>(now: Instant, link: &mut HostedLink<L>) -> Self {
        let stats = link.link.stats(now);
        Self { at: now, stats, sent: link.link.sent(now), ready: link.link.ready(now) }
    }

    /// Bytes sent since `before` over what the link could have sent, which is more than its rate allows where
    /// a token bucket had tokens.
    fn utilisation<L: Load>(&self, before: &Self, link: &HostedLink<L>) -> Option<f64> {
        let capacity = link.link.capacity(before.at, self.at)? + before.ready;
        let sent = self.sent.saturating_sub(before.sent);
        (capacity > Bytes::ZERO).then(|| sent.get() as f64 / capacity.get() as f64)
    }
}
