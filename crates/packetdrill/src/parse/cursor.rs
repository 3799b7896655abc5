//! A position in the text of a script: skips white space and comments, reads words and numbers.

use weir_units::Duration;

use crate::error::ScriptError;

/// The rest of a script.
pub(super) struct Cursor<'a> {
    rest: &'a str,
    line: u32,
    /// The comments of the head, with `#` removed.
    pub(super) comments: Vec<(u32, &'a str)>,
    /// Whether comments are still those of the head.
    pub(super) in_head: bool,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text, line: 1, comments: Vec::new(), in_head: true }
    }

    pub(super) const fn line(&self) -> u32 {
        self.line
    }

    pub(super) const fn rest(&self) -> &'a str {
        self.rest
    }

    /// Takes `len` bytes, which end at the boundary of a character.
    pub(super) fn advance(&mut self, len: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(len);
        // A script is shorter than 2^32 lines.
        self.line += taken.bytes().filter(|byte| *byte == b'\n').count() as u32;
        self.rest = rest;
        taken
    }

    /// Skips white space and comments: `# …`, `// …`, `/* … */`.
    pub(super) fn skip(&mut self) {
        loop {
            let blank = self.rest.len() - self.rest.trim_start().len();
            self.advance(blank);
            let line = self.rest.find('\n').unwrap_or(self.rest.len());
            if let Some(comment) = self.rest[..line].strip_prefix('#') {
                if self.in_head {
                    self.comments.push((self.line, comment.trim()));
                }
                self.advance(line);
            } else if self.rest.starts_with("//") {
                self.advance(line);
            } else if self.rest.starts_with("/*") {
                let end = self.rest.find("*/").map_or(self.rest.len(), |at| at + 2);
                self.advance(end);
            } else {
                return;
            }
        }
    }

    /// Skips white space within the line.
    pub(super) fn skip_blanks(&mut self) {
        let blank = self.rest.len() - self.rest.trim_start_matches([' ', '\t']).len();
        self.advance(blank);
    }

    /// Skips what `skip` does and takes `token`, if it comes next.
    pub(super) fn eat(&mut self, token: &str) -> bool {
        self.skip();
        let found = self.rest.starts_with(token);
        if found {
            self.advance(token.len());
        }
        found
    }

    /// The same for a whole word.
    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        self.skip();
        let found = self.peek_word() == word;
        if found {
            self.advance(word.len());
        }
        found
    }

    pub(super) fn expect(&mut self, token: &str, after: &str) -> Result<(), ScriptError> {
        if self.eat(token) {
            return Ok(());
        }
        Err(self.error(format!("expected '{token}' after {after}, found {}", self.found())))
    }

    /// Letters, digits and underscores from here on.
    pub(super) fn peek_word(&self) -> &'a str {
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        &self.rest[..end.unwrap_or(self.rest.len())]
    }

    pub(super) fn word(&mut self) -> &'a str {
        self.skip();
        let len = self.peek_word().len();
        self.advance(len)
    }

    /// A decimal or hexadecimal number that is at most `most`.
    pub(super) fn number(&mut self, what: &str, most: u64) -> Result<u64, ScriptError> {
        self.skip();
        let word = self.peek_word();
        let number = match word.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok(),
            None => word.parse().ok(),
        };
        let Some(number) = number.filter(|number| *number <= most) else {
            let found = self.found();
            return Err(self.error(format!("{what} = {found}, allowed is 0 to {most}")));
        };
        self.advance(word.len());
        Ok(number)
    }

    pub(super) fn number_u32(&mut self, what: &str) -> Result<u32, ScriptError> {
        self.number(what, u64::from(u32::MAX)).map(|number| number as u32)
    }

    /// Seconds with up to nine decimals, as in `.1` or `0.100`; at most an hour.
    pub(super) fn seconds(&mut self) -> Result<Duration, ScriptError> {
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let whole_len = digits(self.rest);
        let (whole, rest) = self.rest.split_at(whole_len);
        // `0...0.2` is a range of a blocking call.
        let fraction = match rest.strip_prefix('.').filter(|rest| !rest.starts_with('.')) {
            Some(rest) => &rest[..digits(rest)],
            None => "",
        };
        let len = whole_len + if fraction.is_empty() { 0 } else { 1 + fraction.len() };
        let whole: Option<u64> = if whole.is_empty() { Some(0) } else { whole.parse().ok() };
        let seconds = whole.filter(|whole| *whole <= MAX_SECONDS && len > 0 && fraction.len() <= 9);
        let Some(seconds) = seconds else {
            let found = self.found();
            let limit = format!("0 to {MAX_SECONDS} seconds with up to 9 decimals");
            return Err(self.error(format!("time = {found}, allowed is {limit}")));
        };
        let nanos: u64 = format!("{fraction:0<9}").parse().unwrap_or_default();
        self.advance(len);
        Ok(Duration::from_secs(seconds) + Duration::from_nanos(nanos))
    }

    /// What comes next, for a message.
    pub(super) fn found(&self) -> String {
        let line = self.rest.lines().next().unwrap_or_default();
        let word = line.split_whitespace().next().unwrap_or_default();
        match word {
            "" if self.rest.is_empty() => "the end of the file".to_owned(),
            "" => "the end of the line".to_owned(),
            word => format!("'{}'", word.chars().take(40).collect::<String>()),
        }
    }

    pub(super) fn error(&self, message: impl Into<String>) -> ScriptError {
        ScriptError { line: self.line, message: message.into() }
    }
}

/// Longer scripts are a mistake.
const MAX_SECONDS: u64 = 3_600;
