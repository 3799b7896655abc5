//! What every world hosts: links and routes, flows with their applications, and their statistics.
//!
//! Nothing here knows a clock. A world moves its [`Network`] on, hands each [`Flow`] the packets that
//! arrive for it, and has its [`Run`] take samples and draw up the result tables. Between the two ends
//! of a flow lies a [`Medium`]: in the simulator the network itself, in real time also sockets.

mod aggregate;
mod app;
mod arrivals;
mod balancer;
mod capture_point;
mod check;
mod collective;
mod datagrams;
mod error;
mod events;
mod flow;
mod flow_stats;
mod flow_table;
mod foreign;
mod forwarding;
mod hosted_flow;
mod kernel_flow;
mod last_sample;
mod link;
mod medium;
mod memory;
mod meter;
mod network;
mod outcome;
mod packet;
mod pattern;
mod periods;
mod probe;
mod program;
mod queue;
mod radio;
mod recorder;
mod reliable;
mod requests;
mod router;
mod run;
mod run_log;
mod side;
mod sizes;
mod spec;
mod stream_flow;
pub mod topology;
mod udp;
mod validate;
mod wire;

pub use app::{Server, WriteRequest};
pub use capture_point::CapturePoint;
pub use error::{SpecError, Violation};
pub use events::EventLog;
pub use flow::Flow;
pub use flow_stats::FlowEnd;
pub use flow_table::FlowTable;
pub use foreign::{ForeignEnd, ForeignEvent, ForeignStack, ForeignState};
pub use forwarding::{Forwarding, OneWay};
pub use kernel_flow::{ConnectionSample, KernelFlow, PathStats};
pub use link::{CaptureFilter, HostedLink, LinkCrossing, LinkEnd, PacketLink};
pub use medium::Medium;
pub use network::Network;
pub use outcome::Outcome;
pub use packet::{Body, Direction, IP_HEADER, Load, Packet, UDP_HEADER};
pub use program::{ProcessSpec, ProgramCommands, ProgramEnd, ProgramSpec, Readiness};
pub use queue::{Event, EventQueue, HeapQueue, PortEvent, WheelQueue};
pub use radio::{HostedRadio, RadioOutput};
pub use router::Router;
pub use run::Run;
pub use run_log::{ResendCause, Resent, RunLog};
pub use side::Side;
pub use sizes::SizeDistribution;
pub use spec::{
    AllReduce, AllReduceAlgorithm, Alpha, Balancing, BufferSpec, Ends, FabricEnds, FabricSpec,
    FlowSizes, FlowSpec, HostChoice, HostPair, LinkSpec, ListedConnection, MeasureSpec, Movement,
    OnOff, Pattern, PeriodSpread, PfcSpec, Places, RadioPath, RadioSpec, RankOrder, Routing,
    RunSpec, TransportSpec, UdpConfig, Workload,
};
pub use validate::{MAX_DATAGRAM, MAX_PACKET, validate};
pub use wire::{FIRST_CAPTURED_PORT, Wire};
