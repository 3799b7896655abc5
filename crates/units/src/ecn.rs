//! Congestion marks in the IP header, which links set and transports read.

/// The ECN field of the IP header (RFC 3168 §5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotEct,
    /// ECN-capable, ECT(0): a mark is to mean what a loss means (RFC 3168).
    Ect0,
    /// ECN-capable, ECT(1): marks may come early and often, the sender answers by their share (RFC 9331).
    Ect1,
    /// Congestion experienced.
    Ce,
}
