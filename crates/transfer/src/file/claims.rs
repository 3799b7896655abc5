//! Which session of a receiver is at which partial file, so that one can go on with what another, whose
//! sender has vanished, has left half done.
//!
//! A killed sender sends nothing more: its session lives until it has been silent for long. The
//! same file coming anew is watched for against it: the old session's sender is alive if bytes
//! still come, and gone once the last of them came a while ago.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::{Rc, Weak};
use std::sync;

use weir_units::{Duration, Instant};

use super::frame::Hash;
use super::partial::Partial;
use super::path::SafePath;

/// The partial files that a receiver's sessions are at.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    incoming: RefCell<Vec<Weak<Claim>>>,
    /// Contents that are complete, each with a mark that is gone when its file has its verdict.
    finishing: RefCell<Vec<Finishing>>,
}

/// A complete content, the path that it is to get, and a mark that is gone when it has its verdict.
type Finishing = (Hash, SafePath, sync::Weak<()>);

/// A partial file and the session's hold on it, which another session may take over.
#[derive(Debug)]
pub(crate) struct Claim {
    hash: Hash,
    partial: RefCell<Option<Partial>>,
    /// How many times something arrived for it.
    arrivals: Cell<u64>,
    /// How many there were when its session last looked, and since when that number is unchanged.
    heard: Cell<Option<(u64, Instant)>>,
    /// Whether a sender of the content that counted as gone has proved to live. All claims to it share this.
    contested: Rc<Cell<bool>>,
}

/// Another session with the same file, and what is known of its health.
#[derive(Debug)]
pub(crate) struct CompetingSession {
    claim: Weak<Claim>,
    arrivals: u64,
    since: Option<Instant>,
    /// When it was first looked at.
    began: Option<Instant>,
}

/// What is known of a competing session.
#[derive(Debug)]
pub(crate) enum Health {
    Unknown,
    /// Its sender is alive.
    Independent,
    /// It has ended, perhaps because its file is complete.
    Ended,
    /// Its sender is gone; this is what it has left.
    Gone(Box<Partial>),
    /// A third session has taken its file over.
    TakenOver,
}

impl Claims {
    /// Another session that has part of the same content.
    pub(crate) fn competitor(&self, hash: &Hash) -> Option<CompetingSession> {
        let claims = self.incoming.borrow();
        let mut others = claims.iter().filter_map(Weak::upgrade);
        let other = others.find(|claim| claim.hash == *hash && claim.partial.borrow().is_some())?;
        let (claim, arrivals) = (Rc::downgrade(&other), other.arrivals.get());
        let heard = other.heard.get().filter(|(count, _)| *count == arrivals);
        Some(CompetingSession { claim, arrivals, since: heard.map(|(_, at)| at), began: None })
    }

    /// The session that has most of the content of `own`, if that is more than `prefix` bytes. Sessions that wait
    /// for each other are impossible then.
    pub(crate) fn further(
        &self,
        own: &Rc<Claim>,
        prefix: u64,
        now: Instant,
    ) -> Option<CompetingSession> {
        let claims = self.incoming.borrow();
        let others = claims.iter().filter_map(Weak::upgrade);
        let (_, other) = others
            .filter(|claim| claim.hash == own.hash && !Rc::ptr_eq(claim, own))
            .filter_map(|claim| Some((claim.with(|partial| partial.prefix())?, claim)))
            .filter(|(further, _)| *further > prefix)
            .max_by_key(|(further, _)| *further)?;
        // Its sender has just received from where to continue, so silence counts from now on.
        let (claim, arrivals) = (Rc::downgrade(&other), other.arrivals.get());
        Some(CompetingSession { claim, arrivals, since: Some(now), began: None })
    }

    pub(crate) fn claim(&self, hash: Hash, partial: Partial) -> Rc<Claim> {
        let mut claims = self.incoming.borrow_mut();
        claims.retain(|claim| claim.strong_count() > 0);
        let other = claims.iter().filter_map(Weak::upgrade).find(|claim| claim.hash == hash);
        let claim = Rc::new(Claim {
            hash,
            partial: RefCell::new(Some(partial)),
            arrivals: Cell::new(0),
            heard: Cell::new(None),
            contested: other.map(|claim| Rc::clone(&claim.contested)).unwrap_or_default(),
        });
        claims.push(Rc::downgrade(&claim));
        claim
    }

    /// Records that a content is complete; `mark` can be upgraded until its file has its verdict.
    pub(crate) fn finish(&self, hash: Hash, path: SafePath, mark: sync::Weak<()>) {
        let mut finishing = self.finishing.borrow_mut();
        finishing.retain(|(_, _, mark)| mark.strong_count() > 0);
        finishing.push((hash, path, mark));
    }

    /// The mark of the same content for the same path, if it is complete and has no verdict yet.
    pub(crate) fn finishing(&self, hash: &Hash, path: &SafePath) -> Option<sync::Weak<()>> {
        let finishing = self.finishing.borrow();
        let same =
            |(of, to, mark): &&Finishing| of == hash && to == path && mark.strong_count() > 0;
        finishing.iter().find(same).map(|(_, _, mark)| sync::Weak::clone(mark))
    }
}

impl Claim {
    /// Of what content it is a part.
    pub(crate) fn hash(&self) -> Hash {
        self.hash
    }

    /// Does something with the file, unless another session has it by now.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut Partial) -> R) -> Option<R> {
        self.partial.borrow_mut().as_mut().map(act)
    }

    /// Keeps bytes that arrived.
    pub(crate) fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.arrivals.set(self.arrivals.get() + 1);
        self.with(|partial| partial.write(offset, bytes)).unwrap_or(Ok(()))
    }

    /// Passes over zeros; `None` if another session has the file by now.
    pub(crate) fn skip(&self, offset: u64, len: u64) -> Option<io::Result<()>> {
        self.arrivals.set(self.arrivals.get() + 1);
        self.with(|partial| partial.skip(offset, len))
    }

    /// Records when something last arrived; called in every step.
    pub(crate) fn listen(&self, now: Instant) {
        let arrivals = self.arrivals.get();
        if self.heard.get().is_none_or(|(count, _)| count != arrivals) {
            self.heard.set(Some((arrivals, now)));
        }
    }

    /// Takes the file away from its present session.
    pub(crate) fn take(&self) -> Option<Partial> {
        self.partial.take()
    }

    /// Goes on with `other`, which another session has left, unless its own file is further. Returns how
    /// much is there.
    pub(crate) fn merge(&self, mut other: Partial) -> io::Result<u64> {
        let Some(own) = self.take() else { return Ok(0) };
        other.end_repair()?;
        let (mut further, rest) = if other.prefix() >= own.prefix() {
            other.absorb(&own)?;
            (other, own)
        } else {
            (own, other)
        };
        // Only the file that goes may have a journal of the bytes that were acknowledged.
        further.note()?;
        // A file that cannot be removed does no harm.
        let _ = rest.discard();
        let prefix = further.prefix();
        self.partial.replace(Some(further));
        Ok(prefix)
    }

    /// Its session has lost it, and its sender lives: senders of this content may be silent for longer.
    pub(crate) fn contest(&self) {
        self.contested.set(true);
    }

    /// Whether another session has it by now.
    pub(crate) fn is_lost(&self) -> bool {
        self.partial.borrow().is_none()
    }
}

impl CompetingSession {
    /// Looks at it; as soon as more is known than before, there is no point in looking again. What
    /// arrives in the beginning may have been in flight when its sender was killed.
    pub(crate) fn look(&mut self, now: Instant) -> Health {
        let Some(claim) = self.claim.upgrade() else { return Health::Ended };
        if claim.is_lost() {
            return Health::TakenOver;
        }
        let began = *self.began.get_or_insert(now);
        if claim.arrivals.get() != self.arrivals {
            if now.saturating_since(began) >= AFTERMATH {
                return Health::Independent;
            }
            self.arrivals = claim.arrivals.get();
            self.since = Some(now);
        }
        let contested = claim.contested.get();
        let silent = now.saturating_since(*self.since.get_or_insert(now));
        if contested && silent < CONTESTED_SILENCE {
            // Nor is it waited for: a sender that is slow enough would hold up all others.
            return Health::Independent;
        }
        if now < self.decides_at(now) {
            return Health::Unknown;
        }
        claim.take().map_or(Health::TakenOver, |partial| Health::Gone(Box::new(partial)))
    }

    /// When silence means that it is gone: it is counted from what arrived last, if that is known.
    pub(crate) fn decides_at(&mut self, now: Instant) -> Instant {
        *self.since.get_or_insert(now) + SILENCE
    }
}

/// So long a path holds back datagrams of a sender that is gone: a full queue, or a detour.
const AFTERMATH: Duration = Duration::from_secs(2);
/// A sender that is alive is heard of within this time, unless its path is cut.
const SILENCE: Duration = Duration::from_millis(500);
/// And this one within this time, if that was found to be wrong: two senders of one content that are alive must
/// not take it from each other forever.
const CONTESTED_SILENCE: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests;
