//! Bytes of datagrams in flight. Packets of the simulator are descriptions, so what a stack wrote
//! waits here under the packet's number.

use std::collections::VecDeque;

/// Datagrams in flight in one direction of a flow.
#[derive(Debug, Default)]
pub(crate) struct Datagrams {
    /// Of each number from `first` on; nothing where one was taken.
    waiting: VecDeque<Option<Vec<u8>>>,
    first: u64,
    /// Memory for new ones.
    spare: Vec<Vec<u8>>,
}

impl Datagrams {
    /// Number of newer datagrams after which one is taken for lost: links do not reorder that far.
    const MEMORY: u64 = 1 << 16;

    /// An empty buffer.
    pub(crate) fn blank(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Takes back a buffer.
    pub(crate) fn recycle(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        self.spare.push(buffer);
    }

    /// Keeps a datagram; returns its number, counted from 0.
    pub(crate) fn put(&mut self, datagram: Vec<u8>) -> u64 {
        self.waiting.push_back(Some(datagram));
        self.first + self.waiting.len() as u64 - 1
    }

    /// Removes the datagram with this number; `None` if it was taken before.
    pub(crate) fn take(&mut self, number: u64) -> Option<Vec<u8>> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let datagram = self.waiting.get_mut(at)?.take();
        while self.first + Self::MEMORY < number || matches!(self.waiting.front(), Some(None)) {
            if let Some(Some(lost)) = self.waiting.pop_front() {
                self.recycle(lost);
            }
            self.first += 1;
        }
        datagram
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_is_taken_once_in_any_order() {
        let mut datagrams = Datagrams::default();
        let numbers: Vec<u64> = (0..4).map(|i| datagrams.put(vec![i])).collect();
        assert_eq!(numbers, [0, 1, 2, 3]);
        let taken: Vec<Option<Vec<u8>>> =
            [2, 0, 2, 3, 9].iter().map(|&number| datagrams.take(number)).collect();
        assert_eq!(taken, [Some(vec![2]), Some(vec![0]), None, Some(vec![3]), None]);
        assert_eq!(datagrams.put(vec![4]), 4);
    }

    #[test]
    fn memory_of_lost_datagrams_is_bounded() {
        let mut datagrams = Datagrams::default();
        for number in 0..3 * Datagrams::MEMORY {
            datagrams.put(vec![1]);
            if number % 2 == 1 {
                datagrams.take(number);
            }
        }
        assert!(datagrams.waiting.len() as u64 <= Datagrams::MEMORY + 2);
        assert_eq!(datagrams.take(0), None);
    }
}
