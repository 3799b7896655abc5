//! How commands end: what their senders know as kept is there, and they fail only for a reason.

use weir_transfer::file::{OutgoingFile, OutgoingKind, Verdict};
use weir_transfer::{Sent, TransferError};
use weir_units::Duration;

use super::{Acknowledged, Checker};
use crate::disk::Machine;
use crate::hosts::LINKED;
use crate::world::received;

/// How a command ended.
pub(crate) struct FlowEnd<'a> {
    pub(crate) sender: usize,
    pub(crate) sent: &'a Sent,
    pub(crate) result: &'a Result<(), TransferError>,
}

impl Checker {
    /// A command over bare UDP has ended, perhaps with files that did not arrive.
    pub(crate) fn on_bare_end(&mut self, files: &[OutgoingFile], machine: &Machine) {
        for file in files {
            if let Some(Verdict::Kept { name } | Verdict::Already { name }) = &file.verdict {
                self.on_kept(name, file.header.hash, machine);
            }
        }
    }

    /// A sender knows that a file is there.
    fn on_kept(&mut self, name: &str, hash: [u8; 32], machine: &Machine) {
        let path = received(name);
        let there = machine.read(&path).map(|bytes| *blake3::hash(&bytes).as_bytes());
        if there != Some(hash) {
            self.report(format!("{name} was kept and is not there"));
        }
        self.promised.insert(path, hash);
    }

    /// A sender knows that a folder or a link is there. Before its end, a folder may be lost with the power.
    fn on_entry(&mut self, name: &str, entry: &OutgoingFile, machine: &Machine) {
        let path = received(name);
        let is_there = match &entry.kind {
            OutgoingKind::Link { target } => {
                machine.read(&path).as_deref() == Some(target.as_bytes())
            }
            _ => machine.is_folder(&path),
        };
        if !is_there {
            self.report(format!("{name} was kept and is not there"));
        }
        if entry.kind == OutgoingKind::FolderEnd {
            if machine.attributes(&path) != Some(entry.header.attributes) {
                self.report(format!("{name} has other permissions or another time"));
            }
            self.folders.insert(path);
        } else if matches!(entry.kind, OutgoingKind::Link { .. }) {
            self.promised.insert(path, *blake3::hash(LINKED.as_bytes()).as_bytes());
        }
    }

    /// Returns whether the command has done its work; if not, its user starts it again.
    pub(crate) fn on_end(&mut self, ending: &FlowEnd<'_>, machine: &Machine) -> bool {
        let FlowEnd { sender, sent, result } = ending;
        for file in &sent.files {
            match &file.verdict {
                Some(Verdict::Kept { name } | Verdict::Already { name }) if !file.is_file() => {
                    self.on_entry(name, file, machine);
                }
                Some(Verdict::Kept { name } | Verdict::Already { name }) => {
                    self.on_kept(name, file.header.hash, machine);
                    if machine.attributes(&received(name)) != Some(file.header.attributes)
                        && !self.disk_fault
                        && !self.attributes_may_change
                    {
                        self.report(format!("{name} has other permissions or another time"));
                    }
                    if let Some(known) = self.acknowledged.get_mut(&file.header.hash) {
                        *known = Acknowledged::default();
                    }
                }
                Some(other) => {
                    if !self.excuses_verdict(other) {
                        self.report(format!("sender {sender} has verdict {other:?}"));
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

    /// Whether the file may be lost.
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
            _ if text.contains("no program listens on") => {
                sent.reconnects == 0 && lately(Duration::from_secs(1))
            }
            _ if text.contains("cannot write") || text.contains("Input/output") => self.disk_fault,
            _ if text.contains("the same file is coming") => self.twins,
            _ if text.contains("has no memory") => {
                self.hoarded_until.is_some_and(|at| self.now < at)
            }
            TransferError::NoAnswer { .. } | TransferError::Broken { .. } => {
                rough(self.reach) || lately(self.reach)
            }
            _ if text.contains("nothing was heard") => {
                self.longest_hindrance >= Duration::from_secs(30)
            }
            _ => false,
        }
    }
}
