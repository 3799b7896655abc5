//! Sending files: hash, connect, send, and connect again when the connection breaks.

use std::io;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::PathBuf;

use weir_sockets::clock;
use weir_sockets::socket::{DatagramSink, path_mtu};
use weir_transport::{Config, Connection, ConnectionError};
use weir_units::{Bytes, Duration, Instant};

use super::datagram::DatagramSender;
use super::sent::Sent;
use super::tree::{Prepared, prepare};
use super::{
    Carrier, FIRST_ANSWER, GOODBYE, Progress, SendOptions, TransferError, WATCH_INTERVAL, Watch,
    open_endpoint,
};
use crate::endpoint::{ConnectionId, Core};
use crate::file::{Failure, Outgoing, OutgoingFile, Verdict};

/// Sends `paths` to the first of `remotes` that answers.
///
/// # Errors
/// If a file cannot be read; nothing has been sent then.
pub fn send(
    paths: &[PathBuf],
    remotes: &[SocketAddr],
    options: &SendOptions,
    watch: &mut Watch<'_>,
) -> Result<Sent, TransferError> {
    let Prepared { files, skipped } = prepare(paths, watch)?;
    let now = clock::now();
    if options.carrier == Carrier::Udp {
        if let Some(folder) = files.iter().find(|file| !file.is_file()) {
            let path = folder.path.display();
            return Err(TransferError::System(format!(
                "cannot send '{path}' with the stack udp: it sends files, and no folders"
            )));
        }
        let (watched_at, sent) = (now, Sent::to(remotes[0]));
        let mut sent = DatagramSender { options, watch, watched_at, sent }.pour(files, remotes);
        sent.ended_ns = clock::monotonic_nanos();
        return Ok(sent);
    }
    let mut sender = Sender::new(now, &files, remotes[0], options);
    let left = sender.find_receiver(files, remotes, watch);
    let mut sent = sender.finish(left);
    sent.skipped = skipped;
    sent.ended_ns = clock::monotonic_nanos();
    Ok(sent)
}

/// The decisions of a sender: when it opens a connection, another one, and when it gives up.
pub struct Sender<'a> {
    files: u64,
    bytes: u64,
    options: &'a SendOptions,
    watched_at: Instant,
    sent: Sent,
}

/// The way to a receiver.
#[derive(Clone, Debug)]
pub struct Destination {
    /// Where it is.
    pub remote: SocketAddr,
    /// The connections' configuration.
    pub config: Config,
    /// How long the first answer may take.
    pub patience: Duration,
}

/// The connections to one receiver, one after the other.
#[derive(Debug)]
pub struct ConnectionSequence {
    way: Destination,
    /// Connections in a row that brought nothing.
    fruitless: u32,
    /// The present connection,
    id: ConnectionId,
    /// when it was opened,
    started: Instant,
    /// and how far the command was then.
    before: u64,
}

/// How a connection ended.
enum End {
    /// Every file has its verdict.
    Settled,
    /// It was never there.
    Unheard(TransferError),
    /// It was there, and may be again.
    Broken(TransferError),
    /// There is no point in another.
    Hopeless(TransferError),
}

impl<'a> Sender<'a> {
    /// A sender of `files`.
    pub fn new(
        now: Instant,
        files: &[OutgoingFile],
        remote: SocketAddr,
        options: &'a SendOptions,
    ) -> Self {
        Self {
            files: files.len() as u64,
            bytes: files.iter().map(|file| file.header.size).sum(),
            options,
            watched_at: now,
            sent: Sent::to(remote),
        }
    }

    /// Tries the addresses in turn; returns the files that have no verdict.
    fn find_receiver(
        &mut self,
        mut files: Vec<OutgoingFile>,
        remotes: &[SocketAddr],
        watch: &mut Watch<'_>,
    ) -> Vec<OutgoingFile> {
        for (n, remote) in remotes.iter().enumerate() {
            let patience = if n + 1 < remotes.len() { ONE_OF_SEVERAL } else { FIRST_ANSWER };
            self.sent.remote = *remote;
            let (end, left) = self.send_to(*remote, files, patience, watch);
            files = left;
            match end {
                Ok(()) => return files,
                Err(error @ TransferError::NoAnswer { .. }) => self.sent.error = Some(error),
                Err(error) => {
                    self.sent.error = Some(error);
                    return files;
                }
            }
        }
        files
    }

    fn send_to(
        &mut self,
        remote: SocketAddr,
        files: Vec<OutgoingFile>,
        patience: Duration,
        watch: &mut Watch<'_>,
    ) -> (Result<(), TransferError>, Vec<OutgoingFile>) {
        let mut endpoint = match open_endpoint(remote, self.options) {
            Ok(endpoint) => endpoint,
            Err(error) => return (Err(error), files),
        };
        let config = self.options.config(path_mtu(remote));
        if self.sent.error.is_none() {
            // The first address: what its socket took is no part of the transfer.
            self.sent.began_ns = clock::monotonic_nanos();
        }
        let now = clock::now();
        endpoint.expect_answers(now);
        let (core, sink) = endpoint.parts();
        let mut course =
            self.begin(now, Destination { remote, config, patience }, files, core, sink);
        loop {
            let stepped = endpoint.step(WATCH_INTERVAL);
            let (core, sink) = endpoint.parts();
            let now = clock::now();
            if let Some(outcome) = self.step(now, stepped, &mut course, core, sink, watch) {
                return outcome;
            }
        }
    }

    /// What became of it, once [`step`](Self::step) has returned the files that are left.
    pub fn finish(self, left: Vec<OutgoingFile>) -> Sent {
        let mut sent = self.sent;
        sent.files.extend(left);
        sent
    }

    /// Opens the first connection to a receiver.
    pub fn begin(
        &mut self,
        now: Instant,
        way: Destination,
        files: Vec<OutgoingFile>,
        core: &mut Core<Outgoing>,
        sink: &impl DatagramSink,
    ) -> ConnectionSequence {
        let patience = way.patience.min(self.options.max_wait);
        let before = self.reached(&files);
        let id = core.connect(now, way.remote, &way.config, Outgoing::new(files), sink);
        ConnectionSequence {
            way: Destination { patience, ..way },
            fruitless: 0,
            id,
            started: now,
            before,
        }
    }

    /// What follows from a step of the endpoint: nothing, another connection, or the end and the files
    /// that have no verdict.
    pub fn step(
        &mut self,
        now: Instant,
        stepped: io::Result<()>,
        course: &mut ConnectionSequence,
        core: &mut Core<Outgoing>,
        sink: &impl DatagramSink,
        watch: &mut Watch<'_>,
    ) -> Option<(Result<(), TransferError>, Vec<OutgoingFile>)> {
        let (mut end, mut left) = self.look(now, stepped, course, core, sink, watch)?;
        let repairs =
            matches!(end, End::Settled | End::Broken(_)) && prepare_repairs(&mut left) > 0;
        if repairs {
            let reason = "what arrived had another hash".to_owned();
            end = End::Broken(TransferError::Broken { remote: course.way.remote, reason });
        }
        let is_all_done = left.iter().all(|file| file.verdict.is_some());
        let is_done = |file: &OutgoingFile| {
            file.verdict.is_some() && (is_all_done || !file.surrounds_others())
        };
        let (done, mut files): (Vec<_>, Vec<_>) = left.into_iter().partition(is_done);
        self.sent.files.extend(done);
        let reached = self.reached(&files);
        // The number of repairs is bounded.
        let fruitful = repairs || reached > course.before;
        course.fruitless = if fruitful { 0 } else { course.fruitless + 1 };
        let remote = course.way.remote;
        match end {
            End::Settled => {
                self.sent.error = None;
                Some((Ok(()), files))
            }
            End::Broken(_) if course.fruitless < FRUITLESS => {
                self.sent.reconnects += 1;
                core.ignore_refusals();
                course.way.patience = self.options.max_wait;
                course.before = reached;
                course.started = now;
                let folders = files.iter_mut().filter(|file| file.surrounds_others());
                folders.for_each(OutgoingFile::reopen);
                let outgoing = Outgoing::new(files);
                course.id = core.connect(now, remote, &course.way.config, outgoing, sink);
                None
            }
            End::Unheard(_) if self.sent.reconnects > 0 => {
                let waited = super::seconds(course.way.patience);
                let reason = format!("for {waited} s a new one has had no answer");
                Some((Err(TransferError::Broken { remote, reason }), files))
            }
            End::Broken(error) | End::Unheard(error) | End::Hopeless(error) => {
                Some((Err(error), files))
            }
        }
    }

    /// How far the command is.
    fn reached(&self, files: &[OutgoingFile]) -> u64 {
        files.iter().chain(&self.sent.files).map(OutgoingFile::progress).sum()
    }

    /// How the present connection ended, if it did or should.
    fn look(
        &mut self,
        now: Instant,
        stepped: io::Result<()>,
        course: &ConnectionSequence,
        core: &mut Core<Outgoing>,
        sink: &impl DatagramSink,
        watch: &mut Watch<'_>,
    ) -> Option<(End, Vec<OutgoingFile>)> {
        let remote = course.way.remote;
        if let Err(error) = stepped {
            let error = TransferError::system("the socket failed", &error);
            return Some(self.give_up(now, course.id, End::Hopeless(error), core, sink));
        }
        while let Some(ended) = core.next_ended() {
            if ended.id != course.id {
                // One of whose end is known, and which has lingered since.
                continue;
            }
            self.sent.count(&ended.connection);
            let local = |error| TransferError::from_local(remote, &error);
            let hopeless = ended.error.map(local);
            let end = hopeless.map(End::Hopeless);
            let end = end.unwrap_or_else(|| end_of(remote, &ended.application));
            return Some((end, ended.application.into_files()));
        }
        let (connection, application) = core.get(course.id)?;
        let end = self.judge(now, course, connection, application, watch)?;
        Some(self.give_up(now, course.id, end, core, sink))
    }

    /// Whether a connection that lives should end, after telling how far it is.
    fn judge(
        &mut self,
        now: Instant,
        course: &ConnectionSequence,
        connection: &Connection,
        application: &Outgoing,
        watch: &mut Watch<'_>,
    ) -> Option<End> {
        let ConnectionSequence { way: Destination { remote, patience, .. }, started, .. } = *course;
        let quiet = now.saturating_since(application.heard_at().unwrap_or(started));
        if application.is_settled() {
            return (connection.is_finished() || quiet >= GOODBYE).then_some(End::Settled);
        }
        let unheard = application.heard_at().is_none() && !connection.is_synchronised();
        if unheard && quiet >= patience {
            return Some(End::Unheard(TransferError::NoAnswer { remote, waited: quiet }));
        }
        // A receiver that was killed when it had acknowledged everything is never heard of again; one that
        // verifies and syncs says so every second.
        let waits = application.is_waiting() && connection.unacknowledged() == Bytes::ZERO;
        if waits && quiet >= SILENCE {
            let reason = "the receiver fell silent before its verdict".to_owned();
            return Some(End::Broken(TransferError::Broken { remote, reason }));
        }
        // The connection itself notices silence only while it waits for acknowledgements.
        if quiet >= self.options.max_wait.saturating_mul(2) {
            let reason = "the receiver fell silent".to_owned();
            return Some(End::Broken(TransferError::Broken { remote, reason }));
        }
        if now.saturating_since(self.watched_at) < WATCH_INTERVAL {
            return None;
        }
        self.watched_at = now;
        let progress = self.progress(connection, application);
        match watch(&progress) {
            ControlFlow::Continue(()) => None,
            ControlFlow::Break(()) => Some(End::Hopeless(TransferError::Interrupted)),
        }
    }

    fn progress(&self, connection: &Connection, application: &Outgoing) -> Progress {
        let (snapshot, stats) = (connection.snapshot(), connection.stats());
        let done = application.files().iter().filter(|file| file.verdict.is_some()).count();
        Progress {
            name: application.present().map_or_else(String::new, |file| file.header.name.clone()),
            hashing: false,
            files_done: (self.sent.files.len() + done) as u64,
            files: self.files,
            bytes_done: arrived(&self.sent.files) + arrived(application.files()),
            bytes: self.bytes,
            peers: 1,
            cwnd: Some(snapshot.cwnd),
            srtt: snapshot.srtt,
            pacing_rate: snapshot.pacing_rate,
            segments: self.sent.segments + stats.data_segments_sent,
            retransmits: self.sent.retransmits + stats.retransmits,
            reconnects: self.sent.reconnects,
        }
    }

    /// Leaves a connection that lives, not without telling the other end.
    fn give_up(
        &mut self,
        now: Instant,
        id: ConnectionId,
        end: End,
        core: &mut Core<Outgoing>,
        sink: &impl DatagramSink,
    ) -> (End, Vec<OutgoingFile>) {
        if !matches!(end, End::Settled) {
            core.abort(now, id);
            // If the socket has failed, the receiver will notice by itself.
            core.step(now, sink);
        }
        if let Some(ended) = core.next_ended() {
            self.sent.count(&ended.connection);
            return (end, ended.application.into_files());
        }
        let Some((connection, application)) = core.get(id) else { return (end, Vec::new()) };
        self.sent.count(connection);
        (end, application.files().to_vec())
    }
}

/// What the end of a connection means.
fn end_of(remote: SocketAddr, application: &Outgoing) -> End {
    if application.is_settled() {
        return End::Settled;
    }
    let broken = |reason: String| TransferError::Broken { remote, reason };
    match application.failure() {
        Some(Failure::Broken(error @ ConnectionError::NoAnswer { .. })) => {
            End::Unheard(TransferError::from_connection(remote, error))
        }
        Some(Failure::Broken(error)) => End::Broken(TransferError::from_connection(remote, error)),
        Some(Failure::Ended(reason)) => {
            End::Broken(broken(format!("the receiver ended it: {reason}")))
        }
        Some(Failure::Refused(reason)) => {
            End::Hopeless(TransferError::Refused { remote, reason: reason.clone() })
        }
        Some(Failure::Nonsense(error)) => {
            End::Broken(broken(format!("the receiver's answer makes no sense: {error}")))
        }
        Some(Failure::Left) | None => End::Broken(broken("the receiver left".to_owned())),
    }
}

/// Makes files ready to be sent again that have arrived with another content; returns how many are. Of
/// one that cannot be read any more the verdict stays.
fn prepare_repairs(files: &mut [OutgoingFile]) -> usize {
    let mismatch = |file: &&mut OutgoingFile| file.verdict == Some(Verdict::Mismatch);
    let again = |file: &mut OutgoingFile| file.prepare_repair().unwrap_or(false);
    files.iter_mut().filter(mismatch).map(again).filter(|again| *again).count()
}

/// How many bytes of the files are at the receiver.
fn arrived(files: &[OutgoingFile]) -> u64 {
    files.iter().map(|file| file.arrived).sum()
}

/// How long the first answer may take where a host has several addresses, at all but the last.
const ONE_OF_SEVERAL: Duration = Duration::from_secs(2);
/// For how long a receiver may say nothing while it works on verdicts, of which it speaks every second.
const SILENCE: Duration = Duration::from_secs(5);
/// Connections in a row that brought nothing.
const FRUITLESS: u32 = 3;
