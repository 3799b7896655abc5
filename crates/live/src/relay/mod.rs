//! Links between real programs: the simulator's path pieces over real packets, in real time.
//!
//! A [`Path`] hosts [`weir_net::Link`]s; it is told the time and knows no socket, so the relay
//! between UDP programs, the link between network namespaces and the scenarios' world share it.

mod packet;
mod path;

pub use packet::{Header, Packet, Way};
pub use path::{Arrival, Full, HostedLink, Path, Route};
