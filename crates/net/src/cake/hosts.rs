//! Who shares with whom: the modes of isolation, the hosts of a parcel, and how busy each host is.
//!
//! Sources: "Piece of CAKE" §III-B; `tc-cake(8)`, "Flow isolation parameters"; Linux 6.1's `sch_cake`.

use weir_units::Bytes;

use crate::parcel::{Hosts, Parcel};
use crate::rotation::hash;

/// What has a queue of its own, and among whom the link is shared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// Everything waits in one queue.
    FlowBlind,
    /// A queue for each sending host.
    SrcHost,
    /// A queue for each receiving host.
    DstHost,
    /// A queue for each pair of hosts.
    Hosts,
    /// A queue for each flow.
    Flows,
    /// A queue for each flow; sending hosts share equally, and each among its flows.
    DualSrcHost,
    /// The same for receiving hosts.
    DualDstHost,
    /// A queue for each flow; fair among sending and among receiving hosts, whichever of a flow's two is
    /// busier.
    #[default]
    TripleIsolate,
}

/// The hashes of a parcel's queue and hosts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    pub(super) flow: u64,
    pub(super) source: u64,
    pub(super) destination: u64,
}

/// The hosts at one side, in sets of eight places.
#[derive(Clone, Debug)]
pub(super) struct Side {
    counts: bool,
    tags: Vec<u64>,
    /// Flows that fill their queue.
    bulk: Vec<u32>,
}

impl Isolation {
    pub(super) fn shares_among_sources(self) -> bool {
        matches!(self, Self::DualSrcHost | Self::TripleIsolate)
    }

    pub(super) fn shares_among_destinations(self) -> bool {
        matches!(self, Self::DualDstHost | Self::TripleIsolate)
    }

    /// The hashes that this isolation tells parcels apart by. `hosts` are those of flows by number.
    pub(super) fn key<P: Parcel>(self, parcel: &P, hosts: &[Hosts], salt: u64) -> Key {
        let (from, to) = ends(parcel, hosts);
        let (source, destination) = (hash(from, salt), hash(to, salt.rotate_left(32)));
        let flow = match self {
            Self::FlowBlind => 0,
            Self::SrcHost => source,
            Self::DstHost => destination,
            Self::Hosts => source ^ destination,
            Self::Flows | Self::DualSrcHost | Self::DualDstHost | Self::TripleIsolate => {
                hash(u64::from(parcel.conversation()) << 1 | u64::from(parcel.is_forward()), salt)
            }
        };
        Key { flow, source, destination }
    }
}

impl Side {
    /// Hosts that are counted if `isolation` shares among them.
    pub(super) fn new(isolation: Isolation, shares: fn(Isolation) -> bool) -> Self {
        Self { counts: shares(isolation), tags: vec![NO_HOST; PLACES], bulk: vec![0; PLACES] }
    }

    /// The place of a host: its own, or an unused one, or else another host's.
    pub(super) fn place_of(&mut self, hash: u64) -> usize {
        let ways = || ways(hash);
        let own = ways().find(|place| self.tags[*place] == hash);
        let place = own
            .or_else(|| ways().find(|place| self.bulk[*place] == 0))
            .unwrap_or((hash % PLACES as u64) as usize);
        self.tags[place] = hash;
        place
    }

    /// A flow of this host begins to fill its queue.
    pub(super) fn add(&mut self, place: usize) {
        self.bulk[place] += u32::from(self.counts);
    }

    /// It does no longer.
    pub(super) fn remove(&mut self, place: usize) {
        self.bulk[place] = self.bulk[place].saturating_sub(u32::from(self.counts));
    }

    /// Among how many a host shares what it gets.
    pub(super) fn load(&self, place: usize) -> u32 {
        self.bulk[place].max(1)
    }
}

/// The places of a hash's set, its own first.
pub(super) fn ways(hash: u64) -> impl Iterator<Item = usize> {
    let place = (hash % PLACES as u64) as usize;
    let (set, first) = (place - place % WAYS, place % WAYS);
    (0..WAYS).map(move |way| set + (first + way) % WAYS)
}

/// Whose flows a parcel travels between: as it says itself, or as known of its flow, or else hosts that
/// no other host shares.
fn ends<P: Parcel>(parcel: &P, hosts: &[Hosts]) -> (u64, u64) {
    if let Some(Hosts { from, to }) = parcel.hosts() {
        return (u64::from(from), u64::from(to));
    }
    let known = hosts.get(parcel.flow() as usize);
    let own = 1 << 32 | u64::from(parcel.conversation()) << 1;
    let (from, to) = known.map_or((own, own | 1), |pair| (pair.from.into(), pair.to.into()));
    if parcel.is_forward() { (from, to) } else { (to, from) }
}

/// A flow's part of a quantum that `load` flows of its host share, with a fraction of 16 bits.
pub(super) fn part_of(quantum: Bytes, load: u32) -> u64 {
    (quantum.get() << 16) / u64::from(load)
}

/// Linux's `CAKE_QUEUES`.
pub(super) const PLACES: usize = 1_024;
/// Linux's `CAKE_SET_WAYS`.
const WAYS: usize = 8;
/// No hash: those have 32 bits.
pub(super) const NO_HOST: u64 = u64::MAX;
