//! Bulk data over quiche: a server sends as many zeros as its client asks for, on one stream.
//!
//! ```text
//! weir-quiche server ADDRESS CERTIFICATE KEY CC QLOG-FOLDER
//! weir-quiche client ADDRESS BYTES
//! ```
//!
//! One thread, one datagram per system call; datagrams that arrive together are answered together. They leave at the time that quiche's pacer sets.
#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::error::Error;
use std::fs::File;
use std::io::{self, BufWriter};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use quiche::{Config, Connection, ConnectionId, RecvInfo};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["server", address, certificate, key, cc, qlogs] => {
            let mut config = config()?;
            config.set_cc_algorithm_name(cc)?;
            config.load_cert_chain_from_pem_file(certificate)?;
            config.load_priv_key_from_pem_file(key)?;
            serve(&mut Io::bind(address.parse()?)?, &mut config, qlogs)
        }
        ["client", address, bytes] => {
            let mut config = config()?;
            config.verify_peer(false);
            fetch(&mut Io::bind("0.0.0.0:0".parse()?)?, &mut config, address.parse()?, bytes.parse()?)
        }
        _ => Err("usage: weir-quiche server ADDRESS CERTIFICATE KEY CC QLOG-FOLDER | client ADDRESS BYTES".into()),
    }
}

/// Serves one connection.
fn serve(io: &mut Io, config: &mut Config, qlogs: &str) -> Result<()> {
    let mut connection: Option<Connection> = None;
    let mut request = Vec::new();
    let mut left: Option<u64> = None;
    let zeros = vec![0; PIECE];
    loop {
        let local = io.local;
        io.wait(connection.as_mut(), |connection, datagram, from| {
            let _ = connection.recv(datagram, RecvInfo { from, to: local });
        })?;
        if connection.is_none() {
            let Some((mut datagram, from)) = io.first.take() else { continue };
            let mut accepted = quiche::accept(&id(2), None, local, from, config)?;
            let log = BufWriter::new(File::create(format!("{qlogs}/server.sqlog"))?);
            accepted.set_qlog(Box::new(log), "weir-quiche".to_owned(), String::new());
            let _ = accepted.recv(&mut datagram, RecvInfo { from, to: local });
            connection = Some(accepted);
        }
        let Some(connection) = &mut connection else { continue };
        let mut buffer = [0; 64];
        while let Ok((length, _)) = connection.stream_recv(STREAM, &mut buffer) {
            request.extend(&buffer[..length]);
        }
        if left.is_none() {
            left = request.first_chunk().map(|bytes| u64::from_be_bytes(*bytes));
        }
        while let Some(bytes) = left.filter(|bytes| *bytes > 0) {
            let piece = &zeros[..bytes.min(PIECE as u64) as usize];
            let is_last = piece.len() as u64 == bytes;
            match connection.stream_send(STREAM, piece, is_last) {
                Ok(0) | Err(_) => break,
                Ok(taken) => left = Some(bytes - taken as u64),
            }
        }
        io.flush(connection)?;
        if connection.is_closed() {
            return Ok(());
        }
    }
}

fn fetch(io: &mut Io, config: &mut Config, to: SocketAddr, bytes: u64) -> Result<()> {
    let mut connection = quiche::connect(Some("server"), &id(1), io.local, to, config)?;
    let mut piece = vec![0; PIECE];
    let (mut received, mut asked) = (0, false);
    io.flush(&mut connection)?;
    loop {
        let local = io.local;
        io.wait(Some(&mut connection), |connection, datagram, from| {
            let _ = connection.recv(datagram, RecvInfo { from, to: local });
        })?;
        if connection.is_established() && !asked {
            connection.stream_send(STREAM, &bytes.to_be_bytes(), true)?;
            asked = true;
        }
        while let Ok((length, is_last)) = connection.stream_recv(STREAM, &mut piece) {
            received += length as u64;
            if is_last {
                println!("{{\"bytes\": {received}}}");
                let _ = connection.close(true, 0, b"");
                io.flush(&mut connection)?;
                return Ok(());
            }
        }
        io.flush(&mut connection)?;
        if connection.is_closed() {
            return Err(format!("the connection ended after {received} bytes").into());
        }
    }
}

fn config() -> Result<Config> {
    let mut config = Config::new(quiche::PROTOCOL_VERSION)?;
    config.set_application_protos(&[b"weir"])?;
    config.set_max_idle_timeout(30_000);
    config.set_initial_max_data(WINDOW);
    config.set_initial_max_stream_data_bidi_local(WINDOW);
    config.set_initial_max_stream_data_bidi_remote(WINDOW);
    config.set_max_connection_window(WINDOW);
    config.set_max_stream_window(WINDOW);
    config.set_initial_max_streams_bidi(1);
    config.set_max_recv_udp_payload_size(PAYLOAD);
    config.set_max_send_udp_payload_size(PAYLOAD);
    Ok(config)
}

fn id(end: u8) -> ConnectionId<'static> {
    ConnectionId::from_vec(vec![end; 16])
}

/// A socket, and the datagrams that wait for their time.
struct Io {
    socket: UdpSocket,
    local: SocketAddr,
    waiting: VecDeque<(Instant, Vec<u8>, SocketAddr)>,
    /// The datagram that opens the first connection.
    first: Option<(Vec<u8>, SocketAddr)>,
    buffer: Vec<u8>,
}

impl Io {
    fn bind(address: SocketAddr) -> Result<Self> {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        let local = socket.local_addr()?;
        Ok(Self { socket, local, waiting: VecDeque::new(), first: None, buffer: vec![0; 1 << 16] })
    }

    /// Waits for a datagram, a deadline of the connection or the time of a datagram to send.
    fn wait(
        &mut self,
        connection: Option<&mut Connection>,
        take: impl Fn(&mut Connection, &mut [u8], SocketAddr),
    ) -> Result<()> {
        let now = Instant::now();
        let deadline = connection.as_ref().and_then(|connection| connection.timeout());
        let departure = self.waiting.front().map(|(at, ..)| at.saturating_duration_since(now));
        let time =
            [deadline, departure].into_iter().flatten().min().unwrap_or(Duration::from_secs(1));
        let timeout =
            Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() };
        let ready = poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&timeout))?;
        let Some(connection) = connection else {
            if ready > 0 {
                let (length, from) = self.socket.recv_from(&mut self.buffer)?;
                self.first = Some((self.buffer[..length].to_vec(), from));
            }
            return Ok(());
        };
        // All that is there, before an answer to any of it.
        while ready > 0 {
            match self.socket.recv_from(&mut self.buffer) {
                Ok((length, from)) => take(connection, &mut self.buffer[..length], from),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            }
        }
        if connection.timeout() == Some(Duration::ZERO) {
            connection.on_timeout();
        }
        Ok(())
    }

    /// Sends what is due; the rest waits.
    fn flush(&mut self, connection: &mut Connection) -> Result<()> {
        let mut datagram = [0; PAYLOAD];
        loop {
            let now = Instant::now();
            while self.waiting.front().is_some_and(|(at, ..)| *at <= now) {
                let Some((_, datagram, to)) = self.waiting.pop_front() else { break };
                self.socket.send_to(&datagram, to)?;
            }
            if self.waiting.len() >= MOST_WAITING {
                return Ok(());
            }
            match connection.send(&mut datagram) {
                Ok((length, info)) => {
                    self.waiting.push_back((info.at, datagram[..length].to_vec(), info.to));
                }
                Err(quiche::Error::Done) if self.is_due() => {}
                Err(quiche::Error::Done) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn is_due(&self) -> bool {
        self.waiting.front().is_some_and(|(at, ..)| *at <= Instant::now())
    }
}

/// The first stream of a client, which both ends use.
const STREAM: u64 = 0;
const PIECE: usize = 64 << 10;
/// Datagrams that fit into packets of 1500 bytes, with IPv4.
const PAYLOAD: usize = 1472;
/// More than any path here holds.
const WINDOW: u64 = 64 << 20;
/// Datagrams that the pacer delays, and this program keeps: what comes later stays with quiche.
const MOST_WAITING: usize = 64;
