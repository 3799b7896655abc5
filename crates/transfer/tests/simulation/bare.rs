//! Senders of bare UDP: what does not arrive is not sent again, and their files are kept if all of them arrived.

use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;

use weir_transfer::file::{OutgoingFile, Verdict};
use weir_units::{Instant, Rng, stream};

use super::disk::{Death, Machine};
use super::hosts::{DatagramProgram, SENT};
use super::network::{Datagram, Network};
use super::plan::BareSending;
use super::tally::Tally;
use super::world::content;

/// A host that runs `weir send --stack udp` once.
pub(crate) struct BareHost<'a> {
    plan: &'a BareSending,
    machine: Machine,
    address: SocketAddr,
    rng: Rng,
    program: Option<DatagramProgram>,
    pub(crate) done: bool,
}

impl<'a> BareHost<'a> {
    pub(crate) fn new(seed: u64, n: usize, plan: &'a BareSending) -> Self {
        let name = format!("sender {n} of bare UDP");
        let machine = Machine::new(seed, &name);
        for (name, seed, len) in &plan.sending.files {
            machine.put(&Path::new(SENT).join(name), &content(*seed, *len));
        }
        let address = SocketAddr::from(([10, 0, 3, n as u8], 20_000));
        Self { plan, machine, address, rng: stream(seed, &name), program: None, done: false }
    }

    /// When it next does something.
    pub(crate) fn next_time(&self) -> Option<Instant> {
        let killed_at = self.plan.killed_at.unwrap_or(Instant::MAX);
        let program = self.program.as_ref();
        let next = program.map_or(self.plan.sending.starts_at, |one| one.process.wakes_at());
        (!self.done).then(|| next.min(killed_at))
    }

    /// Takes a datagram in if it is for this host, and returns it otherwise.
    pub(crate) fn deliver(&mut self, datagram: Datagram) -> Option<Datagram> {
        match &mut self.program {
            Some(program) if datagram.to == self.address => program.process.deliver(datagram),
            _ => return Some(datagram),
        }
        None
    }

    /// No program listens where it has sent a datagram from `from` to.
    pub(crate) fn on_refusal(&mut self, now: Instant, from: SocketAddr, by: SocketAddr) {
        if let Some(program) = self.program.as_mut().filter(|_| from == self.address) {
            program.process.core.on_refusal(now, by.ip());
        }
    }

    /// Returns the files of a command that has ended.
    pub(crate) fn attend(
        &mut self,
        now: Instant,
        network: &Rc<Network>,
        tally: &mut Tally,
    ) -> Option<Vec<OutgoingFile>> {
        if self.done || self.next_time() > Some(now) {
            return None;
        }
        if self.plan.killed_at.is_some_and(|at| at <= now) {
            tally.count("deaths of a sender of bare UDP");
            self.machine.kill(Death::Process);
            self.done = true;
            self.program = None;
            return None;
        }
        let Some(program) = &mut self.program else {
            tally.count("commands run by senders of bare UDP");
            let Self { plan, machine, address, rng, .. } = self;
            self.program = DatagramProgram::start(network, machine, &plan.sending, *address, rng);
            self.done = self.program.is_none();
            return None;
        };
        let (_, files) = program.step(now)?;
        let kept = |file: &&OutgoingFile| matches!(file.verdict, Some(Verdict::Kept { .. }));
        tally.add("files of bare UDP that were kept", files.iter().filter(kept).count() as u64);
        self.done = true;
        self.program = None;
        Some(files)
    }
}
