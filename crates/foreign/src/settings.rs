//! What a scenario may set of a hosted stack. Everything else is the stack's default.

use std::sync::Arc;

use weir_scene::ForeignStack;
use weir_units::Bytes;

/// Settings of both ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Bytes that the receiver allows in flight on a stream.
    pub receive_window: Bytes,
    /// The largest UDP payload: what path MTU discovery stops at.
    pub max_payload: u16,
}

/// Makes a stack of this name.
pub(crate) type Make = fn(&str, Settings) -> Arc<dyn ForeignStack>;

/// The host and the controller of ours in a name; the prefix `weir-` marks it as ours.
pub(crate) fn ours(name: &str) -> Option<(&str, &str)> {
    let (host, controller) = name.split_once('/')?;
    Some((host, controller.strip_prefix("weir-")?))
}

/// What a connection starts with (RFC 9000 §14).
pub const MIN_PAYLOAD: u16 = 1_200;

impl Default for Settings {
    /// Both stacks probe up to 1452 bytes, and our own transport has this receive buffer.
    fn default() -> Self {
        Self { receive_window: Bytes(64 << 20), max_payload: 1_452 }
    }
}
