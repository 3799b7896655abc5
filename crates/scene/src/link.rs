//! A link with all that watches it.

use weir_net::Link;
use weir_units::{Instant, stream};

use crate::check::LinkChecks;
use crate::error::SpecError;
use crate::meter::LinkMeter;
use crate::packet::Packet;
use crate::spec::LinkSpec;

/// A link with all that watches it.
#[derive(Debug)]
pub struct HostedLink<L> {
    /// The link.
    pub link: Link<Packet<L>>,
    pub(crate) meter: LinkMeter,
    checks: LinkChecks,
    /// As [`LinkSpec::one_at_a_time`].
    pub(crate) one_at_a_time: bool,
    /// When its pending event is due; an event at any other time is outdated.
    pub(crate) armed: Option<Instant>,
}

/// Room for the drops of a single step.
const DROP_LOG: usize = 1 << 16;

impl<L: Clone> HostedLink<L> {
    pub(crate) fn new(spec: &LinkSpec, seed: u64) -> Result<Self, SpecError> {
        let named = |purpose: &'static str| stream(seed, &format!("link {} {purpose}", spec.name));
        let mut link = Link::new(&spec.config, named)
            .map_err(|problem| SpecError::Link { link: spec.name.clone(), problem })?;
        link.log_drops(DROP_LOG);
        let checks = LinkChecks::new(&spec.config, link.keeps_order());
        let one_at_a_time = spec.one_at_a_time;
        Ok(Self { link, meter: LinkMeter::default(), checks, one_at_a_time, armed: None })
    }

    #[inline]
    pub(crate) fn offer(&mut self, now: Instant, mut packet: Packet<L>) {
        self.checks.stamp(&mut packet);
        self.link.offer(now, packet);
    }

    #[inline]
    pub(crate) fn poll(&mut self, now: Instant) -> Result<Option<Packet<L>>, String> {
        let Some(delivery) = self.link.poll(now) else { return Ok(None) };
        self.meter.record_sojourn(delivery.sojourn);
        self.checks.on_delivery(now, &delivery.parcel)?;
        Ok(Some(delivery.parcel))
    }
}
