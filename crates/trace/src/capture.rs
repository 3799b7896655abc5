//! Options of a packet capture, and its file.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use crate::pcapng::{CapturedPacket, PcapngWriter};

/// A requested packet capture.
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

/// The file of a capture while it is being written.
///
/// It has the requested name only when it is complete: until then it is `PATH.partial`, and is
/// removed if nothing comes of it.
pub struct CaptureFile {
    file: PcapngWriter<BufWriter<File>>,
    path: PathBuf,
    partial: Partial,
    /// The first refusal of the system; nothing is recorded after it.
    failure: Option<io::Error>,
}

impl CaptureFile {
    /// Makes the file of a capture at interfaces of these names.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn create(asked: &Capture, interfaces: &[String]) -> io::Result<Self> {
        let partial = Partial::of(&asked.path);
        let sink = BufWriter::with_capacity(BUFFER, File::create(&partial.0)?);
        let mut file = PcapngWriter::new(sink, PROGRAM, interfaces, asked.snap_len)?;
        // A file that cannot be written is an error before the run.
        file.flush()?;
        Ok(Self { file, path: asked.path.clone(), partial, failure: None })
    }

    /// Records a packet, unless that has failed before.
    pub fn write(&mut self, packet: &CapturedPacket<'_>) {
        if self.failure.is_none()
            && let Err(error) = self.file.write(packet)
        {
            self.failure = Some(named(&self.path, error));
        }
    }

    /// What went wrong so far.
    ///
    /// # Errors
    /// What the system refused.
    pub fn check(&mut self) -> io::Result<()> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Completes the file.
    ///
    /// # Errors
    /// What the system refused, now or before.
    pub fn finish(mut self) -> io::Result<()> {
        self.check()?;
        let whole = self.file.flush().and_then(|()| std::fs::rename(&self.partial.0, &self.path));
        whole.map_err(|error| named(&self.path, error))
    }
}

/// A file that is removed unless it was completed.
struct Partial(PathBuf);

impl Partial {
    fn of(path: &Path) -> Self {
        let mut name = path.as_os_str().to_owned();
        name.push(".partial");
        Self(name.into())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // One that was completed is not called so any more.
        let _ = std::fs::remove_file(&self.0);
    }
}

fn named(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// The longest headers of IPv4 and TCP, and a little of what they carry.
const HEADERS: u32 = 128;
const PROGRAM: &str = concat!("weir ", env!("CARGO_PKG_VERSION"));
/// Bytes per write to the file, in some tens of microseconds.
const BUFFER: usize = 64 << 10;
