//! What the data of an event says of a packet: its size, its number, its frames.

use std::borrow::Cow;

use serde_json::Value;

use super::event::{self, amount};
use super::flight::Number;

/// Frames of a packet, as far as they matter here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frames {
    /// Whether the log has frames; if not, every packet is taken for one with data.
    pub(crate) are_known: bool,
    /// Whether the packet must be acknowledged (RFC 9002 §2).
    pub(crate) is_eliciting: bool,
    /// Bytes of streams.
    pub(crate) data: u64,
    /// The stream of the first data, and where in it the data begins.
    pub(crate) first: Option<(u64, u64)>,
    /// Whether flow control holds the sender, or holds it no longer.
    pub(crate) blocked: Option<bool>,
}

impl Frames {
    pub(crate) fn of(data: &Value) -> Self {
        let Some(list) = data.get("frames").and_then(Value::as_array) else {
            return Self { is_eliciting: true, ..Self::default() };
        };
        let mut found = Self { are_known: true, ..Self::default() };
        for frame in list {
            let kind = frame_type(frame);
            let kind = kind.as_ref();
            found.is_eliciting |= !matches!(kind, "ack" | "padding" | "connection_close");
            match kind {
                "stream" | "datagram" => {
                    let length = amount(frame, &["length"])
                        .or_else(|| amount(frame.get("raw")?, &["payload_length", "length"]))
                        .unwrap_or(0)
                        .min(LONGEST);
                    if length > 0 {
                        let offset = amount(frame, &["offset"]).unwrap_or(0);
                        found.first.get_or_insert((amount(frame, STREAM).unwrap_or(0), offset));
                    }
                    found.data += length;
                }
                "data_blocked" | "stream_data_blocked" => found.blocked = Some(true),
                "max_data" | "max_stream_data" => found.blocked = Some(false),
                _ => {}
            }
        }
        found
    }
}

/// Calls `found` with every range of packet numbers that the ACK frames of a packet have.
pub(crate) fn acked_ranges(data: &Value, mut found: impl FnMut((u64, u64))) {
    let frames = data.get("frames").and_then(Value::as_array);
    let acks = frames.into_iter().flatten().filter(|frame| frame_type(frame) == "ack");
    for range in acks.filter_map(|frame| frame.get("acked_ranges")?.as_array()).flatten() {
        let Some(list) = range.as_array() else { continue };
        let numbers = list.iter().take(2).filter_map(event::number);
        let numbers: Vec<u64> = numbers.filter(|one| *one >= 0.0).map(|one| one as u64).collect();
        if let (Some(first), Some(last)) = (numbers.first(), numbers.last()) {
            found((*first, *last));
        }
    }
}

/// The length of a packet, without headers of UDP and IP in logs of QUIC.
pub(crate) fn length(data: &Value) -> u64 {
    let inner = |name: &str, names: &[&str]| amount(data.get(name)?, names);
    inner("raw", &["length"])
        .or_else(|| inner("header", &["length", "packet_size"]))
        .or_else(|| amount(data, &["packet_size"]))
        .unwrap_or(0)
        .min(LONGEST)
}

/// Bytes after the headers.
pub(crate) fn payload(data: &Value) -> u64 {
    data.get("raw").and_then(|raw| amount(raw, &["payload_length"])).unwrap_or(0).min(LONGEST)
}

/// The number of a packet, in the space of its type.
pub(crate) fn number(data: &Value) -> Option<Number> {
    let header = data.get("header").unwrap_or(data);
    let number = amount(header, &["packet_number"]).or_else(|| amount(data, &["packet_number"]))?;
    Some((space(data), number))
}

/// Handshake packets are numbered for themselves (RFC 9000 §12.3).
pub(crate) fn space(data: &Value) -> u8 {
    let kind = |fields: &Value| fields.get("packet_type")?.as_str().map(str::to_lowercase);
    let kind = data.get("header").and_then(kind).or_else(|| kind(data));
    match kind.as_deref() {
        Some("initial") => 1,
        Some("handshake") => 2,
        _ => 0,
    }
}

/// The type of a frame; qlog 0.0 has it in capitals.
fn frame_type(frame: &Value) -> Cow<'_, str> {
    let kind = frame.get("frame_type").and_then(Value::as_str).unwrap_or_default();
    if kind.bytes().any(|letter| letter.is_ascii_uppercase()) {
        return Cow::Owned(kind.to_lowercase());
    }
    Cow::Borrowed(kind)
}

/// Names of the number of a stream.
const STREAM: &[&str] = &["stream_id", "id"];

/// Bytes of a packet: no stack sends longer ones, offload included.
const LONGEST: u64 = 1 << 20;
