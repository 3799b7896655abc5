//! Sending over bare UDP: one connection, and nothing is sent twice.

use std::io;
use std::net::SocketAddr;

use weir_transport::Connection;
use weir_units::{Duration, Instant};

use super::send::{Sent, open_endpoint};
use super::{FIRST_ANSWER, GOODBYE, Progress, SendOptions, TransferError, WATCH_INTERVAL, Watch};
use crate::clock;
use crate::endpoint::Endpoint;
use crate::file::{DatagramOptions, Failure, OutgoingDatagrams, OutgoingFile};

/// One run of `weir send --stack udp`.
pub(super) struct DatagramSender<'a, 'b> {
    pub(super) options: &'a SendOptions,
    pub(super) watch: &'a mut Watch<'b>,
    pub(super) watched_at: Instant,
    pub(super) sent: Sent,
}

impl DatagramSender<'_, '_> {
    /// Pours `files` out to the first of `remotes` that answers, which may end in an error of `sent`.
    pub(super) fn pour(mut self, mut files: Vec<OutgoingFile>, remotes: &[SocketAddr]) -> Sent {
        for remote in remotes {
            self.sent.remote = *remote;
            let (end, left) = match open_endpoint(*remote, self.options) {
                Ok(endpoint) => self.session(endpoint, *remote, files),
                Err(error) => (Err(error), files),
            };
            files = left;
            self.sent.error = end.err();
            if !matches!(self.sent.error, Some(TransferError::NoAnswer { .. })) {
                break;
            }
        }
        let tallies = files.iter().filter_map(|file| file.tally);
        self.sent.segments = tallies.map(|tally| tally.sent).sum();
        self.sent.files = files;
        self.sent
    }

    fn session(
        &mut self,
        mut endpoint: Endpoint<OutgoingDatagrams>,
        remote: SocketAddr,
        files: Vec<OutgoingFile>,
    ) -> (Result<(), TransferError>, Vec<OutgoingFile>) {
        let pouring = DatagramOptions { piece: self.options.mss, rate: self.options.max_rate };
        let outgoing = OutgoingDatagrams::new(files, pouring);
        let id = endpoint.connect(remote, &self.options.config(None), outgoing);
        let started = clock::now();
        loop {
            let turned = endpoint.turn(WATCH_INTERVAL);
            if let Some(ended) = endpoint.next_ended() {
                let end = end_of(remote, ended.error.as_ref(), &ended.application);
                return (end, ended.application.into_files());
            }
            let Some((connection, application)) = endpoint.get(id) else { continue };
            let end = match turned {
                Ok(()) => self.judge(started, remote, connection, application),
                Err(error) => Some(Err(TransferError::system("the socket failed", &error))),
            };
            if let Some(end) = end {
                let files = application.files().to_vec();
                if end.is_err() {
                    endpoint.abort(id);
                    // If the socket has failed, the receiver will notice by itself.
                    let _ = endpoint.turn(Duration::ZERO);
                }
                return (end, files);
            }
        }
    }

    /// How a connection that lives should end, if it should, after telling how far it is.
    fn judge(
        &mut self,
        started: Instant,
        remote: SocketAddr,
        connection: &Connection,
        application: &OutgoingDatagrams,
    ) -> Option<Result<(), TransferError>> {
        let now = clock::now();
        let quiet = now.saturating_since(application.active_at().unwrap_or(started));
        if application.is_settled() {
            return (connection.is_finished() || quiet >= GOODBYE).then_some(Ok(()));
        }
        let unheard = application.heard_at().is_none() && !connection.is_synchronised();
        if unheard && quiet >= self.options.max_wait.min(FIRST_ANSWER) {
            return Some(Err(TransferError::NoAnswer { remote, waited: quiet }));
        }
        if quiet >= self.options.max_wait.saturating_mul(2) {
            let reason = "the receiver fell silent".to_owned();
            return Some(Err(TransferError::Broken { remote, reason }));
        }
        if now.saturating_since(self.watched_at) < WATCH_INTERVAL {
            return None;
        }
        self.watched_at = now;
        let progress = progress(connection, application);
        (self.watch)(&progress).is_break().then_some(Err(TransferError::Interrupted))
    }
}

fn progress(connection: &Connection, application: &OutgoingDatagrams) -> Progress {
    let files = application.files();
    let done = files.iter().filter(|file| file.verdict.is_some());
    let present = application.present();
    Progress {
        name: present.map_or_else(String::new, |file| file.header.name.clone()),
        files_done: done.clone().count() as u64,
        files: files.len() as u64,
        bytes_done: done.map(|file| file.header.size).sum::<u64>() + application.poured(),
        bytes: files.iter().map(|file| file.header.size).sum(),
        peers: 1,
        srtt: connection.snapshot().srtt,
        ..Progress::default()
    }
}

/// What the end of a connection means.
fn end_of(
    remote: SocketAddr,
    error: Option<&io::Error>,
    application: &OutgoingDatagrams,
) -> Result<(), TransferError> {
    if application.is_settled() {
        return Ok(());
    }
    let broken = |reason: String| Err(TransferError::Broken { remote, reason });
    match (error, application.failure()) {
        (Some(error), _) => Err(TransferError::from_local(remote, error)),
        (None, Some(Failure::Broken(error))) => Err(TransferError::from_connection(remote, error)),
        (None, Some(Failure::Ended(reason))) => broken(format!("the receiver ended it: {reason}")),
        (None, Some(Failure::Refused(reason))) => {
            Err(TransferError::Refused { remote, reason: reason.clone() })
        }
        (None, Some(Failure::Nonsense(error))) => {
            broken(format!("the receiver's answer makes no sense: {error}"))
        }
        (None, Some(Failure::Left) | None) => broken("the receiver left".to_owned()),
    }
}
