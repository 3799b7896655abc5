//! The event queue: what is due next, in exact order, first come first served on ties.
//!
//! There are two implementations that must agree: a list in order before a hierarchical timing wheel, whose
//! cost hardly depends on the number of entries, and a 4-ary heap. Nothing is ever cancelled: a receiver that
//! finds an entry of its own outdated ignores it.

mod heap;
mod wheel;

use weir_units::Instant;

pub use heap::HeapQueue;
pub use wheel::WheelQueue;

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Something comes out of this link.
    Link(u32),
    /// An endpoint asked to be woken: twice the flow's index, plus one for its receiving side.
    Endpoint(u32),
    /// Connections come: of this flow of many, or those that wait for this connection, which is complete.
    Arrival(u32),
    /// Something happens in the radio network.
    Radio,
    /// Nodes have moved.
    Move,
    /// Something happens at the port of this link, with priority flow control.
    Port(PortEvent, u32),
    /// It is time to take samples.
    Sample,
    /// The warm-up is over.
    WarmedUp,
}

/// What happens at a port with priority flow control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortEvent {
    /// A frame arrives that lets it pause.
    Pause,
    /// A frame arrives that lets it send again.
    Resume,
    /// A packet leaves, or the next one begins to.
    Departure,
    /// It has paused for long: it may wait for itself.
    Stuck,
}

/// A queue of events.
pub trait EventQueue: Default {
    /// Adds an entry. `at` must not lie before the entry that was popped last. Entries at [`Instant::MAX`], which
    /// means never, come last, in any order.
    fn push(&mut self, at: Instant, event: Event);

    /// Takes the earliest entry; of several at the same time, the one that was pushed first.
    fn pop(&mut self) -> Option<(Instant, Event)>;

    /// When the earliest entry is due.
    fn peek(&mut self) -> Option<Instant>;

    /// The number of entries.
    #[cfg(test)]
    fn entries(&self) -> usize;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Op {
        PushAfter(u64),
        Pop,
    }

    /// More are added than taken, so that the wheel is used and its list gets too long.
    fn op() -> impl Strategy<Value = Op> {
        // Clustered and far delays, with many ties.
        let delay =
            prop_oneof![0u64..4, 0u64..600, 0u64..200_000, 0u64..2_000_000_000, Just(1 << 62),];
        prop_oneof![3 => delay.prop_map(Op::PushAfter), 2 => Just(Op::Pop)]
    }

    /// A queue that is too simple to be wrong.
    #[derive(Default)]
    struct Model(Vec<(Instant, Event)>);

    impl Model {
        fn pop(&mut self) -> Option<(Instant, Event)> {
            let first = (0..self.0.len()).min_by_key(|&i| (self.0[i].0, i))?;
            Some(self.0.remove(first))
        }
    }

    fn agrees_with_model<Q: EventQueue>(ops: &[Op]) {
        let (mut queue, mut model, mut now) = (Q::default(), Model::default(), 0u64);
        let pops = ops.iter().cloned().chain(std::iter::repeat_n(Op::Pop, ops.len()));
        for (id, op) in pops.enumerate() {
            match op {
                Op::PushAfter(delay) => {
                    let at = Instant::from_nanos(now.saturating_add(delay));
                    queue.push(at, Event::Link(id as u32));
                    model.0.push((at, Event::Link(id as u32)));
                }
                Op::Pop => {
                    let expected = model.pop();
                    assert_eq!(queue.peek(), expected.map(|(at, _)| at));
                    assert_eq!(queue.pop(), expected);
                    now = expected.map_or(now, |(at, _)| at.as_nanos());
                }
            }
            assert_eq!(queue.entries(), model.0.len());
        }
    }

    proptest! {
        #[test]
        fn both_queues_keep_exact_order_and_ties_first_come_first_served(
            ops in prop::collection::vec(op(), 0..1500),
        ) {
            agrees_with_model::<HeapQueue>(&ops);
            agrees_with_model::<WheelQueue>(&ops);
        }
    }
}
