//! The journal behind the content of a partial file: up to where the file is whole.

use crate::file::frame::{Hash, Header};

/// Where the journal of a file of `size` bytes lies: in one sector, so that it is the old or the new one if the process
/// is killed while the kernel copies it page by page, or the power fails (a disk writes a logical block as a whole:
/// NVM Express Base Specification 2.0, AWUPF).
pub(super) fn journal_at(size: u64) -> u64 {
    size.next_multiple_of(SECTOR)
}

/// The journal: a mark, how much is whole, of what, and a check against half of it being written.
pub(super) fn journal(prefix: u64, size: u64, hash: &Hash) -> [u8; JOURNAL_LEN] {
    let mut bytes = [0; JOURNAL_LEN];
    let (body, check) = bytes.split_at_mut(JOURNAL_LEN - CHECK_LEN);
    body[..8].copy_from_slice(b"weirpart");
    body[8..16].copy_from_slice(&prefix.to_be_bytes());
    body[16..24].copy_from_slice(&size.to_be_bytes());
    body[24..].copy_from_slice(hash);
    check.copy_from_slice(&blake3::hash(body).as_bytes()[..CHECK_LEN]);
    bytes
}

pub(super) fn read_journal(bytes: &[u8; JOURNAL_LEN], header: &Header) -> Option<u64> {
    let prefix = u64::from_be_bytes(*bytes[8..].first_chunk()?);
    let proper = prefix <= header.size && *bytes == journal(prefix, header.size, &header.hash);
    proper.then_some(prefix)
}

const SECTOR: u64 = 512;
pub(super) const JOURNAL_LEN: usize = 24 + blake3::OUT_LEN + CHECK_LEN;
const CHECK_LEN: usize = 8;
