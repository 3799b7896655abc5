//! A TUN device in a namespace.

use std::fs::File;
use std::io::{self, IoSlice};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;

use tun_rs::{DeviceBuilder, SyncDevice};

use super::namespace::{Namespace, keep_ipv6_quiet};
use super::netlink;

/// A TUN device as it is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceSpec {
    /// Its name, which no other interface of its namespace has.
    pub name: String,
    /// Its address.
    pub address: Ipv4Addr,
    /// How many bits of the address are the network's: the other end is in it too.
    pub prefix: u8,
}

/// A TUN device. It vanishes when this is dropped.
pub struct Device {
    device: SyncDevice,
    name: String,
    /// The namespace's table of interfaces: what the device dropped is in it.
    counters: File,
}

impl Device {
    /// Makes one in `namespace` and sets it up.
    ///
    /// With `offload` a virtio header (`virtio_net_hdr`) stands in front of every packet.
    ///
    /// # Errors
    /// If the system refuses it, as it does without root.
    pub fn open(
        namespace: &Namespace,
        spec: &DeviceSpec,
        mtu: u16,
        offload: bool,
    ) -> io::Result<Self> {
        let DeviceSpec { name, address, prefix } = spec.clone();
        namespace.run(move || {
            let device = DeviceBuilder::new()
                .name(&name)
                .ipv4(address, prefix, None)
                .mtu(mtu)
                .tx_queue_len(QUEUE_LEN)
                .offload(offload)
                .enable(false)
                .build_sync()?;
            keep_ipv6_quiet(&name);
            device.enabled(true)?;
            device.set_nonblocking(true)?;
            if !offload {
                netlink::forbid_superpackets(device.if_index()?)?;
            }
            Ok(Self { device, name, counters: File::open("/proc/thread-self/net/dev")? })
        })
    }

    /// Reads a packet that the kernel routed here; `None` if there is none.
    ///
    /// # Errors
    /// If the device cannot be read.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            return match self.device.recv(buffer) {
                Ok(len) => Ok(Some(len)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
        }
    }

    /// Hands a packet in pieces to the kernel.
    ///
    /// # Errors
    /// If the device cannot be written.
    pub fn write(&self, pieces: &[IoSlice<'_>]) -> io::Result<()> {
        self.device.send_vectored(pieces).map(|_| ())
    }

    /// How many packets of the kernel's found the device's own queue full.
    pub(super) fn dropped(&self) -> u64 {
        let mut table = vec![0; 16 << 10];
        let len = self.counters.read_at(&mut table, 0).unwrap_or_default();
        transmit_drops(&String::from_utf8_lossy(&table[..len]), &self.name).unwrap_or_default()
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

/// The column of a device's transmit drops: `face: 8 of receiving, bytes packets errs drop ...`
/// (proc(5)).
fn transmit_drops(table: &str, device: &str) -> Option<u64> {
    let line =
        table.lines().find_map(|line| line.trim().strip_prefix(device)?.strip_prefix(':'))?;
    line.split_whitespace().nth(8 + 3)?.parse().ok()
}

/// A TUN device drops silently what finds its queue full: no sender fills this one.
const QUEUE_LEN: u32 = 20_000;

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
        assert_eq!(transmit_drops(table, "weir0"), Some(7));
        assert_eq!(transmit_drops(table, "weir1"), None);
        assert_eq!(transmit_drops("weir0:", "weir0"), None);
        assert_eq!(transmit_drops("", "weir0"), None);
    }
}
