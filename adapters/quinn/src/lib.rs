//! The congestion controllers of [`weir_cc`] for [quinn](https://github.com/quinn-rs/quinn) 0.11, crate `quinn-proto`.
//!
//! [`Controllers`] is a factory for a connection's transport configuration:
//!
//! ```
//! use std::sync::Arc;
//!
//! use quinn_proto::TransportConfig;
//! use weir_quinn::Controllers;
//!
//! let mut transport = TransportConfig::default();
//! let seed = 42; // In a program: a random number.
//! transport.congestion_controller_factory(Arc::new(Controllers::new("vegas", seed)?));
//!
//! let error = Controllers::new("bbr3", seed).unwrap_err().to_string();
//! assert_eq!(error, "quinn 0.11 cannot run 'bbr3': it ignores the pacing rate of a controller");
//! # Ok::<(), weir_quinn::HostedConfigError>(())
//! ```
//!
//! What quinn gives a controller, and what this crate reconstructs:
//!
//! - quinn ignores a controller's pacing rate. It paces every controller at 1.25 windows per round trip.
//! - quinn blocks when the next packet would make the flight as large as the window. The window that this crate reports is
//!   one byte larger, so that a window of ten packets holds ten.
//! - A packet is known by the time at which it was sent. A batch of segmentation offload is one packet to the controller.
//! - quinn reports acknowledged packets before the losses that they reveal. A controller receives these losses with the
//!   next acknowledgement. They reduce its window at once.
//! - quinn 0.11 does not report that a loss was spurious.
//! - Round trips are measured here, because quinn's estimate is one acknowledgement old. They include the peer's ACK delay.
//! - Sizes are UDP payloads of whole packets. Between acknowledgements, packets that only acknowledge count as in flight.

#![forbid(unsafe_code)]

use std::any::Any;
use std::sync::Arc;

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use weir_cc::host::{HostClock, HostFeatures, HostedConfig, SentPacket, SentPackets};
pub use weir_cc::host::{HostedConfigError, HostedController, Unsupported};
use weir_cc::{Cause, CongestionController};
use weir_units::{Bytes, Ecn, Instant};

/// The example of the README, which runs with those of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

/// What quinn does for a controller.
pub const HOST: HostFeatures =
    HostFeatures { name: "quinn 0.11", pacing: false, marks: Ecn::NotEct, timestamps: false };

/// An instant of quinn.
#[expect(clippy::disallowed_types, reason = "the host's own type; no clock is read through it")]
type HostInstant = std::time::Instant;

/// Factory of controllers, for [`congestion_controller_factory`](quinn_proto::TransportConfig).
#[derive(Clone, Debug)]
pub struct Controllers(HostedConfig);

impl Controllers {
    /// The controller that `text` names, as in `cubic` or `ledbat(target=25ms)`;
    /// [`CcConfig::CATALOGUE`](weir_cc::CcConfig::CATALOGUE) has all names. `seed` is that of its random numbers.
    ///
    /// # Errors
    /// If there is no such controller, or quinn lacks what it needs.
    pub fn new(text: &str, seed: u64) -> Result<Self, HostedConfigError> {
        HostedConfig::new(text, seed, &HOST).map(Self)
    }

    /// A controller of one's own. `make` receives the size of packets and the initial window.
    ///
    /// # Errors
    /// If quinn lacks what it needs.
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
            largest_window: Bytes::ZERO,
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
/// use quinn_proto::congestion::{ControllerFactory, CubicConfig};
/// use weir_quinn::Controllers;
///
/// let now = std::time::Instant::now();
/// let controller = Arc::new(Controllers::new("vegas", 42)?).build(now, 1_200);
/// assert_eq!(weir_quinn::hosted(&*controller).unwrap().controller().phase(), "slow_start");
/// let other = Arc::new(CubicConfig::default()).build(now, 1_200);
/// assert!(weir_quinn::hosted(&*other).is_none());
/// # Ok::<(), weir_quinn::HostedConfigError>(())
/// ```
pub fn hosted(controller: &dyn Controller) -> Option<HostedController> {
    let adapter = controller.clone_box().into_any().downcast::<Adapter>().ok()?;
    Some(adapter.cc)
}

/// A controller of [`weir_cc`] behind quinn's trait.
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
    largest_window: Bytes,
}

impl Adapter {
    fn advance(&mut self, now: HostInstant) -> Instant {
        self.now = self.clock.at(now);
        self.now
    }
}

impl Controller for Adapter {
    fn on_sent(&mut self, now: HostInstant, bytes: u64, last_packet_number: u64) {
        let now = self.advance(now);
        let packet = self.cc.on_sent(now, Bytes(bytes));
        self.packets.push(last_packet_number, packet);
        // Where this end only receives, its acknowledgements would stay here until one is acknowledged. More than
        // two windows are never in flight.
        self.largest_window = self.largest_window.max(self.cc.cwnd());
        let most = Bytes(self.largest_window.get().saturating_mul(2));
        self.cc.on_discarded(self.packets.trim(most, now));
    }

    fn on_ack(
        &mut self,
        _now: HostInstant,
        sent: HostInstant,
        bytes: u64,
        _app_limited: bool,
        _rtt: &RttEstimator,
    ) {
        let sent = self.clock.at(sent);
        self.newest_acked = self.newest_acked.max(sent);
        let is_it = |_, packet: &SentPacket| packet.sent_at() == sent;
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
        // What only acknowledged, lost MTU probes, and discarded packet number spaces.
        self.cc.on_discarded(self.packets.trim(Bytes(in_flight), self.newest_acked));
        if !app_limited {
            self.cc.on_cwnd_limited();
        }
        self.cc.end_of_acks(now);
        if app_limited {
            self.cc.on_app_limited();
        }
    }

    fn on_congestion_event(
        &mut self,
        now: HostInstant,
        sent: HostInstant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        let latest = self.clock.at(sent);
        let mut left = Bytes(lost_bytes);
        while let Some((packet, bytes)) = self.packets.take_oldest(latest, left) {
            self.cc.on_lost(&packet, bytes);
            left -= bytes;
        }
        let cause = match (lost_bytes, is_persistent_congestion) {
            (0, _) => Cause::EcnEcho,
            (_, true) => Cause::Timeout { backoff: 0 },
            (_, false) => Cause::FastRetransmit,
        };
        let now = self.advance(now);
        self.cc.on_congestion(now, cause);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.cc.on_mss(self.now, Bytes(new_mtu.into()));
    }

    fn window(&self) -> u64 {
        self.cc.cwnd().get().saturating_add(1)
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window();
        metrics.ssthresh = self.cc.ssthresh().map(Bytes::get);
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
