//! A transfer to ourselves before those of others.
//!
//! Code and memory that are used for the first time cost a small file on loopback nearly as much as its
//! round trips do. A receiver has time for that before it says that it listens, so that the first
//! sender is served as quickly as the second.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::ControlFlow;
use std::path::Path;
use std::{fs, io, thread};

use weir_transport::Config;
use weir_units::{Bytes, Duration};

use super::recv::Receiver;
use super::{Carrier, RecvOptions, SendOptions, TransferError, send};
use crate::seal::{Key, Keys};

/// Receives a file of one byte from ourselves, sealed if there is a key, in a folder that is gone
/// afterwards. What prevents that prevents no transfer of others.
pub(super) fn rehearse(key: Option<&Key>) {
    if let Ok(stage) = tempfile::tempdir() {
        let _ = perform(stage.path(), key, PATIENCE);
    }
}

/// Returns whether the file arrived, with a verdict at the latest after `patience`.
fn perform(stage: &Path, key: Option<&Key>, patience: Duration) -> Result<bool, TransferError> {
    let failed = |error: io::Error| TransferError::system("cannot rehearse", &error);
    let script = stage.join("script");
    fs::write(&script, [0]).map_err(failed)?;
    let mut receiver = Receiver::open(&RecvOptions {
        bind: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        folder: stage.join("received"),
        max_size: None,
        max_files: 1,
        quota: None,
        expiry: Duration::from_secs(3_600),
        memory: Bytes(64 << 20),
        once: true,
        keys: key.cloned().map(Keys::from),
    })?;
    let to = [receiver.address()];
    let options = SendOptions {
        carrier: Carrier::Stack(Config::default().stack),
        mss: 1_000,
        initial_window: 10,
        max_rate: None,
        pacing: true,
        max_retransmits: 100,
        max_wait: patience,
        key: key.cloned(),
    };
    let sender = thread::spawn(move || {
        let sent = send(&[script], &to, &options, &mut |_| ControlFlow::Continue(()));
        sent.is_ok_and(|sent| sent.is_complete())
    });
    while !sender.is_finished() {
        receiver.turn(TURN)?;
        let _ = receiver.tell_ended(&mut |_| ControlFlow::Continue(()));
    }
    Ok(sender.join().unwrap_or(false))
}

/// How soon the end of the sender is noticed at the latest.
const TURN: Duration = Duration::from_millis(10);
/// Where loopback carries nothing.
const PATIENCE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rehearsal_is_a_whole_transfer() {
        let stage = tempfile::tempdir().expect("a folder");
        let key = Key::new([7; 32]);
        for key in [None, Some(&key)] {
            let minute = Duration::from_secs(60);
            assert!(perform(stage.path(), key, minute).expect("a transfer"));
        }
    }
}
