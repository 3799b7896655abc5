//! What sees the packets of a run.

use weir_net::DropRecord;
use weir_scene::{LinkCrossing, Resent};

/// Receives the packets that enter and leave links. It has no influence on the run.
pub trait PacketTap {
    /// The links to watch, by index, each once.
    fn links(&self) -> Vec<usize>;

    /// Takes note of a packet at an end of link `index`. They come in the order of time; at one instant first
    /// what leaves links, then what enters them, each in the order of links.
    fn record(&mut self, index: usize, seen: &LinkCrossing<()>);

    /// Takes note of a packet that link `index` dropped, after it has entered.
    fn dropped(&mut self, _index: usize, _drop: &DropRecord) {}

    /// Takes note of a segment that a connection sends again, before it enters its first link.
    fn resent(&mut self, _resent: &Resent) {}
}

/// Records nothing.
pub(crate) struct Untapped;

impl PacketTap for Untapped {
    fn links(&self) -> Vec<usize> {
        Vec::new()
    }

    fn record(&mut self, _index: usize, _seen: &LinkCrossing<()>) {}
}
