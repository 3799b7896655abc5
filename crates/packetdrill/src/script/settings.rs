//! The settings of a script.

use std::net::Ipv4Addr;

use weir_transport::Stack;
use weir_units::Duration;

use crate::fast_open::Key;

/// Option lines and sysctls. The defaults are those of packetdrill's own tests for Linux.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Loss recovery and congestion control.
    pub stack: Stack,
    /// The smallest tolerance of times.
    pub tolerance: Duration,
    /// `net.ipv4` sysctls with their values.
    pub sysctls: Vec<(Sysctl, i64)>,
    /// `tcp_rmem`: the smallest, the first and the largest receive buffer, as Linux counts memory.
    pub receive_memory: Option<[u64; 3]>,
    /// `tcp_wmem`: the smallest, the first and the largest send buffer. Without it a write takes all.
    pub send_memory: Option<[u64; 3]>,
    /// `tcp_notsent_lowat`: how much may be written and not sent; 0 for any amount.
    pub not_sent: u32,
    /// `net.ipv4` sysctls with values that make no difference here, for a kernel.
    pub neutral: Vec<(String, String)>,
    /// How many microseconds a tick of the stack's timestamps has, if their values are compared.
    pub tick: Option<u32>,
    /// The device has the queueing discipline `fq`, which paces every connection.
    pub paces: bool,
    /// The largest packet, with its headers.
    pub mtu: u16,
    /// The connection is one over IPv6, whose headers are longer.
    pub ipv6: bool,
    /// The script sets sysctls of FreeBSD, where a buffer has the size that it is set to.
    pub freebsd: bool,
    /// `tcp_fastopen`, as a set of [`FastOpenSwitch`]es.
    pub fast_open: u32,
    /// `tcp_fastopen_key`.
    pub fast_open_key: Key,
    /// The addresses of the stack and of the script's side, of which a cookie is made.
    pub addresses: (Ipv4Addr, Ipv4Addr),
    /// How often what the stack remembers of its peers was flushed.
    pub flushes: u32,
}

impl Settings {
    /// Whether Fast Open has this switch.
    pub const fn has_fast_open(&self, switch: FastOpenSwitch) -> bool {
        self.fast_open & switch as u32 != 0
    }

    /// The value of a sysctl: the script's last one, or the default.
    pub fn sysctl(&self, wanted: Sysctl) -> i64 {
        let set = self.sysctls.iter().rev().find(|(sysctl, _)| *sysctl == wanted);
        set.map_or(wanted.default(), |(_, value)| *value)
    }
}

/// The switches in `tcp_fastopen` (Linux's `ip-sysctl`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastOpenSwitch {
    /// Clients send data with their SYN.
    Client = 0x1,
    /// Servers accept it.
    Server = 0x2,
    /// Clients send it without a cookie.
    ClientWithoutCookie = 0x4,
    /// Servers accept it without a cookie.
    ServerWithoutCookie = 0x200,
    /// Every listening socket accepts it.
    AllListeners = 0x400,
}

macro_rules! sysctls {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $default:literal, $allowed:expr;)*) => {
        /// A `net.ipv4` sysctl that all endpoints understand.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Sysctl {
            $($(#[$doc])* $variant,)*
        }

        impl Sysctl {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Its name below `net.ipv4`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Its value in a script that does not set it.
            pub const fn default(self) -> i64 {
                match self { $(Self::$variant => $default,)* }
            }

            /// The values that it may have.
            pub const fn allowed(self) -> std::ops::RangeInclusive<i64> {
                match self { $(Self::$variant => $allowed,)* }
            }
        }
    };
}

sysctls! {
    /// 0: no ECN, 1: offers and accepts, 2: accepts.
    Ecn = "tcp_ecn", 0, 0..=2;
    /// Selective acknowledgements.
    Sack = "tcp_sack", 1, 0..=1;
    /// Timestamps.
    Timestamps = "tcp_timestamps", 1, 0..=1;
    /// Windows of more than 64 KiB.
    WindowScaling = "tcp_window_scaling", 1, 0..=1;
    /// Restart from the initial window after idling.
    SlowStartAfterIdle = "tcp_slow_start_after_idle", 0, 0..=1;
    /// Retransmissions of a SYN before the connection fails.
    SynRetries = "tcp_syn_retries", 6, 1..=127;
    /// Retransmissions of the answer to a SYN before the connection fails.
    SynAckRetries = "tcp_synack_retries", 5, 0..=127;
    /// Retransmissions of data before the connection fails.
    Retries = "tcp_retries2", 15, 0..=255;
}
