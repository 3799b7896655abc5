//! What must hold, whatever goes wrong.
//!
//! - Under a final name lies nothing but what a sender has sent under it.
//! - A file that a sender knows as kept is there, even after a power failure.
//! - What the receiver has acknowledged of a file is not sent again: after the death of its process
//!   all that was acknowledged a quarter of a second before, else all of it.
//! - The receiver's memory for senders stays within its limit, and is what they are charged for.
//! - A command fails only for a reason that there is.

mod acknowledged;
mod ending;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use weir_transfer::endpoint::ConnectionId;
use weir_transfer::file::{Incoming, IncomingFile, OutgoingFile, Verdict};
use weir_units::{Bytes, Duration, Instant};

use self::acknowledged::Acknowledged;
pub(crate) use self::ending::FlowEnd;
use super::disk::{Death, Machine};
use super::hostile::NAME;
use super::hosts::{RECEIVED, ReceivingProgram};
use super::network::LONGEST_QUEUE;
use super::plan::Plan;
use super::world::content;

/// What must hold.
pub(crate) struct Checker {
    now: Instant,
    /// When the receiver last ran.
    turned_at: Instant,
    /// Hashes of what may lie under a name, without its number.
    legitimate: BTreeMap<String, Vec<[u8; 32]>>,
    /// The seed and length of each content.
    contents: BTreeMap<[u8; 32], (u64, usize)>,
    /// What senders know as kept: files, folders and links.
    promised: BTreeMap<PathBuf, [u8; 32]>,
    folders: BTreeSet<PathBuf>,
    published: Vec<PathBuf>,
    /// Contents that were published once.
    complete: BTreeSet<[u8; 32]>,
    /// By content: what of it was acknowledged.
    acknowledged: BTreeMap<[u8; 32], Acknowledged>,
    /// The senders' present connections, and those that the receiver's end of is dead.
    connections: BTreeMap<usize, ConnectionId>,
    outlived: BTreeMap<usize, ConnectionId>,
    /// The receiver's sessions with what must be there when they begin.
    sessions: BTreeMap<ConnectionId, Vec<Option<Expected>>>,
    rough: bool,
    mended_at: Instant,
    /// How long an attempt to connect takes at most, and the pause before it.
    reach: Duration,
    /// Others have the same files too: another sender, or an attacker that knows them.
    twins: bool,
    /// An attacker that knows a file may give it other permissions and another time (docs/transfer.md).
    attributes_may_change: bool,
    memory: Bytes,
    /// Until when attackers may hold what there is of it.
    hoarded_until: Option<Instant>,
    disk_fault: bool,
    without_power: bool,
    /// Whether datagrams may have been changed without anyone noticing.
    powerless: bool,
    hindered_at: Option<Instant>,
    hindered_since: Option<Instant>,
    longest_hindrance: Duration,
    violation: Option<String>,
}

/// What must be there of a file when a session begins.
struct Expected {
    least: u64,
    since: Instant,
    /// An older session has the file too, whose sender may be alive, or it is being verified.
    contested: bool,
}

impl Checker {
    pub(crate) fn new(plan: &Plan) -> Self {
        let mut legitimate: BTreeMap<String, Vec<[u8; 32]>> = BTreeMap::new();
        let mut contents = BTreeMap::new();
        for (name, seed, len) in plan
            .senders
            .iter()
            .chain(plan.bare.iter().map(|bare| &bare.sending))
            .flat_map(|sending| &sending.files)
        {
            let hash = *blake3::hash(&content(*seed, *len)).as_bytes();
            legitimate.entry(name.clone()).or_default().push(hash);
            contents.insert(hash, (*seed, *len));
        }
        Self {
            now: Instant::ZERO,
            turned_at: Instant::ZERO,
            legitimate,
            contents,
            promised: BTreeMap::new(),
            folders: BTreeSet::new(),
            published: Vec::new(),
            complete: BTreeSet::new(),
            acknowledged: BTreeMap::new(),
            connections: BTreeMap::new(),
            outlived: BTreeMap::new(),
            sessions: BTreeMap::new(),
            rough: plan.conditions.loss >= 100 || plan.conditions.corruption >= 100,
            mended_at: plan.mended_at,
            reach: UNTRIED
                + plan.conditions.round_trip().saturating_mul(2)
                + LONGEST_QUEUE.saturating_mul(2),
            attributes_may_change: plan.hostile.iter().any(|hostile| hostile.knows),
            twins: plan.senders.iter().any(|sending| sending.twin)
                || plan.hostile.iter().any(|hostile| hostile.knows),
            memory: plan.memory,
            hoarded_until: (!plan.hostile.is_empty()).then_some(plan.mended_at + LINGERS),
            disk_fault: false,
            without_power: false,
            powerless: plan.key.is_none() && plan.conditions.corruption > 0,
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

    pub(crate) fn on_disk_fault(&mut self) {
        self.disk_fault = true;
    }

    /// Another program changes what was acknowledged.
    pub(crate) fn on_intruder(&mut self) {
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
        let inside = path.strip_prefix(RECEIVED).ok();
        let is_below = |name: &&Path| name.components().all(|c| matches!(c, Component::Normal(_)));
        let Some(name) = inside.filter(is_below) else {
            self.report(format!("{} is not in the folder", path.display()));
            return None;
        };
        let name = name.to_string_lossy().into_owned();
        if name.starts_with(NAME) {
            return None;
        }
        let plain = named(&name);
        let hash = *blake3::hash(&bytes).as_bytes();
        if !self.legitimate.get(&plain).is_some_and(|hashes| hashes.contains(&hash)) {
            self.report(format!(
                "{} has {} bytes that were never sent",
                path.display(),
                bytes.len()
            ));
        }
        Some(hash)
    }

    pub(crate) fn on_sender_start(&mut self, sender: usize) {
        self.connections.remove(&sender);
        self.outlived.remove(&sender);
    }

    /// What the sender takes for acknowledged on its present connection.
    pub(crate) fn on_sender_turn(
        &mut self,
        sender: usize,
        id: ConnectionId,
        files: &[OutgoingFile],
    ) {
        self.connections.insert(sender, id);
        let outlived = self.outlived.get(&sender) == Some(&id);
        for file in files.iter().filter(|file| file.is_file()) {
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
    pub(crate) fn on_receiver_turn(&mut self, program: &ReceivingProgram, machine: &Machine) {
        if !program.process.disk.is_alive() {
            return;
        }
        self.turned_at = self.now;
        self.check_memory(program);
        if self.twins || self.disk_fault || self.powerless {
            return;
        }
        let sessions: Vec<_> = program.process.core.connections().collect();
        let mut wrong = None;
        for (id, _, application) in &sessions {
            for (file, incoming) in application.files().iter().enumerate() {
                if self.sessions.get(id).is_none_or(|expected| file >= expected.len()) {
                    let has = |other: &Incoming| {
                        other.files().iter().any(|file| file.name == incoming.name)
                    };
                    let contested = sessions.iter().filter(|(.., other)| has(other)).count() > 1;
                    let expected = self.expect(&incoming.name, incoming.size, contested);
                    self.sessions.entry(*id).or_default().push(expected);
                }
                if application.failure().is_some() && incoming.verdict.is_none() {
                    self.on_failure(incoming);
                }
                if incoming.verdict == Some(Verdict::Mismatch) {
                    self.on_mismatch(&incoming.name, machine);
                }
                if incoming.arrived_ns.is_none() && incoming.verdict.is_none() {
                    continue;
                }
                let expected = self.sessions.get_mut(id).and_then(|all| all[file].take());
                let Some(Expected { least, since, contested }) = expected else { continue };
                // Nothing is decided while nothing can arrive.
                let since = self.hindered_at.map_or(since, |at| at.max(since));
                if contested && self.now.saturating_since(since) < DECIDED_WITHIN {
                    continue;
                }
                let already = matches!(incoming.verdict, Some(Verdict::Already { .. }));
                if incoming.resumed_from < least && !already {
                    let from = incoming.resumed_from;
                    wrong = Some(format!(
                        "{} was acknowledged up to {least} and sent again from {from}",
                        incoming.name
                    ));
                }
            }
        }
        if let Some(wrong) = wrong {
            self.report(wrong);
        }
    }

    fn check_memory(&mut self, program: &ReceivingProgram) {
        let charged = program.charged_memory();
        if charged > self.memory {
            self.report(format!("senders are charged for {charged} of {}", self.memory));
        }
        let mut all = Bytes::ZERO;
        for (.., application) in program.process.core.connections() {
            let (held, charged) = (application.held_memory(), application.charged_memory());
            all += charged;
            // One that was evicted frees its memory in its next turn.
            if held > charged && !application.is_evicted() {
                self.report(format!("a session holds {held} and is charged for {charged}"));
            }
        }
        if all > charged {
            self.report(format!("all are charged for {charged}, each for itself {all}"));
        }
    }

    /// What must be there of a file that a session announces.
    fn expect(&self, name: &str, size: u64, contested: bool) -> Option<Expected> {
        // Files are announced in order; the same file has the same name here.
        let hash = self.legitimate.get(&named(name)).and_then(|all| all.first());
        let partial = hash.filter(|hash| !self.complete.contains(*hash));
        let known = partial.and_then(|hash| self.acknowledged.get(hash))?;
        // Or it waits for its verdict.
        let is_whole = |(_, bytes): &(Instant, u64)| *bytes == size;
        let contested = contested || known.history.last().is_some_and(is_whole);
        Some(Expected { least: known.now(), since: self.now, contested })
    }

    /// The receiver has ended a session. What comes of a file until its sender knows is acknowledged and not kept.
    fn on_failure(&mut self, incoming: &IncomingFile) {
        let hash = self.legitimate.get(&named(&incoming.name)).and_then(|all| all.first());
        if let Some(known) = hash.and_then(|hash| self.acknowledged.get_mut(hash)) {
            known.believed = incoming.size;
            // Of a session that outlived its sender, less may be undamaged than it had.
            let none = std::mem::take(&mut known.history).is_empty();
            known.safe = if none { known.safe.min(incoming.arrived) } else { incoming.arrived };
        }
    }

    /// A power failure has damaged what was acknowledged, which the hash has shown: the parts that are not
    /// damaged must not be sent again.
    fn on_mismatch(&mut self, name: &str, machine: &Machine) {
        let hash = self.legitimate.get(&named(name)).and_then(|all| all.first());
        let Some((hash, (seed, len))) = hash.and_then(|hash| self.contents.get_key_value(hash))
        else {
            return;
        };
        let Some(known) = self.acknowledged.get_mut(hash) else { return };
        // Its sender hears of the last of it yet.
        known.believed = *len as u64;
        known.history.clear();
        known.safe = match machine.partial(hash) {
            Some(there) if *len > PART => {
                let content = content(*seed, *len);
                let whole = there.chunks(PART).zip(content.chunks(PART));
                let whole = whole.filter(|(there, content)| there.starts_with(content));
                whole.map(|(_, content)| content.len() as u64).sum()
            }
            _ => 0,
        };
    }

    /// What was kept is there, and nothing else under its name.
    pub(crate) fn on_receiver_death(&mut self, death: Death, machine: &Machine) {
        self.sessions.clear();
        self.outlived.clone_from(&self.connections);
        // One that stood still has noted nothing since.
        let ran_until = self.turned_at;
        for known in self.acknowledged.values_mut() {
            known.lose(ran_until, death);
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
        let lost = self.folders.iter().find(|folder| !machine.is_folder(folder));
        if let Some(lost) = lost.map(|folder| format!("{} was kept and is gone", folder.display()))
        {
            self.report(lost);
        }
    }
}

/// The path that a sender has for one that the receiver has.
fn named(path: &str) -> String {
    path.split('/').map(unnumbered).collect::<Vec<_>>().join("/")
}

/// A name without the number that it got because the name was taken.
fn unnumbered(name: &str) -> String {
    match (name.rfind(" ("), name.rfind(')')) {
        (Some(from), Some(to)) if from < to => format!("{}{}", &name[..from], &name[to + 1..]),
        _ => name.to_owned(),
    }
}

/// How long an attacker's session outlives it.
const LINGERS: Duration = Duration::from_secs(70);
/// The pause between two attempts to connect.
const UNTRIED: Duration = Duration::from_secs(1);
/// Damage costs a part of a file (docs/transfer.md).
const PART: usize = 256 << 10;
/// Until then a new session may have to wait for what is on its way to the old one, and a small file arrives that was
/// sent before the receiver has said what it has.
const DECIDED_WITHIN: Duration = Duration::from_secs(4);
