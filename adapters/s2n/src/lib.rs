//! The congestion controllers of [`weir_cc`] for [s2n-quic](https://github.com/aws/s2n-quic), crate `s2n-quic-core` 0.91.
//!
//! [`Controllers`] is an endpoint of congestion controllers, a provider of `s2n_quic::Server` and `s2n_quic::Client`:
//!
//! ```
//! use s2n_quic_core::recovery::congestion_controller::Endpoint;
//! use weir_s2n::Controllers;
//!
//! fn is_provider(_: impl Endpoint) {}
//!
//! let seed = 42; // In a program: a random number.
//! is_provider(Controllers::new("bbr3", seed)?);
//!
//! let error = Controllers::new("lp", seed).unwrap_err().to_string();
//! assert_eq!(error, "s2n-quic cannot run 'lp': its acknowledgements have no timestamps");
//! # Ok::<(), weir_s2n::HostedConfigError>(())
//! ```
//!
//! What s2n-quic gives a controller, and what this crate reconstructs:
//!
//! - s2n-quic reports losses before acknowledgements and keeps a record with each packet, so that nothing is approximate but
//!   the marks: it reports how many packets were marked, not their sizes.
//! - A controller is its own pacer: packets leave at the controller's rate, or at 1.25 windows per round trip if it sets
//!   none. Times have a resolution of 1 µs.
//! - Round trips include the peer's ACK delay. Sizes are UDP payloads of whole packets.

#![forbid(unsafe_code)]

use std::time::Duration;

use s2n_quic_core::random::Generator;
use s2n_quic_core::recovery::congestion_controller::{Endpoint, PathInfo, Publisher};
use s2n_quic_core::recovery::{CongestionController, RttEstimator};
use s2n_quic_core::time::Timestamp;
use weir_cc::host::{HostFeatures, HostedConfig, HostedController, SentPacket};
pub use weir_cc::host::{HostedConfigError, Unsupported};
use weir_cc::{Cause, CongestionController as WeirController};
use weir_units::{Bytes, Ecn, Instant};

/// The example of the README, which runs with those of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

/// What s2n-quic does for a controller.
pub const HOST: HostFeatures =
    HostFeatures { name: "s2n-quic", pacing: true, marks: Ecn::Ect0, timestamps: false };

/// Makes a controller for each path.
#[derive(Clone, Debug)]
pub struct Controllers(HostedConfig);

impl Controllers {
    /// The controller that `text` names, as in `cubic` or `ledbat(target=25ms)`;
    /// [`CcConfig::CATALOGUE`](weir_cc::CcConfig::CATALOGUE) has all names. `seed` is that of its random numbers.
    ///
    /// # Errors
    /// If there is no such controller, or s2n-quic lacks what it needs.
    pub fn new(text: &str, seed: u64) -> Result<Self, HostedConfigError> {
        HostedConfig::new(text, seed, &HOST).map(Self)
    }

    /// A controller of one's own. `make` receives the size of packets and the initial window.
    ///
    /// # Errors
    /// If s2n-quic lacks what it needs.
    pub fn custom(
        make: impl Fn(Bytes, Bytes) -> Box<dyn WeirController> + Send + Sync + 'static,
        seed: u64,
    ) -> Result<Self, Unsupported> {
        HostedConfig::custom(make, seed, &HOST).map(Self)
    }

    /// With an initial window of `packets` packets, at least one; 10 by default.
    #[must_use]
    pub fn with_initial_window(self, packets: u32) -> Self {
        Self(self.0.with_initial_window(packets))
    }

    /// The controller of a path whose packets have at most `max_datagram_size` bytes.
    pub fn controller(&self, max_datagram_size: u16) -> Controller {
        let cc = self.0.build(Bytes(max_datagram_size.into())).with_pacer();
        Controller { cc, clock: None, now: Instant::ZERO }
    }
}

impl Endpoint for Controllers {
    type CongestionController = Controller;

    fn new_congestion_controller(&mut self, path_info: PathInfo<'_>) -> Controller {
        self.controller(path_info.max_datagram_size)
    }
}

/// A controller of [`weir_cc`] behind the trait of s2n-quic.
#[derive(Clone, Debug)]
pub struct Controller {
    cc: HostedController,
    /// The first time that was given, which is zero here.
    clock: Option<Timestamp>,
    /// The time of the last call that had one.
    now: Instant,
}

impl Controller {
    fn advance(&mut self, now: Timestamp) -> Instant {
        let zero = *self.clock.get_or_insert(now);
        let nanos = now.saturating_duration_since(zero).as_nanos();
        // Zero is left to what never happened.
        self.now = Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX).saturating_add(1));
        self.now
    }
}

impl CongestionController for Controller {
    type PacketInfo = SentPacket;

    fn congestion_window(&self) -> u32 {
        saturated(self.cc.cwnd())
    }

    fn bytes_in_flight(&self) -> u32 {
        saturated(self.cc.bytes_in_flight())
    }

    fn is_congestion_limited(&self) -> bool {
        self.cc.bytes_in_flight() + self.cc.mss() > self.cc.cwnd()
    }

    fn requires_fast_retransmission(&self) -> bool {
        false
    }

    fn on_packet_sent<Pub: Publisher>(
        &mut self,
        time_sent: Timestamp,
        sent_bytes: usize,
        app_limited: Option<bool>,
        _rtt_estimator: &RttEstimator,
        _publisher: &mut Pub,
    ) -> SentPacket {
        let now = self.advance(time_sent);
        if sent_bytes == 0 {
            return self.cc.record(now);
        }
        let packet = self.cc.on_sent(now, Bytes(sent_bytes as u64));
        match app_limited {
            Some(true) => self.cc.on_app_limited(),
            Some(false) => self.cc.on_cwnd_limited(),
            None => {}
        }
        packet
    }

    fn on_rtt_update<Pub: Publisher>(
        &mut self,
        _time_sent: Timestamp,
        _now: Timestamp,
        _rtt_estimator: &RttEstimator,
        _publisher: &mut Pub,
    ) {
        // The newest packet of an acknowledgement gives the same sample.
    }

    fn on_ack<Pub: Publisher>(
        &mut self,
        _newest_acked_time_sent: Timestamp,
        bytes_acknowledged: usize,
        newest_acked_packet_info: SentPacket,
        _rtt_estimator: &RttEstimator,
        _random_generator: &mut dyn Generator,
        ack_receive_time: Timestamp,
        _publisher: &mut Pub,
    ) {
        let now = self.advance(ack_receive_time);
        self.cc.on_acked(&newest_acked_packet_info, Bytes(bytes_acknowledged as u64));
        self.cc.end_of_acks(now);
    }

    fn on_packet_lost<Pub: Publisher>(
        &mut self,
        lost_bytes: u32,
        packet_info: SentPacket,
        persistent_congestion: bool,
        _new_loss_burst: bool,
        _random_generator: &mut dyn Generator,
        timestamp: Timestamp,
        _publisher: &mut Pub,
    ) {
        let now = self.advance(timestamp);
        let timeout = Cause::Timeout { backoff: 0 };
        self.cc.on_lost(&packet_info, Bytes(lost_bytes.into()));
        self.cc.on_congestion(now, if persistent_congestion { timeout } else { Cause::FastRetransmit });
    }

    fn on_explicit_congestion<Pub: Publisher>(
        &mut self,
        ce_count: u64,
        event_time: Timestamp,
        _publisher: &mut Pub,
    ) {
        let now = self.advance(event_time);
        self.cc.on_marked(self.cc.mss() * ce_count);
        self.cc.on_congestion(now, Cause::EcnEcho);
    }

    fn on_mtu_update<Pub: Publisher>(&mut self, max_data_size: u16, _publisher: &mut Pub) {
        self.cc.on_mss(self.now, Bytes(max_data_size.into()));
    }

    fn on_packet_discarded<Pub: Publisher>(&mut self, bytes_sent: usize, _publisher: &mut Pub) {
        self.cc.on_discarded(Bytes(bytes_sent as u64));
    }

    fn earliest_departure_time(&self) -> Option<Timestamp> {
        let wait = self.cc.next_departure().saturating_since(Instant::from_nanos(1));
        Some(self.clock? + Duration::from_nanos(wait.as_nanos()))
    }
}

fn saturated(bytes: Bytes) -> u32 {
    u32::try_from(bytes.get()).unwrap_or(u32::MAX)
}
