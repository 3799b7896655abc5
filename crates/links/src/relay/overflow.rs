//! How many datagrams found a socket's receive buffer full, as the system counts them.

use std::os::fd::AsFd;

/// Drops at a socket, modulo 2^32. Zero where the system does not say.
///
/// It asks the socket: the system's table of sockets, `/proc/net/udp`, takes milliseconds to read where there are
/// thousands, and each newcomer to a full relay makes it ask.
#[cfg(target_os = "linux")]
pub fn drops(socket: &impl AsFd) -> u64 {
    const DROPS: usize = 8;
    nix::sys::socket::getsockopt(socket, option::Memory)
        .map_or(0, |values| u64::from(values[DROPS]))
}

/// Drops at a socket; this system does not say.
#[cfg(not(target_os = "linux"))]
pub fn drops(_: &impl AsFd) -> u64 {
    0
}

#[cfg(target_os = "linux")]
mod option {
    use nix::{getsockopt_impl, libc, sockopt_impl};

    sockopt_impl!(
        /// `SO_MEMINFO` (Linux 4.12) up to `SK_MEMINFO_DROPS`.
        Memory,
        GetOnly,
        libc::SOL_SOCKET,
        libc::SO_MEMINFO,
        [u32; 9]
    );
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::UdpSocket;

    use super::drops;

    #[test]
    fn what_a_full_buffer_refuses_is_counted() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(drops(&socket), 0);
        let from = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = socket.local_addr().unwrap();
        let sent = 2_000;
        for _ in 0..sent {
            from.send_to(&[0; 1_000], to).unwrap();
        }
        socket.set_nonblocking(true).unwrap();
        let there = std::iter::from_fn(|| socket.recv(&mut [0; 1_000]).ok()).count() as u64;
        assert!(0 < there && there < sent, "{there} of {sent} fit");
        assert_eq!(drops(&socket), sent - there);
    }
}
