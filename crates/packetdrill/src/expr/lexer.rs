//! The words of an expression.

use std::fmt;

use crate::error::ScriptError;

/// A word, a number or a symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Number(i64),
    Word(String),
    Symbol(&'static str),
    /// The end of a statement: a line outside parentheses, or `;`.
    End,
    /// The end of the code.
    Done,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "'{number}'"),
            Self::Word(word) => write!(f, "'{}'", word.chars().take(40).collect::<String>()),
            Self::Symbol(symbol) => write!(f, "'{symbol}'"),
            Self::End => f.write_str("the end of the line"),
            Self::Done => f.write_str("the end of the code"),
        }
    }
}

/// The code, of which one token is read ahead.
pub(super) struct Lexer<'a> {
    code: &'a str,
    at: usize,
    line: u32,
    parentheses: u32,
}

impl<'a> Lexer<'a> {
    pub(super) const fn new(code: &'a str, line: u32) -> Self {
        Self { code, at: 0, line, parentheses: 0 }
    }

    pub(super) const fn line(&self) -> u32 {
        self.line
    }

    /// Where the next token starts, in bytes.
    pub(super) const fn position(&self) -> usize {
        self.at
    }

    pub(super) fn is_done(&mut self) -> bool {
        self.skip_blanks();
        self.at == self.code.len()
    }

    /// Takes the next token if it is this one.
    pub(super) fn eat(&mut self, wanted: &Token) -> bool {
        let before = (self.at, self.line, self.parentheses);
        if self.next().is_ok_and(|token| token == *wanted) {
            return true;
        }
        (self.at, self.line, self.parentheses) = before;
        false
    }

    /// Skips to the end of the statement, whatever comes before it: texts, and lists in parentheses.
    pub(super) fn skip_statement(&mut self) {
        let (mut quote, mut depth) = (None, self.parentheses);
        for (at, letter) in self.code[self.at..].char_indices() {
            match (quote, letter) {
                (Some(mark), _) if mark == letter => quote = None,
                (Some(_), _) => {}
                (None, '"' | '\'') => quote = Some(letter),
                (None, '(' | '[') => depth += 1,
                (None, ')' | ']') => depth = depth.saturating_sub(1),
                (None, '\n' | ';') if depth == 0 => {
                    self.at += at;
                    return;
                }
                (None, _) => {}
            }
            self.line += u32::from(letter == '\n');
        }
        self.at = self.code.len();
    }

    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        self.eat(&Token::Word(word.to_owned()))
    }

    pub(super) fn next(&mut self) -> Result<Token, ScriptError> {
        self.skip_blanks();
        let rest = &self.code[self.at..];
        let Some(first) = rest.chars().next() else { return Ok(Token::Done) };
        if first == '\n' || first == ';' {
            self.at += 1;
            self.line += u32::from(first == '\n');
            return Ok(Token::End);
        }
        if first.is_ascii_digit() {
            return self.number();
        }
        if first.is_ascii_alphabetic() || first == '_' {
            let word = self.word();
            return Ok(Token::Word(word.to_owned()));
        }
        let Some(symbol) = SYMBOLS.iter().find(|symbol| rest.starts_with(*symbol)) else {
            return Err(self.error(format!("'{first}' has no meaning in an expression")));
        };
        if *symbol == "/" {
            return Err(self.error("'/': all numbers are integers, use '//'"));
        }
        self.at += symbol.len();
        match *symbol {
            "(" => self.parentheses += 1,
            ")" => self.parentheses = self.parentheses.saturating_sub(1),
            _ => {}
        }
        Ok(Token::Symbol(symbol))
    }

    fn number(&mut self) -> Result<Token, ScriptError> {
        let word = self.word();
        let number = match word.strip_prefix("0x") {
            Some(hex) => i64::from_str_radix(hex, 16).ok(),
            None => word.parse().ok(),
        };
        let shown: String = word.chars().take(40).collect();
        number.map(Token::Number).ok_or_else(|| self.error(format!("'{shown}' is no integer")))
    }

    fn word(&mut self) -> &'a str {
        let rest = &self.code[self.at..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let word = &rest[..end.unwrap_or(rest.len())];
        self.at += word.len();
        word
    }

    /// Lines end a statement, but not within parentheses or after a backslash.
    fn skip_blanks(&mut self) {
        while let Some(next) = self.code[self.at..].chars().next() {
            if self.code[self.at..].starts_with("\\\n") {
                self.line += 1;
                self.at += 2;
                continue;
            }
            if next == '#' {
                let rest = &self.code[self.at..];
                self.at += rest.find('\n').unwrap_or(rest.len());
                continue;
            }
            let line = next == '\n' && self.parentheses > 0;
            if !(line || (next.is_whitespace() && next != '\n')) {
                return;
            }
            self.line += u32::from(line);
            self.at += next.len_utf8();
        }
    }

    fn error(&self, message: impl Into<String>) -> ScriptError {
        ScriptError { line: self.line, message: message.into() }
    }
}

/// The longer ones first.
const SYMBOLS: [&str; 20] = [
    "==", "!=", "<=", ">=", "//", "+=", "-=", "<", ">", "+", "-", "*", "/", "%", "(", ")", ",",
    "&", "|", "=",
];
