//! Sockets of the simulated host.

use weir_transport::Config;

use crate::fast_open::Key;

/// A file descriptor.
#[derive(Clone, Debug)]
pub(super) struct Socket {
    pub(super) role: Role,
    pub(super) config: Config,
    pub(super) non_blocking: bool,
    /// Data on a SYN to it opens a connection (`TCP_FASTOPEN`).
    pub(super) takes_early_data: bool,
    /// `connect` waits for the data (`TCP_FASTOPEN_CONNECT`).
    pub(super) connects_late: bool,
    pub(super) fast_open_key: Option<Key>,
    /// What was set, as it is read.
    pub(super) values: Values,
    /// Bytes that a call which still blocks has written.
    pub(super) progress: u64,
}

/// What a descriptor stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A socket without a connection.
    Fresh,
    /// One that waits for data to connect with.
    Late,
    Listener,
    /// A connection.
    Flow(usize),
    /// A file.
    File,
}

impl Socket {
    pub(super) fn new(config: Config) -> Self {
        Self {
            role: Role::Fresh,
            config,
            non_blocking: false,
            takes_early_data: false,
            connects_late: false,
            fast_open_key: None,
            values: Values::default(),
            progress: 0,
        }
    }

    pub(super) fn is_listening(&self) -> bool {
        self.role == Role::Listener
    }
}

/// Values of options that a script has set and may read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Values {
    pub(super) receive_buffer: Option<u32>,
    pub(super) send_buffer: Option<u32>,
    pub(super) user_timeout: u32,
    pub(super) not_sent: u32,
    pub(super) early_connections: u32,
}
