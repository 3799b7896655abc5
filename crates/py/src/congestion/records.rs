//! What a controller in Python receives: one object of each kind for a connection, filled anew for
//! every event. Times are in nanoseconds, data in bytes, rates in bits per second.

use pyo3::prelude::*;
use pyo3::types::PyType;
use weir_cc as cc;
use weir_cc::RecoveryState;
use weir_units::{Bytes, Duration, Rate};

/// The connection, as it stands now.
#[pyclass(module = "weir._native")]
#[derive(Debug, Default)]
pub(crate) struct CcContext {
    #[pyo3(get)]
    now_ns: u64,
    #[pyo3(get)]
    mss: u64,
    #[pyo3(get)]
    bytes_in_flight: u64,
    #[pyo3(get)]
    snd_una: u64,
    #[pyo3(get)]
    snd_nxt: u64,
    #[pyo3(get)]
    delivered: u64,
    #[pyo3(get)]
    delivered_marked: u64,
    #[pyo3(get)]
    next_departure_ns: u64,
    #[pyo3(get)]
    app_limited: bool,
    #[pyo3(get)]
    cwnd_limited: bool,
    #[pyo3(get)]
    peer_window: u64,
    #[pyo3(get)]
    latest_rtt_ns: Option<u64>,
    #[pyo3(get)]
    srtt_ns: Option<u64>,
    #[pyo3(get)]
    rttvar_ns: u64,
    #[pyo3(get)]
    min_rtt_ns: Option<u64>,
    #[pyo3(get)]
    state: &'static str,
    rng: RandomStream,
}

/// The connection's own random numbers: a seed, and the generator once it was requested.
#[derive(Debug, Default)]
struct RandomStream {
    seed: Option<u64>,
    generator: Option<Py<PyAny>>,
}

impl CcContext {
    /// Reads the state of the sender.
    pub(crate) fn fill(&mut self, cx: &mut cc::CcContext<'_>) {
        self.rng.seed.get_or_insert_with(|| cx.rng.next_u64());
        self.now_ns = cx.now.as_nanos();
        self.mss = cx.mss.get();
        self.bytes_in_flight = cx.bytes_in_flight.get();
        self.snd_una = cx.snd_una;
        self.snd_nxt = cx.snd_nxt;
        self.delivered = cx.delivered.get();
        self.delivered_marked = cx.delivered_marked.get();
        self.next_departure_ns = cx.next_departure.as_nanos();
        self.app_limited = cx.app_limited;
        self.cwnd_limited = cx.cwnd_limited;
        self.peer_window = cx.peer_window.get();
        self.latest_rtt_ns = cx.rtt.latest.map(Duration::as_nanos);
        self.srtt_ns = cx.rtt.srtt.map(Duration::as_nanos);
        self.rttvar_ns = cx.rtt.rttvar.as_nanos();
        self.min_rtt_ns = cx.rtt.min.map(Duration::as_nanos);
        self.state = match cx.state {
            RecoveryState::Open => "open",
            RecoveryState::Disorder => "disorder",
            RecoveryState::Cwr => "cwr",
            RecoveryState::Recovery => "recovery",
            RecoveryState::Loss => "loss",
        };
    }
}

#[pymethods]
impl CcContext {
    /// Now, in seconds.
    #[getter]
    fn now_s(&self) -> f64 {
        seconds(self.now_ns)
    }

    /// The smoothed round trip in seconds.
    #[getter]
    fn srtt_s(&self) -> Option<f64> {
        self.srtt_ns.map(seconds)
    }

    /// The smallest round trip in seconds.
    #[getter]
    fn min_rtt_s(&self) -> Option<f64> {
        self.min_rtt_ns.map(seconds)
    }

    /// A `random.Random` of this connection, whose numbers depend on the run's seed and the flow's name.
    #[getter]
    fn rng(&mut self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        if let Some(generator) = &self.rng.generator {
            return Ok(generator.clone_ref(py));
        }
        let seed = self.rng.seed.unwrap_or_default();
        let class = py.import("random")?.getattr("Random")?.cast_into::<PyType>()?;
        let generator = class.call1((seed,))?.unbind();
        self.rng.generator = Some(generator.clone_ref(py));
        Ok(generator)
    }
}

/// One acknowledgement, summed up.
#[pyclass(get_all, module = "weir._native")]
#[derive(Debug, Default)]
pub(crate) struct AckEvent {
    acked: u64,
    cum_acked: u64,
    lost: u64,
    rtt_ns: Option<u64>,
    delivery_rate_bps: Option<u64>,
    rate_delivered: Option<u64>,
    rate_interval_ns: Option<u64>,
    rate_prior_delivered: Option<u64>,
    rate_app_limited: Option<bool>,
    duplicate: bool,
    any_order: bool,
    predicted: bool,
    prior_in_flight: u64,
    round: u64,
}

impl AckEvent {
    /// Reads the next one.
    pub(crate) fn fill(&mut self, ack: &cc::AckEvent) {
        let rate = ack.rate;
        *self = Self {
            acked: ack.acked.get(),
            cum_acked: ack.cum_acked.get(),
            lost: ack.lost.get(),
            rtt_ns: ack.rtt.map(Duration::as_nanos),
            delivery_rate_bps: rate.and_then(|rate| rate.rate()).map(Rate::as_bits_per_sec),
            rate_delivered: rate.map(|rate| rate.delivered.get()),
            rate_interval_ns: rate.map(|rate| rate.interval.as_nanos()),
            rate_prior_delivered: rate.map(|rate| rate.prior_delivered.get()),
            rate_app_limited: rate.map(|rate| rate.app_limited),
            duplicate: ack.duplicate,
            any_order: ack.any_order,
            predicted: ack.predicted,
            prior_in_flight: ack.prior_in_flight.get(),
            round: ack.round,
        };
    }
}

#[pymethods]
impl AckEvent {
    /// The round trip in seconds.
    #[getter]
    fn rtt_s(&self) -> Option<f64> {
        self.rtt_ns.map(seconds)
    }
}

/// Congestion was signalled.
#[pyclass(get_all, module = "weir._native")]
#[derive(Debug, Default)]
pub(crate) struct CongestionEvent {
    cause: &'static str,
    backoff: u32,
    first_in_epoch: bool,
    lost: u64,
    prior_in_flight: u64,
}

impl CongestionEvent {
    /// Reads the next one.
    pub(crate) fn fill(&mut self, event: &cc::CongestionEvent) {
        let (cause, backoff) = match event.cause {
            cc::Cause::FastRetransmit => ("fast_retransmit", 0),
            cc::Cause::Timeout { backoff } => ("timeout", backoff),
            cc::Cause::EcnEcho => ("ecn_echo", 0),
            // Only of controllers that ask for it, which those in Python cannot.
            cc::Cause::Delay => ("delay", 0),
        };
        *self = Self {
            cause,
            backoff,
            first_in_epoch: event.first_in_epoch,
            lost: event.lost.get(),
            prior_in_flight: event.prior_in_flight.get(),
        };
    }
}

/// Something happened to the path or to its use.
#[pyclass(get_all, module = "weir._native")]
#[derive(Debug, Default)]
pub(crate) struct PathEvent {
    kind: &'static str,
    idle_ns: Option<u64>,
    rto_ns: Option<u64>,
    mss: Option<u64>,
}

impl PathEvent {
    /// Reads the next one; whether it is one that Python receives.
    pub(crate) fn fill(&mut self, event: &cc::PathEvent) -> bool {
        *self = match *event {
            cc::PathEvent::IdleRestart { idle, rto } => Self {
                kind: "idle_restart",
                idle_ns: Some(idle.as_nanos()),
                rto_ns: Some(rto.as_nanos()),
                mss: None,
            },
            cc::PathEvent::MssChanged(Bytes(mss)) => {
                Self { kind: "mss_changed", mss: Some(mss), ..Self::default() }
            }
            _ => return false,
        };
        true
    }
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}
