//! The kernel's TCP moving a file: what our transfers are measured against.
//!
//! A transfer takes from the sender's clock just before it connects to the receiver's when the last
//! byte is in its file: `CLOCK_MONOTONIC`, which all processes of a machine share. Nothing but the
//! file's bytes travels; its end is the connection's.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use thiserror::Error;
use weir_sockets::clock::monotonic_nanos;

/// How the sender hands its file over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendMethod {
    /// `sendfile`: the system takes the bytes from its page cache.
    Sendfile,
    /// `write` in calls of this many bytes.
    Write(usize),
}

/// What moved, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferTimes {
    /// The file's bytes.
    pub bytes: u64,
    /// `CLOCK_MONOTONIC` in nanoseconds: for a sender just before it connected, for a receiver when a
    /// sender's connection was there.
    pub began: u64,
    /// For a sender when the receiver had closed too, for a receiver when the last byte was in its file.
    pub ended: u64,
}

/// Called with the bytes moved so far, after each piece and at least five times a second. Its error
/// ends the transfer.
pub type Watch<'a> = dyn FnMut(u64) -> io::Result<()> + 'a;

/// Waits for senders.
#[derive(Debug)]
pub struct Listener(TcpListener);

/// A transfer that did not happen.
#[derive(Debug, Error)]
pub enum TcpError {
    /// The kernel knows no such congestion control, or does not let us use it.
    #[error(
        "the kernel's TCP has no congestion control '{name}' for us ({error}); /proc/sys/net/ipv4/tcp_available_congestion_control names those that it has"
    )]
    Controller {
        /// As requested.
        name: String,
        /// The system's answer.
        error: io::Error,
    },
    /// A system call failed.
    #[error("{what}: {error}")]
    System {
        /// What was tried.
        what: String,
        /// The system's answer.
        error: io::Error,
    },
}

/// Sends a file over a connection of its own, with the congestion control of that name or the system's.
///
/// # Errors
/// What the system refuses, and what `watch` returns.
pub fn send(
    path: &Path,
    to: SocketAddr,
    controller: Option<&str>,
    handover: SendMethod,
    watch: &mut Watch<'_>,
) -> Result<TransferTimes, TcpError> {
    let failed = |what: &str| failure(format!("{what} to {to} over TCP"));
    let file = File::open(path).map_err(failure(format!("open {}", path.display())))?;
    let socket = open(to, controller)?;
    let began = monotonic_nanos();
    connect(&socket, to, watch).map_err(failed("connect"))?;
    let mut stream = TcpStream::from(socket);
    be_watchful(&stream).map_err(failed("connect"))?;
    let bytes = match handover {
        SendMethod::Sendfile => send_file(&file, &stream, watch),
        SendMethod::Write(size) => write_file(&file, &mut stream, size.max(1), watch),
    };
    let bytes = bytes.map_err(failed("send"))?;
    stream.shutdown(std::net::Shutdown::Write).map_err(failed("send"))?;
    patiently(watch, bytes, || stream.read(&mut [0])).map_err(failed("send"))?;
    Ok(TransferTimes { bytes, began, ended: monotonic_nanos() })
}

/// Listens on `address`; port 0 lets the system choose. Connections have the congestion control of that
/// name or the system's.
///
/// # Errors
/// What the system refuses.
pub fn listen(address: SocketAddr, controller: Option<&str>) -> Result<Listener, TcpError> {
    let failed = || failure(format!("listen on TCP address {address}"));
    let socket = open(address, controller)?;
    socket.set_reuse_address(true).map_err(failed())?;
    socket.bind(&address.into()).map_err(failed())?;
    socket.listen(8).map_err(failed())?;
    Ok(Listener(socket.into()))
}

impl Listener {
    /// Where it listens.
    ///
    /// # Errors
    /// What the system reports.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

/// Receives one file, 256 KiB at a time.
///
/// # Errors
/// What the system refuses, and what `watch` returns.
pub fn receive(
    path: &Path,
    listener: &Listener,
    watch: &mut Watch<'_>,
) -> Result<TransferTimes, TcpError> {
    let mut stream =
        accept(&listener.0, watch).map_err(failure("accept a TCP connection".into()))?;
    let began = monotonic_nanos();
    let mut file = File::create(path).map_err(failure(format!("create {}", path.display())))?;
    let mut buffer = vec![0; PIECE];
    let mut bytes = 0;
    loop {
        let taken = patiently(watch, bytes, || stream.read(&mut buffer));
        let taken = taken.map_err(failure("receive over TCP".into()))?;
        if taken == 0 {
            return Ok(TransferTimes { bytes, began, ended: monotonic_nanos() });
        }
        file.write_all(&buffer[..taken]).map_err(failure(format!("write {}", path.display())))?;
        bytes += taken as u64;
        watch(bytes).map_err(failure("receive over TCP".into()))?;
    }
}

fn failure(what: String) -> impl FnOnce(io::Error) -> TcpError {
    |error| TcpError::System { what, error }
}

fn open(address: SocketAddr, controller: Option<&str>) -> Result<Socket, TcpError> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))
        .map_err(failure("open a TCP socket".into()))?;
    if let Some(name) = controller {
        set_controller(&socket, name)
            .map_err(|error| TcpError::Controller { name: name.to_owned(), error })?;
    }
    Ok(socket)
}

#[cfg(target_os = "linux")]
fn set_controller(socket: &Socket, name: &str) -> io::Result<()> {
    Ok(rustix::net::sockopt::set_tcp_congestion(socket, name)?)
}

#[cfg(not(target_os = "linux"))]
fn set_controller(_: &Socket, _: &str) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Connects, which may take many retransmissions of the SYN.
fn connect(socket: &Socket, to: SocketAddr, watch: &mut Watch<'_>) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    match socket.connect(&to.into()) {
        Ok(()) => {}
        Err(error)
            if error.raw_os_error() == Some(rustix::io::Errno::INPROGRESS.raw_os_error()) =>
        {
            wait_for(socket, rustix::event::PollFlags::OUT, watch)?;
            socket.take_error()?.map_or(Ok(()), Err)?;
        }
        Err(error) => return Err(error),
    }
    socket.set_nonblocking(false)
}

fn accept(listener: &TcpListener, watch: &mut Watch<'_>) -> io::Result<TcpStream> {
    wait_for(listener, rustix::event::PollFlags::IN, watch)?;
    let (stream, _) = listener.accept()?;
    be_watchful(&stream)?;
    Ok(stream)
}

fn wait_for(
    fd: &impl std::os::fd::AsFd,
    flags: rustix::event::PollFlags,
    watch: &mut Watch<'_>,
) -> io::Result<()> {
    let timeout =
        rustix::event::Timespec { tv_sec: 0, tv_nsec: i64::from(PATIENCE.subsec_nanos()) };
    loop {
        let mut fds = [rustix::event::PollFd::new(fd, flags)];
        match rustix::event::poll(&mut fds, Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => watch(0)?,
            Ok(_) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

/// No call on the stream blocks for long.
fn be_watchful(stream: &TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))
}

/// Repeats a call that the stream's timeout or a signal has ended.
fn patiently<T>(
    watch: &mut Watch<'_>,
    moved: u64,
    mut call: impl FnMut() -> io::Result<T>,
) -> io::Result<T> {
    loop {
        match call() {
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock
                        | io::ErrorKind::TimedOut
                        | io::ErrorKind::Interrupted
                ) =>
            {
                watch(moved)?;
            }
            result => return result,
        }
    }
}

#[cfg(target_os = "linux")]
fn send_file(file: &File, stream: &TcpStream, watch: &mut Watch<'_>) -> io::Result<u64> {
    let size = file.metadata()?.len();
    let mut offset = 0;
    while offset < size {
        let left = (size - offset) as usize;
        let moved = offset;
        let sent = patiently(watch, moved, || {
            Ok(rustix::fs::sendfile(stream, file, Some(&mut offset), left)?)
        })?;
        if sent == 0 {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the file has become shorter",
            ));
        }
        watch(offset)?;
    }
    Ok(offset)
}

#[cfg(not(target_os = "linux"))]
fn send_file(_: &File, _: &TcpStream, _: &mut Watch<'_>) -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}

fn write_file(
    mut file: &File,
    stream: &mut TcpStream,
    size: usize,
    watch: &mut Watch<'_>,
) -> io::Result<u64> {
    let mut buffer = vec![0; size.max(PIECE)];
    let mut bytes = 0;
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok(bytes);
        }
        for piece in buffer[..read].chunks(size) {
            let mut done = 0;
            while done < piece.len() {
                done += patiently(watch, bytes, || stream.write(&piece[done..]))?;
            }
            bytes += piece.len() as u64;
        }
        watch(bytes)?;
    }
}

/// What is read at a time.
const PIECE: usize = 256 << 10;
/// How long a call may block.
const PATIENCE: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;

    fn move_file(handover: SendMethod, size: usize) {
        let dir = std::env::temp_dir().join(format!("weir-tcp-{}-{size}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let (from, to) = (dir.join("from"), dir.join("to"));
        let bytes: Vec<u8> = (0..size).map(|at| (at * 31 % 251) as u8).collect();
        std::fs::write(&from, &bytes).unwrap();
        let listener = listen("127.0.0.1:0".parse().unwrap(), None).unwrap();
        let address = listener.local_addr().unwrap();
        let sender = std::thread::spawn(move || {
            send(&from, address, None, handover, &mut |_| Ok(())).unwrap()
        });
        let received = receive(&to, &listener, &mut |_| Ok(())).unwrap();
        let sent = sender.join().unwrap();
        assert!(std::fs::read(&to).unwrap() == bytes, "{handover:?}");
        assert_eq!((sent.bytes, received.bytes), (size as u64, size as u64));
        assert!(sent.began < received.ended);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_file_arrives_by_write() {
        move_file(SendMethod::Write(1_500), 1_000_000);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_file_arrives_by_sendfile() {
        move_file(SendMethod::Sendfile, 3_000_000);
    }

    #[test]
    fn what_is_not_there_is_named() {
        let nowhere: SocketAddr = "127.0.0.1:1".parse().unwrap();
        let path = Path::new("/proc/self/exe");
        let refused = send(path, nowhere, None, SendMethod::Sendfile, &mut |_| Ok(())).unwrap_err();
        assert!(refused.to_string().starts_with("connect to 127.0.0.1:1 over TCP: "), "{refused}");
        let unknown = listen(nowhere, Some("warp")).unwrap_err().to_string();
        assert!(unknown.contains("no congestion control 'warp'"), "{unknown}");
    }

    #[test]
    fn a_watcher_ends_the_wait_for_a_sender() {
        let listener = listen("127.0.0.1:0".parse().unwrap(), None).unwrap();
        let mut impatient = |_| Err(io::Error::other("enough"));
        let path = std::env::temp_dir().join("weir-tcp-never");
        let error = receive(&path, &listener, &mut impatient).unwrap_err().to_string();
        assert_eq!(error, "accept a TCP connection: enough");
        assert!(!path.exists());
    }
}
