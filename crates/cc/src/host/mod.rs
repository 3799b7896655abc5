//! Parts of a transport that a controller relies on, for hosts other than `weir-transport`.
//!
//! A host of QUIC's kind reports packets sent, acknowledged and lost to a [`HostedController`], and reads window and
//! pacing rate back. [`SentPackets`] is the table of packets in flight for a host that keeps nothing of a controller with
//! a packet. [`HostedConfig`] builds a controller for each connection, if the host's [`HostFeatures`] meet its needs.
//!
//! Another host keeps the order of calls that [`CongestionController`](crate::CongestionController) lists, with the same
//! parts: [`RttFilter`] estimates round trips, [`RateSampler`] measures the delivery rate, [`RecoveryEpoch`] decides
//! which losses belong together, and [`Pacer`] spreads packets over time.
//!
//! A window of ten packets, of which the first is lost:
//!
//! ```
//! use weir_cc::host::{Pacer, RateSampler, RecoveryEpoch};
//! use weir_cc::{AckEvent, Cause, CcConfig, CcContext, CongestionEvent, RecoveryState, RttSnapshot};
//! use weir_units::{Bytes, Duration, Instant, stream};
//!
//! let mss = Bytes(1_200);
//! let mut cc = "cubic".parse::<CcConfig>()?.build(mss, mss * 10)?;
//! let mut rng = stream(1, "controller");
//! let (mut sampler, mut epoch, mut pacer) =
//!     (RateSampler::default(), RecoveryEpoch::default(), Pacer::default());
//!
//! // Sends packets 0 to 9 at once, because CUBIC sets no pacing rate.
//! let sent_at = Instant::ZERO;
//! let records: Vec<_> = (0..10)
//!     .map(|packet| {
//!         pacer.on_sent(sent_at, cc.pacing_rate(), mss);
//!         let record = sampler.on_sent(sent_at, packet == 0);
//!         record.with_flight(mss * (packet + 1), Bytes::ZERO)
//!     })
//!     .collect();
//! assert!(pacer.next_departure() <= sent_at);
//!
//! // Packets 1 to 9 are acknowledged after 50 ms. The third of them shows that packet 0 is lost.
//! let rtt = Duration::from_millis(50);
//! let (now, mut in_flight) = (sent_at + rtt, mss * 10);
//! let mut reductions = 0;
//! for packet in 1..10 {
//!     let prior_in_flight = in_flight;
//!     let rate = sampler.on_ack(now, mss, Some((sent_at, records[packet])), None);
//!     in_flight -= mss;
//!     let lost = if packet == 3 { mss } else { Bytes::ZERO };
//!     in_flight -= lost;
//!     let first = lost > Bytes::ZERO && epoch.on_congestion(Cause::FastRetransmit, 10);
//!     let mut cx = CcContext {
//!         bytes_in_flight: in_flight,
//!         delivered: sampler.delivered(),
//!         rtt: RttSnapshot { latest: Some(rtt), srtt: Some(rtt), min: Some(rtt), ..RttSnapshot::default() },
//!         state: epoch.state(),
//!         snd_nxt: 10 * mss.get(),
//!         cwnd_limited: true,
//!         ..CcContext::new(now, mss, &mut rng)
//!     };
//!     if lost > Bytes::ZERO {
//!         let cause = Cause::FastRetransmit;
//!         let event = CongestionEvent { cause, first_in_epoch: first, lost, prior_in_flight };
//!         cc.on_congestion(&mut cx, &event);
//!         reductions += u32::from(first);
//!     }
//!     let ack = AckEvent { acked: mss, lost, rtt: Some(rtt), rate, prior_in_flight, ..AckEvent::default() };
//!     cc.on_ack(&mut cx, &ack);
//! }
//! assert_eq!(reductions, 1);
//! assert_eq!(epoch.state(), RecoveryState::Recovery);
//! assert_eq!(cc.cwnd(), mss * 7, "CUBIC keeps 0.7 of the window");
//!
//! // The retransmission is acknowledged: everything below packet 10 has arrived.
//! assert!(epoch.on_ack(10));
//! cc.on_epoch_end(&mut CcContext::new(now + rtt, mss, &mut rng));
//! assert_eq!(epoch.state(), RecoveryState::Open);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod clock;
mod config;
mod epoch;
mod features;
mod hosted;
mod pacer;
mod rtt;
mod sampler;
mod table;

pub use clock::HostClock;
pub use config::{HostedConfig, HostedConfigError};
pub use epoch::RecoveryEpoch;
pub use features::{HostFeatures, Unsupported};
pub use hosted::{HostedController, SentPacket};
pub use pacer::Pacer;
pub use rtt::RttFilter;
pub use sampler::{RateSampler, SendRecord};
pub use table::SentPackets;
