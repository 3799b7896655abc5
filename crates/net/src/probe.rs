//! A parcel for tests. The tests of `weir-radio` compile this file too.

use weir_units::{Bytes, Duration, Feedback};

use crate::{Ecn, Parcel};

/// A parcel that remembers what was done to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Probe {
    pub(crate) id: u64,
    pub(crate) len: u64,
    pub(crate) is_forward: bool,
    pub(crate) carries_data: bool,
    pub(crate) flow: u32,
    pub(crate) ecn: Ecn,
    pub(crate) corrupt: bool,
    pub(crate) waited: Duration,
    pub(crate) feedback: Option<Feedback>,
}

impl Probe {
    pub(crate) fn data(id: u64, len: u64) -> Self {
        Self {
            id,
            len,
            is_forward: true,
            carries_data: true,
            flow: 7,
            ecn: Ecn::NotEct,
            corrupt: false,
            waited: Duration::ZERO,
            feedback: None,
        }
    }

    pub(crate) fn ack(id: u64) -> Self {
        Self { is_forward: false, carries_data: false, ..Self::data(id, 52) }
    }
}

impl Parcel for Probe {
    fn len(&self) -> Bytes {
        Bytes(self.len)
    }
    fn flow(&self) -> u32 {
        self.flow
    }
    fn is_forward(&self) -> bool {
        self.is_forward
    }
    fn carries_data(&self) -> bool {
        self.carries_data
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
    fn add_queue_delay(&mut self, waited: Duration) {
        self.waited += waited;
    }
}
