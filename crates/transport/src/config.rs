//! What a connection is made of: the stack (recovery scheme and controller) and its parameters.

mod build;
mod stack;

use weir_cc::{CcConfig, Overflow};
use weir_units::{Bytes, Duration, Rate};

pub use self::stack::Stack;
use crate::profile::{DelayedAck, HostProfile};
use crate::recovery::{RackConfig, RecoveryConfig};
use crate::{RoutePolicy, WindowLimit};

/// Configuration of a connection. The defaults are Linux's.
///
/// ```
/// use weir_transport::Config;
/// use weir_units::{Bytes, Duration};
///
/// let config = Config::new("sack/bbr".parse()?)
///     .with_mss(1_200)
///     .with_initial_window(32)
///     .with_recv_buffer(Bytes(1 << 20))
///     .with_max_wait(Some(Duration::from_secs(10)));
/// assert_eq!((config.mss, config.stack.to_string()), (1_200, "sack/bbr".into()));
/// assert_eq!(config.min_rto, Duration::from_millis(200), "Linux's");
/// # Ok::<(), weir_transport::StackError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Loss recovery and congestion control.
    pub stack: Stack,
    /// The largest payload of a segment in bytes.
    pub mss: u32,
    /// The first congestion window, in segments (RFC 6928).
    pub initial_window: u32,
    /// Spread the first window over the handshake's round trip, unless the controller sets a rate of
    /// its own: a large one would overflow the first queue (RFC 9000 §7.7 asks for this too).
    pub pace_initial_window: bool,
    /// Ask the routers on the way, with the SYN, for this rate to start with (RFC 4782), unless the
    /// controller itself asks them for something. A request is a power of two times 80 kbit/s: the highest
    /// that does not exceed this.
    pub quick_start: Option<Rate>,
    /// Pace controllers that set no rate of their own too, by their window over the smoothed round trip:
    /// doubled in early slow start, else 6/5 of it (Linux's `tcp_update_pacing_rate`, as below `fq`;
    /// RFC 9002 §7.7 asks for this). Without it such a controller sends as acknowledgements come in.
    pub pace_window: bool,
    /// An upper bound of the pacing rate, as `SO_MAX_PACING_RATE` is: with it every stack is paced.
    pub max_pacing_rate: Option<Rate>,
    /// How much of the time by which its driver comes late a paced sender makes up for, at a burst.
    /// It is always half of the time that the last burst takes, as in Linux, whose timers are seldom
    /// later; a program among others needs more.
    pub pacing_catch_up: Duration,
    /// The most that a paced sender makes up for after its first lost segment: what it sends at once may
    /// have been too much for a queue. By default as much as before.
    pub pacing_catch_up_after_loss: Option<Duration>,
    /// What the sender's segments may take of memory until they are acknowledged, each with the
    /// `send_overhead` beyond its payload (`sk_sndbuf`); by default without bound.
    pub send_buffer: Option<Bytes>,
    /// What Linux charges a segment beyond its payload: 768 bytes before 6.3, 832 since, in a kernel without
    /// tunnels or radio that need headroom; others up to 1280 bytes.
    pub send_overhead: Bytes,
    /// The size up to which the send buffer grows with the window, as Linux's does up to `tcp_wmem`; by default
    /// it keeps its size.
    pub max_send_buffer: Option<Bytes>,
    /// What the receiver holds for the application, and so the largest window that it offers.
    pub recv_buffer: Bytes,
    /// The size up to which the receiver enlarges its buffer with what the application reads per round trip, as
    /// Linux does up to half of `tcp_rmem`; by default the buffer keeps its size.
    pub max_recv_buffer: Option<Bytes>,
    /// What the receiver offers at first; by default 65,535 bytes where it acknowledges as Linux does,
    /// which then lets its window grow with what arrives, and otherwise all that it has. Linux 6.11 and
    /// later offer all of half `tcp_rmem`.
    pub initial_recv_window: Option<Bytes>,
    /// Offer selective acknowledgements (RFC 2018). Unless both sides do, `sack` and `rack` give way
    /// to `newreno`.
    pub sack: bool,
    /// Offer timestamps (RFC 7323).
    pub timestamps: bool,
    /// Offer windows of more than 64 KiB (RFC 7323 §2).
    pub window_scaling: bool,
    /// Offer explicit congestion notification (RFC 3168); by default if the controller needs it.
    pub ecn: Option<bool>,
    /// When the receiver acknowledges; by default as the recovery scheme's receiver does
    /// ([`RecoveryConfig::delayed_ack`]).
    pub delayed_ack: Option<DelayedAck>,
    /// The timeout before the first RTT sample (RFC 6298 §2.1).
    pub initial_rto: Duration,
    /// The smallest timeout: 200 ms in Linux, 1 s in RFC 6298 §2.4.
    pub min_rto: Duration,
    /// The largest timeout.
    pub max_rto: Duration,
    /// A timeout that neither adapts nor backs off, as first protocols have it.
    pub fixed_rto: Option<Duration>,
    /// Timeouts in a row after which the connection fails.
    pub max_retransmits: u32,
    /// Timeouts in a row after which a handshake fails; by default as many as later on.
    pub max_syn_retransmits: Option<u32>,
    /// Time without progress after which the connection fails.
    pub max_wait: Option<Duration>,
    /// Send new data on the first two duplicate acknowledgements (RFC 3042).
    pub limited_transmit: bool,
    /// Let a segment that is not full wait as long as one like it is out (Nagle, RFC 9293 §3.7.4), as TCP
    /// does for programs that do not set `TCP_NODELAY`. Those that mind do, as does Weir.
    pub nagle: bool,
    /// The most segments that leave at once where the windows and the pacer allow, as segmentation
    /// offload sends them; 1 for one by one.
    pub gso: u32,
    /// Let the window grow only while the sender uses it (RFC 7661's question, Linux's answer).
    /// RFC 5681 alone grows it with every acknowledgement.
    pub cwnd_validation: bool,
    /// Restart from the initial window after an idle timeout (RFC 5681 §4.1).
    pub slow_start_after_idle: bool,
    /// How long the side that closed first remembers the connection.
    pub time_wait: Duration,
    /// Whose timers, delays and estimates the ends have.
    pub host_profile: HostProfile,
    /// What a sender does when the network says that its route broke.
    pub route_policy: RoutePolicy,
    /// A bound on outstanding bytes, in addition to the congestion window and the peer's.
    pub window_limit: Option<WindowLimit>,
}

impl Default for Config {
    fn default() -> Self {
        let recovery = RecoveryConfig::Rack(RackConfig::default());
        Self {
            stack: Stack { recovery, controller: CcConfig::Reno },
            mss: 1448,
            initial_window: 10,
            pace_initial_window: false,
            quick_start: None,
            pace_window: false,
            max_pacing_rate: None,
            pacing_catch_up: Duration::ZERO,
            pacing_catch_up_after_loss: None,
            send_buffer: None,
            send_overhead: Bytes(768),
            max_send_buffer: None,
            recv_buffer: Bytes(64 << 20),
            max_recv_buffer: None,
            initial_recv_window: None,
            sack: true,
            timestamps: true,
            window_scaling: true,
            ecn: None,
            delayed_ack: None,
            initial_rto: Duration::from_secs(1),
            min_rto: Duration::from_millis(200),
            max_rto: Duration::from_secs(120),
            fixed_rto: None,
            max_retransmits: 15,
            max_syn_retransmits: None,
            max_wait: None,
            limited_transmit: true,
            nagle: false,
            gso: 1,
            cwnd_validation: true,
            slow_start_after_idle: true,
            time_wait: Duration::from_secs(60),
            host_profile: HostProfile::Kernel,
            route_policy: RoutePolicy::None,
            window_limit: None,
        }
    }
}

impl Config {
    /// For real datagrams between two ends of this transport. Against the defaults, which are Linux's:
    ///
    /// * [`HostProfile::UserSpace`].
    /// * `min_rto` of 10 ms, a margin above `srtt` with `rack`. Linux's 200 ms allow for receivers that delay
    ///   acknowledgements by 40 to 200 ms; ours delays by 5 ms (RFC 6298 §2.4 asks for a floor against spurious
    ///   timeouts, which `rack` finds out and takes back; RFC 9002 §6.2.1 has none above 1 ms).
    /// * `initial_rto` of 10 ms: where a quarter of the packets is lost both ways, four handshakes of nine need
    ///   another SYN. On a path of 300 ms this costs eight superfluous SYNs.
    /// * Up to 44 segments leave at once, as many as a datagram of 64 KiB holds, so every controller is paced:
    ///   one acknowledgement may let dozens of such bursts leave. A large first window is paced as well.
    /// * BBR tells a queue that overflows from random loss.
    pub fn for_datagrams() -> Self {
        let recovery = RecoveryConfig::Rack(RackConfig::default());
        let controller = CcConfig::Bbr { overflow: Overflow::Avoid };
        Self {
            stack: Stack { recovery, controller },
            host_profile: HostProfile::UserSpace,
            min_rto: Duration::from_millis(10),
            initial_rto: Duration::from_millis(10),
            gso: 44,
            pace_initial_window: true,
            pace_window: true,
            ..Self::default()
        }
    }

    /// The first congestion window in bytes.
    pub(crate) fn initial_window(&self) -> Bytes {
        Bytes(u64::from(self.mss)) * u64::from(self.initial_window)
    }

    /// Whether timeouts wait for the ticks of Linux's timer wheel: those of its recovery, as far as it computes
    /// them.
    pub(crate) fn fires_on_ticks(&self) -> bool {
        self.host_profile == HostProfile::Kernel
            && self.fixed_rto.is_none()
            && matches!(self.stack.recovery, RecoveryConfig::Rack(_))
    }

    /// When the receiver acknowledges: as configured, or the recovery scheme's default.
    pub fn delayed_ack(&self) -> DelayedAck {
        self.delayed_ack.unwrap_or_else(|| self.stack.recovery.delayed_ack())
    }
}
