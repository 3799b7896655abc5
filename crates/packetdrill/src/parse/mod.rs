//! Reads a script: option lines, sysctls in backquotes, events.
//!
//! The language is packetdrill's, as its manual and its published grammar describe it. What concerns a
//! kernel alone is refused by name.

mod argument;
mod call;
mod commands;
mod cursor;
mod head;
mod option;
mod packet;
mod ready;
mod settings;
mod sysctl;

use std::collections::BTreeSet;

use self::cursor::Cursor;
use self::packet::PacketKind;
use crate::error::ScriptError;
use crate::expr;
use crate::fast_open::Cookie;
use crate::script::{Action, Event, Script, Settings, When};

/// Reads a script.
///
/// # Errors
/// For what is not in packetdrill's language, and for what only a kernel has.
///
/// ```
/// let script = weir_packetdrill::parse("0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3")?;
/// assert_eq!(script.events.len(), 1);
///
/// let error = weir_packetdrill::parse("0 splice(3, 0, 4, 0, 10, 0) = 10").unwrap_err();
/// assert!(error.to_string().starts_with("line 1: splice: this call is not supported"));
/// # Ok::<(), weir_packetdrill::ScriptError>(())
/// ```
pub fn parse(text: &str) -> Result<Script, ScriptError> {
    if text.len() > MAX_LEN {
        let message = format!("the script has {} bytes, allowed is up to {MAX_LEN}", text.len());
        return Err(ScriptError { line: 1, message });
    }
    let mut cursor = Cursor::new(text);
    let settings = settings::settings(&mut cursor)?;
    cursor.in_head = false;
    let head = head::head(&cursor.comments)?;
    let mut events: Vec<Event> = Vec::new();
    let mut reader = Reader { settings: settings.clone(), variables: BTreeSet::new() };
    loop {
        cursor.skip();
        if cursor.rest().is_empty() {
            break;
        }
        let event = reader.event(&mut cursor, events.is_empty())?;
        events.extend(event);
    }
    if events.is_empty() {
        return Err(cursor.error("the script has no events"));
    }
    Ok(Script { head, settings, events })
}

/// What events so far have set.
struct Reader {
    settings: Settings,
    variables: BTreeSet<String>,
}

impl Reader {
    /// Reads an event; none for commands without effect.
    fn event(
        &mut self,
        cursor: &mut Cursor<'_>,
        is_first: bool,
    ) -> Result<Option<Event>, ScriptError> {
        let line = cursor.line();
        let timed = cursor.rest().starts_with(['+', '*', '.']) || starts_with_digit(cursor);
        let (at, until) = match timed {
            true => when(cursor)?,
            // An event without a time follows the one before at once.
            false if !is_first => (When::Relative(weir_units::Duration::ZERO), None),
            false => (When::Absolute(weir_units::Duration::ZERO), None),
        };
        cursor.skip();
        let action = self.action(cursor, until)?;
        let exact = matches!(at, When::Absolute(_) | When::Relative(_));
        if !exact && !matches!(action, Action::Expect(_)) {
            let message = "only an expected packet ('>') may have a range or '*' as its time";
            return Err(ScriptError { line, message: message.to_owned() });
        }
        // What a script does to clean up comes without a time, and counts for nothing.
        let cleans = !timed && matches!(action, Action::Configure(_));
        Ok((!cleans).then_some(Event { line, at, action }))
    }

    /// The cookie that the stack grants to the script's side.
    fn own_cookie(&self) -> Cookie {
        let (local, remote) = self.settings.addresses;
        self.settings.fast_open_key.cookie(remote, local)
    }

    fn action(
        &mut self,
        cursor: &mut Cursor<'_>,
        until: Option<When>,
    ) -> Result<Action, ScriptError> {
        let action = if cursor.eat("<") {
            Action::Inject(packet::packet(cursor, PacketKind::Inject, self.own_cookie())?)
        } else if cursor.eat(">") {
            Action::Expect(packet::packet(cursor, PacketKind::Expect, self.own_cookie())?)
        } else if cursor.eat("%{") {
            let line = cursor.line();
            let Some(end) = cursor.rest().find("}%") else {
                return Err(cursor.error("'%{' without '}%'"));
            };
            let code = cursor.advance(end);
            cursor.advance(2);
            Action::Code(expr::parse(code, line, &mut self.variables)?)
        } else if cursor.eat("`") {
            match commands::commands(cursor, &mut self.settings)? {
                Some((state, number)) => Action::Count(state, number),
                None => Action::Configure(Box::new(self.settings.clone())),
            }
        } else {
            return call::call(cursor, until).map(Action::Call);
        };
        match until {
            None => Ok(action),
            Some(_) => Err(cursor.error("only a socket call may last: '0...0.2'")),
        }
    }
}

fn starts_with_digit(cursor: &Cursor<'_>) -> bool {
    cursor.rest().starts_with(|c: char| c.is_ascii_digit())
}

/// `0.1`, `+0.1`, `*`, `0.1~0.2`, `+0.1~+0.2`, and `0.1...0.2` for a call that blocks.
fn when(cursor: &mut Cursor<'_>) -> Result<(When, Option<When>), ScriptError> {
    if cursor.eat("*") {
        return Ok((When::Any, None));
    }
    let relative = cursor.eat("+");
    let start = cursor.seconds()?;
    let one = |at| if relative { When::Relative(at) } else { When::Absolute(at) };
    cursor.skip_blanks();
    let range = cursor.eat("~");
    let blocks = !range && cursor.eat("...");
    if !range && !blocks {
        return Ok((one(start), None));
    }
    cursor.skip_blanks();
    if cursor.eat("+") && !relative {
        return Err(cursor.error("the bounds of a time are both relative or both absolute"));
    }
    cursor.skip();
    let end = cursor.seconds()?;
    if end < start {
        return Err(cursor.error(format!("the time ends at {end}, before it starts at {start}")));
    }
    Ok(match (blocks, relative) {
        (true, _) => (one(start), Some(one(end))),
        (false, true) => (When::RelativeRange(start, end), None),
        (false, false) => (When::AbsoluteRange(start, end), None),
    })
}

/// A thousand events of a hundred characters, several times over.
const MAX_LEN: usize = 1 << 20;

#[cfg(test)]
mod tests;
