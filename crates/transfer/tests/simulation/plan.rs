//! What a seed stands for: who sends what, over which network, and what goes wrong when.

use weir_transfer::seal::Key;
use weir_transfer::{Carrier, SendOptions};
use weir_units::{Bytes, Duration, Instant, Rate, Rng, stream};

use super::disk::Death;
use super::hostile::Hostile;
use super::network::Conditions;

/// What a seed stands for.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) key: Option<Key>,
    pub(crate) senders: Vec<Sending>,
    pub(crate) bare: Vec<BareSending>,
    /// Until everything is mended.
    pub(crate) conditions: Conditions,
    /// In order of time.
    pub(crate) faults: Vec<(Instant, Fault)>,
    /// After this nothing goes wrong any more.
    pub(crate) mended_at: Instant,
    /// When every honest transfer must have ended.
    pub(crate) patience_ends: Instant,
    /// How long the finalizer takes for a task, at most.
    pub(crate) keeper_latency: Duration,
    /// Whether a machine reports that no program listens on a port.
    pub(crate) refusals: bool,
    /// How many datagrams of attackers arrive.
    pub(crate) hostile_datagrams: u64,
    /// Attackers that speak the protocol.
    pub(crate) hostile: Vec<Hostile>,
    /// The receiver's memory for all senders.
    pub(crate) memory: Bytes,
}

/// A sender's command.
#[derive(Debug)]
pub(crate) struct Sending {
    pub(crate) options: SendOptions,
    /// Name and seed of the content, and its length.
    pub(crate) files: Vec<(String, u64, usize)>,
    pub(crate) starts_at: Instant,
    /// Another sender has the same files.
    pub(crate) twin: bool,
}

/// A command with `--stack udp`, and when it is killed.
#[derive(Debug)]
pub(crate) struct BareSending {
    pub(crate) sending: Sending,
    pub(crate) killed_at: Option<Instant>,
}

impl Sending {
    /// The folders in which its files are, the outermost first, and one without a file.
    pub(crate) fn folders(&self) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for (name, ..) in &self.files {
            let ends = name.match_indices('/').map(|(at, _)| name[..at].to_owned());
            all.extend(ends);
        }
        if let Some(top) = all.first() {
            all.push(format!("{top}/empty"));
        }
        all.sort();
        all.dedup();
        all
    }

    /// In how many round trips all is sent at least, about.
    fn windows(&self) -> u64 {
        let segments = |len: usize| len as u64 / u64::from(self.options.mss) + 1;
        let all: u64 = self.files.iter().map(|(.., len)| segments(*len)).sum();
        let window = match &self.options.carrier {
            Carrier::Stack(stack) if stack.to_string().starts_with("stop-and-wait") => 1,
            _ => 20,
        };
        10 + all / window
    }
}

/// What goes wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// The receiver or its machine dies, and is back after a while.
    KillReceiver(Death, Duration),
    /// The same, at the operation of the disk that comes after this many others.
    DoomReceiver(u64, Death, Duration),
    /// A sender or its machine dies.
    KillSender(usize, Death, Duration),
    DoomSender(usize, u64, Death, Duration),
    /// Nothing arrives.
    Cut,
    /// The receiver stands still.
    Pause,
    /// The disk has space for this many more bytes.
    FillUp(u64),
    /// One of this many operations fails.
    DiskErrors(u64),
    /// The operation fails that comes after this many others.
    DiskError(u64),
    /// Another program changes partial files at some of this many operations.
    Intrude(u64),
    /// The end of what lasted.
    Reconnect,
    Resume,
    MendDisk,
}

impl Plan {
    pub(crate) fn of(seed: u64) -> Self {
        let mut rng = stream(seed, "plan");
        let rng = &mut rng;
        let key = one_in(rng, 2).then(|| Key::new([seed as u8; 32]));
        let conditions = conditions(rng);
        let senders = senders(rng, key.as_ref());
        let bytes: u64 = senders.iter().flat_map(|one| &one.files).map(|file| file.2 as u64).sum();
        let on_the_wire = conditions.rate.transmit_time(Bytes(bytes), &mut 0);
        let windows = senders.iter().map(|one| one.windows()).sum();
        let transfer = on_the_wire + conditions.round_trip().saturating_mul(windows);
        let (faults, mended_at) = faults(rng, senders.len(), transfer);
        let bare = bare(seed, key.as_ref());
        let mut senders = senders;
        put_in_folders(&mut stream(seed, "folders"), &mut senders);
        let (hostile, memory) = hostile(seed, mended_at, senders.len() + bare.len());
        // Each may have to start anew some times, and slow start takes its time.
        let patience = Duration::from_secs(150) + transfer.saturating_mul(8);
        Self {
            key,
            senders,
            bare,
            conditions,
            faults,
            mended_at,
            patience_ends: mended_at + patience,
            keeper_latency: long_tailed(rng, 50_000, 5),
            refusals: one_in(rng, 2),
            hostile_datagrams: if one_in(rng, 3) { rng.below(200) } else { 0 },
            hostile,
            memory,
        }
    }

    /// One file of this size, and nothing goes wrong.
    pub(crate) fn without_faults(len: usize) -> Self {
        let mut rng = stream(0, "plan without faults");
        let conditions = Conditions {
            delay: Duration::from_millis(1),
            jitter: Duration::ZERO,
            rate: Rate::from_mbit(4),
            loss: 0,
            duplication: 0,
            straggling: 0,
            corruption: 0,
            blocking: 0,
        };
        let mut sender = senders(&mut rng, None).swap_remove(0);
        sender.options.carrier = Carrier::Stack("rack/bbr".parse().expect("a stack"));
        sender.files = vec![("file-0-0.bin".to_owned(), 1, len)];
        sender.twin = false;
        sender.starts_at = Instant::ZERO + Duration::from_millis(5);
        let mended_at = Instant::ZERO + Duration::from_secs(100);
        Self {
            key: None,
            senders: vec![sender],
            bare: Vec::new(),
            conditions,
            faults: Vec::new(),
            mended_at,
            patience_ends: mended_at + Duration::from_secs(150),
            keeper_latency: Duration::from_millis(1),
            refusals: true,
            hostile_datagrams: 0,
            hostile: Vec::new(),
            memory: Bytes(64 << 20),
        }
    }

    /// The same network without its faults.
    pub(crate) fn calm(&self) -> Conditions {
        let mut conditions = self.conditions;
        (conditions.loss, conditions.corruption, conditions.blocking) = (0, 0, 0);
        (conditions.duplication, conditions.straggling) = (0, 0);
        conditions
    }
}

fn conditions(rng: &mut Rng) -> Conditions {
    let delay = long_tailed(rng, 20_000, 4);
    let jitter = if one_in(rng, 2) { Duration::ZERO } else { delay / 2 };
    Conditions {
        delay,
        jitter,
        rate: Rate::from_bits_per_sec([1, 5, 20, 100, 1_000][rng.below(5) as usize] * 1_000_000),
        loss: [0, 0, 5, 20, 100, 250][rng.below(6) as usize],
        duplication: [0, 0, 10, 100][rng.below(4) as usize],
        straggling: [0, 0, 0, 5, 50][rng.below(5) as usize],
        corruption: [0, 0, 2, 20, 100][rng.below(5) as usize],
        blocking: [0, 0, 0, 20][rng.below(4) as usize],
    }
}

fn senders(rng: &mut Rng, key: Option<&Key>) -> Vec<Sending> {
    let count = [1, 1, 1, 1, 2, 2, 3][rng.below(7) as usize];
    let twins = count > 1 && one_in(rng, 3);
    let mut senders: Vec<Sending> = Vec::new();
    for n in 0..count {
        let files = match senders.first().filter(|_| twins) {
            Some(first) => first.files.clone(),
            None => files(rng, n),
        };
        let mss = [300, 1_000, 1_420, 1_420, 8_900, 32_000][rng.below(6) as usize];
        let stack = STACKS[rng.below(STACKS.len() as u64) as usize];
        let options = SendOptions {
            carrier: Carrier::Stack(stack.parse().expect("a stack")),
            mss,
            initial_window: 10,
            max_rate: None,
            pacing: true,
            max_retransmits: 100,
            max_wait: Duration::from_secs(30),
            key: key.cloned(),
        };
        let starts_at = Instant::ZERO + rng.duration_up_to(Duration::from_millis(100));
        senders.push(Sending { options, files, starts_at, twin: twins });
    }
    senders
}

/// Some send a folder: twins the same one.
fn put_in_folders(rng: &mut Rng, senders: &mut [Sending]) {
    for n in 0..senders.len() {
        if !one_in(rng, 3) || senders[n].twin && n > 0 {
            continue;
        }
        for (at, (name, ..)) in senders[n].files.iter_mut().enumerate() {
            *name = format!("tree-{n}/{}{name}", ["a/", "", "a/b/"][at % 3]);
        }
        let files = senders[n].files.clone();
        for twin in senders.iter_mut().filter(|other| other.twin) {
            twin.files.clone_from(&files);
        }
    }
}

/// Senders of bare UDP, in every third simulation.
fn bare(seed: u64, key: Option<&Key>) -> Vec<BareSending> {
    let rng = &mut stream(seed, "senders of bare UDP");
    let count = [0, 0, 0, 0, 1, 2][rng.below(6) as usize];
    let mut all = Vec::new();
    for n in 0..count {
        let mut sending = senders(rng, key).swap_remove(0);
        for (name, _, len) in &mut sending.files {
            *name = format!("bare-{n}-{name}");
            *len = (*len).min(300_000);
        }
        let rate = [0, 1, 10, 100][rng.below(4) as usize];
        sending.options.carrier = Carrier::Udp;
        sending.options.max_rate = (rate > 0).then(|| Rate::from_mbit(rate));
        sending.starts_at += long_tailed(rng, 1_000_000, 3);
        let killed_at = one_in(rng, 4).then(|| sending.starts_at + long_tailed(rng, 200_000, 4));
        all.push(BareSending { sending, killed_at });
    }
    all
}

fn files(rng: &mut Rng, sender: usize) -> Vec<(String, u64, usize)> {
    let count = [1, 1, 1, 2, 3][rng.below(5) as usize];
    let file = |n| {
        let most = [2_000, 70_000, 70_000, 300_000, 300_000, 4 << 20][rng.below(6) as usize];
        let name = format!("file-{sender}-{n}.bin");
        let len = rng.below(most) as usize;
        // Sometimes so long that what follows it lies in two pages.
        let len = if one_in(rng, 8) { len / 4_096 * 4_096 + 4_050 } else { len };
        (name, rng.next_u64(), len)
    };
    (0..count).map(file).collect()
}

/// What goes wrong within about twice the time that the transfers take.
fn faults(rng: &mut Rng, senders: usize, transfer: Duration) -> (Vec<(Instant, Fault)>, Instant) {
    let count = [0, 1, 1, 2, 2, 3, 5][rng.below(7) as usize];
    let mut faults = Vec::new();
    let mut mended_at = Instant::ZERO + transfer.saturating_mul(2);
    let mut start = Instant::ZERO;
    for _ in 0..count {
        let at = start + rng.duration_up_to(transfer.saturating_mul(2));
        let lasts = long_tailed(rng, 2_000_000, 5);
        let death = if one_in(rng, 3) { Death::Machine } else { Death::Process };
        let sender = rng.below(senders as u64) as usize;
        let (fault, end) = match rng.below(13) {
            0 | 1 => (Fault::KillReceiver(death, lasts), None),
            2..=4 => (Fault::DoomReceiver(rng.below(60), death, lasts), None),
            5 | 6 => (Fault::KillSender(sender, death, lasts), None),
            7 => (Fault::DoomSender(sender, rng.below(20), death, lasts), None),
            8 | 9 => (Fault::Cut, Some(Fault::Reconnect)),
            10 => (Fault::Pause, Some(Fault::Resume)),
            11 => (Fault::DiskError(rng.below(60)), Some(Fault::MendDisk)),
            _ if one_in(rng, 2) => (Fault::FillUp(rng.below(200_000)), Some(Fault::MendDisk)),
            _ => (Fault::DiskErrors(1 + rng.below(20)), Some(Fault::MendDisk)),
        };
        faults.push((at, fault));
        faults.extend(end.map(|end| (at + lasts, end)));
        mended_at = mended_at.max(at + lasts);
        if one_in(rng, 2) {
            // The next comes after this one.
            start = at + lasts;
        }
    }
    faults.sort_by_key(|(at, _)| *at);
    (faults, mended_at)
}

/// Attackers that speak the protocol, and the memory that is there for all.
fn hostile(seed: u64, until: Instant, senders: usize) -> (Vec<Hostile>, Bytes) {
    let mut rng = stream(seed, "strangers that speak the protocol");
    let count = if one_in(&mut rng, 4) { 1 + rng.below(8) } else { 0 };
    let until = until.saturating_since(Instant::ZERO);
    let all = (0..count).map(|_| Hostile::of(&mut rng, until)).collect();
    // A session may hold 1 MiB, and what describes it.
    let enough = senders as u64 * (2 << 20);
    (all, Bytes([enough, 64 << 20][rng.below(2) as usize]))
}

pub(crate) fn one_in(rng: &mut Rng, count: u64) -> bool {
    rng.below(count) == 0
}

/// A duration of `micros` times a power of ten: most are short.
fn long_tailed(rng: &mut Rng, largest_micros: u64, powers: u64) -> Duration {
    let shrink = 10_u64.pow(rng.below(powers) as u32);
    let most = Duration::from_micros(largest_micros.saturating_mul(10) / shrink);
    rng.duration_up_to(most)
}

const STACKS: &[&str] = &[
    "rack/bbr",
    "rack/bbr",
    "rack/cubic",
    "sack/reno",
    "newreno/reno",
    "go-back-n(30)/none",
    "stop-and-wait/none",
];
