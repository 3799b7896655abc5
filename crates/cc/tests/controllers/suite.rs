//! What every controller must keep, whatever happens to it: sequences of operations against a small
//! model of the connection.

use proptest::collection::vec;
use proptest::prelude::*;

use weir_cc::{
    AckEvent, AckTimestamps, Cause, CcConfig, CcContext, CongestionController, CongestionEvent,
    LossSample, PathEvent, RateSample, RecoveryState, RttSnapshot, Variable,
};
use weir_units::feedback::{Drai, Headroom, Hop, Telemetry};
use weir_units::{Bytes, Duration, Echo, Instant, Rate, Rng, stream};

const MSS: Bytes = Bytes(1_448);

#[derive(Clone, Debug)]
enum Operation {
    Advance {
        micros: u64,
    },
    Send {
        packets: u64,
    },
    Ack {
        packets: u64,
        rtt_micros: Option<u64>,
        cumulative: bool,
        feedback: Option<Echo>,
        timestamps: Option<AckTimestamps>,
    },
    Lose {
        packets: u64,
    },
    Timeout,
    EcnEcho,
    Spurious,
    EpochEnd,
    Idle {
        micros: u64,
    },
}

fn operation() -> impl Strategy<Value = Operation> {
    let rtt = proptest::option::weighted(0.9, 0..2_000_000_u64);
    prop_oneof![
        4 => (0..200_000_u64).prop_map(|micros| Operation::Advance { micros }),
        6 => (1..200_u64).prop_map(|packets| Operation::Send { packets }),
        8 => (0..40_u64, rtt, any::<bool>(), proptest::option::of(echo()), timestamps()).prop_map(
            |(packets, rtt_micros, cumulative, feedback, timestamps)| {
                Operation::Ack { packets, rtt_micros, cumulative, feedback, timestamps }
            },
        ),
        2 => (1..10_u64).prop_map(|packets| Operation::Lose { packets }),
        1 => Just(Operation::Timeout),
        1 => Just(Operation::EcnEcho),
        1 => Just(Operation::Spurious),
        1 => Just(Operation::EpochEnd),
        1 => (0..30_000_000_u64).prop_map(|micros| Operation::Idle { micros }),
    ]
}

/// A peer's clock may say anything, mostly that little time has passed.
fn timestamps() -> impl Strategy<Value = Option<AckTimestamps>> {
    let clock = || prop_oneof![3 => 0..10_000_u32, 1 => any::<u32>()];
    proptest::option::of((clock(), clock()).prop_map(|(value, echo)| AckTimestamps { value, echo }))
}

/// Any feedback of routers, whatever the controller requested.
fn echo() -> impl Strategy<Value = Echo> {
    prop_oneof![
        (0..9_u8, 0..3_u8).prop_map(|(level, hops)| Echo::Drai(Drai { level, hops })),
        prop_oneof![Just(Headroom::Spare), Just(Headroom::Scarce)].prop_map(Echo::AntiEcn),
        any::<i32>().prop_map(Echo::Xcp),
        any::<u32>().prop_map(Echo::Rcp),
        Just(Echo::Int),
    ]
}

/// What a controller says after an operation.
type Output = (Bytes, Option<Bytes>, Option<Rate>, &'static str);

/// A connection that keeps only the counts that a transport would.
struct Model {
    cc: Box<dyn CongestionController>,
    now: Instant,
    in_flight: Bytes,
    sent: u64,
    delivered: Bytes,
    delivered_before: Bytes,
    rtt: RttSnapshot,
    feedback: Option<Echo>,
    state: RecoveryState,
    rng: Rng,
}

impl Model {
    fn new(config: &CcConfig) -> Self {
        Self {
            cc: config.build(MSS, MSS * 10).expect("it is one of the catalogue"),
            now: Instant::from_nanos(1),
            in_flight: Bytes::ZERO,
            sent: 0,
            delivered: Bytes::ZERO,
            delivered_before: Bytes::ZERO,
            rtt: RttSnapshot::default(),
            feedback: None,
            state: RecoveryState::Open,
            rng: stream(7, "suite"),
        }
    }

    fn apply(&mut self, operation: &Operation) -> Output {
        match *operation {
            Operation::Advance { micros } => self.now += Duration::from_micros(micros),
            Operation::Send { packets } => self.send(packets),
            Operation::Ack { packets, rtt_micros, cumulative, feedback, timestamps } => {
                self.feedback = feedback;
                if feedback == Some(Echo::Int) {
                    let records = self.records(packets, rtt_micros);
                    self.cc.on_telemetry(&records);
                }
                self.ack(packets, rtt_micros, cumulative, timestamps);
                self.feedback = None;
            }
            Operation::Lose { packets } => self.lose(packets),
            Operation::Timeout => self.time_out(),
            Operation::EcnEcho => self.congestion(Cause::EcnEcho, Bytes::ZERO, RecoveryState::Cwr),
            Operation::Spurious => {
                self.state = RecoveryState::Open;
                self.with_cx(|cc, cx| cc.on_spurious(cx));
            }
            Operation::EpochEnd => {
                self.state = RecoveryState::Open;
                self.with_cx(|cc, cx| cc.on_ack(cx, &AckEvent::default()));
                self.with_cx(|cc, cx| cc.on_epoch_end(cx));
            }
            Operation::Idle { micros } => self.idle(Duration::from_micros(micros)),
        }
        (self.cc.cwnd(), self.cc.ssthresh(), self.cc.pacing_rate(), self.cc.phase())
    }

    fn send(&mut self, packets: u64) {
        for _ in 0..packets {
            if self.in_flight + MSS > self.cc.cwnd() {
                break;
            }
            self.with_cx(|cc, cx| cc.on_sent(cx, MSS));
            self.in_flight += MSS;
            self.sent += MSS.get();
        }
    }

    fn ack(
        &mut self,
        packets: u64,
        rtt_micros: Option<u64>,
        cumulative: bool,
        timestamps: Option<AckTimestamps>,
    ) {
        let prior_in_flight = self.in_flight;
        let acked = (MSS * packets).min(self.in_flight);
        let rtt = rtt_micros.map(Duration::from_micros);
        if let Some(rtt) = rtt {
            self.rtt.latest = Some(rtt);
            self.rtt.srtt = Some(rtt);
            self.rtt.min = Some(self.rtt.min.map_or(rtt, |min| min.min(rtt)));
        }
        self.in_flight -= acked;
        self.delivered += acked;
        let rate = rtt.filter(|rtt| !rtt.is_zero()).map(|interval| RateSample {
            delivered: self.delivered - self.delivered_before,
            interval,
            prior_delivered: self.delivered_before,
            total_delivered: self.delivered,
            in_flight_at_send: prior_in_flight,
            lost: Bytes::ZERO,
            app_limited: false,
        });
        self.delivered_before = self.delivered;
        let cum_acked = if cumulative { acked } else { Bytes::ZERO };
        let ack = AckEvent {
            acked,
            cum_acked,
            rtt,
            rate,
            prior_in_flight,
            timestamps,
            ..AckEvent::default()
        };
        self.with_cx(|cc, cx| cc.on_delivery(cx, &ack));
        self.with_cx(|cc, cx| cc.on_ack(cx, &ack));
        if self.cc.poll_episode() && self.state == RecoveryState::Open {
            self.congestion(Cause::Delay, Bytes::ZERO, RecoveryState::Cwr);
        }
    }

    /// Records of up to eight hops, of any queue and rate, that may also go back in time.
    fn records(&self, packets: u64, rtt_micros: Option<u64>) -> Telemetry {
        let mut records = Telemetry::default();
        let any = rtt_micros.unwrap_or(7) as u32;
        for hop in 0..packets as u32 % 10 {
            let nanos = (self.now.as_nanos() as u32).wrapping_mul(hop + 1);
            let (bytes, queue) = (any.wrapping_mul(hop * 77), any.wrapping_mul(hop + 1));
            records.push(Hop { nanos, bytes, queue, kbit: any.wrapping_mul(hop) });
        }
        records
    }

    fn lose(&mut self, packets: u64) {
        let lost = (MSS * packets).min(self.in_flight);
        self.in_flight -= lost;
        self.congestion(Cause::FastRetransmit, lost, RecoveryState::Recovery);
        let prior_in_flight = self.in_flight + lost;
        let loss = (lost > Bytes::ZERO).then_some(LossSample {
            size: MSS,
            in_flight_at_send: prior_in_flight,
            lost,
            app_limited: false,
        });
        let ack = AckEvent { lost, loss, prior_in_flight, ..AckEvent::default() };
        self.with_cx(|cc, cx| cc.on_ack(cx, &ack));
    }

    fn time_out(&mut self) {
        let lost = std::mem::take(&mut self.in_flight);
        self.congestion(Cause::Timeout { backoff: 0 }, lost, RecoveryState::Loss);
    }

    fn congestion(&mut self, cause: Cause, lost: Bytes, state: RecoveryState) {
        let first_in_epoch = self.state == RecoveryState::Open;
        if first_in_epoch || state == RecoveryState::Loss {
            self.state = state;
        }
        let prior_in_flight = self.in_flight + lost;
        let event = CongestionEvent { cause, first_in_epoch, lost, prior_in_flight };
        self.with_cx(|cc, cx| cc.on_congestion(cx, &event));
    }

    fn idle(&mut self, idle: Duration) {
        self.in_flight = Bytes::ZERO;
        self.now += idle;
        let rto = Duration::from_millis(300);
        self.with_cx(|cc, cx| cc.on_path(cx, &PathEvent::IdleRestart { idle, rto }));
    }

    fn with_cx(&mut self, call: impl FnOnce(&mut dyn CongestionController, &mut CcContext<'_>)) {
        let mut cx = CcContext {
            now: self.now,
            mss: MSS,
            rtt: self.rtt,
            bytes_in_flight: self.in_flight,
            snd_una: self.sent - self.in_flight.get(),
            snd_nxt: self.sent,
            delivered: self.delivered,
            delivered_marked: self.delivered / 3,
            next_departure: self.now,
            paced: false,
            app_limited: false,
            cwnd_limited: true,
            peer_window: Bytes(1 << 40),
            feedback: self.feedback,
            state: self.state,
            rng: &mut self.rng,
        };
        call(self.cc.as_mut(), &mut cx);
    }
}

fn all_configs() -> Vec<CcConfig> {
    let examples = CcConfig::CATALOGUE.iter().flat_map(|entry| entry.examples);
    examples.map(|example| CcConfig::parse(example).expect("a valid example")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn windows_and_rates_stay_sane_and_repeat(operations in vec(operation(), 1..300)) {
        let mut tested = std::collections::BTreeSet::new();
        for config in all_configs() {
            let (mut model, mut twin) = (Model::new(&config), Model::new(&config));
            for operation in &operations {
                let (cwnd, ssthresh, rate, phase) = model.apply(operation);
                prop_assert!(cwnd >= MSS, "{config}: cwnd {cwnd:?} after {operation:?}");
                prop_assert!(cwnd < Bytes(u64::MAX / 2 + 1), "{config}: cwnd {cwnd:?}");
                let least = least_threshold(&config);
                prop_assert!(ssthresh.is_none_or(|s| s >= least), "{config}: {ssthresh:?}");
                prop_assert!(rate.is_none_or(|rate| rate > Rate::ZERO && rate < Rate::from_mbit(1 << 40)));
                prop_assert!(!phase.is_empty());
                let wrong = model.cc.variables().into_iter().find(|one| !is_a_variable(*one));
                prop_assert_eq!(wrong, None, "{} after {:?}", config, operation);
                prop_assert_eq!((cwnd, ssthresh, rate, phase), twin.apply(operation));
            }
            tested.insert(model.cc.name());
        }
        prop_assert!(tested.len() >= CcConfig::CATALOGUE.len() && tested.len() >= 12);
    }

    /// A loss never enlarges a window, and a second one in the same epoch leaves it alone.
    #[test]
    fn one_epoch_one_reduction(operations in vec(operation(), 1..100)) {
        for config in all_configs() {
            let mut model = Model::new(&config);
            operations.iter().for_each(|operation| { model.apply(operation); });
            model.apply(&Operation::EpochEnd);
            let before = model.cc.cwnd();
            model.congestion(Cause::FastRetransmit, Bytes::ZERO, RecoveryState::Recovery);
            let after = model.cc.cwnd();
            prop_assert!(after <= before.max(MSS * 2), "{config}: {before:?} to {after:?}");
            model.congestion(Cause::FastRetransmit, Bytes::ZERO, RecoveryState::Recovery);
            prop_assert_eq!(model.cc.cwnd(), after, "{}", config);
        }
    }

    /// An unfounded reduction is taken back in full.
    #[test]
    fn undo_restores_the_window(operations in vec(operation(), 1..100), timeout in any::<bool>()) {
        for config in all_configs().into_iter().filter(|config| !is_bbr(config)) {
            let mut model = Model::new(&config);
            operations.iter().for_each(|operation| { model.apply(operation); });
            model.apply(&Operation::EpochEnd);
            let before = model.cc.cwnd();
            let operation = if timeout { Operation::Timeout } else { Operation::Lose { packets: 1 } };
            model.apply(&operation);
            model.apply(&Operation::Spurious);
            prop_assert!(model.cc.cwnd() >= before, "{config}: {before:?} to {:?}", model.cc.cwnd());
        }
    }
}

/// A finite number, and a name that can be the end of a column's name.
fn is_a_variable((name, value): Variable) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    value.is_finite() && !name.is_empty() && name.chars().all(fits)
}

fn is_bbr(config: &CcConfig) -> bool {
    matches!(config, CcConfig::Bbr { .. })
}

/// Two segments. What BBR, LEDBAT and Copa say only tells slow start from what comes after it, and Vegas takes the
/// window for it before it raises that to two (`tcp_vegas_cong_avoid`).
fn least_threshold(config: &CcConfig) -> Bytes {
    let bounded = matches!(config, CcConfig::Bbr2 { .. } | CcConfig::Bbr3 { .. });
    let others = matches!(config, CcConfig::Ledbat { .. } | CcConfig::Copa { .. });
    if bounded || others || is_bbr(config) {
        Bytes::ZERO
    } else if matches!(config, CcConfig::Vegas { .. }) {
        MSS
    } else {
        MSS * 2
    }
}
