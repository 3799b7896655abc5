//! One simulation: both ends, the network and the disks in virtual time, from one seed.

mod attackers;
mod faults;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;

use weir_transport::Segment;
use weir_transport::wire;
use weir_units::{Duration, Instant, Rng, stream};

use self::attackers::HostileHost;
use super::bare::BareHost;
use super::checker::{Checker, FlowEnd};
use super::disk::{Death, Machine};
use super::hostile::Hostile;
use super::hosts::{RECEIVED, ReceivingProgram, SENT, SendingProgram, receiver_address};
use super::network::{Datagram, Network};
use super::plan::{Fault, Plan};
use super::tally::Tally;

/// One simulation.
pub(crate) struct World<'a> {
    plan: &'a Plan,
    rng: Rng,
    network: Rc<Network>,
    receiver: Receiver,
    senders: Vec<SendingHost<'a>>,
    bare: Vec<BareHost<'a>>,
    faults: VecDeque<(Instant, Fault)>,
    /// How many datagrams attackers have still to send, and when the next.
    hostile: (u64, Instant),
    attackers: Vec<HostileHost>,
    mended: bool,
    checker: Checker,
    tally: Tally,
    turns: u64,
    trace: u64,
    chatty: bool,
}

struct Receiver {
    machine: Machine,
    program: Option<ReceivingProgram>,
    starts_at: Instant,
    /// How long it will be down after what is to happen to it.
    down: Duration,
    paused: bool,
    cut: bool,
}

struct SendingHost<'a> {
    machine: Machine,
    program: Option<SendingProgram<'a>>,
    starts_at: Instant,
    down: Duration,
    runs: u16,
    done: bool,
}

impl<'a> World<'a> {
    pub(crate) fn new(seed: u64, plan: &'a Plan, chatty: bool) -> Self {
        let senders = plan.senders.iter().enumerate().map(|(n, sending)| {
            let machine = Machine::new(seed, &format!("disk of sender {n}"));
            for (name, seed, len) in &sending.files {
                machine.put(&Path::new(SENT).join(name), &content(*seed, *len));
            }
            let starts_at = sending.starts_at;
            let down = Duration::ZERO;
            SendingHost { machine, program: None, starts_at, down, runs: 0, done: false }
        });
        let attackers = plan.hostile.iter().map(|hostile| {
            let Hostile { starts_at, ends_at, .. } = *hostile;
            HostileHost { starts_at, ends_at, program: None }
        });
        let receiver = Receiver {
            machine: Machine::new(seed, "disk of the receiver"),
            program: None,
            starts_at: Instant::ZERO,
            down: Duration::ZERO,
            paused: false,
            cut: false,
        };
        Self {
            plan,
            rng: stream(seed, "world"),
            network: Network::new(seed, plan.conditions),
            receiver,
            senders: senders.collect(),
            bare: plan
                .bare
                .iter()
                .enumerate()
                .map(|(n, one)| BareHost::new(seed, n, one))
                .collect(),
            faults: plan.faults.iter().copied().collect(),
            hostile: (plan.hostile_datagrams, Instant::ZERO),
            attackers: attackers.collect(),
            mended: false,
            checker: Checker::new(plan),
            tally: Tally::default(),
            turns: 0,
            trace: 0xcbf2_9ce4_8422_2325,
            chatty,
        }
    }

    /// Lets everything happen. Returns what was wrong, if anything was.
    pub(crate) fn run(&mut self) -> Option<String> {
        self.say(|| format!("{:#?}", self.plan));
        while !self.is_over() && self.checker.violation().is_none() {
            let next = self.next_time();
            if next > self.plan.patience_ends {
                self.checker.report(format!("not at an end by {}", self.plan.patience_ends));
                break;
            }
            self.network.now.set(next);
            self.checker.at(next, self.is_hindered());
            self.happen();
        }
        self.end();
        self.checker.violation().map(|what| format!("at {}: {what}", self.now()))
    }

    /// A number that differs as soon as anything happens otherwise.
    pub(crate) fn trace(&self) -> u64 {
        self.trace
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }

    fn now(&self) -> Instant {
        self.network.now.get()
    }

    fn is_over(&self) -> bool {
        let done = self.senders.iter().all(|sender| sender.done);
        self.mended && done && self.bare.iter().all(|sender| sender.done)
    }

    /// Whether nothing can arrive.
    fn is_hindered(&self) -> bool {
        self.receiver.program.is_none() || self.receiver.paused || self.receiver.cut
    }

    fn next_time(&self) -> Instant {
        let receiver = match &self.receiver.program {
            None => Some(self.receiver.starts_at),
            Some(_) if self.receiver.paused => None,
            Some(program) => {
                let wakes = program.process.wakes_at();
                Some(program.keeper_at.map_or(wakes, |at| at.min(wakes)))
            }
        };
        let sender = |sender: &SendingHost<'_>| match &sender.program {
            _ if sender.done => None,
            None => Some(sender.starts_at),
            Some(program) => Some(program.process.wakes_at()),
        };
        let senders = self.senders.iter().filter_map(sender).min();
        let fault = self.faults.front().map(|(at, _)| *at);
        let mending = (!self.mended).then_some(self.plan.mended_at);
        let hostile = Some(self.hostile.1).filter(|_| self.hostile.0 > 0);
        let attackers = self.attackers.iter().filter_map(|host| match &host.program {
            _ if self.mended || self.now() >= host.ends_at => None,
            None => Some(host.starts_at),
            Some(program) => Some(program.process.wakes_at().min(host.ends_at)),
        });
        let arrival = self.network.next_arrival();
        let bare = self.bare.iter().filter_map(BareHost::next_time).min();
        let next = [receiver, senders, bare, fault, mending, hostile, attackers.min(), arrival]
            .into_iter()
            .flatten()
            .min();
        next.unwrap_or(self.plan.patience_ends).max(self.now())
    }

    fn happen(&mut self) {
        let now = self.now();
        while self.faults.front().is_some_and(|(at, _)| *at <= now) {
            let Some((_, fault)) = self.faults.pop_front() else { break };
            self.note(1, self.faults.len() as u64, 0);
            self.say(|| format!("{fault:?}"));
            self.strike(fault);
        }
        if !self.mended && now >= self.plan.mended_at {
            self.mend();
        }
        self.annoy();
        while let Some(datagram) = self.network.take_arrived() {
            self.note(2, datagram.bytes.len() as u64, u64::from(datagram.to.port()));
            self.say(|| described(&datagram));
            self.deliver(datagram);
        }
        self.attend_attackers();
        self.attend_receiver();
        for n in 0..self.senders.len() {
            self.attend_sender(n);
        }
        for host in &mut self.bare {
            if let Some(files) = host.attend(now, &self.network, &mut self.tally) {
                self.checker.on_bare_end(&files, &self.receiver.machine);
            }
        }
    }

    fn deliver(&mut self, mut datagram: Datagram) {
        let receiver = self.receiver.program.as_mut().map(|program| &mut program.process);
        if let Some(process) = receiver.filter(|process| process.address() == datagram.to) {
            return process.deliver(datagram);
        }
        for sender in &mut self.senders {
            if let Some(program) = &mut sender.program
                && program.process.address() == datagram.to
            {
                return program.process.deliver(datagram);
            }
        }
        let attackers = self.attackers.iter_mut().filter_map(|host| host.program.as_mut());
        for process in attackers.map(|program| &mut program.process) {
            if process.address() == datagram.to {
                return process.deliver(datagram);
            }
        }
        for host in &mut self.bare {
            let Some(other) = host.deliver(datagram) else { return };
            datagram = other;
        }
        // ICMP says that no program listens, if the machine says it.
        let to_receiver = datagram.to == receiver_address();
        if to_receiver && self.plan.refusals && self.receiver.program.is_none() {
            let (now, by) = (self.now(), datagram.to.ip());
            for host in &mut self.bare {
                host.on_refusal(now, datagram.from, datagram.to);
            }
            for sender in &mut self.senders {
                if let Some(program) = &mut sender.program
                    && program.process.address() == datagram.from
                {
                    program.process.core.on_refusal(now, by);
                }
            }
        }
    }

    fn attend_receiver(&mut self) {
        let now = self.now();
        let Receiver { machine, program, starts_at, paused, .. } = &mut self.receiver;
        if program.is_none() && now >= *starts_at {
            *program =
                Some(ReceivingProgram::start(&self.network, machine, self.plan, &mut self.rng));
            self.note(3, 0, 0);
            self.say(|| "the receiver starts".into());
        } else if let Some(program) = program.as_mut().filter(|_| !*paused) {
            if program.keeper_at.is_some_and(|at| at <= now) {
                let latency = self.rng.duration_up_to(self.plan.keeper_latency);
                program.work(now, latency);
            }
            if program.process.wakes_at() <= now {
                let latency = self.rng.duration_up_to(self.plan.keeper_latency);
                program.step(now, latency);
                self.turns += 1;
                self.checker.on_receiver_turn(program, machine);
            }
        }
        self.checker.on_published(&self.receiver.machine);
        if let Some(death) = self.receiver.machine.take_death() {
            self.tally.count("deaths at an operation of a disk");
            self.receiver_died(death, self.receiver.down);
        }
    }

    fn receiver_died(&mut self, death: Death, down: Duration) {
        self.note(4, death as u64, down.as_nanos());
        self.say(|| format!("the receiver dies: {death:?}, for {down}"));
        self.say(|| format!("it leaves {:?}", self.receiver.machine.names()));
        self.count(death);
        // It cannot do anything any more, nor can what it leaves behind.
        self.receiver.program = None;
        self.receiver.starts_at = self.now() + down;
        self.receiver.paused = false;
        self.checker.on_receiver_death(death, &self.receiver.machine);
    }

    fn attend_sender(&mut self, n: usize) {
        let (now, network) = (self.now(), &self.network);
        let host = &mut self.senders[n];
        if host.done {
            return;
        }
        let Some(program) = &mut host.program else {
            if now >= host.starts_at {
                host.runs += 1;
                self.tally.count("commands run by senders");
                let address = sender_address(n, host.runs);
                let sending = &self.plan.senders[n];
                let started =
                    SendingProgram::start(network, &host.machine, sending, address, &mut self.rng);
                host.program = started;
                self.checker.on_sender_start(n);
                self.note(5, n as u64, 0);
                self.say(|| format!("sender {n} starts"));
                self.bury_sender(n);
            }
            return;
        };
        if program.process.wakes_at() > now {
            return;
        }
        self.turns += 1;
        let ended = program.step(now);
        if let Some((id, files)) = program.present() {
            self.checker.on_sender_turn(n, id, files);
        }
        if let Some(death) = host.machine.take_death() {
            self.tally.count("deaths at an operation of a disk");
            self.sender_died(n, death, self.senders[n].down);
        } else if let Some((left, result)) = ended
            && let Some(program) = host.program.take()
        {
            let sent = program.finish(left);
            self.note(6, n as u64, sent.bytes_sent);
            self.say(|| format!("sender {n} ends: {result:?}, {:?}", verdicts(&sent)));
            let ending = FlowEnd { sender: n, sent: &sent, result: &result };
            if self.checker.on_end(&ending, &self.receiver.machine) {
                self.senders[n].done = true;
                let sizes = sent.files.iter().map(|file| file.header.size);
                self.tally.add("files", sent.files.len() as u64);
                self.tally.add("bytes in files", sizes.sum());
            } else {
                self.senders[n].starts_at = now + RUNS_AGAIN_AFTER;
            }
        }
    }

    /// A sender that could not even read its files.
    fn bury_sender(&mut self, n: usize) {
        if let Some(death) = self.senders[n].machine.take_death() {
            self.tally.count("deaths at an operation of a disk");
            self.sender_died(n, death, self.senders[n].down);
        } else if self.senders[n].program.is_none() {
            self.checker.report(format!("sender {n} cannot read its files"));
        }
    }

    fn sender_died(&mut self, n: usize, death: Death, down: Duration) {
        self.note(7, n as u64, down.as_nanos());
        self.say(|| format!("sender {n} dies: {death:?}, for {down}"));
        self.tally.count(match death {
            Death::Process => "deaths of a sender",
            Death::Machine => "power failures at a sender",
        });
        self.senders[n].program = None;
        self.senders[n].starts_at = self.now() + down;
    }

    /// What must hold when all is over, even if the lights go out now.
    fn end(&mut self) {
        self.tally.add("virtual seconds", self.now().as_nanos() / 1_000_000_000);
        self.tally.add("turns", self.turns);
        self.tally.add_all(&self.network.tally());
        self.tally.add_all(&self.receiver.machine.tally());
        if self.checker.violation().is_none() {
            self.receiver.machine.kill(Death::Machine);
            self.receiver.program = None;
            self.checker.on_receiver_death(Death::Machine, &self.receiver.machine);
            let names = self.receiver.machine.names();
            self.note(8, names.len() as u64, names.iter().map(|(_, len)| *len as u64).sum());
        }
    }

    fn count(&mut self, death: Death) {
        match death {
            Death::Process => self.tally.count("deaths of the receiver"),
            Death::Machine => self.tally.count("power failures at the receiver"),
        }
    }

    /// FNV-1a over what happens.
    fn note(&mut self, kind: u64, a: u64, b: u64) {
        for word in [self.now().as_nanos(), kind, a, b] {
            self.trace = (self.trace ^ word).wrapping_mul(0x0100_0000_01b3);
        }
    }

    #[expect(clippy::print_stderr, reason = "a run of one seed prints its events")]
    fn say(&self, what: impl FnOnce() -> String) {
        if self.chatty {
            eprintln!("{:>12.6} s  {}", self.now().as_nanos() as f64 / 1e9, what());
        }
    }
}

fn verdicts(sent: &weir_transfer::Sent) -> Vec<String> {
    sent.files.iter().map(|file| format!("{} {:?}", file.header.size, file.verdict)).collect()
}

fn described(datagram: &Datagram) -> String {
    let Datagram { from, to, bytes, .. } = datagram;
    let what = match wire::parse(bytes) {
        Ok(parsed) => {
            let Segment { seq, ack, flags, payload_len, .. } = parsed.segment;
            format!("{flags:?} {seq:?} ack {ack:?} {payload_len} bytes")
        }
        Err(_) => format!("{} bytes", bytes.len()),
    };
    format!("{from} > {to}: {what}")
}

fn sender_address(n: usize, run: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 1, n as u8], 20_000 + run))
}

/// Bytes without a pattern.
pub(crate) fn content(seed: u64, len: usize) -> Vec<u8> {
    let mut rng = stream(seed, "content");
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        bytes.extend(rng.next_u64().to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// Where the files that arrived must be.
pub(crate) fn received(name: &str) -> std::path::PathBuf {
    Path::new(RECEIVED).join(name)
}

/// A user starts a command again that has failed.
const RUNS_AGAIN_AFTER: Duration = Duration::from_secs(1);
