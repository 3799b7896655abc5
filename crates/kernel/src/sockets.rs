//! The kernel's connections as a run wants them.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, OwnedFd};

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{RcvBuf, RcvBufForce, SndBufForce, TcpMaxSeg};
use rustix::net::sockopt::{
    set_socket_linger, set_socket_reuseaddr, set_tcp_congestion, set_tcp_nodelay,
};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, listen, recv, send,
    socket_with,
};
use weir_scene::{OnOff, RunSpec, Workload};
use weir_transport::Config;

use super::check::{controller, kernel_config};

mod option {
    use nix::{libc, setsockopt_impl, sockopt_impl};

    sockopt_impl!(
        /// How many bytes that were not sent yet the kernel takes.
        NotSentLowat,
        SetOnly,
        libc::IPPROTO_TCP,
        libc::TCP_NOTSENT_LOWAT,
        u32
    );
    sockopt_impl!(
        /// The most bytes that leave in a second.
        MaxPacingRate,
        SetOnly,
        libc::SOL_SOCKET,
        libc::SO_MAX_PACING_RATE,
        u64
    );
}

/// What became of a call on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IoOutcome {
    /// Number of bytes that went in or out.
    Bytes(u64),
    /// Nothing can at present.
    Blocked,
    /// The other end sends nothing more.
    Closed,
}

/// A socket for each of the kernel's flows, to connect from; for the namespace of the calling thread.
pub(super) fn connectors(spec: &RunSpec) -> io::Result<Vec<Option<OwnedFd>>> {
    let per_flow = spec.flows.iter().map(|flow| {
        kernel_config(flow).map(|config| connector(config, &flow.workload)).transpose()
    });
    per_flow.collect()
}

/// A socket to connect from.
pub(super) fn connector(config: &Config, workload: &Workload) -> io::Result<OwnedFd> {
    let socket = open(config)?;
    if let Some(size) = config.send_buffer {
        // With `SO_SNDBUFFORCE` the limit does not apply; Linux doubles the value.
        setsockopt(&socket, SndBufForce, &(size.get() as usize / 2))?;
    }
    if let Some(rate) = config.max_pacing_rate {
        setsockopt(&socket, option::MaxPacingRate, &(rate.as_bits_per_sec() / 8))?;
    }
    if matches!(workload, Workload::OnOff(OnOff { rate: None, .. })) {
        setsockopt(&socket, option::NotSentLowat, &UNSENT)?;
    }
    Ok(socket)
}

/// A socket for each of the kernel's flows that listens at the port of the flow.
pub(super) fn listeners(spec: &RunSpec) -> io::Result<Vec<Option<OwnedFd>>> {
    let per_flow = (0u16..).zip(&spec.flows).map(|(index, flow)| {
        let listening = |config| listener(config, FIRST_PORT + index);
        kernel_config(flow).map(listening).transpose()
    });
    per_flow.collect()
}

/// A socket that listens at a port; 0 is any free one.
pub(super) fn listener(config: &Config, port: u16) -> io::Result<OwnedFd> {
    let socket = open(config)?;
    if config.recv_buffer != Config::default().recv_buffer {
        // As above. Half of what Linux makes of it is the window, which is thus the buffer of the scenario.
        let size = config.recv_buffer.get() as usize;
        setsockopt(&socket, RcvBufForce, &size).or_else(|_| setsockopt(&socket, RcvBuf, &size))?;
    }
    set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port))?;
    listen(&socket, 1)?;
    Ok(socket)
}

/// A TCP socket that does not block, with what both ends have in common: congestion control is also
/// the answering side's, and DCTCP asks for it there to agree on ECN.
fn open(config: &Config) -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    set_tcp_congestion(&socket, &controller(config))?;
    set_tcp_nodelay(&socket, true)?;
    setsockopt(&socket, TcpMaxSeg, &(config.mss + options_len(config)))?;
    Ok(socket)
}

/// What a connection's options add to the header of each segment.
pub(super) fn options_len(config: &Config) -> u32 {
    if config.timestamps { 12 } else { 0 }
}

/// Hands over some of `left` bytes, which are zeros, at most `piece` of them.
pub(super) fn write(socket: impl AsFd, left: u64, piece: usize) -> io::Result<IoOutcome> {
    static ZEROS: [u8; MESSAGE] = [0; MESSAGE];
    let zeros = &ZEROS[..left.min(piece.min(MESSAGE) as u64) as usize];
    moved(send(socket, zeros, SendFlags::NOSIGNAL))
}

/// Discards what has arrived, without a copy (`MSG_TRUNC` in tcp(7)).
pub(super) fn discard(socket: impl AsFd, scratch: &mut [u8]) -> io::Result<IoOutcome> {
    match recv(socket, scratch, RecvFlags::TRUNC) {
        Ok((_, 0)) => Ok(IoOutcome::Closed),
        result => moved(result.map(|(_, bytes)| bytes)),
    }
}

fn moved(result: rustix::io::Result<usize>) -> io::Result<IoOutcome> {
    match result {
        Ok(bytes) => Ok(IoOutcome::Bytes(bytes as u64)),
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(IoOutcome::Blocked),
        Err(error) => Err(error.into()),
    }
}

/// Lets closing the socket break the connection off.
pub(super) fn break_off(socket: OwnedFd) {
    // Where that fails, the connection is broken already.
    let _ = set_socket_linger(&socket, Some(std::time::Duration::ZERO));
}

/// Flow `i` listens at this port and `i`.
pub const FIRST_PORT: u16 = 6_000;
/// What a source writes at a time, as the simulator's applications do: TCP pushes the middle and the end of
/// such a piece. A source that may take back what is not sent writes this much too much.
pub(super) const PIECE: usize = 64 << 10;
/// The same of requests and answers, which the simulator writes whole: where the window has space for all of one, each
/// piece would end with a short segment.
pub(super) const MESSAGE: usize = 4 << 20;
const UNSENT: u32 = 16 << 10;
