//! Collective operations of hosts.

/// An all-reduce: each host has a buffer, and in the end each has the sum of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllReduce {
    /// How many hosts take part.
    pub ranks: u32,
    /// Of how many: the first nodes, below this number.
    pub hosts: u32,
    /// Which of them, and in which order.
    pub order: RankOrder,
    /// How they pass buffers on.
    pub algorithm: AllReduceAlgorithm,
}

/// Which hosts take part in a collective operation, by rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RankOrder {
    /// The first by number, in that order.
    Host,
    /// Drawn, each choice and order with equal probability.
    Random,
}

/// How hosts pass their buffers on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllReduceAlgorithm {
    /// In parts, each to the next rank.
    Ring,
    /// Whole, up a binary tree and down again.
    Tree,
}

impl AllReduce {
    /// How many transfers it consists of.
    pub fn transfers(&self) -> u64 {
        let ranks = u64::from(self.ranks);
        match self.algorithm {
            AllReduceAlgorithm::Ring => 2 * ranks.saturating_sub(1) * ranks,
            AllReduceAlgorithm::Tree => 2 * ranks.saturating_sub(1),
        }
    }

    /// The least bytes of a buffer: every transfer has one.
    pub fn least_size(&self) -> u64 {
        match self.algorithm {
            AllReduceAlgorithm::Ring => u64::from(self.ranks),
            AllReduceAlgorithm::Tree => 1,
        }
    }
}
