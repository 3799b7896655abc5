//! Points of the time-sequence diagram, thinned to a bounded number.

/// A segment or an acknowledgement in the diagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) time: u64,
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) kind: PointKind,
}

/// What a point shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PointKind {
    Data,
    Fast,
    Timeout,
    TailProbe,
    Ack,
}

impl PointKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Fast => "fast",
            Self::Timeout => "timeout",
            Self::TailProbe => "tail-probe",
            Self::Ack => "ack",
        }
    }

    fn is_repeat(self) -> bool {
        !matches!(self, Self::Data | Self::Ack)
    }
}

/// The points of one direction. Repetitions are kept as long as there is space; of the others one of every `stride`.
#[derive(Debug)]
pub(crate) struct Points {
    list: Vec<Point>,
    stride: u32,
    seen: [u32; 2],
}

impl Default for Points {
    fn default() -> Self {
        Self { list: Vec::new(), stride: 1, seen: [0; 2] }
    }
}

impl Points {
    pub(crate) fn list(&self) -> &[Point] {
        &self.list
    }

    pub(crate) fn push(&mut self, point: Point) {
        if !point.kind.is_repeat() {
            let seen = &mut self.seen[usize::from(point.kind == PointKind::Ack)];
            *seen = seen.wrapping_add(1);
            if !seen.is_multiple_of(self.stride) {
                return;
            }
        }
        if self.list.len() >= MOST {
            self.thin();
        }
        self.list.push(point);
    }

    fn thin(&mut self) {
        self.stride = self.stride.saturating_mul(2);
        let mut index = 0u32;
        // Only if nearly all are repetitions are these thinned too.
        let repeats = self.list.iter().filter(|point| point.kind.is_repeat()).count();
        self.list.retain(|point| {
            index += 1;
            (point.kind.is_repeat() && repeats < MOST / 2) || index.is_multiple_of(2)
        });
    }
}

const MOST: usize = 4_000;
