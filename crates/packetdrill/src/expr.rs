//! The code in `%{ … }%`: assertions and variables, of integers, names, arithmetic, comparisons, `and`, `or`, `not`.
//!
//! The syntax and the precedence are Python's, in which packetdrill evaluates them. Nothing else of
//! Python is there: no calls, no attributes. `print(…)` has no effect. Division is `//`, as all numbers are integers.

mod lexer;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use self::lexer::{Lexer, Token};
use crate::error::ScriptError;
use crate::info::{self, Name};

/// One statement.
#[derive(Clone, Debug)]
pub struct Statement {
    /// Its line.
    pub line: u32,
    /// As it is written.
    pub text: String,
    kind: StatementKind,
}

#[derive(Clone, Debug)]
enum StatementKind {
    Assert(Expr),
    /// `x = …`; `x += y` is read as `x = x + y`.
    Set(String, Expr),
    /// `print(…)`, which has no effect.
    Print,
}

/// The variables that a script has set, from all of its code.
pub(crate) type Variables = BTreeMap<String, i64>;

/// What an expression is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Expr {
    Number(i64),
    Name(Name),
    Variable(String),
    Not(Box<Expr>),
    Negative(Box<Expr>),
    Binary(Operator, Box<Expr>, Box<Expr>),
    /// `a < b <= c`: each neighbour is compared.
    Chain(Box<Expr>, Vec<(Comparison, Expr)>),
    /// Both sides are conditions; the second is evaluated only if it decides.
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    BitAnd,
    BitOr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Why an assertion does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmet {
    /// The values of its names, or what cannot be computed.
    pub detail: String,
}

impl Statement {
    /// Executes the statement with the values that `value` returns.
    ///
    /// # Errors
    /// If an assertion does not hold, with the values of its names, or if a value cannot be computed.
    pub fn run(&self, value: impl Fn(Name) -> i64, variables: &mut Variables) -> Result<(), Unmet> {
        let computed = |condition| {
            let scope = Scope { value: &value, variables };
            evaluate(condition, &scope).map_err(|error| Unmet { detail: error.to_string() })
        };
        match &self.kind {
            StatementKind::Print => {}
            StatementKind::Set(name, expr) => {
                let result = computed(expr)?;
                variables.insert(name.clone(), result);
            }
            StatementKind::Assert(condition) => {
                if computed(condition)? == 0 {
                    let mut names = Vec::new();
                    collect(condition, &mut names);
                    let shown = |name: &Name| format!("{} = {}", name.text(), value(*name));
                    let detail = names.iter().map(shown).collect::<Vec<_>>().join(", ");
                    return Err(Unmet { detail });
                }
            }
        }
        Ok(())
    }
}

/// Reads the code between `%{` and `}%`, which starts in `line`. `known` are the variables that were set before.
pub(crate) fn parse(
    code: &str,
    line: u32,
    known: &mut BTreeSet<String>,
) -> Result<Vec<Statement>, ScriptError> {
    let mut statements = Vec::new();
    let mut lexer = Lexer::new(code, line);
    loop {
        while lexer.eat(&Token::End) {}
        if lexer.is_done() {
            break;
        }
        let line = lexer.line();
        let start = lexer.position();
        let kind = statement(&mut lexer, known)?;
        let text = code[start..lexer.position()].split_whitespace().collect::<Vec<_>>().join(" ");
        if !lexer.is_done() && !lexer.eat(&Token::End) {
            let message = format!("{}: expected the end of the expression", lexer.next()?);
            return Err(ScriptError { line: lexer.line(), message });
        }
        statements.push(Statement { line, text, kind });
    }
    if statements.is_empty() {
        return Err(ScriptError { line, message: "%{ }% without a statement".to_owned() });
    }
    Ok(statements)
}

fn statement(
    lexer: &mut Lexer<'_>,
    known: &mut BTreeSet<String>,
) -> Result<StatementKind, ScriptError> {
    let line = lexer.line();
    let first = lexer.next()?;
    let Token::Word(word) = &first else {
        return Err(ScriptError { line, message: unknown_statement(&first) });
    };
    if word == "print" {
        lexer.skip_statement();
        return Ok(StatementKind::Print);
    }
    if word == "assert" {
        let mut parser = Parser { lexer, known, depth: 0, atoms: 0 };
        let condition = parser.or()?;
        if lexer.eat(&Token::Symbol(",")) {
            // Python shows its value; we show the values of all names.
            lexer.skip_statement();
        }
        return Ok(StatementKind::Assert(condition));
    }
    let signs = [("=", None), ("+=", Some(Operator::Add)), ("-=", Some(Operator::Subtract))];
    let sign = signs.iter().find(|(sign, _)| lexer.eat(&Token::Symbol(sign)));
    let Some((_, change)) = sign else {
        return Err(ScriptError { line, message: unknown_statement(&first) });
    };
    let mut parser = Parser { lexer, known, depth: 0, atoms: 0 };
    let value = parser.or()?;
    if change.is_some() && !known.contains(word) {
        return Err(ScriptError { line, message: format!("'{word}' was not set before") });
    }
    known.insert(word.clone());
    Ok(StatementKind::Set(
        word.clone(),
        match change {
            None => value,
            Some(operator) => {
                Expr::Binary(*operator, Expr::Variable(word.clone()).into(), value.into())
            }
        },
    ))
}

fn unknown_statement(found: &Token) -> String {
    format!(
        "{found}: only 'assert EXPRESSION', 'NAME = EXPRESSION' and 'print(...)' are supported in %{{ }}%"
    )
}

struct Parser<'a, 'b> {
    lexer: &'a mut Lexer<'b>,
    known: &'a BTreeSet<String>,
    depth: u32,
    /// Operands so far: a long sum is as deep as it is long.
    atoms: u32,
}

impl Parser<'_, '_> {
    fn or(&mut self) -> Result<Expr, ScriptError> {
        self.deeper()?;
        let mut left = self.and()?;
        while self.lexer.eat_word("or") {
            left = Expr::Or(left.into(), self.and()?.into());
        }
        self.depth -= 1;
        Ok(left)
    }

    fn and(&mut self) -> Result<Expr, ScriptError> {
        let mut left = self.not()?;
        while self.lexer.eat_word("and") {
            left = Expr::And(left.into(), self.not()?.into());
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<Expr, ScriptError> {
        if !self.lexer.eat_word("not") {
            return self.comparison();
        }
        self.deeper()?;
        let inner = self.not()?;
        self.depth -= 1;
        Ok(Expr::Not(inner.into()))
    }

    fn comparison(&mut self) -> Result<Expr, ScriptError> {
        let first = self.bits()?;
        let mut rest = Vec::new();
        while let Some(comparison) = self.eat_any(&COMPARISONS) {
            rest.push((comparison, self.bits()?));
        }
        Ok(if rest.is_empty() { first } else { Expr::Chain(first.into(), rest) })
    }

    fn bits(&mut self) -> Result<Expr, ScriptError> {
        let mut left = self.masked()?;
        while self.lexer.eat(&Token::Symbol("|")) {
            left = Expr::Binary(Operator::BitOr, left.into(), self.masked()?.into());
        }
        Ok(left)
    }

    fn masked(&mut self) -> Result<Expr, ScriptError> {
        let mut left = self.sum()?;
        while self.lexer.eat(&Token::Symbol("&")) {
            left = Expr::Binary(Operator::BitAnd, left.into(), self.sum()?.into());
        }
        Ok(left)
    }

    fn sum(&mut self) -> Result<Expr, ScriptError> {
        let mut left = self.product()?;
        while let Some(operator) = self.eat_any(&SUMS) {
            left = Expr::Binary(operator, left.into(), self.product()?.into());
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Expr, ScriptError> {
        let mut left = self.unary()?;
        while let Some(operator) = self.eat_any(&PRODUCTS) {
            left = Expr::Binary(operator, left.into(), self.unary()?.into());
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expr, ScriptError> {
        if !self.lexer.eat(&Token::Symbol("-")) {
            return self.atom();
        }
        self.deeper()?;
        let inner = self.unary()?;
        self.depth -= 1;
        Ok(Expr::Negative(inner.into()))
    }

    fn atom(&mut self) -> Result<Expr, ScriptError> {
        let line = self.lexer.line();
        self.atoms += 1;
        if self.atoms > MAX_ATOMS {
            let message = format!("the expression has more than {MAX_ATOMS} operands");
            return Err(ScriptError { line, message });
        }
        match self.lexer.next()? {
            Token::Number(number) => Ok(Expr::Number(number)),
            Token::Word(word) if self.known.contains(&word) => Ok(Expr::Variable(word)),
            Token::Word(word) => match (Name::find(&word), info::constant(&word)) {
                (Some(name), _) => Ok(Expr::Name(name)),
                (None, Some(number)) => Ok(Expr::Number(number)),
                (None, None) => Err(ScriptError { line, message: Name::unknown(&word) }),
            },
            Token::Symbol("(") => {
                let inner = self.or()?;
                if self.lexer.eat(&Token::Symbol(")")) {
                    return Ok(inner);
                }
                let found = self.lexer.next()?;
                let message = format!("{found}: expected ')'");
                Err(ScriptError { line: self.lexer.line(), message })
            }
            found => {
                let message = format!("{found}: expected a number, a name or '('");
                Err(ScriptError { line, message })
            }
        }
    }

    fn eat_any<T: Copy>(&mut self, among: &[(&'static str, T)]) -> Option<T> {
        let found = among.iter().find(|(symbol, _)| self.lexer.eat(&Token::Symbol(symbol)));
        found.map(|(_, meaning)| *meaning)
    }

    fn deeper(&mut self) -> Result<(), ScriptError> {
        self.depth += 1;
        if self.depth <= MAX_DEPTH {
            return Ok(());
        }
        let message = format!("the expression has more than {MAX_DEPTH} levels");
        Err(ScriptError { line: self.lexer.line(), message })
    }
}

/// What has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Undefined {
    Overflow,
    DivisionByZero,
}

impl fmt::Display for Undefined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Overflow => "a value exceeds 64 bits",
            Self::DivisionByZero => "a division by zero",
        })
    }
}

/// What the names of an expression stand for.
struct Scope<'a, F> {
    value: &'a F,
    variables: &'a Variables,
}

/// A condition is 0 or 1, as in Python.
fn evaluate<F: Fn(Name) -> i64>(expr: &Expr, value: &Scope<'_, F>) -> Result<i64, Undefined> {
    Ok(match expr {
        Expr::Number(number) => *number,
        Expr::Name(name) => (value.value)(*name),
        // The parser has seen that it is set.
        Expr::Variable(name) => value.variables.get(name).copied().unwrap_or_default(),
        Expr::Not(inner) => i64::from(evaluate(inner, value)? == 0),
        Expr::Negative(inner) => {
            evaluate(inner, value)?.checked_neg().ok_or(Undefined::Overflow)?
        }
        Expr::Binary(operator, left, right) => {
            apply(*operator, evaluate(left, value)?, evaluate(right, value)?)?
        }
        Expr::Chain(first, rest) => {
            let mut left = evaluate(first, value)?;
            for (comparison, next) in rest {
                let right = evaluate(next, value)?;
                if !holds(*comparison, left, right) {
                    return Ok(0);
                }
                left = right;
            }
            1
        }
        Expr::And(left, right) => match evaluate(left, value)? {
            0 => 0,
            _ => evaluate(right, value)?,
        },
        Expr::Or(left, right) => match evaluate(left, value)? {
            0 => evaluate(right, value)?,
            decided => decided,
        },
    })
}

fn apply(operator: Operator, left: i64, right: i64) -> Result<i64, Undefined> {
    let divides = matches!(operator, Operator::Divide | Operator::Remainder);
    if divides && right == 0 {
        return Err(Undefined::DivisionByZero);
    }
    let result = match operator {
        Operator::Add => left.checked_add(right),
        Operator::Subtract => left.checked_sub(right),
        Operator::Multiply => left.checked_mul(right),
        // Python rounds towards minus infinity.
        Operator::Divide => left
            .checked_div(right)
            .map(|quotient| quotient - i64::from(left % right != 0 && (left < 0) != (right < 0))),
        Operator::Remainder => left
            .checked_rem(right)
            .map(|rest| if rest != 0 && (rest < 0) != (right < 0) { rest + right } else { rest }),
        Operator::BitAnd => Some(left & right),
        Operator::BitOr => Some(left | right),
    };
    result.ok_or(Undefined::Overflow)
}

const fn holds(comparison: Comparison, left: i64, right: i64) -> bool {
    match comparison {
        Comparison::Equal => left == right,
        Comparison::NotEqual => left != right,
        Comparison::Less => left < right,
        Comparison::LessOrEqual => left <= right,
        Comparison::Greater => left > right,
        Comparison::GreaterOrEqual => left >= right,
    }
}

/// The names in an expression, each once.
fn collect(expr: &Expr, names: &mut Vec<Name>) {
    match expr {
        Expr::Number(_) | Expr::Variable(_) => {}
        Expr::Name(name) if names.contains(name) => {}
        Expr::Name(name) => names.push(*name),
        Expr::Not(inner) | Expr::Negative(inner) => collect(inner, names),
        Expr::Binary(_, left, right) | Expr::And(left, right) | Expr::Or(left, right) => {
            collect(left, names);
            collect(right, names);
        }
        Expr::Chain(first, rest) => {
            collect(first, names);
            rest.iter().for_each(|(_, next)| collect(next, names));
        }
    }
}

const COMPARISONS: [(&str, Comparison); 6] = [
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];
const SUMS: [(&str, Operator); 2] = [("+", Operator::Add), ("-", Operator::Subtract)];
const PRODUCTS: [(&str, Operator); 3] =
    [("*", Operator::Multiply), ("//", Operator::Divide), ("%", Operator::Remainder)];
/// Deep enough for any assertion, and for the stack.
const MAX_DEPTH: u32 = 50;
const MAX_ATOMS: u32 = 200;

#[cfg(test)]
mod tests;
