//! Which counters have arrived: each datagram counts once (RFC 6479's window, as in WireGuard).

/// The highest counter that arrived and which of the [`WINDOW`](Self::WINDOW) up to it did.
#[derive(Clone, Debug)]
pub(super) struct ReplayWindow {
    /// One past the highest.
    end: u64,
    /// A ring: bit `counter % WINDOW`.
    arrived: [u64; Self::WORDS],
}

impl ReplayWindow {
    /// How far a datagram may be overtaken and still count: 12 MB of 1452-byte datagrams.
    pub(super) const WINDOW: u64 = 64 * Self::WORDS as u64;
    const WORDS: usize = 128;

    /// Whether `counter` has not arrived and is not too old to tell.
    pub(super) fn is_new(&self, counter: u64) -> bool {
        let (word, bit) = place(counter);
        counter >= self.end || (self.end - counter <= Self::WINDOW && self.arrived[word] & bit == 0)
    }

    /// Records an authentic datagram that [`is_new`](Self::is_new).
    pub(super) fn insert(&mut self, counter: u64) {
        if counter >= self.end {
            self.forget(counter);
            self.end = counter + 1;
        }
        let (word, bit) = place(counter);
        self.arrived[word] |= bit;
    }

    /// Clears the bits of the counters from the end up to `counter`: they stood for older ones.
    fn forget(&mut self, counter: u64) {
        if counter - self.end >= Self::WINDOW {
            self.arrived = [0; Self::WORDS];
            return;
        }
        for skipped in self.end..counter {
            let (word, bit) = place(skipped);
            self.arrived[word] &= !bit;
        }
        let (word, bit) = place(counter);
        self.arrived[word] &= !bit;
    }
}

impl Default for ReplayWindow {
    fn default() -> Self {
        Self { end: 0, arrived: [0; Self::WORDS] }
    }
}

fn place(counter: u64) -> (usize, u64) {
    let at = counter % ReplayWindow::WINDOW;
    ((at / 64) as usize, 1 << (at % 64))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// A set of everything that arrived says the same, within the window.
        #[test]
        fn each_counts_once(steps in prop::collection::vec((0..3u8, 0..20_000u64), 1..400)) {
            let mut window = ReplayWindow::default();
            let mut model = BTreeSet::new();
            let mut highest = 0u64;
            for (kind, by) in steps {
                let counter = match kind {
                    0 => highest + by % 3,
                    1 => highest + by,
                    _ => highest.saturating_sub(by),
                };
                let recent = model.is_empty() || counter + ReplayWindow::WINDOW > highest;
                let expected = recent && !model.contains(&counter);
                prop_assert_eq!(window.is_new(counter), expected);
                if expected {
                    window.insert(counter);
                    model.insert(counter);
                    highest = highest.max(counter);
                }
                prop_assert!(!window.is_new(counter));
            }
        }
    }
}
