//! Linux's TCP as an endpoint of packet scripts: sockets in a namespace of their own, whose only route is
//! a TUN device. What the kernel sends is read from the device, what a script injects is written to it.
//!
//! In a guest time is virtual, and a script is exact. On a live kernel the machine's load counts too.

mod calls;
mod wire;

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io::{self, IoSlice};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};

use weir_packetdrill::{
    Call, Endpoint, EndpointError, Info, Received, Returned, Sent, Settings, Sysctl,
};
use weir_sockets::clock::{self, Alarm, Interest};
use weir_transport::{Flags, RackConfig, RecoveryConfig};
use weir_units::{Duration, Instant};

use self::wire::{Ports, SERVER_PORT};
use crate::info::script_info;
use weir_links::emulator::{Device, DeviceSpec, Namespace};

/// Linux's TCP under the control of a script.
pub struct KernelEndpoint {
    namespace: Namespace,
    device: Device,
    sockets: BTreeMap<i32, OwnedFd>,
    /// Sockets without a number, which stay open.
    replaced: Vec<OwnedFd>,
    /// The descriptor of the connection.
    connection: Option<i32>,
    controller: String,
    ports: Ports,
    /// The number of the newest connection, to which the ports belong.
    newest: u32,
    /// A socket has begun to listen since: a SYN opens another one.
    awaits_syn: bool,
    /// A socket connects, and its SYN has not been seen.
    connects: bool,
    start: Instant,
    now: Instant,
    sent: VecDeque<Sent>,
    _alarm: Alarm,
}

impl KernelEndpoint {
    /// A namespace with these settings. Its clock starts now.
    ///
    /// # Errors
    /// If the kernel has no such stack, or the system does not allow namespaces and devices. Requires
    /// root.
    pub fn open(settings: &Settings) -> Result<Self, EndpointError> {
        for (on, what) in [(settings.ipv6, "--ip_version=ipv6"), (settings.mtu != MTU, "--mtu")] {
            if on {
                return Err(EndpointError(format!("{what}: only Weir's transport runs it")));
            }
        }
        let namespace = Namespace::new().map_err(|error| EndpointError(error.to_string()))?;
        let values = sysctls(settings)?;
        namespace.run(move || apply(&values)).map_err(refused("setting a sysctl"))?;
        let spec = DeviceSpec { name: "weir0".to_owned(), address: LOCAL, prefix: 24 };
        let device = Device::open(&namespace, &spec, MTU, false);
        let device = device.map_err(refused("opening a TUN device"))?;
        let alarm = Alarm::set();
        let start = clock::next_aligned_to_ticks();
        let mut endpoint = Self {
            namespace,
            device,
            sockets: BTreeMap::new(),
            replaced: Vec::new(),
            connection: None,
            controller: settings.stack.controller.to_string(),
            ports: Ports::default(),
            newest: 0,
            awaits_syn: false,
            connects: false,
            start,
            now: start,
            sent: VecDeque::new(),
            _alarm: alarm,
        };
        endpoint.wait_until(start)?;
        Ok(endpoint)
    }

    fn wait_until(&mut self, until: Instant) -> Result<(), EndpointError> {
        let wait = until.saturating_since(clock::now());
        let readable = clock::wait(self.device.as_fd(), Interest::Readable, wait);
        let readable = readable.map_err(refused("waiting for a packet"))?;
        self.now = clock::now();
        if readable {
            self.collect()?;
        }
        Ok(())
    }

    /// Reads what the kernel has sent.
    fn collect(&mut self) -> Result<(), EndpointError> {
        let mut buffer = [0; MTU as usize];
        while let Some(len) = self.device.read(&mut buffer).map_err(refused("reading a packet"))? {
            if let Some((segment, ecn, ports)) = wire::parse(&mut buffer[..len]) {
                let opens =
                    segment.flags.contains(Flags::SYN) && !segment.flags.contains(Flags::ACK);
                if opens && std::mem::take(&mut self.connects) {
                    self.ports = Ports { kernel: ports.source, script: ports.destination };
                }
                if self.ports == (Ports { kernel: ports.source, script: ports.destination }) {
                    let at = self.now.saturating_since(self.start);
                    let connection = self.newest;
                    self.sent.push_back(Sent { at, segment, ecn, fast_open: None, connection });
                }
            }
        }
        Ok(())
    }
}

impl Endpoint for KernelEndpoint {
    fn now(&self) -> Duration {
        self.now.saturating_since(self.start)
    }

    fn advance(&mut self, until: Duration) -> Result<(), EndpointError> {
        // A call that blocks may return at any time: it is tried again after each slice.
        let until = (self.start + until).min(clock::now() + SLICE);
        self.wait_until(until)
    }

    fn poll_sent(&mut self) -> Option<Sent> {
        self.sent.pop_front()
    }

    fn next_connection(&self, flags: Flags) -> u32 {
        let opens = flags.contains(Flags::SYN) && !flags.contains(Flags::ACK);
        self.newest + u32::from(opens && self.awaits_syn)
    }

    fn inject(&mut self, arriving: &Received) -> Result<(), EndpointError> {
        let Received { segment, ecn, fast_open } = arriving;
        if fast_open.is_some() {
            return Err(EndpointError("option FO: only Weir's transport runs it".to_owned()));
        }
        let number = self.next_connection(segment.flags);
        if number > self.newest {
            self.newest = number;
            self.awaits_syn = false;
            // A port of its own: the one before may be in TIME-WAIT.
            let script = SERVER_PORT + (number - 1) as u16 % 1_000;
            self.ports = Ports { kernel: SERVER_PORT, script };
        }
        let packet = wire::emit(segment, *ecn, self.ports);
        self.device.write(&[IoSlice::new(&packet)]).map_err(refused("writing a packet"))?;
        self.collect()
    }

    fn call(&mut self, call: &Call) -> Result<Returned, EndpointError> {
        let returned = self.dispatch(call)?;
        self.now = clock::now();
        self.collect()?;
        Ok(returned)
    }

    fn configure(&mut self, settings: &Settings) -> Result<(), EndpointError> {
        let values = sysctls(settings)?;
        self.namespace.run(move || apply(&values)).map_err(refused("setting a sysctl"))
    }

    fn count(&mut self, _state: i64) -> Result<u32, EndpointError> {
        Err(EndpointError("sockstat: only Weir's transport runs it".to_owned()))
    }

    fn info(&mut self) -> Result<Info, EndpointError> {
        let socket = self.connection.and_then(|fd| self.sockets.get(&fd));
        let Some(socket) = socket else {
            return Err(EndpointError("there is no connection".to_owned()));
        };
        script_info(socket).map_err(refused("reading TCP_INFO"))
    }
}

/// The settings of the namespace.
fn sysctls(settings: &Settings) -> Result<Vec<(String, String)>, EndpointError> {
    let stack = &settings.stack;
    let rack = RackConfig::default();
    // Linux is `rack`. Its switches make it what `sack` is; without SACK it is `newreno`.
    let (recovery, tlp) = match stack.recovery {
        RecoveryConfig::Rack(config) if config == rack => ("1", "3"),
        RecoveryConfig::Rack(config) if config == (RackConfig { tlp: config.tlp, ..rack }) => {
            ("1", "0")
        }
        RecoveryConfig::Sack => ("0", "0"),
        _ => {
            let message = format!("--stack={stack}: Linux has rack, rack(tlp=off) and sack");
            return Err(EndpointError(message));
        }
    };
    let sysctls = Sysctl::ALL.iter();
    let mut values: Vec<(String, String)> = sysctls
        .map(|sysctl| (sysctl.name().to_owned(), settings.sysctl(*sysctl).to_string()))
        .collect();
    let mut set = |name: &str, value: String| values.push((name.to_owned(), value));
    set("tcp_recovery", recovery.to_owned());
    set("tcp_early_retrans", tlp.to_owned());
    set("tcp_no_metrics_save", "1".to_owned());
    // Large enough that a write never blocks, unless the script says otherwise.
    let [least, first, largest] = settings.send_memory.unwrap_or([4_096, 4 << 20, 4 << 20]);
    set("tcp_wmem", format!("{least} {first} {largest}"));
    set("tcp_fastopen", settings.fast_open.to_string());
    if let Some([least, first, largest]) = settings.receive_memory {
        set("tcp_rmem", format!("{least} {first} {largest}"));
    }
    // Those that this kernel no longer has make no difference either.
    let there = |name: &str| std::path::Path::new(&format!("/proc/sys/net/ipv4/{name}")).exists();
    values.extend(settings.neutral.iter().filter(|(name, _)| there(name)).cloned());
    Ok(values)
}

/// Sets them in the namespace of the calling thread.
fn apply(values: &[(String, String)]) -> io::Result<()> {
    for (name, value) in values {
        let path = format!("/proc/sys/net/ipv4/{name}");
        fs::write(&path, value)
            .map_err(|error| io::Error::new(error.kind(), format!("{path} = {value}: {error}")))?;
    }
    Ok(())
}

fn refused<E: std::fmt::Display>(what: &'static str) -> impl Fn(E) -> EndpointError {
    move |error| EndpointError(format!("{what}: {error}"))
}

/// Ethernet's.
const MTU: u16 = 1_500;
/// The kernel's address and that of the script's side, in a network for documentation (RFC 5737).
const LOCAL: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const REMOTE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
const SLICE: Duration = Duration::from_millis(5);
