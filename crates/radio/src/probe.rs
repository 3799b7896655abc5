//! A parcel for tests.

use weir_net::{Ecn, Parcel};
use weir_units::{Bytes, Duration, Feedback};

/// A parcel that remembers what was done to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Probe {
    pub(crate) id: u64,
    pub(crate) len: u64,
    pub(crate) is_forward: bool,
    pub(crate) ecn: Ecn,
    pub(crate) corrupt: bool,
    pub(crate) feedback: Option<Feedback>,
}

impl Probe {
    pub(crate) fn data(id: u64, len: u64) -> Self {
        Self { id, len, is_forward: true, ecn: Ecn::NotEct, corrupt: false, feedback: None }
    }

    pub(crate) fn ack(id: u64) -> Self {
        Self { is_forward: false, ..Self::data(id, 52) }
    }
}

impl Parcel for Probe {
    fn len(&self) -> Bytes {
        Bytes(self.len)
    }
    fn flow(&self) -> u32 {
        7
    }
    fn is_forward(&self) -> bool {
        self.is_forward
    }
    fn carries_data(&self) -> bool {
        self.is_forward
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn feedback(&mut self) -> Option<&mut Feedback> {
        self.feedback.as_mut()
    }
    fn mark_ce(&mut self) {
        assert!(matches!(self.ecn, Ecn::Ect0 | Ecn::Ect1), "marked without need");
        self.ecn = Ecn::Ce;
    }
    fn corrupt(&mut self) {
        self.corrupt = true;
    }
    fn add_queue_delay(&mut self, _waited: Duration) {}
}
