//! A small deterministic path for controllers: one sender, one drop-tail bottleneck, one ACK per
//! packet, ideal loss recovery (a loss is known as soon as something sent later is acknowledged, and is not
//! repaired). What remains is the controller.

use std::collections::VecDeque;

use weir_cc::{
    AckEvent, AckTimestamps, Cause, CcConfig, CcContext, CongestionController, CongestionEvent,
    LossSample, PathEvent, RateSample, RecoveryState, RttSnapshot,
};
use weir_units::{Bytes, Duration, Instant, Rng, stream};

pub(crate) const MSS: Bytes = Bytes(1_448);
pub(crate) const INITIAL_WINDOW: u64 = 10;

/// What the path is like.
#[derive(Clone, Debug)]
pub(crate) struct Conditions {
    /// Propagation there and back.
    pub(crate) rtt: Duration,
    /// The bottleneck's time per packet; zero for no bottleneck.
    pub(crate) service: Duration,
    /// Packets that may wait at the bottleneck, the one in service not counted.
    pub(crate) buffer: u64,
    /// Packets that may wait before the bottleneck marks what arrives; each mark is echoed once.
    pub(crate) mark_above: u64,
    /// Packets that the path holds at most, whatever the bottleneck.
    pub(crate) capacity: u64,
    /// Numbers of the packets to drop, counted from zero.
    pub(crate) drops: Vec<u64>,
    /// Packets that the application makes per round trip; `None` for always enough.
    pub(crate) demand: Option<u64>,
}

impl Conditions {
    /// `rtt_ms` and nothing in the way.
    pub(crate) fn open(rtt_ms: u64) -> Self {
        Self {
            rtt: Duration::from_millis(rtt_ms),
            service: Duration::ZERO,
            buffer: u64::MAX,
            mark_above: u64::MAX,
            capacity: u64::MAX,
            drops: Vec::new(),
            demand: None,
        }
    }

    /// A bottleneck of `packets` per round trip of `rtt_ms` with a buffer for `buffer` more.
    pub(crate) fn bottleneck(rtt_ms: u64, packets: u64, buffer: u64) -> Self {
        let rtt = Duration::from_millis(rtt_ms);
        Self { service: rtt / packets, buffer, ..Self::open(rtt_ms) }
    }
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    number: u64,
    sent: Instant,
    /// When its acknowledgement arrives; `None` for a dropped one.
    acked: Option<Instant>,
    marked: bool,
    first_sent: Instant,
    delivered: Bytes,
    delivered_at: Instant,
    app_limited: bool,
    /// Packets in flight with it, and packets lost before it.
    in_flight: u64,
    lost_before: u64,
}

/// A connection over the path, in motion.
pub(crate) struct Path {
    pub(crate) conditions: Conditions,
    pub(crate) cc: Box<dyn CongestionController>,
    pub(crate) now: Instant,
    pub(crate) delivered: Bytes,
    pub(crate) lost: u64,
    pub(crate) delivered_marked: Bytes,
    rng: Rng,
    flight: VecDeque<Packet>,
    next_number: u64,
    link_free: Instant,
    last_arrival: Instant,
    next_departure: Instant,
    state: RecoveryState,
    recovery_point: u64,
    rtt: RttSnapshot,
    delivered_at: Instant,
    first_sent: Instant,
    limited_until: Bytes,
    largest_flight: u64,
    flight_round: u64,
    backlog: u64,
    next_demand: Instant,
    last_sent: Instant,
}

impl Path {
    pub(crate) fn new(controller: &str, conditions: Conditions) -> Self {
        let config = CcConfig::parse(controller).expect("a controller");
        let rtt = conditions.rtt;
        let start = Instant::ZERO.saturating_add(rtt);
        Self {
            cc: config.build(MSS, MSS * INITIAL_WINDOW).expect("it is one of ours"),
            now: start,
            delivered: Bytes::ZERO,
            lost: 0,
            delivered_marked: Bytes::ZERO,
            rng: stream(1, "path"),
            flight: VecDeque::new(),
            next_number: 0,
            link_free: start,
            last_arrival: start,
            next_departure: start,
            state: RecoveryState::Open,
            recovery_point: 0,
            // The handshake's.
            rtt: RttSnapshot {
                latest: Some(rtt),
                srtt: Some(rtt),
                rttvar: rtt / 2,
                min: Some(rtt),
            },
            delivered_at: start,
            first_sent: start,
            limited_until: Bytes::ZERO,
            largest_flight: 0,
            flight_round: 0,
            backlog: if conditions.demand.is_some() { 0 } else { u64::MAX },
            next_demand: start,
            last_sent: start,
            conditions,
        }
    }

    /// Runs for `time`.
    pub(crate) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.transmit();
            let next = self.next_event();
            if next > end {
                break;
            }
            self.now = next;
            if self.conditions.demand.is_some() && next == self.next_demand {
                self.produce();
            } else if self.flight.iter().any(|p| p.acked == Some(next)) {
                self.take_ack();
            } else if next == self.timeout_at() {
                self.time_out();
            }
        }
        self.now = end;
    }

    /// Sends nothing for `time`, then resumes as after an idle period.
    pub(crate) fn idle(&mut self, time: Duration) {
        self.backlog = 0;
        self.run(time);
        self.backlog = u64::MAX;
        let idle = self.now.saturating_since(self.last_sent);
        let rto = self.rto();
        self.with_cx(|cc, cx| cc.on_path(cx, &PathEvent::IdleRestart { idle, rto }));
    }

    pub(crate) fn cwnd_packets(&self) -> u64 {
        self.cc.cwnd().get() / MSS.get()
    }

    pub(crate) fn in_flight(&self) -> u64 {
        self.flight.len() as u64
    }

    /// In flight and not dropped.
    fn on_the_way(&self) -> u64 {
        self.flight.iter().filter(|packet| packet.acked.is_some()).count() as u64
    }

    fn next_event(&self) -> Instant {
        let ack = self.flight.iter().filter_map(|p| p.acked).next().unwrap_or(Instant::MAX);
        let demand = if self.conditions.demand.is_some() { self.next_demand } else { Instant::MAX };
        let departure =
            if self.may_send() { self.next_departure.max(self.now) } else { Instant::MAX };
        ack.min(demand).min(departure).min(self.timeout_at())
    }

    fn may_send(&self) -> bool {
        self.backlog > 0 && MSS * (self.in_flight() + 1) <= self.cc.cwnd().max(MSS)
    }

    fn rto(&self) -> Duration {
        self.rtt.srtt.unwrap_or_default() + self.rtt.rttvar * 4 + Duration::from_millis(200)
    }

    fn timeout_at(&self) -> Instant {
        let waiting = !self.flight.is_empty() && self.flight.iter().all(|p| p.acked.is_none());
        if waiting { self.last_sent + self.rto() } else { Instant::MAX }
    }

    fn produce(&mut self) {
        self.backlog += self.conditions.demand.unwrap_or(0);
        self.next_demand += self.conditions.rtt;
    }

    fn transmit(&mut self) {
        while self.may_send() && self.next_departure <= self.now {
            self.send();
        }
        if self.backlog == 0 && MSS * (self.in_flight() + 1) <= self.cc.cwnd() {
            self.limited_until = self.delivered + MSS * self.in_flight().max(1);
        }
    }

    fn send(&mut self) {
        if self.flight.is_empty() {
            self.first_sent = self.now;
            self.delivered_at = self.now;
        }
        self.with_cx(|cc, cx| cc.on_sent(cx, MSS));
        let marked = self.waiting() > self.conditions.mark_above;
        let packet = Packet {
            number: self.next_number,
            sent: self.now,
            acked: self.carry(),
            marked,
            first_sent: self.first_sent,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            app_limited: self.delivered < self.limited_until,
            in_flight: self.in_flight() + 1,
            lost_before: self.lost,
        };
        self.flight.push_back(packet);
        self.next_number += 1;
        self.last_sent = self.now;
        self.backlog = self.backlog.saturating_sub(u64::from(self.conditions.demand.is_some()));
        self.largest_flight = self.largest_flight.max(self.in_flight());
        if let Some(rate) = self.cc.pacing_rate() {
            self.next_departure =
                self.next_departure.max(self.now) + rate.transmit_time(MSS, &mut 0);
        }
    }

    /// Packets at the bottleneck.
    fn waiting(&self) -> u64 {
        let service = self.conditions.service.as_nanos().max(1);
        self.link_free.saturating_since(self.now).as_nanos().div_ceil(service)
    }

    /// Takes the packet through the bottleneck; when its acknowledgement arrives.
    fn carry(&mut self) -> Option<Instant> {
        let Conditions { rtt, service, buffer, capacity, .. } = self.conditions;
        let start = self.link_free.max(self.now);
        // Counting takes long where windows are large.
        let holds_no_more = capacity < u64::MAX && self.on_the_way() >= capacity;
        let full = self.waiting() > buffer || holds_no_more;
        if full || self.conditions.drops.contains(&self.next_number) {
            return None;
        }
        self.link_free = start + service;
        // The path keeps order, also when it gets shorter.
        self.last_arrival = self.last_arrival.max(self.link_free + rtt);
        Some(self.last_arrival)
    }

    fn take_ack(&mut self) {
        let prior_in_flight = MSS * self.in_flight();
        let mut lost = 0;
        let mut last_loss = None;
        let packet = loop {
            let packet = self.flight.pop_front().expect("an acknowledged packet");
            if packet.acked.is_some() {
                break packet;
            }
            lost += 1;
            last_loss = Some(packet);
        };
        self.lost += lost;
        let loss = last_loss.map(|packet| LossSample {
            size: MSS,
            in_flight_at_send: MSS * packet.in_flight,
            lost: MSS * (self.lost - packet.lost_before),
            app_limited: packet.app_limited,
        });
        self.delivered += MSS;
        self.delivered_marked += MSS * u64::from(packet.marked);
        self.delivered_at = self.now;
        let rtt = self.now - packet.sent;
        self.sample_rtt(rtt);
        let rate = self.rate_sample(&packet);
        let ack = AckEvent {
            acked: MSS,
            cum_acked: MSS * (1 + lost),
            lost: MSS * lost,
            loss,
            rtt: Some(rtt),
            rate: Some(rate),
            prior_in_flight,
            timestamps: Some(self.timestamps(&packet)),
            ..AckEvent::default()
        };
        self.with_cx(|cc, cx| cc.on_delivery(cx, &ack));
        if lost > 0 {
            self.lose(packet.number, lost, prior_in_flight);
        }
        let closing = self.state != RecoveryState::Open && packet.number >= self.recovery_point;
        if closing {
            self.state = RecoveryState::Open;
        }
        if packet.marked && self.state == RecoveryState::Open {
            self.begin_cwr(Cause::EcnEcho, prior_in_flight);
        }
        self.with_cx(|cc, cx| cc.on_ack(cx, &ack));
        if closing {
            self.with_cx(|cc, cx| cc.on_epoch_end(cx));
        }
        if self.cc.poll_episode() && self.state == RecoveryState::Open {
            self.begin_cwr(Cause::Delay, prior_in_flight);
        }
        if packet.number >= self.flight_round {
            self.flight_round = self.next_number;
            self.largest_flight = self.in_flight();
        }
    }

    fn sample_rtt(&mut self, rtt: Duration) {
        let srtt = self.rtt.srtt.unwrap_or(rtt);
        self.rtt = RttSnapshot {
            latest: Some(rtt),
            srtt: Some((srtt * 7 + rtt) / 8),
            rttvar: self.rtt.rttvar * 3 / 4,
            min: self.rtt.min.map(|min| min.min(rtt)),
        };
    }

    fn rate_sample(&mut self, packet: &Packet) -> RateSample {
        self.first_sent = packet.sent;
        let send = packet.sent - packet.first_sent;
        RateSample {
            delivered: self.delivered - packet.delivered,
            interval: send.max(self.now - packet.delivered_at),
            prior_delivered: packet.delivered,
            total_delivered: self.delivered,
            in_flight_at_send: MSS * packet.in_flight,
            lost: MSS * (self.lost - packet.lost_before),
            app_limited: packet.app_limited,
        }
    }

    fn lose(&mut self, acked: u64, lost: u64, prior_in_flight: Bytes) {
        let first_in_epoch = self.state == RecoveryState::Open && acked >= self.recovery_point;
        if first_in_epoch {
            self.state = RecoveryState::Recovery;
            self.recovery_point = self.next_number;
        }
        let event = CongestionEvent {
            cause: Cause::FastRetransmit,
            first_in_epoch,
            lost: MSS * lost,
            prior_in_flight,
        };
        self.with_cx(|cc, cx| cc.on_congestion(cx, &event));
    }

    /// The acknowledgement's timestamps; both clocks begin together.
    fn timestamps(&self, packet: &Packet) -> AckTimestamps {
        // As the ticks of controllers.
        let ms = |at: Instant| ((at.as_micros() + 250) / 1_000) as u32;
        let back = self.conditions.rtt / 2;
        AckTimestamps { value: ms(self.now - back), echo: ms(packet.sent) }
    }

    /// A mark's echo, or what the controller sees, begins an episode.
    fn begin_cwr(&mut self, cause: Cause, prior_in_flight: Bytes) {
        let event =
            CongestionEvent { cause, first_in_epoch: true, lost: Bytes::ZERO, prior_in_flight };
        self.with_cx(|cc, cx| cc.on_congestion(cx, &event));
        self.state = RecoveryState::Cwr;
        self.recovery_point = self.next_number;
    }

    fn time_out(&mut self) {
        let prior_in_flight = MSS * self.in_flight();
        self.lost += self.in_flight();
        self.flight.clear();
        let first_in_epoch = self.state == RecoveryState::Open;
        self.state = RecoveryState::Loss;
        self.recovery_point = self.next_number;
        let event = CongestionEvent {
            cause: Cause::Timeout { backoff: 0 },
            first_in_epoch,
            lost: prior_in_flight,
            prior_in_flight,
        };
        self.with_cx(|cc, cx| cc.on_congestion(cx, &event));
    }

    fn cwnd_limited(&self) -> bool {
        let cwnd = self.cwnd_packets();
        let slow_start = self.cc.ssthresh().is_none_or(|ssthresh| self.cc.cwnd() < ssthresh);
        let most = self.largest_flight;
        most >= cwnd || slow_start && cwnd < 2 * most
    }

    fn with_cx(&mut self, call: impl FnOnce(&mut dyn CongestionController, &mut CcContext<'_>)) {
        let snd_una = self.flight.front().map_or(self.next_number, |packet| packet.number);
        let mut cx = CcContext {
            now: self.now,
            mss: MSS,
            rtt: self.rtt,
            bytes_in_flight: MSS * self.in_flight(),
            snd_una: snd_una * MSS.get(),
            snd_nxt: self.next_number * MSS.get(),
            delivered: self.delivered,
            delivered_marked: self.delivered_marked,
            next_departure: self.next_departure,
            paced: false,
            app_limited: self.delivered < self.limited_until,
            cwnd_limited: self.cwnd_limited(),
            peer_window: Bytes(1 << 40),
            feedback: None,
            state: self.state,
            rng: &mut self.rng,
        };
        call(self.cc.as_mut(), &mut cx);
    }
}

/// Checks that a measured value is within a relative `tolerance` of what theory says.
pub(crate) fn assert_within(value: f64, expected: f64, tolerance: f64) {
    let off = (value / expected - 1.0).abs();
    assert!(off <= tolerance, "{value} is {:.1} % off {expected}", off * 100.0);
}
