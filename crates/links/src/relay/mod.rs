//! Links between real programs: the simulator's path pieces over real packets, in real time.
//!
//! A [`Path`] hosts [`weir_net::Link`]s; it has no clock and no socket. A [`Host`] adds what
//! real time adds: how late each packet left, and what was lost outside the links. The
//! relay between UDP programs and the link between network namespaces drive one each.

mod background;
mod check;
mod clients;
mod health;
mod host;
pub mod overflow;
mod packet;
mod path;
mod udp;
mod wait;

pub use background::{Background, CALL_INTERVAL, Carrier};
pub use check::{CheckError, CheckReport, CheckSpec, check};
pub use health::{DirectionReport, GOOD_LATENESS_MS, Report, UnintendedLoss};
pub use host::Host;
#[cfg(target_os = "linux")]
pub(crate) use host::MEMORY;
pub use packet::{Header, Packet};
#[cfg(target_os = "linux")]
pub(crate) use packet::{MemoryLimit, Reserved};
pub use path::{Arrival, Drops, Full, HostedLink, Path, Route, RouterFeedback};
pub use udp::{RelayError, RelaySpec, UdpRelay};
pub(crate) use wait::wait_any;
