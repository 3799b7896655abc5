//! Text files that a scenario or an option names.
//!
//! A scenario may come from another person, and a path may name a device or a FIFO: files are regular
//! and bounded, and no error repeats what is in them.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// Largest file that is read.
pub const MAX_FILE_BYTES: u64 = 16 << 20;
/// Most lines of it.
const MAX_LINES: usize = 2_000_000;

/// Returns the text of the regular file at `path`, or in one line why not.
pub(crate) fn read_text(path: &Path) -> Result<String, String> {
    read_bounded(path, MAX_FILE_BYTES)
}

/// The same for a file of at most `max_bytes`.
pub(crate) fn read_bounded(path: &Path, max_bytes: u64) -> Result<String, String> {
    let shown = path.display();
    let unreadable = |error| format!("'{shown}' cannot be read: {error}");
    // Before it is opened, because opening a FIFO blocks.
    if !fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(format!("'{shown}' is not a regular file"));
    }
    let mut text = String::new();
    // One byte more shows that there is more.
    File::open(path)
        .and_then(|file| file.take(max_bytes + 1).read_to_string(&mut text))
        .map_err(unreadable)?;
    if text.len() as u64 > max_bytes {
        return Err(format!("'{shown}' is longer than {max_bytes} bytes, the most that is read"));
    }
    if text.lines().count() > MAX_LINES {
        return Err(format!("'{shown}' has more than {MAX_LINES} lines, the most that are read"));
    }
    // Editors of Windows begin a file with the mark of UTF-8.
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}
