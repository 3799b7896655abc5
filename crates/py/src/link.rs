//! A link between the caller's network namespace and a new one: `weir link`.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use weir_lab::{Capture, Epoch};
use weir_links::emulator::{DeviceSpec, Namespace, NamespaceError, Options, TunLink};
use weir_links::relay::Background;

use crate::relay::{hosted_for_packets, report};

/// A link from a namespace of its own to that of the calling thread or another one, at work until it is
/// closed.
#[pyclass(module = "weir._native")]
pub(crate) struct HostLink {
    work: Option<Background>,
    inside: Namespace,
    /// Its thread ends with the link, and the namespace with the last process in it.
    outside: Namespace,
}

#[pymethods]
impl HostLink {
    /// `device` is the name of the device at each end, `addresses` are those inside and outside, in one
    /// /30. `options` hold for both directions, the two of `directions` (up, from inside, and down) for one each.
    /// Packets are recorded in the file `capture`, which is there when the link has been closed. If it
    /// is `isolated`, the outside is a namespace of its own, in place of the caller's. With `addresses6`
    /// both ends have addresses of IPv6 too, in one /126.
    #[new]
    #[pyo3(signature = (device, addresses, mtu, options, directions, seed, capture = None, isolated = false, addresses6 = None))]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    fn new(
        py: Python<'_>,
        device: &str,
        addresses: [String; 2],
        mtu: u16,
        options: Vec<(String, String)>,
        directions: [String; 2],
        seed: u64,
        capture: Option<PathBuf>,
        isolated: bool,
        addresses6: Option<[String; 2]>,
    ) -> PyResult<Self> {
        let (links, route) = hosted_for_packets(&options, &directions[0], &directions[1])?;
        let [inner, outer] = parsed::<Ipv4Addr>(&addresses)?;
        let addresses6 = addresses6.as_ref().map(parsed::<Ipv6Addr>).transpose()?;
        let device6 = device.to_owned();
        let end = |address| DeviceSpec { name: device.to_owned(), address, prefix: PREFIX };
        let capture = capture.map(|path| Capture::of_headers(path, Epoch::WallClock));
        let devices = [end(inner), end(outer)];
        let options = Options { devices, mtu, capture, ..Options::default() };
        py.detach(|| {
            let refused = |error: NamespaceError| PyOSError::new_err(error.to_string());
            let inside = Namespace::new().map_err(refused)?;
            let outside = if isolated {
                Namespace::new().map_err(refused)?
            } else {
                Namespace::enter(Path::new(OWN_NAMESPACE)).map_err(refused)?
            };
            let link = TunLink::open([&inside, &outside], &links, route, seed, &options)
                .map_err(|error| PyOSError::new_err(error.to_string()))?;
            inside.route_all_by(outer)?;
            for (namespace, address) in
                [&inside, &outside].into_iter().zip(addresses6.iter().flatten())
            {
                namespace.add_ipv6(&device6, *address, PREFIX6)?;
            }
            Ok(Self { work: Some(Background::start(link)), inside, outside })
        })
    }

    /// Moves the calling thread into the namespace, for good; `far` into the one outside.
    #[pyo3(signature = (far = false))]
    fn enter(&self, far: bool) -> PyResult<()> {
        let namespace = if far { &self.outside } else { &self.inside };
        Ok(namespace.move_caller()?)
    }

    /// What it did so far.
    fn report<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        report(py, &mut self.work)
    }

    /// Removes the link. What runs in the namespace keeps that.
    fn close(&mut self, py: Python<'_>) -> PyResult<()> {
        let work = self.work.take();
        py.detach(|| work.map_or(Ok(()), |work| work.stop().map(drop)))?;
        Ok(())
    }
}

fn parsed<A: FromStr>(texts: &[String; 2]) -> PyResult<[A; 2]> {
    let address = |text: &String| {
        text.parse().map_err(|_| PyValueError::new_err(format!("{text}: no such address")))
    };
    Ok([address(&texts[0])?, address(&texts[1])?])
}

/// The smallest network with two addresses for hosts.
const PREFIX: u8 = 30;
const PREFIX6: u8 = 126;
const OWN_NAMESPACE: &str = "/proc/thread-self/ns/net";
