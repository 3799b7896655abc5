//! Congestion controllers.
//!
//! A controller turns what the transport observed into two outputs, a window and optionally a
//! pacing rate. Everything else belongs to the transport: loss detection, the recovery epoch (who is
//! notified of a loss once per window), proportional rate reduction, bytes in flight, RTT and delivery
//! rate sampling, application-limited marking and the pacer.
//!
//! Each algorithm has one file, which opens with its source and equations. [`CcConfig`] names them
//! all, with their parameters.
//!
//! A host builds a controller, calls it for every acknowledgement, and reads the window back:
//!
//! ```
//! use weir_cc::{AckEvent, CcConfig, CcContext};
//! use weir_units::{Bytes, Duration, Instant, stream};
//!
//! let mss = Bytes(1_448);
//! let mut cc = CcConfig::Reno.build(mss, mss * 10)?;
//! let mut rng = stream(1, "controller");
//!
//! let now = Instant::ZERO + Duration::from_millis(40);
//! let mut cx = CcContext { cwnd_limited: true, snd_una: 2_896, ..CcContext::new(now, mss, &mut rng) };
//! cc.on_ack(&mut cx, &AckEvent { acked: mss * 2, cum_acked: mss * 2, ..AckEvent::default() });
//! assert_eq!(cc.cwnd(), mss * 12, "slow start grows by what is acknowledged");
//! # Ok::<(), weir_cc::CcBuildError>(())
//! ```
//!
//! [`host`] has what a transport needs around a controller: one type that does all bookkeeping, and its parts. Its
//! documentation drives CUBIC through a loss.

mod anti_ecn;
mod bbr;
mod bic;
mod bounded_bbr;
mod careful_resume;
mod cdg;
mod config;
mod copa;
mod cubic;
mod dcqcn;
mod dctcp;
mod decimal;
mod event;
mod filter;
mod fixed;
mod highspeed;
pub mod host;
mod hpcc;
mod htcp;
mod hybla;
mod hystart;
mod illinois;
mod indices;
mod kernel_name;
mod ledbat;
mod lp;
mod modified;
mod muzha;
mod muzha2;
mod nv;
mod paced;
mod parametric;
mod prague;
mod probe_rtt;
mod rate_limited;
mod rcp;
mod reno;
mod reno_002;
mod round;
mod scalable;
#[cfg(test)]
mod script;
mod search;
mod swift;
mod ticks;
mod timely;
mod vegas;
mod veno;
mod westwood;
mod window;
mod xcp;
mod yeah;

/// The example of the README, which runs with those of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

pub use anti_ecn::AntiEcn;
pub use bbr::{Bbr, Overflow};
pub use bic::{Bic, BicShape};
pub use bounded_bbr::{Bbr2Ecn, Bbr3Text, BoundedBbr};
pub use careful_resume::SavedPath;
pub use cdg::Cdg;
pub use config::{BuildScripted, CatalogueEntry, CcBuildError, CcConfig, CcConfigError, Script};
pub use copa::{Copa, CopaMode};
pub use cubic::{Cubic, CubicShape, Friendliness, Idle};
pub use dcqcn::{Dcqcn, DcqcnShape, DcqcnStart};
pub use dctcp::{Dctcp, Gain};
pub use decimal::{Decimal, DecimalError};
pub use event::{
    AckEvent, AckTimestamps, Cause, CcContext, CongestionEvent, LossSample, Needs, PathEvent,
    RateSample, RecoveryState, RttSnapshot,
};
pub use fixed::Fixed;
pub use highspeed::Highspeed;
pub use hpcc::{Hpcc, HpccShape};
pub use htcp::Htcp;
pub use hybla::Hybla;
pub use hystart::Hystart;
pub use illinois::Illinois;
pub use kernel_name::{KERNEL_CONTROLLERS, KernelName};
pub use ledbat::Ledbat;
pub use lp::{Lp, Offsets};
pub use modified::{Modifiers, SlowStart, UnusedIncrease};
pub use muzha::{FrReduce, Muzha, MuzhaExit, MuzhaOptions, MuzhaRto, MuzhaTable, MuzhaUpdate};
pub use muzha2::Muzha2;
pub use nv::Nv;
pub use parametric::{Decrease, Increase, Parametric};
pub use prague::Prague;
pub use rcp::Rcp;
pub use reno::Reno;
pub use reno_002::Reno002;
pub use scalable::Scalable;
pub use swift::{Swift, SwiftTarget};
pub use timely::{Timely, TimelyShape};
pub use vegas::{Vegas, VegasBounds};
pub use veno::Veno;
use weir_units::feedback::Telemetry;
use weir_units::{Bytes, Feedback, Rate};
pub use westwood::Westwood;
pub use xcp::Xcp;
pub use yeah::Yeah;

/// Copies a controller with its state. Every controller that implements [`Clone`] has it.
///
/// QUIC hosts copy the controller when a connection migrates to a path that shares its bottleneck (RFC 9000 §9.4).
///
/// ```
/// use weir_cc::CcConfig;
/// use weir_units::Bytes;
///
/// let cc = CcConfig::Reno.build(Bytes(1_200), Bytes(12_000))?;
/// assert_eq!(cc.clone_box().cwnd(), cc.cwnd());
/// # Ok::<(), weir_cc::CcBuildError>(())
/// ```
pub trait CloneController {
    /// A copy that no longer depends on the original.
    fn clone_box(&self) -> Box<dyn CongestionController>;
}

impl<T: CongestionController + Clone + 'static> CloneController for T {
    fn clone_box(&self) -> Box<dyn CongestionController> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn CongestionController> {
    fn clone(&self) -> Self {
        (**self).clone_box()
    }
}

/// A congestion controller: receives every ACK and every congestion signal, returns its window
/// and pacing rate.
///
/// For one incoming acknowledgement the transport keeps this order:
///
/// 1. the RTT estimator and the rate sampler take it in;
/// 2. [`on_delivery`](Self::on_delivery), if it [needs](Needs::measures_first) that;
/// 3. loss recovery decides what is lost;
/// 4. [`on_spurious`](Self::on_spurious), if an earlier reduction proved unfounded;
/// 5. [`on_congestion`](Self::on_congestion), once per cause;
/// 6. [`on_ack`](Self::on_ack), exactly once, with totals that include what was declared lost;
/// 7. [`on_epoch_end`](Self::on_epoch_end), if the recovery epoch closed; before step 5 if the same
///    acknowledgement opens the next epoch;
/// 8. [`poll_episode`](Self::poll_episode);
/// 9. the window and pacing rate are read back.
///
/// During [`RecoveryState::Recovery`] and [`RecoveryState::Cwr`] the transport meters sending by PRR
/// towards [`cwnd`](Self::cwnd), which the controller has already lowered in `on_congestion`; unless
/// it [`needs`](Self::needs) its own reduction, it leaves `cwnd` alone until the epoch ends.
///
/// A controller of one's own, which halves its window once per epoch and adds a segment per window otherwise:
///
/// ```
/// use weir_cc::{AckEvent, Cause, CcContext, CongestionController, CongestionEvent};
/// use weir_units::{Bytes, Instant, stream};
///
/// #[derive(Clone, Debug)]
/// struct Halving {
///     cwnd: Bytes,
/// }
///
/// impl CongestionController for Halving {
///     fn name(&self) -> &'static str {
///         "halving"
///     }
///
///     fn on_congestion(&mut self, cx: &mut CcContext<'_>, event: &CongestionEvent) {
///         if event.first_in_epoch {
///             self.cwnd = (self.cwnd / 2).max(cx.mss * 2);
///         }
///     }
///
///     fn on_ack(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
///         self.cwnd += cx.mss.mul_ratio(ack.acked.get(), self.cwnd.get());
///     }
///
///     fn cwnd(&self) -> Bytes {
///         self.cwnd
///     }
///
///     fn phase(&self) -> &'static str {
///         "congestion_avoidance"
///     }
/// }
///
/// let (mss, mut rng) = (Bytes(1_000), stream(1, "controller"));
/// let mut cc = Halving { cwnd: mss * 10 };
/// let mut cx = CcContext::new(Instant::ZERO, mss, &mut rng);
/// cc.on_ack(&mut cx, &AckEvent { acked: mss, ..AckEvent::default() });
/// assert_eq!(cc.cwnd(), Bytes(10_100));
/// let (cause, lost, prior_in_flight) = (Cause::FastRetransmit, mss, mss * 10);
/// cc.on_congestion(&mut cx, &CongestionEvent { cause, first_in_epoch: true, lost, prior_in_flight });
/// assert_eq!(cc.cwnd(), Bytes(5_050));
/// ```
pub trait CongestionController: CloneController + std::fmt::Debug + Send + Sync {
    /// The name by which users choose it.
    fn name(&self) -> &'static str;

    /// What it asks of the transport.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// `bytes` of data, new or repeated, are about to leave (`cx.bytes_in_flight` does not include
    /// them yet). With nothing in flight this is a fresh start (Linux's `CA_EVENT_TX_START`).
    fn on_sent(&mut self, _cx: &mut CcContext<'_>, _bytes: Bytes) {}

    /// What the next data packet carries past the routers: of the kind that it [`needs`](Self::needs).
    fn request(&mut self, _cx: &mut CcContext<'_>) -> Option<Feedback> {
        None
    }

    /// Congestion was signalled. Reduce only when `event.first_in_epoch`; a timeout restarts the
    /// window in any case.
    fn on_congestion(&mut self, cx: &mut CcContext<'_>, event: &CongestionEvent);

    /// The acknowledgement that is handled next returns these records of hops, for controllers that
    /// [`request`](Self::request) [`Feedback::Int`].
    fn on_telemetry(&mut self, _records: &Telemetry) {}

    /// An acknowledgement arrived: what it delivered, before anything else is made of it, so before the
    /// [`on_congestion`](Self::on_congestion) of a loss that it shows and in the state until then (Linux's `pkts_acked`).
    /// What `ack` says of losses is not known yet. For those that [need](Needs::measures_first) it.
    fn on_delivery(&mut self, _cx: &mut CcContext<'_>, _ack: &AckEvent) {}

    /// An acknowledgement arrived.
    fn on_ack(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent);

    /// The recovery epoch closed: everything outstanding when it began has been acknowledged.
    fn on_epoch_end(&mut self, _cx: &mut CcContext<'_>) {}

    /// The last reduction was unfounded (F-RTO, timestamps or DSACK): restore what it took.
    fn on_spurious(&mut self, _cx: &mut CcContext<'_>) {}

    /// Whether it wants an episode to begin for what it sees of the path's delays, without loss or mark
    /// (Linux's `tcp_enter_cwr`). Asked once after each [`on_ack`](Self::on_ack): if so, and while no
    /// episode is in progress, [`on_congestion`](Self::on_congestion) follows with [`Cause::Delay`], and
    /// sending is metered as after a mark.
    fn poll_episode(&mut self) -> bool {
        false
    }

    /// Whether duplicate acknowledgements may reveal a loss now. Asked by recovery schemes that count
    /// them, before [`on_congestion`](Self::on_congestion).
    fn allows_fast_retransmit(&self) -> bool {
        true
    }

    /// Something happened to the path or to the application's use of it.
    fn on_path(&mut self, _cx: &mut CcContext<'_>, _event: &PathEvent) {}

    /// Replaces the window, and the slow-start threshold if one is given: a wrapper around the controller decided so
    /// ([`Modifiers`], [`SavedPath`]). Controllers without slow start ignore it.
    fn replace_window(&mut self, _cwnd: Bytes, _ssthresh: Option<Bytes>) {}

    /// The congestion window. Never below one segment.
    fn cwnd(&self) -> Bytes;

    /// The slow-start threshold; `None` while it is infinite or where the algorithm has none.
    fn ssthresh(&self) -> Option<Bytes> {
        None
    }

    /// The rate to pace at; `None` leaves sending to the window alone.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }

    /// Where the algorithm is in its own state machine: `"slow_start"`, `"probe_rtt"`, …
    fn phase(&self) -> &'static str;

    /// Its internal variables, for tables and figures: `("min_rtt_ms", 40.0)`. What has no value now is left out.
    /// Read when a sample is taken, not per packet.
    fn variables(&self) -> Vec<Variable> {
        Vec::new()
    }
}

/// An internal variable of a controller: its name, which ends with its unit, and its value.
pub type Variable = (&'static str, f64);
