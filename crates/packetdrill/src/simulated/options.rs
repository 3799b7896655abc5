//! Socket options of the simulated host.

use std::ops::RangeInclusive;

use weir_cc::CcConfig;
use weir_transport::{Config, Stack};
use weir_units::{Bytes, Duration};

use super::Simulated;
use super::report::errno;
use super::socket::{Role, Socket};
use crate::endpoint::{EndpointError, Returned};
use crate::fast_open::Key;
use crate::script::{FastOpenSwitch, SocketOption};

impl Simulated {
    pub(super) fn set_option(
        &mut self,
        fd: i32,
        option: &SocketOption,
    ) -> Result<Returned, EndpointError> {
        let (freebsd, mss) = (self.settings.freebsd, self.mss());
        if let SocketOption::FastOpen(_) | SocketOption::FastOpenConnect(_) = option
            && !self.takes_fast_open(option)
        {
            return Ok(Returned::Error("EOPNOTSUPP"));
        }
        if is_out_of_range(option) {
            return Ok(Returned::Error("EINVAL"));
        }
        let socket = self.socket(fd);
        match option {
            SocketOption::FastOpen(number) => {
                socket.takes_early_data = *number > 0;
                socket.values.early_connections = *number;
            }
            SocketOption::FastOpenConnect(on) => socket.connects_late = *on,
            SocketOption::FastOpenKey(key) => match key {
                Some(key) => socket.fast_open_key = Some(Key(*key)),
                None => return Ok(Returned::Error("EINVAL")),
            },
            SocketOption::NotSent(bytes) => socket.values.not_sent = not_sent(*bytes),
            SocketOption::Error(_) => return Ok(Returned::Error("ENOPROTOOPT")),
            SocketOption::SendBuffer(bytes) => {
                socket.values.send_buffer = Some(bytes.saturating_mul(2).max(LEAST_SEND_BUFFER));
            }
            SocketOption::ReceiveBuffer(bytes) => {
                let factor = if freebsd { 1 } else { 2 };
                socket.values.receive_buffer = Some(bytes.saturating_mul(factor));
            }
            SocketOption::UserTimeout(millis) => socket.values.user_timeout = *millis,
            _ => {}
        }
        let Some(config) = configured(&socket.config, option, mss) else {
            return Ok(Returned::Error("ENOENT"));
        };
        socket.config = config;
        if let Role::Flow(_) = socket.role {
            return self.change_connection(fd, option);
        }
        Ok(Returned::Value(0))
    }

    /// Whether the host has switched on what the option is about.
    fn takes_fast_open(&self, option: &SocketOption) -> bool {
        let switch = match option {
            SocketOption::FastOpenConnect(_) => FastOpenSwitch::Client,
            _ if self.settings.freebsd => FastOpenSwitch::Client,
            _ => FastOpenSwitch::Server,
        };
        self.settings.has_fast_open(switch)
    }

    /// Options of an open connection.
    fn change_connection(
        &mut self,
        fd: i32,
        option: &SocketOption,
    ) -> Result<Returned, EndpointError> {
        let Some(flow) = self.flow(fd) else { return Ok(Returned::Value(0)) };
        match option {
            SocketOption::NoDelay(on) => {
                flow.set_no_delay(*on);
            }
            SocketOption::Cork(on) => flow.set_cork(*on),
            SocketOption::UserTimeout(millis) => {
                flow.connection.set_max_wait(user_timeout(*millis));
            }
            SocketOption::SynCount(count) => flow.connection.set_max_syn_retransmits(*count),
            SocketOption::SendBuffer(bytes) => {
                let size = bytes.saturating_mul(2).max(LEAST_SEND_BUFFER);
                flow.connection.set_send_buffer(Bytes(u64::from(size)));
            }
            SocketOption::Congestion(_) | SocketOption::ReceiveBuffer(_) => {
                let message = "Weir's transport takes TCP_CONGESTION and SO_RCVBUF before the \
                               handshake, not after it";
                return Err(EndpointError(message.to_owned()));
            }
            _ => {}
        }
        Ok(Returned::Value(0))
    }

    pub(super) fn read_option(
        &mut self,
        fd: i32,
        option: &SocketOption,
    ) -> Result<Returned, EndpointError> {
        let settings = &self.settings;
        let freebsd = settings.freebsd;
        let [_, received, _] = settings.receive_memory.unwrap_or(super::RECEIVE_MEMORY);
        let received = if settings.freebsd { received / 2 } else { received } as u32;
        let sent = settings.send_memory.map_or(SEND_BUFFER, |[_, first, _]| first as u32);
        let Socket { config, values, .. } = self.socket(fd).clone();
        let received = match self.flow(fd).filter(|flow| freebsd && flow.connected) {
            // Whole segments, in FreeBSD.
            Some(flow) => received.next_multiple_of(flow.connection.snapshot().mss.get() as u32),
            None => received,
        };
        let compared = |name, found: u32, expected: u32| match found == expected {
            true => Returned::Value(0),
            false => Returned::Stores(name, i64::from(found)),
        };
        Ok(match option {
            SocketOption::Error(expected) => {
                let failure = self.flow(fd).and_then(|flow| flow.failure.take());
                let found = failure.as_ref().map(errno);
                match found == expected.as_deref() {
                    true => Returned::Value(0),
                    false => Returned::Error(found.unwrap_or("no error")),
                }
            }
            SocketOption::NoDelay(on) => {
                compared("TCP_NODELAY", u32::from(!config.nagle), u32::from(*on))
            }
            SocketOption::Cork(on) => {
                let corked = self.flow(fd).is_some_and(|flow| flow.held.is_corked());
                compared("TCP_CORK", u32::from(corked), u32::from(*on))
            }
            SocketOption::MaxSegment(expected) => {
                let open = self.flow(fd).filter(|flow| flow.connected);
                let found =
                    open.map_or(config.mss, |flow| flow.connection.snapshot().mss.get() as u32);
                compared("TCP_MAXSEG", found, *expected)
            }
            SocketOption::SendBuffer(expected) => {
                compared("SO_SNDBUF", values.send_buffer.unwrap_or(sent), *expected)
            }
            SocketOption::ReceiveBuffer(expected) => {
                compared("SO_RCVBUF", values.receive_buffer.unwrap_or(received), *expected)
            }
            SocketOption::UserTimeout(expected) => {
                compared("TCP_USER_TIMEOUT", values.user_timeout, *expected)
            }
            SocketOption::NotSent(expected) => {
                compared("TCP_NOTSENT_LOWAT", values.not_sent, not_sent(*expected))
            }
            SocketOption::FastOpen(expected) => {
                compared("TCP_FASTOPEN", values.early_connections, *expected)
            }
            _ => return Err(EndpointError("getsockopt: Weir cannot read this option".to_owned())),
        })
    }
}

/// What Linux refuses (`do_tcp_setsockopt`).
fn is_out_of_range(option: &SocketOption) -> bool {
    match option {
        SocketOption::MaxSegment(bytes) => *bytes != 0 && !MAX_SEGMENTS.contains(bytes),
        SocketOption::SynCount(count) => !SYN_COUNTS.contains(count),
        SocketOption::UserTimeout(millis) => i32::try_from(*millis).is_err(),
        _ => false,
    }
}

/// The configuration with an option; none if there is no such controller.
fn configured(config: &Config, option: &SocketOption, mss: u32) -> Option<Config> {
    let config = config.clone();
    Some(match option {
        SocketOption::Congestion(name) => {
            let controller: CcConfig = name.parse().ok()?;
            let recovery = config.stack.recovery;
            config.with_stack(Stack { recovery, controller })
        }
        SocketOption::NoDelay(on) => config.with_nagle(!on),
        SocketOption::UserTimeout(millis) => config.with_max_wait(user_timeout(*millis)),
        SocketOption::SynCount(count) => config.with_max_syn_retransmits(Some(*count)),
        SocketOption::MaxSegment(bytes) => {
            config.with_mss(if *bytes == 0 { mss } else { mss.min(*bytes) })
        }
        // The kernel doubles both (socket(7)), and windows may have half of it (`tcp_win_from_space`), in
        // whole segments.
        SocketOption::ReceiveBuffer(bytes) => {
            let (bytes, mss) = (u64::from(*bytes).max(LEAST_BUFFER), u64::from(mss));
            config.with_recv_buffer(Bytes(bytes - bytes % mss.min(bytes)))
        }
        SocketOption::SendBuffer(bytes) => {
            let size = u64::from(bytes.saturating_mul(2).max(LEAST_SEND_BUFFER));
            config.with_send_buffer(Some(Bytes(size))).with_max_send_buffer(None)
        }
        _ => config,
    })
}

/// The largest value is no bound; nor is 0, which stands for the system's.
fn not_sent(bytes: u32) -> u32 {
    if bytes == u32::MAX { 0 } else { bytes }
}

/// 0 is the system's (tcp(7)).
fn user_timeout(millis: u32) -> Option<Duration> {
    (millis > 0).then(|| Duration::from_millis(u64::from(millis)))
}

/// Half of Linux's `SOCK_MIN_RCVBUF`.
const LEAST_BUFFER: u64 = 1_152;
/// `SOCK_MIN_SNDBUF`.
const LEAST_SEND_BUFFER: u32 = 4_608;
/// Linux's default (`net.ipv4.tcp_wmem`).
const SEND_BUFFER: u32 = 16_384;
/// `TCP_MIN_MSS` to `MAX_TCP_WINDOW`.
const MAX_SEGMENTS: RangeInclusive<u32> = 88..=32_767;
/// Up to `MAX_TCP_SYNCNT`.
const SYN_COUNTS: RangeInclusive<u32> = 1..=127;
