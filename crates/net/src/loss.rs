//! Which parcels are lost: at random, in bursts, or by number.

use weir_units::{Ratio, Rng};

use crate::parcel::Parcel;

/// Losses in bursts after Gilbert (1960) and Elliott (1963): a chain of a good and a bad state,
/// each with its own loss. The chain moves once per parcel and starts in its stationary
/// distribution, so no warm-up is needed.
///
/// ```
/// use weir_net::GilbertElliott;
/// use weir_units::Ratio;
///
/// let bursts = GilbertElliott {
///     good_to_bad: Ratio::from_percent(1),
///     bad_to_good: Ratio::from_percent(24),
///     loss_in_good: Ratio::ZERO,
///     loss_in_bad: Ratio::ONE,
/// };
/// assert!((bursts.mean_loss() - 0.04).abs() < 1e-12);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GilbertElliott {
    /// `p`: the probability to go from good to bad.
    pub good_to_bad: Ratio,
    /// `r`: the probability to go from bad to good. The bad state lasts `1/r` parcels on average.
    pub bad_to_good: Ratio,
    /// The loss in the good state; zero in Gilbert's model.
    pub loss_in_good: Ratio,
    /// The loss in the bad state; one makes every stay there a burst of consecutive losses.
    pub loss_in_bad: Ratio,
}

/// Parcels to drop by number.
///
/// ```
/// # mod packet { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/packet.rs")); }
/// # use packet::Packet;
/// use weir_net::{DropList, Impairments, Link, LinkConfig, Numbering};
/// use weir_units::{Instant, stream};
///
/// let drops = vec![DropList { counts: Numbering::Data, numbers: vec![2] }];
/// let impairments = Impairments { drops, ..Impairments::default() };
/// let config = LinkConfig { impairments, ..LinkConfig::default() };
/// let mut link = Link::new(&config, |purpose| stream(1, purpose))?;
/// for len in [100, 200, 300] {
///     link.offer(Instant::ZERO, Packet::new(len));
/// }
/// let passed: Vec<u64> = std::iter::from_fn(|| link.poll(Instant::ZERO)).map(|d| d.parcel.len).collect();
/// assert_eq!(passed, [100, 300]);
/// # Ok::<(), weir_net::ConfigError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropList {
    /// Which parcels are numbered.
    pub counts: Numbering,
    /// The numbers to drop, the first parcel being 1, in any order.
    pub numbers: Vec<u64>,
}

/// Which parcels a [`DropList`] numbers, in the order in which the link is offered them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Numbering {
    /// Those with application data, of all flows; retransmissions are numbered like any other.
    #[default]
    Data,
    /// Those that travel towards their flow's receiver, handshakes included.
    Forward,
    /// Those that travel back.
    Reverse,
    /// All.
    Any,
}

/// The state of a Gilbert-Elliott chain.
#[derive(Clone, Debug)]
pub(crate) struct BurstLoss {
    config: GilbertElliott,
    bad: bool,
    rng: Rng,
}

/// A drop list at work.
#[derive(Clone, Debug)]
pub(crate) struct ListLoss {
    counts: Numbering,
    seen: u64,
    /// The numbers still to come, the next one last.
    pending: Vec<u64>,
}

impl GilbertElliott {
    /// The share of time in the bad state, `p / (p + r)`.
    pub fn bad_state_share(&self) -> f64 {
        let (p, r) = (self.good_to_bad.as_f64(), self.bad_to_good.as_f64());
        if p == 0.0 { 0.0 } else { p / (p + r) }
    }

    /// The mean loss over a long time.
    pub fn mean_loss(&self) -> f64 {
        let bad = self.bad_state_share();
        (1.0 - bad) * self.loss_in_good.as_f64() + bad * self.loss_in_bad.as_f64()
    }
}

impl BurstLoss {
    pub(crate) fn new(config: GilbertElliott, mut rng: Rng) -> Self {
        let p = u64::from(config.good_to_bad.as_billionths());
        let r = u64::from(config.bad_to_good.as_billionths());
        let bad = p > 0 && rng.below(p + r) < p;
        Self { config, bad, rng }
    }

    pub(crate) fn strikes(&mut self) -> bool {
        let GilbertElliott { good_to_bad, bad_to_good, loss_in_good, loss_in_bad } = self.config;
        let (loss, change) =
            if self.bad { (loss_in_bad, bad_to_good) } else { (loss_in_good, good_to_bad) };
        let lost = loss.chance(&mut self.rng);
        self.bad ^= change.chance(&mut self.rng);
        lost
    }
}

impl ListLoss {
    pub(crate) fn new(list: &DropList) -> Self {
        let mut pending = list.numbers.clone();
        pending.sort_unstable_by(|a, b| b.cmp(a));
        pending.dedup();
        Self { counts: list.counts, seen: 0, pending }
    }

    pub(crate) fn strikes<P: Parcel>(&mut self, parcel: &P) -> bool {
        let counted = match self.counts {
            Numbering::Data => parcel.carries_data(),
            Numbering::Forward => parcel.is_forward(),
            Numbering::Reverse => !parcel.is_forward(),
            Numbering::Any => true,
        };
        self.seen += u64::from(counted);
        let hit = counted && self.pending.last() == Some(&self.seen);
        if hit {
            self.pending.pop();
        }
        hit
    }
}
