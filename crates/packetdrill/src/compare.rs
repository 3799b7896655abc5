//! Whether a packet is the expected one, field by field, as packetdrill compares.

use weir_transport::{Flags, Timestamps};

use crate::fast_open::FastOpen;
use crate::packet::flags_text;
use crate::script::{Options, Packet};

/// A field that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) field: &'static str,
    pub(crate) expected: String,
    pub(crate) actual: String,
}

/// Returns the first field in which `actual`, which is the sum of several segments if it is `merged`, differs.
/// Values of timestamps are compared if their tick is known, and may differ by `drift`.
pub(crate) fn difference(
    expected: &Packet,
    actual: &Packet,
    merged: bool,
    drift: Option<u64>,
) -> Option<Difference> {
    let numbers = [
        ("tcp_seq", expected.seq, actual.seq),
        ("tcp_data_len", expected.len, actual.len),
        ("tcp_ack", expected.ack, actual.ack),
    ];
    // Where a sender pushes within what it has depends on its buffers: only a written `P` is compared, and where
    // segments are merged, that depends on the host's offload.
    let compared = expected.flags.contains(Flags::PSH) && !merged;
    let ignored = if compared { 0 } else { Flags::PSH.0 };
    if (expected.flags.0 ^ actual.flags.0) & !ignored != 0 {
        return found("tcp_flags", flags_text(expected.flags), flags_text(actual.flags));
    }
    for (field, expected, actual) in numbers {
        if expected != actual {
            return found(field, expected, actual);
        }
    }
    if expected.window.is_some() && expected.window != actual.window {
        let shown = |window: Option<u16>| window.unwrap_or_default();
        return found("tcp_window", shown(expected.window), shown(actual.window));
    }
    if let (Some(wanted), Some(sent)) = (expected.ecn, actual.ecn)
        && wanted != sent
    {
        return found("ip_ecn", format!("{wanted:?}"), format!("{sent:?}"));
    }
    let (wanted, sent) = (expected.options.as_ref()?, actual.options.unwrap_or_default());
    options(wanted, &sent, drift)
}

fn options(wanted: &Options, sent: &Options, drift: Option<u64>) -> Option<Difference> {
    if wanted.mss != sent.mss {
        return found("option mss", shown(wanted.mss), shown(sent.mss));
    }
    if wanted.wscale != sent.wscale {
        return found("option wscale", shown(wanted.wscale), shown(sent.wscale));
    }
    if wanted.sack_ok != sent.sack_ok {
        return found("option sackOK", wanted.sack_ok, sent.sack_ok);
    }
    if wanted.sack != sent.sack {
        return found("option sack", format!("{:?}", wanted.sack), format!("{:?}", sent.sack));
    }
    if wanted.fast_open != sent.fast_open {
        let text = |option: &Option<FastOpen>| option.map(|option| option.text());
        return found("option FO", shown(text(&wanted.fast_open)), shown(text(&sent.fast_open)));
    }
    let text =
        |timestamps: &Timestamps| format!("val {} ecr {}", timestamps.value, timestamps.echo);
    match (&wanted.timestamps, &sent.timestamps) {
        (None, None) => None,
        (Some(one), Some(other)) => {
            let apart = one.value.wrapping_sub(other.value) as i32;
            let near = drift.is_none_or(|most| u64::from(apart.unsigned_abs()) <= most);
            let close = near && one.echo == other.echo;
            if close { None } else { found("option TS", text(one), text(other)) }
        }
        (one, other) => {
            let text = |side: &Option<Timestamps>| side.as_ref().map_or("none".to_owned(), text);
            found("option TS", text(one), text(other))
        }
    }
}

/// Whether `next` continues `burst` within the expected packet: segmentation offload would have sent
/// both as one.
pub(crate) fn continues(expected: &Packet, burst: &Packet, next: &Packet) -> bool {
    let alike = |one: Flags, other: Flags| {
        one.with(Flags::PSH).with(Flags::FIN) == other.with(Flags::PSH).with(Flags::FIN)
    };
    let ends_here = burst.flags.contains(Flags::FIN);
    let options =
        |packet: &Packet| packet.options.map(|options| Options { timestamps: None, ..options });
    burst.len > 0
        && next.len > 0
        && !ends_here
        && burst.len + next.len <= expected.len
        && next.seq == burst.seq.wrapping_add(burst.len)
        && next.ack == burst.ack
        && alike(next.flags, burst.flags)
        && next.ecn == burst.ecn
        && options(next) == options(burst)
}

fn found(
    field: &'static str,
    expected: impl ToString,
    actual: impl ToString,
) -> Option<Difference> {
    Some(Difference { field, expected: expected.to_string(), actual: actual.to_string() })
}

fn shown<T: ToString>(value: Option<T>) -> String {
    value.map_or("none".to_owned(), |value| value.to_string())
}
