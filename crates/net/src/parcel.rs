//! What a path piece needs to know of the packet that it carries.

pub use weir_units::Ecn;
use weir_units::feedback::Telemetry;
use weir_units::{Bytes, Duration, Feedback};

/// A packet on its way, as links and queues see it: a simulated segment or a real datagram.
///
/// ```
/// use weir_net::Parcel;
/// use weir_units::{Bytes, Duration, Ecn};
///
/// #[derive(Clone, Debug)]
/// struct Packet {
///     len: u64,
///     ecn: Ecn,
///     queued: Duration,
/// }
///
/// impl Parcel for Packet {
///     fn len(&self) -> Bytes {
///         Bytes(self.len)
///     }
///     fn flow(&self) -> u32 {
///         0
///     }
///     fn is_forward(&self) -> bool {
///         true
///     }
///     fn carries_data(&self) -> bool {
///         true
///     }
///     fn ecn(&self) -> Ecn {
///         self.ecn
///     }
///     fn mark_ce(&mut self) {
///         self.ecn = Ecn::Ce;
///     }
///     fn corrupt(&mut self) {
///         self.len = 0;
///     }
///     fn add_queue_delay(&mut self, waited: Duration) {
///         self.queued += waited;
///     }
/// }
///
/// let mut packet = Packet { len: 1_500, ecn: Ecn::Ect0, queued: Duration::ZERO };
/// packet.mark_ce();
/// assert_eq!((packet.ecn(), packet.conversation()), (Ecn::Ce, packet.flow()));
/// ```
#[expect(clippy::len_without_is_empty, reason = "a packet has a header and is never empty")]
pub trait Parcel {
    /// The length that counts for rates and buffers: the IP packet.
    fn len(&self) -> Bytes;

    /// Which flow it belongs to, for counters.
    fn flow(&self) -> u32;

    /// What queues tell flows apart by. A flow of foreign packets may be many conversations.
    fn conversation(&self) -> u32 {
        self.flow()
    }

    /// The hosts between which it travels, if it says so itself.
    fn hosts(&self) -> Option<Hosts> {
        None
    }

    /// Whether it travels towards the flow's receiver (data) rather than back (acknowledgements).
    fn is_forward(&self) -> bool;

    /// Whether it carries application data, as opposed to a bare acknowledgement or a handshake:
    /// what a drop list numbers.
    fn carries_data(&self) -> bool;

    /// Where it lies in its flow's stream, for notices about it; 0 where unknown. Of an
    /// acknowledgement: what its receiver expects next.
    fn sequence(&self) -> u64 {
        0
    }

    /// The number that its host gave it, for records about it; 0 where it gives none.
    fn stamp(&self) -> u32 {
        0
    }

    /// Its ECN field.
    fn ecn(&self) -> Ecn;

    /// Sets the ECN field to [`Ecn::Ce`].
    fn mark_ce(&mut self);

    /// What it carries past routers for its sender to learn, if anything.
    fn feedback(&mut self) -> Option<&mut Feedback> {
        None
    }

    /// Where the hops of its way record themselves, if it has space for that.
    fn telemetry(&mut self) -> Option<&mut Telemetry> {
        None
    }

    /// Damages it, so that its checksum will not match.
    fn corrupt(&mut self);

    /// Adds time spent waiting in a queue to its record.
    fn add_queue_delay(&mut self, waited: Duration);
}

/// A parcel that stays in one place while queues pass its address on.
impl<P: Parcel> Parcel for Box<P> {
    #[inline]
    fn len(&self) -> Bytes {
        (**self).len()
    }

    #[inline]
    fn flow(&self) -> u32 {
        (**self).flow()
    }

    #[inline]
    fn conversation(&self) -> u32 {
        (**self).conversation()
    }

    #[inline]
    fn hosts(&self) -> Option<Hosts> {
        (**self).hosts()
    }

    #[inline]
    fn is_forward(&self) -> bool {
        (**self).is_forward()
    }

    #[inline]
    fn carries_data(&self) -> bool {
        (**self).carries_data()
    }

    #[inline]
    fn sequence(&self) -> u64 {
        (**self).sequence()
    }

    #[inline]
    fn stamp(&self) -> u32 {
        (**self).stamp()
    }

    #[inline]
    fn ecn(&self) -> Ecn {
        (**self).ecn()
    }

    #[inline]
    fn mark_ce(&mut self) {
        (**self).mark_ce();
    }

    #[inline]
    fn feedback(&mut self) -> Option<&mut Feedback> {
        (**self).feedback()
    }

    #[inline]
    fn telemetry(&mut self) -> Option<&mut Telemetry> {
        (**self).telemetry()
    }

    #[inline]
    fn corrupt(&mut self) {
        (**self).corrupt();
    }

    #[inline]
    fn add_queue_delay(&mut self, waited: Duration) {
        (**self).add_queue_delay(waited);
    }
}

/// The two ends of a way, by whatever numbers tell hosts apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hosts {
    /// The one that sends.
    pub from: u32,
    /// The one that receives.
    pub to: u32,
}
