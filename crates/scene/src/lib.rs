//! What every world hosts: links and routes, flows with their applications, and the books on them.
//!
//! Nothing here knows a clock. A world moves its [`Network`] on, hands each [`Flow`] the packets that
//! arrive for it, and has [`Books`] take samples and draw up the result tables. Between the two ends
//! of a flow lies a [`Medium`]: in the simulator the network itself, in real time also sockets.

mod aggregate;
mod app;
mod arrivals;
mod books;
mod check;
mod error;
mod events;
mod flow;
mod foreign;
mod ledger;
mod link;
mod medium;
mod meter;
mod network;
mod notes;
mod outcome;
mod packet;
mod periods;
mod probe;
mod queue;
mod radio;
mod reliable;
mod requests;
mod roster;
mod sizes;
mod spec;
pub mod topology;
mod udp;
mod validate;
mod vantage;
mod wire;

pub use app::{Demand, Server};
pub use books::{Books, Closing};
pub use check::check_placement;
pub use error::{SpecError, Violation};
pub use events::EventLog;
pub use flow::{Flow, Side};
pub use foreign::{ForeignFlow, Passage, Reading};
pub use ledger::Ending;
pub use link::{HostedLink, LinkEnd, PacketLink, Passing, Watched};
pub use medium::Medium;
pub use network::Network;
pub use notes::Notes;
pub use outcome::Outcome;
pub use packet::{Body, Direction, IP_HEADER, Packet, UDP_HEADER};
pub use queue::{Event, EventQueue, HeapQueue, WheelQueue};
pub use radio::{Happening, HostedRadio, Movement, Places, RadioPath, RadioSpec, Routing};
pub use roster::Roster;
pub use sizes::SizeDistribution;
pub use spec::{
    Ends, FlowSizes, FlowSpec, LinkSpec, MeasureSpec, OnOff, PeriodSpread, RunSpec, TransportSpec,
    UdpConfig, Workload,
};
pub use validate::validate;
pub use vantage::Vantage;
pub use wire::Wire;
