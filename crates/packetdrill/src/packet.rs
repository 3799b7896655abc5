//! Translation between the numbers of a script and those on the wire, and packets as text.

use std::fmt::{self, Write};

use weir_transport::{Flags, SackBlock, SackBlocks, Segment, SeqNum, Timestamps};
use weir_units::Ecn;

use crate::endpoint::Sent;
use crate::script::{Options, Packet};

/// What the numbers of a script stand for in this run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Numbers {
    /// The sequence number of the local SYN.
    local: Option<SeqNum>,
    /// A timestamp of the script and the local one that it stands for.
    clock: Option<(u32, u32)>,
}

impl Numbers {
    /// A segment for the wire.
    pub(crate) fn wire_segment(self, packet: &Packet) -> Segment {
        let written = packet.options.unwrap_or_default();
        let local = |number: SeqNum| self.local.unwrap_or_default() + number.0;
        let mut sack = SackBlocks::default();
        for block in written.sack.as_slice() {
            sack.push(SackBlock { start: local(block.start), end: local(block.end) });
        }
        let timestamps = written.timestamps.map(|Timestamps { value, echo }| {
            let (script, live) = self.clock.unwrap_or_default();
            // Zero echoes nothing.
            let echo = if echo == 0 { 0 } else { echo.wrapping_sub(script).wrapping_add(live) };
            Timestamps { value, echo }
        });
        let acks = packet.flags.contains(Flags::ACK);
        Segment {
            seq: SeqNum(packet.seq),
            ack: if acks { local(SeqNum(packet.ack)) } else { SeqNum(0) },
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
        }
    }

    /// A packet with the script's numbers. The first SYN defines the local ones.
    pub(crate) fn script_packet(&mut self, sent: &Sent) -> Packet {
        let segment = &sent.segment;
        if self.local.is_none() && segment.flags.contains(Flags::SYN) {
            self.local = Some(segment.seq);
        }
        let found = &segment.options;
        let timestamps = found.timestamps.map(|Timestamps { value, echo }| {
            let (script, live) = self.clock.unwrap_or_default();
            Timestamps { value: value.wrapping_sub(live).wrapping_add(script), echo }
        });
        let options = Options {
            mss: found.mss,
            wscale: found.window_scale,
            sack_ok: found.sack_permitted,
            sack: found.sack,
            timestamps,
        };
        let acks = segment.flags.contains(Flags::ACK);
        Packet {
            flags: segment.flags,
            seq: segment.seq.0.wrapping_sub(self.local.unwrap_or_default().0),
            len: segment.payload_len,
            ack: if acks { segment.ack.0 } else { 0 },
            window: Some(segment.window),
            ecn: Some(sent.ecn),
            options: Some(options),
        }
    }

    /// The first timestamp of an expected packet defines what the script's timestamps stand for.
    pub(crate) fn learn_clock(&mut self, expected: &Packet, actual: &mut Packet) {
        let wanted = expected.options.and_then(|options| options.timestamps);
        let Some(found) = actual.options.as_mut().and_then(|options| options.timestamps.as_mut())
        else {
            return;
        };
        if let (None, Some(wanted)) = (self.clock, wanted) {
            self.clock = Some((wanted.value, found.value));
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
