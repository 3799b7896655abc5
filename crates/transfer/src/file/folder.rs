//! The folder of a receiver.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use weir_units::{Bytes, Duration};

use super::disk::Disk;

/// Where files go, and what is refused.
#[derive(Clone, Debug)]
pub struct Folder {
    /// The disk,
    pub disk: Arc<dyn Disk>,
    /// and the folder on it.
    pub path: PathBuf,
    /// The largest file; without it, the free space of the disk.
    pub max_size: Option<Bytes>,
    /// The most files of one session, with folders and links.
    pub max_files: u32,
    /// Whether folders and links are taken.
    pub takes_folders: bool,
    /// The most that all files in the folder may take, if there is a bound.
    pub quota: Option<Bytes>,
    /// For how long a partial file may wait for its sender.
    pub expiry: Duration,
    /// The most memory for all senders: data out of order, not requested or not yet written, and answers.
    pub memory: Bytes,
    /// What is offered at first, and at most once the path has shown what it carries.
    pub window: Range<Bytes>,
}
