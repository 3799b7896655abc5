//! What `tc` says of a link, in a scenario's keys: `netem delay 20ms 5ms loss 1%`,
//! `tbf rate 10mbit burst 32kbit latency 50ms`.
//!
//! Source: tc-netem(8), tc-tbf(8), and of the units iproute2's `lib/utils.c` and `lib/utils_math.c`: a
//! bare time is in microseconds, a bare rate in bits, `kbps` in bytes, a size's `k` is 1024 and its
//! `kbit` 128 bytes. Of netem's jitter, `sch_netem.c`: with a rate packets keep their order, without one
//! they leave as their delays fall.
//!
//! Deviations: netem's `limit` also counts the packets that it delays, our queues hold what waits for
//! the rate. What has no like of ours is refused by name, above all correlations, `reorder` (netem sends
//! these packets at once, we hold them back), `slot`, and tbf's `peakrate`.

mod units;

use std::str::SplitWhitespace;

use serde_json::{Map, Value};
use weir_units::{Bytes, Duration, Rate, Ratio};

use crate::error::Problem;
use units::{percent, rate, size, time};

/// The keys of one direction that a text in `tc`'s words stands for, with their values, in the spelling
/// of a command line: those of `[topology.forward]`, and `delay` and `overhead`.
///
/// # Errors
/// Names the word that cannot be read, or has no like here.
pub fn tc_options(text: &str) -> Result<Vec<(&'static str, String)>, String> {
    let mut words = text.split_whitespace();
    let mut qdisc = Qdisc::default();
    let mut kind = words.next().ok_or("it is empty; write it as in netem delay 20ms loss 1%")?;
    if matches!(kind, "tc" | "qdisc") {
        // The whole command line: which device it is for, and which handle, does not matter here.
        kind = words.find(|word| KINDS.contains(word)).ok_or_else(|| unknown(text))?;
    }
    match kind {
        "netem" => qdisc.netem(&mut words.peekable())?,
        "tbf" => qdisc.tbf(&mut words)?,
        other => return Err(unknown(other)),
    }
    qdisc.options()
}

/// The keys of `[topology]` that two such texts stand for: of the way of the data, and of the way back.
///
/// # Errors
/// As [`tc_options`], with the name of the text.
pub fn tc_keys(forward: &str, reverse: Option<&str>) -> Result<Vec<(String, String)>, String> {
    let named = |name: &'static str| move |problem: String| format!("{name}: {problem}");
    let mut delay: Option<Duration> = None;
    let mut keys = Vec::new();
    let mut take = |options: Vec<(&'static str, String)>, own: &str| {
        for (key, value) in options {
            if key == "delay" {
                let time: Duration = value.parse().expect("it was printed here");
                let sum = delay.map_or(0, Duration::as_nanos).saturating_add(time.as_nanos());
                delay = Some(Duration::from_nanos(sum));
            } else if SHARED.contains(&key) && own == "forward" {
                keys.push((key.to_owned(), value));
            } else {
                keys.push((format!("{own}.{key}"), value));
            }
        }
    };
    take(tc_options(forward).map_err(named("tc"))?, "forward");
    if let Some(reverse) = reverse {
        let options = tc_options(reverse).map_err(named("reverse_tc"))?;
        if options.iter().any(|(key, _)| *key == "overhead") {
            return Err("reverse_tc: 'rate' with an overhead is possible for both ways only".into());
        }
        take(options, "reverse");
    }
    keys.extend(delay.map(|delay| ("rtt".to_owned(), delay.to_string())));
    Ok(keys)
}

/// Replaces `tc` and `reverse_tc` of `[topology]` by what they stand for.
pub(crate) fn expand(tree: &mut Map<String, Value>) -> Result<(), Problem> {
    let Some(Value::Object(topology)) = tree.get_mut("topology") else { return Ok(()) };
    let mut text = |key: &str| match topology.remove(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => {
            let message = format!("{other} is not allowed; it is text as in \"netem delay 20ms\"");
            Err(Problem::new(format!("topology.{key}"), message))
        }
    };
    let (forward, reverse) = (text("tc")?, text("reverse_tc")?);
    let Some(forward) = forward else {
        return match reverse {
            None => Ok(()),
            Some(_) => Err(Problem::new("topology.reverse_tc", "it needs 'topology.tc' as well")),
        };
    };
    let kind = topology.get("kind").and_then(Value::as_str).unwrap_or(BOTTLENECKS[0]);
    if !BOTTLENECKS.contains(&kind) {
        let message = format!("kind {kind} has no such link; {} have", BOTTLENECKS.join(", "));
        return Err(Problem::new("topology.tc", message));
    }
    let keys = tc_keys(&forward, reverse.as_deref()).map_err(|message| {
        let (key, message) = message.split_once(": ").unwrap_or(("tc", &message));
        Problem::new(format!("topology.{key}"), message)
    })?;
    for (key, value) in keys {
        let section = key.split_once('.').map(|(section, _)| section);
        let place = match section {
            None => &mut *topology,
            Some(section) => topology
                .entry(section)
                .or_insert_with(|| Map::new().into())
                .as_object_mut()
                .ok_or_else(|| Problem::new(format!("topology.{section}"), "it is a section"))?,
        };
        let own = key.rsplit('.').next().unwrap_or(&key).to_owned();
        if place.contains_key(&own) {
            let message = format!("it says '{key}' too; one of them says it all");
            return Err(Problem::new("topology.tc", message));
        }
        place.insert(own, crate::overrides::value(&value));
    }
    Ok(())
}

/// What was said so far.
#[derive(Default)]
struct Qdisc {
    rate: Option<Rate>,
    delay: Option<Duration>,
    jitter: Option<Duration>,
    normal: bool,
    /// The bound of the queue, in our spelling.
    queue: Option<String>,
    burst: Option<Bytes>,
    overhead: Option<u64>,
    /// Keys whose values are as `tc` spells them.
    shares: Vec<(&'static str, String)>,
}

type Words<'a> = std::iter::Peekable<SplitWhitespace<'a>>;

impl Qdisc {
    fn netem(&mut self, words: &mut Words<'_>) -> Result<(), String> {
        let mut limit = None;
        while let Some(word) = words.next() {
            match word {
                "limit" => limit = Some(count(word, words.next())?),
                "delay" | "latency" => self.netem_delay(words)?,
                "distribution" => match words.next() {
                    Some("uniform") => self.normal = false,
                    Some("normal") => self.normal = true,
                    other => return Err(refused("distribution", other, "uniform, normal")),
                },
                "loss" | "drop" => self.netem_loss(words)?,
                "corrupt" => self.share("corrupt", words)?,
                "duplicate" => self.share("duplicate", words)?,
                "rate" => {
                    self.rate = Some(rate(word, words.next())?);
                    self.netem_overhead(words)?;
                }
                other => return Err(no_like("netem", other, NETEM)),
            }
        }
        // netem's own default, in front of a rate.
        let limit = limit.or(self.rate.map(|_| NETEM_LIMIT));
        self.queue = limit.map(|packets| format!("{packets}p"));
        Ok(())
    }

    fn netem_delay(&mut self, words: &mut Words<'_>) -> Result<(), String> {
        self.delay = Some(time("delay", words.next())?);
        if words.peek().is_some_and(|word| starts_number(word)) {
            self.jitter = Some(time("delay", words.next())?);
            no_correlation("delay", words)?;
        }
        Ok(())
    }

    fn netem_loss(&mut self, words: &mut Words<'_>) -> Result<(), String> {
        match words.peek().copied() {
            Some("gemodel") => {
                words.next();
                return self.gemodel(words);
            }
            Some("state") => return Err(no_like("netem", "loss state", "loss, loss gemodel")),
            Some("random") => drop(words.next()),
            _ => {}
        }
        self.share("loss", words)
    }

    /// Gilbert and Elliott as netem spells them: `p [r [1-h [1-k]]]`, where `1-h` is the loss in the bad
    /// state and `1-k` that in the good one.
    fn gemodel(&mut self, words: &mut Words<'_>) -> Result<(), String> {
        let p = percent("loss gemodel", words.next())?;
        let mut next = |default: Ratio| {
            let is_given = words.peek().is_some_and(|word| starts_number(word));
            if is_given { percent("loss gemodel", words.next()) } else { Ok(default) }
        };
        let rest = Ratio::ONE.as_billionths() - p.as_billionths();
        let r = next(Ratio::from_billionths(rest).unwrap_or(Ratio::ZERO))?;
        let (bad, good) = (next(Ratio::ONE)?, next(Ratio::ZERO)?);
        let states = format!("good_to_bad = '{p}', bad_to_good = '{r}'");
        let value = format!("{{ {states}, loss_in_bad = '{bad}', loss_in_good = '{good}' }}");
        self.shares.push(("burst_loss", value));
        Ok(())
    }

    fn share(&mut self, key: &'static str, words: &mut Words<'_>) -> Result<(), String> {
        let share = percent(key, words.next())?;
        no_correlation(key, words)?;
        self.shares.push((key, share.to_string()));
        Ok(())
    }

    /// `rate RATE [PACKETOVERHEAD [CELLSIZE [CELLOVERHEAD]]]`.
    fn netem_overhead(&mut self, words: &mut Words<'_>) -> Result<(), String> {
        if !words.peek().is_some_and(|word| starts_number(word)) {
            return Ok(());
        }
        self.overhead = Some(count("rate RATE PACKETOVERHEAD", words.next())?);
        match words.peek() {
            Some(word) if starts_number(word) => {
                Err(no_like("netem", "rate RATE PACKETOVERHEAD CELLSIZE", NETEM))
            }
            _ => Ok(()),
        }
    }

    fn tbf(&mut self, words: &mut SplitWhitespace<'_>) -> Result<(), String> {
        let (mut limit, mut latency) = (None, None);
        while let Some(word) = words.next() {
            match word {
                "rate" => self.rate = Some(rate(word, words.next())?),
                "burst" | "buffer" | "maxburst" => self.burst = Some(size(word, words.next())?),
                "limit" => limit = Some(size(word, words.next())?),
                "latency" => latency = Some(time(word, words.next())?),
                other => return Err(no_like("tbf", other, TBF)),
            }
        }
        let needed = "a tbf has 'rate', 'burst', and 'limit' or 'latency'";
        let (Some(rate), Some(burst)) = (self.rate, self.burst) else {
            return Err(needed.to_owned());
        };
        let limit = match (limit, latency) {
            (Some(limit), None) => limit,
            // q_tbf.c: what the rate sends in that time, and the bucket.
            (None, Some(latency)) => {
                Bytes(rate.bytes_in(latency).get().saturating_add(burst.get()))
            }
            (Some(_), Some(_)) => return Err("'limit' and 'latency': one says it all".into()),
            (None, None) => return Err(needed.to_owned()),
        };
        self.queue = Some(limit.to_string());
        Ok(())
    }

    fn options(self) -> Result<Vec<(&'static str, String)>, String> {
        let mut options = Vec::new();
        options.extend(self.rate.map(|rate| ("rate", rate.to_string())));
        options.extend(self.delay.map(|delay| ("delay", delay.to_string())));
        if let Some(jitter) = self.jitter.filter(|jitter| *jitter > Duration::ZERO) {
            options.push(("jitter", jitter.to_string()));
            options.push(("jitter_spread", if self.normal { "normal" } else { "uniform" }.into()));
            let order = if self.rate.is_some() { "kept" } else { "free" };
            options.push(("jitter_order", order.into()));
        } else if self.normal {
            return Err("'distribution' says how a delay varies, as in delay 20ms 5ms".into());
        }
        options.extend(self.queue.map(|queue| ("queue", queue)));
        options.extend(self.burst.map(|burst| ("burst", burst.to_string())));
        options.extend(self.overhead.map(|overhead| ("overhead", format!("{overhead}b"))));
        for (key, value) in self.shares {
            if options.iter().any(|(said, _)| *said == key) {
                return Err(format!("'{key}' is given twice"));
            }
            options.push((key, value));
        }
        Ok(options)
    }
}

fn count(word: &str, value: Option<&str>) -> Result<u64, String> {
    let number = value.and_then(|text| text.parse().ok());
    number.ok_or_else(|| refused(word, value, "whole numbers"))
}

/// Refuses the correlation that may follow; one of nothing is none.
fn no_correlation(word: &str, words: &mut Words<'_>) -> Result<(), String> {
    if !words.peek().is_some_and(|next| starts_number(next)) {
        return Ok(());
    }
    let next = words.next();
    if percent(word, next)? == Ratio::ZERO {
        return Ok(());
    }
    let share = next.unwrap_or_default();
    Err(format!("'{word}' with correlation {share}: packets are independent here"))
}

fn starts_number(word: &str) -> bool {
    word.starts_with(|letter: char| letter.is_ascii_digit() || letter == '.')
}

fn refused(word: &str, value: Option<&str>, allowed: &str) -> String {
    let value = value.map_or("nothing behind it".to_owned(), |value| format!("'{value}'"));
    format!("'{word}' with {value}: there are {allowed}")
}

fn no_like(kind: &str, word: &str, known: &str) -> String {
    format!("'{word}' of {kind} has no like here; there are {known}")
}

fn unknown(kind: &str) -> String {
    format!("'{kind}' is no qdisc known here; there are {}", KINDS.join(", "))
}

const KINDS: [&str; 2] = ["netem", "tbf"];
const NETEM: &str = "limit, delay, distribution, loss, corrupt, duplicate, rate";
const TBF: &str = "rate, burst, limit, latency";
/// tc-netem(8).
const NETEM_LIMIT: u64 = 1_000;
/// Keys of one direction that stand in `[topology]` itself.
const SHARED: [&str; 4] = ["rate", "queue", "burst", "overhead"];
/// Topologies with a bottleneck that these keys describe; the first is the default.
const BOTTLENECKS: [&str; 3] = ["dumbbell", "parking-lot", "chain"];

#[cfg(test)]
mod tests;
