//! The programs behind weir send and weir recv: an endpoint, the file protocol on it, and someone who
//! receives its progress.

mod datagram;
mod options;
mod recv;
mod send;
mod sent;
#[cfg(test)]
mod tests;
mod tree;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::ops::ControlFlow;
use std::str::FromStr;

use thiserror::Error;
use weir_sockets::socket::BindError;
use weir_transport::{Config, ConnectionError, Stack, StackError};
use weir_units::{Bytes, Duration, Rate};

pub use self::datagram::DatagramSession;
pub use self::options::SendOptions;
pub use self::recv::{Receiving, RecvOptions, Sessions, recv};
pub use self::send::{ConnectionSequence, Destination, Sender, send};
pub use self::sent::Sent;
pub use self::tree::Skipped;
use crate::endpoint::{Application, Endpoint, Limits};
use crate::file::plain;
use crate::seal::Keys;

/// What carries a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Carrier {
    /// A connection with loss recovery and congestion control.
    Stack(Stack),
    /// Bare datagrams next to a connection, so that their losses can be counted.
    Udp,
}

impl FromStr for Carrier {
    type Err = StackError;

    /// `udp`, or a stack.
    fn from_str(text: &str) -> Result<Self, StackError> {
        if text == "udp" { Ok(Self::Udp) } else { text.parse().map(Self::Stack) }
    }
}

/// Callback for a transfer's progress, several times a second. It may stop the transfer.
pub type Watch<'a> = dyn FnMut(&Progress) -> ControlFlow<()> + 'a;

/// How far a transfer is.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// What happens now: of a sender, the file that it reads or sends.
    pub name: String,
    /// Whether the sender still hashes.
    pub hashing: bool,
    /// Files with a verdict, and their total.
    pub files_done: u64,
    /// Files in all.
    pub files: u64,
    /// Bytes that are at the receiver, those of earlier sessions included.
    pub bytes_done: u64,
    /// Bytes in all.
    pub bytes: u64,
    /// Connections.
    pub peers: u64,
    /// The sender's window,
    pub cwnd: Option<Bytes>,
    /// its round trip,
    pub srtt: Option<Duration>,
    /// the rate at which it sends, if it is paced,
    pub pacing_rate: Option<Rate>,
    /// segments that carried data, and how many of them were sent again.
    pub segments: u64,
    /// Segments sent again.
    pub retransmits: u64,
    /// How often the connection was opened anew.
    pub reconnects: u64,
}

/// Why a transfer did not happen, or not all of it.
#[derive(Debug, Error)]
pub enum TransferError {
    /// The local address cannot be had.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// A file, a folder or the socket.
    #[error("{0}")]
    System(String),
    /// No such host.
    #[error("cannot find the host of '{target}': {error}")]
    NoSuchHost {
        /// As requested.
        target: String,
        /// What the resolver says.
        error: String,
    },
    /// The address is not one.
    #[error(
        "'{0}' is no address: HOST:PORT is needed, as in 192.0.2.7:9000, [2001:db8::7]:9000 or example.org:9000"
    )]
    Address(String),
    /// No answer.
    #[error("no answer from {remote} (tried for {} s); is 'weir recv' running there, and does a firewall let UDP through?", seconds(*.waited))]
    NoAnswer {
        /// Where.
        remote: SocketAddr,
        /// For how long.
        waited: Duration,
    },
    /// The connection broke, and could not be opened again.
    #[error(
        "the connection to {remote} broke: {reason}; what has arrived is kept there, the same command goes on from it"
    )]
    Broken {
        /// With whom.
        remote: SocketAddr,
        /// Why.
        reason: String,
    },
    /// The receiver wants none of it.
    #[error("{remote} refuses: {reason}")]
    Refused {
        /// Who.
        remote: SocketAddr,
        /// Why.
        reason: String,
    },
    /// The end was requested.
    #[error("interrupted; what has arrived is kept, the same command goes on from it")]
    Interrupted,
}

impl TransferError {
    fn system(what: &str, error: &io::Error) -> Self {
        Self::System(format!("{what}: {}", plain(error)))
    }

    /// What broke a connection on this side, or what the receiver says of keys.
    fn from_local(remote: SocketAddr, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::Refused { remote, reason: plain(error) },
            _ => Self::System(plain(error)),
        }
    }

    fn from_connection(remote: SocketAddr, error: &ConnectionError) -> Self {
        match error {
            ConnectionError::NoAnswer { waited, .. } => Self::NoAnswer { remote, waited: *waited },
            other => Self::Broken { remote, reason: other.to_string() },
        }
    }
}

/// The addresses of `HOST:PORT`, in the resolver's order.
///
/// # Errors
/// If that is no address, or the host is not known.
pub fn resolve(target: &str) -> Result<Vec<SocketAddr>, TransferError> {
    let (host, port) = target.rsplit_once(':').unwrap_or_default();
    let bare =
        host.starts_with('[') == host.ends_with(']') && host.starts_with('[') == host.contains(':');
    if host.is_empty() || !bare || port.parse::<u16>().is_ok_and(|port| port == 0) {
        return Err(TransferError::Address(target.to_owned()));
    }
    if port.parse::<u16>().is_err() {
        return Err(TransferError::Address(target.to_owned()));
    }
    let unknown = |error: &io::Error| TransferError::NoSuchHost {
        target: target.to_owned(),
        error: plain(error).replace("failed to lookup address information: ", ""),
    };
    let found: Vec<_> = target.to_socket_addrs().map_err(|error| unknown(&error))?.collect();
    if found.is_empty() {
        return Err(unknown(&io::Error::other("no address")));
    }
    Ok(found)
}

/// Any free port of the family of `remote`. How long the receiver may be silent is judged here and not by
/// the endpoint.
fn open_endpoint<A: Application>(
    remote: SocketAddr,
    options: &SendOptions,
) -> Result<Endpoint<A>, TransferError> {
    let any: IpAddr = match remote {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let mut endpoint = Endpoint::bind(SocketAddr::new(any, 0))?;
    seal_with(&mut endpoint, options.key.clone().map(Keys::from))?;
    let patience = options.max_wait.max(FIRST_ANSWER).saturating_mul(4);
    endpoint.set_limits(Limits { handshake: patience, idle: patience, ..Limits::default() });
    Ok(endpoint)
}

/// Seals what an endpoint sends and takes, if there are keys.
fn seal_with<A: Application>(
    endpoint: &mut Endpoint<A>,
    keys: Option<Keys>,
) -> Result<(), TransferError> {
    let sealed = keys.map_or(Ok(()), |keys| endpoint.seal_with(keys));
    sealed.map_err(|error| TransferError::system("no random bytes", &error))
}

/// What both ends have in common.
fn base_config() -> Config {
    Config {
        recv_buffer: LARGEST_WINDOW,
        // Nothing depends on the old connection's stragglers: ports and sequence numbers are random.
        time_wait: Duration::from_millis(500),
        ..Config::for_datagrams()
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64())
}

/// The most that is offered to a sender: a second of a gigabit over half a second of round trip.
const LARGEST_WINDOW: Bytes = Bytes(64 << 20);
/// How long the first answer may take.
const FIRST_ANSWER: Duration = Duration::from_secs(10);
/// Interval of calls to the watcher.
const WATCH_INTERVAL: Duration = Duration::from_millis(100);
/// How long one end waits for the other's goodbye when all is said.
const GOODBYE: Duration = Duration::from_secs(1);
