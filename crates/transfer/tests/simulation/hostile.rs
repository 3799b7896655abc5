//! What attackers send who speak the protocol: frames in any order, of any sizes, true or false, and now and then a
//! flipped bit. Some know the hash of a file that others send.

use weir_transfer::file::{Announcement, Attributes, EntryHeader, EntryKind, Header};
use weir_units::{Duration, Instant, Rng};

use super::plan::{Sending, one_in};
use super::script::Script;
use super::world::content;

/// An attacker that speaks the protocol.
#[derive(Debug)]
pub(crate) struct Hostile {
    pub(crate) starts_at: Instant,
    /// When it vanishes.
    pub(crate) ends_at: Instant,
    /// Datagrams per thousand that never leave, so that what it says comes with holes.
    pub(crate) withholds: u64,
    pub(crate) seed: u64,
    /// Whether it announces files that others send.
    pub(crate) knows: bool,
}

impl Hostile {
    pub(crate) fn of(rng: &mut Rng, until: Duration) -> Self {
        let starts_at = Instant::ZERO + rng.duration_up_to(until);
        Self {
            starts_at,
            ends_at: starts_at + rng.duration_up_to(until),
            withholds: [0, 50, 300, 600][rng.below(4) as usize],
            seed: rng.next_u64(),
            knows: one_in(rng, 4),
        }
    }
}

/// What it says. The names of its own files begin with [`NAME`].
pub(crate) fn script(rng: &mut Rng, honest: &[Sending], knows: bool) -> Script {
    let mut script = Script::default();
    say(&mut script, Announcement::Hello { files: 1 + rng.below(40) as u32 });
    for _ in 0..rng.below(20) {
        line(rng, &mut script, honest, knows);
    }
    for _ in 0..rng.below(3).saturating_sub(1) * 4 {
        let at = rng.below(script.stream.len() as u64 * 8) as usize;
        script.stream[at / 8] ^= 1 << (at % 8);
    }
    script
}

fn line(rng: &mut Rng, script: &mut Script, honest: &[Sending], knows: bool) {
    match rng.below(14) {
        11 => say(script, Announcement::Ask(header(rng, honest, knows))),
        12 => say(script, entry(rng)),
        13 => {
            let offset = pick(rng, &[0, 0, 5_000, 1 << 50]);
            say(script, Announcement::Hole { offset, len: pick(rng, &[1, 5_000, 1 << 40]) });
        }
        0..=2 => say(script, Announcement::File(header(rng, honest, knows))),
        3 => {
            let content = content(rng.next_u64(), rng.below(100_000) as usize);
            let (size, hash) = (content.len() as u64, *blake3::hash(&content).as_bytes());
            say(script, Announcement::File(Header::new(name(rng), size, hash)));
            say(script, Announcement::Data { offset: 0, len: size.max(1) });
            script.stream.extend(content);
        }
        4 | 5 => {
            let offset = pick(rng, &[0, 0, 1, 5_000, 1 << 20, 1 << 50]);
            let len = pick(rng, &[1, 1, 10, 5_000, 65_536, 1 << 40]);
            say(script, Announcement::Data { offset, len });
            noise(rng, script, len.min(20_000));
        }
        6 => datagram(rng, script),
        7 => say(script, Announcement::Sent { datagrams: rng.below(1_000) }),
        8 => {
            let mut header = header(rng, honest, knows);
            header.size = header.size.max(1 + rng.below(4 << 20));
            say(script, Announcement::Repair(header));
            for _ in 0..rng.below(6) {
                let hashes = (0..1 + rng.below(8)).map(|_| hash(rng)).collect();
                say(script, Announcement::Parts(hashes));
            }
        }
        9 => noise(rng, script, 200),
        _ if one_in(rng, 4) => say(script, Announcement::End),
        _ => {}
    }
}

/// A file in datagrams, of which some come, and some that belong nowhere.
fn datagram(rng: &mut Rng, script: &mut Script) {
    let piece = pick(rng, &[0, 1, 63, 64, 1_000, 60_000]) as u32;
    let size = pick(rng, &[0, 1, 64, 100_000, 4 << 20, 1 << 32, 1 << 40]);
    let header = Header::new(name(rng), size, hash(rng));
    say(script, Announcement::Datagram { header, piece });
    for _ in 0..rng.below(50) {
        let number = rng.below(1 << 20) * u64::from(piece.max(1)) + rng.below(2);
        let len = if one_in(rng, 3) { rng.below(1_400) as u32 } else { piece.min(1_400) };
        let bytes = content(rng.next_u64(), len as usize);
        script.datagram.push_back((number, bytes));
    }
}

fn header(rng: &mut Rng, honest: &[Sending], knows: bool) -> Header {
    if knows && one_in(rng, 2) {
        let sending = &honest[rng.below(honest.len() as u64) as usize];
        let (name, seed, len) = &sending.files[rng.below(sending.files.len() as u64) as usize];
        let hash = *blake3::hash(&content(*seed, *len)).as_bytes();
        return Header::new(name.clone(), *len as u64, hash);
    }
    let size = pick(rng, &[0, 1, 3_000, 100_000, 1 << 20, 1 << 40, i64::MAX as u64]);
    Header::new(name(rng), size, hash(rng))
}

fn name(rng: &mut Rng) -> String {
    let path = if one_in(rng, 4) { "/../../" } else { "" };
    let endings = ["", "[bold]", "\u{202e}", ".part"];
    let tree = if one_in(rng, 4) { format!("{NAME}tree{}/", rng.below(2)) } else { String::new() };
    format!("{path}{tree}{NAME}{}{}", rng.below(5), endings[rng.below(4) as usize])
}

fn hash(rng: &mut Rng) -> [u8; 32] {
    std::array::from_fn(|_| rng.next_u32() as u8)
}

fn noise(rng: &mut Rng, script: &mut Script, most: u64) {
    let len = rng.below(most + 1) as usize;
    script.stream.extend(content(rng.next_u64(), len));
}

fn say(script: &mut Script, frame: Announcement) {
    script.say(frame);
}

/// A folder or a link, where it is welcome and where it is not.
fn entry(rng: &mut Rng) -> Announcement {
    let tree = format!("{NAME}tree{}", rng.below(2));
    let inside = ["", "/a", "/a/b", "/../x", "/.weir-0.part", "/c"][rng.below(6) as usize];
    let targets = ["a", "../..", "/etc", "a/b", "..", "c"];
    let kind = match rng.below(4) {
        0 | 1 => EntryKind::Folder,
        2 => EntryKind::FolderEnd,
        _ => EntryKind::Link { target: targets[rng.below(6) as usize].to_owned() },
    };
    let path = format!("{tree}{inside}");
    Announcement::Entry(EntryHeader { number: 0, path, attributes: Attributes::default(), kind })
}

fn pick(rng: &mut Rng, from: &[u64]) -> u64 {
    from[rng.below(from.len() as u64) as usize]
}

/// How the names of attackers' files begin.
pub(crate) const NAME: &str = "hostile-";
