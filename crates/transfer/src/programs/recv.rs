//! Receiving files from any sender.

use std::collections::HashSet;
use std::io;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::rc::Rc;

use rustix::fs::{Access, access};
use weir_sockets::clock;
use weir_transport::{Config, Connection, DelayedAck};
use weir_units::{Bytes, Duration, Instant};

use super::{GOODBYE, LARGEST_WINDOW, Progress, TransferError, WATCH_INTERVAL, base_config};
use crate::endpoint::{ConnectionId, Core, Endpoint, Limits};
use crate::file::{
    COST_OF_A_SESSION, Finalizer, Folder, Incoming, IncomingFile, Omitted, SharedState, SystemDisk,
    plain,
};
use crate::seal::Keys;

/// How to receive.
#[derive(Clone, Debug)]
pub struct RecvOptions {
    /// Where to listen; port 0 lets the system choose.
    pub bind: SocketAddr,
    /// Where files go; it is made if it is not there.
    pub folder: std::path::PathBuf,
    /// The largest file; without it, the free space of the disk.
    pub max_size: Option<Bytes>,
    /// The most files of one session, with folders and links.
    pub max_files: u32,
    /// Whether folders and links are taken.
    pub takes_folders: bool,
    /// The most that all files in the folder may take, if there is a bound.
    pub quota: Option<Bytes>,
    /// For how long a partial file may wait for its sender.
    pub expiry: Duration,
    /// The most memory for what senders send early or unasked, all of them together.
    pub memory: Bytes,
    /// End after the first session.
    pub once: bool,
    /// Of which senders must have one, if any.
    pub keys: Option<Keys>,
}

/// Reports to the watcher of a receiver.
#[derive(Debug)]
pub enum Receiving<'a> {
    /// It listens here.
    Listening(SocketAddr),
    /// How far it is, several times a second.
    Progress(&'a Progress),
    /// Something that its operator should see to.
    Warning(&'a str),
    /// A session is over.
    Ended {
        /// Whose it was.
        remote: SocketAddr,
        /// The name of the sender's key, if it has one.
        key_name: Option<&'a str>,
        /// Its files, but for those that are only counted.
        files: &'a [IncomingFile],
        /// How many are.
        omitted: Omitted,
        /// Why it is not complete, if anything but the files is to blame.
        failure: Option<String>,
    },
}

/// Receives until the watcher breaks off, or with `once` until the first session is over.
///
/// # Errors
/// If the folder or the address cannot be had, or the socket fails.
pub fn recv(
    options: &RecvOptions,
    watch: &mut dyn FnMut(Receiving<'_>) -> ControlFlow<()>,
) -> Result<(), TransferError> {
    let mut receiver = Receiver::open(options)?;
    if watch(Receiving::Listening(receiver.address())).is_break() {
        return Err(TransferError::Interrupted);
    }
    loop {
        receiver.step(WATCH_INTERVAL)?;
        let reported = receiver.report_ended(watch);
        if options.once && reported > 0 {
            return Ok(());
        }
        receiver.follow_keys(watch)?;
        let (core, _) = receiver.endpoint.parts();
        if receiver.sessions.look(clock::now(), core, watch).is_break() {
            return receiver.interrupt(watch);
        }
    }
}

pub(super) struct Receiver {
    endpoint: Endpoint<Incoming>,
    sessions: Sessions,
    keys: Option<Keys>,
    keys_read_at: Instant,
    /// What was wrong with the keys when they were last read.
    key_warning: Option<String>,
    /// Ends last, and waits for what it has to do.
    _keeper: Rc<Finalizer>,
}

impl Receiver {
    pub(super) fn open(options: &RecvOptions) -> Result<Self, TransferError> {
        let cannot = |error: io::Error| {
            TransferError::system(&format!("cannot use '{}'", options.folder.display()), &error)
        };
        std::fs::create_dir_all(&options.folder).map_err(cannot)?;
        // Senders would find out one by one otherwise.
        access(&options.folder, Access::WRITE_OK | Access::EXEC_OK)
            .map_err(|error| cannot(error.into()))?;
        let finalizer = Rc::new(Finalizer::start().map_err(cannot)?);
        let mut endpoint = Endpoint::bind(options.bind)?;
        super::seal_with(&mut endpoint, options.keys.clone())?;
        let folder = folder(options, endpoint.socket().recv_buffer());
        let (core, _) = endpoint.parts();
        let now = clock::now();
        let sessions = Sessions::listen(now, folder, &finalizer, core);
        Ok(Self {
            endpoint,
            sessions,
            keys: options.keys.clone(),
            keys_read_at: now,
            key_warning: None,
            _keeper: finalizer,
        })
    }

    /// Takes over what has changed in the folder of keys.
    fn follow_keys(
        &mut self,
        watch: &mut dyn FnMut(Receiving<'_>) -> ControlFlow<()>,
    ) -> Result<(), TransferError> {
        let now = clock::now();
        if now.saturating_since(self.keys_read_at) < KEYS_READ_EVERY {
            return Ok(());
        }
        self.keys_read_at = now;
        let Some(before) = &self.keys else { return Ok(()) };
        let Some((keys, problem)) = before.reread() else { return Ok(()) };
        if !keys.are_same(before) {
            super::seal_with(&mut self.endpoint, Some(keys.clone()))?;
        }
        self.keys = Some(keys);
        let warning = problem.map(|error| format!("{error}; all other changes of the keys hold"));
        if warning != self.key_warning
            && let Some(text) = &warning
        {
            // Whether to go on is asked with the next progress.
            let _ = watch(Receiving::Warning(text));
        }
        self.key_warning = warning;
        Ok(())
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.endpoint.socket().local_addr()
    }

    /// Waits for `max_wait` at most, and does what is due.
    pub(super) fn step(&mut self, max_wait: Duration) -> Result<(), TransferError> {
        let failed = |error: io::Error| TransferError::system("the socket failed", &error);
        self.endpoint.step(max_wait).map_err(failed)
    }

    /// Reports sessions that are over; returns the number of those that sent a valid frame.
    pub(super) fn report_ended(
        &mut self,
        watch: &mut dyn FnMut(Receiving<'_>) -> ControlFlow<()>,
    ) -> usize {
        let (core, _) = self.endpoint.parts();
        self.sessions.report_ended(core, watch)
    }

    pub(super) fn abort_all(&mut self) {
        let all: Vec<_> = self.endpoint.connections().map(|(id, ..)| id).collect();
        for id in all {
            self.endpoint.abort(id);
        }
    }

    /// Breaks everything off; what has arrived stays.
    fn interrupt(
        mut self,
        watch: &mut dyn FnMut(Receiving<'_>) -> ControlFlow<()>,
    ) -> Result<(), TransferError> {
        self.abort_all();
        let _ = self.endpoint.step(Duration::ZERO);
        self.report_ended(watch);
        Err(TransferError::Interrupted)
    }
}

/// The decisions of a receiver: whom it lets in, and which sessions it ends.
#[derive(Debug)]
pub struct Sessions {
    watched_at: Instant,
    /// Sessions that have ended, but for the last goodbye.
    leaving: HashSet<ConnectionId>,
    shared: Rc<SharedState>,
    finalizer: Rc<Finalizer>,
    /// When the folder was looked after last.
    tidied_at: Instant,
}

impl Sessions {
    /// Lets senders in, whose files go to `folder`.
    pub fn listen(
        now: Instant,
        folder: Folder,
        finalizer: &Rc<Finalizer>,
        core: &mut Core<Incoming>,
    ) -> Self {
        let finalizer = Rc::clone(finalizer);
        let shared = Rc::new(SharedState::new(&folder));
        // What connections take while nothing arrives is at most half of the memory.
        let places = usize::try_from(folder.memory.get()).unwrap_or(usize::MAX);
        core.set_limits(Limits::default().with_at_most(places / 2 / COST_OF_A_SESSION));
        let sessions = Self {
            watched_at: now,
            leaving: HashSet::new(),
            shared: Rc::clone(&shared),
            finalizer: Rc::clone(&finalizer),
            tidied_at: now,
        };
        core.listen(config(), move |remote| {
            let session = Incoming::new(folder.clone(), Rc::clone(&shared), finalizer.handle());
            Some(session.coming_from(remote.ip()))
        });
        sessions
    }

    /// Reports sessions that are over; returns the number of those that sent a valid frame.
    pub fn report_ended(
        &mut self,
        core: &mut Core<Incoming>,
        watch: &mut dyn FnMut(Receiving<'_>) -> ControlFlow<()>,
    ) -> usize {
        let mut sessions = 0;
        while let Some(ended) = core.next_ended() {
            self.leaving.remove(&ended.id);
            let application = &ended.application;
            if !application.is_known() {
                continue;
            }
            sessions += 1;
            let own = ended.error.map(|error| plain(&error));
            let failure = own.or_else(|| application.failure());
            let (files, omitted) = (application.files(), application.omitted());
            // Whether to go on is asked with the next progress.
            let (remote, key_name) = (ended.remote, ended.key_name.as_deref());
            let _ = watch(Receiving::Ended { remote, key_name, files, omitted, failure });
        }
        sessions
    }

    /// After each step: gives sessions another one that have to free their memory. Now and then: tells how far it is, and ends sessions whose senders have left. Breaks where the
    /// watcher does.
    pub fn look(
        &mut self,
        now: Instant,
        core: &mut Core<Incoming>,
        watch: &mut dyn FnMut(Receiving<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if self.shared.memory.has_evicted() {
            touch_evicted(core);
        }
        if now.saturating_since(self.watched_at) < WATCH_INTERVAL {
            return ControlFlow::Continue(());
        }
        self.watched_at = now;
        if now.saturating_since(self.tidied_at) >= self.shared.upkeep.interval() {
            self.tidied_at = now;
            self.finalizer.clean_up(&self.shared.upkeep);
        }
        let flow = watch(Receiving::Progress(&progress(core)));
        if flow.is_continue() {
            self.leave_the_silent(now, core);
        }
        flow
    }

    /// The memory that all senders together are charged for.
    pub fn charged_memory(&self) -> Bytes {
        self.shared.memory.used()
    }

    /// A sender that has left says no goodbye; but one that has not acknowledged the verdicts may still
    /// wait for them behind a lossy path.
    fn leave_the_silent(&mut self, now: Instant, core: &mut Core<Incoming>) {
        let late = |connection: &Connection, application: &Incoming| {
            let heard = connection.unacknowledged() == Bytes::ZERO;
            let patience = if heard { GOODBYE } else { UNHEARD };
            application.finished_at().is_some_and(|at| now.saturating_since(at) >= patience)
        };
        let silent: Vec<_> = core
            .connections()
            .filter(|(id, connection, application)| {
                late(connection, application) && !self.leaving.contains(id)
            })
            .map(|(id, ..)| id)
            .collect();
        for id in silent {
            self.leaving.insert(id);
            core.abort(now, id);
        }
    }
}

fn touch_evicted(core: &mut Core<Incoming>) {
    let evicted = core.connections().filter(|(.., incoming)| incoming.is_evicted());
    for id in evicted.map(|(id, ..)| id).collect::<Vec<_>>() {
        core.application_mut(id);
    }
}

fn progress(core: &Core<Incoming>) -> Progress {
    let mut progress = Progress::default();
    for (_, connection, application) in core.connections() {
        let files = application.files();
        progress.peers += u64::from(application.is_known());
        progress.files += u64::from(application.announced());
        progress.files_done += u64::from(application.settled());
        progress.bytes_done += files.iter().map(|file| file.arrived).sum::<u64>();
        // A peer may announce any sizes.
        progress.bytes =
            files.iter().map(|file| file.size).fold(progress.bytes, u64::saturating_add);
        progress.srtt = connection.snapshot().srtt.or(progress.srtt);
        if let Some(file) = files.last() {
            progress.name.clone_from(&file.name);
        }
    }
    progress
}

/// What is offered at first is what the socket holds.
fn folder(options: &RecvOptions, recv_buffer: Bytes) -> Folder {
    Folder {
        disk: SystemDisk::shared(),
        path: options.folder.clone(),
        max_size: options.max_size,
        max_files: options.max_files,
        takes_folders: options.takes_folders,
        quota: options.quota,
        expiry: options.expiry,
        memory: options.memory,
        window: recv_buffer..LARGEST_WINDOW,
    }
}

fn config() -> Config {
    Config {
        // The sender's size of segments decides.
        mss: super::SendOptions::MAX_MSS,
        // One acknowledgement answers what arrived together; a sender that waits for it, as
        // stop-and-wait does, gets it at once.
        delayed_ack: Some(DelayedAck::Off),
        ..base_config()
    }
}

/// How long unacknowledged verdicts are repeated.
const UNHEARD: Duration = Duration::from_secs(10);
/// How soon a key that was removed is.
const KEYS_READ_EVERY: Duration = Duration::from_secs(1);
