//! A link with all that watches it.

use weir_net::{DropRecord, Link};
use weir_units::{Instant, stream};

use crate::check::LinkChecks;
use crate::error::SpecError;
use crate::meter::LinkMeter;
use crate::packet::Load;
use crate::packet::{Body, Packet};
use crate::spec::LinkSpec;

/// A link with all that watches it.
// In this order in memory, from a boundary of cache lines: with thousands of flows most links that a
// packet crosses have left the processor's caches since the packet before.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct HostedLink<L> {
    /// When its pending event is due; an event at any other time is outdated.
    pub(crate) armed: Option<Instant>,
    checks: LinkChecks,
    /// The link.
    pub link: PacketLink<L>,
    pub(crate) meter: LinkMeter,
    /// As [`LinkSpec::one_at_a_time`].
    pub(crate) one_at_a_time: bool,
    /// With a capture: packets that crossed since it was last taken.
    passed: Option<Box<Passed<L>>>,
}

/// What a capture wants, and the packets that crossed since they were last taken.
#[derive(Debug)]
struct Passed<L> {
    watched: CaptureFilter,
    /// The link's number.
    link: u32,
    packets: Vec<LinkCrossing<L>>,
    dropped: Vec<DropRecord>,
}

/// A link that carries packets.
pub type PacketLink<L> = Link<Box<Packet<L>>>;

/// Which packets a capture wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureFilter {
    /// Those of programs that are none of ours.
    Foreign,
    /// All of them.
    All,
}

/// A packet that was seen at one end of a link.
#[derive(Clone, Debug)]
pub struct LinkCrossing<L> {
    /// When.
    pub at: Instant,
    /// At which end.
    pub end: LinkEnd,
    /// The packet.
    pub packet: Packet<L>,
}

/// An end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEnd {
    /// Where packets enter, before the queue.
    Entry,
    /// Where they leave.
    Exit,
}

/// Capacity for the drops of a single step.
const DROP_LOG: usize = 1 << 16;

impl<L: Load> HostedLink<L> {
    pub(crate) fn new(spec: &LinkSpec, seed: u64) -> Result<Self, SpecError> {
        let named = |purpose: &'static str| stream(seed, &format!("link {} {purpose}", spec.name));
        let mut link = Link::new(&spec.config, named)
            .map_err(|problem| SpecError::Link { link: spec.name.clone(), problem })?;
        link.log_drops(DROP_LOG);
        let checks = LinkChecks::new(&spec.config, link.keeps_order());
        let one_at_a_time = spec.one_at_a_time;
        let meter = LinkMeter::default();
        Ok(Self { link, meter, checks, one_at_a_time, armed: None, passed: None })
    }

    /// From now on keeps the packets that enter and leave, until they are taken. It is link number `link`.
    pub fn watch(&mut self, link: u32, watched: CaptureFilter) {
        let (packets, dropped) = (Vec::new(), Vec::new());
        self.passed.get_or_insert_with(|| Box::new(Passed { watched, link, packets, dropped }));
    }

    /// What has passed since this was called last, in order.
    pub fn take_passed(&mut self) -> impl Iterator<Item = LinkCrossing<L>> + '_ {
        self.passed.iter_mut().flat_map(|passed| passed.packets.drain(..))
    }

    /// What was dropped since this was called last, if it is watched.
    pub fn take_dropped(&mut self) -> impl Iterator<Item = DropRecord> + '_ {
        self.passed.iter_mut().flat_map(|passed| passed.dropped.drain(..))
    }

    /// Moves the link's records of drops into `log`, and keeps them for who watches it.
    #[cold]
    pub(crate) fn drain_drops(&mut self, news: &mut Vec<u32>, mut log: impl FnMut(&DropRecord)) {
        for record in self.link.drain_drops() {
            log(&record);
            if let Some(passed) = self.passed.as_mut().filter(|p| p.watched == CaptureFilter::All) {
                passed.report(news);
                passed.dropped.push(record);
            }
        }
    }

    #[inline(always)]
    pub(crate) fn offer(&mut self, now: Instant, mut packet: Box<Packet<L>>, news: &mut Vec<u32>) {
        self.checks.stamp(&mut packet);
        self.note(now, LinkEnd::Entry, &packet, news);
        self.link.offer(now, packet);
    }

    /// Drops a packet for which the switch has no memory left.
    #[cold]
    pub(crate) fn refuse(
        &mut self,
        now: Instant,
        packet: &mut Box<Packet<L>>,
        news: &mut Vec<u32>,
    ) {
        self.checks.stamp(packet);
        self.note(now, LinkEnd::Entry, packet, news);
        self.link.refuse(now, packet);
    }

    #[inline(always)]
    pub(crate) fn poll(
        &mut self,
        now: Instant,
        news: &mut Vec<u32>,
    ) -> Result<Option<Box<Packet<L>>>, String> {
        let Some(delivery) = self.link.poll(now) else { return Ok(None) };
        self.meter.record_sojourn(delivery.sojourn);
        self.checks.on_delivery(now, &delivery.parcel)?;
        self.note(now, LinkEnd::Exit, &delivery.parcel, news);
        Ok(Some(delivery.parcel))
    }

    #[inline(always)]
    fn note(&mut self, at: Instant, end: LinkEnd, packet: &Packet<L>, news: &mut Vec<u32>) {
        if let Some(passed) = &mut self.passed {
            passed.note(at, end, packet, news);
        }
    }
}

impl<L: Load> Passed<L> {
    // Not a part of the way of packets of a link that is not watched.
    #[inline(never)]
    fn note(&mut self, at: Instant, end: LinkEnd, packet: &Packet<L>, news: &mut Vec<u32>) {
        if self.watched == CaptureFilter::All || matches!(packet.body, Body::Foreign { .. }) {
            self.report(news);
            self.packets.push(LinkCrossing { at, end, packet: packet.clone() });
        }
    }

    /// Adds the link to those that have something to take, unless it has had something before. Links that are
    /// watched for foreign packets are few, and asked each time.
    fn report(&self, news: &mut Vec<u32>) {
        if self.watched == CaptureFilter::All && self.packets.is_empty() && self.dropped.is_empty()
        {
            news.push(self.link);
        }
    }
}
