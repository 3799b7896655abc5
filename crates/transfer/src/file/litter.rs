//! Partial files of which there are too many: anyone can leave them.
//!
//! Each address and each network has its share of them, and so have all together. Of those above it the emptiest go
//! first, of these the oldest: what costs little to leave costs little to lose.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use weir_sockets::places::Origin;

use super::disk::StoredFile;

/// A partial file, and the address of the session that brought some of it, if that is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Litter<'a> {
    pub(super) file: &'a StoredFile,
    pub(super) origin: Option<Origin>,
}

/// Partial files of which some have to go.
#[derive(Debug)]
pub(super) struct Surplus<'a> {
    /// How many.
    pub(super) count: usize,
    /// All of them, those that go first before the others.
    pub(super) files: Vec<Litter<'a>>,
}

/// What is above the shares of addresses, then of networks, and of all: where all are too many, the networks that have
/// most lose some until they have equally many.
pub(super) fn surplus<'a>(all: &[Litter<'a>]) -> Vec<Surplus<'a>> {
    let mut found = Vec::new();
    let by_address = groups(all, |origin| origin.map(|origin| origin.address()));
    found.extend(by_address.into_values().filter_map(|files| above(files, PER_ADDRESS)));
    let by_network = groups(all, |origin| origin.map(|origin| origin.network()));
    let share = share_of(by_network.values().map(Vec::len));
    let (mut left, mut last) = (0, Vec::new());
    for (network, mut files) in by_network {
        // Those of an earlier process have no known network.
        let most = if network.is_some() { PER_NETWORK } else { usize::MAX };
        let most = most.min(share.saturating_add(1));
        left += files.len().min(most);
        if files.len() > share {
            sort(&mut files);
            // Some of those with one above the share lose it.
            last.push(files[files.len().saturating_sub(most)]);
        }
        found.extend(above(files, most));
    }
    sort(&mut last);
    if let Some(count) = left.checked_sub(IN_ALL).filter(|count| *count > 0) {
        found.push(Surplus { count, files: last });
    }
    found
}

/// Sorts files in the order in which they go.
pub(super) fn sort(files: &mut [Litter<'_>]) {
    files.sort_by_key(|litter| (litter.file.occupied, Reverse(litter.file.age)));
}

fn above(mut files: Vec<Litter<'_>>, most: usize) -> Option<Surplus<'_>> {
    let count = files.len().checked_sub(most).filter(|count| *count > 0)?;
    sort(&mut files);
    Some(Surplus { count, files })
}

fn groups<'a>(
    all: &[Litter<'a>],
    of: impl Fn(Option<Origin>) -> Option<u128>,
) -> BTreeMap<Option<u128>, Vec<Litter<'a>>> {
    let mut groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for litter in all {
        groups.entry(of(litter.origin)).or_default().push(*litter);
    }
    groups
}

/// How many each of groups of these sizes may have, so that all have at most [`IN_ALL`] together, and more than that if
/// each had one more.
fn share_of(sizes: impl Iterator<Item = usize>) -> usize {
    let mut sizes: Vec<_> = sizes.collect();
    sizes.sort_unstable();
    let mut left = IN_ALL;
    for (n, size) in sizes.iter().enumerate() {
        let share = left / (sizes.len() - n);
        if *size > share {
            return share;
        }
        left -= size;
    }
    usize::MAX
}

/// Of one address (IPv6: /64) and one network (/24, /48), and in all.
const PER_ADDRESS: usize = 32;
const PER_NETWORK: usize = 256;
const IN_ALL: usize = 1_024;

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use weir_units::Duration;

    use super::*;

    fn stored(count: usize, occupied: u64) -> Vec<StoredFile> {
        let file = |n: usize| StoredFile {
            path: PathBuf::from(n.to_string()),
            occupied,
            age: Duration::from_secs(n as u64),
        };
        (0..count).map(file).collect()
    }

    fn from<'a>(files: &'a [StoredFile], ip: impl Fn(usize) -> String) -> Vec<Litter<'a>> {
        let origin = |n| Origin::of(ip(n).parse().expect("an address"));
        files.iter().enumerate().map(|(n, file)| Litter { file, origin: Some(origin(n)) }).collect()
    }

    #[test]
    fn an_address_keeps_its_fullest_and_newest() {
        let (empty, full) = (stored(40, 8_192), stored(2, 1 << 20));
        let mut all = from(&empty, |_| "192.0.2.1".to_owned());
        all.extend(from(&full, |_| "192.0.2.1".to_owned()));
        let [surplus] = &surplus(&all)[..] else { panic!("one address") };
        assert_eq!(surplus.count, 10);
        assert_eq!(surplus.files[0].file.path, PathBuf::from("39"), "the oldest of the emptiest");
        assert!(surplus.files[40..].iter().all(|litter| litter.file.occupied == 1 << 20));
    }

    #[test]
    fn a_lone_one_stays_whatever_others_leave() {
        let (litter, own) = (stored(6_000, 8_192), stored(1, 12_288));
        let mut all = from(&litter, |n| format!("10.{}.{}.{}", n / 100, n % 100, n % 250));
        all.extend(from(&own, |_| "203.0.113.9".to_owned()));
        let gone: usize = surplus(&all).iter().map(|surplus| surplus.count).sum();
        assert_eq!(gone, 6_001 - IN_ALL);
        let is_own = |litter: &Litter<'_>| litter.file.occupied == 12_288;
        for Surplus { count, files } in surplus(&all) {
            assert!(!files[..count].iter().any(is_own), "it is fuller than the others");
        }
    }

    #[test]
    fn a_prefix_of_ipv6_is_one_address() {
        let files = stored(100, 8_192);
        let host = from(&files, |n| format!("2001:db8:1:2::{n}"));
        assert_eq!(surplus(&host)[0].count, 100 - PER_ADDRESS);
        let site = from(&files, |n| format!("2001:db8:1:{n}::1"));
        assert!(surplus(&site).is_empty());
    }
}
