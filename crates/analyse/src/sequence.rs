//! Sequence numbers as distances from the first one, which do not wrap.

/// Unwraps the sequence numbers of one direction (RFC 9293 §3.4: comparison modulo 2^32).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unwrap {
    /// The first number, and the distance of the newest one from it.
    newest: Option<(u32, i64)>,
}

impl Unwrap {
    /// Begins at `first`, unless it has begun.
    pub(crate) fn start(&mut self, first: u32) {
        self.newest.get_or_insert((first, 0));
    }

    /// The distance of `number` from the first; none before the first. Moves forward with it.
    pub(crate) fn place(&mut self, number: u32) -> Option<i64> {
        let place = self.peek(number)?;
        if let Some((_, newest)) = &mut self.newest {
            *newest = place.max(*newest);
        }
        Some(place)
    }

    /// The distance of `number` from the first, without moving.
    pub(crate) fn peek(&self, number: u32) -> Option<i64> {
        let (first, newest) = self.newest?;
        let last = first.wrapping_add(newest as u32);
        Some(newest + i64::from(number.wrapping_sub(last) as i32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_on_where_they_wrap() {
        let mut unwrap = Unwrap::default();
        assert_eq!(unwrap.place(7), None);
        unwrap.start(u32::MAX - 9);
        assert_eq!(unwrap.place(u32::MAX - 9), Some(0));
        assert_eq!(unwrap.place(10), Some(20));
        assert_eq!(unwrap.place(u32::MAX), Some(9));
        // A second time around.
        for turn in 1..5u32 {
            assert_eq!(unwrap.place(turn << 30), Some((i64::from(turn) << 30) + 10));
        }
        assert_eq!(unwrap.place(10), Some((1 << 32) + 20));
    }
}
