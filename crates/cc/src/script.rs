//! Scripted senders, for the tests of what corrects a controller's window.

use weir_units::{Bytes, Duration, Instant, Rng, stream};

use crate::{
    AckEvent, Cause, CcConfig, CcContext, CongestionController, CongestionEvent, RttSnapshot,
};

const MSS: Bytes = Bytes(1_000);

/// A sender of segments whose acknowledgements are scripted.
pub(crate) struct Script {
    pub(crate) cc: Box<dyn CongestionController>,
    pub(crate) now: Instant,
    pub(crate) sent: u64,
    pub(crate) acked: u64,
    /// Whether Linux lets the window grow.
    pub(crate) limited: bool,
    rtt: RttSnapshot,
    rng: Rng,
}

impl Script {
    pub(crate) fn new(controller: &str) -> Self {
        let config = CcConfig::parse(controller).expect("a controller");
        let cc = config.build(MSS, MSS * 10).expect("one of ours");
        Self {
            cc,
            now: Instant::ZERO,
            sent: 0,
            acked: 0,
            limited: true,
            rtt: RttSnapshot::default(),
            rng: stream(1, "script"),
        }
    }

    pub(crate) fn call<T>(
        &mut self,
        call: impl FnOnce(&mut dyn CongestionController, &mut CcContext<'_>) -> T,
    ) -> T {
        let mut cx = CcContext {
            rtt: self.rtt,
            cwnd_limited: self.limited,
            bytes_in_flight: MSS * (self.sent - self.acked),
            snd_una: (MSS * self.acked).get(),
            snd_nxt: (MSS * self.sent).get(),
            ..CcContext::new(self.now, MSS, &mut self.rng)
        };
        call(self.cc.as_mut(), &mut cx)
    }

    pub(crate) fn send(&mut self, segments: u64) {
        for _ in 0..segments {
            self.call(|cc, cx| cc.on_sent(cx, MSS));
            self.sent += 1;
        }
    }

    pub(crate) fn ack(&mut self, segments: u64, rtt: Duration) {
        let prior_in_flight = MSS * (self.sent - self.acked);
        self.acked += segments;
        let (acked, cum_acked) = (MSS * segments, MSS * segments);
        let (shown, rtt) = (rtt, Some(rtt));
        self.rtt = RttSnapshot {
            latest: rtt,
            srtt: rtt,
            min: self.rtt.min.map_or(rtt, |min| Some(min.min(shown))),
            ..self.rtt
        };
        let ack = AckEvent { acked, cum_acked, rtt, prior_in_flight, ..AckEvent::default() };
        self.call(|cc, cx| cc.on_ack(cx, &ack));
    }

    /// Sends a window, and acknowledges it segment by segment after `rtts` in turn.
    pub(crate) fn round(&mut self, segments: u64, rtts: &[Duration]) {
        self.send(segments);
        for n in 0..segments {
            self.ack(1, rtts[n as usize % rtts.len()]);
        }
        self.now += rtts[0];
    }

    pub(crate) fn cwnd(&self) -> u64 {
        self.cc.cwnd().get() / MSS.get()
    }

    pub(crate) fn lose(&mut self, segments: u64) {
        let event = CongestionEvent {
            cause: Cause::FastRetransmit,
            first_in_epoch: true,
            lost: MSS * segments,
            prior_in_flight: MSS * (self.sent - self.acked),
        };
        self.call(|cc, cx| cc.on_congestion(cx, &event));
        let ack = AckEvent { lost: event.lost, ..AckEvent::default() };
        self.call(|cc, cx| cc.on_ack(cx, &ack));
    }
}
