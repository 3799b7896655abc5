//! Translation between the numbers of a script and those on the wire, and packets as text.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use weir_transport::{Flags, SackBlock, SackBlocks, Segment, SeqNum, Timestamps};
use weir_units::Ecn;

use crate::endpoint::{Received, Sent};
use crate::script::{Options, Packet};

/// What the numbers of a script stand for in one connection. Those of a SYN are as written, all others count from
/// it, as in packetdrill.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers {
    /// The sequence number of the local SYN, in the script and on the wire.
    local: Option<(u32, SeqNum)>,
    /// That of the script's side, which is as written.
    remote: Option<u32>,
    /// Timestamps of the script and the local ones that they stand for, and the first of them.
    stamps: BTreeMap<u32, u32>,
    first_stamp: Option<(u32, u32)>,
}

impl Numbers {
    /// A segment for the wire.
    pub(crate) fn wire_segment(&mut self, packet: &Packet) -> Received {
        let syn = packet.flags.contains(Flags::SYN);
        if syn {
            self.remote.get_or_insert(packet.seq);
        }
        let written = packet.options.unwrap_or_default();
        let (script, live) = self.local.unwrap_or_default();
        let origin = if syn { live - script } else { live };
        let local = |number: u32| origin + number;
        let remote = if syn { 0 } else { self.remote.unwrap_or_default() };
        let mut sack = SackBlocks::default();
        for block in written.sack.as_slice() {
            sack.push(SackBlock { start: local(block.start.0), end: local(block.end.0) });
        }
        let timestamps = written
            .timestamps
            .map(|Timestamps { value, echo }| Timestamps { value, echo: self.live_stamp(echo) });
        let acks = packet.flags.contains(Flags::ACK);
        let segment = Segment {
            seq: SeqNum(packet.seq.wrapping_add(remote)),
            ack: if acks { local(packet.ack) } else { SeqNum(0) },
            flags: packet.flags,
            window: packet.window.unwrap_or_default(),
            payload_len: packet.len,
            options: weir_transport::Options {
                mss: written.mss,
                window_scale: written.wscale,
                sack_permitted: written.sack_ok,
                timestamps,
                sack,
                ..Default::default()
            },
        };
        let ecn = packet.ecn.unwrap_or_default();
        Received { segment, ecn, fast_open: written.fast_open }
    }

    /// The local timestamp that one of the script stands for: that of the newest packet that was expected with it,
    /// else as far from the first as the script's is. Zero echoes nothing.
    fn live_stamp(&self, echo: u32) -> u32 {
        let (script, live) = self.first_stamp.unwrap_or_default();
        let scaled = echo.wrapping_sub(script).wrapping_add(live);
        let exact = self.stamps.get(&echo).copied();
        if echo == 0 && exact.is_none() { 0 } else { exact.unwrap_or(scaled) }
    }

    /// A packet with the script's numbers. The first SYN defines the local ones.
    pub(crate) fn script_packet(&mut self, sent: &Sent) -> Packet {
        let segment = &sent.segment;
        let syn = segment.flags.contains(Flags::SYN);
        if syn {
            self.local.get_or_insert((0, segment.seq));
        }
        let (script, live) = self.local.unwrap_or_default();
        let origin = if syn { live - script } else { live };
        let remote = if syn { 0 } else { self.remote.unwrap_or_default() };
        let found = &segment.options;
        let timestamps = found.timestamps.map(|Timestamps { value, echo }| {
            let (script, live) = self.first_stamp.unwrap_or_default();
            Timestamps { value: value.wrapping_sub(live).wrapping_add(script), echo }
        });
        let mut sack = SackBlocks::default();
        for SackBlock { start, end } in found.sack.as_slice() {
            sack.push(SackBlock { start: *start - remote, end: *end - remote });
        }
        let options = Options {
            mss: found.mss,
            wscale: found.window_scale,
            sack_ok: found.sack_permitted,
            sack,
            timestamps,
            fast_open: sent.fast_open,
        };
        let acks = segment.flags.contains(Flags::ACK);
        Packet {
            flags: segment.flags,
            seq: segment.seq.since(origin) as u32,
            len: segment.payload_len,
            ack: if acks { segment.ack.0.wrapping_sub(remote) } else { 0 },
            window: Some(segment.window),
            ecn: Some(sent.ecn),
            options: Some(options),
        }
    }

    /// An expected packet defines what the numbers of its SYN and its timestamp stand for.
    pub(crate) fn learn(&mut self, expected: &Packet, actual: &mut Packet) {
        let opens = actual.flags.contains(Flags::SYN) && expected.flags.contains(Flags::SYN);
        if let Some((script @ 0, _)) = self.local.as_mut().filter(|_| opens) {
            *script = expected.seq;
            actual.seq = actual.seq.wrapping_add(expected.seq);
        }
        let wanted = expected.options.and_then(|options| options.timestamps);
        let found = actual.options.as_mut().and_then(|options| options.timestamps.as_mut());
        let (Some(wanted), Some(found)) = (wanted, found) else { return };
        let (script, live) = self.first_stamp.unwrap_or_default();
        let raw = found.value.wrapping_sub(script).wrapping_add(live);
        self.stamps.insert(wanted.value, raw);
        if self.first_stamp.is_none() {
            self.first_stamp = Some((wanted.value, raw));
            found.value = wanted.value;
        }
    }
}

impl fmt::Display for Packet {
    /// As a script writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ecn {
            None | Some(Ecn::NotEct) => {}
            Some(Ecn::Ect0) => f.write_str("[ect0] ")?,
            Some(Ecn::Ect1) => f.write_str("[ect1] ")?,
            Some(Ecn::Ce) => f.write_str("[ce] ")?,
        }
        f.write_str(&flags_text(self.flags))?;
        let end = self.seq.wrapping_add(self.len);
        write!(f, " {}:{end}({})", self.seq, self.len)?;
        if self.flags.contains(Flags::ACK) {
            write!(f, " ack {}", self.ack)?;
        }
        if let Some(window) = self.window {
            write!(f, " win {window}")?;
        }
        match &self.options {
            None => f.write_str(" <...>"),
            Some(options) => f.write_str(&options_text(options)),
        }
    }
}

/// The flags in packetdrill's letters.
pub(crate) fn flags_text(flags: Flags) -> String {
    let letters = [
        (Flags::SYN, 'S'),
        (Flags::FIN, 'F'),
        (Flags::RST, 'R'),
        (Flags::PSH, 'P'),
        (Flags::ECE, 'E'),
        (Flags::CWR, 'W'),
        (Flags::ACK, '.'),
    ];
    let set = letters.iter().filter(|(flag, _)| flags.contains(*flag));
    let text: String = set.map(|(_, letter)| letter).collect();
    if text.is_empty() { "-".to_owned() } else { text }
}

/// Options with a space in front; nothing if there are none.
fn options_text(options: &Options) -> String {
    let mut parts = Vec::new();
    parts.extend(options.mss.map(|mss| format!("mss {mss}")));
    parts.extend(options.sack_ok.then(|| "sackOK".to_owned()));
    if let Some(Timestamps { value, echo }) = options.timestamps {
        parts.push(format!("TS val {value} ecr {echo}"));
    }
    parts.extend(options.wscale.map(|wscale| format!("wscale {wscale}")));
    parts.extend(options.fast_open.map(|option| option.text()));
    let mut blocks = String::new();
    for block in options.sack.as_slice() {
        // Writing to a String cannot fail.
        let _ = write!(blocks, " {}:{}", block.start.0, block.end.0);
    }
    if !blocks.is_empty() {
        parts.push(format!("sack{blocks}"));
    }
    if parts.is_empty() { String::new() } else { format!(" <{}>", parts.join(",")) }
}
