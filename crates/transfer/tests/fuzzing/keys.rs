//! A folder of key files with any content.

use std::fs;

use weir_transfer::seal::{Key, Keys};

/// Writes the parts of the input between bytes 0xff as key files and reads the folder. A folder that is read has one
/// key per file, which is the file's digits. A message is one line and quotes no content.
pub(crate) fn check(input: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder");
    let files: Vec<&[u8]> = input.split(|byte| *byte == 0xff).take(4).collect();
    for (n, content) in files.iter().enumerate() {
        fs::write(folder.path().join(format!("{n}.key")), content).expect("written");
    }
    match Keys::read_folder(folder.path()) {
        Ok(keys) => {
            assert_eq!(keys.iter().count(), files.len());
            for (key, content) in keys.iter().zip(&files) {
                assert!(key.key == digits(content), "{content:?}");
            }
        }
        Err(error) => {
            let message = error.to_string().replace(&folder.path().display().to_string(), "");
            assert_eq!(message.lines().count(), 1, "{message}");
            let quotes = |content: &&[u8]| {
                let text = String::from_utf8_lossy(content);
                text.len() >= 20 && message.contains(&*text)
            };
            assert!(!files.iter().any(quotes), "{message}");
        }
    }
}

fn digits(content: &[u8]) -> Key {
    let text = std::str::from_utf8(content.trim_ascii()).expect("digits");
    let byte = |at: usize| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).expect("two digits");
    assert_eq!(text.len(), 64);
    Key::new(std::array::from_fn(byte))
}
