//! Sections `[topology.forward]` and `[topology.reverse]`: how a direction differs, and its impairments.
//!
//! A new impairment is a key with its model in [`Direction::impair`], and a name in [`IMPAIRMENTS`].

use serde::{Deserialize, Serialize};
use weir_net::{
    DeliveryTrace, DropList, GilbertElliott, Impairments, Jitter, LinkConfig, Numbering, Order,
    PolicerConfig, Reorder, Schedule, Service, Spread,
};
use weir_units::{Bytes, Duration, Instant, Rate, Ratio};

use crate::error::{Checked, Problem, require};
use crate::keys::{Word, choices, form, section, words};
use crate::queue::Queue;
use crate::range::{MAX_RATE, above, at_least, rates, up_to_a_day};
use crate::traces;

section! {
    /// One direction of a bottleneck: what differs from the other, and what goes wrong.
    pub struct Direction {
        /// Rate in this direction, if it differs.
        rate: Option<Rate> [rates()] = None,
        /// Queue in this direction, if it differs.
        queue: Option<Queue> = None,
        /// Token bucket in this direction, if it differs.
        burst: Option<Bytes> [at_least(FULL_PACKET).because(TOO_SMALL)] = None,
        /// Drops packets that exceed a token bucket, in front of the queue.
        policer: Option<Policer> = None,
        /// Packets lost independently of each other, in front of the queue.
        loss: Ratio = Ratio::ZERO,
        /// Later values of `loss`, as in `[{ at = "2s", loss = "0%" }]`.
        loss_steps: Vec<LossStep> = Vec::new(),
        /// Packets lost in bursts, in front of the queue.
        burst_loss: Option<BurstLoss> = None,
        /// Packets lost by number, counted from 1: data packets forward, every packet back, every packet
        /// on a link of a graph.
        drop: Vec<u64> = Vec::new(),
        /// Packets damaged, which the checksum detects.
        corrupt: Ratio = Ratio::ZERO,
        /// Packets that arrive twice.
        duplicate: Ratio = Ratio::ZERO,
        /// Packets delayed by `reorder_delay`, so that later ones overtake.
        reorder: Ratio = Ratio::ZERO,
        /// Time by which `reorder` delays a packet.
        reorder_delay: Duration = Duration::from_millis(10),
        /// Random variation of the delay: at most this (uniform), or its standard deviation (normal).
        jitter: Duration [up_to_a_day()] = Duration::ZERO,
        /// Distribution of the jitter.
        jitter_spread: JitterSpread = JitterSpread::Uniform,
        /// Whether jitter keeps the order of packets.
        jitter_order: Word<Order> = Word(Order::Kept),
        /// Delivery opportunities instead of a rate: a file in mahimahi's format in the scenario's
        /// folder, or its times in milliseconds.
        rate_trace: Vec<u64> = Vec::new(),
        /// Later rates, as in `[{ at = "10s", rate = "5mbit" }]`; `0bit` is a blackout.
        rate_steps: Vec<RateStep> = Vec::new(),
        /// Later one-way delays of this direction, as in `[{ at = "10s", delay = "50ms" }]`.
        delay_steps: Vec<DelayStep> = Vec::new(),
    }
}

section! {
    /// Losses in bursts after Gilbert and Elliott: a good and a bad state, changed once per packet.
    pub struct BurstLoss {
        /// Probability to go from good to bad.
        good_to_bad: Ratio = Ratio::from_percent(1),
        /// Probability to go from bad to good; the bad state lasts the inverse of this, in packets.
        bad_to_good: Ratio [above(Ratio::ZERO).because("or the bad state never ends")]
            = Ratio::from_percent(30),
        /// Loss in the good state.
        loss_in_good: Ratio = Ratio::ZERO,
        /// Loss in the bad state.
        loss_in_bad: Ratio = Ratio::ONE,
    }
}

section! {
    /// Drops what exceeds a token bucket.
    pub struct Policer {
        /// Rate at which tokens arrive.
        rate: Rate [rates()] = Rate::from_mbit(10),
        /// Bucket size: bytes that may pass at once.
        burst: Bytes [at_least(FULL_PACKET).because(TOO_SMALL)] = Bytes(15_000),
    }
}

/// A later rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateStep {
    /// From this time on.
    pub at: Duration,
    /// The rate is this.
    pub rate: Rate,
}

/// A later loss.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LossStep {
    /// From this time on.
    pub at: Duration,
    /// This share of packets is lost.
    pub loss: Ratio,
}

/// A later delay.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DelayStep {
    /// From this time on.
    pub at: Duration,
    /// The one-way delay is this.
    pub delay: Duration,
}

choices! {
    /// Distributions of jitter.
    pub enum JitterSpread {
        Uniform = "uniform", "Uniform around the delay.";
        Normal = "normal", "Normal around the delay.";
    }
}

words! {
    Order { Kept = "kept", Free = "free" }
}

/// The keys of a direction that make something go wrong or change.
pub(crate) const IMPAIRMENTS: &[&str] = &[
    "policer",
    "loss",
    "loss_steps",
    "burst_loss",
    "drop",
    "corrupt",
    "duplicate",
    "reorder",
    "jitter",
    "rate_trace",
    "rate_steps",
    "delay_steps",
];

impl Direction {
    /// Puts what changes and goes wrong in a direction on its link.
    pub(crate) fn impair(&self, config: &mut LinkConfig, numbering: Numbering) {
        if let Service::Rate(rate) = &mut config.service {
            rate.steps = self.rate_steps.iter().map(|step| (after(step.at), step.rate)).collect();
        }
        if let Ok(trace) = traces::trace(&self.rate_trace) {
            config.service = Service::Trace(trace);
        }
        config.delay = Schedule {
            initial: config.delay.initial,
            steps: self.delay_steps.iter().map(|step| (after(step.at), step.delay)).collect(),
        };
        config.impairments = Impairments {
            loss: self.loss,
            loss_steps: self.loss_steps.iter().map(|step| (after(step.at), step.loss)).collect(),
            burst_loss: self.burst_loss.as_ref().map(burst_loss),
            drops: drops(self, numbering),
            corrupt: self.corrupt,
            duplicate: self.duplicate,
            reorder: (self.reorder > Ratio::ZERO)
                .then_some(Reorder { probability: self.reorder, extra_delay: self.reorder_delay }),
            policer: self
                .policer
                .as_ref()
                .map(|policer| PolicerConfig { rate: policer.rate, burst: policer.burst }),
            jitter: jitter(self),
        };
    }

    /// What its keys demand of each other, and lists of their members; the model checks the rest.
    pub(crate) fn check(&self, section: &str) -> Checked {
        let key = |name: &str| format!("{section}.{name}");
        let Direction { rate, rate_trace, rate_steps, delay_steps, loss_steps, .. } = self;
        if !rate_trace.is_empty() {
            crate::traces::trace(rate_trace)
                .map_err(|message| Problem::new(key("rate_trace"), message))?;
            let allowed = "a link with a rate_trace has no rate and no rate_steps";
            require(rate.is_none(), key("rate"), rate.unwrap_or_default(), allowed)?;
            require(rate_steps.is_empty(), key("rate_steps"), "a list of steps", allowed)?;
        }
        if let Some(burst) = self.burst {
            let allowed = "tokens arrive at a rate, and this link has a rate_trace";
            require(rate_trace.is_empty(), key("burst"), burst, allowed)?;
        }
        let ordered = |times: Vec<Duration>| times.windows(2).all(|pair| pair[0] < pair[1]);
        let order = "each step comes later than the one before";
        let times = rate_steps.iter().map(|step| step.at).collect();
        require(ordered(times), key("rate_steps"), "this order", order)?;
        if let Some(step) = rate_steps.iter().find(|step| step.rate > MAX_RATE) {
            let allowed = format!("at most {MAX_RATE}");
            return Err(Problem::new(
                key("rate_steps"),
                format!("{} is not allowed; {allowed}", step.rate),
            ));
        }
        let times = delay_steps.iter().map(|step| step.at).collect();
        require(ordered(times), key("delay_steps"), "this order", order)?;
        let times = loss_steps.iter().map(|step| step.at).collect();
        require(ordered(times), key("loss_steps"), "this order", order)?;
        require(!self.drop.contains(&0), key("drop"), 0, "packets are counted from 1")?;
        if self.reorder > Ratio::ZERO {
            let delay = self.reorder_delay;
            require(
                !delay.is_zero(),
                key("reorder_delay"),
                delay,
                "above 0s, or nothing is reordered",
            )?;
        }
        Ok(())
    }
}

/// A token bucket in which no full packet finds tokens is taken for a slip.
pub(crate) fn check_burst(
    burst: Bytes,
    key: String,
    mtu: Option<Bytes>,
    overhead: Bytes,
) -> Checked {
    let longest = mtu.unwrap_or(FULL_PACKET) + overhead;
    let allowed = format!("at least {longest}, {TOO_SMALL}");
    require(burst >= longest, key, burst, allowed)
}

/// What `bdp` refers to: the rate, or the mean of a trace.
pub(crate) fn mean_rate(direction: &Direction, rate: Rate) -> Rate {
    let Ok(trace) = traces::trace(&direction.rate_trace) else { return rate };
    trace_rate(&trace).unwrap_or(rate)
}

/// What a trace carries on average.
pub(crate) fn trace_rate(trace: &DeliveryTrace) -> Option<Rate> {
    let period = trace.period();
    let carried = trace.capacity(Instant::ZERO, Instant::ZERO + period);
    Rate::from_transfer(carried, period)
}

/// Makes a link with a rate a token bucket.
pub(crate) fn shape(config: &mut LinkConfig, burst: Option<Bytes>) {
    if let (Service::Rate(rate), Some(burst)) = (&config.service, burst) {
        config.service = Service::Shaper { rate: rate.clone(), burst };
    }
}

fn burst_loss(burst: &BurstLoss) -> GilbertElliott {
    GilbertElliott {
        good_to_bad: burst.good_to_bad,
        bad_to_good: burst.bad_to_good,
        loss_in_good: burst.loss_in_good,
        loss_in_bad: burst.loss_in_bad,
    }
}

fn drops(direction: &Direction, counts: Numbering) -> Vec<DropList> {
    let numbers = direction.drop.clone();
    if numbers.is_empty() { Vec::new() } else { vec![DropList { counts, numbers }] }
}

fn jitter(direction: &Direction) -> Option<Jitter> {
    if direction.jitter.is_zero() {
        return None;
    }
    let spread = match direction.jitter_spread {
        JitterSpread::Uniform => Spread::Uniform(direction.jitter),
        JitterSpread::Normal => Spread::Normal(direction.jitter),
    };
    Some(Jitter { spread, order: direction.jitter_order.0 })
}

pub(crate) fn after(time: Duration) -> Instant {
    Instant::ZERO.saturating_add(time)
}

/// Of a token bucket in which no full packet finds tokens.
const TOO_SMALL: &str = "or no full packet gets through";
/// Ethernet's MTU.
pub(crate) const FULL_PACKET: Bytes = Bytes(1_500);

form! {
    Direction => "section",
    BurstLoss => "section",
    Policer => "section",
    Vec<RateStep> => "list of `{ at, rate }`",
    Vec<DelayStep> => "list of `{ at, delay }`",
    Vec<LossStep> => "list of `{ at, loss }`",
}
