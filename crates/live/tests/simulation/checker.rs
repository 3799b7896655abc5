//! What must hold, whatever goes wrong.
//!
//! - Under a final name lies nothing but what a sender has sent under it.
//! - What a sender was told is kept, is there, even after the lights went out.
//! - What the receiver has acknowledged of a file is not sent again: after the death of its process
//!   all that was acknowledged [`NOTED_WITHIN`] before, else all of it.
//! - A command fails only for a reason that there is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use weir_live::endpoint::ConnectionId;
use weir_live::file::{Departing, Verdict};
use weir_live::transfer::{Sent, TransferError};
use weir_units::{Duration, Instant};

use super::disk::{Death, Machine};
use super::hosts::ReceivingProgram;
use super::plan::Plan;
use super::world::{content, received};

/// What must hold.
pub(crate) struct Checker {
    now: Instant,
    /// Hashes of what may lie under a name, without its number.
    legitimate: BTreeMap<String, Vec<[u8; 32]>>,
    /// What senders were told is kept.
    promised: BTreeMap<PathBuf, [u8; 32]>,
    published: Vec<PathBuf>,
    /// Contents that were published once.
    complete: BTreeSet<[u8; 32]>,
    /// By content: what of it was acknowledged.
    acknowledged: BTreeMap<[u8; 32], Acknowledged>,
    /// The senders' present connections, and those that the receiver's end of is dead.
    connections: BTreeMap<usize, ConnectionId>,
    outlived: BTreeMap<usize, ConnectionId>,
    /// The receiver's sessions with what must be there when they begin.
    sessions: BTreeMap<ConnectionId, Vec<Option<(u64, Instant)>>>,
    rough: bool,
    mended_at: Instant,
    twins: bool,
    sender_died: bool,
    disk_fault: bool,
    without_power: bool,
    /// Whether datagrams may have been changed without anyone noticing.
    powerless: bool,
    hindered_at: Option<Instant>,
    hindered_since: Option<Instant>,
    longest_hindrance: Duration,
    violation: Option<String>,
}

#[derive(Default)]
struct Acknowledged {
    /// How much was, since when.
    history: Vec<(Instant, u64)>,
    /// So much cannot be lost any more.
    safe: u64,
    /// What senders still believe to be there since the receiver died.
    believed: u64,
    /// The power failed while some of it was on its way to the disk.
    may_be_damaged: bool,
}

/// How a command ended.
pub(crate) struct Ending<'a> {
    pub(crate) sender: usize,
    pub(crate) sent: &'a Sent,
    pub(crate) result: &'a Result<(), TransferError>,
}

impl Checker {
    pub(crate) fn new(plan: &Plan) -> Self {
        let mut legitimate: BTreeMap<String, Vec<[u8; 32]>> = BTreeMap::new();
        for (name, seed, len) in plan.senders.iter().flat_map(|sending| &sending.files) {
            let hash = *blake3::hash(&content(*seed, *len)).as_bytes();
            legitimate.entry(name.clone()).or_default().push(hash);
        }
        Self {
            now: Instant::ZERO,
            legitimate,
            promised: BTreeMap::new(),
            published: Vec::new(),
            complete: BTreeSet::new(),
            acknowledged: BTreeMap::new(),
            connections: BTreeMap::new(),
            outlived: BTreeMap::new(),
            sessions: BTreeMap::new(),
            rough: plan.weather.loss >= 100 || plan.weather.corruption >= 100,
            mended_at: plan.mended_at,
            twins: plan.senders.iter().any(|sending| sending.twin),
            sender_died: false,
            disk_fault: false,
            without_power: false,
            powerless: plan.key.is_none() && plan.weather.corruption > 0,
            hindered_at: None,
            hindered_since: None,
            longest_hindrance: Duration::ZERO,
            violation: None,
        }
    }

    pub(crate) fn violation(&self) -> Option<&str> {
        self.violation.as_deref()
    }

    pub(crate) fn report(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }

    /// The time, and whether nothing can arrive now.
    pub(crate) fn at(&mut self, now: Instant, hindered: bool) {
        self.now = now;
        if hindered {
            let since = *self.hindered_since.get_or_insert(now);
            self.hindered_at = Some(now);
            self.longest_hindrance = self.longest_hindrance.max(now.saturating_since(since));
        } else {
            self.hindered_since = None;
        }
    }

    pub(crate) fn on_sender_death(&mut self) {
        self.sender_died = true;
    }

    pub(crate) fn on_disk_fault(&mut self) {
        self.disk_fault = true;
    }

    /// Files that were given names: they are what was sent.
    pub(crate) fn on_published(&mut self, machine: &Machine) {
        for path in machine.take_published() {
            if let Some(hash) = self.check_content(&path, machine) {
                // The next command hears that it is there, or sends it meanwhile.
                self.complete.insert(hash);
            }
            self.published.push(path);
        }
    }

    fn check_content(&mut self, path: &Path, machine: &Machine) -> Option<[u8; 32]> {
        let bytes = machine.read(path)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let plain = match (name.rfind(" ("), name.rfind(").")) {
            (Some(from), Some(to)) if from < to => format!("{}{}", &name[..from], &name[to + 1..]),
            _ => name,
        };
        let hash = *blake3::hash(&bytes).as_bytes();
        if !self.legitimate.get(&plain).is_some_and(|hashes| hashes.contains(&hash)) {
            self.report(format!("{} has {} bytes that nobody sent", path.display(), bytes.len()));
        }
        Some(hash)
    }

    pub(crate) fn on_sender_start(&mut self, sender: usize) {
        self.connections.remove(&sender);
        self.outlived.remove(&sender);
    }

    /// What the sender takes for acknowledged on its present connection.
    pub(crate) fn on_sender_turn(&mut self, sender: usize, id: ConnectionId, files: &[Departing]) {
        self.connections.insert(sender, id);
        let outlived = self.outlived.get(&sender) == Some(&id);
        for file in files {
            let known = self.acknowledged.entry(file.header.hash).or_default();
            if outlived {
                // Acknowledgements of a receiver that is dead are still on their way.
                known.believed = known.believed.max(file.arrived);
            } else if known.now().max(known.believed) < file.arrived {
                known.history.push((self.now, file.arrived));
            }
        }
    }

    /// What a session goes on from is not less than what was acknowledged when it began.
    pub(crate) fn on_receiver_turn(&mut self, program: &ReceivingProgram, _: &Machine) {
        if self.twins || self.disk_fault || self.powerless {
            return;
        }
        let mut wrong = None;
        for (id, _, application) in program.process.core.connections() {
            let expected = self.sessions.entry(id).or_default();
            for (file, arriving) in application.files().iter().enumerate() {
                if file >= expected.len() {
                    // Files are announced in order; the same file has the same name here.
                    let hash = self.legitimate.get(&arriving.name).and_then(|all| all.first());
                    let partial = hash.filter(|hash| !self.complete.contains(*hash));
                    let known = partial.and_then(|hash| self.acknowledged.get(hash));
                    let least = |known: &Acknowledged| known.to_resume_from(arriving.size);
                    expected.push(known.map(|known| (least(known), self.now)));
                }
                if arriving.arrived_ns.is_none() && arriving.verdict.is_none() {
                    continue;
                }
                let Some((least, begun)) = expected[file].take() else { continue };
                // Whether a sender that was killed is gone is known after a while.
                let undecided = self.now.saturating_since(begun) < DECIDED_WITHIN;
                if self.sender_died && undecided {
                    continue;
                }
                let already = matches!(arriving.verdict, Some(Verdict::Already { .. }));
                if arriving.resumed_from < least && !already {
                    let from = arriving.resumed_from;
                    wrong = Some(format!(
                        "{} was acknowledged up to {least} and sent again from {from}",
                        arriving.name
                    ));
                }
            }
        }
        if let Some(wrong) = wrong {
            self.report(wrong);
        }
    }

    /// What was kept is there, and nothing else under its name.
    pub(crate) fn on_receiver_death(&mut self, death: Death, machine: &Machine) {
        self.sessions.clear();
        self.outlived.clone_from(&self.connections);
        let now = self.now;
        for known in self.acknowledged.values_mut() {
            known.lose(now, death);
        }
        if death == Death::Process {
            return;
        }
        self.without_power = true;
        for path in self.published.clone() {
            self.check_content(&path, machine);
        }
        for (path, hash) in &self.promised {
            let there = machine.read(path).map(|bytes| *blake3::hash(&bytes).as_bytes());
            if there != Some(*hash) {
                let what = if there.is_some() { "other bytes" } else { "nothing" };
                self.violation.get_or_insert(format!("{} was kept and has {what}", path.display()));
            }
        }
    }

    /// Returns whether the command has done its work; if not, its user starts it again.
    pub(crate) fn on_end(&mut self, ending: &Ending<'_>, machine: &Machine) -> bool {
        let Ending { sender, sent, result } = ending;
        for file in &sent.files {
            match &file.verdict {
                Some(Verdict::Kept { name } | Verdict::Already { name }) => {
                    let path = received(name);
                    let there = machine.read(&path).map(|bytes| *blake3::hash(&bytes).as_bytes());
                    if there != Some(file.header.hash) {
                        self.report(format!("{name} was kept and is not there"));
                    }
                    self.promised.insert(path, file.header.hash);
                    if let Some(known) = self.acknowledged.get_mut(&file.header.hash) {
                        *known = Acknowledged::default();
                    }
                }
                Some(other) => {
                    if !self.excuses_verdict(other) {
                        self.report(format!("sender {sender} was told {other:?}"));
                    }
                    self.acknowledged.remove(&file.header.hash);
                }
                None => {}
            }
        }
        if let Err(error) = result
            && !self.excuses(error, sent)
        {
            self.report(format!("sender {sender} fails without a reason: {error}"));
        }
        result.is_ok() && sent.is_complete()
    }

    /// Whether the file may have come to nothing.
    fn excuses_verdict(&self, verdict: &Verdict) -> bool {
        match verdict {
            Verdict::Mismatch => self.powerless || self.without_power,
            _ => self.disk_fault,
        }
    }

    fn excuses(&self, error: &TransferError, sent: &Sent) -> bool {
        if self.powerless {
            return true;
        }
        let hindered_at = self.hindered_at;
        let lately = |within| hindered_at.is_some_and(|at| self.now.saturating_since(at) <= within);
        let rough = |within| self.rough && self.now < self.mended_at + within;
        let text = error.to_string();
        match error {
            _ if text.contains("nobody listens on") => {
                sent.reconnects == 0 && lately(Duration::from_secs(1))
            }
            _ if text.contains("cannot write") || text.contains("Input/output") => self.disk_fault,
            _ if text.contains("the same file is coming") => self.twins,
            TransferError::NoAnswer { .. } => rough(UNTRIED) || lately(UNTRIED),
            TransferError::Broken { .. } => {
                rough(Duration::from_secs(1)) || lately(Duration::from_secs(30))
            }
            _ if text.contains("nothing was heard") => {
                self.longest_hindrance >= Duration::from_secs(30)
            }
            _ => false,
        }
    }
}

impl Acknowledged {
    /// What must be there now.
    fn now(&self) -> u64 {
        self.history.last().map_or(0, |(_, bytes)| *bytes).max(self.safe)
    }

    /// What must be there when a session begins. What a power failure has damaged is found when the file is
    /// complete, and sent again.
    fn to_resume_from(&self, size: u64) -> u64 {
        if self.may_be_damaged && self.now() == size { 0 } else { self.now() }
    }

    /// The receiver has died.
    fn lose(&mut self, now: Instant, death: Death) {
        self.believed = self.believed.max(self.now());
        self.may_be_damaged |= death == Death::Machine;
        let history = std::mem::take(&mut self.history);
        let noted = |(at, _): &&(Instant, u64)| now.saturating_since(*at) >= NOTED_WITHIN;
        self.safe = match death {
            Death::Machine => 0,
            Death::Process => {
                history.iter().rev().find(noted).map_or(self.safe, |(_, bytes)| *bytes)
            }
        };
    }
}

/// A sender gives up after 10 s. The gaps between its attempts double (RFC 6298 §5.5), so that the last of them
/// may be half of that.
const UNTRIED: Duration = Duration::from_secs(5);
/// Until then a new session may have to wait for what is on its way to the old one.
const DECIDED_WITHIN: Duration = Duration::from_secs(4);
/// The journal is written within this time, while the process runs.
const NOTED_WITHIN: Duration = Duration::from_millis(250);
