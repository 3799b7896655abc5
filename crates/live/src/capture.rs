//! What packet capture somebody asks for.

use std::path::PathBuf;

/// A packet capture, as it is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The file; one that is there already is replaced.
    pub path: PathBuf,
    /// How many bytes of each packet are kept.
    pub snap_len: u32,
    /// What its times count from.
    pub epoch: Epoch,
}

/// What the times of a capture count from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Epoch {
    /// 1970, as the machine's clock has it.
    WallClock,
    /// The beginning of the run: nothing of the machine is in the file.
    Run,
}

impl Capture {
    /// A capture of headers.
    pub fn of_headers(path: impl Into<PathBuf>, epoch: Epoch) -> Self {
        Self { path: path.into(), snap_len: HEADERS, epoch }
    }
}

/// The longest headers of IPv4 and TCP, and a little of what they carry.
const HEADERS: u32 = 128;
