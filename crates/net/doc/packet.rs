// The packet of the documentation's examples.

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    pub len: u64,
    pub ecn: weir_units::Ecn,
}

#[allow(dead_code, reason = "an example uses what it needs")]
impl Packet {
    pub fn new(len: u64) -> Self {
        Self { len, ecn: weir_units::Ecn::NotEct }
    }
}

impl weir_net::Parcel for Packet {
    fn len(&self) -> weir_units::Bytes {
        weir_units::Bytes(self.len)
    }
    fn flow(&self) -> u32 {
        0
    }
    fn is_forward(&self) -> bool {
        true
    }
    fn carries_data(&self) -> bool {
        true
    }
    fn ecn(&self) -> weir_units::Ecn {
        self.ecn
    }
    fn mark_ce(&mut self) {
        self.ecn = weir_units::Ecn::Ce;
    }
    fn corrupt(&mut self) {}
    fn add_queue_delay(&mut self, _waited: weir_units::Duration) {}
}
