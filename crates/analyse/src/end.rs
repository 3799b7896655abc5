//! An end of a connection or flow.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// Address and port, in numbers. It has the order and the text of [`SocketAddr`], and is copied and compared faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct End {
    is_ipv6: bool,
    address: u128,
    port: u16,
}

impl End {
    /// An address of IPv4, without a port.
    pub(crate) fn of_ipv4(address: u32) -> Self {
        Self { is_ipv6: false, address: u128::from(address), port: 0 }
    }

    /// An address of IPv6, without a port.
    pub(crate) fn of_ipv6(address: u128) -> Self {
        Self { is_ipv6: true, address, port: 0 }
    }

    /// The same address with a port.
    pub(crate) fn with_port(self, port: u16) -> Self {
        Self { port, ..self }
    }

    pub(crate) fn is_ipv4(self) -> bool {
        !self.is_ipv6
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = self.port;
        let end = if self.is_ipv6 {
            SocketAddr::from((Ipv6Addr::from_bits(self.address), port))
        } else {
            SocketAddr::from((Ipv4Addr::from_bits(self.address as u32), port))
        };
        end.fmt(f)
    }
}
