//! Who stands between the ends of the kernel's connections.

/// Who shapes the traffic of the kernel's TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Router {
    /// We do: the links of the simulator.
    #[default]
    Weir,
    /// The kernel's own `netem`, to check one against the other.
    Netem,
}
