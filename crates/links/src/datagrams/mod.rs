//! Datagrams at a rate between two machines: the load of a path test over UDP.
//!
//! A datagram begins with the token of its run, its kind, its number and the time at which it was sent, as
//! `weir.probes.wire` writes them. The rest is zeros. One thread sends, another receives.

mod receiver;
mod sender;

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use weir_sockets::clock::{self, Interest};
use weir_sockets::socket::{BindError, Inbox, SendBatch, Socket};
use weir_units::{Duration, Ecn, Rate};

pub use self::receiver::{FirstDatagram, Received};
pub use self::sender::Sent;
use crate::relay::overflow;

/// Random number of a run, which every datagram of it has.
pub type Token = [u8; 16];

/// A UDP socket of this machine that takes datagrams from one address of another.
#[derive(Debug)]
pub struct PathSocket {
    socket: Socket,
    remote: SocketAddr,
}

/// What all datagrams of a load have in common.
#[derive(Clone, Copy, Debug)]
pub struct LoadSpec {
    /// Of the run.
    pub token: Token,
    /// Kind of datagram, a number.
    pub kind: u8,
    /// Bytes of UDP payload, at least [`HEAD_BYTES`].
    pub length: usize,
    /// Rate at which this end sends, with the headers of IP and UDP; `None` if it only receives.
    pub rate: Option<Rate>,
}

/// One end of a load. It ends when this is dropped.
#[derive(Debug)]
pub struct DatagramLoad {
    shared: Arc<Shared>,
    sender: Option<JoinHandle<Sent>>,
    receiver: Option<JoinHandle<io::Result<Received>>>,
}

/// What the threads of a load share.
#[derive(Debug, Default)]
struct Shared {
    sending_ends: AtomicBool,
    receiving_ends: AtomicBool,
    sent: AtomicU64,
    received_bytes: AtomicU64,
}

impl PathSocket {
    /// Opens a socket at `local`, or at a free port, to `remote`.
    ///
    /// # Errors
    /// Why the address cannot be had.
    pub fn open(local: Option<SocketAddr>, remote: SocketAddr) -> Result<Self, BindError> {
        let any = match remote {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        Ok(Self { socket: Socket::connect(local.unwrap_or(any), remote)?, remote })
    }

    /// The address of the other end.
    pub fn remote(&self) -> SocketAddr {
        self.remote
    }

    /// Sends `datagram` until the other end returns one with the same first bytes, for `wait` at most;
    /// returns whether it did.
    ///
    /// # Errors
    /// What the system reports.
    pub fn introduce(&self, datagram: &[u8], wait: Duration) -> io::Result<bool> {
        let mut inbox = Inbox::new(1);
        let expected = &datagram[..datagram.len().min(NAME_BYTES)];
        let end = clock::now() + wait;
        while clock::now() < end {
            let sent = self.socket.send(&SendBatch {
                to: self.remote,
                from: None,
                ecn: Ecn::NotEct,
                bytes: datagram,
                stride: datagram.len(),
            });
            // What the system has no buffer for is lost.
            if let Err(error) = sent
                && error.kind() != io::ErrorKind::WouldBlock
            {
                return Err(error);
            }
            // A port that is not open yet says so at once.
            let next = end.min(clock::now() + RETRY);
            while clock::now() < next {
                self.socket.wait(Interest::Readable, next.saturating_since(clock::now()))?;
                self.socket.receive(&mut inbox)?;
                let mut datagrams = inbox.arrivals().flat_map(|arrival| arrival.datagrams());
                if datagrams.any(|answer| answer.starts_with(expected)) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Its parts, for another kind of load.
    pub fn into_parts(self) -> (Socket, SocketAddr) {
        (self.socket, self.remote)
    }
}

impl DatagramLoad {
    /// Starts to receive, and to send if there is a rate.
    ///
    /// # Errors
    /// If the length is out of range.
    pub fn start(path: PathSocket, spec: LoadSpec) -> io::Result<Self> {
        if !(HEAD_BYTES..=weir_sockets::socket::MAX_DATAGRAM).contains(&spec.length) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let (path, shared) = (Arc::new(path), Arc::<Shared>::default());
        let receiver = {
            let (path, shared) = (Arc::clone(&path), Arc::clone(&shared));
            std::thread::spawn(move || receiver::run(&path.socket, &spec, &shared))
        };
        let sender = spec.rate.map(|rate| {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || sender::run(&path.socket, path.remote, &spec, rate, &shared))
        });
        Ok(Self { shared, sender, receiver: Some(receiver) })
    }

    /// Number of datagrams sent so far.
    pub fn sent(&self) -> u64 {
        self.shared.sent.load(Ordering::Relaxed)
    }

    /// Bytes of UDP payload received so far.
    pub fn received_bytes(&self) -> u64 {
        self.shared.received_bytes.load(Ordering::Relaxed)
    }

    /// Ends the sending; returns what was sent.
    ///
    /// # Errors
    /// If the thread failed.
    pub fn end_sending(&mut self) -> io::Result<Option<Sent>> {
        self.shared.sending_ends.store(true, Ordering::Relaxed);
        self.sender.take().map(|thread| thread.join().map_err(|_| failed())).transpose()
    }

    /// Ends the receiving; returns what was received, and nothing the second time.
    ///
    /// # Errors
    /// What the system reported meanwhile.
    pub fn end_receiving(&mut self) -> io::Result<Option<Received>> {
        self.shared.receiving_ends.store(true, Ordering::Relaxed);
        let thread = self.receiver.take();
        thread.map(|thread| thread.join().unwrap_or_else(|_| Err(failed()))).transpose()
    }
}

impl Drop for DatagramLoad {
    fn drop(&mut self) {
        let _ = self.end_sending();
        let _ = self.end_receiving();
    }
}

fn failed() -> io::Error {
    io::Error::other("a thread of the load has panicked")
}

/// Token, kind, number and time: what a load reads of a datagram.
pub const HEAD_BYTES: usize = NAME_BYTES + 8;
/// Token, kind and number.
const NAME_BYTES: usize = 16 + 1 + 4;
/// Headers of IPv4 and UDP, which a rate includes.
const HEADERS: usize = 20 + 8;
/// Between two attempts to reach the other end.
const RETRY: Duration = Duration::from_millis(200);
/// Between looks at whether the load is over.
const MAX_WAIT: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests;
