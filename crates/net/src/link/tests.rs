//! A link's behaviour in scripts.

use weir_units::{Bytes, Duration, Instant, Rate, stream};

use crate::config::LinkConfig;
use crate::droptail::Limit;
use crate::link::Link;
use crate::parcel::{Ecn, Parcel};

/// A parcel that remembers what was done to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Probe {
    pub(crate) id: u64,
    pub(crate) len: u64,
    pub(crate) forward: bool,
    pub(crate) data: bool,
    pub(crate) corrupt: bool,
    pub(crate) waited: Duration,
}

impl Probe {
    pub(crate) fn new(id: u64, len: u64) -> Self {
        Self { id, len, forward: true, data: true, corrupt: false, waited: Duration::ZERO }
    }
}

impl Parcel for Probe {
    fn len(&self) -> Bytes {
        Bytes(self.len)
    }
    fn flow(&self) -> u32 {
        (self.id % 3) as u32
    }
    fn is_forward(&self) -> bool {
        self.forward
    }
    fn carries_data(&self) -> bool {
        self.data
    }
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }
    fn mark_ce(&mut self) {}
    fn corrupt(&mut self) {
        self.corrupt = true;
    }
    fn add_queue_delay(&mut self, waited: Duration) {
        self.waited += waited;
    }
}

pub(crate) fn link(config: &LinkConfig) -> Link<Probe> {
    Link::new(config, |purpose| stream(1, purpose)).unwrap()
}

pub(crate) fn at_us(micros: u64) -> Instant {
    Instant::from_nanos(micros * 1_000)
}

/// Everything that comes out, with the time in microseconds, polled only when the link asks for it.
pub(crate) fn drain(link: &mut Link<Probe>) -> Vec<(u64, u64)> {
    let mut out = Vec::new();
    while let Some(time) = link.next_time() {
        while let Some(delivery) = link.poll(time) {
            out.push((time.as_micros(), delivery.parcel.id));
        }
    }
    out
}

#[test]
fn parcels_queue_behind_each_other_and_take_rate_plus_delay() {
    let config = LinkConfig::new(Rate::from_mbit(12), Duration::from_millis(20));
    let mut link = link(&config);
    for id in 0..3 {
        link.offer(Instant::ZERO, Probe::new(id, 1500));
    }
    assert_eq!(link.backlog(at_us(500)).packets, 3);
    assert_eq!(drain(&mut link), [(21_000, 0), (22_000, 1), (23_000, 2)]);
}

#[test]
fn the_bound_counts_the_parcel_in_service() {
    let config = LinkConfig::new(Rate::from_mbit(12), Duration::ZERO).with_limit(Limit::Packets(2));
    let mut link = link(&config);
    for id in 0..3 {
        link.offer(Instant::ZERO, Probe::new(id, 1500));
    }
    assert_eq!(drain(&mut link), [(1_000, 0), (2_000, 1)]);
    let stats = link.stats(at_us(10_000));
    assert_eq!((stats.dropped_queue.packets, stats.max_packets), (1, 2));
    assert_eq!(stats.busy, Duration::from_millis(2));
    assert_eq!(stats.packet_nanos, 3_000_000);
}
