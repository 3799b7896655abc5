//! A FIFO that marks from a threshold on: the queue that DCTCP requires.
//!
//! Sources: Alizadeh et al., "Data center TCP (DCTCP)", 2010, §3.1; RFC 8257 §3.1.
//!
//! An arriving parcel that is capable of ECN is marked if the queue, the parcel in service included,
//! holds `threshold` or more already. With a threshold in time it is marked as it leaves the queue, if
//! it has waited for longer than that. Parcels are dropped only if the queue is full.

use weir_units::{Bytes, Duration, Instant};

use crate::droptail::{DropTail, DropTailConfig, Limit};
use crate::parcel::Parcel;
use crate::queue::{Backlog, Dropped, Queue, Queued, mark};

/// A marking queue's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EcnStepConfig {
    /// The bound.
    pub limit: Limit,
    /// From where on it marks.
    pub threshold: StepThreshold,
}

/// From where on an [`EcnStep`] marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepThreshold {
    /// An amount in the queue.
    Backlog(Limit),
    /// So long in the queue.
    Sojourn(Duration),
}

/// A FIFO that marks from a threshold on.
#[derive(Clone, Debug)]
pub struct EcnStep<P> {
    fifo: DropTail<P>,
    threshold: StepThreshold,
    marks: u64,
}

impl<P: Parcel> EcnStep<P> {
    /// An empty queue, whose parcels count for `overhead` more bytes than their length.
    pub fn new(config: EcnStepConfig, overhead: Bytes) -> Self {
        let fifo = DropTail::new(DropTailConfig { overhead, ..config.limit.into() });
        Self { fifo, threshold: config.threshold, marks: 0 }
    }

    fn is_reached(&self, in_service: Backlog) -> bool {
        let StepThreshold::Backlog(threshold) = self.threshold else { return false };
        let packets = self.fifo.backlog().packets + in_service.packets;
        let (max_packets, max_bytes) = threshold.bounds();
        packets >= max_packets || self.fifo.charged_with(in_service).get() >= max_bytes
    }
}

impl<P: Parcel> Queue<P> for EcnStep<P> {
    fn enqueue(
        &mut self,
        now: Instant,
        mut parcel: P,
        in_service: Backlog,
        dropped: &mut Vec<Dropped<P>>,
    ) {
        if self.is_reached(in_service) && self.fifo.has_space(&parcel, in_service) {
            mark(&mut parcel, &mut self.marks);
        }
        self.fifo.enqueue(now, parcel, in_service, dropped);
    }

    fn dequeue(&mut self, now: Instant, _dropped: &mut Vec<Dropped<P>>) -> Option<Queued<P>> {
        let mut head = self.fifo.pop()?;
        if let StepThreshold::Sojourn(threshold) = self.threshold
            && head.sojourn(now) > threshold
        {
            mark(&mut head.parcel, &mut self.marks);
        }
        Some(head)
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn marks(&self) -> u64 {
        self.marks
    }
}

#[cfg(test)]
mod tests {
    use weir_units::Rate;

    use super::*;
    use crate::LinkConfig;
    use crate::disciplines::QueueConfig;
    use crate::link::probe::{Probe, drain_until, link};
    use crate::parcel::Ecn;

    /// Which of twelve parcels at once are marked on a link that takes a millisecond for each.
    fn marked(limit: Limit, threshold: StepThreshold) -> Vec<u64> {
        let queue = QueueConfig::EcnStep(EcnStepConfig { limit, threshold });
        let config = LinkConfig { queue, ..LinkConfig::new(Rate::from_mbit(12), Duration::ZERO) };
        let mut link = link(&config);
        for id in 0..12 {
            let ecn = if id == 10 { Ecn::NotEct } else { Ecn::Ect0 };
            link.offer(Instant::ZERO, Probe { ecn, ..Probe::data(id, 1_500) });
        }
        let out = drain_until(&mut link, Instant::MAX);
        let stats = link.stats(Instant::from_nanos(12_000_000));
        let ids: Vec<u64> =
            out.iter().filter(|(_, p)| p.ecn == Ecn::Ce).map(|(_, p)| p.id).collect();
        assert_eq!(stats.marked, ids.len() as u64);
        assert_eq!(stats.dropped_queue.packets, 12 - out.len() as u64);
        ids
    }

    #[test]
    fn the_threshold_is_exact() {
        let infinite = Limit::Infinite;
        let packets = StepThreshold::Backlog(Limit::Packets(7));
        assert_eq!(marked(infinite, packets), [7, 8, 9, 11], "seven are there before parcel 7");
        let bytes = StepThreshold::Backlog(Limit::Bytes(Bytes(7 * 1_500 + 1)));
        assert_eq!(marked(infinite, bytes), [8, 9, 11]);
        let time = StepThreshold::Sojourn(Duration::from_millis(7));
        assert_eq!(marked(infinite, time), [8, 9, 11], "parcel 7 waits exactly as long");
        assert_eq!(marked(Limit::Packets(9), packets), [7, 8], "what is dropped is not marked");
    }
}
