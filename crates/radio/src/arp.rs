//! Asking for the link address of a neighbour.
//!
//! ns-2's `ARPTable`: one datagram waits per neighbour and a newer one takes its place; every datagram
//! that finds no address asks again, and after three questions without an answer the next datagram
//! fails together with the one that waits. There is no timeout and entries stay for ever.

use std::collections::BTreeMap;

use super::datagram::{Datagram, NodeId};

#[derive(Clone, Debug)]
pub(super) struct ArpTable<P, M> {
    entries: BTreeMap<NodeId, Entry<P, M>>,
}

#[derive(Clone, Debug)]
enum Entry<P, M> {
    Known,
    Asked { requests: u32, held: Option<Datagram<P, M>> },
}

/// What becomes of a datagram.
#[derive(Debug, PartialEq)]
pub(super) enum Resolved<P, M> {
    /// The address is known: it may go.
    Go(Datagram<P, M>),
    /// It waits, the address is requested, and what waited before it is given up.
    Ask { displaced: Option<Datagram<P, M>> },
    /// No answer: it fails, with what waited.
    Fail(Datagram<P, M>, Option<Datagram<P, M>>),
}

impl<P, M> ArpTable<P, M> {
    pub(super) fn new() -> Self {
        Self { entries: BTreeMap::new() }
    }

    pub(super) fn resolve(&mut self, to: NodeId, datagram: Datagram<P, M>) -> Resolved<P, M> {
        let entry = self.entries.entry(to).or_insert(Entry::Asked { requests: 0, held: None });
        match entry {
            Entry::Known => Resolved::Go(datagram),
            Entry::Asked { requests, held } if *requests >= REQUESTS => {
                *requests = 0;
                Resolved::Fail(datagram, held.take())
            }
            Entry::Asked { requests, held } => {
                *requests += 1;
                Resolved::Ask { displaced: held.replace(datagram) }
            }
        }
    }

    /// The address of `neighbour` is known from now on; returns what waited for it.
    pub(super) fn learn(&mut self, neighbour: NodeId) -> Option<Datagram<P, M>> {
        match self.entries.insert(neighbour, Entry::Known) {
            Some(Entry::Asked { held, .. }) => held,
            _ => None,
        }
    }

    pub(super) fn held(&self) -> impl Iterator<Item = &Datagram<P, M>> {
        self.entries.values().filter_map(|entry| match entry {
            Entry::Asked { held, .. } => held.as_ref(),
            Entry::Known => None,
        })
    }
}

const REQUESTS: u32 = 3;
