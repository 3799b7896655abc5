//! A reliable transport as a plain state machine.
//!
//! [`Connection`] takes the time and segments, and returns segments to send, its
//! next deadline and for events. It manages byte *ranges*: its driver supplies the bytes at
//! transmission and stores them at their offset on arrival.
//!
//! Two connections shake hands and transfer 100 kB over 10 ms each way, in virtual time:
//!
//! ```
//! use weir_transport::{Config, Connection, Event};
//! use weir_units::{Duration, Ecn, Instant, stream};
//!
//! /// Delivers what `from` sends to `to`, 10 ms later.
//! fn deliver(from: &mut Connection, to: &mut Connection, now: &mut Instant) {
//!     from.handle_timeout(*now);
//!     let sent: Vec<_> = std::iter::from_fn(|| from.poll_transmit(*now)).collect();
//!     *now += Duration::from_millis(10);
//!     for transmit in sent {
//!         to.handle_segment(*now, &transmit.segment, Ecn::NotEct);
//!     }
//! }
//!
//! let config = Config::new("rack/cubic".parse()?);
//! let start = Instant::from_nanos(1);
//! let mut client = Connection::connect(&config, start, stream(1, "client"));
//! let mut server = Connection::listen(&config, stream(1, "server"));
//! client.write(start, 100_000);
//!
//! let (mut now, mut received) = (start, 0);
//! while received < 100_000 {
//!     deliver(&mut client, &mut server, &mut now);
//!     received += server.read(now, u64::MAX);
//!     deliver(&mut server, &mut client, &mut now);
//! }
//! assert_eq!(client.poll_event(), Some(Event::Connected));
//! assert_eq!(client.stats().retransmits, 0);
//! // A round trip for the handshake, then windows of 10, 20 and 40 segments.
//! assert_eq!(now - start, Duration::from_millis(80));
//! # Ok::<(), weir_transport::StackError>(())
//! ```

mod catalogue;
mod config;
mod connection;
mod delayed_ack;
mod pause;
mod policy;
mod profile;
mod ranges;
mod reassembly;
mod receiver;
mod recovery;
mod replay;
mod rtt;
mod scoreboard;
mod segment;
mod sender;
mod stats;
mod window_limit;
pub mod wire;

/// The example of the README, which runs with those of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

pub use catalogue::CatalogueEntry;
pub use config::{Config, Stack};
pub use connection::{Arrived, Connection, ConnectionError, Event, Negotiated, State, Transmit};
pub use delayed_ack::DelayedAckError;
pub use policy::{
    AtResume, BusConfig, ElfnConfig, PathEvent, RoutePolicy, RoutePolicyError, RouteState,
    TcpFConfig,
};
pub use profile::{AckFrequency, DelayedAck, HostProfile};
pub use ranges::RangeSet;
pub use reassembly::{Arrival, OutOfOrder, Reassembly, Stored};
pub use recovery::{
    Detection, GoBackNConfig, PrrRule, RackConfig, RecoveryConfig, StackError, Tlp,
};
pub use replay::{RecordedAck, Replay};
pub use rtt::{Outstanding, RttConfig, RttEstimator, RttVariation};
pub use segment::{Flags, Options, SackBlock, SackBlocks, Segment, SeqNum, Timestamps};
pub use stats::{Flight, Snapshot, Stats};
use weir_units::{Duration, Instant};
pub use window_limit::{LimitingEnd, WindowLimit, WindowLimitError};

/// RFC 7323's clock: milliseconds, as in Linux, which begin with its ticks.
pub(crate) fn timestamp_ms(now: Instant) -> u32 {
    ticks(now) as u32
}

/// When a timer fires that Linux sets at `now` for `delay`: never early, on a tick of its timer wheel
/// (`CONFIG_HZ` = 1000). Ticks are 1 ms up to 63 ms ahead and eight times as coarse from there and
/// from every eightfold of that (`calc_wheel_index`). Where they fall between two instants depends on
/// the boot; here they fall as those of CUBIC's clock.
pub(crate) fn on_tick(now: Instant, delay: Duration) -> Instant {
    let wait = delay.as_nanos().div_ceil(TICK_NANOS);
    let level = (0..8).find(|level| wait < 63 << (3 * level)).unwrap_or(8);
    let expires = ticks(now).saturating_add(wait).saturating_add(TICKS_AT_START);
    let fires = (((expires >> (3 * level)) + 1) << (3 * level)) - TICKS_AT_START;
    Instant::from_nanos(fires.saturating_mul(TICK_NANOS)) - PHASE
}

/// How many ticks there have been (`jiffies`).
pub(crate) fn ticks(now: Instant) -> u64 {
    (now + PHASE).as_nanos() / TICK_NANOS
}

const PHASE: Duration = Duration::from_micros(250);
/// Linux counts from 300 s before its ticks need more than 32 bits (`INITIAL_JIFFIES`). A run begins 10 s after the
/// boot, as those of guests do. Coarse ticks are multiples of this count.
const TICKS_AT_START: u64 = (1 << 32) - 290_000;
const TICK_NANOS: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_change_with_the_ticks() {
        let at = |micros| timestamp_ms(Instant::ZERO + Duration::from_micros(micros));
        assert_eq!([0, 749, 750, 1_749, 1_750].map(at), [0, 0, 1, 1, 2]);
    }

    #[test]
    fn timers_fire_on_the_wheels_ticks() {
        let at = |micros| Instant::ZERO + Duration::from_micros(micros);
        let reordering = Duration::from_micros(2_185);
        assert_eq!(on_tick(at(10_749), reordering), at(13_750));
        assert_eq!(on_tick(at(10_750), reordering), at(14_750));
        let probe = Duration::from_millis(90);
        assert_eq!(on_tick(at(10_750), probe), at(103_750), "in steps of eight: 13 * 8 = 104");
        assert_eq!(on_tick(at(13_750), probe), at(111_750));
        // As in a guest whose first SYNs are lost: in steps of 64.
        let second = Duration::from_secs(1);
        assert_eq!(on_tick(at(0), second), at(1_039_750));
        assert_eq!(on_tick(at(1_039_750), second * 2), at(3_087_750));
    }
}
