//! Socket options: `setsockopt(4, SOL_TCP, TCP_NODELAY, [1], 4)`.

use super::argument::Argument;
use crate::script::SocketOption;

/// An option and its value; `length` is the call's last argument.
pub(super) fn socket_option(
    call: &str,
    option: &str,
    value: &Argument,
    length: &Argument,
) -> Result<SocketOption, String> {
    let number = || match value {
        Argument::List(list) => match list.as_slice() {
            [Argument::Number(number @ 0..=MOST)] => Ok(*number as u32),
            _ => Err(format!("{option}: the value is a number in brackets, as in [1]")),
        },
        _ => Err(format!("{option}: the value is a number in brackets, as in [1]")),
    };
    Ok(match option {
        "SO_REUSEADDR" | "SO_REUSEPORT" => number().map(|_| SocketOption::Ignored)?,
        "SO_ERROR" if call == "getsockopt" => SocketOption::Error(match value {
            Argument::List(list) => match list.as_slice() {
                [Argument::Name(name)] => Some(name.clone()),
                [Argument::Number(0)] => None,
                _ => {
                    return Err(
                        "SO_ERROR: the value is [0], or a name as in [ETIMEDOUT]".to_owned()
                    );
                }
            },
            _ => return Err("SO_ERROR: the value is [0], or a name as in [ETIMEDOUT]".to_owned()),
        }),
        "TCP_NODELAY" => SocketOption::NoDelay(number()? != 0),
        "TCP_CORK" => SocketOption::Cork(number()? != 0),
        "TCP_CONGESTION" => match value {
            Argument::Text(name) => SocketOption::Congestion(name.clone()),
            _ => return Err("TCP_CONGESTION: the value is a text, as in \"reno\"".to_owned()),
        },
        "TCP_USER_TIMEOUT" => SocketOption::UserTimeout(number()?),
        "TCP_SYNCNT" => SocketOption::SynCount(number()?),
        "TCP_MAXSEG" => SocketOption::MaxSegment(number()?),
        "SO_RCVBUF" => SocketOption::ReceiveBuffer(number()?),
        "SO_SNDBUF" => SocketOption::SendBuffer(number()?),
        "TCP_NOTSENT_LOWAT" => SocketOption::NotSent(number()?),
        "TCP_FASTOPEN" => SocketOption::FastOpen(number()?),
        "TCP_FASTOPEN_CONNECT" => SocketOption::FastOpenConnect(number()? != 0),
        "TCP_FASTOPEN_KEY" => match (value, length) {
            (Argument::Text(text), Argument::Number(length)) => {
                let bytes = unescaped(text).filter(|bytes| bytes.len() as i64 == *length);
                SocketOption::FastOpenKey(bytes.and_then(|bytes| bytes.try_into().ok()))
            }
            _ => return Err("TCP_FASTOPEN_KEY: the value is a text of 16 bytes".to_owned()),
        },
        _ => {
            let known = KNOWN.join(", ");
            return Err(format!("{call}: {option} is not supported; there are {known}"));
        }
    })
}

/// The bytes of a text in which `\x1f` is one.
fn unescaped(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match (first, after) {
            (b'\\', [b'x', digits @ ..]) if digits.len() >= 2 => {
                let pair = std::str::from_utf8(&digits[..2]).ok()?;
                bytes.push(u8::from_str_radix(pair, 16).ok()?);
                rest = &digits[2..];
            }
            _ => bytes.push(*first),
        }
    }
    Some(bytes)
}

const MOST: i64 = u32::MAX as i64;
const KNOWN: [&str; 13] = [
    "SO_REUSEADDR",
    "SO_ERROR",
    "SO_RCVBUF",
    "SO_SNDBUF",
    "TCP_NODELAY",
    "TCP_CORK",
    "TCP_CONGESTION",
    "TCP_USER_TIMEOUT",
    "TCP_SYNCNT",
    "TCP_MAXSEG",
    "TCP_NOTSENT_LOWAT",
    "TCP_FASTOPEN",
    "TCP_FASTOPEN_CONNECT and TCP_FASTOPEN_KEY",
];
