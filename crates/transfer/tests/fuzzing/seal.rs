//! Two ends of a seal and a gate between attackers and them, on a path that changes, loses, repeats and
//! invents datagrams.
//!
//! The input's bytes are read as a list of operations. Datagrams that are changed were real, so that
//! more than the first check is reached.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use weir_transfer::seal::{Gate, Initiator, Key, Opened, Seal, refuse_in_clear, refuse_sealed};
use weir_transport::wire::{Ports, emit};
use weir_transport::{Flags, Segment, SeqNum};
use weir_units::{Duration, Instant};

use super::input::Input;

/// Runs the operations. Whatever came before, what opens was sealed by the other end, and once.
pub(crate) fn check(input: &[u8]) {
    let mut input = Input(input);
    let mut world = World::new();
    while !input.0.is_empty() {
        world.operate(&mut input);
    }
    world.still_works();
}

struct World {
    now: Instant,
    gate: Gate,
    sender: Seal,
    receiver: Option<Seal>,
    /// When the receiver read the SYN.
    accepted: Instant,
    /// Datagrams that were on the way, by whom they are for.
    to_receiver: Vec<Vec<u8>>,
    to_sender: Vec<Vec<u8>>,
    /// When each segment was sealed. They are numbered from 1.
    sealed: Vec<Instant>,
    opened: BTreeSet<u32>,
    scratch: Vec<u8>,
}

impl World {
    fn new() -> Self {
        let gate = Gate::new(Key::new([1; 32]), [2; 32]);
        let mut world = Self {
            now: Instant::from_nanos(1_000_000_000),
            sender: gate.initiate(),
            gate,
            receiver: None,
            accepted: Instant::ZERO,
            to_receiver: Vec::new(),
            to_sender: Vec::new(),
            sealed: Vec::new(),
            opened: BTreeSet::new(),
            scratch: Vec::new(),
        };
        world.send();
        world
    }

    fn operate(&mut self, input: &mut Input<'_>) {
        match input.u8() % 16 {
            0 => self.now += Duration::from_millis(u64::from(input.u16())),
            1..4 => self.send(),
            4 | 5 => self.answer(),
            6..9 => {
                if let Some(datagram) = pick(&self.to_receiver, input) {
                    self.receive(&datagram);
                }
            }
            9 | 10 => {
                if let Some(datagram) = pick(&self.to_sender, input) {
                    self.hear(&datagram);
                }
            }
            11 | 12 => {
                if let Some(datagram) = pick(&self.to_receiver, input) {
                    self.receive(&changed(datagram, input));
                }
            }
            13 => {
                if let Some(datagram) = pick(&self.to_sender, input) {
                    self.hear(&changed(datagram, input));
                }
            }
            _ => {
                let len = usize::from(input.u8());
                let bytes: Vec<u8> = (0..len).map(|_| input.u8()).collect();
                self.receive(&bytes);
                self.hear(&bytes);
            }
        }
    }

    /// The sender's SYN at first, then its next segment.
    fn send(&mut self) {
        let segment = match self.receiver {
            None => bare(SYN, Flags::SYN),
            Some(_) => {
                self.sealed.push(self.now);
                bare(self.sealed.len() as u32, Flags::ACK)
            }
        };
        let datagram = seal(&mut self.sender, self.now, &segment);
        keep(&mut self.to_receiver, datagram);
    }

    fn answer(&mut self) {
        if let Some(receiver) = &mut self.receiver {
            let datagram = seal(receiver, self.now, &bare(SYN_ACK, Flags::SYN.with(Flags::ACK)));
            keep(&mut self.to_sender, datagram);
        }
    }

    /// A datagram for the receiving side: for its end of the seal, or for the gate if there is none.
    fn receive(&mut self, datagram: &[u8]) {
        let mut answer = Vec::new();
        refuse_in_clear(datagram, &mut answer);
        refuse_sealed(datagram, &mut answer);
        assert!(answer.len() <= datagram.len());
        answer.clear();
        let Some(receiver) = &mut self.receiver else {
            let newcomer = self.gate.receive(self.now, from(), datagram, &mut answer);
            assert!(answer.len() <= datagram.len());
            if !answer.is_empty() {
                keep(&mut self.to_sender, answer);
            }
            if let Some(Initiator { seal, syn, .. }) = newcomer {
                assert_eq!(syn[4..], bare(SYN, Flags::SYN)[4..], "it is what the sender sealed");
                self.receiver = Some(seal);
                self.accepted = self.now;
                self.answer();
            }
            return;
        };
        match receiver.open(self.now, datagram, &mut self.scratch) {
            Opened::Segment(segment) => {
                let number = number(segment);
                assert_eq!(segment[4..], bare(number, Flags::ACK)[4..]);
                assert!(number as usize <= self.sealed.len(), "never sealed: {number}");
                assert!(self.opened.insert(number), "{number} was open before");
            }
            other => assert_eq!(other, Opened::Nothing),
        }
    }

    fn hear(&mut self, datagram: &[u8]) {
        match self.sender.open(self.now, datagram, &mut self.scratch) {
            Opened::Segment(segment) => {
                assert_eq!(segment[4..], bare(SYN_ACK, Flags::SYN.with(Flags::ACK))[4..]);
            }
            Opened::Answer(again) => {
                let again = again.to_vec();
                keep(&mut self.to_receiver, again);
            }
            Opened::Refused(_) | Opened::StatelessReset | Opened::Nothing => {}
        }
    }

    /// However it was treated, the two ends come to terms once they are left alone.
    fn still_works(&mut self) {
        for _ in 0..2 {
            self.send();
            for datagram in std::mem::take(&mut self.to_receiver) {
                if self.receiver.is_none() {
                    self.receive(&datagram);
                    self.deliver_to_sender();
                }
            }
        }
        self.answer();
        self.deliver_to_sender();
        self.to_receiver.clear();
        if self.has_given_up() {
            return;
        }
        self.send();
        let before = self.opened.len();
        let datagram = self.to_receiver.pop().expect("just sent");
        self.receive(&datagram);
        assert_eq!(self.opened.len(), before + 1, "a segment does not come through");
    }

    /// A receiver follows the sender's keys only while it hears from it: one that opened nothing younger than
    /// a key's life has ended its connection long before (`Limits::idle`).
    fn has_given_up(&self) -> bool {
        let sealed = self.opened.iter().map(|&number| self.sealed[number as usize - 1]);
        let heard = sealed.fold(self.accepted, Instant::max);
        self.now.saturating_since(heard) >= KEY_LIFE
    }

    fn deliver_to_sender(&mut self) {
        for datagram in std::mem::take(&mut self.to_sender) {
            self.hear(&datagram);
        }
    }
}

/// The datagram around `segment`.
fn seal(seal: &mut Seal, now: Instant, segment: &[u8]) -> Vec<u8> {
    let mut datagram = Vec::new();
    let announced = seal.sealed_len(segment.len());
    seal.seal(now, segment, &mut datagram).expect("far from spent");
    assert_eq!(datagram.len(), announced);
    datagram
}

fn bare(number: u32, flags: Flags) -> Vec<u8> {
    let mut bytes = Vec::new();
    let segment = Segment { seq: SeqNum(number), flags, ..Segment::default() };
    let (source, destination) = if number == SYN_ACK { (4, 3) } else { (3, 4) };
    emit(&segment, Ports { source, destination }, &[], &mut bytes);
    bytes
}

fn number(segment: &[u8]) -> u32 {
    u32::from_be_bytes(segment[4..8].try_into().expect("four bytes"))
}

fn keep(way: &mut Vec<Vec<u8>>, datagram: Vec<u8>) {
    if way.len() == ON_THE_WAY {
        way.remove(0);
    }
    way.push(datagram);
}

fn pick(way: &[Vec<u8>], input: &mut Input<'_>) -> Option<Vec<u8>> {
    let at = usize::from(input.u8());
    way.get(at % way.len().max(1)).cloned()
}

/// Never the same.
fn changed(mut datagram: Vec<u8>, input: &mut Input<'_>) -> Vec<u8> {
    let at = usize::from(input.u16()) % datagram.len();
    match input.u8() % 4 {
        0 => datagram.truncate(at),
        1 => datagram.push(input.u8()),
        _ => datagram[at] ^= 1 << (input.u8() % 8),
    }
    datagram
}

const SYN: u32 = 0x5359_4e00;
const SYN_ACK: u32 = 0x5359_4e01;
const ON_THE_WAY: usize = 50;
/// `EPOCH_LIFE` of `seal::traffic`.
const KEY_LIFE: Duration = Duration::from_secs(120);

fn from() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 4_000))
}
