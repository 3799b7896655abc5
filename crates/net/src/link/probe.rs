//! Ways to drive a link with a parcel for tests.

use weir_units::{Instant, stream};

use crate::config::LinkConfig;
use crate::link::Link;
pub(crate) use crate::probe::Probe;

pub(crate) fn link(config: &LinkConfig) -> Link<Probe> {
    Link::new(config, |purpose| stream(1, purpose)).unwrap()
}

pub(crate) fn at_us(micros: u64) -> Instant {
    Instant::from_nanos(micros * 1_000)
}

/// Everything that comes out by `until`, polled only when the link asks for it, with its time.
pub(crate) fn drain_until(link: &mut Link<Probe>, until: Instant) -> Vec<(Instant, Probe)> {
    let mut out = Vec::new();
    while let Some(time) = link.next_time().filter(|time| *time <= until) {
        while let Some(delivery) = link.poll(time) {
            out.push((time, delivery.parcel));
        }
        let next = link.next_time().unwrap_or(Instant::MAX);
        assert!(next > time, "the link asks for {next} after a poll at {time}");
    }
    link.check().unwrap();
    out
}

/// Everything that comes out: time in microseconds and id.
pub(crate) fn drain(link: &mut Link<Probe>) -> Vec<(u64, u64)> {
    let out = drain_until(link, Instant::MAX);
    out.into_iter().map(|(time, parcel)| (time.as_micros(), parcel.id)).collect()
}
