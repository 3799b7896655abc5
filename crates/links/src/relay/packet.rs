//! A real packet as links see it: bytes, with a bound on how many are held at once.
//!
//! What routers rewrite stands in an option of the segment that a datagram holds. It is read where a
//! packet reaches a link whose agent speaks its kind, and written back where it leaves that link. A
//! datagram that is not an undamaged segment with that option is never touched: sealed ones are not
//! readable, and of other protocols nothing is known.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use weir_net::{Ecn, Parcel};
use weir_scene::Direction;
use weir_transport::wire;
use weir_units::{Bytes, Duration, Feedback, FeedbackKind, stream};

/// What is known of a packet besides its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Whose it is: queues tell flows apart by it, and the owner of the path finds its way back.
    pub flow: u32,
    /// Which of the path's routes it takes.
    pub route: u32,
    /// In which direction: forward is from clients to the server, from senders to receivers.
    pub direction: Direction,
    /// Whether it carries application data; where that is unknown, yes.
    pub carries_data: bool,
    /// Its ECN field.
    pub ecn: Ecn,
    /// Its length as an IP packet, which counts for rates and buffers.
    pub len: Bytes,
}

/// A packet on a path. Dropping the value releases its memory.
#[derive(Clone, Debug)]
pub struct Packet {
    header: Header,
    bytes: Box<[u8]>,
    hop: u8,
    /// Which bits are flipped if any are.
    random: u64,
    /// At most this many are.
    corrupt_bits: u8,
    /// What the agent of the link at hand may rewrite.
    feedback: Option<Feedback>,
    /// Given back when the packet is dropped.
    _reserved: Reserved,
}

/// The memory that a path may use.
#[derive(Clone, Debug)]
pub(crate) struct MemoryLimit {
    held: Arc<AtomicU64>,
    limit: u64,
}

/// A share of it.
#[derive(Debug)]
pub(crate) struct Reserved {
    held: Arc<AtomicU64>,
    size: u64,
}

/// What a packet costs beyond its bytes, in queue entries and the allocator's bookkeeping.
const BOOKKEEPING: u64 = 192;

impl Packet {
    /// A copy of `bytes`, if the memory limit allows it.
    pub(crate) fn new(
        header: Header,
        bytes: &[u8],
        random: u64,
        memory: &MemoryLimit,
    ) -> Option<Self> {
        let reserved = memory.take(bytes.len(), 1)?;
        let bytes = bytes.into();
        Some(Self {
            header,
            bytes,
            hop: 0,
            random,
            corrupt_bits: 1,
            feedback: None,
            _reserved: reserved,
        })
    }

    /// Corruption flips 1 to `corrupt_bits` bits of it.
    pub(crate) fn with_corrupt_bits(self, corrupt_bits: u8) -> Self {
        Self { corrupt_bits, ..self }
    }

    /// What is known of it; the ECN field may have been changed on the way.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Its bytes, some bits of which may have been flipped on the way.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The number of links behind it.
    pub(crate) fn hop(&self) -> usize {
        usize::from(self.hop)
    }

    pub(crate) fn cross_link(&mut self) {
        self.hop += 1;
    }

    /// Lets the agent of the next link rewrite what it carries of this kind, if anything.
    pub(crate) fn read_feedback(&mut self, kind: FeedbackKind) {
        let segment = wire::parse(&self.bytes).ok().map(|parsed| parsed.segment);
        let found = segment.and_then(|segment| segment.options.feedback);
        self.feedback = found.filter(|feedback| feedback.kind() == kind);
    }

    /// Puts what the agent has made of it into its bytes; returns that, if there was anything. If a bit
    /// has flipped meanwhile, the checksum stays as wrong as it was.
    pub(crate) fn write_feedback(&mut self) -> Option<Feedback> {
        let feedback = self.feedback.take()?;
        wire::stamp(&mut self.bytes, |field| *field = feedback).then_some(feedback)
    }
}

impl Parcel for Packet {
    fn len(&self) -> Bytes {
        self.header.len
    }

    fn flow(&self) -> u32 {
        self.header.flow
    }

    fn is_forward(&self) -> bool {
        self.header.direction == Direction::Forward
    }

    fn carries_data(&self) -> bool {
        self.header.carries_data
    }

    fn ecn(&self) -> Ecn {
        self.header.ecn
    }

    fn mark_ce(&mut self) {
        self.header.ecn = Ecn::Ce;
    }

    fn feedback(&mut self) -> Option<&mut Feedback> {
        self.feedback.as_mut()
    }

    /// Flips one bit, as Linux's netem does, which every checksum of the Internet finds; or several
    /// different ones, of which the 16-bit sum of RFC 1071 misses those that cancel out: two bits of
    /// the same place in their words, one set and one cleared.
    fn corrupt(&mut self) {
        let bits = self.bytes.len() as u64 * 8;
        let mut rng = stream(self.random, "damage");
        let extra = if self.corrupt_bits > 1 { rng.below(u64::from(self.corrupt_bits)) } else { 0 };
        let mut flipped = Vec::new();
        while (flipped.len() as u64) < bits.min(1 + extra) {
            let bit = rng.below(bits);
            if !flipped.contains(&bit) {
                self.bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
                flipped.push(bit);
            }
        }
    }

    fn add_queue_delay(&mut self, _waited: Duration) {}
}

impl MemoryLimit {
    pub(crate) fn new(limit: Bytes) -> Self {
        Self { held: Arc::default(), limit: limit.get() }
    }

    /// The bytes in use.
    pub(crate) fn held(&self) -> Bytes {
        Bytes(self.held.load(Ordering::Relaxed))
    }

    /// Memory for `bytes` bytes of `packets` packets, if available.
    pub(crate) fn take(&self, bytes: usize, packets: usize) -> Option<Reserved> {
        let size = bytes as u64 + packets as u64 * BOOKKEEPING;
        let fits = self.held.load(Ordering::Relaxed) + size <= self.limit;
        fits.then(|| Reserved::new(&self.held, size))
    }
}

impl Reserved {
    fn new(held: &Arc<AtomicU64>, size: u64) -> Self {
        held.fetch_add(size, Ordering::Relaxed);
        Self { held: Arc::clone(held), size }
    }
}

/// A duplicate takes memory too. There is always enough for one.
impl Clone for Reserved {
    fn clone(&self) -> Self {
        Self::new(&self.held, self.size)
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.held.fetch_sub(self.size, Ordering::Relaxed);
    }
}
