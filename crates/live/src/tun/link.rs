//! Two TUN devices and the path between them.

use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tun_rs::{DeviceBuilder, SyncDevice};
use weir_net::{ConfigError, Ecn};
use weir_units::{Bytes, Instant};

use super::ip;
use crate::clock::{self, Alarm};
use crate::relay::{Carrier, Header, Host, HostedLink, Report, Route, TURN, Way, wait_any};

/// One end of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The file that stands for its network namespace, as in `/run/netns/NAME`.
    pub namespace: PathBuf,
    /// The address of its device; both ends are in one /24.
    pub address: Ipv4Addr,
}

/// A link between two network namespaces. Packets from the first end to the second go up.
pub struct TunLink {
    ends: [Tun; 2],
    host: Host,
    began: Instant,
    buffer: Vec<u8>,
}

/// A device in its namespace.
struct Tun {
    device: SyncDevice,
    /// The namespace's table of interfaces: what the device dropped is in it.
    counters: File,
}

/// Why there is no link.
#[derive(Debug, thiserror::Error)]
pub enum TunError {
    /// The namespace cannot be entered.
    #[error("cannot enter the network namespace {namespace}: {error}")]
    Namespace {
        /// Which.
        namespace: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The device cannot be made.
    #[error("cannot make a TUN device in {namespace}: {error}")]
    Device {
        /// Where.
        namespace: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The path cannot be as it is described.
    #[error(transparent)]
    Path(#[from] ConfigError),
}

impl TunLink {
    /// Makes the devices, called `weir0` in each namespace, and the path between them. They vanish
    /// with the link.
    ///
    /// # Errors
    /// If a namespace cannot be entered, a device not made, or the path cannot be.
    pub fn open(
        ends: [&End; 2],
        mtu: u16,
        links: &[HostedLink],
        route: Route,
        seed: u64,
    ) -> Result<Self, TunError> {
        let host = Host::new(links, route, seed)?;
        let [first, second] = ends;
        let ends = [Tun::open(first, mtu)?, Tun::open(second, mtu)?];
        Ok(Self { ends, host, began: clock::now(), buffer: vec![0; LONGEST_PACKET] })
    }

    /// Reads some packets of a direction, so that the other has its turn too.
    fn take_in(&mut self, way: Way) -> io::Result<()> {
        for _ in 0..BATCH {
            let len = match self.ends[way as usize].device.recv(&mut self.buffer) {
                Ok(len) => len,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let packet = &self.buffer[..len];
            let header = Header {
                flow: ip::flow(packet),
                route: 0,
                way,
                carries_data: true,
                ecn: ip::ecn(packet),
                len: Bytes(len as u64),
            };
            self.host.offer(clock::now(), header, packet);
        }
        Ok(())
    }

    fn give_out(&mut self) {
        let now = clock::now();
        while let Some(arrival) = self.host.poll(now) {
            let mut packet = arrival.packet;
            let header = *packet.header();
            if header.ecn == Ecn::Ce && ip::ecn(packet.bytes()) != Ecn::Ce {
                ip::mark_ce(packet.bytes_mut());
            }
            let other = match header.way {
                Way::Up => 1,
                Way::Down => 0,
            };
            match self.ends[other].device.send(packet.bytes()) {
                Ok(len) => self.host.on_sent(header.way, len, arrival.due, clock::now()),
                Err(_) => self.host.unasked(header.way).send_errors += 1,
            }
        }
    }
}

impl Carrier for TunLink {
    fn run(&mut self, turn: &mut dyn FnMut(&mut Self) -> ControlFlow<()>) -> io::Result<()> {
        let _alarm = Alarm::set();
        let mut readable = vec![true; 2];
        let mut next_turn = clock::now();
        loop {
            for way in [Way::Up, Way::Down] {
                if readable[way as usize] {
                    self.take_in(way)?;
                }
            }
            self.give_out();
            if clock::now() >= next_turn {
                if turn(self).is_break() {
                    return Ok(());
                }
                next_turn = clock::now() + TURN;
            }
            let until = self.host.next_time().unwrap_or(Instant::MAX).min(next_turn);
            wait_any(
                &[self.ends[0].device.as_fd(), self.ends[1].device.as_fd()],
                until,
                &mut readable,
            )?;
        }
    }

    fn report(&mut self) -> Report {
        let now = clock::now();
        let [up, down] = [Way::Up, Way::Down].map(|way| {
            let mut report = self.host.report(now, way);
            // What its device could not keep for us to read.
            report.unasked.overflow = self.ends[way as usize].dropped();
            report
        });
        Report { elapsed: now.saturating_since(self.began), up, down, clients: 0 }
    }
}

impl Tun {
    /// Namespaces belong to threads: one of its own enters, and what it opens there stays there.
    fn open(end: &End, mtu: u16) -> Result<Self, TunError> {
        let End { namespace, address } = end.clone();
        let opened = std::thread::spawn(move || {
            let refused =
                |error: io::Error| TunError::Namespace { namespace: namespace.clone(), error };
            let file = File::open(&namespace).map_err(refused)?;
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
                .map_err(|error| refused(error.into()))?;
            // Only what programs send is on the link, not what IPv6 does by itself. Where there is none,
            // there is nothing to turn off.
            let _ = std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
            let failed = |error| TunError::Device { namespace: namespace.clone(), error };
            Self::make(address, mtu).map_err(failed)
        });
        opened.join().expect("opening a device does not panic")
    }

    fn make(address: Ipv4Addr, mtu: u16) -> io::Result<Self> {
        let device = DeviceBuilder::new()
            .name(DEVICE)
            .ipv4(address, PREFIX, None)
            .mtu(mtu)
            .tx_queue_len(QUEUE_LEN)
            .build_sync()?;
        device.set_nonblocking(true)?;
        Ok(Self { device, counters: File::open("/proc/thread-self/net/dev")? })
    }

    /// How many packets found the device's own queue full.
    fn dropped(&self) -> u64 {
        let mut table = vec![0; 16 << 10];
        let len = self.counters.read_at(&mut table, 0).unwrap_or_default();
        transmit_drops(&String::from_utf8_lossy(&table[..len])).unwrap_or_default()
    }
}

/// The column of transmit drops of our device: `face: 8 of receiving, bytes packets errs drop ...`
/// (proc(5)).
fn transmit_drops(table: &str) -> Option<u64> {
    let line =
        table.lines().find_map(|line| line.trim().strip_prefix(DEVICE)?.strip_prefix(':'))?;
    line.split_whitespace().nth(8 + 3)?.parse().ok()
}

/// The devices' name, in each namespace.
const DEVICE: &str = "weir0";
const PREFIX: u8 = 24;
/// A TUN device drops silently what finds its queue full: no sender fills this one.
const QUEUE_LEN: u32 = 20_000;
const LONGEST_PACKET: usize = 65_535;
/// Packets read in a row.
const BATCH: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drops_of_the_device_are_found() {
        let table = "Inter-|   Receive                            |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0
 weir0:     840      10    0    1    0     0          0         0      840      10    0    7    0     0       0          0
";
        assert_eq!(transmit_drops(table), Some(7));
        assert_eq!(transmit_drops("weir0:"), None);
        assert_eq!(transmit_drops(""), None);
    }
}
