//! The few things that a namespace needs of the kernel's network configuration, as messages of
//! rtnetlink(7): that needs no `ioctl`.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use rustix::net::netdevice::name_to_index;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, recv, sendto, socket};

/// Sets loopback up in the namespace of the calling thread.
pub(super) fn bring_up_loopback() -> io::Result<()> {
    ask(RTM_NEWLINK, 0, &up(LOOPBACK))
}

/// Has the kernel hand packets to `interface` one by one, as they are made: none is cut from a larger
/// one, for which TCP would wait until it has several (`tcp_tso_should_defer`).
pub(super) fn forbid_superpackets(interface: u32) -> io::Result<()> {
    ask(RTM_NEWLINK, 0, &one_segment(interface))
}

/// Sends everything that is not for a neighbour to `gateway`, which is one.
pub(super) fn route_all_by(gateway: Ipv4Addr) -> io::Result<()> {
    ask(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, &default_route(gateway))
}

/// Adds an IPv6 address to a device in the namespace of the calling thread, and the network of its
/// first `prefix` bits.
pub(super) fn add_ipv6(device: &str, address: Ipv6Addr, prefix: u8) -> io::Result<()> {
    let any_socket = socket(AddressFamily::INET6, SocketType::DGRAM, None)?;
    let interface = name_to_index(&any_socket, device)?;
    ask(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &ipv6_address(interface, address, prefix))
}

/// An `ifinfomsg` that sets `IFF_UP` of an interface.
fn up(interface: i32) -> [u8; 16] {
    const IFF_UP: u32 = 1;
    let mut body = [0; 16];
    body[4..8].copy_from_slice(&interface.to_ne_bytes());
    // The flags, and which of them change.
    body[8..12].copy_from_slice(&IFF_UP.to_ne_bytes());
    body[12..].copy_from_slice(&IFF_UP.to_ne_bytes());
    body
}

/// An `ifinfomsg` with the attribute `IFLA_GSO_MAX_SEGS`, which is 1.
fn one_segment(interface: u32) -> [u8; 24] {
    const IFLA_GSO_MAX_SEGS: u16 = 40;
    let mut body = [0; 24];
    body[4..8].copy_from_slice(&interface.to_ne_bytes());
    body[16..18].copy_from_slice(&8u16.to_ne_bytes());
    body[18..20].copy_from_slice(&IFLA_GSO_MAX_SEGS.to_ne_bytes());
    body[20..].copy_from_slice(&1u32.to_ne_bytes());
    body
}

/// An `rtmsg` with the attribute `RTA_GATEWAY`.
fn default_route(gateway: Ipv4Addr) -> [u8; 20] {
    const AF_INET: u8 = 2;
    const RT_TABLE_MAIN: u8 = 254;
    const RTPROT_BOOT: u8 = 3;
    const RTN_UNICAST: u8 = 1;
    const RTA_GATEWAY: u16 = 5;
    let mut body = [0; 20];
    body[0] = AF_INET;
    body[4] = RT_TABLE_MAIN;
    body[5] = RTPROT_BOOT;
    body[7] = RTN_UNICAST;
    body[12..14].copy_from_slice(&8u16.to_ne_bytes());
    body[14..16].copy_from_slice(&RTA_GATEWAY.to_ne_bytes());
    body[16..].copy_from_slice(&gateway.octets());
    body
}

/// An `ifaddrmsg` with the attribute `IFA_LOCAL`.
fn ipv6_address(interface: u32, address: Ipv6Addr, prefix: u8) -> [u8; 28] {
    const AF_INET6: u8 = 10;
    /// Without duplicate address detection (RFC 4862 §5.4): both ends are ours.
    const IFA_F_NODAD: u8 = 2;
    const IFA_LOCAL: u16 = 2;
    let mut body = [0; 28];
    [body[0], body[1], body[2]] = [AF_INET6, prefix, IFA_F_NODAD];
    body[4..8].copy_from_slice(&interface.to_ne_bytes());
    body[8..10].copy_from_slice(&20u16.to_ne_bytes());
    body[10..12].copy_from_slice(&IFA_LOCAL.to_ne_bytes());
    body[12..].copy_from_slice(&address.octets());
    body
}

/// Sends a request, which consists of a `nlmsghdr` and `body`, and waits for what becomes of it.
fn ask(kind: u16, flags: u16, body: &[u8]) -> io::Result<()> {
    const HEADER: usize = 16;
    let mut message = Vec::with_capacity(HEADER + body.len());
    message.extend(((HEADER + body.len()) as u32).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend((NLM_F_REQUEST | NLM_F_ACK | flags).to_ne_bytes());
    // Number and port are for those who ask more than one thing.
    message.extend([0; 8]);
    message.extend(body);
    let kernel = socket(AddressFamily::NETLINK, SocketType::RAW, None)?;
    sendto(&kernel, &message, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let mut reply = [0; 256];
    let (len, _) = recv(&kernel, &mut reply, RecvFlags::empty())?;
    // An error message with code 0 is an acknowledgement (netlink(7)).
    let code = reply[..len].get(HEADER..HEADER + 4).and_then(|code| code.try_into().ok());
    match code.map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(error) => Err(io::Error::from_raw_os_error(-error)),
        None => Err(io::Error::other("the kernel's answer is too short")),
    }
}

/// The index of loopback, the first interface of every namespace.
const LOOPBACK: i32 = 1;
const RTM_NEWLINK: u16 = 16;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLM_F_EXCL: u16 = 0x200;
const NLM_F_CREATE: u16 = 0x400;
