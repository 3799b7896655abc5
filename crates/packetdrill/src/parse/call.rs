//! Calls of the socket interface: `write(4, ..., 1000) = 1000`.

use super::cursor::Cursor;
use crate::error::ScriptError;
use crate::script::{Call, CallKind, Shut, SocketOption, When};

/// An argument, read but not yet understood.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Argument {
    /// `...`
    Any,
    Number(i64),
    /// A constant, or several joined by `|`.
    Name(String),
    Text(String),
    List(Vec<Argument>),
    /// `{…}`, without its braces.
    Struct(String),
}

/// Reads a call from its name on.
pub(super) fn call(cursor: &mut Cursor<'_>, until: Option<When>) -> Result<Call, ScriptError> {
    let name = cursor.word();
    if name.is_empty() {
        let found = cursor.found();
        let allowed = "a packet ('<' or '>'), a socket call, or '%{ assert ... }%'";
        return Err(cursor.error(format!("{found}: expected {allowed}")));
    }
    if !KNOWN.contains(&name) {
        let known = KNOWN.join(", ");
        return Err(cursor.error(format!("{name}: this call is not supported; there are {known}")));
    }
    cursor.expect("(", name)?;
    let arguments = arguments(cursor, ")", 0)?;
    cursor.expect("=", "a call")?;
    let result = result(cursor)?;
    let mut errno = None;
    cursor.skip_blanks();
    if cursor.peek_word().starts_with('E') {
        errno = Some(cursor.word().to_owned());
        cursor.skip_blanks();
    }
    if cursor.rest().starts_with('(') {
        let Some(end) = cursor
            .rest()
            .find([')', '\n'])
            .filter(|end| cursor.rest().as_bytes().get(*end) == Some(&b')'))
        else {
            return Err(cursor.error("the note after a result needs ')' on the same line"));
        };
        cursor.advance(end + 1);
    }
    let kind = kind(name, &arguments).map_err(|message| cursor.error(message))?;
    Ok(Call { kind, until, result, errno })
}

fn result(cursor: &mut Cursor<'_>) -> Result<i64, ScriptError> {
    let negative = cursor.eat("-");
    let number = cursor.number("result", i32::MAX as u64)? as i64;
    Ok(if negative { -number } else { number })
}

fn arguments(
    cursor: &mut Cursor<'_>,
    end: &str,
    depth: usize,
) -> Result<Vec<Argument>, ScriptError> {
    let mut list = Vec::new();
    if cursor.eat(end) {
        return Ok(list);
    }
    loop {
        if list.len() == MAX_ARGUMENTS {
            return Err(cursor.error(format!("more than {MAX_ARGUMENTS} arguments")));
        }
        list.push(argument(cursor, depth)?);
        if cursor.eat(end) {
            return Ok(list);
        }
        cursor.expect(",", "an argument")?;
    }
}

fn argument(cursor: &mut Cursor<'_>, depth: usize) -> Result<Argument, ScriptError> {
    if cursor.eat("...") {
        return Ok(Argument::Any);
    }
    if cursor.eat("\"") {
        let Some(end) = cursor.rest().find(['"', '\n']) else {
            return Err(cursor.error("a text without closing '\"'"));
        };
        let text = cursor.advance(end).to_owned();
        cursor.expect("\"", "a text")?;
        return Ok(Argument::Text(text));
    }
    if depth < MAX_DEPTH && cursor.eat("[") {
        return arguments(cursor, "]", depth + 1).map(Argument::List);
    }
    if cursor.eat("{") {
        let Some(end) = closing_brace(cursor.rest()) else {
            return Err(cursor.error("a structure without closing '}'"));
        };
        let text = cursor.advance(end).to_owned();
        cursor.advance(1);
        return Ok(Argument::Struct(text));
    }
    let negative = cursor.eat("-");
    cursor.skip();
    if cursor.rest().starts_with(|c: char| c.is_ascii_digit()) {
        let number = cursor.number("argument", u64::from(u32::MAX))? as i64;
        return Ok(Argument::Number(if negative { -number } else { number }));
    }
    let mut name = cursor.word().to_owned();
    while !name.is_empty() && cursor.eat("|") {
        name.push('|');
        name.push_str(cursor.word());
    }
    if name.is_empty() || negative || name.len() > MAX_NAME {
        let found = cursor.found();
        return Err(
            cursor.error(format!("argument {found}: expected a number, a name, a text or ..."))
        );
    }
    Ok(Argument::Name(name))
}

fn kind(name: &str, arguments: &[Argument]) -> Result<CallKind, String> {
    use Argument::{Any, Name, Number, Text};
    let fd = |argument: &Argument| match argument {
        Number(fd @ 0..=MAX_FD) => Ok(*fd as i32),
        _ => Err(format!("{name}: the first argument is a file descriptor from 0 to {MAX_FD}")),
    };
    let bytes = |argument: &Argument| match argument {
        Number(bytes @ 0..=MAX_BYTES) => Ok(*bytes as u32),
        _ => Err(format!("{name}: the number of bytes is 0 to {MAX_BYTES}")),
    };
    Ok(match (name, arguments) {
        ("socket", [_, Name(kind), _]) if kind == "SOCK_STREAM" => CallKind::Socket,
        ("socket", [_, Name(kind), _]) => {
            return Err(format!("socket: type {kind} is not supported, only SOCK_STREAM"));
        }
        ("bind", [socket, _, _]) => CallKind::Bind(fd(socket)?),
        ("listen", [socket, Number(_)]) => CallKind::Listen(fd(socket)?),
        ("accept", [socket, Any, Any]) => CallKind::Accept(fd(socket)?),
        ("connect", [socket, _, _]) => CallKind::Connect(fd(socket)?),
        ("write", [socket, Any, len]) => CallKind::Write(fd(socket)?, bytes(len)?),
        ("send", [socket, Any, len, flags]) | ("sendto", [socket, Any, len, flags, _, _])
            if is_plain(flags) =>
        {
            CallKind::Write(fd(socket)?, bytes(len)?)
        }
        ("writev", [socket, vector, Number(_)]) => CallKind::Write(fd(socket)?, sum(name, vector)?),
        ("sendmsg", [socket, message, flags]) if is_plain(flags) => {
            CallKind::Write(fd(socket)?, sum(name, message)?)
        }
        ("read", [socket, Any, len]) => CallKind::Read(fd(socket)?, bytes(len)?),
        ("recv", [socket, Any, len, flags]) | ("recvfrom", [socket, Any, len, flags, _, _])
            if is_plain(flags) =>
        {
            CallKind::Read(fd(socket)?, bytes(len)?)
        }
        ("readv", [socket, vector, Number(_)]) => CallKind::Read(fd(socket)?, sum(name, vector)?),
        ("recvmsg", [socket, message, flags]) if is_plain(flags) => {
            CallKind::Read(fd(socket)?, sum(name, message)?)
        }
        ("send" | "recv", [_, _, _, flags])
        | ("sendto" | "recvfrom", [_, _, _, flags, _, _])
        | ("sendmsg" | "recvmsg", [_, _, flags])
            if !is_plain(flags) =>
        {
            let plain = PLAIN_FLAGS.join(", ");
            return Err(format!("{name}: only the flags 0, {plain} are supported"));
        }
        ("getsockopt", [socket, Name(_), Name(option), value, _]) => {
            let none = Argument::List(vec![Number(0)]);
            if option != "SO_ERROR" || *value != none {
                return Err(format!("getsockopt: {option} is not supported, only SO_ERROR, [0]"));
            }
            CallKind::NoError(fd(socket)?)
        }
        ("close", [socket]) => CallKind::Close(fd(socket)?),
        ("shutdown", [socket, Name(how)]) => CallKind::Shutdown(fd(socket)?, shut(how)?),
        ("fcntl", [socket, Name(what)]) if what == "F_GETFL" => CallKind::ReadFlags(fd(socket)?),
        ("fcntl", [socket, Name(what), Name(flags)]) if what == "F_SETFL" => {
            let on = flags.split('|').any(|flag| flag == "O_NONBLOCK");
            CallKind::SetNonBlocking(fd(socket)?, on)
        }
        ("setsockopt", [socket, Name(_), Name(option), value, _]) => {
            CallKind::SetOption(fd(socket)?, socket_option(option, value)?)
        }
        (_, arguments) if arguments.iter().any(|argument| matches!(argument, Text(_))) => {
            return Err(format!("{name}: a text is not supported here, give ... and a length"));
        }
        _ => {
            let form = FORMS[KNOWN.iter().position(|known| *known == name).unwrap_or_default()];
            return Err(format!("{name}: these arguments are not supported, allowed is {form}"));
        }
    })
}

/// Where the brace closes that was opened before `text`.
fn closing_brace(text: &str) -> Option<usize> {
    let mut depth = 0_u32;
    text.char_indices().find_map(|(at, letter)| {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => return Some(at),
            '}' => depth -= 1,
            _ => {}
        }
        None
    })
}

/// The bytes of all buffers `{..., N}` of a vector or a message.
fn sum(name: &str, argument: &Argument) -> Result<u32, String> {
    let lengths = |text: &str| -> Option<u64> {
        let buffers: Vec<&str> = text.split("{..., ").skip(1).collect();
        let length = |rest: &&str| rest.split('}').next()?.trim().parse::<u64>().ok();
        let sum = buffers.iter().map(length).sum::<Option<u64>>();
        sum.filter(|_| !buffers.is_empty())
    };
    let total = match argument {
        Argument::Struct(message) => lengths(message),
        Argument::List(vector) => {
            let length = |buffer: &Argument| match buffer {
                Argument::Struct(buffer) => lengths(&format!("{{{buffer}}}")),
                _ => None,
            };
            vector.iter().map(length).sum::<Option<u64>>()
        }
        _ => None,
    };
    let total = total.and_then(|bytes| u32::try_from(bytes).ok());
    total.filter(|bytes| i64::from(*bytes) <= MAX_BYTES).ok_or_else(|| {
        format!("{name}: expected buffers {{..., N}} of up to {MAX_BYTES} bytes together")
    })
}

/// Whether flags change nothing of a script, whose sockets never wait.
fn is_plain(flags: &Argument) -> bool {
    match flags {
        Argument::Number(0) => true,
        Argument::Name(names) => names.split('|').all(|name| PLAIN_FLAGS.contains(&name)),
        _ => false,
    }
}

fn shut(how: &str) -> Result<Shut, String> {
    Ok(match how {
        "SHUT_RD" => Shut::Read,
        "SHUT_WR" => Shut::Write,
        "SHUT_RDWR" => Shut::Both,
        _ => return Err(format!("shutdown: {how}, allowed is SHUT_RD, SHUT_WR, SHUT_RDWR")),
    })
}

fn socket_option(option: &str, value: &Argument) -> Result<SocketOption, String> {
    let number = || match value {
        Argument::List(list) => match list.as_slice() {
            [Argument::Number(number @ 0..=MAX_BYTES)] => Ok(*number as u32),
            _ => Err(format!("{option}: the value is a number in brackets, as in [1]")),
        },
        _ => Err(format!("{option}: the value is a number in brackets, as in [1]")),
    };
    Ok(match option {
        "SO_REUSEADDR" => number().map(|_| SocketOption::Ignored)?,
        "TCP_NODELAY" => SocketOption::NoDelay(number()? != 0),
        "TCP_CONGESTION" => match value {
            Argument::Text(name) => SocketOption::Congestion(name.clone()),
            _ => return Err("TCP_CONGESTION: the value is a text, as in \"reno\"".to_owned()),
        },
        "TCP_USER_TIMEOUT" => SocketOption::UserTimeout(number()?),
        "TCP_MAXSEG" => SocketOption::MaxSegment(number()?),
        "SO_RCVBUF" => SocketOption::ReceiveBuffer(number()?),
        "SO_SNDBUF" => SocketOption::SendBuffer(number()?),
        _ => {
            let known = "SO_REUSEADDR, TCP_NODELAY, TCP_CONGESTION, TCP_USER_TIMEOUT, TCP_MAXSEG, \
                         SO_RCVBUF, SO_SNDBUF";
            return Err(format!("setsockopt: {option} is not supported; there are {known}"));
        }
    })
}

const KNOWN: &[&str] = &[
    "socket",
    "bind",
    "listen",
    "accept",
    "connect",
    "write",
    "send",
    "sendto",
    "writev",
    "sendmsg",
    "read",
    "recv",
    "recvfrom",
    "readv",
    "recvmsg",
    "close",
    "shutdown",
    "fcntl",
    "setsockopt",
    "getsockopt",
];
/// How each of them is written.
const FORMS: &[&str] = &[
    "socket(..., SOCK_STREAM, IPPROTO_TCP)",
    "bind(FD, ..., ...)",
    "listen(FD, N)",
    "accept(FD, ..., ...)",
    "connect(FD, ..., ...)",
    "write(FD, ..., N)",
    "send(FD, ..., N, 0)",
    "sendto(FD, ..., N, 0, ..., ...)",
    "writev(FD, [{..., N}], 1)",
    "sendmsg(FD, {msg_iov(1)=[{..., N}]}, 0)",
    "read(FD, ..., N)",
    "recv(FD, ..., N, 0)",
    "recvfrom(FD, ..., N, 0, ..., ...)",
    "readv(FD, [{..., N}], 1)",
    "recvmsg(FD, {msg_iov(1)=[{..., N}]}, 0)",
    "close(FD)",
    "shutdown(FD, SHUT_RD|SHUT_WR|SHUT_RDWR)",
    "fcntl(FD, F_GETFL) or fcntl(FD, F_SETFL, O_RDWR|O_NONBLOCK)",
    "setsockopt(FD, LEVEL, OPTION, VALUE, LENGTH)",
    "getsockopt(FD, SOL_SOCKET, SO_ERROR, [0], [4])",
];
/// Flags of the calls that send and receive.
const PLAIN_FLAGS: [&str; 2] = ["MSG_DONTWAIT", "MSG_NOSIGNAL"];
const MAX_ARGUMENTS: usize = 8;
const MAX_DEPTH: usize = 4;
const MAX_NAME: usize = 200;
const MAX_FD: i64 = 1_000;
const MAX_BYTES: i64 = 100_000_000;
