//! Links between network namespaces, for programs that know nothing of us: the kernel's TCP, a
//! browser, ping.
//!
//! A [`Namespace`] is a network of its own, that of a thread of ours. Each end of the emulated network
//! is one of them with a TUN device in it: what the kernel there routes into the device comes out of
//! the other, as late and as incomplete as the links between them make it. The [`Emulator`] is that
//! in between. It hosts the links and routes of a run as the simulator does, in real time and over
//! real packets; [`TunLink`] runs one in a thread of its own.

mod counts;
mod device;
mod link;
mod load;
mod namespace;
mod netlink;
mod options;
mod outlet;
mod recorder;
mod router;
mod spin;
mod superpacket;
mod view;

pub use counts::FlowCounts;
pub use device::{Device, DeviceSpec};
pub use link::TunLink;
pub use load::Load;
pub use namespace::{Namespace, NamespaceError};
pub use options::{ADDRESSES, Classify, Offload, Options, QUANTUM};
pub use router::{Emulator, EmulatorError};
pub use view::ones_sum;

#[cfg(test)]
mod tests;
