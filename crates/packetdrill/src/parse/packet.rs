//! Packets: `< [ce] P. 1:1001(1000) ack 1 win 257 <sack 1:1001,nop>`.

use weir_transport::{Flags, SackBlocks, Timestamps};
use weir_units::Ecn;

use super::cursor::Cursor;
use crate::error::ScriptError;
use crate::fast_open::{Cookie, FastOpen};
use crate::script::{Options, Packet};

/// What a script does with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketKind {
    Inject,
    Expect,
}

/// Reads what follows `<` or `>`. `own` is the cookie that `TFO_COOKIE` stands for.
pub(super) fn packet(
    cursor: &mut Cursor<'_>,
    kind: PacketKind,
    own: Cookie,
) -> Result<Packet, ScriptError> {
    cursor.skip();
    let ecn = ip_fields(cursor)?;
    let flags = flags(cursor)?;
    let (seq, len) = sequence(cursor, kind)?;
    let mut ack = 0;
    if cursor.eat_word("ack") {
        ack = cursor.number_u32("ack")?;
    } else if flags.contains(Flags::ACK) && kind == PacketKind::Expect {
        return Err(cursor.error("flag '.' requires 'ack N'"));
    }
    if ack != 0 && !flags.contains(Flags::ACK) && kind == PacketKind::Expect {
        return Err(cursor.error("'ack N' requires flag '.'"));
    }
    let window = match cursor.eat_word("win") {
        true => Some(cursor.number("win", u64::from(u16::MAX))? as u16),
        false if kind == PacketKind::Inject => {
            return Err(cursor.error("a packet '<' requires 'win N'"));
        }
        false => None,
    };
    if cursor.eat_word("urg") {
        return Err(cursor.error("urg: urgent data is not supported"));
    }
    let options =
        if cursor.eat("<") { options(cursor, kind, own)? } else { Some(Options::default()) };
    Ok(Packet { flags, seq, len, ack, window, ecn, options })
}

/// `[ect0]`, or the name of another protocol, which is refused.
fn ip_fields(cursor: &mut Cursor<'_>) -> Result<Option<Ecn>, ScriptError> {
    if cursor.eat("[") {
        let name = cursor.word();
        let ecn = match name {
            "noecn" => Ecn::NotEct,
            "ect0" => Ecn::Ect0,
            "ect1" => Ecn::Ect1,
            "ce" => Ecn::Ce,
            _ => {
                let allowed = "allowed is noecn, ect0, ect1, ce";
                return Err(cursor.error(format!("[{name}]: {allowed}")));
            }
        };
        cursor.expect("]", name)?;
        return Ok(Some(ecn));
    }
    if cursor.rest().starts_with('(') {
        return Err(cursor.error("(tos, ttl, flowlabel): only the ECN field of IP is supported"));
    }
    let word = cursor.peek_word();
    let others = ["icmp", "udp", "udplite", "ipv4", "ipv6", "gre", "mpls", "sctp"];
    if others.contains(&word) {
        return Err(cursor.error(format!("{word}: only TCP packets are supported")));
    }
    Ok(None)
}

fn flags(cursor: &mut Cursor<'_>) -> Result<Flags, ScriptError> {
    cursor.skip();
    let end = cursor.rest().find(char::is_whitespace).unwrap_or(cursor.rest().len());
    let text = &cursor.rest()[..end];
    let mut flags = Flags::default();
    for letter in text.chars() {
        let flag = match letter {
            'F' => Flags::FIN,
            'S' => Flags::SYN,
            'R' => Flags::RST,
            'P' => Flags::PSH,
            '.' => Flags::ACK,
            'E' => Flags::ECE,
            'W' => Flags::CWR,
            '-' if text == "-" => Flags::default(),
            _ => {
                let found = cursor.found();
                return Err(
                    cursor.error(format!("flags = {found}, allowed are F S R P . E W or -"))
                );
            }
        };
        flags = flags.with(flag);
    }
    cursor.advance(end);
    Ok(flags)
}

/// `1:1001(1000)`.
fn sequence(cursor: &mut Cursor<'_>, kind: PacketKind) -> Result<(u32, u32), ScriptError> {
    cursor.eat_word("seq");
    let start = cursor.number_u32("sequence number")?;
    cursor.expect(":", "the first sequence number")?;
    let end = cursor.number_u32("sequence number")?;
    cursor.expect("(", "the last sequence number")?;
    let most = match kind {
        PacketKind::Inject => MAX_PAYLOAD,
        PacketKind::Expect => MAX_BURST,
    };
    let len = cursor.number("payload", most)? as u32;
    cursor.expect(")", "the length")?;
    if end.wrapping_sub(start) != len {
        let difference = end.wrapping_sub(start);
        return Err(cursor.error(format!("{start}:{end}({len}): {end} - {start} = {difference}")));
    }
    Ok((start, len))
}

/// Reads what follows `<`; `None` for `...`.
fn options(
    cursor: &mut Cursor<'_>,
    kind: PacketKind,
    own: Cookie,
) -> Result<Option<Options>, ScriptError> {
    if cursor.eat("...") {
        if kind == PacketKind::Inject {
            return Err(cursor.error("<...> has no meaning in a packet '<': give its options"));
        }
        cursor.expect(">", "'...'")?;
        return Ok(None);
    }
    let mut options = Options::default();
    while !cursor.eat(">") {
        option(cursor, kind, own, &mut options)?;
        if !cursor.eat(",") {
            cursor.expect(">", "the options")?;
            break;
        }
    }
    Ok(Some(options))
}

fn option(
    cursor: &mut Cursor<'_>,
    kind: PacketKind,
    own: Cookie,
    options: &mut Options,
) -> Result<(), ScriptError> {
    let name = cursor.word();
    match name {
        "nop" | "eol" => {}
        "mss" => options.mss = Some(cursor.number("mss", u64::from(u16::MAX))? as u16),
        "wscale" => options.wscale = Some(cursor.number("wscale", 255)? as u8),
        "sackOK" => options.sack_ok = true,
        "sack" => {
            let mut blocks = 0;
            loop {
                let start = cursor.number_u32("sack")?;
                cursor.expect(":", "a SACK block's start")?;
                let end = cursor.number_u32("sack")?;
                blocks += 1;
                if blocks > SackBlocks::MAX {
                    let most = SackBlocks::MAX;
                    return Err(cursor.error(format!("sack: more than {most} blocks do not fit")));
                }
                options.push_sack(start, end);
                cursor.skip();
                if !cursor.rest().starts_with(|c: char| c.is_ascii_digit()) {
                    break;
                }
            }
        }
        "TS" => {
            if !cursor.eat_word("val") {
                return Err(cursor.error("expected 'val N ecr N' after 'TS'"));
            }
            let value = cursor.number_u32("TS val")?;
            if !cursor.eat_word("ecr") {
                return Err(cursor.error("expected 'ecr N' after 'TS val N'"));
            }
            let echo = cursor.number_u32("TS ecr")?;
            options.timestamps = Some(Timestamps { value, echo });
        }
        "FO" | "FOEXP" => {
            let cookie = cookie(cursor, kind, own)?;
            let experimental = name == "FOEXP";
            options.fast_open = cookie.map(|cookie| FastOpen { cookie, experimental });
        }
        "md5" | "AO" | "acc_ecn" | "ace" | "mptcp" => {
            return Err(cursor.error(format!("option {name}: not supported")));
        }
        _ => {
            let known = "mss, wscale, sackOK, sack, TS, FO, FOEXP, nop, eol";
            let found = if name.is_empty() { cursor.found() } else { format!("'{name}'") };
            return Err(cursor.error(format!("option {found}: allowed are {known}")));
        }
    }
    Ok(())
}

/// What follows `FO`: nothing, bytes in hexadecimal digits, or `TFO_COOKIE`. A receiver ignores a cookie of a wrong
/// length.
fn cookie(
    cursor: &mut Cursor<'_>,
    kind: PacketKind,
    own: Cookie,
) -> Result<Option<Cookie>, ScriptError> {
    let word = cursor.word();
    if word == "TFO_COOKIE" {
        return Ok(Some(own));
    }
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = word.as_bytes().chunks(2).map(byte).collect();
    let Some(bytes) = bytes.filter(|_| word.len().is_multiple_of(2)) else {
        let shown: String = word.chars().take(40).collect();
        let allowed = "allowed are pairs of hexadecimal digits, or TFO_COOKIE";
        return Err(cursor.error(format!("cookie '{shown}': {allowed}")));
    };
    let cookie = Cookie::new(&bytes);
    if cookie.is_none() && kind == PacketKind::Expect {
        let (len, allowed) = (bytes.len(), "allowed are 4 to 16, an even number");
        return Err(cursor.error(format!("a cookie of {len} bytes: {allowed}")));
    }
    Ok(cookie)
}

/// What an IPv4 packet holds without options.
const MAX_PAYLOAD: u64 = 65_495;
/// The segments of an expected packet together.
const MAX_BURST: u64 = 100_000_000;
