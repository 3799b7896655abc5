//! How long frames take, and the other times of a physical layer.
//!
//! ```text
//! airtime = preamble and PLCP header + ceil(bits / rate) microseconds
//! EIFS    = SIFS + DIFS + airtime of an ACK at 1 Mbit/s
//! ```
//!
//! Sources: IEEE 802.11b-1999 §18.2 (DSSS with the long preamble) and ns-2's WaveLAN, which agree but
//! for the MAC header of data frames: 24 bytes and the frame check make 28, as in ns-2 until 2.34;
//! ns-2.35 has 34. Control frames and broadcasts go at the basic rate. The FHSS set is that of
//! Bianchi, IEEE JSAC 18(3), 2000, whose model knows no EIFS.

use weir_units::{Bytes, Duration, Rate};

use weir_net::{ConfigError, check_span};

/// The times, lengths and rates of a physical layer.
///
/// ```
/// use weir_radio::Phy;
/// use weir_units::{Bytes, Duration, Rate};
///
/// let phy = Phy::dsss(Rate::from_mbit(11))?;
/// // 192 µs of preamble, then 14 bytes at 1 Mbit/s.
/// assert_eq!(phy.ack_time(), Duration::from_micros(304));
/// assert!(phy.exchange_time(Bytes(1_500)) > phy.data_time(Bytes(1_500)) + phy.ack_time());
/// assert!(Phy::dsss(Rate::from_mbit(54)).is_err());
/// # Ok::<(), weir_net::ConfigError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phy {
    /// A slot of the backoff.
    pub slot: Duration,
    /// The gap within an exchange.
    pub sifs: Duration,
    /// The gap before contention.
    pub difs: Duration,
    /// The gap after a frame that could not be read.
    pub eifs: Duration,
    /// Preamble and PLCP header, in front of every frame.
    pub preamble: Duration,
    /// The rate of control frames and broadcasts.
    pub basic: Rate,
    /// The rate of other data frames.
    pub data: Rate,
    /// Header and frame check of a data frame.
    pub header: Bytes,
    /// The length of an RTS.
    pub rts: Bytes,
    /// The length of a CTS.
    pub cts: Bytes,
    /// The length of an acknowledgement.
    pub ack: Bytes,
    /// The contention window at first.
    pub cw_min: u32,
    /// The largest contention window.
    pub cw_max: u32,
}

impl Phy {
    /// Direct-sequence spread spectrum with the long preamble, control frames at 1 Mbit/s, data at
    /// `data`: 1, 2, 5.5 or 11 Mbit/s.
    pub fn dsss(data: Rate) -> Result<Self, ConfigError> {
        const HELP: &str = "802.11 DSSS has 1mbit, 2mbit, 5.5mbit and 11mbit";
        let known = [1_000_000, 2_000_000, 5_500_000, 11_000_000];
        if !known.contains(&data.as_bits_per_sec()) {
            return Err(ConfigError::new("data_rate", data, HELP));
        }
        Ok(Self { data, ..Self::default() })
    }

    /// The frequency-hopping set of Bianchi's paper: 1 Mbit/s, W = 32, m = 3.
    pub fn bianchi_fhss() -> Self {
        let difs = Duration::from_micros(128);
        Self {
            slot: Duration::from_micros(50),
            sifs: Duration::from_micros(28),
            difs,
            eifs: difs,
            preamble: Duration::from_micros(128),
            data: Rate::from_mbit(1),
            header: Bytes(34),
            cw_max: 255,
            ..Self::default()
        }
    }

    /// How long a frame of `len` bytes takes at `rate`.
    pub fn airtime(&self, len: Bytes, rate: Rate) -> Duration {
        // Enough for terabytes in 64 bits: this is asked several times a frame.
        let bits_us = len.get().saturating_mul(8 * 1_000_000);
        let micros = bits_us.div_ceil(rate.as_bits_per_sec().max(1));
        self.preamble + Duration::from_micros(micros.min(LONGEST))
    }

    /// How long an RTS takes.
    pub fn rts_time(&self) -> Duration {
        self.airtime(self.rts, self.basic)
    }

    /// How long a CTS takes.
    pub fn cts_time(&self) -> Duration {
        self.airtime(self.cts, self.basic)
    }

    /// How long an acknowledgement takes.
    pub fn ack_time(&self) -> Duration {
        self.airtime(self.ack, self.basic)
    }

    /// How long a data frame with an IP packet of this length takes.
    pub fn data_time(&self, packet: Bytes) -> Duration {
        self.airtime(packet + self.header, self.data)
    }

    /// How long a broadcast with an IP packet of this length takes.
    pub fn broadcast_time(&self, packet: Bytes) -> Duration {
        self.airtime(packet + self.header, self.basic)
    }

    /// From the start of the gap to the end of the acknowledgement, with RTS and CTS and without
    /// backoff: what one data frame costs on an idle medium.
    pub fn exchange_time(&self, packet: Bytes) -> Duration {
        let frames = self.rts_time() + self.cts_time() + self.data_time(packet) + self.ack_time();
        self.difs + frames + self.sifs * 3
    }

    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        const RATE: &str = "it must be above zero";
        const WINDOW: &str = "1 <= cw_min <= cw_max <= 65535";
        for (key, rate) in [("basic_rate", self.basic), ("data_rate", self.data)] {
            if rate == Rate::ZERO {
                return Err(ConfigError::new(key, rate, RATE));
            }
        }
        let spans = [("slot", self.slot), ("difs", self.difs), ("eifs", self.eifs)];
        for (key, span) in spans.into_iter().chain([("preamble", self.preamble)]) {
            check_span(key, span)?;
        }
        if self.slot.is_zero() || self.sifs.is_zero() {
            return Err(ConfigError::new("slot", self.slot, "slot and SIFS must be above zero"));
        }
        if self.difs < self.sifs || self.eifs < self.difs {
            return Err(ConfigError::new("difs", self.difs, "SIFS <= DIFS <= EIFS"));
        }
        if self.cw_min == 0 || self.cw_min > self.cw_max || self.cw_max > u32::from(u16::MAX) {
            return Err(ConfigError::new("cw_min", self.cw_min, WINDOW));
        }
        Ok(())
    }
}

impl Default for Phy {
    /// DSSS, data at 2 Mbit/s.
    fn default() -> Self {
        Self {
            slot: Duration::from_micros(20),
            sifs: Duration::from_micros(10),
            difs: Duration::from_micros(50),
            eifs: Duration::from_micros(364),
            preamble: Duration::from_micros(192),
            basic: Rate::from_mbit(1),
            data: Rate::from_mbit(2),
            header: Bytes(28),
            rts: Bytes(20),
            cts: Bytes(14),
            ack: Bytes(14),
            cw_min: 31,
            cw_max: 1_023,
        }
    }
}

/// A day, in microseconds: frames take less, and no sum of times overflows.
const LONGEST: u64 = 86_400_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn us(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    /// Bits over rates: (20, 14, 14, 1040 + 28 and 40 + 28 bytes) behind 192 us.
    #[test]
    fn frames_at_2_mbit_take_what_their_bits_take() {
        let phy = Phy::default();
        assert_eq!(phy.rts_time(), us(352));
        assert_eq!(phy.cts_time(), us(304));
        assert_eq!(phy.ack_time(), us(304));
        assert_eq!(phy.data_time(Bytes(1_040)), us(4_464));
        assert_eq!(phy.data_time(Bytes(40)), us(464));
        assert_eq!(phy.broadcast_time(Bytes(1_040)), us(192 + 8_544));
        assert_eq!(phy.eifs, phy.sifs + phy.difs + phy.ack_time());
    }

    /// With a mean first backoff of 15 slots.
    #[test]
    fn exchanges_of_data_and_acknowledgement_take_7_6_ms() {
        let phy = Phy::default();
        let backoff = phy.slot * 15;
        assert_eq!(phy.exchange_time(Bytes(1_040)) + backoff, us(5_804));
        assert_eq!(phy.exchange_time(Bytes(40)) + backoff, us(1_804));
    }

    #[test]
    fn one_hop_with_a_window_of_one_carries_what_the_exchanges_leave() {
        let two = Phy::default();
        let one = Phy { data: Rate::from_mbit(1), ..two };
        let all_two = Phy { basic: Rate::from_mbit(2), ..two };
        let cases = [(1_000, two, 1_052), (1_460, two, 1_236), (512, two, 724)];
        for (payload, phy, kbps) in
            cases.into_iter().chain([(1_000, one, 658), (1_000, all_two, 1_107)])
        {
            let trip = phy.exchange_time(Bytes(payload + 40)) + phy.exchange_time(Bytes(40));
            let round = trip + phy.slot * 30;
            assert_eq!((payload * 8_000 + round.as_micros() / 2) / round.as_micros(), kbps);
        }
    }

    /// 802.11b §18.3.4: the length field counts whole microseconds, rounded up.
    #[test]
    fn higher_rates_round_up_to_microseconds() {
        let phy = Phy::dsss(Rate::from_bits_per_sec(5_500_000)).unwrap();
        assert_eq!(phy.data_time(Bytes(1_040)), us(192 + 1_554));
        let phy = Phy::dsss(Rate::from_mbit(11)).unwrap();
        assert_eq!(phy.data_time(Bytes(1_040)), us(192 + 777));
        assert!(Phy::dsss(Rate::from_mbit(54)).is_err());
    }

    /// Bianchi 2000, the durations Ts and Tc: 8184 bits of payload, 1 us of propagation.
    #[test]
    fn bianchis_set_has_his_durations() {
        let phy = Phy::bianchi_fhss();
        let data = phy.data_time(Bytes(1_023));
        let propagation = us(1);
        let basic = data + phy.sifs + propagation + phy.ack_time() + phy.difs + propagation;
        assert_eq!(basic, us(8_982));
        assert_eq!(data + phy.difs + propagation, us(8_713));
        let exchange = phy.exchange_time(Bytes(1_023)) + propagation * 4;
        assert_eq!(exchange, us(9_568));
        assert_eq!(phy.rts_time() + phy.difs + propagation, us(417));
    }
}
