//! What calls that wait for events say: `{fd=4, events=POLLOUT, revents=POLLOUT}`.

use weir_units::Duration;

use super::argument::Argument;
use crate::script::{CallKind, Interest, Watched};

/// `poll([{fd=4, events=POLLOUT, revents=POLLOUT}], 1, 1000)`.
pub(super) fn poll(list: &Argument, timeout: &Argument) -> Option<CallKind> {
    let Argument::List(list) = list else { return None };
    let watched = |one: &Argument| {
        let Argument::Struct(text) = one else { return None };
        let fd = field(text, "fd")?.parse().ok()?;
        let events = bits(field(text, "events")?)?;
        Some(Watched { fd, events, ready: bits(field(text, "revents")?)? })
    };
    Some(CallKind::Poll(list.iter().map(watched).collect::<Option<_>>()?, millis(timeout)?))
}

/// A timeout in milliseconds; a negative one never ends.
pub(super) fn millis(argument: &Argument) -> Option<Option<Duration>> {
    match argument {
        Argument::Number(millis @ 0..=MAX_TIMEOUT) => {
            Some(Some(Duration::from_millis(*millis as u64)))
        }
        Argument::Number(..0) => Some(None),
        _ => None,
    }
}

/// `events=EPOLLIN|EPOLLET, fd=4`; without a descriptor nothing is expected.
pub(super) fn interest(text: &str) -> Option<Interest> {
    let fd = field(text, "fd").map_or(Some(0), |fd| fd.parse().ok())?;
    Some(Interest { fd, events: bits(field(text, "events")?)? })
}

/// The value of a field of a structure.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let fields = text.split(',').filter_map(|field| field.split_once('='));
    fields.map(|(key, value)| (key.trim(), value.trim())).find(|(key, _)| *key == name).map(|f| f.1)
}

/// Events of poll(2) and epoll(7), which have the same numbers.
fn bits(names: &str) -> Option<u32> {
    names.split('|').try_fold(0, |bits, name| {
        let name = name.trim();
        let short = name.trim_start_matches("EPOLL").trim_start_matches("POLL");
        let bit = match name {
            "0" => Some(0),
            _ => EVENTS.iter().find(|(event, _)| *event == short).map(|(_, bit)| *bit),
        };
        Some(bits | bit?)
    })
}

/// Events, without the words' beginning.
const EVENTS: [(&str, u32); 8] = [
    ("IN", 0x1),
    ("PRI", 0x2),
    ("OUT", 0x4),
    ("ERR", 0x8),
    ("HUP", 0x10),
    ("RDHUP", 0x2000),
    ("ONESHOT", 1 << 30),
    ("ET", 1 << 31),
];
const MAX_TIMEOUT: i64 = 3_600_000;
