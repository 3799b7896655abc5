//! Whether a token bucket without a queue dropped the packets of a flow.
//!
//! Source: Flach et al., "An Internet-Wide Analysis of Traffic Policing", SIGCOMM 2016, section 3.1, with the thresholds of
//! its published implementation. Deviations: the input is the first 16,384 packets of a direction instead of chunks of 2 MB.
//! Behind the policer the loss shows as a gap, and the RTTs in recovery are those of several rounds. So there the smaller
//! of the last two samples counts as that before a loss, instead of the last but one.

use crate::sender::{Counts, Passed};

/// The token bucket that a flow went through.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Policer {
    /// Bytes of data per second.
    pub(crate) rate: f64,
    /// Bytes before the first loss.
    pub(crate) burst: u64,
    /// Bytes that the bucket holds, by [`bucket_size`].
    pub(crate) bucket: u64,
    /// The first and the last loss.
    pub(crate) between: (u64, u64),
}

/// A packet of a flow, of which its sender knows what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentPacket {
    /// When it was sent, in nanoseconds.
    pub time: u64,
    /// Bytes of data.
    pub len: u32,
    /// RTT of what was acknowledged at that time, in microseconds.
    pub rtt: Option<u32>,
    /// It did not arrive.
    pub is_lost: bool,
}

/// The rate, in bytes per second, of a token bucket without a queue that these packets of a flow went through, the bytes
/// before the first loss, and those that the bucket holds. They are in the order of sending, and were seen at their sender.
pub fn find_policer(sent: &[SentPacket]) -> Option<(f64, u64, u64)> {
    let places = sent.iter().scan(0, |place, one| {
        let here = *place;
        *place += i64::from(one.len);
        Some(here)
    });
    let passed: Vec<Passed> = places
        .zip(sent)
        .map(|(place, &SentPacket { time, len, rtt, is_lost })| Passed {
            time,
            place,
            len,
            rtt,
            is_lost,
        })
        .collect();
    find(&passed, Place::Before).map(|policer| (policer.rate, policer.burst, policer.bucket))
}

/// Bytes that a token bucket of `rate`, in bytes per second, holds, if these packets, times in nanoseconds and bytes, found
/// it full and left it empty at `end`. While it is full, what comes in is lost.
pub fn bucket_size(packets: impl IntoIterator<Item = (u64, u32)>, rate: f64, end: u64) -> f64 {
    let (mut missing, mut before) = (0.0, 0);
    for (time, len) in packets {
        missing =
            f64::max(missing - rate * seconds(time.saturating_sub(before)), 0.0) + f64::from(len);
        before = time;
    }
    f64::max(missing - rate * seconds(end.saturating_sub(before)), 0.0)
}

/// Looks for a policer: with all losses, then without the first and the last two.
pub(crate) fn find(passed: &[Passed], place: Place) -> Option<Policer> {
    let passed = &passed[..passed.len().min(MOST_PACKETS)];
    judge(passed, place, 0).or_else(|| judge(passed, place, TRIMMED))
}

/// Where the packets were seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Before,
    /// Behind what drops them.
    Behind,
}

impl Place {
    /// From most of the repetitions: before the drops their first transmission was seen too.
    pub(crate) fn of(counts: &Counts) -> Self {
        if counts.lost_upstream * 2 > counts.retransmits() { Self::Behind } else { Self::Before }
    }
}

fn judge(passed: &[Passed], place: Place, trimmed: usize) -> Option<Policer> {
    let start = passed.first()?.time;
    let mut rtts: Vec<u64> =
        passed.iter().filter_map(|one| one.rtt).map(|rtt| u64::from(rtt) * 1_000).collect();
    let lost: Vec<usize> =
        passed.iter().enumerate().filter(|(_, one)| one.is_lost).map(|(at, _)| at).collect();
    let lost = lost.get(trimmed..lost.len().checked_sub(trimmed)?)?;
    if lost.len() < LEAST || passed.len() - lost.len() < LEAST || rtts.is_empty() {
        return None;
    }
    rtts.sort_unstable();
    let median_rtt = rtts[rtts.len() / 2];
    let tenth = rtts[rtts.len() / 10];
    let (first, last) = (&passed[lost[0]], &passed[*lost.last()?]);
    let slices: std::collections::BTreeSet<u64> =
        lost.iter().map(|at| (passed[*at].time - start) / median_rtt.max(1)).collect();
    let before_first = (first.place - passed[0].place).max(0) as u64;
    if slices.len() < LEAST_SLICES || before_first > MOST_BEFORE || last.time <= first.time {
        return None;
    }
    let is_lost = |at: usize| lost.binary_search(&at).is_ok();
    let through: u64 = (lost[0]..=lost[lost.len() - 1])
        .filter(|at| !is_lost(*at))
        .map(|at| u64::from(passed[at].len))
        .sum();
    let rate = through as f64 / seconds(last.time - first.time);
    let round = rate * seconds(median_rtt);
    let intercept = before_first as f64 - rate * seconds(first.time - start);
    if intercept < LEAST_INTERCEPT * round {
        return None;
    }
    let (at_losses, at_passes) = tokens(passed, lost, rate);
    if !holds(at_losses, at_passes, round) || queues(passed, lost, place, (median_rtt, tenth)) {
        return None;
    }
    let arrived = passed[..lost[0]].iter().filter(|one| !one.is_lost);
    let bucket = bucket_size(arrived.map(|one| (one.time, one.len)), rate, first.time);
    Some(Policer {
        rate,
        burst: before_first,
        bucket: bucket as u64,
        between: (first.time, last.time),
    })
}

/// The tokens in the bucket at each loss and at each other packet, from the first loss to the last.
fn tokens(passed: &[Passed], lost: &[usize], rate: f64) -> (Vec<f64>, Vec<f64>) {
    let (mut at_losses, mut at_passes) = (Vec::new(), Vec::new());
    let start = passed[lost[0]].time;
    let mut used = 0.0;
    let mut losses = lost.iter().peekable();
    for (at, one) in passed.iter().enumerate().take(lost[lost.len() - 1] + 1).skip(lost[0]) {
        let here = rate * seconds(one.time.saturating_sub(start)) - used;
        if losses.next_if(|lost| **lost == at).is_some() {
            at_losses.push(here);
        } else {
            at_passes.push(here);
            used += f64::from(one.len);
        }
    }
    (at_losses, at_passes)
}

/// Steps 6 to 8: the bucket is empty at losses, and only there.
fn holds(mut at_losses: Vec<f64>, mut at_passes: Vec<f64>, round: f64) -> bool {
    if at_passes.is_empty() {
        return false;
    }
    at_losses.sort_by(f64::total_cmp);
    at_passes.sort_by(f64::total_cmp);
    let mean = |list: &[f64]| list.iter().sum::<f64>() / list.len() as f64;
    let median = |list: &[f64]| list[list.len() / 2];
    let empty = median(&at_losses);
    if mean(&at_losses) >= mean(&at_passes) || empty >= median(&at_passes) {
        return false;
    }
    let share = |list: &[f64], is_off: &dyn Fn(f64) -> bool| {
        list.iter().filter(|tokens| is_off(**tokens)).count() as f64 / list.len() as f64
    };
    share(&at_losses, &|tokens| (tokens - empty).abs() > LOSS_SLACK * round) <= MOST_OFF_AT_LOSSES
        && share(&at_passes, &|tokens| tokens - empty < -PASS_SLACK * round) <= MOST_OFF_AT_PASSES
}

/// Step 9: whether RTTs grew before losses, as in front of a full queue.
fn queues(passed: &[Passed], lost: &[usize], place: Place, (median, tenth): (u64, u64)) -> bool {
    let mut inflated = 0;
    for at in lost {
        let before =
            passed[..*at].iter().rev().filter(|one| !one.is_lost).filter_map(|one| one.rtt);
        let last = before.take(2);
        let found = match place {
            Place::Before => last.last(),
            Place::Behind => last.min(),
        };
        let rtt = found.map_or(0, |rtt| u64::from(rtt) * 1_000);
        let is_inflated = rtt >= median && rtt * 10 > tenth * 13 && rtt >= INFLATED;
        inflated += usize::from(is_inflated);
    }
    inflated * 100 > lost.len() * MOST_INFLATED_PERCENT
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

/// Packets that are looked at, as many as 23 MB have.
const MOST_PACKETS: usize = 1 << 14;
/// Losses, and packets that passed.
const LEAST: usize = 15;
const LEAST_SLICES: usize = 3;
const TRIMMED: usize = 2;
const MOST_BEFORE: u64 = 2_000_000;
const LEAST_INTERCEPT: f64 = -0.75;
const LOSS_SLACK: f64 = 2.0;
const PASS_SLACK: f64 = 0.75;
const MOST_OFF_AT_LOSSES: f64 = 0.10;
const MOST_OFF_AT_PASSES: f64 = 0.03;
const MOST_INFLATED_PERCENT: usize = 20;
const INFLATED: u64 = 20_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// 60 packets every 100 ms at 100 Mbit/s through a bucket of 5 Mbit/s and 30 kB. Every second one that passes has
    /// `rtt`, the others 40 ms.
    fn policed(rtt: u32) -> Vec<Passed> {
        let (mut tokens, mut passed) = (30_000.0, Vec::<Passed>::new());
        let mut before = 0;
        for number in 0..2_000_u64 {
            let time = number / 60 * 100_000_000 + number % 60 * 115_840;
            tokens = f64::min(tokens + seconds(time - before) * 625_000.0, 30_000.0);
            before = time;
            let is_lost = tokens < 1448.0;
            tokens -= if is_lost { 0.0 } else { 1448.0 };
            let place = 1448 * number as i64;
            passed.push(Passed {
                time,
                place,
                len: 1448,
                rtt: (!is_lost).then_some(40_000),
                is_lost,
            });
        }
        for through in passed.iter_mut().filter(|one| !one.is_lost).skip(1).step_by(2) {
            through.rtt = Some(rtt);
        }
        passed
    }

    #[test]
    fn a_bucket_that_was_full_until_a_burst_has_the_size_of_the_burst() {
        // 10 kB in 1 s leave 1 MB/s full. Then 50 kB in 10 ms, while 10 kB come in.
        let slow = (0..10).map(|n| (n * 100_000_000, 1_000));
        let fast = (0..50).map(|n| (2_000_000_000 + n * 200_000, 1_000));
        let size = bucket_size(slow.chain(fast), 1e6, 2_010_000_000);
        assert!((size - 40_000.0).abs() < 1.0, "{size}");
        let found = find(&policed(40_000), Place::Before).expect("a policer");
        assert!(found.bucket.abs_diff(30_000) < 1_500, "{found:?}");
    }

    #[test]
    fn behind_a_policer_one_long_round_trip_of_two_is_no_queue() {
        for (rtt, place, is_found) in [
            (40_000, Place::Before, true),
            (80_000, Place::Before, false),
            (80_000, Place::Behind, true),
        ] {
            let found = find(&policed(rtt), place);
            assert_eq!(found.is_some(), is_found, "{rtt} {place:?} {found:?}");
        }
    }
}
