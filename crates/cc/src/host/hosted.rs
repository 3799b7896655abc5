//! A controller with the bookkeeping that QUIC hosts leave to it.

use weir_units::{Bytes, Duration, Instant, Rate, Rng};

use super::{Pacer, RateSampler, RecoveryEpoch, RttFilter, SendRecord};
use crate::{
    AckEvent, Cause, CcContext, CongestionController, CongestionEvent, LossSample, PathEvent,
    RecoveryState, RttSnapshot,
};

/// What is kept of a packet until it is acknowledged or lost. A host that has space for it per packet stores it there,
/// others use [`SentPackets`](super::SentPackets).
#[derive(Clone, Copy, Debug)]
pub struct SentPacket {
    sent_at: Instant,
    size: Bytes,
    /// Bytes sent up to here, this packet included.
    end: u64,
    record: SendRecord,
}

impl SentPacket {
    /// When it was sent.
    pub fn sent_at(&self) -> Instant {
        self.sent_at
    }

    /// Its bytes.
    pub fn size(&self) -> Bytes {
        self.size
    }
}

/// A controller with everything that it relies on: bytes in flight, round trips, rate samples, recovery epochs, and
/// the order of calls that [`CongestionController`] documents.
///
/// A host reports each packet that counts as in flight, and reads window and pacing rate. Losses may be reported before
/// or after the acknowledgement that reveals them: [`end_of_acks`](Self::end_of_acks) passes on what was reported since
/// the one before. Sizes are those of whole packets, so that a window of ten `mss` holds ten full packets. One reduction
/// per epoch follows RFC 9002 §7.3.2: packets that were sent before the last reduction cause no other.
///
/// Ten packets, of which the first is lost:
///
/// ```
/// use weir_cc::host::HostedController;
/// use weir_cc::{Cause, CcConfig};
/// use weir_units::{Bytes, Duration, Instant, stream};
///
/// let mss = Bytes(1_200);
/// let cubic = "cubic".parse::<CcConfig>()?.build(mss, mss * 10)?;
/// let mut cc = HostedController::new(cubic, mss, stream(1, "controller"));
/// let packets: Vec<_> = (0..10).map(|_| cc.on_sent(Instant::ZERO, mss)).collect();
/// assert_eq!(cc.bytes_in_flight(), cc.cwnd());
///
/// let now = Instant::ZERO + Duration::from_millis(40);
/// packets[1..4].iter().for_each(|packet| cc.on_acked(packet, mss));
/// cc.end_of_acks(now);
/// cc.on_lost(&packets[0], mss);
/// cc.on_congestion(now, Cause::FastRetransmit);
/// assert_eq!(cc.cwnd(), mss * 9, "slow start had made 13 of 10, and CUBIC keeps 0.7");
/// assert_eq!(cc.bytes_in_flight(), mss * 6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct HostedController {
    cc: Box<dyn CongestionController>,
    rng: Rng,
    mss: Bytes,
    rtt: RttFilter,
    sampler: RateSampler,
    epoch: RecoveryEpoch,
    /// Of a host without one.
    pacer: Option<Pacer>,
    in_flight: Bytes,
    /// Bytes sent so far.
    sent: u64,
    /// Bytes that had been sent when the newest acknowledged packet left.
    acked_up_to: u64,
    /// Bytes declared lost so far.
    lost: Bytes,
    /// Bytes that arrived with an ECN mark, where the host counts them.
    marked: Bytes,
    round: u64,
    round_ends: u64,
    last_sent_at: Option<Instant>,
    usage: Usage,
    acks: Acks,
    losses: Losses,
}

/// Acknowledgements that the controller has not received.
#[derive(Clone, Copy, Debug, Default)]
struct Acks {
    newest: Option<SentPacket>,
    acked: Bytes,
    prior_in_flight: Bytes,
}

/// Losses: those since the last signal, and those since the last acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
struct Losses {
    unsignalled: Bytes,
    /// Bytes sent up to the newest of them.
    newest: u64,
    prior_in_flight: Bytes,
    since_ack: Bytes,
    sample: Option<LossSample>,
}

/// How much of the window is used, as Linux's `tcp_cwnd_validate` keeps it: the strongest sign within a round.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    limited: bool,
    most_in_flight: Bytes,
    until: u64,
}

impl HostedController {
    /// A controller for packets of at most `mss` bytes. `rng` is its random stream.
    pub fn new(cc: Box<dyn CongestionController>, mss: Bytes, rng: Rng) -> Self {
        Self {
            cc,
            rng,
            mss,
            rtt: RttFilter::default(),
            sampler: RateSampler::default(),
            epoch: RecoveryEpoch::default(),
            pacer: None,
            in_flight: Bytes::ZERO,
            sent: 0,
            acked_up_to: 0,
            lost: Bytes::ZERO,
            marked: Bytes::ZERO,
            round: 0,
            round_ends: 0,
            last_sent_at: None,
            usage: Usage::default(),
            acks: Acks::default(),
            losses: Losses::default(),
        }
    }

    /// With a pacer, for hosts that have none. [`next_departure`](Self::next_departure) then follows the controller's rate,
    /// or 1.25 windows per round trip where it sets none (RFC 9002 §7.7).
    #[must_use]
    pub fn with_pacer(self) -> Self {
        Self { pacer: Some(Pacer::default()), ..self }
    }

    /// A packet of `size` bytes, or a batch of packets, is sent. Packets that are not acknowledged by themselves, as
    /// those of acknowledgements only, are not reported.
    pub fn on_sent(&mut self, now: Instant, size: Bytes) -> SentPacket {
        let idle = self.in_flight == Bytes::ZERO;
        if idle {
            self.restart_after_idle(now);
        }
        self.with(now, |cc, cx| cc.on_sent(cx, size));
        let record = self.sampler.on_sent(now, idle);
        let rate = self.cc.pacing_rate().or_else(|| self.window_rate());
        if let Some(pacer) = &mut self.pacer {
            pacer.on_sent(now, rate, size);
        }
        self.in_flight += size;
        self.sent += size.get();
        self.last_sent_at = Some(now);
        self.note_usage(self.in_flight + self.mss > self.cc.cwnd());
        let record = record.with_flight(self.in_flight, self.lost);
        SentPacket { sent_at: now, size, end: self.sent, record }
    }

    /// A record for a packet that does not count as in flight, where the host wants one for each.
    pub fn record(&mut self, now: Instant) -> SentPacket {
        let record = self.sampler.on_sent(now, false).with_flight(self.in_flight, self.lost);
        SentPacket { sent_at: now, size: Bytes::ZERO, end: self.sent, record }
    }

    /// The window, or pacing, kept the host from sending. RFC 9002 §7.8 counts both as use of the window.
    pub fn on_cwnd_limited(&mut self) {
        self.note_usage(true);
    }

    /// The application has nothing more to send.
    pub fn on_app_limited(&mut self) {
        self.sampler.on_app_limited(self.in_flight);
    }

    /// `bytes` are acknowledged: `packet`, or more of which it is the newest.
    pub fn on_acked(&mut self, packet: &SentPacket, bytes: Bytes) {
        if self.acks.newest.is_none() {
            self.acks.prior_in_flight = self.in_flight;
        }
        self.in_flight = self.in_flight.saturating_sub(bytes);
        self.acks.acked += bytes;
        if self.acks.newest.is_none_or(|newest| packet.end > newest.end) {
            self.acks.newest = Some(*packet);
        }
    }

    /// All packets of an acknowledgement that arrives `now` are reported. Without any, this does nothing.
    pub fn end_of_acks(&mut self, now: Instant) {
        let Acks { newest, acked, prior_in_flight } = std::mem::take(&mut self.acks);
        let Some(newest) = newest else { return };
        // RFC 9002 §5.1: only the newest packet gives a sample.
        let rtt = (newest.end > self.acked_up_to).then(|| now.saturating_since(newest.sent_at));
        if let Some(rtt) = rtt {
            self.rtt.on_sample(rtt);
        }
        self.acked_up_to = self.acked_up_to.max(newest.end);
        let sent = (newest.sent_at, newest.record);
        let mut rate = self.sampler.on_ack(now, acked, Some(sent), self.rtt.snapshot().min);
        if let Some(sample) = &mut rate {
            sample.lost = self.lost - newest.record.lost();
        }
        if self.acked_up_to > self.round_ends {
            (self.round, self.round_ends) = (self.round + 1, self.sent);
        }
        let event = AckEvent {
            acked,
            cum_acked: acked,
            lost: std::mem::take(&mut self.losses.since_ack),
            rtt,
            rate,
            loss: self.losses.sample.take(),
            predicted: true,
            prior_in_flight,
            round: self.round,
            ..AckEvent::default()
        };
        self.with(now, |cc, cx| cc.on_delivery(cx, &event));
        let ended = self.epoch.on_ack(self.acked_up_to);
        self.with(now, |cc, cx| {
            cc.on_ack(cx, &event);
            if ended {
                cc.on_epoch_end(cx);
            }
        });
        if self.cc.poll_episode() && self.epoch.state() == RecoveryState::Open {
            self.signal(now, Cause::Delay, Bytes::ZERO, prior_in_flight, self.sent);
        }
    }

    /// `bytes` of `packet` are lost. [`on_congestion`](Self::on_congestion) follows, after the last of them.
    pub fn on_lost(&mut self, packet: &SentPacket, bytes: Bytes) {
        let losses = &mut self.losses;
        if losses.unsignalled == Bytes::ZERO {
            losses.prior_in_flight = self.in_flight;
        }
        self.in_flight = self.in_flight.saturating_sub(bytes);
        self.lost += bytes;
        losses.unsignalled += bytes;
        losses.since_ack += bytes;
        losses.newest = losses.newest.max(packet.end);
        losses.sample = Some(packet.record.loss(bytes, self.lost));
    }

    /// The losses reported since the last signal, or a mark, signal congestion. Persistent congestion (RFC 9002 §7.6) is
    /// [`Cause::Timeout`].
    pub fn on_congestion(&mut self, now: Instant, cause: Cause) {
        let lost = std::mem::take(&mut self.losses.unsignalled);
        let (position, prior_in_flight) = match cause {
            Cause::EcnEcho | Cause::Delay => (self.acked_up_to, self.in_flight),
            Cause::FastRetransmit | Cause::Timeout { .. } => {
                (self.losses.newest, self.losses.prior_in_flight)
            }
        };
        self.signal(now, cause, lost, prior_in_flight, position);
    }

    /// `bytes` arrived with an ECN mark; before [`on_congestion`](Self::on_congestion).
    pub fn on_marked(&mut self, bytes: Bytes) {
        self.marked += bytes;
    }

    /// All packets of the last reduction arrived after all.
    pub fn on_spurious(&mut self, now: Instant) {
        self.with(now, |cc, cx| cc.on_spurious(cx));
    }

    /// `bytes` leave the flight without a verdict: their packet number space was discarded, or they were a lost MTU
    /// probe.
    pub fn on_discarded(&mut self, bytes: Bytes) {
        self.in_flight = self.in_flight.saturating_sub(bytes);
    }

    /// The largest packet has now `mss` bytes.
    pub fn on_mss(&mut self, now: Instant, mss: Bytes) {
        self.mss = mss;
        self.with(now, |cc, cx| cc.on_path(cx, &PathEvent::MssChanged(mss)));
    }

    /// The congestion window.
    pub fn cwnd(&self) -> Bytes {
        self.cc.cwnd()
    }

    /// The slow-start threshold.
    pub fn ssthresh(&self) -> Option<Bytes> {
        self.cc.ssthresh()
    }

    /// The rate to pace at.
    pub fn pacing_rate(&self) -> Option<Rate> {
        self.cc.pacing_rate()
    }

    /// When the next packet may leave. It is always in the past without [`with_pacer`](Self::with_pacer): what a host's own
    /// pacer holds back is not known, and a departure too far ahead would hide a queue from BBR.
    pub fn next_departure(&self) -> Instant {
        self.pacer.as_ref().map_or(Instant::ZERO, Pacer::next_departure)
    }

    /// Bytes in flight.
    pub fn bytes_in_flight(&self) -> Bytes {
        self.in_flight
    }

    /// The largest packet.
    pub fn mss(&self) -> Bytes {
        self.mss
    }

    /// Round-trip times so far.
    pub fn rtt(&self) -> RttSnapshot {
        self.rtt.snapshot()
    }

    /// The rate at which data was delivered lately.
    pub fn delivery_rate(&self) -> Option<Rate> {
        self.sampler.rate()
    }

    /// The controller.
    pub fn controller(&self) -> &dyn CongestionController {
        self.cc.as_ref()
    }

    fn signal(
        &mut self,
        now: Instant,
        cause: Cause,
        lost: Bytes,
        prior_in_flight: Bytes,
        position: u64,
    ) {
        // RFC 9002 §7.3.2: what was sent before the last reduction belongs to its epoch, also if that is over.
        let belongs = self.epoch.covers(position) && !matches!(cause, Cause::Timeout { .. });
        let first_in_epoch = !belongs && self.epoch.on_congestion(cause, self.sent);
        let event = CongestionEvent { cause, first_in_epoch, lost, prior_in_flight };
        self.with(now, |cc, cx| cc.on_congestion(cx, &event));
    }

    fn window_rate(&self) -> Option<Rate> {
        let srtt = self.rtt.snapshot().srtt?;
        Rate::from_transfer(self.cc.cwnd().mul_ratio(5, 4), srtt)
    }

    fn note_usage(&mut self, full: bool) {
        let usage = &mut self.usage;
        let new_round = self.acked_up_to >= usage.until;
        if new_round || full || (!usage.limited && self.in_flight > usage.most_in_flight) {
            *usage = Usage { limited: full, most_in_flight: self.in_flight, until: self.sent };
        }
    }

    /// In slow start the window may double what was used of it. Afterwards it must have been full.
    fn is_cwnd_limited(&self) -> bool {
        let slow_start = self.cc.ssthresh().is_none_or(|limit| self.cc.cwnd() < limit);
        self.usage.limited || slow_start && self.cc.cwnd() < self.usage.most_in_flight * 2
    }

    /// RFC 5681 §4.1 with the probe timeout in place of TCP's.
    fn restart_after_idle(&mut self, now: Instant) {
        let Some(last) = self.last_sent_at else { return };
        let (idle, rto): (Duration, _) = (now.saturating_since(last), self.rtt.probe_timeout());
        if idle > rto {
            self.with(now, |cc, cx| cc.on_path(cx, &PathEvent::IdleRestart { idle, rto }));
        }
    }

    /// Calls the controller with the connection as it stands.
    fn with(
        &mut self,
        now: Instant,
        call: impl FnOnce(&mut dyn CongestionController, &mut CcContext<'_>),
    ) {
        let cwnd_limited = self.is_cwnd_limited();
        let mut cx = CcContext {
            rtt: self.rtt.snapshot(),
            bytes_in_flight: self.in_flight,
            snd_una: self.acked_up_to,
            snd_nxt: self.sent,
            delivered: self.sampler.delivered(),
            delivered_marked: self.marked,
            next_departure: self.next_departure(),
            // RFC 9002 §7.7: every host paces windows too.
            paced: true,
            app_limited: self.sampler.is_app_limited(),
            cwnd_limited,
            state: self.epoch.state(),
            ..CcContext::new(now, self.mss, &mut self.rng)
        };
        call(self.cc.as_mut(), &mut cx);
    }
}

#[cfg(test)]
#[path = "hosted/tests.rs"]
mod tests;
