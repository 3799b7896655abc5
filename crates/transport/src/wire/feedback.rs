//! The routers' feedback as an experimental TCP option (RFC 6994):
//!
//! ```text
//! +------+--------+------------+---------------+------------------+------------------+
//! | 253  | length | identifier | record | echo | record, if any   | echo, if any     |
//! | 8    | 8      | 16         | 4      | 4    | 0 to 12 bytes    | 0 to 6 bytes     |
//! +------+--------+------------+---------------+------------------+------------------+
//! ```
//!
//! The two nibbles say which kinds follow, 0 for none: 1 DRAI, 2 anti-ECN, 3 Quick-Start, 4 XCP, 5 RCP, 6 telemetry,
//! whose records lie next to the packet.
//! Numbers are in the network's order. The option is preceded by NOPs that fill its last word.
//!
//! Routers rewrite the record where it is and leave its kind and its length alone.

use weir_units::feedback::{Drai, Headroom, NONCE, QuickStart, RateCode, Rcp, Xcp};
use weir_units::{Echo, Feedback, FeedbackKind};

use super::{CHECKSUM_AT, Writer, kind};
use crate::segment::{Options, Segment, echo_len, record_len};

/// RFC 6994 sets aside 253 and 254.
pub(super) const KIND: u8 = 253;
/// Ours, chosen at random; it is not in RFC 6994's registry.
const IDENTIFIER: [u8; 2] = [0xc7, 0x31];

pub(super) fn emit(options: &Options, out: &mut Writer<'_>) {
    let len = options.feedback_len();
    if len == 0 {
        return;
    }
    for _ in len..len.next_multiple_of(4) {
        out.put([kind::NOP]);
    }
    out.put([KIND, len as u8]);
    out.put(IDENTIFIER);
    let record = options.feedback.map_or(0, |record| tag(record.kind()));
    let echo = options.echo.map_or(0, |echo| tag(echo.kind()));
    out.put([record << 4 | echo]);
    if let Some(record) = &options.feedback {
        emit_record(record, out);
    }
    if let Some(echo) = &options.echo {
        emit_echo(echo, out);
    }
}

fn emit_record(record: &Feedback, out: &mut Writer<'_>) {
    match *record {
        Feedback::Drai(drai) => out.put([drai.level, drai.hops]),
        Feedback::AntiEcn(headroom) => out.put([bit(headroom)]),
        Feedback::QuickStart(request) => {
            out.put([request.rate.get(), request.ttl, request.hops]);
            out.put(request.nonce.to_be_bytes());
        }
        Feedback::Xcp(header) => {
            out.put(header.rtt_micros.to_be_bytes());
            out.put(header.spacing_nanos.to_be_bytes());
            out.put(header.delta.to_be_bytes());
        }
        Feedback::Rcp(header) => {
            out.put(header.rate.to_be_bytes());
            out.put(header.rtt_micros.to_be_bytes());
        }
        Feedback::Int => {}
    }
}

fn emit_echo(echo: &Echo, out: &mut Writer<'_>) {
    match *echo {
        Echo::Drai(drai) => out.put([drai.level, drai.hops]),
        Echo::AntiEcn(headroom) => out.put([bit(headroom)]),
        Echo::QuickStart { rate, ttl_diff, nonce } => {
            out.put([rate.get(), ttl_diff]);
            out.put(nonce.to_be_bytes());
        }
        Echo::Xcp(delta) => out.put(delta.to_be_bytes()),
        Echo::Rcp(rate) => out.put(rate.to_be_bytes()),
        Echo::Int => {}
    }
}

/// Reads what follows kind and length; other experiments are skipped. `None` for what cannot be.
pub(super) fn parse(data: &[u8], options: &mut Options) -> Option<()> {
    let Some(([identifier @ .., kinds], mut rest)) = data.split_first_chunk::<3>() else {
        return Some(());
    };
    if *identifier != IDENTIFIER {
        return Some(());
    }
    let (record, echo) = kinds_of(*kinds)?;
    if let Some(kind) = record {
        let (bytes, behind) = rest.split_at_checked(record_len(kind))?;
        options.feedback = Some(parse_record(kind, bytes)?);
        rest = behind;
    }
    if let Some(kind) = echo {
        let (bytes, behind) = rest.split_at_checked(echo_len(kind))?;
        options.echo = Some(parse_echo(kind, bytes)?);
        rest = behind;
    }
    rest.is_empty().then_some(())
}

/// The kinds of record and echo; one of them must be there.
fn kinds_of(nibbles: u8) -> Option<(Option<FeedbackKind>, Option<FeedbackKind>)> {
    if nibbles == 0 {
        return None;
    }
    let kind = |tag: u8| match tag {
        0 => Some(None),
        tag => kind_of(tag).map(Some),
    };
    Some((kind(nibbles >> 4)?, kind(nibbles & 0xf)?))
}

fn parse_record(kind: FeedbackKind, bytes: &[u8]) -> Option<Feedback> {
    Some(match kind {
        FeedbackKind::Drai => Feedback::Drai(parse_drai(bytes)?),
        FeedbackKind::AntiEcn => Feedback::AntiEcn(parse_bit(bytes)?),
        FeedbackKind::QuickStart => {
            let (&[rate, ttl, hops], nonce) = bytes.split_first_chunk()?;
            Feedback::QuickStart(QuickStart {
                rate: RateCode::new(rate)?,
                ttl,
                hops,
                nonce: parse_nonce(nonce)?,
            })
        }
        FeedbackKind::Xcp => {
            let [rtt, spacing, delta] = words(bytes)?;
            Feedback::Xcp(Xcp { rtt_micros: rtt, spacing_nanos: spacing, delta: delta as i32 })
        }
        FeedbackKind::Rcp => {
            let [rate, rtt] = words(bytes)?;
            Feedback::Rcp(Rcp { rate, rtt_micros: rtt })
        }
        FeedbackKind::Int => Feedback::Int,
    })
}

fn parse_echo(kind: FeedbackKind, bytes: &[u8]) -> Option<Echo> {
    Some(match kind {
        FeedbackKind::Drai => Echo::Drai(parse_drai(bytes)?),
        FeedbackKind::AntiEcn => Echo::AntiEcn(parse_bit(bytes)?),
        FeedbackKind::QuickStart => {
            let (&[rate, ttl_diff], nonce) = bytes.split_first_chunk()?;
            let (rate, nonce) = (RateCode::new(rate)?, parse_nonce(nonce)?);
            Echo::QuickStart { rate, ttl_diff, nonce }
        }
        FeedbackKind::Xcp => Echo::Xcp(words::<1>(bytes)?[0] as i32),
        FeedbackKind::Rcp => Echo::Rcp(words::<1>(bytes)?[0]),
        FeedbackKind::Int => Echo::Int,
    })
}

fn parse_drai(bytes: &[u8]) -> Option<Drai> {
    let &[level, hops] = bytes.try_into().ok()?;
    (1..=MAX_LEVEL).contains(&level).then_some(Drai { level, hops })
}

fn parse_bit(bytes: &[u8]) -> Option<Headroom> {
    match bytes {
        [0] => Some(Headroom::Scarce),
        [1] => Some(Headroom::Spare),
        _ => None,
    }
}

fn parse_nonce(bytes: &[u8]) -> Option<u32> {
    Some(words::<1>(bytes)?[0]).filter(|nonce| *nonce <= NONCE)
}

/// Exactly `N` numbers of 32 bits.
fn words<const COUNT: usize>(bytes: &[u8]) -> Option<[u32; COUNT]> {
    let (words, []) = bytes.as_chunks::<4>() else { return None };
    let words: &[[u8; 4]; COUNT] = words.try_into().ok()?;
    Some(words.map(u32::from_be_bytes))
}

pub(super) fn stamp(segment: &mut [u8], rewrite: impl FnOnce(&mut Feedback)) -> Option<()> {
    let header_len = usize::from(*segment.get(12)? >> 4) * 4;
    let header = segment.get_mut(..header_len)?;
    let at = find(header)?;
    let (Some(kind), _) = kinds_of(*header.get(at + KINDS_AT)?)? else { return None };
    let place =
        at + Options::FEEDBACK_HEADER_LEN..at + Options::FEEDBACK_HEADER_LEN + record_len(kind);
    let mut record = parse_record(kind, header.get(place.clone())?)?;
    rewrite(&mut record);
    if record.kind() != kind {
        return None;
    }
    // The words that the record touches, of two bytes each from the beginning of the segment.
    let touched = place.start & !1..place.end.next_multiple_of(2);
    let before = sum(header.get(touched.clone())?);
    emit_record(&record, &mut Writer(header.get_mut(place)?));
    let after = sum(header.get(touched)?);
    // RFC 1624 §3, equation 3: HC' = ~(~HC + ~m + m').
    let field = header.get_mut(CHECKSUM_AT..CHECKSUM_AT + 2)?;
    let old = u16::from_be_bytes([field[0], field[1]]);
    let new = !fold(u32::from(!old) + u32::from(!fold(before)) + after);
    field.copy_from_slice(&new.to_be_bytes());
    Some(())
}

/// Where the option begins in a header.
fn find(header: &[u8]) -> Option<usize> {
    let mut at = Segment::BASE_HEADER_LEN;
    loop {
        match *header.get(at)? {
            kind::END => return None,
            kind::NOP => at += 1,
            found => {
                let len = usize::from(*header.get(at + 1)?);
                let ours = found == KIND && header.get(at + 2..at + 4)? == IDENTIFIER;
                if len < 2 {
                    return None;
                }
                if ours && len >= Options::FEEDBACK_HEADER_LEN {
                    return Some(at);
                }
                at += len;
            }
        }
    }
}

/// The plain sum of sixteen-bit words; what is missing of the last counts as zero.
fn sum(bytes: &[u8]) -> u32 {
    bytes
        .chunks(2)
        .map(|word| u32::from(word[0]) << 8 | word.get(1).map_or(0, |low| u32::from(*low)))
        .sum()
}

fn fold(sum: u32) -> u16 {
    let once = (sum & 0xffff) + (sum >> 16);
    ((once & 0xffff) + (once >> 16)) as u16
}

fn tag(kind: FeedbackKind) -> u8 {
    match kind {
        FeedbackKind::Drai => 1,
        FeedbackKind::AntiEcn => 2,
        FeedbackKind::QuickStart => 3,
        FeedbackKind::Xcp => 4,
        FeedbackKind::Rcp => 5,
        FeedbackKind::Int => 6,
    }
}

fn kind_of(of: u8) -> Option<FeedbackKind> {
    const KINDS: [FeedbackKind; 6] = [
        FeedbackKind::Drai,
        FeedbackKind::AntiEcn,
        FeedbackKind::QuickStart,
        FeedbackKind::Xcp,
        FeedbackKind::Rcp,
        FeedbackKind::Int,
    ];
    KINDS.into_iter().find(|kind| tag(*kind) == of)
}

fn bit(headroom: Headroom) -> u8 {
    u8::from(headroom == Headroom::Spare)
}

/// Where the nibbles stand in the option.
const KINDS_AT: usize = 4;
/// An index has four bits.
const MAX_LEVEL: u8 = 15;
