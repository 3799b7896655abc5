//! Section `[topology.radio]`: nodes that share a channel.

use weir_net::{Limit, RedConfig};
use weir_radio::{
    AbrConfig, Access, AodvConfig, Area, Arp, Connection, DsrConfig, GridShape,
    InterfaceQueueConfig, MacConfig, Mobility, NodeId, Notices, Phy, Placement, Propagation,
    RadioConfig, RandomPlacement, RandomWaypoint, RouterConfig, Speeds,
};
use weir_scene::{Movement, Places, RadioPath, RadioSpec, Routing};
use weir_units::{Bytes, Duration, Length, Rate, Ratio, Speed};

use crate::error::Problem;
use crate::feedback::Feedback;
use crate::keys::{Word, Words, choices, form, only, section, words};
use crate::range::{above, between};
use crate::retries::Retries;

section! {
    /// Multihop wireless.
    pub struct Radio {
        /// Placement of the nodes.
        placement: PlacementKind = PlacementKind::Chain,
        /// Hops of a `chain`, or of each of the two chains of a `cross`.
        hops: u32 = 4
            => only!(placement: PlacementKind = Chain | Cross),
        /// Distance of neighbours.
        spacing: Length = Length(200_000)
            => only!(placement: PlacementKind = Chain | Cross | Grid),
        /// Columns of a `grid`.
        columns: u32 = 5
            => only!(placement: PlacementKind = Grid),
        /// Rows of a `grid`.
        rows: u32 = 5
            => only!(placement: PlacementKind = Grid),
        /// Number of nodes.
        nodes: u32 = 30
            => only!(placement: PlacementKind = Random),
        /// Width of the area.
        width: Length = Length(1_500_000)
            => only!(placement: PlacementKind = Random, mobility: MobilityKind = Waypoint),
        /// Height of the area.
        height: Length = Length(300_000)
            => only!(placement: PlacementKind = Random, mobility: MobilityKind = Waypoint),
        /// Draw again until every node reaches every other.
        connected: bool = true
            => only!(placement: PlacementKind = Random),
        /// Positions: a list of texts `x, y` in metres, or a file in the scenario's folder with one per
        /// line.
        points: Vec<String> = Vec::new()
            => only!(placement: PlacementKind = Points),
        /// Distance up to which frames can be read; by default that of ns-2's radio, 250 m.
        range: Option<Length> = None,
        /// Distance up to which frames are sensed, with a `range`; by default 2.2 times `range`.
        sense_range: Option<Length> = None,
        /// MAC model: that of `ns-2`, or of IEEE 802.11.
        mac: MacKind = MacKind::Ns2,
        /// Rate of data frames: `1mbit`, `2mbit`, `5.5mbit` or `11mbit`.
        rate: Rate = Rate::from_mbit(2)
            => only!(mac: MacKind = Ns2 | Ns2Old | Standard),
        /// Rate of control frames and broadcasts.
        basic_rate: Rate = Rate::from_mbit(1)
            => only!(mac: MacKind = Ns2 | Ns2Old | Standard),
        /// Unicast packets of at least this length are preceded by RTS.
        rts_threshold: Bytes = Bytes::ZERO,
        /// Initial contention window, in slots; by default that of the MAC, 31.
        cw_min: Option<u32> = None,
        /// Largest contention window, in slots; by default that of the MAC, 1023, or 255 for `bianchi`.
        cw_max: Option<u32> = None,
        /// Number of unanswered RTS, or of frames without RTS, after which a packet is dropped; by
        /// default 7, `unlimited` for `bianchi`.
        short_retries: Option<Retries> = None,
        /// Number of unanswered data frames after a CTS at which a packet is dropped; by default 4,
        /// `unlimited` for `bianchi`.
        long_retries: Option<Retries> = None,
        /// Gap after a frame that could not be read; by default 364us, for `bianchi` 128us, its DIFS.
        eifs: Option<Duration> = None,
        /// Length of each node's interface queue, in packets.
        queue: u32 [between(1, LONGEST_QUEUE)] = 50,
        /// RED on this queue: mark or drop packets of flows early, as in `{ ecn = true }`; by default
        /// off.
        red: Option<RadioRed> = None,
        /// Resolve the address of a neighbour (ARP) before the first frame to it.
        arp: bool = true,
        /// Data frames damaged per transmission; the MAC repeats them.
        frame_error: Ratio = Ratio::ZERO,
        /// Packets lost per hop although their frame arrived; only the transport repeats them.
        packet_error: Ratio = Ratio::ZERO,
        /// Routing protocol.
        routing: RoutingKind = RoutingKind::Aodv,
        /// Constants of the protocol.
        constants: ConstantsKind = ConstantsKind::Ns2
            => only!(routing: RoutingKind = Aodv),
        /// Notices of broken routes from routers to transports.
        notices: Word<Notices> = Word(Notices::None)
            => only!(routing: RoutingKind = Aodv | Dsr | Abr),
        /// Feedback of nodes to the senders of forwarded packets.
        feedback: Option<Feedback> = None,
        /// Movement of the nodes.
        mobility: MobilityKind = MobilityKind::None,
        /// Minimum speed of a node.
        min_speed: Speed = Speed(1_000)
            => only!(mobility: MobilityKind = Waypoint),
        /// Maximum speed of a node.
        max_speed: Speed = Speed(10_000)
            => only!(mobility: MobilityKind = Waypoint),
        /// Time at each waypoint.
        pause: Duration = Duration::ZERO
            => only!(mobility: MobilityKind = Waypoint),
        /// Movements: a file in the scenario's folder, in ns-2's `setdest` format or CSV (`t, node, x,
        /// y`), or its lines.
        trace: Vec<String> = Vec::new()
            => only!(mobility: MobilityKind = Trace),
    }
}

section! {
    /// RED of an interface queue. Thresholds are Floyd and Jacobson's; the weight, for some fifty packets, is ours.
    pub struct RadioRed {
        /// Average queue length, in packets, below which there are no signals.
        min: u32 = 5,
        /// Average queue length, in packets, from which every packet is signalled, or with `gentle` the
        /// slope steepens.
        max: u32 = 15,
        /// Probability of a signal when the average reaches `max`.
        probability: Ratio = Ratio::from_percent(10),
        /// Weight of each packet in the average.
        weight: Ratio [above(Ratio::ZERO)] = Ratio::from_percent(2),
        /// Let the probability rise to 1 between `max` and twice `max`.
        gentle: bool = true,
        /// Mark packets that are capable of ECN; others are dropped.
        ecn: bool = true,
    }
}

choices! {
    /// Placement of the nodes.
    pub enum PlacementKind {
        Chain = "chain", "In a row; flows from its first node to its last.";
        Cross = "cross", "Two rows that share the node in the middle.";
        Grid = "grid", "In rows and columns.";
        Random = "random", "Anywhere in the area.";
        Points = "points", "Where the scenario says.";
    }
}

choices! {
    /// Whose MAC.
    pub enum MacKind {
        Ns2 = "ns-2", "ns-2.35's.";
        Ns2Old = "ns-2-old", "ns-2's of before 2006, whose first wait does not freeze.";
        Standard = "standard", "IEEE 802.11-1999's.";
        Bianchi = "bianchi", "The same with the parameters of Bianchi's paper: FHSS, and no bound on retries.";
    }
}

choices! {
    /// Routing protocols.
    pub enum RoutingKind {
        Static = "static", "Shortest paths, known from the beginning.";
        Aodv = "aodv", "RFC 3561.";
        Dsr = "dsr", "RFC 4728.";
        Abr = "abr", "Associativity-based routing (Toh 1997).";
    }
}

choices! {
    /// Whose constants.
    pub enum ConstantsKind {
        Ns2 = "ns-2", "ns-2.35's.";
        Rfc = "rfc", "The RFC's.";
    }
}

words! {
    Notices {
        None = "none",
        Rfn = "rfn",
        Elfn = "elfn",
        Unreachable = "unreachable",
        Bus = "bus",
    }
}

choices! {
    /// Movement of the nodes.
    pub enum MobilityKind {
        None = "none", "Not at all.";
        Waypoint = "waypoint", "Random waypoint, in its steady state from the start.";
        Trace = "trace", "As a trace says.";
    }
}

impl Radio {
    /// How many nodes there are, as far as the description makes sense.
    pub(crate) fn nodes(&self) -> usize {
        self.build().map_or(0, |spec| spec.nodes())
    }

    /// The network that it describes, as yet without flows.
    ///
    /// # Errors
    /// For the first key that cannot be as it is.
    pub(crate) fn build(&self) -> Result<RadioSpec, Problem> {
        Ok(RadioSpec {
            config: self.config()?,
            places: self.places()?,
            movement: self.movement()?,
            routing: self.routing(),
            feedback: self.feedback.as_ref().map(Feedback::config),
            paths: Vec::new(),
        })
    }

    /// The ends of the flow with this number where it names none: the placement's own, in turn.
    pub(crate) fn usual_path(&self, spec: &RadioSpec, flow: usize) -> RadioPath {
        let ends = match (&spec.places, &spec.movement) {
            // A trace has places of its own.
            (Places::Fixed(placement), Movement::None | Movement::Waypoint(_)) => {
                placement.ends.as_slice()
            }
            _ => &[],
        };
        let last = NodeId(spec.nodes().saturating_sub(1) as u16);
        let (from, to) = match ends.len() {
            0 => (NodeId(0), last),
            count => ends[flow % count],
        };
        RadioPath { from, to }
    }

    fn config(&self) -> Result<RadioConfig, Problem> {
        Ok(RadioConfig {
            propagation: self.propagation()?,
            phy: self.phy()?,
            mac: self.mac(),
            queue: InterfaceQueueConfig {
                packets: self.queue as usize,
                red: self.red.as_ref().map(RadioRed::config).transpose()?,
                ..InterfaceQueueConfig::default()
            },
            arp: if self.arp { Arp::Asked } else { Arp::Known },
            frame_error: self.frame_error,
            packet_loss: self.packet_error,
            ..RadioConfig::default()
        })
    }

    fn phy(&self) -> Result<Phy, Problem> {
        let usual = match self.mac {
            MacKind::Bianchi => Phy::bianchi_fhss(),
            _ => {
                let dsss = Phy::dsss(self.rate)
                    .map_err(|error| problem("rate", self.rate, error.allowed))?;
                Phy { basic: self.basic_rate, ..dsss }
            }
        };
        let (cw_min, cw_max) =
            (self.cw_min.unwrap_or(usual.cw_min), self.cw_max.unwrap_or(usual.cw_max));
        if cw_min == 0 || cw_min > cw_max || cw_max > WIDEST_WINDOW {
            // The one that was written is the one to change.
            let (name, value) =
                if self.cw_min.is_some() { ("cw_min", cw_min) } else { ("cw_max", cw_max) };
            let allowed = format!("1 <= cw_min ({cw_min}) <= cw_max ({cw_max}) <= {WIDEST_WINDOW}");
            return Err(problem(name, value, &allowed));
        }
        let eifs = self.eifs.unwrap_or(usual.eifs);
        if eifs < usual.difs || eifs > LONGEST_GAP {
            let allowed = format!("{} (DIFS) to {LONGEST_GAP}", usual.difs);
            return Err(problem("eifs", eifs, &allowed));
        }
        Ok(Phy { cw_min, cw_max, eifs, ..usual })
    }

    fn mac(&self) -> MacConfig {
        let access = match self.mac {
            MacKind::Ns2 => Access::Ns2,
            MacKind::Ns2Old => Access::Ns2Unfrozen,
            MacKind::Standard | MacKind::Bianchi => Access::Standard,
        };
        let usual = MacConfig::default();
        let limit = |own: Option<Retries>, usual| match own {
            Some(Retries(limit)) => limit,
            None if self.mac == MacKind::Bianchi => None,
            None => usual,
        };
        MacConfig {
            access,
            rts_threshold: self.rts_threshold,
            short_retries: limit(self.short_retries, usual.short_retries),
            long_retries: limit(self.long_retries, usual.long_retries),
        }
    }

    fn propagation(&self) -> Result<Propagation, Problem> {
        let Some(Length(receive_mm)) = self.range else {
            return match self.sense_range {
                Some(sense) => Err(problem("sense_range", sense, "it needs a `range` as well")),
                None => Ok(Propagation::TwoRayGround),
            };
        };
        let sense_mm = self.sense_range.map_or(receive_mm.saturating_mul(11) / 5, |Length(mm)| mm);
        if receive_mm == 0 || sense_mm < receive_mm || sense_mm > FARTHEST_MM {
            let allowed = "0 < range <= sense_range <= 2km";
            return Err(problem("range", Length(receive_mm), allowed));
        }
        Ok(Propagation::Range { receive_mm, sense_mm })
    }

    fn places(&self) -> Result<Places, Problem> {
        let small = |key: &'static str, value: u32| {
            u16::try_from(value).map_err(|_| problem(key, value, "at most 1024 nodes"))
        };
        let spacing_mm = self.spacing.0;
        let placed = match self.placement {
            PlacementKind::Chain => Placement::chain(small("hops", self.hops)?, spacing_mm),
            PlacementKind::Cross => Placement::cross(small("hops", self.hops)?, spacing_mm),
            PlacementKind::Grid => {
                let columns = small("columns", self.columns)?;
                let shape = GridShape { columns, rows: small("rows", self.rows)? };
                Placement::grid(shape, spacing_mm)
            }
            PlacementKind::Points => {
                return Placement::parse(&self.points.join("\n"))
                    .map(Places::Fixed)
                    .map_err(|error| Problem::new(key("points"), error.to_string()));
            }
            PlacementKind::Random => {
                let nodes = small("nodes", self.nodes)?;
                let connection = if self.connected {
                    Connection::Within(self.reach_mm())
                } else {
                    Connection::Any
                };
                return Ok(Places::Random(RandomPlacement {
                    nodes,
                    area: self.area(),
                    connection,
                }));
            }
        };
        placed.map(Places::Fixed).map_err(|error| Problem::new(key("placement"), error.to_string()))
    }

    fn movement(&self) -> Result<Movement, Problem> {
        match self.mobility {
            MobilityKind::None => Ok(Movement::None),
            MobilityKind::Waypoint => {
                let (Speed(slowest), Speed(fastest)) = (self.min_speed, self.max_speed);
                if slowest == 0 || fastest < slowest {
                    let allowed = "above 0m/s, and at most max_speed";
                    return Err(problem("min_speed", self.min_speed, allowed));
                }
                let speeds = Speeds { slowest, fastest };
                Ok(Movement::Waypoint(RandomWaypoint {
                    area: self.area(),
                    speeds,
                    pause: self.pause,
                }))
            }
            MobilityKind::Trace => {
                let text = self.trace.join("\n");
                let read = if text.contains("$node_") {
                    Mobility::parse_setdest(&text)
                } else {
                    Mobility::parse_csv(&text)
                };
                read.map(Movement::Trace)
                    .map_err(|error| Problem::new(key("trace"), error.to_string()))
            }
        }
    }

    fn routing(&self) -> Routing {
        let notices = self.notices.0;
        match self.routing {
            RoutingKind::Static => Routing::Shortest(self.reach_mm()),
            RoutingKind::Aodv => {
                let constants = match self.constants {
                    ConstantsKind::Ns2 => AodvConfig::ns2(),
                    ConstantsKind::Rfc => AodvConfig::rfc3561(),
                };
                Routing::Protocol(RouterConfig::Aodv(AodvConfig { notices, ..constants }))
            }
            RoutingKind::Dsr => {
                Routing::Protocol(RouterConfig::Dsr(DsrConfig { notices, ..DsrConfig::default() }))
            }
            RoutingKind::Abr => {
                Routing::Protocol(RouterConfig::Abr(AbrConfig { notices, ..AbrConfig::default() }))
            }
        }
    }

    fn area(&self) -> Area {
        Area { width_mm: self.width.0, height_mm: self.height.0 }
    }

    /// Up to where frames can be read.
    fn reach_mm(&self) -> u64 {
        self.range.map_or(USUAL_REACH_MM, |Length(mm)| mm)
    }
}

impl RadioRed {
    fn config(&self) -> Result<RedConfig, Problem> {
        if self.min == 0 || self.min >= self.max || self.max > LONGEST_QUEUE {
            return Err(problem("red.min", self.min, "1 <= min < max <= 65536"));
        }
        Ok(RedConfig {
            limit: Limit::Infinite,
            min: Limit::Packets(u64::from(self.min)),
            max: Limit::Packets(u64::from(self.max)),
            probability: self.probability,
            weight: self.weight,
            gentle: self.gentle,
            ecn: self.ecn,
        })
    }
}

fn key(name: &str) -> String {
    format!("topology.radio.{name}")
}

fn problem(name: &str, value: impl ToString, allowed: &str) -> Problem {
    Problem::new(key(name), format!("{} is not allowed; {allowed}", value.to_string()))
}

/// Of ns-2's radio.
const USUAL_REACH_MM: u64 = 250_000;
const FARTHEST_MM: u64 = 2_000_000;
const LONGEST_QUEUE: u32 = 65_536;
const WIDEST_WINDOW: u32 = 65_535;
const LONGEST_GAP: Duration = Duration::from_millis(10);

form! {
    Vec<String> => "list of lines",
    Radio => "section",
    RadioRed => "section",
}
