//! Option lines (`--stack=rack/cubic`) and sysctls in backquotes.

use weir_transport::Stack;
use weir_units::{Duration, known};

use super::cursor::Cursor;
use crate::error::ScriptError;
use crate::script::{Settings, Sysctl};

/// Reads everything before the first event.
pub(super) fn settings(cursor: &mut Cursor<'_>) -> Result<Settings, ScriptError> {
    let mut settings = Settings {
        stack: "rack/cubic".parse::<Stack>().map_err(|error| cursor.error(error.to_string()))?,
        tolerance: DEFAULT_TOLERANCE,
        sysctls: Vec::new(),
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
        _ => {
            let names = known(name, ["stack", "tolerance_usecs", "ip_version"].into_iter());
            return Err(cursor.error(format!("--{name}={value}: not supported; {names}")));
        }
    }
    cursor.advance(end);
    Ok(())
}

/// `sysctl -q net.ipv4.tcp_ecn=1`, several of them on lines of their own. No shell runs.
fn commands(cursor: &mut Cursor<'_>, settings: &mut Settings) -> Result<(), ScriptError> {
    let line = cursor.line();
    let Some(end) = cursor.rest().find('`') else {
        return Err(cursor.error("a '`' without its second one"));
    };
    let text = cursor.advance(end);
    cursor.advance(1);
    for (index, command) in text.split(['\n', ';']).enumerate() {
        let mut words = command.split_whitespace();
        let Some(program) = words.next() else { continue };
        let refused = |message: String| ScriptError { line: line + index as u32, message };
        if program != "sysctl" {
            return Err(refused(format!(
                "`{program}`: only sysctl is supported, no other command"
            )));
        }
        for word in words.filter(|word| !["-q", "-w"].contains(word)) {
            settings.sysctls.push(sysctl(word).map_err(refused)?);
        }
        if settings.sysctls.len() > MAX_SYSCTLS {
            return Err(refused(format!("more than {MAX_SYSCTLS} sysctls")));
        }
    }
    Ok(())
}

fn sysctl(text: &str) -> Result<(Sysctl, i64), String> {
    let (path, value) = text.split_once('=').unwrap_or((text, ""));
    let name = path.strip_prefix("net.ipv4.").unwrap_or(path);
    let Some(sysctl) = Sysctl::ALL.iter().find(|sysctl| sysctl.name() == name) else {
        let names = known(name, Sysctl::ALL.iter().map(|sysctl| sysctl.name()));
        return Err(format!("sysctl {path}: not supported; {names}"));
    };
    let (least, most) = sysctl.allowed().into_inner();
    match value.parse().ok().filter(|value| sysctl.allowed().contains(value)) {
        Some(value) => Ok((*sysctl, value)),
        None => Err(format!("sysctl {path} = '{value}', allowed is {least} to {most}")),
    }
}

/// packetdrill's own.
const DEFAULT_TOLERANCE: Duration = Duration::from_millis(4);
const MAX_TOLERANCE: u64 = 60_000_000;
const MAX_SYSCTLS: usize = 100;
