//! `rcp`: the Rate Control Protocol's router.
//!
//! Source: Dukkipati, Kobayashi, Zhang-Shen and McKeown, "Processor sharing flows in the Internet",
//! IWQoS 2005, with the constants of the authors' ns-2 release. With C the capacity, y the input rate, q the
//! queue, d the mean round trip (a fiftieth of each packet's goes into it) and T the shorter of 10 ms and d:
//!
//! ```text
//! R = R [1 + (T / d) (alpha (C - y) - beta q / d) / C]      every T
//! packet: rate = min(rate, R)
//! ```
//!
//! R lies between a millionth of C and C and starts with a twentieth of C.
//!
//! Parameters: alpha 0.4, beta 0.4, capacity (nominal).

use weir_units::{Duration, Feedback, Instant, Rate};

use super::NANOS_PER_SECOND;
use super::capacity::{Capacity, ServiceRate};
use super::occupancy::{Occupancy, Signal};
use crate::parcel::Parcel;
use crate::queue::Backlog;

/// An RCP router's parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RcpConfig {
    /// Where the capacity comes from.
    pub capacity: Capacity,
}

/// The agent.
#[derive(Clone, Debug)]
pub struct Rcp {
    capacity: ServiceRate,
    /// R, in bytes per second.
    rate: u64,
    mean_rtt: Option<Duration>,
    input: u64,
    began: Instant,
}

impl Rcp {
    /// Nothing seen yet.
    pub fn new(config: &RcpConfig, rate: Rate) -> Self {
        let capacity = ServiceRate::new(config.capacity, rate);
        let rate = (capacity.get() / FIRST_SHARE).max(1);
        Self { capacity, rate, mean_rtt: None, input: 0, began: Instant::ZERO }
    }

    pub(super) fn set_rate(&mut self, rate: Rate) {
        self.capacity.set_rate(rate);
    }

    pub(super) fn set_busy(&mut self, now: Instant, signal: Signal, occupancy: Occupancy) {
        self.capacity.set_busy(now, signal, occupancy);
    }

    pub(super) fn on_arrival<P: Parcel>(&mut self, now: Instant, parcel: &mut P, ahead: Backlog) {
        self.catch_up(now, ahead);
        self.input += parcel.len().get();
        if let Some(Feedback::Rcp(header)) = parcel.feedback()
            && header.rtt_micros > 0
        {
            let rtt = Duration::from_micros(u64::from(header.rtt_micros)).min(LONGEST_RTT);
            let mean = self.mean_rtt.unwrap_or(rtt);
            self.mean_rtt = Some((mean * 49 + rtt) / 50);
        }
    }

    pub(super) fn on_departure<P: Parcel>(
        &mut self,
        now: Instant,
        parcel: &mut P,
        behind: Backlog,
    ) {
        self.catch_up(now, behind);
        self.capacity.on_departure(parcel.len());
        if let Some(Feedback::Rcp(header)) = parcel.feedback() {
            header.rate = header.rate.min(u32::try_from(self.rate).unwrap_or(u32::MAX - 1));
        }
    }

    /// Ends the interval if it is over. Where nothing passed for longer, all of that counts, with an effect
    /// of a round trip's at most.
    fn catch_up(&mut self, now: Instant, backlog: Backlog) {
        let rtt = self.mean_rtt.unwrap_or(INTERVAL).max(SHORTEST_RTT);
        let lasted = now.saturating_since(self.began);
        if lasted < INTERVAL.min(rtt) {
            return;
        }
        self.capacity.settle(now);
        let input = std::mem::take(&mut self.input);
        self.began = now;
        let capacity = i128::from(self.capacity.get());
        let arrived = i128::from(per_second(input, lasted));
        let drain = i128::from(per_second(backlog.bytes.get(), rtt));
        let change = (capacity - arrived) * ALPHA - drain * BETA;
        let (time, round_trip) =
            (i128::from(lasted.min(rtt).as_nanos()), i128::from(rtt.as_nanos()));
        let rate = i128::from(self.rate);
        let step = rate * change / (PER_MILLE * capacity) * time / round_trip;
        let lowest = (capacity / LOWEST_SHARE).max(1);
        self.rate = u64::try_from((rate + step).clamp(lowest, capacity)).unwrap_or(1);
    }
}

/// Bytes per second: an amount over a time.
fn per_second(bytes: u64, time: Duration) -> u64 {
    let nanos = u128::from(time.as_nanos()).max(1);
    u64::try_from(u128::from(bytes) * NANOS_PER_SECOND / nanos).unwrap_or(u64::MAX)
}

const PER_MILLE: i128 = 1_000;
const ALPHA: i128 = 400;
const BETA: i128 = 400;
const FIRST_SHARE: u64 = 20;
const LOWEST_SHARE: i128 = 1_000_000;
const INTERVAL: Duration = Duration::from_millis(10);
const SHORTEST_RTT: Duration = Duration::from_micros(100);
const LONGEST_RTT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use weir_units::Bytes;
    use weir_units::feedback::Rcp as Header;

    use super::*;
    use crate::link::probe::Probe;

    const RATE: Rate = Rate::from_mbit(8);

    fn pass(agent: &mut Rcp, millis: u64, behind: u64) -> u32 {
        let header = Header { rate: u32::MAX, rtt_micros: 100_000 };
        let mut parcel = Probe { feedback: Some(Feedback::Rcp(header)), ..Probe::data(0, 1_000) };
        let now = Instant::ZERO + Duration::from_millis(millis);
        let backlog = Backlog { packets: behind, bytes: Bytes(behind * 1_000) };
        agent.on_arrival(now, &mut parcel, backlog);
        agent.on_departure(now, &mut parcel, backlog);
        match parcel.feedback {
            Some(Feedback::Rcp(header)) => header.rate,
            other => panic!("{other:?}"),
        }
    }

    /// With y = C and no queue R rests; with y = C / 2 it grows by a factor of 1 + 0.1 * 0.4 / 2 in 10 ms.
    #[test]
    fn the_rate_grows_with_what_is_left_and_shrinks_with_the_queue() {
        let mut agent = Rcp::new(&RcpConfig::default(), RATE);
        let first = pass(&mut agent, 0, 0);
        assert_eq!(first, 50_000);
        let full: Vec<u32> = (1..200).map(|millis| pass(&mut agent, millis, 0)).collect();
        let (least, most) = (full.iter().min().unwrap(), full.iter().max().unwrap());
        assert!(most - least <= 4_000, "{least} to {most}: one packet more or less in ten");
        let before = f64::from(pass(&mut agent, 200, 0));
        let after = (202..=400).step_by(2).map(|millis| pass(&mut agent, millis, 0)).last();
        let factor = f64::from(after.unwrap()) / before;
        assert!((factor / 1.02f64.powi(20) - 1.0).abs() < 0.02, "{factor}");
        let queued = (401..600).map(|millis| pass(&mut agent, millis, 60)).last();
        assert!(queued < after);
    }

    #[test]
    fn the_rate_stays_within_its_bounds() {
        let mut agent = Rcp::new(&RcpConfig::default(), RATE);
        pass(&mut agent, 0, 0);
        assert_eq!((1..200).map(|n| pass(&mut agent, n * 100, 0)).last(), Some(1_000_000));
        let least = (20_000..40_000).map(|millis| pass(&mut agent, millis, 100_000)).last();
        assert_eq!(least, Some(1));
    }
}
