//! Packet captures of the simulated world, written while it runs: nothing of them stays in memory.

use std::io;
use std::path::Path;

use weir_scene::{CapturePoint, LinkCrossing, RunSpec, Wire};
use weir_sim::PacketTap;
use weir_trace::{Capture, CaptureFile, CapturedPacket, Epoch};
use weir_units::Instant;

use crate::error::{Problem, ScenarioError};
use crate::run_error::RunError;
use crate::scenario::Scenario;

/// Captures of what one run sends.
pub(crate) struct Captures<'a> {
    spec: &'a RunSpec,
    wire: Wire,
    places: Vec<Place>,
    /// Initial capacity for the capture points that see a packet.
    seen: Vec<(usize, u32)>,
}

/// A pair of interfaces, and where what they see is written.
struct Place {
    capture_point: CapturePoint,
    files: Files,
}

enum Files {
    /// Both in one file.
    Together(CaptureFile),
    /// A file for each.
    Apart([CaptureFile; 2]),
}

impl<'a> Captures<'a> {
    /// The two ends of the first monitored link, in one file.
    pub(crate) fn of_bottleneck(spec: &'a RunSpec, asked: &Capture) -> Result<Self, RunError> {
        let link = monitored(spec)?[0];
        let capture_point = CapturePoint::of_link(spec, link);
        let asked = Capture { epoch: Epoch::Run, ..asked.clone() };
        let file = CaptureFile::create(&asked, &capture_point.names(spec)).map_err(refused)?;
        let place = Place { capture_point, files: Files::Together(file) };
        Ok(Self { spec, wire: Wire::default(), places: vec![place], seen: Vec::new() })
    }

    /// All hosts, and both ends of every monitored link, a file per interface: `STEM-INTERFACE.pcapng`.
    pub(crate) fn of_interfaces(
        spec: &'a RunSpec,
        folder: &Path,
        stem: &str,
    ) -> Result<Self, RunError> {
        let links = monitored(spec)?.into_iter().map(|link| CapturePoint::of_link(spec, link));
        let places = [CapturePoint::Hosts].into_iter().chain(links).map(|capture_point| {
            let [first, second] = capture_point.names(spec).map(|name| {
                let path = folder.join(format!("{stem}-{}.pcapng", file_name(&name)));
                let asked = Capture::of_headers(path, Epoch::Run);
                CaptureFile::create(&asked, std::slice::from_ref(&name))
            });
            Ok(Place { capture_point, files: Files::Apart([first?, second?]) })
        });
        let places = places.collect::<io::Result<_>>().map_err(refused)?;
        Ok(Self { spec, wire: Wire::default(), places, seen: Vec::new() })
    }

    /// Completes the files.
    pub(crate) fn finish(self) -> Result<(), RunError> {
        for place in self.places {
            match place.files {
                Files::Together(file) => file.finish().map_err(refused)?,
                Files::Apart(files) => {
                    files.into_iter().try_for_each(CaptureFile::finish).map_err(refused)?;
                }
            }
        }
        Ok(())
    }
}

impl PacketTap for Captures<'_> {
    fn links(&self) -> Vec<usize> {
        let mut links: Vec<usize> =
            self.places.iter().flat_map(|place| place.capture_point.links(self.spec)).collect();
        links.sort_unstable();
        links.dedup();
        links
    }

    fn record(&mut self, index: usize, seen: &LinkCrossing<()>) {
        let Self { spec, wire, places, seen: at, .. } = self;
        at.clear();
        at.extend(places.iter().enumerate().filter_map(|(number, place)| {
            Some((number, place.capture_point.interface(spec, index, seen)?))
        }));
        if at.is_empty() {
            return;
        }
        let bytes = wire.bytes(&seen.packet);
        for &(number, interface) in at.iter() {
            let (file, interface) = match &mut places[number].files {
                Files::Together(file) => (file, interface),
                Files::Apart(files) => (&mut files[interface as usize], 0),
            };
            file.write(&CapturedPacket {
                interface,
                nanos: (seen.at - Instant::ZERO).as_nanos(),
                bytes,
                len: seen.packet.ip_len,
                is_damaged: seen.packet.corrupted,
            });
        }
    }
}

/// Says whether the simulator can record the packets of a scenario as it runs.
///
/// # Errors
/// If it goes over radio or over switches that choose among links, or has no bottleneck.
pub fn check_capture(scenario: &Scenario) -> Result<(), ScenarioError> {
    monitored(scenario.spec()).map(drop)
}

/// The links at whose ends packets are recorded, at least one.
fn monitored(spec: &RunSpec) -> Result<Vec<usize>, ScenarioError> {
    let numbered = spec.links.iter().enumerate();
    let found: Vec<usize> =
        numbered.filter(|(_, link)| link.monitored).map(|(index, _)| index).collect();
    if spec.radio.is_some() || spec.fabric.is_some() || found.is_empty() {
        let message = if spec.radio.is_some() {
            "packets are recorded at the ends of links, and 'radio' has none"
        } else if spec.fabric.is_some() {
            "packets are recorded on routes that are those of the scenario, and in a fabric or with \
             `routing` forwarding tables have them"
        } else {
            "packets are recorded at the ends of monitored links, and there is none"
        };
        return Err(ScenarioError::nowhere(Problem::new("topology", message)));
    }
    Ok(found)
}

/// An interface's name without what file systems refuse.
fn file_name(name: &str) -> String {
    let kept = |letter: char| letter.is_ascii_alphanumeric() || "._=".contains(letter);
    name.chars().map(|letter| if kept(letter) { letter } else { '-' }).collect()
}

fn refused(error: io::Error) -> RunError {
    RunError::Capture(error.to_string())
}
