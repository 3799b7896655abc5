//! SYN cookies (RFC 4987 §3.6), without a further round trip: the listener keeps nothing for a SYN.
//!
//! ```text
//!   SYN, padded              ──────────>   answers by a pure function of secret, address, SYN and time
//!              <──────────   SYN-ACK, cookie
//!   SYN, cookie              ──────────>   does the same again, and now has a connection
//!   data                     ──────────>
//! ```
//!
//! The answer comes out of a connection that listens, whose random stream (its initial sequence number) is a
//! MAC over what it answers; then it is forgotten. A peer that returns the cookie, the time and another
//! part of that MAC, receives what is sent to its address: the same SYN at the same time gives the same
//! connection. Cookie fields travel as the payload of segments with a SYN, which carry no data here, and every
//! SYN has one, so that the answer is never longer than the question.
//!
//! A cookie that is not good, most likely of a listener that was started again since, is answered with a
//! reset that repeats it. A SYN-ACK with a fresh cookie would not do: the client has acknowledged another
//! initial sequence number, and could not distinguish it from the answer to a SYN that was sent twice.

use std::net::{IpAddr, SocketAddr};

use weir_transport::wire::{self, Parsed, Ports};
use weir_transport::{Config, Connection, Flags, Segment, SeqNum};
use weir_units::{Duration, Ecn, Instant, Rng, stream};

/// What travels with a SYN: zeros until there is a cookie, which is the time and a MAC.
pub(super) type CookieField = [u8; 24];
/// A SYN's note before there is a cookie.
pub(super) const NO_COOKIE: CookieField = [0; _];

/// Answers SYNs.
pub(super) struct Cookies {
    secret: [u8; 32],
}

/// What a SYN leads to.
pub(super) enum SynOutcome {
    /// It is ignored.
    Nothing,
    /// This is sent back, and forgotten.
    Answer(Segment, CookieField),
    /// It returned a cookie that is not good.
    Stale(CookieField),
    /// It returned a cookie.
    Admitted(Box<Connection>),
}

impl Cookies {
    /// Cookies that cannot be forged without `secret`: random bytes, new for each process.
    pub(super) fn new(secret: [u8; 32]) -> Self {
        Self { secret }
    }

    /// Processes a SYN.
    pub(super) fn receive(
        &self,
        now: Instant,
        from: SocketAddr,
        config: &Config,
        syn: &Parsed<'_>,
    ) -> SynOutcome {
        let Ok(note) = CookieField::try_from(syn.payload) else { return SynOutcome::Nothing };
        if note == NO_COOKIE {
            let (cookie, rng) = self.judge(now, from, syn);
            let answer = begin(now, config, &syn.segment, rng).1;
            return answer.map_or(SynOutcome::Nothing, |answer| SynOutcome::Answer(answer, cookie));
        }
        let issued = time_of(&note);
        let (cookie, rng) = self.judge(issued, from, syn);
        let fresh = issued <= now && now.saturating_since(issued) <= COOKIE_LIFE;
        // In constant time: an attacker does not learn how much of a guess was right.
        if !fresh || blake3::hash(&cookie) != blake3::hash(&note) {
            return SynOutcome::Stale(note);
        }
        SynOutcome::Admitted(Box::new(begin(issued, config, &syn.segment, rng).0))
    }

    /// The cookie for a SYN that arrives at a time, and the random stream of its connection.
    fn judge(&self, at: Instant, from: SocketAddr, syn: &Parsed<'_>) -> (CookieField, Rng) {
        let ip = match from.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        let mut header = Vec::with_capacity(64);
        wire::emit(&bare(&syn.segment), syn.ports, &[], &mut header);
        let time = at.as_nanos().to_be_bytes();
        let mut mac = blake3::Hasher::new_keyed(&self.secret);
        mac.update(&time).update(&ip.octets()).update(&from.port().to_be_bytes()).update(&header);
        let mut output = [0; 24];
        mac.finalize_xof().fill(&mut output);
        let (tag, rng) = output.split_at(16);
        let mut cookie = NO_COOKIE;
        cookie[..8].copy_from_slice(&time);
        cookie[8..].copy_from_slice(tag);
        let rng = rng.try_into().map_or(0, u64::from_be_bytes);
        (cookie, stream(rng, "connection"))
    }
}

/// A connection that has heard this SYN, and what it answers.
fn begin(at: Instant, config: &Config, syn: &Segment, rng: Rng) -> (Connection, Option<Segment>) {
    let mut connection = Connection::listen(config, rng);
    connection.handle_segment(at, &bare(syn), Ecn::NotEct);
    let answer = connection.poll_transmit(at).map(|transmit| transmit.segment);
    (connection, answer)
}

/// The segment without its note.
fn bare(syn: &Segment) -> Segment {
    Segment { payload_len: 0, ..*syn }
}

fn time_of(note: &CookieField) -> Instant {
    let time = note.first_chunk().map_or(0, |time| u64::from_be_bytes(*time));
    Instant::from_nanos(time)
}

/// Appends a segment with its note.
pub(super) fn emit_noted(segment: &Segment, ports: Ports, note: &CookieField, out: &mut Vec<u8>) {
    let noted = Segment { payload_len: note.len() as u32, ..*segment };
    wire::emit(&noted, ports, note, out);
}

/// How the side that opens a connection is introduced; the other side needs no introduction.
#[derive(Debug, Default)]
pub(super) enum CookieExchange {
    /// Nothing more has to be shown.
    #[default]
    Done,
    /// These SYNs were sent.
    Asking(Vec<Segment>),
    /// The answer to `syn` came with a cookie, which goes with every flight until the peer says
    /// something more, at sequence number `next`.
    Claiming { syn: Segment, cookie: CookieField, next: SeqNum },
    /// The peer has said something more, at this time. Segments that overtook the cookie may have been
    /// reset before.
    Heard(Instant),
}

impl CookieExchange {
    /// Records a segment that leaves, and returns what goes with it.
    pub(super) fn on_leaving(&mut self, segment: &Segment) -> Option<CookieField> {
        let Self::Asking(syns) = self else { return None };
        let opens = segment.flags.contains(Flags::SYN);
        if opens && syns.len() < REMEMBERED {
            syns.push(*segment);
        }
        opens.then_some(NO_COOKIE)
    }

    /// The SYN and the note that must go with a flight.
    pub(super) fn claim(&self) -> Option<(Segment, CookieField)> {
        match self {
            Self::Claiming { syn, cookie, .. } => Some((*syn, *cookie)),
            _ => None,
        }
    }

    /// Whether the peer has a connection.
    pub(super) fn is_over(&self) -> bool {
        matches!(self, Self::Done | Self::Heard(_))
    }

    /// Takes a note off a segment that arrives. Returns whether the connection should hear of it.
    pub(super) fn on_arrival(&mut self, now: Instant, parsed: &mut Parsed<'_>) -> bool {
        let flags = parsed.segment.flags;
        let note = CookieField::try_from(parsed.payload).ok();
        if flags.contains(Flags::SYN) {
            // What has a connection already needs no cookie to get one.
            let returned =
                !flags.contains(Flags::ACK) && note.is_some_and(|note| note != NO_COOKIE);
            if let (Self::Asking(syns), Some(cookie)) = (&*self, note)
                && let Some(syn) = answered(syns, &parsed.segment)
            {
                *self = Self::Claiming { syn, cookie, next: parsed.segment.seq + 1 };
            }
            parsed.segment.payload_len = 0;
            parsed.payload = &[];
            return !returned;
        }
        match self {
            // A listener that has missed the cookie knows nothing of us, and resets; if it means it,
            // it says so. The cookie vouches for the reset: a listener that does not know the
            // cookie cannot know the sequence number either (RFC 5961 §3.2).
            Self::Claiming { cookie, next, .. } if flags.contains(Flags::RST) => {
                parsed.segment.seq = *next;
                note == Some(*cookie)
            }
            Self::Claiming { .. } => {
                *self = Self::Heard(now);
                true
            }
            Self::Heard(at) if flags.contains(Flags::RST) => {
                note.is_some() || now.saturating_since(*at) >= LATE_RESETS
            }
            _ => true,
        }
    }
}

/// The SYN that this is the answer to: with timestamps it says so (RFC 7323 §3.2).
fn answered(syns: &[Segment], answer: &Segment) -> Option<Segment> {
    let echo = answer.options.timestamps.map(|stamps| stamps.echo);
    let value = |syn: &&Segment| syn.options.timestamps.map(|stamps| stamps.value);
    let named = echo.and_then(|echo| syns.iter().find(|syn| value(syn) == Some(echo)));
    named.or(syns.last()).copied()
}

/// A cookie is used within a round trip; this allows for lost datagrams.
const COOKIE_LIFE: Duration = Duration::from_secs(15);
/// How long resets may be on their way that were sent before the cookie arrived.
const LATE_RESETS: Duration = Duration::from_secs(1);
/// More SYNs than any cookie outlives.
const REMEMBERED: usize = 16;

#[cfg(test)]
mod tests;
