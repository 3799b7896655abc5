//! How precise the relay is on this machine: datagrams at a steady rate through a real relay on the
//! loopback, and how much longer they took than was asked.
//!
//! A datagram takes from the sender's clock just before it is sent until the system has it for the
//! receiver (its receive timestamp), so what the sender's and the receiver's programs add is not in
//! it; the same without a relay is measured first.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use weir_net::LinkConfig;
use weir_sockets::clock::{self, Alarm, Interest};
use weir_sockets::socket::{BindError, Inbox, SendBatch, Socket};
use weir_trace::{Histogram, Spread};
use weir_units::{Duration, Ecn, Instant};

use super::background::Background;
use super::health::Report;
use super::path::{HostedLink, Route};
use super::udp::{RelayError, RelaySpec, UdpRelay};

/// What to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckSpec {
    /// The delay to ask of the relay.
    pub delay: Duration,
    /// From one datagram to the next.
    pub gap: Duration,
    /// Bytes of each, at least eight.
    pub size: usize,
    /// How many.
    pub count: u64,
}

/// What was measured.
#[derive(Clone, Debug)]
pub struct CheckReport {
    /// What a datagram takes without a relay.
    pub direct: Spread,
    /// What it takes through the relay beyond the delay that was asked.
    pub added: Spread,
    /// Datagrams that were sent through the relay.
    pub sent: u64,
    /// Those that arrived.
    pub received: u64,
    /// How fast they were sent, per second.
    pub rate: f64,
    /// What the relay says of itself.
    pub relay: Report,
}

/// Why nothing could be measured.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// A socket cannot be had.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The relay cannot be had.
    #[error(transparent)]
    Relay(#[from] RelayError),
    /// The system refuses something else.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Measures.
///
/// # Errors
/// If sockets cannot be had or fail.
pub fn check(spec: &CheckSpec) -> Result<CheckReport, CheckError> {
    let (direct, _) = measure(spec, None)?;
    let link = |name: &str| HostedLink {
        name: name.to_owned(),
        config: LinkConfig { delay: spec.delay.into(), ..LinkConfig::default() },
    };
    let receiver = Socket::bind(LOOPBACK)?;
    let relay = UdpRelay::bind(RelaySpec {
        listen: LOOPBACK,
        to: receiver.local_addr(),
        links: vec![link("up"), link("down")],
        route: Route { up: vec![0], down: vec![1] },
        corrupt_bits: 1,
        seed: 1,
        clients: 1,
        idle: Duration::from_secs(60),
    })?;
    let at = relay.local_addr();
    let work = Background::start(relay);
    let (added, rate) = measure(spec, Some((receiver, at)))?;
    Ok(CheckReport {
        direct: direct.spread(),
        added: added.spread(),
        sent: spec.count,
        received: added.count(),
        rate,
        relay: work.stop()?,
    })
}

/// Sends at the rate and takes in what arrives, straight or through a relay in front of the receiver:
/// how long each datagram took beyond what was asked, and how many left per second.
fn measure(
    spec: &CheckSpec,
    relay: Option<(Socket, SocketAddr)>,
) -> Result<(Histogram, f64), CheckError> {
    let asked = if relay.is_some() { spec.delay } else { Duration::ZERO };
    let (receiver, to) = match relay {
        Some(relay) => relay,
        None => {
            let receiver = Socket::bind(LOOPBACK)?;
            let at = receiver.local_addr();
            (receiver, at)
        }
    };
    let count = spec.count;
    let counting = std::thread::spawn(move || receive(&receiver, count, asked));
    let began = clock::now();
    let sent = send(spec, to);
    let took = clock::now().saturating_since(began).as_secs_f64();
    let taken = counting.join().expect("receiving does not panic")?;
    sent?;
    Ok((taken, count as f64 / took))
}

/// Sends one datagram per gap, each with its time in it. One that is late does not put off the next.
fn send(spec: &CheckSpec, to: SocketAddr) -> Result<(), CheckError> {
    let socket = Socket::bind(LOOPBACK)?;
    let _alarm = Alarm::set();
    let mut bytes = vec![0; spec.size.max(8)];
    let began = clock::now();
    for number in 0..spec.count {
        let due = began + spec.gap * number;
        while clock::now() < due {
            socket.wait(Interest::Readable, due.saturating_since(clock::now()))?;
        }
        bytes[..8].copy_from_slice(&clock::now().as_nanos().to_le_bytes());
        let stride = bytes.len();
        let ecn = Ecn::NotEct;
        socket.send(&SendBatch { to, from: None, ecn, bytes: &bytes, stride })?;
    }
    Ok(())
}

/// Receives up to `count` datagrams, until none has come for a while.
fn receive(socket: &Socket, count: u64, asked: Duration) -> io::Result<Histogram> {
    let mut inbox = Inbox::default();
    let mut taken = Histogram::new();
    let mut last = clock::now();
    while taken.count() < count && clock::now() < last + asked + PATIENCE {
        socket.wait(Interest::Readable, PATIENCE)?;
        if !socket.receive(&mut inbox)? {
            continue;
        }
        last = clock::now();
        for arrival in inbox.arrivals() {
            for bytes in arrival.datagrams().filter_map(|bytes| bytes.first_chunk()) {
                let due = Instant::from_nanos(u64::from_le_bytes(*bytes)) + asked;
                taken.record(arrival.time.saturating_since(due));
            }
        }
    }
    Ok(taken)
}

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// So long after the last datagram the rest is taken for lost.
const PATIENCE: Duration = Duration::from_secs(1);
