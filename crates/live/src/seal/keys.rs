//! The keys that a receiver knows: one, or one for each peer in a folder.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

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
    /// Where they are from, and when something was last added there or removed.
    folder: Option<(PathBuf, SystemTime)>,
}

impl Keys {
    /// Reads the files `NAME.key` of a folder.
    ///
    /// # Errors
    /// If the folder or one of them cannot be read, holds no key or too many, or two hold the same.
    pub fn read_folder(folder: &Path) -> Result<Self, KeyError> {
        let unreadable = |source| KeyError::Folder { path: folder.to_owned(), source };
        let changed_at = changed_at(folder).map_err(unreadable)?;
        let files = key_files(folder).map_err(unreadable)?;
        if files.is_empty() || files.len() > Self::MOST {
            return Err(KeyError::Count { path: folder.to_owned(), found: files.len() });
        }
        let mut keys = Vec::with_capacity(files.len());
        let mut seen: HashMap<blake3::Hash, PathBuf> = HashMap::new();
        for path in files {
            let key = Key::read(&path)?;
            if let Some(first) = seen.insert(key.digest(), path.clone()) {
                return Err(KeyError::Twice { first, second: path });
            }
            let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
            keys.push(Arc::new(NamedKey { name, key }));
        }
        Ok(Self { keys, folder: Some((folder.to_owned(), changed_at)) })
    }

    /// Reads the folder again if files were added there, replaced or removed since. `None` if not.
    pub fn reread(&self) -> Option<Result<Self, KeyError>> {
        let (folder, before) = self.folder.as_ref()?;
        let same = changed_at(folder).is_ok_and(|at| at == *before);
        (!same).then(|| Self::read_folder(folder))
    }

    /// Whether this very key is one of them, under this very name.
    pub fn contains(&self, key: &NamedKey) -> bool {
        self.iter().any(|other| **other == *key)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<NamedKey>> {
        self.keys.iter()
    }

    /// So many that each initiation can be tried against all.
    pub(super) const MOST: usize = 1_024;
}

impl From<Key> for Keys {
    fn from(key: Key) -> Self {
        Self { keys: vec![Arc::new(NamedKey { name: None, key })], folder: None }
    }
}

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
        let names: Vec<_> = keys.iter().map(|key| key.name.clone()).collect();
        assert_eq!(names, [Some("alice".to_owned()), Some("bob".to_owned())]);
        let bob = Arc::clone(&keys.keys[1]);
        assert!(keys.contains(&bob));
        assert!(keys.reread().is_none());
        fs::remove_file(folder.path().join("alice.key")).expect("removed");
        let keys = keys.reread().expect("it has changed").expect("one key");
        assert_eq!(keys.iter().count(), 1);
        fs::write(folder.path().join("bob.key"), "03".repeat(32)).expect("written");
        let keys = Keys::read_folder(folder.path()).expect("one key");
        assert!(!keys.contains(&bob), "a new key is not the old one");
    }

    #[test]
    fn what_is_wrong_with_a_folder_is_said() {
        let one = "01".repeat(32);
        assert_eq!(
            refusal(&[("README", "")]),
            "the key folder 'KEYS' holds 0 files NAME.key; 1 to 1024 are allowed, and `weir key KEYS/NAME.key` makes one"
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
