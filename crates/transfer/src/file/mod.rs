//! The file protocol: what a sender says of its files, and how a receiver keeps them.
//!
//! One connection carries a session: the sender announces files and sends their pieces without waiting
//! ([`Outgoing`]); the receiver answers what it has already and what became of each file
//! ([`Incoming`]). A file appears under its name only when its hash is right. docs/transfer.md has the
//! frames.

mod brought;
mod claims;
mod disk;
mod entries;
mod finalizer;
mod folder;
mod frame;
mod inbox;
mod incoming;
mod litter;
mod memory;
mod name;
mod outbox;
mod outgoing;
mod partial;
mod parts;
mod path;
mod quota;
mod read_ahead;
mod shared;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod unreliable;
mod window;
mod writer;

pub(crate) use disk::attributes_of;
pub use disk::{
    Disk, DiskFile, Entry, FileState, Helpers, OpenFolder, StoredFile, SystemDisk, Watch,
};
pub use finalizer::Finalizer;
pub use folder::Folder;
pub use frame::{
    Announcement, Answer, Attributes, EntryHeader, EntryKind, Frame, FrameError, Hash, Header,
    MAX_FRAME, MAX_NAME, MAX_PARTS, MAX_PATH, Tally, Verdict,
};
pub(crate) use incoming::COST_OF_A_SESSION;
pub use incoming::{Incoming, IncomingFile, IncomingKind, Omitted};
pub use name::safe_name;
pub use outgoing::{Failure, Outgoing, OutgoingFile, OutgoingKind};
pub use path::SafePath;
pub(crate) use shared::SharedState;
pub use unreliable::{DatagramOptions, OutgoingDatagrams};

/// What an error says, without the system's number for it.
pub(crate) fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}
