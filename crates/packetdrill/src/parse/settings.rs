//! Option lines (`--stack=rack/cubic`) and sysctls in backquotes.

use weir_transport::Stack;
use weir_units::{Duration, known};

use super::cursor::Cursor;
use super::sysctl;
use crate::error::ScriptError;
use crate::script::Settings;

/// Reads everything before the first event.
pub(super) fn settings(cursor: &mut Cursor<'_>) -> Result<Settings, ScriptError> {
    let mut settings = Settings {
        stack: "rack/cubic".parse::<Stack>().map_err(|error| cursor.error(error.to_string()))?,
        tolerance: DEFAULT_TOLERANCE,
        sysctls: Vec::new(),
        receive_memory: None,
        neutral: Vec::new(),
    };
    loop {
        if cursor.eat("--") {
            option(cursor, &mut settings)?;
        } else if cursor.eat("`") {
            commands(cursor, &mut settings)?;
        } else {
            return Ok(settings);
        }
    }
}

fn option(cursor: &mut Cursor<'_>, settings: &mut Settings) -> Result<(), ScriptError> {
    let end = cursor.rest().find(char::is_whitespace).unwrap_or(cursor.rest().len());
    let (name, value) = cursor.rest()[..end].split_once('=').unwrap_or((&cursor.rest()[..end], ""));
    match name {
        "stack" => {
            settings.stack = value.parse().map_err(|error| cursor.error(format!("{error}")))?;
        }
        "tolerance_usecs" => {
            let micros = value.parse().ok().filter(|micros| *micros <= MAX_TOLERANCE);
            let Some(micros) = micros else {
                let allowed = format!("allowed is 0 to {MAX_TOLERANCE}");
                return Err(cursor.error(format!("--tolerance_usecs = '{value}', {allowed}")));
            };
            settings.tolerance = Duration::from_micros(micros);
        }
        "ip_version" if value == "ipv4" => {}
        "mtu" if value == "1500" => {}
        _ => {
            let names = known(name, ["stack", "tolerance_usecs", "ip_version", "mtu"].into_iter());
            return Err(cursor.error(format!("--{name}={value}: not supported; {names}")));
        }
    }
    cursor.advance(end);
    Ok(())
}

/// Commands on lines of their own: `sysctl -q net.ipv4.tcp_ecn=1`, and the scripts with which packetdrill's own
/// tests set their defaults. No shell runs.
fn commands(cursor: &mut Cursor<'_>, settings: &mut Settings) -> Result<(), ScriptError> {
    let line = cursor.line();
    let Some(end) = cursor.rest().find('`') else {
        return Err(cursor.error("a '`' without its second one"));
    };
    let text = cursor.advance(end);
    cursor.advance(1);
    for (index, command) in text.split(['\n', ';']).enumerate() {
        let words = sysctl::words(command.trim_end_matches('\\'));
        let Some((program, words)) = words.split_first() else { continue };
        let refused = |message: String| ScriptError { line: line + index as u32, message };
        let file = program.rsplit('/').next().unwrap_or(program);
        match file {
            "defaults.sh" => sysctl::set_defaults(settings),
            "sysctl" | "set_sysctls.py" => {
                for word in words.iter().filter(|word| !["-q", "-w"].contains(&word.as_str())) {
                    sysctl::set(word, settings).map_err(refused)?;
                }
            }
            _ if program.starts_with('#') => {}
            _ => {
                return Err(refused(format!(
                    "`{program}`: only sysctl, defaults.sh and set_sysctls.py are supported, no other command"
                )));
            }
        }
        if settings.sysctls.len() + settings.neutral.len() > MAX_SYSCTLS {
            return Err(refused(format!("more than {MAX_SYSCTLS} sysctls")));
        }
    }
    Ok(())
}

/// packetdrill's own.
const DEFAULT_TOLERANCE: Duration = Duration::from_millis(4);
const MAX_TOLERANCE: u64 = 60_000_000;
const MAX_SYSCTLS: usize = 100;
