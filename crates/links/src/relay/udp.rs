//! The relay between UDP programs: sockets around a [`Host`].
//!
//! Clients send to one address; each gets a socket of its own towards the server, so that the server
//! can distinguish them and its answers find their way back. One thread does everything. A packet enters
//! the path at the time at which the system had it, so that the relay's own tardiness in reading
//! counts only where a packet is due before it was read.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd};

use weir_net::ConfigError;
use weir_scene::Direction;
use weir_sockets::clock::{self, Alarm};
use weir_sockets::socket::{Arrival, BindError, Inbox, MAX_DATAGRAM, SendBatch, Socket};
use weir_units::{Bytes, Duration, Instant};

use super::background::{CALL_INTERVAL, Carrier};
use super::clients::{Client, Clients};
use super::health::Report;
use super::host::Host;
use super::overflow;
use super::packet::{Header, Packet};
use super::path::{HostedLink, Route};
use super::wait::wait_any;

/// A relay between UDP programs.
pub struct UdpRelay {
    listen: Socket,
    to: SocketAddr,
    host: Host,
    clients: Clients<Upstream>,
    inbox: Inbox,
    outbox: Outbox,
    began: Instant,
    next_expiry: Instant,
    /// What overflowed at the sockets of clients that are gone.
    past_overflow: u64,
}

/// What a relay does.
#[derive(Clone, Debug)]
pub struct RelaySpec {
    /// Where clients send to; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// The server.
    pub to: SocketAddr,
    /// The links between them.
    pub links: Vec<HostedLink>,
    /// Which of them packets cross.
    pub route: Route,
    /// Corruption flips 1 to this many bits of a datagram.
    pub corrupt_bits: u8,
    /// Random seed.
    pub seed: u64,
    /// The most clients at a time.
    pub clients: usize,
    /// A client that has been silent for so long is forgotten.
    pub idle: Duration,
}

/// Why there is no relay.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// The address cannot be listened at.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The path cannot be as it is described.
    #[error(transparent)]
    Path(#[from] ConfigError),
}

/// A client's way to the server.
#[derive(Debug)]
struct Upstream {
    socket: Socket,
    /// Which of our addresses the client knows.
    known_as: Option<IpAddr>,
}

/// Packets that leave with one call: one destination, equal lengths but for the last.
#[derive(Default)]
struct Outbox {
    bytes: Vec<u8>,
    header: Option<Header>,
    stride: usize,
    is_closed: bool,
    lens: Vec<(usize, Instant)>,
}

impl UdpRelay {
    /// Opens a relay.
    ///
    /// # Errors
    /// If the address cannot be had, or the path cannot be as it is described.
    pub fn bind(spec: RelaySpec) -> Result<Self, RelayError> {
        let mut host = Host::new(&spec.links, spec.route, spec.seed)?;
        host.set_corrupt_bits(spec.corrupt_bits);
        Ok(Self {
            host,
            listen: Socket::bind(spec.listen)?,
            to: spec.to,
            clients: Clients::new(spec.clients, spec.idle),
            inbox: Inbox::default(),
            outbox: Outbox::default(),
            began: clock::now(),
            next_expiry: clock::now(),
            past_overflow: 0,
        })
    }

    /// Where clients send to.
    pub fn local_addr(&self) -> SocketAddr {
        self.listen.local_addr()
    }

    /// Receives one batch from clients.
    fn take_from_clients(&mut self) {
        let Self { listen, to, host, clients, inbox, past_overflow, .. } = self;
        // What the system reports here is an ICMP message about an earlier datagram, if anything.
        if !listen.receive(inbox).unwrap_or(false) {
            return;
        }
        for arrival in inbox.arrivals() {
            let id = clients.find(arrival.from).or_else(|| {
                let (ip, bytes) = (arrival.from.ip(), payload(&arrival));
                let gone = clients.make_space(ip, arrival.time, bytes).ok()?;
                *past_overflow += overflows(&gone);
                welcome(clients, &arrival, *to)
            });
            match id {
                Some(id) => {
                    clients.touch(id, arrival.time, payload(&arrival));
                    offer(host, &arrival, id, Direction::Forward);
                }
                None => {
                    host.unintended(Direction::Forward).unknown_client +=
                        arrival.datagrams().count() as u64
                }
            }
        }
    }

    /// Receives one batch from the server to a client.
    fn take_from_server(&mut self, id: u32) {
        let Self { to, host, clients, inbox, .. } = self;
        let Some(client) = clients.by_number(id) else { return };
        if !client.own.socket.receive(inbox).unwrap_or(false) {
            return;
        }
        for arrival in inbox.arrivals() {
            if is_same(arrival.from, *to) {
                clients.touch(id, arrival.time, payload(&arrival));
                offer(host, &arrival, id, Direction::Reverse);
            } else {
                host.unintended(Direction::Reverse).unknown_client +=
                    arrival.datagrams().count() as u64;
            }
        }
    }

    fn deliver(&mut self) {
        let now = clock::now();
        while let Some(arrival) = self.host.poll(now) {
            if !self.outbox.takes(&arrival.packet, self.listen.max_segments()) {
                self.flush();
            }
            self.outbox.add(&arrival.packet, arrival.due);
        }
        self.flush();
    }

    fn flush(&mut self) {
        let Self { listen, to, host, clients, outbox, .. } = self;
        let Some(header) = outbox.header.take() else { return };
        let count = outbox.lens.len() as u64;
        match clients.by_number(header.flow) {
            None => host.unintended(header.direction).unknown_client += count,
            Some(client) => match outbox.send(&header, client, listen, *to) {
                Err(_) => host.unintended(header.direction).send_errors += count,
                Ok(()) => {
                    let now = clock::now();
                    for (len, due) in &outbox.lens {
                        host.on_sent(header.direction, *len, *due, now);
                    }
                    clients.touch(header.flow, now, 0);
                }
            },
        }
        outbox.clear();
    }

    fn expire(&mut self, now: Instant) {
        if now < self.next_expiry {
            return;
        }
        self.next_expiry = now + EXPIRY;
        let gone = self.clients.expire(now);
        self.past_overflow += overflows(&gone);
    }

    /// One look at every socket: those in `readable` are read once, so that what is due goes out soon.
    fn receive_ready(&mut self, ids: &[u32], readable: &[bool]) {
        if readable.first().is_some_and(|ready| *ready) {
            self.take_from_clients();
        }
        for (id, _) in ids.iter().zip(&readable[1..]).filter(|(_, ready)| **ready) {
            self.take_from_server(*id);
        }
    }
}

impl Carrier for UdpRelay {
    fn run(&mut self, step: &mut dyn FnMut(&mut Self) -> ControlFlow<()>) -> io::Result<()> {
        let _alarm = Alarm::set();
        let mut readable = Vec::new();
        let mut next_call = clock::now();
        loop {
            let now = clock::now();
            if now >= next_call {
                if step(self).is_break() {
                    return Ok(());
                }
                self.expire(now);
                next_call = now + CALL_INTERVAL;
            }
            let until = self.host.next_time().unwrap_or(Instant::MAX).min(next_call);
            let sockets = self.clients.iter().map(|(_, client)| client.own.socket.as_fd());
            let sources: Vec<BorrowedFd<'_>> =
                std::iter::once(self.listen.as_fd()).chain(sockets).collect();
            wait_any(&sources, until.saturating_since(clock::now()), &mut readable)?;
            let ids: Vec<u32> = self.clients.iter().map(|(id, _)| id).collect();
            self.receive_ready(&ids, &readable);
            self.deliver();
        }
    }

    fn report(&mut self) -> Report {
        let now = clock::now();
        let mut up = self.host.report(now, Direction::Forward);
        up.unintended.overflow = overflow::drops(&self.listen);
        let mut down = self.host.report(now, Direction::Reverse);
        let at_clients = overflows(self.clients.iter().map(|(_, client)| client));
        down.unintended.overflow = self.past_overflow + at_clients;
        let clients = self.clients.len() as u64;
        Report { elapsed: now.saturating_since(self.began), up, down, clients }
    }
}

/// What overflowed at the sockets of clients.
fn overflows<'c>(clients: impl IntoIterator<Item = &'c Client<Upstream>>) -> u64 {
    clients.into_iter().map(|client| overflow::drops(&client.own.socket)).sum()
}

/// Adds a client that has not been seen.
fn welcome(clients: &mut Clients<Upstream>, arrival: &Arrival<'_>, to: SocketAddr) -> Option<u32> {
    let any: IpAddr = match to {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = Socket::bind((any, 0).into()).ok()?;
    let upstream = Upstream { socket, known_as: arrival.to };
    Some(clients.add(arrival.from, upstream, arrival.time))
}

fn payload(arrival: &Arrival<'_>) -> u64 {
    arrival.datagrams().map(|datagram| datagram.len() as u64).sum()
}

fn offer(host: &mut Host, arrival: &Arrival<'_>, flow: u32, direction: Direction) {
    let headers = if arrival.from.ip().to_canonical().is_ipv4() { IPV4_UDP } else { IPV6_UDP };
    let empty: Option<&[u8]> = arrival.is_empty().then_some(&[]);
    for bytes in arrival.datagrams().chain(empty) {
        let len = Bytes(bytes.len() as u64 + headers);
        let header =
            Header { flow, route: 0, direction, carries_data: true, ecn: arrival.ecn, len };
        host.offer(arrival.time, header, bytes);
    }
}

/// Whether two addresses are the same, however the socket's family writes them.
fn is_same(one: SocketAddr, other: SocketAddr) -> bool {
    one.port() == other.port() && one.ip().to_canonical() == other.ip().to_canonical()
}

impl Outbox {
    /// Whether a packet can leave together with those that are here.
    fn takes(&self, packet: &Packet, max: usize) -> bool {
        let Some(first) = self.header else { return true };
        let header = packet.header();
        let len = packet.bytes().len();
        let alike =
            (first.flow, first.direction, first.ecn) == (header.flow, header.direction, header.ecn);
        let fits = (1..=self.stride).contains(&len) && self.bytes.len() + len <= MAX_DATAGRAM;
        alike && fits && !self.is_closed && self.lens.len() < max
    }

    fn add(&mut self, packet: &Packet, due: Instant) {
        let len = packet.bytes().len();
        if self.header.is_none() {
            self.header = Some(*packet.header());
            self.stride = len;
        }
        self.is_closed = len < self.stride;
        self.bytes.extend_from_slice(packet.bytes());
        self.lens.push((len, due));
    }

    fn send(
        &self,
        header: &Header,
        client: &Client<Upstream>,
        listen: &Socket,
        server: SocketAddr,
    ) -> io::Result<()> {
        let (socket, to, from) = match header.direction {
            Direction::Forward => (&client.own.socket, server, None),
            Direction::Reverse => (listen, client.address, client.own.known_as),
        };
        let ecn = header.ecn;
        socket.send(&SendBatch { to, from, ecn, bytes: &self.bytes, stride: self.stride.max(1) })
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.lens.clear();
        self.is_closed = false;
    }
}

/// IP and UDP headers, which count for rates and buffers.
const IPV4_UDP: u64 = 20 + 8;
const IPV6_UDP: u64 = 40 + 8;
/// How often idle clients are looked for.
const EXPIRY: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
