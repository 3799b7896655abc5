//! Section `[topology.radio]`: nodes that share a channel.

use serde::{Deserialize, Serialize};
use weir_units::{Bytes, Duration, Length, Rate, Ratio, Speed};

use crate::keys::{form, section};

section! {
    /// Multihop wireless. Which keys apply depends on `placement`, `routing` and `mobility`.
    pub struct Radio {
        /// Where nodes are.
        placement: PlacementKind = PlacementKind::Chain,
        /// Hops of a `chain`, or of each of the two chains of a `cross`.
        hops: u32 = 4,
        /// Distance of neighbours (`chain`, `cross`, `grid`).
        spacing: Length = Length(200_000),
        /// Columns of a `grid`.
        columns: u32 = 5,
        /// Rows of a `grid`.
        rows: u32 = 5,
        /// Number of nodes (`random`).
        nodes: u32 = 30,
        /// Width of the area (`random`, and of all that move).
        width: Length = Length(1_500_000),
        /// Height of the area.
        height: Length = Length(300_000),
        /// Draw again until every node reaches every other (`random`).
        connected: bool = true,
        /// Places of `points`: a list of `[x, y]` in metres, or a file with one pair per line, found
        /// beside the scenario.
        points: Vec<[f64; 2]> = Vec::new(),
        /// Whose MAC: `ns-2`'s, or IEEE 802.11's.
        mac: MacKind = MacKind::Ns2,
        /// Rate of data frames: `1mbit`, `2mbit`, `5.5mbit` or `11mbit`.
        rate: Rate = Rate::from_mbit(2),
        /// Rate of control frames and broadcasts.
        basic_rate: Rate = Rate::from_mbit(1),
        /// Unicast frames longer than this ask with RTS before they are sent.
        rts_threshold: Bytes = Bytes::ZERO,
        /// Packets that wait for the MAC at each node.
        queue: u32 = 50,
        /// Ask for the address of a neighbour before the first frame to it.
        arp: bool = true,
        /// Data frames that arrive damaged, each time they are sent: the MAC repeats them.
        frame_error: Ratio = Ratio::ZERO,
        /// Packets lost on each hop although their frame arrived: nothing but the transport repeats them.
        packet_error: Ratio = Ratio::ZERO,
        /// Routing protocol.
        routing: RoutingKind = RoutingKind::Aodv,
        /// Whose constants `aodv` has.
        constants: ConstantsKind = ConstantsKind::Ns2,
        /// What routers tell transports of broken routes.
        notices: NoticeKind = NoticeKind::None,
        /// How nodes move.
        mobility: MobilityKind = MobilityKind::None,
        /// Slowest that a node moves (`waypoint`).
        min_speed: Speed = Speed(1_000),
        /// Fastest that a node moves (`waypoint`).
        max_speed: Speed = Speed(10_000),
        /// Time at each waypoint.
        pause: Duration = Duration::ZERO,
        /// Movements (`trace`): the text of a file in ns-2's `setdest` format or CSV, found beside the
        /// scenario.
        trace: String = String::new(),
    }
}

/// Where nodes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlacementKind {
    /// In a row; flows from its first node to its last.
    Chain,
    /// Two rows that share the node in the middle.
    Cross,
    /// In rows and columns.
    Grid,
    /// Anywhere in the area.
    Random,
    /// Where the scenario says.
    Points,
}

/// Whose MAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MacKind {
    /// ns-2.35's.
    #[serde(rename = "ns-2")]
    Ns2,
    /// ns-2's of before 2006, whose first wait does not freeze.
    #[serde(rename = "ns-2-old")]
    Ns2Old,
    /// IEEE 802.11-1999's.
    Standard,
    /// The same with the parameters of Bianchi's paper: FHSS, and no bound on retries.
    Bianchi,
}

/// Routing protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RoutingKind {
    /// Shortest paths, known from the beginning.
    Static,
    /// RFC 3561.
    Aodv,
    /// RFC 4728.
    Dsr,
    /// Associativity-based routing.
    Abr,
}

/// Whose constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConstantsKind {
    /// ns-2.35's.
    #[serde(rename = "ns-2")]
    Ns2,
    /// The RFC's.
    Rfc,
}

/// What routers tell transports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoticeKind {
    /// Nothing.
    None,
    /// TCP-F's route failure and re-establishment notifications.
    Rfn,
    /// Explicit link failure notifications.
    Elfn,
    /// ICMP's destination unreachable.
    Unreachable,
    /// TCP-BuS's ERDN and ERSN.
    Bus,
}

/// How nodes move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MobilityKind {
    /// Not at all.
    None,
    /// Random waypoint, in its steady state from the start.
    Waypoint,
    /// As a trace says.
    Trace,
}

form! {
    PlacementKind => "`chain`, `cross`, `grid`, `random` or `points`",
    MacKind => "`ns-2`, `ns-2-old`, `standard` or `bianchi`",
    RoutingKind => "`static`, `aodv`, `dsr` or `abr`",
    ConstantsKind => "`ns-2` or `rfc`",
    NoticeKind => "`none`, `rfn`, `elfn`, `unreachable` or `bus`",
    MobilityKind => "`none`, `waypoint` or `trace`",
    Vec<[f64; 2]> => "list of `[x, y]`",
    Radio => "section",
}
