//! How a network is emulated.

use std::net::Ipv4Addr;

use weir_scene::{Direction, HostedLink, LinkSpec};
use weir_sockets::clock;
use weir_trace::Capture;
use weir_units::{Bytes, Duration, Instant};

use super::device::DeviceSpec;
use super::load::Load;
use super::view::IpPacket;

/// How a network is emulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The device at each end.
    pub devices: [DeviceSpec; 2],
    /// The longest packet that devices take.
    pub mtu: u16,
    /// Whose a packet is.
    pub classify: Classify,
    /// Whether the kernel hands over superpackets.
    pub offload: Offload,
    /// So long before a packet is due the router wakes up and spins, for a quarter of the time at
    /// most.
    pub spin: Duration,
    /// The packets at both ends of the first monitored link go into a file.
    pub capture: Option<Capture>,
}

/// Which flow of the run a packet belongs to. What belongs to none, as ICMP, takes the way of flow 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Classify {
    /// All packets are flow 0's.
    One,
    /// Flow `i` has port `first + i` at its receiver, which is in the second namespace; or at its sender,
    /// if that is what is connected to.
    ByPort {
        /// The port of flow 0.
        first: u16,
    },
}

/// Whether the kernel hands over TCP in superpackets of up to 64 KB, and takes them.
///
/// They are cut into the packets of the wire in between, so that queues, losses, marks and times are
/// those of packets. But a burst enters as one, packets leave up to [`QUANTUM`] late, and a receiver
/// sees what leaves together as one, as behind a network card: it acknowledges less often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Offload {
    /// Above 500 Mbit/s: if a monitored link is faster than that.
    #[default]
    Auto,
    /// Every packet by itself.
    Off,
    /// Always.
    On,
}

/// With superpackets, packets may leave this much later, so that several leave together.
pub const QUANTUM: Duration = Duration::from_micros(50);

impl Classify {
    /// The flow of a packet, out of `flows`.
    pub(super) fn flow(self, view: &IpPacket, direction: Direction, flows: u32) -> u32 {
        let (Self::ByPort { first }, Some((source, destination))) = (self, view.ports) else {
            return 0;
        };
        let (receiver, sender) = match direction {
            Direction::Forward => (destination, source),
            Direction::Reverse => (source, destination),
        };
        let flow = |port: u16| port.checked_sub(first).map(u32::from).filter(|flow| *flow < flows);
        flow(receiver).or_else(|| flow(sender)).unwrap_or(0)
    }
}

impl Offload {
    /// Whether it is wanted for these links.
    pub(super) fn is_on(self, described: &[LinkSpec], links: &[HostedLink<Load>]) -> bool {
        const SECOND: Duration = Duration::from_secs(1);
        let is_fast = |link: &HostedLink<Load>| {
            let bytes = link.link.capacity(Instant::ZERO, Instant::ZERO + SECOND);
            bytes.is_some_and(|bytes| bytes > FAST)
        };
        let mut monitored = described.iter().zip(links).filter(|(link, _)| link.monitored);
        match self {
            Self::On => true,
            Self::Off => false,
            Self::Auto => monitored.any(|(_, link)| is_fast(link)),
        }
    }
}

/// The addresses of the ends unless they are set.
pub const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 77, 0, 1), Ipv4Addr::new(10, 77, 0, 2)];

/// What 500 Mbit/s are in a second.
const FAST: Bytes = Bytes(500_000_000 / 8);

impl Default for Options {
    /// `weir0` at both ends with 10.77.0.1 and 10.77.0.2, packets of 1500 bytes, one flow, superpackets
    /// above 500 Mbit/s, and the last 60 us are spun, except where time is virtual.
    fn default() -> Self {
        let device = |address| DeviceSpec { name: "weir0".to_owned(), address, prefix: 24 };
        Self {
            devices: ADDRESSES.map(device),
            mtu: 1_500,
            classify: Classify::One,
            offload: Offload::Auto,
            spin: if clock::is_virtual() { Duration::ZERO } else { Duration::from_micros(60) },
            capture: None,
        }
    }
}
