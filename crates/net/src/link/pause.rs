//! Pauses that come from outside, as those of priority flow control: a link that is not paused takes no
//! notice of them.

use weir_units::Instant;

use super::Link;
use crate::parcel::Parcel;

impl<P: Parcel + Clone> Link<P> {
    /// From `now` on the server takes no parcel, until [`Self::resume`]. What it is sending is sent.
    ///
    /// ```
    /// # mod packet { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/packet.rs")); }
    /// # use packet::Packet;
    /// use weir_net::{Link, LinkConfig};
    /// use weir_units::{Duration, Instant, Rate, stream};
    ///
    /// let config = LinkConfig::new(Rate::from_mbit(12), Duration::ZERO);
    /// let mut link = Link::new(&config, |purpose| stream(1, purpose))?;
    /// let at = |millis| Instant::ZERO + Duration::from_millis(millis);
    /// link.offer(at(0), Packet::new(1_500));
    /// link.offer(at(0), Packet::new(1_500));
    /// link.pause(at(0));
    /// assert_eq!((link.poll(at(5)).is_some(), link.poll(at(5)).is_some()), (true, false));
    /// link.resume(at(5));
    /// assert_eq!(link.next_time(), Some(at(6)));
    /// # Ok::<(), weir_net::ConfigError>(())
    /// ```
    pub fn pause(&mut self, now: Instant) {
        self.advance(now);
        self.paused = true;
        self.plain = false;
        self.next_start = Instant::MAX;
    }

    /// The server takes parcels again.
    pub fn resume(&mut self, now: Instant) {
        if !self.paused {
            return;
        }
        self.paused = false;
        self.plain = self.plain_if_resumed;
        self.next_start = self.server.ready_at(self.busy_until.max(now));
        self.advance(now);
    }

    /// Whether the server takes no parcel until it is resumed.
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// When the backlog changes next if nothing is offered: the service in progress ends, or the next one
    /// begins. `None` while nothing will happen.
    pub fn next_change(&self, now: Instant) -> Option<Instant> {
        if self.busy_until > now {
            return Some(self.busy_until);
        }
        (self.waits && self.next_start != Instant::MAX).then_some(self.next_start)
    }
}
