//! State of TCP connections whose sockets belong to other processes: `TCP_INFO` by sock_diag(7), as
//! `ss -ti` shows it.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, recv, sendto, socket};
use weir_scene::ConnectionSample;

use super::info::parse;
use weir_links::emulator::Namespace;

/// Asks about the connections of a namespace.
pub(super) struct TcpDiag {
    kernel: OwnedFd,
    buffer: Vec<u8>,
}

/// The end of a connection that has a port.
#[derive(Clone, Copy, Debug)]
pub(super) enum PortOf {
    /// Its own in the namespace.
    Here(u16),
    /// Its peer's.
    Peer(u16),
}

impl TcpDiag {
    pub(super) fn open(namespace: &Namespace) -> io::Result<Self> {
        let open = || socket(AddressFamily::NETLINK, SocketType::RAW, Some(SOCK_DIAG));
        Ok(Self { kernel: namespace.run(open)?, buffer: vec![0; ANSWER] })
    }

    /// The connection with this port that has sent most, if there is one.
    ///
    /// # Errors
    /// What the system refuses.
    pub(super) fn query(&mut self, port: PortOf) -> io::Result<Option<ConnectionSample>> {
        let kernel = SocketAddrNetlink::new(0, 0);
        sendto(&self.kernel, &request(port), SendFlags::empty(), &kernel)?;
        let mut most: Option<ConnectionSample> = None;
        loop {
            let (len, _) = recv(&self.kernel, &mut self.buffer[..], RecvFlags::empty())?;
            for message in messages(&self.buffer[..len]) {
                match message.kind {
                    NLMSG_DONE | NLMSG_ERROR => return Ok(most),
                    _ => {}
                }
                let Some(found) = info(message.body).map(parse) else { continue };
                if most.as_ref().is_none_or(|known| found.bytes > known.bytes) {
                    most = Some(found);
                }
            }
        }
    }
}

/// A request for all connections with a port, with `TCP_INFO` (`inet_diag_req_v2`).
fn request(port: PortOf) -> [u8; HEADER + REQUEST] {
    const TCP: u8 = 6;
    const AF_INET: u8 = 2;
    /// All states but TIME_WAIT, which has no info, and LISTEN.
    const STATES: u32 = 0xfff & !(1 << 6) & !(1 << 10);
    let mut message = [0; HEADER + REQUEST];
    message[..4].copy_from_slice(&((HEADER + REQUEST) as u32).to_ne_bytes());
    message[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    message[6..8].copy_from_slice(&(NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    let body = &mut message[HEADER..];
    body[..3].copy_from_slice(&[AF_INET, TCP, 1 << (INET_DIAG_INFO - 1)]);
    body[4..8].copy_from_slice(&STATES.to_ne_bytes());
    let (at, port) = match port {
        PortOf::Here(port) => (8, port),
        PortOf::Peer(port) => (10, port),
    };
    body[at..at + 2].copy_from_slice(&port.to_be_bytes());
    message
}

struct Message<'a> {
    kind: u16,
    body: &'a [u8],
}

/// The messages of a datagram (netlink(7)).
fn messages(mut rest: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let len = u32::from_ne_bytes(*rest.first_chunk()?) as usize;
        let kind = u16::from_ne_bytes(*rest.get(4..)?.first_chunk()?);
        let body = rest.get(HEADER..len)?;
        rest = rest.get(aligned(len)..).unwrap_or_default();
        Some(Message { kind, body })
    })
}

/// `TCP_INFO` among the attributes of an `inet_diag_msg`.
fn info(body: &[u8]) -> Option<&[u8]> {
    let mut rest = body.get(DIAG..)?;
    loop {
        let len = usize::from(u16::from_ne_bytes(*rest.first_chunk()?));
        let kind = u16::from_ne_bytes(*rest.get(2..)?.first_chunk()?);
        let value = rest.get(4..len)?;
        if kind == INET_DIAG_INFO {
            return Some(value).filter(|value| value.len() >= super::info::SHORT);
        }
        rest = rest.get(aligned(len)..)?;
    }
}

fn aligned(len: usize) -> usize {
    len.next_multiple_of(4)
}

/// The length of a `nlmsghdr`, an `inet_diag_req_v2` and an `inet_diag_msg`.
const HEADER: usize = 16;
const REQUEST: usize = 56;
const DIAG: usize = 72;
/// Netlink sends at most this much at once.
const ANSWER: usize = 32 << 10;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const INET_DIAG_INFO: u16 = 2;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_connection_is_found_by_its_port() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut sender = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (mut receiver, _) = listener.accept().unwrap();
        sender.write_all(&[7; 10_000]).unwrap();
        receiver.read_exact(&mut [0; 10_000]).unwrap();
        let kernel = socket(AddressFamily::NETLINK, SocketType::RAW, Some(SOCK_DIAG)).unwrap();
        let mut diag = TcpDiag { kernel, buffer: vec![0; ANSWER] };
        let found = diag.query(PortOf::Peer(port)).unwrap().expect("the sender's end");
        assert_eq!(found.bytes, 10_000);
        let answering = diag.query(PortOf::Here(port)).unwrap().expect("the receiver's end");
        assert_eq!(answering.bytes, 0);
        drop((sender, receiver));
    }
}
