//! A parcel for tests, and ways to drive a link with it.

use weir_units::{Bytes, Duration, Feedback, Instant, stream};

use crate::config::LinkConfig;
use crate::link::Link;
use crate::parcel::{Ecn, Parcel};

/// A parcel that remembers what was done to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Probe {
    pub(crate) id: u64,
    pub(crate) len: u64,
    pub(crate) is_forward: bool,
    pub(crate) carries_data: bool,
    pub(crate) flow: u32,
    pub(crate) ecn: Ecn,
    pub(crate) corrupt: bool,
    pub(crate) waited: Duration,
    pub(crate) feedback: Option<Feedback>,
}

impl Probe {
    pub(crate) fn data(id: u64, len: u64) -> Self {
        Self {
            id,
            len,
            is_forward: true,
            carries_data: true,
            flow: 7,
            ecn: Ecn::NotEct,
            corrupt: false,
            waited: Duration::ZERO,
            feedback: None,
        }
    }

    pub(crate) fn ack(id: u64) -> Self {
        Self { is_forward: false, carries_data: false, ..Self::data(id, 52) }
    }
}

impl Parcel for Probe {
    fn len(&self) -> Bytes {
        Bytes(self.len)
    }
    fn flow(&self) -> u32 {
        self.flow
    }
    fn is_forward(&self) -> bool {
        self.is_forward
    }
    fn carries_data(&self) -> bool {
        self.carries_data
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn feedback(&mut self) -> Option<&mut Feedback> {
        self.feedback.as_mut()
    }
    fn mark_ce(&mut self) {
        assert!(matches!(self.ecn, Ecn::Ect0 | Ecn::Ect1), "marked without need");
        self.ecn = Ecn::Ce;
    }
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
