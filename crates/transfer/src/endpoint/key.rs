//! What tells the connections of an endpoint apart.

use std::net::SocketAddr;

use weir_transport::wire::Ports;

/// Whose a datagram is: where it comes from, and its port fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) remote: SocketAddr,
    /// As they stand in what we send.
    pub(super) ports: Ports,
}

impl Key {
    /// Whose a datagram is that arrives with such port fields: ours are the peer's the other way round.
    pub(super) fn of_arrival(remote: SocketAddr, ports: Ports) -> Self {
        let Ports { source, destination } = ports;
        Self { remote, ports: Ports { source: destination, destination: source } }
    }
}
