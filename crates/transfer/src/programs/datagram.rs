//! Sending over bare UDP: one connection, and nothing is sent twice.

use std::io;
use std::net::SocketAddr;

use weir_sockets::clock;
use weir_sockets::socket::DatagramSink;
use weir_transport::Connection;
use weir_units::{Duration, Instant};

use super::sent::Sent;
use super::{
    FIRST_ANSWER, GOODBYE, Progress, SendOptions, TransferError, WATCH_INTERVAL, Watch,
    open_endpoint,
};
use crate::endpoint::{ConnectionId, Core, Endpoint};
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
        let (core, sink) = endpoint.parts();
        let session = DatagramSession::begin(clock::now(), remote, files, self.options, core, sink);
        loop {
            let stepped = endpoint.step(WATCH_INTERVAL);
            let (core, sink) = endpoint.parts();
            let now = clock::now();
            if let Some(outcome) = session.step(now, stepped, core, sink) {
                return outcome;
            }
            if self.is_interrupted(now, core) {
                return session.break_off(now, TransferError::Interrupted, core, sink);
            }
        }
    }

    /// Reports how far it is. Returns whether the watcher interrupts it.
    fn is_interrupted(&mut self, now: Instant, core: &Core<OutgoingDatagrams>) -> bool {
        if now.saturating_since(self.watched_at) < WATCH_INTERVAL {
            return false;
        }
        let Some((_, connection, application)) = core.connections().next() else { return false };
        self.watched_at = now;
        (self.watch)(&progress(connection, application)).is_break()
    }
}

/// A connection for files in bare datagrams.
#[derive(Debug)]
pub struct DatagramSession {
    id: ConnectionId,
    remote: SocketAddr,
    started: Instant,
    max_wait: Duration,
}

impl DatagramSession {
    /// Opens the connection, over which `files` are offered.
    pub fn begin(
        now: Instant,
        remote: SocketAddr,
        files: Vec<OutgoingFile>,
        options: &SendOptions,
        core: &mut Core<OutgoingDatagrams>,
        sink: &impl DatagramSink,
    ) -> Self {
        let pouring = DatagramOptions { piece: options.mss, rate: options.max_rate };
        let outgoing = OutgoingDatagrams::new(files, pouring);
        let id = core.connect(now, remote, &options.config(None), outgoing, sink);
        Self { id, remote, started: now, max_wait: options.max_wait }
    }

    /// After a step of the endpoint, with its result: how it ended and the files, once it has.
    pub fn step(
        &self,
        now: Instant,
        stepped: io::Result<()>,
        core: &mut Core<OutgoingDatagrams>,
        sink: &impl DatagramSink,
    ) -> Option<(Result<(), TransferError>, Vec<OutgoingFile>)> {
        if let Some(ended) = core.next_ended() {
            let end = end_of(self.remote, ended.error.as_ref(), &ended.application);
            return Some((end, ended.application.into_files()));
        }
        let (connection, application) = core.get(self.id)?;
        let end = match stepped {
            Ok(()) => self.judge(now, connection, application)?,
            Err(error) => Err(TransferError::system("the socket failed", &error)),
        };
        match end {
            Ok(()) => Some((Ok(()), application.files().to_vec())),
            Err(error) => Some(self.break_off(now, error, core, sink)),
        }
    }

    /// Ends it with an error.
    fn break_off(
        &self,
        now: Instant,
        error: TransferError,
        core: &mut Core<OutgoingDatagrams>,
        sink: &impl DatagramSink,
    ) -> (Result<(), TransferError>, Vec<OutgoingFile>) {
        let files = core.get(self.id).map(|(_, application)| application.files().to_vec());
        core.abort(now, self.id);
        // If the socket has failed, the receiver will notice by itself.
        core.step(now, sink);
        (Err(error), files.unwrap_or_default())
    }

    /// How a connection that lives should end, if it should.
    fn judge(
        &self,
        now: Instant,
        connection: &Connection,
        application: &OutgoingDatagrams,
    ) -> Option<Result<(), TransferError>> {
        let remote = self.remote;
        let quiet = now.saturating_since(application.active_at().unwrap_or(self.started));
        if application.is_settled() {
            return (connection.is_finished() || quiet >= GOODBYE).then_some(Ok(()));
        }
        let unheard = application.heard_at().is_none() && !connection.is_synchronised();
        if unheard && quiet >= self.max_wait.min(FIRST_ANSWER) {
            return Some(Err(TransferError::NoAnswer { remote, waited: quiet }));
        }
        if quiet >= self.max_wait.saturating_mul(2) {
            let reason = "the receiver fell silent".to_owned();
            return Some(Err(TransferError::Broken { remote, reason }));
        }
        None
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
        bytes_done: done.map(|file| file.header.size).sum::<u64>() + application.bytes_sent(),
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
