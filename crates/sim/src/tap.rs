//! What sees the packets of a run.

use weir_scene::LinkCrossing;

/// Receives the packets that enter and leave links. It has no influence on the run.
pub trait PacketTap {
    /// The links to watch, by index, each once.
    fn links(&self) -> Vec<usize>;

    /// Takes note of a packet at an end of link `index`. They come in the order of time.
    fn record(&mut self, index: usize, seen: &LinkCrossing<()>);
}
