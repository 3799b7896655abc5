//! Pours a file through loopback, over the kernel's TCP and over our endpoints in turn, and prints how
//! long each took, the ratio to TCP's sendfile of the same round, and the CPU time at both ends.
//!
//! ```console
//! $ cargo run --release -p weir-transfer --example pour -- 110mb 1452 rack/cubic 5
//! ```
//!
//! The arguments are the size, the length of a datagram, the stack, the number of rounds, and either
//! `sealed` for a connection under a key or an upper bound of the pacing rate, which counts payload.
//! The file lies in `/dev/shm` where there is one. Nothing is hashed: this measures the endpoint.

#![allow(clippy::print_stdout, reason = "it is a program")]

use std::error::Error;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use rustix::time::{ClockId, clock_gettime};
use weir_sockets::clock::monotonic_nanos;
use weir_transfer::endpoint::{Application, Endpoint};
use weir_transfer::seal::{Key, OVERHEAD};
use weir_transfer::tcp::{self, SendMethod};
use weir_transport::{Config, Connection, Event, Stats};
use weir_units::{Bytes, Duration, Instant, Rate};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let argument = |at: usize, default: &str| {
        arguments.get(at).map_or_else(|| default.to_owned(), Clone::clone)
    };
    let size: Bytes = argument(1, "110mb").parse()?;
    let datagram: u32 = argument(2, "1452").parse()?;
    let stack: weir_transport::Stack = argument(3, "rack/cubic").parse()?;
    let rounds: usize = argument(4, "5").parse()?;
    let key = (argument(5, "") == "sealed").then(|| Key::new([7; 32]));
    let overhead = key.as_ref().map_or(0, |_| OVERHEAD as u32);
    let bound = arguments.get(5).filter(|_| key.is_none());
    let most: Option<Rate> = bound.map(|rate| rate.parse()).transpose()?;
    let dir = directory()?;
    let (source, target) = (dir.join("source"), dir.join("target"));
    std::fs::write(&source, vec![0x5a; size.get() as usize])?;
    let config = Config {
        stack,
        mss: datagram - HEADER - overhead,
        recv_buffer: Bytes(64 << 20),
        time_wait: Duration::ZERO,
        gso: 64,
        max_pacing_rate: most,
        ..Config::default()
    };
    println!("        tcp sendfile       tcp write 256K         ours {datagram}");
    println!("          ms   cpu s        ms   cpu s  ratio       ms   cpu s (send+recv)  ratio");
    let mut ratios = Vec::new();
    for _ in 0..rounds {
        let sendfile = over_tcp(&source, &target, SendMethod::Sendfile)?;
        let write = over_tcp(&source, &target, SendMethod::Write(256 << 10))?;
        let ours = over_us(&source, &target, &config, key.as_ref())?;
        let ratio = |run: &Run| run.millis / sendfile.millis;
        println!(
            "    {:8.2}  {:6.3}  {:8.2}  {:6.3}  {:5.2} {:8.2}  {:6.3} {:.3}+{:.3}     {:5.2}  {}",
            sendfile.millis,
            sendfile.cpu.0 + sendfile.cpu.1,
            write.millis,
            write.cpu.0 + write.cpu.1,
            ratio(&write),
            ours.millis,
            ours.cpu.0 + ours.cpu.1,
            ours.cpu.0,
            ours.cpu.1,
            ratio(&ours),
            ours.note,
        );
        ratios.push(ratio(&ours));
    }
    ratios.sort_by(f64::total_cmp);
    println!("median ratio to sendfile: {:.2}", ratios[ratios.len() / 2]);
    std::fs::remove_dir_all(dir)?;
    Ok(())
}

/// One transfer.
struct Run {
    millis: f64,
    /// CPU seconds of the sender and the receiver.
    cpu: (f64, f64),
    note: String,
}

fn over_tcp(source: &Path, target: &Path, handover: SendMethod) -> Result<Run, Box<dyn Error>> {
    let _ = std::fs::remove_file(target);
    let listener = tcp::listen(LOOPBACK, None)?;
    let address = listener.local_addr()?;
    let source = source.to_owned();
    let sender = thread::spawn(move || {
        let sent = tcp::send(&source, address, None, handover, &mut |_| Ok(()));
        sent.map(|sent| (sent.began, cpu())).map_err(|error| error.to_string())
    });
    let before = cpu();
    let received = tcp::receive(target, &listener, &mut |_| Ok(()))?;
    let receiver_cpu = cpu() - before;
    let (began, sender_cpu) = sender.join().map_err(|_| "the sender panicked")??;
    Ok(Run {
        millis: (received.ended - began) as f64 / 1e6,
        cpu: (sender_cpu, receiver_cpu),
        note: String::new(),
    })
}

fn over_us(
    source: &Path,
    target: &Path,
    config: &Config,
    key: Option<&Key>,
) -> Result<Run, Box<dyn Error>> {
    let _ = std::fs::remove_file(target);
    let mut server = endpoint(key)?;
    let address = server.socket().local_addr();
    let (path, ours, key) = (source.to_owned(), config.clone(), key.cloned());
    let sender = thread::spawn(move || {
        send(&path, address, &ours, key.as_ref()).map_err(|error| error.to_string())
    });
    let before = cpu();
    let (path, size) = (target.to_owned(), std::fs::metadata(source)?.len());
    let theirs = Config { delayed_ack: Some(weir_transport::DelayedAck::Off), ..config.clone() };
    let (done, ended) = mpsc::channel();
    let window = server.socket().recv_buffer();
    server.listen(theirs, move |_| Sink::create(&path, size, window, done.clone()).ok());
    while server.next_ended().is_none() {
        server.step(Duration::from_secs(1))?;
    }
    let ended = ended.try_recv()?;
    let receiver_cpu = cpu() - before;
    let (began, sender_cpu, stats) = sender.join().map_err(|_| "the sender panicked")??;
    Ok(Run {
        millis: (ended - began) as f64 / 1e6,
        cpu: (sender_cpu, receiver_cpu),
        note: format!(
            "{} sent again ({} after timeouts, {} in vain), {} acks",
            stats.retransmits,
            stats.retransmits_rto,
            stats.retransmits_spurious,
            stats.segments_received,
        ),
    })
}

fn endpoint<A: Application>(key: Option<&Key>) -> Result<Endpoint<A>, Box<dyn Error>> {
    let mut endpoint = Endpoint::bind(LOOPBACK)?;
    key.map_or(Ok(()), |key| endpoint.seal_with(key.clone()))?;
    Ok(endpoint)
}

fn send(
    path: &Path,
    to: SocketAddr,
    config: &Config,
    key: Option<&Key>,
) -> Result<(u64, f64, Stats), Box<dyn Error>> {
    let mut client = endpoint(key)?;
    let source = Source::open(path)?;
    let began = monotonic_nanos();
    client.connect(to, config, source);
    loop {
        client.step(Duration::from_secs(1))?;
        if let Some(ended) = client.next_ended() {
            ended.error.map_or(Ok(()), Err)?;
            return Ok((began, cpu(), *ended.connection.stats()));
        }
    }
}

/// Sends a file, read ahead in large pieces.
struct Source {
    file: File,
    size: u64,
    /// Where the piece lies, and the piece.
    at: u64,
    piece: Vec<u8>,
}

impl Source {
    fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        Ok(Self { size: file.metadata()?.len(), file, at: 0, piece: Vec::new() })
    }
}

impl Application for Source {
    fn fill(&mut self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let end = offset + buf.len() as u64;
        if offset < self.at || end > self.at + self.piece.len() as u64 {
            let len = (self.size - offset).min(PIECE);
            self.piece.resize(len as usize, 0);
            self.file.read_exact_at(&mut self.piece, offset)?;
            self.at = offset;
        }
        let from = (offset - self.at) as usize;
        buf.copy_from_slice(&self.piece[from..from + buf.len()]);
        Ok(())
    }

    fn store(&mut self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(io::Error::other("the receiver sends nothing"))
    }

    fn on_step(&mut self, now: Instant, connection: &mut Connection) -> io::Result<()> {
        while let Some(event) = connection.poll_event() {
            match event {
                Event::Connected => {
                    connection.write(now, self.size);
                    connection.close(now);
                }
                Event::Failed(error) => return Err(io::Error::other(error)),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Writes what arrives, in large pieces.
struct Sink {
    file: File,
    size: u64,
    at: u64,
    piece: Vec<u8>,
    /// What the socket holds.
    window: Bytes,
    done: mpsc::Sender<u64>,
}

impl Sink {
    fn create(path: &Path, size: u64, window: Bytes, done: mpsc::Sender<u64>) -> io::Result<Self> {
        let piece = Vec::with_capacity(PIECE as usize);
        Ok(Self { file: File::create(path)?, size, at: 0, piece, window, done })
    }

    fn write_out(&mut self) -> io::Result<()> {
        self.file.write_all_at(&self.piece, self.at)?;
        self.at += self.piece.len() as u64;
        self.piece.clear();
        Ok(())
    }
}

impl Application for Sink {
    fn fill(&mut self, _: u64, _: &mut [u8]) -> io::Result<()> {
        Err(io::Error::other("the receiver sends nothing"))
    }

    fn store(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if offset != self.at + self.piece.len() as u64 {
            self.write_out()?;
            self.at = offset;
        }
        self.piece.extend_from_slice(bytes);
        if self.piece.len() + bytes.len() > PIECE as usize { self.write_out() } else { Ok(()) }
    }

    fn on_step(&mut self, now: Instant, connection: &mut Connection) -> io::Result<()> {
        connection.read(now, u64::MAX);
        connection.set_recv_window(self.window);
        while let Some(event) = connection.poll_event() {
            match event {
                Event::Finished => {
                    self.write_out()?;
                    let _ = self.done.send(monotonic_nanos());
                    if self.file.metadata()?.len() != self.size {
                        return Err(io::Error::other("the file is not whole"));
                    }
                    connection.close(now);
                }
                Event::Failed(error) => return Err(io::Error::other(error)),
                _ => {}
            }
        }
        Ok(())
    }
}

fn directory() -> io::Result<PathBuf> {
    let shared = PathBuf::from("/dev/shm");
    let parent = if shared.is_dir() { shared } else { std::env::temp_dir() };
    let dir = parent.join(format!("weir-pour-{}", std::process::id()));
    std::fs::create_dir(&dir)?;
    Ok(dir)
}

/// CPU seconds of this thread.
fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// A header with timestamps.
const HEADER: u32 = 32;
/// What is read and written at a time.
const PIECE: u64 = 256 << 10;
const LOOPBACK: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);
