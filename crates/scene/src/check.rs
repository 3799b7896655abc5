//! Checkers that are always on, and the hash that stands for everything that happened.
//!
//! A checker that fails says what was violated; the run then ends with an error that names the seed
//! and the time. They share no state with what they check.

use weir_net::{LinkConfig, Service};
use weir_transport::{Arrived, Flags, Flight, RangeSet, Segment, SeqNum};
use weir_units::{Bytes, Duration, Instant, Rate};

use crate::packet::Packet;

/// A hash over every delivery, in order: equal for equal runs.
#[derive(Debug)]
pub(crate) struct TraceHash(u64);

/// What holds for a link's deliveries as its configuration promises it.
#[derive(Debug)]
pub(crate) struct LinkChecks {
    /// Packets are numbered as they enter.
    entered: u32,
    /// The number of the packet that came out last, where order is promised; at first that of the first.
    last_out: u32,
    keeps_order: bool,
    /// The rate, where a packet never arrives sooner after another than it takes to send.
    pace: Option<Rate>,
    /// What it takes to send a packet beyond its length.
    overhead: Bytes,
    last_arrival: Option<Instant>,
}

/// What a receiver stores and reads: every byte once, in order, where it belongs.
#[derive(Debug, Default)]
pub(crate) struct StreamCheck {
    read: u64,
    /// Every byte below was stored.
    whole: u64,
    /// What was stored beyond.
    ahead: RangeSet,
}

/// What a sender may send: within its peer's window and its own.
#[derive(Debug, Default)]
pub(crate) struct WindowCheck {
    /// The sequence number of the first payload byte.
    origin: SeqNum,
    /// How far the peer's window is scaled; `None` until its SYN has arrived.
    scale: Option<u8>,
    offers_scaling: bool,
    acked: u64,
    /// The stream offset up to which the peer has ever permitted to send.
    edge: u64,
}

impl TraceHash {
    /// Processes one delivery.
    #[inline]
    pub(crate) fn add(&mut self, now: Instant, link: u32, flow: u32, seq: u64) {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let place = u64::from(link) << 32 | u64::from(flow);
        for word in [now.as_nanos(), place, seq] {
            self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(ODD);
        }
    }

    pub(crate) fn value(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

impl Default for TraceHash {
    fn default() -> Self {
        Self(0x7765_6972)
    }
}

impl LinkChecks {
    pub(crate) fn new(config: &LinkConfig, keeps_order: bool) -> Self {
        let steady = config.delay.is_constant() && config.impairments.jitter.is_none();
        let pace = match &config.service {
            Service::Rate(rate) if rate.is_constant() => Some(rate.initial),
            _ => None,
        };
        Self {
            entered: 0,
            last_out: 0,
            keeps_order,
            pace: pace.filter(|_| steady && keeps_order),
            overhead: config.overhead,
            last_arrival: None,
        }
    }

    /// Numbers a packet that enters.
    #[inline]
    pub(crate) fn stamp<L>(&mut self, packet: &mut Packet<L>) {
        packet.stamp = self.entered;
        self.entered = self.entered.wrapping_add(1);
    }

    /// Checks a packet that comes out.
    #[inline]
    pub(crate) fn on_delivery<L>(
        &mut self,
        now: Instant,
        packet: &Packet<L>,
    ) -> Result<(), String> {
        if self.keeps_order {
            // A duplicate carries its original's number.
            if (packet.stamp.wrapping_sub(self.last_out) as i32) < 0 {
                let body = packet.body;
                return Err(format!("a link that keeps order let {body:?} be overtaken"));
            }
            self.last_out = packet.stamp;
        }
        if let Some(rate) = self.pace {
            let gap = self.last_arrival.map_or(Duration::MAX, |last| now.saturating_since(last));
            if !fits(gap, rate, Bytes(u64::from(packet.ip_len)) + self.overhead) {
                let body = packet.body;
                return Err(format!("{gap} after the last packet a link of {rate} sent {body:?}"));
            }
            self.last_arrival = Some(now);
        }
        Ok(())
    }
}

/// Whether `len` bytes can be sent at `rate` in `gap`, which may have been rounded down.
#[inline]
fn fits(gap: Duration, rate: Rate, len: Bytes) -> bool {
    const NANO_BITS_PER_BYTE: u64 = 8_000_000_000;
    let possible = (gap.as_nanos().saturating_add(1)).saturating_mul(rate.as_bits_per_sec());
    possible >= len.get() * NANO_BITS_PER_BYTE
}

impl StreamCheck {
    /// `len` bytes are stored at `offset`.
    pub(crate) fn on_stored(&mut self, offset: u64, len: u32) {
        let end = offset + u64::from(len);
        if offset > self.whole {
            self.ahead.insert(offset..end, usize::MAX);
            return;
        }
        self.whole = self.whole.max(end);
        if !self.ahead.is_empty() {
            self.whole = self.ahead.range_at(self.whole).map_or(self.whole, |range| range.end);
            self.ahead.remove_below(self.whole);
        }
    }

    /// The application takes `bytes`.
    pub(crate) fn on_read(&mut self, bytes: u64) -> Result<(), String> {
        let end = self.read + bytes;
        if self.whole < end {
            let (read, whole) = (self.read, self.whole);
            return Err(format!("{bytes} bytes read from {read}, stored up to {whole}"));
        }
        self.read = end;
        Ok(())
    }
}

/// Checks that the payload of `packet`, as its sender took it from the stream, is stored where it
/// belongs.
pub(crate) fn check_placement(packet: &Packet, at: &Arrived) -> Result<(), String> {
    let Arrived { offset, skip, len } = *at;
    if packet.seq() + u64::from(skip) != offset || skip + len > packet.payload() {
        return Err(format!("{packet:?}: {len} bytes after {skip} stored at {offset}"));
    }
    Ok(())
}

impl WindowCheck {
    /// A segment leaves.
    #[inline]
    pub(crate) fn on_sent(&mut self, segment: &Segment, offset: u64) -> Result<(), String> {
        if segment.flags.contains(Flags::SYN) {
            self.origin = segment.seq + 1;
            self.offers_scaling = segment.options.window_scale.is_some();
        }
        let end = offset + u64::from(segment.payload_len);
        if segment.payload_len > 0 && end > self.edge {
            return Err(format!("sent up to {end}, the receiver permits up to {}", self.edge));
        }
        Ok(())
    }

    /// A segment arrives whole.
    #[inline]
    pub(crate) fn on_received(&mut self, segment: &Segment) {
        let syn = segment.flags.contains(Flags::SYN);
        if syn {
            self.scale = Some(segment.options.window_scale.unwrap_or(0));
        }
        let Some(scale) = self.scale.filter(|_| segment.flags.contains(Flags::ACK)) else {
            // RFC 9293 §3.10.7.2: what a bare SYN offers counts from the first byte on.
            self.edge = self.edge.max(u64::from(segment.window));
            return;
        };
        // RFC 7323 §2.2: the window of a SYN is never scaled.
        let scale = if syn || !self.offers_scaling { 0 } else { scale };
        let next = self.origin + self.acked as u32;
        let progress = segment.ack.since(next);
        if progress >= 0 {
            self.acked += progress as u64;
        }
        if progress >= -1 {
            self.edge = self.edge.max(self.acked + (u64::from(segment.window) << scale));
        }
    }
}

/// After a sender sent `sent` bytes: more may be in flight than the window in force only where that
/// was so before it sent, and by one probe.
pub(crate) fn check_in_flight(
    after: &Flight,
    cwnd_before: Bytes,
    sent: u64,
    mss: u32,
) -> Result<(), String> {
    let window = after.cwnd.max(cwnd_before);
    let unasked = after.bytes_in_flight.saturating_sub(Bytes(sent));
    let allowed = window.max(unasked) + Bytes(u64::from(mss));
    if after.bytes_in_flight > allowed {
        return Err(format!("sent {sent} bytes beyond a window of {cwnd_before}: {after:?}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use weir_net::Ecn;

    use super::*;
    use crate::packet::{Body, Direction};

    fn packet(stamp: u32, offset: u64) -> Packet {
        let segment = Segment { payload_len: 1_448, ..Segment::default() };
        Packet {
            flow: 0,
            direction: Direction::Forward,
            hop: 0,
            ecn: Ecn::NotEct,
            corrupted: false,
            ip_len: 1_500,
            stamp,
            sent: Instant::ZERO,
            queued: Duration::ZERO,
            body: Body::Segment { segment, offset },
            load: (),
        }
    }

    fn at_us(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    #[test]
    fn an_overtaken_packet_is_noticed_where_order_is_promised() {
        let config = LinkConfig::default();
        let deliver = |checks: &mut LinkChecks, stamps: [u32; 3]| {
            stamps.iter().try_for_each(|stamp| checks.on_delivery(at_us(1), &packet(*stamp, 0)))
        };
        assert!(deliver(&mut LinkChecks::new(&config, true), [4, 5, 5]).is_ok());
        assert!(deliver(&mut LinkChecks::new(&config, true), [4, 6, 5]).is_err());
        assert!(deliver(&mut LinkChecks::new(&config, false), [4, 6, 5]).is_ok());
    }

    #[test]
    fn a_packet_that_comes_too_soon_is_noticed() {
        // 1500 bytes take 1200 microseconds.
        let config = LinkConfig::new(Rate::from_mbit(10), Duration::ZERO);
        let second_at = |micros: u64| {
            let mut checks = LinkChecks::new(&config, true);
            checks.on_delivery(at_us(7), &packet(0, 0))?;
            checks.on_delivery(at_us(7 + micros), &packet(1, 0))
        };
        assert!(second_at(1_200).is_ok());
        assert!(second_at(1_199).is_err());
    }

    #[test]
    fn a_byte_is_read_once_in_order_and_where_it_belongs() {
        let mut check = StreamCheck::default();
        check.on_stored(0, 1_448);
        check.on_stored(2_896, 1_448);
        assert!(check.on_read(1_448).is_ok());
        assert!(check.on_read(1).is_err(), "there is a hole");
        let place =
            |offset, skip, len| check_placement(&packet(0, 1_448), &Arrived { offset, skip, len });
        assert!(place(1_450, 2, 1_446).is_ok());
        assert!(place(1_450, 0, 100).is_err(), "misplaced");
        assert!(place(1_450, 2, 1_447).is_err(), "too long");
    }

    #[test]
    fn a_sender_keeps_to_what_its_peer_permits() {
        let mut check = WindowCheck::default();
        let syn = Segment { seq: SeqNum(99), flags: Flags::SYN, ..Segment::default() };
        assert!(check.on_sent(&syn, 0).is_ok());
        let flags = Flags::SYN.with(Flags::ACK);
        check.on_received(&Segment { ack: SeqNum(100), flags, window: 2_000, ..syn });
        let data = Segment { payload_len: 1_448, ..Segment::default() };
        assert!(check.on_sent(&data, 0).is_ok());
        assert!(check.on_sent(&data, 1_448).is_err());
        let ack = SeqNum(100) + 1_448;
        check.on_received(&Segment { ack, flags: Flags::ACK, window: 2_000, ..syn });
        assert!(check.on_sent(&data, 1_448).is_ok());
    }
}
