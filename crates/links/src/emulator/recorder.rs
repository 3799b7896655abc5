//! Packet capture: what passes the two ends of a link, into a file.

use std::io;

use rustix::time::{ClockId, clock_gettime};
use weir_net::Ecn;
use weir_scene::{CaptureFilter, CapturePoint, HostedLink, LinkCrossing, Packet, RunSpec};
use weir_trace::{Capture, CaptureFile, CapturedPacket, Epoch};
use weir_units::Instant;

use super::load::Load;
use super::view;

/// Records both ends of the first monitored link as two interfaces.
pub(super) struct Recorder {
    file: CaptureFile,
    snap_len: usize,
    spec: RunSpec,
    capture_point: CapturePoint,
    links: Vec<usize>,
    /// The beginning of the run, in nanoseconds of the capture.
    began: u64,
}

impl Recorder {
    /// Makes the file and watches the links; the run begins now.
    ///
    /// # Errors
    /// If there is no link to watch, or the file cannot be written.
    pub(super) fn open(
        asked: &Capture,
        spec: &RunSpec,
        links: &mut [HostedLink<Load>],
    ) -> io::Result<Self> {
        let monitored = spec.links.iter().position(|link| link.monitored);
        let link = monitored.ok_or_else(|| io::Error::other("no link is monitored"))?;
        let capture_point = CapturePoint::of_link(spec, link);
        let file = CaptureFile::create(asked, &capture_point.names(spec))?;
        let watched = capture_point.links(spec);
        for index in &watched {
            links[*index].watch(*index as u32, CaptureFilter::Foreign);
        }
        let began = match asked.epoch {
            Epoch::WallClock => wall_nanos(),
            Epoch::Run => 0,
        };
        let snap_len = asked.snap_len as usize;
        Ok(Self { file, snap_len, spec: spec.clone(), capture_point, links: watched, began })
    }

    /// Records what has passed since it was called last.
    pub(super) fn take(&mut self, links: &mut [HostedLink<Load>]) {
        for place in 0..self.links.len() {
            let index = self.links[place];
            for passing in links[index].take_passed() {
                self.record(index, &passing);
            }
        }
    }

    /// What went wrong so far.
    pub(super) fn check(&mut self) -> io::Result<()> {
        self.file.check()
    }

    /// Completes the file.
    pub(super) fn finish(self) -> io::Result<()> {
        self.file.finish()
    }

    fn record(&mut self, index: usize, passing: &LinkCrossing<Load>) {
        let Some(interface) = self.capture_point.interface(&self.spec, index, passing) else {
            return;
        };
        let LinkCrossing { at, packet, .. } = passing;
        self.file.write(&CapturedPacket {
            interface,
            nanos: self.began + (*at - Instant::ZERO).as_nanos(),
            bytes: &kept(packet, self.snap_len),
            len: packet.ip_len,
            is_damaged: packet.corrupted,
        });
    }
}

/// The packet as it is on the wire there, as far as it is recorded. One that a link has damaged is
/// whole still: its bit is flipped when it leaves the network.
fn kept(packet: &Packet<Load>, snap_len: usize) -> Vec<u8> {
    let mut bytes = if packet.load.layout().header() > 0 {
        // The checksum of a part of a superpacket covers all of it.
        packet.load.to_vec()
    } else {
        let bytes = packet.load.start();
        bytes[..bytes.len().min(snap_len)].to_vec()
    };
    if packet.ecn == Ecn::Ce && view::ecn(&bytes) != Ecn::Ce {
        view::mark_ce(&mut bytes);
    }
    bytes
}

/// The machine's clock, in nanoseconds since 1970.
fn wall_nanos() -> u64 {
    let time = clock_gettime(ClockId::Realtime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
