//! What goes wrong on a link, and the part of it that sits in front of the queue.

use weir_units::{Bytes, Instant, Ratio, Rng};

use crate::bucket::{PolicerConfig, TokenBucket};
use crate::error::ConfigError;
use crate::jitter::{Jitter, Reorder};
use crate::loss::{BurstLoss, DropList, GilbertElliott, ListLoss};
use crate::parcel::Parcel;

/// What goes wrong on a link. Each random impairment draws from its own random stream, so that adding
/// one does not shift another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Impairments {
    /// Independent losses in front of the queue. Stream `"loss"`.
    pub loss: Ratio,
    /// Later values of `loss`, each from its time on, in the order of time.
    pub loss_steps: Vec<(Instant, Ratio)>,
    /// Losses in bursts in front of the queue. Stream `"burst loss"`.
    pub burst_loss: Option<GilbertElliott>,
    /// Parcels to drop by number, in front of the queue.
    pub drops: Vec<DropList>,
    /// Damage that a checksum catches, in front of the queue. Stream `"corrupt"`.
    pub corrupt: Ratio,
    /// Copies, right behind their original into the queue. Stream `"duplicate"`.
    pub duplicate: Ratio,
    /// A bound on what enters the queue, behind all of the above.
    pub policer: Option<PolicerConfig>,
    /// Parcels that are held back on the wire. Stream `"reorder"`.
    pub reorder: Option<Reorder>,
    /// A delay on the wire that varies from parcel to parcel. Stream `"jitter"`.
    pub jitter: Option<Jitter>,
}

/// The impairments in front of the queue at work.
#[derive(Clone, Debug)]
pub(crate) struct Ingress {
    lists: Vec<ListLoss>,
    burst: Option<BurstLoss>,
    loss: Bernoulli,
    /// Those that are still to come, the next at the end.
    loss_steps: Vec<(Instant, Ratio)>,
    corrupt: Bernoulli,
    duplicate: Bernoulli,
    policer: Option<TokenBucket>,
}

/// What became of a parcel in front of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Lost,
    Passes { corrupted: bool, duplicated: bool },
}

/// A probability with the stream it draws from.
#[derive(Clone, Debug)]
struct Bernoulli {
    ratio: Ratio,
    rng: Rng,
}

impl Impairments {
    /// Says what is wrong with them, if anything.
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        if self.drops.iter().any(|list| list.numbers.contains(&0)) {
            const HELP: &str = "packet numbers start at 1";
            return Err(ConfigError::new("drop", 0, HELP));
        }
        if !self.loss_steps.is_sorted_by(|a, b| a.0 < b.0) {
            const HELP: &str = "each step comes later than the one before";
            return Err(ConfigError::new("loss_steps", "this order", HELP));
        }
        if let Some(policer) = &self.policer {
            policer.validate()?;
        }
        if let Some(jitter) = &self.jitter {
            jitter.validate()?;
        }
        self.reorder.as_ref().map_or(Ok(()), Reorder::validate)
    }

    /// Those in front of the queue, if there are any.
    pub(crate) fn ingress(
        &self,
        stream: &mut impl FnMut(&'static str) -> Rng,
    ) -> Option<Box<Ingress>> {
        let harmless = [self.loss, self.corrupt, self.duplicate].iter().all(|r| *r == Ratio::ZERO);
        let harmless = harmless && self.loss_steps.is_empty();
        let unpoliced = self.policer.is_none();
        if harmless && unpoliced && self.burst_loss.is_none() && self.drops.is_empty() {
            return None;
        }
        let mut chance = |ratio, name| Bernoulli { ratio, rng: stream(name) };
        let loss = chance(self.loss, "loss");
        let loss_steps = self.loss_steps.iter().rev().copied().collect();
        let corrupt = chance(self.corrupt, "corrupt");
        let duplicate = chance(self.duplicate, "duplicate");
        let burst = self.burst_loss.map(|config| BurstLoss::new(config, stream("burst loss")));
        let lists = self.drops.iter().map(ListLoss::new).collect();
        let policer =
            self.policer.map(|policer| TokenBucket::new(policer.rate.into(), policer.burst));
        Some(Box::new(Ingress { lists, burst, loss, loss_steps, corrupt, duplicate, policer }))
    }
}

impl Ingress {
    /// Decides. Every model sees every parcel, so that the random numbers of one do not depend on another.
    pub(crate) fn decide<P: Parcel>(&mut self, now: Instant, parcel: &P) -> Fate {
        while let Some((_, ratio)) = self.loss_steps.pop_if(|(at, _)| *at <= now) {
            self.loss.ratio = ratio;
        }
        let mut lost = false;
        for list in &mut self.lists {
            lost |= list.strikes(parcel);
        }
        if let Some(burst) = &mut self.burst {
            lost |= burst.strikes();
        }
        lost |= self.loss.strikes();
        let corrupted = self.corrupt.strikes();
        let duplicated = self.duplicate.strikes();
        if lost { Fate::Lost } else { Fate::Passes { corrupted, duplicated } }
    }

    /// Whether the policer lets `len` bytes through.
    pub(crate) fn admits(&mut self, now: Instant, len: Bytes) -> bool {
        self.policer.as_mut().is_none_or(|policer| policer.try_take(now, len))
    }
}

impl Bernoulli {
    fn strikes(&mut self) -> bool {
        self.ratio.chance(&mut self.rng)
    }
}
