//! Sections `[[flow]]`: who sends, over which transport, what.

use std::fmt;
use std::str::FromStr;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use weir_foreign::{Settings, StackName, StackNameError};
use weir_scene::{Ends, IP_HEADER, UDP_HEADER, UdpConfig};
use weir_transport::{Config, DelayedAck, RoutePolicy, Segment, Stack, WindowLimit};
use weir_units::{Bytes, Duration, Rate};

use crate::contender::ContenderName;
use crate::keys::{Only, Word, form, section, words};
use crate::range::{above, at_least, at_most, between, up_to_a_day};
use crate::topology::Node;
use crate::workload::{Carrier, Workload};

section! {
    /// One flow, or `count` equal ones.
    pub struct Flow {
        /// Name in the tables; by default `flow0`, `flow1`, … Random numbers are drawn by name.
        name: Option<String> = None,
        /// Loss recovery and congestion control, `recovery/controller`; a bare controller runs over
        /// `rack`. `udp` has neither. `quinn/…` and `noq/…` are stacks of other projects (`weir list
        /// stacks`), in world `sim`. `contender:…` are programs (`weir list contenders`), in world `kernel`.
        stack: Protocol = Protocol::default(),
        /// Number of such flows.
        count: u32 [at_least(1)] = 1,
        /// Node or router where they begin (chain, graph), or a host of a fabric. `*` draws a host of a fabric
        /// or a graph for each connection; it is the default in a fabric.
        from: Option<Node> = None,
        /// Node or router where they end (chain, graph), or a host of a fabric. `*` draws a host of a fabric or
        /// a graph for each connection, other than `from`; it is the default in a fabric.
        to: Option<Node> = None,
        /// Name of the sending host, for queues that are fair among hosts (`cake`). Flows with the same
        /// name share the host. Default: the node of `from` in a graph, else one host per flow.
        from_host: Option<String> = None,
        /// Name of the receiving host; by default the node of `to` in a graph, else one host per flow.
        to_host: Option<String> = None,
        /// Time of the start.
        start: Duration = Duration::ZERO,
        /// Time between the starts of consecutive flows of `count`.
        stagger: Duration = Duration::ZERO,
        /// Each start is delayed by a random time up to this.
        start_jitter: Duration = Duration::ZERO,
        /// Time of the end, if before that of the run.
        stop: Option<Duration> = None,
        /// The same as a time after the start.
        duration: Option<Duration> = None,
        /// Round trip without queues and serialisation, if not the topology's (dumbbell).
        rtt: Option<Duration> [up_to_a_day()] = None,
        /// The application's traffic.
        workload: Workload = Workload::default(),
        /// Time in which the sender prepares each packet, one after the other. It chooses the next
        /// packet after the last was sent.
        send_time: Duration = Duration::ZERO,
        /// Random variation of `send_time`: uniform, plus or minus at most this.
        send_jitter: Duration = Duration::ZERO,
        /// Time in which each host processes a received packet, one after the other.
        host_time: Duration = Duration::ZERO,
        /// Socket buffer in which packets wait for `host_time`; by default unlimited.
        host_buffer: Option<Bytes> = None,
        /// Payload bytes of a segment; by default 1448, of a `udp` datagram 1472: a 1500-byte packet, or what
        /// `topology.mtu` lets pass. Of another project's stack: the largest UDP payload that it probes
        /// for, by default 1452.
        mss: Option<u32> = None,
        /// Implementation of the connection in world `kernel`: the kernel's TCP, or Weir's on the same
        /// links. No effect in other worlds.
        ends: Word<Ends> = Word(Ends::Kernel),
        /// First congestion window, in segments.
        initial_window: u32 [at_least(1)] = Config::default().initial_window => CONNECTION,
        /// Rate to request from routers instead of the initial window (RFC 4782). Bottlenecks with
        /// `feedback` of kind `quick-start` approve it in whole or in part.
        quick_start: Option<Rate> [at_least(MIN_REQUEST).because("(RFC 4782)")]
            = Config::default().quick_start => CONNECTION,
        /// Maximum sending rate, as `SO_MAX_PACING_RATE`; it paces every stack.
        max_pacing_rate: Option<Rate> [at_least(Rate::from_bits_per_sec(8))]
            = Config::default().max_pacing_rate => CONNECTION,
        /// Pace controllers without a rate, by their window over the smoothed round trip: twice that in early
        /// slow start, then 6/5 of it, as Linux below `fq`.
        pace_window: bool = Config::default().pace_window => CONNECTION,
        /// Time that a paced sender may make up for at once after a pause. It then sends what the rate allows
        /// in this time, as a token bucket of this depth.
        pacing_catch_up: Duration = Config::default().pacing_catch_up => CONNECTION,
        /// Send buffer: memory for unacknowledged segments, as in Linux. Default: unlimited, in world `kernel`
        /// 8 MiB or more.
        send_buffer: Option<Bytes> [between(MIN_SEND_BUFFER, MAX_WINDOW)]
            = Config::default().send_buffer => CONNECTION,
        /// Memory of the send buffer that a segment takes beyond its payload. The default is Linux's before 6.3.
        /// Since then it is 832 bytes, and up to 1280 in a kernel with tunnels.
        send_overhead: Bytes [at_most(MAX_SEND_OVERHEAD)] = Config::default().send_overhead => CONNECTION,
        /// Size up to which the send buffer grows with the congestion window, as Linux's does. Default: it keeps
        /// its size.
        max_send_buffer: Option<Bytes> = Config::default().max_send_buffer => CONNECTION,
        /// Receive buffer, hence the largest window offered.
        recv_buffer: Bytes = Config::default().recv_buffer => RELIABLE,
        /// Size up to which the receive buffer grows with the bytes read per round trip, as Linux's does.
        /// Default: it keeps its size.
        max_recv_buffer: Option<Bytes> = Config::default().max_recv_buffer => CONNECTION,
        /// Initial receive window, which grows by two segments for each that arrives. Default: 65535 bytes with
        /// `delayed_ack = "linux"` (Linux before 6.11), otherwise the whole buffer. A buffer with this key and
        /// `max_recv_buffer` grows as that of Linux 6.11 and later.
        initial_recv_window: Option<Bytes> = Config::default().initial_recv_window => CONNECTION,
        /// Maximum number of outstanding segments, in addition to the windows: a number, or `cwl`.
        /// `cwl` is one for every five hops of the round trip (`cwl(1/8)`: eight), where the network
        /// reports the hops. With `receiver-cwl` (`receiver-cwl(1/8)`) the receiver offers this many,
        /// with `receiver-drai` as many as the routers' indices make (`feedback = { kind = "drai" }`).
        window_limit: Option<Limit> = Config::default().window_limit.map(Limit) => CONNECTION,
        /// Offer selective acknowledgements; without them `sack` and `rack` recover as `newreno`.
        sack: bool = Config::default().sack => CONNECTION,
        /// Offer timestamps.
        timestamps: bool = Config::default().timestamps => CONNECTION,
        /// Offer explicit congestion notification; by default if the controller needs it, as `dctcp`
        /// does. Without ECN `dctcp` behaves as `reno`.
        ecn: Option<bool> = Config::default().ecn => CONNECTION,
        /// When the receiver acknowledges. Default: `off` for the textbook recovery schemes, `linux`
        /// for those of TCP.
        delayed_ack: Option<Acknowledging> = Config::default().delayed_ack.map(Acknowledging) => CONNECTION,
        /// Retransmission timeout before the first RTT sample.
        initial_rto: Duration [above(Duration::ZERO)] = Config::default().initial_rto => CONNECTION,
        /// Smallest retransmission timeout.
        min_rto: Duration = Config::default().min_rto => CONNECTION,
        /// Largest retransmission timeout.
        max_rto: Duration = Config::default().max_rto => CONNECTION,
        /// Retransmission timeout that neither adapts nor backs off.
        fixed_rto: Option<Duration> [above(Duration::ZERO)] = Config::default().fixed_rto => CONNECTION,
        /// Consecutive timeouts after which the connection fails.
        max_retransmits: u32 = Config::default().max_retransmits => CONNECTION,
        /// Time without progress after which the connection fails.
        max_wait: Option<Duration> = Config::default().max_wait => CONNECTION,
        /// Send new data on the first two duplicate acknowledgements.
        limited_transmit: bool = Config::default().limited_transmit => CONNECTION,
        /// Maximum number of segments sent at once, as with segmentation offload; 1 sends them one by
        /// one.
        gso: u32 [between(1, MAX_GSO)] = Config::default().gso => CONNECTION,
        /// Let the congestion window grow only while the sender uses it.
        cwnd_validation: bool = Config::default().cwnd_validation => CONNECTION,
        /// Return to the initial window after an idle time.
        slow_start_after_idle: bool = Config::default().slow_start_after_idle => CONNECTION,
        /// Time for which the side that closed first remembers the connection.
        time_wait: Duration = Config::default().time_wait => CONNECTION,
        /// Reaction of the sender to a notice of a broken route, see `weir list route_policies`.
        route_policy: Failure = Failure(Config::default().route_policy) => CONNECTION,
    }
}

/// What carries a flow: a reliable stack, ours or another project's, or bare datagrams.
#[derive(Clone, Debug, PartialEq)]
pub enum Protocol {
    /// Datagrams without connection, acknowledgement or repair.
    Udp,
    /// Loss recovery and congestion control.
    Reliable(Stack),
    /// A stack of another project.
    Foreign(StackName),
    /// Programs of other projects.
    Contender(ContenderName),
}

/// [`RoutePolicy`] as a scenario writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure(pub RoutePolicy);

/// With padding.
const TIMESTAMPS_LEN: u32 = 12;

/// [`DelayedAck`] as a scenario writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledging(pub DelayedAck);

/// [`WindowLimit`] as a scenario writes it: a number, or text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit(pub WindowLimit);

impl Flow {
    /// Fills in the defaults that depend on other keys, of the flow with this index: segments are no longer than
    /// the bottleneck lets pass.
    pub(crate) fn complete(&mut self, index: usize, mtu: Option<Bytes>) {
        self.name.get_or_insert_with(|| format!("flow{index}"));
        let headers = self.headers();
        let fits = |usual: u32| match mtu {
            Some(mtu) if mtu.get() > u64::from(headers) => {
                usual.min(u32::try_from(mtu.get()).unwrap_or(u32::MAX) - headers)
            }
            _ => usual,
        };
        self.mss.get_or_insert(match self.stack {
            Protocol::Udp => fits(UdpConfig::default().payload),
            Protocol::Reliable(_) => fits(Config::default().mss),
            Protocol::Contender(_) => Config::default().mss,
            Protocol::Foreign(_) => fits(u32::from(Settings::default().max_payload)),
        });
    }

    /// What is in each packet with data beyond its payload.
    pub(crate) fn headers(&self) -> u32 {
        let timestamps = if self.timestamps { TIMESTAMPS_LEN } else { 0 };
        match self.stack {
            Protocol::Reliable(_) | Protocol::Contender(_) => {
                IP_HEADER + Segment::BASE_HEADER_LEN as u32 + timestamps
            }
            Protocol::Udp | Protocol::Foreign(_) => IP_HEADER + UDP_HEADER,
        }
    }

    /// What carries its workload.
    pub(crate) fn carrier(&self) -> Carrier {
        match self.stack {
            Protocol::Udp => Carrier::Datagrams,
            Protocol::Reliable(_) => Carrier::Connection,
            Protocol::Foreign(_) => Carrier::Foreign,
            Protocol::Contender(_) => Carrier::Programs,
        }
    }

    /// The names of the `count` flows that this section stands for.
    pub fn names(&self) -> impl Iterator<Item = String> + '_ {
        let name = self.name.as_deref().unwrap_or_default();
        let several = self.count > 1;
        (0..self.count).map(move |i| if several { format!("{name}.{i}") } else { name.to_owned() })
    }
}

impl Default for Protocol {
    fn default() -> Self {
        Self::Reliable(Config::default().stack)
    }
}

impl FromStr for Protocol {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim() == "udp" {
            return Ok(Self::Udp);
        }
        if ContenderName::is_meant(text) {
            return text.parse().map(Self::Contender);
        }
        if StackName::is_hosted(text) {
            return text
                .parse()
                .map(Self::Foreign)
                .map_err(|error: StackNameError| error.to_string());
        }
        // Whether the flow is a kernel's is a question of the world, which refuses what it has not.
        let stack = Stack::parse_also_kernels(text);
        stack.map(Self::Reliable).map_err(|error| error.to_string())
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Udp => f.write_str("udp"),
            Self::Reliable(stack) => stack.fmt(f),
            Self::Foreign(stack) => stack.fmt(f),
            Self::Contender(name) => name.fmt(f),
        }
    }
}

impl Serialize for Protocol {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Protocol {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl Serialize for Failure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Failure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map(Self).map_err(D::Error::custom)
    }
}

impl Serialize for Acknowledging {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Acknowledging {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map(Self).map_err(D::Error::custom)
    }
}

impl Serialize for Limit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            WindowLimit::Segments(segments) => serializer.serialize_u32(segments),
            WindowLimit::Hops { .. } | WindowLimit::Indices => serializer.collect_str(&self.0),
        }
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LimitVisitor)
    }
}

struct LimitVisitor;

impl Visitor<'_> for LimitVisitor {
    type Value = Limit;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of segments, cwl, receiver-cwl or receiver-drai")
    }

    fn visit_i64<E: Error>(self, segments: i64) -> Result<Limit, E> {
        self.visit_str(&segments.to_string())
    }

    fn visit_u64<E: Error>(self, segments: u64) -> Result<Limit, E> {
        self.visit_str(&segments.to_string())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Limit, E> {
        text.parse().map(Limit).map_err(E::custom)
    }
}

/// A request of Quick-Start is 40 kbit/s times a power of two (RFC 4782 §3.1).
const MIN_REQUEST: Rate = Rate::from_bits_per_sec(80_000);
/// Bursts end at 64 KiB, 45 segments of 1448 bytes.
const MAX_GSO: u32 = 64;
/// What the largest window scale allows (RFC 7323 §2.3).
pub(crate) const MAX_WINDOW: Bytes = Bytes(65_535 << 14);
/// More than any kernel's.
const MAX_SEND_OVERHEAD: Bytes = Bytes(64 << 10);
/// Linux's `SOCK_MIN_SNDBUF`.
const MIN_SEND_BUFFER: Bytes = Bytes(4_608);

/// The keys of our own connections.
const CONNECTION: Only<Flow> = Only {
    owner: || "a reliable stack".to_owned(),
    holds: |flow| matches!(flow.stack, Protocol::Reliable(_)),
};

/// The keys that stacks of other projects have, too.
const RELIABLE: Only<Flow> = Only {
    owner: || "a reliable stack".to_owned(),
    holds: |flow| matches!(flow.stack, Protocol::Reliable(_) | Protocol::Foreign(_)),
};

words! {
    Ends { Kernel = "kernel", Weir = "weir" }
}

form! {
    Acknowledging => "`off`, `rfc1122`, `linux`, or `frequency(THRESHOLD,REORDERING)`",
    Failure => "a policy",
    Limit => "whole number, `cwl`, `receiver-cwl` or `receiver-drai`",
    Protocol => "`recovery/controller`, a controller, `host/controller`, `contender:NAME`, or `udp`",
}
