//! Calls of the socket interface: `write(4, ..., 1000) = 1000`.

use super::argument::{Argument, arguments};
use super::cursor::Cursor;
use super::option::socket_option;
use super::ready::{interest, millis, poll};
use crate::error::ScriptError;
use crate::script::{Call, CallKind, EpollChange, ReadFlags, Shut, When, WriteFlags};

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

fn kind(name: &str, arguments: &[Argument]) -> Result<CallKind, String> {
    use Argument::{Name, Number};
    let refused = || {
        let form = FORMS[KNOWN.iter().position(|known| *known == name).unwrap_or_default()];
        format!("{name}: these arguments are not supported, allowed is {form}")
    };
    match (name, arguments) {
        ("socket", [_, Name(kind), _]) if kind == "SOCK_STREAM" => return Ok(CallKind::Socket),
        ("socket", [_, Name(kind), _]) => {
            return Err(format!("socket: type {kind} is not supported, only SOCK_STREAM"));
        }
        ("poll", [list, Number(_), timeout]) => return poll(list, timeout).ok_or_else(refused),
        ("epoll_create", [Number(_)]) => return Ok(CallKind::EpollCreate),
        ("open", [Argument::Text(_), ..]) => return Ok(CallKind::OpenFile),
        _ => {}
    }
    let Some((Number(fd @ 0..=MAX_FD), rest)) = arguments.split_first() else {
        return Err(format!("{name}: the first argument is a file descriptor from 0 to {MAX_FD}"));
    };
    if let Some(kind) = transfer(name, *fd as i32, rest)? {
        return Ok(kind);
    }
    control(name, *fd as i32, rest)?.ok_or_else(refused)
}

/// Calls that send and receive.
fn transfer(name: &str, fd: i32, rest: &[Argument]) -> Result<Option<CallKind>, String> {
    use Argument::{Any, Name, Number};
    let bytes = |argument: &Argument| match argument {
        Number(bytes @ 0..=MAX_BYTES) => Ok(*bytes as u32),
        _ => Err(format!("{name}: the number of bytes is 0 to {MAX_BYTES}")),
    };
    let null = Name("NULL".to_owned());
    let sends = ["write", "send", "sendto", "read", "recv", "recvfrom"].contains(&name);
    if sends && rest.first() == Some(&null) {
        return Ok(Some(CallKind::NoBuffer(fd)));
    }
    let (len, flags) = match (name, rest) {
        ("write" | "read", [Any, len]) => (bytes(len)?, &Number(0)),
        ("send" | "recv", [Any, len, flags]) => (bytes(len)?, flags),
        ("sendto" | "recvfrom", [Any, len, flags, address, _]) => {
            let unspecific = match address {
                Argument::Struct(text) | Name(text) => text.contains("AF_UNSPEC"),
                _ => false,
            };
            if unspecific {
                return Ok(Some(CallKind::NoAddress(fd)));
            }
            (bytes(len)?, flags)
        }
        ("writev" | "readv", [vector, Number(_)]) => (sum(name, vector)?, &Number(0)),
        ("sendmsg" | "recvmsg", [message, flags]) => (sum(name, message)?, flags),
        ("sendfile", [Number(_), _, len]) => (bytes(len)?, &Number(0)),
        _ => return Ok(None),
    };
    let reads = name.starts_with("re");
    Ok(Some(if reads {
        CallKind::Read(fd, len, read_flags(name, flags)?)
    } else {
        CallKind::Write(fd, len, write_flags(name, flags)?)
    }))
}

/// All other calls with a descriptor.
fn control(name: &str, fd: i32, rest: &[Argument]) -> Result<Option<CallKind>, String> {
    use Argument::{Any, List, Name, Number, Struct};
    Ok(Some(match (name, rest) {
        ("bind", [_, _]) => CallKind::Bind(fd),
        ("listen", [Number(_)]) => CallKind::Listen(fd),
        ("accept", [Any, Any]) => CallKind::Accept(fd),
        ("connect", [_, _]) => CallKind::Connect(fd),
        ("close", []) => CallKind::Close(fd),
        ("shutdown", [Name(how)]) => CallKind::Shutdown(fd, shut(how)?),
        ("fcntl", [Name(what)]) if what == "F_GETFL" => CallKind::ReadFlags(fd),
        ("fcntl", [Name(what), Name(flags)]) if what == "F_SETFL" => {
            let on = flags.split('|').any(|flag| flag == "O_NONBLOCK");
            CallKind::SetNonBlocking(fd, on)
        }
        ("setsockopt", [Name(_), Name(option), value, length]) => {
            CallKind::SetOption(fd, socket_option(name, option, value, length)?)
        }
        ("getsockopt", [Name(_), Name(option), value, length]) => {
            CallKind::GetOption(fd, socket_option(name, option, value, length)?)
        }
        ("ioctl", [Name(what), List(value)])
            if ["SIOCINQ", "FIONREAD"].contains(&what.as_str()) =>
        {
            match value.as_slice() {
                [Number(bytes @ 0..=MAX_BYTES)] => CallKind::InputQueue(fd, *bytes as u32),
                _ => return Ok(None),
            }
        }
        ("epoll_ctl", [Name(change), Number(of @ 0..=MAX_FD), Struct(event)]) => {
            let change = match change.as_str() {
                "EPOLL_CTL_ADD" => EpollChange::Add,
                "EPOLL_CTL_MOD" => EpollChange::Modify,
                "EPOLL_CTL_DEL" => EpollChange::Delete,
                _ => return Ok(None),
            };
            let Some(event) = interest(event) else { return Ok(None) };
            CallKind::EpollControl(fd, change, *of as i32, event)
        }
        ("epoll_wait", [Struct(event), Number(_), timeout]) => {
            match (interest(event), millis(timeout)) {
                (Some(event), Some(timeout)) => CallKind::EpollWait(fd, event, timeout),
                _ => return Ok(None),
            }
        }
        _ => return Ok(None),
    }))
}

/// The flags of a call that sends or receives, by name.
fn flags(call: &str, flags: &Argument, known: &[(&str, i64)]) -> Result<i64, String> {
    let refused = || {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        format!("{call}: only the flags 0, {} are supported", names.join(", "))
    };
    match flags {
        Argument::Number(bits) => {
            let all = known.iter().fold(0, |all, (_, bit)| all | bit);
            if bits & !all == 0 { Ok(*bits) } else { Err(refused()) }
        }
        Argument::Name(names) => names.split('|').try_fold(0, |bits, name| {
            let found = known.iter().find(|(known, _)| *known == name.trim());
            found.map(|(_, bit)| bits | bit).ok_or_else(refused)
        }),
        _ => Err(refused()),
    }
}

fn write_flags(call: &str, argument: &Argument) -> Result<WriteFlags, String> {
    let bits = flags(call, argument, &SEND_FLAGS)?;
    Ok(WriteFlags {
        dont_wait: bits & MSG_DONTWAIT != 0,
        fast_open: bits & MSG_FASTOPEN != 0,
        more: bits & MSG_MORE != 0,
        end_of_record: bits & MSG_EOR != 0,
    })
}

fn read_flags(call: &str, argument: &Argument) -> Result<ReadFlags, String> {
    Ok(ReadFlags { peek: flags(call, argument, &RECEIVE_FLAGS)? & MSG_PEEK != 0 })
}

/// The bytes of all buffers `{..., N}` of a vector or a message.
fn sum(name: &str, argument: &Argument) -> Result<u32, String> {
    let lengths = |text: &str| -> Option<u64> {
        let buffers: Vec<&str> = text.split("{...,").skip(1).collect();
        let length = |rest: &&str| rest.split('}').next()?.trim().parse::<u64>().ok();
        let sum = buffers.iter().map(length).sum::<Option<u64>>();
        sum.filter(|_| !buffers.is_empty())
    };
    let total = match argument {
        Argument::Struct(message) if message.contains("cmsg_") => {
            return Err(format!("{name}: control messages are not supported"));
        }
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

fn shut(how: &str) -> Result<Shut, String> {
    Ok(match how {
        "SHUT_RD" => Shut::Read,
        "SHUT_WR" => Shut::Write,
        "SHUT_RDWR" => Shut::Both,
        _ => return Err(format!("shutdown: {how}, allowed is SHUT_RD, SHUT_WR, SHUT_RDWR")),
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
    "sendfile",
    "open",
    "ioctl",
    "poll",
    "epoll_create",
    "epoll_ctl",
    "epoll_wait",
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
    "getsockopt(FD, LEVEL, OPTION, [VALUE], [LENGTH])",
    "sendfile(FD, FILE, [0], N)",
    "open(\"FILE\", O_RDONLY)",
    "ioctl(FD, SIOCINQ, [N])",
    "poll([{fd=FD, events=POLLIN, revents=POLLIN}], 1, MILLISECONDS)",
    "epoll_create(1)",
    "epoll_ctl(FD, EPOLL_CTL_ADD, FD, {events=EPOLLIN, fd=FD})",
    "epoll_wait(FD, {events=EPOLLIN, fd=FD}, 1, MILLISECONDS)",
];
// Of Linux's `socket.h`.
const MSG_PEEK: i64 = 0x2;
const MSG_DONTWAIT: i64 = 0x40;
const MSG_EOR: i64 = 0x80;
const MSG_NOSIGNAL: i64 = 0x4000;
const MSG_MORE: i64 = 0x8000;
const MSG_FASTOPEN: i64 = 0x2000_0000;
/// Flags of the calls that send.
const SEND_FLAGS: [(&str, i64); 5] = [
    ("MSG_DONTWAIT", MSG_DONTWAIT),
    ("MSG_NOSIGNAL", MSG_NOSIGNAL),
    ("MSG_MORE", MSG_MORE),
    ("MSG_EOR", MSG_EOR),
    ("MSG_FASTOPEN", MSG_FASTOPEN),
];
/// Flags of the calls that receive.
const RECEIVE_FLAGS: [(&str, i64); 3] =
    [("MSG_DONTWAIT", MSG_DONTWAIT), ("MSG_NOSIGNAL", MSG_NOSIGNAL), ("MSG_PEEK", MSG_PEEK)];
const MAX_FD: i64 = 1_000;
const MAX_BYTES: i64 = 100_000_000;
