//! Option lines, as in `--stack=rack/cubic`, and commands before the first event.

use std::net::Ipv4Addr;

use weir_transport::Stack;
use weir_units::{Duration, known};

use super::commands;
use super::cursor::Cursor;
use crate::error::ScriptError;
use crate::fast_open::Key;
use crate::script::{FastOpenSwitch, Settings};

/// Reads everything before the first event.
pub(super) fn settings(cursor: &mut Cursor<'_>) -> Result<Settings, ScriptError> {
    let mut settings = Settings {
        stack: "rack/cubic".parse::<Stack>().map_err(|error| cursor.error(error.to_string()))?,
        tolerance: DEFAULT_TOLERANCE,
        sysctls: Vec::new(),
        receive_memory: None,
        send_memory: None,
        not_sent: 0,
        neutral: Vec::new(),
        tick: None,
        paces: false,
        mtu: DEFAULT_MTU,
        ipv6: false,
        freebsd: false,
        fast_open: FastOpenSwitch::Client as u32,
        fast_open_key: Key::default(),
        addresses: (LOCAL, REMOTE),
        flushes: 0,
    };
    loop {
        if cursor.eat("--") {
            option(cursor, &mut settings)?;
        } else if cursor.eat("`") {
            commands::commands(cursor, &mut settings)?;
        } else {
            return Ok(settings);
        }
    }
}

fn option(cursor: &mut Cursor<'_>, settings: &mut Settings) -> Result<(), ScriptError> {
    let end = cursor.rest().find(char::is_whitespace).unwrap_or(cursor.rest().len());
    let (name, value) = cursor.rest()[..end].split_once('=').unwrap_or((&cursor.rest()[..end], ""));
    let number = |allowed: std::ops::RangeInclusive<u64>| {
        let number = value.parse().ok().filter(|number| allowed.contains(number));
        let (least, most) = (allowed.start(), allowed.end());
        let refused =
            || cursor.error(format!("--{name} = '{value}', allowed is {least} to {most}"));
        number.ok_or_else(refused)
    };
    let address = || {
        let refused = || cursor.error(format!("--{name} = '{value}': no address of IPv4"));
        value.parse::<Ipv4Addr>().map_err(|_| refused())
    };
    match name {
        "stack" => {
            settings.stack = value.parse().map_err(|error| cursor.error(format!("{error}")))?;
        }
        "tolerance_usecs" => {
            settings.tolerance = Duration::from_micros(number(0..=MAX_TOLERANCE)?);
        }
        "tcp_ts_tick_usecs" => settings.tick = Some(number(1..=1_000_000)? as u32),
        "ip_version" if ["ipv4", "ipv4-mapped-ipv6"].contains(&value) => settings.ipv6 = false,
        "ip_version" if value == "ipv6" => settings.ipv6 = true,
        "mtu" => settings.mtu = number(576..=65_535)? as u16,
        "local_ip" if settings.ipv6 || value.contains(':') => settings.ipv6 = true,
        "remote_ip" if settings.ipv6 || value.contains(':') => settings.ipv6 = true,
        "local_ip" => settings.addresses.0 = address()?,
        "remote_ip" => settings.addresses.1 = address()?,
        // How packetdrill injects large segments and reads echoed timestamps: ours are whole, and always scaled.
        "mss" | "tcp_ts_ecr_scaled" | "send_omit_free" => {}
        _ => {
            let names = known(name, KNOWN.into_iter());
            return Err(cursor.error(format!("--{name}={value}: not supported; {names}")));
        }
    }
    cursor.advance(end);
    Ok(())
}

const KNOWN: [&str; 10] = [
    "stack",
    "tolerance_usecs",
    "tcp_ts_tick_usecs",
    "tcp_ts_ecr_scaled",
    "ip_version",
    "mtu",
    "mss",
    "local_ip",
    "remote_ip",
    "send_omit_free",
];
/// Ethernet's.
const DEFAULT_MTU: u16 = 1_500;
/// With which packetdrill's own tests run.
const LOCAL: Ipv4Addr = Ipv4Addr::new(192, 168, 0, 1);
const REMOTE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// packetdrill's own.
const DEFAULT_TOLERANCE: Duration = Duration::from_millis(4);
const MAX_TOLERANCE: u64 = 60_000_000;
