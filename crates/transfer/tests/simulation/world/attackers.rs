//! What attackers do: sessions that speak the protocol, and datagrams that do not.

use std::net::SocketAddr;

use weir_units::{Duration, Ecn, Instant, stream};

use super::{World, sender_address};
use crate::hostile::script;
use crate::hosts::{HostileProgram, receiver_address};
use crate::network::Datagram;

/// An attacker that speaks the protocol, while it is there.
pub(super) struct HostileHost {
    pub(super) starts_at: Instant,
    pub(super) ends_at: Instant,
    pub(super) program: Option<HostileProgram>,
}

impl World<'_> {
    pub(super) fn attend_attackers(&mut self) {
        let now = self.now();
        for (n, (host, hostile)) in self.attackers.iter_mut().zip(&self.plan.hostile).enumerate() {
            if self.mended || now >= host.ends_at {
                host.program = None;
            } else if let Some(program) = &mut host.program {
                if program.process.wakes_at() <= now {
                    program.step(now);
                }
            } else if now >= host.starts_at {
                self.tally.count("sessions of hostile senders");
                let mut rng = stream(hostile.seed, "what a stranger says");
                let script = script(&mut rng, &self.plan.senders, hostile.knows);
                let said = (script, hostile.withholds);
                let (key, address) = (self.plan.key.as_ref(), attacker_address(n));
                let program = HostileProgram::start(&self.network, key, address, said, &mut rng);
                host.program = Some(program);
            }
        }
    }

    /// An attacker sends something.
    pub(super) fn annoy(&mut self) {
        let now = self.now();
        if self.hostile.0 == 0 || now < self.hostile.1 {
            return;
        }
        self.hostile.0 -= 1;
        self.hostile.1 = now + self.rng.duration_up_to(Duration::from_millis(20));
        let rng = &mut self.rng;
        let mut datagram = self.network.overheard(rng).unwrap_or_else(|| Datagram {
            from: sender_address(99, 1),
            to: receiver_address(),
            ecn: Ecn::NotEct,
            bytes: vec![0; 60],
        });
        let own = self.plan.key.is_none() || rng.below(2) == 0;
        if own {
            // In clear, a peer that can write as another can write anything.
            datagram.from = sender_address(99, 1 + rng.below(3) as u16);
            datagram.to = receiver_address();
        }
        for _ in 0..rng.below(6) {
            let at = rng.below(datagram.bytes.len().max(1) as u64) as usize;
            if let Some(byte) = datagram.bytes.get_mut(at) {
                *byte = rng.next_u32() as u8;
            }
        }
        if rng.below(4) == 0 {
            datagram.bytes.truncate(rng.below(datagram.bytes.len() as u64 + 1) as usize);
        }
        self.network.inject(datagram);
    }
}

fn attacker_address(n: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 2, n as u8], 30_000))
}
