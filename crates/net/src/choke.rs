//! CHOKe: RED that compares each arrival with a random parcel of the queue.
//!
//! Sources: Pan, Prabhakar and Psounis, "CHOKe: a stateless active queue management scheme for
//! approximating fair bandwidth allocation", 2000, figure 2; Linux's `sch_choke`.
//!
//! The average of the backlog and its thresholds are those of RED, see red.rs. While the average is at
//! `min` or above, each arrival is compared with a parcel drawn at random from the queue. If both are of
//! the same flow, both are dropped: a flow that fills the queue meets itself often. Else RED decides.
//!
//! Deviations: one parcel is drawn, where Linux draws up to three times past the gaps of its ring. Linux
//! compares above `min`, RED counts `min` itself as reached, and so does this. Random numbers come from
//! stream `"choke"`, and RED's from a stream that it begins.

use weir_units::{Bytes, Duration, Instant, Rng, stream};

use crate::error::ConfigError;
use crate::parcel::Parcel;
use crate::queue::{Backlog, Dropped, Queue, Queued};
use crate::red::{Red, RedConfig};
use crate::stats::DropCause;

/// A CHOKe queue's parameters: those of RED.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChokeConfig(pub RedConfig);

/// A FIFO under CHOKe.
#[derive(Clone, Debug)]
pub struct Choke<P> {
    red: Red<P>,
    rng: Rng,
}

impl ChokeConfig {
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        self.0.validate()
    }
}

impl<P: Parcel> Choke<P> {
    /// An empty queue, whose parcels count for `overhead` more bytes than their length. `parcel_time` is
    /// what a full-sized one takes to be sent, where idle times are to count.
    pub fn new(
        config: ChokeConfig,
        overhead: Bytes,
        parcel_time: Option<Duration>,
        mut rng: Rng,
    ) -> Self {
        let rng_of_red = stream(rng.next_u64(), "red");
        Self { red: Red::new(config.0, overhead, parcel_time, rng_of_red), rng }
    }

    /// Takes a random parcel out of the queue, if it is of the same flow as `parcel`.
    fn take_match(&mut self, parcel: &P) -> Option<P> {
        let fifo = &mut self.red.fifo;
        let waiting = fifo.backlog().packets;
        if waiting == 0 {
            return None;
        }
        let index = self.rng.below(waiting) as usize;
        let drawn = fifo.peek(index)?;
        let is_same = drawn.conversation() == parcel.conversation()
            && drawn.is_forward() == parcel.is_forward();
        if is_same { fifo.remove(index).map(|taken| taken.parcel) } else { None }
    }
}

impl<P: Parcel> Queue<P> for Choke<P> {
    fn enqueue(
        &mut self,
        now: Instant,
        parcel: P,
        in_service: Backlog,
        dropped: &mut Vec<Dropped<P>>,
    ) {
        self.red.observe(now, in_service);
        if self.red.is_above_min()
            && let Some(taken) = self.take_match(&parcel)
        {
            dropped.extend([taken, parcel].map(|parcel| Dropped { parcel, cause: DropCause::Aqm }));
        } else {
            self.red.admit(now, parcel, in_service, dropped);
        }
    }

    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<Dropped<P>>) -> Option<Queued<P>> {
        self.red.dequeue(now, dropped)
    }

    fn on_idle(&mut self, since: Instant) {
        self.red.on_idle(since);
    }

    fn backlog(&self) -> Backlog {
        self.red.backlog()
    }

    fn marks(&self) -> u64 {
        self.red.marks()
    }
}

#[cfg(test)]
mod tests {
    use weir_units::Ratio;

    use super::*;
    use crate::droptail::Limit;
    use crate::link::probe::Probe;

    /// Compares from 5 parcels on, and never signals otherwise.
    fn queue() -> Choke<Probe> {
        let red = RedConfig {
            limit: Limit::Infinite,
            min: Limit::Packets(5),
            max: Limit::Packets(1_000),
            probability: Ratio::from_billionths(1).unwrap(),
            weight: Ratio::ONE,
            gentle: false,
            ecn: false,
        };
        Choke::new(ChokeConfig(red), Bytes::ZERO, None, stream(1, "choke"))
    }

    fn offer(queue: &mut Choke<Probe>, flow: u32, id: u64) -> Vec<Dropped<Probe>> {
        let mut dropped = Vec::new();
        let parcel = Probe { flow, ..Probe::data(id, 1_000) };
        queue.enqueue(Instant::ZERO, parcel, Backlog::default(), &mut dropped);
        dropped
    }

    #[test]
    fn a_flow_that_meets_itself_loses_two_packets() {
        let mut queue = queue();
        assert!((0..5).all(|id| offer(&mut queue, 1, id).is_empty()), "below min");
        let dropped = offer(&mut queue, 1, 5);
        assert_eq!(dropped.len(), 2);
        assert_eq!(dropped[1].parcel.id, 5, "the arrival, after the one that it met");
        assert!(dropped.iter().all(|drop| drop.cause == DropCause::Aqm));
        assert_eq!(queue.backlog(), Backlog { packets: 4, bytes: Bytes(4_000) });
    }

    /// An arrival meets a flow with probability of that flow's share of the queue.
    #[test]
    fn a_flow_meets_itself_as_often_as_its_share_of_the_queue() {
        const N: u32 = 100_000;
        let mut met = 0;
        let mut queue = queue();
        (0..30).for_each(|id| assert!(offer(&mut queue, id as u32, id).is_empty()));
        for _ in 0..N {
            // Flow 7 has 1 of 30; the queue is put back as it was.
            let mut trial = queue.clone();
            met += u32::from(!offer(&mut trial, 7, 99).is_empty());
            queue.rng = trial.rng;
        }
        let (share, expected) = (f64::from(met) / f64::from(N), 1.0 / 30.0);
        let sigma = (expected * (1.0 - expected) / f64::from(N)).sqrt();
        assert!((share - expected).abs() < 4.0 * sigma, "{share}");
    }

    #[test]
    fn packets_of_other_flows_and_of_the_other_way_do_not_match() {
        let mut queue = queue();
        (0..20).for_each(|id| drop(offer(&mut queue, 100 + id as u32, id)));
        let dropped: usize =
            (0..200).map(|id| offer(&mut queue, 1_000 + id as u32, id).len()).sum();
        assert_eq!(dropped, 0);
    }
}
