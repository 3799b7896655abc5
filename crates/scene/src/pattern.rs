//! The connections that a flow of many makes at once: between which hosts they run.

use weir_units::Rng;

use crate::spec::{FabricEnds, HostChoice, HostPair, Pattern};

/// Connections that come at once, which are taken one by one.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// The hosts of those that are left, the next one last; of one between the flow's own ends, nothing.
    pairs: Vec<HostPair>,
    is_own: bool,
}

impl Batch {
    /// Draws the connections that come next.
    pub(crate) fn draw(&mut self, pattern: &Pattern, rng: &mut Rng) {
        self.is_own = matches!(pattern, Pattern::One);
        self.pairs.clear();
        match *pattern {
            // A collective operation has connections of its own.
            Pattern::One | Pattern::AllReduce(_) => {}
            Pattern::Pair(ends) => self.pairs.push(ends.draw(rng)),
            Pattern::Incast { to, hosts, senders } => {
                let from = HostChoice::AnyBelow(hosts);
                let HostPair { to, .. } = FabricEnds { from, to }.draw(rng);
                let others: Vec<u32> = (0..hosts).filter(|host| *host != to).collect();
                let from = sample(others, senders as usize, rng);
                self.pairs.extend(from.into_iter().map(|from| HostPair { from, to }));
            }
            Pattern::Permutation { hosts } => {
                let to = derangement(hosts, rng);
                self.pairs.extend((0..hosts).zip(to).map(|(from, to)| HostPair { from, to }));
                self.pairs.reverse();
            }
        }
    }

    /// How many are left.
    pub(crate) fn len(&self) -> usize {
        self.pairs.len() + usize::from(self.is_own)
    }

    /// The hosts of the next one, if they were drawn.
    pub(crate) fn next(&mut self) -> Option<HostPair> {
        self.is_own = false;
        self.pairs.pop()
    }
}

/// `count` of `hosts`, every choice with equal probability (Fisher and Yates, ended early).
pub(crate) fn sample(mut hosts: Vec<u32>, count: usize, rng: &mut Rng) -> Vec<u32> {
    let count = count.min(hosts.len());
    for place in 0..count {
        let other = place + rng.below((hosts.len() - place) as u64) as usize;
        hosts.swap(place, other);
    }
    hosts.truncate(count);
    hosts
}

/// A permutation in which no host keeps its place: permutations are drawn until one has that property, so
/// each such permutation is as probable as any other. On average that takes e draws.
fn derangement(hosts: u32, rng: &mut Rng) -> Vec<u32> {
    loop {
        let drawn = sample((0..hosts).collect(), hosts as usize, rng);
        if hosts < 2 || (0..hosts).zip(&drawn).all(|(host, to)| host != *to) {
            return drawn;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use weir_units::stream;

    use super::*;

    fn drawn(pattern: Pattern, rng: &mut Rng) -> Vec<HostPair> {
        let mut batch = Batch::default();
        batch.draw(&pattern, rng);
        let pairs: Vec<HostPair> = (0..batch.len()).filter_map(|_| batch.next()).collect();
        assert_eq!((batch.len(), batch.next()), (0, None));
        pairs
    }

    /// Of four hosts there are nine permutations without a fixed point.
    #[test]
    fn permutations_have_no_fixed_point_and_are_equally_probable() {
        let mut rng = stream(1, "permutations");
        let mut count: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
        for _ in 0..9_000 {
            let pairs = drawn(Pattern::Permutation { hosts: 4 }, &mut rng);
            assert!(pairs.iter().map(|pair| pair.from).eq(0..4));
            *count.entry(pairs.iter().map(|pair| pair.to).collect()).or_default() += 1;
        }
        assert_eq!(count.len(), 9);
        // Four standard deviations of a binomial distribution around 1000.
        assert!(count.values().all(|count| (881..=1_119).contains(count)), "{count:?}");
    }

    #[test]
    fn an_incast_has_different_senders_none_of_which_receives() {
        let mut rng = stream(1, "incast");
        let mut receivers = [0; 6];
        for _ in 0..600 {
            let any = HostChoice::AnyBelow(6);
            let pairs = drawn(Pattern::Incast { to: any, hosts: 6, senders: 4 }, &mut rng);
            let to = pairs[0].to;
            receivers[to as usize] += 1;
            assert!(pairs.iter().all(|pair| pair.to == to && pair.from != to));
            let mut senders: Vec<u32> = pairs.iter().map(|pair| pair.from).collect();
            senders.sort_unstable();
            senders.dedup();
            assert_eq!(senders.len(), 4);
        }
        assert!(receivers.iter().all(|count| (60..=140).contains(count)), "{receivers:?}");
        let to = HostChoice::Node(2);
        let pairs = drawn(Pattern::Incast { to, hosts: 6, senders: 5 }, &mut rng);
        assert!(pairs.len() == 5 && pairs.iter().all(|pair| pair.to == 2));
    }

    #[test]
    fn a_connection_between_the_ends_of_its_flow_comes_alone() {
        let mut batch = Batch::default();
        batch.draw(&Pattern::One, &mut stream(1, "one"));
        assert_eq!((batch.len(), batch.next(), batch.len()), (1, None, 0));
    }
}
