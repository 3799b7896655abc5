//! The congestion controllers of [`weir_cc`] for [noq](https://github.com/n0-computer/noq), crate `noq-proto` 1.4.
//!
//! [`Controllers`] is a factory for a connection's transport configuration:
//!
//! ```
//! use std::sync::Arc;
//!
//! use noq_proto::TransportConfig;
//! use weir_noq::Controllers;
//!
//! let mut transport = TransportConfig::default();
//! let seed = 42; // In a program: a random number.
//! transport.congestion_controller_factory(Arc::new(Controllers::new("bbr3", seed)?));
//!
//! let error = Controllers::new("prague", seed).unwrap_err().to_string();
//! assert_eq!(error, "noq cannot run 'prague': it never sends ECT(1)");
//! # Ok::<(), weir_noq::HostedConfigError>(())
//! ```
//!
//! What noq gives a controller, and what this crate reconstructs:
//!
//! - noq reports acknowledged packets before the losses that they reveal. A controller receives these losses with the
//!   next acknowledgement. They reduce its window at once.
//! - Round trips are measured here, because noq's estimate is one acknowledgement old. They include the peer's ACK delay.
//! - noq paces at the controller's rate. A controller without a rate is paced at 1.25 windows per round trip.
//! - Sizes are UDP payloads of whole packets.

#![forbid(unsafe_code)]

use std::any::Any;
use std::sync::Arc;

use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use weir_cc::host::{HostClock, HostFeatures, HostedConfig, SentPacket, SentPackets};
pub use weir_cc::host::{HostedConfigError, HostedController, Unsupported};
use weir_cc::{Cause, CongestionController};
use weir_units::{Bytes, Ecn, Instant, Rate};

/// The example of the README, which runs with those of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

/// What noq does for a controller.
pub const HOST: HostFeatures =
    HostFeatures { name: "noq", pacing: true, marks: Ecn::NotEct, timestamps: false };

/// An instant of noq.
#[expect(clippy::disallowed_types, reason = "the host's own type; no clock is read through it")]
type HostInstant = std::time::Instant;

/// Factory of controllers, for [`congestion_controller_factory`](noq_proto::TransportConfig).
#[derive(Clone, Debug)]
pub struct Controllers(HostedConfig);

impl Controllers {
    /// The controller that `text` names, as in `cubic` or `ledbat(target=25ms)`;
    /// [`CcConfig::CATALOGUE`](weir_cc::CcConfig::CATALOGUE) has all names. `seed` is that of its random numbers.
    ///
    /// # Errors
    /// If there is no such controller, or noq lacks what it needs.
    pub fn new(text: &str, seed: u64) -> Result<Self, HostedConfigError> {
        HostedConfig::new(text, seed, &HOST).map(Self)
    }

    /// A controller of one's own. `make` receives the size of packets and the initial window.
    ///
    /// # Errors
    /// If noq lacks what it needs.
    pub fn custom(
        make: impl Fn(Bytes, Bytes) -> Box<dyn CongestionController> + Send + Sync + 'static,
        seed: u64,
    ) -> Result<Self, Unsupported> {
        HostedConfig::custom(make, seed, &HOST).map(Self)
    }

    /// With an initial window of `packets` packets, at least one; 10 by default.
    #[must_use]
    pub fn with_initial_window(self, packets: u32) -> Self {
        Self(self.0.with_initial_window(packets))
    }
}

impl ControllerFactory for Controllers {
    fn build(self: Arc<Self>, now: HostInstant, current_mtu: u16) -> Box<dyn Controller> {
        let mss = Bytes(current_mtu.into());
        Box::new(Adapter {
            cc: self.0.build(mss),
            packets: SentPackets::default(),
            clock: HostClock::new(now),
            now: Instant::ZERO,
            newest_acked: Instant::ZERO,
            initial_window: self.0.initial_window(mss).get(),
        })
    }
}

/// A copy of the controller that a connection has, with its phase, round trips and rates; `None` if it is not one of
/// [`Controllers`]. Pass what `congestion_state` of the connection returns. It copies the table of packets too, so call
/// it for a sample, not for every packet.
///
/// ```
/// use std::sync::Arc;
///
/// use noq_proto::congestion::{ControllerFactory, CubicConfig};
/// use weir_noq::Controllers;
///
/// let now = std::time::Instant::now();
/// let controller = Arc::new(Controllers::new("vegas", 42)?).build(now, 1_200);
/// assert_eq!(weir_noq::hosted(&*controller).unwrap().controller().phase(), "slow_start");
/// let other = Arc::new(CubicConfig::default()).build(now, 1_200);
/// assert!(weir_noq::hosted(&*other).is_none());
/// # Ok::<(), weir_noq::HostedConfigError>(())
/// ```
pub fn hosted(controller: &dyn Controller) -> Option<HostedController> {
    let adapter = controller.clone_box().into_any().downcast::<Adapter>().ok()?;
    Some(adapter.cc)
}

/// A controller of [`weir_cc`] behind noq's trait.
#[derive(Clone, Debug)]
struct Adapter {
    cc: HostedController,
    packets: SentPackets,
    clock: HostClock,
    /// The time of the last call that had one.
    now: Instant,
    /// When the newest acknowledged packet was sent.
    newest_acked: Instant,
    initial_window: u64,
}

impl Adapter {
    fn advance(&mut self, now: HostInstant) -> Instant {
        self.now = self.clock.at(now);
        self.now
    }
}

impl Controller for Adapter {
    fn on_packet_sent(&mut self, now: HostInstant, bytes: u16, pn: u64) {
        let now = self.advance(now);
        let packet = self.cc.on_sent(now, Bytes(bytes.into()));
        self.packets.push(pn, packet);
    }

    fn on_ack(
        &mut self,
        _now: HostInstant,
        sent: HostInstant,
        bytes: u64,
        pn: u64,
        _app_limited: bool,
        _rtt: &RttEstimator,
    ) {
        let sent = self.clock.at(sent);
        self.newest_acked = self.newest_acked.max(sent);
        let is_it = |number, packet: &_| number == pn && SentPacket::sent_at(packet) == sent;
        if let Some(packet) = self.packets.take(is_it, Bytes(bytes)) {
            self.cc.on_acked(&packet, Bytes(bytes));
        }
    }

    fn on_end_acks(
        &mut self,
        now: HostInstant,
        in_flight: u64,
        app_limited: bool,
        _largest_packet_num_acked: Option<u64>,
    ) {
        let now = self.advance(now);
        // noq does not report lost MTU probes and discarded packet number spaces.
        self.cc.on_discarded(self.packets.trim(Bytes(in_flight), self.newest_acked));
        if !app_limited {
            self.cc.on_cwnd_limited();
        }
        self.cc.end_of_acks(now);
        if app_limited {
            self.cc.on_app_limited();
        }
    }

    fn on_packet_lost(&mut self, lost_bytes: u16, pn: u64, _now: HostInstant) {
        let bytes = Bytes(lost_bytes.into());
        if let Some(packet) = self.packets.take(|number, _| number == pn, bytes) {
            self.cc.on_lost(&packet, bytes);
        }
    }

    fn on_congestion_event(
        &mut self,
        now: HostInstant,
        _sent: HostInstant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        _lost_bytes: u64,
        _largest_lost_pn: u64,
    ) {
        let cause = match (is_ecn, is_persistent_congestion) {
            (true, _) => Cause::EcnEcho,
            (false, true) => Cause::Timeout { backoff: 0 },
            (false, false) => Cause::FastRetransmit,
        };
        let now = self.advance(now);
        self.cc.on_congestion(now, cause);
    }

    fn on_spurious_congestion_event(&mut self) {
        self.cc.on_spurious(self.now);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.cc.on_mss(self.now, Bytes(new_mtu.into()));
    }

    fn window(&self) -> u64 {
        self.cc.cwnd().get()
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window();
        metrics.ssthresh = self.cc.ssthresh().map(Bytes::get);
        // noq counts bytes per second here, and bits per second in the estimate.
        metrics.pacing_rate = self.cc.pacing_rate().map(|rate| rate.as_bits_per_sec() / 8);
        metrics.bandwidth_estimate = self.cc.delivery_rate().map(Rate::as_bits_per_sec);
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.initial_window
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
