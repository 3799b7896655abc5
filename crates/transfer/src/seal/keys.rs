//! The keys that a receiver knows: one, or one for each peer in a folder.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::key::{Key, KeyError};

/// A key, and whose it is where a receiver has several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedKey {
    /// The name of its file without `.key`.
    pub name: Option<String>,
    /// The key.
    pub key: Key,
}

/// Keys of which a peer needs one.
#[derive(Clone, Debug)]
pub struct Keys {
    keys: Vec<Arc<NamedKey>>,
    folder: Option<Folder>,
}

/// Where keys are from.
#[derive(Clone, Debug)]
struct Folder {
    path: PathBuf,
    /// When something was last added there or removed. `None` if the folder has to be read again in any
    /// case: something in it was wrong, or another change may not show in its time.
    changed_at: Option<SystemTime>,
}

impl Keys {
    /// Reads the files `NAME.key` of a folder.
    ///
    /// # Errors
    /// If the folder or one of them cannot be read, holds no key or too many, or two hold the same.
    pub fn read_folder(folder: &Path) -> Result<Self, KeyError> {
        let none = Self { keys: Vec::new(), folder: None };
        let (keys, problem) = none.read_again(folder)?;
        problem.map_or(Ok(keys), Err)
    }

    /// Reads the folder again unless nothing was added there, replaced or removed since; `None` if so. Where
    /// something in it is wrong, that is returned too: a removed key is gone nevertheless, and a file that
    /// holds no key leaves its peer's as it was.
    pub fn reread(&self) -> Option<(Self, Option<KeyError>)> {
        let Folder { path, changed_at: before } = self.folder.as_ref()?;
        if before.is_some() && changed_at(path).ok() == *before {
            return None;
        }
        Some(self.read_again(path).unwrap_or_else(|error| (self.clone(), Some(error))))
    }

    /// The keys in a folder, of which these are known, and the first thing that is wrong with it.
    fn read_again(&self, folder: &Path) -> Result<(Self, Option<KeyError>), KeyError> {
        let unreadable = |source| KeyError::Folder { path: folder.to_owned(), source };
        let changed_at = changed_at(folder).map_err(unreadable)?;
        let files = key_files(folder).map_err(unreadable)?;
        let mut problem = (files.is_empty() || files.len() > Key::MOST)
            .then(|| KeyError::Count { path: folder.to_owned(), found: files.len() });
        let mut keys = Vec::new();
        let mut seen: HashMap<blake3::Hash, PathBuf> = HashMap::new();
        for path in files.into_iter().take(Key::MOST) {
            let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
            let key = Key::read(&path).or_else(|error| {
                problem.get_or_insert(error);
                self.iter()
                    .find(|known| known.name == name)
                    .map(|known| known.key.clone())
                    .ok_or(())
            });
            let Ok(key) = key else { continue };
            if let Some(first) = seen.insert(key.digest(), path.clone()) {
                problem.get_or_insert(KeyError::Twice { first, second: path });
                continue;
            }
            keys.push(Arc::new(NamedKey { name, key }));
        }
        let is_settled = changed_at.elapsed().is_ok_and(|age| age > COARSEST_TIMES);
        let changed_at = Some(changed_at).filter(|_| is_settled && problem.is_none());
        Ok((Self { keys, folder: Some(Folder { path: folder.to_owned(), changed_at }) }, problem))
    }

    /// Whether these are the same keys under the same names.
    pub fn are_same(&self, others: &Self) -> bool {
        self.keys == others.keys
    }

    /// Whether this very key is one of them, under this very name.
    pub fn contains(&self, key: &NamedKey) -> bool {
        self.iter().any(|other| **other == *key)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<NamedKey>> {
        self.keys.iter()
    }
}

impl From<Key> for Keys {
    fn from(key: Key) -> Self {
        Self { keys: vec![Arc::new(NamedKey { name: None, key })], folder: None }
    }
}

/// Some file systems keep times in steps of two seconds.
const COARSEST_TIMES: Duration = Duration::from_secs(2);

fn changed_at(folder: &Path) -> io::Result<SystemTime> {
    fs::metadata(folder)?.modified()
}

/// In the order of their names.
fn key_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "key") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            fs::write(folder.path().join(name), text).expect("written");
        }
        folder
    }

    fn refusal(files: &[(&str, &str)]) -> String {
        let folder = folder(files);
        let error = Keys::read_folder(folder.path()).expect_err("refused");
        error.to_string().replace(&folder.path().display().to_string(), "KEYS")
    }

    #[test]
    fn each_file_is_a_key_with_a_name() {
        let (one, two) = ("01".repeat(32), "02".repeat(32));
        let folder = folder(&[("bob.key", &two), ("alice.key", &one), ("README", "no key")]);
        let keys = Keys::read_folder(folder.path()).expect("two keys");
        assert_eq!(names(&keys), ["alice", "bob"]);
        let bob = Arc::clone(&keys.keys[1]);
        assert!(keys.contains(&bob));
        set_changed_at(folder.path(), hour_ago());
        let keys = reread(&keys);
        assert!(keys.reread().is_none(), "nothing has changed for an hour");
        fs::remove_file(folder.path().join("alice.key")).expect("removed");
        let keys = reread(&keys);
        assert_eq!(keys.iter().count(), 1);
        fs::write(folder.path().join("bob.key"), "03".repeat(32)).expect("written");
        let keys = Keys::read_folder(folder.path()).expect("one key");
        assert!(!keys.contains(&bob), "a new key is not the old one");
    }

    /// A folder's time has steps: of a few milliseconds at best.
    #[test]
    fn a_removal_right_after_the_folder_was_read_is_noticed() {
        let folder = folder(&[("alice.key", &"01".repeat(32)), ("bob.key", &"02".repeat(32))]);
        let now = SystemTime::now();
        set_changed_at(folder.path(), now);
        let keys = Keys::read_folder(folder.path()).expect("two keys");
        fs::remove_file(folder.path().join("alice.key")).expect("removed");
        set_changed_at(folder.path(), now);
        assert_eq!(names(&reread(&keys)), ["bob"]);
    }

    #[test]
    fn a_removed_key_is_gone_whatever_else_is_wrong() {
        let (one, two, three) = ("01".repeat(32), "02".repeat(32), "03".repeat(32));
        let folder = folder(&[("alice.key", &one), ("bob.key", &two)]);
        let keys = Keys::read_folder(folder.path()).expect("two keys");
        fs::remove_file(folder.path().join("alice.key")).expect("removed");
        fs::write(folder.path().join("bob.key"), "half of i").expect("written");
        fs::write(folder.path().join("carol.key"), &three).expect("written");
        let (keys, problem) = keys.reread().expect("it has changed");
        assert!(matches!(problem, Some(KeyError::Malformed { .. })), "{problem:?}");
        assert_eq!(names(&keys), ["bob", "carol"]);
        set_changed_at(folder.path(), hour_ago());
        assert!(keys.reread().is_some(), "what is wrong may be mended in its place");
        for name in ["bob.key", "carol.key"] {
            fs::remove_file(folder.path().join(name)).expect("removed");
        }
        let (keys, problem) = keys.reread().expect("it has changed");
        assert!(matches!(problem, Some(KeyError::Count { found: 0, .. })), "{problem:?}");
        assert_eq!(names(&keys), [""; 0], "the last one too");
    }

    fn names(keys: &Keys) -> Vec<String> {
        keys.iter().filter_map(|key| key.name.clone()).collect()
    }

    fn reread(keys: &Keys) -> Keys {
        let (keys, problem) = keys.reread().expect("it has to be read again");
        assert!(problem.is_none(), "{problem:?}");
        keys
    }

    fn hour_ago() -> SystemTime {
        SystemTime::now() - Duration::from_secs(3_600)
    }

    fn set_changed_at(folder: &Path, at: SystemTime) {
        fs::File::open(folder).and_then(|folder| folder.set_modified(at)).expect("times");
    }

    #[test]
    fn what_is_wrong_with_a_folder_is_said() {
        let one = "01".repeat(32);
        assert_eq!(
            refusal(&[("README", "")]),
            "the key folder 'KEYS' holds 0 files NAME.key; 1 to 1024 are allowed, and `weir recv --new-key KEYS/NAME.key` makes one"
        );
        assert_eq!(
            refusal(&[("a.key", &one), ("b.key", &one)]),
            "'KEYS/a.key' and 'KEYS/b.key' hold the same key; each peer needs its own, so that one can be removed"
        );
        assert!(refusal(&[("a.key", "x")]).starts_with("the key file 'KEYS/a.key' holds"));
        let error = Keys::read_folder(Path::new("no/such/folder")).expect_err("not there");
        let expected = "cannot read the key folder 'no/such/folder': No such file or directory";
        assert_eq!(error.to_string(), expected);
    }
}
