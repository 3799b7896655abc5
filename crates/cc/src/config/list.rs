//! The one list of controllers: for each its name, what it is, how it is written, its parameters, how it is
//! made.
//!
//! A new one is an entry here, next to its file. A parameter has the text in front of its value, the field
//! that holds it, and its words, of which the first is the default; or an example, what is allowed, and how
//! the value is read.

use weir_units::{Bytes, Duration};

use super::describe::{
    Description, Parameter, controllers, decimal, levels, micros, millis, rate, segments, whole,
};
use super::{CatalogueEntry, CcBuildError};
use crate::careful_resume::CarefulResume;
use crate::modified::Modified;
use crate::{
    AntiEcn, Bbr, Bbr2Ecn, Bbr3Text, Bic, BicShape, BoundedBbr, Cdg, CongestionController, Copa,
    CopaMode, Cubic, CubicShape, Dcqcn, DcqcnShape, DcqcnStart, Dctcp, Decimal, Decrease, Fixed,
    FrReduce, Friendliness, Gain, Highspeed, Hpcc, HpccShape, Htcp, Hybla, Hystart, Idle, Illinois,
    Increase, KernelName, Ledbat, Lp, Modifiers, Muzha, Muzha2, MuzhaExit, MuzhaOptions, MuzhaRto,
    MuzhaTable, MuzhaUpdate, Nv, Offsets, Overflow, Parametric, Prague, Rcp, Reno, Reno002,
    SavedPath, Scalable, Script, Swift, SwiftTarget, Timely, TimelyShape, Vegas, VegasBounds, Veno,
    Westwood, Xcp, Yeah,
};

controllers! {
    plain {
        /// A fixed window in segments; without a number only the receiver bounds the sender.
        None {
            /// The window in segments.
            window: Option<u64> = None,
        } = "none", "a fixed window in segments; unbounded without a number",
            ["none", "none(1)", "none(30)"], takes [
                "" window { "window", "a whole number of segments from 1 to 1000000", |text| segments(text, 1).map(Some) },
            ],
            |start, mss| Fixed::new(window, mss);
        /// RFC 5681 as Linux counts it.
        Reno = "reno", "additive increase, halving on loss (RFC 5681) as Linux counts",
            ["reno", "reno(slow_start=search)", "reno(increase=rate-limited)"], takes [],
            |start, mss| Reno::new(start);
        /// The state machine of a course report.
        Reno002 {
            /// The first threshold in segments; infinite without.
            ssthresh: Option<u64> = None,
        } = "reno-002", "Reno as a course report prints it: losses in slow start wait for the timer",
            ["reno-002", "reno-002(ssthresh=4)"], takes [
                "ssthresh=" ssthresh { "segments", "a whole number of segments from 2 to 1000000", |text| segments(text, 2).map(Some) },
            ],
            |start, mss| Reno002::new(start, ssthresh.map(|segments| mss * segments));
        /// RFC 9438 as Linux computes it.
        Cubic {
            /// How slow start ends before it loses.
            hystart: Hystart = Hystart::Linux,
            /// How it grows and gives way.
            shape: CubicShape = CubicShape::LINUX,
        } = "cubic", "CUBIC (RFC 9438) as Linux 6.1 computes it",
            ["cubic", "cubic(hystart=plus-plus)", "cubic(hystart=off)", "cubic(friendliness=off)",
            "cubic(beta=0.8,c=0.2)", "cubic(slow_start=search)"], takes [
                "hystart=" hystart { Hystart: Linux = "linux" | PlusPlus = "plus-plus" | Off = "off" },
                "friendliness=" shape.friendliness { Friendliness: On = "on" | Off = "off" },
                "beta=" shape.beta { "0.7", "a number from 0.001 to 0.999, three decimals at most", |text| decimal(text, 1..=999) },
                "c=" shape.c { "0.4", "a number from 0.001 to 10, three decimals at most", |text| decimal(text, 1..=10_000) },
                "idle=" shape.idle { Idle: Epoch = "epoch" | Recovery = "recovery" },
            ],
            |start, mss| Cubic::new(start, hystart, shape);
        /// BBR version 1 as Linux has it.
        Bbr {
            /// How it responds to a queue that overflows.
            overflow: Overflow = Overflow::Linux,
        } = "bbr", "BBR version 1 as in Linux 6.1: paced at the measured bottleneck rate",
            ["bbr", "bbr(overflow=avoid)"], takes [
                "overflow=" overflow { Overflow: Linux = "linux" | Avoid = "avoid" },
            ],
            |start, mss| Bbr::new(mss, start, overflow);
        /// BBR version 2 as its alpha release for Linux has it.
        Bbr2 {
            /// Whether it uses marks of routers that mark as for DCTCP.
            ecn: Bbr2Ecn = Bbr2Ecn::Off,
        } = "bbr2", "BBR version 2 (Google's alpha release): bounded by what lost over 2 %, probes every 2 to 3 s",
            ["bbr2", "bbr2(ecn=on)"], takes [
                "ecn=" ecn { Bbr2Ecn: Off = "off" | On = "on" },
            ],
            |start, mss| BoundedBbr::version_2(mss, start, ecn);
        /// BBR version 3.
        Bbr3 {
            /// The text of the draft that it follows.
            text: Bbr3Text = Bbr3Text::Commit007dbe1f,
        } = "bbr3", "BBR version 3 (draft-ietf-ccwg-bbr): bounded by what probes found to lose over 2 %",
            ["bbr3", "bbr3(text=06)"], takes [
                "text=" text { Bbr3Text: Commit007dbe1f = "007dbe1f" | Draft06 = "06" },
            ],
            |start, mss| BoundedBbr::version_3(mss, start, text);
        /// Vegas as Linux has it.
        Vegas {
            /// Segments in the queue by which it acts.
            bounds: VegasBounds = VegasBounds::LINUX,
        } = "vegas", "keeps 2 to 4 segments in the queue, by delay",
            ["vegas", "vegas(alpha=1,beta=3)"], takes [
                "alpha=" bounds.alpha { "2", "a whole number from 1 to 1000", |text| whole(text, 1..=1_000) },
                "beta=" bounds.beta { "4", "a whole number from 1 to 1000", |text| whole(text, 1..=1_000) },
                "gamma=" bounds.gamma { "1", "a whole number from 1 to 1000", |text| whole(text, 1..=1_000) },
            ],
            |start, mss| Vegas::new(start, bounds);
        /// Veno as Linux has it.
        Veno = "veno", "Reno that gives way less to losses without a queue",
            ["veno"], takes [],
            |start, mss| Veno::new(start);
        /// Westwood+ as Linux has it.
        Westwood {
            /// The shortest time of a sample of the bandwidth.
            interval: Duration = WESTWOOD_INTERVAL,
            /// The weight of a new sample.
            gain: Gain = Gain::EIGHTH,
        } = "westwood", "Westwood+: Reno that falls back to the measured bandwidth times the smallest RTT",
            ["westwood", "westwood(gain=1/2)"], takes [
                "interval=" interval { "50ms", "whole milliseconds from 1ms to 1000ms", |text| millis(text, 1..=1_000) },
                "gain=" gain { "1/8", "1, 1/2, 1/4 and so on down to 1/1024", |text| text.parse().ok() },
            ],
            |start, mss| Westwood::new(start, interval, gain);
        /// Illinois as Linux has it.
        Illinois = "illinois", "Reno with steps by delay: up to 10 segments per round trip, an eighth to a half on loss",
            ["illinois"], takes [],
            |start, mss| Illinois::new(start);
        /// H-TCP as Linux has it.
        Htcp = "htcp", "H-TCP: grows faster the longer nothing was lost, gives way by the queue's share of the RTT",
            ["htcp"], takes [],
            |start, mss| Htcp::new(start);
        /// RFC 3649 as Linux has it.
        Highspeed = "highspeed", "HighSpeed TCP (RFC 3649): larger steps and smaller reductions, the larger the window",
            ["highspeed"], takes [],
            |start, mss| Highspeed::new(start);
        /// Scalable TCP as Linux has it.
        Scalable = "scalable", "Scalable TCP: grows by a hundredth per round trip, gives way by an eighth",
            ["scalable"], takes [],
            |start, mss| Scalable::new(start);
        /// BIC as Linux has it.
        Bic {
            /// How it grows and gives way.
            shape: BicShape = BicShape::LINUX,
        } = "bic", "binary search for the window of the last loss; CUBIC's predecessor",
            ["bic", "bic(beta=0.875,max-increment=32)"], takes [
                "beta=" shape.beta { "0.8", "a number from 0.001 to 0.999, three decimals at most", |text| decimal(text, 1..=999) },
                "low-window=" shape.low_window { "14", "a whole number from 0 to 1000", |text| whole(text, 0..=1_000) },
                "max-increment=" shape.max_increment { "16", "a whole number from 1 to 1000", |text| whole(text, 1..=1_000) },
                "smooth-part=" shape.smooth_part { "20", "a whole number from 1 to 1000", |text| whole(text, 1..=1_000) },
            ],
            |start, mss| Bic::new(start, shape);
        /// Hybla as Linux has it.
        Hybla {
            /// The RTT of the path as which it grows.
            rtt0: Duration = HYBLA_REFERENCE,
        } = "hybla", "grows as over a path of 25 ms, whatever the RTT",
            ["hybla", "hybla(rtt0=50ms)"], takes [
                "rtt0=" rtt0 { "25ms", "whole milliseconds from 1ms to 1000ms", |text| millis(text, 1..=1_000) },
            ],
            |start, mss| Hybla::new(start, rtt0);
        /// YeAH-TCP as Linux has it.
        Yeah = "yeah", "YeAH-TCP: Scalable TCP while the queue is short, Reno otherwise; drains the queue",
            ["yeah"], takes [],
            |start, mss| Yeah::new(start);
        /// TCP-LP as Linux has it.
        Lp {
            /// What the peer adds to its timestamps.
            offsets: Offsets = Offsets::Random,
        } = "lp", "TCP-LP: Reno that gives way to others by one-way delay; as in Linux, mostly Reno",
            ["lp", "lp(offsets=none)"], takes [
                "offsets=" offsets { Offsets: Random = "random" | None = "none" },
            ],
            |start, mss| Lp::new(start, offsets);
        /// TCP-NV as Linux has it.
        Nv = "nv", "TCP-NV: keeps about ten segments in the queue, by rate and delay; for data centers",
            ["nv"], takes [],
            |start, mss| Nv::new(start);
        /// CAIA delay gradient as Linux has it.
        Cdg = "cdg", "CAIA delay gradient: backs off at random, the likelier the steeper delays rise",
            ["cdg"], takes [],
            |start, mss| Cdg::new(start);
        /// RFC 8257 as Linux computes it.
        Dctcp {
            /// The gain of its filter.
            gain: Gain = Gain::default(),
            /// The share of marks that it believes in at first, at most 1.
            alpha: Decimal = Decimal::ONE,
        } = "dctcp", "Data Center TCP (RFC 8257): gives way by the share of ECN marks",
            ["dctcp", "dctcp(g=1/4,alpha0=0)"], takes all [
                "g=" gain { "1/16", "1, 1/2, 1/4 and so on down to 1/1024", |text| text.parse().ok() },
                "alpha0=" alpha { "1", "a share from 0 to 1, three decimals at most", |text| decimal(text, 0..=1_000) },
            ],
            |start, mss| Dctcp::new(start, gain, alpha);
        /// Swift.
        Swift {
            /// What the delay is to be, and how the window follows.
            target: SwiftTarget = SwiftTarget::DEFAULT,
        } = "swift", "Swift: keeps the round trip at a target of base + hops * hop, more for small windows; for data centers",
            ["swift", "swift(base=150ms,ai=2)"], takes [
                "base=" target.base { "25us", "a time from 1us to 10s", |text| micros(text, 1..=10_000_000) },
                "hops=" target.hops { "0", "a whole number from 0 to 255", |text| whole(text, 0..=255) },
                "hop=" target.hop { "1us", "a time from 0us to 10s", |text| micros(text, 0..=10_000_000) },
                "beta=" target.beta { "0.8", "a share from 0.001 to 1, three decimals at most", |text| decimal(text, 1..=1_000) },
                "max_mdf=" target.max_mdf { "0.5", "a share from 0.001 to 0.999, three decimals at most", |text| decimal(text, 1..=999) },
                "ai=" target.ai { "1", "a number from 0.001 to 1000, three decimals at most", |text| decimal(text, 1..=1_000_000) },
            ],
            |start, mss| Swift::new(mss, start, target);
        /// TIMELY.
        Timely {
            /// The delays that it goes by, and its steps.
            shape: TimelyShape = TimelyShape::DEFAULT,
        } = "timely", "TIMELY: a rate that follows the gradient of the round trip; for data centers",
            ["timely", "timely(low=120ms,high=200ms,min=100ms,add=1mbit)"], takes [
                "low=" shape.low { "50us", "a time from 1us to 10s", |text| micros(text, 1..=10_000_000) },
                "high=" shape.high { "500us", "a time from 1us to 10s", |text| micros(text, 1..=10_000_000) },
                "min=" shape.min { "20us", "a time from 1us to 10s", |text| micros(text, 1..=10_000_000) },
                "alpha=" shape.alpha { "0.875", "a share from 0.001 to 1, three decimals at most", |text| decimal(text, 1..=1_000) },
                "beta=" shape.beta { "0.8", "a share from 0.001 to 1, three decimals at most", |text| decimal(text, 1..=1_000) },
                "add=" shape.add { "100mbit", "a rate from 1mbit to 1000gbit", rate },
            ],
            |start, mss| Timely::new(start, shape);
        /// DCQCN.
        Dcqcn {
            /// Its times, gains and rates.
            shape: DcqcnShape = DcqcnShape::DEFAULT,
        } = "dcqcn", "DCQCN: a rate that gives way to ECN marks at most every 50 us, as RDMA cards do; for data centers",
            ["dcqcn", "dcqcn(timer=55us,start=line,line=10mbit)"], takes [
                "cnp=" shape.cnp { "50us", "a time from 1us to 10s", |text| micros(text, 1..=10_000_000) },
                "interval=" shape.interval { "1us", "a time from 1us to 10s", |text| micros(text, 1..=10_000_000) },
                "g=" shape.g { "1/256", "1, 1/2, 1/4 and so on down to 1/1024", |text| text.parse().ok() },
                "timer=" shape.timer { "300us", "a time from 1us to 10s", |text| micros(text, 1..=10_000_000) },
                "ai=" shape.ai { "20mbit", "a rate from 1mbit to 1000gbit", rate },
                "hai=" shape.hai { "200mbit", "a rate from 1mbit to 1000gbit", rate },
                "min=" shape.min { "1mbit", "a rate from 1mbit to 1000gbit", rate },
                "line=" shape.line { "100gbit", "a rate from 1mbit to 1000gbit", rate },
                "start=" shape.start { DcqcnStart: Slow = "slow" | Line = "line" },
            ],
            |start, mss| Dcqcn::new(start, shape);
        /// Prague.
        Prague {
            /// The round trip as whose flows those of shorter ones behave; zero for none.
            rtt: Duration = PRAGUE_RTT,
        } = "prague", "Prague (L4S): as DCTCP, paced, on ECT(1), independent of the RTT below 25 ms",
            ["prague", "prague(rtt=0ms)"], takes [
                "rtt=" rtt { "25ms", "whole milliseconds from 0ms to 100ms", |text| millis(text, 0..=100) },
            ],
            |start, mss| Prague::new(start, rtt);
        /// RFC 6817.
        Ledbat {
            /// The queueing delay that it adds, from 1 to 100 ms.
            target: Duration = LEDBAT_TARGET,
        } = "ledbat", "LEDBAT (RFC 6817): adds a target of delay at most, gives way to all others",
            ["ledbat", "ledbat(target=25ms)"], takes [
                "target=" target { "100ms", "whole milliseconds from 1ms to 100ms", |text| millis(text, 1..=100) },
            ],
            |start, mss| Ledbat::new(mss, target);
        /// Copa.
        Copa {
            /// One over the packets that it keeps in the queue, above 0.
            delta: Decimal = Decimal::HALF,
            /// Whether it competes with those that fill queues.
            mode: CopaMode = CopaMode::Auto,
        } = "copa", "Copa: keeps 1/delta packets in the queue, by delay; competes where others fill it",
            ["copa", "copa(delta=0.1)", "copa(mode=default)"], takes [
                "delta=" delta { "0.5", "a number from 0.001 to 1, three decimals at most", |text| decimal(text, 1..=1_000) },
                "mode=" mode { CopaMode: Auto = "auto" | Default = "default" },
            ],
            |start, mss| Copa::new(start, delta, mode);
    }
    linear {
        "aimd", "adds a segments per round trip, multiplies by b on loss",
            ["aimd", "aimd(1,0.5)", "aimd(0.25,0.9)"];
        "aiad", "adds a segments per round trip, subtracts b segments on loss",
            ["aiad", "aiad(2,1)"];
        "mimd", "multiplies by a per round trip, by b on loss",
            ["mimd", "mimd(1.01,0.875)"];
        "miad", "multiplies by a per round trip, subtracts b segments on loss",
            ["miad", "miad(1.25,2)"];
    }
    plain {
        /// A window that follows the routers' indices: TCP Muzha.
        Muzha {
            /// What an index does.
            table: MuzhaTable = MuzhaTable::Levels(DEFAULT_LEVELS),
            /// What the source leaves open.
            options: MuzhaOptions = MuzhaOptions::default(),
        } = "muzha", "TCP Muzha: the window follows the smallest index (DRAI) of the routers on the path",
            ["muzha", "muzha(update=per-ack-smooth)", "muzha(levels=7,fr-reduce=by-index,rto=half)"], takes [
                "update=" options.update { MuzhaUpdate: PerRtt = "per-rtt" | PerAckSmooth = "per-ack-smooth" | PerAckLiteral = "per-ack-literal" },
                "levels=" table { "3|4|5|6|7", "a whole number from 3 to 7", levels },
                "fr-reduce=" options.reduce { FrReduce: Half = "half" | ByIndex = "by-index" | None = "none" },
                "rto=" options.timeout { MuzhaRto: One = "one" | Half = "half" },
                "exit=" options.exit { MuzhaExit: Full = "full" | Any = "any" },
            ],
            |start, mss| Muzha::new(mss, start, table, options);
        /// NewReno under the routers' indices: TCP Muzha's second version.
        Muzha2 = "muzha2", "TCP Muzha's second version: NewReno that the routers' index lets grow, holds or shrinks",
            ["muzha2"], takes [],
            |start, mss| Muzha2::new(mss, start);
    }
    linear {
        "drai-aimd", "adds a segments per round trip while the routers' index is 4 or 5, multiplies by b at 1 or 2",
            ["drai-aimd", "drai-aimd(2,0.5)"];
        "drai-aiad", "adds a segments per round trip at index 4 or 5, subtracts b at 1 or 2",
            ["drai-aiad", "drai-aiad(2,1)"];
        "drai-mimd", "multiplies by a per round trip at index 4 or 5, by b at 1 or 2",
            ["drai-mimd", "drai-mimd(1.25,0.65)"];
        "drai-miad", "multiplies by a per round trip at index 4 or 5, subtracts b segments at 1 or 2",
            ["drai-miad", "drai-miad(1.19,2)"];
    }
    plain {
        /// XCP.
        Xcp = "xcp", "XCP: routers say by how much each packet's sender changes its rate",
            ["xcp"], takes [],
            |start, mss| Xcp::new(start);
        /// RCP.
        Rcp = "rcp", "RCP: routers set one rate for all flows, and senders pace at the smallest on the path",
            ["rcp"], takes [],
            |start, mss| Rcp::new(start);
        /// HPCC.
        Hpcc {
            /// What it aims at, and its steps.
            shape: HpccShape = HpccShape::DEFAULT,
        } = "hpcc", "HPCC: the window follows the telemetry of every hop, to use 95 % of the fullest; for data centers",
            ["hpcc", "hpcc(base=100us,max_stage=0)"], takes [
                "base=" shape.base { "13us", "a time from 1us to 10s", |text| micros(text, 1..=10_000_000) },
                "eta=" shape.eta { "0.95", "a share from 0.001 to 1, three decimals at most", |text| decimal(text, 1..=1_000) },
                "max_stage=" shape.max_stage { "5", "a whole number from 0 to 1000", |text| whole(text, 0..=1_000) },
                "wai=" shape.wai { "50mbit", "a rate from 1mbit to 1000gbit", rate },
            ],
            |start, mss| Hpcc::new(start, shape);
        /// Reno that grows as in slow start where routers see spare capacity.
        AntiEcn = "anti-ecn", "Reno that grows as in slow start while every router on the path has spare capacity",
            ["anti-ecn"], takes [],
            |start, mss| AntiEcn::new(start);
    }
    wrapper {
        "careful-resume", "starts with half of the window of an earlier connection, and validates it (RFC 9959)",
            ["careful-resume", "careful-resume(reno,cwnd=300,rtt=100ms)"], "controller,cwnd=300,rtt=100ms";
    }
}

impl CcConfig {
    /// The kind of what routers tell that it goes by, if it does.
    pub fn router_feedback(&self) -> Option<&'static str> {
        match self.inner() {
            Self::Muzha { .. } | Self::Muzha2 => Some("drai"),
            Self::Xcp => Some("xcp"),
            Self::Rcp => Some("rcp"),
            Self::Hpcc { .. } => Some("int"),
            Self::AntiEcn => Some("anti-ecn"),
            _ => None,
        }
    }

    /// How many levels it expects of the routers' indices, if it goes by them.
    pub fn index_levels(&self) -> Option<u8> {
        match self.inner() {
            Self::Muzha { table, .. } => Some(table.levels()),
            Self::Muzha2 => Some(DEFAULT_LEVELS),
            _ => None,
        }
    }

    /// The controller without what wraps it.
    fn inner(&self) -> &Self {
        match self {
            Self::Modified { controller, .. } | Self::CarefulResume { controller, .. } => {
                controller.inner()
            }
            _ => self,
        }
    }
}

/// Draft §2.4.4 of Prague: of shorter round trips, flows behave as if theirs were so long.
const PRAGUE_RTT: Duration = Duration::from_millis(25);
/// Linux's `TCP_WESTWOOD_RTT_MIN`.
const WESTWOOD_INTERVAL: Duration = Duration::from_millis(50);
/// Linux's `rtt0`.
const HYBLA_REFERENCE: Duration = Duration::from_millis(25);
/// RFC 6817 §2.5: the most that it allows.
const LEDBAT_TARGET: Duration = Duration::from_millis(100);
/// The levels of the slides' own table.
const DEFAULT_LEVELS: u8 = 5;
