//! How what arrives becomes a file: written, hashed, noted, and kept when its hash is right.

use std::io;

use weir_units::{Duration, Instant};

use super::{Incoming, NOTED_EVERY};
use crate::clock;
use crate::file::claims::Health;
use crate::file::frame::{Answer, Verdict};
use crate::file::keeper::Report;
use crate::file::partial::{Partial, remove_leftovers};
use crate::file::plain;
use crate::file::unreliable::LooseFile;

impl Incoming {
    /// Bytes of the present piece.
    pub(super) fn place(&mut self, at: u64, bytes: &[u8]) {
        let Some(claim) = &self.claim else { return };
        let offset = self.offset + (at - self.piece.start);
        if let Err(error) = claim.write(offset, bytes) {
            self.on_disk_error(&error);
        }
    }

    pub(super) fn on_disk_error(&mut self, error: &io::Error) {
        let name = self.files.last().map_or("", |file| file.name.as_str());
        self.fail(format!("cannot write '{name}': {}", plain(error)));
    }

    /// The present file grew; perhaps it is all there.
    pub(super) fn on_progress(&mut self) {
        let (Some(claim), Some(file)) = (&self.claim, self.files.last_mut()) else { return };
        let step = claim.with(|partial| {
            file.arrived = partial.prefix();
            let noted = if partial.unnoted() < NOTED_AFTER { Ok(()) } else { partial.note() };
            noted.map(|()| partial.is_complete())
        });
        match step {
            Some(Ok(true)) => self.on_complete(),
            Some(Err(error)) => self.on_disk_error(&error),
            Some(Ok(false)) | None => {}
        }
    }

    fn on_complete(&mut self) {
        self.rival = None;
        let number = self.number();
        let partial = self.claim.take().and_then(|claim| claim.take());
        let (Some(mut partial), Some(file)) = (partial, self.files.last_mut()) else { return };
        if let Err(error) = partial.settle() {
            return self.on_disk_error(&error);
        }
        file.arrived_ns = Some(clock::monotonic_nanos());
        // What little remains to be hashed is done at once, and the rest where nobody waits for it.
        if partial.unhashed() <= HASHED_AT_ONCE {
            match partial.verify() {
                Ok(true) => file.verified_ns = Some(clock::monotonic_nanos()),
                Ok(false) => {}
                Err(error) => return self.on_disk_error(&error),
            }
        }
        self.desk.keep(number, &file.name, partial);
    }

    /// Counts what came in datagrams, once nothing more is to be expected.
    pub(super) fn end_loose(&mut self, now: Instant, srtt: Duration) {
        let over = |loose: &mut LooseFile| loose.ends_at(srtt).is_some_and(|at| at <= now);
        let Some(loose) = self.loose.take_if(over) else { return };
        let (number, tally) = (self.number(), loose.tally());
        self.outbox.push(&Answer::Count { file: number, tally });
        let Some(file) = self.files.last_mut() else { return };
        file.tally = Some(tally);
        match loose.finish() {
            Some(partial) => self.desk.keep(number, &file.name, partial),
            None => self.settle(number, Verdict::Mismatch),
        }
    }

    /// Another session has the same file: its sender is alive, or was killed and is back with us.
    pub(super) fn watch_rival(&mut self, now: Instant) {
        let (Some(rival), Some(claim)) = (&mut self.rival, &self.claim) else { return };
        let mut own = claim.with(|partial| partial.prefix()).unwrap_or(0);
        match rival.look(now) {
            Health::Unknown => {
                self.rival_decides_at = Some(rival.decides_at(now));
                return;
            }
            Health::Independent => {}
            Health::Gone(partial) => match claim.merge(*partial) {
                Ok(prefix) => {
                    own = prefix;
                    if let Some(file) = self.files.last_mut() {
                        file.resumed_from = own;
                    }
                }
                Err(error) => return self.on_disk_error(&error),
            },
        }
        self.rival = None;
        self.welcome(own);
        self.on_progress();
    }

    pub(super) fn settle(&mut self, number: u32, verdict: Verdict) {
        let Some(file) = self.files.get_mut(number as usize) else { return };
        if file.verdict.is_none() {
            self.outbox.push(&Answer::Verdict { file: number, verdict: verdict.clone() });
            file.verdict = Some(verdict);
        }
    }

    pub(super) fn on_report(&mut self, report: Report) {
        match report {
            Report::Found { file, name: Some(name), hash } => {
                if file == self.number()
                    && let Some(claim) = self.claim.take()
                {
                    self.rival = None;
                    let _ = claim.take().map(Partial::discard);
                }
                remove_leftovers(self.folder.disk.as_ref(), &self.folder.path, &hash);
                self.settle(file, Verdict::Already { name });
            }
            Report::Found { name: None, .. } => {}
            Report::Done { file, verdict: Ok(verdict), verified_ns } => {
                if let Some(file) = self.files.get_mut(file as usize) {
                    file.verified_ns.get_or_insert(verified_ns);
                }
                self.settle(file, verdict);
            }
            Report::Done { verdict: Err(error), .. } => self.on_disk_error(&error),
        }
    }

    /// What is to be done for the present file in every turn: a little hashing, and now and then, for
    /// slow transfers too, its journal.
    pub(super) fn tend(&mut self, now: Instant) {
        let Some(claim) = &self.claim else { return };
        if claim.is_lost() {
            return self.fail("the same file is coming from another sender".to_owned());
        }
        claim.listen(now);
        let note = now.saturating_since(self.noted_at) >= NOTED_EVERY;
        if note {
            self.noted_at = now;
        }
        let tended = claim.with(|partial| {
            partial.catch_up(HASHED_PER_TURN)?;
            if note { partial.note() } else { Ok(()) }
        });
        if let Some(Err(error)) = tended {
            self.on_disk_error(&error);
        }
    }
}

/// The journal is written after so many bytes too.
const NOTED_AFTER: u64 = 4 << 20;
/// How much is hashed in a turn of what was written without being hashed: a millisecond or two.
const HASHED_PER_TURN: u64 = 4 << 20;
const HASHED_AT_ONCE: u64 = 4 << 20;
