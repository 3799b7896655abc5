//! One file over one unidirectional stream of quiche, with TLS 1.3.
//!
//! quiche brings no event loop; this one has a socket with segmentation offload both ways, one thread,
//! and sends all that quiche gives at once. The sender does not check the certificate.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fs::File;
use std::io::{self, IoSliceMut, Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use quiche::{Config, Connection, ConnectionId, RecvInfo};
use quinn_udp::{RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::json;
use weir_bench_peers::{Job, WINDOW, any, bind, cpu_s, monotonic_ns, run, say};

type Failure = Box<dyn Error>;

fn main() {
    run(|job| match job {
        Job::Receive { listen, directory, stack } => {
            let mut config = config(&stack)?;
            certify(&mut config)?;
            let mut io = Io::new(bind(listen)?)?;
            say(&json!({ "address": io.local.to_string() }));
            let began = cpu_s();
            let mut file = File::create(directory.join("file"))?;
            let ended_ns = receive(&mut io, &mut config, &mut file)?;
            say(&json!({ "ended_ns": ended_ns, "cpu_s": cpu_s() - began }));
            Ok(())
        }
        Job::Send { to, path, stack } => {
            let began = cpu_s();
            let mut config = config(&stack)?;
            config.verify_peer(false);
            let mut io = Io::new(bind(any(to))?)?;
            let mut file = File::open(path)?;
            let began_ns = monotonic_ns();
            send(&mut io, &mut config, to, &mut file)?;
            say(&json!({ "began_ns": began_ns, "cpu_s": cpu_s() - began }));
            Ok(())
        }
    });
}

/// Returns when the last byte was in the file.
fn receive(io: &mut Io, config: &mut Config, file: &mut File) -> Result<u64, Failure> {
    let mut connection: Option<Connection> = None;
    let mut piece = vec![0; 1 << 20];
    loop {
        io.wait(connection.as_ref())?;
        let local = io.local;
        io.recv(|datagram, from| {
            let connection = match &mut connection {
                Some(connection) => connection,
                none => none.insert(quiche::accept(&id(2), None, local, from, config)?),
            };
            let _ = connection.recv(datagram, RecvInfo { from, to: local });
            Ok(())
        })?;
        let Some(connection) = &mut connection else { continue };
        tick(connection);
        for stream in connection.readable() {
            while let Ok((length, is_last)) = connection.stream_recv(stream, &mut piece) {
                file.write_all(&piece[..length])?;
                if is_last {
                    let ended_ns = monotonic_ns();
                    let _ = connection.close(true, 0, b"");
                    io.flush(connection)?;
                    return Ok(ended_ns);
                }
            }
        }
        io.flush(connection)?;
        if connection.is_closed() {
            return Err("the connection broke".into());
        }
    }
}

fn send(
    io: &mut Io,
    config: &mut Config,
    to: SocketAddr,
    file: &mut File,
) -> Result<(), Failure> {
    let mut piece = vec![0; 256 << 10];
    let (mut at, mut end, mut is_over, mut is_finished) = (0, 0, false, false);
    let mut connection = quiche::connect(Some("localhost"), &id(1), io.local, to, config)?;
    loop {
        io.flush(&mut connection)?;
        io.wait(Some(&connection))?;
        let local = io.local;
        io.recv(|datagram, from| {
            let _ = connection.recv(datagram, RecvInfo { from, to: local });
            Ok(())
        })?;
        tick(&mut connection);
        while connection.is_established() && !is_finished {
            if at == end && !is_over {
                (at, end) = (0, file.read(&mut piece)?);
                is_over = end == 0;
            }
            match connection.stream_send(STREAM, &piece[at..end], is_over) {
                Ok(_) if is_over => is_finished = true,
                Ok(0) | Err(_) => break,
                Ok(taken) => at += taken,
            }
        }
        if connection.is_closed() || connection.is_draining() {
            return if is_finished { Ok(()) } else { Err("the connection broke".into()) };
        }
    }
}

fn tick(connection: &mut Connection) {
    if connection.timeout() == Some(Duration::ZERO) {
        connection.on_timeout();
    }
}

fn config(stack: &str) -> Result<Config, Failure> {
    let mut config = Config::new(quiche::PROTOCOL_VERSION)?;
    config.set_application_protos(&[b"file"])?;
    config.set_cc_algorithm_name(match stack {
        "bbr" => "bbr2_gcongestion",
        other => other,
    })?;
    config.set_max_idle_timeout(30_000);
    config.set_initial_max_data(WINDOW);
    config.set_initial_max_stream_data_uni(WINDOW);
    config.set_max_connection_window(WINDOW);
    config.set_max_stream_window(WINDOW);
    config.set_initial_max_streams_uni(1);
    config.set_max_recv_udp_payload_size(PAYLOAD);
    config.set_max_send_udp_payload_size(PAYLOAD);
    config.enable_pacing(false);
    Ok(config)
}

/// Gives the receiver a certificate of its own; quiche takes it from files only.
fn certify(config: &mut Config) -> Result<(), Failure> {
    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let path = std::env::temp_dir().join(format!("weir-bench-{}.pem", std::process::id()));
    let name = path.to_str().ok_or("the temporary directory has an odd name")?;
    let loaded = std::fs::write(&path, signed.cert.pem() + &signed.signing_key.serialize_pem())
        .map_err(Failure::from)
        .and_then(|()| Ok(config.load_cert_chain_from_pem_file(name)?))
        .and_then(|()| Ok(config.load_priv_key_from_pem_file(name)?));
    std::fs::remove_file(&path)?;
    loaded
}

fn id(end: u8) -> ConnectionId<'static> {
    ConnectionId::from_vec(vec![end; 16])
}

/// A socket with its batches.
struct Io {
    socket: UdpSocket,
    state: UdpSocketState,
    local: SocketAddr,
    arrived: Vec<u8>,
    leaving: Vec<u8>,
}

impl Io {
    fn new(socket: UdpSocket) -> io::Result<Self> {
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        let local = socket.local_addr()?;
        Ok(Self { socket, state, local, arrived: vec![0; 1 << 16], leaving: vec![0; 1 << 17] })
    }

    /// Waits for datagrams, or for the connection's next deadline.
    fn wait(&self, connection: Option<&Connection>) -> io::Result<()> {
        let time = connection.and_then(Connection::timeout).unwrap_or(Duration::from_secs(1));
        let timeout =
            Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
        poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&timeout))?;
        Ok(())
    }

    /// Hands over what has arrived, some batches at most.
    fn recv(
        &mut self,
        mut take: impl FnMut(&mut [u8], SocketAddr) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        for _ in 0..BATCHES {
            let mut meta = [RecvMeta::default()];
            let mut slices = [IoSliceMut::new(&mut self.arrived)];
            match self.state.recv(UdpSockRef::from(&self.socket), &mut slices, &mut meta) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            }
            for datagram in self.arrived[..meta[0].len].chunks_mut(meta[0].stride.max(1)) {
                take(datagram, meta[0].addr)?;
            }
        }
        Ok(())
    }

    /// Sends what the connection has to send, in batches of datagrams of one size.
    fn flush(&mut self, connection: &mut Connection) -> Result<(), Failure> {
        loop {
            let (mut length, mut size, mut to) = (0, 0, None);
            let most = connection.send_quantum().clamp(1, LARGEST_BATCH);
            while length == 0 || (length + size <= most && length / size < MOST_SEGMENTS) {
                match connection.send(&mut self.leaving[length..]) {
                    Ok((written, info)) => {
                        to = Some(info.to);
                        length += written;
                        if size == 0 {
                            size = written;
                        } else if written > size {
                            // It is larger than those before: it leaves on its own.
                            self.out(0, length - written, size, info.to)?;
                            self.out(length - written, written, written, info.to)?;
                            (length, size, to) = (0, 0, None);
                        } else if written < size {
                            break;
                        }
                    }
                    Err(quiche::Error::Done) => break,
                    Err(error) => return Err(error.into()),
                }
            }
            let Some(to) = to else { return Ok(()) };
            self.out(0, length, size, to)?;
        }
    }

    fn out(&self, at: usize, length: usize, size: usize, to: SocketAddr) -> io::Result<()> {
        let transmit = Transmit {
            destination: to,
            ecn: None,
            contents: &self.leaving[at..at + length],
            segment_size: (length > size).then_some(size),
            src_ip: None,
        };
        loop {
            match self.state.send(UdpSockRef::from(&self.socket), &transmit) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    poll(&mut [PollFd::new(&self.socket, PollFlags::OUT)], None)?;
                }
                result => return result,
            }
        }
    }
}

const STREAM: u64 = 2;
const PAYLOAD: usize = 1452;
const BATCHES: usize = 32;
const LARGEST_BATCH: usize = 64_000;
const MOST_SEGMENTS: usize = 60;
