//! What both drivers share: a job comes in as a line of JSON, answers go out, as
//! `python/weir/transfers/worker.py` has it.
#![forbid(unsafe_code)]

use std::io::{self, Write};
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;

use rustix::time::{ClockId, clock_gettime};
use serde::Deserialize;
use serde_json::{Value, json};

/// What an end is asked to do.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase")]
pub enum Job {
    /// Receive one file into a folder.
    Receive {
        /// Where to listen.
        listen: SocketAddr,
        /// The folder.
        directory: PathBuf,
        /// The congestion control.
        stack: String,
    },
    /// Send one file.
    Send {
        /// Where to.
        to: SocketAddr,
        /// The file.
        path: PathBuf,
        /// The congestion control.
        stack: String,
    },
}

/// Reads the job, does it, and says what went wrong if anything did.
pub fn run(work: impl FnOnce(Job) -> Result<(), Box<dyn std::error::Error>>) {
    let mut line = String::new();
    let done = io::stdin()
        .read_line(&mut line)
        .map_err(Into::into)
        .and_then(|_| Ok(serde_json::from_str(&line)?))
        .and_then(work);
    if let Err(error) = done {
        say(&json!({ "error": error.to_string() }));
    }
    // The caller ends this process: an orderly end of the runtimes would take long.
    let _ = io::stdin().read_line(&mut line);
    std::process::exit(0);
}

/// Prints an answer.
pub fn say(answer: &Value) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{answer}").and_then(|()| out.flush());
}

/// `CLOCK_MONOTONIC` in nanoseconds.
pub fn monotonic_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The CPU time of this process so far, in seconds.
pub fn cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// A UDP socket with as large buffers as the system allows.
///
/// # Errors
/// What the system refuses.
pub fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(address)?;
    let options = socket2::SockRef::from(&socket);
    options.set_recv_buffer_size(BUFFER)?;
    options.set_send_buffer_size(BUFFER)?;
    Ok(socket)
}

/// Where a sender to `to` binds.
pub fn any(to: SocketAddr) -> SocketAddr {
    let text = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    text.parse().expect("it is an address")
}

/// The windows of streams and connections: never what limits.
pub const WINDOW: u64 = 25_000_000;

const BUFFER: usize = 4 << 20;
