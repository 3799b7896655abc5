//! Arguments of calls.

use super::cursor::Cursor;
use crate::error::ScriptError;

/// An argument, read but not yet understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Argument {
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

/// Reads arguments up to `end`.
pub(super) fn arguments(
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

const MAX_ARGUMENTS: usize = 8;
const MAX_DEPTH: usize = 4;
const MAX_NAME: usize = 200;
