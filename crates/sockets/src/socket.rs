//! UDP sockets: batches, segmentation offload both ways, ECN, buffer sizes.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
#[cfg(target_os = "linux")]
use std::sync::atomic::AtomicBool;
use std::sync::atomic::{AtomicUsize, Ordering};

use quinn_udp::{EcnCodepoint, RecvMeta, UdpSockRef, UdpSocketState};
use socket2::{Domain, Protocol, SockRef, Type};
use weir_units::{Bytes, Duration, Ecn, Instant};

use crate::clock::{self, Interest};

/// A UDP socket that never blocks.
#[derive(Debug)]
pub struct Socket {
    socket: UdpSocket,
    state: UdpSocketState,
    local: SocketAddr,
    recv_buffer: Bytes,
    /// Datagrams of this length and longer leave one by one.
    unjoined_from: AtomicUsize,
    /// Whether datagrams may be fragmented.
    #[cfg(target_os = "linux")]
    fragments: AtomicBool,
}

/// Datagrams that leave together: all of `stride` bytes but the last, which may be shorter.
#[derive(Clone, Copy, Debug)]
pub struct SendBatch<'a> {
    /// Where to.
    pub to: SocketAddr,
    /// Which of this machine's addresses they come from, if that matters.
    pub from: Option<IpAddr>,
    /// Their ECN field.
    pub ecn: Ecn,
    /// The datagrams, one after the other.
    pub bytes: &'a [u8],
    /// The size of each but the last.
    pub stride: usize,
}

/// Where datagrams leave: a socket, or the network of a simulation.
pub trait DatagramSink {
    /// Sends datagrams.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there is no space: nothing was sent. After another error the
    /// datagrams are lost.
    fn send(&self, departure: &SendBatch<'_>) -> io::Result<()>;

    /// The largest number of datagrams in one call.
    fn max_segments(&self) -> usize;
}

/// Datagrams that arrived together from one sender.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// Where from.
    pub from: SocketAddr,
    /// Which of this machine's addresses they were sent to.
    pub to: Option<IpAddr>,
    /// The ECN field of all of them.
    pub ecn: Ecn,
    /// When the system had them, or where it does not say, when we did.
    pub time: Instant,
    bytes: &'a [u8],
    stride: usize,
}

impl<'a> Arrival<'a> {
    /// Whether this is a datagram without content.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The length of all its datagrams.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The datagrams that have content.
    pub fn datagrams(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.bytes.chunks(self.stride.max(1))
    }

    /// One datagram.
    pub fn of(from: SocketAddr, time: Instant, ecn: Ecn, bytes: &'a [u8]) -> Self {
        Self { from, to: None, ecn, time, bytes, stride: bytes.len() }
    }

    /// One datagram back to where this came from.
    pub fn answer<'b>(&self, bytes: &'b [u8]) -> SendBatch<'b> {
        SendBatch { to: self.from, from: self.to, ecn: Ecn::NotEct, bytes, stride: bytes.len() }
    }
}

/// Buffers for what arrives.
pub struct Inbox {
    /// Of one batch after the other.
    bytes: Vec<u8>,
    metas: [RecvMeta; BATCHES],
    filled: usize,
    /// When it was filled, on our clock and on the wall's, which the system writes on datagrams.
    read: (Instant, std::time::Duration),
}

impl Socket {
    /// Binds to `address`; port 0 lets the system choose.
    ///
    /// # Errors
    /// Why the address cannot be had.
    pub fn bind(address: SocketAddr) -> Result<Self, BindError> {
        let refused = |error| BindError { address, error };
        Self::open(address, None).map_err(refused)
    }

    /// Binds to `address` and takes datagrams from `remote` only. Port 0 lets the system choose; another
    /// port may be that of further sockets of this user, each with another `remote` or with none.
    ///
    /// # Errors
    /// Why the address cannot be had.
    #[cfg(target_os = "linux")]
    pub fn connect(address: SocketAddr, remote: SocketAddr) -> Result<Self, BindError> {
        let refused = |error| BindError { address, error };
        Self::open(address, Some(remote)).map_err(refused)
    }

    fn open(address: SocketAddr, remote: Option<SocketAddr>) -> io::Result<Self> {
        let socket =
            socket2::Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        if address.is_ipv6() && address.ip().is_unspecified() {
            // One socket for both families, where the system can.
            let _ = socket.set_only_v6(false);
        }
        enlarge_buffers(&socket);
        #[cfg(target_os = "linux")]
        if remote.is_some() {
            rustix::net::sockopt::set_socket_reuseport(&socket, true)?;
        }
        socket.bind(&address.into())?;
        if let Some(remote) = remote {
            socket.connect(&remote.into())?;
        }
        let socket = UdpSocket::from(socket);
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        // Linux reports twice the requested size: half is its own bookkeeping (socket(7)).
        let reported = SockRef::from(&socket).recv_buffer_size()?;
        let recv_buffer = if cfg!(target_os = "linux") { reported / 2 } else { reported };
        Ok(Self {
            local: socket.local_addr()?,
            recv_buffer: Bytes(recv_buffer as u64),
            unjoined_from: AtomicUsize::new(usize::MAX),
            #[cfg(target_os = "linux")]
            fragments: AtomicBool::new(false),
            socket,
            state,
        })
    }

    /// The address that it is bound to.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// About how many bytes of datagrams the system keeps for us. It charges each datagram more than
    /// its length, so small ones fill this sooner.
    pub fn recv_buffer(&self) -> Bytes {
        self.recv_buffer
    }

    /// The most datagrams that leave with one call.
    pub fn max_segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    /// Sends datagrams, by themselves and in fragments where they are too long for the way out.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] where the system's buffer is full: nothing was sent. Else what the
    /// system reports; a datagram longer than [`MAX_DATAGRAM`] is an error here, not a loss.
    pub fn send(&self, departure: &SendBatch<'_>) -> io::Result<()> {
        if departure.stride >= self.unjoined_from.load(Ordering::Relaxed) {
            return self.send_singly(departure);
        }
        match self.send_joined(departure) {
            Err(error) if is_too_long(&error) || is_not_joined(&error) => {
                // The system splits no datagrams that it would have to fragment, and not all drivers
                // can split.
                self.unjoined_from.fetch_min(departure.stride, Ordering::Relaxed);
                self.send_singly(departure)
            }
            result => result,
        }
    }

    fn send_joined(&self, departure: &SendBatch<'_>) -> io::Result<()> {
        let transmit = quinn_udp::Transmit {
            destination: departure.to,
            ecn: match departure.ecn {
                Ecn::NotEct => None,
                Ecn::Ect0 => Some(EcnCodepoint::Ect0),
                Ecn::Ect1 => Some(EcnCodepoint::Ect1),
                Ecn::Ce => Some(EcnCodepoint::Ce),
            },
            contents: departure.bytes,
            segment_size: Some(departure.stride),
            src_ip: departure.from,
        };
        match self.state.try_send(UdpSockRef::from(&self.socket), &transmit) {
            // The news of an earlier datagram took this one's place.
            Err(error) if is_about_others(&error) => {
                self.state.try_send(UdpSockRef::from(&self.socket), &transmit)
            }
            result => result,
        }
    }

    fn send_singly(&self, departure: &SendBatch<'_>) -> io::Result<()> {
        for (index, bytes) in departure.bytes.chunks(departure.stride).enumerate() {
            let one = SendBatch { bytes, ..*departure };
            let mut result = self.send_joined(&one);
            if result.as_ref().is_err_and(is_too_long) && self.allow_fragments() {
                result = self.send_joined(&one);
            }
            // What has gone cannot be taken back: wait a little for the rest.
            while index > 0 && result.as_ref().is_err_and(is_blocked) {
                self.wait(Interest::ReadableOrWritable, Duration::from_millis(1))?;
                result = self.send_joined(&one);
            }
            result?;
        }
        Ok(())
    }

    /// Lets the system fragment what is longer than the way's largest packet. Returns whether that is
    /// news.
    #[cfg(target_os = "linux")]
    fn allow_fragments(&self) -> bool {
        use rustix::net::sockopt::{Ipv4PathMtuDiscovery, set_ip_mtu_discover};
        !self.fragments.swap(true, Ordering::Relaxed)
            && set_ip_mtu_discover(&self.socket, Ipv4PathMtuDiscovery::DONT).is_ok()
    }

    #[cfg(not(target_os = "linux"))]
    fn allow_fragments(&self) -> bool {
        false
    }

    /// Processes what has arrived, which may be nothing. Returns whether there was anything.
    ///
    /// # Errors
    /// What the system reports.
    pub fn receive(&self, inbox: &mut Inbox) -> io::Result<bool> {
        inbox.filled = 0;
        let mut chunks = inbox.bytes.chunks_exact_mut(BATCH_BYTES);
        let count = chunks.len();
        let mut slices: [IoSliceMut<'_>; BATCHES] =
            std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
        let (slices, metas) = (&mut slices[..count], &mut inbox.metas[..count]);
        let mut receive = || self.state.recv(UdpSockRef::from(&self.socket), slices, metas);
        // The system reports an error before what has arrived, and once.
        match receive()
            .or_else(|error| if is_about_others(&error) { receive() } else { Err(error) })
        {
            Ok(filled) => {
                inbox.filled = filled;
                inbox.read = clock::now_and_wall();
            }
            Err(error) if is_blocked(&error) || is_about_others(&error) => {}
            Err(error) => return Err(error),
        }
        Ok(inbox.filled > 0)
    }

    /// From now on [`next_unreachable`](Self::next_unreachable) reports datagrams that were refused.
    ///
    /// # Errors
    /// What the system reports.
    pub fn enable_icmp_errors(&self) -> io::Result<()> {
        self.state.enable_transport_errors(UdpSockRef::from(&self.socket))
    }

    /// A machine that has said (by ICMP) that no socket listens on a port to which a datagram went.
    pub fn next_unreachable(&self) -> Option<IpAddr> {
        loop {
            let error = self.state.recv_transport_error(UdpSockRef::from(&self.socket)).ok()??;
            let refused = error.raw_errno == rustix::io::Errno::CONNREFUSED.raw_os_error();
            if let Some(by) = error.addr.filter(|_| refused) {
                return Some(by.ip());
            }
        }
    }

    /// Waits for something to do, at most `time`. Returns whether there is.
    ///
    /// # Errors
    /// What the system reports.
    pub fn wait(&self, interest: Interest, time: Duration) -> io::Result<bool> {
        clock::wait(self.socket.as_fd(), interest, time)
    }
}

impl DatagramSink for Socket {
    fn send(&self, departure: &SendBatch<'_>) -> io::Result<()> {
        Socket::send(self, departure)
    }

    fn max_segments(&self) -> usize {
        Socket::max_segments(self)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Default for Inbox {
    /// With space for the most that one call takes in.
    fn default() -> Self {
        Self::new(BATCHES)
    }
}

impl Inbox {
    /// With space for `batches` batches, each of up to 64 KiB from one sender.
    pub fn new(batches: usize) -> Self {
        Self {
            bytes: in_memory(batches.clamp(1, BATCHES) * BATCH_BYTES),
            metas: [RecvMeta::default(); BATCHES],
            filled: 0,
            read: (Instant::ZERO, std::time::Duration::ZERO),
        }
    }

    /// What arrived, in order.
    pub fn arrivals(&self) -> impl Iterator<Item = Arrival<'_>> {
        let buffers = self.bytes.chunks_exact(BATCH_BYTES);
        self.metas[..self.filled].iter().zip(buffers).map(|(meta, buffer)| Arrival {
            from: meta.addr,
            to: meta.dst_ip,
            ecn: match meta.ecn {
                None => Ecn::NotEct,
                Some(EcnCodepoint::Ect0) => Ecn::Ect0,
                Some(EcnCodepoint::Ect1) => Ecn::Ect1,
                Some(EcnCodepoint::Ce) => Ecn::Ce,
            },
            time: self.time(meta.timestamp),
            bytes: &buffer[..meta.len],
            stride: meta.stride,
        })
    }

    /// A time on the wall's clock, on ours. That clock may be set at any time, so what lies in the
    /// future or far back is not believed.
    fn time(&self, wall: Option<std::time::Duration>) -> Instant {
        let (now, read) = self.read;
        let ago = wall.and_then(|wall| read.checked_sub(wall)).unwrap_or_default();
        let believed = ago < std::time::Duration::from_secs(1);
        let ago = if believed { ago.as_nanos() as u64 } else { 0 };
        Instant::from_nanos(now.as_nanos().saturating_sub(ago))
    }
}

/// A buffer whose memory the system has already provided: it gives zeros when they are first touched,
/// which would be while someone waits for the first datagrams.
pub fn in_memory(len: usize) -> Vec<u8> {
    vec![u8::MAX; len]
}

/// An address that cannot be bound to.
#[derive(Debug, thiserror::Error)]
#[error("cannot use UDP address {address}: {}", bind_reason(.error))]
pub struct BindError {
    /// The address.
    pub address: SocketAddr,
    /// What the system says.
    #[source]
    pub error: io::Error,
}

/// The longest packet that the way to `remote` is known to take, if the system says.
#[cfg(target_os = "linux")]
pub fn path_mtu(remote: SocketAddr) -> Option<u32> {
    use rustix::net::sockopt::{ip_mtu, ipv6_mtu};
    // Only a socket that is bound to a way knows its packets. Nothing is sent.
    let probe = socket2::Socket::new(Domain::for_address(remote), Type::DGRAM, None).ok()?;
    probe.connect(&remote.into()).ok()?;
    if remote.is_ipv4() { ip_mtu(&probe).ok() } else { ipv6_mtu(&probe).ok() }
}

/// The longest packet that the way to `remote` is known to take, if the system says.
#[cfg(not(target_os = "linux"))]
pub fn path_mtu(_: SocketAddr) -> Option<u32> {
    None
}

/// Whether datagrams are longer than what can be sent.
pub fn is_too_long(error: &io::Error) -> bool {
    quinn_udp::is_msg_size_err(error)
}

/// Whether an error concerns a datagram that was sent before, which may be lost like any other.
fn is_about_others(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
    )
}

fn is_blocked(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

/// Linux's answers where a device or route cannot split datagrams.
fn is_not_joined(error: &io::Error) -> bool {
    use rustix::io::Errno;
    [Errno::IO, Errno::INVAL]
        .map(|errno| Some(errno.raw_os_error()))
        .contains(&error.raw_os_error())
}

fn bind_reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => "another program uses it; choose another port".to_owned(),
        io::ErrorKind::AddrNotAvailable => "this machine has no such address".to_owned(),
        io::ErrorKind::PermissionDenied => {
            "no permission; ports below 1024 belong to the administrator".to_owned()
        }
        _ => error.to_string(),
    }
}

/// Asks for large buffers and takes what the system allows.
fn enlarge_buffers(socket: &socket2::Socket) {
    #[cfg(target_os = "linux")]
    {
        // Beyond net.core.rmem_max, for those who may.
        use rustix::net::sockopt::{
            set_socket_recv_buffer_size_force, set_socket_send_buffer_size,
        };
        let _ = set_socket_recv_buffer_size_force(socket, SOCKET_BUFFER);
        let _ = set_socket_send_buffer_size(socket, SOCKET_BUFFER);
    }
    let enough = |size: io::Result<usize>| size.is_ok_and(|size| size >= SOCKET_BUFFER);
    if !enough(socket.recv_buffer_size()) {
        let _ = socket.set_recv_buffer_size(SOCKET_BUFFER);
    }
    if !enough(socket.send_buffer_size()) {
        let _ = socket.set_send_buffer_size(SOCKET_BUFFER);
    }
}

/// The longest payload of a UDP datagram over IPv4.
pub const MAX_DATAGRAM: usize = weir_scene::MAX_DATAGRAM as usize;

/// Buffer that is requested of the system for each direction.
const SOCKET_BUFFER: usize = 8 << 20;
/// How many batches one call takes in at most, and how long a batch may be: the system joins datagrams
/// into at most 64 KiB.
const BATCHES: usize = 8;
const BATCH_BYTES: usize = 64 << 10;
