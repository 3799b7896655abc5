//! Packet capture: what passes the two ends of a link, into a file.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use rustix::time::{ClockId, clock_gettime};
use weir_net::Ecn;
use weir_scene::{Direction, FlowSpec, HostedLink, LinkEnd, Packet, Passing, RunSpec};
use weir_trace::{CapturedPacket, PcapngWriter};
use weir_units::Instant;

use super::load::Load;
use super::view;
use crate::capture::{Capture, Epoch};

/// Records both ends of the first monitored link as two interfaces, each of which sees what a capture
/// at that place would: data on its way into the link or out of it, and what comes back.
///
/// The file has the name that was asked for only when it is complete: until then it is `PATH.partial`,
/// and is removed if nothing comes of it.
pub(super) struct Recorder {
    file: PcapngWriter<BufWriter<File>>,
    path: PathBuf,
    partial: Partial,
    snap_len: usize,
    link: usize,
    /// The link that leads back between the same two places, which may be the same.
    twin: Option<usize>,
    /// The beginning of the run, in nanoseconds of the capture.
    began: u64,
    /// The first refusal of the system; nothing is recorded after it.
    failure: Option<io::Error>,
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
        let twin = twin(spec, link);
        let name = &spec.links[link].name;
        let interfaces = [format!("before {name}"), format!("after {name}")];
        let partial = Partial::of(&asked.path);
        let sink = BufWriter::with_capacity(BUFFER, File::create(&partial.0)?);
        let mut file = PcapngWriter::new(sink, PROGRAM, &interfaces, asked.snap_len)?;
        // What cannot be written at all is told before the run.
        file.flush()?;
        for index in [Some(link), twin].into_iter().flatten() {
            links[index].watch();
        }
        let began = match asked.epoch {
            Epoch::WallClock => wall_nanos(),
            Epoch::Run => 0,
        };
        let snap_len = asked.snap_len as usize;
        let path = asked.path.clone();
        Ok(Self { file, path, partial, snap_len, link, twin, began, failure: None })
    }

    /// Records what has passed since it was called last.
    pub(super) fn take(&mut self, links: &mut [HostedLink<Load>]) {
        let twin = self.twin.filter(|twin| *twin != self.link);
        for index in [Some(self.link), twin].into_iter().flatten() {
            for passing in links[index].take_passed() {
                if self.failure.is_none()
                    && let Err(error) = self.record(index, &passing)
                {
                    self.failure = Some(told(&self.path, error));
                }
            }
        }
    }

    /// What went wrong so far.
    pub(super) fn check(&mut self) -> io::Result<()> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Completes the file.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.check()?;
        let whole = self.file.flush().and_then(|()| std::fs::rename(&self.partial.0, &self.path));
        whole.map_err(|error| told(&self.path, error))
    }

    fn record(&mut self, index: usize, passing: &Passing<Load>) -> io::Result<()> {
        let Passing { at, end, packet } = passing;
        let bytes = kept(packet, self.snap_len);
        self.file.write(&CapturedPacket {
            interface: self.interface(index, *end, packet.direction),
            nanos: self.began + (*at - Instant::ZERO).as_nanos(),
            bytes: &bytes,
            len: packet.ip_len,
            is_damaged: packet.corrupted,
        })
    }

    /// 0 at the near end of the monitored link, 1 at its far end.
    fn interface(&self, index: usize, end: LinkEnd, direction: Direction) -> u32 {
        let leads_back = match self.twin {
            Some(twin) if twin == self.link => direction == Direction::Reverse,
            _ => index != self.link,
        };
        u32::from((end == LinkEnd::Exit) != leads_back)
    }
}

/// A file that is removed unless it was completed.
struct Partial(PathBuf);

impl Partial {
    fn of(path: &Path) -> Self {
        let mut name = path.as_os_str().to_owned();
        name.push(".partial");
        Self(name.into())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // One that was completed is not called so any more.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The link that leads back where `link` comes from, for the first flow that sends over it: itself, the
/// one that is called so, or the one in the mirrored place on the way back.
fn twin(spec: &RunSpec, link: usize) -> Option<usize> {
    let crosses = |flow: &&FlowSpec| flow.route_forward.contains(&link);
    let flow = spec.flows.iter().find(crosses)?;
    let back = &flow.route_reverse;
    let name = format!("{}-reverse", spec.links[link].name);
    let called = || back.iter().copied().find(|index| spec.links[*index].name == name);
    let place = flow.route_forward.iter().position(|index| *index == link)?;
    let mirrored = || back.iter().rev().nth(place).copied();
    back.contains(&link).then_some(link).or_else(called).or_else(mirrored)
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

fn told(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// The machine's clock, in nanoseconds since 1970.
fn wall_nanos() -> u64 {
    let time = clock_gettime(ClockId::Realtime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

const PROGRAM: &str = concat!("weir ", env!("CARGO_PKG_VERSION"));
/// So much at a time goes to the file, in some tens of microseconds.
const BUFFER: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use weir_net::LinkConfig;
    use weir_scene::MeasureSpec;
    use weir_scene::topology::{Access, Chain, Dumbbell, Hop, LabRouter, Relay, Span, Topology};
    use weir_units::Duration;

    use super::*;
    use crate::emulator::link::foreign_flow;

    fn spec(topology: Topology) -> RunSpec {
        let flow = |(index, route): (usize, weir_scene::topology::Route)| {
            foreign_flow(&format!("f{index}"), route.forward, route.reverse)
        };
        RunSpec {
            radio: None,
            links: topology.links,
            flows: topology.routes.into_iter().enumerate().map(flow).collect(),
            measure: MeasureSpec::default(),
        }
    }

    fn twin_of(topology: Topology, link: &str) -> Option<String> {
        let spec = spec(topology);
        let index = spec.links.iter().position(|described| described.name == link).unwrap();
        twin(&spec, index).map(|index| spec.links[index].name.clone())
    }

    #[test]
    fn the_link_back_is_found_in_every_topology() {
        // An odd round trip: there is a link of 1 ns on the way back only.
        let dumbbell = Dumbbell {
            forward: LinkConfig::default(),
            reverse: LinkConfig::default(),
            access: Access::None,
            rtts: vec![Duration::from_nanos(1)],
        };
        let twin = twin_of(dumbbell.build().unwrap(), "bottleneck");
        assert_eq!(twin.as_deref(), Some("bottleneck-reverse"));

        let serial = LabRouter {
            relay: Relay::Serial(LinkConfig::default()),
            forward: None,
            reverse: None,
            flows: 1,
        };
        assert_eq!(twin_of(serial.build(), "relay").as_deref(), Some("relay"));

        let hop = || Hop { forward: LinkConfig::default(), reverse: LinkConfig::default() };
        let chain = Chain {
            hops: vec![hop(), hop(), hop()],
            access: Access::None,
            spans: vec![Span { from: 0, to: 3 }],
        };
        let mut topology = chain.build().unwrap();
        assert_eq!(twin_of(topology.clone(), "hop1").as_deref(), Some("hop1-reverse"));
        topology.links.iter_mut().for_each(|link| link.name = link.name.replace("-reverse", "b"));
        assert_eq!(twin_of(topology, "hop2").as_deref(), Some("hop2b"));
    }
}
