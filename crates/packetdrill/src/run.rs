//! Runs a script against an endpoint, and reports the first difference as packetdrill does.

use std::collections::VecDeque;
use std::fmt;

use weir_units::Duration;

use crate::compare::{continues, difference};
use crate::endpoint::{Endpoint, EndpointError, Returned, Sent};
use crate::expr::{Statement, Variables};
use crate::packet::Numbers;
use crate::script::{Action, Call, Event, Packet, Script, When};

/// Where and how the stack departs from a script.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Failure {
    /// The event's line.
    pub line: u32,
    /// The time since the script's start.
    pub at: Duration,
    /// What differs; expected and actual packet on lines of their own.
    pub message: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

/// Why a script did not pass.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The stack does something else.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// The endpoint cannot run the script.
    #[error("line {line}: {error}")]
    Endpoint {
        /// The event's line.
        line: u32,
        /// Why.
        error: EndpointError,
    },
}

/// Runs `script` against `endpoint`, whose clock is at zero.
///
/// # Errors
/// At the first packet, result, assertion or time that is not as expected.
pub fn run(script: &Script, endpoint: &mut dyn Endpoint) -> Result<(), RunError> {
    let mut runner = Runner {
        endpoint,
        numbers: Numbers::default(),
        connection: 0,
        sent: VecDeque::new(),
        variables: Variables::new(),
        least_tolerance: script.settings.tolerance,
        tick: script.settings.tick,
        last: Duration::ZERO,
        anchor: None,
        line: 0,
        blocked: None,
    };
    for event in &script.events {
        runner.line = event.line;
        runner.event(event)?;
    }
    runner.finish()
}

struct Runner<'a> {
    endpoint: &'a mut dyn Endpoint,
    /// Those of the newest connection.
    numbers: Numbers,
    connection: u32,
    /// Its packets that no event has taken yet. Those of a connection that came before are free, as in packetdrill.
    sent: VecDeque<Sent>,
    variables: Variables,
    least_tolerance: Duration,
    tick: Option<u32>,
    /// When the event before happened. Relative times count from then, as in packetdrill
    /// (`adjust_relative_event_times`).
    last: Duration,
    /// When it should have happened, if it was a packet that arrives: the next one counts from there.
    anchor: Option<Duration>,
    line: u32,
    /// A call that has not returned.
    blocked: Option<Blocked>,
}

struct Blocked {
    call: Call,
    line: u32,
    expected_at: Duration,
    tolerance: Duration,
}

/// The times that an event allows.
#[derive(Clone, Copy, Debug)]
struct Slot {
    earliest: Duration,
    latest: Duration,
    tolerance: Duration,
}

impl Runner<'_> {
    fn event(&mut self, event: &Event) -> Result<(), RunError> {
        let anchor = self.anchor.take();
        let is_inbound = matches!(event.action, Action::Inject(_));
        let slot = self.slot(event.at, anchor.filter(|_| is_inbound).unwrap_or(self.last));
        if let Action::Expect(packet) = &event.action {
            let at = self.expect(packet, slot)?;
            self.last = self.last.max(at);
            return Ok(());
        }
        self.wait_until(slot.earliest)?;
        if self.endpoint.now() > slot.latest + slot.tolerance {
            return Err(self.failed(untimely("event", slot, self.endpoint.now())));
        }
        match &event.action {
            Action::Inject(packet) => {
                let connection = self.endpoint.next_connection(packet.flags);
                self.follow(connection);
                let arriving = self.numbers.wire_segment(packet);
                self.endpoint.inject(&arriving).map_err(|error| self.refused(error))?;
            }
            Action::Call(call) => self.call(call, slot)?,
            Action::Code(statements) => self.execute(statements)?,
            Action::Configure(settings) => {
                self.endpoint.configure(settings).map_err(|error| self.refused(error))?;
            }
            Action::Count(state, wanted) => self.count(*state, *wanted)?,
            Action::Expect(_) => {}
        }
        self.last = self.endpoint.now();
        self.anchor = is_inbound.then_some(slot.earliest);
        self.take_sent()?;
        self.retry()
    }

    /// Waits for the last call. What the stack sends after the last packet that an event expects is free, as in
    /// packetdrill.
    fn finish(&mut self) -> Result<(), RunError> {
        while let Some(blocked) = &self.blocked {
            let latest = blocked.expected_at + blocked.tolerance;
            if self.endpoint.now() >= latest {
                let (line, at) = (blocked.line, latest);
                let message = "the call does not return".to_owned();
                return Err(Failure { line, at, message }.into());
            }
            self.step(latest)?;
        }
        Ok(())
    }

    /// The times of an event; relative ones count from `last`.
    fn slot(&self, at: When, last: Duration) -> Slot {
        let (earliest, latest) = match at {
            When::Absolute(at) => (at, at),
            When::Relative(at) => (last + at, last + at),
            When::AbsoluteRange(from, to) => (from, to),
            When::RelativeRange(from, to) => (last + from, last + to),
            When::Any => (last, last + LONGEST_WAIT),
        };
        let share = earliest.saturating_sub(last).mul_ratio(1, 8);
        Slot { earliest, latest, tolerance: self.least_tolerance.max(share) }
    }

    fn wait_until(&mut self, at: Duration) -> Result<(), RunError> {
        while self.endpoint.now() < at {
            self.step(at)?;
        }
        Ok(())
    }

    fn step(&mut self, until: Duration) -> Result<(), RunError> {
        self.endpoint.advance(until).map_err(|error| self.refused(error))?;
        self.take_sent()?;
        self.retry()
    }

    fn take_sent(&mut self) -> Result<(), RunError> {
        while let Some(sent) = self.endpoint.poll_sent() {
            if self.sent.len() == MAX_UNTAKEN {
                let message = format!("the stack sent {MAX_UNTAKEN} packets more than expected");
                return Err(self.failed(message));
            }
            self.follow(sent.connection);
            if sent.connection == self.connection {
                self.sent.push_back(sent);
            }
        }
        Ok(())
    }

    /// From now on packets are those of this connection, if it is newer.
    fn follow(&mut self, connection: u32) {
        if connection > self.connection {
            self.connection = connection;
            self.numbers = Numbers::default();
            self.sent.clear();
        }
    }

    /// Takes the next packet, which must be the expected one; returns when its end was sent.
    fn expect(&mut self, expected: &Packet, slot: Slot) -> Result<Duration, RunError> {
        let latest = slot.latest + slot.tolerance;
        let Some(first) = self.next_packet(latest)? else {
            let wanted = shown(slot.earliest, expected);
            let message = format!(
                "no packet until {} sec\nscript packet: {wanted}\nactual packet: none",
                Seconds(latest)
            );
            return Err(self.failed(message));
        };
        let at = first.at;
        let mut actual = self.numbers.script_packet(&first);
        let mut end = at;
        let mut merged = false;
        while actual.len < expected.len {
            let Some(sent) = self.next_packet(latest)? else { break };
            let next = self.numbers.script_packet(&sent);
            if !continues(expected, &actual, &next) {
                self.sent.push_front(sent);
                break;
            }
            merged = true;
            actual.len += next.len;
            actual.flags = actual.flags.with(next.flags);
            end = sent.at;
        }
        self.numbers.learn(expected, &mut actual);
        let wanted = shown(slot.earliest, expected);
        let packets = format!("\nscript packet: {wanted}\nactual packet: {}", shown(at, &actual));
        let drift = self.tick.map(|tick| slot.tolerance.as_micros() / u64::from(tick) + 1);
        if let Some(found) = difference(expected, &actual, merged, drift) {
            let (field, expected, actual) = (found.field, found.expected, found.actual);
            let what =
                format!("live packet field {field}: expected: {expected} vs actual: {actual}");
            return Err(self.failed(format!("{what}{packets}")));
        }
        let early = at + slot.tolerance < slot.earliest;
        if early || end > latest {
            let timing = untimely("outbound packet", slot, if early { at } else { end });
            return Err(self.failed(format!("{timing}{packets}")));
        }
        Ok(end)
    }

    /// The oldest packet that no event has taken; waits for one until `latest`.
    fn next_packet(&mut self, latest: Duration) -> Result<Option<Sent>, RunError> {
        loop {
            if let Some(packet) = self.sent.pop_front() {
                return Ok(Some(packet));
            }
            if self.endpoint.now() >= latest {
                return Ok(None);
            }
            self.step(latest)?;
        }
    }

    fn call(&mut self, call: &Call, slot: Slot) -> Result<(), RunError> {
        let returned = self.endpoint.call(call).map_err(|error| self.refused(error))?;
        let Some(until) = call.until else {
            return judge(call, returned).map_err(|message| self.failed(message));
        };
        if self.blocked.is_some() {
            let error = EndpointError("a second call while the first one blocks".to_owned());
            return Err(self.refused(error));
        }
        let Slot { earliest, tolerance, .. } = self.slot(until, self.last);
        let tolerance = tolerance.max(slot.tolerance);
        let Returned::Blocks(_) = returned else {
            judge(call, returned).map_err(|message| self.failed(message))?;
            if self.endpoint.now() + tolerance >= earliest {
                return Ok(());
            }
            return Err(self.failed("the call returns at once".to_owned()));
        };
        let (call, line) = (call.clone(), self.line);
        self.blocked = Some(Blocked { call, line, expected_at: earliest, tolerance });
        Ok(())
    }

    /// A call that blocks may return by now.
    fn retry(&mut self) -> Result<(), RunError> {
        let Some(blocked) = self.blocked.take() else { return Ok(()) };
        let returned = self.endpoint.call(&blocked.call).map_err(|error| self.refused(error))?;
        if let Returned::Blocks(_) = returned {
            self.blocked = Some(blocked);
            return Ok(());
        }
        let (line, at) = (blocked.line, self.endpoint.now());
        let failed = |message| Failure { line, at, message };
        judge(&blocked.call, returned).map_err(failed)?;
        let expected = blocked.expected_at;
        if at.max(expected) - at.min(expected) > blocked.tolerance {
            let (at, expected) = (Seconds(at), Seconds(expected));
            let message =
                format!("timing error: the call returns at {at} sec, expected {expected} sec");
            return Err(failed(message).into());
        }
        Ok(())
    }

    fn execute(&mut self, statements: &[Statement]) -> Result<(), RunError> {
        let info = self.endpoint.info().map_err(|error| self.refused(error))?;
        for statement in statements {
            let result = statement.run(|name| info.value(name), &mut self.variables);
            if let Err(unmet) = result {
                let message = format!("{} does not hold: {}", statement.text, unmet.detail);
                let failure = Failure { line: statement.line, at: self.endpoint.now(), message };
                return Err(failure.into());
            }
        }
        Ok(())
    }

    fn count(&mut self, state: i64, wanted: u32) -> Result<(), RunError> {
        let found = self.endpoint.count(state).map_err(|error| self.refused(error))?;
        if found == wanted {
            return Ok(());
        }
        Err(self.failed(format!("{found} connections in this state, expected {wanted}")))
    }

    fn failed(&self, message: String) -> RunError {
        Failure { line: self.line, at: self.endpoint.now(), message }.into()
    }

    fn refused(&self, error: EndpointError) -> RunError {
        RunError::Endpoint { line: self.line, error }
    }
}

/// Whether a call returned what the script expects.
fn judge(call: &Call, returned: Returned) -> Result<(), String> {
    let (value, errno) = match returned {
        Returned::Value(value) => (value, None),
        Returned::Error(errno) | Returned::Blocks(errno) => (-1, Some(errno)),
        Returned::Stores(what, value) => {
            return Err(format!("the call stores another {what}: {value}"));
        }
    };
    let text = |value: i64, errno: Option<&str>| {
        errno.map_or(value.to_string(), |errno| format!("{value} {errno}"))
    };
    let wanted = call.errno.as_deref();
    // Two names of one number.
    let wanted = if wanted == Some("EWOULDBLOCK") { Some("EAGAIN") } else { wanted };
    if value == call.result && (wanted.is_none() || wanted == errno) {
        return Ok(());
    }
    let (expected, actual) = (text(call.result, wanted), text(value, errno));
    Err(format!("the call returns {actual}, expected {expected}"))
}

fn shown(at: Duration, packet: &Packet) -> String {
    format!("{} {packet}", Seconds(at))
}

/// Says that something happened too early or too late.
fn untimely(what: &str, slot: Slot, happened: Duration) -> String {
    format!(
        "timing error: expected {what} at {} sec but happened at {} sec; tolerance {} sec",
        Seconds(slot.earliest),
        Seconds(happened),
        Seconds(slot.tolerance)
    )
}

/// A time as packetdrill prints it.
struct Seconds(Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0.as_micros();
        write!(f, "{}.{:06}", micros / 1_000_000, micros % 1_000_000)
    }
}

/// How long `*` waits for a packet.
const LONGEST_WAIT: Duration = Duration::from_secs(600);
/// More packets that no event expects are an endless loop of the stack.
const MAX_UNTAKEN: usize = 100_000;

#[cfg(test)]
mod tests;
