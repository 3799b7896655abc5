//! The links of a relay between real programs, from options with the names and the rules of a
//! scenario's `[topology.forward]`.

use std::path::Path;

use serde_json::{Map, Value, json};
use weir_net::{Limit, LinkConfig, Numbering, Service};
use weir_units::{BufferSize, Bytes, Duration, Rate};

use crate::direction::{self, Direction};
use crate::error::{Place, Problem, ScenarioError};
use crate::feedback::Feedback;
use crate::lower;
use crate::overrides;
use crate::queue::{self, Queue};
use crate::reading::deserialize;
use crate::topology::RelayKind;
use crate::traces;

/// Links, and which of them packets cross on their way up (to the server) and down.
#[derive(Clone, Debug, PartialEq)]
pub struct RelayLinks {
    /// The links.
    pub links: Vec<RelayLink>,
    /// Those on the way up, by index, in order.
    pub up: Vec<usize>,
    /// Those on the way down.
    pub down: Vec<usize>,
}

/// A link with a name, from which its random streams are derived.
#[derive(Clone, Debug, PartialEq)]
pub struct RelayLink {
    /// The name.
    pub name: &'static str,
    /// What it is made of.
    pub config: LinkConfig,
}

/// One direction: what a scenario may say of it, and what belongs to the topology there.
#[derive(Clone, Debug, Default, PartialEq)]
struct RelayDirection {
    direction: Direction,
    delay: Duration,
    feedback: Option<Feedback>,
}

/// Where an option of a direction was given: for messages.
struct OptionName<'a> {
    both: &'a [(String, String)],
    option: &'a str,
    own: &'a [(String, String)],
}

/// Reads options: `both` hold for both directions, `up` and `down` on top of them for one (as in
/// `loss=10%,queue=64p`).
///
/// # Errors
/// For anything that is not allowed, with the option, its value and what is.
pub fn relay_links(
    kind: RelayKind,
    both: &[(String, String)],
    up: &str,
    down: &str,
) -> Result<RelayLinks, ScenarioError> {
    let (up, down) = (pairs("--up", up)?, pairs("--down", down)?);
    let up = OptionName { both, option: "--up", own: &up };
    let down = OptionName { both, option: "--down", own: &down };
    let (up_way, down_way) = (up.read()?, down.read()?);
    let rtt = up_way.delay + down_way.delay;
    let links = match kind {
        RelayKind::Serial => {
            for (given, way) in [(&up, &up_way), (&down, &down_way)] {
                if way.feedback.is_some() {
                    const WHY: &str = "the serial relay has no rate of which some could be left";
                    return Err(given.refuse("feedback", WHY.to_owned()));
                }
            }
            let buffer = up.serial_buffer(&up_way)?;
            if down.serial_buffer(&down_way)? != buffer {
                let message = "the serial relay has one socket buffer for both directions".into();
                return Err(down.refuse("queue", message));
            }
            serial(&up_way, &down_way, buffer)
        }
        RelayKind::DelayLine => {
            let links = vec![
                RelayLink { name: "up", config: up.link(&up_way, rtt)? },
                RelayLink { name: "down", config: down.link(&down_way, rtt)? },
            ];
            RelayLinks { links, up: vec![0], down: vec![1] }
        }
    };
    for link in &links.links {
        let given = if link.name == "down" { &down } else { &up };
        link.config.validate().map_err(|error| given.refuse(error.key, error.to_string()))?;
    }
    Ok(links)
}

/// One server that sleeps for every datagram of either direction. What else goes wrong happens on the
/// way to it, as in the scenarios' topology `lab-router`.
fn serial(up: &RelayDirection, down: &RelayDirection, buffer: BufferSize) -> RelayLinks {
    let buffer = Limit::resolve(buffer, Rate::ZERO, Duration::ZERO);
    let relay = LinkConfig::serial_relay(up.delay, down.delay, buffer);
    let mut found = RelayLinks {
        links: vec![RelayLink { name: "relay", config: relay }],
        up: vec![],
        down: vec![],
    };
    let ways = [("to-relay", up, &mut found.up), ("to-relay-reverse", down, &mut found.down)];
    for (name, way, route) in ways {
        let direction = Direction { queue: None, ..way.direction.clone() };
        if let Some(config) = lower::relay_way(&direction, Numbering::Any) {
            route.push(found.links.len());
            found.links.push(RelayLink { name, config });
        }
        route.push(0);
    }
    found
}

impl OptionName<'_> {
    fn read(&self) -> Result<RelayDirection, ScenarioError> {
        let mut tree = Map::new();
        for (key, value) in self.both.iter().chain(self.own) {
            overrides::apply(&mut tree, key, overrides::value(value))
                .map_err(|p| self.explain(p))?;
        }
        let delay = tree.remove("delay").unwrap_or_else(|| Value::from("0s"));
        let delay: Duration =
            deserialize(delay).map_err(|problem| self.refuse("delay", problem.message))?;
        let feedback = tree.remove("feedback").map(feedback).transpose();
        let feedback = feedback.map_err(|Problem { key, message }| {
            let inner = key.trim_start_matches("feedback").trim_start_matches('.');
            let colon = if inner.is_empty() { "" } else { ": " };
            self.refuse("feedback", format!("{inner}{colon}{message}"))
        })?;
        let mut tree = Value::Object(tree);
        traces::load_direction(&mut tree, "", Path::new("")).map_err(|p| self.explain(p))?;
        let mut direction: Direction = deserialize(tree).map_err(|problem| {
            let message = problem.message.replace(" are rate,", " are delay, feedback, rate,");
            self.explain(Problem { message, ..problem })
        })?;
        if let Some(queue) = &mut direction.queue {
            queue.0.complete();
            queue.0.check("queue").map_err(|problem| self.explain(problem))?;
        }
        direction.check("").map_err(|problem| self.explain(problem))?;
        Ok(RelayDirection { direction, delay, feedback })
    }

    /// A link of its own for this direction.
    fn link(&self, way: &RelayDirection, rtt: Duration) -> Result<LinkConfig, ScenarioError> {
        let RelayDirection { direction, delay, feedback } = way;
        let served = direction.rate.is_some() || !direction.rate_trace.is_empty();
        let needs_rate = [
            ("queue", direction.queue.is_some()),
            ("feedback", feedback.is_some()),
            ("burst", direction.burst.is_some()),
            ("rate_steps", !direction.rate_steps.is_empty()),
        ];
        if let Some((key, _)) = needs_rate.iter().find(|(_, given)| *given && !served) {
            let message = "nothing waits where there is no rate; give a rate as well".to_owned();
            return Err(self.refuse(key, message));
        }
        let rate = direction.rate.unwrap_or(Rate::ZERO);
        let default = Queue::drop_tail(BufferSize::Packets(DEFAULT_QUEUE));
        let written = direction.queue.as_ref().or(served.then_some(&default));
        let rate = direction::mean_rate(direction, rate);
        let mut config = LinkConfig {
            service: direction.rate.map_or(Service::Infinite, |rate| Service::Rate(rate.into())),
            delay: (*delay).into(),
            queue: queue::config(written, rate, rtt, direction::FULL_PACKET),
            feedback: feedback.as_ref().map(Feedback::config),
            ..LinkConfig::default()
        };
        direction.impair(&mut config, Numbering::Any);
        direction::shape(&mut config, direction.burst);
        Ok(config)
    }

    /// The bound of the serial relay's socket buffer.
    fn serial_buffer(&self, way: &RelayDirection) -> Result<BufferSize, ScenarioError> {
        let Some(queue) = &way.direction.queue else { return Ok(SERIAL_BUFFER) };
        match queue.as_size() {
            Some(size @ (BufferSize::Packets(_) | BufferSize::Bytes(_) | BufferSize::Infinite)) => {
                Ok(size)
            }
            _ => {
                let message = "the serial relay has no rate, so its buffer is in packets or bytes, as in 4p or 64kib";
                Err(self.refuse("queue", message.to_owned()))
            }
        }
    }

    fn refuse(&self, key: &str, message: String) -> ScenarioError {
        self.explain(Problem::new(key, message))
    }

    /// Names the option that a problem comes from: the direction's own, else the shared one.
    fn explain(&self, problem: Problem) -> ScenarioError {
        let key = problem.key.trim_start_matches('.').to_owned();
        let touching = |pair: &&(String, String)| overrides::touches(&pair.0, &key);
        let own = self.own.iter().rev().find(touching);
        let shared = self.both.iter().rev().find(touching);
        let (option, value) = match (own, shared) {
            (Some((name, value)), _) => (format!("{} {name}", self.option), value),
            (None, Some((name, value))) => (format!("--{name}"), value),
            (None, None) => {
                let source = self.option.to_owned();
                let problem = Problem::new(key, problem.message);
                return ScenarioError { place: Place::File { source }, problem };
            }
        };
        let problem = Problem::new(&option, problem.message);
        ScenarioError { place: Place::Override { key: option, value: value.clone() }, problem }
    }
}

/// An agent as a scenario writes it, or a kind alone.
fn feedback(written: Value) -> Result<Feedback, Problem> {
    let written = if written.is_string() { json!({ "kind": written }) } else { written };
    let feedback: Feedback = deserialize(written)?;
    feedback.check("feedback")?;
    Ok(feedback)
}

/// Splits `key=value,key=value`; commas inside brackets and quotes belong to the value.
fn pairs(option: &str, text: &str) -> Result<Vec<(String, String)>, ScenarioError> {
    let mut parts = vec![String::new()];
    let (mut depth, mut quote) = (0u32, None);
    for letter in text.chars() {
        match letter {
            ',' if depth == 0 && quote.is_none() => {
                parts.push(String::new());
                continue;
            }
            '"' | '\'' if quote == Some(letter) => quote = None,
            '"' | '\'' if quote.is_none() => quote = Some(letter),
            '[' | '{' if quote.is_none() => depth += 1,
            ']' | '}' if quote.is_none() => depth = depth.saturating_sub(1),
            _ => {}
        }
        parts.last_mut().expect("there is always a part").push(letter);
    }
    let parts = parts.iter().filter(|part| !part.trim().is_empty());
    let pair = |part: &String| match part.split_once('=') {
        Some((key, value)) => Ok((key.trim().to_owned(), value.trim().to_owned())),
        None => {
            let message = format!("'{}' is no key=value, as in loss=5%,delay=20ms", part.trim());
            let place = Place::File { source: option.to_owned() };
            Err(ScenarioError { place, problem: Problem::new("", message) })
        }
    };
    parts.map(pair).collect()
}

/// Default queue size in front of a rate, in packets.
const DEFAULT_QUEUE: u64 = 64;
/// The serial relay's, as in a scenario.
const SERIAL_BUFFER: BufferSize = BufferSize::Bytes(Bytes(64 << 10));

#[cfg(test)]
mod tests {
    use weir_net::{Jitter, QueueConfig};
    use weir_units::Ratio;

    use super::*;

    fn both(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn error(kind: RelayKind, shared: &[(&str, &str)], up: &str, down: &str) -> String {
        relay_links(kind, &both(shared), up, down).unwrap_err().to_string()
    }

    #[test]
    fn options_hold_for_both_directions_unless_one_says_otherwise() {
        let shared = both(&[("loss", "5%"), ("delay", "20ms"), ("rate", "10mbit")]);
        let found =
            relay_links(RelayKind::DelayLine, &shared, "", "loss=0,delay=30ms,queue=1bdp").unwrap();
        assert_eq!((found.up, found.down), (vec![0], vec![1]));
        let [up, down] = [&found.links[0].config, &found.links[1].config];
        assert_eq!(up.impairments.loss, Ratio::from_percent(5));
        assert_eq!(down.impairments.loss, Ratio::ZERO);
        assert_eq!(up.delay.initial, Duration::from_millis(20));
        assert_eq!(up.queue, QueueConfig::DropTail(Limit::Packets(DEFAULT_QUEUE).into()));
        // 10 Mbit/s over 20 ms and 30 ms.
        assert_eq!(down.queue, QueueConfig::DropTail(Limit::Bytes(Bytes(62_500)).into()));
    }

    #[test]
    fn a_direction_takes_every_key_of_a_scenario() {
        let up = "jitter=5ms,jitter_order=free,burst_loss={ good_to_bad = '2%', bad_to_good = '20%' },drop=[1, 3]";
        let found = relay_links(RelayKind::DelayLine, &[], up, "").unwrap();
        let impairments = &found.links[0].config.impairments;
        assert!(matches!(impairments.jitter, Some(Jitter { order: weir_net::Order::Free, .. })));
        assert_eq!(impairments.burst_loss.map(|b| b.good_to_bad), Some(Ratio::from_percent(2)));
        assert_eq!(impairments.drops[0].numbers, [1, 3]);
        assert_eq!(found.links[1].config, LinkConfig::default());
    }

    #[test]
    fn the_serial_relay_is_one_server_behind_two_ways() {
        let shared = both(&[("delay", "3ms"), ("queue", "4p")]);
        let found = relay_links(RelayKind::Serial, &shared, "loss=5%", "").unwrap();
        assert_eq!((&found.up[..], &found.down[..]), (&[1, 0][..], &[0][..]));
        let delay = Duration::from_millis(3);
        let service = Service::PerPacket { forward: delay, reverse: delay };
        assert_eq!(found.links[0].config.service, service);
        assert_eq!(found.links[1].config.impairments.loss, Ratio::from_percent(5));
    }

    #[test]
    fn feedback_is_a_kind_or_a_section() {
        let shared = both(&[("rate", "10mbit"), ("feedback", "drai")]);
        let down = "feedback={ kind = 'drai', levels = 7, memory = '50ms' }";
        let found = relay_links(RelayKind::DelayLine, &shared, "", down).unwrap();
        let drai = |link: &RelayLink| match link.config.feedback {
            Some(weir_net::FeedbackConfig::Drai(drai)) => (drai.levels(), drai.memory),
            other => panic!("{other:?}"),
        };
        assert_eq!(drai(&found.links[0]), (5, Duration::from_millis(200)));
        assert_eq!(drai(&found.links[1]), (7, Duration::from_millis(50)));
        let both_ways = relay_links(RelayKind::DelayLine, &shared, "", "feedback=rcp").unwrap();
        assert!(both_ways.links.iter().all(|link| link.config.feedback.is_some()));
    }

    #[test]
    fn mistakes_are_named_with_what_is_allowed() {
        let line = RelayKind::DelayLine;
        let cases = [
            error(line, &[("loss", "150%")], "", ""),
            error(line, &[("delay", "-3ms")], "", ""),
            error(line, &[("delay", "20")], "", ""),
            error(line, &[], "los=5%", ""),
            error(line, &[], "", "loss"),
            error(line, &[("queue", "64p")], "", ""),
            error(line, &[("rate", "0bit")], "", ""),
            error(line, &[("rate", "1mbit"), ("queue", "0p")], "", ""),
            error(line, &[("delay", "25h")], "", ""),
            error(line, &[], "", "rate=10mbps"),
            error(line, &[], "reorder=2%,reorder_delay=0s", ""),
            error(line, &[("rate_trace", "no-such.trace")], "", ""),
            error(RelayKind::Serial, &[("queue", "1bdp")], "", ""),
            error(RelayKind::Serial, &[], "queue=4p", "queue=5p"),
            error(line, &[("feedback", "drai")], "", ""),
            error(line, &[("rate", "1mbit"), ("feedback", "dry")], "", ""),
            error(line, &[("rate", "1mbit")], "", "feedback={ kind = 'drai', levels = 9 }"),
            error(line, &[("rate", "1mbit")], "feedback={ kind = 'xcp', levels = 5 }", ""),
            error(line, &[("rate", "1mbit")], "feedback={ memory = '0s' }", ""),
            error(line, &[("rate", "1mbit")], "feedback={ level = 5 }", ""),
            error(RelayKind::Serial, &[("feedback", "drai")], "", ""),
        ];
        insta::assert_snapshot!(cases.join("\n"));
    }
}
