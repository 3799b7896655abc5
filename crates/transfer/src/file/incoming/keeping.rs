//! How what arrives becomes a file: written, noted, and kept when its hash is right.

use std::io;
use std::ops::Range;
use std::rc::Rc;

use weir_sockets::clock;
use weir_transport::ConnectionError;
use weir_units::{Duration, Instant};

use super::{ASKED_AT_LEAST_EVERY, ASKED_EVERY, Incoming, NOTED_EVERY, State, Wait};
use crate::file::claims::Health;
use crate::file::finalizer::Report;
use crate::file::frame::{Answer, Verdict};
use crate::file::partial::Partial;
use crate::file::plain;
use crate::file::unreliable::DatagramFile;

impl Incoming {
    /// Bytes of the present piece.
    pub(super) fn place(&mut self, at: u64, bytes: &[u8]) {
        let Some(claim) = &self.claim else { return };
        let offset = self.offset + (at - self.piece.start);
        match claim.write(offset, bytes) {
            Ok(()) => {
                self.note_origin();
                self.on_written(bytes.len() as u64);
            }
            Err(error) => self.on_disk_error(&error),
        }
        self.charge_staging();
    }

    /// Whose share of partial files the present one counts for, once there is one.
    fn note_origin(&mut self) {
        let number = self.number();
        let (Some(origin), Some(claim)) = (self.origin, &self.claim) else { return };
        if self.noted_origin_of == Some(number) {
            return;
        }
        let upkeep = &self.shared.upkeep;
        let made = claim.with(|partial| {
            partial.made_at().is_some_and(|path| {
                upkeep.on_begun(path, origin);
                true
            })
        });
        if made == Some(true) {
            self.noted_origin_of = Some(number);
        }
    }

    /// Other sessions write too, so what was admitted may be too much by now.
    pub(super) fn on_written(&mut self, bytes: u64) {
        self.shared.upkeep.on_written(bytes);
        if self.shared.upkeep.is_exceeded() {
            self.fail("the receiver's quota is used up".to_owned());
        }
    }

    /// An error of the present file.
    pub(super) fn on_disk_error(&mut self, error: &io::Error) {
        self.on_disk_error_of(self.number(), error);
    }

    fn on_disk_error_of(&mut self, file: u32, error: &io::Error) {
        let name = self.files.get_mut(file).map_or("", |file| file.name.as_str());
        let reason = format!("cannot write '{name}': {}", plain(error));
        self.fail(reason);
    }

    /// The present file grew; perhaps it is all there.
    pub(super) fn on_progress(&mut self) {
        let (Some(claim), Some(file)) = (&self.claim, self.files.present()) else { return };
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
        self.wait = None;
        self.handle.cancel_look_up();
        let number = self.number();
        let partial = self.claim.take().and_then(|claim| claim.take());
        let (Some(mut partial), Some(to)) = (partial, self.destination.clone()) else { return };
        if let Err(error) = partial.complete() {
            return self.on_disk_error(&error);
        }
        if let Some(file) = self.files.present() {
            file.arrived_ns = Some(clock::monotonic_nanos());
        }
        let (hash, path) = (*partial.content().1, to.path.clone());
        let mark = self.handle.keep(number, to, partial);
        self.shared.claims.finish(hash, path, mark);
    }

    /// Counts what came in datagrams, once nothing more is to be expected.
    pub(super) fn end_datagrams(&mut self, now: Instant, srtt: Duration) {
        let over = |datagram: &mut DatagramFile| datagram.ends_at(srtt).is_some_and(|at| at <= now);
        let Some(datagram) = self.datagram.take_if(over) else { return };
        let (number, tally) = (self.number(), datagram.tally());
        self.outbox.push(&Answer::Count { file: number, tally });
        if let Some(file) = self.files.present() {
            file.tally = Some(tally);
        }
        match datagram.finish().zip(self.destination.clone()) {
            Some((partial, to)) => drop(self.handle.keep(number, to, partial)),
            None => self.settle(number, Verdict::Mismatch),
        }
    }

    /// Tells the sender from where on the present file is wanted, once that is known.
    pub(super) fn reconsider(&mut self, now: Instant) {
        let (Some(wait), Some(claim)) = (&mut self.wait, &self.claim) else { return };
        let path = self.destination.as_ref().map(|destination| &destination.path);
        let own = claim.with(|partial| partial.prefix()).unwrap_or(0);
        match wait {
            Wait::LookUp | Wait::NoSpace(_) => {}
            Wait::Finish(mark) if mark.strong_count() > 0 => {}
            Wait::Finish(_) => self.look_up_again(own),
            Wait::CompetingSession(competitor, decides_at) => match competitor.look(now) {
                Health::Unknown => *decides_at = Some(competitor.decides_at(now)),
                Health::Independent => self.send_resume_offset(own),
                // Its sender may have been killed too, and what both have sent is there then.
                Health::TakenOver => match self.shared.claims.further(claim, own, now) {
                    Some(further) => *wait = Wait::CompetingSession(further, None),
                    None => self.resume(own),
                },
                // The bytes that were in flight when its sender was killed may have completed it.
                Health::Ended => {
                    match path.and_then(|path| self.shared.claims.finishing(&claim.hash(), path)) {
                        Some(mark) => *wait = Wait::Finish(mark),
                        None => self.look_up_again(own),
                    }
                }
                Health::Gone(partial) => match claim.merge(*partial) {
                    Ok(prefix) => self.resume(prefix),
                    Err(error) => self.on_disk_error(&error),
                },
            },
        }
    }

    /// Goes on with what earlier sessions have left.
    fn resume(&mut self, prefix: u64) {
        if let Some(file) = self.files.present() {
            file.resumed_from = prefix;
        }
        self.send_resume_offset(prefix);
        self.on_progress();
    }

    /// Asks for what is damaged of a file that is complete.
    fn repair(&mut self, mut partial: Partial, damaged: &[Range<u64>]) {
        if let Err(error) = partial.repair(damaged) {
            return self.on_disk_error(&error);
        }
        let (number, (size, hash)) = (self.number(), partial.content());
        let claim = self.shared.claims.claim(*hash, partial);
        self.claim = Some(claim);
        for range in damaged {
            let (offset, len) = (range.start, range.end - range.start);
            self.outbox.push(&Answer::Damaged { file: number, offset, len });
        }
        if let Some(file) = self.files.present() {
            file.resumed_from =
                size - damaged.iter().map(|range| range.end - range.start).sum::<u64>();
        }
        self.send_resume_offset(size);
        self.on_progress();
    }

    /// What another session has brought may be kept by now.
    fn look_up_again(&mut self, prefix: u64) {
        let is_there = self.is_name_taken();
        let (Some(claim), Some(size)) = (&self.claim, self.files.size()) else { return };
        let hash = claim.hash();
        if is_there {
            self.look_up((size, hash));
            self.wait = Some(Wait::LookUp);
        } else {
            self.send_resume_offset(prefix);
        }
    }

    pub(super) fn settle(&mut self, number: u32, verdict: Verdict) {
        let answer = Answer::Verdict { file: number, verdict: verdict.clone() };
        if self.files.settle(number, verdict) {
            self.outbox.push(&answer);
        }
    }

    /// Takes what the finalizer reports. Hundreds of sessions may wait for it: they ask ever less often.
    pub(super) fn take_reports(&mut self, now: Instant) {
        let mut is_new = !self.handle.is_waiting();
        while let Some(report) = self.handle.poll() {
            is_new = true;
            self.on_report(report);
        }
        if is_new {
            self.asked_every = ASKED_EVERY;
        } else if now.saturating_since(self.polled_at) < self.asked_every {
            return;
        } else {
            self.asked_every = (self.asked_every * 2).min(ASKED_AT_LEAST_EVERY);
        }
        self.polled_at = now;
    }

    pub(super) fn on_report(&mut self, report: Report) {
        match report {
            Report::Found { file, name: Some(name) } => {
                if file == self.number() {
                    self.wait = None;
                    let partial = self.claim.take().and_then(|claim| claim.take());
                    let _ = partial.map(Partial::discard);
                }
                self.settle(file, Verdict::Already { name });
            }
            // Its sender may have announced it without waiting for the answer.
            Report::Asked { file, .. } if !self.asked.contains_key(&file) => {}
            Report::Asked { file, name: Some(name) } => {
                self.forget_question(file);
                self.settle(file, Verdict::Already { name });
            }
            Report::Asked { file, name: None } => {
                if let Some(asked) = self.asked.get_mut(&file) {
                    asked.since = None;
                }
                self.outbox.push(&Answer::Wanted { file });
            }
            Report::Found { file, name: None } => {
                let number = self.number();
                let looked_up = |wait: &mut Wait| {
                    file == number && matches!(wait, Wait::LookUp | Wait::NoSpace(_))
                };
                match self.wait.take_if(looked_up) {
                    Some(Wait::LookUp) => {
                        let claim = self.claim.as_ref();
                        let prefix = claim.and_then(|claim| claim.with(|partial| partial.prefix()));
                        self.send_resume_offset(prefix.unwrap_or(0));
                    }
                    Some(Wait::NoSpace(reason)) => self.settle(file, Verdict::Refused { reason }),
                    _ => {}
                }
            }
            Report::Compared { file, compared: Ok((partial, damaged)) } => {
                if file == self.number() && matches!(self.state, State::Receiving) {
                    self.repair(*partial, &damaged);
                } else {
                    self.files.abandon(file);
                }
            }
            Report::Compared { file, compared: Err(error) }
            | Report::Done { file, verdict: Err(error), .. } => {
                self.on_disk_error_of(file, &error);
            }
            Report::Done { file, verdict: Ok(verdict), verified_ns } => {
                if let Some(file) = self.files.get_mut(file) {
                    file.verified_ns.get_or_insert(verified_ns);
                }
                self.settle(file, verdict);
            }
        }
    }

    /// A sender that answers after another session has taken its file over is alive.
    pub(super) fn mark_contested(&mut self) {
        let answered = self.outbox.len() == 0 || self.broken == Some(ConnectionError::Reset);
        if let Some(claim) = self.lost.take_if(|_| answered) {
            claim.contest();
        }
    }

    /// What is to be done for the present file now and then, for slow transfers too: its journal.
    pub(super) fn maintain(&mut self, now: Instant) {
        let Some(claim) = &self.claim else { return };
        if claim.is_lost() {
            // Its sender was silent for a while, and may live: it gets a partial file of its own.
            self.lost = Some(Rc::clone(claim));
            return self.break_off("the same file is coming from another sender".to_owned());
        }
        claim.listen(now);
        if now.saturating_since(self.noted_at) < NOTED_EVERY {
            return;
        }
        self.noted_at = now;
        let tended = claim.with(|partial| {
            // One that sends slowly holds no memory between its bytes.
            if partial.unnoted() < SLOW {
                partial.note()?;
                partial.rest();
                return Ok(());
            }
            partial.note()
        });
        if let Some(Err(error)) = tended {
            self.on_disk_error(&error);
        }
    }
}

/// Bytes after which the journal is written, too.
const NOTED_AFTER: u64 = 4 << 20;
/// Whose bytes since the last note fit into half of what is gathered has no use for the memory at once.
const SLOW: u64 = 128 << 10;
